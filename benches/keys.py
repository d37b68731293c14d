#!/usr/bin/env python3
"""How long pages of --export-html take from a key to the next painted frame.

    benches/keys.py PAGE...

Each key is pressed where the focus is, in every drawing and at every cut of every view, as
a user would: Chromium gets it through its DevTools protocol. The time is from when the key
came in until the frame after it is painted, so a frame (16.7 ms) is in each of them. For each
view: keys, median and maximum in milliseconds, and the key and place of the maximum.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

KEYS = "ArrowRight PageUp PageUp ArrowLeft End PageDown Home + + t ArrowRight ArrowRight - f 0".split()

# A message that is sent before a frame is painted comes after it.
LISTEN = """addEventListener('keydown', (event) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { window.latency = performance.now() - event.timeStamp; };
    port2.postMessage(0);
}), true)"""
FRAMES = "(async () => { for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame); })()"
ANSWER = """new Promise((resolve) => {
    const look = () => window.latency === null ? setTimeout(look, 1) : resolve(window.latency);
    look();
})"""
READY = """new Promise((resolve) => {
    const look = () => document.documentElement?.dataset.ready ? resolve() : setTimeout(look, 5);
    look();
})"""
SLIDERS = "[...document.querySelectorAll('#view-%s [role=slider]')].filter((own) => own.checkVisibility())"


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, folder: str) -> None:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        if program is None:
            sys.exit("no Chromium is in the PATH")
        (self.to_read, commands), (answers, to_write) = os.pipe(), os.pipe()
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        # The browser reads from 3 and writes to 4; only a shell can put the pipes there.
        redirect = f'exec "$0" "$@" 3<&{self.to_read} 4>&{to_write} 2>/dev/null'
        self.process = subprocess.Popen(
            ["sh", "-c", redirect, program, *arguments, f"--user-data-dir={folder}"],
            pass_fds=(self.to_read, to_write),
        )
        self.commands, self.answers = os.fdopen(commands, "wb", 0), os.fdopen(answers, "rb")
        self.number, self.session = 0, None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def send(self, method: str, **params: object) -> dict:
        """Sends a command and waits for its answer."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        self.commands.write(json.dumps(command).encode() + b"\0")
        while True:
            text = bytearray()
            while (byte := self.answers.read(1)) != b"\0":
                text += byte
            message = json.loads(text)
            if message.get("id") == self.number:
                return message["result"]

    def value(self, script: str) -> object:
        """What a script in the page gives."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key: str) -> float:
        """Milliseconds from a key to the frame after it."""
        self.value("void (window.latency = null)")
        text = {"text": key} if len(key) == 1 else {}
        for kind in ["keyDown", "keyUp"]:
            self.send("Input.dispatchKeyEvent", type=kind, key=key, **text)
        return float(self.value(ANSWER))


def measure(browser: Browser, page: Path) -> None:
    """Prints a line for each view of a page."""
    size = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.send("Emulation.setDeviceMetricsOverride", **size)
    browser.send("Page.navigate", url=page.resolve().as_uri())
    browser.value(READY)
    browser.value(LISTEN)
    for view in browser.value("[...document.querySelectorAll('#bar a')].map((own) => own.dataset.view)"):
        browser.value(f"choose({{ view: '{view}' }})")
        browser.value(FRAMES)
        places = SLIDERS % view
        found = []
        for place in range(min(browser.value(f"{places}.length"), 6)):
            name = browser.value(f"(() => {{ const own = {places}[{place}]; own.focus(); return own.ariaLabel; }})()")
            found += [(browser.press(key), key, name) for key in KEYS]
        if found:
            (most, key, name), median = max(found), statistics.median(time for time, _, _ in found)
            print(f"{page.name} {view}: {len(found)} keys, {median:.0f}, {most:.0f} ({key}, {name})")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        own = Browser(folder)
        for page in sys.argv[1:]:
            measure(own, Path(page))
        own.process.terminate()
        own.process.wait()

//! A headless Chromium, controlled by its DevTools protocol over two pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::skip;

/// The names of Chromium's executable.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Returns the browser in the PATH; `None` if the test is skipped.
#[track_caller]
fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let mut places = folders.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    let found = places.find(|place| place.is_file());
    if found.is_none() {
        let is_ci = std::env::var_os("CI").is_some();
        assert!(
            !is_ci,
            "with CI set, the page must be tested, and no Chromium is in the PATH"
        );
        skip(&format!(
            "no Chromium is in the PATH ({})",
            NAMES.join(", ")
        ));
    }
    found
}

/// A browser that does not answer for this time hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until the page has read its report, which is after it is loaded.
const READY: &str = "new Promise((resolve) => {
    const look = () => document.documentElement.dataset.ready ? resolve() : setTimeout(look, 5);
    look();
})";

/// Browsers that no test uses at the moment, each with one page. Starting one takes longer than
/// most tests, and so does opening a page, so tests reuse both.
static IDLE: Mutex<Vec<Program>> = Mutex::new(Vec::new());

/// A running browser.
struct Program {
    _shell: Child,
    commands: File,
    answers: Receiver<Value>,
    number: u64,
    /// The session of its page.
    session: Value,
}

impl Program {
    fn start(path: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let pipes = ["commands", "answers"].map(|name| folder.join(name));
        let made = Command::new("mkfifo").args(&pipes).status();
        assert!(made.is_ok_and(|status| status.success()), "two pipes");
        // The browser reads from descriptor 3 and writes to 4; only a shell can put the pipes
        // there. As root it has no sandbox. It ends when the pipes are closed.
        let run = r#""$0" "$@" 3<"$FOLDER/commands" 4>"$FOLDER/answers"; rm -rf "$FOLDER""#;
        let options = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
            --remote-debugging-pipe --no-first-run --disable-extensions --disable-sync \
            --disable-background-networking --disable-component-update \
            --disable-features=SpareRendererForSitePerProcess";
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let shell = Command::new("sh")
            .args(["-c", run])
            .arg(path)
            .args(options.split_whitespace())
            .arg(profile)
            .env("FOLDER", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let commands = OpenOptions::new().write(true).open(&pipes[0]);
        let answers = File::open(&pipes[1]).expect("a pipe");
        Self {
            _shell: shell,
            commands: commands.expect("a pipe"),
            answers: listen(answers),
            number: 0,
            session: Value::Null,
        }
    }

    fn receive(&self) -> Value {
        let message = self.answers.recv_timeout(PATIENCE);
        message.unwrap_or_else(|_| panic!("the browser hangs: no answer in {PATIENCE:?}"))
    }
}

/// A page in a browser, which no other test uses at the same time.
pub struct Browser {
    /// The browser, until the test ends.
    program: Option<Program>,
    /// Messages from this page that answer no command.
    events: Vec<Value>,
}

impl Browser {
    /// Opens an empty page; `None` if the test is skipped.
    #[track_caller]
    pub fn find() -> Option<Self> {
        let path = find()?;
        let idle = IDLE.lock().expect("the browsers").pop();
        let is_new = idle.is_none();
        let mut browser = Self {
            program: Some(idle.unwrap_or_else(|| Program::start(&path))),
            events: Vec::new(),
        };
        if is_new {
            browser.open_page();
        }
        browser.navigate("about:blank");
        // A scroll in progress would move the element that is about to be clicked.
        let still = json!([{"name": "prefers-reduced-motion", "value": "reduce"}]);
        let media = json!({"media": "", "features": still});
        browser.send("Emulation.setEmulatedMedia", media);
        Some(browser)
    }

    fn open_page(&mut self) {
        let target = self.send("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        self.program().session = self.send("Target.attachToTarget", attach)["sessionId"].take();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.send(&format!("{domain}.enable"), json!({}));
        }
    }

    fn program(&mut self) -> &mut Program {
        self.program.as_mut().expect("an open page")
    }

    /// Sends a command and waits for its answer.
    pub fn send(&mut self, method: &str, params: Value) -> Value {
        let program = self.program();
        program.number += 1;
        let number = program.number;
        let mut command = json!({"id": number, "method": method, "params": params});
        if !program.session.is_null() {
            command["sessionId"] = program.session.clone();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        let sent = program.commands.write_all(&bytes);
        sent.expect("the browser reads");
        loop {
            let mut message = self.program().receive();
            if message["id"] != number {
                self.keep(message);
                continue;
            }
            assert!(message["error"].is_null(), "{method}: {message}");
            return message["result"].take();
        }
    }

    fn keep(&mut self, event: Value) {
        if event["sessionId"] == self.program().session {
            self.events.push(event);
        }
    }

    /// Presses a key on the element with the focus.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key});
            self.send("Input.dispatchKeyEvent", event);
        }
    }

    /// Scrolls to an element, and returns its place: x, y, width and height.
    pub fn place(&mut self, element: &str) -> [f64; 4] {
        let place = format!(
            "(() => {{ const one = {element};
                one.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                const box = one.getBoundingClientRect();
                return [box.x, box.y, box.width, box.height]; }})()"
        );
        serde_json::from_value(self.value(&place)).expect("a place")
    }

    /// Sends an event of the left button of the mouse at a point.
    pub fn mouse(&mut self, kind: &str, [x, y]: [f64; 2], count: u32) {
        let event = json!({
            "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": count,
        });
        self.send("Input.dispatchMouseEvent", event);
    }

    /// Clicks a point `times` times.
    pub fn click_at(&mut self, point: [f64; 2], times: u32) {
        for count in 1..=times {
            self.mouse("mousePressed", point, count);
            self.mouse("mouseReleased", point, count);
        }
    }

    /// Clicks an element `times` times, at this share of its width and in the middle of its height.
    pub fn click(&mut self, element: &str, share: f64, times: u32) {
        let [x, y, width, height] = self.place(element);
        self.click_at([x + width * share, y + height / 2.0], times);
    }

    /// Drags with the mouse from one point to another.
    pub fn drag(&mut self, from: [f64; 2], to: [f64; 2]) {
        self.mouse("mousePressed", from, 1);
        self.mouse("mouseMoved", to, 1);
        self.mouse("mouseReleased", to, 1);
    }

    /// Puts fingers on some points, moves them or, without points, takes them away.
    pub fn touch(&mut self, kind: &str, points: &[[f64; 2]]) {
        let points = points.iter().map(|[x, y]| json!({"x": x, "y": y}));
        let event = json!({"type": kind, "touchPoints": points.collect::<Vec<_>>()});
        self.send("Input.dispatchTouchEvent", event);
    }

    /// Opens a file at a width, like a phone if it is narrow, with a hash in the address, and waits
    /// until it is shown.
    pub fn open(&mut self, page: &Path, width: u32, hash: &str) {
        let size = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.send("Emulation.setDeviceMetricsOverride", size);
        // Changing only the hash would load no new page.
        self.navigate("about:blank");
        self.navigate(&format!("file://{}{hash}", page.display()));
        self.value(READY);
    }

    fn navigate(&mut self, url: &str) {
        self.events.clear();
        let opened = self.send("Page.navigate", json!({"url": url}));
        assert!(opened["errorText"].is_null(), "{opened}");
        while self.named("Page.loadEventFired").is_empty() {
            let event = self.program().receive();
            self.keep(event);
        }
    }

    /// Evaluates an expression in the page, and awaits a promise. `$` finds an element by its
    /// selector, and `$$` a list of all.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
            "includeCommandLineAPI": true,
        });
        let result = self.send("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{result}");
        result["result"]["value"].clone()
    }

    /// Returns the events of one kind so far.
    pub fn named(&self, method: &str) -> Vec<&Value> {
        let events = self.events.iter();
        events.filter(|event| event["method"] == method).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A failed test may leave a browser in any state.
        if !std::thread::panicking() {
            let program = self.program.take();
            IDLE.lock().expect("the browsers").extend(program);
        }
    }
}

/// Reads messages, each of which ends with a zero byte, in a thread, so that a test can stop
/// waiting.
fn listen(answers: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let messages = BufReader::new(answers).split(0);
        for message in messages.map_while(Result::ok) {
            let message = serde_json::from_slice(&message).expect("JSON");
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    receiver
}

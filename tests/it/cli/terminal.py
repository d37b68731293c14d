# Runs a command with standard error on a terminal of some width and everything
# else away from it, and prints what the terminal got.
import fcntl
import json
import os
import pty
import struct
import sys
import termios

wanted = json.load(sys.stdin)
main, side = pty.openpty()
size = struct.pack("HHHH", 24, wanted["columns"], 0, 0)
fcntl.ioctl(side, termios.TIOCSWINSZ, size)
child = os.fork()
if child == 0:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(side, 2)
    os.close(main)
    os.execve(wanted["command"][0], wanted["command"], wanted["environment"])
os.close(side)
shown = b""
while True:
    try:
        part = os.read(main, 65536)
    except OSError:
        break
    if not part:
        break
    shown += part
_, status = os.waitpid(child, 0)
text = shown.decode().replace("\r\n", "\n")
print(json.dumps({"code": os.waitstatus_to_exitcode(status), "text": text}))

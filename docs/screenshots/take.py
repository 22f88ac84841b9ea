#!/usr/bin/env python3
"""Takes the screenshots of this folder: what a new user sees first.

    take.py BUILD    the README's top, a comparison at 80 and 100 columns, and weir doctor

Needs chromium, and Python's `markdown` for the README. Colours are those of a dark terminal.
"""

import fcntl
import html
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COLOURS = {"1": "font-weight:bold", "31": "color:#ff7b72", "32": "color:#7ee787", "33": "color:#e3b341",
           "36": "color:#79c0ff"}
TERMINAL = "body{margin:12px;background:#0d1117;color:#e6edf3}pre{font:14px/19px 'DejaVu Sans Mono',monospace;margin:0}"
PAGE = """body{margin:32px auto;width:840px;font:16px/1.5 'DejaVu Sans',sans-serif;color:#1f2328}img{max-width:100%}
pre{background:#f6f8fa;padding:14px;font:13px/1.4 'DejaVu Sans Mono',monospace}a{color:#0969da}"""


def printed(columns, command):
    """What the command prints on a terminal of so many columns, standard error left out."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color")
        for name in ("NO_COLOR", "COLUMNS"):
            os.environ.pop(name, None)
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 60, columns, 0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.execvp(command[0], command)
    got = b""
    try:
        while block := os.read(terminal, 65536):
            got += block
    except OSError:  # Linux's way to say that the last writer has closed it
        pass
    os.waitpid(child, 0)
    return got.decode().replace("\r\n", "\n").rstrip("\n")


def coloured(text):
    """HTML for text with a terminal's colours."""
    result, opened = "", 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", text):
        codes = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not codes:
            result += html.escape(part)
            continue
        for code in codes[1].split(";"):
            if code in ("", "0"):
                result, opened = result + "</span>" * opened, 0
            elif code in COLOURS:
                result, opened = result + f'<span style="{COLOURS[code]}">', opened + 1
    return result + "</span>" * opened


def take(name, style, body, width, height):
    with tempfile.NamedTemporaryFile("w", suffix=".html", dir=ROOT) as page:  # beside the README's pictures
        page.write(f"<!doctype html><meta charset=utf-8><style>{style}</style>{body}")
        page.flush()
        subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        f"--window-size={width},{height}", f"--screenshot={HERE / name}", page.name],
                       check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def take_terminal(name, columns, command):
    text = printed(columns, command)
    shown = " ".join([pathlib.Path(command[0]).name, *command[1:]])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\n")
    if max(map(len, plain)) > columns:
        sys.exit(f"{shown}: a line of {max(map(len, plain))} columns on a terminal of {columns}")
    take(name, TERMINAL, f"<pre>$ {html.escape(shown)}\n{coloured(text)}</pre>", int(columns * 8.43) + 24,
         19 * (len(plain) + 1) + 24)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    import markdown  # only for the README

    build = pathlib.Path(sys.argv[1]).resolve()
    text = re.sub(r"^```(\w+) .*$", r"```\1", (ROOT / "README.md").read_text(), flags=re.M)  # the tests' marks
    body = markdown.markdown(text, extensions=["fenced_code", "tables"])
    take("readme.png", PAGE, body, 904, 1400)
    compare = [str(build / "trainer/weir-train"), "compare", "--device", "cpu", "--small", "--batches", "500",
               "--rounds", "3"]
    for columns in (80, 100):
        take_terminal(f"compare_{columns}.png", columns, compare)
    take_terminal("doctor.png", 80, [str(build / "tools/weir/weir"), "doctor"])
    return 0


if __name__ == "__main__":
    sys.exit(main())

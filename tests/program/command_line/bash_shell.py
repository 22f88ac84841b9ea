"""A bash of its own, with a terminal, whose completions can be asked for."""

import os
import pty
import select
import signal
import time

# `_seen` runs a program's completion as bash would and tells what it offers. The key prints the line and
# empties it. Everything goes to file descriptor 9: the terminal also has what bash echoes.
SETUP = r"""
bind 'set bell-style none'
_seen() {
  "${own[$1]}" "$@"
  ((${#COMPREPLY[@]} == 0)) || printf 'offer:%s\n' "${COMPREPLY[@]}" >&9
}
_line() {
  printf 'line:%s\n' "$READLINE_LINE" >&9
  READLINE_LINE='' READLINE_POINT=0
}
bind -x '"\C-x\C-p": _line'
declare -A own
for name in "${names[@]}"; do
  own[$name]=$(complete -p "$name" | sed -E 's/.*-F ([^ ]+) .*/\1/')
  complete -F _seen "$name"
done
echo line: >&9
"""


class BashShell:
    """Reads the scripts of --completion bash, a dict from a program's name to its script."""

    def __init__(self, scripts, environment):
        self.lines, ours = os.pipe()
        self.rest = b""
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.dup2(ours, 9)
            names = {"TERM": "dumb", "INPUTRC": "/dev/null", "HISTFILE": "", "PS1": ""}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**environment, **names})
        os.close(ours)
        setup = "".join(f"source '{path}'\n" for path in scripts.values())
        setup += f"names=({' '.join(scripts)})\n{SETUP}"
        path = str(next(iter(scripts.values()))) + ".setup"
        with open(path, "w", encoding="utf-8") as file:
            file.write(setup)
        self.type(f"source '{path}'\n")
        self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)
        os.close(self.lines)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def answer(self, seconds=600):
        """Returns what was offered, in order, and the line that bash made of it."""
        offers = []
        end = time.monotonic() + seconds
        while True:
            while b"\n" in self.rest:
                line, _, self.rest = self.rest.partition(b"\n")
                kind, _, text = line.decode().partition(":")
                if kind == "line":
                    return offers, text
                offers.append(text)
            ready = select.select([self.lines, self.terminal], [], [], max(0, end - time.monotonic()))[0]
            assert ready, f"bash does not answer: {self.rest!r}"
            if self.terminal in ready:
                os.read(self.terminal, 65536)
            if self.lines in ready:
                self.rest += os.read(self.lines, 65536)

    def complete(self, line):
        """Types the line and presses Tab. Returns what is offered, and the line after it."""
        self.type(f"{line}\t\x18\x10")
        return self.answer()

"""The fenced blocks of a page, and what each promises.

A block of commands says in its first line who runs it:

    ```sh              tests/pages/run.py does, over the stand-in driver
    ```sh test=NAME    the test NAME of the suite does: its source holds the words of each command (sources.py)
    ```sh gpu          it needs a GPU
    ```sh manual       no test can: it needs a network, root or another machine

A line `COMMAND  # ... exits with N` has to exit with N, any other with 0.
"""

import dataclasses
import re

import sources

FENCE = re.compile(r"^\s*```(.*)$")
# What a block without a language may not begin a line with: it is a command then.
COMMANDS = re.compile(r"^\s*(?:[A-Z_]+=\S+ )*"
                      r"(?:weir(?:-[a-z]+)?(?: [a-z-]| ?$)|tools/\w|build/|(?:python3?|pip|cmake|ctest|git|sudo) )")
EXITS = re.compile(r"#.*\bexits with (\d+)")


@dataclasses.dataclass(frozen=True)
class Block:
    page: str
    line: int  # of the fence
    info: str
    text: str

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def language(self):
        return self.info.split(" ")[0]

    @property
    def runner(self):
        """`run`, `gpu`, `manual` or `test=NAME`, of a block of commands."""
        words = self.info.split()
        return words[1] if len(words) == 2 else "run" if len(words) == 1 else self.info


def blocks_of(page, text):
    """The blocks of `text`, in their order. Raises ValueError for one without an end."""
    found, start, info, lines = [], None, "", []
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if not fence:
            lines.append(line)
        elif start is None:
            start, info, lines = number, fence.group(1).strip(), []
        else:
            found.append(Block(page, start, info, "\n".join(lines)))
            start = None
    if start is not None:
        raise ValueError(f"{page}:{start}: this block has no end")
    return found


def faults_of(block, tests):
    """What is wrong with the first line of `block`, as lines; `tests` are the suite's sources."""
    if block.language != "sh":
        if block.language in ("", "text", "console", "shell", "bash"):
            for line in block.text.splitlines():
                if COMMANDS.match(line):
                    return [f"{block.place}: '{line.strip()}' looks like a command; who runs it? Write ```sh, "
                            "```sh test=NAME, ```sh gpu or ```sh manual"]
        return []
    if block.runner.startswith("test="):
        return faults_of_test(block, block.runner.removeprefix("test="), tests)
    if block.runner in ("run", "gpu", "manual"):
        return []
    return [f"{block.place}: '{block.info}' is not one of sh, sh test=NAME, sh gpu, sh manual"]


def faults_of_test(block, name, tests):
    """What is wrong with a block that the test `name` is to run."""
    if name not in tests:
        return [f"{block.place}: there is no test {name}"]
    if tests.reads(name, block.page):
        return []
    text = tests.text_of(name)
    missing = [(command, words) for command in commands_of(block) if (words := sources.missing_in(text, command))]
    return [f"{block.place}: {name} does not run '{command.strip()}': its source has no {', '.join(words)}"
            for command, words in missing]


def commands_of(block):
    """The commands of a block, those of several lines in one."""
    whole = ""
    for line in block.text.splitlines():
        whole += line
        if whole.endswith("\\"):
            whole = whole.removesuffix("\\") + " "
            continue
        if whole.strip() and not whole.lstrip().startswith("#"):
            yield whole
        whole = ""


def script_of(block):
    """A bash script of the block's commands, each with the exit code that it has to have."""
    lines = ["set -uo pipefail"]
    for command in commands_of(block):
        wanted = EXITS.search(command)
        code = wanted.group(1) if wanted else "0"
        lines.append(f"{command}\nstatus=$?; ((status == {code})) || {{ "
                     f"echo \"exit code $status, not {code}: \"{quoted(command)} >&2; exit 1; }}")
    return "\n".join(lines) + "\n"


def quoted(text):
    return "'" + text.strip().replace("'", "'\\''") + "'"

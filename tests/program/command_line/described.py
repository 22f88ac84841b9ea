"""Runs programs and reads their --help."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

# Taken away: a variable changes what a program says.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("WEIR_", "MXNET_")) and name != "COLUMNS"}
NAME = re.compile(r"[a-z0-9_-]+")
SKIPPED = 77  # as tests/program/CMakeLists.txt says


def require_tool(name):
    """Ends this test as skipped if a tool is missing."""
    if not shutil.which(name):
        print(f"skipped: {name} is not installed: tools/setup installs it")
        sys.exit(SKIPPED)


def start(words, variables):
    return subprocess.run(words, env={**ENVIRONMENT, **variables}, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)


def run(*words, **variables):
    """Runs a command, which must succeed. Returns what it printed."""
    done = start(words, variables)
    assert done.returncode == 0, f"{words} ends with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def refusal(program, *words, **variables):
    """Runs a command that must refuse: exit code 2 and one line, which is returned."""
    done = start((program, *words), variables)
    name = pathlib.Path(program).name
    lines = re.fullmatch(rf"{name}: [^\n]+\n", done.stderr)
    assert (done.returncode, done.stdout) == (2, "") and lines, (
        f"{name} {words} ends with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


class Flag:
    """A flag as --help lists it: `-o, --output FILE`."""

    def __init__(self, line, text):
        self.text = text  # what it does
        words = line.replace(",", " ", line.count(", ")).split()
        self.names = [word for word in words if word.startswith("-")]
        rest = [word for word in words if not word.startswith("-")]
        self.value = rest[0] if rest else ""
        self.alternatives = self.value.split("|") if self.value else []

    @property
    def closed(self):
        """Whether it takes one of a set of names, and nothing else."""
        return bool(self.alternatives) and all(NAME.fullmatch(each) for each in self.alternatives)


class Command:
    """A command, from its --help."""

    def __init__(self, program, words=()):
        self.program, self.words = program, list(words)
        self.name = " ".join([pathlib.Path(program).name, *self.words])
        self.help = run(program, *self.words, "--help")
        self.usage = next(line for line in self.help.splitlines() if line.startswith("Usage: "))
        # A heading's explanation begins in the same line, two blanks after it, or in the next.
        self.flags = []
        for part in re.split(r"\n(?=  -)", "\n" + "\n".join(self.section("Flags")))[1:]:
            heading = part.strip().splitlines()[0].split("  ")[0]
            self.flags.append(Flag(heading, " ".join(part.replace(heading, "", 1).split())))
        self.commands = [Command(program, [*self.words, line.split()[0]])
                         for line in self.section("Commands") if re.match(r"  \w", line)]

    def section(self, name):
        found = re.search(rf"\n{name}:\n((?: .*\n)+)", self.help)
        return found[1].splitlines() if found else []

    def all(self):
        yield self
        for command in self.commands:
            yield from command.all()

    def names(self):
        return {name for flag in self.flags for name in flag.names}

    def other_words(self, flag):
        """What makes a command line complete, but for `flag`."""
        words = []
        for word in self.usage.split(self.name, 1)[1].split():
            if word == "--":
                return [*words, "--", "true"]
            words += [word] if word.startswith("--") else [] if word == "[FLAGS]" else ["8MiB" if word.startswith("BYTES") else "1"]
        for name in flag.names:
            if name in words:
                del words[words.index(name):words.index(name) + 2]
        return words


def commands_of(programs):
    found = [command for program in programs for command in Command(program).all()]
    assert len(found) >= len(programs) and all(command.flags for command in found)
    return found

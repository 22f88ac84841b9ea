"""What the source of a test says, for the check that a test runs the commands for which a page names it."""

import json
import pathlib
import re
import shlex
import subprocess

TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")
FILTER = re.compile(r"--gtest_filter=(?:\w+/)?(\w+)\.(\w+)")
# Tests name these programs by a variable.
BY_VARIABLE = {"cmake": "CMAKE", "g++": "CXX"}


class Sources:
    """The tests of the suite that was built in `build` of the source tree `root`."""

    def __init__(self, root, build):
        self.root = root
        listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                                check=True)
        self.commands = {test["name"].split(" ")[0]: test.get("command", []) for test in json.loads(listed.stdout)["tests"]}
        self.cpp = {}
        for path in root.glob("tests/**/*.cpp"):
            for name in TEST.findall(path.read_text()):
                self.cpp[name] = path

    def __contains__(self, name):
        return name in self.commands

    def text_of(self, name):
        """The test's command, and each file of the source tree that it runs or was made of."""
        command = self.commands[name]
        files = {pathlib.Path(word) for word in command if word.startswith(f"{self.root}/")}
        files |= {self.cpp[match.groups()] for match in map(FILTER.search, command) if match and match.groups() in self.cpp}
        return "\n".join([" ".join(command), *(path.read_text() for path in sorted(files) if is_source(path))])

    def reads(self, name, page):
        """Whether the test is given the page itself, and so runs what stands there."""
        return str(self.root / page) in self.commands[name]


def is_source(path):
    return path.is_file() and path.suffix in ("", ".cpp", ".py", ".sh") and b"\0" not in path.read_bytes()[:4096]


def words_of(command):
    """What of a command has to stand in its test: the programs, their subcommands and flags, and variables."""
    words = []
    for part in re.split(r"&&|\|\|?|;|\$\(", re.sub(r"(^|\s)#.*", "", command)):
        try:
            given = shlex.split(part.replace(")", " "))
        except ValueError:  # a quotation over several parts
            given = part.replace('"', " ").replace("'", " ").split()
        program = flags = False
        for word in given:
            assigned = re.match(r"([A-Z_]+)=", word)
            if assigned and not program:
                words.append(assigned[1])
            elif word.startswith("-") and len(word) > 1:
                words.append(word.partition("=")[0])
                flags = True
            elif not program:
                words.append(word.rpartition("/")[2])
                program = True
            elif not flags and re.fullmatch(r"[a-z][a-z-]+", word):
                words.append(word)
    return [word for word in words if word and word != "export"]


def missing_in(text, command):
    """Those of its words that `text` does not hold."""
    return [word for word in dict.fromkeys(words_of(command))
            if not any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
                       for name in (word, BY_VARIABLE.get(word, word)))]

#!/usr/bin/env python3
"""Checks what programs say of their flags: --help, manual pages, and completions that a shell runs.

    programs.py CHECK PROGRAM...    CHECK: one of the functions check_* below

What --help lists is compared with the others: each flag must be in all of them.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# Taken away: a variable changes what a program says.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("WEIR_", "MXNET_")) and name != "COLUMNS"}
NAME = re.compile(r"[a-z0-9_-]+")


def run(*words, code=0, **variables):
    """Runs a command, which must end with `code`. Returns what it printed."""
    done = subprocess.run(words, env={**ENVIRONMENT, **variables}, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == code, f"{words} ends with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr if code else done.stdout


class Flag:
    """A flag as --help lists it: `-o, --output FILE`."""

    def __init__(self, line):
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
        self.flags = [Flag(line.strip().split("  ")[0]) for line in self.section("Flags")
                      if line.startswith("  -")]
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

    def other_words(self):
        """What makes a command line complete, but for a flag."""
        words = []
        for word in self.usage.split(self.name, 1)[1].split():
            if word == "--":
                return [*words, "--", "true"]
            words += [word] if word.startswith("--") else [] if word == "[FLAGS]" else ["x"]
        return words


def commands_of(programs):
    found = [command for program in programs for command in Command(program).all()]
    assert len(found) >= len(programs) and all(command.flags for command in found)
    return found


def check_help(programs):
    for command in commands_of(programs):
        lines = command.help.splitlines()
        assert re.fullmatch(r"[A-Z].*", lines[0]), f"{command.name} begins with: {lines[0]}"
        assert re.fullmatch(r"Usage: " + re.escape(command.name) + r"( .*)?", command.usage), command.usage
        for word in ("TEXT", "Excludes", "OPTIONS", "SUBCOMMAND"):
            assert word not in command.help, f"{word} is in the help of {command.name}"
        for columns, most in (("", 80), ("60", 60), ("100", 100), ("300", 100)):
            text = run(command.program, *command.words, "--help", COLUMNS=columns)
            wide = [line for line in text.splitlines() if len(line) > most]
            assert not wide, f"{command.name} at {columns or 'no'} columns: {wide}"
        for flag in command.flags:
            error = run(command.program, *command.words, flag.names[-1] + "x", code=2)
            assert f"(see {command.name} --help)\n" in error and error.count("\n") == 1, error


def check_names(programs):
    """The closed sets of --help are what the program's parsers allow."""
    seen = 0
    for command in commands_of(programs):
        for flag in command.flags:
            if not flag.closed:
                continue
            words = [*command.words, flag.names[-1], "nonsense", *command.other_words()]
            error = run(command.program, *words, code=2)
            allowed = error.partition("='nonsense' is not allowed: ")[2].strip()
            assert allowed, f"{command.name} {flag.names[-1]} nonsense: {error}"
            listed = set(re.split(r", | or ", allowed.partition(":")[0]))
            assert listed == set(flag.alternatives), f"{command.name} {flag.names[-1]}: {listed}, {flag.value}"
            seen += 1
    assert seen >= len(programs), f"{seen} flags are looked at"


def plain(text):
    """Takes the language of man(7) out."""
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


def check_manual(programs):
    for program in programs:
        root = Command(program)
        with tempfile.TemporaryDirectory() as folder:
            run(program, "--manual", folder, "/usr/share/doc/weir")
            pages = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
            for path in sorted(pathlib.Path(folder).iterdir()):
                done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-rLL=80n", str(path)],
                                      capture_output=True, check=False)
                assert (done.returncode, done.stderr) == (0, b""), f"{path.name}: {done.stderr.decode()}"
        wanted = {f"{command.name.replace(' ', '-')}.1" for command in (root, *root.commands)}
        assert set(pages) == wanted, f"{sorted(pages)}, not {sorted(wanted)}"
        for command in root.all():
            page = pages["-".join(command.name.split()[:2]) + ".1"]
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
                assert f"\n.SH {section}\n" in page, f"{command.name}: no {section}"
            synopsis = command.usage.removeprefix("Usage: ")
            assert synopsis in plain(page), f"{synopsis} is not on the page of {command.name}"
            # A subcommand has its own part of the page.
            part = page.partition(f".SS {command.name}\n".replace("-", "\\-"))[2] or page
            headings = [plain(heading) for heading in re.findall(r"\.TP\n(.*)\n", part)]
            for flag in command.flags:
                heading = ", ".join(flag.names) + (f" {flag.value}" if flag.value else "")
                assert heading in headings, f"{command.name}: {heading} is not on its page: {headings}"


def check_completion(programs, offer):
    """`offer(program, words)` returns what a shell offers for the last of the words."""
    for program in programs:
        for command in Command(program).all():
            before = command.words
            if command.commands:
                commands = {each.words[-1] for each in command.commands}
                assert offer(program, [*before, ""]) == commands, command.name
                first = command.commands[0].words[-1]
                assert first in offer(program, [*before, first[:2]])
            extra = {"--"} if " -- " in command.usage else set()
            assert offer(program, [*before, "-"]) | {"--"} == command.names() | {"--"}, command.name
            if extra:
                assert {"true"} <= offer(program, [*before, "--", "tru"]), command.name
                assert offer(program, [*before, "--", "cat", "a_fi"]) == {"a_file"}, command.name
            for flag in command.flags:
                names = {each for each in flag.alternatives if NAME.fullmatch(each)}
                offered = offer(program, [*before, flag.names[-1], ""]) if flag.value else set()
                assert names <= offered, f"{command.name} {flag.names}: {offered}, not {names}"
                if flag.closed:
                    assert names == offered, f"{command.name} {flag.names}: {offered}, not {names}"
                    assert offer(program, [*before, f"{flag.names[-1]}=", flag.alternatives[0][:1]]), flag.names
                for kind, file in (("FILE", "a_file"), ("DIR", "a_folder")):
                    if kind in flag.alternatives:
                        shown = {each.rstrip("/") for each in offer(program, [*before, flag.names[-1], "a_f"])}
                        wanted = {"a_file", "a_folder"} if kind == "FILE" else {"a_folder"}
                        assert shown == wanted and file in shown, f"{command.name} {flag.names}: {shown}"


def in_folder_with_files(check):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("a_file").touch()
        pathlib.Path("a_folder").mkdir()
        check(pathlib.Path(folder))


def check_bash(programs):
    def in_bash(folder):
        def offer(program, words):
            # Bash gives a function the parts of --flag=value as words.
            words = [part for word in words for part in ([word[:-1], "="] if word.endswith("=") else [word])]
            name = pathlib.Path(program).name
            script = str(folder / f"{name}.bash")
            return set(run("bash", str(HERE / "complete.bash"), name, script, *words).split())

        for program in programs:
            script = folder / f"{pathlib.Path(program).name}.bash"
            script.write_text(run(program, "--completion", "bash"))
            registered = run("bash", "-c", f"source {script}; complete -p {script.stem}")
            assert registered.startswith("complete ") and registered.strip().endswith(script.stem), registered
        check_completion(programs, offer)

    in_folder_with_files(in_bash)


def check_zsh(programs):
    def in_zsh(folder):
        functions = folder / "functions"
        functions.mkdir()

        def offer(program, words):
            line = " ".join([pathlib.Path(program).name, *words]).replace("= ", "=")
            return set(run("zsh", "-f", str(HERE / "complete.zsh"), str(functions), line).split())

        for program in programs:
            path = functions / f"_{pathlib.Path(program).name}"
            path.write_text(run(program, "--completion", "zsh"))
            run("zsh", "-n", str(path))
        check_completion(programs, offer)

    in_folder_with_files(in_zsh)


if __name__ == "__main__":
    globals()[f"check_{sys.argv[1]}"]([os.path.abspath(program) for program in sys.argv[2:]])

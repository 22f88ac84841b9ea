#!/usr/bin/env python3
"""Checks what programs say of their flags: --help, refusals, manual pages, and completions that a shell runs.

    programs.py CHECK PROGRAM...    CHECK: one of the functions check_* below, in completions.py or in refused.py

What --help lists is compared with the others: each flag must be in all of them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import completions
import refused
from described import ENVIRONMENT, Command, commands_of, refusal, require_tool, run

HERE = pathlib.Path(__file__).parent


def check_help(programs):
    for command in commands_of(programs):
        lines = command.help.splitlines()
        assert re.fullmatch(r"[A-Z].*", lines[0]), f"{command.name} begins with: {lines[0]}"
        assert re.fullmatch(r"Usage: " + re.escape(command.name) + r"( .*)?", command.usage), command.usage
        for word in ("TEXT", "Excludes", "OPTIONS", "SUBCOMMAND"):
            assert word not in command.help, f"{word} is in the help of {command.name}"
        for columns, most in (("", 80), ("0", 80), ("many", 80), ("60", 60), ("100", 100), ("300", 100)):
            text = run(command.program, *command.words, "--help", COLUMNS=columns)
            assert columns not in ("0", "many") or text == command.help, f"COLUMNS={columns} is not as unset"
            wide = [line for line in text.splitlines() if len(line) > most]
            assert not wide, f"{command.name} at {columns or 'no'} columns: {wide}"
        for flag in command.flags:
            error = refusal(command.program, *command.words, flag.names[-1] + "x")
            assert f"(see {command.name} --help)\n" in error, error


def check_printed(programs):
    """Help and version go to standard output alone, and one that is full is an error."""
    for command in commands_of(programs):
        for flag in ("--help", "--version") if not command.words else ("--help",):
            words, streams = [command.program, *command.words, flag], {"stdin": subprocess.DEVNULL, "env": ENVIRONMENT}
            done = subprocess.run(words, **streams, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "") and done.stdout, f"{words}: {done}"
            name = pathlib.Path(command.program).name
            assert flag == "--help" or re.fullmatch(rf"{name} [0-9.]+\n", done.stdout), done.stdout
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(words, **streams, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            line = f"{name}: standard output cannot be written (No space left on device)\n"
            assert (done.returncode, done.stderr) == (1, line), f"{words}: {done}"


def check_names(programs):
    """The closed sets of --help are what the program's parsers allow."""
    seen = 0
    for command in commands_of(programs):
        for flag in command.flags:
            if not flag.closed:
                continue
            words = [*command.words, flag.names[-1], "nonsense", *command.other_words(flag)]
            error = refusal(command.program, *words)
            allowed = error.partition("='nonsense' is not allowed: ")[2].strip()
            allowed, see, _ = allowed.partition(f" (see {command.name} --help)")
            assert see, f"{command.name} {flag.names[-1]} nonsense does not name the help: {error}"
            assert allowed, f"{command.name} {flag.names[-1]} nonsense: {error}"
            listed = set(re.split(r", | or ", allowed.partition(":")[0]))
            assert listed == set(flag.alternatives), f"{command.name} {flag.names[-1]}: {listed}, {flag.value}"
            seen += 1
    assert seen >= len(programs), f"{seen} flags are looked at"


KINDS_THAT_ARE_PARSED = {"BYTES", "DURATION", "N", "NUMBER", "PERCENT", "SECONDS", "TIME", "FIRST:END"}


def check_hints(programs):
    """A value that a command's own code refuses, and what --help cannot say, is refused with the --help to read."""
    lines = []
    for command in commands_of(programs):
        for flag in command.flags:
            if flag.closed or KINDS_THAT_ARE_PARSED & set(flag.alternatives):
                lines.append((command, flag.names[-1], "nonsense", *command.other_words(flag)))
    assert len(lines) > 2 * len(programs), f"{len(lines)} lines"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for command, name, value, *words in lines:
            error = refusal(command.program, *command.words, name, value, *words)
            assert name in error, f"{command.name} {name}: {error}"
            assert error.endswith(f" (see {command.name} --help)\n") and error.count(" --help") == 1, error
        for command in commands_of(programs):
            for flag in command.flags:
                if flag.value:
                    error = refusal(command.program, *command.words, flag.names[-1], "", *command.other_words(flag))
                    assert f": {flag.names[-1]}='' is not allowed: " in error, f"{command.name} {flag.names}: {error}"


def check_pages(programs):
    """What --help names is there: manual pages and pages beside an installed program, or in the source tree."""
    tree = HERE.parents[2]
    for command in commands_of(programs):
        share = pathlib.Path(command.program).parents[1] / "share"
        more = re.search(r"^More: (.*(?:\n.*)*)", command.help, re.MULTILINE)
        assert more, f"{command.name} names nothing to read"
        if manual := re.search(r"man ([a-z-]+)", more[1]):
            assert list((share / "man" / "man1").glob(f"{manual[1]}.1*")), f"{command.name}: no page {manual[1]}"
        text = " ".join(command.help.split())
        pages = list(re.finditer(r"([\w./-]*\w\.md|[\w./-]*/\w+\.(?:py|sh))\b( in the source tree)?", text))
        assert pages, f"{command.name} names no page"
        for match in pages:
            root = tree if match[2] else pathlib.Path("/nowhere")
            assert (root / match[1]).exists(), f"{command.name} names {match[1]}, which is not there"


def check_installed_pages(programs):
    """The same where only the program and share/ are."""
    tree = HERE.parents[2]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "bin").mkdir()
        documents = root / "share" / "doc" / "weir"
        (documents / "docs").mkdir(parents=True)
        for page in [*tree.glob("*.md"), *tree.glob("docs/*.md")]:
            shutil.copy(page, documents / page.relative_to(tree))
        copies = [shutil.copy(program, root / "bin") for program in programs]
        for copy in copies:
            run(copy, "--manual", str(root / "share" / "man" / "man1"), "/usr/share/doc/weir")
        check_pages(copies)
        for command in commands_of(copies):
            assert "More: man " in command.help and f"{documents}/" in command.help, command.help
        shutil.rmtree(root / "share")
        for command in commands_of(copies):
            assert ".md" not in command.help and "More:" not in command.help, command.help


def in_units(text):
    """Returns a size in bytes and a time in seconds; another text as it is."""
    units = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "s": 1, "min": 60, "h": 3600}
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", text)
    return str(int(float(found[1]) * units[found[2]])) if found and found[2] in units else text


def check_defaults(programs):
    """What a command takes where a flag is left out is the default that its --help names."""
    weir, train = programs
    seen = set()

    def expect(command, name, value):
        texts = [flag.text for flag in command.flags if f"--{name}" in flag.names and flag.value]
        if not texts or name in ("device", "device-memory"):  # of this machine
            return
        named = re.findall(r"\(default: (.*?)\)(?: \(WEIR|$)", texts[0]) + re.findall(r"(\S+) \(default", texts[0])
        words = {in_units(word.strip(",;")) for each in named for word in each.split()}
        assert in_units(value) in words, f"{command.name} --{name} is {value} by default: {texts[0]}"
        seen.add((command.name, name))

    table = run(weir, "info")
    command = Command(weir, ["run"])
    for name, value in re.findall(r"^(\S+) +(\S+) +default$", table, re.MULTILINE):
        expect(command, name, value)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_data_set(pathlib.Path("data"))
        run(train, "run", "--data", "data", "--save", "weights", "--batch-size", "2")
        for words in ("run", "run --pool best_fit --inputs ring", "run --pool naive", "run --data data", "compare",
                      "compare --small", "predict --data data --weights weights", "dispatch", "wide",
                      "wide --optimizer momentum", "wide --optimizer sgd", "wide --optimizer adamax",
                      "wide --checkpoint x", "wide --first-layer cpu"):
            command = Command(train, words.split()[:1])
            for name, value in settings_of(train, *words.split()):
                expect(command, name, value)
    for name in ("batches", "batch-size", "lr", "momentum", "seed", "ring", "pool-segment-size",
                 "pool-large-round-size"):
        assert ("weir-train run", name) in seen, f"the default of --{name} is not looked at"
    assert {name for name, _ in seen} >= {"weir run", "weir-train compare", "weir-train dispatch", "weir-train wide"}


def settings_of(program, *words):
    """Returns the names and values of a command's defaults, which it prints first, and ends it."""
    with subprocess.Popen([program, *words], env=ENVIRONMENT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          text=True, stdin=subprocess.DEVNULL) as process:
        lines = []
        for line in process.stderr:
            lines.append(line)
            said = "".join(lines)
            if said.startswith("settings: ") and line.endswith(")\n"):  # the others end in a comma or a word
                process.kill()
                return re.findall(r"(\S+)=(\S+) \(default", said)
    raise AssertionError(f"{words}: {lines}")


def make_data_set(folder):
    """Four images of 4 x 4 pixels to train on and to test on, in IDX files."""
    folder.mkdir()
    for name in ("train", "t10k"):
        images = bytes([0, 0, 8, 3] + 3 * [0, 0, 0, 4]) + bytes(range(64))
        (folder / f"{name}-images-idx3-ubyte").write_bytes(images)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 2, 3]))


def plain(text):
    """Takes the language of man(7) out."""
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


def check_manual(programs):
    require_tool("groff")
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
                said = plain(part).partition(f"\n.TP\n{heading}\n")[2].partition("\n")[0]
                # --help may break a long list.
                assert said.replace(" ", "") == flag.text.replace(" ", ""), f"{command.name} {heading}: {said}"


if __name__ == "__main__":
    CHECKS = {**vars(completions), **vars(refused), **globals()}
    CHECKS[f"check_{sys.argv[1]}"]([os.path.abspath(program) for program in sys.argv[2:]])

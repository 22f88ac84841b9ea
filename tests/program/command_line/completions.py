"""Checks of completions, which a shell runs. What --help lists must be offered."""

import os
import pathlib
import subprocess
import tempfile

from bash_shell import BashShell
from described import ENVIRONMENT, NAME, Command, require_tool, run

HERE = pathlib.Path(__file__).parent


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
                for each in flag.alternatives:
                    if flag.value and ":" in each:  # such as cuda:N
                        typed = each.partition(":")[0] + ":"
                        offered = offer(program, [*before, flag.names[-1], typed])
                        assert not offered, f"{command.name} {flag.names} {typed}: {offered}"
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
        scripts = {}
        for program in programs:
            name = pathlib.Path(program).name
            scripts[name] = folder / f"{name}.bash"
            scripts[name].write_text(run(program, "--completion", "bash"))
            registered = run("bash", "-c", f"source {scripts[name]}; complete -p {name}")
            assert registered.startswith("complete ") and registered.strip().endswith(name), registered
        with BashShell(scripts, ENVIRONMENT) as shell:
            def offer(program, words):
                line = " ".join([pathlib.Path(program).name, *words]).replace("= ", "=")
                return set(shell.complete(line)[0])

            check_completion(programs, offer)

    in_folder_with_files(in_bash)


def check_bash_words(programs):
    """Words with blanks, quotes and colons: what bash makes of the line."""
    def in_bash(folder):
        script = folder / "weir.bash"
        script.write_text(run(programs[0], "--completion", "bash"))
        for name in ("b log", "c:log", "d=log", "e'log"):
            pathlib.Path(name).touch()
        pathlib.Path("b folder").mkdir()
        with BashShell({"weir": script}, ENVIRONMENT) as shell:
            for typed, wanted in (
                    ("weir replay b\\ l", "weir replay b\\ log "), ("weir replay 'b l", "weir replay 'b log' "),
                    ('weir replay "b l', 'weir replay "b log" '), ("weir replay b\\ f", "weir replay b\\ folder/"),
                    ("weir replay --json=b\\ l", "weir replay --json=b\\ log "),
                    ("weir replay c:", "weir replay c:log "), ("weir replay c\\:", "weir replay c\\:log "),
                    ("weir replay d=", "weir replay d=log "), ("weir replay e", "weir replay e\\'log "),
                    ("weir replay -- c:l", "weir replay -- c:log "), ("weir replay --po", "weir replay --pool "),
                    ("weir run -- cat b\\ l", "weir run -- cat b\\ log "), ("X=1 weir rep", "X=1 weir replay "),
                    ("true; weir rep", "true; weir replay "), ("weir run --policy=thr", "weir run --policy=throttled "),
                    ("weir run --policy thr", "weir run --policy throttled ")):
                line = shell.complete(typed)[1]
                assert line == wanted, f"{typed} becomes {line}, not {wanted}"
            shell.type("COMP_WORDBREAKS=' '\n")
            line = shell.complete("weir run --policy=thr")[1]
            assert line == "weir run --policy=throttled ", line
            assert shell.complete("weir replay -- -") == ([], "weir replay -- -"), "a flag after --"

    in_folder_with_files(in_bash)


def check_zsh(programs):
    require_tool("zsh")

    def in_zsh(folder):
        functions = folder / "functions"
        functions.mkdir()

        for program in programs:
            path = functions / f"_{pathlib.Path(program).name}"
            path.write_text(run(program, "--completion", "zsh"))
            run("zsh", "-n", str(path))
        with subprocess.Popen(["zsh", "-f", HERE / "complete.zsh", functions], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, bufsize=1, env=ENVIRONMENT) as shell:  # fmt: skip
            def offer(program, words):
                line = " ".join([pathlib.Path(program).name, *words]).replace("= ", "=")
                shell.stdin.write(f"{line}\n")
                offered = set()
                for each in iter(shell.stdout.readline, ">end<\n"):
                    assert each, f"zsh ended at: {line}"
                    offered.add(each.rstrip("\n"))
                return offered

            check_completion(programs, offer)
            shell.stdin.close()

    in_folder_with_files(in_zsh)

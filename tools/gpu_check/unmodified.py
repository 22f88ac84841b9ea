"""Runs programs that know nothing of Weir, without it and with it, as tools/gpu_check/plan.py has them."""

import contextlib
import pathlib
import re
import selectors
import subprocess
import time

import plan
import processes
from written import last_line, parse_json, read_json, shorter, text_of

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
MISSING = 77  # as in programs/harness.py, which cannot be imported without its frameworks
BALLAST_END = 5  # seconds that it has to end
OF_PROFILERS = re.compile(r"CUPTI|not recorded|in use by")  # what any profiler prints when it lacks something


class LeftOut(Exception):
    """What a part needs is not on this machine."""


def run_program(call, program, left, after=0):
    """Returns the program's entry. The first setup runs without Weir: if it finds no framework, no setup does.
    Later programs are sure of `after` seconds of the `left` ones."""
    until = time.monotonic() + left
    entry = {"name": program.name, "runs": []}
    groups = [program.setups] if program.at_once else [[setup] * setup.copies for setup in program.setups]
    rest = plan.shares([program])
    for group in groups:
        share = program.share(group[0])
        rest -= share
        limit = plan.allowance(share, until - time.monotonic(), rest + after)
        entry["runs"] += run_group(call, program, group, limit)
        first = entry["runs"][0]
        if first["exit_code"] == MISSING:
            entry["left_out"] = first["said"] or "what it needs is not there"
            break
    return entry


def run_group(call, program, group, limit):
    """Runs setups at once. Returns an entry for each."""

    def none(why):
        return [{"setup": setup.name, "command": "", "exit_code": None, "said": why} for setup in group]

    if limit <= 0:
        return none("no time was left")
    until = time.monotonic() + limit
    started = []
    try:
        with ballast(call, group[0].leave, until):
            for number, setup in enumerate(group):
                name = f"{program.name}_{setup.name}" + (f"_{number}" if setup.copies > 1 else "")
                started.append(start_program(call, program, setup, call.folder / name))
            return [one.finish(until) for one in started]
    except NoBallast as error:
        return none(str(error))
    finally:
        for one in started:
            one.kill()


def start_program(call, program, setup, base):
    paths = {"timeline": base.with_suffix(".pftrace"), "summary": base.with_suffix(".weir.json"),
             "nsys_report": base}  # fmt: skip
    try:
        before = call.words(setup.before, **paths)
        own = {name: value.format(**call.paths, **paths) for name, value in setup.environment.items()}
        if any("{inject}" in value for value in setup.environment.values()):
            call.need("inject")
        arguments = call.words(f"{call.sizes['programs']} {setup.arguments}", **paths)
    except LeftOut as why:
        return Absent(setup.name, str(why))
    environment = {name: value for name, value in call.machine.items() if name not in plan.NEVER}
    if setup.allocation == "async":
        environment.update(plan.ASYNC[program.framework])
    environment.update(own, PYTHONDONTWRITEBYTECODE="1")
    command = [*before, call.python, PROGRAMS / program.script, *arguments]
    return Run(setup.name, command, environment, base, paths["summary"] if "{summary}" in setup.before else None)


@contextlib.contextmanager
def ballast(call, leave, until):
    """Holds all device memory but `leave` bytes. Its start is part of the run's time."""
    if leave == 0 or "cpu" in call.sizes["programs"]:
        yield
        return
    log = call.folder / "ballast.log"
    command, ready = [call.python, str(PROGRAMS / "ballast.py"), "--leave", str(leave)], False
    with open(log, "wb") as err:
        process = processes.start(command, call.machine, subprocess.PIPE, err, subprocess.PIPE)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            ready = selector.select(max(0, until - time.monotonic())) and process.stdout.readline()
        if not ready:
            raise NoBallast(f"no ballast: {last_line(text_of(log)) or 'it did not get ready in time'}")
        yield
    finally:
        process.stdin.close()
        processes.end(process, BALLAST_END if ready else 0)
        process.stdout.close()


class NoBallast(Exception):
    """The rest of the device's memory could not be taken."""


class Absent:
    """A run that is left out."""

    def __init__(self, setup, why):
        self._entry = {"setup": setup, "exit_code": None, "left_out": why, "said": why}

    def finish(self, until):
        return self._entry

    def kill(self):
        pass


class Run:
    """A running program."""

    def __init__(self, setup, command, environment, base, summary):
        self._entry = {"setup": setup, "command": " ".join(shorter(str(word)) for word in command), "exit_code": None}
        self._base, self._summary, self._from, self._process = base, summary, time.monotonic(), None
        if summary is not None:
            summary.unlink(missing_ok=True)
        try:
            with open(base.with_suffix(".log"), "wb") as err, open(base.with_suffix(".out"), "wb") as out:
                self._process = processes.start(command, environment, out, err)
        except OSError as error:
            self._entry["said"] = str(error)

    def kill(self):
        if self._process is not None:
            processes.end(self._process, 0)

    def finish(self, until):
        if self._process is None:
            return self._entry
        stopped = not processes.end(self._process, until - time.monotonic())
        log, printed = text_of(self._base.with_suffix(".log")), text_of(self._base.with_suffix(".out"))
        self._entry.update(
            exit_code=self._process.returncode,
            stopped=stopped,
            wall_seconds=round(time.monotonic() - self._from, 3),
            said=last_line(log),
            printed=parse_json(last_line(printed, None)),
            lines=[line.strip()[:300] for line in log.splitlines() if OF_PROFILERS.search(line)][:5],
        )
        if self._summary is not None:
            self._entry.update(summary=read_json(self._summary), plug=plug_line(log))
        return self._entry


def plug_line(log):
    """Returns Weir's line on its plug for PyTorch; empty if there is none."""
    for line in log.splitlines():
        if line.startswith("weir: PyTorch ") and (" allocates by " in line or "Weir's plug" in line):
            return " ".join(map(shorter, line.split()))[:300]
    return ""

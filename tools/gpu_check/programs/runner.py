"""Runs one program in one setup and records the result."""

import contextlib
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import time

import plan

HERE = pathlib.Path(__file__).resolve().parent
BALLAST_END = 5  # seconds that it has to end, part of the run's time


class NoBallast(Exception):
    """The rest of the device's memory could not be taken."""


class Runner:
    """`weir` is the command, `library` what it preloads, `folder` for logs and summaries, `deadline` a
    time.monotonic()."""

    def __init__(self, weir, library, folder, deadline, device, small):
        self._weir = weir
        self._library = library
        self._folder = pathlib.Path(folder)
        self._deadline = deadline
        self._flags = ["--device", device, *(["--small"] if small else [])]
        self._on_gpu = device == "cuda"

    def left(self):
        return self._deadline - time.monotonic()

    def run(self, program, setup, after):
        """Returns an entry per process of the setup. Later runs have `after` seconds guaranteed."""
        limit = plan.allowance(program.share(setup), self.left(), after)
        if limit <= 0:
            return [{"setup": setup.name, "command": "", "exit_code": None, "said": "no time was left"}]
        deadline = time.monotonic() + limit
        try:
            with self._ballast(setup, deadline):
                return self._run_copies(program, setup, deadline)
        except NoBallast as error:
            return [{"setup": setup.name, "command": "", "exit_code": None, "said": str(error)}]

    def _run_copies(self, program, setup, deadline):
        started = []
        try:
            for number in range(setup.copies):
                started.append(self._start(program, setup, number))
            return [one.finish(deadline) for one in started]
        finally:
            for one in started:
                one.kill()

    def _start(self, program, setup, number):
        name = f"{program.name}_{setup.name}" + (f"_{number}" if setup.copies > 1 else "")
        command = [sys.executable, str(HERE / program.script), *self._flags, *setup.arguments]
        if setup.pluggable:
            command += ["--allocator", self._library]
        summary = None
        if setup.weir:
            summary = self._folder / f"{name}.weir.json"
            summary.unlink(missing_ok=True)
            way = [self._weir, "run", "--library", self._library, "--budget", setup.budget]
            way += ["--json", str(summary)]
            own = ["--torch", setup.torch]
            way += ["--allocator", setup.allocation] if setup.allocation else own
            command = [*way, "--", *command]
        environment = plan.environment(os.environ, program, setup)
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        return Process(setup.name, command, environment, self._folder / f"{name}.log", summary)

    @contextlib.contextmanager
    def _ballast(self, setup, deadline):
        """Holds the device memory that the setup must not have. Its start is part of the run's time."""
        if setup.leave == 0 or not self._on_gpu:
            yield
            return
        command = [sys.executable, str(HERE / "ballast.py"), "--leave", str(setup.leave)]
        log = self._folder / "ballast.log"
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, text=True
            )
            try:
                if not line_within(process.stdout, deadline - time.monotonic()):
                    raise NoBallast(f"no ballast: {last_line(log) or 'it did not get ready in time'}")
                yield
            finally:
                process.stdin.close()
                end(process, BALLAST_END)
                process.stdout.close()


class Process:
    """A running program."""

    def __init__(self, setup, command, environment, log, summary):
        self._entry = {"setup": setup, "command": " ".join(map(shorter, command))}
        self._log = log
        self._summary = summary
        self._printed = log.with_suffix(".out")
        self._from = time.monotonic()
        with open(log, "wb") as err, open(self._printed, "wb") as out:
            try:
                # Its own session, so that its children are killed with it.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                self._process = None
                self._entry["said"] = str(error)

    def kill(self):
        """Kills the program and its children if it still runs."""
        if self._process is not None and self._process.poll() is None:
            end(self._process, 0, whole_session=True)

    def finish(self, deadline):
        entry = self._entry
        if self._process is None:
            return {**entry, "exit_code": None}
        left = max(0, deadline - time.monotonic())
        stopped = not end(self._process, left, whole_session=True)
        entry["exit_code"] = self._process.returncode
        entry["stopped"] = stopped
        entry["wall_seconds"] = round(time.monotonic() - self._from, 3)
        entry["said"] = last_line(self._log)
        entry["printed"] = last_json(self._printed)
        if self._summary is not None:
            entry["summary"] = read_json(self._summary)
            entry["plug"] = plug_line(self._log)
        return entry


def end(process, seconds, whole_session=False):
    """Waits, then kills what still runs. Returns whether it ended by itself."""
    try:
        process.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        if whole_session:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        return False


def line_within(stream, seconds):
    """Returns whether a line arrived in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return bool(selector.select(seconds)) and stream.readline().endswith("\n")


def shorter(word):
    """Removes folders of this machine, which do not belong on a page."""
    return os.path.basename(word) if os.path.isabs(word) else word


def last_line(file):
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def plug_line(file):
    """Returns Weir's line on its plug for PyTorch, without folders of this machine; empty if none."""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("weir: PyTorch ") and (" allocates by " in line or "Weir's plug" in line):
            return " ".join(map(shorter, line.split()))[:300]
    return ""


def last_json(file):
    """Returns the last line's JSON object, or None."""
    try:
        found = json.loads(last_line_whole(file))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def last_line_whole(file):
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def read_json(file):
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None

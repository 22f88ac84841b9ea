"""Runs of the programs whose JSON the schemas describe, in a folder of their own.

The environment names what is run (tests/output/CMakeLists.txt): WEIR, WEIR_TRAIN, WEIR_SIMULATE, MAKE_DIGITS, and
in a build with the swap-in SWAP_IN_PROGRAM and STANDIN_FOLDER.
"""

import json
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACE = ROOT / "bench/traces/small/small_kv_cache.csv.gz"
OURS = ("WEIR_", "MXNET_")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
PROGRAMS = {
    "weir": os.environ.get("WEIR", "weir"),
    "weir-train": os.environ.get("WEIR_TRAIN", "weir-train"),
    "weir-simulate": os.environ.get("WEIR_SIMULATE", "weir-simulate"),
    "weir-stress": os.environ.get("WEIR_STRESS", "weir-stress"),  # not in every build
    "make_digits": os.environ.get("MAKE_DIGITS", "make_digits"),
}
SMALL = "--batches 4 --batch-size 16"
PREDICT = "weir-train predict --data digits --weights weights"
OOM = "--policy unbounded --budget 200KiB"
SPARSE = "weir-train wide --inputs 1000 --hidden 16 --outputs 16"
WIDE = f"{SPARSE} --batch-size 16 --test-batches 1"


class Runs:
    """Runs command lines in `folder`. Nothing that another test publishes is seen there."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = {**ENVIRONMENT, "WEIR_PUBLISH": str(self.folder / "published")}
        (self.folder / "published").mkdir(mode=0o700)

    def start(self, line, stdout=subprocess.DEVNULL, **variables):
        name, *words = line.split()
        return subprocess.Popen(
            [PROGRAMS.get(name, name), *words],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    def code(self, line, stdout=subprocess.DEVNULL, **variables):
        """Returns the exit code, and what was said on standard error."""
        program = self.start(line, stdout, **variables)
        err = program.communicate()[1]
        return program.returncode, err

    def output(self, line):
        """Returns what the command prints. Fails if it does not end with 0."""
        program = self.start(line, subprocess.PIPE)
        out, err = program.communicate()
        if program.returncode != 0:
            raise AssertionError(f"{line}: ended with {program.returncode}: {err}")
        return out

    def json(self, line, code=0, **variables):
        """Returns what the command writes with --json. Fails if it ends otherwise; None: any code."""
        file = self.folder / "figures.json"
        file.unlink(missing_ok=True)
        ended, err = self.code(f"{line} --json {file}", **variables)
        if code is not None and ended != code:
            raise AssertionError(f"{line}: ended with {ended}, not {code}: {err}")
        return json.loads(file.read_text())

    def interrupted(self, line):
        """Returns the exit code of the command, interrupted after it began."""
        program = self.start(line)
        said = ""
        while "settings: " not in said:  # from there on a signal ends it with its figures
            said = program.stderr.readline()
            if not said:
                raise AssertionError(f"{line}: ended with {program.wait()} before it began")
        time.sleep(0.1)
        program.send_signal(signal.SIGINT)
        program.communicate()
        return program.returncode

    def interrupted_json(self, line):
        file = self.folder / "interrupted.json"
        code = self.interrupted(f"{line} --batches 1000000000 --json {file}")
        if code != 130:
            raise AssertionError(f"{line}: ended with {code}, not 130")
        return json.loads(file.read_text())

    def while_training(self, line):
        """Returns the JSON of `line`, with a training run that it sees."""
        program = self.start("weir-train run --batches 1000000000 --batch-size 16")
        try:
            end = time.monotonic() + 60
            while not (found := self.json(line))["programs"] or found["programs"][0]["silent"]:
                if time.monotonic() > end or program.poll() is not None:
                    raise AssertionError(f"{line} does not see the training run: {found}")
            return found
        finally:
            program.kill()
            program.communicate()


def train_on_digits(runs):
    """Makes the data and the weights that PREDICT reads."""
    for line in ("make_digits digits", "weir-train run --data digits --epochs 1 --save weights"):
        ended, err = runs.code(line)
        if ended != 0:
            raise AssertionError(f"{line}: ended with {ended}: {err}")


def has_swap_in():
    return "SWAP_IN_PROGRAM" in os.environ


def swapped_in(runs, line, **variables):
    """Returns the summary of `weir run LINE`, on the stand-in driver."""
    file = runs.folder / "summary.json"
    file.unlink(missing_ok=True)
    standin = {"LD_LIBRARY_PATH": os.environ["STANDIN_FOLDER"], "CUDA_VISIBLE_DEVICES": ""}
    # Not its exit code: the program counts what the driver has, and the pool keeps some.
    _, err = runs.code(f"weir run --budget 50% --json {file} -- {line}", **standin, **variables)
    if not file.exists():
        raise AssertionError(f"{line}: there is no summary: {err}")
    return json.loads(file.read_text())


def outputs(runs):
    """Yields (schema, what it is, document) of normal and failed runs."""
    yield "run", "a run", runs.json(f"weir-train run {SMALL} --timeline run.pftrace")
    oom = "weir-train run --batches 40 --policy unbounded --budget 96MiB"
    yield "run", "a run out of memory", runs.json(oom, code=3)
    yield "run", "a run that diverges", runs.json(f"weir-train run {SMALL} --lr 1e30", code=1)
    yield "run", "a run with static memory", runs.json(f"weir-train run {SMALL} --static-alloc")
    yield "timeline-report", "its timeline", runs.json("weir timeline report run.pftrace")
    yield "run", "a run that is interrupted", runs.interrupted_json("weir-train run --batch-size 16")
    compare = "weir-train compare --small --batches 20 --rounds 1"
    yield "compare", "a comparison", runs.json(f"{compare} --budget 4MiB")
    yield "compare", "a comparison that diverges", runs.json(f"{compare} --no-search --lr 1e30", code=1)
    dispatch = "weir-train dispatch --operations 20 --rounds 2 --elements-large 1000 --matrix 16"
    yield "dispatch", "dispatch", runs.json(dispatch)
    yield (
        "wide",
        "a wide run",
        runs.json(f"{WIDE} --batches 4 --pace 2 --checkpoint saved --every 2 --timeline wide.pftrace"),
    )
    yield "wide", "one on two devices", runs.json(f"{WIDE} --batches 2 --first-layer cpu")
    yield "wide", "one that diverges", runs.json(f"{WIDE} --batches 4 --optimizer sgd --lr 1e30", code=1)
    train_on_digits(runs)
    yield "predict", "a prediction", runs.json(PREDICT)
    yield "predict", "one out of memory", runs.json(f"{PREDICT} {OOM}", code=3)
    simulate = "weir-simulate --batches 100 --workload bursts"
    yield "simulate", "a simulation", runs.json(f"{simulate} --budget 4")
    missed = f"{simulate} --batches 21 --budget 16 --policy throttled --check".replace("--batches 100 ", "")
    yield "simulate", "one that misses a bound", runs.json(missed, code=1)
    yield "replay", "a replay", runs.json(f"weir replay {TRACE} --recommend --breakdown --pool all")
    yield "replay", "one out of memory", runs.json(f"weir replay {TRACE} --no-search --capacity 8MiB", code=3)
    yield "info", "info", runs.json("weir info", WEIR_BUDGET="6GiB")
    yield "doctor", "this machine", runs.json("weir doctor", code=None)  # what it finds is the machine's affair
    yield "ps", "no program", runs.json("weir ps")
    yield "ps", "a program", runs.while_training("weir ps")
    yield "top", "a program", runs.while_training("weir top")
    if has_swap_in():
        program = os.environ["SWAP_IN_PROGRAM"]
        yield "summary", "a process", swapped_in(runs, f"{program} legacy")
        two = f"/bin/sh -c {program}${{IFS}}legacy;{program}${{IFS}}legacy"
        yield "summary", "two processes", swapped_in(runs, two)
        yield (
            "info",
            "info of a driver",
            runs.json("weir info", LD_LIBRARY_PATH=os.environ["STANDIN_FOLDER"], CUDA_VISIBLE_DEVICES=""),
        )

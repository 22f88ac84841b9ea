#!/usr/bin/env python3
"""Runs a PyTorch program under recordings of its timeline, and beside other profilers, all at once.

    record_all.py --weir PROGRAM --library FILE --inject FILE --count PROGRAM --output FILE
                  [--limit SECONDS]

--library is libweir.so, --inject libweir_timeline.so, --count weir-gpu. Logs, timelines, the page and
the text of the recorded run go into a folder named like the output. report.py judges the results.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # do not write into the tree
import runner

HERE = pathlib.Path(__file__).resolve().parent
MISSING = 77  # as in harness.py, which cannot be imported without its framework
REPORT_SECONDS = 8  # for counting and drawing, part of the limit
MOST_LINES = 5
# What any profiler prints when it lacks something.
OF_PROFILERS = re.compile(r"CUPTI|not recorded|in use by")


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--weir", "--library", "--inject", "--count", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--limit", type=float, default=40, help="seconds for all of it")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a cpu")
    args = parser.parse_args(words)
    for name in ("weir", "count"):
        if not os.access(getattr(args, name), os.X_OK):
            parser.error(f"--{name}: there is no program {getattr(args, name)}")
    if not os.path.isfile(args.library):
        parser.error(f"--library: there is no file {args.library}")
    if not args.limit > 0:
        parser.error("--limit must be above zero")
    return args


def find_nsys():
    return shutil.which("nsys") or shutil.which("nsys", path="/usr/local/cuda/bin") or ""


class Recordings:
    """The runs: each with its command, environment and expected timeline."""

    def __init__(self, args, folder):
        self._folder = folder
        self._script = [sys.executable, str(HERE / "torch_timeline.py"), "--device", args.device]
        self._script += ["--small"] if args.small else []
        self._record = [os.path.abspath(args.weir), "timeline", "record"]
        self._record += ["--library", os.path.abspath(args.library), "--batch-range", "batch"]
        self._record += ["--allocator", "async"]  # the page shows tensors, not PyTorch's segments
        self._inject = os.path.abspath(args.inject)
        self._nsys = find_nsys()

    def timeline(self, setup):
        return self._folder / f"{setup}.pftrace"

    def _recorded(self, setup, *flags):
        return [*self._record, "-o", str(self.timeline(setup)), "--", *self._script, *flags]

    def nsys_report(self):
        return self._folder / "nsys.nsys-rep"

    def setups(self):
        """Yields (name, command, environment), or why a run is left out instead of its command. `inside`
        has PyTorch's profiler inside, `outside` has nsys around it."""
        yield "plain", [*self._script, "--profile"], {}
        yield "recorded", self._recorded("recorded"), {}
        if os.path.isfile(self._inject):
            variables = {"WEIR_TIMELINE": str(self.timeline("injected"))}
            yield "injected", self._script, {**variables, "CUDA_INJECTION64_PATH": self._inject}
        else:
            yield "injected", f"there is no {os.path.basename(self._inject)}", {}
        yield "inside", self._recorded("inside", "--profile"), {}
        if self._nsys:
            report = str(self.nsys_report().with_suffix(""))
            around = [self._nsys, "profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none"]
            around += ["--force-overwrite=true", "--output", report]
            yield "outside", [*around, *self._recorded("outside")], {}
        else:
            yield "outside", "no nsys", {}


def lines_of_profilers(log):
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip()[:300] for line in lines if OF_PROFILERS.search(line)][:MOST_LINES]


def call(command, deadline, output=None):
    """Returns what the command prints, and writes it to `output`. None if it fails or has no time."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=max(0.1, deadline - time.monotonic()),
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{' '.join(map(runner.shorter, command))}: {error}", file=sys.stderr)
        return None
    if output is not None:
        output.write_text(done.stdout, encoding="utf-8")
    return done.stdout


def counted(args, timeline, deadline):
    if not timeline.is_file():
        return None
    said = call([args.count, "timeline", "count", str(timeline)], deadline)
    return json.loads(said) if said else None


def add_page(args, folder, entry, deadline):
    """Makes the page and the text of a timeline, for people."""
    timeline, page = folder / "recorded.pftrace", folder / "recorded.html"
    report = [args.weir, "timeline", "report", str(timeline)]
    if timeline.is_file():
        call([*report, "-o", str(page)], deadline)
        call(report, deadline, folder / "recorded.txt")
    entry["page_bytes"] = page.stat().st_size if page.is_file() else 0


def run_all(args, folder):
    """Returns an entry for each run. The runs share the device, so none is timed."""
    recordings = Recordings(args, folder)
    deadline = time.monotonic() + args.limit
    entries, started = [], []
    try:
        for setup, command, variables in recordings.setups():
            if isinstance(command, str):
                entries.append({"setup": setup, "left_out": command})
                continue
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables}
            log = folder / f"{setup}.log"
            started.append((runner.Process(setup, command, environment, log, None), log))
        runs_end = deadline - min(REPORT_SECONDS, args.limit / 2)
        finished = [(one.finish(runs_end), log) for one, log in started]
    finally:
        for one, _ in started:
            one.kill()
    for entry, log in finished:
        setup = entry["setup"]
        entry["lines"] = lines_of_profilers(log)
        entry["timeline"] = counted(args, recordings.timeline(setup), deadline)
        if setup == "recorded":
            add_page(args, folder, entry, deadline)
        if setup == "outside":
            report = recordings.nsys_report()
            entry["other_report_bytes"] = report.stat().st_size if report.is_file() else 0
            report.unlink(missing_ok=True)  # some megabytes that nobody reads
        entries.append(entry)
    return entries


def main(words):
    args = parse(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs every `finally`
    output = pathlib.Path(args.output)
    folder = output.parent / output.stem
    folder.mkdir(parents=True, exist_ok=True)
    document = {"left_out": "", "runs": run_all(args, folder)}
    plain = next(run for run in document["runs"] if run["setup"] == "plain")
    if plain["exit_code"] == MISSING:
        document["left_out"] = plain["said"] or "PyTorch is not there"
    elif args.device == "cpu":
        document["left_out"] = "tried on a cpu, which has no kernels to record"
    output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

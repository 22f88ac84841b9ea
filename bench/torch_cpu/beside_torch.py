#!/usr/bin/env python3
"""Times training steps of weir-train beside PyTorch's on the CPU: the same jobs, in turn, on one core.

usage: python3 bench/torch_cpu/beside_torch.py BUILD [--rounds N] [--json FILE] [--quick]

BUILD has the built trainer/weir-train: build/release of the preset. Run this with a Python that has
PyTorch; PyTorch's side takes the fastest of the ways to write it that torch_jobs.py knows.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCALE = 0.1
INPUTS, HIDDEN, OUTPUTS = 250_000, (1024, 512), 200_000
BATCH, ROWS, NNZ = 128, 20 * 128, 500
STEPS = {"wide": 40, "d2l": 10, "small": 1000}
QUICK_STEPS = {"wide": 2, "d2l": 1, "small": 60}
TARGETS = {"wide": 0.8}
JOBS = {
    "wide": "25000 sparse -> 102 -> 51 -> 20000, softmax, Adam, batches of 128",
    "d2l": "512 -> 2048 -> 512 -> 1, SGD, batches of 1024 drawn on the way",
    "small": "512 -> 256 -> 128 -> 1, SGD, batches of 32 made beforehand",
}


class Refused(Exception):
    """What is wrong, in a line. The program exits 2."""


def scaled(width):
    return round(width * SCALE)


class Weir:
    """Runs weir-train."""

    def __init__(self, program, data):
        self.program, self.data = program, str(data)

    def call(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Refused(f"{self.program} {words[0]}: exit code {done.returncode}: {last}")
        return done.stdout

    def wide_flags(self):
        return ["--scale", str(SCALE), "--inputs", str(INPUTS), "--outputs", str(OUTPUTS)]

    def make_data(self):
        made = ["--make", self.data, "--rows", str(ROWS), "--nnz", str(NNZ)]
        self.call("wide", *self.wide_flags(), *made)

    def train(self, job, steps):
        """Returns the seconds of a step and the mean loss."""
        flags = ["--device", "cpu", "--batches", str(steps), "--json", "-"]
        if job == "wide":
            data = ["--data", self.data, "--batch-size", str(BATCH)]
            said = json.loads(self.call("wide", *self.wide_flags(), *data, *flags))
            return of_result(said["result"])
        if job == "d2l":
            return of_result(json.loads(self.call("run", *flags))["result"])
        flags += ["--small", "--no-search", "--rounds", "1"]
        return of_comparison(json.loads(self.call("compare", *flags)))


def of_result(result):
    return 1 / result["batches_per_second"], result["mean_loss"]


def of_comparison(comparison):
    """Returns those of `throttled`, the default policy."""
    (found,) = [policy for policy in comparison["policies"] if policy["policy"] == "throttled"]
    return 1 / found["batches_per_second"], found["last_run"]["mean_loss"]


class Torch:
    """PyTorch in a process of its own, which stays between the rounds: it takes seconds to start."""

    def __init__(self, data):
        hidden = ",".join(str(scaled(width)) for width in HIDDEN)
        words = [str(data), str(scaled(INPUTS)), str(scaled(OUTPUTS)), hidden]
        self.process = subprocess.Popen(
            [sys.executable, "-B", str(HERE / "torch_jobs.py"), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.chosen = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Refused(f"torch_jobs.py ended with exit code {self.process.wait()}")
        return json.loads(line)

    def train(self, job, steps):
        """Returns the seconds of a step and the mean loss."""
        self.process.stdin.write(json.dumps({"job": job, "steps": steps}) + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        return answer["seconds"] / steps, answer["loss"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(weir, torch, steps, rounds):
    """Returns the runs of each job, in turn, and in every second round PyTorch's first."""
    runs = {job: {"weir": [], "torch": []} for job in steps}
    for number in range(rounds):
        for job, count in steps.items():
            sides = [("weir", weir), ("torch", torch)]
            for side, train in sides[:: -1 if number % 2 else 1]:
                runs[job][side].append(train(job, count))
    return runs


def figures(job, runs):
    """Returns the medians, and the median of the rounds' ratios with the least and the most."""
    times = {side: [seconds for seconds, _ in of_side] for side, of_side in runs.items()}
    ratios = [ours / theirs for ours, theirs in zip(times["weir"], times["torch"])]
    target = TARGETS.get(job)
    ratio = statistics.median(ratios)
    return {
        "job": job,
        "weir_seconds": statistics.median(times["weir"]),
        "torch_seconds": statistics.median(times["torch"]),
        "ratio": ratio,
        "least_ratio": min(ratios),
        "most_ratio": max(ratios),
        "target": target,
        "met": None if target is None else ratio <= target,
        "weir_loss": runs["weir"][-1][1],
        "torch_loss": runs["torch"][-1][1],
        "runs": runs,
    }


def milliseconds(seconds):
    return f"{1000 * seconds:.3g} ms"


def cells(row):
    verdict = {None: "", True: "met", False: "MISSED"}[row["met"]]
    return [
        row["job"],
        milliseconds(row["weir_seconds"]),
        milliseconds(row["torch_seconds"]),
        f"{row['ratio']:.2f}",
        f"{row['least_ratio']:.2f} - {row['most_ratio']:.2f}",
        "" if row["target"] is None else f"<= {row['target']}",
        verdict,
        f"{row['weir_loss']:.4f}",
        f"{row['torch_loss']:.4f}",
    ]


def table(rows):
    """Returns the lines of a table, the first column to the left."""
    lines = [["a step of", "weir-train", "PyTorch", "ratio", "spread", "target", "", "mean loss", "PyTorch's"]]
    lines += [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    aligned = [
        [text.ljust(width) if i == 0 else text.rjust(width) for i, (text, width) in enumerate(zip(line, widths))]
        for line in lines
    ]
    return ["  ".join(line).rstrip() for line in aligned]


def ways(chosen):
    """Returns a line for each job, with the time of a step in each way that was tried."""
    lines = []
    for name, job in chosen["jobs"].items():
        for kind, times in job["trials"].items():
            tried = ", ".join(f"{way} {milliseconds(time)}" for way, time in times.items())
            lines.append(f"PyTorch, {name}, {kind}: {job['ways'][kind]} (tried: {tried})")
    return lines


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def stay_on_one_core():
    """Returns its number. Programs started from now on stay there too."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="few steps: shows that it works, not how fast")
    options = parser.parse_args(words)
    if options.rounds < 1:
        parser.error(f"--rounds: expected at least 1, found {options.rounds}")
    return options


def compare(options):
    program = options.build.resolve() / "trainer/weir-train"
    if not os.access(program, os.X_OK):
        raise Refused(f"{program}: not there: build weir-train, with the preset release")
    if importlib.util.find_spec("torch") is None:
        raise Refused(f"{sys.executable} has no PyTorch: run this with a Python that has (pip install torch)")
    core = stay_on_one_core()
    with tempfile.TemporaryDirectory(prefix="weir-torch.") as folder:
        weir = Weir(str(program), folder)
        weir.make_data()
        with contextlib.closing(Torch(folder)) as torch:
            steps = QUICK_STEPS if options.quick else STEPS
            runs = measure(weir.train, torch.train, steps, options.rounds)
            chosen = torch.chosen
    rows = [figures(job, of_job) for job, of_job in runs.items()]
    heading = f"{processor()}, core {core}; PyTorch {chosen['version']}, Python {platform.python_version()}"
    print(f"{heading}; {options.rounds} rounds\n")
    print("\n".join(table(rows)), end="\n\n")
    for job, what in JOBS.items():
        print(f"{job}: {what}; {steps[job]} steps a run")
    print("\n".join(ways(chosen)))
    if options.json:
        written = {"machine": heading, "steps": steps, "torch": chosen, "rows": rows}
        options.json.write_text(json.dumps(written, indent=1) + "\n")
    return 0


def main(words):
    options = parse(words)
    try:
        return compare(options)
    except Refused as refused:
        print(f"beside_torch.py: {refused}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

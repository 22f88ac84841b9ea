"""Measures the answers of docs/faq.md and prints them as one table.

usage: python3 bench/faq/faq.py FOLDER [--quick]

FOLDER has the built programs weir-train, weir and weir-faq; bench/run faq builds them and runs this.
All figures are of the cpu device. --quick shows that it works: its runs are too short for figures.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import time

PROGRAMS = {
    "weir": "tools/weir/weir",
    "weir-faq": "bench/faq/weir-faq",
    "weir-train": "trainer/weir-train",
}
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}  # in a heading, in seconds
FINISHED, OUT_OF_MEMORY = 0, 3  # exit codes of weir-train
# The update passes over all of its 1.6 million weights, however small the batch.
WIDE = "weir-train wide --device cpu --inputs 100000 --hidden 16 --outputs 16"


def size(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1000:
            break
        count /= 1024
    else:
        unit = "GiB"
    return f"{count:.3g} {unit}"


def share(part):
    return f"{100 * part:.1f}%"


def duration(seconds):
    return f"{1e6 * seconds:.1f} us" if abs(seconds) < 1e-3 else f"{1e3 * seconds:.2f} ms"


def several(count, thing, plural="s"):
    return f"{count} {thing}" + ("" if count == 1 else plural)


def caches():
    """Returns the data caches of a processor, as Linux lists them; empty if it does not."""
    found = []
    for cache in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, level, kib = ((cache / name).read_text().strip() for name in ("type", "level", "size"))
        if kind != "Instruction":
            found.append(f"level {level} {size(int(kib.removesuffix('K')) << 10)}")
    return ", ".join(found)


class Runs:
    """Runs the programs in a folder of its own, and remembers their command lines."""

    def __init__(self, build, folder):
        self.paths = {name: build / path for name, path in PROGRAMS.items()}
        for path in self.paths.values():
            if not path.exists():
                sys.exit(f"faq.py: {path} is not built")
        self.folder = folder
        ours = ("WEIR_", "MXNET_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment["WEIR_PUBLISH"] = str(folder)  # `weir top` shows no other program there
        self.commands = {}

    def start(self, line):
        """Starts a program. `line` begins with its name."""
        self.commands[line] = None
        name, *words = line.split()
        return subprocess.Popen(
            [self.paths[name], *words],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def text(self, line, codes=(FINISHED,)):
        """Returns the standard output."""
        return self.finish(line, self.start(line), codes)

    def finish(self, line, program, codes=(FINISHED,)):
        out, errors = program.communicate()
        if program.returncode not in codes:
            sys.exit(f"faq.py: {line} ended with {program.returncode}: {errors.strip()}")
        return out

    def figures(self, line, codes=(FINISHED,)):
        return json.loads(self.text(f"{line} --json -", codes))

    def report(self, file):
        """Returns the report of a timeline of one process."""
        return self.figures(f"weir timeline report {file}")["processes"][0]

    def rows(self, line):
        """Returns the rows of a table without a heading, by their first cell."""
        return dict(re.split(r"\s{2,}", row)[:2] for row in self.text(line).splitlines())

    def records(self, line):
        """Returns the rows of a table with a heading; the legend's lines begin with a space."""
        lines = [row for row in self.text(line).splitlines() if not row.startswith("  ")]
        heading, *rows = [re.split(r"\s{2,}", row) for row in lines]
        return [dict(zip(heading, row)) for row in rows]


def idle(report):
    """Returns the idle share of a timeline with its two largest causes."""
    summary = report["summary"]
    causes = summary["idle_by_cause_ns"]
    largest = sorted(causes, key=causes.get, reverse=True)[:2]
    named = (f"{cause} {share(causes[cause] / summary['device_time_ns'])}" for cause in largest)
    return f"device idle {share(summary['idle_share'])}: {', '.join(named)}"


def peak(result):
    flying = several(result["most_in_flight"], "batch", "es")
    return f"{result['outcome']}, {flying} in flight, at most {size(result['peak_reserved_bytes'])}"


def blocking(runs, quick, shared):
    length = "--batches 50 --rounds 1" if quick else "--batches 1000 --rounds 3"
    line = f"weir-train compare --device cpu --small --no-search --budget 4MiB {length}"
    shared["compared"] = runs.figures(line)
    policies = {policy["policy"]: policy for policy in shared["compared"]["policies"]}
    shared["policies"] = policies
    for name in ("throttled", "barrier"):
        policy, last = policies[name], policies[name]["last_run"]
        held = duration(last["stalls"]["seconds"] / last["batches"])
        yield name, (
            f"{policy['host_us']:.1f} us to submit a batch, held back for {held}; "
            f"{policy['batches_per_second']:.0f} batches/s; {peak(last)}"
        )
    yield "unbounded", peak(policies["unbounded"]["last_run"])


def order(runs, quick, shared):
    rows = runs.records("weir-faq order " + ("--batches 50 --repeats 1" if quick else "--batches 1000"))

    def total(name):
        return sum(int(row[name]) for row in rows)

    results = len({row["results"] for row in rows})
    yield "2 threads, 2 streams", (
        f"{total('operations')} operations: {total('late')} late for their tensor, "
        f"{total('overtaken')} overtaken by others, {total('lost')} lost; "
        f"{several(results, 'result')} of {len(rows)} runs"
    )
    compared = shared["compared"]
    same = "the same bits" if compared["weights_identical"] else "DIFFERENT bits"
    yield "weights of a training", f"{same} in all {compared['finished_runs']} runs that finished"


def barrier(runs, quick, shared):
    for reader in (100, 3000):
        for policy in ("throttled", "barrier"):
            line = f"weir-faq run --read {reader} --policy {policy} --batches {10 if quick else 200}"
            spent = runs.rows(f"{line} --timeline barrier.json")["time of a batch"]
            found = idle(runs.report("barrier.json"))
            yield f"reader of {reader / 1000:g} ms, {policy}", f"{spent} a batch; {found}"
    for name in ("throttled", "barrier"):
        policy = shared["policies"][name]
        spent = duration(1 / policy["batches_per_second"])
        yield f"a training, {name}", f"{spent} a batch; device idle {share(policy['idle_share'])}"


def cache(runs, quick, shared):
    length = "--operations 1 --repeats 1" if quick else "--operations 64 --repeats 5"
    rows = runs.records(f"weir-faq cache {length}")
    unit = next(heading for heading in rows[0] if heading.startswith("time ")).removeprefix("time ")
    by_case = {}
    for row in rows:
        by_case.setdefault(f"{row['operation']}, {size(int(row['batch KiB']) << 10)}", []).append(row)
    for case, of_case in by_case.items():
        times = (f"{row['queued']} queued: {duration(float(row[f'time {unit}']) * UNITS[unit])}" for row in of_case)
        yield case, "; ".join(times)
    if caches():
        yield "caches of a core", caches()
    counted = not rows[0]["cache misses"].startswith("not counted")
    for case, of_case in by_case.items() if counted else ():
        yield f"misses, {case}", "; ".join(f"{row['queued']} queued: {row['cache misses']}" for row in of_case)
    if not counted:
        yield "cache misses", rows[0]["cache misses"]


def small_batches(runs, quick, shared):
    rows = 512 if quick else 8192
    for batch in (16, 256):
        for policy, budget in (("unbounded", "1GiB"), ("unbounded", "64MiB"), ("throttled", "64MiB")):
            line = f"{WIDE} --readers 1 --batch-size {batch} --batches {rows // batch}"
            line += f" --policy {policy} --budget {budget}"
            result = runs.figures(line, (FINISHED, OUT_OF_MEMORY))["result"]
            idle_share = share(result["idle_share"])
            yield f"of {batch}, {policy}, {budget}", f"{peak(result)}; device idle {idle_share}"


def slow_device(runs, quick, shared):
    count = 10 if quick else 100
    # Without the first batches, before which the network is made.
    wide = "weir-train wide --device cpu --budget 512MiB --timeline-batches 5:"
    cases = {
        "a slow reader": f"{wide} --inputs 20000 --hidden 8 --outputs 8 --batch-size 256 --readers 1"
        f" --batches {count}",
        "small operations": f"{wide} --inputs 100 --hidden 1,1 --outputs 20 --nnz 2 --batch-size 1"
        f" --batches {20 * count}",
        "large copies": f"weir-faq run --copy 3000 --compute 1000 --batches {count}",
    }
    for case, line in cases.items():
        runs.text(f"{line} --timeline slow.json")
        report = runs.report("slow.json")
        busy = {one["name"]: share(one["busy_ns"] / one["recorded_ns"]) for one in report["streams"]}
        yield case, f"{idle(report)}; compute busy {busy['compute']}, copies {busy['copy-in']}"


def precision(runs, quick, shared):
    for name, rows in (("bf16", 128), ("fp16", 128), ("fp16", 1)):
        line = (
            f"weir-train wide --device cpu --budget 1GiB --scale 0.02 --lr 0.01 --batch-size {rows}"
            f" --batches {10 if quick else 100} --precision {name} --compare-precision"
        )
        result = runs.figures(line)["result"]
        other = result["float32"]
        text = f"loss {result['mean_loss']:.4f}, float32 {other['mean_loss']:.4f}"
        if rows > 1:  # else too few rows are tested
            text += f"; test accuracy {share(result['test_accuracy'])}, float32 {share(other['test_accuracy'])}"
        if name == "fp16":
            skipped = several(result["skipped_steps"], "step")
            text += f"; {skipped} skipped, scale {result['loss_scale']:.0f}"
        yield f"{name}, batches of {rows}", text


def both(runs, quick, shared):
    for policy, how in (("throttled", "beside each other"), ("barrier", "in turn")):
        line = f"weir-faq run --read 1500 --policy {policy} --batches {10 if quick else 200}"
        figures = runs.rows(line)
        spent, computing = figures["time of a batch"], figures["computing"]
        yield how, f"{spent} a batch; the device computes {computing} of the time"
    batches = 10 if quick else 100
    line = f"weir-train wide --device cpu --budget 512MiB --scale 0.02 --batches {batches}"
    alone = runs.figures(line)["result"]
    placed = runs.figures(f"{line} --first-layer cpu --first-layer-budget 512MiB")["result"]
    there, back = (size(placed["first_layer"][way]["bytes"]) for way in ("copied_to_rest", "copied_back"))
    losses = f"loss {placed['mean_loss']:.6f}, on one device {alone['mean_loss']:.6f}"
    yield "a network on two devices", f"{there} copied between its layers, {back} back; {losses}"


def watching(runs, quick, shared):
    line = f"{WIDE} --budget 64MiB --batch-size 16 --batches {200 if quick else 1000}"
    line += " --timeline watched.json --json figures.json"
    program = runs.start(line)
    seen = "ended before it was seen"
    while program.poll() is None:
        shown = json.loads(runs.text("weir top --json -"))["programs"]
        if shown and shown[0]["settled_batches"] > 0:
            names = ("budget", "allocated", "awaiting", "reserved")
            seen = ", ".join(f"{name} {size(shown[0][name + '_bytes'])}" for name in names)
        time.sleep(0.1)
    runs.finish(line, program)
    figures = json.loads((runs.folder / "figures.json").read_text())["result"]
    yield "while it runs", seen
    yield "figures of the run", (
        f"peak reserved {size(figures['peak_reserved_bytes'])}, peak held {size(figures['peak_held_bytes'])}; "
        f"the process grew by {size(figures['pace'][-1]['increased_bytes'])}"
    )
    pool = runs.report("watched.json")["pools"][0]
    holder = pool["at_peak_by_label"]["holders"][0]
    held = f"largest holder {holder['key']}, {size(holder['bytes'])}"
    yield "its timeline", f"peak reserved {size(pool['peak_reserved'])}; {held}"


# In this order: later ones use figures of the first.
QUESTIONS = {
    "should step() block?": blocking,
    "does it keep the order?": order,
    "what does a barrier cost, and where?": barrier,
    "do queued batches cost cache misses?": cache,
    "why does a small batch run out of memory?": small_batches,
    "how is a slow GPU debugged?": slow_device,
    "is mixed precision safe?": precision,
    "may CPU and GPU be used at once?": both,
    "how is memory watched?": watching,
}


def shown(case, figures):
    """Returns the lines of a case, within 100 columns. Its figures stand under each other."""
    return textwrap.fill(f"{case:<30}  {figures}", 100, initial_indent="  ", subsequent_indent=" " * 34,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


def main(words):
    if not words or words[0].startswith("-") or words[1:] not in ([], ["--quick"]):
        print(__doc__, file=sys.stderr)
        return 2
    quick = len(words) > 1
    commands, shared = [], {}
    with tempfile.TemporaryDirectory(prefix="weir-faq.") as folder:
        runs = Runs(pathlib.Path(words[0]).resolve(), pathlib.Path(folder))
        for number, (question, measure) in enumerate(QUESTIONS.items(), 1):
            print(f"{number} {question}")
            for case, figures in measure(runs, quick, shared):
                print(shown(case, figures), flush=True)
            commands += [f"{number} {line}" for line in runs.commands]
            runs.commands.clear()
    print("\n".join(["", "command lines, by question:"] + commands))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

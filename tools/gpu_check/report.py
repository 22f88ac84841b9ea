#!/usr/bin/env python3
"""Makes one page of runs of tools/gpu-check.

    report.py RUN... OUTPUT-FOLDER YYYY-MM-DD

RUN is a folder that the steps of a call wrote to, or the JSON file beside an earlier page:

    info.json             weir-gpu info --json -
    steps.tsv             a line for each step, fields between tabs: name, exit code, seconds, limit
                          in seconds, command line. A step that was left out has `-` for its exit
                          code and the reason for its command line
    call.txt              which call of tools/gpu-check it was; empty for a whole first one
    STEP.json, STEP.log   what a step wrote to its file and printed

Writes the JSON file with all figures and the page in Markdown, and prints each condition with its
verdict. Exit code 1 when a condition is not met or there is nothing to report on, 2 on misuse.

Needs only Python 3.8 and its standard library, and no GPU. It is one long file, because it runs
alone on the machine with the GPU. The order: JSON and texts, what a call left, several calls as one,
the conditions and the page's section of each step, the page, the command. Figures of a wrong shape
raise an exception, which becomes the verdict.
"""

import copy
import json
import math
import os
import pathlib
import re
import stat
import sys
import tempfile
from types import SimpleNamespace
from typing import NamedTuple


class Failed(Exception):
    """There is nothing to report on, or it cannot be written."""


class Misused(Exception):
    """The caller asked for what is not allowed."""


# --- JSON ---------------------------------------------------------------------------------------


def parse_json(text):
    """Returns the document. Raises ValueError for invalid JSON, including NaN and infinity."""

    def refuse(word):
        raise ValueError(f"{word} is not allowed")

    def finite(word):
        return float(word) if math.isfinite(float(word)) else refuse(word)

    try:
        document = json.loads(text, parse_constant=refuse, parse_float=finite)
        json.dumps(document, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    except RecursionError:
        refuse("such nesting")
    return document


def json_text(document):
    """Returns indented JSON as bytes. Replaces invalid UTF-8 by U+FFFD: a log may have any bytes."""
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return to_bytes(text).decode(errors="replace").encode()


def read_text(path):
    """Returns the file's text. Keeps invalid UTF-8 bytes."""
    try:
        return pathlib.Path(path).read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise Failed(f"cannot read {path}") from error


def to_bytes(text):
    return text.encode(errors="surrogateescape")


# --- Figures as text ----------------------------------------------------------------------------


def number(value, digits):
    return "-nan" if math.isnan(value) else f"{value:.{digits}f}"  # 0 / 0, as C prints it


def spread(median, low, high):
    """Formats a ratio with its minimum and maximum: `0.985 (0.970 to 0.990)`."""
    return f"{number(median, 3)} ({number(low, 3)} to {number(high, 3)})"


def percent(share, digits):
    return number(100 * share, digits) + "%"


def size(count):
    """Formats as `96 MiB`, `1.50 GiB` or `512 B`: exact in whole units, else three digits."""
    count = int(count)
    units = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B"))
    shift, unit = next(one for one in units if count >> one[0] or one[0] == 0)
    value, exact = count / (1 << shift), count >> shift << shift == count
    return f"{number(value, 0 if exact or value >= 100 else 1 if value >= 10 else 2)} {unit}"


def counted(n, thing):
    """Formats as `1 test`, `3 tests`."""
    return f"{n} {thing}{'' if n == 1 else 's'}"


def divided(a, b):
    """Returns a / b, infinity or NaN for b = 0."""
    return a / b if b else math.copysign(math.inf, a) if a else math.nan


def code(text):
    return f"`{text}`"


def markdown_table(rows):
    """Returns a table whose first row is the heading. Escapes what would end a cell."""
    lines = []
    for row in rows:
        cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in row)
        lines.append("|" + "".join(f" {cell} |" for cell in cells) + "\n")
    lines.insert(1, "|" + "---|" * len(rows[0]) + "\n")
    return "".join(lines)


# --- Steps --------------------------------------------------------------------------------------

TIMED_OUT = (124, 137)  # of timeout(1); the second if the program had to be killed


class Step(NamedTuple):
    name: str
    command: str = ""
    left_out: str = ""  # why it did not run; empty if it ran
    exit_code: int = 0
    seconds: float = 0.0
    limit_seconds: float = 0.0

    @property
    def ran(self):
        return not self.left_out

    @property
    def ok(self):
        return self.ran and self.exit_code == 0

    def describe(self):
        """Returns `ok`, `failed (exit 1)`, `stopped at its limit of 40 s` or `left out: reason`."""
        if not self.ran:
            return "left out: " + self.left_out
        if self.exit_code in TIMED_OUT:
            return f"stopped at its limit of {math.floor(self.limit_seconds + 0.5)} s"
        return f"failed (exit {self.exit_code})" if self.exit_code else "ok"


def parse_step(line):
    def parse(word):
        if not re.fullmatch(r"-?[0-9]+(\.[0-9]*)?", word):
            raise Failed(f"not a step: '{word}' is no number in: {line}")
        return float(word)

    fields = line.split("\t")
    if len(fields) < 5 or not fields[0] or not fields[4]:
        raise Failed(f"not a step: five fields between tabs are needed in: {line}")
    name, exit_code, seconds, limit, what = fields[:5]
    if exit_code == "-":
        return Step(name, "", what, 0, parse(seconds), parse(limit))
    return Step(name, what, "", int(parse(exit_code)), parse(seconds), parse(limit))


def parse_steps(text):
    """Returns the steps of a steps.tsv. Raises Failed with the first invalid line."""
    lines = text.split("\n")
    return [parse_step(line) for line in (lines if lines[-1] else lines[:-1])]


# --- What a call left: one document -------------------------------------------------------------

ALL_CALLS = "all"  # the `call` of several calls together


def gather(run, date):
    """Returns the document of the folder `run`. Raises Failed if info.json or steps.tsv is missing.

    Omits files that a failed step did not write, and names unreadable ones. Omits the series
    `..._per_batch`, which would be most of it.
    """
    run = pathlib.Path(run)
    evidence = {"date": date, "steps": []}
    for step in parse_steps(read_text(run / "steps.tsv")):
        evidence["steps"].append({**step_json(step), **files_of_step(run, step.name)})
    try:
        evidence["machine"] = parse_json(read_text(run / "info.json"))
    except ValueError as error:
        raise Failed(f"{run / 'info.json'} is no JSON: {error}") from error
    if (run / "call.txt").exists():
        evidence["call"] = (read_text(run / "call.txt").split() or [""])[0]
    return evidence


def step_json(step):
    told = step._asdict()
    if step.ran:
        del told["left_out"]
    else:
        told = {"name": step.name, "left_out": step.left_out}
    return {**told, "outcome": step.describe()}


def files_of_step(run, name):
    found = {}
    figures, log = run / f"{name}.json", run / f"{name}.log"
    if figures.exists():
        read = parse_figures(read_text(figures))
        if read is None:
            found["unreadable"] = figures.name
        else:
            found["figures"] = without_series(read)
    summary = sanitizer_summary(read_text(log)) if log.exists() else ""
    return {**found, "summary": summary} if summary else found


def parse_figures(text):
    """Returns what a step wrote; None if it is not JSON.

    A list with one element a line (weir-gpu facts) may be truncated. For that, returns all whole
    elements and the readable part of the last one, with "cut".
    """
    at_line = text.rfind(",\n")
    whole_lines = text if at_line < 0 else text[:at_line]
    for closed in (text, text + "]}", text + "}]}", whole_lines + "]}"):
        try:
            read = parse_json(closed)
        except ValueError:
            continue
        if closed is text:
            return read
        if isinstance(read, dict):
            return {**read, "cut": True}
    return None


def without_series(figures):
    if isinstance(figures, list):
        return [without_series(one) for one in figures]
    if not isinstance(figures, dict):
        return figures
    kept = (key for key in figures if not key.endswith("_per_batch"))
    return {key: without_series(figures[key]) for key in kept}


def sanitizer_summary(log):
    """Returns the last line with `SUMMARY` of a sanitizer's output, or an empty text."""
    lines = [line for line in log.split("\n") if "SUMMARY:" in line]
    return lines[-1].lstrip("= ") if lines else ""


def find_named(objects, name):
    """Returns the first object of that name, or None."""
    return next((one for one in objects if one["name"] == name), None)


def step_of(evidence, name):
    """Returns the step of that name. If there is none, returns one that was left out."""
    found = find_named(evidence["steps"], name)
    if found is None:
        return Step(name, left_out="no step of this name was run")
    return Step(**{key: found[key] for key in Step._fields if key in found})


def figures_of(evidence, name):
    """Returns what the step wrote, or None."""
    return (find_named(evidence["steps"], name) or {}).get("figures")


def is_rehearsal(evidence):
    """Returns whether the driver was the stand-in."""
    return evidence["machine"].get("rehearsal", False)


def device_name(evidence):
    gpus = evidence["machine"]["gpus"]
    if not gpus:
        raise Failed("info.json names no GPU: nothing ran on one")
    return gpus[0]["name"]


def device_slug(evidence):
    """Returns the first GPU's name in file names of docs/results, like `nvidia-h100-80gb-hbm3`."""
    return re.sub(r"[^a-z0-9]+", "-", device_name(evidence).lower()).strip("-")


# --- Several calls as one -----------------------------------------------------------------------


def read_call(run, date):
    """Returns a call's results, from its folder or from the JSON file beside its page."""
    if os.path.isdir(run):
        return gather(run, date)
    try:
        call = parse_json(read_text(run))
    except ValueError:
        call = None
    if not isinstance(call, dict) or not {"machine", "steps"} <= call.keys():
        raise Failed(f"{run} is not what report.py wrote")
    return call


def merge_calls(calls, date):
    """Merges calls: takes the last run of each step and of each program.

    Counts steps that no call planned as planned, since the page now covers everything. Leaves a
    single call as it is. Raises Failed if the calls differ in device, driver or commit.
    """
    if not calls:
        raise Failed("there is no call to make a page of")
    if len(calls) == 1:
        return calls[0]
    first = identity(calls[0])
    merged = {"date": date, "call": ALL_CALLS, "machine": calls[0]["machine"], "steps": []}
    for call in calls:
        if identity(call) != first:
            raise Failed(f"no page is of two machines or builds: {first}; and {identity(call)}")
        for step in call["steps"]:
            add_step(merged["steps"], copy.deepcopy(step))
    programs = find_named(merged["steps"], "programs")
    if programs and "figures" in programs:
        programs["figures"].pop("planned", None)
    return merged


def identity(call):
    """Returns what figures were measured on. A page may not mix two of these."""
    driver, commit = (call["machine"].get(key, "") for key in ("driver", "commit"))
    rehearsal = ", a rehearsal" if is_rehearsal(call) else ""
    return f"{device_name(call)}, driver {driver}, commit {commit}{rehearsal}"


def add_step(steps, later):
    found = find_named(steps, later["name"])
    if found is None or "left_out" in found:
        put(steps, later)
    elif "left_out" not in later and later["name"] != "programs":
        put(steps, later)
    elif "left_out" not in later and "figures" in later:
        if "figures" in found:
            add_programs(found, later)
        else:
            put(steps, later)


def put(objects, later):
    """Replaces the object with `later`'s name by `later`, or appends it."""
    found = find_named(objects, later["name"])
    if found is None:
        objects.append(later)
    else:
        objects[objects.index(found)] = later


def add_programs(programs, later):
    """Adds another call of programs to the step `programs`."""
    for program in later["figures"]["programs"]:
        put(programs["figures"]["programs"], program)
    programs["command"] += "; " + later.get("command", "")
    for total in ("seconds", "limit_seconds"):
        programs[total] = float(programs[total] + later[total])
    if programs["exit_code"] == 0:
        programs["exit_code"], programs["outcome"] = later["exit_code"], later["outcome"]


# --- Verdicts -----------------------------------------------------------------------------------

MET = "met"
NOT_MET = "NOT MET"
LEFT_OUT = "left out"  # the machine lacks what the figure names


class Verdict(NamedTuple):
    condition: str
    state: str
    figure: str  # the result, or why there is none


def met_if(met):
    return MET if met else NOT_MET


def unless_failed(judged, step):
    """Returns the verdicts. If the step failed, none is met."""
    why = step.describe()
    return judged if step.ok else [(NOT_MET, f"{figure}; the step {why}") for _, figure in judged]


def judge_step(evidence, name, conditions, judge_it):
    """Returns a verdict for each condition, with the state and figure of `judge_it(figures, step)`.

    No condition is met if the step's figures are missing, invalid or truncated.
    """
    figures, step = figures_of(evidence, name), step_of(evidence, name)
    try:
        if figures is None:
            judged = [without_figures(evidence, step)] * len(conditions)
        else:
            judged = judge_it(figures, step)
            if figures.get("cut"):
                judged = [(NOT_MET, f"{figure}; its figures are cut") for _, figure in judged]
    except Exception as error:  # whatever a step wrote
        judged = [(NOT_MET, f"its figures are not as expected: {error!r}")] * len(conditions)
    return [Verdict(condition, *one) for condition, one in zip(conditions, judged)]


def without_figures(evidence, step):
    if not step.ran:
        return LEFT_OUT, step.left_out
    if not step.ok:
        return NOT_MET, step.describe()
    unreadable = find_named(evidence["steps"], step.name).get("unreadable")
    return NOT_MET, f"{unreadable} is no JSON" if unreadable else "it wrote no figures"


# --- Tests, and the same under the sanitizers ---------------------------------------------------


def count_tests(googletest):
    """Returns the number of passed tests, and the names of failed and skipped ones."""
    passed, failed, skipped = 0, [], []
    for suite in googletest["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if "failures" in test:
                failed.append(name)
            elif test["result"] == "COMPLETED":
                passed += 1
            elif test["result"] == "SKIPPED":
                skipped.append(name)
    return passed, failed, skipped


def judge_tests(figures, step):
    passed, failed, skipped = count_tests(figures)
    figure = f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped"
    met = passed > 0 and not failed and not skipped
    return unless_failed([(met_if(met), figure)], step)


def tests_section(figures):
    passed, failed, skipped = count_tests(figures)
    lines = [f"\n- failed: {code(name)}" for name in failed]
    lines += [f"\n- skipped: {code(name)}" for name in skipped]
    return f"{counted(passed, 'test')} passed.\n{''.join(lines)}" + ("\n\n" if lines else "\n")


def judge_sanitizer(evidence, name):
    step = step_of(evidence, name)
    summary = (find_named(evidence["steps"], name) or {}).get("summary")
    if not step.ran:
        judged = LEFT_OUT, step.left_out
    elif summary:
        (judged,) = unless_failed([(met_if("SUMMARY: 0 " in summary), summary)], step)
    else:
        judged = NOT_MET, "it printed no summary" if step.ok else step.describe()
    return [Verdict(f"compute-sanitizer {name} is clean", *judged)]


# --- Comparisons of the policies: weir-train compare --json ------------------------------------

LEAST_RATIO = 0.99  # throughput, throttled / unbounded with enough memory
LEAST_OF_PLAIN = 0.97  # the same / a training loop that calls CUDA itself


def read_policy(found):
    """Returns a policy's figures.

    `ratio` is to unbounded with enough memory, or None if no run finished. `to_plain` is to the
    training loop without Weir. `host_us` is the time to submit a batch.
    """
    line = SimpleNamespace(outcome="not run", ran=False, ratio=None, to_plain=None, host_us=0)
    if "left_out" in found:  # the loop without Weir
        line.outcome = found["left_out"]
        return line
    line.policy = found["policy"]
    if found["runs"] == 0:
        return line
    ratio = [found[key] for key in ("ratio_to_reference", "ratio_low", "ratio_high")]
    line.ratio = ratio if ratio[0] > 0 else None
    if "to_plain" in found:
        line.to_plain = [found["to_plain"][key] for key in ("ratio", "low", "high")]
    line.rate, line.host_us = found["batches_per_second"], found["host_us"]
    line.idle_share = found.get("idle_share")  # unknown for the loop without Weir
    line.outcome, line.peak = (found["last_run"][key] for key in ("outcome", "peak_reserved_bytes"))
    line.ran = line.rate > 0 or line.peak > 0
    return line


def settings_text(settings):
    """Returns the settings in a line. Pages before version 0.1 have the line itself."""
    if isinstance(settings, str):
        return settings
    return "settings: " + ", ".join(
        f"{name}={setting['value']} ({setting['source']})" for name, setting in settings.items()
    )


def read_comparison(figures):
    policies = [read_policy(one) for one in figures["policies"]]
    return SimpleNamespace(
        settings=settings_text(figures["settings"]),
        reference=read_policy(figures["reference"]),
        plain=read_policy(figures["plain"]),  # if there is none, its outcome says why
        lines=policies,
        policies={line.policy: line for line in reversed(policies)},
        same="identical" if figures["weights_identical"] is True else "NOT identical",
        finished=f"in the {counted(figures['finished_runs'], 'run')} that finished",
    )


def judge_comparison(figures, step):
    read = read_comparison(figures)
    throttled, barrier = read.policies["throttled"], read.policies["barrier"]
    dies = read.policies["unbounded"].outcome
    ratio, both = throttled.ratio, throttled.ratio and barrier.ratio
    # The three policies that must work at the budget: fewer would compare too little.
    enough = both and read.policies["backstop"].ratio
    above = f"throttled {throttled.outcome}, barrier {barrier.outcome}"
    if both:
        above = f"{number(ratio[0], 3)} against {number(barrier.ratio[0], 3)}"
    judged = [
        (
            met_if(ratio and ratio[0] >= LEAST_RATIO),
            spread(*ratio) if ratio else f"throttled {throttled.outcome}",
        ),
        judge_cost(throttled, read.plain),
        (met_if(both and ratio[0] > barrier.ratio[0]), above),
        (met_if(dies.startswith("out of memory")), dies),
        (met_if(enough and read.same == "identical"), f"{read.same} {read.finished}"),
    ]
    return unless_failed(judged, step)


def judge_cost(throttled, plain):
    """Judges Weir's cost beside a loop that calls CUDA itself. `unbounded` has that cost, too."""
    if not throttled.to_plain:
        return NOT_MET, (throttled if plain.ratio else plain).outcome
    ours, theirs = (f"{number(line.host_us, 1)} us" for line in (throttled, plain))
    figure = f"{spread(*throttled.to_plain)}; host time per batch {ours}, without Weir {theirs}"
    return met_if(throttled.to_plain[0] >= LEAST_OF_PLAIN), figure


def comparison_section(figures):
    read = read_comparison(figures)
    rows = ["policy|batches/s|to unbounded with enough memory (spread)|to the loop without Weir "
            "(spread)|host time per batch|peak reserved|idle|result".split("|")]  # fmt: skip
    read.reference.ratio = None  # to itself
    rows.append(policy_row(read.reference, "unbounded, enough memory"))
    rows.append(policy_row(read.plain, "without Weir"))
    rows += [policy_row(line, line.policy) for line in read.lines]
    return (
        f"{code(read.settings)}\n\n{markdown_table(rows)}\n"
        f"Weights {read.same.replace('identical', 'bit-identical')} {read.finished}.\n\n"
    )


def policy_row(line, label):
    if not line.ran:
        return [label, *"------", line.outcome]
    return [
        label,
        number(line.rate, 1),
        spread(*line.ratio) if line.ratio else "-",
        spread(*line.to_plain) if line.to_plain else "-",
        f"{number(line.host_us, 1)} us",
        size(line.peak),
        "-" if line.idle_share is None else percent(line.idle_share, 1),
        line.outcome,
    ]


# --- Kernels: weir-gpu bench --json - ----------------------------------------------------------

# How many times its floor a kernel may take. The floor is the time that its work would take at the
# rate of the device's own copy or product, measured in the same run.
BOUNDS = {"copy": 1.15, "sgemm": 1.1}
# A launch takes some microseconds (unverified), more than these bounds allow for a short floor. A
# kernel of such a shape needs a row below.
LEAST_FLOOR_US = 20
# Of weir-train's wide network: a batch of 128, 512 hidden units, 200,000 outputs.
LAST_LAYER = "128x512x200000"
SHORT = ("tf32", "bf16", "fp16")  # precisions of which the layer's products are bound by memory
# And of its updates: the first layer's 250,000 inputs, and the last layer's weights. Their bounds
# are what is asked of them, not yet tried on a GPU (unverified).
FIRST_LAYER, LAST_WEIGHTS = "250000x1024", "102400000"
UPDATE = "at least 0.9 of a copy's bandwidth"
SPLIT = "few tiles with long sums: each is split over multiprocessors, and another kernel adds up"
# Special bounds with their reasons. Calculated from an H100's figures
# (tests/gpu_check/report_test.py).
NAMED_BOUNDS = {
    ("fill_normal", "2^26"):
        (2.5, "some 60 instructions for each number, which take longer than to write its 4 bytes"),
    ("dense_bias_gradient", "65536x1024"):
        (1.3, "the sums of a column have a fixed order, so steps depend on each other"),
    ("dense_forward", "8192x1024x4096"):
        (1.2, "the bias and the relu take another pass over the output"),
    ("softmax_cross_entropy", "4194304x16"):
        (2, "the rows' losses are added up in pieces: 18 launches, each behind the one before"),
    ("softmax_cross_entropy", "65536x1024"):
        (1.5, "some 40 instructions a logit take as long as to read it"),
    ("softmax_cross_entropy_gradient", "4194304x16"):
        (1.5, "some 60 instructions a logit, with two divisions, take as long as its bytes"),
    ("softmax_cross_entropy_gradient", "65536x1024"):
        (1.5, "some 90 instructions a logit, with two divisions, take longer than its bytes"),
    ("count_correct", "4194304x16"):
        (1.8, "the rows are counted in pieces: 18 launches, each behind the one before"),
    ("forward_fp32", LAST_LAYER):
        (1.3, "sums of 512 instead of 8192: how a tile begins and ends counts for more"),
    ("weight_gradient_fp32", LAST_LAYER):
        (1.5, "sums of 128: a tile's loads and stores are a third of its time"),
    ("input_gradient_fp32", LAST_LAYER): (1.4, SPLIT),
    **{(f"forward_{way}", LAST_LAYER):
        (1.5, "sums of 512: between its loads and its stores a tile moves nothing") for way in SHORT},
    **{(f"weight_gradient_{way}", LAST_LAYER):
        (1.6, "sums of 128: many waves of tiles, each mostly stores that wait for its loads")
       for way in SHORT},
    **{(f"input_gradient_{way}", LAST_LAYER): (1.8, SPLIT) for way in SHORT},
    **{(rule, LAST_WEIGHTS): (1.11, UPDATE) for rule in ("adam", "adamax")},
    **{(f"{rule}_rows", FIRST_LAYER): (1.11, UPDATE) for rule in ("adam", "adamax")},
    ("csr_forward", "128x250000x1024"):
        (1.4, "a row of W that several rows need may be read again"),
    ("csr_weight_gradient", "128x250000x1024"):
        (1.4, "short sums, whose loads depend on each other"),
    ("softmax_loss", "128x200000"):
        (1.7, "three launches, and some 36 instructions a logit"),
    ("softmax_gradient", "128x200000"):
        (1.4, "some 40 instructions a logit"),
    ("logistic_loss", "128x200000"):
        (2.9, "some 75 instructions a logit, with a logarithm, take longer than to read it"),
    ("logistic_loss_and_gradient", "128x200000"):
        (1.6, "some 85 instructions a logit, with a logarithm, take longer than its bytes"),
    ("count_hits", "128x200000"):
        (1.6, "three launches, one behind the other"),
    ("dense_forward", "1024x1024x1024"):
        (2.6, "too few tiles for all multiprocessors, and another pass over the output"),
    ("dense_weight_gradient", "1024x1024x1024"):
        (2.4, "64 tiles of 128 x 128 are too few for all multiprocessors"),
    ("dense_input_gradient", "1024x1024x1024"):
        (2.4, "64 tiles of 128 x 128 are too few for all multiprocessors"),
}  # fmt: skip


def bound_of(kernel):
    """Returns the bound (times the floor), or None, and its reason if it has one."""
    named = NAMED_BOUNDS.get((kernel.name, kernel.shape))
    if named:
        return named
    if kernel.floor_us < LEAST_FLOOR_US:
        return None, f"a floor of {number(kernel.floor_us, 1)} us is mostly its launch"
    if kernel.floor_of in BOUNDS:
        return BOUNDS[kernel.floor_of], ""
    return None, f"no bound for a floor of {kernel.floor_of}"


def read_kernels(figures):
    kernels = []
    for found in figures["kernels"]:
        keys = ("name", "shape", "floor_of", "median_us", "floor_us")
        kernel = SimpleNamespace(**{key: found[key] for key in keys})
        if not (kernel.median_us > 0 and kernel.floor_us > 0):
            raise ValueError(f"the figures of {kernel.name} are no times")
        kernel.ratio = kernel.median_us / kernel.floor_us
        kernel.gives_floor = kernel.floor_of == kernel.name  # its ratio is always 1
        kernel.most, kernel.reason = bound_of(kernel)
        kernel.within = kernel.most is not None and kernel.ratio <= kernel.most
        kernels.append(kernel)
    return kernels


def judge_bench(figures, step):
    return unless_failed([judge_kernels(read_kernels(figures))], step)


def judge_kernels(rows):
    """Returns what is wrong with the kernels, or how far above their floors they are."""
    kernels = [kernel for kernel in rows if not kernel.gives_floor]
    if not kernels:
        return NOT_MET, "no kernel"
    wrong = []
    for one in kernels:
        if one.most is None:
            wrong.append(f"{one.name} {one.shape}: {one.reason}")
        elif not one.within:
            takes = f"takes {number(one.ratio, 2)} of at most {number(one.most, 2)}"
            wrong.append(f"{one.name} {one.shape} {takes}")
    timed = {(kernel.name, kernel.shape) for kernel in kernels}
    wrong += [f"{' '.join(bound)} was not timed" for bound in NAMED_BOUNDS if bound not in timed]
    if wrong:
        return NOT_MET, "; ".join(wrong)
    kernels.sort(key=lambda kernel: kernel.ratio)
    ends = (f"{number(one.ratio, 2)} ({one.name} {one.shape})" for one in (kernels[0], kernels[-1]))
    return MET, f"{counted(len(kernels), 'kernel')}, {' to '.join(ends)} times the floor"


def kernels_section(figures):
    rows = ["kernel|shape|median|floor|floor of|time over floor|at most|".split("|")]
    for kernel in read_kernels(figures):
        judged = ("", "", "")
        if not kernel.gives_floor:
            parts = ("" if kernel.most is None else number(kernel.most, 2), kernel.reason)
            bound = ": ".join(part for part in parts if part)
            judged = (number(kernel.ratio, 2), bound, met_if(kernel.within))
        times = (f"{number(us, 1)} us" for us in (kernel.median_us, kernel.floor_us))
        rows.append([kernel.name, kernel.shape, *times, kernel.floor_of, *judged])
    return markdown_table(rows) + "\n"


# --- Facts that only a GPU can tell: weir-gpu facts ---------------------------------------------


def read_facts(figures):
    for found in figures["facts"]:
        fact = SimpleNamespace(name=found["fact"], expected=found["expected"])
        # Without an answer the step crashed or was stopped at the question.
        fact.answer = found.get("answer", "no answer, the step ended here")
        fact.answered = found.get("answered") is True
        fact.otherwise = found.get("otherwise", "")  # what may happen, if Weir depends on it
        # `expected` may be `7 or 8`. Parentheses say why nothing is expected: a cost, for example.
        alternatives = f" or {fact.expected} or "
        fact.as_expected = fact.expected[:1] == "(" or f" or {fact.answer} or " in alternatives
        yield fact


def judge_facts(figures, step):
    answers, harmful, unanswered, unexpected = 0, [], [], []
    for fact in read_facts(figures):
        both = f"{fact.name}: expected {fact.expected}, found {fact.answer}"
        answers += fact.answered
        if fact.otherwise and not (fact.answered and fact.as_expected):
            harmful.append(f"{fact.otherwise}: {both}")
        elif not fact.answered:
            unanswered.append(f"{fact.name}: {fact.answer}")
        elif not fact.as_expected:
            unexpected.append(both)
    found = harmful + unanswered + ([] if step.ok else [f"the step {step.describe()}"])
    state = met_if(answers and not found)
    total = "none unexpected"
    if unexpected:
        total = f"{len(unexpected)} unexpected: {'; '.join(unexpected)}"
    none = not answers and not harmful and not unanswered
    found.append("no fact" if none else f"{counted(answers, 'answer')}, {total}")
    return [(state, "; ".join(found))]


def facts_section(figures):
    rows = [["fact", "expected", "found", "otherwise"]]
    rows += [[one.name, one.expected, one.answer, one.otherwise] for one in read_facts(figures)]
    return markdown_table(rows) + "\n"


# --- Real traces on the device: weir replay --upstream cuda --json - ----------------------------

# The most that `paged` may reserve at its peak (docs/fragmentation.md): this factor times the bytes
# requested at the peak, plus two pages for the one stream of each trace.
MOST_RESERVED = 1.03
TWO_PAGES = 4 << 20


def read_replays(figures):
    for trace in figures["traces"]:
        for pool in trace["pools"]:
            reserved, requested = pool["peak_reserved_bytes"], trace["peak_requested_bytes"]
            yield SimpleNamespace(
                trace=os.path.basename(trace["trace"]).split(".")[0],
                pool=pool["pool"],
                completed=pool["completed"] is True,
                over_peak=number(divided(reserved, requested), 3),
                within=reserved <= MOST_RESERVED * requested + TWO_PAGES,
                figures=pool,
            )


def judge_traces(figures, step):
    replays = list(read_replays(figures))
    failed = [f"{one.trace} with {one.pool}" for one in replays if not one.completed]
    paged = [one for one in replays if one.pool == "paged"]
    which = "all of them" if step.ok else "all that were replayed"
    if not paged:
        which = "nothing was replayed"
    if failed:
        which = "out of memory: " + ", ".join(failed)
    within = paged and all(one.completed and one.within for one in paged)
    found = ", ".join(f"{one.trace} {one.over_peak}" for one in paged) or "nothing was replayed"
    completes = (met_if(paged and not failed), which)
    return [*unless_failed([completes], step), (met_if(within), found)]


def traces_section(figures):
    rows = ["trace|pool|reserved / peak requested|driver calls|maps|ns per operation".split("|")]
    for one in read_replays(figures):
        calls, maps = (json.dumps(one.figures[key]) for key in ("driver_calls", "mapped_pages"))
        ns = one.figures["ns_per_operation"]
        ns = "-" if ns is None else number(ns, 0)
        reserved = one.over_peak if one.completed else "out of memory"
        rows.append([one.trace, one.pool, reserved, calls, maps, ns])
    return markdown_table(rows) + "\n"


# --- Timelines of known work: weir-gpu timeline FILE --------------------------------------------

MOST_OFF = 0.02  # how far a stretch's recorded time may be off CUDA events'
MOST_OUTSIDE_US = 1000  # how far an operation may lie outside the host's times


def judge_timeline(figures, step):
    # Without CUPTI there is nothing to judge. If CUPTI refuses, nothing is met.
    for key, state in (("no_cupti", LEFT_OUT), ("refused", NOT_MET)):
        if figures.get(key):
            return [(state, figures[key])] * 3
    judged = [judge_it(figures) for judge_it in (judge_counts, judge_times, judge_joins)]
    return unless_failed(judged, step)


def judge_counts(figures):
    wrong, operations = [], 0
    for stretch in figures["stretches"]:
        launched, recorded = stretch["operations"], stretch["recorded"]
        operations += launched
        if launched != recorded:
            wrong.append(f"{stretch['name']}: {number(recorded, 0)} of {number(launched, 0)}")
    for key, what in (("strays", "of nothing known"), ("lost", "events lost")):
        if figures[key] != 0:
            wrong.append(f"{figures[key]} {what}")
    if figures["complete"] is not True:
        wrong.append("the recording has no end")
    if operations == 0:
        wrong.append("nothing was launched")
    return met_if(not wrong), "; ".join(wrong) or f"{number(operations, 0)} kernels and copies"


def judge_times(figures):
    wrong, low, high = [], math.inf, 0
    for stretch in figures["stretches"]:
        if stretch["timed"] is not True:
            continue
        recorded, event = stretch["sum_ms"], stretch["event_ms"]
        ratio = divided(recorded, event)
        low, high = min(low, ratio), max(high, ratio)
        if event <= 0 or not (1 - MOST_OFF) * event <= recorded <= (1 + MOST_OFF) * event:
            wrong.append(f"{stretch['name']} {number(ratio, 3)}")
    if high == 0:
        return NOT_MET, "nothing was timed"
    fits = f"{number(low, 3)} to {number(high, 3)} of the events' times"
    return met_if(not wrong), "; ".join(wrong) or fits


def judge_joins(figures):
    wrong, worst_us = [], 0
    for stretch in figures["stretches"]:
        name, joined, operations = (stretch[key] for key in ("name", "joined", "operations"))
        if joined != operations:
            wrong.append(f"{name}: {joined} of {operations} have their batch")
        if stretch["in_order"] is not True:
            wrong.append(f"{name} is not in order")
        worst_us = max(worst_us, stretch["outside_us"])
    if not figures["stretches"]:
        wrong.append("nothing was launched")
    met = not wrong and worst_us <= MOST_OUTSIDE_US
    if not wrong or worst_us > MOST_OUTSIDE_US:
        wrong.append(f"{number(worst_us, 0)} us outside the host's times at most")
    return met_if(met), "; ".join(wrong)


def timeline_section(figures):
    said = (figures.get(key) for key in ("no_cupti", "refused"))
    rows = ["stretch|operations|recorded|with their batch|CUDA events|recorded, sum|"
            "first begin to last end".split("|")]  # fmt: skip
    for stretch in figures["stretches"]:
        counts = (json.dumps(stretch[key]) for key in ("operations", "recorded", "joined"))
        times = (f"{number(stretch[key], 3)} ms" for key in ("event_ms", "sum_ms", "span_ms"))
        rows.append([stretch["name"], *counts, *times])
    return "".join(f"{why}\n\n" for why in said if why) + markdown_table(rows) + "\n"


# --- The wide network: weir-gpu train wide --json - ---------------------------------------------

# Steps: the precision's name here and in the kernels' names, and the most seconds that it may take
# for WIDE_BATCHES of 128 at the whole width, on an H100 and on an H200.
WIDE = {
    "wide_float32": ("float32", "fp32", 3.5, 3.5),
    "wide_tf32": ("TF32", "tf32", 3.0, 2.5),
}
WIDE_BATCHES = 500
MOST_OF_FLOOR = 1.25
MOST_THROTTLED_IDLE = 0.01
LEAST_HIDDEN = 0.95  # of the time of copies to the device: it also computes meanwhile
# Of each batch; what is smaller is left out.
WIDE_KERNELS = ("adam_rows 250000x1024", "adam 102400000", "csr_forward 128x250000x1024",
                "softmax_loss 128x200000", "softmax_gradient 128x200000")  # fmt: skip
WIDE_PRODUCTS = ("forward", "weight_gradient", "input_gradient")  # of the last layer


def wide_floor_s(evidence, short):
    """Returns the seconds that the batches' kernels take by the floors that `bench` found in this
    run, or None without them."""
    figures = figures_of(evidence, "bench")
    timed = (figures or {}).get("kernels", [])
    floors = {f"{one['name']} {one['shape']}": one["floor_us"] for one in timed}
    wanted = WIDE_KERNELS + tuple(f"{product}_{short} {LAST_LAYER}" for product in WIDE_PRODUCTS)
    if not all(name in floors for name in wanted):
        return None
    return sum(floors[name] for name in wanted) * WIDE_BATCHES / 1e6


def judge_wide(evidence, name):
    _, short, on_h100, on_h200 = WIDE[name]

    def judge_it(figures, step):
        run = figures["result"]
        seconds = run["seconds"]
        most = on_h200 if "H200" in device_name(evidence) else on_h100
        whole = run["outcome"] == "finished" and run["batches"] == WIDE_BATCHES
        took = f"{number(seconds, 2)} s for {run['batches']} batches, {run['outcome']}"
        time = met_if(whole and seconds <= most), f"{took}; at most {number(most, 1)} s"
        floor_s = wide_floor_s(evidence, short)
        floor = LEFT_OUT, "bench did not time its kernels"
        if floor_s is not None:
            ratio = seconds / floor_s
            figure = f"{number(ratio, 2)} times {number(floor_s, 2)} s"
            floor = met_if(whole and ratio <= MOST_OF_FLOOR), figure
        idle = run["throttle_caused_idle"]["share"]
        throttled = met_if(whole and idle <= MOST_THROTTLED_IDLE), percent(idle, 1)
        hidden = judge_hidden(run.get("copies_hidden"), figures.get("timeline"), whole)
        pinned = LEFT_OUT, "the run did not say it"
        if "host_memory" in run:
            later = run["host_memory"]["later_bytes"]
            pinned = met_if(whole and later == 0), pinned_figure(run["host_memory"])
        return unless_failed([time, floor, throttled, hidden, pinned], step)

    return judge_it


def judge_hidden(hidden, timeline, whole):
    """Judges the copies by the run's timeline, which needs CUPTI. Events that were lost are copies
    and kernels that are not in the share."""
    if hidden is None:
        why = (timeline or {}).get("note") if timeline else "there is no timeline"
        return (LEFT_OUT, why) if why else (NOT_MET, "no copy was recorded")
    met = whole and hidden["share"] >= LEAST_HIDDEN and timeline["lost"] == 0
    lost = f"; {counted(timeline['lost'], 'event')} lost" if timeline["lost"] else ""
    return met_if(met), hidden_figure(hidden) + lost


def hidden_figure(hidden):
    return f"{percent(hidden['share'], 1)} of {number(hidden['copying_ns'] / 1e6, 1)} ms"


def pinned_figure(memory):
    return f"{size(memory['warm_up_bytes'])}, {size(memory['later_bytes'])} later"


def wide_section(figures):
    run = figures["result"]
    rows = ["batches/s|time|idle|copied to the device|copies hidden|host memory pinned|peak reserved|"
            "precision@1, test".split("|")]  # fmt: skip
    hidden, memory = run.get("copies_hidden"), run.get("host_memory")
    rows.append([
        number(run["batches_per_second"], 1), f"{number(run['seconds'], 2)} s",
        percent(run["idle_share"], 1), size(run["copied_to_device"]["bytes"]),
        hidden_figure(hidden) if hidden else "-", pinned_figure(memory) if memory else "-",
        size(run["peak_reserved_bytes"]), percent(run["test_accuracy"], 1),
    ])  # fmt: skip
    return f"{code(settings_text(figures['settings']))}\n\n{markdown_table(rows)}\n"


# --- What a recording costs weir-train: tools/gpu_check/timeline_cost ---------------------------

MOST_COST = 1.03  # time with a recording / time without
LEAST_PAIRS = 3  # of runs; fewer say little


def judge_recording_cost(figures, step):
    why, costs, records, ran = figures.get("why", ""), [], True, True
    for pair in figures["pairs"]:
        ran = ran and pair["plain"] > 0 and pair["recorded"] > 0
        costs.append(pair["plain"] / pair["recorded"] if ran else 0)
        records = records and pair["kernels"] != 0 and pair["lost"] == 0
    if not (costs and records) and "was not found" in why:
        return [(LEFT_OUT, why)]
    costs.sort()
    met, figure = False, "no pair of runs"
    if costs:
        median = (costs[(len(costs) - 1) // 2] + costs[len(costs) // 2]) / 2
        met = records and ran and len(costs) >= LEAST_PAIRS and median <= MOST_COST
        pairs = counted(len(costs), "pair")
        figure = f"{spread(median, costs[0], costs[-1])} times as long in {pairs}"
    if not records:
        figure += "; kernels are missing" + (why and f": {why}")
    if not ran:
        figure += "; a run trained nothing"
    return unless_failed([(met_if(met), figure)], step)


def timeline_cost_section(figures):
    rows = ["batches/s without|with a recording|kernels recorded|events lost".split("|")]
    for pair in figures["pairs"]:
        rates = (number(pair[key], 1) for key in ("plain", "recorded"))
        rows.append([*rates, *(json.dumps(pair[key]) for key in ("kernels", "lost"))])
    return markdown_table(rows) + "\n"


# --- PyTorch under recordings: tools/gpu_check/programs/record_all.py ---------------------------

LEAST_PROFILED = 0.99  # kernels that torch.profiler sees beside a recording / alone


def read_recorded_runs(figures):
    """Returns why no program could run, if so, and the runs."""
    return figures.get("left_out", ""), [read_recorded_run(found) for found in figures["runs"]]


def read_recorded_run(found):
    run = SimpleNamespace(setup=found["setup"], left_out=found.get("left_out", ""))
    run.losses, run.lines, run.profiled, run.page_bytes, run.other_bytes = [], [], 0, 0, 0
    run.activity, run.fault, run.said = None, "", ""
    if run.left_out:
        run.outcome = f"left out: {run.left_out}"
        return run
    printed = found.get("printed")
    if isinstance(printed, dict):
        run.losses, run.profiled = printed.get("losses", []), printed.get("profiled_kernels", 0)
    run.page_bytes = found.get("page_bytes", 0)
    run.other_bytes = found.get("other_report_bytes", 0)
    run.lines = found.get("lines", [])  # on standard error that mention a profiler
    run.said = f"it says: {run.lines[0]}" if run.lines else "nothing says why"
    run.activity = found.get("timeline")  # of `weir-gpu timeline count`
    run.outcome = outcome_of_run(found)
    run.finished = run.outcome == "finished"
    run.fault = fault_of(run)
    if run.activity:
        counts = (number(run.activity[key], 0) for key in ("kernels", "copies"))
        run.counts = "{} kernels, {} copies".format(*counts)
    return run


def outcome_of_run(found):
    exit_code, said = found["exit_code"], found.get("said", "")
    if exit_code is None:
        return f"not run: {said}"
    if found.get("stopped"):
        return "stopped at its limit"
    return f"failed (exit {exit_code}): {said}" if exit_code else "finished"


def fault_of(run):
    """Returns why a recording is incomplete, or nothing."""
    if not run.finished:
        return run.outcome
    if run.activity is None:
        return f"there is no timeline; {run.said}"
    if run.activity["kernels"] == 0:
        return f"no kernel was recorded; {run.said}"
    if run.activity["complete"] is not True:
        return "the recording was cut"
    lost = run.activity["lost"]
    return f"{number(lost, 0)} events lost" if lost > 0 else ""


def judge_recorded_programs(figures, step):
    left_out, all_runs = read_recorded_runs(figures)
    if left_out:
        return [(LEFT_OUT, left_out)] * 4
    runs = {run.setup: run for run in reversed(all_runs)}
    plain, inside, outside = (runs.get(setup) for setup in ("plain", "inside", "outside"))
    alone, beside = (run.profiled if run else 0 for run in (plain, inside))
    works = beside >= LEAST_PROFILED * alone
    seen = f"torch.profiler has {number(beside, 0)} of {number(alone, 0)}"
    profiler = judge_beside(inside, works, seen)
    if alone == 0:
        profiler = LEFT_OUT, "torch.profiler sees no kernel without Weir either"
    nsys = outside is not None and outside.other_bytes > 0
    judged = [
        judge_recorded(runs.get("recorded"), plain),
        judge_recorded(runs.get("injected"), plain),
        profiler,
        judge_beside(outside, nsys, "nsys has its report" if nsys else "nsys has no report"),
    ]
    return [one if one[0] == LEFT_OUT else unless_failed([one], step)[0] for one in judged]


def judge_recorded(run, plain):
    if run is None or run.left_out:
        return (LEFT_OUT, run.left_out) if run else (NOT_MET, "not run")
    fault = run.fault
    if not fault and (plain is None or plain.losses != run.losses):
        fault = "losses differ from those without it"
    if not fault and run.setup == "recorded" and run.page_bytes == 0:
        fault = "no page"
    if fault:
        return NOT_MET, fault
    page = f", a page of {size(run.page_bytes)}" if run.page_bytes > 0 else ""
    return MET, run.counts + page


def judge_beside(run, other_works, other):
    """Judges two profilers at once: each is complete, or a line says why not."""
    if run is None or run.left_out:
        return (LEFT_OUT, run.left_out) if run else (NOT_MET, "not run")
    if not run.finished:
        return NOT_MET, run.outcome
    both = f"{other}; the timeline {run.fault or 'has ' + run.counts}"
    if other_works and not run.fault:
        return MET, both
    return met_if(run.lines), f"{both}; {run.said}"


def timeline_programs_section(figures):
    left_out, runs = read_recorded_runs(figures)
    if left_out:
        return f"Left out: {left_out}.\n\n"
    rows = ["run|result|kernels recorded|copies|events lost|of torch.profiler|it says".split("|")]
    for run in runs:
        counts = ["", "", ""]
        if run.activity:
            counts = [number(run.activity[key], 0) for key in ("kernels", "copies", "lost")]
        profiled = number(run.profiled, 0) if run.profiled > 0 else ""
        rows.append([run.setup, run.outcome, *counts, profiled, (run.lines or [""])[0]])
    return markdown_table(rows) + "\n"


# --- Unmodified programs: tools/gpu_check/programs/run_all.py -----------------------------------

SETUPS = {
    "plain": "as it is",
    "enough": "as it is, enough memory",
    "plain_async": "in stream order",
    "weir": "with Weir",
    "weir_async": "with Weir, in stream order",
    "weir_best_fit": "with Weir, in stream order, pool best_fit",
    "weir_batches": "with Weir, in stream order, batches by NVTX",
    "weir_pluggable": "with Weir, pluggable allocator",
    "weir_plug": "with Weir's plug",
}
MOST_OF_NATIVE = 1.01  # the time with the plug / without Weir
NO_PLUG = "there is no plug for it"  # tools/preload/hooks/torch_plug.cpp
LEAST_SERVED = 0.99  # share of the device memory that Weir could serve
SHARING = 8  # processes on one GPU, as in plan.py
OUT_OF_MEMORY = 75  # as in harness.py


def read_summary(summary):
    """Returns the figures of `weir run --json`, summed over the program's devices."""
    if not summary or not summary["devices"]:
        raise ValueError("there is none" if summary is None else "it names no device")
    weir = SimpleNamespace(served=0, passed=0, other=0, peak=0, budget=0, waits=0, waited_s=0)
    for device in summary["devices"]:
        pool = device["pool"]
        weir.served += device["served_bytes"]
        for passed in device["passed"]:
            if passed["counted"] is not True:
                continue
            # Weir cannot lay these out: a graph's allocations are its own nodes, and who maps memory
            # by handles chooses the addresses (JAX's own allocators).
            if passed["kind"] in ("modules", "contexts", "graphs", "mappable"):
                weir.other += passed["sum_bytes"]
            else:
                weir.passed += passed["sum_bytes"]
        weir.peak += pool["reserved_bytes"]["peak"]
        weir.budget += device["budget_bytes"]
        weir.waits += pool["waits"]
        weir.waited_s += pool["waited_ns"] / 1e9
        for held_back in (device["paced"], device["batches"]):  # launches and batches
            weir.waits += held_back["count"]
            weir.waited_s += held_back["total_ns"] / 1e9
    could_serve = weir.served + weir.passed
    weir.share = weir.served / could_serve if could_serve > 0 else None
    return weir


def read_run(found):
    """Returns a run of a program, with its own output and Weir's summary."""
    run = SimpleNamespace(setup=found["setup"], title=SETUPS.get(found["setup"], found["setup"]))
    run.has_weir = run.setup.startswith("weir")
    run.without = "plain_async" if run.setup.endswith("_async") else "plain"
    run.exit_code, run.stopped = found.get("exit_code"), found.get("stopped", False)
    printed = found.get("printed")
    printed = printed if isinstance(printed, dict) else {}
    run.framework, run.losses = printed.get("framework", ""), printed.get("losses", [])
    numbers = (printed.get(key) for key in ("seconds", "peak_reserved_bytes"))
    run.seconds, run.peak = (one if isinstance(one, (int, float)) else None for one in numbers)
    result, said = printed.get("outcome", ""), found.get("said", "")
    run.finished = run.exit_code == 0 and result == "finished"
    run.ran_out = run.exit_code == OUT_OF_MEMORY and result == "out of memory"
    run.outcome = f"failed (exit {run.exit_code})" + (said and f": {said}")
    if run.exit_code is None:
        run.outcome = f"not run: {said}"
    elif run.stopped:
        run.outcome = "stopped at its limit"
    elif run.finished or run.ran_out:
        run.outcome = result
    run.plug = found.get("plug") or ""
    run.weir, run.unreadable = None, ""
    if "summary" in found:
        try:
            run.weir = read_summary(found["summary"])
        except ValueError as error:
            run.unreadable = str(error)
        except Exception as error:  # whatever it wrote
            run.unreadable = repr(error)
    run.share = run.weir.share if run.weir else None
    return run


def read_programs(figures):
    """Returns by name why each program could not run, if so, and its runs."""
    programs = {}
    for found in reversed(figures["programs"]):
        runs = [read_run(run) for run in found["runs"]]
        programs[found["name"]] = found.get("left_out", ""), runs
    return programs


def find_run(runs, setup):
    return next((run for run in runs if run.setup == setup), None)


def outcome_of(run):
    return run.outcome if run else "not run"


def same_losses(a, b):
    return bool(a.losses) and a.losses == b.losses


def first_difference(a, b):
    """Returns the first step at which the losses of two runs differ."""
    steps = min(len(a.losses), len(b.losses))
    return next((step for step in range(steps) if a.losses[step] != b.losses[step]), steps)


def judge_program(name, judges):
    """Returns a judge of the program `name`, with one condition for each of `judges(runs)`.

    Leaves out a program whose framework is missing. A program that was not reached is not met.
    """

    def judge_it(figures, step):
        left_out, runs = read_programs(figures).get(name, ("", None))
        if left_out:
            return [(LEFT_OUT, left_out)] * len(judges)
        if runs is not None:
            return [judge_one(runs) for judge_one in judges]
        if name in figures.get("planned", [name]):  # without a plan, all are planned
            return [(NOT_MET, f"not run; the step {step.describe()}")] * len(judges)
        return [(LEFT_OUT, "not among the programs of this call")] * len(judges)

    return judge_it


def judge_same(runs):
    wrong, not_compared, compared, steps = [], [], 0, 0
    for run in runs:
        if not run.has_weir:
            continue
        plain = find_run(runs, run.without)
        # A failure without Weir says nothing about Weir. A run that was stopped did not fail.
        if plain and plain.exit_code is not None and not plain.stopped and not plain.finished:
            why = f"without Weir it {plain.outcome}"
            not_compared.append(f"{run.title} is compared with nothing: {why}")
        elif not run.finished:
            wrong.append(f"{run.title}: {run.outcome}")
        elif not plain or not plain.finished:
            wrong.append(f"{run.title}: without Weir {outcome_of(plain)}")
        elif not same_losses(run, plain):
            wrong.append(f"{run.title} differs from step {first_difference(run, plain)}")
        else:
            compared, steps = compared + 1, len(run.losses)
    if wrong:
        plain, in_order = find_run(runs, "plain"), find_run(runs, "plain_async")
        if plain and in_order and plain.finished and in_order.finished:
            if not same_losses(plain, in_order):
                wrong.append("two runs without Weir differ too")
        return NOT_MET, "; ".join(wrong)
    if compared == 0:
        state = LEFT_OUT if not_compared else NOT_MET
        return state, "; ".join(not_compared) or "nothing was compared"
    same = f"bit-identical over {counted(steps, 'step')} in {counted(compared, 'run')} with Weir"
    return MET, "; ".join([same, *not_compared])


def judge_served(runs):
    shares, enough = [], True
    for run in runs:
        if not run.has_weir:
            continue
        enough = enough and run.share is not None and run.share >= LEAST_SERVED
        figure = f"no summary: {run.unreadable}" if run.unreadable else "no memory"
        if run.exit_code is None:
            figure = run.outcome
        if run.share is not None:
            figure = percent(run.share, 2)
        shares.append(f"{run.title} {figure}")
    return met_if(enough and shares), "; ".join(shares) or "no run with Weir"


def judge_plugged(runs):
    run = find_run(runs, "weir_plug")
    return met_if(run and " allocates by " in run.plug), run and run.plug or "no line says so"


def judge_plug_time(runs):
    run, plain = find_run(runs, "weir_plug"), find_run(runs, "plain")
    if not (run and plain and run.finished and plain.finished and run.seconds and plain.seconds):
        return NOT_MET, f"with the plug {outcome_of(run)}; without Weir {outcome_of(plain)}"
    ratio = run.seconds / plain.seconds
    return met_if(ratio <= MOST_OF_NATIVE), f"{number(ratio, 3)} times"


def if_plugged(judge_one):
    """Judges nothing where the machine's PyTorch is of a version that has no plug here."""

    def judge_it(runs):
        run = find_run(runs, "weir_plug")
        if run and NO_PLUG in run.plug:
            return LEFT_OUT, run.plug
        return judge_one(runs)

    return judge_it


def judge_dies(runs):
    plain, in_order = find_run(runs, "plain"), find_run(runs, "plain_async")
    dies = plain and in_order and plain.ran_out and in_order.ran_out
    return met_if(dies), f"{outcome_of(plain)}; in stream order {outcome_of(in_order)}"


def judge_lives(setup):
    """Judges whether `setup` finishes with the losses of the run with enough memory."""

    def judge_it(runs):
        run, enough = find_run(runs, setup), find_run(runs, "enough")
        if not run or not run.finished:
            return NOT_MET, outcome_of(run)
        if not enough or not enough.finished:
            return NOT_MET, f"finished; with enough memory {outcome_of(enough)}"
        same = same_losses(run, enough)
        figure = "finished, losses bit-identical to those with enough memory"
        if not same:
            figure = f"finished, losses differ from step {first_difference(run, enough)}"
        if run.weir:
            waits = counted(run.weir.waits, "wait")
            figure += f", {waits} of {number(run.weir.waited_s, 2)} s together"
        return met_if(same), figure

    return judge_it


def judge_shared(runs):
    plain, good, wrong = find_run(runs, "plain"), 0, []
    for run in runs:
        if not run.has_weir:
            continue
        if not run.finished:
            wrong.append(run.outcome)
        elif not run.weir:
            wrong.append(f"no summary: {run.unreadable}")
        elif run.weir.peak > run.weir.budget:
            wrong.append("reserved more than its budget")
        elif not plain or not same_losses(run, plain):
            wrong.append("losses differ from those of a process alone")
        else:
            good += 1
    figure = f"{good} of {SHARING} finished within their budgets with the same losses"
    return met_if(good == SHARING and not wrong), "; ".join([figure, *wrong])


def programs_section(figures):
    programs = read_programs(figures)
    return "".join(
        f"### {title}\n\n{program_table(*programs.get(name, ('', None)))}\n"
        for name, title in PROGRAMS.items()
    )


def program_table(left_out, runs):
    if left_out or runs is None:
        return f"Left out: {left_out}.\n" if left_out else "Not run.\n"
    rows = ["setup|result|time|to without Weir|reserved by the framework|reserved by Weir|"
            "served by Weir|waits".split("|")]  # fmt: skip
    rows += [program_row(run, find_run(runs, run.without)) for run in runs]
    framework = next((run.framework for run in runs if run.framework), "")
    return (framework and f"{framework}.\n\n") + markdown_table(rows)


def program_row(run, plain):
    timed = run.has_weir and run.seconds is not None and plain and plain.seconds
    served = "-" if run.share is None else percent(run.share, 2)
    waits = f"{run.weir.waits}, {number(run.weir.waited_s, 2)} s" if run.weir else ""
    return [
        run.title,
        run.outcome,
        "" if run.seconds is None else f"{number(run.seconds, 3)} s",
        number(run.seconds / plain.seconds, 3) if timed and plain.seconds > 0 else "",
        "" if run.peak is None else size(run.peak),
        size(run.weir.peak) if run.weir else "",
        served if run.has_weir else "",
        waits,
    ]


# --- The conditions -----------------------------------------------------------------------------

COMPARISONS = {
    "compare_x1_drawn": "d2l size, inputs drawn on the device",
    "compare_x1_ring": "d2l size, inputs from a ring of pinned batches",
    "compare_x16_drawn": "16 times the width, inputs drawn on the device",
    "compare_x16_ring": "16 times the width, inputs from a ring of pinned batches",
}
# Each with and without Weir: the same losses, and Weir serves the memory.
TRAINING_PROGRAMS = {
    "torch_resnet": "PyTorch, residual network",
    "torch_gpt": "PyTorch, transformer",
    "torch_graphs": "PyTorch, captured step",
    "torch_workers": "PyTorch, forked workers",
    "torch_compile": "PyTorch, torch.compile",
    "cupy_loop": "CuPy, products",
    "jax_train": "JAX, dense network",
}
# Each without Weir and with its plug for PyTorch.
PLUG_PROGRAMS = {
    "plug_resnet": "Weir's plug, residual network",
    "plug_gpt": "Weir's plug, transformer",
    "plug_graphs": "Weir's plug, captured step",
    "plug_workers": "Weir's plug, forked workers",
    "plug_compile": "Weir's plug, torch.compile",
    "plug_sharing": "Weir's plug, tensors shared with a second process",
    "plug_prefetch": "Weir's plug, prefetching",
}
PROGRAMS = {
    **TRAINING_PROGRAMS,
    "torch_prefetch": "PyTorch, prefetching",
    "torch_shared": "PyTorch, 8 processes",
    **PLUG_PROGRAMS,
}


def judge(evidence):
    """Returns every condition, always in the same order."""
    verdicts = []

    def check(step, judge_it, *conditions, title=""):
        what = [title + condition for condition in conditions]
        verdicts.extend(judge_step(evidence, step, what, judge_it))

    check("tests", judge_tests, "every test labelled gpu passes")
    for tool in ("memcheck", "racecheck"):
        verdicts += judge_sanitizer(evidence, tool)
    for step, title in COMPARISONS.items():
        check(
            step,
            judge_comparison,
            f"throttled is at least {number(LEAST_RATIO, 2)} of unbounded",
            f"throttled is at least {number(LEAST_OF_PLAIN, 2)} of a CUDA loop without Weir",
            "throttled is above the barrier",
            "unbounded runs out of memory at the same budget",
            "weights are bit-identical over the policies",
            title=f"{title}: ",
        )
    check("bench", judge_bench, "each kernel's time over its floor is within its bound")
    for step, (precision, _, _, _) in WIDE.items():
        check(
            step,
            judge_wide(evidence, step),
            f"{WIDE_BATCHES} batches end in time",
            f"at most {number(MOST_OF_FLOOR, 2)} times the floor of their kernels",
            f"throttling leaves the device idle at most {percent(MOST_THROTTLED_IDLE, 0)} of the time",
            f"the device computes during at least {percent(LEAST_HIDDEN, 0)} of the copies to it",
            "no host memory is pinned once the readers have used all their buffers",
            title=f"wide network, {precision}: ",
        )
    check("facts", judge_facts, "what only a GPU can tell is answered, and as Weir counts on")
    check(
        "traces",
        judge_traces,
        "every trace completes on the device",
        f"paged reserves at most {number(MOST_RESERVED, 2)} of the peak requested there, "
        "and two pages",
    )
    check(
        "timeline",
        judge_timeline,
        "recorded kernels and copies equal those launched",
        f"their times are within {percent(MOST_OFF, 0)} of CUDA events",
        "each is in its batch, in order, and within the host's times around it",
        title="timeline: ",
    )
    check(
        "timeline_cost",
        judge_recording_cost,
        f"a recording costs at most {percent(MOST_COST - 1, 0)} of weir-train's throughput",
        title="timeline: ",
    )
    check(
        "timeline_programs",
        judge_recorded_programs,
        "PyTorch under weir timeline record is recorded, and has a page",
        "PyTorch with libweir_timeline.so alone is recorded",
        "torch.profiler inside works, or a line says why not",
        "nsys outside works, or a line says why not",
        title="timeline: ",
    )
    for name, title in PROGRAMS.items():
        judges = {
            "the same losses with Weir as without": judge_same,
            f"Weir serves at least {percent(LEAST_SERVED, 0)} of what it can": judge_served,
        }
        if name == "torch_prefetch":
            judges = {
                "runs out of memory without Weir": judge_dies,
                "finishes in the same memory with Weir": judge_lives("weir_async"),
                "finishes there with batches marked by NVTX": judge_lives("weir_batches"),
            }
        elif name == "torch_shared":
            judges = {"all finish, each under a budget of its own": judge_shared}
        elif name == "plug_prefetch":
            judges = {"finishes in memory that is not enough without Weir": judge_lives("weir_plug")}
        elif name in PLUG_PROGRAMS:
            judges[f"at most {number(MOST_OF_NATIVE, 2)} times the time without Weir"] = judge_plug_time
        if name in PLUG_PROGRAMS:
            judges = {"PyTorch allocates by the plug": judge_plugged, **judges}
            judges = {what: if_plugged(judge_one) for what, judge_one in judges.items()}
        judge_it = judge_program(name, list(judges.values()))
        check("programs", judge_it, *judges, title=f"{title}: ")
    return verdicts


def holds(verdicts):
    return all(verdict.state != NOT_MET for verdict in verdicts)


def verdict_lines(verdicts):
    return "".join(f"{one.state:<10}{one.condition}: {one.figure}\n" for one in verdicts)


# --- The page -----------------------------------------------------------------------------------


def page_name(evidence):
    """Returns the name of the page's files, without their endings.

    `gpu-DEVICE-DATE`, followed by the call's name unless it was a whole first one. A rehearsal's
    name begins with `rehearsal-`.
    """
    call = evidence.get("call", "")
    kind = "rehearsal" if is_rehearsal(evidence) else "gpu"
    return f"{kind}-{device_slug(evidence)}-{evidence.get('date', '')}" + (call and f"-{call}")


def page(evidence, verdicts, json_name):
    """Returns the page in Markdown. `json_name` is the file beside it with the same figures."""

    def sections(title, **writers):
        written = (section(evidence, name, write) for name, write in writers.items())
        return f"## {title}\n\n{''.join(written)}"

    def policies(name, title):
        return f"### {title}\n\n{section(evidence, name, comparison_section)}"

    parts = [
        heading(evidence),
        f"Written by `tools/gpu-check`; [{json_name}]({json_name}) has the same figures.\n\n",
        machine_table(evidence),
        f"\n## Conditions\n\n{markdown_table([('condition', 'verdict', 'found'), *verdicts])}",
        "\n## Policies\n\n",
        *(policies(name, title) for name, title in COMPARISONS.items()),
        sections("Kernels", bench=kernels_section),
        sections("Wide network", **dict.fromkeys(WIDE, wide_section)),
        sections("Unmodified programs", programs=programs_section),
        sections("Facts", facts=facts_section),
        sections("Traces", traces=traces_section),
        sections(
            "Timelines",
            timeline=timeline_section,
            timeline_cost=timeline_cost_section,
            timeline_programs=timeline_programs_section,
        ),
        sections("Tests", tests=tests_section),
        f"## Steps\n\n{steps_table(evidence)}",
    ]
    return "".join(parts)


def section(evidence, name, write):
    """Returns the section, or why it is missing: bad input from a step must not stop the page."""
    figures = figures_of(evidence, name)
    if figures is None:
        return f"No figures: {step_of(evidence, name).describe()}.\n\n"
    try:
        return write(figures)
    except Exception as error:  # whatever a step wrote
        return f"The figures of step {code(name)} are not as expected: {error!r}\n\n"


def heading(evidence):
    call = evidence.get("call", "")
    call = call and (", all calls" if call == ALL_CALLS else f", only {call}")
    what = f"{device_name(evidence)}, {evidence.get('date', '')}{call}\n\n"
    if not is_rehearsal(evidence):
        return f"# {what}"
    nothing = "Nothing here ran on a GPU, and no figure tells anything of one.\n\n"
    return f"# Rehearsal, without a GPU: {what}{nothing}"


def commit_note(commit):
    """Returns the commit, with a note if two builds of that name may differ."""
    may_differ = "calls may be of different code"
    if commit.endswith("-dirty"):
        return f"{commit}, of a tree with uncommitted changes: {may_differ}"
    return f"{commit}: {may_differ}" if commit == "unknown" else commit


def machine_table(evidence):
    machine = evidence["machine"]
    keys = ("driver", "driver_cuda", "toolkit", "runtime", "cublas", "commit")
    driver, cuda, toolkit, runtime, cublas, commit = (machine.get(key, "") for key in keys)
    rows = [["", ""]]
    for gpu in machine["gpus"]:
        capability = f"compute capability {gpu['compute_capability']}"
        processors = f"{json.dumps(gpu['multiprocessors'])} multiprocessors"
        memory = size(gpu["memory_bytes"])
        rows.append(["device", f"{gpu['name']}, {memory}, {capability}, {processors}"])
    rows.append(["driver", f"{driver or 'of unknown version'}, for CUDA {cuda}"])
    rows.append(["toolkit", f"{toolkit}, runtime {runtime}"])
    rows.append(["matrix products", cublas])
    settings = machine.get("settings", [])
    if isinstance(settings, dict):
        settings = [f"{name}={setting['value']}" for name, setting in settings.items()]
    for setting in settings:
        rows.append(["set for unmodified programs alone", code(setting)])
    rows.append(["commit", commit_note(commit)])
    rows.append(["date", evidence.get("date", "")])
    return markdown_table(rows)


def steps_table(evidence):
    rows = [["step", "outcome", "seconds", "limit", "command"]]
    for found in evidence["steps"]:
        step = step_of(evidence, found["name"])
        seconds, limit = number(step.seconds, 0), f"{number(step.limit_seconds, 0)} s"
        ran = (seconds, limit, code(step.command)) if step.ran else ("", "", "")
        rows.append([step.name, step.describe(), *ran])
    return markdown_table(rows)


# --- The command --------------------------------------------------------------------------------


def target_of(path, runs):
    """Returns the file to write for `path`. Raises Misused if that is not allowed.

    Keeps a link and replaces its target. Never replaces an input.
    """

    def refuse(want):
        raise Misused(f"OUTPUT-FOLDER='{path}' is not allowed: {want}")

    target = os.path.realpath(path)
    exists = os.path.exists(target)
    if exists and not os.path.isfile(target):
        refuse("a file that can be written (it is none)")
    if not os.access(target if exists else os.path.dirname(target), os.W_OK):
        refuse("a file that can be written (Permission denied)")
    for run in runs if exists else ():
        for one in (run, *map(str, pathlib.Path(run).rglob("*"))):
            if os.path.exists(one) and os.path.samefile(one, target):
                refuse(f"a different file from that of RUN, '{one}', which is read")
    return target


def write_file(target, contents):
    """Replaces the file's contents, completely or not at all."""
    folder, name = os.path.split(target)
    mask = os.umask(0)
    os.umask(mask)
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~mask
    descriptor, partial = tempfile.mkstemp(prefix=name + ".", dir=folder)
    try:
        with open(descriptor, "wb") as out:
            os.fchmod(descriptor, mode)
            out.write(contents)
            out.flush()
            os.fsync(descriptor)
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise


def run_report(words):
    if len(words) < 3:
        raise Misused("RUN... OUTPUT-FOLDER YYYY-MM-DD are needed")
    *runs, folder, date = words
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", date):  # it becomes part of file names
        raise Misused(f"{date!r} is no date YYYY-MM-DD")
    evidence = merge_calls([read_call(run, date) for run in runs], date)
    verdicts = judge(evidence)
    keys = ("condition", "verdict", "figure")
    evidence["verdicts"] = [dict(zip(keys, verdict)) for verdict in verdicts]

    name = page_name(evidence)
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, name + ending) for ending in (".json", ".md")]
    json_target, page_target = [target_of(path, runs) for path in paths]
    write_file(json_target, json_text(evidence))
    write_file(page_target, to_bytes(page(evidence, verdicts, name + ".json")))
    if sys.stdout is None:
        raise Failed("standard output is closed")
    sys.stdout.buffer.write(to_bytes(verdict_lines(verdicts) + "\n" + "\n".join(paths) + "\n"))
    sys.stdout.flush()
    return 0 if holds(verdicts) else 1


def main(words):
    if words in (["-h"], ["--help"]):
        print(__doc__, end="")
        return 0
    try:
        return run_report(words)
    except Misused as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    except (Failed, OSError) as error:
        print(f"report.py: {error}", file=sys.stderr)
    except Exception as error:  # whatever the calls' documents are
        print(f"report.py: what the calls left is not as expected: {error!r}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

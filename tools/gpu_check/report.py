#!/usr/bin/env python3
"""Makes one page of calls of tools/gpu-check.

    report.py CALL... OUTPUT-FOLDER YYYY-MM-DD

CALL is the JSON file beside an earlier page, or a folder that was unpacked from a call's logs (call.json).

Writes the JSON file with all figures and the page in Markdown, and prints each condition with its verdict. The last
run of a step or program counts. Exit code 1 when a condition is not met or there is nothing to report on, 2 on
misuse. Needs only Python 3.8 and its standard library, and no GPU.
"""

import json
import math
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # do not write into the tree
import conditions  # noqa: E402
import unmodified_conditions as unmodified  # noqa: E402
from written import outcome  # noqa: E402

MET, NOT_MET, LEFT_OUT = "met", "NOT MET", "left out"
VERDICTS = {True: MET, False: NOT_MET, None: LEFT_OUT}


class Failed(Exception):
    """There is nothing to report on, or it cannot be written."""


# --- Calls ---------------------------------------------------------------------------------------


def read_call(path):
    """Returns the document of a call."""
    file = pathlib.Path(path, "call.json" if os.path.isdir(path) else "")
    try:
        call = json.loads(file.read_text("utf-8", "replace"))
    except OSError as error:
        raise Failed(f"cannot read {path}") from error
    except (ValueError, RecursionError):
        call = None
    if not isinstance(call, dict) or "machine" not in call or not isinstance(call.get("steps"), list):
        raise Failed(f"{path} is not what tools/gpu-check wrote")
    return call


def identity(call):
    """Returns what figures were measured on. A page may not mix two of these."""
    machine = call["machine"]
    if not machine.get("gpus"):
        raise Failed("a call names no GPU: nothing ran on one")
    rehearsal = ", a rehearsal" if machine.get("rehearsal") else ""
    return f"{machine['gpus'][0]['name']}, driver {machine.get('driver')}, commit {machine.get('commit')}{rehearsal}"


def merge(calls, date):
    """Returns one document of calls. A single one stays as it is."""
    names = {identity(call) for call in calls}
    if len(names) != 1:
        raise Failed(f"no page is of two machines or builds: {'; and '.join(sorted(names))}" if names else "no call")
    if len(calls) == 1:
        return calls[0]
    steps = {}
    for later in (step for call in calls for step in call["steps"]):
        earlier = steps.get(later["name"])
        if earlier and "figures" in earlier and "figures" in later and later["name"] == "programs":
            later = both(earlier, later)
        if earlier is None or "left_out" in earlier or "left_out" not in later:
            steps[later["name"]] = later
    # What no call planned counts as planned, since the page now covers everything.
    figures = steps.get("programs", {}).get("figures", {})
    if figures:
        steps["programs"] = {**steps["programs"], "figures": {"programs": figures["programs"]}}
    return {"date": date, "call": "all", "machine": calls[0]["machine"], "steps": list(steps.values())}


def both(earlier, later):
    """Returns the step `programs` of two calls. A fault of the earlier one is kept."""
    ran = {one["name"]: one for step in (earlier, later) for one in step["figures"]["programs"]}
    total = {key: earlier[key] + later[key] for key in ("seconds", "limit_seconds")}
    return {**(earlier if outcome(earlier) != "ok" else later), **total, "figures": {"programs": list(ran.values())}}


# --- Verdicts ------------------------------------------------------------------------------------


def judge(call):
    """Returns (condition, verdict, figure) of every condition, always in the same order."""
    steps = {step["name"]: step for step in call["steps"]}
    verdicts = []
    for condition in conditions.CONDITIONS:
        step = steps.get(condition.step)
        met, figure = no_figures(step)
        if step and step.get("figures") is not None:
            try:
                met, figure = condition.judge(step["figures"], call)
            except Exception as error:  # noqa: BLE001: whatever a step wrote
                met, figure = False, f"its figures are not as expected: {error!r}"
            if met is not None and outcome(step) != "ok" and not (met and condition.of_failed):
                met, figure = False, f"{figure}; the step {outcome(step)}"
            if isinstance(step["figures"], dict) and step["figures"].get("cut"):
                met, figure = False, f"{figure}; its figures are cut"
        verdicts.append((condition.name, VERDICTS[met if met is None else bool(met)], figure))
    return verdicts


def no_figures(step):
    if not step or "left_out" in step:
        return None, step["left_out"] if step else "no step of this name was run"
    return False, outcome(step) if outcome(step) != "ok" else "it wrote no figures"


# --- The page ------------------------------------------------------------------------------------


def shown(key, value):
    """Formats a figure by the unit that ends its name (docs/output.md)."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number:
        return "" if value is None else str(value) if isinstance(value, str) else json.dumps(value)
    if key.endswith("_bytes"):
        return unmodified.size(value)
    if key.endswith("_share"):
        return f"{value:.2%}"
    for unit, digits in (("_us", 1), ("_ms", 3), ("_seconds", 3), ("seconds", 3)):
        if key.endswith(unit):
            text = str(value) if isinstance(value, int) else f"{value:.{digits}f}"
            return f"{text} {unit.lstrip('_').replace('seconds', 's')}"
    return str(value) if isinstance(value, int) else f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}"


def table(rows):
    """Returns objects as a table in Markdown: their keys are the heading. Escapes what would end a cell."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = [keys, ["---"] * len(keys), *([shown(key, row.get(key)) for key in keys] for row in rows)]
    lines = (" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in cells)
    return "".join(f"| {line} |\n" for line in lines)


def pick(row, *paths):
    """Returns what stands at paths like `last_run.outcome` in an object."""
    found = {}
    for path in paths:
        value = row
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        found[path.replace("last_run.", "")] = value
    return found


def policies(figures):
    wanted = ("batches_per_second", "ratio_to_reference", "ratio_low", "ratio_high", "to_plain.ratio", "host_us",
              "last_run.peak_reserved_bytes", "idle_share", "last_run.outcome")  # fmt: skip
    lines = [("unbounded, enough memory", figures["reference"]), ("without Weir", figures["plain"]),
             *((one["policy"], one) for one in figures["policies"])]  # fmt: skip
    return [{"policy": name, **pick(one, *wanted), **pick(one, "left_out")} for name, one in lines]


def kernels(figures):
    for kernel in figures["kernels"]:
        most, why = conditions.bound_of(kernel)
        judged = {} if kernel["name"] == kernel["floor_of"] else {
            "over_floor": kernel["median_us"] / kernel["floor_us"], "at_most": most, "why": why}  # fmt: skip
        yield {**pick(kernel, "name", "shape", "median_us", "floor_us", "floor_of"), **judged}


def wide(figures):
    return [pick(figures["result"], "batches_per_second", "seconds", "idle_share", "copied_to_device.bytes",
                 "peak_reserved_bytes", "test_accuracy")]  # fmt: skip


def programs(figures):
    for program in figures["programs"]:
        name = unmodified.PROGRAMS.get(program["name"], (program["name"],))[0]
        for run in program["runs"]:
            plain, weir = unmodified.without(program["runs"], run), unmodified.weir_figures(run)
            seconds, before = unmodified.printed(run, "seconds"), unmodified.printed(plain, "seconds")
            yield {"program": name, "setup": unmodified.title(run), "result": unmodified.run_outcome(run),
                   "seconds": seconds, "to without Weir": weir and seconds and before and seconds / before or None,
                   **pick(run.get("printed") or {}, "peak_reserved_bytes"),
                   "by Weir, peak_bytes": weir.get("peak_bytes"),
                   **pick(weir, "served_share", "waits", "waited_seconds"),
                   **pick(run.get("timeline") or {}, "works", "lost"),
                   "framework": unmodified.printed(run, "framework")}  # fmt: skip


# Which rows of a step's figures the page shows.
TABLES = {
    "tests": lambda figures: [{"test": name, "result": result} for name, result, _ in conditions.tests_of(figures)
                              if result != "passed"],
    "timeline": lambda figures: [{"test": name, "result": result, "found": test.get("found")}
                                 for name, result, test in conditions.tests_of(figures)],
    **dict.fromkeys(conditions.COMPARISONS, policies),
    "bench": kernels,
    **dict.fromkeys(conditions.WIDE, wide),
    "facts": lambda figures: [pick(fact, "fact", "expected", "answer", "otherwise") for fact in figures["facts"]],
    "traces": lambda figures: [pick(one, "trace", "pool", "completed", "reserved_over_requested", "driver_calls",
                                    "mapped_pages", "ns_per_operation") for one in conditions.replays(figures)],
    "timeline_cost": lambda figures: [pick(pair, "plain", "recorded", "works", "lost") for pair in figures["pairs"]],
    "timeline_programs": programs,
    "programs": programs,
}  # fmt: skip


def section(step):
    try:
        rows = list(TABLES[step["name"]](step["figures"]))
        body = table(rows) if rows else "Nothing to show.\n"
    except Exception as error:  # noqa: BLE001: bad input from a step must not stop the page
        body = f"The figures are not as expected: {error!r}\n"
    settings = step["figures"].get("settings") if isinstance(step["figures"], dict) else None
    if isinstance(settings, dict):
        settings = ", ".join(f"{name}={one['value']} ({one['source']})" for name, one in settings.items())
    return f"\n## {step['name']}\n\n" + (f"`{settings}`\n\n" if settings else "") + body


def machine_rows(call):
    machine, rows = call["machine"], {}
    for number, gpu in enumerate(machine["gpus"]):
        rows[f"device {number}"] = (
            f"{gpu['name']}, {unmodified.size(gpu['memory_bytes'])}, compute capability {gpu['compute_capability']}, "
            f"{gpu['multiprocessors']} multiprocessors")  # fmt: skip
    rows["driver"] = f"{machine.get('driver') or 'of unknown version'}, for CUDA {machine.get('driver_cuda')}"
    rows["toolkit"] = f"{machine.get('toolkit')}, runtime {machine.get('runtime')}"
    rows["matrix products"] = machine.get("cublas")
    for name, setting in dict(machine.get("settings") or {}).items():
        rows[f"{name}, for unmodified programs alone"] = setting["value"]
    commit = machine.get("commit", "unknown")
    unsure = ", of a tree with uncommitted changes" if commit.endswith("-dirty") else ""
    rows["commit"] = commit + (f"{unsure}: calls may be of different code" if unsure or commit == "unknown" else "")
    rows["date"] = call.get("date")
    return [{"machine": name, "": value} for name, value in rows.items()]


def page(call, verdicts, json_name):
    only = {"": "", "all": ", all calls"}.get(call.get("call", ""), f", only {call.get('call')}")
    what = f"{call['machine']['gpus'][0]['name']}, {call.get('date', '')}{only}\n"
    nothing = "\nNothing here ran on a GPU, and no figure tells anything of one.\n"
    heading = f"# Rehearsal, without a GPU: {what}{nothing}" if call["machine"].get("rehearsal") else f"# {what}"
    steps = [{"step": step["name"], "outcome": outcome(step), **pick(step, "seconds", "limit_seconds", "command")}
             for step in call["steps"]]  # fmt: skip
    parts = [
        f"{heading}\nWritten by `tools/gpu-check`; [{json_name}]({json_name}) has the same figures.\n\n",
        table(machine_rows(call)),
        "\n## Conditions\n\n",
        table([dict(zip(("condition", "verdict", "found"), verdict)) for verdict in verdicts]),
        *(section(step) for name in TABLES for step in call["steps"] if step["name"] == name and step.get("figures")),
        f"\n## Steps\n\n{table(steps)}",
    ]
    return "".join(parts)


def write(calls, folder, date, inputs=()):
    """Writes the page of `calls` and its JSON, and prints the verdicts. Returns whether none is NOT MET, and where."""
    if sys.stdout is None:
        raise Failed("standard output is closed")
    call = merge(calls, date)
    verdicts, machine = judge(call), call["machine"]
    slug = re.sub(r"[^a-z0-9]+", "-", machine["gpus"][0]["name"].lower()).strip("-")
    kind, which = "rehearsal" if machine.get("rehearsal") else "gpu", call.get("call", "")
    target = pathlib.Path(folder) / f"{kind}-{slug}-{call.get('date', date)}{'-' * bool(which)}{which}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    figures = target.with_suffix(".json")
    if figures.exists() and any(os.path.samefile(figures, one) for one in inputs):
        raise Failed(f"{figures} is read and would be replaced: name another folder")
    call["verdicts"] = [dict(zip(("condition", "verdict", "figure"), verdict)) for verdict in verdicts]
    # A line for each step, which is what one compares.
    lines = ",\n ".join(json.dumps(step, sort_keys=True) for step in call["steps"])
    rest = json.dumps({key: value for key, value in call.items() if key != "steps"}, sort_keys=True)
    for path, text in ((figures, f'{rest[:-1]},\n"steps": [\n {lines}\n]}}\n'),
                       (target, page(call, verdicts, figures.name))):  # fmt: skip
        beside = path.with_name(path.name + ".new")  # completely or not at all
        beside.write_text(text, encoding="utf-8", errors="replace")
        os.replace(beside, path)
    print("".join(f"{verdict:<10}{name}: {figure}\n" for name, verdict, figure in verdicts))
    print(figures, target, sep="\n", flush=True)
    return all(verdict != NOT_MET for _, verdict, _ in verdicts), target


def main(words):
    if words in (["-h"], ["--help"]):
        print(__doc__, end="")
        return 0
    *calls, folder, date = words if len(words) >= 3 else ("", "", "")
    if not calls[0] or not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", date):  # it becomes part of file names
        print("report.py: CALL... OUTPUT-FOLDER YYYY-MM-DD are needed", file=sys.stderr)
        return 2
    try:
        return 0 if write([*map(read_call, calls)], folder, date, calls)[0] else 1
    except Exception as error:  # noqa: BLE001: whatever the calls' documents are
        known = isinstance(error, (Failed, OSError))
        print(f"report.py: {error if known else f'the calls are not as expected: {error!r}'}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

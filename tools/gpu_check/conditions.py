"""The conditions of a page of tools/gpu-check: a table of names and pure functions.

A function gets the figures of its step and the whole document. It returns whether the condition is met (None: left
out, because the machine lacks what the text names) and the figure that says so. It may raise: then the figures are of
a wrong shape, and the condition is not met.
"""

import dataclasses
import os
import pathlib
import statistics
import typing

from unmodified_conditions import PROGRAMS, counted, named, of_program, size


@dataclasses.dataclass(frozen=True)
class Condition:
    step: str
    name: str
    judge: typing.Callable
    of_failed: bool = False  # judged even if the step failed, by what it wrote until then


# --- Tests ---------------------------------------------------------------------------------------


def tests_of(figures):
    """Yields (name, result, test): result is passed, failed or skipped."""
    for suite in figures["testsuites"]:
        for test in suite["testsuite"]:
            result = {"COMPLETED": "passed", "SKIPPED": "skipped"}.get(test["result"], "not run")
            yield f"{suite['name']}.{test['name']}", "failed" if "failures" in test else result, test


def all_pass(figures, _):
    results = [result for _, result, _ in tests_of(figures)]
    passed, failed, skipped = (results.count(one) for one in ("passed", "failed", "skipped"))
    return passed > 0 and not failed and not skipped, f"{passed} passed, {failed} failed, {skipped} skipped"


def is_clean(figures, _):
    return "SUMMARY: 0 " in figures["summary"], figures["summary"]


def passes(name):
    """Judges one test, which records what it found or why it was skipped."""

    def judge(figures, _):
        result, test = next((result, test) for one, result, test in tests_of(figures) if one == name)
        said = test.get("found") or (test["failures"][0]["failure"] if result == "failed" else result)
        return None if result == "skipped" else result == "passed", said

    return judge


# --- Comparisons of the policies: weir-train compare --json --------------------------------------

COMPARISONS = {
    "compare_x1_drawn": "d2l size, inputs drawn on the device",
    "compare_x1_ring": "d2l size, inputs from a ring of pinned batches",
    "compare_x16_drawn": "16 times the width, inputs drawn on the device",
    "compare_x16_ring": "16 times the width, inputs from a ring of pinned batches",
}
LEAST_RATIO = 0.99  # throughput, throttled / unbounded with enough memory
LEAST_OF_PLAIN = 0.97  # the same / a training loop that calls CUDA itself


def policy(figures, name):
    return named(figures["policies"], "policy", name)


def ratio(one):
    """Returns the throughput to unbounded with enough memory; 0 if no run finished."""
    return one["ratio_to_reference"] if one["runs"] else 0


def ended(one):
    return one["left_out"] if "left_out" in one else one["last_run"]["outcome"] if one["runs"] else "not run"


def reaches(least, of):
    """Judges throttled's throughput to another's: `of(throttled, plain)` returns the ratio, its minimum and its
    maximum, or nothing."""

    def judge(figures, _):
        one, plain = policy(figures, "throttled"), figures["plain"]
        found = of(one, plain) if ratio(one) else None
        if not found:
            return False, f"throttled {ended(one)}; without Weir {ended(plain)}"
        times = f"host time per batch {one['host_us']:.1f} us, without Weir {plain.get('host_us', 0):.1f} us"
        return found[0] >= least, "{:.3f} ({:.3f} to {:.3f}); ".format(*found) + times

    return judge


def to_unbounded(one, _):
    return ratio(one), one["ratio_low"], one["ratio_high"]


def to_plain(one, plain):
    return None if "left_out" in plain else [one["to_plain"][key] for key in ("ratio", "low", "high")]


def above_barrier(figures, _):
    throttled, barrier = (ratio(policy(figures, name)) for name in ("throttled", "barrier"))
    return throttled > barrier > 0, f"{throttled:.3f} against {barrier:.3f}"


def unbounded_dies(figures, _):
    end = ended(policy(figures, "unbounded"))
    return end.startswith("out of memory"), end


def same_weights(figures, _):
    # The three policies that must work at the budget: fewer would compare too little.
    enough = all(ratio(policy(figures, name)) for name in ("throttled", "barrier", "backstop"))
    same = figures["weights_identical"] is True
    which = f"in the {counted(figures['finished_runs'], 'run')} that finished"
    return enough and same, f"{'' if same else 'NOT '}identical {which}"


# --- Kernels: weir-gpu bench --json --------------------------------------------------------------

# How many times its floor a kernel may take. The floor is the time that its work would take at the
# rate of the device's own copy or product, measured in the same run.
BOUNDS = {"copy": 1.15, "sgemm": 1.1}
# A launch takes some microseconds, more than these bounds allow for a short floor. A kernel of such a shape needs a
# bound by name.
LEAST_FLOOR_US = 20
_LINES = (pathlib.Path(__file__).parent / "bounds.tsv").read_text().splitlines()
NAMED_BOUNDS = {(name, shape): (float(bound), why)
                for name, shape, bound, why in (line.split("\t") for line in _LINES if line[0] != "#")}  # fmt: skip


def bound_of(kernel):
    """Returns the bound (times the floor), or None, and its reason if it has one."""
    found = NAMED_BOUNDS.get((kernel["name"], kernel["shape"]))
    if found or kernel["floor_us"] >= LEAST_FLOOR_US:
        return found or (BOUNDS.get(kernel["floor_of"]), "")
    return None, f"a floor of {kernel['floor_us']:.1f} us is mostly its launch"


def within_bounds(figures, _):
    wrong, over = [], []
    for kernel in figures["kernels"]:
        name, floor = f"{kernel['name']} {kernel['shape']}", kernel["floor_us"]
        if not (kernel["median_us"] > 0 and floor > 0):
            raise ValueError(f"the figures of {name} are no times")
        if kernel["name"] == kernel["floor_of"]:
            continue  # it gives the floor
        most, why = bound_of(kernel)
        over.append((kernel["median_us"] / floor, name))
        if most is None:
            wrong.append(f"{name}: {why or 'no bound for a floor of ' + kernel['floor_of']}")
        elif over[-1][0] > most:
            wrong.append(f"{name} takes {over[-1][0]:.2f} of at most {most:.2f}")
    timed = {(kernel["name"], kernel["shape"]) for kernel in figures["kernels"]}
    wrong += [f"{' '.join(one)} was not timed" for one in NAMED_BOUNDS if one not in timed]
    if wrong or not over:
        return False, "; ".join(wrong) or "no kernel"
    ends = (f"{times:.2f} ({name})" for times, name in (min(over), max(over)))
    return True, f"{counted(len(over), 'kernel')}, {' to '.join(ends)} times the floor"


# --- The wide network: weir-gpu train wide --json ------------------------------------------------

# Steps: the precision's name here and in the kernels' names, and the most seconds that it may take
# for WIDE_BATCHES of 128 at the whole width, on an H100 and on an H200.
WIDE = {"wide_float32": ("float32", "fp32", 3.5, 3.5), "wide_tf32": ("TF32", "tf32", 3.0, 2.5)}
WIDE_BATCHES = 500
MOST_OF_FLOOR = 1.25
MOST_THROTTLED_IDLE = 0.01
LEAST_HIDDEN = 0.95  # of the time of copies to the device: it also computes meanwhile
# Of each batch; what is smaller is left out.
WIDE_KERNELS = ("adam_rows 250000x1024", "adam 102400000", "csr_forward 128x250000x1024",
                "softmax_loss 128x200000", "softmax_gradient 128x200000")  # fmt: skip
WIDE_PRODUCTS = ("forward", "weight_gradient", "input_gradient")  # of the last layer


def wide_floor_s(call, short):
    """Returns the seconds that the batches' kernels take by the floors that `bench` found in this run; None without
    them."""
    timed = (named(call["steps"], "name", "bench").get("figures") or {}).get("kernels", [])
    floors = {f"{one['name']} {one['shape']}": one["floor_us"] for one in timed}
    wanted = WIDE_KERNELS + tuple(f"{product}_{short} 128x512x200000" for product in WIDE_PRODUCTS)
    return sum(floors[one] for one in wanted) * WIDE_BATCHES / 1e6 if set(wanted) <= floors.keys() else None


def is_whole(figures):
    return figures["result"]["outcome"] == "finished" and figures["result"]["batches"] == WIDE_BATCHES


def wide_in_time(on_h100, on_h200):
    def judge(figures, call):
        most, run = on_h200 if "H200" in call["machine"]["gpus"][0]["name"] else on_h100, figures["result"]
        took = f"{run['seconds']:.2f} s for {run['batches']} batches, {run['outcome']}; at most {most:.1f} s"
        return is_whole(figures) and run["seconds"] <= most, took

    return judge


def wide_near_floor(short):
    def judge(figures, call):
        floor = wide_floor_s(call, short)
        if floor is None:
            return None, "bench did not time its kernels"
        times = figures["result"]["seconds"] / floor
        return is_whole(figures) and times <= MOST_OF_FLOOR, f"{times:.2f} times {floor:.2f} s"

    return judge


def wide_not_idle(figures, _):
    share = figures["result"]["throttle_caused_idle"]["share"]
    return is_whole(figures) and share <= MOST_THROTTLED_IDLE, f"{share:.1%}"


def wide_copies_hidden(figures, _):
    """By the run's timeline, which needs CUPTI. Lost events are copies and kernels that are not in the share."""
    hidden, timeline = figures["result"].get("copies_hidden"), figures.get("timeline")
    if hidden is None:
        why = timeline["note"] if timeline else "there is no timeline"
        return (None, why) if why else (False, "no copy was recorded")
    lost = f"; {counted(timeline['lost'], 'event')} lost" if timeline["lost"] else ""
    met = is_whole(figures) and hidden["share"] >= LEAST_HIDDEN and not lost
    return met, f"{hidden['share']:.1%} of {hidden['copying_ns'] / 1e6:.1f} ms{lost}"


def wide_pins_nothing(figures, _):
    memory = figures["result"].get("host_memory")
    if memory is None:
        return None, "the run did not say it"
    figure = f"{size(memory['warm_up_bytes'])}, {size(memory['later_bytes'])} later"
    return is_whole(figures) and memory["later_bytes"] == 0, figure


# --- Facts, traces, the cost of recording --------------------------------------------------------

MOST_RESERVED = 1.03  # by `paged`, times the bytes requested at the peak (docs/fragmentation.md)
TWO_PAGES = 4 << 20  # beyond that, for the one stream of each trace
MOST_COST = 1.03  # time with a recording / time without
LEAST_PAIRS = 3  # of runs; fewer say little


def facts_as_expected(figures, _):
    answers, harmful, unanswered, unexpected = 0, [], [], []
    for fact in figures["facts"]:
        answered, expected = fact.get("answered") is True, fact["expected"]
        answer = fact.get("answer", "no answer, the step ended here")  # it crashed or was stopped at the question
        answers += answered
        # `expected` may be `7 or 8`. Parentheses say why nothing is expected: a cost, for example.
        as_expected = expected.startswith("(") or f" or {answer} or " in f" or {expected} or "
        both = f"{fact['fact']}: expected {expected}, found {answer}"
        if fact.get("otherwise") and not (answered and as_expected):  # Weir depends on it
            harmful.append(f"{fact['otherwise']}: {both}")
        elif not answered:
            unanswered.append(f"{fact['fact']}: {answer}")
        elif not as_expected:
            unexpected.append(both)
    total = f"{counted(answers, 'answer')}, {len(unexpected) or 'none'} unexpected"
    figure = "; ".join([*harmful, *unanswered, total + (": " + "; ".join(unexpected) if unexpected else "")])
    return answers > 0 and not harmful and not unanswered, figure


def replays(figures):
    """Yields each trace with each pool as one object."""
    for trace in figures["traces"]:
        for pool in trace["pools"]:
            over = pool["peak_reserved_bytes"] / trace["peak_requested_bytes"]
            yield {**pool, "trace": os.path.basename(trace["trace"]).split(".")[0], "reserved_over_requested": over,
                   "requested": trace["peak_requested_bytes"]}  # fmt: skip


def traces_complete(figures, _):
    failed = [f"{one['trace']} with {one['pool']}" for one in replays(figures) if one["completed"] is not True]
    paged = any(one["pool"] == "paged" for one in replays(figures))
    which = "all of them" if paged else "nothing was replayed"
    return paged and not failed, "out of memory: " + ", ".join(failed) if failed else which


def paged_reserves_little(figures, _):
    paged = [one for one in replays(figures) if one["pool"] == "paged"]
    within = [one["completed"] is True and one["peak_reserved_bytes"] <= MOST_RESERVED * one["requested"] + TWO_PAGES
              for one in paged]  # fmt: skip
    over = ", ".join(f"{one['trace']} {one['reserved_over_requested']:.3f}" for one in paged)
    return bool(paged) and all(within), over or "nothing was replayed"


def recording_costs_little(figures, _):
    pairs, why = figures["pairs"], figures.get("why", "")
    recorded = all(pair["works"] and not pair["lost"] for pair in pairs)
    if "was not found" in why and not recorded:
        return None, why
    if not pairs or not all(pair["plain"] and pair["recorded"] for pair in pairs):
        return False, "a run trained nothing" if pairs else "no pair of runs"
    costs = [pair["plain"] / pair["recorded"] for pair in pairs]
    median = statistics.median(costs)
    spread = f"{median:.3f} ({min(costs):.3f} to {max(costs):.3f}) times as long in {counted(len(pairs), 'pair')}"
    missing = "" if recorded else "; kernels are missing" + (why and f": {why}")
    return recorded and len(pairs) >= LEAST_PAIRS and median <= MOST_COST, spread + missing


# --- The table -----------------------------------------------------------------------------------

CONDITIONS = [
    Condition("tests", "every test labelled gpu passes", all_pass),
    *(Condition(tool, f"compute-sanitizer {tool} is clean", is_clean) for tool in ("memcheck", "racecheck")),
    *(Condition(step, f"{what}: {name}", judge) for step, what in COMPARISONS.items() for name, judge in (
        (f"throttled is at least {LEAST_RATIO} of unbounded", reaches(LEAST_RATIO, to_unbounded)),
        (f"throttled is at least {LEAST_OF_PLAIN} of a CUDA loop without Weir", reaches(LEAST_OF_PLAIN, to_plain)),
        ("throttled is above the barrier", above_barrier),
        ("unbounded runs out of memory at the same budget", unbounded_dies),
        ("weights are bit-identical over the policies", same_weights))),
    Condition("bench", "each kernel's time over its floor is within its bound", within_bounds),
    *(Condition(step, f"wide network, {precision}: {name}", judge)
      for step, (precision, short, *most) in WIDE.items() for name, judge in (
        (f"{WIDE_BATCHES} batches end in time", wide_in_time(*most)),
        (f"at most {MOST_OF_FLOOR} times the floor of their kernels", wide_near_floor(short)),
        (f"throttling leaves the device idle at most {MOST_THROTTLED_IDLE:.0%} of the time", wide_not_idle),
        (f"the device computes during at least {LEAST_HIDDEN:.0%} of the copies to it", wide_copies_hidden),
        ("no host memory is pinned once the readers have used all their buffers", wide_pins_nothing))),
    Condition("facts", "what only a GPU can tell is answered, and as Weir counts on", facts_as_expected),
    Condition("traces", "every trace completes on the device", traces_complete),
    Condition("traces", f"paged reserves at most {MOST_RESERVED} of the peak requested there, and two pages",
              paged_reserves_little, of_failed=True),
    *(Condition("timeline", f"timeline: {name}", passes(f"TimelineOnDevice.{test}")) for name, test in (
        ("recorded kernels and copies equal those launched", "HasEveryKernelAndCopyOnce"),
        ("their times are within 2% of CUDA events", "TimesAreThoseOfCudaEvents"),
        ("each is in its batch, in order, and within the host's times around it", "JoinsEachToItsBatchInOrder"))),
    Condition("timeline_cost", f"timeline: a recording costs at most {MOST_COST - 1:.0%} of weir-train's throughput",
              recording_costs_little),
    *(Condition("timeline_programs" if name == "torch_timeline" else "programs", f"{what}: {condition}",
                of_program(name, judge), of_failed=name != "torch_timeline")
      for name, (what, judges) in PROGRAMS.items() for condition, judge in judges.items()),
]  # fmt: skip

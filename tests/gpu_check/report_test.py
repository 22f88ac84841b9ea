#!/usr/bin/env python3
"""Tests the page of tools/gpu-check under ROOT: report_test.py ROOT

One document meets every condition. A table says what becomes of which condition when something in it changes.
"""

import copy
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/gpu_check"))
import conditions  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402

SAMPLES = pathlib.Path(__file__).parent / "samples"  # written by the programs' own code: report_samples_test.cpp
MISSING = ...  # removes a key
MET, NOT_MET, LEFT_OUT = report.MET, report.NOT_MET, report.LEFT_OUT


def sample(name):
    return json.loads((SAMPLES / name).read_text())


def policy(name, ratio, outcome="finished"):
    return {"policy": name, "runs": 3, "batches_per_second": 100 * ratio, "ratio_to_reference": ratio,
            "ratio_low": ratio - 0.01, "ratio_high": ratio + 0.01, "host_us": 25, "idle_share": 0.5,
            "to_plain": {"ratio": ratio, "low": 0.9, "high": 1},
            "last_run": {"outcome": outcome, "peak_reserved_bytes": 7 << 20}}  # fmt: skip


def comparison():
    return {"settings": {"device": {"value": "cuda", "source": "--device"}}, "weights_identical": True,
            "finished_runs": 12, "reference": policy("reference", 1), "plain": policy("plain", 1),
            "policies": [policy("unbounded", 0, "out of memory in batch 7"), policy("backstop", 0.9),
                         policy("throttled", 0.995), policy("barrier", 0.8)]}  # fmt: skip


def tests(**results):
    made = [{"name": name, "result": result, "found": "as launched",
             **({"failures": [{"failure": "made up"}]} if result == "FAILED" else {})}
            for name, result in results.items()]  # fmt: skip
    return {"testsuites": [{"name": "TimelineOnDevice", "testsuite": made}]}


def kernel(name, shape, floor_of, over):
    return {"name": name, "shape": shape, "floor_of": floor_of, "floor_us": 100, "median_us": 100 * over}


def wide():
    return {"settings": {}, "timeline": {"lost": 0, "note": ""}, "result": {
        "outcome": "finished", "batches": 500, "seconds": 0.45, "batches_per_second": 1, "idle_share": 0.1,
        "copied_to_device": {"bytes": 1}, "peak_reserved_bytes": 1, "test_accuracy": 0.5,
        "throttle_caused_idle": {"share": 0.01}, "copies_hidden": {"share": 0.95, "copying_ns": 2_000_000},
        "host_memory": {"warm_up_bytes": 1 << 20, "later_bytes": 0}}}  # fmt: skip


def program_run(setup, name=""):
    """A run; with Weir it has the sample's summary, and all of the memory is served."""
    found = {"setup": setup, "exit_code": 0, "stopped": False, "said": "the end", "lines": [],
             "printed": {"outcome": "finished", "losses": ["0x1p-1", "0x1p-2"], "seconds": 2.0,
                         "framework": "PyTorch 1.2", "profiled_kernels": 100, "peak_reserved_bytes": 5 << 20}}  # fmt: skip
    if setup.startswith("weir"):
        found["summary"] = sample("summary.json")
        for device in found["summary"]["devices"]:
            device["passed"] = [one for one in device["passed"] if one["kind"] != "arrays"]
        found["plug"] = "weir: PyTorch 1.2 allocates by plug.so" * (setup == "weir_plug")
    if name == "torch_prefetch" and setup.startswith("plain"):
        found["exit_code"], found["printed"] = 75, {"outcome": "out of memory"}
    if name == "torch_timeline":
        found["timeline"] = {"works": 99, "lost": 0, "complete": True} if setup != "plain" else {}
        found.update(page_bytes=1024, other_report_bytes=1)
    return found


def program(one):
    setups = [setup.name for setup in one.setups for _ in range(setup.copies)]
    return {"name": one.name, "runs": [program_run(setup, one.name) for setup in setups]}


def whole():
    """A document that meets every condition."""
    timeline = tests(HasEveryKernelAndCopyOnce="COMPLETED", TimesAreThoseOfCudaEvents="COMPLETED",
                     JoinsEachToItsBatchInOrder="COMPLETED")  # fmt: skip
    kernels = [kernel("copy", "2^26", "copy", 1), kernel("add", "2^26", "copy", 1.15), kernel("gemm", "8", "sgemm", 1.1),
               *(kernel(*one, "copy", 1.1) for one in conditions.NAMED_BOUNDS)]  # fmt: skip
    pool = {"pool": "paged", "completed": True, "peak_reserved_bytes": 103 << 20, "driver_calls": 1, "mapped_pages": 1,
            "ns_per_operation": 9.5}  # fmt: skip
    figures = {
        "tests": tests(A="COMPLETED", B="COMPLETED"),
        **{name: comparison() for name in conditions.COMPARISONS},
        "bench": {"kernels": kernels},
        **{name: wide() for name in conditions.WIDE},
        "facts": {"facts": [
            {"fact": "size", "expected": "7 or 8", "answer": "8", "answered": True, "otherwise": "memory may be lost"},
            {"fact": "cost", "expected": "(a cost)", "answer": "1 us", "answered": True},
            {"fact": "word", "expected": "yes", "answer": "yes", "answered": True}]},
        "traces": {"traces": [{"trace": "a/gpt.csv.gz", "peak_requested_bytes": 100 << 20, "pools": [
            pool, {**pool, "pool": "round:24", "peak_reserved_bytes": 300 << 20}]}]},
        "timeline": timeline,
        "timeline_cost": {"why": "", "pairs": [{"plain": 102, "recorded": 100, "works": 7, "lost": 0}] * 3},
        "timeline_programs": {"programs": [program(plan.RECORDED)]},
        "programs": {"planned": [one.name for one in plan.PROGRAMS], "programs": [program(one) for one in plan.PROGRAMS]},
    }  # fmt: skip
    steps = [{"name": name, "command": f"weir-gpu {name}", "exit_code": 0, "stopped": False, "seconds": 1,
              "limit_seconds": 40, "figures": found} for name, found in figures.items()]  # fmt: skip
    steps += [{**steps[0], "name": tool, "figures": {"summary": "ERROR SUMMARY: 0 errors"}} for tool in ("memcheck", "racecheck")]
    gpu = {"name": "NVIDIA H100 80GB", "memory_bytes": 80 << 30, "compute_capability": "9.0", "multiprocessors": 132}
    machine = {"gpus": [gpu], "driver": "580.1", "driver_cuda": "13.0", "commit": "abc", "cublas": "cuBLAS 13",
               "settings": {"CUBLAS_X": {"value": "1", "source": "environment"}}, "toolkit": "13.0", "runtime": "13.0"}  # fmt: skip
    return {"date": "2000-01-01", "call": "", "machine": machine, "steps": steps}


def change(document, path, value):
    """Sets what stands at a path like `bench/figures/kernels/0/median_us`. A step is named; so are policies, programs and
    runs."""
    *words, last = path.split("/")
    at = document if words[:1] == ["machine"] else document["steps"]
    for word in words:
        at = step_into(at, word)
    if value is MISSING:
        del at[last]
    elif isinstance(at, list):
        at[at.index(step_into(at, last))] = value
    else:
        at[last] = value


def step_into(at, word):
    if isinstance(at, dict):
        return at[word]
    if word.isdigit():
        return at[int(word)]
    return next(one for one in at if word in (one.get("name"), one.get("policy"), one.get("setup")))


X1 = "compare_x1_drawn/figures/"
GPT = "programs/figures/programs/torch_gpt/runs/"
PREFETCH = "programs/figures/programs/torch_prefetch/runs/"
PLUGGED = "programs/figures/programs/plug_gpt/runs/"
RECORDED = "timeline_programs/figures/programs/torch_timeline/runs/"
WIDE = "wide_tf32/figures/"
STRETCH = "timeline/figures/testsuites/0/testsuite/0/"
PAGE = "PyTorch under weir timeline record"
SAME, SERVED = "PyTorch, transformer: the same losses", "PyTorch, transformer: Weir serves"
DIED = {"exit_code": 1, "said": "an error"}

# Part of a condition's name, what changes, its verdict then, and part of the figure.
CASES = [
    ("every test labelled gpu", {}, MET, "2 passed, 0 failed, 0 skipped"),
    ("every test labelled gpu", {"tests/figures": tests(A="COMPLETED", B="FAILED")}, NOT_MET, "1 passed, 1 failed"),
    ("every test labelled gpu", {"tests/figures": tests(A="COMPLETED", B="SKIPPED")}, NOT_MET, "1 skipped"),
    ("every test labelled gpu", {"tests/figures": tests()}, NOT_MET, "0 passed"),
    ("every test labelled gpu", {"tests/exit_code": 1}, NOT_MET, "2 passed, 0 failed, 0 skipped; the step failed (exit 1)"),
    ("every test labelled gpu", {"tests/stopped": True}, NOT_MET, "the step stopped at its limit of 40 s"),
    ("every test labelled gpu", {"tests/figures": MISSING}, NOT_MET, "it wrote no figures"),
    ("every test labelled gpu", {"tests/figures": MISSING, "tests/exit_code": 3}, NOT_MET, "failed (exit 3)"),
    ("every test labelled gpu", {"tests": {"name": "tests", "left_out": "no tool"}}, LEFT_OUT, "no tool"),
    ("every test labelled gpu", {"tests": {"name": "other", "left_out": ""}}, LEFT_OUT, "no step of this name was run"),
    ("every test labelled gpu", {"tests/figures": {"a": 1}}, NOT_MET, "its figures are not as expected: KeyError"),
    ("memcheck is clean", {"memcheck/figures/summary": "ERROR SUMMARY: 10 errors"}, NOT_MET, "10 errors"),
    ("memcheck is clean", {"memcheck/figures": MISSING}, NOT_MET, "it wrote no figures"),
    ("racecheck is clean", {"racecheck/exit_code": 99}, NOT_MET, "ERROR SUMMARY: 0"),
    ("d2l size, inputs drawn on the device: throttled is at least 0.99", {}, MET, "0.995 (0.985 to 1.005)"),
    ("d2l size, inputs drawn on the device: throttled is at least 0.99", {X1 + "policies/throttled/ratio_to_reference": 0.989}, NOT_MET, "0.989"),
    ("d2l size, inputs drawn on the device: throttled is at least 0.99", {X1 + "policies/throttled/runs": 0}, NOT_MET, "throttled not run; without Weir finished"),
    ("d2l size, inputs drawn on the device: throttled is at least 0.97", {X1 + "policies/throttled/to_plain/ratio": 0.969}, NOT_MET, "without Weir 25.0 us"),
    ("d2l size, inputs drawn on the device: throttled is at least 0.97", {X1 + "plain": {"left_out": "it needs a GPU"}}, NOT_MET, "it needs a GPU"),
    ("d2l size, inputs drawn on the device: throttled is above the barrier", {X1 + "policies/barrier/ratio_to_reference": 0.995}, NOT_MET, "0.995 against 0.995"),
    ("d2l size, inputs drawn on the device: throttled is above the barrier", {X1 + "policies/barrier/runs": 0}, NOT_MET, "0.995 against 0.000"),
    ("d2l size, inputs drawn on the device: unbounded runs out", {X1 + "policies/unbounded/last_run/outcome": "finished"}, NOT_MET, "finished"),
    ("d2l size, inputs drawn on the device: weights are", {X1 + "weights_identical": False}, NOT_MET, "NOT identical in the 12 runs"),
    ("d2l size, inputs drawn on the device: weights are", {X1 + "policies/backstop/runs": 0}, NOT_MET, "identical in the 12"),
    ("each kernel's time", {}, MET, " 1.10 (adam 102400000) to 1.15 (add 2^26) times the floor"),
    ("each kernel's time", {"bench/figures/kernels/add/median_us": 116}, NOT_MET, "add 2^26 takes 1.16 of at most 1.15"),
    ("each kernel's time", {"bench/figures/kernels/gemm/median_us": 111}, NOT_MET, "gemm 8 takes 1.11 of at most 1.10"),
    ("each kernel's time", {"bench/figures/kernels/fill_normal/median_us": 250}, MET, "to 2.50 (fill_normal 2^26)"),
    ("each kernel's time", {"bench/figures/kernels/fill_normal/median_us": 251}, NOT_MET, "2.51 of at most 2.50"),
    ("each kernel's time", {"bench/figures/kernels/add/floor_us": 19, "bench/figures/kernels/add/median_us": 19}, NOT_MET, "19.0 us is mostly its launch"),
    ("each kernel's time", {"bench/figures/kernels/add/floor_of": "x"}, NOT_MET, "no bound for a floor of x"),
    ("each kernel's time", {"bench/figures/kernels/adam/name": "other"}, NOT_MET, "adam 102400000 was not timed"),
    ("each kernel's time", {"bench/figures/kernels/add/median_us": 0}, NOT_MET, "the figures of add 2^26 are no times"),
    ("each kernel's time", {"bench/figures/kernels": []}, NOT_MET, "was not timed"),
    ("wide network, TF32: 500 batches", {}, MET, "0.45 s for 500 batches, finished; at most 3.0 s"),
    ("wide network, TF32: 500 batches", {WIDE + "result/seconds": 3.1}, NOT_MET, "3.10 s"),
    ("wide network, TF32: 500 batches", {WIDE + "result/seconds": 2.6, "machine/gpus/0/name": "NVIDIA H200"}, NOT_MET, "at most 2.5 s"),
    ("wide network, TF32: 500 batches", {WIDE + "result/batches": 499}, NOT_MET, "499 batches"),
    ("wide network, TF32: at most 1.25", {}, MET, "1.12 times 0.40 s"),
    ("wide network, TF32: at most 1.25", {WIDE + "result/seconds": 0.51}, NOT_MET, "1.27 times"),
    ("wide network, TF32: at most 1.25", {"bench/figures": MISSING}, LEFT_OUT, "bench did not time its kernels"),
    ("wide network, TF32: throttling", {WIDE + "result/throttle_caused_idle/share": 0.011}, NOT_MET, "1.1%"),
    ("wide network, TF32: the device computes", {}, MET, "95.0% of 2.0 ms"),
    ("wide network, TF32: the device computes", {WIDE + "result/copies_hidden/share": 0.94}, NOT_MET, "94.0%"),
    ("wide network, TF32: the device computes", {WIDE + "timeline/lost": 2}, NOT_MET, "2 events lost"),
    ("wide network, TF32: the device computes", {WIDE + "result/copies_hidden": MISSING, WIDE + "timeline/note": "no CUPTI"}, LEFT_OUT, "no CUPTI"),
    ("wide network, TF32: the device computes", {WIDE + "result/copies_hidden": MISSING}, NOT_MET, "no copy was recorded"),
    ("wide network, TF32: no host memory", {WIDE + "result/host_memory/later_bytes": 1}, NOT_MET, "1 MiB, 1 B later"),
    ("wide network, TF32: no host memory", {WIDE + "result/host_memory": MISSING}, LEFT_OUT, "the run did not say it"),
    ("what only a GPU can tell", {}, MET, "3 answers, none unexpected"),
    ("what only a GPU can tell", {"facts/figures/facts/2/answer": "no"}, MET, "1 unexpected: word: expected yes, found no"),
    ("what only a GPU can tell", {"facts/figures/facts/0/answer": "9"}, NOT_MET, "memory may be lost: size: expected 7 or 8, found 9"),
    ("what only a GPU can tell", {"facts/figures/facts/1/answered": False}, NOT_MET, "cost: 1 us"),
    ("what only a GPU can tell", {"facts/figures/facts/2/answer": MISSING, "facts/figures/facts/2/answered": MISSING}, NOT_MET, "word: no answer, the step ended here"),
    ("what only a GPU can tell", {"facts/figures/cut": True}, NOT_MET, "its figures are cut"),
    ("what only a GPU can tell", {"facts/figures/facts": []}, NOT_MET, "0 answers"),
    ("every trace completes", {}, MET, "all of them"),
    ("every trace completes", {"traces/figures/traces/0/pools/1/completed": False}, NOT_MET, "out of memory: gpt with round:24"),
    ("every trace completes", {"traces/figures/traces": []}, NOT_MET, "nothing was replayed"),
    ("every trace completes", {"traces/exit_code": 1}, NOT_MET, "the step failed (exit 1)"),
    ("paged reserves at most", {"traces/figures/traces/0/pools/0/peak_reserved_bytes": 107 << 20}, MET, "gpt 1.070"),
    ("paged reserves at most", {"traces/figures/traces/0/pools/0/peak_reserved_bytes": (107 << 20) + 1}, NOT_MET, "gpt 1.070"),
    ("paged reserves at most", {"traces/figures/traces/0/pools/0/completed": False}, NOT_MET, "gpt 1.030"),
    ("paged reserves at most", {"traces/stopped": True}, MET, "gpt 1.030"),
    ("timeline: recorded kernels", {}, MET, "as launched"),
    ("timeline: recorded kernels", {STRETCH + "result": "SKIPPED", STRETCH + "found": "no CUPTI"}, LEFT_OUT, "no CUPTI"),
    ("timeline: recorded kernels", {"timeline/figures": tests(HasEveryKernelAndCopyOnce="FAILED"), "timeline/exit_code": 1}, NOT_MET, "as launched"),
    ("timeline: their times", {"timeline/figures": tests()}, NOT_MET, "not as expected"),
    ("timeline: each is in its batch", {"timeline/figures/testsuites/0/testsuite/2/result": "SUPPRESSED"}, NOT_MET, "as launched"),
    ("a recording costs at most 3%", {}, MET, "1.020 (1.020 to 1.020) times as long in 3 pairs"),
    ("a recording costs at most 3%", {"timeline_cost/figures/pairs": [{"plain": 104, "recorded": 100, "works": 7, "lost": 0}] * 3}, NOT_MET, "1.040"),
    ("a recording costs at most 3%", {"timeline_cost/figures/pairs": []}, NOT_MET, "no pair of runs"),
    ("a recording costs at most 3%", {"timeline_cost/figures/pairs": [{"plain": 100, "recorded": 100, "works": 7, "lost": 0}] * 2}, NOT_MET, "in 2 pairs"),
    ("a recording costs at most 3%", {"timeline_cost/figures/pairs": [{"plain": 100, "recorded": 100, "works": 0, "lost": 0}] * 3}, NOT_MET, "kernels are missing"),
    ("a recording costs at most 3%", {"timeline_cost/figures/pairs": [{"plain": 100, "recorded": 100, "works": 0, "lost": 0}] * 3,
     "timeline_cost/figures/why": "CUPTI was not found"}, LEFT_OUT, "CUPTI was not found"),
    (PAGE, {}, MET, "99 kernels and copies, a page of 1 KiB"),
    (PAGE, {RECORDED + "recorded/page_bytes": 0}, NOT_MET, "no page"),
    (PAGE, {RECORDED + "recorded/timeline/lost": 3}, NOT_MET, "3 events lost"),
    (PAGE, {RECORDED + "recorded/timeline/works": 0, RECORDED + "recorded/lines": ["CUPTI in use"]}, NOT_MET, "no kernel was recorded; it says: CUPTI in use"),
    (PAGE, {RECORDED + "recorded/timeline": {}}, NOT_MET, "there is no timeline; nothing says why"),
    (PAGE, {RECORDED + "recorded/timeline/complete": False}, NOT_MET, "the recording was cut"),
    (PAGE, {RECORDED + "recorded/printed/losses": ["0x1p-3"]}, NOT_MET, "losses differ from those without it"),
    (PAGE, {RECORDED + "recorded/stopped": True}, NOT_MET, "stopped at its limit"),
    (PAGE, {"timeline_programs/figures/programs/0/left_out": "no PyTorch"}, LEFT_OUT, "no PyTorch"),
    ("libweir_timeline.so alone", {RECORDED + "injected/left_out": "there is none"}, LEFT_OUT, "there is none"),
    ("torch.profiler inside", {}, MET, "torch.profiler has 100 of 100; the timeline has 99"),
    ("torch.profiler inside", {RECORDED + "inside/printed/profiled_kernels": 98}, NOT_MET, "98 of 100"),
    ("torch.profiler inside", {RECORDED + "inside/printed/profiled_kernels": 0, RECORDED + "inside/lines": ["not recorded"]}, MET, "0 of 100"),
    ("torch.profiler inside", {RECORDED + "plain/printed/profiled_kernels": 0}, LEFT_OUT, "sees no kernel without Weir either"),
    ("nsys outside", {RECORDED + "outside/other_report_bytes": 0}, NOT_MET, "nsys has no report"),
    (SAME, {}, MET, "bit-identical over 2 steps in 4 runs with Weir"),
    (SAME, {GPT + "weir/printed/losses": ["0x1p-1", "0x1p-3"]}, NOT_MET, "with Weir differs from step 1"),
    (SAME, {GPT + "weir/printed/losses": [], GPT + "plain/printed/losses": []}, NOT_MET, "with Weir differs from step 0"),
    (SAME, {GPT + "plain/printed/losses": ["0x1p-3"]}, NOT_MET, "two runs without Weir differ too"),
    (SAME, {GPT + "weir/exit_code": 1}, NOT_MET, "with Weir: failed (exit 1): the end"),
    (SAME, {f"{GPT}plain/{key}": value for key, value in DIED.items()}, MET, "in 1 run with Weir; with Weir is compared with nothing"),
    (SAME, {f"{GPT}{setup}/{key}": value for key, value in DIED.items() for setup in ("plain", "plain_async")}, LEFT_OUT, "without Weir it failed (exit 1)"),
    (SAME, {GPT + "plain/stopped": True}, NOT_MET, "with Weir: without Weir stopped at its limit"),
    (SAME, {GPT + "weir/exit_code": None, GPT + "weir/said": "no time was left"}, NOT_MET, "not run: no time was left"),
    (SAME, {"programs/exit_code": None, "programs/stopped": True}, MET, "bit-identical"),
    (SAME, {"programs/figures/programs/torch_gpt/left_out": "PyTorch is not there"}, LEFT_OUT, "PyTorch is not there"),
    (SAME, {"programs/figures/programs/torch_gpt/name": "other"}, NOT_MET, "not run"),
    (SAME, {"programs/figures/programs/torch_gpt/name": "other", "programs/figures/planned": []}, LEFT_OUT, "not among the programs of this call"),
    (SERVED, {}, MET, "with Weir 100.00%; "),
    (SERVED, {GPT + "weir/summary": sample("summary.json")}, NOT_MET, "with Weir 75.00%; "),
    (SERVED, {GPT + "weir/summary": sample("summary_of_nothing.json")}, NOT_MET, "no share"),
    (SERVED, {GPT + "weir/summary": None}, NOT_MET, "no share"),
    ("prefetching: runs out of memory without Weir", {}, MET, "out of memory; in stream order out of memory"),
    ("prefetching: runs out of memory without Weir", {PREFETCH + "plain/exit_code": 0, PREFETCH + "plain/printed/outcome": "finished"}, NOT_MET, "finished; in"),
    ("prefetching: finishes in the same memory", {}, MET, "bit-identical to those with enough memory, 18 waits of 6.00 s together"),
    ("prefetching: finishes in the same memory", {PREFETCH + "weir_async/exit_code": 75}, NOT_MET, "failed (exit 75)"),
    ("prefetching: finishes in the same memory", {PREFETCH + "enough/exit_code": 1}, NOT_MET, "with enough memory failed"),
    ("prefetching: finishes there with batches", {PREFETCH + "weir_batches/printed/losses": ["0x1p-1"]}, NOT_MET, "differ from step 1"),
    ("8 processes", {}, MET, "8 of 8 finished within their budgets"),
    ("8 processes", {"programs/figures/programs/torch_shared/runs/3/exit_code": 1}, NOT_MET, "7 of 8"),
    ("8 processes", {"programs/figures/programs/torch_shared/runs/3/summary/devices/0/pool/reserved_bytes/peak": 1 << 40}, NOT_MET, "reserved more than its budget"),
    ("8 processes", {"programs/figures/programs/torch_shared/runs/3/printed/losses": []}, NOT_MET, "losses differ"),
    ("plug, transformer: PyTorch allocates", {PLUGGED + "weir_plug/plug": "weir: it does not"}, NOT_MET, "it does not"),
    ("plug, transformer: PyTorch allocates", {PLUGGED + "weir_plug/plug": "weir: PyTorch 3: there is no plug for it"}, LEFT_OUT, "no plug for it"),
    ("plug, transformer: at most 1.01", {}, MET, "1.000 times"),
    ("plug, transformer: at most 1.01", {PLUGGED + "weir_plug/printed/seconds": 2.03}, NOT_MET, "1.015 times"),
    ("plug, transformer: at most 1.01", {PLUGGED + "plain/exit_code": 1}, NOT_MET, "without Weir failed (exit 1)"),
    ("plug, prefetching: finishes", {"programs/figures/programs/plug_prefetch/runs/weir_plug/exit_code": 1}, NOT_MET, "failed"),
]  # fmt: skip


class Verdicts(unittest.TestCase):
    maxDiff = None

    def test_a_document_that_has_everything_meets_everything(self):
        verdicts = report.judge(whole())
        self.assertEqual([one for one in verdicts if one[1] != MET], [])
        self.assertGreater(len(verdicts), 80)

    def test_each_condition_is_judged_by_what_it_says(self):
        for name, changes, verdict, figure in CASES:
            document = whole()
            for path, value in changes.items():
                change(document, path, copy.deepcopy(value))
            found = [one for one in report.judge(document) if name in one[0]]
            with self.subTest(name=name, changes=list(changes)):
                self.assertEqual(len(found), 1, found)
                self.assertEqual(found[0][1], verdict, found)
                self.assertIn(figure, found[0][2])
            json.dumps(document), report.page(document, [], "x.json")  # whatever it is, a page comes of it

    def test_every_condition_is_among_the_cases_or_is_the_same_for_another_input(self):
        kind = {one.name: one.name.rpartition(": ")[2] for one in conditions.CONDITIONS}
        changed = {kind[name] for name in kind for part, changes, *_ in CASES if changes and part in name}
        self.assertEqual(set(kind.values()) - changed, set())


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def write(self, *calls):
        with redirect_stdout(io.StringIO()):
            met, page = report.write(calls, self.at, "2000-01-02")
        return met, page, json.loads(page.with_suffix(".json").read_text())

    def test_it_has_the_machine_the_conditions_the_tables_and_the_commands(self):
        met, page, document = self.write(whole())
        self.assertTrue(met)
        self.assertEqual(page.name, "gpu-nvidia-h100-80gb-2000-01-01.md")
        text = page.read_text()
        for line in ("# NVIDIA H100 80GB, 2000-01-01\n", "| driver | 580.1, for CUDA 13.0 |", "| commit | abc |",
                     "80 GiB, compute capability 9.0, 132 multiprocessors", "| CUBLAS_X, for unmodified programs alone | 1 |",
                     "| every test labelled gpu passes | met | 2 passed, 0 failed, 0 skipped |",
                     "| throttled | 99.500 | 0.995 | 0.985 | 1.005 | 0.995 | 25 us | 7 MiB | 50.00% | finished |  |",
                     "| add | 2^26 | 115.0 us | 100 us | copy | 1.150 | 1.150 |  |",
                     "| size | 7 or 8 | 8 | memory may be lost |", "| gpt | paged | true | 1.030 | 1 | 1 | 9.500 |",
                     "| PyTorch, transformer | with Weir | finished | 2.000 s | 1.000 |", "`device=cuda (--device)`",
                     "| bench | ok | 1 s | 40 s | weir-gpu bench |"):  # fmt: skip
            self.assertIn(line, text)
        self.assertEqual(len(document["verdicts"]), len(report.judge(document)))

    def test_what_is_written_can_be_read_again_and_gives_the_same_page(self):
        _, page, _ = self.write(whole())
        before = page.read_text()
        self.write(report.read_call(page.with_suffix(".json")))
        self.assertEqual(page.read_text(), before)

    def test_a_rehearsal_cannot_pass_for_a_gpu_nor_an_unknown_tree_for_a_commit(self):
        document = whole()
        document["machine"].update(rehearsal=True, commit="abc-dirty")
        _, page, _ = self.write(document)
        self.assertTrue(page.name.startswith("rehearsal-"))
        self.assertIn("no figure tells anything of one", page.read_text())
        self.assertIn("abc-dirty, of a tree with uncommitted changes: calls may be of different code", page.read_text())

    def test_several_calls_make_one_page_with_the_last_run_of_each_step_and_program(self):
        first, second = whole(), whole()
        programs = first["steps"].pop([one["name"] for one in first["steps"]].index("programs"))
        del programs["figures"]["programs"][0]  # torch_resnet was planned in no call
        second["steps"] = [programs, {"name": "bench", "left_out": "made up"}, {**second["steps"][0], "exit_code": 1}]
        third = copy.deepcopy(second)
        third["steps"] = [copy.deepcopy(programs)]
        third["steps"][0]["figures"]["programs"] = [{"name": "torch_gpt", "runs": []}]
        programs["stopped"] = True
        met, page, document = self.write(first, second, third)
        self.assertFalse(met)
        self.assertEqual((page.name, document["call"]), ("gpu-nvidia-h100-80gb-2000-01-02-all.md", "all"))
        verdicts = {one["condition"]: (one["verdict"], one["figure"]) for one in document["verdicts"]}
        self.assertEqual(verdicts["every test labelled gpu passes"][0], NOT_MET, "the last run of a step counts")
        self.assertEqual(verdicts["each kernel's time over its floor is within its bound"][0], MET, "one that was left out does not")
        self.assertEqual(verdicts["PyTorch, residual network: the same losses with Weir as without"], (NOT_MET, "not run; the step stopped at its limit of 80 s"))
        self.assertEqual(verdicts["PyTorch, captured step: the same losses with Weir as without"][0], MET)
        self.assertEqual(verdicts["PyTorch, transformer: the same losses with Weir as without"][0], NOT_MET)
        step = next(one for one in document["steps"] if one["name"] == "programs")
        self.assertEqual((step["stopped"], step["seconds"], step["limit_seconds"]), (True, 2, 80))

    def test_no_page_is_of_two_machines_or_builds_or_of_none(self):
        for key, value in (("driver", "other"), ("commit", "other"), ("rehearsal", True), ("gpus", [])):
            other = whole()
            other["machine"][key] = value
            with self.assertRaises(report.Failed):
                report.merge([whole(), other], "2000-01-01")

    def test_nothing_in_a_cell_ends_it_and_bytes_are_exact_or_have_three_digits(self):
        self.assertEqual(report.table([{"a": "x|y\nz"}]), "| a |\n| --- |\n| x\\|y z |\n")
        sizes = [report.shown("a_bytes", one) for one in (0, 512, 96 << 20, 3 << 29, 1234567, 123456789)]
        self.assertEqual(sizes, ["0 B", "512 B", "96 MiB", "1.50 GiB", "1.18 MiB", "118 MiB"])

    def test_bad_calls_are_one_line(self):
        broken = self.at / "broken.json"
        broken.write_text('{"machine": {}, "steps": NaN}')
        for words, code, says in ((["x"], 2, "are needed"), ([broken, self.at, "../evil"], 2, "are needed"),
                                  ([broken, self.at, "2000-01-01x"], 2, "are needed"),
                                  ([self.at, self.at, "2000-01-01"], 1, "cannot read"),
                                  ([broken, self.at, "2000-01-01"], 1, "is not what tools/gpu-check wrote")):  # fmt: skip
            done = subprocess.run([ROOT / "tools/gpu_check/report.py", *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, len(done.stderr.splitlines()), done.stdout), (code, 1, ""), words)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Checks tools/gpu_check/report.py under the root that is named, on what a run leaves that meets every
condition. All of it is made up for these tests: no figure here was measured, and there is no such
device. Needs no GPU. One long file, because every case changes the same made-up run."""

import copy
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
SAMPLES = ROOT / "tests" / "gpu_check" / "samples"
sys.path.insert(0, str(ROOT / "tools" / "gpu_check"))
import report  # noqa: E402

DATE = "2000-01-01"
MIB = 1 << 20


# --- The sample ---------------------------------------------------------------------------------


def machine():
    gpu = {"name": "Made-up GPU 1000 (test sample)", "compute_capability": "9.9"}
    return {
        "weir": "0.0.0",
        "commit": "made-up",
        "driver": "1.2.3",
        "driver_cuda": "13.0",
        "runtime": "13.0",
        "toolkit": "13.0.0",
        "gpus": [{**gpu, "memory_bytes": 1 << 30, "multiprocessors": 3}],
    }


def policy(name, ratio, outcome="finished"):
    return {
        "policy": name,
        "runs": 4,
        "batches_per_second": 1000.0 * ratio,
        "ratio_to_reference": float(ratio),
        "ratio_low": ratio / 2,
        "ratio_high": ratio * 2.0,
        "idle_share": 0.25,
        "host_us": 40,
        "last_run": {"peak_reserved_bytes": 64 * MIB, "outcome": outcome},
    }


def throttled(ratio, to_plain):
    spread = {"ratio": to_plain, "low": to_plain / 2, "high": to_plain * 2}
    return {**policy("throttled", ratio), "to_plain": spread}


def comparison():
    plain = {**policy("plain", 1.01), "host_us": 30}
    del plain["idle_share"]  # nobody knows that of the loop without Weir
    return {
        "plain": plain,
        "settings": {"device": {"value": "made up", "source": "--device"}},
        "reference": policy("reference", 1),
        "policies": [
            policy("unbounded", 0, "out of memory in batch 7"),
            policy("backstop", 1),
            throttled(1, 0.99),
            policy("barrier", 0.5),
        ],
        "weights_identical": True,
        "finished_runs": 16,
    }


def tests():
    passed = {"name": "Passes", "status": "RUN", "result": "COMPLETED"}
    return {"testsuites": [{"name": "MadeUp", "testsuite": [passed, dict(passed)]}]}


def kernel(name, shape, median, floor):
    told = {"name": name, "shape": shape, "floor_of": "copy"}
    return {**told, "median_us": float(median), "floor_us": float(floor)}


def bench():
    """A floor, two kernels, and those that have a bound by name."""
    kernels = [kernel(name, "2x3", us, 100) for name, us in
               (("copy", 100), ("another", 105), ("made_up", 115))]  # fmt: skip
    return {"kernels": kernels + [kernel(*bound, 100, 100) for bound in report.NAMED_BOUNDS]}


def summary(served, passed):
    gauge = {"current": 0, "peak": MIB}
    waits = {"count": 2, "total_ns": 500000000}

    def kind(name, total, counted):
        told = {"kind": name, "level_bytes": gauge, "calls": 1}
        return {**told, "sum_bytes": float(total), "counted": counted}

    device = {
        "device": 0,
        "budget_bytes": 1 << 30,
        "pool": {"reserved_bytes": gauge, "waits": 1, "waited_ns": 250000000},
        "served_bytes": float(served),
        "paced": waits,
        "batches": waits,
        "passed": [kind("arrays", passed, True), kind("modules", 1e12, True),
                   kind("host", 1e12, False)],
    }  # fmt: skip
    return {"process": 1, "devices": [device]}


def program_run(setup):
    weir = setup.startswith("weir")
    printed = {
        "framework": "Made-up framework 1",
        "outcome": "finished",
        "losses": ["0x1p+0", "0x1p-1", "0x1p-2"],
        "seconds": 3 if weir else 2,
        "peak_reserved_bytes": 64 * MIB,
    }
    run = {"setup": setup, "command": "made up", "exit_code": 0, "stopped": False, "said": ""}
    return {**run, "printed": printed, **({"summary": summary(995, 5)} if weir else {})}


def plugged_run():
    run = {**program_run("weir_plug"), "plug": "weir: PyTorch 1.2 allocates by libweir_torch_1.2.so"}
    run["printed"]["seconds"] = 2.02
    return run


def out_of_memory(setup):
    return {**program_run(setup), "exit_code": 75, "printed": {"outcome": "out of memory"}}


def programs():
    four = ("plain", "weir", "plain_async", "weir_async")
    found = [(name, [program_run(setup) for setup in four]) for name in report.TRAINING_PROGRAMS]
    prefetch = [program_run("enough"), out_of_memory("plain"), out_of_memory("plain_async"),
                program_run("weir_async"), program_run("weir_batches")]  # fmt: skip
    shared = [program_run("plain")] + [program_run("weir_async") for _ in range(8)]
    found += [("torch_prefetch", prefetch), ("torch_shared", shared)]
    for name in report.PLUG_PROGRAMS:
        without = "enough" if name == "plug_prefetch" else "plain"
        found.append((name, [program_run(without), plugged_run()]))
    return {"programs": [{"name": name, "runs": runs} for name, runs in found]}


def fact(name, expected, answer, otherwise=""):
    told = {"fact": name, "expected": expected, "answer": answer}
    return {**told, "otherwise": otherwise, "answered": True}


def facts():
    """One whose answer is not the expected one, one that Weir counts on, and a cost."""
    return {"facts": [fact("made-up fact", "7", "8"),
                      fact("made-up need", "yes", "yes", "made-up harm may be done"),
                      fact("made-up cost", "(a cost)", "9 us")]}  # fmt: skip


def traces():
    def pool(name, reserved):
        told = {"pool": name, "completed": True, "peak_reserved_bytes": reserved}
        return {**told, "driver_calls": 5, "mapped_pages": 3, "ns_per_operation": 123.4}

    pools = [pool("round:24", 2e9), pool("paged", 1.02e9)]
    trace = "bench/traces/made_up.csv.gz"
    return {"traces": [{"trace": trace, "peak_requested_bytes": 1e9, "pools": pools}]}


def stretch(name, event_ms):
    times = {key: float(event_ms) for key in ("event_ms", "sum_ms", "span_ms")}
    counts = {key: 100 for key in ("operations", "recorded", "joined")}
    return {"name": name, **counts, **times, "timed": True, "in_order": True, "outside_us": 0.0}


def timeline():
    """Two stretches that are timed, and one that is only counted."""
    brief = {**stretch("made-up empty kernel", 2), "timed": False, "sum_ms": 1}
    told = {"no_cupti": "", "refused": "", "complete": True, "lost": 0, "strays": 0}
    timed = [stretch("made-up kernel", 100), stretch("made-up copy", 200)]
    return {**told, "stretches": [*timed, brief]}


def timeline_cost():
    pairs = [{"plain": 100, "recorded": float(recorded), "kernels": 7, "lost": 0}
             for recorded in (99, 80, 101, 98)]  # fmt: skip
    return {"why": "", "pairs": pairs}


def wide():
    result = {"outcome": "finished", "batches": 500, "seconds": 0.4, "batches_per_second": 208.3,
              "idle_share": 0.005, "staging_bytes": MIB, "peak_reserved_bytes": 5 * MIB,
              "copied_to_device": {"bytes": MIB}, "test_accuracy": 0.6,
              "throttle_caused_idle": {"share": 0.001},
              "copies_hidden": {"share": 0.992, "copying_ns": 12_500_000},
              "host_memory": {"warm_up_batches": 26, "warm_up_bytes": 17 * MIB, "later_bytes": 0}}  # fmt: skip
    timeline = {"file": "made up", "events": 100, "lost": 0, "note": ""}
    settings = {"device": {"value": "made up", "source": "--device"}}
    return {"settings": settings, "result": result, "timeline": timeline}


def recorded_run(setup, profiled=0, **more):
    run = {"setup": setup, "exit_code": 0, "stopped": False, "said": "", "lines": []}
    printed = {"losses": ["0x1p+0", "0x1p-1"], "profiled_kernels": profiled}
    activity = {"kernels": 500, "copies": 5, "lost": 0, "complete": True}
    return {**run, "printed": printed, "timeline": activity, **more}


def timeline_programs():
    plain = recorded_run("plain", 500)
    del plain["timeline"]
    runs = [plain, recorded_run("recorded", page_bytes=MIB), recorded_run("injected"),
            recorded_run("inside", 500), recorded_run("outside", other_report_bytes=1000)]  # fmt: skip
    return {"left_out": "", "runs": runs}


def made_up_evidence():
    """As `gather` returns it."""
    clean = {
        "memcheck": "ERROR SUMMARY: 0 errors",
        "racecheck": "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
    }
    figures = {
        "tests": tests(),
        **dict.fromkeys(clean),
        **{name: comparison() for name in report.COMPARISONS},
        "bench": bench(),
        **{name: wide() for name in report.WIDE},
        "facts": facts(),
        "traces": traces(),
        "timeline": timeline(),
        "timeline_cost": timeline_cost(),
        "timeline_programs": timeline_programs(),
        "programs": programs(),
    }
    steps = []
    for name, found in figures.items():
        step = {"name": name, "command": f"weir-gpu {name}", "exit_code": 0, "outcome": "ok"}
        step.update(seconds=2.0, limit_seconds=40.0)
        step.update({"summary": clean[name]} if name in clean else {"figures": found})
        steps.append(step)
    return {"date": DATE, "machine": machine(), "steps": steps}


def step_in(evidence, name):
    return next(step for step in evidence["steps"] if step["name"] == name)


class Sampled(unittest.TestCase):
    """Each test has a sample of its own, to change it."""

    def setUp(self):
        self.evidence = copy.deepcopy(made_up_evidence())

    def step(self, name):
        return step_in(self.evidence, name)

    def figures(self, name):
        return self.step(name)["figures"]

    def found(self, words):
        """What is found of the first condition in which `words` stand: `met: ...`."""
        verdicts = report.judge(self.evidence)
        return next(f"{one.state}: {one.figure}" for one in verdicts if words in one.condition)

    def lines_not_met(self):
        """Without the wide network's floor, which is left out where the bench has no figures."""
        verdicts = report.judge(self.evidence)
        return [f"{one.condition}: {one.figure}" for one in verdicts
                if one.state != report.MET and "did not time its kernels" not in one.figure]  # fmt: skip

    def only_not_met(self):
        """The one condition that is not met; the others do not change."""
        lines = self.lines_not_met()
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def holds(self):
        return report.holds(report.judge(self.evidence))

    def page(self):
        return report.page(self.evidence, report.judge(self.evidence), "x.json")


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = pathlib.Path(folder.name)

    def write(self, **files):
        for name, text in files.items():
            (self.run_folder / name.replace("__", ".")).write_text(text)

    def gather(self):
        return report.gather(self.run_folder, DATE)


# --- What a call left ---------------------------------------------------------------------------


class Steps(unittest.TestCase):
    def test_are_read_as_they_are_written(self):
        ran, left_out = report.parse_steps(
            "tests\t0\t12.5\t100\tweir-gpu test --a b\nmemcheck\t-\t0\t50\tnot found\n"
        )
        self.assertEqual((ran.name, ran.command), ("tests", "weir-gpu test --a b"))
        self.assertEqual((ran.seconds, ran.limit_seconds), (12.5, 100))
        self.assertTrue(ran.ok)
        self.assertEqual(left_out.left_out, "not found")
        self.assertFalse(left_out.ran or left_out.ok)

    def test_say_how_they_ended(self):
        for line, said in (
            ("a\t0\t1\t40\tb", "ok"),
            ("a\t3\t1\t40\tb", "failed (exit 3)"),
            ("a\t124\t40\t40\tb", "stopped at its limit of 40 s"),
            ("a\t137\t45\t40\tb", "stopped at its limit of 40 s"),
            ("a\t-\t0\t40\tno such tool", "left out: no such tool"),
        ):
            (step,) = report.parse_steps(line + "\n")
            self.assertEqual(step.describe(), said)

    def test_a_line_that_is_none_is_named(self):
        for line in ("tests", "tests\t0\t1\t40\t", "tests\tx\t1\t40\tb", "tests\t0\t\t40\tb",
                     "tests\t0\t1\tnan\tb", "\t0\t1\t40\tb", ""):  # fmt: skip
            with self.assertRaisesRegex(report.Failed, re.escape(line)):
                report.parse_steps(line + "\n")


class Evidence(WithFolder):
    def test_has_what_the_steps_left(self):
        self.write(
            info__json=json.dumps(machine()),
            steps__tsv="tests\t1\t3\t40\tweir-gpu test\nmemcheck\t0\t3\t40\tcompute-sanitizer\n"
            "bench\t0\t3\t40\tweir-gpu bench\nracecheck\t-\t0\t40\tnot found\n",
            tests__json='{"made up": 1, "deep": [{"x_per_batch": [1, 2], "y": 3}], "z_per_batch": []}',
            memcheck__log="========= COMPUTE-SANITIZER\nERROR SUMMARY: 5 errors\n",
            bench__json='{"cut sh',
            call__txt="steps-bench\n",
        )
        found = self.gather()
        self.assertEqual((found["date"], found["call"]), (DATE, "steps-bench"))
        self.assertEqual(found["machine"], machine())
        self.assertEqual(report.figures_of(found, "tests"), {"made up": 1, "deep": [{"y": 3}]})
        self.assertEqual(report.step_of(found, "tests").exit_code, 1)
        self.assertEqual(report.step_of(found, "tests").command, "weir-gpu test")
        self.assertEqual(found["steps"][1]["summary"], "ERROR SUMMARY: 5 errors")
        self.assertIsNone(report.figures_of(found, "bench"))
        self.assertEqual(found["steps"][2]["unreadable"], "bench.json")
        self.assertEqual(report.step_of(found, "racecheck").left_out, "not found")
        self.assertFalse(report.step_of(found, "no such step").ran)

    def test_a_list_that_is_cut_keeps_what_was_written(self):
        def crashed(text):
            self.write(info__json=json.dumps(machine()), facts__json=text)
            self.write(steps__tsv="facts\t139\t3\t40\tweir-gpu facts\n")
            return self.gather()["steps"][0]

        begin = '{"facts":[\n{"fact":"a","answer":"1"}'
        first = [{"fact": "a", "answer": "1"}]
        for rest, kept in (
            ("", first),
            (',\n{"fact":"b"', first + [{"fact": "b"}]),
            (',\n{"fact":"b', first),
            (',\n{"fact":"b","answer":"2', first),
        ):
            self.assertEqual(crashed(begin + rest)["figures"], {"facts": kept, "cut": True})
        self.assertEqual(crashed('{"facts":[')["figures"], {"facts": [], "cut": True})
        self.assertEqual(crashed(begin + "\n]}\n")["figures"], {"facts": first})
        self.assertEqual(crashed('{"fac')["unreadable"], "facts.json")

    def test_what_json_does_not_allow_is_not_read(self):
        for text in ("NaN", "[Infinity]", "1e999", '"\\ud800"', "[" * 100000):
            with self.assertRaises(ValueError):
                report.parse_json(text)

    def test_bytes_that_are_no_text_come_through_to_the_page_and_not_into_json(self):
        (self.run_folder / "x").write_bytes(b"a\xffb")
        text = report.read_text(self.run_folder / "x")
        self.assertEqual(report.to_bytes(text), b"a\xffb")
        self.assertEqual(report.json_text(text), '"a\ufffdb"\n'.encode())

    def test_without_a_machine_there_is_nothing_to_report_on(self):
        with self.assertRaises(report.Failed):
            self.gather()
        nowhere = {"machine": machine()}
        self.assertEqual(report.device_slug(nowhere), "made-up-gpu-1000-test-sample")
        nowhere["machine"]["gpus"] = []
        with self.assertRaises(report.Failed):
            report.device_slug(nowhere)

    def test_tests_are_counted_by_how_they_ended(self):
        suite = [
            {"name": "A", "status": "RUN", "result": "COMPLETED"},
            {"name": "B", "result": "COMPLETED", "failures": [{"failure": "made up"}]},
            {"name": "C", "status": "RUN", "result": "SKIPPED"},
            {"name": "D", "status": "NOTRUN", "result": "SUPPRESSED"},
        ]
        counts = report.count_tests({"testsuites": [{"name": "MadeUp", "testsuite": suite}]})
        self.assertEqual(counts, (1, ["MadeUp.B"], ["MadeUp.C"]))

    def test_the_last_summary_of_a_sanitizer_counts(self):
        log = "= X\n========= ERROR SUMMARY: 1 error\n========= ERROR SUMMARY: 0 errors\nbye\n"
        self.assertEqual(report.sanitizer_summary(log), "ERROR SUMMARY: 0 errors")
        self.assertEqual(report.sanitizer_summary("nothing of the kind\n"), "")


class Merge(WithFolder):
    FIRST = [name for name in (step["name"] for step in made_up_evidence()["steps"])
             if name != "programs"]  # fmt: skip

    @staticmethod
    def call_of(*names):
        """A call of the made-up run: only these steps."""
        call = copy.deepcopy(made_up_evidence())
        call["steps"] = [step_in(call, name) for name in names]
        return call

    def call_of_programs(self, begin, end):
        call = self.call_of("programs")
        figures = step_in(call, "programs")["figures"]
        figures["programs"] = figures["programs"][begin:end]
        figures["planned"] = [program["name"] for program in figures["programs"]]
        return call

    @staticmethod
    def states(evidence):
        return [verdict.state for verdict in report.judge(evidence)]

    def test_three_calls_make_the_page_of_all_of_them(self):
        halves = [self.call_of_programs(0, 4), self.call_of_programs(4, None)]
        merged = report.merge_calls([self.call_of(*self.FIRST), *halves], "2000-01-02")
        self.assertEqual((merged["date"], merged["call"]), ("2000-01-02", report.ALL_CALLS))
        all_met = [report.MET] * len(report.judge(made_up_evidence()))
        self.assertEqual(self.states(merged), all_met)
        step = report.step_of(merged, "programs")
        self.assertEqual(step.command, "weir-gpu programs; weir-gpu programs")
        self.assertEqual(step.seconds, 4)

    def test_programs_that_no_call_ran_are_not_met(self):
        half = self.call_of_programs(0, 4)
        self.assertNotIn(report.NOT_MET, self.states(half))
        merged = report.merge_calls([self.call_of(*self.FIRST), half], "2000-01-02")
        self.assertIn(report.NOT_MET, self.states(merged))
        self.assertNotIn(report.LEFT_OUT, self.states(merged))

    def test_a_step_that_ran_again_takes_the_place_of_the_first(self):
        first, again = self.call_of(*self.FIRST), self.call_of("bench", "facts")
        step_in(first, "bench")["exit_code"] = 1
        step_in(again, "facts")["left_out"] = "made up"
        merged = report.merge_calls([first, again], "2000-01-02")
        self.assertEqual(report.step_of(merged, "bench").exit_code, 0)
        self.assertTrue(report.step_of(merged, "facts").ran)

    def test_a_program_that_ran_again_takes_the_place_of_the_first_and_a_stop_is_kept(self):
        first = self.call_of_programs(0, None)
        step_in(first, "programs")["exit_code"] = 124
        step_in(first, "programs")["figures"]["programs"][1]["runs"] = []
        merged = report.merge_calls([first, self.call_of_programs(1, 2)], "2000-01-02")
        found = report.figures_of(merged, "programs")["programs"]
        self.assertTrue(found[1]["runs"])
        self.assertEqual(len(found), len(report.PROGRAMS))
        self.assertIn("stopped", report.step_of(merged, "programs").describe())

    def test_no_page_is_of_two_machines_or_builds(self):
        def other(change):
            call = self.call_of("bench")
            change(call["machine"])
            return call

        for change in (
            lambda machine: machine.update(driver="another"),
            lambda machine: machine.update(commit="another"),
            lambda machine: machine["gpus"][0].update(name="Another GPU"),
            lambda machine: machine.update(rehearsal=True),
        ):
            with self.assertRaises(report.Failed):
                report.merge_calls([self.call_of("facts"), other(change)], "2000-01-02")
        with self.assertRaises(report.Failed):
            report.merge_calls([], "2000-01-02")

    def test_a_call_is_a_folder_or_the_file_that_was_made_of_it(self):
        self.write(info__json=json.dumps(machine()), steps__tsv="bench\t0\t3\t40\tweir-gpu bench\n")
        gathered = report.read_call(self.run_folder, DATE)
        self.assertTrue(report.step_of(gathered, "bench").ran)
        self.write(page__json=json.dumps(gathered))
        self.assertEqual(report.read_call(self.run_folder / "page.json", "2000-01-02"), gathered)
        for name in ("info.json", "none"):
            with self.assertRaises(report.Failed):
                report.read_call(self.run_folder / name, "2000-01-02")


# --- Verdicts -----------------------------------------------------------------------------------


class Verdicts(Sampled):
    def comparison(self):
        return self.figures("compare_x16_ring")

    def test_a_run_that_has_everything_meets_everything(self):
        verdicts = report.judge(self.evidence)
        timelines, of_programs = 3 + 1 + 4, 2 * 7 + 3 + 1 + 4 * 6 + 2
        self.assertEqual(len(verdicts), 3 + 5 * 4 + 1 + 2 * 5 + 1 + 2 + timelines + of_programs)
        self.assertTrue(self.holds(), self.lines_not_met())

    def test_throttled_must_reach_its_share_of_unbounded(self):
        self.comparison()["policies"][2] = throttled(0.989, 0.99)
        self.assertIn("at least 0.99 of unbounded: 0.989", self.only_not_met())
        self.assertFalse(self.holds())
        self.comparison()["policies"][2] = throttled(0.99, 0.99)
        self.assertTrue(self.holds())

    def test_throttled_must_reach_its_share_of_a_loop_without_weir(self):
        self.comparison()["policies"][2] = throttled(1, 0.969)
        self.assertIn(
            "at least 0.97 of a CUDA loop without Weir: 0.969 (0.484 to 1.938); host time per batch "
            "40.0 us, without Weir 30.0 us",
            self.only_not_met(),
        )
        self.assertFalse(self.holds())
        self.comparison()["policies"][2] = throttled(1, 0.97)
        self.assertTrue(self.holds())

    def test_without_a_loop_without_weir_that_is_not_met(self):
        self.comparison()["plain"] = {"left_out": "made up"}
        del self.comparison()["policies"][2]["to_plain"]
        self.assertIn("without Weir: made up", self.only_not_met())
        self.comparison()["plain"] = policy("plain", 0, "out of memory in batch 1")
        self.assertIn("without Weir: out of memory in batch 1", self.only_not_met())

    def test_throttled_must_be_above_the_barrier(self):
        self.comparison()["policies"][3] = policy("barrier", 1)
        self.assertIn("above the barrier: 1.000 against 1.000", self.only_not_met())

    def test_unbounded_must_run_out_of_memory(self):
        self.comparison()["policies"][0] = policy("unbounded", 1)
        self.assertIn("same budget: finished", self.only_not_met())

    def test_weights_must_be_identical_and_of_every_policy_that_should_live(self):
        self.comparison()["weights_identical"] = False
        self.assertIn("NOT identical in the 16 runs", self.only_not_met())
        self.comparison()["weights_identical"] = True
        self.comparison()["policies"][1] = policy("backstop", 0, "out of memory in batch 9")
        self.assertIn("bit-identical", self.only_not_met())

    def test_a_failed_or_skipped_test_is_not_met(self):
        of_suite = self.figures("tests")["testsuites"][0]["testsuite"]
        of_suite[0]["failures"] = [{"failure": "made up"}]
        self.assertIn("1 passed, 1 failed, 0 skipped", self.only_not_met())
        del of_suite[0]["failures"]
        of_suite[0]["result"] = "SKIPPED"
        self.assertIn("1 passed, 0 failed, 1 skipped", self.only_not_met())
        of_suite.clear()
        self.assertIn("0 passed", self.only_not_met())

    def test_tests_that_all_passed_in_a_program_that_then_failed_are_not_enough(self):
        self.step("tests")["exit_code"] = 1
        self.assertIn("failed (exit 1)", self.only_not_met())

    def test_a_sanitizer_must_find_nothing(self):
        self.step("memcheck")["summary"] = "ERROR SUMMARY: 10 errors"
        self.assertIn("memcheck is clean: ERROR SUMMARY: 10", self.only_not_met())
        del self.step("memcheck")["summary"]
        self.assertIn("it printed no summary", self.only_not_met())

    def test_what_is_left_out_is_neither_met_nor_not_met(self):
        step = self.step("racecheck")
        step.clear()
        step.update(name="racecheck", left_out="no such tool")
        self.assertEqual(self.found("racecheck"), "left out: no such tool")
        self.assertTrue(self.holds())

    def test_a_step_that_ran_out_of_time_meets_nothing(self):
        step = self.step("compare_x1_drawn")
        step["exit_code"] = 124
        del step["figures"]
        self.assertEqual(len(self.lines_not_met()), 5)
        for line in self.lines_not_met():
            self.assertIn("stopped at its limit of 40", line)

    def test_figures_of_a_step_that_failed_do_not_count(self):
        self.step("compare_x1_ring")["exit_code"] = 1
        self.assertEqual(len(self.lines_not_met()), 5)

    def test_figures_of_another_shape_are_not_met_and_say_why(self):
        del self.comparison()["reference"]
        self.assertEqual(len(self.lines_not_met()), 5)
        for line in self.lines_not_met():
            self.assertIn("reference", line)
        self.evidence = made_up_evidence()
        del self.step("bench")["figures"]
        self.step("bench")["unreadable"] = "bench.json"
        self.assertIn("bench.json is no JSON", self.only_not_met())


class Kernels(Sampled):
    def kernels(self):
        return self.figures("bench")["kernels"]

    def named(self, name):
        return next(one for one in self.kernels() if one["name"] == name)

    def test_each_must_be_within_its_bound(self):
        number = 2 + len(report.NAMED_BOUNDS)
        ends = "1.00 (fill_normal 2^26) to 1.15 (made_up 2x3) times the floor"
        self.assertEqual(self.found("each kernel's time"), f"met: {number} kernels, {ends}")
        self.kernels()[2]["median_us"] = 115.5
        self.assertIn("made_up 2x3 takes 1.16 of at most 1.15", self.only_not_met())
        self.assertFalse(self.holds())

    def test_a_product_has_a_bound_of_its_own(self):
        self.kernels()[2]["floor_of"] = "sgemm"
        self.assertIn("made_up 2x3 takes 1.15 of at most 1.10", self.only_not_met())
        self.kernels()[2]["median_us"] = 110
        self.assertTrue(self.holds())

    def test_one_that_has_a_bound_by_name_is_held_to_that(self):
        self.named("fill_normal")["median_us"] = 249
        self.assertTrue(self.holds())
        self.named("fill_normal")["median_us"] = 251
        self.assertIn("fill_normal 2^26 takes 2.51 of at most 2.50", self.only_not_met())

    def test_one_without_a_bound_is_not_met(self):
        self.kernels()[2]["floor_of"] = "another rate"
        self.assertIn("made_up 2x3: no bound for a floor of another", self.only_not_met())
        self.kernels()[2] = kernel("made_up", "2x3", 3, 3)
        self.assertIn("made_up 2x3: a floor of 3.0 us is mostly its launch", self.only_not_met())

    def test_a_bound_that_no_kernel_of_the_bench_has_is_not_met(self):
        del self.kernels()[-2:]
        self.assertIn(
            "dense_weight_gradient 1024x1024x1024 was not timed; "
            "dense_input_gradient 1024x1024x1024 was not timed",
            self.only_not_met(),
        )

    def test_those_that_took_no_time_or_were_not_timed_are_not_met(self):
        self.kernels()[2]["floor_us"] = 0
        self.assertIn("made_up are no times", self.only_not_met())
        del self.kernels()[1:]
        self.assertIn("no kernel", self.only_not_met())


# An H100, by its data sheet: nothing here was measured.
MULTIPROCESSORS = 132
CLOCKS_PER_US = 1755
WARP_INSTRUCTIONS_PER_US = 4 * MULTIPROCESSORS * CLOCKS_PER_US
SHUFFLES_PER_US = MULTIPROCESSORS * CLOCKS_PER_US  # of a warp
BYTES_PER_US = 3e6
FLOPS_PER_US = 50e6  # of a large product
DEPENDENT_LAUNCH_US = 2.5
WAVE_US = 2  # from the first load of a wave of tiles to its arithmetic, and to its last store: a guess


class KernelBounds(unittest.TestCase):
    ELEMENTS = 1 << 26
    MATRIX = 4 * ELEMENTS / BYTES_PER_US
    ROWS = 1 << 22  # of 16
    SQUARE = 2 * 1024**3 / FLOPS_PER_US
    WIDE = 2 * 8192 * 1024 * 4096 / FLOPS_PER_US
    TILE = SQUARE * MULTIPROCESSORS / 64 - SQUARE
    LAYER = 2 * 128 * 512 * 200000 / FLOPS_PER_US
    FACTORS = {"x": 128 * 512, "w": 512 * 200000, "dy": 128 * 200000}

    @classmethod
    def layer_bytes_us(cls, bytes_of_factor, a, b, result):
        sizes = cls.FACTORS
        return (bytes_of_factor * (sizes[a] + sizes[b]) + 4 * sizes[result]) / BYTES_PER_US

    @classmethod
    def last_layer(cls):
        """Costs of the last layer's products: their floor, launches, and us that cannot overlap.

        Tiles are 128 x 256, one for each multiprocessor at once. The input gradient has two, split
        into as many parts as there are multiprocessors, which the second launch reads.
        """
        waves = {"forward": 6, "weight_gradient": 24}
        factors = {
            "forward": ("x", "w", "dy"),
            "weight_gradient": ("x", "dy", "w"),
            "input_gradient": ("dy", "w", "x"),
        }
        parts = MULTIPROCESSORS * 4 * 128 * 256 * 2 / BYTES_PER_US  # written, then read
        for name, matrices in factors.items():
            launches = 1 if name in waves else 2
            more = waves.get(name, 1) * WAVE_US + (0 if name in waves else parts)
            yield (f"{name}_fp32", report.LAST_LAYER, "sgemm"), (cls.LAYER, launches, 0, 0, more)
            for way, size in (("tf32", 4), ("bf16", 2), ("fp16", 2)):
                floor = cls.layer_bytes_us(size, *matrices)
                yield (f"{name}_{way}", report.LAST_LAYER, "copy"), (floor, launches, 0, 0, more)

    FIRST, LAST = 250000 * 1024, 512 * 200000  # weights of the wide network's layers
    GIVEN_16 = MATRIX + 4 * ROWS / BYTES_PER_US
    GIVEN_1024 = MATRIX + 4 * 65536 / BYTES_PER_US
    TOUCHED = 56_500 * 1024  # elements of the rows of W that 128 rows of 500 entries touch, of 250,000
    SPARSE = 4 * TOUCHED / BYTES_PER_US
    LOGITS = 128 * 200_000
    READ = 4 * LOGITS / BYTES_PER_US

    # The least that a kernel of the bench can take there: its floor in us, launches one behind the
    # other, instructions and shuffles of warps, and us of what cannot overlap with the rest. One thread
    # takes a row of 16. Instructions are counted in the source, and are rough. Sums: two launches for
    # each 2^19 rows, and two for the sums of tiles. Of products: the bias takes another pass, and 64
    # tiles of 128 x 128 keep 64 of 132 multiprocessors busy.
    COSTS = {
        ("fill", "2^26", "copy"): (MATRIX, 1),
        ("sum", "2^26", "copy"): (MATRIX, 3),
        ("fill_normal", "2^26", "copy"): (MATRIX, 1, ELEMENTS / 32 * 60),
        ("softmax_cross_entropy", "4194304x16", "copy"): (GIVEN_16, 18, ROWS / 32 * 540),
        ("softmax_cross_entropy", "65536x1024", "copy"): (GIVEN_1024, 3, ELEMENTS / 32 * 40),
        ("softmax_cross_entropy_gradient", "4194304x16", "copy"):
            (GIVEN_16 + MATRIX, 1, ROWS / 32 * 1000),
        ("softmax_cross_entropy_gradient", "65536x1024", "copy"):
            (GIVEN_1024 + MATRIX, 1, ELEMENTS / 32 * 90),
        ("count_correct", "4194304x16", "copy"): (GIVEN_16, 18, ROWS / 32 * 120),
        ("count_correct", "65536x1024", "copy"): (GIVEN_1024, 3, ELEMENTS / 32 * 12),
        ("dense_bias_gradient", "65536x1024", "copy"): (MATRIX, 3),
        ("csr_forward", "128x250000x1024", "copy"): (SPARSE, 1, 128 * 500 * 1024 / 128 * 15),
        ("csr_weight_gradient", "128x250000x1024", "copy"): (SPARSE, 1, TOUCHED / 128 * 60),
        ("softmax_loss", "128x200000", "copy"): (READ, 3, LOGITS / 32 * 36),
        ("softmax_gradient", "128x200000", "copy"): (2 * READ, 1, LOGITS / 32 * 40),
        ("logistic_loss", "128x200000", "copy"): (READ, 3, LOGITS / 32 * 75),
        ("logistic_loss_and_gradient", "128x200000", "copy"): (2 * READ, 3, LOGITS / 32 * 85),
        ("count_hits", "128x200000", "copy"): (READ, 3, LOGITS / 32 * 10),
        ("dense_forward", "8192x1024x4096", "sgemm"): (WIDE, 2, 0, 0, 8 * 8192 * 4096 / BYTES_PER_US),
        ("dense_forward", "1024x1024x1024", "sgemm"):
            (SQUARE, 2, 0, 0, TILE + 8 * 1024**2 / BYTES_PER_US),
        ("dense_weight_gradient", "1024x1024x1024", "sgemm"): (SQUARE, 1, 0, 0, TILE),
        ("dense_input_gradient", "1024x1024x1024", "sgemm"): (SQUARE, 1, 0, 0, TILE),
        ("to_fp16", "2^26", "copy"): (1.5 * MATRIX, 1, ELEMENTS / 32 * 25),
        ("flag_not_finite", "2^26", "copy"): (MATRIX, 1, ELEMENTS / 32 * 5),
        ("adam", report.LAST_WEIGHTS, "copy"): (28 * LAST / BYTES_PER_US, 1, LAST / 32 * 50),
        ("adamax", report.LAST_WEIGHTS, "copy"): (28 * LAST / BYTES_PER_US, 1, LAST / 32 * 40),
        ("adam_rows", report.FIRST_LAYER, "copy"): (24 * FIRST / BYTES_PER_US, 1, FIRST / 32 * 60),
        ("adamax_rows", report.FIRST_LAYER, "copy"): (24 * FIRST / BYTES_PER_US, 1, FIRST / 32 * 50),
    }  # fmt: skip

    def costs(self):
        return {**self.COSTS, **dict(self.last_layer())}

    def test_no_bound_is_below_what_its_kernel_needs_at_least(self):
        for (name, shape, floor_of), cost in self.costs().items():
            floor, launches, instructions, shuffles, more = (*cost, 0, 0, 0)[:5]
            work = max(floor, instructions / WARP_INSTRUCTIONS_PER_US, shuffles / SHUFFLES_PER_US)
            least = work + launches * DEPENDENT_LAUNCH_US + more
            row = {**kernel(name, shape, least, floor), "floor_of": floor_of}
            (judged,) = report.read_kernels({"kernels": [row]})
            self.assertTrue(judged.within, f"{name} {shape}: {judged.ratio}, bound {judged.most}")

    def test_each_bound_by_name_is_calculated(self):
        self.assertLessEqual(set(report.NAMED_BOUNDS), {cost[:2] for cost in self.costs()})


class Facts(Sampled):
    WORDS = "what only a GPU can tell"

    def setUp(self):
        super().setUp()
        self.facts = self.figures("facts")["facts"]

    def test_are_counted_and_the_unexpected_ones_named(self):
        unexpected = "1 unexpected: made-up fact: expected 7, found 8"
        self.assertEqual(self.found(self.WORDS), f"met: 3 answers, {unexpected}")
        self.facts[0]["answer"] = "7"
        self.assertEqual(self.found(self.WORDS), "met: 3 answers, none unexpected")
        self.facts[0].update(answered=False, answer="not answered: made up")
        self.assertEqual(
            self.found(self.WORDS),
            "NOT MET: made-up fact: not answered: made up; 2 answers, none unexpected",
        )
        self.facts.clear()
        self.assertEqual(self.found(self.WORDS), "NOT MET: no fact")

    def test_one_that_weir_counts_on_must_be_as_expected(self):
        needed = self.facts[1]
        needed["answer"] = "no"
        self.assertEqual(
            self.found(self.WORDS),
            "NOT MET: made-up harm may be done: made-up need: expected yes, found no; 3 answers, "
            "1 unexpected: made-up fact: expected 7, found 8",
        )
        self.assertFalse(self.holds())
        needed["expected"] = "yes or no"
        self.assertTrue(self.holds())
        needed["expected"] = "yes or not"
        self.assertFalse(self.holds())
        needed.update(expected="yes", answered=False)
        self.assertIn(
            "NOT MET: made-up harm may be done: made-up need: expected yes, found no",
            self.found(self.WORDS),
        )

    def test_one_that_was_asked_last_before_a_crash_has_no_answer(self):
        del self.facts[2], self.facts[1]["answer"], self.facts[1]["answered"]
        self.figures("facts")["cut"] = True
        self.assertEqual(
            self.found(self.WORDS),
            "NOT MET: made-up harm may be done: made-up need: expected yes, found no answer, the "
            "step ended here; 1 answer, 1 unexpected: made-up fact: expected 7, found 8; its "
            "figures are cut",
        )
        self.assertIn("| made-up need | yes | no answer, the step ended here |", self.page())
        del self.facts[1]  # cut, though each has an answer
        self.assertIn("NOT MET: 1 answer", self.found(self.WORDS))


class Traces(Sampled):
    def lines(self):
        verdicts = report.judge(self.evidence)
        return report.verdict_lines([one for one in verdicts if re.search("trace|paged", one.condition)])

    def test_all_complete_and_paged_reserves_hardly_more_than_is_requested(self):
        round_pool, paged = self.figures("traces")["traces"][0]["pools"]
        self.assertTrue(
            self.lines().startswith("met       every trace completes on the device: all")
        )
        self.assertIn(
            "\nmet       paged reserves at most 1.03 of the peak requested there, and two pages: "
            "made_up 1.020\n",
            self.lines(),
        )
        round_pool["completed"] = False
        paged["peak_reserved_bytes"] = 1.04e9
        self.assertTrue(
            self.lines().startswith(
                "NOT MET   every trace completes on the device: out of memory: made_up with "
                "round:24\nNOT MET   "
            )
        )
        self.assertIn("made_up 1.040", self.lines())
        round_pool["completed"] = True
        paged.update(completed=False, peak_reserved_bytes=1e9)  # where it ended
        self.assertIn("\nNOT MET   paged reserves", self.lines())
        paged["completed"] = True
        self.step("traces")["exit_code"] = 1
        self.assertTrue(
            self.lines().startswith(
                "NOT MET   every trace completes on the device: all that were replayed; the step "
                "failed"
            )
        )
        self.figures("traces")["traces"] = []
        self.assertIn("NOT MET   every trace completes on the device: nothing", self.lines())


class Wide(Sampled):
    TIME, FLOOR, IDLE = "float32: 500 batches", "float32: at most 1.25", "float32: throttling"
    HIDDEN, PINNED = "float32: the device computes", "float32: no host memory"

    def setUp(self):
        super().setUp()
        self.result = self.figures("wide_float32")["result"]
        self.result["seconds"] = 2.4
        floors = {"adam_rows": 2000, "adam": 1000, "csr_forward": 100, "softmax_loss": 50,
                  "softmax_gradient": 50}  # fmt: skip
        for wanted in report.WIDE_KERNELS:
            name, shape = wanted.split()
            self.time(name, shape, floors[name])
        for product in report.WIDE_PRODUCTS:
            self.time(f"{product}_fp32", report.LAST_LAYER, 400)

    def time(self, name, shape, floor_us):
        kernels = self.figures("bench")["kernels"]
        kernels[:] = [one for one in kernels if (one["name"], one["shape"]) != (name, shape)]
        kernels.append(kernel(name, shape, floor_us, floor_us))

    def test_its_time_is_beside_the_limit_and_the_floor_of_the_same_run(self):
        self.assertEqual(
            self.found(self.TIME), "met: 2.40 s for 500 batches, finished; at most 3.5 s"
        )
        self.assertEqual(self.found(self.FLOOR), "met: 1.09 times 2.20 s")
        self.assertEqual(self.found(self.IDLE), "met: 0.1%")
        self.assertIn("| 208.3 | 2.40 s | 0.5% |", self.page())

    def test_each_limit_is_one(self):
        self.result["seconds"] = 3.51
        self.assertIn("NOT MET: 3.51 s", self.found(self.TIME))
        self.assertEqual(self.found(self.FLOOR), "NOT MET: 1.60 times 2.20 s")
        self.result["throttle_caused_idle"]["share"] = 0.011
        self.assertEqual(self.found(self.IDLE), "NOT MET: 1.1%")

    def test_a_run_that_did_not_finish_meets_nothing(self):
        self.result.update(outcome="out of memory in batch 2", batches=1)
        for words in (self.TIME, self.FLOOR, self.IDLE, self.HIDDEN, self.PINNED):
            self.assertIn("NOT MET", self.found(words))

    def test_copies_are_hidden_behind_the_devices_work(self):
        self.assertEqual(self.found(self.HIDDEN), "met: 99.2% of 12.5 ms")
        self.assertIn("| 99.2% of 12.5 ms | 17 MiB, 0 B later |", self.page())
        self.result["copies_hidden"]["share"] = 0.949
        self.assertEqual(self.found(self.HIDDEN), "NOT MET: 94.9% of 12.5 ms")
        self.result["copies_hidden"]["share"] = 1
        self.figures("wide_float32")["timeline"]["lost"] = 1
        self.assertEqual(self.found(self.HIDDEN), "NOT MET: 100.0% of 12.5 ms; 1 event lost")

    def test_nothing_is_said_of_copies_that_nobody_could_record(self):
        self.result["copies_hidden"] = None
        self.assertEqual(self.found(self.HIDDEN), "NOT MET: no copy was recorded")
        self.figures("wide_float32")["timeline"]["note"] = "CUPTI was not found"
        self.assertEqual(self.found(self.HIDDEN), "left out: CUPTI was not found")
        self.figures("wide_float32")["timeline"] = None
        self.assertEqual(self.found(self.HIDDEN), "left out: there is no timeline")

    def test_what_is_pinned_later_is_not_met(self):
        self.assertEqual(self.found(self.PINNED), "met: 17 MiB, 0 B later")
        self.result["host_memory"]["later_bytes"] = MIB
        self.assertEqual(self.found(self.PINNED), "NOT MET: 17 MiB, 1 MiB later")

    def test_a_file_of_an_earlier_version_says_nothing_of_either(self):
        del self.result["copies_hidden"], self.result["host_memory"]
        del self.figures("wide_float32")["timeline"]
        self.assertIn("left out", self.found(self.HIDDEN))
        self.assertIn("left out", self.found(self.PINNED))
        self.assertIn("| - | - |", self.page())

    def test_without_its_kernels_there_is_no_floor(self):
        self.figures("bench")["kernels"].pop()
        self.assertEqual(self.found(self.FLOOR), "left out: bench did not time its kernels")

    def test_an_h200_has_less_time_for_tf32(self):
        self.figures("wide_tf32")["result"]["seconds"] = 2.6
        words = "TF32: 500 batches"
        self.assertIn("met: 2.60 s for 500 batches, finished; at most 3.0 s", self.found(words))
        self.evidence["machine"]["gpus"][0]["name"] = "NVIDIA H200"
        self.assertIn("NOT MET: 2.60 s for 500 batches, finished; at most 2.5 s", self.found(words))


class Timelines(Sampled):
    RECORDED, INJECTED, INSIDE, OUTSIDE = 1, 2, 3, 4
    COUNTS, TIMES, JOINS = "equal those launched", "of CUDA events", "in its batch"
    COST, PAGE, NSYS = "costs at most", "has a page", "nsys"

    def setUp(self):
        super().setUp()
        self.known = self.figures("timeline")
        self.stretches = self.known["stretches"]
        self.cost = self.figures("timeline_cost")
        self.runs = self.figures("timeline_programs")["runs"]

    def starts(self, words, text, *more):
        found = self.found(words)
        self.assertTrue(found.startswith(text), found)
        for part in more:
            self.assertIn(part, found)

    def is_(self, words, text):
        self.assertEqual(self.found(words), text)

    def test_what_is_as_it_should_be_is_met_with_its_figures(self):
        self.is_(self.COUNTS, "met: 300 kernels and copies")
        self.is_(self.TIMES, "met: 1.000 to 1.000 of the events' times")
        self.is_(self.JOINS, "met: 0 us outside the host's times at most")
        self.is_("costs at most 3%", "met: 1.015 (0.990 to 1.250) times as long in 4 pairs")
        self.is_(self.PAGE, "met: 500 kernels, 5 copies, a page of 1 MiB")
        self.is_("libweir_timeline.so alone", "met: 500 kernels, 5 copies")

    def test_a_missing_or_lost_or_unknown_record_is_not_met(self):
        self.stretches[2]["recorded"] = 99
        self.is_(self.COUNTS, "NOT MET: made-up empty kernel: 99 of 100")
        self.stretches[2]["recorded"] = 100
        self.known.update(strays=2, lost=3, complete=False)
        self.is_(
            self.COUNTS, "NOT MET: 2 of nothing known; 3 events lost; the recording has no end"
        )
        self.stretches.clear()
        self.assertIn("nothing was launched", self.found(self.COUNTS))
        self.is_(self.TIMES, "NOT MET: nothing was timed")
        self.starts(self.JOINS, "NOT MET: nothing was launched")

    def test_a_stretch_without_any_time_is_not_met_beside_others_that_have_theirs(self):
        self.stretches[0].update(event_ms=0.0, sum_ms=0.0)
        self.starts(self.TIMES, "NOT MET: made-up kernel")

    def test_a_time_that_is_off_by_more_than_two_percent_is_not_met(self):
        self.stretches[0]["sum_ms"] = 102
        self.stretches[1]["sum_ms"] = 196
        self.starts(self.TIMES, "met: 0.980 to 1.020")
        self.stretches[0]["sum_ms"] = 102.1
        self.is_(self.TIMES, "NOT MET: made-up kernel 1.021")
        self.stretches[1]["sum_ms"] = 195.8
        self.is_(self.TIMES, "NOT MET: made-up kernel 1.021; made-up copy 0.979")

    def test_a_record_without_its_batch_out_of_order_or_on_another_clock_is_not_met(self):
        self.stretches[0]["joined"] = 90
        self.is_(self.JOINS, "NOT MET: made-up kernel: 90 of 100 have their batch")
        self.stretches[0]["joined"] = 100
        self.stretches[1]["in_order"] = False
        self.is_(self.JOINS, "NOT MET: made-up copy is not in order")
        self.stretches[1].update(in_order=True, outside_us=1000.0)
        self.starts(self.JOINS, "met: 1000 us")
        self.stretches[1]["outside_us"] = 1001.0
        self.starts(self.JOINS, "NOT MET: 1001 us")

    def test_without_cupti_known_work_is_left_out_and_what_refuses_is_not_met(self):
        self.known["no_cupti"] = "made-up CUPTI was not found"
        for words in (self.COUNTS, self.TIMES, self.JOINS):
            self.is_(words, "left out: made-up CUPTI was not found")
        self.known.update(no_cupti="", refused="made-up CUPTI says 999")
        self.is_(self.TIMES, "NOT MET: made-up CUPTI says 999")
        self.step("timeline")["exit_code"] = 1
        self.known["refused"] = ""
        self.starts(self.TIMES, "NOT MET", "failed (exit 1)")

    def test_a_recording_that_costs_more_than_three_percent_is_not_met(self):
        for recorded, found in ((97.0, "NOT MET: 1.031"), (97.1, "met: 1.030")):
            for pair in self.cost["pairs"]:
                pair["recorded"] = recorded
            self.starts(self.COST, found)

    def test_a_cost_of_few_pairs_or_of_a_recording_without_kernels_is_not_met(self):
        pairs = self.cost["pairs"]
        del pairs[1]
        self.starts(self.COST, "met")
        pairs[0]["kernels"] = 0
        self.starts(self.COST, "NOT MET", "kernels are missing")
        del pairs[0]
        self.starts(self.COST, "NOT MET: 1.005 (0.990 to 1.020)")
        pairs[:] = timeline_cost()["pairs"]
        for pair in pairs:
            pair["plain"] = 0.0
        self.starts(self.COST, "NOT MET", "a run trained nothing")
        for pair in pairs:
            pair["plain"] = 200.0
        self.cost["why"] = "made-up CUPTI was not found"
        self.starts(self.COST, "NOT MET")  # it was found: there are kernels
        pairs.clear()
        self.cost["why"] = ""
        self.is_(self.COST, "NOT MET: no pair of runs")
        self.cost["why"] = "made-up CUPTI was not found"
        self.is_(self.COST, "left out: made-up CUPTI was not found")

    def test_a_program_whose_recording_lacks_something_is_not_met(self):
        run = self.runs[self.RECORDED]
        run["page_bytes"] = 0
        self.is_(self.PAGE, "NOT MET: no page")
        run["printed"]["losses"] = ["0x1p+0"]
        self.is_(self.PAGE, "NOT MET: losses differ from those without it")
        run["timeline"]["lost"] = 3
        self.is_(self.PAGE, "NOT MET: 3 events lost")
        run["timeline"]["complete"] = False
        self.is_(self.PAGE, "NOT MET: the recording was cut")
        run["timeline"]["kernels"] = 0
        run["lines"] = ["made-up CUPTI is in use"]
        self.is_(
            self.PAGE, "NOT MET: no kernel was recorded; it says: made-up CUPTI is in use"
        )
        run.update(timeline=None, lines=[])
        self.is_(self.PAGE, "NOT MET: there is no timeline; nothing says why")
        run["stopped"] = True
        self.is_(self.PAGE, "NOT MET: stopped at its limit")
        self.runs[self.INJECTED] = {"setup": "injected", "left_out": "there is no library"}
        self.is_("libweir_timeline.so alone", "left out: there is no library")

    def test_two_profilers_work_or_a_line_says_why_not(self):
        words, run = "torch.profiler", self.runs[self.INSIDE]
        self.is_(words, "met: torch.profiler has 500 of 500; the timeline has 500 kernels, 5 copies")
        run["printed"]["profiled_kernels"] = 400
        self.starts(words, "NOT MET: torch.profiler has 400 of 500", "nothing says why")
        run["lines"] = ["CUPTI is in use by made-up"]
        self.starts(words, "met: ", "it says: CUPTI is in use by made-up")
        run["exit_code"] = 139
        self.starts(words, "NOT MET: failed (exit 139)")
        self.runs[0]["printed"]["profiled_kernels"] = 0
        self.starts(words, "left out: ")

        self.starts(self.NSYS, "met: nsys has its report")
        self.runs[self.OUTSIDE]["other_report_bytes"] = 0
        self.starts(self.NSYS, "NOT MET: nsys has no report")
        self.runs[self.OUTSIDE] = {"setup": "outside", "left_out": "no nsys"}
        self.is_(self.NSYS, "left out: no nsys")

    def test_where_there_is_no_pytorch_its_runs_are_left_out(self):
        figures = self.step("timeline_programs")["figures"]
        figures.update(left_out="PyTorch is not there", runs=[])
        self.is_(self.PAGE, "left out: PyTorch is not there")
        self.is_(self.NSYS, "left out: PyTorch is not there")
        section = report.timeline_programs_section(figures)
        self.assertEqual(section, "Left out: PyTorch is not there.\n\n")

    def test_the_page_has_what_was_found_of_each(self):
        text = self.page()
        self.assertIn("| made-up copy | 100 | 100 | 100 | 200.000 ms | 200.000 ms |", text)
        self.assertIn("| 100.0 | 80.0 | 7 | 0 |", text)
        self.assertIn("| inside | finished | 500 | 5 | 0 | 500 |  |", text)
        self.known["no_cupti"] = "made-up CUPTI was not found"
        why = "## Timelines\n\nmade-up CUPTI was not found\n\n| stretch |"
        self.assertIn(why, self.page())


class Programs(Sampled):
    GPT, GRAPHS = "PyTorch, transformer", "PyTorch, captured step"
    PREFETCH, SHARED = "PyTorch, prefetching", "PyTorch, 8 processes"
    CUPY, JAX = "CuPy, products", "JAX, dense network"
    PLUGGED, PLUG_PREFETCH = "Weir's plug, transformer", "Weir's plug, prefetching"

    def program(self, name):
        all_programs = self.figures("programs")["programs"]
        return next(one for one in all_programs if one["name"] == name)

    def run_of(self, name, setup):
        return next(one for one in self.program(name)["runs"] if one["setup"] == setup)

    def verdicts(self, title):
        return [f"{one.state}: {one.figure}" for one in report.judge(self.evidence)
                if one.condition.startswith(f"{title}: ")]  # fmt: skip

    def first_is(self, title, text):
        self.assertEqual(self.verdicts(title)[0], text)

    def first_has(self, title, text):
        self.assertIn(text, self.verdicts(title)[0])

    def test_losses_are_compared_bit_for_bit(self):
        self.first_is(self.GPT, "met: bit-identical over 3 steps in 2 runs with Weir")
        printed = self.run_of("torch_gpt", "weir_async")["printed"]
        printed["losses"][1] = "0x1.0000000000001p-1"
        self.first_is(self.GPT, "NOT MET: with Weir, in stream order differs from step 1")
        printed["losses"] = []
        self.first_has(self.GPT, "NOT MET: ")

    def test_the_plug_must_be_in_use_and_take_no_longer(self):
        used = "weir: PyTorch 1.2 allocates by libweir_torch_1.2.so"
        states = [f"met: {used}", "met: bit-identical over 3 steps in 1 run with Weir",
                  "met: with Weir's plug 99.50%", "met: 1.010 times"]  # fmt: skip
        self.assertEqual(self.verdicts(self.PLUGGED), states)
        run = self.run_of("plug_gpt", "weir_plug")
        run["printed"]["seconds"] = 2.03
        self.assertEqual(self.verdicts(self.PLUGGED)[3], "NOT MET: 1.015 times")
        run["exit_code"] = 1
        self.assertIn("NOT MET: with the plug failed", self.verdicts(self.PLUGGED)[3])
        run["plug"] = "weir: PyTorch 1.2 allocates without Weir's plug: it is cut off"
        self.first_is(self.PLUGGED, f"NOT MET: {run['plug']}")
        del run["plug"]
        self.first_is(self.PLUGGED, "NOT MET: no line says so")

    def test_without_a_plug_of_its_version_nothing_of_it_is_judged(self):
        line = "weir: PyTorch 1.3 allocates without Weir's plug: there is no plug for it: no file x.so"
        self.run_of("plug_gpt", "weir_plug")["plug"] = line
        self.assertEqual(self.verdicts(self.PLUGGED), [f"left out: {line}"] * 4)

    def test_prefetching_with_the_plug_is_compared_with_enough_memory(self):
        self.assertIn("met: finished, losses bit-identical", self.verdicts(self.PLUG_PREFETCH)[1])
        self.run_of("plug_prefetch", "weir_plug")["exit_code"] = 75
        self.assertIn("NOT MET: ", self.verdicts(self.PLUG_PREFETCH)[1])

    def test_no_losses_are_not_the_same_losses(self):
        for run in self.program("jax_train")["runs"]:
            run["printed"]["losses"] = []
        self.first_has(self.JAX, "NOT MET: ")

    def test_one_that_differs_by_itself_is_called_so(self):
        self.run_of("torch_gpt", "plain")["printed"]["losses"][2] = "0x1p+9"
        self.first_is(
            self.GPT, "NOT MET: with Weir differs from step 2; two runs without Weir differ too"
        )

    def test_what_fails_only_with_weir_is_not_met(self):
        failed = self.run_of("cupy_loop", "weir")
        failed.update(exit_code=1, said="made-up error")
        self.first_is(self.CUPY, "NOT MET: with Weir: failed (exit 1): made-up error")
        failed["stopped"] = True
        self.first_is(self.CUPY, "NOT MET: with Weir: stopped at its limit")
        failed.update(exit_code=None, said="no time was left")
        self.first_is(self.CUPY, "NOT MET: with Weir: not run: no time was left")

    def test_what_fails_without_weir_too_says_nothing_of_it(self):
        for setup in ("plain_async", "weir_async"):
            self.run_of("torch_graphs", setup)["exit_code"] = 1
        self.first_is(
            self.GRAPHS,
            "met: bit-identical over 3 steps in 1 run with Weir; with Weir, in stream order is "
            "compared with nothing: without Weir it failed (exit 1)",
        )
        for setup in ("plain", "weir"):
            self.run_of("torch_graphs", setup)["exit_code"] = 1
        self.first_has(self.GRAPHS, "left out: ")
        self.run_of("torch_graphs", "plain")["exit_code"] = None  # not come to: that spares nothing
        self.first_has(self.GRAPHS, "NOT MET: ")

    def test_a_run_without_weir_that_was_stopped_spares_nothing(self):
        for setup in ("plain", "plain_async"):
            self.run_of("torch_graphs", setup).update(exit_code=-9, stopped=True)
        self.first_is(
            self.GRAPHS,
            "NOT MET: with Weir: without Weir stopped at its limit; with Weir, in stream order: "
            "without Weir stopped at its limit",
        )
        # Nor does it where the run with Weir failed as well.
        for setup in ("weir", "weir_async"):
            self.run_of("torch_graphs", setup)["exit_code"] = 1
        self.first_has(self.GRAPHS, "NOT MET: with Weir: failed (exit 1)")

    def test_what_the_call_did_not_plan_is_left_out_of_its_page(self):
        self.figures("programs").update(programs=[], planned=["torch_gpt"])
        self.first_is(self.GPT, "NOT MET: not run; the step ok")
        self.first_is(self.JAX, "left out: not among the programs of this call")

    def test_weir_must_serve_what_it_can(self):
        def served(document):
            self.run_of("torch_gpt", "weir")["summary"] = document
            return self.verdicts(self.GPT)[1]

        other = "; with Weir, in stream order 99.50%"
        self.assertEqual(self.verdicts(self.GPT)[1], f"met: with Weir 99.50%{other}")
        self.assertEqual(served(summary(989, 11)), f"NOT MET: with Weir 98.90%{other}")
        self.assertEqual(served(summary(990, 10)), f"met: with Weir 99.00%{other}")
        self.assertIn("NOT MET: with Weir no memory", served(summary(0, 0)))
        self.assertIn("with Weir no summary: there is none", served(None))
        self.assertIn("no summary: it names no device", served({"devices": []}))

    def test_the_prefetching_loop_dies_without_and_lives_with(self):
        self.first_is(self.PREFETCH, "met: out of memory; in stream order out of memory")
        self.assertEqual(
            self.verdicts(self.PREFETCH)[1],
            "met: finished, losses bit-identical to those with enough memory, 5 waits of 1.25 s "
            "together",
        )
        runs = self.program("torch_prefetch")["runs"]
        runs[2] = program_run("plain_async")
        self.first_is(self.PREFETCH, "NOT MET: out of memory; in stream order finished")
        self.run_of("torch_prefetch", "weir_async")["printed"]["losses"][0] = "0x1p+9"
        self.assertIn("NOT MET: finished, losses differ", self.verdicts(self.PREFETCH)[1])
        runs[4] = out_of_memory("weir_batches")
        self.assertEqual(self.verdicts(self.PREFETCH)[2], "NOT MET: out of memory")

    def test_all_that_share_the_gpu_must_finish_within_their_budgets(self):
        same = "finished within their budgets with the same losses"
        self.first_is(self.SHARED, f"met: 8 of 8 {same}")
        device = self.run_of("torch_shared", "weir_async")["summary"]["devices"][0]
        device["budget_bytes"] = 1
        self.first_is(self.SHARED, f"NOT MET: 7 of 8 {same}; reserved more than its budget")
        del self.program("torch_shared")["runs"][1]
        self.first_has(self.SHARED, "NOT MET: 7 of 8")

    def test_a_framework_that_is_not_there_is_left_out(self):
        self.program("jax_train")["left_out"] = "JAX is not there"
        self.assertEqual(self.verdicts(self.JAX), ["left out: JAX is not there"] * 2)
        self.assertTrue(self.holds())

    def test_what_the_step_did_not_come_to_is_not_met(self):
        step = self.step("programs")
        step["exit_code"] = 124
        step["figures"]["programs"] = []
        self.first_is(self.GPT, "NOT MET: not run; the step stopped at its limit of 40 s")
        del step["figures"]
        self.first_is(self.GPT, "NOT MET: stopped at its limit of 40 s")

    def test_each_setup_has_its_counterpart_without_weir(self):
        for setup, without in (("weir", "plain"), ("weir_pluggable", "plain"),
                               ("weir_async", "plain_async")):  # fmt: skip
            run = report.read_run({"setup": setup})
            self.assertTrue(run.has_weir)
            self.assertEqual(run.without, without)
        self.assertFalse(report.read_run({"setup": "plain_async"}).has_weir)
        self.assertEqual(report.read_run({"setup": "weir_new"}).title, "weir_new")


class WhatProgramsWrite(unittest.TestCase):
    """The samples of samples/ are written by the programs' own code: report_samples_test.cpp."""

    @staticmethod
    def sample(name):
        return report.parse_json(report.read_text(SAMPLES / name))

    def test_a_comparison_is_read_as_the_training_program_writes_it(self):
        read = report.read_comparison(self.sample("comparison.json"))
        self.assertTrue(read.settings)
        self.assertEqual(read.same, "identical")
        self.assertEqual(read.finished, "in the 4 runs that finished")
        self.assertEqual(read.reference.rate, 100)
        line = read.policies["throttled"]
        self.assertEqual(line.ratio, [0.75, 0.5, 1])
        self.assertEqual(line.to_plain, [0.5, 0.25, 0.75])
        self.assertEqual((line.idle_share, line.host_us), (0.5, 25))
        self.assertEqual((line.peak, line.outcome), (7 * MIB, "finished"))
        self.assertEqual(read.plain.ratio[0], 1.5)
        self.assertEqual((read.plain.idle_share, read.plain.host_us), (None, 25))
        self.assertEqual((read.plain.peak, read.plain.outcome), (7 * MIB, "finished"))
        self.assertIsNone(read.policies["unbounded"].ratio)
        self.assertEqual(read.policies["unbounded"].outcome, "out of memory in batch 1")
        self.assertEqual(read.policies["barrier"].outcome, "not run")

    def test_it_says_why_there_is_no_loop_without_weir(self):
        read = report.read_comparison(self.sample("comparison_without_plain.json"))
        self.assertEqual(read.plain.outcome, "it needs a GPU")

    def test_a_summary_is_read_as_the_swap_in_writes_it(self):
        read = report.read_summary(self.sample("summary.json"))
        self.assertEqual((read.served, read.passed, read.other), (192 * MIB, 64 * MIB, 16 * MIB))
        self.assertEqual((read.peak, read.budget), (96 * MIB, 128 * MIB))
        self.assertEqual((read.waits, read.waited_s), (6 + 12, 6))
        self.assertEqual(read.share, 0.75)

    def test_a_summary_of_no_device_is_none(self):
        with self.assertRaisesRegex(ValueError, "it names no device"):
            report.read_summary(self.sample("summary_of_nothing.json"))


# --- The page -----------------------------------------------------------------------------------


class Page(Sampled):
    def has(self, *texts):
        for text in texts:
            self.assertIn(text, self.page())

    def test_names_the_machine_the_build_and_the_commands(self):
        self.has(
            "# Made-up GPU 1000 (test sample), 2000-01-01\n",
            "| driver | 1.2.3, for CUDA 13.0 |",
            "| toolkit | 13.0.0, runtime 13.0 |",
            "| commit | made-up |",
            "| tests | ok | 2 | 40 s | `weir-gpu tests` |",
            "[x.json](x.json)",
        )

    def test_is_named_after_device_date_and_call(self):
        name = "gpu-made-up-gpu-1000-test-sample-2000-01-01"
        self.assertEqual(report.page_name(self.evidence), name)
        self.evidence["call"] = "programs-first"
        self.assertEqual(report.page_name(self.evidence), f"{name}-programs-first")
        self.has("sample), 2000-01-01, only programs-first\n")
        self.evidence["call"] = report.ALL_CALLS
        self.assertEqual(report.page_name(self.evidence), f"{name}-all")
        self.has("sample), 2000-01-01, all calls\n")

    def test_says_where_the_commit_does_not_tell_the_code(self):
        self.assertNotIn("different code", self.page())
        self.evidence["machine"]["commit"] = "1234567-dirty"
        self.has(
            "| commit | 1234567-dirty, of a tree with uncommitted changes: calls may be of different "
            "code |\n"
        )
        self.evidence["machine"]["commit"] = "unknown"
        self.has("| commit | unknown: calls may be of different code |\n")

    def test_a_rehearsal_cannot_pass_for_a_gpu(self):
        self.assertNotIn("ehearsal", self.page())
        self.evidence["machine"]["rehearsal"] = True
        name = "rehearsal-made-up-gpu-1000-test-sample-2000-01-01"
        self.assertEqual(report.page_name(self.evidence), name)
        self.assertTrue(self.page().startswith("# Rehearsal, without a GPU: Made-up GPU"))
        self.has("\nNothing here ran on a GPU")

    def test_names_the_cublas_and_what_was_set(self):
        self.evidence["machine"].update(
            cublas="cuBLAS 9.9.9 in /made/up",
            settings={"NVIDIA_TF32_OVERRIDE": {"value": "1", "source": "environment"}},
        )
        self.has(
            "| matrix products | cuBLAS 9.9.9 in /made/up |\n",
            "| set for unmodified programs alone | `NVIDIA_TF32_OVERRIDE=1` |\n",
        )

    def test_reads_the_settings_of_earlier_pages_too(self):
        self.assertEqual(report.settings_text("settings: a=1 (b)"), "settings: a=1 (b)")
        self.assertEqual(report.settings_text({"a": {"value": "1", "source": "b"}}), "settings: a=1 (b)")
        self.evidence["machine"]["settings"] = ["NVIDIA_TF32_OVERRIDE=1"]
        self.has("| set for unmodified programs alone | `NVIDIA_TF32_OVERRIDE=1` |\n")

    def test_shows_policies_and_kernels_as_tables(self):
        self.has(*(f"### {title}" for title in report.COMPARISONS.values()))
        self.has(
            "| barrier | 500.0 | 0.500 (0.250 to 1.000) | - | 40.0 us | 64 MiB | 25.0% | finished |\n",
            "| without Weir | 1010.0 | 1.010 (0.505 to 2.020) | - | 30.0 us | 64 MiB | - | finished |\n",
            "| throttled | 1000.0 | 1.000 (0.500 to 2.000) | 0.990 (0.495 to 1.980) | 40.0 us | "
            "64 MiB | 25.0% | finished |\n",
            "| unbounded | 0.0 | - | - | 40.0 us | 64 MiB | 25.0% | out of memory in batch 7 |\n",
            "| made_up | 2x3 | 115.0 us | 100.0 us | copy | 1.15 | 1.15 | met |\n",
            "| copy | 2x3 | 100.0 us | 100.0 us | copy |  |  |  |\n",
            "| fill_normal | 2^26 | 100.0 us | 100.0 us | copy | 1.00 | 2.50: some 60 instructions",
        )
        self.assertNotIn("No figures", self.page())

    def test_shows_which_kernels_are_not_within_their_bounds(self):
        kernels = self.figures("bench")["kernels"]
        kernels[1:3] = [kernel("slow", "2x3", 150, 100), kernel("short", "2x3", 3, 2)]
        self.has(
            "| slow | 2x3 | 150.0 us | 100.0 us | copy | 1.50 | 1.15 | NOT MET |\n",
            "| short | 2x3 | 3.0 us | 2.0 us | copy | 1.50 | a floor of 2.0 us is mostly its launch "
            "| NOT MET |\n",
        )

    def test_shows_programs_beside_themselves_without_weir_and_facts(self):
        self.has(
            "### PyTorch, transformer\n\nMade-up framework 1.\n\n| setup |",
            "| as it is | finished | 2.000 s |  | 64 MiB |  |  |  |\n",
            "| with Weir, in stream order | finished | 3.000 s | 1.500 | 64 MiB | 1 MiB | 99.50% | "
            "5, 1.25 s |\n",
            "| as it is | out of memory |  |  |  |  |  |  |\n",
            "## Facts\n\n| fact | expected | found | otherwise |\n|---|---|---|---|\n"
            "| made-up fact | 7 | 8 |  |\n"
            "| made-up need | yes | yes | made-up harm may be done |\n",
        )

    def test_shows_what_traces_came_to_on_the_device(self):
        self.has(
            "|---|---|---|---|---|---|\n| made_up | round:24 | 2.000 | 5 | 3 | 123 |\n"
            "| made_up | paged | 1.020 | 5 | 3 | 123 |\n\n## Timelines\n"
        )

    def test_says_which_programs_were_not_run(self):
        found = self.figures("programs")["programs"]
        found[0]["left_out"] = "PyTorch is not there"
        del found[1]
        self.has("network\n\nLeft out: PyTorch is not there.\n")
        self.has("### PyTorch, transformer\n\nNot run.\n")

    def test_names_tests_that_did_not_pass(self):
        self.figures("tests")["testsuites"][0]["testsuite"][0]["result"] = "SKIPPED"
        self.has("1 test passed.\n\n- skipped: `MadeUp.Passes`\n")

    def test_comes_out_whatever_the_steps_wrote(self):
        self.step("bench")["figures"] = {"kernels": "none"}
        del self.step("tests")["figures"]
        self.step("tests")["exit_code"] = 139
        self.has("The figures of step `bench` are not as expected")
        self.has("## Tests\n\nNo figures: failed (exit 139).\n")

    def test_verdicts_are_one_line_each(self):
        verdicts = [
            report.Verdict("this holds", report.MET, "3"),
            report.Verdict("that does not", report.NOT_MET, "4"),
            report.Verdict("nobody knows", report.LEFT_OUT, "no tool"),
        ]
        self.assertEqual(
            report.verdict_lines(verdicts),
            "met       this holds: 3\nNOT MET   that does not: 4\nleft out  nobody knows: no tool\n",
        )

    def test_nothing_in_a_cell_ends_it(self):
        table = report.markdown_table([["a", "b"], ["x|y", "two\nlines"]])
        self.assertEqual(table, "| a | b |\n|---|---|\n| x\\|y | two lines |\n")

    def test_sizes_have_three_digits_or_are_exact(self):
        for count, text in ((0, "0 B"), (1023, "1023 B"), (96 * MIB, "96 MiB"), (3 << 29, "1.50 GiB"),
                            (12345678, "11.8 MiB"), (123456789, "118 MiB")):  # fmt: skip
            self.assertEqual(report.size(count), text)


unittest.main()

#!/usr/bin/env python3
"""Tests the runner of tools/gpu-check under ROOT: run_test.py ROOT

Whole calls run with a program in weir-gpu's place that makes its figures up. Programs run with and without a made-up
weir. No test depends on how fast the machine is: what must end by a limit would otherwise never end.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/gpu_check"))
import conditions  # noqa: E402
import plan  # noqa: E402
import run  # noqa: E402
import unmodified  # noqa: E402
import unmodified_conditions  # noqa: E402
import written  # noqa: E402

FOREVER = "exec sleep 100000"

# MISBEHAVE names a command and what it does.
MADE_UP_GPU = r"""#!/usr/bin/env bash
set -euo pipefail
command=$1
[[ -z ${WEIR_BUDGET:-}${NVIDIA_TF32_OVERRIDE:-}${CUBLAS_EMULATE_SINGLE_PRECISION:-} ]] || exit 9
[[ -n ${NO_SITE:-} || :$LD_LIBRARY_PATH: == :/made/up:*site/nvidia/cu13/lib:*site/nvidia/cuda_cupti/lib:* ]] || exit 9
[[ -z ${TOO_OLD:-} || $0 == *-12/* || $command != info ]] || { echo "weir-gpu info: too old" >&2; exit 2; }
case ${MISBEHAVE:-} in
  "$command-waits") trap '' TERM; [[ -z ${HOLD:-} ]] || { exec 9>"$RUNNING"; echo x >&9; }; sleep 100000 & wait; exec sleep 100000 ;;
  steps-wait) [[ $command == info ]] || { trap '' TERM; sleep 100000; exec sleep 100000; } ;;
  "$command-crashes") kill -SEGV $$ ;;
  "$command-babbles") echo babble; exit ;;
esac
file=/dev/stdout
for word; do
  [[ ${previous:-} != --json || $word == - ]] || file=$word
  [[ ${previous:-} != --timeline ]] || echo made-up >"$word"
  [[ $word != --gtest_output=json:* ]] || file=${word#--gtest_output=json:}
  previous=$word
done
[[ $command != train ]] || command=$2
cat "$FIGURES/$command.json" >"$file"
"""

ONE_POLICY = {"runs": 1, "batches_per_second": 1, "ratio_low": 1, "ratio_high": 1, "idle_share": 0, "host_us": 1,
              "to_plain": {"ratio": 1, "low": 1, "high": 1}}  # fmt: skip


def policy(name, ratio, outcome="finished"):
    end = {"peak_reserved_bytes": 1, "outcome": outcome}
    return {**ONE_POLICY, "policy": name, "ratio_to_reference": ratio, "last_run": end}


def made_up_figures():
    kernels = [{"name": name, "shape": shape, "floor_of": "copy", "median_us": 110, "floor_us": 100}
               for name, shape in conditions.NAMED_BOUNDS]  # fmt: skip
    tests = ("HasEveryKernelAndCopyOnce", "TimesAreThoseOfCudaEvents", "JoinsEachToItsBatchInOrder")
    return {
        "info": {"commit": "made-up", "driver": "1", "gpus": [
            {"name": "Made-up GPU", "memory_bytes": 1, "compute_capability": "0", "multiprocessors": 1}]},
        "test": {"testsuites": [{"name": "TimelineOnDevice", "testsuite": [
            {"name": name, "result": "COMPLETED"} for name in tests]}]},
        "compare": {
            "settings": {"device": {"value": "made up", "source": "--device"}}, "weights_identical": True,
            "finished_runs": 4, "reference": policy("reference", 1), "plain": policy("plain", 1),
            "policies": [policy("unbounded", 0, "out of memory in batch 1"), policy("backstop", 1),
                         policy("throttled", 1), policy("barrier", 0.5)]},
        "wide": {"settings": {}, "result": {
            "outcome": "finished", "batches": 500, "seconds": 0.4, "batches_per_second": 1, "idle_share": 0,
            "copied_to_device": {"bytes": 1}, "peak_reserved_bytes": 1, "test_accuracy": 1,
            "throttle_caused_idle": {"share": 0}, "held_bytes_per_batch": [1, 1]}, "timeline": {"lost": 0, "note": "x"}},
        "run": {"result": {"batches_per_second": 100.5}, "timeline": {"lost": 0, "note": ""}},
        "bench": {"kernels": kernels},
        "facts": {"facts": [{"fact": "made up", "expected": "1", "answer": "1", "answered": True}]},
    }  # fmt: skip


# Stands in for weir: runs programs, records them, and reads what it recorded.
MADE_UP_WEIR = r"""#!/usr/bin/env bash
set -euo pipefail
if [[ $1 == replay ]]; then
  while [[ $1 != --json ]]; do shift; done
  echo '{"traces": [{"trace": "a/b.csv.gz", "peak_requested_bytes": 100, "pools": [{"pool": "paged", "completed": true,
    "peak_reserved_bytes": 100, "driver_calls": 1, "mapped_pages": 1, "ns_per_operation": 1}]}]}' >"$2"
  exit
fi
if [[ "$1 $2" == "timeline report" ]]; then
  [[ ${6:-} != -o ]] || echo page >"$7"
  echo '{"lost": 0, "processes": [{"summary": {"complete": true}, "streams": [{"count": 3}]}]}' >"$5"
  exit
fi
if [[ "$1 $2" == "timeline record" ]]; then
  [[ "$3 $5 $6 $7 $8 $9" == "--library --batch-range batch --allocator async -o" ]]
  echo recorded >"${10}"
  exec env PRELOADED="$4" "${@:12}"
fi
[[ $1 == run ]]
shift
export ASKED=
while [[ $1 != -- ]]; do
  case $1 in
    --library) export PRELOADED=$2 ;;
    --budget) budget=$2 ;;
    --json) file=$2 ;;
    *) ASKED="$1 $2" ;;
  esac
  shift 2
done
[[ $ASKED != *plug* ]] || echo "weir: PyTorch 1.2 allocates by /a/b/plug.so" >&2
echo '{"budget": "'"$budget"'"}' >"$file"
exec "${@:2}"
"""

# A program that tells of its environment, or behaves as MADE_UP says.
MADE_UP_PROGRAM = """
import os, sys, time
import harness

def run(args):
    how = os.environ.get("MADE_UP", "")
    if how == "missing" or how == "missing with Weir" and os.environ.get("PRELOADED"):
        raise harness.Missing("Made-up is not there")
    if how == "hangs":
        os.system("(echo x; exec sleep 100000) >" + os.environ["RUNNING"] + " &")
        time.sleep(100000)
    if how == "crashes":
        raise RuntimeError("made-up error")
    if how == "full":
        raise RuntimeError("CUDA error: out of memory")
    print("CUPTI is in use by a made-up profiler", file=sys.stderr)
    names = ("PRELOADED", "ASKED", "PYTORCH_ALLOC_CONF", "NVIDIA_TF32_OVERRIDE", "LD_LIBRARY_PATH", "WEIR_TIMELINE")
    return {"losses": [(0.5).hex()], "profiled_kernels": 3, **{name: os.environ.get(name, "") for name in names}}

parser = harness.flags("made up", steps=1)
parser.add_argument("--profile", action="store_true")
harness.main("made_up", run, parser)
"""


class Scratch(unittest.TestCase):
    def setUp(self):
        self.at = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.at)
        self.program = self.write("beside/weir-gpu", MADE_UP_GPU)
        for name, document in made_up_figures().items():
            self.write(f"figures/{name}.json", json.dumps(document))
        for library in ("cu13/lib/libcublas.so.13", "cuda_cupti/lib/libcupti.so.12", "other/lib/libother.so.1"):
            self.write(f"site/nvidia/{library}", "")
        self.variables = {
            "FIGURES": str(self.at / "figures"), "LD_LIBRARY_PATH": "/made/up", "PYTHONPATH": str(self.at / "site"),
            "RUNNING": str(self.at / "running"), "NVIDIA_TF32_OVERRIDE": "1", "CUBLAS_EMULATE_SINGLE_PRECISION": "1",
            "WEIR_BUDGET": "1GiB", "WEIR_GPU_RUN": "run", "WEIR_GPU_PROGRAM": "beside/weir-gpu",
            "WEIR_GPU_PYTHON": sys.executable, "PATH": f"{self.at}/bin:{os.environ['PATH']}",
        }  # fmt: skip

    def write(self, name, text):
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def with_weir(self):
        self.weir = self.write("beside/weir", MADE_UP_WEIR)
        for name in ("libweir.so", "libweir_timeline.so"):
            self.write(f"beside/{name}", "")

    def running(self):
        """Returns a pipe that what hangs writes a word to and keeps open: its end is the end of all that it started."""
        os.mkfifo(self.at / "running")
        return open(os.open(self.at / "running", os.O_RDONLY | os.O_NONBLOCK), "rb")


class WholeCalls(Scratch):
    def call(self, expected, *words, **more):
        """Runs tools/gpu-check, which must exit with `expected`. Returns its verdicts."""
        shutil.rmtree(self.at / "pages", ignore_errors=True)
        command = [ROOT / "tools/gpu-check", "--output", "pages", *words]
        done = subprocess.run(list(map(str, command)), cwd=self.at, env={**os.environ, **self.variables, **more},
                              capture_output=True, text=True, check=False)  # fmt: skip
        self.said = done.stderr
        self.assertEqual(done.returncode, expected, done.stdout + done.stderr)
        self.files = sorted((self.at / "pages").glob("*")) if (self.at / "pages").exists() else []
        return done.stdout

    def document(self):
        return json.loads(next(one for one in self.files if one.suffix == ".json").read_text())

    def test_a_call_with_everything_meets_everything_and_leaves_three_files(self):
        self.with_weir()
        self.write("bin/compute-sanitizer", "#!/bin/sh\necho '========= ERROR SUMMARY: 0 errors'\n")
        for framework in ("torch", "cupy", "jax"):
            self.write(f"site/{framework}.py", f"import os\nopen({str(self.at / 'imported')!r}, 'a').write("
                       f"'{framework} ' + repr(os.environ.get('CUDA_VISIBLE_DEVICES')) + '\\n')\n"
                       "class cuda:\n    is_available = staticmethod(lambda: False)\n")  # fmt: skip
        said = self.call(0)
        self.assertNotIn("NOT MET", said)
        for name in ("every test labelled gpu passes: 3 passed", "compute-sanitizer racecheck is clean",
                     "every trace completes", "timeline: recorded kernels and copies equal those launched",
                     "what only a GPU can tell is answered, and as Weir counts on: 1 answer, none unexpected"):  # fmt: skip
            self.assertRegex(said, f"met  +{name}")
        self.assertIn("times as long in 4 pairs", said)
        self.assertIn("torch ''\n", (self.at / "imported").read_text(), "frameworks are read, without a GPU")
        self.assertEqual(len(self.files), 3, self.files)
        self.assertRegex(self.files[1].name, r"^gpu-made-up-gpu-20..-..-..\.json$")
        with tarfile.open(self.files[0]) as archive:
            self.assertIn("./memcheck.log", archive.getnames())
        self.assertIn("--inputs ring --width-factor 16 ", self.files[2].read_text())
        self.assertEqual([written.outcome(step) for step in self.document()["steps"]], ["ok"] * 15)
        self.assertNotIn("held_bytes_per_batch", self.files[1].read_text())

    def test_what_the_machine_lacks_is_left_out_with_the_reason(self):
        said = self.call(0, "--steps", "traces,timeline_programs,facts")
        self.assertRegex(said, "left out  every trace completes on the device: there is no weir beside weir-gpu")
        self.assertRegex(said, "left out  timeline: nsys outside works, .*: there is no weir beside weir-gpu")
        self.assertRegex(self.files[1].name, "-steps-traces-timeline_programs-facts.json$")
        self.assertIn("left out  PyTorch, transformer: the same losses", said)
        self.with_weir()
        said = self.call(0, "--programs", "first", WEIR_GPU_PYTHON="/no/such/python", NO_SITE="1")
        self.assertIn("left out  PyTorch, transformer: the same losses with Weir as without: there is no /no/such", said)

    def test_programs_get_the_machines_own_settings(self):
        self.with_weir()
        self.write("site/torch.py", "raise ImportError('made up')")
        said = self.call(0, "--programs", "torch_gpt")
        self.assertRegex(said, "left out  PyTorch, transformer: the same losses.*: .*made up")
        self.assertRegex(said, "left out  PyTorch, prefetching: .*: not among the programs of this call")
        self.assertRegex(self.files[1].name, "-programs-torch_gpt.json$")
        self.assertIn("torch is not there: made up", (self.at / "run/warm_up.log").read_text())

    def test_the_program_of_an_older_toolkit_runs_where_the_driver_is_too_old_or_it_is_alone(self):
        older = self.write("beside-12/weir-gpu", MADE_UP_GPU)
        for moved, settings, expected in ((False, {}, "beside/"), (False, {"TOO_OLD": "1"}, "beside-12/"),
                                          (True, {}, "beside-12/")):  # fmt: skip
            if moved:
                self.program.unlink()
            self.call(0, "--steps", "bench", **settings)
            self.assertIn(f"{expected}weir-gpu bench", self.document()["steps"][0]["command"])
        older.unlink()
        self.write("beside/weir-gpu", MADE_UP_GPU)
        self.call(2, "--steps", "bench", TOO_OLD="1")
        self.assertEqual(self.said, "tools/gpu-check: too old\n")

    def test_a_step_that_crashes_is_not_met_and_the_others_run(self):
        said = self.call(1, "--steps", "bench,facts", MISBEHAVE="bench-crashes")
        self.assertRegex(said, r"NOT MET .* over its floor .*: failed \(exit -11\)")
        self.assertRegex(said, "met  +what only a GPU can tell")

    def test_without_a_page_the_logs_come_back_anyhow(self):
        self.call(1, "--steps", "facts", MISBEHAVE="info-babbles")
        self.assertIn("no page could be made", self.said)
        with tarfile.open(self.at / "pages/gpu-logs-steps-facts.tar.gz") as archive:
            self.assertIn("./facts.json", archive.getnames())

    def test_a_call_without_an_answer_ends(self):
        self.call(2, "--limit", "1", MISBEHAVE="info-waits")
        self.assertRegex(self.said, "weir-gpu info took too long: stopped after [01] s\n$")

    def test_a_call_in_which_all_hangs_ends_and_meets_nothing(self):
        said = self.call(1, "--limit", "20", MISBEHAVE="steps-wait")
        self.assertRegex(said, "NOT MET .*gpu passes: stopped at its limit of [0-9]+ s")
        self.assertRegex(said, "NOT MET .*above the barrier: stopped at its limit of 0 s")
        self.assertNotRegex(said, "(?m)^met")

    def test_nothing_runs_on_after_a_call_that_lost_its_terminal(self):
        pipe = self.running()
        command = [ROOT / "tools/gpu-check", "--output", "pages", "--steps", "bench"]
        with pipe, subprocess.Popen(command, cwd=self.at, stderr=subprocess.DEVNULL, env={
                **os.environ, **self.variables, "MISBEHAVE": "bench-waits", "HOLD": "1"}) as process:  # fmt: skip
            while process.poll() is None and pipe.read() != b"x\n":
                time.sleep(0.01)
            process.send_signal(signal.SIGHUP)
            self.assertEqual(process.wait(), 130)
            os.set_blocking(pipe.fileno(), True)
            self.assertEqual(pipe.read(), b"")

    def test_a_folder_of_other_files_is_not_emptied(self):
        kept = self.write("run/kept.txt", "")
        self.call(2, "--steps", "facts")
        self.assertIn("WEIR_GPU_RUN", self.said)
        self.assertTrue(kept.exists())


class Programs(Scratch):
    def setUp(self):
        super().setUp()
        self.with_weir()
        self.write("programs/made_up.py", MADE_UP_PROGRAM)
        shutil.copy(ROOT / "tools/gpu_check/programs/harness.py", self.at / "programs")
        self.addCleanup(setattr, unmodified, "PROGRAMS", unmodified.PROGRAMS)
        unmodified.PROGRAMS = self.at / "programs"
        self.settings = {**self.variables, "WEIR_BUDGET": ""}

    def ran(self, *setups, seconds=100, limit=1000, wanted=None, **settings):
        """Runs a program with these setups. Returns its entry."""
        program = plan.Program("made_up", "torch", "made_up.py", setups, seconds)
        folder = self.at / "run"
        folder.mkdir(exist_ok=True)
        sizes = {**plan.SIZES, "programs": "--device cpu"}
        call = run.Call(self.program, folder, sys.executable, sizes, [], wanted or [program], limit,
                        {**self.settings, **settings})  # fmt: skip
        entry = {}
        call.programs(limit, entry)
        self.figures = entry["figures"]
        return self.figures["programs"][0]

    def test_a_program_runs_without_weir_and_with_it_in_each_way_to_allocate(self):
        machine = {"PYTORCH_CUDA_ALLOC_CONF": "backend:native", "WEIR_ALLOCATOR": "async", "WEIR_TORCH": "async"}
        entry = self.ran(*plan._four(), *plan._PLUGGED[1:], **machine)
        printed = {one["setup"]: one["printed"] for one in entry["runs"]}
        asked = {name: (one["ASKED"], one["PYTORCH_ALLOC_CONF"]) for name, one in printed.items()}
        self.assertEqual(asked, {"plain": ("", ""), "weir": ("--torch off", ""),
                                 "plain_async": ("", "backend:cudaMallocAsync"),
                                 "weir_async": ("--allocator async", ""), "weir_plug": ("--torch plug", "")})  # fmt: skip
        plain, weir = entry["runs"][:2]
        self.assertEqual((plain["exit_code"], plain["printed"]["losses"]), (0, ["0x1.0000000000000p-1"]))
        self.assertEqual((plain["printed"]["PRELOADED"], "summary" in plain), ("", False))
        self.assertEqual(weir["printed"]["PRELOADED"], str(self.at / "beside/libweir.so"))
        self.assertEqual(weir["summary"], {"budget": "80%"})
        self.assertNotIn(str(self.at), weir["command"])
        self.assertEqual(entry["runs"][-1]["plug"], "weir: PyTorch 1.2 allocates by plug.so")
        # The machine's own settings, with which it is compared with itself.
        self.assertEqual((plain["printed"]["NVIDIA_TF32_OVERRIDE"], plain["printed"]["LD_LIBRARY_PATH"]), ("1", "/made/up"))
        self.assertEqual(self.figures["planned"], ["made_up"])

    def test_without_its_framework_the_rest_is_left_out_and_what_is_missing_only_with_weir_is_not(self):
        entry = self.ran(*plan._four(), MADE_UP="missing")
        self.assertEqual((entry["left_out"], len(entry["runs"])), ("made_up: Made-up is not there", 1))
        entry = self.ran(*plan._four()[:2], MADE_UP="missing with Weir")
        self.assertEqual([one["exit_code"] for one in entry["runs"]], [0, 77])
        self.assertNotIn("left_out", entry)

    def test_a_crash_and_full_memory_are_told_apart(self):
        crash = self.ran(plan.Setup("plain"), MADE_UP="crashes")["runs"][0]
        self.assertEqual((crash["exit_code"], crash["printed"], crash["said"]), (1, None, "RuntimeError: made-up error"))
        full = self.ran(plan.Setup("plain"), MADE_UP="full")["runs"][0]
        self.assertEqual((full["exit_code"], full["printed"]["outcome"]), (75, "out of memory"))

    def test_one_that_hangs_is_ended_at_its_limit_with_all_it_started_and_the_next_has_its_share(self):
        hangs = plan.Program("hangs", "torch", "made_up.py", (
            plan.Setup("plain", environment={"MADE_UP": "hangs"}),), 10)  # fmt: skip
        good = plan.Program("good", "torch", "made_up.py", (plan.Setup("plain"),), 1000)
        with self.running() as pipe:
            entry = self.ran(wanted=[hangs, good], limit=1015)
            os.set_blocking(pipe.fileno(), True)
            self.assertEqual(pipe.read(), b"x\n", "it ran, and nothing of it does")
        self.assertTrue(entry["runs"][0]["stopped"])
        self.assertEqual(self.figures["programs"][1]["runs"][0]["exit_code"], 0)

    def test_what_no_time_is_left_for_says_so(self):
        entry = self.ran(plan.Setup("plain"), limit=-1)
        self.assertIn(entry["runs"][0]["exit_code"], (None, -9, 0))
        folder = self.at / "run"
        call = run.Call(self.program, folder, sys.executable, plan.SIZES, [], [], 1, self.settings)
        program = plan.Program("made_up", "torch", "made_up.py", (plan.Setup("plain"),), 1)
        self.assertEqual(unmodified.run_program(call, program, 0)["runs"][0]["said"], "no time was left")

    def test_copies_run_at_once_and_each_has_a_summary(self):
        runs = self.ran(plan.Setup("weir", plan.weir("7%"), copies=3))["runs"]
        self.assertEqual([(one["exit_code"], one["summary"]) for one in runs], [(0, {"budget": "7%"})] * 3)

    def test_ballast_that_does_not_get_ready_costs_the_run_its_time_and_no_more(self):
        self.write("programs/ballast.py", "import time; time.sleep(100000)")
        call = run.Call(self.program, self.at, sys.executable, plan.SIZES, [], [], 100, self.settings)
        program = plan.Program("made_up", "torch", "made_up.py", (plan.Setup("plain", leave=1),), 0.2)
        (one,) = unmodified.run_program(call, program, 0.2)["runs"]
        self.assertEqual(one["said"], "no ballast: it did not get ready in time")

    def recorded(self, **settings):
        self.write("programs/torch_timeline.py", MADE_UP_PROGRAM)
        (self.at / "run").mkdir(exist_ok=True)
        call = run.Call(self.program, self.at / "run", sys.executable, {**plan.SIZES, "programs": "--device cuda"}, [], [],
                        1000, {**self.settings, **settings})  # fmt: skip
        call.own = call.machine
        call.paths["nsys"] = self.nsys
        entry = {}
        call.timeline_programs(1000, entry)
        return entry["figures"]["programs"][0]

    def test_recordings_run_at_once_and_each_is_read(self):
        self.nsys = self.write("nsys", "#!/usr/bin/env bash\nwhile [[ $1 != --output ]]; do shift; done\n"
                               'echo report >"$2.nsys-rep"\nexec "${@:3}"\n')  # fmt: skip
        runs = {one["setup"]: one for one in self.recorded()["runs"]}
        self.assertEqual(sorted(runs), ["injected", "inside", "outside", "plain", "recorded"])
        for setup, one in runs.items():
            self.assertEqual((one["exit_code"], one["lines"]), (0, ["CUPTI is in use by a made-up profiler"]), setup)
        self.assertEqual(runs["recorded"]["timeline"], {"works": 3, "lost": 0, "complete": True})
        self.assertEqual((runs["recorded"]["page_bytes"], runs["outside"]["other_report_bytes"]), (5, 7))
        self.assertEqual(runs["plain"]["timeline"], {})
        self.assertTrue(runs["injected"]["printed"]["WEIR_TIMELINE"].endswith("torch_timeline_injected.pftrace"))

    def test_recordings_that_lack_something_are_left_out(self):
        self.nsys = None
        (self.at / "beside/libweir_timeline.so").unlink()
        runs = {one["setup"]: one for one in self.recorded()["runs"]}
        self.assertEqual(runs["injected"]["left_out"], "there is no libweir_timeline.so beside weir-gpu")
        self.assertEqual(runs["outside"]["left_out"], "there is no nsys on this machine's PATH")
        self.assertEqual(self.recorded(MADE_UP="missing")["left_out"], "made_up: Made-up is not there")


class Parts(unittest.TestCase):
    def test_a_part_uses_what_is_left_over_and_leaves_the_others_their_shares(self):
        self.assertEqual(plan.allowance(20, 100, 90), 20)  # its share, though less is left over
        self.assertEqual(plan.allowance(20, 100, 70), 30)
        self.assertEqual(plan.allowance(20, 1000, 0), 60)  # and no more, should it hang
        self.assertEqual(plan.allowance(20, 5, 0), 5)
        self.assertEqual(plan.allowance(20, -1, 0), 0)

    def test_all_calls_fit_and_a_shorter_one_does_not(self):
        self.assertTrue(plan.dry_run(plan.LIMIT_S)[1])
        self.assertFalse(plan.dry_run(400)[1])

    def test_a_list_that_is_cut_keeps_what_was_written(self):
        whole = '{"facts": [\n{"fact": "a"},\n{"fact": "b"}]}'
        self.assertNotIn("cut", written.parse_figures(whole))
        for text, facts in ((whole[:-2], 2), (whole[:-3], 2), (whole[:-6], 1), (whole[: whole.index(",")] + ",\n", 1)):
            self.assertEqual((len(written.parse_figures(text)["facts"]), written.parse_figures(text)["cut"]), (facts, True), text)
        self.assertIsNone(written.parse_figures("babble"))

    def test_each_program_says_that_its_framework_is_not_there(self):
        """The first setup runs without Weir, which tells whether it is there. The page knows each."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("torch", "cupy", "jax"):
                (pathlib.Path(folder) / f"{name}.py").write_text("raise ImportError('hidden by a test')")
            for script in {one.script for one in (*plan.PROGRAMS, plan.RECORDED)}:
                done = subprocess.run([sys.executable, "-B", str(unmodified.PROGRAMS / script)], capture_output=True, text=True,
                                      env={**os.environ, "PYTHONPATH": folder}, check=False)  # fmt: skip
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (77, 1), done.stderr)
                self.assertIn("is not there", done.stderr)
        for program in (*plan.PROGRAMS, plan.RECORDED):
            self.assertIn(program.name, unmodified_conditions.PROGRAMS)
            self.assertEqual(program.setups[0].before, "")
            without = {setup.name for setup in program.setups}
            for setup in program.setups:
                known = setup.name in unmodified_conditions.SETUPS or program is plan.RECORDED
                self.assertTrue(known and without & {"plain", "enough"}, setup)


if __name__ == "__main__":
    unittest.main()

"""Tests tools/gpu_check/programs under the named root: its runner with fake programs, and each program's
message about what it lacks. Needs no framework and no GPU. One long file, because every case runs the
same runner in a scratch folder."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop(1)) / "tools" / "gpu_check" / "programs"

MADE_UP_PROGRAM = """
import os, time
import harness

class OutOfMemoryError(Exception):
    pass

def run(args):
    how = os.environ.get("MADE_UP", "")
    if how == "missing":
        raise harness.Missing("Made-up is not there")
    if how == "crashes":
        raise RuntimeError("made-up error")
    if how == "hangs":
        time.sleep(1000)
    if how == "memory":
        raise OutOfMemoryError("made-up memory is full")
    told = {name: os.environ.get(name, "") for name in ("PRELOADED", "ASKED", "PYTORCH_ALLOC_CONF")}
    return {"losses": [(0.5).hex()], **told}

harness.main("made_up", run, harness.flags("made up", steps=1))
"""

MADE_UP_SLEEPER = """
import os, time
with open("{started}", "w") as out:
    out.write(str(os.getpid()))
os.rename("{started}", "{whole}")
time.sleep(1000)
"""

MADE_UP_PLAN = """
from plan_as_it_is import *

def so(name, how):
    return Setup(name, environment={"MADE_UP": how})

WITH = Setup("weir", weir=True, budget="7%")
PROGRAMS = (
    Program("good", "torch", "made_up.py", (Setup("plain"), WITH), seconds=20),
    Program("both", "torch", "made_up.py",
            (Setup("plain"), Setup("plain_async", allocation="async"), WITH,
             Setup("weir_async", weir=True, budget="7%", allocation="async"),
             Setup("weir_plug", weir=True, budget="7%", torch="plug")), seconds=20),
    Program("missing", "cupy", "made_up.py", (so("plain", "missing"), WITH), seconds=20),
    Program("missing_with", "cupy", "made_up.py",
            (Setup("plain"), Setup("weir", weir=True, environment={"MADE_UP": "missing"})), seconds=20),
    Program("bad", "jax", "made_up.py", (so("plain", "crashes"), so("full", "memory")), seconds=20),
    Program("hangs", "jax", "made_up.py", (so("plain", "hangs"),), seconds=1),
    Program("many", "torch", "made_up.py", (Setup("weir", weir=True, copies=3),), seconds=20),
    Program("ballast", "torch", "made_up.py", (Setup("plain", leave=1),), seconds=0.2),
)
CALLS = {"first": PROGRAMS[:1], "second": PROGRAMS[1:]}
"""

MADE_UP_WEIR = """#!/usr/bin/env bash
[[ "$1 $2 $4" == "run --library --budget" && $6 == --json ]] || exit 9
[[ $8 =~ ^--(allocator|torch)$ && ${10} == -- ]] || exit 9
export PRELOADED=$3 ASKED="${8#--} $9"
echo "weir: PyTorch 1.2 allocates by /somewhere/$9.so" >&2
set -- "${@:1:7}" "${@:10}"
echo "{\\"budget\\": \\"$5\\"}" >"$7"
exec "${@:9}"
"""


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def write(self, name, text):
        file = self.at / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
        return file

    def python(self, *words, **environment):
        return subprocess.run(
            [sys.executable, "-B", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment},
        )


class RunAll(Scratch):
    """The real run_all.py, runner.py and harness.py, with another plan."""

    def setUp(self):
        super().setUp()
        for name in ("run_all.py", "runner.py", "harness.py"):
            shutil.copy(PROGRAMS / name, self.at / name)
        shutil.copy(PROGRAMS / "plan.py", self.at / "plan_as_it_is.py")
        self.write("plan.py", MADE_UP_PLAN)
        self.write("made_up.py", MADE_UP_PROGRAM)
        self.weir = self.write("beside/weir", MADE_UP_WEIR)
        self.library = self.write("beside/libweir.so", "")
        self.output = self.at / "run" / "programs.json"
        self.output.parent.mkdir()

    def run_all(self, *words, **environment):
        fixed = ["--weir", self.weir, "--output", self.output, "--device", "cpu"]
        return self.python(self.at / "run_all.py", *fixed, *words, **environment)

    def document(self):
        return json.loads(self.output.read_text(encoding="utf-8"))

    def entry(self, name):
        return next(one for one in self.document()["programs"] if one["name"] == name)

    def only(self, name):
        done = self.run_all("--only", name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.entry(name)

    def test_a_program_runs_without_weir_and_with_it(self):
        plain, weir = self.only("good")["runs"]
        self.assertEqual((plain["setup"], plain["exit_code"]), ("plain", 0))
        self.assertEqual(plain["printed"]["losses"], ["0x1.0000000000000p-1"])
        self.assertEqual(plain["printed"]["PRELOADED"], "")
        self.assertNotIn("summary", plain)
        self.assertEqual(weir["printed"]["PRELOADED"], str(self.library))
        self.assertEqual(weir["summary"], {"budget": "7%"})
        self.assertNotIn(str(self.at), weir["command"])

    def test_how_it_allocates_is_by_variables_without_weir_and_by_its_flags_with_it(self):
        machine = {"PYTORCH_CUDA_ALLOC_CONF": "backend:native", "WEIR_ALLOCATOR": "async", "WEIR_TORCH": "async"}
        done = self.run_all("--only", "both", **machine, PYTORCH_ALLOC_CONF="backend:native")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = {run["setup"]: run["printed"] for run in self.entry("both")["runs"]}
        asked = {name: (one["ASKED"], one["PYTORCH_ALLOC_CONF"]) for name, one in told.items()}
        self.assertEqual(
            asked,
            {
                "plain": ("", ""),
                "plain_async": ("", "backend:cudaMallocAsync"),
                "weir": ("torch off", ""),
                "weir_async": ("allocator async", ""),
                "weir_plug": ("torch plug", ""),
            },
        )
        said = {run["setup"]: run.get("plug") for run in self.entry("both")["runs"]}
        self.assertEqual(said["weir_plug"], "weir: PyTorch 1.2 allocates by plug.so")
        self.assertNotIn("plug", self.entry("both")["runs"][0])

    def test_without_its_framework_the_rest_of_a_program_is_left_out(self):
        entry = self.only("missing")
        self.assertEqual(entry["left_out"], "made_up: Made-up is not there")
        self.assertEqual([run["setup"] for run in entry["runs"]], ["plain"])

    def test_what_is_missing_only_with_weir_is_not_left_out(self):
        entry = self.only("missing_with")
        self.assertNotIn("left_out", entry)
        self.assertEqual([run["exit_code"] for run in entry["runs"]], [0, 77])

    def test_a_crash_and_full_memory_are_told_apart(self):
        crashed, full = self.only("bad")["runs"]
        self.assertEqual((crashed["exit_code"], crashed["printed"]), (1, None))
        self.assertEqual(crashed["said"], "RuntimeError: made-up error")
        self.assertEqual((full["exit_code"], full["printed"]["outcome"]), (75, "out of memory"))

    def test_a_program_that_hangs_is_stopped_at_its_limit(self):
        (run,) = self.only("hangs")["runs"]
        self.assertTrue(run["stopped"])
        self.assertLess(run["exit_code"], 0)

    def test_what_runs_ends_with_what_runs_it(self):
        started = self.at / "started"
        whole = self.at / "whole"
        self.write("made_up.py", MADE_UP_SLEEPER.format(started=started, whole=whole))
        words = ["--weir", self.weir, "--output", self.output, "--device", "cpu", "--only", "good"]
        command = [sys.executable, "-B", str(self.at / "run_all.py"), *map(str, words)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while not whole.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            process.terminate()
            self.assertEqual(process.wait(60), 143)
        with self.assertRaises(ProcessLookupError):
            os.kill(int(whole.read_text(encoding="utf-8")), 0)

    def test_copies_each_have_a_summary(self):
        runs = self.only("many")["runs"]
        self.assertEqual([run["exit_code"] for run in runs], [0, 0, 0])
        self.assertEqual([run["summary"] for run in runs], [{"budget": "80%"}] * 3)

    def test_what_no_time_is_left_for_says_so(self):
        done = self.run_all("--only", "hangs,many", "--limit", "0.4")
        self.assertEqual(done.returncode, 0, done.stderr)
        (run,) = self.entry("many")["runs"]
        self.assertEqual((run["exit_code"], run["said"]), (None, "no time was left"))

    def test_one_that_hangs_leaves_the_others_their_share(self):
        """It has used more time than the call when it is stopped at its limit, unless that is prevented."""
        done = self.run_all("--only", "hangs,many", "--limit", "21.2")
        self.assertEqual(done.returncode, 0, done.stderr)
        (hung,) = self.entry("hangs")["runs"]
        self.assertTrue(hung["stopped"])
        self.assertLess(hung["wall_seconds"], 2.5)
        self.assertEqual([run["exit_code"] for run in self.entry("many")["runs"]], [0, 0, 0])

    def test_ballast_that_does_not_get_ready_costs_the_run_its_time_and_no_more(self):
        self.write("ballast.py", "import time; time.sleep(1000)")
        started = time.monotonic()
        words = ["--device", "cuda", "--only", "ballast", "--limit", "60"]
        self.assertEqual(self.run_all(*words).returncode, 0)
        (run,) = self.entry("ballast")["runs"]
        self.assertEqual(run["said"], "no ballast: it did not get ready in time")
        self.assertLess(time.monotonic() - started, 20)

    def test_what_was_planned_is_written_down(self):
        self.only("good")
        self.assertEqual(self.document()["planned"], ["good"])
        self.assertEqual(self.run_all("--only", "first").returncode, 0)
        self.assertEqual(self.document()["planned"], ["good"])

    def test_the_output_is_written_where_a_link_points_and_no_device_is_replaced(self):
        real = self.at / "real.json"
        self.output = self.at / "link.json"
        for target, good in ((real, True), ("/dev/null", False), ("/proc/self/fd/777", False)):
            self.output.symlink_to(target)
            done = self.run_all("--only", "good")
            self.assertEqual(done.returncode == 0, good, done.stderr)
            self.assertTrue(self.output.is_symlink(), target)
            self.output.unlink()
        self.assertTrue(real.is_file())

    def test_bad_flags_are_refused(self):
        self.library.unlink()
        for words, says in (
            (["--only", "nonsense"], "there is no program 'nonsense'"),
            (["--weir", "/nowhere"], "there is no program /nowhere"),
            ([], "there is no file"),
            (["--library", str(self.weir), "--limit", "0"], "above zero"),
        ):
            done = self.run_all(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(says, done.stderr)


MADE_UP_TORCH = """
import os, sys, time
import harness

def run(args):
    if os.environ.get("MADE_UP") == "hangs" and not os.environ.get("CUDA_INJECTION64_PATH"):
        time.sleep(1000)
    if os.environ.get("MADE_UP") == "missing":
        raise harness.Missing("Made-up is not there")
    print("CUPTI is in use by a made-up profiler", file=sys.stderr)
    print("a line of something else", file=sys.stderr)
    timeline = os.environ.get("WEIR_TIMELINE")
    if timeline:
        with open(timeline, "w") as out:
            out.write(os.environ.get("CUDA_INJECTION64_PATH", "preloaded"))
    return {"losses": [(0.5).hex()], "profiled_kernels": 3 if args.profile else 0}

parser = harness.flags("made up", steps=1)
parser.add_argument("--profile", action="store_true")
harness.main("made_up", run, parser)
"""

MADE_UP_RECORDER = """#!/usr/bin/env bash
[[ $1 == timeline ]] || exit 9
if [[ $2 == report ]]; then
  if [[ ${4:-} == -o ]]; then echo page >"$5"; else echo "text of ${3##*/}"; fi
  exit
fi
[[ "$2 $3 $5 $6 $7 $8 $9" == "record --library --batch-range batch --allocator async -o" ]] || exit 9
[[ ${11} == -- ]] || exit 9
export WEIR_TIMELINE=${10}
exec "${@:12}"
"""

MADE_UP_COUNTER = """#!/usr/bin/env bash
[[ "$1 $2" == "timeline count" ]] || exit 9
echo "{\\"kernels\\": 3, \\"copies\\": 0, \\"lost\\": 0, \\"complete\\": true, \\"has\\": \\"$(cat "$3")\\"}"
"""

MADE_UP_NSYS = """#!/usr/bin/env bash
[[ $1 == profile ]] || exit 9
while [[ $1 != --output ]]; do shift; done
echo report >"$2.nsys-rep"
exec "${@:3}"
"""


class RecordAll(Scratch):
    """The real record_all.py, with another program to record and other commands."""

    def setUp(self):
        super().setUp()
        for name in ("record_all.py", "runner.py", "harness.py", "plan.py"):
            shutil.copy(PROGRAMS / name, self.at / name)
        self.write("torch_timeline.py", MADE_UP_TORCH)
        self.weir = self.write("beside/weir", MADE_UP_RECORDER)
        self.library = self.write("beside/libweir.so", "")
        self.inject = self.write("beside/libweir_timeline.so", "")
        self.count = self.write("beside/weir-gpu", MADE_UP_COUNTER)
        self.output = self.at / "run" / "timeline_programs.json"
        self.path = f"{self.at / 'bin'}:/usr/bin:/bin"

    def record_all(self, *words, **environment):
        fixed = ["--weir", self.weir, "--library", self.library, "--inject", self.inject]
        fixed += ["--count", self.count, "--output", self.output]
        return self.python(self.at / "record_all.py", *fixed, *words, PATH=self.path, **environment)

    def document(self, *words, **environment):
        done = self.record_all(*words, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.output.read_text(encoding="utf-8"))

    def test_each_run_is_counted_and_one_has_a_page(self):
        self.write("bin/nsys", MADE_UP_NSYS)
        document = self.document()
        runs = {run["setup"]: run for run in document["runs"]}
        self.assertEqual(document["left_out"], "")
        self.assertEqual(sorted(runs), ["injected", "inside", "outside", "plain", "recorded"])
        for setup, run in runs.items():
            self.assertEqual(run["exit_code"], 0, setup)
            self.assertEqual(run["lines"], ["CUPTI is in use by a made-up profiler"])
        self.assertIsNone(runs["plain"]["timeline"])
        self.assertEqual(runs["recorded"]["timeline"]["has"], "preloaded")
        self.assertEqual(runs["injected"]["timeline"]["has"], str(self.inject))
        self.assertEqual(runs["inside"]["printed"]["profiled_kernels"], 3)
        self.assertEqual(runs["outside"]["other_report_bytes"], len("report\n"))
        folder = self.output.with_suffix("")
        self.assertEqual(runs["recorded"]["page_bytes"], len("page\n"))
        self.assertEqual((folder / "recorded.html").read_text(encoding="utf-8"), "page\n")
        self.assertEqual((folder / "recorded.txt").read_text(encoding="utf-8"), "text of recorded.pftrace\n")

    def test_what_the_machine_lacks_is_left_out(self):
        self.inject.unlink()
        if shutil.which("nsys", path=f"{self.path}:/usr/local/cuda/bin"):
            self.skipTest("left out: this machine has nsys")
        runs = {run["setup"]: run for run in self.document()["runs"]}
        self.assertEqual(runs["injected"]["left_out"], "there is no libweir_timeline.so")
        self.assertEqual(runs["outside"]["left_out"], "no nsys")

    def test_without_the_framework_all_of_it_is_left_out(self):
        document = self.document(MADE_UP="missing")
        self.assertEqual(document["left_out"], "made_up: Made-up is not there")

    def test_on_a_cpu_all_is_run_and_nothing_of_it_judged(self):
        document = self.document("--device", "cpu", "--small")
        self.assertEqual(document["left_out"], "tried on a cpu, which has no kernels to record")
        self.assertEqual(document["runs"][-1]["exit_code"], 0)

    def test_what_hangs_is_stopped_and_the_others_are_told(self):
        document = self.document("--limit", "4", MADE_UP="hangs")
        runs = {run["setup"]: run for run in document["runs"]}
        self.assertTrue(runs["recorded"]["stopped"])
        self.assertIsNone(runs["recorded"]["timeline"])
        self.assertFalse(runs["injected"]["stopped"])
        self.assertEqual(runs["injected"]["timeline"]["kernels"], 3)

    def test_bad_flags_are_refused(self):
        self.library.unlink()
        done = self.record_all()
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no file", done.stderr)


class Allowance(Scratch):
    """Tests only the rule for the time that a run may take."""

    def allowed(self, *numbers):
        code = f"import plan; print(plan.allowance{numbers})"
        done = subprocess.run(
            [sys.executable, "-B", "-c", code], capture_output=True, text=True, cwd=PROGRAMS, check=True
        )
        return float(done.stdout)

    def test_a_run_uses_what_is_left_over_and_leaves_the_others_their_shares(self):
        self.assertEqual(self.allowed(20, 100, 90), 20)  # its share, though less is left over
        self.assertEqual(self.allowed(20, 100, 70), 30)
        self.assertEqual(self.allowed(20, 1000, 0), 60)  # and no more, should it hang
        self.assertEqual(self.allowed(20, 5, 0), 5)
        self.assertLessEqual(self.allowed(20, -1, 0), 0)


class Programs(Scratch):
    """The real programs, without their frameworks."""

    def plan(self):
        code = (
            f"import sys; sys.path.insert(0, {str(PROGRAMS)!r}); import json, plan;"
            "print(json.dumps([[p.name, p.script, p.framework, p.setups[0].weir] "
            "for p in plan.PROGRAMS]))"
        )
        found = json.loads(self.python("-c", code).stdout)
        self.assertGreater(len(found), 5)
        return found

    def test_each_says_that_its_framework_is_not_there(self):
        for name in ("torch", "cupy", "jax"):
            self.write(f"{name}.py", "raise ImportError('hidden by a test')")
        for _, script, framework, first_with_weir in self.plan():
            with self.subTest(script=script):
                done = self.python(PROGRAMS / script, PYTHONPATH=str(self.at))
                self.assertEqual(done.returncode, 77, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn("is not there", done.stderr)
                self.assertIn(framework, done.stderr.lower())
                self.assertFalse(first_with_weir, "the first setup tells whether it is there")

    def test_the_report_knows_each_by_name(self):
        done = subprocess.run(
            [sys.executable, "-B", "-c", "import report; print(*report.PROGRAMS)"],
            cwd=PROGRAMS.parent, capture_output=True, text=True, check=True)  # fmt: skip
        for name, *_ in self.plan():
            self.assertIn(name, done.stdout.split())


if __name__ == "__main__":
    unittest.main()

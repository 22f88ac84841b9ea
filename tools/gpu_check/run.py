"""Runs the parts of a call of tools/gpu-check: commands with limits, and programs with and without Weir. What came of
them is in one document, which is written after each part; report.py says what it means."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import plan
import processes
from unmodified import PROGRAMS, LeftOut, run_program
from written import not_recorded, outcome, parse_figures, read_json, text_of, without_series

HERE = pathlib.Path(__file__).resolve().parent
GRACE = 5  # seconds that a step has to end when it is told to
REPORT_SECONDS = 8  # for reading recorded timelines, part of their step's time
# Settings that change a GPU's results or speed. Only for unmodified programs, which are compared with themselves.
CHANGING = re.compile("CUBLAS_.*|NVIDIA_TF32_OVERRIDE|CUDA_LAUNCH_BLOCKING")


class Call:
    """A call. `program` is weir-gpu; weir and its libraries are beside it. The parts `planned` are what later ones
    need time for, and `wanted` are its programs. `settings` are variables for all that it runs."""

    def __init__(self, program, folder, python, sizes, planned, wanted, limit, settings):
        self.folder, self.sizes, self.planned = pathlib.Path(folder), sizes, planned
        self.deadline = time.monotonic() + limit
        self.python, self.wanted = python, wanted
        self.document = {"steps": []}
        # The user's own settings would change what is measured.
        self.machine = {name: value for name, value in os.environ.items() if not name.startswith(("WEIR_", "MXNET_"))}
        self.machine.update(settings)
        self.use_program(program)

    def use_program(self, program):
        self.program = pathlib.Path(program)
        beside = self.program.parent
        self.paths = {
            "weir_gpu": self.program,
            "weir": beside / "weir",
            "library": beside / "libweir.so",
            "inject": beside / "libweir_timeline.so",
            "sanitizer": found("compute-sanitizer"),
            "nsys": found("nsys"),
            "traces": sorted(pathlib.Path("bench/traces").glob("*.csv.gz")),
        }

    def left(self):
        return self.deadline - time.monotonic()

    def time_for(self, step):
        """Returns the seconds that a part of the call may take now."""
        names = [part.name for part in self.planned]
        later = self.planned[names.index(step.name) + 1:] if step.name in names else self.planned
        return plan.allowance(step.share, self.left(), sum(part.share for part in later))

    # --- The machine -----------------------------------------------------------------------------

    def own_environment(self):
        """Returns the variables for our own programs, which look for cuBLAS and CUPTI in more places."""
        own = {name: value for name, value in self.machine.items() if not CHANGING.fullmatch(name)}
        folders = [own.get("LD_LIBRARY_PATH", ""), *self.toolkit_libraries(), *self.python_libraries()]
        return {**own, "LD_LIBRARY_PATH": ":".join(filter(None, folders))}

    def toolkit_libraries(self):
        # A real cuBLAS cannot use the stand-in.
        folder = "/usr/local/cuda/lib64"
        return [folder] if os.path.isdir(folder) and "WEIR_STANDIN_MEMORY" not in self.machine else []

    def python_libraries(self):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = [self.python, "-B", HERE / "python_libraries.py"]
            done = subprocess.run(list(map(str, command)), env=self.machine, capture_output=True, text=True, timeout=10)
            return done.stdout.split("\n")
        return []

    def ask_machine(self, older):
        """Asks about the GPU. Where the program is missing or the driver is too old for it, takes `older`, which is
        built with an older toolkit. Raises LeftOut if there is no GPU. May use the other parts' time, since a call
        without an answer is useless."""
        until = time.monotonic() + plan.allowance(plan.INFO.share, self.left(), 0)
        self.own = self.own_environment()
        candidates = [one for one in (self.program, older) if one.exists()] or [self.program]
        reasons = []
        for program in candidates:
            answer, why = self.ask(program, until - time.monotonic())
            if answer is not None:
                self.use_program(program)
                self.document["machine"] = answer
                return
            reasons.append(why)
        raise LeftOut(reasons[0])

    def ask(self, program, seconds):
        """Returns what the program says of the machine, or None and why not."""
        out, log = self.folder / "info.json", self.folder / "info.log"
        try:
            code, late, _ = self.run([program, "info", "--json", "-"], self.own, out, log, seconds)
        except OSError as error:
            return None, f"{program}: {error.strerror}"
        said = text_of(log).splitlines()
        if late:
            return None, f"{program} info took too long: stopped after {max(0, round(seconds))} s"
        if code != 0:
            return None, (said or [f"{program} info failed and does not say why"])[0].replace("weir-gpu info: ", "", 1)
        print("\n".join(said), file=sys.stderr)
        return read_json(out) or {}, ""

    # --- Commands --------------------------------------------------------------------------------

    def run(self, command, environment, out, log, seconds):
        """Runs a command. Returns its exit code, whether it was stopped, and how long it took."""
        started = time.monotonic()
        with open(out, "wb") as standard_output, open(log, "wb") as standard_error:
            process = processes.start(command, environment, standard_output, standard_error)
            stopped = True
            try:
                stopped = not processes.end(process, seconds, GRACE)
            finally:
                processes.end(process, 0)
        return process.returncode, stopped, time.monotonic() - started

    def words(self, template, **paths):
        """Returns the words of a command. Raises LeftOut if one of its paths is not there."""
        paths = {**self.paths, **paths}
        result = []
        for word in template.split():
            name = word[1:-1] if re.fullmatch(r"\{\w+\}", word) else ""
            value = self.sizes.get(name, paths.get(name))
            if name in paths and name not in ("json", "timeline", "summary", "nsys_report"):
                self.need(name)
            if isinstance(value, list) or name in self.sizes:
                result += value if isinstance(value, list) else value.split()
            else:
                result.append(word.format(**self.sizes, **paths))
        return result

    def need(self, *names):
        for name in names:
            path = self.paths[name]
            if name in ("sanitizer", "nsys"):
                if not path:
                    tool = {"sanitizer": "compute-sanitizer", "nsys": "nsys"}[name]
                    raise LeftOut(f"there is no {tool} on this machine's PATH")
            elif isinstance(path, pathlib.Path) and not path.exists():
                raise LeftOut(f"there is no {path.name} beside {self.program.name}")

    def need_python(self):
        self.need("weir", "library")
        if shutil.which(self.python, path=self.machine.get("PATH")) is None:
            raise LeftOut(f"there is no {self.python} on this machine")

    def run_step(self, step):
        """Runs a part of the call, and writes down what came of it."""
        limit, started = self.time_for(step), time.monotonic()
        print(f"== {step.name}, at most {limit:.0f} s: ", end="", file=sys.stderr, flush=True)
        entry = {"name": step.name, "limit_seconds": round(limit), "seconds": 0, "command": step.name,
                 "exit_code": None, "stopped": limit <= 0, "said": "the call ended"}  # fmt: skip
        self.document["steps"].append(entry)
        try:
            if step.command and limit > 0:
                self.run_command(step, limit, entry)
            elif limit > 0:
                entry["exit_code"], entry["stopped"] = getattr(self, step.name)(limit, entry) or (0, False)
        except LeftOut as why:
            entry.clear()
            entry.update(name=step.name, left_out=str(why))
        except Exception as error:  # noqa: BLE001: the other parts must run
            entry.update(exit_code=None, stopped=False, said=repr(error))
        entry["seconds"] = round(time.monotonic() - started, 1)
        self.write()
        print(f"{outcome(entry)}, {entry['seconds']:.0f} s", file=sys.stderr)

    def run_command(self, step, limit, entry):
        figures, log = self.folder / f"{step.name}.json", self.folder / f"{step.name}.log"
        command = self.words(step.command, json=figures, timeline=self.folder / f"{step.name}.pftrace")
        out = figures if step.prints_figures else self.folder / f"{step.name}.out"
        entry["command"] = " ".join(map(str, command))
        with self.reading_frameworks(step.name == "tests"):
            entry["exit_code"], entry["stopped"], _ = self.run(command, self.own, out, log, limit)
        if figures.exists():
            entry["figures"] = without_series(parse_figures(text_of(figures)))
            if isinstance(entry["figures"], dict) and entry["figures"].get("timeline"):
                entry["figures"]["timeline"]["note"] += not_recorded(log)
        summaries = [line for path in (log, out) for line in text_of(path).splitlines() if "SUMMARY:" in line]
        if summaries:  # of a sanitizer
            entry["figures"] = {"summary": summaries[-1].lstrip("= ")}

    def write(self):
        """Writes the document completely or not at all: it has what there is whenever this is stopped."""
        path = self.folder / "call.json"
        path.with_suffix(".new").write_text(json.dumps(self.document) + "\n")
        path.with_suffix(".new").replace(path)

    # --- The parts without a command -------------------------------------------------------------

    @contextlib.contextmanager
    def reading_frameworks(self, wanted=True):
        """Reads the frameworks from disk meanwhile, so that programs find them in memory. Takes less time than the
        tests, and ends before any step that takes times."""
        process = None
        with contextlib.suppress(OSError), open(self.folder / "warm_up.log", "wb") as log:
            if wanted:
                process = processes.start([self.python, "-B", PROGRAMS / "warm_up.py"], self.machine, log, log)
        until = time.monotonic() + min(plan.WARM_UP.share, max(0, self.left()))
        try:
            yield
            if process is not None:
                processes.end(process, until - time.monotonic())
        finally:
            if process is not None:
                processes.end(process, 0)

    def warm_up(self, limit, entry):
        with self.reading_frameworks():
            pass

    def timeline_cost(self, limit, entry):
        """Measures what a recording costs weir-train: pairs of runs with and without, in alternating order."""
        until, pairs, note = time.monotonic() + limit, [], ""
        for number in range(int(self.sizes["cost_pairs"])):
            rates = {}
            for way in ("plain", "recorded") if number % 2 == 0 else ("recorded", "plain"):
                base, timeline = self.folder / f"timeline_cost_{way}", self.folder / "timeline_cost.pftrace"
                figures = base.with_suffix(".json")
                command = self.words("{weir_gpu} train run --device cuda {cost} --json {json}", json=figures)
                command += ["--timeline", timeline] if way == "recorded" else []
                entry["command"] = " ".join(map(str, command))
                code, stopped, _ = self.run(
                    command, self.own, base.with_suffix(".out"), base.with_suffix(".log"), until - time.monotonic())
                if code != 0 or stopped:
                    return code, stopped
                rates[way] = read_json(figures)["result"]["batches_per_second"]
                if way == "recorded":
                    note = note or not_recorded(base.with_suffix(".log"))
                    rates.update(self.activity(timeline, until))
                    timeline.unlink()
            pairs.append(rates)
            entry["figures"] = {"pairs": pairs, "why": note}
        return 0, False

    def activity(self, timeline, until, page=None):
        """Returns what a timeline has of the devices' own work, as `weir timeline report` reads it."""
        if not timeline.is_file():
            return {}
        figures = timeline.with_suffix(".report.json")
        command = self.words("{weir} timeline report {timeline} --json {json}", timeline=timeline, json=figures)
        self.run([*command, *(["-o", page] if page else [])], self.own, timeline.with_suffix(".txt"),
                 timeline.with_suffix(".report.log"), until - time.monotonic())  # fmt: skip
        report = read_json(figures)
        if report is None:
            return {}
        streams = [stream for process in report["processes"] for stream in process["streams"]]
        complete = bool(report["processes"]) and all(one["summary"]["complete"] for one in report["processes"])
        return {"works": sum(stream["count"] for stream in streams), "lost": report["lost"], "complete": complete}

    def timeline_programs(self, limit, entry):
        """Runs a PyTorch program under recordings, and beside other profilers."""
        self.need_python()
        until = time.monotonic() + limit - plan.PROGRAMS_MARGIN
        ran = run_program(self, plan.RECORDED, max(1, until - time.monotonic() - REPORT_SECONDS))
        for run in ran["runs"]:
            timeline = self.folder / f"torch_timeline_{run['setup']}.pftrace"
            page = self.folder / "recorded.html" if run["setup"] == "recorded" else None
            run["timeline"] = self.activity(timeline, until, page)
            run["page_bytes"] = page.stat().st_size if page and page.is_file() else 0
            report = self.folder / f"torch_timeline_{run['setup']}.nsys-rep"
            run["other_report_bytes"] = report.stat().st_size if report.is_file() else 0
            report.unlink() if report.is_file() else None  # some megabytes that nobody reads
        if "cpu" in self.sizes["programs"]:
            ran.setdefault("left_out", "tried on a cpu, which has no kernels to record")
        entry["figures"] = {"programs": [ran]}

    def programs(self, limit, entry):
        """Runs programs that know nothing of Weir, with the machine's libraries."""
        self.need_python()
        until = time.monotonic() + max(1, limit - plan.PROGRAMS_MARGIN)
        ran = entry["figures"] = {"planned": [one.name for one in self.wanted], "programs": []}
        for number, program in enumerate(self.wanted):
            print(program.name, end=" ", file=sys.stderr, flush=True)
            after = plan.shares(self.wanted[number + 1:])
            ran["programs"].append(run_program(self, program, until - time.monotonic(), after))
            self.write()


def found(tool):
    return shutil.which(tool) or shutil.which(tool, path="/usr/local/cuda/bin")

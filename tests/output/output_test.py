"""Checks docs/output.md: each JSON output against its schema, and each exit code of the table by a run.

    output_test.py [-k NAME]     as unittest; CMakeLists.txt names the programs
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import schemas
from outputs import OOM, PREDICT, ROOT, SMALL, SPARSE, TRACE, Runs, has_swap_in, outputs, swapped_in, train_on_digits

PAGE = (ROOT / "docs/output.md").read_text()
FULL = "/dev/full"  # a file that cannot be written


class Json(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = schemas.all_schemas()

    def test_outputs_match_their_schemas_which_refuse_what_is_changed(self):
        tested, mutants = set(), 0
        with tempfile.TemporaryDirectory() as folder:
            for name, what, document in outputs(Runs(folder)):
                schema = self.schemas[name]
                with self.subTest(name, what=what):
                    self.assertEqual(schemas.problems(schema, document), [])
                    if name in tested:
                        continue
                    for change, mutant in schemas.mutants(schema, document):
                        mutants += 1
                        self.assertTrue(schemas.refuses(schema, mutant), f"{change}: not refused")
                tested.add(name)
        self.assertGreater(mutants, 500)
        if has_swap_in():
            self.assertEqual(tested, set(self.schemas))

    def test_settings_have_one_shape(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = Runs(folder)
            lines = [
                f"weir-train run {SMALL}",
                f"weir replay {TRACE} --no-search --lag 4",
                "weir-simulate --batches 10 --workload bursts --budget 4",
            ]
            found = [runs.json(line)["settings"] for line in lines]
        self.assertEqual(found[0]["batches"], {"value": "4", "source": "--batches"})
        self.assertEqual(found[0]["policy"], {"value": "throttled", "source": "default"})
        self.assertEqual(found[1]["lag"], {"value": "4", "source": "--lag"})
        self.assertEqual(found[1]["upstream"]["source"], "default")
        self.assertEqual(found[2]["workload"], {"value": "bursts", "source": "--workload"})

    def test_schemas_say_of_each_property_what_it_is(self):
        for name, schema in self.schemas.items():
            schemas.Validator.check_schema(schema)
            for path, part in each_schema(schema):
                with self.subTest(name, path=path):
                    self.assertRegex(part["description"], r"^\S.*[.…]$")
                    kinds = part.get("type", [])
                    if {"integer", "number"} & set([kinds] if isinstance(kinds, str) else kinds):
                        self.assertIn("unit", part)
                    if "properties" in part:
                        self.assertFalse(part["additionalProperties"])
                        self.assertTrue(set(part["required"]) <= set(part["properties"]))

    def test_parts_of_one_name_are_the_same_in_all_schemas(self):
        known = {}
        for name, schema in self.schemas.items():
            for part, definition in schema.get("$defs", {}).items():
                self.assertEqual(known.setdefault(part, definition), definition, f"{name}: {part}")

    def test_the_page_lists_the_schemas(self):
        listed = set(re.findall(r"\]\(schemas/([a-z-]+)\.schema\.json\)", PAGE))
        self.assertEqual(listed, set(self.schemas))


# Commands whose JSON has settings, and flags with values that are easily cut short. What is no flag's follows from
# the others: the network, the policies of a comparison.
SETTINGS = [
    ("weir-train run", f"{SMALL} --lr 0.00123456789 --momentum 0.3333333333 --budget 99999999B --run-ahead 1500us"),
    ("weir-train run", f"{SMALL} --inputs ring --ring 3 --static-alloc --pool best_fit --budget 33.3333333%"),
    ("weir-train run", "--data digits --batches 3 --pool naive"),
    ("weir-train compare --small", "--batches 4 --rounds 1 --no-search"),
    ("weir-train compare --small", "--batches 4 --rounds 1 --no-search --static --width-factor 3"),
    ("weir-train dispatch", "--operations 20 --rounds 2 --elements-large 10 --matrix 8 --frontend 3"),
    (SPARSE, "--batches 4 --read-time 1500us --first-layer cpu --first-layer-budget 66.6666667% --lazy-rows"),
    (SPARSE, "--batches 4 --optimizer momentum --momentum 0.123456789 --checkpoint saved --every 2,90s"),
    ("weir-train predict", PREDICT.removeprefix("weir-train predict")),
    (f"weir replay {TRACE}", "--no-search"),
    (f"weir replay {TRACE}", "--recommend --no-search --lag 3 --capacity 1187841001B"),
    ("weir-simulate", "--batches 10 --workload bursts --budget 1.333333333,4"),
]
DERIVED = {"model", "network", "policy"}


def flags_of(runs, command):
    """Returns the flags of a command's help by their names, and whether they take a value."""
    program, *words = command.split()
    words = [word for word in words[:1] if not word.startswith("-")]
    shown = runs.output(" ".join([program, *words, "--help"]))
    return {name: bool(value) for name, value in re.findall(r"^  --([a-z-]+)( \S)?", shown, re.M)}


def values(settings):
    return {name: setting["value"] for name, setting in settings.items()}


def variables_of(settings):
    return {"WEIR_" + name.upper().replace("-", "_"): value for name, value in values(settings).items()}


class Settings(unittest.TestCase):
    def test_each_value_is_read_back_by_its_flag(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = Runs(folder)
            train_on_digits(runs)
            for command, given in SETTINGS:
                with self.subTest(f"{command} {given}"):
                    found = runs.json(f"{command} {given}")["settings"]
                    (runs.folder / "saved").unlink(missing_ok=True)  # the checkpoint: it is to be a new one
                    flags = flags_of(runs, command)
                    self.assertLessEqual(set(found) - set(flags), DERIVED)
                    words = [
                        f"--{name}={value}" if flags[name] else f"--{name}"
                        for name, value in values(found).items()
                        if name in flags and (flags[name] or value == "1")
                    ]
                    again = runs.json(" ".join([command, *words]))["settings"]
                    self.assertEqual(values(again), values(found))
                    for word in words:
                        name = word[2:].split("=")[0]
                        self.assertTrue(again[name]["source"].startswith(f"--{name}"), again[name])

    def test_values_of_the_library_are_read_back_by_its_variables(self):
        tricky = {"WEIR_BUDGET": "33.3333333%", "WEIR_MAX_WAIT": "1500us", "WEIR_BATCH_RANGE": "step"}
        with tempfile.TemporaryDirectory() as folder:
            runs = Runs(folder)
            for variables in ({}, tricky, {"WEIR_POOL": "best_fit", "WEIR_ALLOC_LOG": "a.log"}):
                found = runs.json("weir info", **variables)["settings"]
                again = runs.json("weir info", **variables_of(found))["settings"]
                self.assertEqual(values(again), values(found))
                for name, setting in again.items():
                    if setting["value"]:
                        self.assertEqual(setting["source"], "WEIR_" + name.upper().replace("-", "_"))
            if has_swap_in():
                line = f"{os.environ['SWAP_IN_PROGRAM']} legacy"
                found = swapped_in(runs, line)["settings"]
                again = swapped_in(runs, line, **variables_of(found))["settings"]
                found.pop("summary")  # a file of `weir run`, another one each time
                again.pop("summary")
                self.assertEqual(values(again), values(found))


def each_schema(schema):
    """Yields (path, schema) of each property and definition."""
    todo = [(name, part) for name, part in schema.get("$defs", {}).items()] + [(".", schema)]
    while todo:
        path, part = todo.pop()
        if "$ref" in part:
            continue
        yield path, part
        todo += [(f"{path}/{key}", one) for key, one in part.get("properties", {}).items()]
        todo += [(f"{path}/{i}", one) for i, one in enumerate(part.get("anyOf", []))]
        for key in ("items", "additionalProperties"):
            if isinstance(part.get(key), dict):
                todo.append((f"{path}/{key}", part[key]))


FOREVER = "--batches 1000000000"
# Of each row of the table: the command that stands for it, by code. A `/dev/full` at the end is standard output.
# `interrupted` begins a command that gets SIGINT. `test` names a test of the tree that shows the code.
ROWS = {
    "weir-train run": {
        0: f"weir-train run {SMALL}",
        1: f"weir-train run {SMALL} --lr 1e30",
        2: "weir-train run --batches none",
        3: "weir-train run --batches 40 --policy unbounded --budget 96MiB",
        130: f"interrupted weir-train run --batch-size 16 {FOREVER}",
    },
    "weir-train predict": {
        0: PREDICT,
        1: f"{PREDICT} {FULL}",
        2: "weir-train predict --data nowhere --weights weights",
        3: f"{PREDICT} {OOM}",
        130: "test CliInterrupt.",
    },
    "weir-train dispatch": {
        0: "weir-train dispatch --operations 10 --rounds 1 --elements-large 10 --matrix 8",
        1: f"weir-train dispatch --operations 10 --rounds 1 --elements-large 10 --matrix 8 {FULL}",
        2: "weir-train dispatch --device cuda",
        130: "interrupted weir-train dispatch --operations 10 --rounds 1000000 --elements-large 10 --matrix 8",
    },
    "weir replay": {
        0: f"weir replay {TRACE} --no-search --pool round",
        1: f"weir replay {TRACE} --no-search --pool round {FULL}",
        2: "weir replay nowhere",
        3: f"weir replay {TRACE} --no-search --pool round --capacity 8MiB",
    },
    "weir info": {0: "weir info", 1: f"weir info {FULL}", 2: "weir info --nonsense"},
    "weir doctor": {0: "test Doctor", 1: "test Doctor", 2: "weir doctor --nonsense"},
    "weir set": {0: "test WeirSet.LowersAndRaises", 1: "weir set 1 --budget 1GiB", 2: "weir set 1 --budget none"},
    "weir-simulate": {
        0: "weir-simulate --batches 10 --workload bursts --budget 4",
        1: "weir-simulate --check --batches 21 --workload bursts --budget 16 --policy throttled",
        2: "weir-simulate --budget 0.5",
    },
    "weir-stress": {
        0: "test Bench.RunListsRunsAndRefuses",
        1: f"weir-stress fragmentation --size 64MiB --pool round --peer none {FULL}",
        2: "weir-stress oom --upstream nonsense",
    },
    "weir-bench": {
        0: "test Bench.EveryBenchmarkRuns",
        1: "test Bench.RunListsRunsAndRefuses",
        2: "test Bench.RunListsRunsAndRefuses",
    },
    "tools/demo": {0: "tools/demo --help", 1: "test GpuCheck.RunsEveryStepWithinItsLimit", 2: "tools/demo --nonsense"},
    "tools/test": {0: "tools/test --help", 1: "test Mutants.RunnerTellsWhoSurvives", 2: "tools/test --nonsense"},
    "tools/gpu-check": {
        0: "test GpuCheck.RunsEveryStepWithinItsLimit",
        1: "test GpuCheck.RunsEveryStepWithinItsLimit",
        2: "tools/gpu-check --nonsense",
    },
}


def table():
    """Returns the codes of each row of the page's table, by its first program."""
    rows = {}
    heading = None
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| program |"):
            heading = [int(cell) for cell in cells[1:]]
        elif heading and line.startswith("| `"):
            name = re.match(r"`([^`]+)`", cells[0])[1]
            rows[name] = {code for code, cell in zip(heading, cells[1:]) if cell != "-"}
        elif heading and not line.startswith("|"):
            break
    return rows


class ExitCodes(unittest.TestCase):
    def test_each_code_of_the_table_is_that_of_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = Runs(folder)
            train_on_digits(runs)
            for row, codes in ROWS.items():
                for code, line in codes.items():
                    if line.startswith("test ") or not is_built(line):
                        continue
                    with self.subTest(row, code=code):
                        ended, err = run_of(runs, line)
                        self.assertEqual(ended, code, f"{line}: {err}")
                        if code == 2:
                            self.assertTrue(err.strip(), f"{line} says nothing")

    def test_the_table_has_no_other_codes(self):
        self.assertEqual(table(), {row: set(codes) for row, codes in ROWS.items()})

    def test_tests_that_show_a_code_exist(self):
        sources = [file.read_text() for file in (ROOT / "tests").rglob("*.cpp")]
        sources += [file.read_text() for file in ROOT.rglob("CMakeLists.txt") if "build" not in file.parts]
        text = "\n".join(sources)
        for codes in ROWS.values():
            for line in codes.values():
                if line.startswith("test "):
                    suite, _, name = line.removeprefix("test ").partition(".")
                    wanted = rf"\b\w*{suite}\w*, {name}\w*|NAME {suite}\.{name}\b"
                    self.assertTrue(re.search(wanted, text), line)


def is_built(line):
    return not line.startswith("weir-stress") or "WEIR_STRESS" in os.environ


def run_of(runs, line):
    """Runs a line of ROWS. Returns the exit code and standard error."""
    if line.startswith("interrupted "):
        return runs.interrupted(line.removeprefix("interrupted ")), ""
    if line.startswith("tools/"):
        ended = subprocess.run([ROOT / line.split()[0], *line.split()[1:]], capture_output=True, text=True, check=False)
        return ended.returncode, ended.stderr
    if line.endswith(FULL):
        with open(FULL, "w") as full:
            return runs.code(line.removesuffix(FULL), full)
    return runs.code(line)


class Demo(unittest.TestCase):
    """tools/demo in a tree where nothing is built: cmake puts the built programs there, of which weir-demo is quick."""

    def test_standard_output_has_the_figures_alone_and_the_commands_to_try_next_work(self):
        with tempfile.TemporaryDirectory(prefix="a demo ") as folder:
            root = pathlib.Path(folder).resolve()
            for name in ("tools", "bin"):
                (root / name).mkdir()
            shutil.copy(ROOT / "tools/demo", root / "tools")
            build = root / "build/release-demo/trainer"
            write_program(root / "tools/setup", "echo set up")
            write_program(root / "weir-demo", f'exec {os.environ["WEIR_DEMO"]} --quick')
            write_program(root / "bin/cmake", f"mkdir -p '{build}/demo'; echo \"cmake $*\" >>'{root}/built'\n"
                                              f"ln -sf '{root}/weir-demo' '{build}/demo'\n"
                                              f"ln -sf '{os.environ['WEIR_TRAIN']}' '{build}'")
            environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"}
            done = subprocess.run([root / "tools/demo"], capture_output=True, text=True, cwd=root.parent, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("--target weir-demo", (root / "built").read_text())
            self.assertNotIn("weir-train", (root / "built").read_text())
            self.assertRegex(done.stderr.splitlines()[0], "builds .* seconds")
            self.assertEqual(done.stdout.count("reference  "), 1, done.stdout)
            self.assertEqual(len(re.findall(r"^(?:In short|The job of .*): throttled took", done.stdout, re.M)), 2,
                             done.stdout)
            self.assertTrue(done.stdout.startswith("MLP "), done.stdout)
            self.assertNotIn("To try next", done.stdout)
            commands = re.findall(r"^  (.*weir-train.*)$", done.stderr.partition("To try next")[2], re.M)
            self.assertEqual(len(commands), 2, done.stderr)
            for command in commands:
                tried = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, env=environment)
                self.assertEqual(tried.returncode, 0, f"{command}: {tried.stderr}")
            self.assertTrue((root / "pages/throttled.html").exists())


def write_program(path, commands):
    path.write_text(f"#!/usr/bin/env bash\nset -eu\n{commands}\n")
    path.chmod(0o755)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Runs frameworks on the stand-in driver with and without Weir, feature by feature, and writes the table of
docs/frameworks.md.

Each tests/frameworks/with_NAME.py (or .cpp) is a program: NAME --list prints its features, NAME FEATURE tries
one and ends with 0 (it works), 1 (it does not) or 77 (it cannot be had on the stand-in), the reason in the
last line of standard output. What it prints where it works is compared.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import matrix
from environment import HERE, OLDER, ROOT, VERSIONS, Environment, Unusable, pinned

sys.path.insert(0, str(ROOT / "tools/gpu_check"))
import processes  # noqa: E402

# The program's name, the framework's, and the package whose version is shown.
FRAMEWORKS = {
    "pytorch": ("PyTorch", "torch"),
    "pytorch_figures": ("PyTorch", "torch"),
    "pytorch_batches": ("PyTorch", "torch"),
    "pytorch_graphs": ("PyTorch", "torch"),
    "pytorch_trees": ("PyTorch", "torch"),
    "pytorch_processes": ("PyTorch", "torch"),
    "jax": ("JAX", "jax"),
    "cupy": ("CuPy", "cupy-cuda13x"),
    "numba": ("Numba", "numba-cuda"),
    "numba_manager": ("Numba with weir.numba", "numba-cuda"),
    "rmm": ("RMM", "librmm"),
    "cuda_python": ("cuda-python", "cuda-python"),
}
PAGE = ROOT / "docs/frameworks.md"
NEWEST = ".".join(pinned(VERSIONS.read_text())["torch"].split(".")[:2])
WAYS_OF_OLDER = ("alone", "plug")  # the other ways do not depend on PyTorch's classes


def say(text):
    print(f"frameworks: {text}", file=sys.stderr, flush=True)


def commands(environment, program, torch):
    """How `program` is started, by way. Only PyTorch, if it is `torch`, has a plug."""
    weir = [environment.weir, "run"]
    below, own = [*weir, *(["--torch", "off"] if torch else [])], [*weir, "--allocator", "async"]
    plug = {"plug": [*weir, "--torch", "plug", "--", *program]} if torch else {}
    return {"alone": program, "below": [*below, "--", *program], "async": [*own, "--", *program]} | plug


def settings_of_async(environment, variables):
    """What `weir run --allocator async` sets for frameworks, to set it without Weir."""
    shown = [environment.weir, "run", "--allocator", "async", "--", "env", "-0"]
    done = subprocess.run(list(map(str, shown)), env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unusable(f"weir run --allocator async fails: {matrix.last_line(done.stderr)}")
    found = dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)
    return {name: value for name, value in found.items()
            if variables.get(name) != value and not name.startswith(("WEIR_", "LD_"))}


def run(command, variables, seconds):
    """Runs `command` in a session of its own: its outcome, and nothing of it is left running."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = processes.start(command, variables, output, errors)
        in_time = processes.end(child, seconds)
        texts = [file.seek(0) or file.read().decode(errors="replace") for file in (output, errors)]
    return matrix.outcome(child.returncode if in_time else None, *texts, seconds)


def features_of(program, variables):
    done = subprocess.run([*map(str, program), "--list"], env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.split():
        raise Unusable(f"{program[-1]} --list says nothing: {matrix.last_line(done.stderr)}")
    return done.stdout.split()


def programs(environment, folder, names):
    """The programs to run, as commands by name, in the order of FRAMEWORKS and then of their names."""
    found = {path.stem.removeprefix("with_"): path for path in sorted(folder.glob("with_*.*"))
             if path.suffix in (".py", ".cpp")}
    for name in names:
        if not any(is_named(one, name) for one in found):
            raise Unusable(f"{name} is no framework: {', '.join(found)}")
    order = sorted(found, key=lambda name: (list(FRAMEWORKS).index(name) if name in FRAMEWORKS else 99, name))
    return {
        name: [environment.python, found[name]] if found[name].suffix == ".py" else [environment.compiled(found[name])]
        for name in order if not names or any(is_named(name, one) for one in names)
    }


def is_named(program, name):
    """Whether `name` means `program`: "pytorch" means "pytorch_graphs", too."""
    return program == name or program.startswith(f"{name}_")


def is_torch(program):
    return is_named(program, "pytorch")


def run_all(environment, wanted, feature, ways, jobs, seconds, older=""):
    """The rows of the table: (framework, feature, outcomes by way), of the framework's `older` version."""
    variables = environment.variables()
    rows, futures = [], {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, program in wanted.items():
            for one in features_of(program, variables):
                if feature in (None, one):
                    starts = commands(environment, [*program, one], is_torch(name))
                    futures[name, one] = {way: pool.submit(run, starts[way], variables, seconds)
                                          for way in ways if way in starts}
        found = {key: {way: future.result() for way, future in pending.items()} for key, pending in futures.items()}
        own = variables | (settings_of_async(environment, variables) if "async" in ways else {})
        again = {(name, one): pool.submit(run, [*wanted[name], one], own, seconds)
                 for (name, one), outcomes in found.items() if matrix.needs_reference(outcomes)}
        for (name, one), outcomes in found.items():
            if (name, one) in again:
                outcomes[matrix.REFERENCE] = again[name, one].result()
            outcomes = matrix.compared(outcomes)
            say(f"{name}{older} {one}: " + ", ".join(f"{way} {found.word}" for way, found in outcomes.items()))
            rows.append((FRAMEWORKS.get(name, (name,))[0] + older, one, outcomes))
    return rows


def text_of(rows, names, versions, older):
    """What stands between the marks of the page. `older` has the older versions of PyTorch."""
    known = [FRAMEWORKS[name] for name in names if name in FRAMEWORKS]
    shown = dict.fromkeys([f"{title} {versions[package]}" for title, package in known]
                          + [f"PyTorch {version}" for version in older])
    python = ".".join(map(str, sys.version_info[:2]))
    said = f"`tools/test --frameworks` wrote this, with {', '.join(shown)} and Python {python}."
    if older:
        said += " Of the older versions it lists what differs."
    return f"{said}\n\n{matrix.table(rows)}"


def write(page, text, check):
    """Puts `text` into `page`, or with `check` says whether it is there."""
    old = page.read_text()
    try:
        new = matrix.with_matrix(old, text)
    except ValueError as error:
        raise Unusable(f"{page} {error}") from None
    if check and new != old:
        say(f"{page} has another table than this run")
        return False
    if not check:
        page.write_text(new)
    return True


def arguments():
    parser = argparse.ArgumentParser(prog="tools/test --frameworks", description=__doc__.split("\n\n")[0])
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help="only these, and the page stays as it is")
    parser.add_argument("--torch", action="append", metavar="VERSION", choices=[NEWEST, *OLDER],
                        help=f"only PyTorch of this version, {', '.join([NEWEST, *OLDER])}; the page stays as it is")
    parser.add_argument("--feature", help="only this one, and the page stays as it is")
    parser.add_argument("--ways", default=",".join(matrix.WAYS), help="some of %(default)s; the page stays as it is")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; exit code 1 where the page has another table")
    parser.add_argument("--timeout", type=int, default=180, metavar="SECONDS", help="for one feature; %(default)s")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="features at once; %(default)s")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/frameworks",
                        help="the environment; %(default)s")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="what is tested; %(default)s")
    parser.add_argument("--programs", type=pathlib.Path, default=HERE, help=argparse.SUPPRESS)
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help=argparse.SUPPRESS)
    parser.add_argument("--python", type=pathlib.Path, help=argparse.SUPPRESS)  # a test's, which installs nothing
    given = parser.parse_args()
    given.ways = given.ways.split(",")
    for way in given.ways:
        if way not in matrix.WAYS:
            parser.error(f"--ways has {way!r}: allowed are {', '.join(matrix.WAYS)}")
    if given.timeout < 1 or given.jobs < 1:
        parser.error("--timeout and --jobs are 1 or more")
    return given


def older_versions(given):
    """Returns the older versions of PyTorch to run, the newest first."""
    if given.torch is not None:
        return [version for version in OLDER if version in given.torch]
    return list(OLDER) if given.python is None and (not given.frameworks or "pytorch" in given.frameworks) else []


def main():
    given = arguments()
    environment = Environment(given.folder, given.build)
    if given.python is not None:
        environment.python = given.python
    else:
        environment.check_build()
    rows, wanted, shown = [], {}, []
    if given.torch is None or NEWEST in given.torch:
        if given.python is None:
            environment.prepare(say)
        wanted = programs(environment, given.programs, given.frameworks or (["pytorch"] if given.torch else []))
        rows = run_all(environment, wanted, given.feature, given.ways, given.jobs, given.timeout)
    for version in older_versions(given):
        older = Environment(given.folder / f"torch-{version}", given.build, OLDER[version])
        older.prepare(say)
        shown.append(older.versions()["torch"])
        rows += run_all(older, programs(older, given.programs, ["pytorch"]), given.feature,
                        [way for way in given.ways if way in WAYS_OF_OLDER], given.jobs, given.timeout, f" {version}")
    if not rows:
        raise Unusable(f"no framework has the feature {given.feature}")
    text = text_of(rows, wanted, environment.versions(), shown)
    print(text)
    partial = given.frameworks or given.torch or given.feature or given.ways != list(matrix.WAYS)
    good = partial or write(given.page, text, given.check)
    wrong = matrix.complaints(rows)
    for line in wrong:
        say(line)
    return 0 if good and not wrong else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unusable as error:
        say(str(error))
        sys.exit(2)

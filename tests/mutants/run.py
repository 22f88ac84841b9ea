#!/usr/bin/env python3
"""Builds hand-made faults one by one and reports which of them the tests notice (tests/mutants/README.md)."""

import argparse
import functools
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FIELDS = ("loses", "file", "build", "tests", "survives")
LEAST = 60  # how many faults the lists have to hold
NOTICED = 0.95  # the share that the tests have to notice
PRESET = "mutants"
SECONDS = "30"  # for a test: longer, and it has noticed, since many a fault hangs
LINKERS = ("mold", "lld", "gold")  # the quickest first


class Mutant:
    """One fault: the lines `old` of `file` become `new`."""

    def __init__(self, name, place):
        self.name, self.place = name, place
        self.fields, self.old, self.new = {}, [], []

    def __getattr__(self, field):
        return self.fields.get(field, "")

    def complaint(self, root):
        """Returns what is wrong with it in the sources under `root`; empty if it applies."""
        missing = [field for field in FIELDS[:4] if field not in self.fields]
        if missing:
            return f"lacks {', '.join(missing)}"
        if not self.old or self.old == self.new:
            return "changes nothing"
        path = root / self.file
        if not path.is_file():
            return f"{self.file} does not exist"
        if self.build not in test_programs(root):
            return f"no CMakeLists.txt of tests makes {self.build}"
        found = len(self.places(path.read_text()))
        return "" if found == 1 else f"its lines are {found} times in {self.file}, and not once"

    def places(self, text):
        """Returns the begin and end of the lines `old` in `text`, as whole lines."""
        lines = "\n".join(map(re.escape, self.old))
        return [match.span() for match in re.finditer(f"^{lines}$", text, re.MULTILINE)]

    def mutated(self, text):
        [(begin, end)] = self.places(text)
        return text[:begin] + "\n".join(self.new) + text[end:]


@functools.lru_cache
def test_programs(root):
    """Returns the names of what the CMakeLists.txt below `root`/tests make."""
    makes = r"^ *(?:weir_(?:test|program)\(\s*(?:A_PROCESS_EACH\s+)?NAME|add_(?:executable|library)\()\s*([\w-]+)"
    return {name for path in root.glob("tests/**/CMakeLists.txt")
            for name in re.findall(makes, path.read_text(), re.MULTILINE)}


def read_lists(folder):
    """Returns the mutants of all lists in `folder`; ends the program if one cannot be read."""
    mutants = {}
    for path in sorted(folder.glob("*.mutants")):
        mutant = None
        for number, line in enumerate(path.read_text().split("\n"), 1):
            place = f"{path.name}:{number}"
            field, _, value = line.partition(": ")
            if field == "mutant":
                if value in mutants:
                    sys.exit(f"{place}: {value} is there twice")
                mutant = mutants[value] = Mutant(value, place)
            elif line[:1] in ("-", "+", " ") and mutant:
                if line[0] != "+":
                    mutant.old.append(line[1:])
                if line[0] != "-":
                    mutant.new.append(line[1:])
            elif field in FIELDS and mutant:
                mutant.fields[field] = value
            elif line and not line.startswith("#"):
                sys.exit(f"{place}: cannot be read: {line}")
    return mutants


def check(mutants, root):
    """Reports mutants that no longer apply. Returns true if there are none."""
    wrong = [(m.place, m.name, m.complaint(root)) for m in mutants.values() if m.complaint(root)]
    for place, name, what in wrong:
        print(f"{place}: {name}: {what}", file=sys.stderr)
    return not wrong


def copy_sources(to):
    """Copies our sources to `to`. Unchanged files keep their time."""
    if to.exists() and any(to.iterdir()) and not (to / "build/of_mutants").exists():
        sys.exit(f"{to} is not a copy that this made")
    (to / "build").mkdir(parents=True, exist_ok=True)
    (to / "build/of_mutants").touch()
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout
    wanted = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for path in list(to.rglob("*")):
        name = str(path.relative_to(to))
        if path.is_file() and not name.startswith("build/") and name not in wanted:
            path.unlink()
    for name in wanted:
        source, target = ROOT / name, to / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def built(copy):
    return copy / "build" / PRESET


def configure(copy):
    """Prepares the copy's build, with the fastest installed linker."""
    linker = next((f"-fuse-ld={name}" for name in LINKERS if shutil.which(f"ld.{name}")), "")
    words = [f"-DCMAKE_{kind}_LINKER_FLAGS={linker}" for kind in ("EXE", "SHARED")]
    subprocess.run(["cmake", "--preset", PRESET, *words], cwd=copy, check=True,
                   stdout=subprocess.DEVNULL)


def build(copy, *targets):
    done = subprocess.run(["ninja", "-C", built(copy), *targets], capture_output=True,
                          text=True, check=False)
    return "" if done.returncode == 0 else done.stdout[-3000:] or "ninja failed"


def first_failure(copy, pattern):
    """Returns the first test of this pattern that fails or times out; empty if there is none."""
    command = ["ctest", "--test-dir", built(copy), "-R", pattern, "-LE", "^gpu$", "-j2", "--timeout", SECONDS,
               "--stop-on-failure", "--no-tests=error"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    failed = re.search(r"Test +#\d+: (\S+) (.*(?:\*\*\*|Failed|Not Run).*)", done.stdout)
    if not failed:
        sys.exit(f"ctest -R '{pattern}' does not say what failed:\n{done.stdout}{done.stderr}")
    # On a machine that is very busy this may be no fault's doing, so it is said.
    return failed.group(1) + (" (took too long)" if "***Timeout" in failed.group(2) else "")


def joined(patterns):
    """Returns the same in few patterns: ctest starts slowly, and allows few parentheses in one."""
    few = []
    for pattern in dict.fromkeys(patterns):
        if few and (few[-1] + pattern).count("(") <= 8:
            few[-1] += "|" + pattern
        else:
            few.append(pattern)
    return few


def verdict(copy, mutant):
    """Returns `noticed by …`, `survived`, or why it is unknown. Leaves the copy unchanged."""
    path = copy / mutant.file
    sound = path.read_text()
    try:
        path.write_text(mutant.mutated(sound))
        broken = build(copy, mutant.build)
        if "static assertion failed" in broken:
            return "noticed by a static assertion"
        if broken:
            return f"does not compile:\n{broken}"
        failed = first_failure(copy, mutant.tests)
        return f"noticed by {failed}" if failed else "survived"
    finally:
        path.write_text(sound)


def run(mutants, copy):
    """Runs all. Returns true if enough are noticed and the others are explained."""
    began, verdicts = time.monotonic(), {}
    targets = list(dict.fromkeys(m.build for m in mutants))
    # All of them first: a run that was ended may have left a fault in one whose tests have names of another's.
    broken = build(copy, *targets)
    if broken:
        sys.exit(f"it does not build without a fault:\n{broken}")
    for target in targets:
        # What one mutant's file needs compiled, the next one's of the same file does not.
        group = sorted((m for m in mutants if m.build == target), key=lambda m: m.file)
        for pattern in joined(m.tests for m in group):
            failed = first_failure(copy, pattern)
            if failed:
                sys.exit(f"{failed} fails without a fault")
        for mutant in group:
            start = time.monotonic()
            verdicts[mutant.name] = verdict(copy, mutant)
            print(f"{mutant.name}: {verdicts[mutant.name]}, {time.monotonic() - start:.0f} s", flush=True)
        build(copy, target)
    noticed = [name for name, text in verdicts.items() if text.startswith("noticed")]
    others = [m for m in mutants if m.name not in noticed]
    work = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{len(noticed)} of {len(mutants)} noticed ({100 * len(noticed) / len(mutants):.0f}%) "
          f"in {time.monotonic() - began:.0f} s, {work.ru_utime + work.ru_stime:.0f} s of processors")
    for mutant in others:
        print(f"  {mutant.name} ({mutant.file}): {mutant.survives or 'not explained'}\n"
              f"    a user loses: {mutant.loses}")
    explained = all(m.survives and verdicts[m.name] == "survived" for m in others)
    return explained and len(noticed) >= NOTICED * len(mutants)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="these alone; * stands for anything")
    parser.add_argument("--check", action="store_true", help="only see whether each still applies")
    parser.add_argument("--list", action="store_true", help="only print their names")
    parser.add_argument("--lists", type=pathlib.Path, default=HERE, help="the folder of the lists")
    parser.add_argument("--copy", type=pathlib.Path, default=ROOT / "build/mutants",
                        help="a copy of the sources to build in (default: build/mutants)")
    options = parser.parse_args()
    mutants = read_lists(options.lists)
    if not check(mutants, ROOT):
        return 1
    if options.check:
        print(f"{len(mutants)} mutants, each of which applies once")
        return 0 if len(mutants) >= LEAST or options.lists != HERE else 1
    chosen = [m for m in mutants.values() if not options.names or
              any(pathlib.PurePath(m.name).match(name) for name in options.names)]
    if not chosen:
        sys.exit("no mutant has such a name")
    if options.list:
        print("\n".join(f"{m.name}: {m.loses}" for m in chosen))
        return 0
    copy_sources(options.copy)
    configure(options.copy)
    return 0 if run(chosen, options.copy) else 1


if __name__ == "__main__":
    sys.exit(main())

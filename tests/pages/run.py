#!/usr/bin/env python3
"""Runs the commands that the pages show, over the stand-in driver.

    run.py marks ROOT BUILD          every block of commands says who runs it, and the tests it names do
    run.py commands ROOT BUILD PAGE  runs the blocks that are for this, of one page
    run.py list ROOT                 prints the pages that have such blocks, for CMake

Each page is run in a folder of its own, block by block: a later block finds what an earlier one wrote.
The folder has a program that trains (train.py), a data set (DIR), a log and a timeline of the program
(run.log, run.json), and the folders of the source tree. blocks.py has the marks.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import blocks
import sources

HERE = pathlib.Path(__file__).resolve().parent
# Open MPI runs nothing for root, nor more ranks than processors, unless told to.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def pages_of(root):
    found = [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("[A-Z]*.md"))]
    found += [root / "docs/results/README.md", root / "bench/traces/README.md", *sorted(root.glob("tests/*/README.md"))]
    return list(dict.fromkeys(page for page in found if page.exists()))


def blocks_of(root, page):
    return blocks.blocks_of(str(page.relative_to(root)), page.read_text())


def check_marks(root, build):
    tests, faults, seen = sources.Sources(root, build), [], 0
    for page in pages_of(root):
        for block in blocks_of(root, page):
            seen += block.language == "sh"
            faults += blocks.faults_of(block, tests)
    if not tests.commands or not seen:
        faults.append("run.py: found no tests, or no commands on the pages: the check itself is broken")
    print("\n".join(faults))
    return bool(faults)


def environment_of(build, scene):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    folders = [scene / "bin", build / "tools/weir", build / "trainer",
               build / "bench", *sorted({path.parent for path in build.glob("bench/*/weir-*") if path.is_file()})]
    return {**kept, "PATH": ":".join(map(str, folders)) + ":" + kept["PATH"], "HOME": str(scene / "home"),
            "LD_LIBRARY_PATH": str(build / "tests/standin"), "NO_COLOR": "1", **OPEN_MPI}


def make_scene(root, build, scene):
    for folder in root.iterdir():
        if folder.is_dir() and folder.name not in ("build", ".git"):
            (scene / folder.name).symlink_to(folder)
    for name in ("build", "home", "bin", "DIR"):
        (scene / name).mkdir()
    for name in ("dev", "release", "release-demo"):
        (scene / "build" / name).symlink_to(build)
    (scene / "bin/python").symlink_to(sys.executable)
    shutil.copy(HERE / "scene/train.py", scene)
    environment = environment_of(build, scene)
    made = [[build / "tests/trainer/make_digits", "DIR"], ["weir", "run", "--", "python", "train.py"],
            ["weir", "timeline", "record", "-o", "run.json", "--", "python", "train.py"]]
    for command in made:
        subprocess.run(command, cwd=scene, check=True, capture_output=True,
                       env={**environment, "WEIR_ALLOC_LOG": "run.log"})
    return environment


def run_page(root, build, page):
    todo = [block for block in blocks_of(root, root / page) if block.language == "sh" and block.runner == "run"]
    if not todo:
        print(f"{page} has no commands to run")
        return 1
    with tempfile.TemporaryDirectory(prefix="weir-page-") as folder:
        scene = pathlib.Path(folder)
        environment = make_scene(root, build, scene)
        for block in todo:
            print(f"== {block.place}\n{block.text}", flush=True)
            begun = time.monotonic()
            done = subprocess.run(["bash", "-c", blocks.script_of(block)], cwd=scene, env=environment,
                                  stdin=subprocess.DEVNULL)
            print(f"== {time.monotonic() - begun:.1f} s", flush=True)
            if done.returncode != 0:
                print(f"{block.place}: a command did not end as the page says")
                return 1
    return 0


def main():
    match sys.argv[1:]:
        case ["marks", root, build]:
            return check_marks(pathlib.Path(root).resolve(), pathlib.Path(build).resolve())
        case ["commands", root, build, page]:
            return run_page(pathlib.Path(root).resolve(), pathlib.Path(build).resolve(), page)
        case ["list", root]:
            root = pathlib.Path(root).resolve()
            for page in pages_of(root):
                if any(b.language == "sh" and b.runner == "run" for b in blocks_of(root, page)):
                    print(page.relative_to(root))
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

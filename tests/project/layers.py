#!/usr/bin/env python3
"""Checks that every folder includes only what its CMakeLists.txt allows.

    layers.py ROOT          checks the sources under ROOT; prints each violation, exits 1 if any
    layers.py --self-test   checks that the check itself finds violations, and nothing else

The first lines of a folder's CMakeLists.txt say in a sentence what lives there, and in a line
"May include:" whose headers it may include besides its own. The lines of all folders have no
circles, point only to the same floor or a lower one, and name nothing that is not included.
"""

import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

# From the ground up. A folder belongs to the floor of its longest prefix here.
FLOORS = {
    "allocator/base": 0,
    "allocator": 1,
    "scheduler": 2,
    "kernels": 2,
    "tools/program": 2,
    "tools/timeline": 3,
    "trainer": 4,
    "tools": 5,
    "bench": 6,
    "tests": 6,
}
CHECKED = ("allocator", "scheduler", "kernels", "trainer", "tools", "bench")
SOURCES = {".hpp", ".cpp", ".cu", ".cuh", ".h", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
OURS = re.compile(r"(\.\./|.*/\.\./|(allocator|scheduler|kernels|trainer|tools|bench|tests|support)/)")
CUDA = re.compile(r"(cuda|cublas|cupti|nvtx|driver_types|vector_types)")
# Folders in which CUDA's headers may be included by files of any name.
CUDA_FOLDERS = ("tools/preload", "bench")


def floor(folder: str) -> int:
    parts = folder.split("/")
    for end in range(len(parts), 0, -1):
        found = FLOORS.get("/".join(parts[:end]))
        if found is not None:
            return found
    return max(FLOORS.values())


def allowed_folders(root: Path, folder: str) -> tuple[list[str], list[str]]:
    """Returns what `folder` may include, and the errors of its CMakeLists.txt about that."""
    page = root / folder / "CMakeLists.txt"
    if not page.exists():
        return [], [f"{folder}: has no CMakeLists.txt that says what lives there"]
    comment = []
    for line in page.read_text().splitlines():
        if not line.startswith("#"):
            break
        comment.append(line[1:].strip())
    lines = [line for line in comment if line.startswith("May include:")]
    if len(lines) != 1:
        return [], [f"{folder}/CMakeLists.txt: one line 'May include:' is needed in the first comment"]
    bad = []
    if len(comment) < 2:
        bad.append(f"{folder}/CMakeLists.txt: a sentence is needed that says what lives there")
    if comment[-1] != lines[0]:
        bad.append(f"{folder}/CMakeLists.txt: 'May include:' is the comment's last line, and one line")
    words = lines[0].removeprefix("May include:").strip()
    listed = [] if words == "nothing of ours" else words.split()
    for other in listed:
        if not (root / other).is_dir():
            bad.append(f"{folder}/CMakeLists.txt: may include {other}, which there is not")
        elif floor(other) > floor(folder):
            bad.append(f"{folder}/CMakeLists.txt: may include {other}, which is above it")
    return listed, bad


def includes(root: Path, folder: str):
    """Yields (file, line number, included file) for each source in `folder`."""
    for path in sorted((root / folder).iterdir()):
        if path.suffix not in SOURCES:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if match := INCLUDE.match(line):
                yield path.relative_to(root), number, match.group(1)


def circle(may: dict[str, list[str]]) -> list[str]:
    """Returns folders that include each other in a circle; empty if there are none."""
    done, path = set(), []

    def visit(folder: str) -> list[str]:
        if folder in path:
            return path[path.index(folder) :] + [folder]
        if folder in done:
            return []
        path.append(folder)
        for other in may.get(folder, []):
            if found := visit(other):
                return found
        path.pop()
        done.add(folder)
        return []

    for folder in may:
        if found := visit(folder):
            return found
    return []


def folders(root: Path) -> list[str]:
    found = set()
    for top in CHECKED:
        for path in (root / top).rglob("*"):
            if path.suffix in SOURCES and "__pycache__" not in path.parts:
                found.add(str(path.parent.relative_to(root)))
    return sorted(found)


def check(root: Path) -> list[str]:
    bad, may = [], {}
    for top in CHECKED:
        if not any(path.suffix in SOURCES for path in (root / top).rglob("*")):
            bad.append(f"{top}: has no sources to check")
    for folder in folders(root):
        may[folder], wrong = allowed_folders(root, folder)
        bad += wrong
        used = defaultdict(int)
        for file, number, included in includes(root, folder):
            where = f"{file}:{number}: {included}"
            if CUDA.match(included) and not may_use_cuda(file):
                bad.append(f"{where}: only files named *_cuda.* and *.cu may include CUDA's headers")
            if not OURS.match(included):
                continue
            other = str(Path(included).parent)
            used[other] += 1
            if ".." in Path(included).parts:
                bad.append(f"{where}: headers are named by their path from the root")
            elif other != folder and other not in may[folder]:
                bad.append(f"{where}: {folder}/CMakeLists.txt does not allow it")
        for other in may[folder]:
            if other not in used:
                bad.append(f"{folder}/CMakeLists.txt: may include {other}, and does not")
    if found := circle(may):
        bad.append("a circle: " + " -> ".join(found))
    return bad


def may_use_cuda(file: Path) -> bool:
    named = file.suffix in {".cu", ".cuh"} or file.stem.endswith("_cuda")
    return named or str(file).startswith(CUDA_FOLDERS)


def make_tree(root: Path, files: dict[str, str]) -> None:
    """Makes a tree in which every checked folder has a source, plus these files."""
    clean = {f"{top}/a.hpp": "" for top in CHECKED}
    for name, text in {**clean, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        page = path.parent / "CMakeLists.txt"
        if not page.exists():
            page.write_text("# A room.\n# May include: nothing of ours\n")


def self_test() -> int:
    def room(*others: str) -> str:
        return f"# A room.\n# May include: {' '.join(others) or 'nothing of ours'}\n"

    down = {
        "scheduler/CMakeLists.txt": room("allocator"),
        "scheduler/b.cpp": '#include "allocator/a.hpp"\n',
    }
    cases = [
        ("as it should be", True, {}),
        ("a lower folder that is listed", True, down),
        ("a standard header", True, {"allocator/b.cpp": "#include <vector>\n"}),
        ("a comment", True, {"allocator/b.cpp": '// #include "scheduler/a.hpp"\n'}),
        ("its own folder", True, {"allocator/b.cpp": '#include "allocator/a.hpp"\n'}),
        ("CUDA in a file of that name", True, {"kernels/b_cuda.hpp": "#include <cuda.h>\n"}),
        ("CUDA in the swap-in", True, {"tools/preload/b.cpp": "#include <cuda.h>\n"}),
        ("CUDA in another file", False, {"kernels/cuda.hpp": "#include <cuda.h>\n"}),
        ("not listed", False, {"scheduler/b.cpp": '#include "allocator/a.hpp"\n'}),
        ("not listed, oddly written", False, {"trainer/b.cpp": '  #  include <allocator/a.hpp> // why\n'}),
        ("listed and not used", False, {"scheduler/CMakeLists.txt": room("allocator")}),
        ("no such folder", False, {"scheduler/CMakeLists.txt": room("allocator/nowhere")}),
        ("a way round", False, {**down, "scheduler/b.cpp": '#include "allocator/../allocator/a.hpp"\n'}),
        ("up", False, {"allocator/CMakeLists.txt": room("trainer"), "allocator/b.cpp": '#include "trainer/a.hpp"\n'}),
        ("a test's header", False, {"trainer/b.cpp": '#include "support/fake.hpp"\n'}),
        ("no sentence", False, {"kernels/CMakeLists.txt": "# May include: nothing of ours\n"}),
        (
            "two lines",
            False,
            {**down, "scheduler/CMakeLists.txt": "# A room.\n# May include: allocator\n# kernels\n"},
        ),
        ("no line", False, {"kernels/CMakeLists.txt": "# A room.\n"}),
        (
            "a circle",
            False,
            {
                "allocator/x/CMakeLists.txt": room("allocator/y"),
                "allocator/x/x.hpp": '#include "allocator/y/y.hpp"\n',
                "allocator/y/CMakeLists.txt": room("allocator/x"),
                "allocator/y/y.hpp": '#include "allocator/x/x.hpp"\n',
            },
        ),
    ]
    failed = 0
    for name, is_right, files in cases:
        with tempfile.TemporaryDirectory() as scratch:
            make_tree(Path(scratch), files)
            found = check(Path(scratch))
        if bool(found) == is_right:
            print(f"self-test: {name}: {found or 'found right'}")
            failed = 1
    with tempfile.TemporaryDirectory() as scratch:
        make_tree(Path(scratch), {})
        (Path(scratch) / "kernels/a.hpp").unlink()
        if not check(Path(scratch)):
            print("self-test: a folder without sources was found right")
            failed = 1
    return failed


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: layers.py ROOT | --self-test", file=sys.stderr)
        return 2
    bad = check(Path(sys.argv[1]))
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Makes every picture of this folder.

    remake.py BUILD            makes all of them with the programs of this build folder
    remake.py BUILD drawn      only those that come out the same every time
    remake.py BUILD --check    changes nothing: are they what their commands draw, and do the pages show
                               the figures that were measured with them?

Drawn pictures are checked by drawing them again. A measured one comes out differently each time: with
it measured.json keeps its hash, and a text file what its command printed, which a page shows.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import draw_admission
import draw_layers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRACES = ("conv_varying_images", "gpt_fixed", "gpt_recompute_lora", "gpt_varying_lengths", "kv_cache", "moe_uneven")
# What is measured: the file of what was printed, the page that shows it in so many blocks, and the pictures.
MEASURED = {
    "compare.txt": ("README.md", 1, ["compare.svg"]),
    "timelines.txt": ("docs/timelines.md", 2, ["timeline_unbounded.png", "timeline_barrier.png", "timeline_throttled.png"]),
}


def run(*command):
    """Runs a program without settings of ours, and returns what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE,
                          env={**kept, "NO_COLOR": "1"}).stdout


def make_drawn(build, folder):
    (folder / "layers.svg").write_text(draw_layers.draw())
    (folder / "admission.svg").write_text(draw_admission.draw())
    run("bash", HERE / "throttling.sh", build / "bench/simulate/weir-simulate", folder)
    os.chdir(ROOT)  # the pictures' titles have the traces' names as given
    for trace in TRACES:
        run(build / "tools/weir/weir", "replay", f"bench/traces/{trace}.csv.gz", "--pool", "round:24,best_fit,paged",
            "--no-search", "--svg", folder / f"{trace}.svg", "--json", "/dev/null")


def make_measured(build, folder):
    train, weir = build / "trainer/weir-train", build / "tools/weir/weir"
    printed = run(train, "compare", "--device", "cpu", "--small", "--svg", folder / "compare.svg")
    (folder / "compare.txt").write_text(printed)
    (folder / "timelines.txt").write_text(run("bash", HERE / "timelines.sh", train, weir, folder))
    hashes = {name: hash_of(folder / name)
              for printed, (*_, pictures) in MEASURED.items() for name in (printed, *pictures)}
    (folder / "measured.json").write_text(json.dumps(hashes, indent=1) + "\n")


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def blocks_from(page, printed):
    """How many blocks of output on a page come from what was printed; a line `...` leaves lines out."""
    blocks = [part.split("\n```", 1)[0] for part in page.split("```text\n")[1:]]
    return sum(comes_from(block, printed) for block in blocks)


def comes_from(block, printed):
    """Whether the parts of a block between its lines `...` stand in what was printed, in this order."""
    rest = "\n" + printed
    for part in re.split(r"^ *\.\.\.$\n?", block, flags=re.MULTILINE):
        if not part:
            continue
        _, found, rest = rest.partition("\n" + part.removesuffix("\n") + "\n")
        if not found:
            return False
        rest = "\n" + rest
    return True


def faults_of_drawn(build, folder=HERE):
    with tempfile.TemporaryDirectory() as made:
        make_drawn(build, pathlib.Path(made))
        return [f"docs/pictures/{new.name} is not what its command draws now: docs/pictures/remake.py BUILD drawn"
                for new in sorted(pathlib.Path(made).iterdir())
                if not (folder / new.name).exists() or new.read_bytes() != (folder / new.name).read_bytes()]


def faults_of_measured(folder=HERE, root=ROOT):
    faults = []
    hashes = json.loads((folder / "measured.json").read_text())
    for printed, (page, blocks, pictures) in MEASURED.items():
        for name in (printed, *pictures):
            if hashes.get(name) != hash_of(folder / name):
                faults.append(f"docs/pictures/{name} is not the one that was made with {', '.join(pictures)}")
        found = blocks_from((root / page).read_text(), (folder / printed).read_text())
        if found != blocks:
            faults.append(f"{page} shows {found} blocks of docs/pictures/{printed}, not {blocks}: its figures are "
                          "older than the picture")
    return faults


def faults_of_pages(folder=HERE, root=ROOT):
    """A picture that no page shows, and a page's picture that is not here."""
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    shown = {name for page in pages for name in re.findall(r"\((?:docs/)?pictures/([^)]+)\)", page.read_text())}
    there = {path.name for path in folder.iterdir() if path.suffix in (".svg", ".png")}
    return [*(f"no page shows docs/pictures/{name}" for name in sorted(there - shown)),
            *(f"a page shows docs/pictures/{name}, which is not there" for name in sorted(shown - there))]


def main():
    words = sys.argv[1:]
    if not words or len(words) > 2 or words[1:] not in ([], ["drawn"], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    build = pathlib.Path(words[0]).resolve()
    if words[1:] == ["--check"]:
        faults = faults_of_drawn(build) + faults_of_measured() + faults_of_pages()
        print("\n".join(faults))
        return bool(faults)
    make_drawn(build, HERE)
    if not words[1:]:
        make_measured(build, HERE)
    return 0


if __name__ == "__main__":
    sys.exit(main())

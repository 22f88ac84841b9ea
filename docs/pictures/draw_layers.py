"""Draws the layers of the sources: who may include whom, from the rules that tests/project/layers.py checks."""

import pathlib
import re
import sys

from shapes import Picture, wrapped

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/project"))
import layers as rules  # noqa: E402

WIDTH, LEFT, INSIDE = 960, 20, 12
HEAD, LINE = 38, 16  # of a box: what its name takes, and each line below it
GAP, IN_FLOOR = 18, 6  # between floors, and between two rows of one floor


def about(folder):
    """The sentence at the head of the folder's CMakeLists.txt."""
    lines = []
    for line in (ROOT / folder / "CMakeLists.txt").read_text().splitlines():
        if not line.startswith("#") or "May include:" in line:
            break
        lines.append(line.lstrip("# "))
    return re.split(r"(?<=\.) ", " ".join(lines))[0].rstrip(".").replace("`", "")


def folders():
    """Every folder of `FLOORS`, and the tools that have no floor of their own, by floor."""
    floors = {}
    for folder, floor in rules.FLOORS.items():
        floors.setdefault(floor, []).append(folder)
    tools = rules.FLOORS["tools"]
    floors[tools].remove("tools")
    for path in sorted((ROOT / "tools").iterdir()):
        folder = f"tools/{path.name}"
        if folder not in rules.FLOORS and any(path.rglob("*.cpp")):
            floors[tools].append(folder)
    return floors


def boxes_of(row):
    """The width of each box of a row, and the lines in each."""
    width = (WIDTH - 2 * LEFT - GAP * (len(row) - 1)) / len(row)
    return width, [wrapped(about(folder), int((width - 2 * INSIDE) / 6.5)) for folder in row]


def draw():
    floors = folders()
    rows = []  # from the top: a floor and up to three of its boxes
    for floor in sorted(floors, reverse=True):
        for begin in range(0, len(floors[floor]), 3):
            rows.append((floor, floors[floor][begin:begin + 3]))
    heights = [HEAD + LINE * max(len(lines) for lines in boxes_of(row)[1]) for _, row in rows]
    gaps = [IN_FLOOR if floor == above else GAP for (floor, _), (above, _) in zip(rows[1:], rows)] + [GAP]
    picture = Picture(WIDTH, 56 + sum(heights) + sum(gaps),
                      "The layers: includes point down, never up or in a circle")
    y = 48
    for (_, row), height, gap in zip(rows, heights, gaps):
        width, texts = boxes_of(row)
        for place, (folder, lines) in enumerate(zip(row, texts)):
            x = LEFT + place * (width + GAP)
            picture.box(x, y, width, height)
            picture.text(x + INSIDE, y + 22, folder, bold=True)
            for number, line in enumerate(lines):
                picture.text(x + INSIDE, y + 40 + number * LINE, line, size=12)
        y += height + gap
    return picture.svg()


if __name__ == "__main__":
    print(draw(), end="")

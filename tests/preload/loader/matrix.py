"""Prints which hooks apply on which driver, as in docs/swap-in.md: a table of the classes of hooks by the
versions of the stand-in driver. `matrix.py check PAGE` compares it with the page's.

matrix.py [check PAGE] BUILD      BUILD is the build directory
"""

import os
import sys
from pathlib import Path

BUILD = Path(sys.argv[-1]).absolute()
STANDIN = BUILD / "tests/standin"
os.environ.update(
    LOADER_WEIR=str(BUILD / "tools/preload/libweir.so"),
    LOADER_STANDIN=str(STANDIN),
    LOADER_PROGRAMS=str(BUILD / "tests/preload/loader"),
)

from rows import run  # noqa: E402  it reads the variables

DRIVERS = [STANDIN / "12040", STANDIN]


def look(folder):
    """Returns the driver's version, and for each class its symbols with what is found of them."""
    done = run("loader_matrix", path=folder)
    done.expect(done.code == 0, "the driver is asked")
    first, *lines = [line.split() for line in done.out.splitlines()]
    classes = {}
    for kind, symbol, by_name, by_address in lines:
        done.expect(by_name == by_address, f"both look-ups of {symbol} come to the same")
        done.expect(by_name != "driver", f"{symbol} is Weir's where the driver has it")
        classes.setdefault(kind, {})[symbol] = by_name == "weir"
    return int(first[1]), classes


def cell(symbols):
    missing = len({base(symbol) for symbol, there in symbols.items() if not there})
    return f"all but {missing}" if missing else "all"


def base(symbol):
    for ending in ["_ptsz", "_ptds"]:
        symbol = symbol.removesuffix(ending)
    return symbol


def table():
    found = [look(folder) for folder in DRIVERS]
    heads = [f"{version // 1000}.{version % 1000 // 10}" for version, _ in found]
    lines = ["| class | " + " | ".join(heads) + f" | not on {heads[0]} |"]
    lines.append("|---" * (len(heads) + 2) + "|")
    for kind, oldest in found[0][1].items():
        missing = sorted({f"`{base(symbol)}`" for symbol, there in oldest.items() if not there})
        cells = [cell(classes[kind]) for _, classes in found]
        lines.append(f"| {kind} | " + " | ".join(cells) + f" | {', '.join(missing) or '-'} |")
    return "\n".join(lines)


def main():
    text = table()
    if sys.argv[1] != "check":
        print(text)
    elif text not in Path(sys.argv[2]).read_text():
        sys.exit(f"{sys.argv[2]} has another table than this command prints:\n{text}")


main()

"""A driver made of the toolkit's types returns every hook: for the look-ups of the toolkit's own runtime,
and for all possible ones, at several driver versions."""

import os
import sys
import tempfile
from pathlib import Path

from rows import PROGRAMS, main, run

TABLE = PROGRAMS / "table"


def on(version, *command, **settings):
    return run(*command, path=TABLE, LOADER_DRIVER_VERSION=str(version), **settings)


def runtime_is_swapped(version):
    runtime = os.environ["LOADER_RUNTIME"]
    if not runtime:
        print("NOT CHECKED: this toolkit has no shared runtime")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "asked")
        done = on(version, "loader_real_runtime", runtime, preload=(), LOADER_LOOK_UPS=str(asked))
        lines = asked.read_text().splitlines() if asked.exists() else []
        done.expect(len(lines) > 300, "the runtime looks up all that it needs")
        expected = on(version, "loader_table", asked)
    expected.expect(expected.code == 0, "each look-up gets the hook, or the driver's function")
    # And in its own process, as far as names tell.
    done = on(version, "loader_real_runtime", runtime)
    names = {line.split()[1] for line in expected.out.splitlines() if line.startswith("swapped ")}
    done.expect(done.swapped("libcudart.so") == names, f"the runtime gets hooks for {names}")


def row_RuntimeOnADriverOf120GetsEveryHook():
    runtime_is_swapped(12000)


def row_RuntimeOnADriverOf124GetsEveryHook():
    runtime_is_swapped(12040)


def row_RuntimeOnADriverOf130GetsEveryHook():
    runtime_is_swapped(13000)


def row_EveryLookUpGetsItsHook():
    for version in [12000, 12040, 12080, 13000]:
        done = on(version, "loader_table", "all")
        done.expect(done.code == 0, f"each look-up of a driver of {version} gets the hook")


main(globals())

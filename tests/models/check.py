#!/usr/bin/env python3
"""Searches every order of steps of admission.pml with spin.

    check.py NAME      one search of the table below; fails unless it ends as the table says
    check.py --list    the names

A faulty model has to end with the error that the table names: a search that finds nothing proves
nothing unless it finds that. Exits 77 if spin is not installed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = Path(__file__).resolve().parent / "admission.pml"
MEMORY_MIB = 900
STARVED = "acceptance cycle"

# All that takes part and fits; what needs another producer's memory, with memory outside batches
# that somebody frees; what can be cancelled, with a batch that never fits; turns for ever, of equal
# batches and of a large one among small ones.
FIT = ["TRUTHFUL", "SIZES=3,4,3"]
PAIR = ["PAIR", "LIVE=1", "SIZES=2,2,1"]
STOP = ["CANCEL", "SIZES=2,5,3"]
LINE = ["COARSE", "TRUTHFUL", "ROUNDS=0", "BUDGET=2", "RUN_AHEAD=1", "SIZES=2,2,2", "WATCHED=0"]
LARGE = ["COARSE", "TRUTHFUL", "ROUNDS=0", "BUDGET=2", "SIZES=1,2,1", "WATCHED=1"]

# Switches, and the error that has to be found (None: there is none).
SEARCHES = {
    "NobodyRunsOutWhereAllFit": (FIT, None),
    "AGraceEndsOnlyWhereNothingElseHelps": (PAIR, None),
    "TwoRoundsAreAsOne": (["COARSE", "TRUTHFUL", "ROUNDS=2"], None),
    "ThreeInFlightAreAsTwo": (["TRUTHFUL", "RUN_AHEAD=3", "SIZES=2,3,1"], None),
    "ACancelledProducerLeavesNothingBehind": (STOP, None),
    "NorWhereAnotherNeedsItsBatch": (["PAIR", "CANCEL", "SIZES=2,3,2"], None),
    "TheLineIsAlive": (LINE, None),
    "TheLineIsAliveBesideOneThatNeverReturns": ([*LINE, "ONCE=2"], None),
    "ALargeBatchGetsItsTurnAmongSmallOnes": (LARGE, None),
    "FindsALostWakeup": ([*FIT, "LOST_WAKEUP"], "place["),
    "FindsASettlingBeforeFrees": ([*FIT, "SETTLE_BEFORE_FREES"], "left[0]==0"),
    "FindsAWaitWithNothingInFlight": ([*STOP, "WAIT_WITH_NOTHING_IN_FLIGHT"], ">0)"),
    "FindsThatTheOldRuleRunsOut": ([*FIT, "OLD_RULE"], "stop["),
    "FindsAMissedFree": (["MISSED_FREE", *PAIR], "place["),
    "FindsAMissedAllocation": (["MISSED_ALLOCATION", *PAIR], "place["),
    "FindsADoubleSettling": ([*FIT, "DOUBLE_SETTLE"], "reserved"),
    "FindsALineThatStarves": ([*LINE, "LAST_FIRST"], STARVED),
    "FindsThatTheSmallestStarveALargeOne": ([*LARGE, "SMALLEST_FIRST"], STARVED),
}


def search(switches: list[str], work: Path) -> str:
    """Returns what the search printed."""
    alive = any(switch.startswith("WATCHED") for switch in switches)
    for stale in work.glob("*.trail"):
        stale.unlink()
    made = subprocess.run(
        ["spin", *(f"-D{switch}" for switch in switches), "-a", str(MODEL)],
        cwd=work, capture_output=True, text=True,
    )
    if made.returncode != 0 or not (work / "pan.c").exists():
        sys.exit(f"spin refused the model:\n{made.stdout}{made.stderr}")
    kind = ["-DNFAIR=2"] if alive else ["-DSAFETY"]
    subprocess.run(
        ["cc", "-O0", "-w", *kind, "-DCOLLAPSE", "-DVECTORSZ=1024", f"-DMEMLIM={MEMORY_MIB}",
         "-o", "pan", "pan.c"],
        cwd=work, check=True,
    )
    ran = subprocess.run(
        ["./pan", "-m600000" if alive else "-m20000", "-n", *(["-a", "-f"] if alive else [])],
        cwd=work, capture_output=True, text=True,
    )
    return ran.stdout + ran.stderr


def verdict(printed: str, error: str | None) -> str | None:
    """Returns what is wrong with the search, or None."""
    found = re.search(r"errors: (\d+)", printed)
    if not found:
        return "it did not end"
    if found.group(1) == "0" and ("not completed" in printed or "too small" in printed):
        return "it did not reach every state"
    if error is None:
        return None if found.group(1) == "0" else "it found an error"
    first = next((line for line in printed.splitlines() if line.startswith("pan:1:")), "")
    return None if error in first else f"it did not find '{error}'"


def check(name: str, switches: list[str], error: str | None, work: Path) -> bool:
    printed = search(switches, work)
    wrong = verdict(printed, error)
    states = re.search(r"(\d+) states, stored", printed)
    memory = re.search(r"([\d.]+)\s+total actual memory usage", printed)
    took = re.search(r"elapsed time ([\d.]+) seconds", printed)
    print(f"{name}: {'as expected' if wrong is None else wrong}; "
          f"{states.group(1) if states else 'no'} states, {memory.group(1) if memory else '?'} MiB, "
          f"{took.group(1) if took else '?'} s ({' '.join(switches)})")
    if wrong is not None:
        print(printed)
        if list(work.glob("*.trail")):
            define = [f"-D{switch}" for switch in switches]
            subprocess.run(["spin", *define, "-t", "-p", "-g", str(MODEL)], cwd=work, check=False)
    return wrong is None


def main() -> int:
    names = sys.argv[1:2]
    if names == ["--list"]:
        print("\n".join(SEARCHES))
        return 0
    if not names or names[0] not in SEARCHES:
        sys.exit(__doc__)
    if shutil.which("spin") is None:
        print("spin is not installed (tools/setup installs it): the model is not checked")
        return 77
    with tempfile.TemporaryDirectory(prefix="weir-model-") as work:
        return 0 if check(names[0], *SEARCHES[names[0]], Path(work)) else 1


if __name__ == "__main__":
    sys.exit(main())

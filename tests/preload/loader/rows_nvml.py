"""Programs that ask the management library (NVML) for their memory get the budget's figures."""

import sys
from pathlib import Path

from rows import main, run

SCRIPT = Path(__file__).with_name("programs") / "nvml_by_ctypes.py"
BUDGET = {"WEIR_BUDGET": "100MiB", "WEIR_POOL": "naive"}
MIB = 1 << 20
REAL = 1 << 40
BAR1 = 256 * MIB


def figures(done):
    done.expect(done.code == 0, "the program ends with 0")
    return {words[0]: [int(one) for one in words[1:]] for words in map(str.split, done.out.splitlines())}


def ask(**settings):
    done = run(sys.executable, str(SCRIPT), **{**BUDGET, **settings})
    return done, figures(done)


def row_NvmlByHandleTellsTheBudget():
    done, told = ask()
    before = [REAL, 0, REAL, 0, 0, BAR1]
    done.expect(told["before"] == before, "before it uses CUDA the library's figures")
    used = 30 * MIB
    budget = 100 * MIB
    done.expect(told["after"] == [budget, used, budget, used, used, BAR1], "then the budget's")
    done.expect(told["freed"] == [budget, 0, budget, 0, 0, BAR1], "in which cached memory is free")
    done.expect(told["driver"] == told["freed"][:2], "as cuMemGetInfo's")


def row_NvmlIsLeftAloneWhereThatIsWished():
    done, told = ask(WEIR_NVML="real")
    used = 30 * MIB
    done.expect(told["after"] == [REAL, used, REAL, used, used, BAR1], "the library's figures")
    done.expect(told["freed"] == told["after"], "in which cached memory is used")
    done.expect(done.summaries[0]["nvml"] == "real", "the summary says so")


def row_NvmlOfALinkedProgramTellsTheBudget():
    done = run("loader_nvml_linked", **BUDGET)
    told = figures(done)
    done.expect(told == {"before": [REAL, 0], "after": [100 * MIB, 30 * MIB]}, "the budget's")


def row_BadNvmlSettingEndsTheProgram():
    done = run("loader_nvml_linked", WEIR_NVML="none")
    done.expect(done.code == 2, "the program ends with 2")
    done.expect("WEIR_NVML='none' is not allowed: budget or real" in done.err, "one line says why")


main(globals())

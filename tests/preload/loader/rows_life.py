"""Lives and ends of programs: children, threads, exits, and programs without CUDA."""

from rows import main, run

PROGRAM = "loader_runtime_shared"


def row_ChildAfterForkIsPassed():
    without = run(PROGRAM, "fork", "passed", preload=())
    without.expect(without.code == 0, "a child is refused without Weir, too")
    done = run(PROGRAM, "fork", "served").expect_served()
    done.expect(len(done.summaries) == 1, "the parent alone tells")
    # Both halves of the parent's life: 2 x 300 x 64 KiB.
    done.expect(done.served_bytes() == [2 * 300 * 65536], "the parent goes on to be served")


def row_ProgramsThatAreStartedHaveTheirOwnSummary():
    done = run(PROGRAM, "fork-exec", "served").expect_served(processes=2)
    numbers = {one["process"] for one in done.summaries}
    done.expect(len(numbers) == 2, "they are two processes")
    done.expect(done.served_bytes() == 2 * [300 * 65536], "each is served")


def row_ThreadsBeforeMainAreServed():
    done = run(PROGRAM, "work", "served", LOADER_EARLY_THREADS="1").expect_served()
    done.expect(done.served_bytes() == [5 * 300 * 65536], "those of four threads and of main")
    run("loader_runtime_static", "work", "served", LOADER_EARLY_THREADS="1").expect_served()


def row_FreesInExitHandlersAreWell():
    done = run(PROGRAM, "free-at-exit", "served").expect_served()
    done.expect(len(done.summaries) == 1, "there is one summary")


def row_ExitFromAThreadIsWell():
    done = run(PROGRAM, "exit-from-thread", "served").expect_served()
    done.expect(len(done.summaries) == 1, "there is one summary")


def row_LeavingAtOnceIsWell():
    done = run(PROGRAM, "leave-at-once", "served")
    done.expect(done.code == 0, "the program ends with 0")
    done.expect(done.swapped() >= {"cuMemAlloc"}, "Weir was there")
    done.expect(not done.summaries, "nobody was left to tell")


def row_ProgramsWithoutCudaAreLeftAlone():
    run("/bin/true").expect_silent()
    run("loader_plain").expect_silent()
    # What would end a program that uses CUDA is not even read.
    run("/bin/true", WEIR_BUDGET="nonsense").expect_silent()
    run("loader_plain", WEIR_BUDGET="nonsense").expect_silent()
    done = run("/bin/sh", "-c", "/bin/true; exec /bin/echo fine")
    done.expect_silent().expect(done.out == "fine\n", "it says what it says")


def row_MissingDriverIsMissing():
    for path in [None, "/nonexistent"]:
        if run("loader_driver", "missing", "passed", preload=(), path=path).code != 0:
            print("not tried: this machine has a driver")
            raise SystemExit(77)
        run("loader_driver", "missing", "passed", path=path).expect_silent()


def row_MissingDriverIsToldByTheRuntime():
    # The static runtime finds no libcuda.so.1 without the library path; the shared one is a library
    # of the stand-in's folder, where the driver is as well.
    done = run("loader_runtime_static", "no-driver", "passed", preload=(), path=None)
    if done.code != 0:
        print("not tried: this machine has a driver")
        raise SystemExit(77)
    run("loader_runtime_static", "no-driver", "passed", path=None).expect_silent()


def row_OldDriverIsRefusedByTheRuntime():
    for program in ["loader_runtime_shared", "loader_runtime_static"]:
        old = {"WEIR_STANDIN_DRIVER_VERSION": "11080"}
        run(program, "no-driver", "passed", preload=(), **old).expect_silent()
        done = run(program, "no-driver", "passed", **old)
        done.expect(done.code == 0, "the program is refused as without Weir")
        done.expect(not done.summaries, "there is no summary")


def row_BadSettingEndsTheProgramAtItsFirstLookUp():
    for program, how in [(PROGRAM, "work"), ("loader_driver", "local")]:
        done = run(program, how, "served", WEIR_BUDGET="nonsense")
        done.expect(done.code == 2, "the program ends with 2")
        done.expect(done.out == "", "nothing ran")
        lines = done.err.splitlines()
        done.expect(len(lines) == 1 and "WEIR_BUDGET" in lines[0], "one line names the variable")
        done.expect("nonsense" in lines[0], "and the value")
        done.expect(not done.summaries, "there is no summary")


main(globals())

"""The ways in which programs reach the driver: libraries, look-ups, and what is in between."""

from rows import PROGRAMS, WEIR, main, run

DLSYM = PROGRAMS / "libloader_other_dlsym.so"
NEXT = PROGRAMS / "libloader_other_next.so"
CALLS = {"cuMemAlloc", "cuMemFree", "cuLaunchKernel"}


def served_runtime(program, **more):
    done = run(program, "work", "served", **more).expect_served()
    done.expect(done.swapped() >= CALLS, f"{CALLS} were swapped")
    return done


def row_SharedRuntimeIsServed():
    done = served_runtime("loader_runtime_shared")
    done.expect(done.swapped("libcudart.so") >= CALLS, "for the runtime's library")


def row_StaticRuntimeIsServed():
    done = served_runtime("loader_runtime_static")
    done.expect(done.swapped("loader_runtime_static") >= CALLS, "for the program itself")


def row_PerThreadDefaultStreamsAreServed():
    served_runtime("loader_runtime_per_thread")


# That the programs can tell: without Weir the driver sees every call.
def row_ProgramsSeeTheDifference():
    for program, how in [
        ("loader_runtime_shared", "work"),
        ("loader_runtime_static", "work"),
        ("loader_runtime_per_thread", "work"),
        ("loader_driver", "local"),
        ("loader_driver_linked", "linked"),
    ]:
        run(program, how, "passed", preload=()).expect_silent()
        done = run(program, how, "served", preload=())
        done.expect(done.code == 1, f"{program} notices that Weir does not serve it")
        done = run(program, how, "passed")
        done.expect(done.code == 1, f"{program} notices that Weir serves it")


def row_LinkedDriverIsServed():
    run("loader_driver_linked", "linked", "served").expect_served()


def row_HandleOfALocalLibraryIsServed():
    run("loader_driver", "local", "served").expect_served()


def row_HandleOfAGlobalLibraryIsServed():
    run("loader_driver", "global", "served").expect_served()


def row_DefaultLookUpIsServed():
    run("loader_driver", "default", "served").expect_served()
    run("loader_driver_linked", "default", "served").expect_served()


def row_NextLookUpIsServed():
    run("loader_driver_linked", "next", "served").expect_served()


def row_OldGetProcAddressIsServed():
    done = run("loader_driver", "address-11030", "served").expect_served()
    done.expect(done.swapped() >= {"cuMemAlloc", "cuMemFree"}, "its calls were swapped")


def row_GetProcAddressIsServed():
    done = run("loader_driver", "address-12000", "served").expect_served()
    done.expect(done.swapped() >= {"cuMemAlloc", "cuMemFree"}, "its calls were swapped")


def row_LibrariesWithAnRpathAreServed():
    for how in ["linked", "local", "default"]:
        run("loader_rpath_host", how, "served", path=None).expect_served()


def row_OtherFunctionsOfAVersionAreLeftAlone():
    done = run("loader_version", path=PROGRAMS / "newer")
    done.expect(done.code == 0, "only what Weir is made for is swapped")


def other_dlsym(*preload):
    done = served_runtime("loader_runtime_shared", preload=preload)
    done.expect("other: cuGetProcAddress_v2" in done.err, "the other dlsym is asked as well")
    run("loader_driver", "local", "served", preload=preload).expect_served()
    run("loader_driver", "address-12000", "served", preload=preload).expect_served()


def row_DlsymOverriddenBehindWeirIsAsked():
    other_dlsym(WEIR, DLSYM)


def row_DlsymOverriddenBeforeWeirAsksIt():
    other_dlsym(DLSYM, WEIR)


def row_NextFunctionsOfOthersAreFound():
    done = run("loader_driver_linked", "linked", "served", preload=(NEXT, WEIR)).expect_served()
    done.expect("other: 300 calls of cuMemAlloc" in done.err, "the other library comes first")
    done = run("loader_driver_linked", "linked", "served", preload=(WEIR, NEXT)).expect_served()
    # Weir asks the driver itself, so that nobody behind it counts what it takes for its pool.
    done.expect("other: 0 calls of cuMemAlloc" in done.err, "Weir comes first")


main(globals())

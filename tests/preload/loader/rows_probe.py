"""Programs that probe for a driver function by name find the same as without Weir, and get Weir's function
if that is the driver's."""

from rows import PROGRAMS, WEIR, main, run

NEXT = PROGRAMS / "libloader_other_next.so"
PLUGIN = PROGRAMS / "libloader_probe_plugin.so"
HOOKED = ["cuMemAlloc_v2", "cuMemAllocAsync_ptsz", "cuMemcpyBatchAsync_v2"]
OTHERS = ["cuInit", "cuNothingOfTheKind", "strlen"]


def probe(program, how, *others, past_weir=(), **more):
    """Runs it with Weir and without, each with other preloaded libraries, in which None is Weir's place.
    `past_weir` are look-ups that come after Weir and get the driver's."""
    names = [*HOOKED, *OTHERS]
    with_weir = [WEIR if one is None else one for one in others or (None,)]
    alone = run(program, how, *names, preload=[one for one in others if one], **more)
    alone.expect(alone.code == 0, "the program ends with 0")
    done = run(program, how, *names, preload=with_weir, **more)
    done.expect(done.code == 0, "the program ends with 0 under Weir")
    expected = [expected_line(line, past_weir) for line in alone.out.splitlines()]
    done.expect(done.out.splitlines() == expected, "it finds\n" + "\n".join(expected))
    done.expect("nothing; dlerror: " in done.out and "undefined symbol" in done.out, "some are not there")
    return done


def expected_line(line, past_weir):
    start, way, name, found = line.split(maxsplit=3)
    if name in HOOKED and found.startswith("libcuda.so.1;") and (start, way) not in past_weir:
        return line.replace("libcuda.so.1;", "libweir.so;")
    return line


def row_ProbesFindNothingWithoutADriver():
    done = probe("loader_probe", "nothing")
    done.expect("libweir" not in done.out, "nothing is Weir's")
    done.expect(not done.err, "nothing is said")


def row_ProbesFindNothingOfALocalDriver():
    done = probe("loader_probe", "local")
    done.expect("libweir" not in done.out, "nothing is Weir's")


def row_ProbesOfAGlobalDriverFindWeir():
    done = probe("loader_probe", "global")
    for how in ["default", "next"]:
        done.expect(f"program {how} cuMemAlloc_v2 libweir.so; dlerror: nothing" in done.out, how)


def row_ProbesOfALinkedDriverFindWeir():
    done = probe("loader_probe_linked", "nothing")
    for how in ["default", "next"]:
        done.expect(f"program {how} cuMemAlloc_v2 libweir.so; dlerror: nothing" in done.out, how)


# RTLD_NEXT of a library that is opened later looks in what that needs and not in the program, so
# what it finds never was in front of it.
def row_ProbesOfAPluginThatNeedsTheDriverFindWeir():
    later = [("plugin", "next")]
    done = probe("loader_probe", "plugin", past_weir=later, LOADER_PLUGIN=str(PLUGIN))
    done.expect("plugin default cuMemAlloc_v2 libweir.so; dlerror: nothing" in done.out, "by default")
    done.expect("program default cuMemAlloc_v2 nothing; " in done.out, "the program has none")


def row_ProbesFindAnotherLibraryWhereItStands():
    for others in [(NEXT, None), (None, NEXT)]:
        for program, how in [("loader_probe", "nothing"), ("loader_probe_linked", "nothing")]:
            done = probe(program, how, *others)
            found = "program default cuMemAlloc_v2 libloader_other_next.so"
            done.expect(found in done.out, "the other library's function is found")


main(globals())

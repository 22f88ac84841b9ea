"""Stand-ins of PyTorch's libraries, and what becomes of a plug for them."""

import shutil
import tempfile
from pathlib import Path

from rows import PROGRAMS, STANDIN, WEIR, main, run

PLUG = PROGRAMS / "libloader_fake_plug.so"
NEEDS = PROGRAMS / "libloader_fake_plug_needs.so"
INSTALLED = ["counts", "plug", "allocator of 1"]
NATIVE = ["counts", "allocator of 1"]


class Place:
    """A folder with an installation of PyTorch's stand-in, and one with Weir and its plugs."""

    def __init__(self, version="2.15.0+cu132", abi="cxx11"):
        self.made = tempfile.TemporaryDirectory()  # removed with this
        self.folder = Path(self.made.name)
        self.weir = self.folder / "weir/libweir.so"
        self.weir.parent.mkdir()
        self.weir.symlink_to(WEIR)
        self.torch = self.install("torch", version, abi)

    def install(self, name, version, abi="cxx11"):
        """Installs another PyTorch. Returns the path of its last library."""
        libraries = self.folder / name / "lib"
        libraries.mkdir(parents=True)
        for library in (PROGRAMS / "torch" / abi).iterdir():
            shutil.copy(library, libraries)
        if version is not None:
            (libraries.parent / "version.py").write_text(f"__version__ = '{version}'\ndebug = False\n")
        return next(libraries.glob("libtorch_cuda*.so"))

    def plug(self, version="2.15", of=PLUG):
        path = self.weir.parent / f"libweir_torch_{version}.so"
        if of is not None:
            shutil.copy(of, path)
        return path

    def run(self, *words, **settings):
        """Runs the program with these words, or with one use of PyTorch."""
        settings = {"WEIR_LOG": "warn", **settings}
        words = words or ("open", str(self.torch), "use")
        return run("loader_torch", *words, preload=(self.weir,), **settings)


def installs(done):
    """Checks that the plug was asked between the count and the allocator, and nothing said."""
    done.expect(done.code == 0 and done.out.splitlines() == INSTALLED, "the plug is installed in time")
    done.expect(done.err == "", "nothing is said")


def stays(done, *said):
    """Checks that PyTorch's own allocator starts, and that one line says why."""
    done.expect(done.code == 0 and done.out.splitlines() == NATIVE, "PyTorch starts as it is")
    done.expect(done.err.count("\n") == 1, "there is one line")
    for one in ["allocates without Weir's plug: ", *said]:
        done.expect(one in done.err, f"the line has: {one}")


def row_TorchIsPluggedJustBeforeItsAllocatorStarts():
    here = Place()
    here.plug()
    installs(here.run())
    done = here.run(WEIR_LOG="info")
    line = f"weir: PyTorch 2.15.0+cu132 allocates by {here.plug()}\n"
    done.expect(line in done.err, "a line says it to those who ask")
    again = here.run("open", str(here.torch), "use", "use")
    again.expect(again.out.splitlines() == [*INSTALLED, *NATIVE], "once in a process")


def row_TorchOfTheOlderAbiGetsThePlugOfThatAbi():
    here = Place(abi="cxx03")
    here.plug()
    stays(here.run(), "there is no plug for it: no file ", "libweir_torch_2.15_cxx03.so")
    here.plug("2.15_cxx03")
    installs(here.run())


def row_TorchWithoutAPlugOfItsVersionStaysAsItIs():
    here = Place(version="2.16.0")
    here.plug()
    stays(here.run(), "PyTorch 2.16.0 ", f"no file {here.folder}/weir/libweir_torch_2.16.so\n")


def row_TorchBetweenReleasesIsPluggedOnlyWhenAskedFor():
    here = Place(version="2.15.0a0+git1234567")
    here.plug()
    stays(here.run(), "PyTorch 2.15.0a0+git1234567 ", "it is no release", "WEIR_TORCH=plug takes")
    installs(here.run(WEIR_TORCH="plug"))


def row_TorchWhoseVersionIsNotKnownStaysAsItIs():
    for content in [None, "", "version = 'of another form'\n", b"\xff\x00" * 40000]:
        here = Place(version=None)
        here.plug()
        file = Path(here.folder, "torch/version.py")
        if content is not None:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        stays(here.run(), "PyTorch allocates", f"not known: {file} does not say it\n")
    here = Place(version=None)
    Path(here.folder, "torch/version.py").mkdir()
    stays(here.run(), "version.py does not say it\n")


def row_TorchGetsNoPlugOfAnotherVersion():
    here = Place(version="2.9.1")
    path = here.plug("2.9")  # says that it is for 2.15
    stays(here.run(), f"PyTorch 2.9.1 allocates without Weir's plug: the plug {path} is not used: ")
    stays(here.run(), "it is for PyTorch 2.15\n")


def row_TorchGetsNoFileThatIsNoPlug():
    here = Place()
    path = here.plug(of=None)
    path.mkdir()
    stays(here.run(), f"the plug {path} is not used: it is a folder\n")
    path.rmdir()
    path.symlink_to(path.name)
    stays(here.run(), "cannot be read (Too many levels of symbolic links)\n")
    path.unlink()
    path.write_text("a text")
    stays(here.run(), "it is not a shared library\n")
    whole = PLUG.read_bytes()
    for part in [1, 2, 4, 8]:
        path.write_bytes(whole[: len(whole) * part // 16])
        stays(here.run(), "it is cut off\n")
    here.plug(of=PROGRAMS / "torch/cxx11/libc10.so")
    stays(here.run(), "it is no plug for PyTorch\n")
    here.plug(of=NEEDS)
    stays(here.run(), "the plug is not used: ", "undefined symbol: loader_of_no_pytorch")


def row_TorchStaysAsItIsWhereThePlugHasAReason():
    here = Place()
    here.plug()
    done = here.run(WEIR_FAKE_REASON="the backend cudaMallocAsync was chosen\nand a trace")
    done.expect(done.out.splitlines() == INSTALLED, "the plug was asked, and PyTorch goes on")
    line = "without Weir's plug: the backend cudaMallocAsync was chosen\n"
    done.expect(done.err.endswith(line) and done.err.count("\n") == 1, "one line gives the reason")


def row_TorchIsLeftAloneWhereTheSettingSaysSo():
    here = Place()
    here.plug()
    for way in ["off", "async"]:
        done = here.run(WEIR_TORCH=way)
        done.expect(done.out.splitlines() == NATIVE and done.err == "", "nothing is done or said")
    done = here.run(WEIR_TORCH="on")
    done.expect(done.code == 2, "a bad value ends the program")
    done.expect(done.err == "weir: WEIR_TORCH='on' is not allowed: plug, async or off\n", "by a line")


def row_TorchThatIsOpenedAndNotUsedCausesNothing():
    here = Place()  # without a plug: a use would say so
    done = here.run("open", str(here.torch))
    done.expect_silent()
    done = here.run("open", str(here.torch), "driver")
    done.expect(done.code == 0 and done.err == "", "nor where CUDA is used without it")


def row_TorchIsPluggedWhoeverUsesItFirst():
    here = Place()
    here.plug()
    torch = str(here.torch)
    for words in [("driver", "open", torch, "use"), ("open", torch, "driver", "thread")]:
        done = here.run(*words)
        lines = [line for line in done.out.splitlines() if line in INSTALLED]
        done.expect(lines == INSTALLED and done.err == "", f"it is plugged in {words}")
    child = here.run("open", torch, "fork", "use")
    child.expect(child.out.splitlines() == [*INSTALLED, *INSTALLED], "in a child and in its parent")
    late = here.run("open", torch, "driver", "fork")
    late.expect("plug" not in late.out and late.err == "", "not in a child that can use no CUDA")


def row_TorchWithoutADeviceFailsAsByItself():
    here = Place()
    here.plug()
    for settings in [{"path": ""}, {"WEIR_STANDIN_DEVICES": "0"}]:
        done = here.run(**settings)
        done.expect(done.out.splitlines() == ["counts", "thrown: there is no GPU"], "it throws")
        done.expect(done.err == "", "nothing is said")


def row_TorchOfTwoInstallationsIsTheOneWhoseLibrariesAreInUse():
    here = Place()
    other = here.install("other", "2.9.0")
    here.plug()
    # Both name what they need, and the loader gives both what came first.
    installs(here.run("open", str(here.torch), "open", str(other), "use"))
    done = here.run("open", str(other), "open", str(here.torch), "use")
    stays(done, "PyTorch 2.9.0 ", "there is no plug for it: ")
    # A path for libraries gives the first the other's, whose version then counts.
    stays(here.run(path=f"{other.parent}:{STANDIN}"), "PyTorch 2.9.0 ", "there is no plug for it: ")


def row_TorchUnderOtherNamesStaysAsItIs():
    here = Place(abi="renamed")
    here.plug()
    other = here.install("other", "2.15.0")
    # The plug would bring in a second library of the name it needs.
    for path in [STANDIN, f"{other.parent}:{STANDIN}"]:
        stays(here.run(path=path), "knows another library as libc10_cuda.so, or none")


def row_TorchsFunctionWithoutTorchIsNoEndlessLoop():
    done = Place().run("count")
    done.expect(done.code == 0 and done.out == "0 devices\n", "no device is counted")
    line = "weir: PyTorch's libc10_cuda.so is not loaded: no device is counted\n"
    done.expect(done.err == line, "a line says why")


main(globals())

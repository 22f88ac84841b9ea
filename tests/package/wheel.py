#!/usr/bin/env python3
"""Packs the wheel of a build, installs it, and uses it as people do.

    wheel.py CHECK    one of the functions check_* below. CMakeLists.txt says which, and sets what
                      tests/package/check.sh names, and:
      WEIR_STANDIN    the folder of the stand-in driver; empty in a build without CUDA's headers
"""

import functools
import gzip
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import venv
import zipfile

# Taken away: the programs would warn of variables that they do not know.
SETTINGS = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("WEIR_")}
BUILD = pathlib.Path(SETTINGS["WEIR_BUILD"])
SOURCE = pathlib.Path(SETTINGS["WEIR_SOURCE"])
SCRATCH = pathlib.Path(SETTINGS["WEIR_SCRATCH"] + "_wheel")
LIBRARIES = pathlib.PurePath(SETTINGS["WEIR_LIBDIR"], "weir")
VERSION = SETTINGS["WEIR_VERSION"]
STANDIN = SETTINGS["WEIR_STANDIN"]
PACKING = SOURCE / "build/packaging/bin/python"
# Of the C library that the wheel asks for, at most: what a linker of 2.34 or later lets through.
GLIBC = (2, 34)

DIST, USER = SCRATCH / "dist", SCRATCH / "a user"
ENVIRONMENT = SCRATCH / "env"
PYTHON, WEIR, TRAIN = (ENVIRONMENT / "bin" / name for name in ("python", "weir", "weir-train"))
BASE = getattr(sys, "_base_executable", sys.executable)

# A CUDA program in Python, which allocates 1 MiB when a line comes.
PROGRAM = """
    import ctypes, sys
    cuda = ctypes.CDLL("libcuda.so.1")
    context, block = ctypes.c_void_p(), ctypes.c_uint64()
    print("ready", flush=True)
    sys.stdin.readline()
    results = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
               cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 20))]
    assert results == [0] * 4, results
    print("allocated", flush=True)
"""


def run(*command, code=0, **options):
    """Runs a command, which must exit with `code`. Returns what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, f"{command} exits with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def on_the_standin(**more):
    return {**os.environ, "LD_LIBRARY_PATH": STANDIN, **more}


def pip(python, *arguments, **options):
    return run(PACKING, "-m", "pip", "--python", python, *arguments, "--quiet", **options)


def the_wheel():
    (wheel,) = DIST.glob("*.whl")
    return wheel


def all_files(folder):
    return {str(path) for path in folder.rglob("*") if not path.is_dir()}


def package():
    (folder,) = ENVIRONMENT.glob("lib/python*/site-packages/weir")
    return folder


def check_pack():
    shutil.rmtree(SCRATCH, ignore_errors=True)
    assert PACKING.exists(), f"there is no {PACKING}: tools/setup makes it"
    command = [PACKING, SOURCE / "tools/wheel/pack.py", BUILD, DIST, "--wheel-only"]
    packed = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    assert packed.returncode == 0, packed.stderr
    wheel = the_wheel()
    assert packed.stdout == f"{wheel}\n", packed.stdout
    tag = re.fullmatch(rf"weir_cuda-{re.escape(VERSION)}-py3-none-manylinux_(\d+)_(\d+)_\w+\.whl", wheel.name)
    assert tag, wheel.name
    assert (int(tag[1]), int(tag[2])) <= GLIBC, f"{wheel.name} asks for a newer C library than {GLIBC}"
    names = zipfile.ZipFile(wheel).namelist()
    wanted = ["weir/__init__.py", "weir/__main__.py", "weir/bin/weir", "weir/bin/weir-train",
              "weir/include/weir/weir.h"]  # fmt: skip
    wanted += ["LICENSE"] + ["weir/libweir.so", "weir/libweir_timeline.so"] * bool(STANDIN)
    for name in wanted:
        assert any(there.endswith(name) for there in names), f"there is no {name} among {names}"
    venv.create(ENVIRONMENT)
    (SCRATCH / "before").write_text("\n".join(all_files(ENVIRONMENT)))
    pip(PYTHON, "install", "--no-index", "--no-deps", wheel)


def check_programs():
    for name, command in {"weir": (WEIR,), "weir-train": (TRAIN,)}.items():
        assert run(*command, "--version") == f"{name} {VERSION}\n", command
    for options in ((), ("-I",)):
        assert run(PYTHON, *options, "-m", "weir", "--version") == f"weir {VERSION}\n", options
    printed = run(TRAIN, "run", "--device", "cpu", "--batches", "3", "--budget", "96MiB")
    assert re.search(r"^batches +3$", printed, re.MULTILINE), printed
    run(PYTHON, "-c", "import weir; assert not weir.active()")
    assert "is not allowed" in run(TRAIN, "run", "--budget", "much", code=2)
    printed = run(PYTHON, "-m", "weir", "info", "--library", code=0 if STANDIN else 2)
    if STANDIN:
        assert printed == f"{package()}/{LIBRARIES}/libweir.so\n", printed
    else:
        assert "without CUDA's headers" in printed, printed


def check_manual():
    """Where `man` and shells look below an environment; and what the pages name is there."""
    share = ENVIRONMENT / "share"
    for name in ("weir", "weir-run", "weir-timeline", "weir-train", "weir-train-compare"):
        text = gzip.decompress((share / f"man/man1/{name}.1.gz").read_bytes()).decode().replace("\\-", "-")
        named = re.findall(r"\$VIRTUAL_ENV(/\S+\.md)", text)
        assert ".SH EXIT STATUS" in text and all((ENVIRONMENT / path[1:]).exists() for path in named), (name, named)
        assert named or name in ("weir", "weir-timeline", "weir-train"), f"{name} names no page"
    for name, program in {"weir": WEIR, "weir-train": TRAIN}.items():
        paths = {"bash": f"bash-completion/completions/{name}", "zsh": f"zsh/site-functions/_{name}"}
        for shell, path in paths.items():
            assert (share / path).read_text() == run(program, "--completion", shell), path
    run("python3", "-B", SOURCE / "tests/program/command_line/programs.py", "pages", WEIR, TRAIN)
    pages = share / "doc/weir"
    run("python3", "-B", SOURCE / "tests/package/links.py", pages)
    run("python3", "-B", SOURCE / "tests/package/paths.py", SOURCE, pages)
    for script, page in {"snapshot_to_csv.py": "replay.md", "tools/torch/build": "packages.md"}.items():
        assert f"$VIRTUAL_ENV/share/weir/{script}" in (pages / "docs" / page).read_text(), page
        run(share / "weir" / script, "--help")


def check_run():
    """The started program is a child of `weir` itself, and its end is the program's own."""
    assert run(WEIR, "run", "--", "sh", "-c", "exit 7", code=7)
    for started in ([WEIR], [PYTHON, "-m", "weir"]):
        process = subprocess.Popen([*started, "run", "--", "sh", "-c", "echo $PPID; kill -PIPE $$"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        printed, _ = process.communicate()
        assert (int(printed), process.returncode) == (process.pid, -signal.SIGPIPE), (printed, process.returncode)
    # In the C locale the interpreter sets a variable, which must not reach the program.
    printed = run(WEIR, "run", "--", "env", env={"PATH": os.environ["PATH"]})
    assert "LC_CTYPE" not in printed and "\nLD_PRELOAD=" in printed, printed
    check = "assert weir.active() and weir.memory_info().allocated == 1 << 20, weir.memory_info()"
    program = textwrap.dedent(PROGRAM) + f"import os, weir\n{check}\nprint(os.environ['LD_PRELOAD'])\n"
    # Of another installation: a copy, which a loader takes for another library.
    other = shutil.copy(package() / LIBRARIES / "libweir.so", SCRATCH)
    printed = run(WEIR, "run", "--", PYTHON, "-c", program, input="\n",
                  env=on_the_standin(LD_PRELOAD=f"{other}:libm.so.6"))
    assert f"\n{package()}/{LIBRARIES}/libweir.so:libm.so.6\n" in printed, printed


def check_places():
    """A folder with a space, which LD_PRELOAD cannot name; and an archive, from which nothing can start."""
    environment = {**os.environ, "PYTHONUSERBASE": str(USER)}
    pip(BASE, "install", "--no-index", "--no-deps", "--user", "--break-system-packages", the_wheel(), env=environment)
    weir = USER / "bin/weir"
    assert run(weir, "--version", env=environment) == f"weir {VERSION}\n"
    assert run(BASE, "-m", "weir", "--version", env=environment, cwd=SCRATCH) == f"weir {VERSION}\n"
    printed = run(weir, "run", "--", "true", code=2, env=environment)
    assert "without spaces and colons" in printed or not STANDIN, printed
    archive = SCRATCH / "weir.pyz"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("__main__.py", "import weir.__main__")
        for path in package().glob("*.py"):
            file.write(path, f"weir/{path.name}")
    printed = run(PYTHON, "-I", archive, "--version", code=2)
    assert printed.startswith("weir: there is no '") and printed.count("\n") == 1, printed


def check_no_toolkit():
    """CUDA's headers alone, which tools/setup installed, give both libraries and a plug, and they serve a program."""
    build, source = SCRATCH / "no_toolkit", f"-S{SOURCE}"
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("CUDA")}
    hidden["PATH"] = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep)
                                     if not pathlib.Path(folder, "nvcc").exists())
    configure = [os.environ["CMAKE"], source, f"-B{build}", "-GNinja", "-DWEIR_BUILD_TESTS=OFF", "-DWEIR_CUDA=HEADERS",
                 "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON", f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}"]
    refused = run(*configure, f"-DWEIR_CUDA_HEADERS={SCRATCH}", code=1, env=hidden)
    said = r"^ *CUDA: left out: no CUDA toolkit .*; to build without: -DWEIR_CUDA=OFF$"
    assert re.search(said, refused, re.MULTILINE), refused
    shutil.rmtree(build)

    version = (SOURCE / "tools/torch/versions.txt").read_text().split()[-1]
    fetch = [PACKING, "-B", SOURCE / "tools/torch/headers", version]
    fetched = subprocess.run(fetch, capture_output=True, text=True, check=False)
    # What reads no header of CUDA is as in the build that is there: compiling it again would take minutes.
    depends = re.split(r"^(\S+): #deps .*$", run("ninja", "-C", BUILD, "-t", "deps"), flags=re.MULTILINE)
    headers = tuple(os.path.realpath(folder) + "/" for folder in SETTINGS["WEIR_CUDA_INCLUDE_DIRS"].split(":"))
    real = functools.lru_cache(None)(lambda folder: os.path.realpath(BUILD / folder) + "/")
    reads_cuda = {name for name, files in zip(depends[1::2], depends[2::2])
                  if any(real(os.path.dirname(file)).startswith(headers) for file in files.split())}
    assert len(reads_cuda) > 50, reads_cuda
    (SCRATCH / "reads_cuda").write_text("\n".join(sorted(reads_cuda)))
    launcher = f"bash;{SOURCE}/tests/package/reuse_object.sh;{BUILD};{SCRATCH}/reads_cuda"
    plug = version if fetched.returncode == 0 else ""
    printed = run(*configure, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -D_GLIBCXX_ASSERTIONS",
                  "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
                  f"-DWEIR_TORCH_VERSIONS={plug}", env=hidden)
    said = f"CUDA: libweir.so and plugs are built, with the headers of 13.0 in {SOURCE}/build/packaging/"
    assert said in printed, printed
    run(os.environ["CMAKE"], "--build", build, "--parallel", "2", "--target", "weir_swap_in", "weir_timeline_inject",
        "weir_torch_plugs", env=hidden)

    libraries = build / "tools/preload"
    environment = on_the_standin(WEIR_LIBRARY=str(libraries / "libweir.so"))
    printed = run(BUILD / "tools/weir/weir", "run", "--", BASE, "-c", textwrap.dedent(PROGRAM), input="\n",
                  env=environment)  # fmt: skip
    assert "allocated\n" in printed and "peak allocated 1 MiB" in printed, printed
    inject = f"{build}/tools/timeline/cupti/libweir_timeline.so"
    begin = f"import ctypes; print(ctypes.CDLL('{inject}').InitializeInjection())"
    assert run(BASE, "-c", begin).startswith("1\n")
    if fetched.returncode != 0:
        print(f"no plug was built: {fetched.stderr}", file=sys.stderr)
        sys.exit(77)
    (plug,) = libraries.glob("libweir_torch_*.so")
    assert plug.name == f"libweir_torch_{version.rpartition('.')[0]}.so", plug
    assert "weir_torch_install" in run("nm", "-D", "--defined-only", plug), plug
    required = re.findall(r'"(nvidia-[a-z-]+==\d+\.\d+)', (SOURCE / "pyproject.toml").read_text())
    pinned = (SOURCE / "tools/wheel/requirements.txt").read_text()
    assert len(required) == 3 and all(f"\n{one}." in pinned for one in required), required


def check_remove():
    """A program that runs keeps its library. Nothing stays."""
    if STANDIN:
        process = subprocess.Popen([WEIR, "run", "--", PYTHON, "-c", textwrap.dedent(PROGRAM)], env=on_the_standin(),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
    pip(PYTHON, "uninstall", "--yes", "weir-cuda")
    if STANDIN:
        printed, summary = process.communicate("\n")
        assert (printed, process.returncode) == ("allocated\n", 0), (printed, summary)
        assert "peak allocated 1 MiB" in summary, summary
    left = all_files(ENVIRONMENT) - set((SCRATCH / "before").read_text().splitlines())
    assert not left, left
    shutil.rmtree(SCRATCH)


if __name__ == "__main__":
    globals()[f"check_{sys.argv[1]}"]()

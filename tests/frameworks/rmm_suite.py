#!/usr/bin/env python3
"""Runs RMM's own suite for resources over Weir's resource on the stand-in driver.

    git clone --branch v26.06.00 --depth 1 https://github.com/rapidsai/rmm FOLDER
    tests/frameworks/rmm_suite.py FOLDER

First over the memory of `weir run`, by the C symbols, then over a pool of the library. Nothing of RMM is in
this tree: its tests and what they need of its sources are read from FOLDER, CCCL comes from the environment
of tools/test --frameworks. RMM is compiled, because its library has a CUDA runtime of its own inside, which
asks a driver for NVIDIA's private tables. Ends with 0 if all tests pass.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from environment import HERE, ROOT, Environment, Unusable, checked

SOURCES = ("aligned", "cuda_device", "cuda_stream", "cuda_stream_view", "device_buffer", "error", "logger", "prefetch",
           "runtime_shutdown")
NEEDED = "mr/cccl_mr_ref_test_basic.hpp"
# The tests to run, and what starts the program.
FORMS = {"SwappedIn": ["run", "--"], "Library": None}


def compiled(environment, checkout, program):
    """Builds the suite."""
    tests, weir = checkout / "cpp/tests", environment.build
    if not (tests / NEEDED).is_file():
        raise Unusable(f"{checkout} has no cpp/tests/{NEEDED}: name a checkout of RMM, from v26.06.00 on")
    libraries = [weir / "allocator/libweir_allocator.a", weir / "allocator/base/libweir_base.a"]
    for path in libraries:
        if not path.exists():
            raise Unusable(f"{path} is missing: cmake --build --preset dev --target weir_allocator builds it")
    [packages] = environment.folder.glob("env/lib/python*/site-packages")
    logger = packages / "rapids_logger"
    libraries += [logger / "lib64/librapids_logger.so", environment.standin / "libcudart.so.13"]
    own = [tests, tests / "mr", ROOT, weir / "generated"]
    others = [checkout / "cpp/include", packages / "librmm/include/rapids", packages / "librmm/include",
              logger / "include", packages / "nvidia/cu13/include"]
    command = ["c++", "-std=c++20", "-O1", "-pthread", *(f"-I{folder}" for folder in own)]
    command += [word for folder in others for word in ("-isystem", folder)]
    command += [HERE / "rmm_suite.cpp", *(checkout / f"cpp/src/{name}.cpp" for name in SOURCES)]
    command += ["-o", program, *libraries, "-lgtest", "-lgtest_main"]
    checked([*command, f"-Wl,-rpath,{logger / 'lib64'}:{environment.standin}"])


def run(environment, program, form):
    """Runs the tests of one form, and returns whether all passed."""
    start = FORMS[form]
    command = [program, f"--gtest_filter={form}*"]
    if start is not None:
        command = [environment.weir, *start, *command]
    variables = environment.variables() | {"WEIR_STANDIN_MEMORY": "4G"}  # the suite asks for 1 GiB at once
    done = subprocess.run([str(word) for word in command], env=variables, capture_output=True, text=True, timeout=300,
                          check=False)
    passed = re.search(r"\[  PASSED  \] (\d+) tests?", done.stdout)
    total = re.search(r"Running (\d+) tests? from", done.stdout)
    count = int(passed.group(1)) if passed else 0
    print(f"{form}: {count} of {total.group(1) if total else '?'} tests pass", flush=True)
    if done.returncode != 0:
        sys.stderr.write(done.stdout[-6000:] + done.stderr[-3000:])
    return done.returncode == 0 and count > 0


def main():
    parser = argparse.ArgumentParser(description="Runs RMM's own suite for resources over Weir's.")
    parser.add_argument("checkout", type=pathlib.Path, help="of RMM, from v26.06.00 on")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/frameworks",
                        help="the environment; %(default)s")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="what is tested; %(default)s")
    given = parser.parse_args()
    environment = Environment(given.folder, given.build)
    environment.check_build()
    environment.prepare(lambda text: print(f"rmm_suite: {text}", file=sys.stderr))
    with tempfile.TemporaryDirectory() as scratch:
        program = pathlib.Path(scratch) / "rmm_suite"
        compiled(environment, given.checkout, program)
        return 0 if all([run(environment, program, form) for form in FORMS]) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unusable as error:
        print(f"rmm_suite: {error}", file=sys.stderr)
        sys.exit(2)

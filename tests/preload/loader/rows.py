"""Runs programs on the stand-in driver with libweir.so preloaded, and checks the results.

A file of rows has functions row_NAME, each of which is a test, and ends with main(globals()).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WEIR = os.environ["LOADER_WEIR"]
STANDIN = os.environ["LOADER_STANDIN"]
PROGRAMS = Path(os.environ["LOADER_PROGRAMS"])
# An older driver has a runtime of its version beside it.
VERSION = os.environ.get("LOADER_VERSION")


class Finished:
    """The results of a program: its exit code, its output, and Weir's summaries."""

    def __init__(self, code, out, err, summaries):
        self.code, self.out, self.err, self.summaries = code, out, err, summaries

    def swapped(self, library=""):
        """Returns the driver functions that a library (a part of its path) looked up and got from Weir."""
        found = re.findall(r"^weir: swapped (\w+) for (.*)$", self.err, re.MULTILINE)
        return {name for name, path in found if library in path}

    def served_bytes(self):
        return [sum(device["served_bytes"] for device in one["devices"]) for one in self.summaries]

    def expect(self, holds, what):
        if holds:
            return
        print(f"not so: {what}\nexit code {self.code}, summaries {self.summaries}")
        print(f"---- standard output\n{self.out}\n---- standard error\n{self.err}")
        sys.exit(1)

    def expect_served(self, processes=1):
        """Checks that it ended well, and that Weir served the memory of so many processes."""
        self.expect(self.code == 0, "the program ends with 0")
        served = self.served_bytes()
        self.expect(len(served) == processes, f"there are {processes} summaries")
        self.expect(all(one > 0 for one in served), "Weir served memory in each")
        return self

    def expect_silent(self):
        """Checks that it ended well, without a trace of Weir."""
        self.expect(self.code == 0, "the program ends with 0")
        self.expect(self.err == "", "nothing is said")
        self.expect(not self.summaries, "there is no summary")
        return self


def run(*command, preload=(WEIR,), path=STANDIN, **settings):
    """Runs a program of this folder, by name, with WEIR_LOG=debug and a summary."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WEIR_", "LD_", "CUDA_", "PYTORCH_", "MXNET_"))
    }
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **kept,
            "WEIR_LOG": "debug",
            "WEIR_SUMMARY": f"{folder}/%p.json",
            "LD_PRELOAD": ":".join(str(one) for one in preload),
            **({"LD_LIBRARY_PATH": str(path)} if path else {}),
            **({"WEIR_STANDIN_RUNTIME_VERSION": VERSION} if VERSION else {}),
            **settings,
        }
        done = subprocess.run(
            [str(PROGRAMS / command[0]), *command[1:]],  # an absolute path stays what it is
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
        )
        summaries = [json.loads(one.read_text()) for one in sorted(Path(folder).iterdir())]
    return Finished(done.returncode, done.stdout, done.stderr, summaries)


def main(rows):
    name = f"row_{sys.argv[1]}" if len(sys.argv) == 2 else ""
    if name not in rows:
        sys.exit(f"{sys.argv[0]}: which row? {' '.join(sys.argv[1:])}")
    rows[name]()

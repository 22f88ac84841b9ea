"""The frameworks' own Python environment: build/frameworks, from versions.txt, with the stand-in's runtime."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

import runtime

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSIONS = HERE / "versions.txt"
# By PyTorch's version, the newest first.
OLDER = {version: HERE / f"versions_torch_{version}.txt" for version in ("2.9", "2.5")}


class Unusable(Exception):
    """Something is not available; the message is one line that says what to do."""


def pinned(text):
    """Returns the versions in `text`, by package."""
    return dict(re.findall(r"^([A-Za-z0-9-]+)(?:\[[^]]*\])?==(\S+)$", text, re.MULTILINE))


def announced(text):
    """Returns the size of the download and of the installation, from the head of `text`, of a versions file."""
    found = re.search(r"^# To download: (\S+ GB)\. On the disk: (\S+ GB)\.$", text, re.MULTILINE)
    if found is None:
        raise Unusable("the versions file does not say how much is to be downloaded")
    return found.groups()


class Environment:
    """The environment in `folder` of what `pins` pins, with the programs built in `build`."""

    def __init__(self, folder, build, pins=VERSIONS):
        self.folder, self.build, self.pins = pathlib.Path(folder), pathlib.Path(build).absolute(), pins
        self.standin = self.build / "tests/standin"
        self.weir = self.build / "tools/weir/weir"
        self.python = self.folder / "env/bin/python"

    def check_build(self):
        """Raises Unusable if what is tested is not built."""
        wanted = [self.weir, self.build / "tools/preload/libweir.so"]
        wanted += [self.standin / name for name in ("libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1")]
        for path in wanted:
            if not path.exists():
                raise Unusable(f"{path} is missing: tools/test --frameworks builds it, from toolkit 13.0 on")

    def prepare(self, say):
        """Installs what is missing. Downloads nothing if the versions are already installed."""
        if not self.is_installed():
            download, disk = announced(self.pins.read_text())
            say(f"installing into {self.folder}, which downloads {download} and takes {disk}; needs Python "
                "with venv and pip, and access to a package index")
            self.install()
        if self.pins == VERSIONS and not (self.folder / "peers/librmm/include").is_dir():
            say("downloading RMM's headers, 23 MB")
            checked([ROOT / "bench/peers/fetch", self.folder / "peers", "rmm"])
        self.use_the_standins_runtime()

    def is_installed(self):
        done = self.folder / "installed.txt"
        return self.python.exists() and done.exists() and done.read_text() == self.pins.read_text()

    def install(self):
        if shutil.disk_usage(existing(self.folder)).free < 12e9:
            raise Unusable(f"less than 12 GB are free for {self.folder}")
        venv.create(self.folder / "env", with_pip=True)
        checked([self.python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "-r", self.pins])
        (self.folder / "installed.txt").write_text(self.pins.read_text())

    def use_the_standins_runtime(self):
        """The wheels find their own libcudart by an RPATH, which LD_LIBRARY_PATH does not beat. It asks a
        driver for private tables, which the stand-in does not have."""
        for theirs in self.folder.glob("env/lib/python*/site-packages/nvidia/*/lib/libcudart.so.*"):
            if not theirs.is_symlink():
                theirs.rename(theirs.with_name("libcudart.real"))
            ours = self.standin / theirs.name
            if not ours.exists():
                try:
                    ours = runtime.built(ROOT, theirs.parent.parent / "include", self.folder.absolute() / "runtime")
                except subprocess.CalledProcessError as error:
                    sys.stderr.write(error.stdout)
                    raise Unusable(f"{theirs.name} of the stand-in does not compile") from None
            theirs.unlink(missing_ok=True)
            theirs.symlink_to(ours)

    def compiled(self, source):
        """Builds the C++ `source`, which is RMM's, and returns the program."""
        peers, [nvidia] = self.folder / "peers", self.folder.glob("env/lib/python*/site-packages/nvidia/cu13")
        program = self.folder / source.stem
        if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
            return program
        folders = [peers / "librmm/include", peers / "librmm/include/rapids", peers / "rapids_logger/include",
                   nvidia / "include"]
        libraries = [peers / "librmm/lib64/librmm.so", peers / "rapids_logger/lib64/librapids_logger.so",
                     self.standin / "libcudart.so.13"]
        command = ["c++", "-std=c++20", "-O1", "-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE"]
        command += [word for folder in folders for word in ("-isystem", folder)]
        command += ["-I", ROOT, source, "-o", program, *libraries]
        command += [f"-Wl,-rpath,{':'.join(str(library.resolve().parent) for library in libraries)}"]
        checked(command)
        return program

    def versions(self):
        """Returns the versions to show, by package. RMM's program has headers of its own version."""
        found = pinned(self.pins.read_text())
        headers = self.folder / "peers/librmm/VERSION"
        return found | ({"librmm": headers.read_text().strip()} if headers.exists() else {})

    def variables(self):
        """Returns a program's environment, without the user's settings for Weir or a framework."""
        kept = {name: value for name, value in os.environ.items()
                if not re.match(r"WEIR_|PYTORCH_|XLA_|JAX_|TF_|CUPY_|NUMBA_|CUDA_|LD_", name)}
        return kept | {
            "LD_LIBRARY_PATH": str(self.standin),
            "PYTHONDONTWRITEBYTECODE": "1",
            "WEIR_STANDIN_DEVICES": "2",
            "WEIR_STANDIN_PAGES_IN_CAPTURES": "1",
            "WEIR_STANDIN_SHAREABLE": "1",
        }


def existing(folder):
    while not folder.exists():
        folder = folder.parent
    return folder


def checked(command):
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise Unusable(f"{' '.join(command[:5])} … failed with exit code {done.returncode}")

"""The stand-in's CUDA runtime for the wheels of an environment.

The build has one of the toolkit's version. Wheels of an earlier version of CUDA are linked with another soname,
and some types of the runtime have another layout: the same sources are compiled with the headers in the wheels.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "standin"))
import headers as cuda_headers  # noqa: E402


def major(headers):
    text = (headers / "cuda_runtime_api.h").read_text()
    return int(re.search(r"#define CUDART_VERSION\s+(\d+)", text)[1]) // 1000


def built(root, headers, folder):
    """Returns the runtime for CUDA's `headers`, compiled into `folder` if the sources are newer.

    Raises subprocess.CalledProcessError with the compiler's output.
    """
    sources = sorted((root / "tests/standin/runtime").glob("*.cpp"))
    library = folder / f"libcudart.so.{major(headers)}"
    used = [*(root / "tests/standin/runtime").glob("*.*"), pathlib.Path(__file__)]
    if library.exists() and library.stat().st_mtime > max(path.stat().st_mtime for path in used):
        return library
    folder.mkdir(parents=True, exist_ok=True)
    names = cuda_headers.functions((headers / "cuda_runtime_api.h").read_text(), "CUDARTAPI")
    (folder / "standin_runtime_rest.inc").write_text("".join(f"REST({name})\n" for name in names))
    (folder / "exports.map").write_text(f"{library.name} {{ global: cuda[A-Z]*; __cuda*; local: *; }};\n")
    command = ["c++", "-std=c++20", "-O1", "-fPIC", "-shared", "-w", "-I", root, "-I", headers, "-I", folder,
               *sources, "-o", library, "-pthread", "-ldl", f"-Wl,-soname,{library.name}",
               f"-Wl,--version-script={folder / 'exports.map'}", "-Wl,-z,nodelete"]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                   text=True)
    return library

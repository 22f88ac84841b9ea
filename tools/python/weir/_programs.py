"""Becomes `weir` or `weir-train`, the programs in bin/ beside this file.

exec replaces the interpreter, so that the process keeps its number, and exit codes and signals are
the program's own.
"""

import os
import signal
import sys
from typing import Dict, NoReturn, Sequence


def _become(name: str, arguments: Sequence[str]) -> NoReturn:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    if not os.path.isfile(path):
        sys.exit(_refusal(name, path))
    # The interpreter ignores these from its start, and a program inherits what is ignored.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execve(path, [path, *arguments], _environment())
    except OSError as error:
        print(f"{name}: '{path}' cannot be started: {error.strerror}", file=sys.stderr)
        sys.exit(2)


def _environment() -> Dict[bytes, bytes]:
    """The process's own, without the LC_CTYPE that the interpreter adds in the C locale (PEP 538)."""
    environment = dict(os.environb)
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read().split(b"\0")
    except OSError:
        return environment
    if not any(line.startswith(b"LC_CTYPE=") for line in given):
        environment.pop(b"LC_CTYPE", None)
    return environment


def _refusal(name: str, path: str) -> int:
    print(
        f"{name}: there is no '{path}': install the wheel as it is; its programs run neither from an "
        "archive nor from a copy of the Python files",
        file=sys.stderr,
    )
    return 2


def weir() -> NoReturn:
    _become("weir", sys.argv[1:])


def weir_train() -> NoReturn:
    _become("weir-train", sys.argv[1:])

"""Starts programs, and ends them with all that they started. tests/frameworks uses it too."""

import contextlib
import os
import signal
import subprocess


def start(command, environment=None, out=subprocess.DEVNULL, err=subprocess.DEVNULL):
    """Returns a process in a session of its own, without standard input. Raises OSError."""
    words = [str(word) for word in command]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
                            start_new_session=True)  # fmt: skip


def end(process, seconds, grace=0):
    """Waits for a process of `start`, then kills what is left of its session. Asks one that is late to end, and
    gives it `grace` seconds. Returns whether it ended by itself."""
    in_time = _ends(process, seconds)
    if not in_time and grace > 0:
        _signal(process, signal.SIGTERM)
        _ends(process, grace)
    _signal(process, signal.SIGKILL)
    process.wait()
    return in_time


def _ends(process, seconds):
    try:
        process.wait(max(0, seconds))
        return True
    except subprocess.TimeoutExpired:
        return False


def _signal(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)

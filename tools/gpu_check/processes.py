"""Starts programs, and ends them with all that they started. tests/frameworks uses it too."""

import contextlib
import os
import signal
import subprocess
import threading

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_running = set()  # what `start` started and `end` has not ended


def start(command, environment=None, out=subprocess.DEVNULL, err=subprocess.DEVNULL, stdin=subprocess.DEVNULL):
    """Returns a process in a session of its own. Raises OSError."""
    main = threading.current_thread() is threading.main_thread()
    # Python runs a signal's handler in the main thread. Between the process's begin and its place in _running a
    # handler would not know it, so signals wait.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING) if main else None
    try:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=stdin,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
            preexec_fn=(lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)) if main else None,
        )
        _running.add(process)
        return process
    finally:
        if main:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_all():
    """Kills what is running, with all that it started."""
    for process in list(_running):
        _signal(process, signal.SIGKILL)


def end(process, seconds, grace=0):
    """Waits for a process of `start`, then kills what is left of its session. Asks one that is late to end, and
    gives it `grace` seconds. Returns whether it ended by itself."""
    in_time = _ends(process, seconds)
    if not in_time and grace > 0:
        _signal(process, signal.SIGTERM)
        _ends(process, grace)
    _signal(process, signal.SIGKILL)
    process.wait()
    _running.discard(process)
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

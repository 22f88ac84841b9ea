"""Reads what the parts of a call wrote, whatever it is."""

import json
import os
import re


def text_of(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def last_line(text, most=300):
    lines = text.strip().splitlines()
    return lines[-1][:most] if lines else ""


def shorter(word):
    """Removes folders of this machine, which do not belong on a page."""
    return os.path.basename(word) if os.path.isabs(word) else word


def not_recorded(log):
    """Returns why a recording lacks kernels and copies; empty if it has them."""
    found = re.search("kernels and copies are not recorded: .*", text_of(log))
    return found.group() if found else ""


def parse_json(text):
    """Returns the document; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_json(path):
    return parse_json(text_of(path))


def parse_figures(text):
    """Returns the document. Of a list with one element a line, whose writer was stopped, returns the whole elements
    and what can be read of the last, with "cut". None if nothing can be read."""
    whole_lines = text[: max(0, text.rfind(",\n"))]
    for closed in (text, text + "]}", text + "}]}", whole_lines + "]}"):
        read = parse_json(closed)
        if read is not None:
            return {**read, "cut": True} if isinstance(read, dict) and closed is not text else read
    return None


def without_series(figures):
    """Omits the series `..._per_batch`, which would be most of a document."""
    if isinstance(figures, list):
        return [without_series(one) for one in figures]
    if isinstance(figures, dict):
        return {key: without_series(value) for key, value in figures.items() if not key.endswith("_per_batch")}
    return figures


def outcome(entry):
    """Returns `ok`, `failed (exit 1)`, `stopped at its limit of 40 s` or `left out: reason`."""
    if "left_out" in entry:
        return "left out: " + entry["left_out"]
    # Calls of earlier versions have only timeout's exit codes.
    if entry.get("stopped", entry.get("exit_code") in (124, 137)):
        return f"stopped at its limit of {entry['limit_seconds']:.0f} s"
    if entry["exit_code"] is None:
        return f"failed: {entry.get('said', '')}"
    return "ok" if entry["exit_code"] == 0 else f"failed (exit {entry['exit_code']})"

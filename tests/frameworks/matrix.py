"""What became of features, and the table of docs/frameworks.md that says so. No program is started here."""

import dataclasses
import re

BEGIN, END = "<!-- matrix begin -->", "<!-- matrix end -->"
WAYS = ("alone", "default", "async")
LONGEST_REASON = 150  # characters, in a note below the table

WORKS, FAILS, UNAVAILABLE, DIFFERS = "works", "fails", "untried", "other output"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one feature did in one way: one of the four words, why, and what it printed."""

    word: str
    reason: str = ""
    output: str = ""


def outcome(code, output, errors, seconds=None):
    """The outcome of a program that ended with `code`; None: it was ended after `seconds`."""
    if code == 0:
        return Outcome(WORKS, output=output)
    reason = last_line(output) or what_of_the_end(errors)
    if code == 77:
        return Outcome(UNAVAILABLE, reason or "no reason is given")
    if code is None:
        return Outcome(FAILS, f"did not end within {seconds} s")
    if code < 0 or code > 128:
        return Outcome(FAILS, f"ended by signal {-code if code < 0 else code - 128}: {reason}")
    return Outcome(FAILS, reason or f"exit code {code}")


def last_line(text):
    """The last line of `text` that is not of weir's summary."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("weir: ", "  "))]
    return lines[-1] if lines else ""


def what_of_the_end(errors):
    """The line of `errors` that says why: of an exception that nobody caught, or else the last one."""
    found = re.findall(r"^ *what\(\): *(.+)$", errors, re.MULTILINE)
    return found[-1] if found else last_line(errors)


def compared(outcomes):
    """`outcomes` by way, with DIFFERS where a feature works and prints something else than alone."""
    alone = outcomes.get("alone")
    if alone is None or alone.word != WORKS:
        return dict(outcomes)
    found = {}
    for way, one in outcomes.items():
        if one.word == WORKS and one.output != alone.output:
            one = Outcome(DIFFERS, f"printed {shortened(one.output)!r}, and {shortened(alone.output)!r} alone")
        found[way] = one
    return found


def complaints(rows):
    """What is wrong in `rows` of (framework, feature, outcomes): each as a line.

    A feature fails alone, so that nothing can be compared; or it is lost by default. With another
    allocator (async) a framework may lose features: the page says which.
    """
    found = []
    for framework, feature, outcomes in rows:
        for way in ("alone", "default"):
            one = outcomes.get(way)
            lost = way == "default" and one is not None and (
                one.word == DIFFERS
                or (one.word == UNAVAILABLE and outcomes.get("alone", one).word == WORKS))
            if one is not None and (one.word == FAILS or lost):
                found.append(f"{framework}, {feature}, {way}: {one.word}: {one.reason}")
    return found


def table(rows):
    """The rows of (framework, feature, outcomes) as Markdown, and below it why each cell is not "works"."""
    lines = ["| framework | feature | " + " | ".join(WAYS) + " |", "|---|---|---|---|---|"]
    notes = []
    for framework, feature, outcomes in rows:
        cells = [cell(outcomes.get(way), notes) for way in WAYS]
        lines.append(f"| {framework} | {feature.replace('_', ' ')} | {' | '.join(cells)} |")
    if notes:
        lines.append("")
        lines += [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\n".join(lines)


def cell(one, notes):
    if one is None:
        return "-"
    if one.word == WORKS:
        return WORKS
    reason = f"`{shortened(one.reason)}`"
    if reason not in notes:
        notes.append(reason)
    return f"{one.word} ({notes.index(reason) + 1})"


def shortened(text):
    """One line that stands between backquotes, without what differs from run to run."""
    text = re.sub(r"/[^ :'\"]*/build/frameworks/", "", " ".join(text.split()))
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", text).replace("`", "'").replace("|", "/")
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"


def with_matrix(page, text):
    """`page` with `text` between its marks; ValueError where it has not one of each, in order."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"needs one line {BEGIN} and one line {END} behind it")
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}"

"""The results of features, and their table in docs/frameworks.md. Starts no program."""

import dataclasses
import re

BEGIN, END = "<!-- matrix begin -->", "<!-- matrix end -->"
WAYS = ("alone", "below", "plug", "async")
REFERENCE = "reference"  # alone, with the settings of async: shows whose fault it is
LONGEST_REASON = 150  # characters, in a note below the table
LONGEST_OUTPUT = 40  # characters of an output that differs

OWN_FIGURES = "cache: "  # begins a line of figures of a framework's own cache, which another allocator may not equal

WORKS, FAILS, UNAVAILABLE, DIFFERS = "works", "fails", "untried", "other output"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one feature in one way: one of the four words, the reason, and the output."""

    word: str
    reason: str = ""
    output: str = ""


def outcome(code, output, errors, seconds=None):
    """Returns the outcome of a program that ended with `code`; None: it was ended after `seconds`."""
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
    """Returns the last line of `text` outside weir's summary."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("weir: ", "  "))]
    return lines[-1] if lines else ""


def what_of_the_end(errors):
    """Returns the line of `errors` with the reason: an uncaught exception's, otherwise the last one."""
    found = re.findall(r"^ *what\(\): *(.+)$", errors, re.MULTILINE)
    return found[-1] if found else last_line(errors)


def needs_reference(outcomes):
    """Returns whether to ask the framework what it does with the async settings and without Weir."""
    alone, own = outcomes.get("alone"), outcomes.get("async")
    return (alone is not None and own is not None and alone.word == WORKS
            and (own.word != WORKS or own.output != alone.output))


def compared(outcomes):
    """Returns `outcomes` by way, with DIFFERS if a feature works but prints something else than without Weir.
    
    Without Weir is alone, and for async the reference, if there is one. A plug is not the framework's own cache.
    """
    found = dict(outcomes)
    reference = REFERENCE if REFERENCE in outcomes else "alone"
    for way, other in (("below", "alone"), ("plug", "alone"), ("async", reference)):
        one, without = outcomes.get(way), outcomes.get(other)
        if one is None or without is None or without.word != WORKS or one.word != WORKS:
            continue
        printed, printed_without = one.output, without.output
        if way == "plug":
            printed, printed_without = without_own_figures(printed), without_own_figures(printed_without)
        if printed != printed_without:
            said = "printed {!r}, and {!r} without Weir".format(
                *(shortened(text, LONGEST_OUTPUT) for text in differing(printed, printed_without)))
            found[way] = Outcome(DIFFERS, said)
    return found


def without_own_figures(output):
    return "".join(line for line in output.splitlines(keepends=True) if not line.startswith(OWN_FIGURES))


def differing(one, other):
    """Returns the first lines in which two texts differ, or the texts if only the number of lines does."""
    pairs = [pair for pair in zip(one.splitlines(), other.splitlines()) if pair[0] != pair[1]]
    return pairs[0] if pairs else (one, other)


def complaints(rows):
    """Returns the faults in `rows` of (framework, feature, outcomes), a line each.
    
    Either a feature fails alone, so that there is no comparison, or Weir loses it, below the framework, by the plug or
    with the async allocator. A feature that a framework's own async allocator also lacks is no fault: the page says it.
    """
    found = []
    for framework, feature, outcomes in rows:
        for way in WAYS:
            one = outcomes.get(way)
            if one is not None and is_wrong(way, one, outcomes):
                found.append(f"{framework}, {feature}, {way}: {one.word}: {one.reason}")
    return found


def is_wrong(way, one, outcomes):
    if one.word == DIFFERS:
        return True
    if way == "async":
        return one.word != WORKS and outcomes.get(REFERENCE, Outcome(FAILS)).word == WORKS
    lost = one.word == UNAVAILABLE and outcomes.get("alone", one).word == WORKS
    return one.word == FAILS or lost


def table(rows):
    """Returns the rows of (framework, feature, outcomes) in Markdown, with reasons for cells other than "works".

    Features with the same outcomes share a row. An older version has only what differs from the newest, the first.
    """
    notes, newest = [], {}
    versions = {}  # by (family, feature, cells)
    for framework, feature, outcomes in rows:
        cells = tuple(cell(outcomes.get(way), outcomes.get(REFERENCE), notes) for way in WAYS)
        known = newest.setdefault((family(framework), feature), (framework, cells))
        if known[0] == framework or any(one not in ("-", other) for one, other in zip(cells, known[1])):
            versions.setdefault((family(framework), feature, cells), []).append(framework)
    features = {}  # by (frameworks, cells)
    for (_, feature, cells), frameworks in versions.items():
        features.setdefault((", ".join(frameworks), cells), []).append(feature.replace("_", " "))
    lines = ["| framework | features | " + " | ".join(WAYS) + " |", "|---|---" + "|---" * len(WAYS) + "|"]
    lines += [f"| {frameworks} | {', '.join(names)} | {' | '.join(cells)} |"
              for (frameworks, cells), names in features.items()]
    if notes:
        lines.append("")
        lines += [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\n".join(lines)


def family(framework):
    """Returns the name without a version: "PyTorch 2.9" is of "PyTorch"."""
    return re.sub(r" [0-9.]+$", "", framework)


def cell(one, reference, notes):
    """Returns a cell's text; adds its reason to `notes`. `reference` is given if async was asked twice."""
    if one is None:
        return "-"
    if one.word == WORKS:
        return WORKS
    note = f"`{shortened(one.reason)}`"
    if reference is not None and one.word == FAILS and reference.word == FAILS:
        note += ", and so without Weir"
    if note not in notes:
        notes.append(note)
    return f"{one.word} ({notes.index(note) + 1})"


def shortened(text, longest=LONGEST_REASON):
    """Returns the first sentence of `text`, one line for backquotes, without what differs from run to run."""
    text = re.sub(r"/[^ :'\"]*/build/frameworks/", "", " ".join(text.split()))
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", text).replace("`", "'").replace("|", "/")
    text = re.split(r"(?<=[a-z]\.) (?=[A-Z(])", text, maxsplit=1)[0]
    return text if len(text) <= longest else text[: longest - 1] + "…"


def with_matrix(page, text):
    """Returns `page` with `text` between its marks. Raises ValueError if it does not have each once, in order."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"needs one line {BEGIN} and one line {END} behind it")
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}"

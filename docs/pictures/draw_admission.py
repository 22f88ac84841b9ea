"""Draws how a batch is admitted: the questions of decide() in their order, and a batch's states.

The words are here; the order of the decisions is that of the source, or nothing is drawn."""

import pathlib
import re

from shapes import BLUE, GREEN, ORANGE, Picture

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "scheduler/admission/admission_decision.hpp"
# The decision, when it is taken, and what comes of it.
STEPS = [
    ("kRefuse", "Its wait was cancelled?", "begin_batch throws Cancelled"),
    ("kWaitTurn", "Another batch is first in the line?", "until it is the first itself"),
    ("kAdmit", "No batch open, and none submitted?", "whatever its size: no wait could help"),
    ("kWaitHard", "No room, but batches are submitted?", "until the device has finished some of them"),
    ("kForce", "No room, nothing submitted, and the grace is over?", "without room: counted, with a warning"),
    ("kWaitOpen", "No room, nothing submitted, within the grace?", "an open batch closes or frees; or grace over"),
    ("kWaitSoft", "Room, but enough is queued (the run-ahead target)?", "until the device has finished some of it"),
    ("kWaitShare", "Its turn has not come, and others may come back?", "until its patience is over"),
    ("kAdmit", "None of these?", "room is reserved for its estimate"),
]
WIDTH, ROW = 960, 46


def decisions_of(source):
    """What decide() returns, from its first line to its last."""
    body = source[source.index("constexpr Decision decide("):source.index("/// An allocation that no")]
    return re.findall(r"Decision::(k\w+)", body)


def draw(source=None):
    found = decisions_of(source if source is not None else SOURCE.read_text())
    if found != [name for name, _, _ in STEPS]:
        raise SystemExit(f"decide() returns {found}: write the words of its decisions anew in {__file__}")
    height = 150 + len(STEPS) * ROW + 96
    picture = Picture(WIDTH, height, "How throttled admits a batch: the first question with the answer yes decides")
    picture.box(20, 46, 300, 30, fill="#fff")
    picture.text(170, 66, "begin_batch", bold=True, middle=True)
    picture.arrow((170, 76), (170, 92))
    for number, (name, question, outcome) in enumerate(STEPS):
        y = 92 + number * ROW
        admitted = name in ("kAdmit", "kForce")
        colour = GREEN if admitted else ORANGE if name == "kRefuse" else BLUE
        picture.box(20, y, 480, 32)
        picture.text(32, y + 21, question)
        picture.arrow((500, y + 16), (560, y + 16))
        picture.text(516, y + 11, "yes", size=11)
        picture.box(560, y, 380, 32, fill="#fff", stroke=colour)
        picture.text(572, y + 21, name, bold=True, colour=colour)
        picture.text(664, y + 21, outcome, size=12)
        if number + 1 < len(STEPS):
            picture.arrow((170, y + 32), (170, y + ROW))
    y = 92 + len(STEPS) * ROW + 4
    picture.text(20, y + 10, "Room: the estimate fits in the budget beside held and promised memory; with no batch open, "
                             "beside live memory.", size=12)
    y += 20
    picture.text(20, y + 10, "After a wait the questions are asked again from the top. An admitted batch:", size=12)
    states = [("open", "its operations are submitted"), ("submitted", "closed; the device works on it"),
              ("settled", "the device is done with it")]
    for number, (state, meaning) in enumerate(states):
        x = 20 + number * 320
        picture.box(x, y + 26, 280, 48, fill="#fff", stroke=GREEN)
        picture.text(x + 12, y + 46, state, bold=True, colour=GREEN)
        picture.text(x + 12, y + 64, meaning, size=12)
        if number < 2:
            picture.arrow((x + 280, y + 50), (x + 320, y + 50))
    return picture.svg()


if __name__ == "__main__":
    print(draw(), end="")

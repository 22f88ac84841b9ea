#!/usr/bin/env python3
"""Checks that what installed pages name is installed, or is said to be of a clone.

    paths.py SOURCE FOLDER    prints what is wrong on the pages in FOLDER; exits 1 if anything is

That is paths of the source tree SOURCE, which have to be there, and programs that are not installed. Its page says
below its title that they are of a clone. A page for users says it once more where it shows a command for a clone: in
that section stands the word.
"""

import pathlib
import re
import sys

SAID = re.compile(r"^\*Only in a clone, not installed: (.*)\.\*$", re.MULTILINE)
# A place of a program, as a report of a timeline has it, is no path to follow.
PLACE = re.compile(r"[a-z_/]+\.cpp:\d+")
# build/ may be the reader's own; these are ours.
BUILDS = ("bench", "dev", "portable", "rehearsal", "release")
PROGRAM = re.compile(r"\bweir-(?:bench|gpu|peers|simulate|stress)\b")


def folders_of(source):
    return sorted(path.name for path in source.iterdir()
                  if path.is_dir() and not path.name.startswith(".") and path.name not in ("build", "docs"))


def named_in(text, folders):
    """Returns what `text` names that is not installed: paths of the source tree as they are written, and programs."""
    ours = "|".join(map(re.escape, folders))
    builds = "|".join(BUILDS)
    text = PLACE.sub("", text)
    found = re.findall(rf"(?<![\w./-])((?:{ours})/[a-z][\w.*/-]*|build/(?:{builds})\b[\w.*/-]*)", text)
    found += re.findall(r"(?<![\w./-])docs/[\w/]+\.(?!md\b|svg\b|png\b|json\b)\w+", text)
    return [path.rstrip("./") for path in found] + PROGRAM.findall(text)


def pages_for_users(index):
    """Returns the names of the pages that the index has for those who use Weir or build on it."""
    part = index.partition("**Using it**")[2].partition("**How it works**")[0]
    return {"README.md", *(f"docs/{name}" for name in re.findall(r"\]\(([\w-]+\.md)", part))}


def faults_of(page, text, source, for_users):
    folders, faults = folders_of(source), []
    said = SAID.search(text)
    text = SAID.sub("", text)
    for name in named_in(text, folders):
        folder, _, inside = name.partition("/")
        if not said or f"`{name if folder == 'docs' or not inside else folder + '/'}`" not in said[1]:
            faults.append(f"{page}: {name} is not installed, and the page does not say so")
        # A page of results names what its commit had.
        elif (inside and folder != "build" and not page.startswith("docs/results/")
              and not any(source.glob(re.sub("[A-Z]{3,}", "*", name)))):
            faults.append(f"{page}: {name} is in no clone either")
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE) if for_users else ():
        for block in re.findall(r"^```sh[^\n]*\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
            if named_in(block, folders) and not re.search(r"\bclone\b", section):
                faults.append(f"{page}: the command {block.strip().splitlines()[0]} needs a clone, and its section "
                              "does not say so")
    return faults


def main(source, folder):
    source, root = pathlib.Path(source).resolve(), pathlib.Path(folder).resolve()
    users = pages_for_users((root / "docs/README.md").read_text())
    faults = [] if len(users) > 10 else [f"{root}: the index has no pages for users: the check itself is broken"]
    for path in sorted(root.rglob("*.md")):
        page = str(path.relative_to(root))
        faults += faults_of(page, path.read_text(), source, page in users)
    print("\n".join(faults), end="\n" * bool(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

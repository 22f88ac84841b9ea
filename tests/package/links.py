#!/usr/bin/env python3
"""Checks that the pages in a folder link to files in this folder, and to headings that their pages have.

    links.py FOLDER    prints each link that leads nowhere or out of the folder; exits 1 if any
"""

import pathlib
import re
import sys

LINK = re.compile(r"\]\(<?([^)>\s]+)|(?:src|href)=\"([^\"]+)\"|^\[[^]]+\]:\s*(\S+)", re.MULTILINE)


def without_blocks(text):
    return re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.MULTILINE | re.DOTALL)


def links(text):
    """Returns the links of a page that are not to the web, as pairs of file and heading, without the code on it."""
    text = re.sub(r"`[^`]*`", "", without_blocks(text))
    found = (next(filter(None, match)) for match in LINK.findall(text))
    return [tuple(link.partition("#")[::2]) for link in found if not re.match(r"[a-z]+:", link)]


def headings(text):
    """Returns the names by which links reach the headings of a page, as GitHub makes them."""
    names = []
    for heading in re.findall(r"^#+ (.*)$", without_blocks(text), re.MULTILINE):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        names.append(name if name not in names else f"{name}-{names.count(name)}")
    return names


def main(folder):
    root = pathlib.Path(folder).resolve()
    seen = bad = 0
    for page in sorted(root.rglob("*.md")):
        for link, heading in links(page.read_text()):
            seen += 1
            target = (page.parent / link).resolve() if link else page
            if not target.exists() or not target.is_relative_to(root):
                print(f"{page.relative_to(root)}: {link} is not installed")
                bad += 1
            elif heading and target.suffix == ".md" and heading not in headings(target.read_text()):
                print(f"{page.relative_to(root)}: {link} has no heading #{heading}")
                bad += 1
    if not seen:
        print(f"{root}: no page has a link: the check itself is broken")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

#!/usr/bin/env python3
"""Checks that the pages in a folder link to files in this folder.

    links.py FOLDER    prints each link that leads nowhere or out of the folder; exits 1 if any
"""

import pathlib
import re
import sys

LINK = re.compile(r"\]\(<?([^)>\s]+)|(?:src|href)=\"([^\"]+)\"|^\[[^]]+\]:\s*(\S+)", re.MULTILINE)


def links(text):
    """Returns the relative links of a page, without the code on it."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "", text)
    found = (next(filter(None, match)).partition("#")[0] for match in LINK.findall(text))
    return [link for link in found if link and not re.match(r"[a-z]+:", link)]


def main(folder):
    root = pathlib.Path(folder).resolve()
    seen = bad = 0
    for page in sorted(root.rglob("*.md")):
        for link in links(page.read_text()):
            seen += 1
            target = (page.parent / link).resolve()
            if not target.exists() or not target.is_relative_to(root):
                print(f"{page.relative_to(root)}: {link} is not installed")
                bad += 1
    if not seen:
        print(f"{root}: no page has a link: the check itself is broken")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

#!/usr/bin/env python3
"""The checks of installed pages find what they are for."""

import pathlib
import tempfile
import unittest

import links
import paths

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SAID = "*Only in a clone, not installed: `docs/pictures/remake.py`, `tools/`, `weir-stress`.*\n"


class Paths(unittest.TestCase):
    def faults(self, text, for_users=False):
        return paths.faults_of("page.md", text, SOURCE, for_users)

    def test_a_path_of_the_sources_has_to_be_said_to_be_one(self):
        for path in ("tools/demo", "`tests/project/layers.py`", "(bench/run)", "build/dev/trainer/weir-train",
                     "`weir-stress oom`",
                     "docs/pictures/remake.py"):
            self.assertEqual(len(self.faults(f"# T\n\nSee {path}.\n")), 1, path)
        self.assertEqual(self.faults(f"# T\n\n{SAID}\nSee `tools/demo`, weir-stress, docs/pictures/remake.py.\n"), [])
        self.assertIn("does not say so", self.faults(f"# T\n\n{SAID}\nSee `bench/run`.\n")[0])

    def test_what_is_no_path_of_the_sources_needs_no_word(self):
        text = "/usr/share/weir/tools/torch/build, build/consumer, trainer/run/feed.cpp:38, docs/faq.md, weir-train"
        self.assertEqual(self.faults(f"# T\n\n{text}\n"), [])

    def test_a_path_that_no_clone_has_is_found(self):
        self.assertIn("in no clone either", self.faults(f"# T\n\n{SAID}\nSee `tools/gone`.\n")[0])
        self.assertEqual(paths.faults_of("docs/results/1/a.md", f"# T\n\n{SAID}\n`tools/gone`\n", SOURCE, False), [])

    def test_a_command_for_users_says_where_it_is(self):
        block = "```sh manual\ntools/package\n```\n"
        self.assertEqual(len(self.faults(f"# T\n\n{SAID}\n## S\n\nRun:\n\n{block}", for_users=True)), 1)
        self.assertEqual(self.faults(f"# T\n\n{SAID}\n## S\n\nIn a clone:\n\n{block}", for_users=True), [])
        self.assertEqual(self.faults(f"# T\n\n{SAID}\n## S\n\nRun:\n\n{block}"), [])

    def test_the_index_tells_the_pages_for_users(self):
        users = paths.pages_for_users((SOURCE / "docs/README.md").read_text())
        self.assertLessEqual({"README.md", "docs/weir-run.md", "docs/c-api.md"}, users)
        self.assertNotIn("docs/gpu-check.md", users)


class Links(unittest.TestCase):
    def run_on(self, **pages):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in pages.items():
                pathlib.Path(folder, f"{name}.md").write_text(text)
            return links.main(folder)

    def test_a_link_leads_to_a_file_and_to_a_heading(self):
        self.assertEqual(self.run_on(a="[b](b.md#one-two) [c](#here)\n\n## Here\n", b="# One, `two`\n"), 0)
        for link in ("c.md", "b.md#two", "#gone", "../b.md"):
            self.assertEqual(self.run_on(a=f"[b]({link})", b="# One\n"), 1, link)

    def test_no_link_at_all_is_a_fault(self):
        self.assertEqual(self.run_on(a="`[b](b.md)`"), 1)


if __name__ == "__main__":
    unittest.main()

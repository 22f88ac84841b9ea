#!/usr/bin/env python3
"""The check of the pictures finds an old one."""

import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs/pictures"))
import draw_admission  # noqa: E402
import draw_layers  # noqa: E402
import remake  # noqa: E402


class Blocks(unittest.TestCase):
    def test_a_block_counts_if_each_of_its_lines_was_printed(self):
        printed = "head\n  a 1\n  b 2\nend\n"
        for block, counts in (("head\n  a 1", 1), ("head\n...\nend", 1), ("head\n  a 3", 0), ("  b  2", 0),
                              ("  b 2\n...\n  a 1", 0), ("head\n  b 2", 0), ("...\n  b 2\nend\n...", 1)):
            self.assertEqual(remake.blocks_from(f"Words.\n```text\n{block}\n```\nMore.\n", printed), counts, block)


class Layers(unittest.TestCase):
    def test_each_text_lies_in_its_box_and_keeps_a_distance_from_the_border(self):
        picture = draw_layers.draw()
        boxes = [tuple(map(float, box)) for box in re.findall(
            r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" rx', picture)]
        texts = [(float(x), float(y), words) for x, y, words in re.findall(
            r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<', picture)][1:]  # without the title
        self.assertGreater(len(texts), 2 * len(boxes) - 1)
        for x, y, words in texts:
            self.assertTrue(any(left < x and x + 6 * len(words) < left + width and top + 12 < y < top + height - 8
                                for left, top, width, height in boxes), words)


class Measured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.pictures = self.root / "docs/pictures"
        self.pictures.mkdir(parents=True)
        hashes = []
        for printed, (page, blocks, names) in remake.MEASURED.items():
            (self.pictures / printed).write_text("first 1\nsecond 2\n")
            hashes.append(f'"{printed}": "{remake.hash_of(self.pictures / printed)}"')
            (self.root / page).write_text("```text\nfirst 1\n```\n" * blocks + "".join(f"![](pictures/{n})" for n in names))
            for name in names:
                (self.pictures / name).write_text(name)
                hashes.append(f'"{name}": "{remake.hash_of(self.pictures / name)}"')
        (self.pictures / "measured.json").write_text("{" + ",".join(hashes) + "}")

    def test_what_belongs_together_has_no_fault(self):
        self.assertEqual(remake.faults_of_measured(self.pictures, self.root), [])
        self.assertEqual(remake.faults_of_pages(self.pictures, self.root), [])

    def test_another_picture_is_found(self):
        (self.pictures / "compare.svg").write_text("drawn by hand")
        self.assertEqual(len(remake.faults_of_measured(self.pictures, self.root)), 1)

    def test_a_page_with_older_figures_is_found(self):
        page = self.root / "docs/timelines.md"
        page.write_text(page.read_text().replace("first 1", "first 1.5"))
        self.assertIn("older than the picture", remake.faults_of_measured(self.pictures, self.root)[0])

    def test_newer_figures_without_their_pictures_are_found(self):
        (self.pictures / "timelines.txt").write_text("first 1\nsecond 3\n")
        self.assertIn("docs/pictures/timelines.txt is not the one", remake.faults_of_measured(self.pictures, self.root)[0])

    def test_a_picture_that_no_page_shows_is_found(self):
        (self.pictures / "forgotten.svg").write_text("")
        self.assertEqual(remake.faults_of_pages(self.pictures, self.root), ["no page shows docs/pictures/forgotten.svg"])


    def test_a_picture_that_is_not_there_is_found(self):
        (self.pictures / "compare.svg").unlink()
        self.assertEqual(remake.faults_of_pages(self.pictures, self.root),
                         ["a page shows docs/pictures/compare.svg, which is not there"])


class Admission(unittest.TestCase):
    def test_another_order_of_the_decisions_is_not_drawn(self):
        source = draw_admission.SOURCE.read_text()
        with self.assertRaises(SystemExit):
            draw_admission.draw(source.replace("return Decision::kWaitTurn", "return Decision::kWaitSoft"))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Opens pages of timelines in a headless Chromium and uses them as people do.

usage: browser_test.py PROGRAM_THAT_WRITES_THE_SAMPLES
Ends with 77 (left out) where there is no Chromium.
"""

import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

import browser

BLOCKS = """(() => {
  const [begin, length, bytes] = view.pool.blocks;
  const time = view.picked.time;
  return [...begin.keys()].filter((i) => begin[i] <= time && time < begin[i] + length[i])
    .map((i) => bytes[i]).sort((a, b) => b - a);
})()"""


def colours_of(png):
    """Returns how many different rows of pixels a PNG has; a blank one has one or two."""
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width = struct.unpack(">I", png[at + 8:at + 12])[0]
            depth = {2: 3, 6: 4}[png[at + 17]]
        elif kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    raw = zlib.decompress(data)
    row = width * depth + 1
    return len({raw[i:i + row] for i in range(0, len(raw), row)})


PATIENCE = 20  # seconds until what an input leads to has to show


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-pages-")
        subprocess.run([SAMPLES, cls.folder.name], check=True)
        cls.page = browser.Browser(CHROMIUM)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.folder.cleanup()

    def open(self, name, **options):
        self.page.open(f"{self.folder.name}/{name}.html", **options)

    def tearDown(self):
        self.assertEqual(self.page.complaints, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith(("file:", "data:"))], [])
        self.assertLessEqual(len([url for url in self.page.requests if url.startswith("file:")]), 1)

    def eventually(self, check):
        """Calls `check` until it fails no more: a busy browser takes its time with an input."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return check()
            except AssertionError:
                if time.monotonic() > until:
                    raise
            self.page.settle()

    def range(self):
        return self.page.evaluate("view.range")

    def length(self):
        return self.page.evaluate("view.range[1] - view.range[0]")

    def place(self, share):
        """A point in the memory picture."""
        return self.page.evaluate(f"""(() => {{
            const box = byId('memory').getBoundingClientRect(), area = view.area();
            return [box.left + area.x + area.w * {share}, box.top + area.h / 2];
        }})()""")

    def test_every_page_opens_without_a_complaint_or_a_request(self):
        for name in ("unbounded", "barrier", "throttled", "failing", "empty"):
            self.open(name)
            self.assertEqual(self.page.complaints, [], name)
            self.tearDown()

    def test_is_not_blank_in_dark_and_light_and_on_a_telephone(self):
        pictures = set()
        for scheme in ("light", "dark"):
            for width, height in ((1280, 900), (390, 844)):
                self.open("failing", width=width, height=height, scheme=scheme)
                picture = self.page.picture(f"{self.folder.name}/picture.png")
                self.assertGreater(colours_of(picture), 100)
                pictures.add(picture)
                wide = self.page.evaluate("document.documentElement.scrollWidth")
                self.assertLessEqual(wide, width, "the page has to be moved sideways")
        self.assertEqual(len(pictures), 4)

    def test_keys_zoom_and_move(self):
        self.open("throttled")
        self.page.evaluate("byId('timeline').focus()")
        whole = self.range()
        self.page.key("+")
        self.eventually(lambda: self.assertAlmostEqual(self.length(), (whole[1] - whole[0]) / 2, delta=2))
        half = self.range()
        self.page.key("ArrowRight")
        self.eventually(lambda: self.assertGreater(self.range()[0], half[0]))
        self.page.key("ArrowLeft")
        self.page.key("-")
        self.eventually(lambda: self.assertEqual(self.range(), whole))
        self.page.key("+")
        self.eventually(lambda: self.assertLess(self.length(), whole[1]))
        self.page.key("0")
        self.eventually(lambda: self.assertEqual(self.range(), whole))
        self.page.key("ArrowRight", shift=True)
        self.page.key("Enter")
        self.eventually(lambda: self.assertAlmostEqual(
            self.page.evaluate("view.picked?.time ?? -1"), self.page.evaluate("view.cursor ?? -9"), delta=1))

    def test_dragging_and_the_wheel_zoom(self):
        self.open("throttled")
        whole = self.range()
        left, y = self.place(0.25)
        right, _ = self.place(0.5)
        self.page.drag(left, y, right)
        self.eventually(lambda: self.assertAlmostEqual(self.range()[0] / whole[1], 0.25, delta=0.02))
        self.eventually(lambda: self.assertAlmostEqual(self.range()[1] / whole[1], 0.5, delta=0.02))
        begin, end = self.range()
        self.page.mouse("mouseWheel", left, y, deltaX=0, deltaY=-100)
        self.eventually(lambda: self.assertLess(self.length(), 0.9 * (end - begin)))
        self.eventually(self.check_that_the_picture_shows_the_range)

    def check_that_the_picture_shows_the_range(self):
        shown = self.page.evaluate("view.memory.graph.xAxisRange().map((t) => t * 1e9)")
        for mine, its in zip(self.range(), shown):
            self.assertAlmostEqual(mine, its, delta=5)

    def test_a_click_lists_the_holders_of_that_moment(self):
        self.open("throttled")
        x, y = self.place(0.6)
        self.page.click(x, y)
        whole = self.range()[1]
        self.eventually(lambda: self.assertAlmostEqual(
            self.page.evaluate("view.picked?.time ?? -1") / whole, 0.6, delta=0.01))
        expected = self.page.evaluate(BLOCKS)
        self.assertGreater(len(expected), 2)
        listed = self.page.evaluate(
            "[...byId('holders').tBodies[0].rows].filter((row) => !row.classList.contains('total'))"
            ".map((row) => Number(row.cells[0].dataset.value))")
        self.assertEqual(listed, expected[:20])
        self.assertIn(f"{len(expected)} blocks", self.page.evaluate("byId('holders-when').textContent"))

    def test_hovering_tells_time_values_and_batch(self):
        self.open("throttled")
        x, y = self.place(0.5)
        self.page.mouse("mouseMoved", x, y)
        self.eventually(lambda: self.assertRegex(
            self.page.evaluate("byId('tooltip').textContent"), r"s\n.* held of .*reserved"))
        self.eventually(lambda: self.assertRegex(
            self.page.evaluate("byId('readout').textContent"), r"batches in flight"))

    def test_a_column_sorts_and_totals_stay_last(self):
        self.open("throttled")
        head = "document.querySelector('#task-tables th:nth-child(4) button')"
        totals = ("[...document.querySelector('#task-tables table').tBodies[0].rows]"
                  ".map((row) => [row.cells[0].textContent, Number(row.cells[3].dataset.value)])")
        self.page.evaluate(f"{head}.click()")
        down = self.page.evaluate(totals)
        self.page.evaluate(f"{head}.click()")
        up = self.page.evaluate(totals)
        self.assertEqual(down[-1][0], "Totals")
        self.assertEqual(up[-1][0], "Totals")
        self.assertEqual([row[1] for row in down[:-1]], sorted((row[1] for row in up[:-1]), reverse=True))
        self.assertEqual(sum(row[1] for row in down[:-1]), down[-1][1])

    def test_the_costliest_barrier_is_said_above_the_table(self):
        self.open("barrier")
        self.assertRegex(self.page.evaluate("byId('first-barrier').innerText"),
                         r"^The costliest: trainer/loop\.py:88 read \d+ times, .* of device idle after it\.$")
        self.open("throttled")
        self.assertEqual(self.page.evaluate("byId('first-barrier').innerText"), "")

    def test_the_stack_can_be_chosen_and_adds_up(self):
        self.open("throttled")
        sums = "view.memory.rows().map((row) => row.slice(1).reduce((a, b) => a + b, 0))"
        by_label = self.page.evaluate(sums)
        for keying in ("1", "2"):
            self.page.evaluate(f"byId('keying').value = '{keying}'; byId('keying').dispatchEvent(new Event('change'))")
            self.assertEqual(self.page.evaluate(sums), by_label)

    def test_names_that_mean_harm_do_none(self):
        self.open("harmful")
        self.assertEqual(self.page.evaluate("document.title"), "harmful")
        self.assertEqual(self.page.evaluate("document.images.length"), 0)
        self.assertEqual(self.page.evaluate("document.scripts.length"), 3)
        self.assertIn("</script>", self.page.evaluate("document.body.innerText"))
        self.assertFalse(self.page.evaluate("byId('chooser').hidden"))
        self.page.evaluate("byId('process').value = '1'; byId('process').dispatchEvent(new Event('change'))")
        shown = "view.pool ? data.processes.indexOf(view.process) : -1"  # a process is unpacked first
        self.eventually(lambda: self.assertEqual(self.page.evaluate(shown), 1))
        x, y = self.place(0.5)
        self.page.click(x, y)
        self.assertEqual(self.page.evaluate("document.title"), "harmful")

    def test_a_job_of_many_ranks_is_summed_up_above_its_picture(self):
        self.open("ranks")
        overview = self.page.evaluate("byId('overview').textContent").splitlines()
        self.assertEqual(len(overview), 65)
        self.assertTrue(overview[0].startswith("64 processes:"), overview[0])
        self.assertLess(self.page.evaluate("byId('timeline').getBoundingClientRect().top"), 500)
        self.page.evaluate("byId('overview').focus()")
        self.assertEqual(self.page.evaluate("document.activeElement.id"), "overview")  # so keys scroll it
        self.assertTrue(self.page.evaluate("byId('overview').scrollHeight > byId('overview').clientHeight"))

    def test_prints(self):
        self.open("failing", scheme="dark")
        self.assertGreater(len(self.page.pdf()), 20_000)

    def test_everything_has_a_name_for_those_who_hear_it(self):
        self.open("failing")
        nameless = self.page.evaluate(
            "[...document.querySelectorAll('button, select, #lanes, [role=img], [role=group]')].filter((one) => "
            "!(one.getAttribute('aria-label') || one.textContent.trim() && one.tagName === 'BUTTON' || one.labels?.length))"
            ".map((one) => one.outerHTML)")
        self.assertEqual(nameless, [])


if __name__ == "__main__":
    CHROMIUM = browser.find()
    if CHROMIUM is None:
        print("left out: there is no chromium here, which tools/setup installs")
        sys.exit(77)
    SAMPLES = sys.argv.pop(1)
    unittest.main()

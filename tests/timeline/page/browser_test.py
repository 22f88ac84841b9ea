#!/usr/bin/env python3
"""Opens pages of timelines in a headless Chromium and uses them as people do. One long file, since
every case drives the same browser.

usage: browser_test.py PROGRAM_THAT_WRITES_THE_SAMPLES
Exits with 77 (left out) if there is no Chromium.
"""

import base64
import json
import os
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


class Drawn:
    """The pixels of a chart with its layers combined: `at(x, y)` is red, green, blue, opacity."""

    def __init__(self, page, place):
        self.width, self.height, data = page.evaluate(f"""(() => {{
            const layers = [...document.querySelectorAll('#{place} canvas')];
            const whole = document.createElement('canvas');
            [whole.width, whole.height] = [layers[0].width, layers[0].height];
            const context = whole.getContext('2d');
            for (const layer of layers) context.drawImage(layer, 0, 0);
            const bytes = context.getImageData(0, 0, whole.width, whole.height).data;
            let text = '';
            for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
            return [whole.width, whole.height, btoa(text)];
        }})()""")
        self.data = base64.b64decode(data)

    def at(self, x, y):
        place = 4 * (int(y) * self.width + int(x))
        return self.data[place:place + 4]

    def is_near(self, x, y, colour, by=24):
        """Whether a pixel is opaque, more or less, and of that colour."""
        *own, opacity = self.at(x, y)
        return opacity > 150 and all(abs(a - b) <= by for a, b in zip(own, colour))


ORANGE = (0xD5, 0x5E, 0x00)  # the budget, and out of memory
BLUE = (0x00, 0x72, 0xB2)    # reserved, not held
QUIET = (0x57, 0x60, 0x6A)   # stalls, hardly opaque

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
        """Calls `check` until it passes: a busy browser reacts late to an input."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return check()
            except AssertionError:
                if time.monotonic() > until:
                    raise
            self.page.settle()

    def report(self, name):
        """Returns the output of `weir timeline report --json` for the only process of a page."""
        with open(f"{self.folder.name}/{name}.json", encoding="utf-8") as file:
            return json.load(file)["processes"][0]

    def rows(self, table):
        """The cells of a table: the number where a cell stands for one, else its text."""
        return self.page.evaluate(
            f"[...{table}.tBodies[0].rows].map((row) => [...row.cells].map((cell) => "
            "cell.dataset.value === undefined || cell.textContent === '' ? cell.textContent : Number(cell.dataset.value)))")

    def chart(self, name):
        """Returns where a chart draws: x(nanoseconds), y(bytes), and its area."""
        area = self.page.evaluate(f"""(() => {{
            const graph = view.{name}.graph;
            const [[left, right], [bottom, top]] = [graph.xAxisRange(), graph.yAxisRange()];
            return {{...graph.getArea(), left: left * 1e9, right: right * 1e9, bottom, top}};
        }})()""")
        x = lambda time: area["x"] + area["w"] * (time - area["left"]) / (area["right"] - area["left"])
        y = lambda size: area["y"] + area["h"] * (area["top"] - size) / (area["top"] - area["bottom"])
        return x, y, area

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
        for name in ("unbounded", "barrier", "throttled", "gaps", "failing", "empty"):
            self.open(name)
            self.assertEqual(self.page.complaints, [], name)
            self.tearDown()

    def test_is_not_blank_in_dark_and_light_and_on_a_telephone(self):
        pictures = set()
        for scheme in ("light", "dark"):
            for width, height in ((1280, 900), (390, 844)):
                self.open("failing", width=width, height=height, scheme=scheme)
                picture = self.page.picture()
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

    def test_the_barriers_are_those_of_the_report(self):
        self.open("gaps")
        expected = [[one["site"], one["call"], one["count"], one["waited_ns"], one["longest_ns"], one["idle_in_ns"],
                     one["idle_after_ns"]] for one in self.report("gaps")["barriers"]]
        self.assertEqual([row[:3] for row in expected],
                         [["trainer/loop.py:88", "read", 15], ["trainer/loop.py:99", "wait_all", 1]])
        self.assertEqual(self.rows("byId('barriers')"), expected)
        self.assertRegex(self.page.evaluate("byId('barriers').tBodies[0].rows[0].textContent"), "loop.py:88read15.* ms")

    def test_the_causes_of_idle_time_are_those_of_the_report_and_add_up(self):
        self.open("gaps")
        device = self.report("gaps")["devices"][0]
        rows = self.rows("document.querySelector('#idle-tables table')")
        expected = {cause: time for cause, time in device["idle_by_cause_ns"].items() if time}
        self.assertEqual(set(expected), {"loader", "barrier"})
        self.assertEqual({row[0]: row[1] for row in rows}, expected)
        self.assertEqual(sum(row[1] for row in rows), device["idle_ns"])
        self.assertEqual(sum(row[4] for row in rows), device["gaps"])
        self.assertEqual([row[1] for row in rows], sorted((row[1] for row in rows), reverse=True))
        self.assertIn("The program", " ".join(row[5] for row in rows))

    def holders(self, holding):
        """Returns the rows of a table of holders, as in a report."""
        freed = " (freed, awaiting the device)"
        rows = [[one["bytes"], one["key"], one["blocks"]] for one in holding["holders"] if one["blocks"]]
        rows += [[one["awaiting"], one["key"] + freed, ""] for one in holding["holders"] if one["awaiting"]]
        return sorted(rows, key=lambda row: -row[0])

    def test_the_holders_at_the_peak_and_at_the_out_of_memory_are_those_of_the_report(self):
        self.open("failing")
        report = self.report("failing")
        pool, [failure] = report["pools"][0], report["failures"]
        holdings = [pool["at_peak_by_label"], pool["at_peak_by_kind"], pool["at_peak_by_site"], failure["held"]]
        count = self.page.evaluate("document.querySelectorAll('#peak-tables table').length")
        self.assertEqual(count, len(holdings))
        for i, holding in enumerate(holdings):
            rows = [[size, key, "" if blocks == "" else int(blocks)] for size, key, blocks in
                    self.rows(f"document.querySelectorAll('#peak-tables table')[{i}]")]
            self.assertEqual(sorted(rows, key=lambda row: -row[0]), rows, "the largest first")
            self.assertCountEqual(rows, self.holders(holding))
            self.assertEqual(sum(row[0] for row in rows), holding["allocated"] + holding["awaiting"])
        self.assertEqual(holdings[0]["allocated"] + holdings[0]["awaiting"], pool["peak_held"])
        peak, oom = self.page.evaluate("[...document.querySelectorAll('#peak-tables h3')].map((one) => one.textContent)")
        self.assertRegex(peak, r"Peak of device: 102 MiB at 34\.4 ms")
        self.assertEqual((failure["label"], failure["site"], failure["batch"]), ("too large", "model.py:99", 31))
        self.assertRegex(oom, r"Out of memory at .*: 128 MiB for too large, asked for at model\.py:99, in batch 31$")

    def test_the_budget_is_a_dashed_line_and_an_out_of_memory_a_mark(self):
        self.open("failing")
        report = self.report("failing")
        drawn = Drawn(self.page, "memory")
        x, y, area = self.chart("memory")

        def share_of_row(top):  # within 1 pixel, since a line is two of them wide
            columns = range(int(area["x"]) + 2, int(area["x"] + area["w"]) - 2)
            return sum(any(drawn.is_near(column, top + by, ORANGE) for by in (-1, 0, 1)) for column in columns) / len(columns)

        budget = y(report["summary"]["budget"])
        self.assertGreater(share_of_row(budget), 0.5)
        self.assertLess(share_of_row(budget), 0.85, "it is dashed")
        self.assertLess(share_of_row(budget + 15), 0.1)

        def share_of_column(left):
            lines = range(int(area["y"]) + 2, int(area["y"] + area["h"]) - 2)
            return sum(any(drawn.is_near(left + by, line, ORANGE) for by in (-1, 0, 1)) for line in lines) / len(lines)

        failed = x(report["failures"][0]["at_ns"])
        self.assertGreater(share_of_column(failed), 0.9)
        self.assertLess(share_of_column(failed - 20), 0.1)

    def test_stalls_are_shaded_for_as_long_as_they_took(self):
        """Above the held memory there are only shades and the lines of the grid."""
        for name in ("gaps", "throttled", "unbounded"):
            self.open(name)
            report = self.report(name)
            drawn = Drawn(self.page, "memory")
            _, _, area = self.chart("memory")
            columns = range(int(area["x"]) + 1, int(area["x"] + area["w"]) - 1)
            shades = 0
            for x in columns:
                *colour, opacity = drawn.at(x, area["y"] + 3)
                if opacity < 60 and all(abs(a - b) < 30 for a, b in zip(colour, QUIET)):
                    shades += opacity / (0.13 * 255)  # of one that lasts for the whole pixel
            took = report["summary"]["stalls"]["all"]["total_ns"] / self.length()
            self.assertAlmostEqual(shades / len(columns), took, delta=0.05, msg=name)

    def test_fragmentation_is_drawn_as_large_as_it_was(self):
        self.open("gaps")
        rows = self.page.evaluate("view.unused.rows()")
        x, y, area = self.chart("unused")
        size = sum((after[0] - row[0]) * 1e9 * (row[1] + row[2]) for row, after in zip(rows, rows[1:]))
        expected = size / ((area["right"] - area["left"]) * (area["top"] - area["bottom"]))
        self.assertGreater(expected, 0.1)
        drawn = Drawn(self.page, "unused")
        lines = range(int(area["y"]), int(area["y"] + area["h"]))
        columns = range(int(area["x"]), int(area["x"] + area["w"]))
        blue = sum(drawn.is_near(column, line, BLUE, 60) for line in lines for column in columns)
        self.assertAlmostEqual(blue / (len(lines) * len(columns)), expected, delta=0.03)
        pool = self.report("gaps")["pools"][0]
        self.assertEqual(max(row[1] for row in rows), pool["most_unused"])
        words = self.page.evaluate("byId('unused-words').textContent")
        for share in ("fragmentation_at_peak", "fragmentation_of_held", "unused_share", "rounding_share"):
            self.assertIn(f"{100 * pool[share]:.1f}%", words)
        self.assertEqual(self.page.evaluate("byId('unused-legend').innerText").split("\n"),
                         ["reserved, not held", "lost to rounding"])

    def test_a_page_of_a_million_events_is_small_and_works(self):
        self.assertGreaterEqual(self.report("large")["summary"]["events"], 1_000_000)
        self.assertLessEqual(os.path.getsize(f"{self.folder.name}/large.html"), 3 << 20)
        self.open("large")  # tearDown looks at what it complained of and asked for
        self.assertGreater(colours_of(self.page.picture()), 100)
        whole = self.length()
        self.page.evaluate("byId('timeline').focus()")
        for _ in range(12):
            self.page.key("+")
        self.eventually(lambda: self.assertAlmostEqual(self.length() / whole, 1 / 4096, delta=1e-6))
        self.eventually(self.check_that_the_picture_shows_the_range)
        x, y = self.place(0.5)
        self.page.click(x, y)
        self.eventually(lambda: self.assertGreater(self.page.evaluate("byId('holders').tBodies[0].rows.length"), 2))

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

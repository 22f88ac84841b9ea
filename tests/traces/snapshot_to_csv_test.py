"""Tests tools/replay/read/snapshot_to_csv.py, under the named root, with hand-made snapshots."""

import gzip
import io
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)) / "tools" / "replay" / "read" / "snapshot_to_csv.py"
MIB = 1 << 20


def entry(action, address, size=512, stream=0):
    return {"action": action, "addr": address, "size": size, "stream": stream, "frames": []}


def freed(address, size=512, stream=0):
    return [entry("free_requested", address, size, stream), entry("free_completed", address, size, stream)]


def block(address, asked, state="active_allocated"):
    return {"address": address, "size": -(-asked // 512) * 512, "requested_size": asked, "state": state}


def segment(*blocks, stream=0, **more):
    return {"address": blocks[0]["address"], "total_size": 2 * MIB, "stream": stream,
            "blocks": list(blocks), **more}


class SnapshotToCsv(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def run_on(self, content, *words, out="out.csv"):
        (self.at / "in.pickle").write_bytes(content)
        return subprocess.run([sys.executable, "-B", TOOL, self.at / "in.pickle", self.at / out, *words],
                              capture_output=True, text=True, check=False)

    def rows(self, *traces, segments=(), words=()):
        """Returns the lines made from a snapshot, and the message about it."""
        content = pickle.dumps({"segments": list(segments), "device_traces": list(traces)})
        done = self.run_on(content, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        header, *lines = (self.at / "out.csv").read_text().splitlines()
        self.assertEqual(header, "buffer,start,end,size,stream")
        return lines, done.stderr

    def refused(self, content, *said, words=()):
        done = self.run_on(content, *words, out="refused.csv")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for text in (str(self.at / "in.pickle"), *said):
            self.assertIn(text, done.stderr)
        self.assertFalse((self.at / "refused.csv").exists())

    def refused_trace(self, trace, *said):
        self.refused(pickle.dumps({"segments": [], "device_traces": [trace]}), *said)

    def test_numbers_events_and_tells_buffers_of_one_address_apart(self):
        lines, said = self.rows([
            entry("segment_alloc", 0x1000, 2 * MIB), entry("alloc", 0x1000, 700), *freed(0x1000, 700),
            entry("alloc", 0x1000, 300), entry("alloc", 0x2000, 100), *freed(0x1000, 300)])
        self.assertEqual(lines, ["0,0,1,700,0", "1,2,4,300,0", "2,3,5,100,0"])
        self.assertIn("3 buffers, at most 700 bytes", said)
        self.assertIn("1 entries that neither", said)

    def test_ends_a_buffer_where_its_free_is_asked_for(self):
        ask, complete = freed(0x1000)
        lines, _ = self.rows([entry("alloc", 0x1000), ask, entry("alloc", 0x2000), complete,
                              entry("alloc", 0x1000, 9), *freed(0x2000)])
        self.assertEqual(lines, ["0,0,1,512,0", "1,2,4,512,0", "2,3,5,9,0"])

    def test_takes_the_completion_where_the_history_skips_the_asking(self):
        lines, _ = self.rows([entry("alloc", 0x1000), entry("free_completed", 0x1000),
                              entry("alloc", 0x1000, 8), entry("free_completed", 0x1000, 8)])
        self.assertEqual(lines, ["0,0,1,512,0", "1,2,3,8,0"])

    def test_numbers_streams_as_they_come_up(self):
        lines, _ = self.rows([entry("alloc", 0x1000, 1, 94_000_000), entry("alloc", 0x2000, 2, 0),
                              entry("alloc", 0x3000, 3, 17), entry("alloc", 0x4000, 4, 94_000_000)])
        self.assertEqual([line.split(",")[-1] for line in lines], ["1", "0", "2", "1"])

    def test_puts_what_was_allocated_before_the_history_at_the_front(self):
        lines, said = self.rows(
            [entry("alloc", 0x1000, 10), *freed(0x5000, 50), entry("alloc", 0x5000, 51)],
            segments=[segment(block(0x1000, 10), block(0x1200, 99, "inactive"), block(0x1400, 77)),
                      segment(block(0x5000, 51)), segment(block(0x7000, 5, "active_pending_free"))])
        # The one that is freed, the one that is in use still, then the history's own.
        self.assertEqual(lines, ["0,0,3,50,0", "1,1,5,77,0", "2,2,5,10,0", "3,4,5,51,0"])
        self.assertIn("2 allocated before the history begins, 1 of them freed in it", said)

    def test_leaves_out_what_was_allocated_after_the_history(self):
        lines, said = self.rows([entry("alloc", 0x1000, 10), *freed(0x1000, 10)],
                                segments=[segment(block(0x1000, 600))])
        self.assertEqual(lines, ["0,0,1,10,0"])
        self.assertIn("1 allocated after the history ends, left out", said)

    def test_reads_old_blocks_that_have_neither_address_nor_asked_size(self):
        old = segment(block(0x1000, 1), block(0x1200, 2))
        for each in old["blocks"]:
            del each["address"], each["requested_size"]
        lines, _ = self.rows([entry("alloc", 0x9000, 3)], segments=[old])
        self.assertEqual(lines, ["0,0,3,512,0", "1,1,3,512,0", "2,2,3,3,0"])

    def test_leaves_out_allocations_of_no_bytes(self):
        lines, _ = self.rows([entry("alloc", 0x1000, 0), *freed(0x1000, 0), entry("alloc", 0x1000, 4)])
        self.assertEqual(lines, ["0,0,1,4,0"])

    def test_takes_the_only_device_with_history_and_asks_where_there_are_two(self):
        two = [[entry("alloc", 0x1000, 1)], [], [entry("alloc", 0x1000, 2)]]
        blocks = [segment(block(0x8000, 3), device=0), segment(block(0x8000, 4), device=2)]
        self.assertEqual(self.rows([], two[0])[0], ["0,0,1,1,0"])
        lines, _ = self.rows(*two, segments=blocks, words=("--device", "2"))
        self.assertEqual(lines, ["0,0,2,4,0", "1,1,2,2,0"])
        both = pickle.dumps({"segments": [], "device_traces": two})
        self.refused(both, "devices 0, 2", "--device")
        self.refused(both, "device 1", words=("--device", "1"))

    def test_writes_the_same_gzip_each_time(self):
        content = pickle.dumps({"segments": [], "device_traces": [[entry("alloc", 0x1000, 1)]]})
        for name in ("a.csv.gz", "b.csv.gz"):
            self.assertEqual(self.run_on(content, out=name).returncode, 0)
        one, other = ((self.at / name).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
        self.assertEqual(one, other)
        self.assertEqual(one[4:8], bytes(4))  # the time in gzip's head, RFC 1952
        self.assertEqual(gzip.decompress(one), b"buffer,start,end,size,stream\n0,0,1,1,0\n")

    def test_runs_nothing_that_a_pickle_names(self):
        mark = self.at / "mark"

        class Harm:
            def __reduce__(self):
                return (pathlib.Path.touch, (mark,))

        self.refused(pickle.dumps({"segments": [Harm()]}), "pathlib")
        self.assertFalse(mark.exists())
        out = io.BytesIO()
        pickler = pickle.Pickler(out)
        pickler.persistent_id = lambda each: "name" if each == "elsewhere" else None
        pickler.dump(["elsewhere"])
        self.refused(out.getvalue(), "outside of it")

    def test_refuses_what_is_no_snapshot(self):
        whole = pickle.dumps({"segments": [], "device_traces": [[entry("alloc", 1)]]})
        for content in (b"", b"no pickle\n", whole[:-10]):
            self.refused(content, "is not a whole pickle")
        self.refused(pickle.dumps([1]), "the snapshot", "has to be a dict")
        self.refused(pickle.dumps({"segments": []}), "'device_traces' is missing", "has to be a list")
        self.refused(pickle.dumps({"device_traces": [7], "segments": []}), "device_traces[0] is 7")
        self.refused(pickle.dumps({"device_traces": [[]], "segments": []}), "has no history")
        self.refused(pickle.dumps({"device_traces": [[entry("alloc", 1)]]}), "'segments' is missing")
        self.refused(pickle.dumps({"device_traces": [[entry("alloc", 1)]], "segments": [{"address": -1}]}),
                     "segments[0]: 'address' is -1")

    def test_refuses_entries_that_make_no_sense(self):
        self.refused_trace([3], "device_traces[0][0] is 3")
        self.refused_trace([entry("alloc", 1, size=-5)], "device_traces[0][0]", "'size' is -5", "from 0 on")
        self.refused_trace([entry("alloc", 1, size=True)], "'size' is True")
        self.refused_trace([entry("alloc", "1")], "'addr' is '1'")
        self.refused_trace([entry(None, 1)], "'action' is missing")
        self.refused_trace([entry("alloc", 4096)] * 2, "device_traces[0][1] allocates 0x1000",
                           "device_traces[0][0]")
        self.refused_trace([entry("free_requested", 4096)] * 2, "device_traces[0][1] frees 0x1000")

    def test_the_snapshot_is_not_replaced_by_the_csv(self):
        content = pickle.dumps({"segments": [], "device_traces": [[entry("alloc", 1)]]})
        (self.at / "in.pickle").write_bytes(content)
        (self.at / "hard.csv").hardlink_to(self.at / "in.pickle")
        for out in ("in.pickle", "hard.csv"):
            done = subprocess.run([sys.executable, "-B", TOOL, self.at / "in.pickle", self.at / out],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("is the same file", done.stderr)
        self.assertEqual((self.at / "in.pickle").read_bytes(), content)

    def test_help_that_cannot_be_printed_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([sys.executable, "-B", TOOL, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_names_the_file_that_cannot_be_read_or_written(self):
        done = self.run_on(pickle.dumps({"segments": [], "device_traces": [[entry("alloc", 1)]]}),
                           out="none/out.csv")
        self.assertEqual(done.returncode, 2)
        self.assertIn("none/out.csv: No such file", done.stderr)
        (self.at / "in.pickle").unlink()
        done = subprocess.run([sys.executable, "-B", TOOL, self.at / "in.pickle", self.at / "out.csv"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("in.pickle: No such file", done.stderr)


if __name__ == "__main__":
    unittest.main()

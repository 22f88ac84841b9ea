"""Tests tools/python/weir: `alone`, or `swapped-in` over an inside that records each call."""

import os
import sys
import threading
import unittest

import weir


class Alone(unittest.TestCase):
    def test_does_nothing(self):
        self.assertFalse(weir.active())
        with weir.batch("train") as began:
            self.assertFalse(began)
        self.assertIsNone(weir.memory_info())
        self.assertEqual(weir.trim(), 0)
        self.assertFalse(weir.set_budget(1 << 30))
        self.assertEqual(weir.settings(), {})
        with weir.timeline("run.json") as recording:
            self.assertFalse(recording)
        weir.free(weir.allocate(0))

    def test_has_no_memory(self):
        with self.assertRaisesRegex(MemoryError, "Weir is not swapped in"):
            weir.allocate(64)

    def test_lets_exceptions_through(self):
        with self.assertRaises(KeyError):
            with weir.batch("train"):
                raise KeyError("mine")


class Recorded(unittest.TestCase):
    def setUp(self):
        open(os.environ["WEIR_FAKE_CALLS"], "w").close()

    def calls(self):
        with open(os.environ["WEIR_FAKE_CALLS"]) as file:
            return file.read().splitlines()


class SwappedIn(Recorded):
    def test_is_active(self):
        self.assertTrue(weir.active())

    def test_batch_begins_and_ends(self):
        with weir.batch("train") as began:
            self.assertTrue(began)
            self.assertEqual(self.calls(), ["begin train"])
        self.assertEqual(self.calls(), ["begin train", "end"])

    def test_batch_has_a_kind_of_any_letters_or_none(self):
        with weir.batch("zug \u00e4\u20ac"), weir.batch():
            pass
        self.assertEqual(self.calls(), ["begin zug \u00e4\u20ac", "begin ", "end", "end"])

    def test_exception_ends_the_batch(self):
        with self.assertRaises(KeyError):
            with weir.batch("train"):
                raise KeyError("mine")
        self.assertEqual(self.calls(), ["begin train", "end"])

    def test_timeline_is_of_the_block(self):
        with weir.timeline("run.json") as recording:
            self.assertTrue(recording)
            self.assertEqual(self.calls(), ["timeline run.json"])
        with weir.timeline():
            pass
        self.assertEqual(
            self.calls(), ["timeline run.json", "timeline stop", "timeline ", "timeline stop"]
        )

    def test_batch_decorates_a_function(self):
        @weir.batch("step")
        def step(value):
            return value + 1

        self.assertEqual([step(1), step(2)], [2, 3])
        self.assertEqual(self.calls(), ["begin step", "end"] * 2)

    def test_threads_have_batches_of_their_own(self):
        def work():
            with weir.batch("other"):
                pass

        with weir.batch("train"):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        self.assertEqual(self.calls(), ["begin train", "begin other", "end", "end"])

    def test_other_threads_run_while_one_is_held_back(self):
        began = []

        def work():
            with weir.batch("held") as held:
                began.append(held)

        thread = threading.Thread(target=work)
        thread.start()
        while "begin held" not in self.calls():
            self.assertTrue(thread.is_alive())
        with weir.batch("another"):
            pass
        thread.join()
        self.assertEqual(began, [True])

    def test_memory_info_has_every_field(self):
        self.assertEqual(
            weir.memory_info(2),
            weir.MemoryInfo(
                total=800, budget=640, allocated=100, awaiting=20, cached=3, reserved=123, passed=50
            ),
        )
        self.assertEqual(self.calls(), ["memory 2"])

    def test_memory_info_of_no_device_is_none(self):
        self.assertIsNone(weir.memory_info(-1))

    def test_trim_tells_more_than_an_int_of_c_holds(self):
        self.assertEqual(weir.trim(-1), 5 << 32)
        self.assertEqual(self.calls(), ["trim -1"])

    def test_budget_is_set_for_one_device_or_all(self):
        self.assertTrue(weir.set_budget(5 << 32))
        self.assertTrue(weir.set_budget(1 << 20, device=-1))
        self.assertEqual(self.calls(), ["budget 0 21474836480", "budget -1 1048576"])

    def test_budget_that_is_none_is_not_asked_for(self):
        self.assertFalse(weir.set_budget(-1))
        self.assertFalse(weir.set_budget(1 << 64))
        self.assertEqual(self.calls(), [])

    def test_blocks_are_in_the_order_of_a_stream(self):
        class Stream:
            def __cuda_stream__(self):
                return (0, 8)

        address = weir.allocate(6 << 32, device=1, stream=7)
        weir.record_use(address, Stream())
        weir.free(address, device=1, stream=7)
        weir.free(weir.allocate(64))
        self.assertEqual(
            self.calls(),
            [
                "allocate 25769803776 block on 1 stream 7",
                "use block on -1 stream 8",
                "free block on 1 stream 7",
                "allocate 64 block on 0 stream 0",
                "free block on 0 stream 0",
            ],
        )

    def test_no_bytes_take_no_memory(self):
        self.assertEqual(weir.allocate(0), 0)
        weir.free(0)
        weir.record_use(0)
        with self.assertRaises(ValueError):
            weir.allocate(-1)
        self.assertEqual(self.calls(), [])

    def test_settings_are_taken_apart(self):
        self.assertEqual(
            weir.settings(),
            {
                "budget": weir.Setting("80%", "WEIR_BUDGET"),
                "summary": weir.Setting("a (1).json", "WEIR_SUMMARY"),
                "pool": weir.Setting("round", "default"),
            },
        )


class Refused(Recorded):
    """Swapped in, before CUDA is ready."""

    def test_says_so(self):
        self.assertTrue(weir.active())
        with weir.batch("train") as began:
            self.assertFalse(began)
        self.assertIsNone(weir.memory_info())
        self.assertEqual(weir.settings(), {})
        with self.assertRaisesRegex(MemoryError, "Weir has no 64 bytes on device 0"):
            weir.allocate(64)
        self.assertNotIn("end", self.calls())


if __name__ == "__main__":
    suites = {"alone": "Alone", "swapped-in": "SwappedIn", "refused": "Refused"}
    unittest.main(argv=[sys.argv[0], suites[sys.argv[1]]])

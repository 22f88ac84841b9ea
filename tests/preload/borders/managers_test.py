"""Tests weir.cupy and weir.rmm over fakes of CuPy and RMM: `alone`, `swapped-in` or `refused`, as weir_test.py.

weir.numba needs Numba, and is tried by tests/frameworks/with_numba_manager.py.
"""

import sys
import unittest

import cupy
import weir.cupy
import weir.rmm
import weir_test


class Alone(unittest.TestCase):
    def test_there_is_no_memory(self):
        with self.assertRaises(cupy.cuda.memory.OutOfMemoryError):
            weir.cupy.allocate(64)
        with self.assertRaises(MemoryError):
            weir.rmm.resource().allocate(64, 7)


class SwappedIn(weir_test.Recorded):
    def setUp(self):
        super().setUp()
        cupy.current.update(device=1, stream=cupy.cuda.Stream(7))

    def test_cupy_has_a_block_on_the_current_stream_and_device(self):
        pointer = weir.cupy.allocate(64)
        self.assertNotEqual(pointer.ptr, 0)
        self.assertEqual((pointer.mem.size, pointer.mem.device_id), (64, 1))
        self.assertEqual(self.calls(), ["allocate 64 block on 1 stream 7"])
        cupy.current.update(device=0, stream=cupy.cuda.Stream(8))
        del pointer
        self.assertEqual(self.calls()[1:], ["free block on 1 stream 7"])

    def test_cupy_keeps_the_stream_as_long_as_the_block(self):
        gone = []

        class Stream(cupy.cuda.Stream):
            def __del__(self):
                gone.append(self.ptr)

        cupy.current.update(stream=Stream(9))
        pointer = weir.cupy.allocate(64)
        cupy.current.update(stream=cupy.cuda.Stream(0))
        self.assertEqual(gone, [])
        del pointer
        self.assertEqual(gone, [9])
        self.assertIn("free block on 1 stream 9", self.calls())

    def test_cupy_has_arrays_without_elements(self):
        pointer = weir.cupy.allocate(0)
        self.assertEqual((pointer.ptr, pointer.mem.device_id), (0, 1))
        del pointer
        self.assertEqual(self.calls(), [])

    def test_rmm_frees_on_the_stream_that_it_names(self):
        resource = weir.rmm.resource(device=2)
        address = resource.allocate(64, 7)
        resource.deallocate(address, 64, 8)
        self.assertEqual(self.calls(), ["allocate 64 block on 2 stream 7", "free block on 2 stream 8"])


class Refused(unittest.TestCase):
    def test_out_of_memory_is_the_librarys_own(self):
        with self.assertRaises(cupy.cuda.memory.OutOfMemoryError) as raised:
            weir.cupy.allocate(64)
        self.assertEqual(raised.exception.args, (64, 0, 0))
        with self.assertRaisesRegex(MemoryError, "Weir has no 64 bytes on device 2"):
            weir.rmm.resource(device=2).allocate(64, 7)


if __name__ == "__main__":
    suites = {"alone": "Alone", "swapped-in": "SwappedIn", "refused": "Refused"}
    unittest.main(argv=[sys.argv[0], suites[sys.argv[1]]])

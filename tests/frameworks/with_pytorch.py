"""PyTorch's memory on the stand-in: with_pytorch.py FEATURE.

with_pytorch_graphs.py has graphs and pools, with_pytorch_processes.py several processes.
"""

import os
import sys
import tempfile
import threading

import torch

from feature import feature, main, of_the_cache, unavailable
from tensors import GPU, MIB, check_plug, choose_own_backend, filled, holds, is_native, second_device


@feature
def creation():
    assert torch.cuda.is_available()
    tensors = [filled(value, 1 + value % 5) for value in range(40)]
    assert all(holds(tensor, value) for value, tensor in enumerate(tensors))


@feature
def copies():
    one = filled(5)
    two = torch.empty_like(one)
    two.copy_(one)
    one.zero_()
    assert holds(two, 5) and holds(one, 0)
    pinned = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    pinned.copy_(two, non_blocking=True)
    torch.cuda.synchronize()
    assert bool((pinned == 5).all())


@feature
def frees():
    for value in range(200):
        filled(value % 200, 1 + value % 7)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == 0
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


@feature
def streams_and_record_stream():
    side = torch.cuda.Stream()
    for value in range(100):
        tensor = filled(value)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            copy = torch.empty_like(tensor)
            copy.copy_(tensor)
        tensor.record_stream(side)
        del tensor
        other = filled(255)
        side.synchronize()
        assert holds(copy, value) and holds(other, 255)


@feature
def events():
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    filled(1)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0


@feature
def snapshot():
    kept = filled(1, 30)
    segments = torch.cuda.memory_snapshot()
    assert sum(segment["allocated_size"] for segment in segments) >= 30 * MIB
    del kept


@feature
def history():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    filled(1, 30)
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    assert any(event["action"] == "alloc" for event in events)
    with tempfile.TemporaryDirectory() as folder:
        torch.cuda.memory._dump_snapshot(os.path.join(folder, "snapshot.pickle"))
    torch.cuda.memory._record_memory_history(enabled=None)


def check_snapshot(snapshot):
    """Raises AssertionError if PyTorch's memory viewer would not understand it."""
    for segment in snapshot["segments"]:
        address = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == address
            address += block["size"]
        assert address == segment["address"] + segment["total_size"]
        allocated = [b["size"] for b in segment["blocks"] if b["state"] == "active_allocated"]
        assert sum(allocated) == segment["allocated_size"]
    for trace in snapshot["device_traces"]:
        times = [event["time_us"] for event in trace]
        assert times == sorted(times)


def a_named_place():
    return torch.empty(3 * MIB - 100, dtype=torch.uint8, device=GPU)


@feature
def history_as_the_viewer_reads_it():
    before = filled(1, 5)
    torch.cuda.memory._record_memory_history(stacks="python")
    kept = a_named_place()
    small = torch.empty(100, dtype=torch.uint8, device=GPU)
    del small
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device=GPU)
    except torch.cuda.OutOfMemoryError:
        pass
    snapshot = torch.cuda.memory._snapshot()
    check_snapshot(snapshot)
    trace = [event for event in snapshot["device_traces"][0] if not event["action"].startswith("segment")]
    print([(event["action"], event["size"]) for event in trace])
    assert trace[2]["addr"] == trace[3]["addr"] == trace[1]["addr"]
    assert any(frame["name"] == "a_named_place" for frame in trace[0]["frames"])
    assert sum(segment["allocated_size"] for segment in snapshot["segments"]) == torch.cuda.memory_allocated()
    blocks = {block["address"]: block for segment in snapshot["segments"] for block in segment["blocks"]}
    frames = blocks[kept.data_ptr()]["frames"]
    assert any(frame["name"] == "a_named_place" for frame in frames)
    assert blocks[before.data_ptr()]["requested_size"] == 5 * MIB
    torch.cuda.memory._record_memory_history(enabled=None)
    assert torch.cuda.memory._snapshot()["device_traces"][0] == []


@feature
def history_while_threads_allocate():
    """Recording begins and ends, and Python's lock changes hands often, which context recorders take."""
    stop, faults = threading.Event(), []

    def work(first):
        try:
            held = []
            while not stop.is_set():
                first = first * 7919 % 299993
                held = [*held[-20:], torch.empty(1 + first, device=GPU)]
        except BaseException as error:
            faults.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(first,)) for first in range(1, 5)]
    for thread in threads:
        thread.start()
    for round_ in range(12):
        torch.cuda.memory._record_memory_history(max_entries=500)
        check_snapshot(torch.cuda.memory._snapshot())
        if round_ % 3 == 2:
            torch.cuda.memory._record_memory_history(enabled=None)
    stop.set()
    for thread in threads:
        thread.join(timeout=60)
    sys.setswitchinterval(before)
    assert not faults, faults


@feature
def allocations_in_a_profile():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        kept = torch.empty(8 * MIB, dtype=torch.uint8, device=GPU)
        del kept
    print(max(event.self_device_memory_usage for event in profile.key_averages()))


@feature
def statistics():
    torch.cuda.reset_peak_memory_stats()
    kept = filled(1, 30)
    assert torch.cuda.memory_allocated() >= 30 * MIB
    del kept
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() >= 30 * MIB
    assert torch.cuda.max_memory_reserved() >= 30 * MIB
    torch.cuda.memory_summary()
    if is_native():
        found = torch.cuda.memory_stats()
        for name in ("allocated_bytes.all.peak", "reserved_bytes.all.current", "segment.all.allocated", "num_ooms",
                     "num_alloc_retries", "inactive_split_bytes.all.current", "num_device_alloc", "num_device_free"):
            of_the_cache(name, found[name])


@feature
def out_of_memory_and_recovery():
    size = torch.cuda.mem_get_info()[0] // 4 // MIB * MIB
    kept = []
    try:
        for _ in range(1000):
            kept.append(torch.empty(size, dtype=torch.uint8, device=GPU))
    except torch.cuda.OutOfMemoryError:
        pass
    assert 3 <= len(kept) <= 4, len(kept)
    kept.clear()
    assert holds(filled(3, 100), 3)
    torch.empty(2 * size, dtype=torch.uint8, device=GPU)


@feature
def memory_fraction():
    total = torch.cuda.get_device_properties(GPU).total_memory
    torch.cuda.set_per_process_memory_fraction(0.25)
    assert holds(filled(3, 10), 3)
    try:
        torch.empty(total // 2, dtype=torch.uint8, device=GPU)
    except torch.cuda.OutOfMemoryError:
        return
    raise AssertionError("more than the fraction was given")


@feature
def memory_fraction_of_the_settings():
    try:
        torch.cuda.memory._set_allocator_settings("per_process_memory_fraction:0.25")
    except RuntimeError:
        unavailable("this version has no such setting")
    total = torch.cuda.get_device_properties(GPU).total_memory
    try:
        torch.empty(total // 2, dtype=torch.uint8, device=GPU)
    except torch.cuda.OutOfMemoryError:
        return
    raise AssertionError("more than the fraction was given")


@feature
def cache_given_back_for_a_larger_tensor():
    """PyTorch retries once it has released its cache: a free must make room at once."""
    mib = torch.cuda.mem_get_info()[0] // MIB
    kept = [torch.empty(mib // 8 * MIB, dtype=torch.uint8, device=GPU) for _ in range(6)]
    kept.clear()
    large = torch.empty(mib * 3 // 4 * MIB, dtype=torch.uint8, device=GPU)
    if is_native():
        of_the_cache(torch.cuda.memory_stats()["num_alloc_retries"])
    assert large.numel() > mib // 2 * MIB


@feature
def out_of_memory_observer():
    seen = []
    torch._C._cuda_attach_out_of_memory_observer(lambda device, size, total, free: seen.append((device, size)))
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device=GPU)
    except torch.cuda.OutOfMemoryError:
        print(seen)


@feature
def settings_of_the_cache():
    torch.cuda.memory._set_allocator_settings(
        "max_split_size_mb:64,garbage_collection_threshold:0.6,roundup_power2_divisions:4"
    )
    for value in range(60):
        filled(value, 1 + 7 * value % 90)
    if is_native():
        of_the_cache(torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated())


@feature
def memory_by_hand():
    pointer = torch.cuda.caching_allocator_alloc(3 * MIB)
    torch.cuda.caching_allocator_delete(pointer)
    storage = torch.empty(MIB, dtype=torch.uint8, device=GPU).untyped_storage()
    storage.resize_(40 * MIB)
    storage.resize_(0)
    torch.cuda.synchronize()
    print(torch.cuda.memory_allocated())


@feature
def pinned_memory():
    for round_ in range(20):
        pinned = torch.full((MIB * (1 + round_ % 3),), round_, dtype=torch.uint8, pin_memory=True)
        assert holds(pinned.to(GPU, non_blocking=True), round_)
    registered = torch.full((MIB,), 4, dtype=torch.uint8)
    runtime = torch.cuda.cudart()
    print(runtime.cudaHostRegister(registered.data_ptr(), MIB, 0), registered.is_pinned())
    assert holds(registered.to(GPU, non_blocking=True), 4)
    print(runtime.cudaHostUnregister(registered.data_ptr()))


@feature
def two_devices():
    other = second_device(unavailable)
    print(torch.cuda.can_device_access_peer(0, 1))
    for value in range(20):
        here, there = filled(value), filled(100 + value, device=other)
        crossed = here.to(other)
        here.copy_(there)
        assert holds(crossed, value) and holds(here, 100 + value)
    del here, there, crossed
    for device in (GPU, other):
        torch.cuda.synchronize(device)
        print(torch.cuda.memory_allocated(device))


@feature
def streams_of_two_devices():
    other = second_device(unavailable)
    streams = [torch.cuda.Stream(GPU), torch.cuda.Stream(other)]
    for value in range(50):
        with torch.cuda.stream(streams[0]):
            tensor = filled(value, 2)
            done = streams[0].record_event()
        streams[1].wait_event(done)
        with torch.cuda.stream(streams[1]):
            crossed = tensor.to(other, non_blocking=True)
        tensor.record_stream(streams[0])
        del tensor
        streams[1].synchronize()
        assert holds(crossed, value)


@feature
def many_streams():
    """PyTorch has 32 streams of each priority, and hands them out in turn."""
    kept = []
    for value in range(200):
        stream = torch.cuda.Stream(priority=-(value % 2))
        with torch.cuda.stream(stream):
            kept.append(filled(value))
    torch.cuda.synchronize()
    assert all(holds(tensor, value) for value, tensor in enumerate(kept))


@feature
def stream_of_somebody_else():
    raw = torch.cuda.Stream()
    stream = torch.cuda.ExternalStream(raw.cuda_stream)
    for value in range(30):
        with torch.cuda.stream(stream):
            tensor = filled(value, 3)
        raw.synchronize()
        assert holds(tensor, value)


@feature
def memory_info():
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    kept = torch.empty(64 * MIB, dtype=torch.uint8, device=GPU)
    assert free - torch.cuda.mem_get_info()[0] >= 64 * MIB
    del kept


@feature
def threads():
    failed = []

    def work(value):
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(50):
                    assert holds(filled(value, 2), value)
        except BaseException as error:
            failed.append(error)

    all_of_them = [threading.Thread(target=work, args=(value,)) for value in range(8)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    assert not failed, failed


@feature
def six_threads_that_free_for_each_other():
    """Each thread frees what another one made, on another stream."""
    failed, lists = [], [[] for _ in range(6)]

    def work(number):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for step in range(100):
                    lists[number].append(torch.empty(1 + 40000 * (step * 7 % 90), dtype=torch.uint8, device=GPU))
                    others = lists[(number + 1) % 6]
                    if step % 2 and others:
                        others.pop(0)
                    if step % 10 == number:
                        assert holds(filled(number), number)
        except BaseException as error:
            failed.append(error)

    all_of_them = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    assert not failed, failed
    lists.clear()
    torch.cuda.synchronize()
    found = torch.cuda.memory_stats()
    print(torch.cuda.memory_allocated(), found["allocation.all.current"], found["allocation.all.allocated"])


@feature
def pluggable_allocator():
    """Weir's own functions, as in docs/frameworks.md."""
    library = os.environ.get("LD_PRELOAD", "").split(":")[0]
    if not library:
        unavailable("an allocator of Weir's; without Weir there is none to plug in")
    choose_own_backend()
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        library, "weir_torch_alloc", "weir_torch_free"
    )
    torch.cuda.memory.change_current_allocator(allocator)
    tensors = [filled(value, 1 + value % 5) for value in range(40)]
    assert all(holds(tensor, value) for value, tensor in enumerate(tensors))


@feature
def compiled_with_reduced_overhead():
    unavailable("torch.compile makes kernels, and they need a GPU")


if __name__ == "__main__":
    main(check_plug)

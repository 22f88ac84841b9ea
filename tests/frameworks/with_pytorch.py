"""PyTorch's memory on the stand-in: with_pytorch.py FEATURE.

Tensors are filled on the host and copied, or set by zero_(): kernels need a GPU.
"""

import os
import subprocess
import sys
import tempfile

import torch
import torch.multiprocessing

from feature import feature, main, unavailable

MIB = 1 << 20
GPU = torch.device("cuda:0")


def filled(value, mib=1):
    return torch.full((mib * MIB,), value, dtype=torch.uint8).to(GPU)


def holds(tensor, value):
    return bool((tensor.cpu() == value).all())


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


def captured(pool=None):
    tensor = torch.zeros(MIB, dtype=torch.uint8, device=GPU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        inner = torch.empty_like(tensor)
        inner.copy_(tensor)
        out = torch.empty_like(inner)
        out.copy_(inner)
        del inner  # what lives on is the graph's, and cudaMallocAsync frees it after a replay alone
    return graph, tensor, out


@feature
def graphs_without_kernels():
    graph, tensor, out = captured()
    for value in (3, 4, 5):
        tensor.copy_(torch.full((MIB,), value, dtype=torch.uint8))
        graph.replay()
        torch.cuda.synchronize()
        assert holds(out, value)


@feature
def graphs_that_share_a_pool():
    pool = torch.cuda.graph_pool_handle()
    made = [captured(pool) for _ in range(3)]
    for value, (graph, tensor, out) in enumerate(made, 7):
        tensor.copy_(torch.full((MIB,), value, dtype=torch.uint8))
        graph.replay()
        torch.cuda.synchronize()
        assert holds(out, value)


@feature
def graph_trees_check_their_pool():
    """What torch.compile(mode="reduce-overhead") calls first, and a backend may not have."""
    graph, _, _out = captured()
    graph.replay()
    alive = torch._C._cuda_checkPoolLiveAllocations
    pool = graph.pool()
    out = set()
    try:
        alive(torch.cuda.current_device(), pool, out)
    except Exception as error:
        # The outputs live, so that "not all are named" is the right answer.
        assert "does not yet support" not in str(error), error


@feature
def private_pools():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        tensor = filled(9, 3)
    assert holds(tensor, 9)
    del tensor
    del pool
    torch.cuda.empty_cache()


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


def read_shared(tensor, answers):
    try:
        answers.put(int(tensor.cpu().max()))
    except BaseException as error:
        answers.put(repr(error))


@feature
def shared_with_a_second_process():
    context = torch.multiprocessing.get_context("spawn")
    answers = context.Queue()
    tensor = filled(7, 3)
    child = context.Process(target=read_shared, args=(tensor, answers))
    child.start()
    got = answers.get(timeout=100)
    child.join()
    assert got == 7, got


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
def memory_info():
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    kept = torch.empty(64 * MIB, dtype=torch.uint8, device=GPU)
    assert free - torch.cuda.mem_get_info()[0] >= 64 * MIB
    del kept


@feature
def expandable_segments():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    program = (
        "import torch\n"
        "kept = [torch.full((mib << 20,), mib, dtype=torch.uint8).cuda() for mib in range(1, 40)]\n"
        "assert all(bool((tensor.cpu() == mib).all()) for mib, tensor in enumerate(kept, 1))\n"
        "del kept[::2]\n"
        "torch.cuda.empty_cache()\n"
        "assert torch.cuda.get_allocator_backend() == 'native'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((1000,), index % 100, dtype=torch.uint8)


@feature
def workers_after_fork():
    before = filled(1)
    loader = torch.utils.data.DataLoader(
        Squares(), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context="fork"
    )
    batches = [batch.to(GPU, non_blocking=True) for batch in loader]
    assert len(batches) == 8 and holds(before, 1)
    assert all(bool((b.cpu()[0] == 8 * i % 100).all()) for i, b in enumerate(batches))


@feature
def threads():
    import threading

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
def pluggable_allocator():
    """Weir's own functions, as docs/frameworks.md has it. Without Weir there is none to plug in."""
    library = os.environ.get("LD_PRELOAD", "").split(":")[0]
    if not library:
        unavailable("an allocator of Weir's; without Weir there is none to plug in")
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
    main()

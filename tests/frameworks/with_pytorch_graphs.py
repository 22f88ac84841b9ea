"""PyTorch's graphs and pools on the stand-in: with_pytorch_graphs.py FEATURE. No kernels are in these graphs."""

import threading

import torch

from feature import feature, main, of_the_cache, unavailable
from tensors import GPU, MIB, check_plug, filled, holds, is_native, second_device


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


def replayed(graph, tensor, out, value):
    tensor.copy_(torch.full((MIB,), value, dtype=torch.uint8))
    graph.replay()
    torch.cuda.synchronize()
    return holds(out, value)


@feature
def graphs_that_share_a_pool():
    pool = torch.cuda.graph_pool_handle()
    made = [captured(pool) for _ in range(3)]
    assert all(replayed(*one, value) for value, one in enumerate(made, 7))


@feature
def graph_trees_check_their_pool():
    """torch.compile(mode="reduce-overhead") calls this first, and a backend may lack it."""
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
def private_pool_that_helps_out():
    """A tensor that does not fit takes the free memory of a pool that allows it."""
    pool = torch.cuda.MemPool(use_on_oom=True)
    free = torch.cuda.mem_get_info()[0]
    with torch.cuda.use_mem_pool(pool):
        tensor = torch.empty(free // 4 * 3, dtype=torch.uint8, device=GPU)
    del tensor
    assert torch.empty(free // 2, dtype=torch.uint8, device=GPU).numel() == free // 2


@feature
def graph_of_two_streams():
    tensor = torch.zeros(MIB, dtype=torch.uint8, device=GPU)
    side = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            inner = torch.empty_like(tensor)
            inner.copy_(tensor)
        torch.cuda.current_stream().wait_stream(side)
        out = torch.empty_like(tensor)
        out.copy_(inner)
        side.wait_stream(torch.cuda.current_stream())
        del inner  # on the stream that it is of, which has to be joined once more
        torch.cuda.current_stream().wait_stream(side)
    assert all(replayed(graph, tensor, out, value) for value in (3, 4, 5))


@feature
def graph_that_goes_gives_its_memory_back():
    graph, tensor, out = captured()
    assert replayed(graph, tensor, out, 3)
    del out, tensor
    graph.reset()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    print(torch.cuda.memory_allocated())
    if is_native():
        of_the_cache(torch.cuda.memory_reserved())
    again = captured()
    assert replayed(*again, 4)


@feature
def peaks_with_a_graph():
    """A step, and then the same step captured: the cache has nothing of the first while it serves the second."""
    def step(count=20):
        return sum(tensor.numel() for tensor in [torch.empty(3 * MIB, dtype=torch.uint8, device=GPU)
                                                 for _ in range(count)])

    def check(least, most):
        allocated = torch.cuda.max_memory_allocated()
        assert least <= allocated < most, (least, allocated, most)
        if is_native():
            reserved = torch.cuda.max_memory_reserved()
            assert allocated <= reserved, (allocated, reserved)

    most = step()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        step()
    check(most, 1.5 * most)
    torch.cuda.reset_peak_memory_stats()
    check(0, 1)
    least = step(5)
    check(least, most)


@feature
def broken_capture_and_recovery():
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    refused = None
    try:
        with torch.cuda.graph(graph, stream=stream):
            torch.empty(MIB, dtype=torch.uint8, device=GPU)
            torch.cuda.synchronize()
    except Exception as error:
        refused = type(error).__name__
    print(refused)
    del graph
    assert holds(filled(9, 30), 9)
    assert replayed(*captured(), 4)


def capture_beside_a_thread(mode):
    """Another thread allocates and frees segments during the capture."""
    failed, begun, ended = [], threading.Event(), threading.Event()

    def work():
        try:
            begun.wait(60)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for value in range(20):
                    kept = torch.empty((30 + value) * MIB, dtype=torch.uint8, device=GPU)
                    kept.zero_()
                    del kept
        except BaseException as error:
            failed.append(error)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    tensor = torch.zeros(MIB, dtype=torch.uint8, device=GPU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        begun.set()
        out = torch.empty_like(tensor)
        out.copy_(tensor)
        ended.wait(60)
    thread.join()
    assert not failed, failed
    assert replayed(graph, tensor, out, 5)


@feature
def capture_beside_a_thread_thread_local():
    capture_beside_a_thread("thread_local")


@feature
def capture_beside_a_thread_relaxed():
    capture_beside_a_thread("relaxed")


@feature
def graphs_on_two_devices():
    other = second_device(unavailable)
    for device in (GPU, other, GPU):
        with torch.cuda.device(device):
            tensor = torch.zeros(MIB, dtype=torch.uint8, device=device)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(device)):
                out = torch.empty_like(tensor)
                out.copy_(tensor)
            assert all(replayed(graph, tensor, out, value) for value in (3, 4, 5))


@feature
def memory_beside_a_graph():
    """Memory allocated between the replays is never the graph's."""
    graph, tensor, out = captured()
    kept = []
    for value in range(100):
        kept.append(filled(value, 1 + value % 3))
        assert replayed(graph, tensor, out, value)
    assert all(holds(one, value) for value, one in enumerate(kept))


@feature
def private_pool_and_its_snapshot():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = [filled(value, 11) for value in range(3)]
    print(sum(segment["total_size"] for segment in pool.snapshot()))
    assert all(holds(one, value) for value, one in enumerate(kept))


@feature
def private_pool_while_memory_is_short():
    pool = torch.cuda.MemPool()
    size = torch.cuda.mem_get_info()[0] // 4 // MIB * MIB
    with torch.cuda.use_mem_pool(pool):
        inside = torch.empty(2 * size, dtype=torch.uint8, device=GPU)
    try:
        torch.empty(3 * size, dtype=torch.uint8, device=GPU)
        raise AssertionError("a device gave more than it has")
    except torch.cuda.OutOfMemoryError:
        pass
    del inside, pool
    torch.cuda.empty_cache()
    torch.empty(3 * size, dtype=torch.uint8, device=GPU)


def expand_segments():
    if not is_native():
        unavailable("this allocator has no segments")
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")


@feature
def expandable_segments():
    expand_segments()
    kept = [filled(mib, mib) for mib in range(1, 30)]
    assert all(holds(tensor, mib) for mib, tensor in enumerate(kept, 1))
    del kept[::2]
    torch.cuda.empty_cache()
    assert all(holds(tensor, 2 * mib) for mib, tensor in enumerate(kept, 1))
    of_the_cache([segment["is_expandable"] for segment in torch.cuda.memory_snapshot()])
    of_the_cache(torch.cuda.memory_reserved())


@feature
def expandable_segments_and_graphs():
    expand_segments()
    kept = filled(7, 20)
    graph, tensor, out = captured()
    assert all(replayed(graph, tensor, out, value) for value in (3, 4))
    assert holds(kept, 7)
    graph.reset()


@feature
def expandable_segments_out_of_memory_and_recovery():
    expand_segments()
    size = torch.cuda.mem_get_info()[0] // 4 // MIB * MIB
    kept = []
    try:
        for _ in range(1000):
            kept.append(torch.empty(size, dtype=torch.uint8, device=GPU))
    except torch.cuda.OutOfMemoryError:
        pass
    assert 3 <= len(kept) <= 4, len(kept)
    kept.clear()
    torch.empty(2 * size, dtype=torch.uint8, device=GPU)


if __name__ == "__main__":
    main(check_plug)

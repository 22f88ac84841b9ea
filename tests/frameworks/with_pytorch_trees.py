"""PyTorch's CUDA-graph trees, and what they stand on, on the stand-in: with_pytorch_trees.py FEATURE.

Compiled functions only move and set memory, and take no tensor: their inputs would be copied by a kernel.
"""

import gc

import torch

from feature import feature, main
from tensors import GPU, MIB, check_plug, filled, holds


def allocated(step):
    torch.cuda.synchronize()
    print(step, torch.cuda.memory_allocated())


def moved(mib):
    zeros = torch.zeros(mib * MIB, dtype=torch.uint8, device=GPU)
    copy = torch.empty(mib * MIB, dtype=torch.uint8, device=GPU)
    copy.copy_(zeros)
    return zeros.clone(), copy, copy[1000:].clone()


@feature
def compiled_for_graphs():
    compiled = torch.compile(moved, backend="cudagraphs")
    for step in range(6):
        one, two, three = compiled(3)
        allocated(step)
        assert holds(one, 0) and holds(two, 0) and holds(three, 0)
        del one, two, three
        allocated(step)


@feature
def compiled_for_graphs_of_two_functions():
    """The second function's graph goes on in the pool of the first, whose results live."""
    first = torch.compile(moved, backend="cudagraphs")
    second = torch.compile(lambda: torch.zeros(5 * MIB, dtype=torch.uint8, device=GPU).clone(), backend="cudagraphs")
    for step in range(6):
        torch.compiler.cudagraph_mark_step_begin()
        results = first(2)
        other = second()
        allocated(step)
        beside = filled(step, 2)
        assert holds(results[1], 0) and holds(other, 0) and holds(beside, step)
        del results, other
    allocated("end")


@feature
def compiled_for_graphs_and_reset():
    for step in range(2):
        compiled = torch.compile(moved, backend="cudagraphs")
        for _ in range(4):
            compiled(4)
        allocated(step)
        del compiled
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
        allocated("reset")


def capture(pool, body):
    """Returns the graph of `body` in `pool`, and its results."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        results = body()
    return graph, results


def zeros(mib):
    return torch.zeros(mib * MIB, dtype=torch.uint8, device=GPU)


@feature
def frees_inside_a_capture():
    """What a capture frees can be its own memory, that of the pool, or a tensor from before it."""
    pool = torch.cuda.graph_pool_handle()
    before = filled(7, 3)

    def body():
        nonlocal before
        kept = []
        for mib in (1, 5, 2, 7):
            kept.append(zeros(mib).clone())
            zeros(mib)
        before = None
        del kept[::2]
        return kept

    graph, results = capture(pool, body)
    allocated("captured")
    for value in range(3):
        beside = [filled(value, mib) for mib in (1, 3, 5)]
        graph.replay()
        torch.cuda.synchronize()
        assert all(holds(one, value) for one in beside) and all(holds(one, 0) for one in results)
    del results, graph, beside
    torch.cuda.synchronize()
    allocated("freed")


@feature
def checkpoints_of_a_pool():
    """As CUDA-graph trees do: the pool goes back to what it was after a graph, and its tensors get another owner."""
    device = torch.cuda.current_device()
    pool = torch.cuda.graph_pool_handle()
    first, results = capture(pool, lambda: [zeros(3), zeros(5)])
    state = torch._C._cuda_getCheckpointState(device, pool)
    allocated("checkpoint")
    second, more = capture(pool, lambda: [zeros(4)])
    allocated("more")
    stale = [tensor.untyped_storage()._cdata for tensor in more]
    data = [tensor.data_ptr() for tensor in results]
    torch._C._cuda_setCheckpointPoolState(device, state, stale, [])
    allocated("back")
    for value in range(3):
        beside = filled(value, 4)
        first.replay()
        torch.cuda.synchronize()
        assert holds(beside, value) and all(holds(one, 0) for one in results)
    assert data == [tensor.data_ptr() for tensor in results]
    del more, second, results, first, beside
    torch.cuda.synchronize()
    allocated("freed")


@feature
def checkpoint_with_a_tensor_that_lives_again():
    """A checkpoint with a freed tensor, which a storage takes back."""
    device = torch.cuda.current_device()
    pool = torch.cuda.graph_pool_handle()
    first, [kept] = capture(pool, lambda: [zeros(3)])
    state = torch._C._cuda_getCheckpointState(device, pool)
    pointer = kept.data_ptr()
    storage = {"data_ptr": pointer, "nbytes": 3 * MIB, "device": GPU}
    print(torch._C._has_Standard_Deleter(kept.untyped_storage()._cdata))
    torch._C._free_And_Remove_DeleterFn(kept.untyped_storage()._cdata)
    allocated("freed")
    again = torch._C._construct_storage_from_data_pointer(storage["data_ptr"], storage["device"], storage["nbytes"])
    torch._C._cuda_setCheckpointPoolState(device, state, [], [again._cdata])
    allocated("back")
    first.replay()
    torch.cuda.synchronize()
    print(again.nbytes(), torch._C._has_Standard_Deleter(again._cdata))
    del again
    allocated("gone")


@feature
def pool_of_the_program():
    """Tensors of a MemPool, those beside it, and one that outlives the block of its pool."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = [filled(value, 3) for value in range(3)]
    outside = [filled(10 + value, 3) for value in range(3)]
    allocated("both")
    addresses = {tensor.data_ptr() for tensor in inside}
    found = [block["address"] for segment in pool.snapshot() for block in segment["blocks"]
             if block["state"] == "active_allocated"]
    assert set(found) == addresses
    with torch.cuda.use_mem_pool(pool):
        del inside[1]
        again = filled(4, 3)
    assert again.data_ptr() in addresses, "the pool's free memory serves the pool"
    assert all(holds(one, 10 + value) for value, one in enumerate(outside))
    assert holds(inside[0], 0) and holds(inside[1], 2) and holds(again, 4)
    del inside, outside, again, pool
    torch.cuda.empty_cache()
    allocated("gone")


if __name__ == "__main__":
    main(check_plug)

"""PyTorch in several processes on the stand-in: with_pytorch_processes.py FEATURE."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import torch.multiprocessing

from feature import feature, main, unavailable
from tensors import GPU, MIB, check_plug, filled, holds, is_native, second_device

SPAWN = torch.multiprocessing.get_context("spawn")


def in_a_second_process(function, *arguments):
    """Returns the result of `function` in a new process. Raises AssertionError with its exception."""
    answers = SPAWN.Queue()
    child = SPAWN.Process(target=answer, args=(answers, function, *arguments))
    child.start()
    given = answers.get(timeout=100)
    child.join()
    assert not isinstance(given, str), given
    return given


def answer(answers, function, *arguments):
    try:
        given = function(*arguments)
        check_plug()
        answers.put(given)
    except BaseException as error:
        answers.put(repr(error))


def values_of(tensors):
    return [int(tensor.cpu().max()) for tensor in tensors]


def written(tensor, value):
    tensor.copy_(torch.full_like(tensor, value, device="cpu"))
    torch.cuda.synchronize()
    return int(tensor.cpu().min())


@feature
def shared_with_a_second_process():
    assert in_a_second_process(values_of, [filled(7, 3)]) == [7]


@feature
def shared_parts_of_one_segment():
    """Small tensors share one segment of PyTorch's, and a view begins inside a tensor."""
    tensors = [torch.full((1000,), value, dtype=torch.uint8).to(GPU) for value in range(30)]
    tensors += [filled(200, 3), filled(100)[1000:]]
    assert in_a_second_process(values_of, tensors) == [*range(30), 200, 100]


@feature
def written_by_a_second_process():
    tensor = filled(1, 30)
    assert in_a_second_process(written, tensor, 9) == 9
    assert holds(tensor, 9)


@feature
def shared_and_freed_many_times():
    for value in range(3):
        assert in_a_second_process(values_of, [filled(value, 40)]) == [value]
        torch.cuda.ipc_collect()
        torch.cuda.empty_cache()
    assert holds(filled(9, 200), 9)


@feature
def shared_on_the_second_device():
    assert in_a_second_process(values_of, [filled(5, 3, second_device(unavailable))]) == [5]


def waited_for(handle):
    event = torch.cuda.Event.from_ipc_handle(GPU, handle)
    torch.cuda.current_stream().wait_event(event)
    event.synchronize()
    return event.query()


def sent(tensors, value, mib):
    tensors.put(filled(value, mib))
    tensors.join()


@feature
def received_and_kept_beyond_its_senders_end():
    tensors = SPAWN.JoinableQueue()
    child = SPAWN.Process(target=sent, args=(tensors, 8, 5))
    child.start()
    tensor = tensors.get(timeout=100)
    assert holds(tensor, 8)
    child.kill()
    child.join()
    assert holds(tensor, 8)


@feature
def shared_with_pytorch_alone():
    """The other process runs without Weir, or with what it is here if that is nothing."""
    tensor = filled(7, 3)
    for name in ("LD_PRELOAD", "WEIR_TORCH"):
        os.environ.pop(name, None)
    assert in_a_second_process(values_of, [tensor]) == [7]


@feature
def shared_events():
    event = torch.cuda.Event(interprocess=True)
    event.record()
    torch.cuda.synchronize()
    assert in_a_second_process(waited_for, event.ipc_handle())


@feature
def shared_from_expandable_segments():
    if not is_native():
        unavailable("this allocator has no segments")
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    tensor = filled(7, 3)
    assert in_a_second_process(values_of, [tensor]) == [7]


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


def used(value):
    return [holds(filled(value, 30), value), torch.cuda.memory_allocated()]


@feature
def spawned_children_use_the_device():
    kept = filled(9, 3)
    print([in_a_second_process(used, value) for value in range(2)])
    assert holds(kept, 9)


@feature
def workers_after_spawn():
    before = filled(1)
    loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context="spawn")
    batches = [batch.to(GPU) for batch in loader]
    assert len(batches) == 8 and holds(before, 1)


def words_of(program, said="", **variables):
    """Returns what `program` prints in a new Python. AssertionError where it does not end with 0, or not with `said`
    among its errors."""
    done = subprocess.run([sys.executable, "-c", f"import torch\n{program}"], env=os.environ | variables, text=True,
                          capture_output=True, timeout=150, check=False)
    assert done.returncode == 0 and said in done.stderr, done.stderr
    return done.stdout


@feature
def ends_with_live_tensors():
    """Also in a cycle that only the end of the interpreter frees."""
    filled(1)
    print(words_of("""
kept = [torch.empty(1 << 20, device="cuda") for _ in range(20)]
kept.append(kept)
side = torch.cuda.Stream()
kept[0].record_stream(side)
print(torch.cuda.memory_allocated() >= 80 << 20)
"""))


@feature
def backend_that_the_user_chose():
    """Wins over the plug."""
    filled(1)
    program = "torch.empty(1 << 20, device='cuda'); print(torch.cuda.get_allocator_backend())"
    said = "allocates without Weir's plug" if os.environ.get("WEIR_TORCH") == "plug" else ""
    print(words_of(program, said, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync"))
    print(words_of(program, said, PYTORCH_NO_CUDA_MEMORY_CACHING="1"))


@feature
def plug_of_another_version():
    """Is not loaded: PyTorch allocates itself, and Weir says so."""
    filled(1)
    program = "print(int(torch.full((9,), 5, dtype=torch.uint8).to('cuda').cpu().sum()))"
    library = os.environ.get("LD_PRELOAD", "").split(":")[0]
    if os.environ.get("WEIR_TORCH") != "plug":
        print(words_of(program))
        return
    release = ".".join(torch.__version__.split(".")[:2])
    ending = "" if torch._C._GLIBCXX_USE_CXX11_ABI else "_cxx03"
    others = [path for path in pathlib.Path(library).parent.glob(f"libweir_torch_*{ending}.so")
              if path.name != f"libweir_torch_{release}{ending}.so" and path.stem.endswith("_cxx03") == bool(ending)]
    if not others:
        unavailable("only the plug of this version is built")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "libweir.so")
        shutil.copy(library, copy)
        shutil.copy(others[0], copy.with_name(f"libweir_torch_{release}{ending}.so"))
        print(words_of(program, "allocates without Weir's plug", LD_PRELOAD=str(copy)))


def used_in_a_child():
    """Whether a child of fork can use the device, which this process has not used yet."""
    child = os.fork()
    if child == 0:
        good = False
        try:
            held = holds(filled(3, 30), 3)
            check_plug()
            good = held
        finally:
            os._exit(0 if good else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@feature
def children_of_fork_that_use_the_device_first():
    assert used_in_a_child() and used_in_a_child()
    assert holds(filled(4), 4)


@feature
def children_of_fork_after_devices_were_counted():
    """With NVML, so that CUDA is not initialized, as in servers that fork their workers."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    print(torch.cuda.is_available(), torch.cuda.device_count())
    if torch.cuda.is_initialized():
        unavailable("PyTorch has initialized CUDA")
    assert used_in_a_child()


@feature
def a_child_of_fork_is_refused_once_the_device_was_used():
    kept = filled(1)
    child = os.fork()
    if child == 0:
        try:
            torch.empty(1, device=GPU)  # nothing on the host, whose threads are the parent's
        except RuntimeError:
            os._exit(3)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert holds(kept, 1)


if __name__ == "__main__":
    main(check_plug)

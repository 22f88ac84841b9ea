"""What the calls of tools/gpu-check run, as data, and the rule for the time of each part.

A call must end within eight minutes, so each step and each program has a share: seconds that it is sure of.
The shares of a call must fit into LIMIT_S (tools/gpu-check --dry-run).
"""

import dataclasses

LIMIT_S = 470  # eight minutes, but for what ends a step that would not end
MOST = 3  # a part that hangs ends at this many times its share


def allowance(share, left, after):
    """Returns the seconds that a part may take when `left` are left and later parts are sure of `after`. Each
    has its share and may use what earlier ones left over."""
    return max(0, min(MOST * share, max(share, left - after), left))


@dataclasses.dataclass(frozen=True)
class Step:
    """A command. A word in braces is a path, or the words of SIZES; `json` is the file for the step's figures.
    A step without a command is a method of run.py."""

    name: str
    share: int
    command: str = ""
    prints_figures: bool = False  # on standard output


_COMPARE = "{weir_gpu} train compare --device cuda --no-search --inputs "
_WIDE = "{weir_gpu} train wide --device cuda {wide} --timeline {timeline} --json {json} --precision "
# A refused call is no memory error, and tests provoke some.
_SANITIZE = "{sanitizer} --report-api-errors no --error-exitcode 99 --tool "

# From some to three times what an H100 took, in the order of a call.
STEPS = (
    Step("tests", 50, "{weir_gpu} test --gtest_output=json:{json} --gtest_filter=*-{own_step}{not_here}"),
    Step("compare_x1_drawn", 30, _COMPARE + "drawn {x1} --json {json}"),
    # One more run of each kind beside each of throttled's: some eight runs of a second.
    Step("compare_x1_ring", 40, _COMPARE + "ring {x1} --static --json {json}"),
    Step("compare_x16_drawn", 40, _COMPARE + "drawn {x16} --json {json}"),
    Step("compare_x16_ring", 40, _COMPARE + "ring {x16} --json {json}"),
    Step("bench", 15, "{weir_gpu} bench {small} --json {json}"),
    Step("wide_float32", 10, _WIDE + "float32"),
    Step("wide_tf32", 10, _WIDE + "tf32"),
    Step("facts", 15, "{weir_gpu} facts", prints_figures=True),
    Step("traces", 20, "{traces_with} {weir} replay {traces} --pool round:24,best_fit,paged --upstream cuda "
         "--no-search --json {json}"),
    Step("timeline", 8, "{weir_gpu} test --gtest_output=json:{json} --gtest_filter={own_step}"),
    Step("timeline_cost", 20),
    Step("timeline_programs", 25),
    Step("memcheck", 50, _SANITIZE + "memcheck {weir_gpu} test --gtest_filter=*-{own_step}:{held}{not_here}"),
    # cuBLAS's kernels are not ours and take many times the time of ours.
    Step("racecheck", 60,
         _SANITIZE + "racecheck {weir_gpu} test --gtest_filter=*-{own_step}:{held}:Gemm.*{not_here}"),
)  # fmt: skip
# The parts of calls that are no steps of the first one.
INFO, WARM_UP, PROGRAMS_STEP, REPORT = (
    Step("info", 25), Step("warm_up", 45), Step("programs", 380), Step("report", 10))  # fmt: skip
PROGRAMS_MARGIN = 5  # seconds of the programs' share for writing down their results

# A comparison is long enough that its start is a small part of it, and short enough that all pairs fit the limit.
# At 16 times the width each run reads back over a gigabyte of weights for comparison.
SIZES = {
    "x1": "--batches 2000",
    "x16": "--width-factor 16 --batches 40 --rounds 2",
    "small": "",
    "traces_with": "",
    "wide": "--batches 500 --readers 8",
    "cost": "--inputs drawn --batches 3000",
    "cost_pairs": "4",
    "programs": "--device cuda",
    "not_here": "",
    "own_step": "TimelineOnDevice.*",  # and under a sanitizer there is no CUPTI
    # Tests that hold a stream while they launch: under compute-sanitizer a launch may wait for its stream.
    # tests/support/held.hpp has the rule for their names.
    "held": "*WhileHeld.*",
}
# On the stand-in for a GPU (docs/standin.md). A real NCCL cannot use it.
STANDIN_SIZES = {
    **SIZES,
    "x1": "--small --batches 20 --rounds 1",
    "x16": "--small --width-factor 2 --batches 10 --rounds 1",
    "small": "--small",
    "traces_with": "env WEIR_STANDIN_ADDRESSES_ONLY=1",  # a replay touches no memory
    "wide": "--scale 0.001 --batches 5 --test-batches 1",
    "cost": "--inputs drawn --batches 5 --batch-size 16",
    "cost_pairs": "2",
    "programs": "--device cpu --small",
    "not_here": ":NcclOneRank.*",
}
# Without what takes most time there: kernels, whose suites run on the stand-in by themselves.
QUICK_SIZES = {**STANDIN_SIZES, "not_here": STANDIN_SIZES["not_here"] + ":Gemm.*:SoftmaxCrossEntropy.*:Dense.*"
               ":SparseLosses.*:Elementwise.*"}

# --- Programs that know nothing of Weir, in tools/gpu_check/programs -----------------------------

GIB = 1 << 30

# Settings that make a framework allocate in stream order. PyTorch reads the first name up to 2.8 and
# both later. Under Weir `weir run --allocator async` does it.
_TORCH = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_JAX = ("XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE")
ASYNC = {
    "torch": {name: "backend:cudaMallocAsync" for name in _TORCH},
    "jax": dict(zip(_JAX, ("cuda_async", "false"))),
    "cupy": {},
}
# The machine's variables that would override a setup.
NEVER = ("WEIR_ALLOCATOR", "WEIR_TORCH", "PYTORCH_NO_CUDA_MEMORY_CACHING", *_TORCH, *_JAX)


@dataclasses.dataclass(frozen=True)
class Setup:
    """One way to run a program. `before` are the words before it, as in a step's command."""

    name: str
    before: str = ""
    allocation: str = ""  # without Weir; empty: the framework's own; `async`: in stream order
    leave: int = 0  # bytes of the device left to it; 0: all
    environment: dict = dataclasses.field(default_factory=dict)
    arguments: str = ""
    copies: int = 1  # processes at once
    more: int = 0  # seconds beyond its program's


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    framework: str
    script: str
    setups: tuple
    seconds: int  # share of each run: a pessimistic guess
    at_once: bool = False  # all setups, in the time of one

    def share(self, setup):
        return self.seconds + setup.more


def shares(programs):
    return sum(one.seconds if one.at_once else sum(map(one.share, one.setups)) for one in programs)


def weir(budget="80%", way="--torch off"):
    return "{weir} run --library {library} --budget " + budget + " --json {summary} " + way + " --"


_IN_ORDER = "--allocator async"


def _four(in_order=""):
    """Returns setups with and without Weir, in both ways to allocate. Without Weir comes first."""
    return (
        Setup("plain"),
        Setup("weir", weir()),
        Setup("plain_async", allocation="async", arguments=in_order),
        Setup("weir_async", weir(way=_IN_ORDER), arguments=in_order),
    )


# For the program that must run out of memory: the same memory with Weir as without, and a little more without.
_CAP = 4 * GIB
_LEAVE = _CAP + GIB // 4
_CAPPED = weir(f"{_CAP}B", _IN_ORDER)

FIRST = (
    Program("torch_resnet", "torch", "torch_resnet.py", _four(), 18),
    Program("torch_gpt", "torch", "torch_gpt.py", (
        *_four(),
        Setup("weir_best_fit", weir(way=_IN_ORDER), environment={"WEIR_POOL": "best_fit"}),
        Setup("weir_pluggable", weir(), arguments="--allocator {library}"),
    ), 18),
    Program("torch_prefetch", "torch", "torch_prefetch.py", (
        Setup("enough"),
        Setup("plain", leave=_LEAVE),
        Setup("plain_async", leave=_LEAVE, allocation="async"),
        Setup("weir_async", _CAPPED, leave=_LEAVE),
        Setup("weir_batches", _CAPPED, leave=_LEAVE, environment={"WEIR_BATCH_RANGE": "batch"}),
    ), 25),
    Program("torch_shared", "torch", "torch_resnet.py", (
        Setup("plain"),
        Setup("weir_async", weir("10%", _IN_ORDER), copies=8, more=30),
    ), 18),
)  # fmt: skip

SECOND = (
    Program("torch_graphs", "torch", "torch_graphs.py", _four(), 18),
    Program("torch_workers", "torch", "torch_workers.py", _four(), 20),
    Program("cupy_loop", "cupy", "cupy_loop.py", _four("--async-pool"), 12),
    Program("jax_train", "jax", "jax_train.py", _four(), 20),
    Program("torch_compile", "torch", "torch_compile.py", _four()[:2], 45),
)

# With WEIR_LOG=info a line says that the plug is in use.
_LOG = {"WEIR_LOG": "info"}
_PLUGGED = (Setup("plain"), Setup("weir_plug", weir(way="--torch plug"), environment=_LOG))

PLUG = (
    Program("plug_resnet", "torch", "torch_resnet.py", _PLUGGED, 18),
    Program("plug_gpt", "torch", "torch_gpt.py", _PLUGGED, 18),
    Program("plug_graphs", "torch", "torch_graphs.py", _PLUGGED, 18),
    Program("plug_workers", "torch", "torch_workers.py", _PLUGGED, 20),
    Program("plug_compile", "torch", "torch_compile.py", _PLUGGED, 45),
    Program("plug_sharing", "torch", "torch_sharing.py", (*_PLUGGED, Setup("weir", weir())), 25),
    Program("plug_prefetch", "torch", "torch_prefetch.py", (
        Setup("enough"),
        Setup("weir_plug", weir(f"{_CAP}B", "--torch plug"), leave=_LEAVE, environment=_LOG),
    ), 25),
)  # fmt: skip

PROGRAMS = FIRST + SECOND + PLUG
CALLS = {"first": FIRST, "second": SECOND, "plug": PLUG}

# The step timeline_programs, in five ways at once, so none is timed. The page shows tensors, not PyTorch's segments.
_RECORD = "{weir} timeline record --library {library} --batch-range batch --allocator async -o {timeline} --"
RECORDED = Program("torch_timeline", "torch", "torch_timeline.py", (
    Setup("plain", arguments="--profile"),
    Setup("recorded", _RECORD),
    Setup("injected", environment={"WEIR_TIMELINE": "{timeline}", "CUDA_INJECTION64_PATH": "{inject}"}),
    Setup("inside", _RECORD, arguments="--profile"),
    Setup("outside", "{nsys} profile --trace=cuda --sample=none --cpuctxsw=none --force-overwrite=true "
          "--output {nsys_report} " + _RECORD),
), 17, at_once=True)  # fmt: skip


def call_parts(programs=None):
    """Returns the steps of a call: the first one, or one of programs."""
    return [INFO, *([WARM_UP, PROGRAMS_STEP] if programs else STEPS), REPORT]


def dry_run(limit):
    """Returns lines that add up each call, and whether all fit into `limit`."""
    lines, fits = [], True

    def add(title, parts, most, indent):
        nonlocal fits
        lines.extend(f"{indent}{name:<22} {seconds:4} s" for name, seconds in parts)
        total = sum(seconds for _, seconds in parts)
        lines.append(f"{indent}{title:<22} {total:4} s of {most}")
        fits = fits and total <= most

    for which in (None, *CALLS):
        lines.append("tools/gpu-check" + (f" --programs {which}" if which else ""))
        add("together", [(part.name, part.share) for part in call_parts(which)], limit, "  ")
        if which:
            parts = [(program.name, shares([program])) for program in CALLS[which]]
            add("together", parts, PROGRAMS_STEP.share - PROGRAMS_MARGIN, "    ")
    return lines, fits

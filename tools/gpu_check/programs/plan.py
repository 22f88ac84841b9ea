"""The plan: each program with its setups, and the time of each run.

Divided into three calls of `tools/gpu-check --programs`, FIRST, SECOND and PLUG, because the runs of a
call must fit into its time: see `allowance`.
"""

import dataclasses

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


def environment(machine, program, setup):
    """Returns the variables of a run on a machine with the variables `machine`."""
    variables = {name: value for name, value in machine.items() if name not in NEVER}
    if setup.allocation == "async" and not setup.weir:
        variables.update(ASYNC[program.framework])
    return {**variables, **setup.environment}


@dataclasses.dataclass(frozen=True)
class Setup:
    """One way to run a program."""

    name: str
    weir: bool = False
    allocation: str = ""  # empty: the framework's own; `async`: in stream order
    torch: str = "off"  # with Weir and the framework's own: `--torch`
    budget: str = "80%"
    leave: int = 0  # bytes of the device left to it; 0: all
    environment: dict = dataclasses.field(default_factory=dict)
    arguments: tuple = ()
    pluggable: bool = False
    copies: int = 1  # processes at once
    more: int = 0  # guaranteed seconds beyond its program's


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    framework: str
    script: str
    setups: tuple
    seconds: int  # guaranteed to each run: a pessimistic guess, never run on a GPU (unverified)

    def share(self, setup):
        return self.seconds + setup.more


# A run that hangs ends at this many times its share.
MOST = 3


def allowance(share, left, after):
    """Returns the seconds that a run may take when `left` are left of the call and later runs have
    `after` guaranteed. Each run has its share and may use what earlier ones left over.
    tools/gpu_check/shell/budget.sh has the same rule for steps."""
    return min(MOST * share, max(share, left - after), left)


def shares(programs):
    """Returns the sum of the shares of these programs' runs."""
    return sum(program.share(setup) for program in programs for setup in program.setups)


def _four(**more):
    """Returns setups with and without Weir, in both ways to allocate (with Weir: --allocator)."""
    return tuple(
        Setup(
            ("weir" if weir else "plain") + ("_async" if allocation else ""),
            weir=weir,
            allocation=allocation,
            arguments=tuple(more.get("async_arguments", ())) if allocation else (),
        )
        for allocation in ("", "async")
        for weir in (False, True)
    )


# For the program that must run out of memory: the same memory with Weir as without, and a little
# more without.
_CAP = 4 * GIB
_LEAVE = _CAP + GIB // 4
_CAPPED = {"weir": True, "budget": f"{_CAP}B", "leave": _LEAVE, "allocation": "async"}

FIRST = (
    Program("torch_resnet", "torch", "torch_resnet.py", _four(), seconds=18),
    Program(
        "torch_gpt",
        "torch",
        "torch_gpt.py",
        (
            *_four(),
            Setup(
                "weir_best_fit",
                weir=True,
                allocation="async",
                environment={"WEIR_POOL": "best_fit"},
            ),
            Setup("weir_pluggable", weir=True, pluggable=True),
        ),
        seconds=18,
    ),
    Program(
        "torch_prefetch",
        "torch",
        "torch_prefetch.py",
        (
            Setup("enough"),
            Setup("plain", leave=_LEAVE),
            Setup("plain_async", leave=_LEAVE, allocation="async"),
            Setup("weir_async", **_CAPPED),
            Setup("weir_batches", **_CAPPED, environment={"WEIR_BATCH_RANGE": "batch"}),
        ),
        seconds=25,
    ),
    Program(
        "torch_shared",
        "torch",
        "torch_resnet.py",
        (
            Setup("plain"),
            Setup("weir_async", weir=True, allocation="async", budget="10%", copies=8, more=30),
        ),
        seconds=18,
    ),
)

SECOND = (
    Program("torch_graphs", "torch", "torch_graphs.py", _four(), seconds=18),
    Program("torch_workers", "torch", "torch_workers.py", _four(), seconds=20),
    Program("cupy_loop", "cupy", "cupy_loop.py", _four(async_arguments=["--async-pool"]), seconds=12),
    Program("jax_train", "jax", "jax_train.py", _four(), seconds=20),
    Program(
        "torch_compile",
        "torch",
        "torch_compile.py",
        (Setup("plain"), Setup("weir", weir=True)),
        seconds=45,
    ),
)

# With WEIR_LOG=info a line says that the plug is in use.
_PLUG = {"weir": True, "torch": "plug", "environment": {"WEIR_LOG": "info"}}
_PLUGGED = (Setup("plain"), Setup("weir_plug", **_PLUG))

PLUG = (
    Program("plug_resnet", "torch", "torch_resnet.py", _PLUGGED, seconds=18),
    Program("plug_gpt", "torch", "torch_gpt.py", _PLUGGED, seconds=18),
    Program("plug_graphs", "torch", "torch_graphs.py", _PLUGGED, seconds=18),
    Program("plug_workers", "torch", "torch_workers.py", _PLUGGED, seconds=20),
    Program("plug_compile", "torch", "torch_compile.py", _PLUGGED, seconds=45),
    Program(
        "plug_sharing",
        "torch",
        "torch_sharing.py",
        (*_PLUGGED, Setup("weir", weir=True)),
        seconds=25,
    ),
    Program(
        "plug_prefetch",
        "torch",
        "torch_prefetch.py",
        (
            Setup("enough"),
            Setup("weir_plug", budget=f"{_CAP}B", leave=_LEAVE, **_PLUG),
        ),
        seconds=25,
    ),
)

PROGRAMS = FIRST + SECOND + PLUG
CALLS = {"first": FIRST, "second": SECOND, "plug": PLUG}

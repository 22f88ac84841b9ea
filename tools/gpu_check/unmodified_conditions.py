"""What the runs of a program of tools/gpu_check/programs must show: with Weir, without it, and recorded."""

def counted(n, thing):
    return f"{n} {thing}{'' if n == 1 else 's'}"


def size(count):
    """Formats bytes as `96 MiB`, `1.50 GiB` or `512 B`: exact in whole units, else three digits."""
    shift, unit = next(one for one in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B"))
                       if int(count) >> one[0] or one[0] == 0)  # fmt: skip
    value = count / (1 << shift)
    return f"{value:.{0 if value == int(value) or value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def named(objects, key, name):
    """Returns the first object with that name, or an empty one."""
    return next((one for one in objects if one[key] == name), {})


OUT_OF_MEMORY = 75  # as in programs/harness.py
LEAST_SERVED = 0.99  # share of the device memory that Weir could serve
MOST_OF_NATIVE = 1.01  # the time with the plug / without Weir
LEAST_PROFILED = 0.99  # kernels that torch.profiler sees beside a recording / alone
SHARING = 8  # processes on one GPU, as in plan.py
NO_PLUG = "there is no plug for it"  # tools/preload/hooks/torch_plug.cpp
# Weir cannot lay these out: a graph's allocations are its own nodes, and who maps memory by handles chooses the
# addresses (JAX's own allocators).
NOT_SERVABLE = ("modules", "contexts", "graphs", "mappable")
SETUPS = {
    "plain": "as it is",
    "enough": "as it is, enough memory",
    "plain_async": "in stream order",
    "weir": "with Weir",
    "weir_async": "with Weir, in stream order",
    "weir_best_fit": "with Weir, in stream order, pool best_fit",
    "weir_batches": "with Weir, in stream order, batches by NVTX",
    "weir_pluggable": "with Weir, pluggable allocator",
    "weir_plug": "with Weir's plug",
}


def title(run):
    return SETUPS.get(run["setup"], run["setup"])


def printed(run, key, otherwise=None):
    return (run.get("printed") or {}).get(key, otherwise) if run else otherwise


def run_outcome(run):
    if not run:
        return "not run"
    if run.get("exit_code") is None:
        return f"not run: {run.get('said', '')}"
    if run.get("stopped"):
        return "stopped at its limit"
    if (run["exit_code"], printed(run, "outcome")) in ((0, "finished"), (OUT_OF_MEMORY, "out of memory")):
        return printed(run, "outcome")
    return f"failed (exit {run['exit_code']})" + (run.get("said", "") and f": {run['said']}")


def finished(run):
    return run_outcome(run) == "finished"


def weir_figures(run):
    """Returns the figures of `weir run --json`, summed over the program's devices; empty without any."""
    devices = (run.get("summary") or {}).get("devices", [])
    passed = [one for device in devices for one in device["passed"]
              if one["counted"] and one["kind"] not in NOT_SERVABLE]  # fmt: skip
    if not devices:
        return {}
    pools = [device["pool"] for device in devices]
    held_back = [one for device in devices for one in (device["paced"], device["batches"])]  # launches and batches
    served = sum(device["served_bytes"] for device in devices)
    could = served + sum(one["sum_bytes"] for one in passed)
    return {
        "served_share": served / could if could else None,
        "peak_bytes": sum(pool["reserved_bytes"]["peak"] for pool in pools),
        "budget_bytes": sum(device["budget_bytes"] for device in devices),
        "waits": sum(pool["waits"] for pool in pools) + sum(one["count"] for one in held_back),
        "waited_seconds": sum(pool["waited_ns"] for pool in pools) / 1e9
        + sum(one["total_ns"] for one in held_back) / 1e9,
    }


def find(runs, setup):
    return named(runs, "setup", setup)


def with_weir(runs):
    return [run for run in runs if run["setup"].startswith("weir")]


def without(runs, run):
    return find(runs, "plain_async" if run["setup"].endswith("_async") else "plain")


def same_losses(one, other):
    return bool(printed(one, "losses")) and printed(one, "losses") == printed(other, "losses")


def first_difference(one, other):
    pairs = list(zip(printed(one, "losses", []), printed(other, "losses", [])))
    return next((step for step, (a, b) in enumerate(pairs) if a != b), len(pairs))


def same_as_without(runs):
    wrong, not_compared, steps = [], [], []
    for run in with_weir(runs):
        plain = without(runs, run)
        # A failure without Weir says nothing about Weir. A run that was stopped did not fail.
        if plain and plain["exit_code"] is not None and not plain.get("stopped") and not finished(plain):
            why = f"without Weir it {run_outcome(plain)}"
            not_compared.append(f"{title(run)} is compared with nothing: {why}")
        elif not finished(run):
            wrong.append(f"{title(run)}: {run_outcome(run)}")
        elif not finished(plain):
            wrong.append(f"{title(run)}: without Weir {run_outcome(plain)}")
        elif not same_losses(run, plain):
            wrong.append(f"{title(run)} differs from step {first_difference(run, plain)}")
        else:
            steps.append(len(printed(run, "losses")))
    plain, in_order = find(runs, "plain"), find(runs, "plain_async")
    if wrong and finished(plain) and finished(in_order) and not same_losses(plain, in_order):
        wrong.append("two runs without Weir differ too")
    if wrong or not steps:
        return False if wrong or not not_compared else None, "; ".join(wrong or not_compared) or "nothing was compared"
    same = f"bit-identical over {counted(steps[-1], 'step')} in {counted(len(steps), 'run')} with Weir"
    return True, "; ".join([same, *not_compared])


def is_served(runs):
    shares = [(run, weir_figures(run).get("served_share")) for run in with_weir(runs)]
    texts = [f"{title(run)} {run_outcome(run) + ', no share' if share is None else f'{share:.2%}'}"
             for run, share in shares]  # fmt: skip
    met = bool(shares) and all(share is not None and share >= LEAST_SERVED for _, share in shares)
    return met, "; ".join(texts) or "no run with Weir"


def is_plugged(runs):
    line = find(runs, "weir_plug").get("plug") or ""
    return " allocates by " in line, line or "no line says so"


def plug_takes_no_longer(runs):
    run, plain = find(runs, "weir_plug"), find(runs, "plain")
    if not (finished(run) and finished(plain) and printed(run, "seconds") and printed(plain, "seconds")):
        return False, f"with the plug {run_outcome(run)}; without Weir {run_outcome(plain)}"
    times = printed(run, "seconds") / printed(plain, "seconds")
    return times <= MOST_OF_NATIVE, f"{times:.3f} times"


def dies(runs):
    ends = [run_outcome(find(runs, setup)) for setup in ("plain", "plain_async")]
    return ends == ["out of memory"] * 2, f"{ends[0]}; in stream order {ends[1]}"


def lives(setup):
    """Judges whether `setup` finishes with the losses of the run with enough memory."""

    def judge(runs):
        run, enough = find(runs, setup), find(runs, "enough")
        if not finished(run):
            return False, run_outcome(run)
        if not finished(enough):
            return False, f"finished; with enough memory {run_outcome(enough)}"
        same, weir = same_losses(run, enough), weir_figures(run)
        differ = f"differ from step {first_difference(run, enough)}"
        how = "bit-identical to those with enough memory" if same else differ
        waits = f", {counted(weir['waits'], 'wait')} of {weir['waited_seconds']:.2f} s together" if weir else ""
        return same, f"finished, losses {how}{waits}"

    return judge


def all_share(runs):
    wrong, good = [], 0
    for run in with_weir(runs):
        weir = weir_figures(run)
        if not finished(run) or not weir:
            wrong.append(run_outcome(run) + ", no summary" * (not weir))
        elif weir["peak_bytes"] > weir["budget_bytes"]:
            wrong.append("reserved more than its budget")
        elif not same_losses(run, find(runs, "plain")):
            wrong.append("losses differ from those of a process alone")
        else:
            good += 1
    figure = f"{good} of {SHARING} finished within their budgets with the same losses"
    return good == SHARING and not wrong, "; ".join([figure, *wrong])


def fault_of_recording(run):
    """Returns why a recording is incomplete, or nothing."""
    timeline = run.get("timeline")
    if not finished(run):
        return run_outcome(run)
    said = f"it says: {run['lines'][0]}" if run.get("lines") else "nothing says why"
    if not timeline or not timeline["works"]:
        return f"{'no kernel was recorded' if timeline else 'there is no timeline'}; {said}"
    lost = f"{timeline['lost']} events lost" * (timeline["lost"] > 0)
    return lost if timeline["complete"] else "the recording was cut"


def is_recorded(setup):
    def judge(runs):
        run = find(runs, setup)
        if not run or run.get("left_out"):
            return (None, run["left_out"]) if run else (False, "not run")
        fault = fault_of_recording(run)
        fault = fault or "losses differ from those without it" * (not same_losses(run, find(runs, "plain")))
        fault = fault or "no page" * (setup == "recorded" and not run["page_bytes"])
        page = f", a page of {size(run['page_bytes'])}" if run["page_bytes"] else ""
        return not fault, fault or f"{run['timeline']['works']} kernels and copies{page}"

    return judge


def works_beside(setup, other):
    """Judges two profilers at once: each is complete, or a line says why not. `other(run, plain)` returns whether the
    other works and what it has."""

    def judge(runs):
        run = find(runs, setup)
        if not run or run.get("left_out"):
            return (None, run["left_out"]) if run else (False, "not run")
        if not finished(run):
            return False, run_outcome(run)
        works, has = other(run, find(runs, "plain"))
        if works is None:
            return None, has
        fault = fault_of_recording(run)
        figure = f"{has}; the timeline {fault or 'has ' + str(run['timeline']['works']) + ' kernels and copies'}"
        return (works and not fault) or bool(run.get("lines")), figure

    return judge


def torch_profiler(run, plain):
    beside, alone = printed(run, "profiled_kernels", 0), printed(plain, "profiled_kernels", 0)
    if not alone:
        return None, "torch.profiler sees no kernel without Weir either"
    return beside >= LEAST_PROFILED * alone, f"torch.profiler has {beside} of {alone}"


def nsys(run, _):
    has = bool(run.get("other_report_bytes"))
    return has, "nsys has its report" if has else "nsys has no report"


def of_program(name, judge_runs):
    """Judges a program by its runs. Leaves out one whose framework, or whose plug, is missing. One that was not reached
    is not met."""

    def judge(figures, _):
        entry = named(figures["programs"], "name", name)
        if not entry:
            planned = name in figures.get("planned", [name])  # without a plan, all are planned
            return (False, "not run") if planned else (None, "not among the programs of this call")
        plug = find(entry["runs"], "weir_plug").get("plug") or ""
        left_out = entry.get("left_out") or (plug if NO_PLUG in plug else "")
        return (None, left_out) if left_out else judge_runs(entry["runs"])

    return judge


SAME = {"the same losses with Weir as without": same_as_without}
SERVED = {**SAME, f"Weir serves at least {LEAST_SERVED:.0%} of what it can": is_served}
PLUGGED = {"PyTorch allocates by the plug": is_plugged}
QUICK = {**PLUGGED, **SERVED, f"at most {MOST_OF_NATIVE:.2f} times the time without Weir": plug_takes_no_longer}
PROGRAMS = {
    "torch_resnet": ("PyTorch, residual network", SERVED),
    "torch_gpt": ("PyTorch, transformer", SERVED),
    "torch_graphs": ("PyTorch, captured step", SERVED),
    "torch_workers": ("PyTorch, forked workers", SERVED),
    "torch_compile": ("PyTorch, torch.compile", SERVED),
    "cupy_loop": ("CuPy, products", SERVED),
    "jax_train": ("JAX, dense network", SERVED),
    "torch_prefetch": ("PyTorch, prefetching", {
        "runs out of memory without Weir": dies,
        "finishes in the same memory with Weir": lives("weir_async"),
        "finishes there with batches marked by NVTX": lives("weir_batches")}),
    "torch_shared": ("PyTorch, 8 processes", {"all finish, each under a budget of its own": all_share}),
    "plug_resnet": ("Weir's plug, residual network", QUICK),
    "plug_gpt": ("Weir's plug, transformer", QUICK),
    "plug_graphs": ("Weir's plug, captured step", QUICK),
    "plug_workers": ("Weir's plug, forked workers", QUICK),
    "plug_compile": ("Weir's plug, torch.compile", QUICK),
    "plug_sharing": ("Weir's plug, tensors shared with a second process", QUICK),
    "plug_prefetch": ("Weir's plug, prefetching", {
        **PLUGGED, "finishes in memory that is not enough without Weir": lives("weir_plug")}),
    "torch_timeline": ("timeline", {
        "PyTorch under weir timeline record is recorded, and has a page": is_recorded("recorded"),
        "PyTorch with libweir_timeline.so alone is recorded": is_recorded("injected"),
        "torch.profiler inside works, or a line says why not": works_beside("inside", torch_profiler),
        "nsys outside works, or a line says why not": works_beside("outside", nsys)}),
}  # fmt: skip

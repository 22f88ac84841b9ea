#!/usr/bin/env python3
"""Prints figures of PyTorch on the stand-in driver, with Weir's plug and without: figures.py memory|time.

memory: the requests of two trainings (requests_pytorch.py). First with much memory: the most that was reserved at a
time. Then with little, a share more than the most that tensors had: the steps that ran out of memory.
time: the host's time for one torch.empty and its free, by rounds of one process each way.

Uses the environment of tools/test --frameworks, which makes it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from environment import HERE, ROOT, Environment, Unusable

WAYS = ("plug", "native", "native, expandable", "async")


def started(environment, way):
    """Returns the command before a program and the variables for `way`."""
    weir = [environment.weir, "run", "--budget", "100%"]
    return {
        "plug": ([*weir, "--torch", "plug", "--"], {}),
        "native": ([], {}),
        "native, expandable": ([], {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        "async": ([*weir, "--allocator", "async", "--"], {}),
    }[way]


def result(environment, way, words, **variables):
    head, own = started(environment, way)
    command = [*head, environment.python, HERE / "requests_pytorch.py", *words]
    done = subprocess.run(list(map(str, command)), env=environment.variables() | own | variables, text=True,
                          capture_output=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise Unusable(f"{way}: {' '.join(map(str, words))} fails: {done.stderr.strip()[-300:]}")
    if way == "plug" and "allocates without Weir's plug" in done.stderr:
        raise Unusable("there is no plug for this PyTorch: tools/torch/build makes it")
    return json.loads(lines[-1])


def print_memory(environment, steps, share):
    print(f"| requests | allocator | most reserved, MiB | over the tensors' most | steps of {steps} out of memory |")
    print("|---|---|---|---|---|")
    for model in ("gpt", "convolutional"):
        large = {way: result(environment, way, (model, steps), WEIR_STANDIN_MEMORY="8G") for way in WAYS}
        most = large["native"]["allocated"]
        little = int(most * (1 + share / 100))
        for way in WAYS:
            failed = result(environment, way, (model, steps), WEIR_STANDIN_MEMORY=str(little))["failed"]
            reserved = large[way]["reserved"]
            print(f"| {model} | {way} | {reserved / 2**20:.0f} | {100 * (reserved / most - 1):.1f}% | {failed} |",
                  flush=True)


def print_time(environment, rounds):
    found = {"plug": [], "native": []}
    for _ in range(rounds):
        for way, times in found.items():
            times.append(result(environment, way, ("empty", 40))["nanoseconds"])
    for way, times in found.items():
        print(f"{way}: {statistics.median(times):.0f} ns, of {', '.join(f'{one:.0f}' for one in times)}")
    ratios = [one / other for one, other in zip(found["plug"], found["native"])]
    least = min(found["plug"]) / min(found["native"])
    print(f"plug / native: {statistics.median(ratios):.2f}, the median of {rounds} rounds; {least:.2f}, the least of each")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=("memory", "time"))
    parser.add_argument("--steps", type=int, default=60, help="of a training; %(default)s")
    parser.add_argument("--share", type=float, default=4, metavar="PERCENT",
                        help="memory beyond the tensors' most where it is little; %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="of each way, for the time; %(default)s")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/frameworks")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    given = parser.parse_args()
    if given.steps < 1 or given.rounds < 1 or given.share < 0:
        parser.error("--steps and --rounds are 1 or more, --share is 0 or more")
    environment = Environment(given.folder, given.build)
    environment.check_build()
    environment.prepare(lambda text: print(text, file=sys.stderr))
    if given.what == "memory":
        print_memory(environment, given.steps, given.share)
    else:
        print_time(environment, given.rounds)


if __name__ == "__main__":
    try:
        main()
    except Unusable as error:
        sys.exit(f"figures: {error}")

#!/usr/bin/env python3
"""Runs programs that know nothing of Weir, without it and with it, and writes what came of each.

    run_all.py --weir PROGRAM [--library FILE] --output FILE [--limit SECONDS] [--only WHICH]
    run_all.py --plan WHICH

WHICH is `first`, `second` or `plug`, the parts that fit one call each, or names of programs with commas
between. --plan prints what each program's runs are sure of together, in seconds, and runs nothing.

Needs Python alone; the programs need PyTorch, CuPy or JAX, and say so where it is not there. FILE is
written anew after each run, so that it holds what there is whenever this is stopped. What it all
means is not judged here: report.py does that.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True  # do not write into the tree
import plan
import runner

MISSING = 77  # as in harness.py, which cannot be imported without its frameworks


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plan", metavar="WHICH", help="print the time of these, and end")
    parser.add_argument("--weir", help="the command `weir`")
    parser.add_argument("--library", help="what it preloads; libweir.so beside it unless told")
    parser.add_argument("--output", help="the file for what came of each run")
    parser.add_argument("--limit", type=float, default=400, help="seconds for all of it")
    parser.add_argument("--only", metavar="WHICH", help="a part, or names; all unless told")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a cpu")
    args = parser.parse_args(words)
    args.programs = chosen(parser, args.plan or args.only)
    if args.plan:
        return args
    if args.weir is None or args.output is None:
        parser.error("--weir and --output are needed")
    if not os.access(args.weir, os.X_OK):
        parser.error(f"--weir: there is no program {args.weir}")
    if args.library is None:
        args.library = os.path.join(os.path.dirname(args.weir), "libweir.so")
    if not os.path.isfile(args.library):
        parser.error(f"--library: there is no file {args.library}")
    if not args.limit > 0:
        parser.error("--limit must be above zero")
    return args


def chosen(parser, which):
    """Returns the programs that `which` names, in the plan's order; all if it is empty."""
    if which in plan.CALLS:
        return plan.CALLS[which]
    known = [program.name for program in plan.PROGRAMS]
    names = which.split(",") if which else known
    for name in names:
        if name not in known:
            words = ", ".join([*plan.CALLS, *known])
            parser.error(f"there is no program '{name}', only {words}")
    return tuple(program for program in plan.PROGRAMS if program.name in names)


def print_plan(programs):
    for program in programs:
        print(program.name, len(program.setups), plan.shares([program]))


def run_program(program, runs, after):
    """Returns the program's entry. The first setup runs without Weir: if it finds no framework, no
    setup does. Later programs have `after` seconds guaranteed."""
    entry = {"name": program.name, "runs": []}
    rest = plan.shares([program])
    for setup in program.setups:
        rest -= program.share(setup)
        found = runs.run(program, setup, rest + after)
        entry["runs"] += found
        if not setup.weir and found[0].get("exit_code") == MISSING:
            entry["left_out"] = found[0].get("said") or "what it needs is not there"
            break
    return entry


def output_file(path):
    """Returns the end of the links of `path`. Refuses what must not be replaced: a device, a folder, or
    anything under /dev or /proc."""
    file = pathlib.Path(os.path.realpath(path))
    system = file.parts[1:2] in (("dev",), ("proc",)) and file.parts[1:3] != ("dev", "shm")
    if system or (file.exists() and not file.is_file()):
        sys.exit(f"run_all: --output {path}: no file that can be replaced")
    return file


def write(file, document):
    """Writes the file completely or not at all."""
    beside = file.with_name(file.name + ".new")
    beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, file)


def main(words):
    args = parse(words)
    if args.plan:
        print_plan(args.programs)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs every `finally`
    output = output_file(args.output)
    folder = output.parent / output.stem
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + args.limit
    weir, library = os.path.abspath(args.weir), os.path.abspath(args.library)
    runs = runner.Runner(weir, library, folder, deadline, args.device, args.small)
    planned = [program.name for program in args.programs]
    document = {
        "python": sys.version.split()[0],
        "limit_seconds": args.limit,
        "planned": planned,
        "programs": [],
    }
    write(output, document)
    after = plan.shares(args.programs)
    for program in args.programs:
        print(f"{program.name}", file=sys.stderr, flush=True)
        after -= plan.shares([program])
        document["programs"].append(run_program(program, runs, after))
        write(output, document)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

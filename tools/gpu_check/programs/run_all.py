#!/usr/bin/env python3
"""Runs programs that know nothing of Weir, without it and with it, and writes what came of each.

    run_all.py --weir PROGRAM [--library FILE] --output FILE [--limit SECONDS] [--only NAME,...]

Needs Python alone; the programs need PyTorch, CuPy or JAX, and say so where it is not there. FILE is
written anew after each run, so that it holds what there is whenever this is stopped. What it all
means is not judged here: `weir-gpu report` does that.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True  # the tree is not ours to write into
import plan
import runner

MISSING = 77  # as harness.py, which cannot be asked where its frameworks are not


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", required=True, help="the command `weir`")
    parser.add_argument("--library", help="what it preloads; libweir.so beside it unless told")
    parser.add_argument("--output", required=True, help="the file for what came of each run")
    parser.add_argument("--limit", type=float, default=400, help="seconds for all of it")
    parser.add_argument("--only", help="names of programs, with commas between")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a cpu")
    args = parser.parse_args(words)
    known = [program.name for program in plan.PROGRAMS]
    args.only = args.only.split(",") if args.only else known
    for name in args.only:
        if name not in known:
            parser.error(f"--only: there is no program '{name}', only {', '.join(known)}")
    if not os.access(args.weir, os.X_OK):
        parser.error(f"--weir: there is no program {args.weir}")
    if args.library is None:
        args.library = os.path.join(os.path.dirname(args.weir), "libweir.so")
    if not os.path.isfile(args.library):
        parser.error(f"--library: there is no file {args.library}")
    if not args.limit > 0:
        parser.error("--limit must be above zero")
    return args


def run_program(program, runs):
    """Its entry. The first setup goes without Weir: where that finds no framework, none does."""
    entry = {"name": program.name, "runs": []}
    for setup in program.setups:
        found = runs.run(program, setup)
        entry["runs"] += found
        if not setup.weir and found[0].get("exit_code") == MISSING:
            entry["left_out"] = found[0].get("said") or "what it needs is not there"
            break
    return entry


def write(file, document):
    """Whole or not at all."""
    beside = file.with_name(file.name + ".new")
    beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, file)


def main(words):
    args = parse(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of every finally
    output = pathlib.Path(args.output)
    folder = output.parent / output.stem
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + args.limit
    weir, library = os.path.abspath(args.weir), os.path.abspath(args.library)
    runs = runner.Runner(weir, library, folder, deadline, args.device, args.small)
    document = {"python": sys.version.split()[0], "limit_seconds": args.limit, "programs": []}
    write(output, document)
    for program in plan.PROGRAMS:
        if program.name in args.only:
            print(f"{program.name}", file=sys.stderr, flush=True)
            document["programs"].append(run_program(program, runs))
            write(output, document)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

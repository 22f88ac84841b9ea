"""The command lines and variables that programs refuse: one line, exit code 2, nothing on standard output.

What every flag refuses is in programs.py, what each parser refuses in the tests of its library, and what any command
line refuses in fault_test.cpp. Here is what takes a whole program: its commands, which flags go together, and which
values it looks at.
"""

import os
import pathlib
import shlex
import tempfile

from described import refusal

PIXELS = "weir-train predict --data data --weights w"
WIDE = "weir-train wide --device cpu --budget 64MiB --scale 0.002 --nnz 10"

# A command line, and what the one line names.
LINES = [
    ("weir", "run, info, doctor, ps, set, top, replay or timeline"),
    ("weir fly", "'fly' is not known: run, info, doctor, ps, set, top, replay or timeline"),
    ("weir --budget 3 run", "but of weir run (see weir run --help)"),
    ("weir info --hooks --json -", "--hooks and --json exclude each other"),
    ("weir run", "the program to run is missing"),
    ("weir run true", "comes after --"),
    ("weir run -- /nowhere/program", "No such file"),
    ("weir run -- nowhere", "'nowhere' is not in any folder of PATH"),
    ("weir run -- /", "is a folder"),
    ("weir run -- ./old", "is not executable"),
    ("weir run --budget -- true", "--budget needs a value before --: BYTES|PERCENT"),
    ("weir run --batch-range '' -- true", "--batch-range='' is not allowed"),
    ("weir run --library /nowhere/libweir.so -- true", "there is no such file"),
    ("weir run --library . -- true", "not a file"),
    ("weir run --json /nowhere/s.json -- true", "--json='/nowhere/s.json'"),
    ("weir run --json /nowhere/%p.json -- true", "--json='/nowhere"),
    ("weir run --json / -- true", "--json='/'"),
    ("weir run --json '' -- true", "--json=''"),
    ("WEIR_SUMMARY=/nowhere/s.json weir run -- true", "WEIR_SUMMARY='/nowhere/s.json'"),
    ("WEIR_ALLOC_LOG=same weir run --json same -- true", "WEIR_ALLOC_LOG"),
    ("WEIR_ALLOC_LOG=/nowhere/log weir run -- true", "WEIR_ALLOC_LOG='/nowhere/log'"),
    ("TMPDIR=/nowhere weir run -- true", "TMPDIR='/nowhere'"),
    ("WEIR_POOL=round WEIR_POOL_PAGE_SIZE=5000 weir run -- true", "WEIR_POOL_PAGE_SIZE"),
    ("weir set 1", "--budget is required"),
    ("weir set", "PID is required"),
    ("weir set x --budget 8MiB", "PID='x' is not allowed"),
    ("weir set 0 --budget 8MiB", "PID='0' is not allowed"),
    ("weir set 1 --budget 8MiB --wait 0", "--wait='0'"),
    ("weir top --every 0", "--every='0' is not allowed"),
    ("weir top --every 2 --once", "--every and --once exclude each other"),
    ("WEIR_PUBLISH=maybe weir top --once", "WEIR_PUBLISH='maybe' is not allowed: "),
    ("weir replay", "TRACE is required"),
    ("weir replay none", "No such file"),
    ("weir replay bad.csv", "bad.csv: line 3: the end, 3, is not after the start, 4"),
    ("weir replay trace.csv --pool round:3", "--pool='3' is not allowed"),
    ("weir replay trace.csv --capacity 0B", "--capacity='0B' is not allowed"),
    ("weir replay trace.csv --budget 110%", "--budget='110%' is not allowed"),
    ("weir replay trace.csv --lag -1", "--lag='-1' is not allowed"),
    ("weir replay trace.csv --upstream cuda", "GPU memory is not available: "),
    ("weir replay trace.csv --map naive", "--svg FILE is missing"),
    ("weir replay trace.csv --svg a.svg --map naive --pool round",
     "--map='naive' is not allowed: one of the pools that are replayed: round:24"),
    ("weir replay trace.csv trace.csv --svg a.svg", "a name with %t in it"),
    ("weir replay trace.csv --svg /nowhere/a.svg", "/nowhere/a.svg"),
    ("weir replay trace.csv -- -more", "-more: cannot be read"),
    ("weir replay [nope,x]", "[nope,x]: cannot be read"),
    ("weir timeline", "a subcommand is required"),
    ("weir timeline report 'a\nb.json'", "a\\x0ab.json: cannot be read"),
    ("weir timeline report '\x1b[31m.json'", "\\x1b[31m.json: cannot be read"),
    ("weir timeline report trace.csv --text --json -", "--text is not allowed"),
    ("weir timeline convert trace.csv -o 'a\nb.txt'", "a\\x0ab.txt' is not allowed"),
    ("weir timeline convert trace.csv -o x.txt",
     "-o='x.txt' is not allowed: a name that ends in .json, .json.gz, .pftrace or .pickle"),
    ("weir timeline convert none.json -o x.json", "none.json: cannot be read (No such file or directory)"),
    ("weir timeline merge trace.csv -o x.json", "FILE is given once: merge takes two or more files"),
    ("weir timeline merge trace.csv bad.csv", "--output is required"),
    ("weir timeline record", "the program to run is missing: weir timeline record [FLAGS] --"),
    ("weir timeline record -o x.pickle -- true", "a name that ends in .json, .json.gz or .pftrace"),
    ("weir-train", "subcommand"),
    ("weir-train run compare", "compare"),
    ("weir-train compare --policy barrier", "--policy"),
    ("weir-train compare --rounds 0", "--rounds"),
    ("weir-train compare --ring 3", "--ring needs --inputs ring"),
    ("weir-train compare --data data", "--data"),
    ("weir-train compare --json x --svg x", "a different file from that of"),
    ("weir-train compare --json none/x", "--json='none/x'"),
    ("weir-train compare --device cuda", ", or use the device cpu"),
    ("weir-train dispatch --device cuda", "--device='cuda' is not allowed"),
    ("weir-train dispatch --device tpu", "--device='tpu' is not allowed"),
    ("weir-train dispatch --operations 1", "--operations='1' is not allowed"),
    ("weir-train dispatch --operations 1000001", "--operations='1000001' is not allowed"),
    ("weir-train dispatch --rounds 0", "--rounds='0' is not allowed"),
    ("weir-train dispatch --elements-large 100000001", "--elements-large='100000001' is not allowed"),
    ("weir-train dispatch --elements-small -1", "--elements-small='-1' is not allowed"),
    ("weir-train dispatch --frontend 0", "--frontend='0' is not allowed"),
    ("weir-train dispatch --frontend 50us", "--frontend='50us' is not allowed"),
    ("weir-train dispatch --matrix 4097", "--matrix='4097' is not allowed"),
    ("weir-train predict --data data", "--weights"),
    ("weir-train predict --weights w", "--data"),
    (f"{PIXELS} --epochs 1", "--epochs"),
    (f"{PIXELS} --device cuda:7", ", or use the device cpu"),
    ("weir-train run --save-anyway", "--save-anyway needs --save"),
    ("weir-train run --epochs 2", "--epochs needs --data"),
    ("weir-train run --data data --epochs 0", "--epochs='0' is not allowed"),
    ("weir-train run --data data --epochs 2 --batches 3", "--epochs and --batches"),
    ("weir-train run --ring 3", "--ring needs --inputs ring"),
    ("weir-train run --ring 3 --inputs drawn", "--ring needs --inputs ring"),
    ("weir-train run --inputs ring --data data", "--inputs and --data"),
    ("weir-train run --inputs drawn --data data", "--inputs and --data"),
    ("weir-train run --data nowhere", "--data='nowhere'"),
    ("weir-train run --data trace.csv", "directory"),
    ("weir-train run --device cuda", ", or use the device cpu"),
    ("weir-train run --device cuda:7", ", or use the device cpu"),
    ("weir-train run --device cuda:x", "--device='cuda:x' is not allowed"),
    ("weir-train run --budget 65MiB --device-memory 64MiB", "65 MiB"),
    ("weir-train run --budget 1000TiB", "(--budget)"),
    ("WEIR_BUDGET=1000TiB weir-train run", "(WEIR_BUDGET)"),
    ("weir-train run --device-memory 1000TiB", "--device-memory='1000TiB' is not allowed"),
    ("weir-train run --pool round --pool-page-size 3000", "3000"),
    ("MXNET_GPU_MEM_POOL_PAGE_SIZE=3000 weir-train run", "MXNET_GPU_MEM_POOL_PAGE_SIZE"),
    ("weir-train run --batches 0", "--batches='0' is not allowed"),
    ("weir-train run --batches 99999999999999999999", "--batches='99999999999999999999' is not allowed"),
    ("weir-train run --batch-size -1", "--batch-size='-1' is not allowed"),
    ("weir-train run --ring 0", "--ring='0' is not allowed"),
    ("weir-train run --seed -1", "--seed='-1' is not allowed"),
    ("weir-train run --json none/x", "--json='none/x'"),
    ("weir-train run --json .", "--json='.'"),
    ("weir-train run --json /proc/version", "--json='/proc/version'"),
    ("weir-train run --save none/w", "--save='none/w'"),
    ("weir-train run --save a --json ./a", "--save='a' is not allowed: a different file from that of --json"),
    ("weir-train run --save -", "--save='-' is not allowed: a separate file: the table goes to standard output"),
    ("weir-train run --save /dev/stderr", "messages go to standard error"),
    ("weir-train run --timeline none/run.json --save w", "--timeline='none/run.json' is not allowed"),
    ("weir-train run --timeline run.txt", "--timeline='run.txt' is not allowed"),
    ("weir-train run --timeline mine.json", "--timeline='mine.json' is not allowed"),
    ("weir-train run --timeline-batches 2:4", "--timeline-batches needs --timeline FILE or WEIR_TIMELINE"),
    (f"{WIDE} --inputs device", "--keep-data says where the data lie"),
    (f"{WIDE} --first-layer-budget 1GiB", "needs --first-layer cpu"),
    (f"{WIDE} --hidden 1,,2", "such as 1024,512"),
    (f"{WIDE} --make x", "--make and --rows need each other"),
    (f"{WIDE} --rows 3", "--make and --rows need each other"),
    (f"{WIDE} --compare-precision", "give another --precision"),
    (f"{WIDE} --bucket 1MiB", "--bucket needs --parallel data"),
    (f"{WIDE} --parallel data --bucket 0", "--bucket='0' is not allowed"),
    (f"{WIDE} --parallel model --checkpoint x", "--checkpoint does not work with --parallel model"),
    (f"{WIDE} --parallel data --first-layer cpu", "--first-layer does not work with --parallel"),
    (f"{WIDE} --epochs 2", "--epochs needs --data"),
    (f"{WIDE} --resume", "--resume needs --checkpoint"),
    (f"{WIDE} --resume --checkpoint /nowhere/file", "/nowhere/file"),
    (f"{WIDE} --every soon --checkpoint f", "batches such as 200"),
    (f"{WIDE} --checkpoint -", "a regular file"),
    (f"{WIDE} --checkpoint f --json f.lock", "a different file from that of --checkpoint"),
    (f"{WIDE} --checkpoint f --json f.partial", "a different file from that of --checkpoint"),
    (f"{WIDE} --data /nowhere", "is of generated rows"),
    ("weir-train wide --device cpu --data /nowhere", "/nowhere"),
    ("weir-train wide --device cpu --scale 0", "a number above 0"),
]

# Each is refused by all that read it, before anything is done.
VARIABLES = {
    "weir info": ["WEIR_ALLOCATOR", "WEIR_ALLOC_LOG_LIMIT", "WEIR_BUDGET", "WEIR_LOG", "WEIR_MAX_WAIT", "WEIR_NVML",
                  "WEIR_POLICY", "WEIR_POOL", "WEIR_POOL_LARGE_ROUND_SIZE", "WEIR_POOL_LINEAR_CUTOFF",
                  "WEIR_POOL_PAGE_SIZE", "WEIR_RUN_AHEAD", "WEIR_SPILL", "WEIR_SYNC_FREE", "WEIR_TORCH"],
    "weir-train run": ["WEIR_BUDGET", "WEIR_LOG", "WEIR_POLICY", "WEIR_POOL", "WEIR_POOL_LINEAR_CUTOFF",
                       "WEIR_RUN_AHEAD"],
}
VARIABLES["weir run -- true"] = VARIABLES["weir info"]


def lines():
    yield from LINES
    for command, names in VARIABLES.items():
        yield from ((f"{name}=bad {command}", f"{name}='bad' is not allowed") for name in names)


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def check_refused(programs):
    paths = {pathlib.Path(program).name: program for program in programs}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        (folder / "data").mkdir()
        (folder / "trace.csv").write_text("buffer,start,end,size\n1,0,3,1048576\n")
        (folder / "bad.csv").write_text("buffer,start,end,size\n1,0,3,10\n2,4,3,10\n")
        (folder / "old").write_text("figures of yesterday")
        (folder / "mine.json").write_text('{"mine": true}')
        before = contents(folder)
        for line, named in lines():
            words = shlex.split(line)
            # Any will do: no program is started.
            variables = {"WEIR_LIBRARY": paths["weir"], "CUDA_VISIBLE_DEVICES": "-1"}
            while "=" in words[0]:
                variable, _, variables[variable] = words.pop(0).partition("=")
            if "run" in words and "--json" not in words and "WEIR_SUMMARY" not in variables:
                at = words.index("run") + 1
                words[at:at] = ["--json", "old"]
            error = refusal(paths[words[0]], *words[1:], **variables)
            assert named in error, f"{line}: {error}"
            assert contents(folder) == before and len(list(folder.iterdir())) == len(before) + 1, f"{line} wrote a file"

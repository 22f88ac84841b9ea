"""What CUDA's headers say about its functions, as lists that the stand-in's sources include.

    headers.py OUTPUT SINCE FOLDER...

reads the headers in FOLDERs and writes to the folder OUTPUT:

    standin_runtime_rest.inc, standin_driver_rest.inc  REST(name): the functions that a library exports
    standin_runtime_parameters.inc                     PARAMETERS_name and ARGUMENTS_name of the runtime's functions
    typedefs.inc                                       PLAIN(base, version) and PER_THREAD(base, version, suffix)
    standin_driver_forms.inc                           FORM(base, version, symbol) and PER_THREAD_FORM(...): from that
                                                       version on, cuGetProcAddress returns `symbol` for `base`

Prints the symbols that came after the version SINCE, separated by semicolons.
"""

import pathlib
import re
import sys


def functions(header, mark):
    """Returns the names that `header` declares with `mark`, or makes names of with #define, in order."""
    names = re.findall(mark + r"\s+(cu[a-z]*[A-Z]\w*)\s*\(", header)
    names += re.findall(r"#[ \t]*define[ \t]+cu[a-z]*[A-Z]\w*[ \t]+(cu[a-z]*[A-Z]\w*)[ \t]*$", header, re.MULTILINE)
    for kind, name in re.findall(r"#[ \t]*define[ \t]+cu\w+[ \t]+__\w+_API_PT(DS|SZ)\((\w+)\)", header):
        names += [name, f"{name}_pt{kind.lower()}"]
    return [name for name in dict.fromkeys(names) if not name.endswith("_t")]


def parameters(header):
    """Yields the #defines of PARAMETERS_name and ARGUMENTS_name for each function of the runtime with parameters."""
    header = re.sub(r"__dv\([^)]*\)", "", header)
    for name, listed in re.findall(r"CUDARTAPI\s+(cuda\w+)\s*\(([^()]*)\)\s*;", header):
        names = [re.findall(r"\w+", each)[-1] for each in listed.split(",") if each.strip() not in ("", "void")]
        if names and "=" not in listed:
            yield f"#undef PARAMETERS_{name}\n#define PARAMETERS_{name} ({' '.join(listed.split())})"
            yield f"#undef ARGUMENTS_{name}\n#define ARGUMENTS_{name} {', '.join(names)}"


def forms(types, names):
    """Yields (macro, base, version, symbol), the newest of a base first.

    Each version added a symbol of its own, the name with the next number, so the newest has the highest in `names`.
    """
    plain = {}
    per_thread = {}
    for base, version, suffix in types:
        (per_thread if suffix else plain).setdefault(base, []).append((int(version), suffix))
    for base, versions in plain.items():
        number = max(int(name[len(base) + 2:]) if name != base else 1
                     for name in [base, *names] if re.fullmatch(base + r"(_v\d)?", name))
        variants = per_thread.get(base, [])
        for version, _ in sorted(versions, reverse=True)[:number]:
            symbol = base if number == 1 else f"{base}_v{number}"
            yield "FORM", base, version, symbol
            # A variant belongs to the newest form of its time.
            for since, suffix in [variant for variant in variants if variant[0] >= version]:
                yield "PER_THREAD_FORM", base, since, symbol + suffix
            variants = [variant for variant in variants if variant[0] < version]
            number -= 1


def main(output, since, folders):
    def read(name):
        return next(folder / name for folder in folders if (folder / name).exists()).read_text()

    def write(name, lines):
        (output / name).write_text("".join(f"{line}\n" for line in lines))

    types = list(dict.fromkeys(re.findall(r"\*PFN_(cu[A-Za-z0-9]+)_v(\d+)(_pt[sd][sz])?\)", read("cudaTypedefs.h"))))
    names = functions(read("cuda.h"), "CUDAAPI")
    found = list(forms(types, names))
    runtime = functions(read("cuda_runtime_api.h"), "CUDARTAPI")
    if len(types) < 300 or len(names) < 300 or len(runtime) < 100:
        sys.exit(f"headers.py: {len(types)} types and {len(names)} and {len(runtime)} functions were found")
    write("typedefs.inc", [f"PER_THREAD({base}, {version}, {suffix[1:]})" if suffix else f"PLAIN({base}, {version})"
                           for base, version, suffix in types])
    write("standin_driver_forms.inc", [f"{macro}({', '.join(map(str, rest))})" for macro, *rest in found])
    write("standin_driver_rest.inc", [f"REST({name})" for name in dict.fromkeys(names + [form[3] for form in found])])
    write("standin_runtime_rest.inc", [f"REST({name})" for name in runtime])
    write("standin_runtime_parameters.inc", parameters(read("cuda_runtime_api.h")))
    print(";".join(symbol for _, _, version, symbol in found if version > since), end="")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), [pathlib.Path(folder) for folder in sys.argv[3:]])

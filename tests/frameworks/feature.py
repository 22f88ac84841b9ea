"""Shared by the programs of this folder: a feature is a function, named on the command line.

Exit code 0: it works. 1: it does not. 77: the stand-in cannot show it. The last line of standard output is
then the reason. run.py compares the output of a working feature with and without Weir, so it contains no
address, no time, and nothing that depends on the budget. Lines of of_the_cache() are not compared with a plug's.
"""

import sys
import traceback

UNAVAILABLE = 77
NO_KERNELS = "the stand-in runs no kernel that a compiler made"
features = {}


def feature(function):
    features[function.__name__] = function
    return function


class Unavailable(Exception):
    pass


def unavailable(reason):
    """Ends the feature: the stand-in cannot show it."""
    raise Unavailable(reason)


def of_the_cache(*figures):
    """Prints figures of the framework's own cache: where something else allocates, they may differ."""
    print("cache:", *figures)


def main(check=lambda: None):
    """Runs the named feature, and then `check`, which raises an exception if the feature did not run as it should."""
    if len(sys.argv) != 2 or (sys.argv[1] not in features and sys.argv[1] != "--list"):
        sys.exit(f"usage: {sys.argv[0]} --list | FEATURE, one of {', '.join(features)}")
    if sys.argv[1] == "--list":
        print("\n".join(features))
        return
    try:
        features[sys.argv[1]]()
        check()
    except Unavailable as reason:
        print(reason)
        sys.exit(UNAVAILABLE)
    except Exception as error:
        traceback.print_exc()
        if "invalid device function" in str(error):
            print(NO_KERNELS)
            sys.exit(UNAVAILABLE)
        said = str(error) or traceback.extract_tb(error.__traceback__)[-1].line
        print(f"{type(error).__name__}: {said}".splitlines()[0])
        sys.exit(1)

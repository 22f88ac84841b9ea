"""What the programs of this folder share: a feature is a function, named on the command line.

Exit code 0: it works. 1: it does not. 77: the stand-in cannot show it; the reason is the last line.
"""

import sys
import traceback

UNAVAILABLE = 77
features = {}


def feature(function):
    features[function.__name__] = function
    return function


class Unavailable(Exception):
    pass


def unavailable(reason):
    """Ends the feature: the stand-in cannot show it."""
    raise Unavailable(reason)


def main():
    if len(sys.argv) != 2 or (sys.argv[1] not in features and sys.argv[1] != "--list"):
        sys.exit(f"usage: {sys.argv[0]} --list | FEATURE, one of {', '.join(features)}")
    if sys.argv[1] == "--list":
        print("\n".join(features))
        return
    try:
        features[sys.argv[1]]()
    except Unavailable as reason:
        print(reason)
        sys.exit(UNAVAILABLE)
    except Exception:
        traceback.print_exc()
        sys.exit(1)

#!/usr/bin/env python3
"""Fails when two files define a type of one name in namespace stepsim: the linker would merge their
functions without a word, and one of the two would run the other's."""
import collections
import pathlib
import re
import sys

from layering_test import NOT_ROOMS

ROOT = pathlib.Path(__file__).resolve().parent.parent


def definitions(text):
    """Names of types that are defined at the start of a line, outside anonymous namespaces."""
    text = re.sub(r"^namespace \{\n.*?^\}  // namespace\n", "", text, flags=re.S | re.M)
    return re.findall(r"^(?:struct|class|enum class) (\w+)(?: : [^;{]*| final)? \{", text, re.M)


def main():
    places = collections.defaultdict(set)
    for path in ROOT.rglob("*"):
        relative = path.relative_to(ROOT)
        if path.suffix in (".h", ".cc") and relative.parts[0] not in NOT_ROOMS:
            for name in definitions(path.read_text()):
                places[name].add(relative.as_posix())
    twice = {name: files for name, files in places.items() if len(files) > 1}
    for name, files in sorted(twice.items()):
        print(f"{name} is defined in {' and in '.join(sorted(files))}")
    print("one definition a type" if places and not twice else "")
    sys.exit(1 if twice or not places else 0)


if __name__ == "__main__":
    main()

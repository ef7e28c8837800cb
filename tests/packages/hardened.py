"""What a finished program or module must have so that a stranger's file or folder can do little with it, read
from the ELF file with readelf: problems_of(FILE) lists what it lacks.

    hardened.py FILE[=RPATH]...      RPATH: where the file's own libraries lie, "$ORIGIN/lib"; none otherwise
"""
import pathlib
import re
import subprocess
import sys

# endbr64: where an indirect call may go. Each function has one that is called so.
LANDING = b"\xf3\x0f\x1e\xfa"


def readelf(*arguments):
    return subprocess.run(["readelf", "--wide", *map(str, arguments)], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def problems_of(file, rpath=""):
    """The loader takes an empty element of an RPATH for the current folder: a library that lies there, in what a
    stranger has sent, would run."""
    header = readelf("--file-header", "--program-headers", file)
    dynamic = readelf("--dynamic", file)
    symbols = readelf("--dyn-syms", file)
    notes = readelf("--notes", file)
    problems = []

    def require(holds, what):
        if not holds:
            problems.append(f"{file}: {what}")

    paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic)
    elements = [element for path in paths for element in path.split(":")]
    require("" not in elements, f"an empty element in the RPATH {paths}")
    require(elements == [rpath] * bool(rpath), f"the RPATH is {paths}, should be \"{rpath}\"")
    require(re.search(r"Type:\s+DYN", header), "not position independent")
    require("GNU_RELRO" in header, "no relro")
    require(re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic), "no immediate binding")
    require(not re.search(r"GNU_STACK.* RWE", header), "an executable stack")
    require("TEXTREL" not in dynamic, "relocations in code")
    require("__stack_chk_fail" in symbols, "no stack protector")
    require(re.search(r"__\w+_chk\b", symbols), "no checked functions of FORTIFY_SOURCE")
    if "X86-64" in header:
        require("SHSTK" in notes, "not marked for shadow stacks")
        landings = pathlib.Path(file).read_bytes().count(LANDING)
        require(landings > 1000, f"{landings} places for indirect calls")
    return problems


if __name__ == "__main__":
    found = []
    for word in sys.argv[1:]:
        name, _, path = word.partition("=")
        found += problems_of(name, path)
    print("\n".join(found) or "hardened")
    sys.exit(1 if found else 0)

#!/usr/bin/env python3
"""Fails when a room includes a room it may not. The table is the architecture: docs/architecture.md.

Folders are scanned recursively; a source folder that is missing from the table is an error.
"""
import pathlib
import re
import sys

SIM = ["sim", "sim/base", "sim/engine", "sim/chips", "sim/network", "sim/collectives"]
SCHEDULES = ["schedules/pipeline", "schedules/plan", "schedules/lowering"]
LOADED = SIM + SCHEDULES + ["topology", "workload"]

MAY_INCLUDE = {
    "sim/base": [],
    "sim/engine": ["sim/base"],
    "sim/chips": ["sim/base"],
    "sim/network": ["sim/base", "sim/engine"],
    "sim/collectives": ["sim/base", "sim/network"],
    "sim": SIM,
    "topology": SIM,
    "workload": ["sim/base", "sim/chips"],
    "schedules/pipeline": ["sim/base"],
    "schedules/plan": ["schedules/pipeline", "workload", "sim", "sim/base", "sim/chips"],
    "schedules/lowering": SCHEDULES + ["workload", "sim", "sim/base", "sim/chips"],
    "proto": LOADED,
    "analysis/formulas": ["sim/base"],
    "analysis/accuracy": LOADED + ["proto/experiment.h"],
    "analysis": LOADED + ["analysis/formulas", "proto/experiment.h"],
    "analysis/experiments": LOADED + ["analysis", "analysis/formulas", "proto/experiment.h"],
    "traces": ["analysis", "sim", "sim/base"],
    "cli": LOADED + ["proto", "analysis", "analysis/accuracy", "analysis/formulas",
                     "analysis/experiments", "traces"],
}
# Data types that a room may include beyond the table, each a decision: docs/decisions/.
FILES = {
    "schedules/plan": ["sim/network/places.h"],
    "schedules/lowering": ["sim/network/places.h", "sim/collectives/collective.h"],
}
NOT_ROOMS = {"tests", "bench", "docs", "scripts", "catalog", "build", "out", "cmake", ".git"}


def room_of(folder):
    """The innermost room that a folder belongs to."""
    parts = folder.split("/")
    for length in range(len(parts), 0, -1):
        room = "/".join(parts[:length])
        if room in MAY_INCLUDE:
            return room
    return None


def problems(root):
    sources = [
        path
        for path in sorted(root.rglob("*"))
        if path.suffix in (".h", ".cc", ".cpp", ".hpp")
        and path.relative_to(root).parts[0] not in NOT_ROOMS
        and not path.relative_to(root).parts[0].startswith(".")
    ]
    if not sources:
        yield "no sources found: wrong folder?"
    for source in sources:
        name = source.relative_to(root).as_posix()
        folder = source.parent.relative_to(root).as_posix()
        if folder not in MAY_INCLUDE:
            yield f"{name}: folder {folder} is not in the layering table"
            continue
        allowed = MAY_INCLUDE[folder]
        for included in re.findall(r'^\s*#\s*include "([^"]+)"', source.read_text(), re.M):
            if included.endswith(".pb.h"):
                if folder != "proto":
                    yield f"{name}: generated types stop in proto, but it includes {included}"
                continue
            if not (root / included).exists():
                continue  # generated, such as a version
            room = room_of(included.rsplit("/", 1)[0]) if "/" in included else None
            fine = (
                room == folder
                or room in allowed
                or included in allowed
                or included in FILES.get(folder, [])
            )
            if not fine:
                yield f"{name}: {folder} may not include {included}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(__file__).resolve().parent.parent))
    print("\n".join(found) or "layering holds")
    sys.exit(1 if found else 0)

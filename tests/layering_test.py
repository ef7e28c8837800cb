#!/usr/bin/env python3
"""Fails when a room includes a room it may not. The table is the architecture: docs/architecture.md.

Folders are scanned recursively; a source folder that is missing from the table is an error.
"""
import pathlib
import re
import sys

SIM = ["sim/base", "sim/engine", "sim/chips", "sim/network", "sim/network/packets",
       "sim/collectives", "sim/collectives/algorithms", "sim/hardware", "sim/program",
       "sim/folding", "sim/run", "sim/run/ops", "sim/run/collectives", "sim/run/books",
       "sim/run/folding"]
UNDER_RUN = [room for room in SIM if not room.startswith("sim/run")]
PROGRAM = ["sim/base", "sim/chips", "sim/program"]
PIPELINE = ["schedules/pipeline", "schedules/pipeline/orders", "schedules/pipeline/replay",
            "schedules/pipeline/published", "schedules/pipeline/search"]
SCHEDULES = PIPELINE + ["schedules/plan", "schedules/lowering"]
TOPOLOGY = ["topology", "topology/kinds", "topology/graph"]
SERVING = ["serving", "serving/cases", "serving/engines", "serving/kv", "serving/metrics",
           "serving/requests"]
PASSES = ["serving/passes"]  # where chips come in
LOADED = SIM + SCHEDULES + TOPOLOGY + ["workload", "experiment"]
PROTO = ["proto", "proto/catalog", "proto/hugging_face", "proto/network_case", "proto/serving_case"]
IMPORT = ["import", "import/aicb", "import/astra", "import/chakra", "import/deepspeed",
          "import/exports", "import/goal",
          "import/htsim", "import/llama_factory", "import/maxtext", "import/megatron", "import/ms_swift",
          "import/msccl", "import/nanotron", "import/nccl", "import/nccl_topology", "import/nemo", "import/ns3",
          "import/primus", "import/settings", "import/slurm", "import/torchtitan", "import/trace",
          "import/trainer", "import/transformers"]
GOODPUT = ["analysis/goodput", "analysis/goodput/energy", "analysis/goodput/steps"]
ANALYSIS = ["analysis/step", "analysis/collective_forms", "analysis/formulas"]

MAY_INCLUDE = {
    "sim/base": [],
    "sim/engine": ["sim/base"],
    "sim/chips": ["sim/base"],
    "sim/network": ["sim/base", "sim/engine"],
    "sim/network/packets": ["sim/base", "sim/engine", "sim/network"],
    "sim/collectives": ["sim/base", "sim/network", "sim/collectives/algorithms"],
    "sim/collectives/algorithms": ["sim/base", "sim/network", "sim/collectives"],
    "sim/hardware": ["sim/base", "sim/chips", "sim/network", "sim/collectives"],
    "sim/program": ["sim/base", "sim/chips", "sim/collectives"],
    "sim/folding": ["sim/base"],
    "sim/run/ops": UNDER_RUN,
    "sim/run/books": UNDER_RUN + ["sim/run/ops"],
    "sim/run/collectives": UNDER_RUN + ["sim/run/ops"],
    "sim/run/folding": UNDER_RUN + ["sim/run/ops", "sim/run/collectives"],
    "sim/run": SIM,
    "topology": SIM + ["topology/kinds", "topology/graph"],
    "topology/kinds": SIM + ["topology/graph"],
    "topology/graph": SIM,
    "workload": ["sim/base", "sim/chips"],
    # Types; what makes an order and what runs one; the table of schedules; the search, which sets
    # out from published schedules.
    "schedules/pipeline": ["sim/base"],
    "schedules/pipeline/orders": ["sim/base"] + PIPELINE[:1],
    "schedules/pipeline/replay": ["sim/base"] + PIPELINE[:1],
    "schedules/pipeline/published": ["sim/base"] + PIPELINE[:3],
    "schedules/pipeline/search": ["sim/base"] + PIPELINE[:4],
    "schedules/plan": PIPELINE + ["workload"] + PROGRAM,
    "schedules/lowering": SCHEDULES + ["workload"] + PROGRAM,
    "experiment": LOADED,
    "proto": LOADED + PROTO,
    "proto/catalog": LOADED + PROTO + GOODPUT[:1],
    "proto/hugging_face": LOADED + PROTO,
    "proto/network_case": LOADED + PROTO,
    "proto/serving_case": ["sim/base", "proto"] + SERVING,
    # What is asked, what holds it, who decides, what came out; then the run that needs them all.
    "serving/requests": ["sim/base"],
    "serving/kv": ["sim/base", "serving/requests"],
    "serving/engines": ["sim/base", "serving/requests", "serving/kv"],
    "serving/metrics": ["sim/base", "serving/requests"],
    "serving": ["sim/base", "sim/engine"] + SERVING[2:],
    "serving/cases": ["sim/base", "serving"] + SERVING[2:],
    "serving/passes": LOADED + ["serving", "serving/engines", "serving/requests"],
    "serving/search": LOADED + SERVING + PASSES,
    "analysis/formulas": ["sim/base"],
    "analysis/collective_forms": SIM + ["analysis/formulas"],
    "analysis/step": LOADED + ANALYSIS,
    "analysis/accuracy": LOADED + SERVING + PASSES,
    "analysis/calibration": LOADED + ["analysis/accuracy"],
    # Runs with failures know times only; steps/ simulates those.
    "analysis/goodput": ["sim/base", "sim/engine"],
    "analysis/goodput/energy": ["sim/base", "analysis/goodput"],
    "analysis/goodput/steps": LOADED + GOODPUT,
    "analysis/search": LOADED + ["analysis/step"],
    "analysis/studies": LOADED + ANALYSIS + GOODPUT[:1] + SERVING + PASSES,
    "traces": ["analysis/step", "experiment"] + GOODPUT + SIM + SERVING,
    # Pages are made of the JSON of results; what only a run knows is drawn in pages/run.
    "pages": ["sim/base", "traces"],
    "pages/run": SIM + ["analysis/step", "experiment", "traces"],
    "store": ["sim/base", "traces"],
    # Files of other software. What an importer of one format knows stays in its folder.
    "import": LOADED + PROTO + IMPORT,
    **{room: LOADED + PROTO + IMPORT for room in IMPORT[1:]},
    "cli": LOADED + PROTO + ANALYSIS + GOODPUT + SERVING + PASSES + ["serving/search"]
    + ["analysis/accuracy", "analysis/calibration", "analysis/search", "analysis/studies",
       "pages", "pages/run", "store", "traces"] + IMPORT,
}
FOLDERS = ["calibrate", "collective", "compare", "formula", "goodput", "processes", "run", "schedule",
           "search", "serve", "serve_search", "sweep", "validate"]
for folder in FOLDERS:
    MAY_INCLUDE[f"cli/{folder}"] = MAY_INCLUDE["cli"] + ["cli", "cli/processes"]
MAY_INCLUDE["cli"] += [f"cli/{folder}" for folder in FOLDERS]
MAY_INCLUDE["bindings"] = MAY_INCLUDE["cli"] + ["cli"]
# Data types that a room may include beyond the table, each a decision: docs/decisions.md.
FILES = {
    "sim/run/books": ["sim/run/simulation_options.h", "sim/run/simulation_result.h"],
    "sim/run/collectives": ["sim/run/simulation_options.h"],
    "sim/run/folding": ["sim/run/simulation_options.h", "sim/run/simulation_result.h"],
    "schedules/plan": ["sim/network/places.h"],
    "schedules/lowering": ["sim/network/places.h", "sim/collectives/collective.h"],
    "traces": ["analysis/studies/plot.h"],
    # They name what they simulate by files and names of the catalog, and see nothing else of proto.
    "analysis/accuracy": ["proto/load_experiment.h", "proto/catalog/catalog.h", "proto/json_value.h",
                          "proto/catalog/measured_tables.h",
                          "proto/catalog/engine_releases.h",
                          "proto/catalog/serving_software.h"],
    "analysis/calibration": ["proto/load_experiment.h"],
    "analysis/studies": ["proto/load_experiment.h", "proto/catalog/measured_tables.h"],
    "workload": ["sim/collectives/byte_matrix.h"],
    "pages": ["proto/json_value.h", "experiment/uncertainty.h"],
    "pages/run": ["proto/json_value.h", "workload/model_counts.h"],
    "import/nccl": ["analysis/accuracy/nccl_log.h"],  # one reader a format
}
# Headers with few users: simulate_experiment() alone lowers and simulates in a row.
ONLY_FROM = {"schedules/lowering/lower.h": ["schedules/lowering", "experiment"]}
NOT_ROOMS = {"tests", "bench", "docs", "examples", "scripts", "catalog", "build", "out", "cmake", ".git"}


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
                if not folder.startswith("proto"):
                    yield f"{name}: generated types stop in proto, but it includes {included}"
                continue
            if not (root / included).exists():
                continue  # generated, such as a version
            room = room_of(included.rsplit("/", 1)[0]) if "/" in included else None
            if folder not in ONLY_FROM.get(included, [folder]):
                yield f"{name}: {included} is for simulate_experiment() alone"
                continue
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

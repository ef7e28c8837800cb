#!/usr/bin/env python3
"""Fails when a room includes a room it may not. The table is the architecture: docs/architecture.md.

Folders are scanned recursively; a source folder that is missing from the table is an error.
"""
import pathlib
import re
import sys

SIM = ["sim/base", "sim/fields", "sim/engine", "sim/chips", "sim/network", "sim/network/packets",
       "sim/network/transport", "sim/network/transport/controls", "sim/network/transport/hosts",
       "sim/collectives", "sim/collectives/algorithms", "sim/collectives/algorithms/torus",
       "sim/collectives/algorithms/trees", "sim/hardware", "sim/program",
       "sim/folding", "sim/run", "sim/run/ops", "sim/run/collectives", "sim/run/books",
       "sim/run/folding"]
BASE = ["sim/base", "sim/fields"]
ALGORITHMS = BASE + ["sim/network", "sim/collectives"] + SIM[10:13]
UNDER_RUN = [room for room in SIM if not room.startswith("sim/run")]
PROGRAM = BASE + ["sim/chips", "sim/program"]
WORKLOAD = ["workload", "workload/mixers", "workload/parts", "workload/model"]
PIPELINE = ["schedules/pipeline", "schedules/pipeline/orders", "schedules/pipeline/replay",
            "schedules/pipeline/published", "schedules/pipeline/search"]
PLAN = ["schedules/plan", "schedules/plan/keys", "schedules/plan/checks"]
LOWERING = ["schedules/lowering/steps", "schedules/lowering/recompute", "schedules/lowering/stages",
            "schedules/lowering/bytes", "schedules/lowering"]
SCHEDULES = PIPELINE + PLAN + LOWERING
TOPOLOGY = ["topology", "topology/kinds", "topology/kinds/switched", "topology/kinds/torus", "topology/graph"]
SERVING = ["serving", "serving/cases", "serving/engines", "serving/kv", "serving/metrics",
           "serving/requests"]
PASSES = ["serving/passes"]  # where chips come in
EXPERIMENT = ["experiment", "experiment/passes", "experiment/bounds"]
LOADED = SIM + SCHEDULES + TOPOLOGY + WORKLOAD + EXPERIMENT
PROTO = ["proto", "proto/catalog", "proto/hugging_face", "proto/hugging_face/families", "proto/messages",
         "proto/network_case", "proto/serving_case"]
IMPORT = ["import", "import/aicb", "import/astra", "import/chakra", "import/deepspeed",
          "import/exports", "import/goal",
          "import/htsim", "import/llama_factory", "import/maxtext", "import/megatron", "import/ms_swift",
          "import/msccl", "import/nanotron", "import/nccl", "import/nccl_topology", "import/nemo", "import/ns3",
          "import/primus", "import/settings", "import/slurm", "import/torchtitan", "import/trace",
          "import/trainer", "import/transformers"]
GOODPUT = ["goodput", "goodput/energy", "goodput/steps"]
FORMULAS = ["books/formulas", "books/collective_forms"]
FINDINGS = ["experiment/step", "experiment/explained"]  # what is found in a finished run
STUDIES = ["books/laboratory", "books/studies/collectives", "books/studies/serving", "books/studies/training"]
TRACES = ["traces/files", "traces/formats", "traces/results", "traces/pictures"]

MAY_INCLUDE = {
    "sim/base": [],
    "sim/fields": ["sim/base"],
    "sim/engine": ["sim/base"],
    "sim/chips": BASE,
    "sim/network": BASE + ["sim/engine"],
    "sim/network/packets": BASE + ["sim/engine", "sim/network"],
    # Hosts and what they ask of controls; the network that runs them includes its parts.
    "sim/network/transport/controls": BASE + ["sim/network", "sim/network/transport"],
    "sim/network/transport/hosts": BASE + ["sim/network", "sim/network/packets", "sim/network/transport",
                                           "sim/network/transport/controls"],
    "sim/network/transport": BASE + ["sim/engine", "sim/network", "sim/network/packets",
                                     "sim/network/transport/controls", "sim/network/transport/hosts"],
    "sim/collectives": ALGORITHMS,
    "sim/collectives/algorithms": BASE + ["sim/network", "sim/collectives"],
    "sim/collectives/algorithms/torus": BASE + ["sim/network", "sim/collectives", "sim/collectives/algorithms"],
    "sim/collectives/algorithms/trees": BASE + ["sim/network", "sim/collectives", "sim/collectives/algorithms"],
    "sim/hardware": BASE + ["sim/chips", "sim/network", "sim/collectives"],
    "sim/program": BASE + ["sim/chips", "sim/collectives"],
    "sim/folding": BASE,
    "sim/run/ops": UNDER_RUN,
    "sim/run/books": UNDER_RUN + ["sim/run/ops"],
    "sim/run/collectives": UNDER_RUN + ["sim/run/ops"],
    "sim/run/folding": UNDER_RUN + ["sim/run/ops", "sim/run/collectives"],
    "sim/run": SIM,
    "topology": SIM + TOPOLOGY[1:],
    "topology/kinds": SIM + ["topology/graph"],
    "topology/kinds/switched": SIM + ["topology/kinds", "topology/graph"],
    "topology/kinds/torus": SIM + ["topology/kinds", "topology/graph"],
    "topology/graph": SIM,
    # What a person says of a model; parts of layers; mixers; layers.
    "workload/model": BASE + ["sim/chips"],
    "workload/parts": BASE + ["sim/chips", "workload/model"],
    "workload/mixers": BASE + ["sim/chips", "workload/model", "workload/parts"],
    "workload": BASE + ["sim/chips"] + WORKLOAD,
    # Types; what makes an order and what runs one; the table of schedules; the search, which sets
    # out from published schedules.
    "schedules/pipeline": BASE,
    "schedules/pipeline/orders": BASE + PIPELINE[:1],
    "schedules/pipeline/replay": BASE + PIPELINE[:1],
    "schedules/pipeline/published": BASE + PIPELINE[:3],
    "schedules/pipeline/search": BASE + PIPELINE[:4],
    "schedules/plan": PIPELINE + WORKLOAD + PROGRAM,
    "schedules/plan/keys": PIPELINE + WORKLOAD + PROGRAM + PLAN[:1],
    "schedules/plan/checks": PIPELINE + WORKLOAD + PROGRAM + PLAN,
    # Steps of a layer; what is computed again; stages; bytes beside them; then the graph.
    **{room: PIPELINE + PLAN + WORKLOAD + PROGRAM + LOWERING[:i] for i, room in enumerate(LOWERING)},
    "experiment": SIM + SCHEDULES + TOPOLOGY + WORKLOAD,
    "experiment/passes": SIM + SCHEDULES + TOPOLOGY + WORKLOAD + ["experiment"],
    "experiment/bounds": LOADED,
    "experiment/explained": LOADED + FORMULAS,
    "experiment/step": LOADED + FORMULAS + ["experiment/explained"],
    "proto": LOADED + PROTO,
    "proto/catalog": LOADED + PROTO + GOODPUT[:1],
    "proto/hugging_face": LOADED + PROTO,
    "proto/hugging_face/families": LOADED + ["proto/messages"],
    "proto/messages": LOADED,
    "proto/network_case": LOADED + PROTO,
    "proto/serving_case": BASE + ["proto", "proto/messages"] + SERVING,
    # What is asked, what holds it, who decides, what came out; then the run that needs them all.
    "serving/requests": BASE,
    "serving/kv": BASE + ["serving/requests"],
    "serving/engines": BASE + ["serving/requests", "serving/kv"],
    "serving/metrics": BASE + ["serving/requests"],
    "serving": BASE + ["sim/engine"] + SERVING[2:],
    "serving/cases": BASE + ["serving"] + SERVING[2:],
    "serving/passes": LOADED + ["serving", "serving/engines", "serving/requests"],
    "serving/search": LOADED + SERVING + PASSES,
    # The books: formulas know nothing of the simulator; studies hold them against it.
    "books/formulas": BASE,
    "books/collective_forms": SIM + ["books/formulas"],
    "books/laboratory": LOADED + FINDINGS + FORMULAS + SERVING + PASSES,
    **{room: LOADED + FINDINGS + FORMULAS + GOODPUT[:1] + SERVING + PASSES + ["books/laboratory"]
       for room in STUDIES[1:]},
    "measured": LOADED + SERVING + PASSES,
    "calibration": LOADED + ["measured"],
    # Runs with failures know times only; steps/ simulates those.
    "goodput": BASE + ["sim/engine"],
    "goodput/energy": BASE + ["goodput"],
    "goodput/steps": LOADED + GOODPUT,
    "search": LOADED + FINDINGS,
    "traces/files": BASE,
    "traces/pictures": BASE + GOODPUT + ["books/laboratory", "traces/results"],
    "traces/formats": FINDINGS + ["experiment", "traces/files"] + SIM + SERVING,
    "traces/results": FINDINGS + ["experiment"] + GOODPUT + SIM + SERVING + TRACES[:2],
    # Pages are made of the JSON of results; what only a run knows is drawn in pages/run.
    "pages": BASE + TRACES,
    "pages/run": SIM + FINDINGS + ["experiment"] + TRACES,
    "store": BASE + TRACES,
    # Files of other software. What an importer of one format knows stays in its folder.
    "import": LOADED + PROTO + IMPORT,
    **{room: LOADED + PROTO + IMPORT for room in IMPORT[1:]},
    # Subcommands write output and end before they return; progress and signals are below them.
    "cli/session": LOADED + TRACES,
    "cli": LOADED + PROTO + FORMULAS + FINDINGS + GOODPUT + SERVING + PASSES + ["serving/search"]
    + ["measured", "calibration", "search", "pages", "pages/run", "store", "cli/session"]
    + STUDIES + TRACES + IMPORT,
}
FOLDERS = ["accuracy", "calibrate", "catalog", "collective", "compare", "diff", "figures", "formula", "goodput",
           "help", "import", "network", "processes", "run", "schedule", "search", "serve", "serve_search",
           "sweep", "topology", "validate", "view"]
for folder in FOLDERS:
    MAY_INCLUDE[f"cli/{folder}"] = MAY_INCLUDE["cli"] + ["cli", "cli/help", "cli/network", "cli/processes",
                                                         "cli/run", "cli/session"]
MAY_INCLUDE["cli"] = MAY_INCLUDE["cli"] + [f"cli/{folder}" for folder in FOLDERS]
MAY_INCLUDE["bindings"] = MAY_INCLUDE["cli"] + ["cli"]
# Data types that a room may include beyond the table, each a decision: docs/decisions.md.
FILES = {
    "books/formulas": ["catalog/catalog_data.h"],
    "proto/catalog": ["catalog/catalog_data.h"],
    "sim/run/books": ["sim/run/simulation_options.h", "sim/run/simulation_result.h"],
    "sim/run/collectives": ["sim/run/simulation_options.h"],
    "sim/run/folding": ["sim/run/simulation_options.h", "sim/run/simulation_result.h"],
    **{room: ["sim/network/places.h"] for room in PLAN},
    **{room: ["sim/network/places.h", "sim/collectives/collective.h"] for room in LOWERING},
    # They name what they simulate by files and names of the catalog, and see nothing else of proto.
    "measured": ["proto/load_experiment.h", "proto/catalog/catalog.h", "proto/messages/json_value.h",
                 "proto/catalog/measured_tables.h",
                 "proto/catalog/engine_releases.h",
                 "proto/catalog/serving_software.h"],
    "calibration": ["proto/load_experiment.h"],
    **{room: ["proto/load_experiment.h", "proto/catalog/measured_tables.h"] for room in STUDIES},
    "workload/parts": ["sim/collectives/byte_matrix.h"],
    "workload": ["sim/collectives/byte_matrix.h"],
    "pages": ["proto/messages/json_value.h", "experiment/uncertainty.h"],
    "pages/run": ["proto/messages/json_value.h", "workload/model_counts.h"],
    "import/nccl": ["measured/nccl_log.h"],  # one reader a format
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

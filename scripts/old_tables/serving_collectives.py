"""Tables of collectives of serving libraries, in the columns of ai-dynamo/aiconfigurator@095f58a5.

DeepEP's normal kernels run on a number of units that its tables leave out. Where no column `sms` says it, six rows of one
shape are of 4, 8, .. 24 units in this order, as aiconfigurator measures it (their times fall in that proportion), and a
single one of 20, DeepEP's default.
"""

import collections

from old_tables.collectives import ranks_of
from old_tables.hardware import find_hardware
from old_tables.rows import Refused, Row
from old_tables.words import WORDS, said, shape_of, time_of, types_of, word_of

COLUMNS = ["chip", "table", "op", "kernel", "num_gpus", "message_elements", "latency_ms"]
ORDER = ["id", "source", "cluster", "library", "op", "ranks", "nodes", "bytes", "shape", "dtype", "measured", "said", "assumed"]
SHAPE = ["chip", "framework", "version", "nodes", "tokens", "hidden", "topk", "experts"]
STEPS = 6
UNITS_OF_STEP = 4
ELEMENT = {"fp32": 4, "bf16": 2, "fp16": 2, "int8": 1, "": 2}


def is_of_deepep(row):
    return row["table"].startswith("wideep_deepep_")


def prepare(rows, _):
    """Splits a row of DeepEP into its halves, and gives those of normal kernels their units."""
    shapes = collections.Counter(tuple(row.get(column, "") for column in SHAPE) for _, row in rows
                                 if row["table"] == "wideep_deepep_normal")
    seen = collections.Counter()
    for line, row in rows:
        if not is_of_deepep(row):
            yield line, row
            continue
        row = dict(row)
        if row["table"] == "wideep_deepep_normal" and not row.get("sms"):
            shape = tuple(row.get(column, "") for column in SHAPE)
            seen[shape] += 1
            row["sms"] = {STEPS: str(UNITS_OF_STEP * seen[shape]), 1: ""}.get(shapes[shape], "unknown")
        for half in ("dispatch", "combine"):
            yield line, row | {"half": half}


def library_of(hardware, name):
    if not name:
        return ""
    if hardware.chip not in WORDS["generations"]:
        raise Refused(f"there is no {name}* for {hardware.chip}")
    return name + WORDS["generations"][hardware.chip]


def convert_exchange(row, hardware, source):
    half = row.text("half")
    is_normal = row.text("table") == "wideep_deepep_normal"
    if is_normal and row.text("sms") == "unknown":
        raise Refused("normal kernels run on a number of units (sms) that is not given")
    if (row.integer("nodes") or 1) > 1:
        raise Refused("DeepEP's kernels over several nodes have no closed form")
    return {"id": row.text("id"), "source": source, "cluster": hardware.cluster_of(hardware.chips_per_node),
            "library": library_of(hardware, "sglang-0.5-"), "op": ("bulk_" if is_normal else "") + half,
            "ranks": hardware.chips_per_node,
            "shape": shape_of(tokens=row.need("tokens"), hidden=row.need("hidden"), top_k=row.need("topk"),
                              experts=row.need("experts"), units=row.integer("sms") if is_normal else None),
            "measured.time": time_of(row, half + "_us", "us"),
            "assumed": "units: 20" if is_normal and not row.text("sms") else ""}


def convert(cells):
    row = Row(cells)
    kernel = row.text("kernel")
    hardware = find_hardware(row.text("chip"))
    source = f"{row.text('table')} {kernel} {hardware.chip}"
    words = said(row, "chip", "framework", "version", "table", "op", "kernel")
    if is_of_deepep(cells):
        return convert_exchange(row, hardware, source) | {"said": words}
    if kernel.endswith("_eager"):
        raise Refused("an eager call waits for the host")
    ranks, nodes = ranks_of(row, "num_gpus")
    dtype, _ = types_of(row.text("dtype"))
    name = word_of("all_reduce_libraries", kernel, "kernel")
    return {"id": row.text("id"), "source": source,
            "cluster": hardware.cluster_of(nodes * hardware.chips_per_node), "library": library_of(hardware, name),
            "op": word_of("collectives", row.text("op").replace("-", "_"), "collective"), "ranks": ranks,
            "nodes": nodes if nodes > 1 else "", "bytes": row.need("message_elements") * ELEMENT[dtype],
            "dtype": dtype, "measured.time": time_of(row, "latency_ms", "ms"), "said": words}

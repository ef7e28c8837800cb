"""Tables of measured collectives."""

from old_tables.hardware import find_hardware
from old_tables.rows import Refused, Row
from old_tables.words import said, source_of, time_of, types_of, word_of

COLUMNS = ["hardware", "op", "bytes", "ranks", "time_us"]
ORDER = ["id", "source", "cluster", "op", "ranks", "nodes", "bytes", "dtype", "algorithm", "measured", "said"]


def ranks_of(row, column="ranks"):
    """Returns ranks and nodes."""
    ranks = row.need(column)
    nodes = row.integer("nodes") or 1
    if ranks < 2:
        raise Refused(f"{column} must be 2 or more")
    if ranks % nodes:
        raise Refused("the ranks do not divide into nodes")
    return ranks, nodes


def cluster_of(hardware, ranks, nodes):
    if hardware.cluster and ranks // nodes > hardware.chips_per_node:
        raise Refused(f"more ranks a node than {hardware.cluster} has chips")
    return hardware.cluster_of(nodes * hardware.chips_per_node)


def convert(cells):
    row = Row(cells)
    ranks, nodes = ranks_of(row)
    op = word_of("collectives", row.text("op").replace("-", "_"), "collective")
    remark = row.text("algo")
    algorithm = word_of("algorithms", remark, "algorithm") if remark and nodes == 1 else ""
    return {"id": row.text("id"), "source": source_of(row),
            "cluster": cluster_of(find_hardware(row.text("hardware")), ranks, nodes), "op": op, "ranks": ranks,
            "nodes": nodes if nodes > 1 else "", "bytes": row.text("bytes"), "dtype": types_of(row.text("dtype"))[0],
            "algorithm": algorithm, "measured.time": time_of(row, "time_us", "us"),
            "said": said(row, "hardware", "dtype", "library", "network", "algo",
                         *(["source"] if row.text("source_id") else []), "remarks")}

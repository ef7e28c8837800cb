"""Tables of kernels of serving libraries, in the columns of ai-dynamo/aiconfigurator@095f58a5.

The source of a converted row is its table, library, types and chip, so that summaries are by those.
"""

from old_tables.hardware import find_hardware
from old_tables.rows import Refused, Row
from old_tables.words import WORDS, said, shape_of, time_of, types_of, word_of

COLUMNS = ["chip", "table", "kernel", "dtype", "kv_dtype", "latency_ms"]
ORDER = ["id", "source", "chip", "op", "shape", "dtype", "measured", "said"]


def decode(row, latent):
    library = word_of("decode_libraries", row.text("framework").lower(), "kernels of")
    cache, _ = types_of(row.text("kv_dtype"))
    queries = row.need("isl")
    step = int(row.text("step") or 0)
    window = row.text("window")
    of_heads = {} if latent else {"kv_heads": row.need("kv_heads"), "head_dim": row.need("head_dim"),
                                  "window": "" if window in ("", "0") else window}
    shape = shape_of(batch=row.need("batch"), heads=row.need("heads"), seq_q=queries, seq_kv=queries + step, **of_heads,
                     cache_dtype=cache, library=library)
    return shape, f"{row.text('table')} {library} kv {cache or 'bf16'}"


def library_of_experts(kernel):
    for part, library in WORDS["expert_libraries"].items():
        if part in kernel:
            modular = library == "flashinfer-trtllm" and kernel.endswith("modular")
            return library + ("-modular" if modular else "")
    raise Refused(f"no kernels of {kernel}")


def experts(row, weights):
    library = library_of_experts(row.text("kernel"))
    law, _, alpha = row.text("distribution").rpartition("_")
    routing = f"power_law:{alpha}" if law == "power_law" else row.text("distribution")
    if not routing.startswith(("power_law:", "balanced")):
        raise Refused(f"no such distribution: {row.text('distribution')}")
    shape = shape_of(tokens=row.need("tokens"), hidden=row.need("hidden"), intermediate=row.need("inter"),
                     top_k=row.need("topk"), experts=row.need("experts"), etp=row.need("moe_tp"), ep=row.need("moe_ep"),
                     routing=routing, weight_dtype=weights, library=library)
    return shape, f"moe {library} {row.text('dtype')}"


def convert(cells):
    row = Row(cells)
    table = row.text("table")
    dtype, weights = types_of(row.text("dtype"))
    op = {"generation_attention": "decode_attention", "generation_mla": "latent_decode", "moe": "experts"}.get(table)
    if op is None:
        raise Refused(f"no model for \"{table}\"")
    chip = find_hardware(row.text("chip")).chip
    shape, source = experts(row, weights) if op == "experts" else decode(row, op == "latent_decode")
    return {"id": row.text("id"), "source": f"{source} {chip}", "chip": chip, "op": op, "shape": shape, "dtype": dtype,
            "measured.time": time_of(row, "latency_ms", "ms"),
            "said": said(row, "chip", "framework", "version", "table", "kernel", "dtype")}

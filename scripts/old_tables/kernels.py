"""Tables of measured kernels of training and of prompts."""

from old_tables.hardware import find_hardware
from old_tables.rows import Refused, Row
from old_tables.words import first_word, said, shape_of, source_of, time_of, types_of, word_of

COLUMNS = ["hardware", "op", "m", "n", "k", "time_us"]
ORDER = ["id", "source", "chip", "op", "shape", "dtype", "measured", "said"]
NARROW = {"fp8", "fp8_block", "mxfp8", "int8", "mxfp4", "nvfp4", "int4"}


def shape_of_kernel(row, op, dtype, weights):
    if op == "gemm":
        # Only "gemm" itself times what makes a wide input narrow.
        inputs = "rounded" if row.text("op") != "gemm" and dtype in NARROW else ""
        return shape_of(m=row.need("m"), n=row.need("n"), k=row.need("k"), weight_dtype=weights, inputs=inputs)
    if op == "add":
        return shape_of(m=row.need("m"), n=row.need("n"))
    library = row.text("library")
    return shape_of(batch=row.integer("batch"), heads=row.need("heads"), kv_heads=row.need("kv_heads"),
                    seq_q=row.need("seq_q"), seq_kv=row.need("seq_kv"), head_dim=row.need("head_dim"),
                    phase="backward" if row.text("phase") == "backward" else "forward",
                    library=word_of("attention_libraries", library, "library") if library else "")


def convert(cells):
    row = Row(cells)
    name, _, part = row.text("op").partition(":")
    if part.startswith("grouped"):
        raise Refused("grouped matmuls are several kernels of unknown sizes")
    op = word_of("kernels", name, "kernel")
    dtype, weights = types_of(first_word(row.text("dtype")))
    return {"id": row.text("id"), "source": source_of(row), "chip": find_hardware(row.text("hardware")).chip, "op": op,
            "shape": shape_of_kernel(row, op, dtype, weights), "dtype": dtype, "measured.time": time_of(row, "time_us", "us"),
            "said": said(row, "hardware", "op", "dtype", "stat", "remarks")}

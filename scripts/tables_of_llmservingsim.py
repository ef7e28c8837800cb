#!/usr/bin/env python3
"""Makes tables of kernels of what LLMServingSim's profiler timed under vLLM, in the columns of docs/measured-tables.md.

    git clone https://github.com/casys-kaist/LLMServingSim
    scripts/tables_of_llmservingsim.py LLMServingSim/profiler/perf/RTX4090 rtx4090 OUT

CHIP is the name of the catalog. Writes into OUT:

    matmuls.csv   projections, for `stepsim calibrate` and `stepsim accuracy`
    prompts.csv   attention of a prompt's chunk, for `stepsim accuracy`
    serving.csv   attention of requests that generate, alone and beside a chunk, and layers of experts, for
                  scripts/fit_serving_kernels: a checkout's layers are timed one after another, so nothing is found
                  again in the second-level cache (CACHE_MB 0.001)

What requests that generate take beside a chunk is the time of both less that of the chunk alone; the median over chunks
of 128 tokens and more.
"""
import csv
import pathlib
import statistics
import sys

COLUMNS = ("source", "chip", "op", "shape", "dtype", "measured.time")
# hidden, heads, heads of keys, MLP, vocabulary; of experts width and choices. Their configurations on Hugging Face.
MODELS = {"Llama-3.1-8B": (4096, 32, 8, 14336, 128256, None), "Qwen3-32B": (5120, 64, 8, 25600, 151936, None),
          "Qwen3-30B-A3B-Instruct-2507": (2048, 32, 4, None, 151936, (768, 8))}
HEAD = 128
OF_VLLM = {"cache_dtype": "bf16", "library": "vllm"}


def rows_of(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def kernel(op, microseconds, **shape):
    return {"op": op, "shape": ",".join(f"{key}={value}" for key, value in shape.items()), "measured.time": f"{microseconds}us"}


def shapes_of(model, tp):
    """Returns n and k of the projections that the profiler names."""
    hidden, heads, kv_heads, mlp, vocabulary, _ = model
    shapes = {"qkv_proj": ((heads + 2 * kv_heads) * HEAD // tp, hidden), "o_proj": (hidden, heads * HEAD // tp),
              "lm_head": (vocabulary // tp, hidden)}
    if mlp:
        shapes |= {"gate_up_proj": (2 * mlp // tp, hidden), "down_proj": (hidden, mlp // tp)}
    return shapes


def matmuls(folder, model, tp):
    shapes = shapes_of(model, tp)
    timed = [(row["layer"], row["tokens"], row) for row in rows_of(folder / "dense.csv")]
    timed += [(row["layer"], row["sequences"], row) for row in rows_of(folder / "per_sequence.csv")]
    for layer, rows, row in timed:
        if layer in shapes:
            n, k = shapes[layer]
            yield kernel("gemm", row["time_us"], m=rows, n=n, k=k)


def attention(folder, heads, kv_heads):
    """Returns rows of prompts, of requests that generate, and of these beside a chunk."""
    times = {}
    for row in rows_of(folder / "attention.csv"):
        key = tuple(int(row[name]) for name in ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode"))
        times[key] = float(row["time_us"])
    sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": HEAD}
    prompts, alone, beside = [], [], {}
    for (chunk, before, requests, keys), time in times.items():
        if requests == 0 and chunk >= 128:
            prompts.append(kernel("attention_causal", time, batch=1, seq_q=chunk, seq_kv=chunk + before, **sizes))
        elif chunk == 0 and requests > 0 and keys > 0:
            alone.append(kernel("decode_attention", time, batch=requests, seq_q=1, seq_kv=keys, **sizes, **OF_VLLM))
        elif chunk >= 128 and requests > 0 and keys > 0 and (chunk, before, 0, 0) in times:
            beside.setdefault((requests, keys), []).append(time - times[chunk, before, 0, 0])
    together = [kernel("decode_attention_beside_prompts", statistics.median(more), batch=requests, seq_q=1, seq_kv=keys, **sizes,
                       **OF_VLLM)
                for (requests, keys), more in beside.items() if statistics.median(more) > 0]
    return prompts, alone + together


def experts(folder, hidden, inter, chosen):
    for row in rows_of(folder / "moe.csv"):
        yield kernel("experts", row["time_us"], tokens=row["tokens"], hidden=hidden, intermediate=inter, top_k=chosen,
                     experts=row["activated_experts"], etp=1, ep=1, routing="balanced", library="triton")


def write(path, chip, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in rows:
            writer.writerow({"source": "casys-kaist/LLMServingSim", "chip": chip, "dtype": "bf16", **row})


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    perf, chip, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    projections, prompts, serving = [], [], []
    for folder in sorted(perf.glob("*/*/bf16/tp*")):
        name, tp = folder.parts[-3], int(folder.name[2:])
        if name not in MODELS:
            continue
        model = MODELS[name]
        projections += matmuls(folder, model, tp)
        own_prompts, own_requests = attention(folder, model[1] // tp, model[2] // tp)
        prompts += own_prompts
        serving += own_requests
        if model[5] and tp == 1:
            serving += experts(folder, model[0], *model[5])
    write(out / "matmuls.csv", chip, projections)
    write(out / "prompts.csv", chip, prompts)
    write(out / "serving.csv", chip, serving)


if __name__ == "__main__":
    main()

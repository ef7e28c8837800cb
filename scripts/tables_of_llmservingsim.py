#!/usr/bin/env python3
"""Makes tables of kernels of what LLMServingSim's profiler timed under vLLM, in the columns of docs/accuracy.md.

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

KERNELS = ("hardware", "op", "phase", "dtype", "m", "n", "k", "batch", "seq_q", "seq_kv", "heads", "kv_heads",
           "head_dim", "tp", "time_us", "source")
SERVING = ("chip", "table", "framework", "version", "kernel", "dtype", "kv_dtype", "batch", "isl", "step", "heads",
           "kv_heads", "head_dim", "window", "tokens", "hidden", "inter", "topk", "experts", "moe_tp", "moe_ep",
           "distribution", "latency_ms")
# hidden, heads, heads of keys, MLP, vocabulary; of experts width and choices. Their configurations on Hugging Face.
MODELS = {"Llama-3.1-8B": (4096, 32, 8, 14336, 128256, None), "Qwen3-32B": (5120, 64, 8, 25600, 151936, None),
          "Qwen3-30B-A3B-Instruct-2507": (2048, 32, 4, None, 151936, (768, 8))}
HEAD = 128


def rows_of(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


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
            yield {"op": "gemm", "m": rows, "n": n, "k": k, "time_us": row["time_us"]}


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
            prompts.append({"op": "attention_causal", "batch": 1, "seq_q": chunk, "seq_kv": chunk + before, **sizes,
                            "time_us": time})
        elif chunk == 0 and requests > 0 and keys > 0:
            alone.append({"table": "generation_attention", "batch": requests, "isl": keys, "step": 0, "window": 0, **sizes,
                          "latency_ms": time / 1e3})
        elif chunk >= 128 and requests > 0 and keys > 0 and (chunk, before, 0, 0) in times:
            beside.setdefault((requests, keys), []).append(time - times[chunk, before, 0, 0])
    together = [{"table": "attention_beside_prompts", "batch": requests, "isl": keys, "step": 0, "window": 0, **sizes,
                 "latency_ms": statistics.median(more) / 1e3}
                for (requests, keys), more in beside.items() if statistics.median(more) > 0]
    return prompts, alone + together


def experts(folder, hidden, inter, chosen):
    for row in rows_of(folder / "moe.csv"):
        yield {"table": "moe", "kernel": "vllm_unquantizedfusedmoe_triton_tritonexperts", "tokens": row["tokens"],
               "hidden": hidden, "inter": inter, "topk": chosen, "experts": row["activated_experts"], "moe_tp": 1,
               "moe_ep": 1, "distribution": "balanced", "latency_ms": float(row["time_us"]) / 1e3}


def write(path, columns, rows, common):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({**common, **row})


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
    kernel = {"hardware": chip, "phase": "forward", "dtype": "bf16", "tp": 1, "source": "casys-kaist/LLMServingSim"}
    write(out / "matmuls.csv", KERNELS, projections, kernel)
    write(out / "prompts.csv", KERNELS, prompts, kernel)
    write(out / "serving.csv", SERVING, serving,
          {"chip": chip, "framework": "VLLM", "version": "0.19.0", "kernel": "vllm_flash_attn", "dtype": "bfloat16",
           "kv_dtype": "bfloat16"})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Fits kernels of serving inside a node (sim/collectives/direct_kernels.h) to a table of timings.

    scripts/fit_direct_kernels.py TABLE.csv CLUSTER UNITS

TABLE.csv has collectives in the columns of docs/measured-tables.md; CLUSTER is a name in its column `cluster`, UNITS the
compute units of a chip. Prints the constants as a library's file has them, with the errors of the rows and of the fifth that
is left out. The logarithms of predicted / measured are minimised without their signs, by the simplex method of Nelder
and Mead (1965).
"""
import csv
import math
import random
import sys

CHIPS = 8
UNITS_OF_DEEPEP = 20
LIMITS = {"sglang": 16 << 20, "trtllm": 8 << 20, "vllm": 8 << 20}


def simplex(objective, start, rounds=5, steps=1500):
    """Returns the best x found from `start`; each round begins anew around the best so far."""
    best = list(start)
    for _ in range(rounds):
        points = [list(best)]
        for i in range(len(best)):
            moved = list(best)
            moved[i] = moved[i] * 1.3 + 0.05
            points.append(moved)
        values = [objective(p) for p in points]
        for _ in range(steps):
            order = sorted(range(len(points)), key=lambda i: values[i])
            points = [points[i] for i in order]
            values = [values[i] for i in order]
            if values[-1] - values[0] < 1e-9:
                break
            centre = [sum(p[i] for p in points[:-1]) / (len(points) - 1) for i in range(len(best))]

            def towards(factor):
                x = [max(1e-9, c + factor * (w - c)) for c, w in zip(centre, points[-1])]
                return x, objective(x)

            reflected, value = towards(-1)
            if value < values[0]:
                expanded, further = towards(-2)
                points[-1], values[-1] = (expanded, further) if further < value else (reflected, value)
            elif value < values[-2]:
                points[-1], values[-1] = reflected, value
            else:
                inner, value = towards(0.5)
                if value < values[-1]:
                    points[-1], values[-1] = inner, value
                else:
                    points = [points[0]] + [[(a + b) / 2 for a, b in zip(p, points[0])] for p in points[1:]]
                    values = [values[0]] + [objective(p) for p in points[1:]]
        best = points[0]
    return best


def loss(predicted, measured):
    error = abs(math.log(predicted / measured))
    return error + 0.5 * error * error / (0.1 + error)


def fit(rows, model, starts):
    """`rows`: (shape, microseconds). Prints the errors and returns the constants."""
    shuffled = list(rows)
    random.Random(1).shuffle(shuffled)
    left_out = shuffled[:len(rows) // 5]
    fitted = shuffled[len(rows) // 5:]

    def objective(x):
        return sum(loss(model(x, shape), time) for shape, time in fitted) / len(fitted)

    best = min((simplex(objective, start) for start in starts), key=objective)

    def errors(of):
        sizes = sorted(abs(model(best, shape) / time - 1) for shape, time in of)
        return f"median {100 * sizes[len(sizes) // 2]:.1f} %, p90 {100 * sizes[len(sizes) * 9 // 10]:.1f} %"

    print(f"# {len(rows)} rows: {errors(fitted)}; left out: {errors(left_out)}")
    return best


def all_reduce_us(x, shape):
    n, size = shape
    doublings = math.log2(n) - 1
    one = x[0] + x[1] * doublings + (n - 1) * size / (x[2] * 1e3)
    two = x[3] + x[4] * doublings + 2 * (n - 1) / n * size / (x[5] * 1e3)
    return min(one, two)


def microseconds(row):
    """The time of "12.5us", or of seconds."""
    text = row["measured.time"]
    return float(text[:-2]) if text.endswith("us") else 1e6 * float(text)


def sizes_of(row):
    """The whole numbers of the shape."""
    return {key: int(value) for key, value in (part.split("=") for part in row["shape"].split(","))}


def fit_all_reduce(library, rows):
    limit = LIMITS[library]
    shapes = [((int(r["ranks"]), int(r["bytes"])), microseconds(r)) for r in rows]
    shapes = [s for s in shapes if s[0][1] <= limit]
    x = fit(shapes, all_reduce_us, [[3, .3, 280, 6, 1, 300], [6, .3, 400, 10, .5, 600], [4, .2, 200, 15, .2, 300]])
    print(f'# {library}\ndirect_all_reduce {{\n  up_to: "{limit >> 20}MiB" one_start: "{x[0]:.2f}us" '
          f'one_doubling: "{x[1]:.2f}us" one_bandwidth: "{x[2]:.0f}GB/s"\n  two_start: "{x[3]:.2f}us" '
          f'two_doubling: "{x[4]:.2f}us" two_bandwidth: "{x[5]:.0f}GB/s"\n}}')


def token_bytes(which, hidden):
    """fp8 with a scale for each 128 values and a header there, bf16 back."""
    return hidden + hidden // 128 * 4 + 16 if which == "dispatch" else 2 * hidden


def fit_exchange(which, rows, units):
    def sent(row):
        sizes = sizes_of(row)
        return sizes["experts"], sizes["tokens"] * sizes["top_k"] * token_bytes(which, sizes["hidden"])

    def model(x, shape):
        experts, size = shape
        busy = min(units, experts * x[4])
        return x[0] + x[1] * 1e-3 * experts + size / (min(x[2], busy * x[3]) * 1e3)

    x = fit([(sent(r), microseconds(r)) for r in rows], model, [[10, 10, 290, 12, .3], [14, 20, 550, 16, .3]])
    print(f'{which} {{\n  start: "{x[0]:.2f}us" expert_start: "{x[1]:.1f}ns" bandwidth: "{x[2]:.0f}GB/s" '
          f'unit_rate: "{x[3]:.2f}GB/s" units_of_expert: {x[4]:.3f}\n}}')


def chips_of_token(top_k, experts):
    """Of the eight chips of a node, those that get a copy of a token, on average."""
    of_chip = max(1, experts / CHIPS)
    none = 1.0
    for i in range(top_k):
        none *= max(0, experts - i - of_chip) / (experts - i)
    return CHIPS * (1 - none)


def bulk_us(x, shape):
    tokens, token, copies, units = shape
    start, at_once, token_time, token_slowness, copy_time, copy_slowness, slowness = x
    one = token_time + token * token_slowness + copies * (copy_time + token * copy_slowness)
    busy = (tokens / units + at_once) * one
    links = tokens * copies * token * slowness
    return start + (busy**4 + links**4)**0.25


def fit_bulk(which, rows):
    shapes = []
    for r in rows:
        sizes = sizes_of(r)
        shape = (sizes["tokens"], token_bytes(which, sizes["hidden"]), chips_of_token(sizes["top_k"], sizes["experts"]),
                 sizes.get("units", UNITS_OF_DEEPEP))
        shapes.append((shape, microseconds(r)))
    x = fit(shapes[::3], bulk_us, [[25, 3, .4, 5e-5, .05, 3e-5, 2e-6], [20, 6, .5, 1e-5, .2, 3e-5, 1e-6]])
    rates = [f"{1e-3 / max(v, 1e-9):.2f}GB/s" for v in (x[3], x[5], x[6])]
    print(f'bulk_{which} {{\n  start: "{x[0]:.2f}us" tokens_at_once: {x[1]:.2f} token_time: "{1e3 * x[2]:.0f}ns" '
          f'token_rate: "{rates[0]}"\n  copy_time: "{1e3 * x[4]:.0f}ns" copy_rate: "{rates[1]}" '
          f'bandwidth: "{rates[2]}"\n}}')


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["cluster"] == sys.argv[2]]
    for library in LIMITS:
        fit_all_reduce(library, [r for r in rows if r["op"] == "all_reduce" and r["library"].startswith(library)])
    for which in ["dispatch", "combine"]:
        fit_exchange(which, [r for r in rows if r["op"] == which], int(sys.argv[3]))
    for which in ["dispatch", "combine"]:
        fit_bulk(which, [r for r in rows if r["op"] == "bulk_" + which])


if __name__ == "__main__":
    main()

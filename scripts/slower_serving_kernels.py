#!/usr/bin/env python3
"""Prints the serving kernels of a chip's file, FACTOR times as slow: slower_serving_kernels.py CHIP.textproto FACTOR.

For chips of which no kernels were measured: their constants are a sister's, and the factor is fitted to served runs,
which the chip's file names.
"""
import re
import sys

LONGER = {"start", "block_start", "split_start", "expert_start", "remote_start"}
LESS = {"block_bandwidth", "memory_fraction", "peak_fraction", "operand_bandwidth"}


def scaled(match, factor):
    key, quote, number, unit = match.groups()
    if key not in LONGER | LESS:
        return match.group(0)
    value = float(number) * (factor if key in LONGER else 1 / factor)
    return f"{key}: {quote}{value:.3g}{unit}{quote}"


text = open(sys.argv[1], encoding="utf-8").read()
block = text[text.index("serving {"):]
block = block[:block.index("\n}\n") + 3]
lines = [line for line in block.splitlines() if not line.strip().startswith("#")]
pattern = re.compile(r'(\w+): ("?)([0-9.]+(?:e[0-9-]+)?)([A-Za-z/]*)\2')
for line in lines:
    print(pattern.sub(lambda match: scaled(match, float(sys.argv[2])), line))

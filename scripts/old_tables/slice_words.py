"""Slices of TPUs in the words of old tables: "v5p-256 slice", "8x12x16", "2 slices over DCN"."""

import math
import re

from old_tables.rows import Refused


def cluster_of(hardware, inside, between, chips):
    """Returns the cluster of the catalog: "v5p-4x4x8", "v5p-multislice-2x4x4x8"."""
    words = re.split(r"[ (),;]+", inside)
    axes = next((word for word in words if re.fullmatch("[1-9][0-9]*(x[1-9][0-9]*)+", word)), "")
    cores = next((int(word.rsplit("-", 1)[1]) for word, after in zip(words, words[1:])
                  if after == "slice" and re.fullmatch(".*-[1-9][0-9]*", word)), None)
    slices = 1
    network = re.split(r"[ (),;]+", between)
    for before, word in zip(network, network[1:]):
        if word in ("slices", "pods") and before.isdigit():
            slices = int(before)
    if chips % slices != 0:
        raise Refused(f"{chips} chips are not {slices} equal slices")
    of_slice = chips // slices
    if cores is not None and cores != of_slice * hardware.cores_per_chip:
        raise Refused(f"the slice of {cores} cores or chips is not the {of_slice} chips of the run")
    if axes and math.prod(map(int, axes.split("x"))) != of_slice:
        raise Refused(f"the slice {axes} does not have the {of_slice} chips of the run")
    size = axes or str(of_slice)
    if slices == 1:
        return f"{hardware.cluster}-{size}"
    if not hardware.multislice:
        raise Refused(f"the catalog has no family of several slices of {hardware.chip}")
    return f"{hardware.multislice}-{slices}x{size}"

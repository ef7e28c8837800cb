"""Tables of training runs in the columns of stepsim 0.1, into the program's own keys."""

import csv
import functools
import json
import pathlib
import re
import subprocess
import tempfile

from old_tables import network_words, slice_words, training_model
from old_tables.hardware import find_hardware, network_of_machine
from old_tables.rows import Refused, Row, cell_text, is_blank, number_text
from old_tables.training_model import model_of
from old_tables.training_plan import DEFAULTS, is_open, plan_of
from old_tables.training_software import Entry, entries, software_of

COLUMNS = ["model", "chip", "chip_count", "global_batch", "step_time_s"]
ORDER = ["id", "source", "grade", "model", "cluster", "chip", "software", "plan", "measured", "said", "assumed"]
# Of models whose rows give none: GPT-2's, as Megatron pads it.
USUAL_VOCABULARY = 51_200
# Keys that a person chooses; what else this module sets is of the software.
PLAN_KEYS = set("""tp cp pp dp ep sequence global_batch microbatch document_length schedule chunks layout dispatch zero
    reshard_after_forward prefetch recompute recompute_keep recompute_modules recompute_layers dtype weight_dtype
    sequence_parallel overlap_gradients overlap_parameters overlap_expert_parallel lora_rank lora_modules frozen_dtype
    offload_optimizer offload_activations offload_layers allow_idle_chips""".split())
# Given even where the software brings the same: they say what the run was.
ALWAYS = ("tp", "dp", "pp", "global_batch", "sequence", "zero", "dtype")
# Columns whose words are kept for people.
SAID = ("model", "chip", "chip_count", "intra_node", "inter_node", "software", "release", "attention", "schedule", "zero_stage",
        "recompute", "dtype", "overlap", "moe_detail", "other_metrics", "metric_origin", "flops_convention", "source_locator",
        "remarks")


# ---- the cluster ----


@functools.cache
def _catalog(kind, name):
    """Returns an entry of the catalog as text; "" if there is none."""
    return subprocess.run([training_model.stepsim, "catalog", kind, name], capture_output=True, text=True).stdout


def _card_of(cluster):
    """Gb/s of a chip's card in a cluster of the catalog; None if its chips have none."""
    text = _catalog("clusters", cluster)
    found = re.search(r'nic_bandwidth: "([0-9.]+)Gbps"', text)
    return float(found.group(1)) if found and re.search("dgx_superpod|rail_fabric", text) else None


def _cards(row, cluster):
    """Returns the bandwidth of a chip's card, where a row's differs from the catalog's."""
    card = _card_of(cluster)
    if card is None:
        return {}
    chips = row.integer("chips_per_node") or 8
    node = network_words.network_of_node(row.text("inter_node"), chips, card)
    if node is None:
        machine = next(filter(None, (network_of_machine(row.text(column)) for column in ("inter_node", "intra_node", "chip"))), None)
        if machine is None:
            row.assumed.append("network of a node: the catalog's")
            return {}
        node = machine[0], f"that of {machine[1]}"
    if node[1]:
        row.assumed.append(f"network of a node: {node[1]}")
    return {} if node[0] / chips == card else {"cluster..nic_bandwidth": f"{number_text(node[0] / chips)}Gbps"}


def cluster_of(row, hardware, chips):
    if hardware.multislice:
        name = slice_words.cluster_of(hardware, row.text("intra_node"), row.text("inter_node"), chips)
    else:
        name = hardware.cluster_of(chips)
    cells = {"cluster": name}
    if f'catalog: "{hardware.chip}"' not in _catalog("clusters", name):
        cells["chip"] = hardware.chip
    if chips > hardware.chips_per_node:
        cells |= _cards(row, name)
    limit = row.text("power_limit")
    if not is_blank(limit):
        found = re.fullmatch(r"([0-9.]+) *W?", limit)
        if not found or float(found.group(1)) <= 0:
            raise Refused(f"power_limit is \"{limit}\", must be a number of watts")
        if "power {" in _catalog("chips", hardware.chip):
            cells["cluster.chip.power.limit_watts"] = found.group(1)
        else:
            row.assumed.append(f"power_limit: {hardware.chip} has no model of its power")
    return cells


# ---- what was measured ----

GIB = 1 << 30


def measured_of(row, ranks):
    """Returns the cells of what was measured: a step time, or the throughput where there is none, and memory."""
    cells = {}
    step, rate, of_chip = (row.positive(column) for column in ("step_time_s", "tokens_per_s", "tokens_per_s_per_gpu"))
    chips = row.positive("chip_count")
    flops = row.positive("tflops_per_gpu")
    if step is None and rate is None and of_chip is not None and chips is not None:
        rate = of_chip * chips
    if step is not None:
        cells["measured.step_time"] = f"{number_text(step)}s"
    elif rate is not None:
        cells["measured.tokens_per_s"] = number_text(rate)
    elif flops is not None and chips is not None and "non-causal" in row.text("flops_convention"):
        # Other conventions leave open what they count.
        cells["measured.flops_per_chip"] = number_text(flops * 1e12 * chips / ranks)
        cells["measured.attention_flops"] = "full"
        row.assumed.append("step time: the model's FLOPs over the TFLOP/s")
    words = " ".join(row.text(column) for column in ("metric_origin", "other_metrics", "remarks"))
    memory = row.positive("memory_gb")
    if memory is not None:
        cells["measured.peak_memory"] = number_text(memory * (GIB if "GiB" in words else 1e9))
        figures = (("reserved", "reserved"), ("allocated", "allocated"), ("nvidia-smi", "device"), ("rocm-smi", "device"))
        figure = next((figure for word, figure in figures if word in words), None)
        if figure:
            cells["measured.memory_figure"] = figure
    if not cells:
        raise Refused("neither a step time nor memory was measured")
    return cells


# ---- a row ----


def _ranks(row):
    product = row.integer("dp") or 0
    for axis in ("tp", "cp", "pp"):
        product *= row.integer(axis) or 1
    return product


def _cells(keys, brought):
    """The columns of keys that differ from what the software brings, or from what they are without it."""
    cells = {}
    for key, value in keys.items():
        text = cell_text(value)
        if key in ALWAYS or text != brought.get(key, DEFAULTS.get(key)):
            cells[("plan." if key in PLAN_KEYS else "software.") + key] = text
    return cells


def convert(cells):
    row = Row(cells)
    hardware = find_hardware(row.text("chip"))
    ranks = _ranks(row)
    row.integer("chip_count")  # it must make sense where the axes say how many there are, too
    chips = ranks or row.need("chip_count")
    rule = software_of(row)
    entry = entries()[rule["entry"]] if rule else Entry({})
    name, sizes, model = model_of(row, (rule or {}).get("vocabulary", USUAL_VOCABULARY))
    cluster = cluster_of(row, hardware, chips)
    keys, guesses = plan_of(row, model, entry, rule, chips, hardware)
    base = dict(keys.given)
    candidates = [base | guess for guess in guesses or [{}]]
    several = keys.replicas() > 1
    variants = [{"zero": 1}] if is_open(row.text("zero_stage")) and keys["zero"] == "0" and several else []
    if keys["loss"] == "separate":
        chunked = {"loss": "chunked"} | ({"hold_logits": False} if keys.on("hold_logits") else {})
        variants += [chunked] + [variant | chunked for variant in variants]
    candidates += [candidate | variant for variant in variants for candidate in candidates[:max(1, len(guesses))]]
    new = {"id": row.text("id"), "source": row.text("source_id") or row.text("source"), "grade": row.text("spec_grade"),
           "model": name, "cluster": cluster.pop("cluster"), "software": entry.name.replace(" ", "-")}
    new |= cluster | {f"model.{key}": str(value) for key, value in sizes.items()}
    new |= measured_of(row, int(keys["tp"]) * int(keys["cp"]) * int(keys["pp"]) * int(keys["dp"]))
    new["said"] = "; ".join(f"{column}: {row.text(column)}" for column in SAID if row.text(column))
    return [new | _cells(candidate, keys.brought) | {"assumed": row.assumed + _why(candidate, base, guesses)}
            for candidate in candidates]


def _why(candidate, base, guesses):
    changed = {key: value for key, value in candidate.items() if base.get(key) != value}
    if guesses and "recompute" not in changed:
        changed["recompute"] = "none"
    return [f"{key}: {value}" for key, value in changed.items()]


def choose(rows, stepsim):
    """Takes of each row the first candidate that fits in memory, or the first. `rows` are lists of candidates."""
    tried = [candidates for candidates in rows if len(candidates) > 1]
    fits = _which_fit([candidate for candidates in tried for candidate in candidates], stepsim) if tried else []
    at = 0
    chosen = []
    for candidates in rows:
        best = 0
        if len(candidates) > 1:
            own = fits[at:at + len(candidates)]
            at += len(candidates)
            best = own.index(True) if True in own else 0
        row = candidates[best]
        if len(candidates) > 1 and row["assumed"]:
            row["assumed"][-1] += ", the cheapest that fits" if any(own) else ", though nothing fits"
        chosen.append(row | {"assumed": "; ".join(row["assumed"])})
    return chosen


def _which_fit(candidates, stepsim):
    with tempfile.TemporaryDirectory() as folder:
        table, result = pathlib.Path(folder, "table.csv"), pathlib.Path(folder, "result.json")
        with table.open("w", newline="", encoding="utf-8") as file:
            columns = list(dict.fromkeys(column for row in candidates for column in row if column not in ("said", "assumed")))
            writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore")
            writer.writeheader()
            writer.writerows({**row, "id": str(at)} for at, row in enumerate(candidates))
        subprocess.run([stepsim, "accuracy", table, "--json", result, "--quiet"], check=False, capture_output=True)
        rows = json.loads(result.read_text(encoding="utf-8"))["rows"]
    fits = {row["id"]: bool(row.get("fits")) for row in rows}
    return [fits.get(str(at), False) for at in range(len(candidates))]

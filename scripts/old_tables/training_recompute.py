"""What a row of an old table of training runs recomputes, in the words of its software.

    Megatron    full; selective; modules: "norm, act", "mla_up_proj mlp", "core-attn, moe"
    torchtitan  selective (op); selective (layer); "selective AC (fraction of blocks not stated)"
    MaxText     its remat policies and lists: "custom: all but decoder_layer_input(offload), query_proj(offload)"
    anybody     no; yes; "8 of 10 layers", "4 layers" or "block 4" of each stage, "every 2nd layer", "50 %"; SAC

The name of a setting may stand before it ("remat_policy=minimal"). A name that is offloaded offloads all that a block keeps.
"""

import fractions
import math
import re

from old_tables.rows import CATALOG, is_blank, read_textproto, words_of_tables

WORDS = words_of_tables("training_words")["recompute"]
TRAINERS = read_textproto(CATALOG / "trainers" / "recompute.textproto")
POLICIES = {policy["name"][0]: policy for policy in TRAINERS["remat_policy"]}
MODULES = {module["name"][0]: module["module"][0] for module in TRAINERS["recomputed_module"]} | WORDS["modules"]
CHECKS = ("checkpoint", "ckpt", "recompute", "remat")


def names_in(text):
    """Cuts a text at all that is neither a letter nor a digit nor "_", for which "-" stands too."""
    return [name.replace("-", "_") for name in re.findall("[a-zA-Z0-9_-]+", text)]


def alternative_for(text, dtype):
    """The alternative for a type of "save_a (fp8) / save_b (bf16)"; the first if none names the type."""
    parts = text.split(" / ")
    return next((part for part in parts if f"({dtype})" in part), parts[0])


def setting(words):
    """What a setting is set to: "remat_policy=minimal", "AutodiffCheckpointType.SAVE_NOTHING"; other texts as they are."""
    words = words.lstrip("- ")
    found = re.search("[=:.]", words)
    if found:
        name = words[:found.start()]
        if len(names_in(name)) == 1 and any(part in name for part in WORDS["settings"]):
            words = words[found.start():].lstrip("= :.")
    if words == "recompute-activations" or words.startswith("recompute_activations"):
        return "selective"  # Megatron's first flag for it
    return words


def without_recompute(names):
    """Names without the words that only say that something is recomputed: "selective activation checkpointing" is selective."""
    rest = []
    for name in names:
        says_it = name in WORDS["says"]
        if says_it and rest and rest[-1] in ("activation", "activations", "gradient", "act"):
            rest.pop()
        if not says_it:
            rest.append(name)
    return rest


def whole(text):
    return int(text) if re.fullmatch("[0-9]+", text or "") else None


def some_blocks(words):
    """Returns (share, None) or (1, count of each stage) for "8 of 10 layers", "4 layers", "block 10", "every 2nd layer", "50 %",
    "half"; None if a text says none. Megatron's uniform method recomputes all, some at a time."""
    names = names_in(words)
    if "uniform" in names:
        return None

    def name(at):
        return names[at] if 0 <= at < len(names) else ""

    for at, text in enumerate(names):
        if text == "half":
            return 0.5, None
        if text == "every":
            leading = re.match("[0-9]+", name(at + 1))
            each = 2 if name(at + 1) in ("other", "second") else int(leading.group()) if leading else 0
            if each > 0:
                return 1 / each, None
        number = whole(text)
        if not number:
            continue
        if f"{text}%" in words or f"{text} %" in words:
            return number / 100, None
        divides = name(at + 1) == "of" or f"{text}/{name(at + 1)}" in words
        of = whole(name(at + (2 if name(at + 1) == "of" else 1)))
        if divides and of and of >= number:
            return number / of, None
        if name(at + 1) in ("layer", "layers", "block", "blocks") or name(at - 1) in ("block", "blocks", "layers"):
            return 1, number
    return None


def custom_policy(text):
    """Reads "all but decoder_layer_input(offload), query_proj(offload), context(remat)". A block's input is always kept."""
    kept, offloads, named = [], False, None
    for name in [*names_in(text), ""]:
        if name == "remat":
            named = None
        elif name.startswith("offload"):
            offloads = True
        else:
            if named and named not in kept:
                kept.append(named)
            named = WORDS["tensors"].get(name)
    return kept, offloads


def remat_policy(words):
    """Returns (what a block keeps, whether it is offloaded); None if the words name no policy."""
    if words.startswith("custom"):
        return custom_policy(words.removeprefix("custom"))
    names = names_in(words)
    policy = POLICIES.get(names[0]) if names else None
    if policy is None:
        return None
    return policy["keep"][0].split("+") if "keep" in policy else [], "offload" in policy


def modules(names):
    """Megatron Core's modules; none if a name is not one of them."""
    found = []
    for name in names:
        if name in ("selective", "select", "and", "only", "core", "modules"):
            continue
        if name not in MODULES:
            return []
        found.append(MODULES[name])
    return found


class Recompute:
    """Reads a row's words into keys."""

    def __init__(self, row, layers, keys):
        self.row, self.keys = row, keys
        self.of_stage = max(1, layers // max(1, keys.stages()))

    def some(self, share, count=None):
        self.keys["recompute"] = "full"
        # Half a block is a whole one: as C's llround().
        blocks = max(1, count if count is not None else math.floor(share * self.of_stage + 0.5))
        if blocks < self.of_stage:
            self.keys["recompute_layers"] = blocks

    def offload_if(self, words):
        if "offload" in words:
            self.keys["offload_activations"] = True

    def fractions(self):
        """The blocks of each stage that are recomputed, where the row says only that some are."""
        return [{"recompute": "full", "recompute_layers": max(1, self.of_stage * part.numerator // part.denominator)}
                for part in map(fractions.Fraction, ("1/4", "1/3", "1/2", "2/3", "1"))]

    def kinds(self):
        return [{}, {"recompute": "selective"}, *self.fractions()[:-1], {"recompute": "full"}]

    def by_one_word(self, words):
        """What the first word that is known says: "activation_recomputation 2 (full) in run_train.sh"."""
        text = self.row.text("recompute")
        for name in names_in(words):
            if name in ("false", "none", "null", "disabled"):
                return []
            selective = "selective" in name
            if selective or name in ("full", "fullac", "full_ac", "true", "checkpoint_activations", "all"):
                self.keys["recompute"] = "selective" if selective else "full"
                self.row.assumed.append(f"recompute \"{text}\": {self.keys['recompute']}")
                return []
        # Whoever says no more than that activations are checkpointed checkpoints every block.
        if any(part in words for part in CHECKS):
            self.keys["recompute"] = "full"
            self.offload_if(words)
            self.row.assumed.append(f"recompute \"{text}\": full")
            return []
        self.row.assumed.append(f"recompute \"{text}\" is not known")
        return self.kinds()

    def read(self):
        words = setting(alternative_for(self.row.text("recompute"), self.keys["dtype"]).lower())
        if is_blank(words) or words.startswith(tuple(WORDS["open"])):
            return self.kinds()
        if "fraction of blocks not stated" in words:
            return self.fractions()
        names = without_recompute(names_in(words))
        first = names[0] if names else "full"
        if first in WORDS["none"] or (len(names) == 2 and names[1] in ("false", "off", "disabled", "null")):
            return []
        if re.fullmatch(r"0?\.[0-9]+", words) and 0 < float(words) < 1:
            self.some(float(words))
            return []
        offloaded = names_in(words)
        if len(offloaded) >= 2 and "offload" in offloaded[0] and "layers" in offloaded[0] and whole(offloaded[1]) is not None:
            count = whole(offloaded[1])
            if count > 0:
                self.keys["offload_activations"] = True
                if count < self.of_stage:
                    self.keys["offload_layers"] = count
            return []
        return self.named(words, names, first)

    def named(self, words, names, first):
        selective = first in ("selective", "sac")
        titan = selective and "titan" in self.row.text("software").lower()
        by_ops = first == "sac" or any(part in words for part in ("(op", "per-op", "(llama3")) or titan
        every = whole(names[1]) if selective and len(names) == 2 else None
        some = some_blocks(words)
        if selective and len(names) == 2 and names[1] == "layer":
            self.some(0.5)  # torchtitan: every second block
        elif every:
            self.some(1 / every)
        elif some and not selective:
            self.some(*some)
            self.offload_if(words)
        elif first in WORDS["full"]:
            self.keys["recompute"] = "full"
            self.offload_if(words)
        elif by_ops:
            self.keys["recompute"] = "alternate"  # torchtitan: results of operations
        elif selective and len(names) == 1:
            self.keys["recompute"] = "selective"
        elif (policy := remat_policy(words)) is not None:
            kept, offloads = policy
            self.keys["recompute"] = "all_but" if kept else "full"
            if kept:
                self.keys["recompute_keep"] = "+".join(kept)
            if offloads:
                self.keys["offload_activations"] = True
        elif found := modules(names):
            self.keys["recompute"] = "selective"
            self.keys["recompute_modules"] = "+".join(found)
        else:
            return self.by_one_word(words)
        return []


def read_recompute(row, layers, keys):
    """Sets the keys of recompute and of the offload of activations. Returns the changes of keys that the row leaves open, the
    cheapest first; none if it says what is recomputed."""
    return Recompute(row, layers, keys).read()

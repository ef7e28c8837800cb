"""The keys of plan and software of a row of an old table of training runs.

A row's words are read in the order in which they bear on each other. What the software brings by itself, and what does not
apply to the plan, is left to the program (`--software`).
"""

import re

from old_tables.rows import Refused, cell_text, is_blank, squeezed, words_of_tables
from old_tables.training_model import is_yes
from old_tables.training_recompute import read_recompute
from old_tables.training_software import metric, recipe_of

WORDS = words_of_tables("training_words")
MOST_STAGES = 10_000
# Transformer Engine's userbuffers cut a pipelined scatter in four (transformer_engine/pytorch/module/base.py, num_splits).
USERBUFFER_PIECES = 4
# NeMo's LoRA has a rank of 32 unless its recipe says otherwise (nemo/collections/llm/peft/lora.py).
USUAL_RANK = 32
# Chunks of a rank, where a row gives none.
CHUNKS = {"zbv_auto": 2, "dualpipev": 2, "hanayo": 2, "breadth_first": 2, "interleaved_1f1b": 2, "interleaved_zb1p": 2}
# Schedules that split every backward.
SPLITTING = ("zb", "interleaved_zb")
# What a key is that neither the row nor its software gives.
DEFAULTS = {"tp": "1", "cp": "1", "pp": "1", "ep": "1", "microbatch": "1", "zero": "0", "dtype": "bf16", "schedule": "1f1b",
            "chunks": "1", "dispatch": "all_to_all", "overlap_parameters": "false", "overlap_expert_parallel": "false",
            "fused_attention": "true", "loss": "fused", "tensor_pieces": "1", "eager_gate": "false", "hold_logits": "false",
            "shared_master": "false", "free_gradients": "false", "optimizer_scratch_bytes": "0"}


class Keys:
    """What a row gives, and what its software brings for its chip."""

    def __init__(self, brought):
        self.brought = brought
        self.given = {}

    def __getitem__(self, key):
        return self.given.get(key, self.brought.get(key, DEFAULTS.get(key, "")))

    def __setitem__(self, key, value):
        self.given[key] = cell_text(value)

    def on(self, key):
        return self[key] == "true"

    def number(self, key):
        return int(self[key] or 1)

    def replicas(self):
        return self.number("dp") * self.number("cp")

    def stages(self):
        if self["schedule"] in ("dualpipe", "chimera"):  # a rank has a stage of each direction
            return self.number("pp")
        return self.number("pp") * int(self.given.get("chunks", CHUNKS.get(self["schedule"], 1)))


def named(text, word):
    """True if a text has the word, and does not set it to false ("zero1=8,fsdpfalse")."""
    at = text.find(word)
    return at >= 0 and not re.match(r"[=:]?(false|off(?![a-z]))", text[at + len(word):])


def meaning(text, section):
    return next((value for word, value in WORDS[section].items() if named(text, word)), None)


def is_open(text):
    return is_blank(text) or text.lower().startswith(("not stated", "not seen")) or "stage not stated" in text.lower()


def says(words, section, name):
    return any(part in words for part in WORDS[section][name])


# ---- sizes ----


def read_sizes(row, chips, keys):
    for axis in ("tp", "cp", "pp", "ep"):
        keys[axis] = row.integer(axis) or 1
    divided = keys.number("tp") * keys.number("cp") * keys.number("pp")
    keys["dp"] = row.integer("dp") or chips // divided
    keys["sequence"] = row.need("seq_len")
    keys["global_batch"] = row.need("global_batch")
    keys["microbatch"] = row.integer("micro_batch") or 1
    # MaxText counts the batch of a chip, whatever part of a replica a chip is.
    if re.match("(.*;)?per_device_batch_size=", row.text("other_metrics")):
        of_replica = keys.number("microbatch") * keys.number("tp") * keys.number("cp")
        if keys.number("global_batch") % (keys.number("dp") * of_replica) == 0:
            keys["microbatch"] = of_replica
    if not row.text("micro_batch"):
        row.assumed.append("micro_batch: 1")


# ---- attention ----


def divides_sequence(text):
    words = squeezed(text)
    if is_yes(text) or words.startswith("flagpassed"):
        return True
    found = re.search("sequenceparallel(ism)?[=:]?(.*)", words)
    if not found or words.startswith("no"):
        return False
    return found.group(2) == "" or found.group(2).startswith("(") or is_yes(found.group(2))


def flash_generation(words):
    """Which FlashAttention "flashattention2", "flashattnv1.0.8" or "fa3" name; none of "useflashattention1", a switch, and
    "flashattention16k"."""
    for found in re.finditer(r"(?<!use)flash(?:attention)?(?:attn)?v?([1-4])(?![0-9k])|(?<![a-z])fav?([1-4])(?![0-9k])", words):
        return "flash" + (found.group(1) or found.group(2))
    return None


def read_attention(row, model, chip, keys):
    gated = model.get("gated_mlp", "true") == "true"
    if keys.on("eager_gate") and not gated:
        keys["eager_gate"] = False
    if keys.number("tp") > 1:
        # Without sequence parallelism all tensor ranks would send the same tokens to the experts, which no training does.
        has_experts = int(model.get("experts.routed", 0)) > 0
        keys["sequence_parallel"] = divides_sequence(row.text("sequence_parallel")) or has_experts
    words = squeezed(row.text("attention"))
    if any(word in words for word in WORDS["attention"]["apart"]):
        says_fused = False
    elif words == "te" or any(word in words for word in WORDS["attention"]["fused"]):
        says_fused = True
    else:
        says_fused = None
    # FlashAttention came out in May 2022 (arXiv 2205.14135), and its kernels don't run on Volta.
    release = row.text("release")
    is_early = re.match("20[0-9]{2}-[0-9]{2}", release) is not None and release[:7] < "2022-06"
    usual = keys.on("fused_attention")
    if usual and (chip.startswith("v100") or is_early):
        usual = False
        if not says_fused:
            row.assumed.append("attention: not fused")
    fused = usual if says_fused is None else says_fused
    if fused != keys.on("fused_attention"):
        keys["fused_attention"] = fused
    if not fused:
        return
    library = "cudnn" if "cudnn" in words else flash_generation(words)
    if library is None and ("sdpa" in words or "scaleddotproduct" in words):
        library = keys["attention_library"] or "flash2"
    if library:
        keys["attention_library"] = library


# ---- adapters and fine-tuning ----


def end_of_lora(text):
    """Where "lora" ends, if it is a word of its own: not in "exploration", nor the kv_lora_rank of latent attention."""
    found = re.search(r"(?:(?<![a-z])q|(?<![a-z_]))lora(?![a-z])", text)
    return found.end() if found else None


def adapters_of_words(text):
    """Returns the rank and the places of adapters in "LoRA r=16 (q, k, v)"."""
    text = text.lower()
    begin = end_of_lora(text)
    rank, places = None, []
    if begin is None:
        return rank, places
    words = re.split("[);]", text[begin:])[0]
    may_be_rank, after_rank = True, False
    for found in re.finditer(r"[^ ,+(\[\]/:]+", words):
        word = squeezed(found.group())
        if word in ("", "on", "and"):
            continue
        follows = "," not in words[:found.start()]
        says_rank = word in ("rank", "r", "lorar", "lorarank")
        names_rank = may_be_rank and (follows or not word.isdigit() or after_rank)
        may_be_rank = after_rank = says_rank
        number = re.fullmatch(r"(?:r=?|rank=?)?([0-9]+)", word) if names_rank else None
        if word == "all":
            own = ["qkv", "out", "mlp"]
        elif word == "attention":
            own = ["qkv", "out"]
        else:
            own = [place for place in ("qkv", "out", "mlp") if word in WORDS["adapters"][place]]
        if number and 1 <= int(number.group(1)) <= 65_536:
            rank = int(number.group(1))
        elif not own and not says_rank:
            break  # of other things
        places += [place for place in own if place not in places]
    return rank, places


def trains_adapters(row):
    columns = ("model", "other_metrics", "source_locator")
    return any(end_of_lora(row.text(column).lower()) is not None for column in columns) or \
        "LoRA: frozen base" in row.text("remarks")


def adapters_of(row):
    rank, places = None, []
    for column in ("model", "other_metrics", "source_locator", "remarks"):
        own_rank, own_places = adapters_of_words(row.text(column))
        rank = rank or own_rank
        places = places or own_places
    return rank, places


def read_adapters(row, keys):
    if not trains_adapters(row):
        return
    rank, places = adapters_of(row)
    keys["lora_rank"] = rank or USUAL_RANK
    if rank is None:
        row.assumed.append(f"lora_rank: {USUAL_RANK}")
    if places:
        keys["lora_modules"] = "+".join(places)
    words = " ".join(row.text(column) for column in ("dtype", "model", "other_metrics")).lower()
    frozen = "int8" if says(words, "adapters", "frozen_int8") else "int4" if says(words, "adapters", "frozen_int4") else None
    if frozen:
        keys["frozen_dtype"] = frozen
        row.assumed.append(f"frozen_dtype: {frozen}")


def is_tuning(row):
    return trains_adapters(row) or any(re.search("sft|finetun|fine-tun", row.text(column).lower())
                                       for column in ("model", "other_metrics", "source_locator", "source_ref"))


def read_tuning(row, model, recipe, keys):
    """What the software's recipes of fine-tuning have and the row leaves open."""
    if not is_tuning(row):
        return
    rank, places = adapters_of(row)
    for key, value in recipe.items():
        if (key == "lora_modules" and places) or (key == "lora_rank" and rank):
            continue
        if key.startswith("lora_") and not keys["lora_rank"]:
            continue
        if key == "document_length" and int(model.get("indexer.heads", 0)) > 0:
            continue
        keys[key] = min(int(value), keys.number("sequence")) if key == "document_length" else value
        row.assumed.append(f"{key}: {value}")


# ---- state ----


def zero_of_words(text):
    words = squeezed(text).removeprefix("z=")
    is_off = words == "off" or re.search("([:=]off|false|disabled)$", words)
    if is_blank(text) or words.startswith("no") or is_off or "noshard" in words:
        return 0
    if re.match("[0-3](?![0-9])", words):
        return int(words[0])
    return meaning(words, "zero")


def read_zero(row, keys):
    text = row.text("zero_stage")
    divides = keys.on("shared_master") or keys.on("fsdp_copies")
    several = keys.replicas() > 1
    if is_open(text):
        brought = int(keys["zero"])
        if brought > 0 and several:
            keys["zero"] = brought
            row.assumed.append(f"zero_stage: {brought}, as its software has it")
            return
        keys["zero"] = 3 if divides and several else 0
        if divides and several:
            row.assumed.append("zero_stage: 3, as its software divides weights")
        return
    zero = zero_of_words(text)
    if zero is None:
        raise Refused(f"zero_stage \"{text}\" is not known")
    keys["zero"] = zero
    if "reshard never" in text.lower():
        keys["reshard_after_forward"] = False
    if zero == 2 and keys.on("shared_master"):
        # PyTorch's SHARD_GRAD_OP: what FSDP has gathered for the forward stays until the backward.
        keys["zero"] = 3
        keys["reshard_after_forward"] = False


def read_offload(row, keys):
    """State on the host, as DeepSpeed and Megatron Core have it: the host updates it."""
    words = row.text("zero_stage").lower()
    offloads = re.search("offload_optimizer|cpu_offload|cpu offload|offloaded to (the )?cpu", words)
    if not offloads or (keys.on("shared_master") and keys["zero"] == "3"):
        return
    keys["offload_optimizer"] = keys["host_optimizer"] = True
    keys["overlap_parameters"] = False


def read_bf16_optimizer(row, keys):
    """DeepSpeed without ZeRO divides the optimizer's state in bf16 all the same, and keeps gradients in fp32 beside those of
    a micro-batch (deepspeed/runtime/bf16_optimizer.py)."""
    is_deepspeed = any("deepspeed" in row.text(column).lower() for column in ("software", "zero_stage")) or \
        "deepspeed" in metric(row, "framework=").lower()
    if not is_deepspeed or keys["zero"] != "0" or keys["dtype"] != "bf16" or keys.replicas() == 1 or keys["lora_rank"] or \
            is_pure(row.text("dtype")):
        return
    keys["zero"] = 1
    if is_open(row.text("zero_stage")):
        row.assumed.append("zero_stage: 1, as DeepSpeed divides states in bf16")
        return
    keys["gradient_bytes"] = 4
    keys["separate_accumulation"] = True
    keys["free_gradients"] = False
    row.assumed.append("zero_stage: 1, as DeepSpeed's BF16_Optimizer")


# ---- pipeline ----


def read_schedule(row, layers, keys):
    pp = keys.number("pp")
    if pp == 1:
        return
    text = row.text("schedule")
    words = squeezed(text)
    name = "1f1b" if is_blank(text) or words == "none" or words.startswith("1f1b") else meaning(words, "schedule")
    if name is None:
        row.assumed.append(f"schedule \"{text}\" is not known: 1F1B")
        name = "1f1b"
    if name not in ("1f1b", "interleaved_1f1b"):
        keys["schedule"] = name
        return
    # 1F1B with several chunks a rank is interleaved; interleaved 1F1B has at least two.
    given = row.integer("virtual_stages")
    chunks = given or (2 if name == "interleaved_1f1b" and layers >= 2 * pp else 1)
    keys["schedule"] = "interleaved_1f1b" if chunks > 1 else "1f1b"
    if chunks > 1:
        keys["chunks"] = chunks
        if not given:
            row.assumed.append(f"virtual_stages: {chunks}")


def read_layout(layers, keys):
    """If the layers don't divide into stages, the stages at both ends, which also hold embedding and loss, get one layer less:
    first the last stage, then the first, then the last but one and so on."""
    stages = keys.stages()
    if stages < 3 or layers % stages == 0:
        return
    if stages > MOST_STAGES:
        raise Refused(f"pp x virtual_stages must be at most {MOST_STAGES} stages, are {stages}")
    layout = [-(-layers // stages)] * stages
    for spare in range(sum(layout) - layers):
        layout[stages - 1 - spare // 2 if spare % 2 == 0 else spare // 2] -= 1
    keys["layout"] = ",".join(map(str, layout))


# ---- types ----

TYPES = ("fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block")
BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "fp8_block": 8, "mxfp8": 8, "int8": 8, "mxfp4": 4, "nvfp4": 4,
        "int4": 4}
OTHER_BITS = {"mxfp6": 6, "fp6": 6}
# DeepSeek-V3 (arXiv 2412.19437, section 3.3.2), and with it Transformer Engine and DeepGEMM.
USUAL_BLOCK = 128


def formats():
    """Returns [(word, type; "": not modelled)], the longer word first; some fp4 last: which is meant is not known."""
    known = list(WORDS["types"]["formats"].items()) + [(name, name) for name in TYPES]
    return sorted(known, key=lambda one: -len(one[0])) + [("fp4", "")]


def format_bits(one):
    return BITS.get(one[1]) or OTHER_BITS.get(one[0], 4)


def formats_in(text):
    """The format that each word of a text names: the first that it begins with, or ends with (amp_bf16)."""
    found = []
    for word in re.findall(r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?", text.lower()):
        word = re.sub("[-_]", "", word)
        one = next((one for one in formats() if word.startswith(one[0]) or word.endswith(one[0])), None)
        if one:
            found.append(one)
    return found


def narrowest(found):
    best = None
    for one in found:
        says_more = best is not None and format_bits(one) == format_bits(best) and one[1] and not best[1]
        if best is None or format_bits(one) < format_bits(best) or says_more:
            best = one
    return best


def format_of(text):
    """Notes in parentheses count where nothing else names a format, and where they say which fp4 is meant."""
    outside_text = text.lower()
    while re.search(r"\([^()]*\)", outside_text):
        outside_text = re.sub(r"\([^()]*\)", "", outside_text)
    outside = narrowest(formats_in(outside_text.split("(")[0]))
    if outside is None:
        only = [one for one in formats_in(text) if one[0] != "fp4"]
        return only[0] if only and all(one[1] == only[0][1] for one in only) else None
    anywhere = narrowest(formats_in(text))
    return anywhere if outside[0] == "fp4" and anywhere[1] else outside


def is_pure(text):
    small = text.lower()
    if any(word in small for word in ("fp32", "float32", "master", "not full")):
        return False
    return any(words in small for words in WORDS["types"]["pure"])


def read_type(row, chip, keys):
    text = row.text("dtype")
    small = text.lower()
    if not text or (small.startswith("not stated") and not formats_in(text)):
        if chip.startswith("v100") or chip == "t4":
            keys["dtype"] = "fp16"
            row.assumed.append("dtype: fp16, as the chip has no bf16")
        else:
            row.assumed.append("dtype: bf16")
        return
    found = format_of(text)
    if found is None:
        raise Refused(f"dtype \"{text}\" names no known type")
    if not found[1]:
        raise Refused(f"dtype \"{text}\": {found[0]} is not modelled")
    dtype = found[1]
    # The narrow type of a frozen base is not that of the matmuls.
    is_frozen = keys["frozen_dtype"] and BITS[dtype] < 16
    if is_frozen:
        dtype = "bf16"
    keys["dtype"] = dtype
    if dtype in ("fp8", "int8") and not is_frozen:
        if "block" in small or "1x128" in small:
            keys["scale_block"] = USUAL_BLOCK
        elif any(word in small for word in ("rowwise", "row-wise", "by row", "per row")):
            keys["scale_rows"] = True
    if dtype == "bf16" and "MP PURE" in text:
        keys["gradient_bytes"] = 2  # gradients are reduced in bf16
    # Accelerate makes divided weights fp32 where Hugging Face's Trainer computes in bf16 by autocast, and gathers and reduces
    # in bf16 (its FullyShardedDataParallelPlugin).
    if keys["zero"] == "3" and "fsdp" in row.text("zero_stage").lower() and "autocast" in small:
        keys["shared_master"] = not keys["lora_rank"]
        keys["gradient_bytes"] = 2
        return
    if is_pure(text) and BITS[dtype] == 16:
        keys["gradient_bytes"] = 2
        keys["optimizer_bytes"] = 4  # two moments in 16 bits, no weight beside the one that computes
        if keys["optimizer_scratch_bytes"] != "0":
            keys["optimizer_scratch_bytes"] = 2
        if keys.on("shared_master"):
            keys["shared_master"] = False


def read_optimizer(row, keys):
    """Megatron Core's precision-aware optimizer keeps of each fp32 weight the 16 bits that the bf16 weight lacks
    (store_param_remainders), and moments in the types that are named ("exp_avg_dtype bf16")."""
    words = re.sub("[^a-z0-9]", "", ";".join(row.text(column) for column in ("other_metrics", "overlap", "zero_stage")).lower())
    if "precisionawareoptimizer" not in words or keys.on("offload_optimizer"):
        return

    def bytes_of(moment):
        if f"{moment}dtypebf16" in words or f"{moment}dtypefp16" in words:
            return 2
        return 1 if f"{moment}dtypefp8" in words else 4

    keys["optimizer_bytes"] = (2 if keys["dtype"] == "bf16" else 4) + bytes_of("expavg") + bytes_of("expavgsq")


# ---- overlap, kernels, launches ----


class Settings:
    """Settings and remarks, in which one word stands for itself ("overlap-grad-reduce") or is set ("TP_COMM_OVERLAP=True")."""

    def __init__(self, text):
        self.text = squeezed(text)

    def answer(self, word):
        """True, False; None: it says nothing of it."""
        for found in re.finditer(re.escape(word), self.text):
            before = re.split(r"[,;()/+&|]", self.text[:found.start()])[-1]
            if before == "no" or before.endswith("without"):
                return False
            rest = re.split(r"[,;()/+&|]", self.text[found.end():])[0].removeprefix("s")
            sign = re.search("[=:]", rest)
            if not sign:
                return True
            if sign.start() > 0:
                continue  # another setting, whose name goes on
            value = rest[1:]
            return not (value == "off" or value.startswith(("false", "0", "notset", "none", "no", "disabled")))
        return None

    def says(self, *words):
        return any(self.answer(word) is True for word in words)

    def denies(self, word):
        return self.answer(word) is False


def read_kernels(row, keys):
    words = f"{row.text('overlap')} {row.text('other_metrics')}".lower()
    replaced = says(words, "kernels", "fused_elementwise")
    fast = says(words, "kernels", "fast")
    if (replaced or fast) and keys.on("eager_elementwise"):
        keys["eager_elementwise"] = False
    if fast and keys["loss"] == "separate":
        # fms-acceleration's, of Unsloth: the gradient takes the place of the shifted logits, and is padded to all of them,
        # both in fp32.
        keys["loss"] = "in_place"
        keys["hold_logits"] = True
    if replaced or says(words, "kernels", "chunked_loss"):
        keys["loss"] = "chunked"
    if says(words, "kernels", "separate_loss"):
        keys["loss"] = "separate"
    if keys.on("hold_logits") and keys["loss"] not in ("separate", "in_place"):
        keys["hold_logits"] = False


def read_overlap(row, keys):
    settings = Settings(row.text("overlap"))
    zero = int(keys["zero"])
    several = keys.number("ep") > 1
    if settings.text.startswith(("nooverlap", "nogradientallreduce")) and zero < 2:
        keys["overlap_gradients"] = False
    if settings.says("overlapparamgather", "overlapparamsync"):
        keys["overlap_parameters"] = 0 < zero < 3
    if keys.number("tp") > 1 and settings.says("overlappedwithweightgrad"):
        keys["overlap_tensor"] = True
    if settings.says("tpcommoverlap", "tp,ppanddpcommunicationoverlap"):
        keys["tensor_pieces"] = USERBUFFER_PIECES
    if settings.denies("tpcommoverlap"):
        keys["tensor_pieces"] = 1
    # Megatron-Core's --overlap-moe-expert-parallel-comm.
    if several and settings.says("1f1boverlap", "1f1ba2aoverlap", "moea2aoverlap", "overlapmoeexpertparallel"):
        keys["overlap_expert_parallel"] = True
    if several and settings.says("hybridep", "deepep"):
        keys["dispatch"] = "two_level"
    # PyTorch's asynchronous tensor parallelism cuts a gather and its matmul, and a matmul and its scatter, into a chunk for
    # each rank (torch/distributed/_symmetric_memory/__init__.py).
    if settings.says("asynctp") and keys.number("tp") > 1 and keys.number("cp") * keys.number("ep") == 1 and \
            keys.on("sequence_parallel"):
        keys["tensor_chunks"] = keys.number("tp")
    # Without a compiler the casts to fp8 take longer than fp8 saves, so a run in fp8 was compiled.
    compiled = settings.says("compile") and not settings.says("nocompile", "notorch.compile")
    if compiled or BITS[keys["dtype"]] < 16:
        for key in ("eager_elementwise", "eager_gate"):
            if keys.on(key):
                keys[key] = False
    read_kernels(row, keys)


def read_recipe(row, recipe, keys, guesses):
    """Sets what the software's recipe for the model recomputes and overlaps, each where the row leaves it open. Returns the
    guesses that are left."""
    if not recipe:
        return guesses
    recompute = {key: value for key, value in recipe.items() if key.startswith("recompute")}
    if recompute and guesses:
        for key, value in recompute.items():
            keys[key] = value
        guesses = []
        row.assumed.append("recompute: as in the recipe of its software")
    overlap = row.text("overlap")
    if not (is_blank(overlap) or "recipe dependent" in overlap or "overlap" not in overlap.lower()):
        return guesses
    for key, value in recipe.items():
        if key not in recompute:
            keys[key] = value
    row.assumed.append("overlap: as in the recipe of its software")
    if keys["zero"] in ("0", "3") or keys.replicas() == 1:
        keys["overlap_parameters"] = False
    if keys.number("ep") == 1 and keys.on("overlap_expert_parallel"):
        keys["overlap_expert_parallel"] = False
    return guesses


def keep_pieces_where_possible(keys):
    """Adapters and schedules that split the backward have no exchange in pieces, and without sequence parallelism there is none
    either: input gradients are then reduced beside weight gradients."""
    if keys["tensor_pieces"] == "1":
        return
    splits = keys["schedule"].startswith(SPLITTING)
    several = keys.number("tp") > 1
    if several and keys.on("sequence_parallel") and not splits and not keys["lora_rank"]:
        return
    keys["tensor_pieces"] = 1
    if several and not splits:
        keys["overlap_tensor"] = True


def read_graphs(row, model, keys):
    """What the host launches as graphs: Megatron Core's and Transformer Engine's graphs of blocks, or of the whole step, in
    which no expert's number of tokens is read."""
    if not keys["host_launch_cost"]:
        return
    settings = Settings(row.text("overlap"))
    if settings.denies("cudagraphimpl") or settings.denies("fullcudagraph"):
        return
    if settings.says("fullcudagraph", "fulliteration"):
        keys["cuda_graphs"] = "step"
        if int(model.get("experts.routed", 0)) > 0:
            keys["host_reads_counts"] = False
    elif settings.says("cudagraph"):
        keys["cuda_graphs"] = "blocks"


def read_experts(row, model, keys):
    """Dispatchers stand beside other figures; MaxText without its grouped kernels places tokens by masks."""
    other = row.text("other_metrics")
    if keys.number("ep") > 1 and "dispatcher=A2A" in other:
        keys["dispatch"] = "all_to_all"
    if keys.number("ep") > 1 and "dispatcher=DeepEP" in other:
        keys["dispatch"] = "two_level"
    if int(model.get("experts.routed", 0)) == 0 or float(model.get("experts.capacity_factor", 0)) == 0:
        return
    words = f"{row.text('moe_detail')};{other}".lower()

    def is_off(key):
        return f"{key}=false" in words or f"{key}: false" in words

    is_sparse = "sparse_matmul=true" in words or "sparse_matmul: true" in words
    if keys["dispatch"] != "two_level" and (is_off("sparse_matmul") or (is_off("megablox") and not is_sparse)):
        keys["mask_dispatch"] = True
        if keys.on("sort_copies"):
            keys["sort_copies"] = False
    # Padded to their capacity, experts have as many tokens in every layer.
    if keys["host_launch_cost"]:
        keys["host_reads_counts"] = False


# ---- all of it ----


def plan_of(row, model, entry, rule, chips, hardware):
    """Returns the keys that the row gives, and what it may have recomputed that doesn't say it (changes of keys, the cheapest
    first; empty: the row says it)."""
    keys = Keys(entry.on_chip(hardware.chip))
    layers = int(model["layers"])
    read_sizes(row, chips, keys)
    read_attention(row, model, hardware.chip, keys)
    read_adapters(row, keys)
    read_tuning(row, model, entry.recipe("sft", hardware.chip), keys)
    ranks = keys.number("tp") * keys.number("cp") * keys.number("pp") * keys.number("dp")
    if ranks % hardware.chips_per_node != 0:
        keys["allow_idle_chips"] = True
    read_zero(row, keys)
    read_offload(row, keys)
    read_schedule(row, layers, keys)
    read_layout(layers, keys)
    read_type(row, hardware.chip, keys)
    read_bf16_optimizer(row, keys)
    read_optimizer(row, keys)
    guesses = read_recompute(row, layers, keys)
    read_overlap(row, keys)
    guesses = read_recipe(row, recipe_of(row, rule, entry, hardware.chip), keys, guesses)
    keep_pieces_where_possible(keys)
    read_graphs(row, model, keys)
    read_experts(row, model, keys)
    microbatches = keys.number("global_batch") // max(1, keys.number("dp") * keys.number("microbatch"))
    if keys.on("overlap_expert_parallel") and microbatches == 1:
        keys["overlap_expert_parallel"] = False
        row.assumed.append("overlap_expert_parallel: false, as one micro-batch has no other beside it")
    return keys, guesses

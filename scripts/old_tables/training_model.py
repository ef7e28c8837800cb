"""The model of a row of an old table of training runs: a name of the catalog, or its sizes in columns `model.`."""

import functools
import pathlib
import re
import subprocess

from old_tables.rows import CATALOG, Refused, is_blank, letters_and_digits, parse_textproto, read_textproto, squeezed

# The program, which reads the catalog's models; convert_tables.py sets it.
stepsim = "stepsim"


def flat(message, prefix=""):
    """Returns a message's fields as {"latent.q_rank": "1536"}."""
    cells = {}
    for name, values in message.items():
        for value in values:
            cells |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return cells


@functools.cache
def catalog_models():
    """Returns the fields of every model of the catalog, by name."""
    models = {}
    for path in sorted((CATALOG / "models").iterdir()):
        if path.suffix == ".json":
            text = subprocess.run([stepsim, "import", "hf", path], check=True, capture_output=True, text=True).stdout
            models[path.stem] = flat(parse_textproto(text))
            models[path.stem].setdefault("intermediate", models[path.stem].get("experts.intermediate", "0"))
        elif path.suffix == ".textproto":
            models[path.stem] = flat(read_textproto(path))
    return models


@functools.cache
def measured_models():
    """Returns what columns omit of models: [(names, what is known, fields of the whole model)]."""
    known = []
    for entry in read_textproto(pathlib.Path(__file__).with_name("models.textproto"))["model"]:
        sizes = flat(entry["sizes"][0]) if "sizes" in entry else None
        if sizes is not None and "catalog" in sizes:
            sizes = {"catalog": sizes["catalog"], **catalog_models()[sizes["catalog"]]}
        known.append((entry["name"], flat(entry), sizes))
    return known


def _names_it(name, part):
    """True if `name` has `part`, not as the start of a longer number: nemotron3 is not in nemotron340b."""
    at = name.find(part)
    rest = name[at + len(part):]
    return at >= 0 and bool(part) and not (rest and part[-1].isdigit() and rest[0].isdigit())


def _beginnings(name):
    """The letters and digits of a name and of its first words alone: in "DeepSeek-V3 671B" no number begins with V3's."""
    words = name.split(" ")
    return [letters_and_digits(" ".join(words[:count])) for count in range(len(words), 0, -1)]


def _catalog_model(name):
    """The catalog's model of this name: the longest name that the row's begins with, or the shortest that begins with it."""
    best, is_whole = None, False
    for own_name, fields in catalog_models().items():
        own = letters_and_digits(fields.get("name", own_name))
        begins_with = _names_it(name, own) and name.startswith(own)
        is_longer = _names_it(own, name) and own.startswith(name)
        if not begins_with and (not is_longer or is_whole):
            continue
        if best is None or (begins_with and not is_whole) or (len(own) > best[1] if begins_with else len(own) < best[1]):
            best, is_whole = (own_name, len(own)), begins_with
    return None if best is None else {"catalog": best[0], **catalog_models()[best[0]]}


def known_model(row):
    """Returns what columns omit of the row's model, and the fields of the whole model; None: not known."""
    beginnings = _beginnings(row.text("model"))
    for names, omitted, sizes in measured_models():
        if any(_names_it(beginning, part) for part in names for beginning in beginnings):
            return omitted, sizes or _catalog_model(letters_and_digits(row.text("model")))
    return {}, _catalog_model(letters_and_digits(row.text("model")))


# ---- experts ----


def _number_after(text, *keys):
    for key in keys:
        found = re.search(re.escape(key) + "([0-9]+)", text)
        if found:
            return int(found.group(1))
    return None


def _expert_words(detail):
    """Returns routed experts, those of a token, and their width, of "256 routed experts top-8 + 1 shared, expert ffn 2048"."""
    text = detail.lower()
    experts = _number_after(text, "experts=")
    chosen = _number_after(text, "topk=", "top-k=", "top_k=", "top-", "top ")
    width = _number_after(text, "moe_ffn=", "expert ffn ", "expert_ffn=")
    for found in re.finditer("expert", text):
        before, after = text[:found.start()], text[found.start():]
        number = re.search(r"([0-9]+) *(?:routed)? *$", before)
        if not number:
            continue
        follows_top = re.search(r"top-?[ 0-9]*$", before) is not None
        is_of_a_token = follows_top or after.startswith(("experts per token", "experts a token", "experts/token"))
        if is_of_a_token:
            chosen = chosen or int(number.group(1))
        else:
            experts = experts or int(number.group(1))
    return experts or _number_after(text, "experts of "), chosen, width


def _capacity(row):
    """NeMo's recipes with dropped tokens pad each expert to a capacity factor of 1 (moe_expert_capacity_factor)."""
    if "tokendrop" in row.text("model"):
        return "1"
    for column in ("moe_detail", "other_metrics"):
        for key in ("capacity_factor=", "capacity_factor: "):
            found = re.search(re.escape(key) + r"([0-9.]+)", row.text(column))
            if found and 0 < float(found.group(1)) <= 100:
                return found.group(1)
    return None


def _experts(row, omitted, sizes):
    detail = row.text("moe_detail")
    routed, chosen, width = _expert_words(detail)
    is_known = sizes is not None and int(sizes.get("experts.routed", 0)) > 0
    if routed is None and not is_known:
        raise Refused("the number of experts is not given")
    if chosen is None and not is_known:
        raise Refused("how many experts a token visits is not given")
    if width is None:
        width = int(sizes["experts.intermediate"]) if is_known else row.integer("ffn") or 0
    shared = _number_after(detail, "shared_ffn=")
    first_dense = _number_after(detail, "dense_layers=")
    cells = {
        "experts.routed": routed or int(sizes["experts.routed"]),
        "experts.per_token": chosen or int(sizes["experts.per_token"]),
        "experts.intermediate": width,
        "experts.shared_intermediate": int(omitted.get("shared_experts", 0)) * width if shared is None else shared,
        "experts.first_dense": int(omitted.get("first_dense", 0)) if first_dense is None else first_dense,
        "experts.capacity_factor": _capacity(row) or 0,
    }
    return {name: value for name, value in cells.items() if value}


# ---- the model ----

LATENT = ("q_rank", "kv_rank", "nope_dim", "rope_dim", "v_dim")


def is_yes(text):
    words = squeezed(text)
    return words in ("1", "y", "on") or words.startswith(("1(", "yes", "true", "enabled"))


def _is_better_described(row, sizes):
    """True if columns can't describe the model's layers, and the row's sizes are the model's."""
    alike = not any(key in sizes for key in ("mixer_pattern", "mlp_pattern")) and int(sizes.get("window", 0)) == 0
    return not alike and all((row.integer(column) or int(sizes[column])) == int(sizes[column]) for column in ("layers", "hidden"))


def _heads(row, hidden):
    """Heads are 128 features wide nearly everywhere, 64 in GPT-2 and its like."""
    heads = row.integer("heads")
    if heads is not None:
        return heads
    for width in (128, 64):
        if hidden % width == 0:
            row.assumed.append(f"heads: {hidden // width}, each of {width} features")
            return hidden // width
    return row.need("heads")


def _whole_model(row, sizes):
    """The whole model as it is known, for a row that gives no more than its name."""
    named = "catalog" in sizes
    row.assumed.append("sizes: those of " + (sizes["catalog"] if named else sizes["name"]))
    cells = {} if named else {key: value for key, value in sizes.items() if key != "name"}
    vocabulary = row.integer("vocab")
    if vocabulary is not None and vocabulary != int(sizes["vocabulary"]):
        cells["vocabulary"] = vocabulary
    if int(sizes.get("learned_positions", 0)) > 0:
        cells["learned_positions"] = row.need("seq_len")
    if int(sizes.get("experts.routed", 0)) > 0 and _capacity(row):
        cells["experts.capacity_factor"] = _capacity(row)
    return sizes["catalog"] if named else "", cells


def model_of(row, vocabulary):
    """Returns the catalog's name of the row's model, or "", the fields that differ from it, and all fields as they are.

    `vocabulary` is that of a model whose row gives none.
    """
    omitted, sizes = known_model(row)
    gives_sizes = not (is_blank(row.text("layers")) and is_blank(row.text("hidden")))
    if sizes is not None and (not gives_sizes or _is_better_described(row, sizes)):
        name, cells = _whole_model(row, sizes)
        return name, cells, {**sizes, **{key: str(value) for key, value in cells.items()}}
    hybrid = row.text("remarks") + row.text("model")
    if re.search(r"\bhybrid\b", hybrid.lower()) and "hybrid shard" not in hybrid.lower():
        raise Refused("is a hybrid of several kinds of layers, which columns can't describe, and not in the catalog")
    hidden = row.need("hidden")
    gated = not row.text("gated_mlp").startswith("no")
    heads = _heads(row, hidden)
    cells = {"layers": row.need("layers"), "hidden": hidden, "intermediate": row.integer("ffn") or 4 * hidden, "heads": heads,
             "kv_heads": row.integer("kv_heads") or heads, "vocabulary": row.integer("vocab") or vocabulary}
    if not row.text("vocab"):
        row.assumed.append(f"vocab: {vocabulary}")
    if "MLA" in row.text("moe_detail") or row.text("attention") == "MLA":
        latent = omitted if int(omitted.get("latent.kv_rank", 0)) > 0 else sizes or {}
        cells |= {f"latent.{key}": latent[f"latent.{key}"] for key in LATENT if latent.get(f"latent.{key}", "0") != "0"}
        if "latent.kv_rank" not in cells:
            raise Refused("has latent attention (MLA), whose sizes the catalog doesn't know for this model")
        cells["head_dim"] = int(cells["latent.nope_dim"]) + int(cells["latent.rope_dim"])
    else:
        cells["head_dim"] = row.integer("head_dim") or hidden // heads
        if not row.integer("head_dim") and cells["head_dim"] * heads != hidden:
            raise Refused(f"heads must divide hidden ({hidden}) if head_dim is not given, are {heads}")
    if not gated:
        cells |= {"gated_mlp": "false", "learned_positions": row.need("seq_len"), "tied_embeddings": "true",
                  "attention_bias": "true", "mlp_bias": "true", "norm": "layer"}
    if omitted.get("attention_sinks") == "true":
        cells["attention_sinks"] = "true"
    if sizes is not None and all(str(cells[key]) == sizes[key] for key in
                                 ("layers", "hidden", "heads", "intermediate", "vocabulary")):
        cells |= {key: sizes.get(key, "false") for key in ("tied_embeddings", "qkv_bias", "qk_norm", "qk_norm_whole")}
    if is_yes(row.text("moe")):
        cells |= _experts(row, omitted, sizes)
    return "", {"name": row.text("model"), **cells}, {key: str(value) for key, value in cells.items()}

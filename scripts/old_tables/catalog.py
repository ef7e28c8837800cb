"""What converters ask of the catalog's models and chips."""

import functools
import json

from old_tables.rows import CATALOG, Refused, letters_and_digits, read_textproto

LAYERS = ["num_hidden_layers", "n_layer", "n_layers", "num_layers"]
EXPERTS = ["n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"]


@functools.cache
def names_of_models():
    """Names by their letters and digits."""
    return {letters_and_digits(path.stem): path.stem for path in sorted((CATALOG / "models").iterdir())}


@functools.cache
def sizes_of(model):
    """Returns the layers and the routed experts of a model of the catalog, 0 if it has none."""
    path = CATALOG / "models" / f"{model}.json"
    if not path.exists():
        raise Refused(f"{model} has no config.json in the catalog")
    config = json.loads(path.read_text(encoding="utf-8"))
    config = config.get("text_config", config)
    layers = next((config[key] for key in LAYERS if key in config), None)
    if layers is None:
        raise Refused(f"{model} does not say how many layers it has")
    return layers, next((config[key] for key in EXPERTS if config.get(key)), 0)


@functools.cache
def types_of_chip(chip):
    """Returns the types that a chip computes in: its own, or those of the chip that it is based on."""
    message = read_textproto(CATALOG / "chips" / f"{chip}.textproto")
    if "peak" in message:
        return {peak["type"][0] for peak in message["peak"]}
    return types_of_chip(message["catalog"][0])

"""What is given for a model, a cluster or a plan becomes options of the command line."""
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type

from ._arguments import Files
from ._objects import Cluster, Model, Part, config_of
from ._plan import Plan


def is_hugging_face(value: Any) -> bool:
    """Whether it is a config of Hugging Face: an object, or a dict with what only those have."""
    if isinstance(value, Mapping):
        return "model_type" in value or "architectures" in value
    return hasattr(value, "to_dict") and hasattr(value, "model_type")


def part_of(kind: str, value: Any) -> Any:
    """What is given for a part: an object, a name or file, or a dict."""
    if value is None or isinstance(value, (str, os.PathLike, Part)):
        return value
    if kind == "model" and is_hugging_face(value):
        return Model._of({"huggingface": config_of(value)})
    if isinstance(value, Mapping):
        parts: Dict[str, Type[Part]] = {"model": Model, "cluster": Cluster, "plan": Plan}
        return parts[kind]._of(value)
    raise TypeError(f"{kind}: must be a name, a file, a dict or a stepsim.{kind.capitalize()}, "
                    f"is {type(value).__name__}")


def flag_of(kind: str, value: Any, files: Files) -> Tuple[Optional[str], List[str]]:
    """The value of --model, --cluster or --plan, and changes for --set."""
    part = part_of(kind, value)
    if part is None:
        return None, []
    if isinstance(part, Part):
        return part._flag(files)
    return os.fspath(part), []

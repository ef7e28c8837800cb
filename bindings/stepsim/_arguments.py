"""Keywords of Python become the options of a subcommand."""
import functools
import json
import os
import shutil
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence

from . import _core

# Options that are given once for each of their values; of all others the values are joined.
_REPEATED = {"set", "over", "requests"}
# Values with a first word and keys behind it, "poisson:rate=4,count=100": the key of a dict that has that word, and what
# stands behind it.
_HEADS = {"requests": ("kind", ":"), "engine": ("kind", ","), "software": ("catalog", ","),
          "transport": ("name", ","), "pass": ("inference", ",")}


class Files:
    """Files for what a subcommand reads and Python has in memory. They are gone at the end."""

    def __init__(self) -> None:
        self.folder: Optional[str] = None

    def __enter__(self) -> "Files":
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name: str, text: str) -> str:
        if self.folder is None:
            self.folder = tempfile.mkdtemp(prefix="stepsim-")
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def json(self, name: str, value: Any) -> str:
        return self.write(name + ".json", json.dumps(plain(value)))

    def without_folder(self, text: str) -> str:
        """The text with the names of the files alone: where they lie for a moment says nothing."""
        return text if self.folder is None else text.replace(self.folder + os.sep, "")


def plain(value: Any) -> Any:
    """Objects of this package and numbers of numpy as what JSON has."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return value.item()
    return value


def text_of(value: Any) -> str:
    """A value as the command line has it."""
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, range) and value.step == 1:
        return f"{value.start}..{value.stop - 1}"
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, Mapping):
        return ",".join(f"{str(key).replace('_', '-')}={text_of(one)}"
                        for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(one) for one in value)
    return str(value)


def headed(name: str, value: Any) -> str:
    """{"kind": "poisson", "rate": 4} as "poisson:rate=4"."""
    if name not in _HEADS or not isinstance(value, Mapping):
        return text_of(value)
    first, between = _HEADS[name]
    keys = dict(value)
    head = text_of(keys.pop(first, ""))
    return between.join(part for part in (head, text_of(keys)) if part)


@functools.lru_cache(maxsize=None)
def _takes_value(subcommand: str) -> Dict[str, bool]:
    return {name: takes for name, takes, _ in _core.options(subcommand)}


def options_of(subcommand: str, keywords: Mapping[str, Any]) -> List[str]:
    """["--time-limit=10s", "--yes"] of {"time_limit": "10s", "yes": True, "json": None}."""
    takes_value = _takes_value(subcommand)
    options: List[str] = []
    for keyword, value in keywords.items():
        name = keyword.rstrip("_").replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool) and not takes_value.get(name, True):
            if value:
                options.append(f"--{name}")
            continue
        if isinstance(value, bool) and name == "fold":
            value = "on" if value else "off"
        for one in _several(value) if name in _REPEATED else [value]:
            options.append(f"--{name}={headed(name, one)}")
    return options


def _several(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping) and "kind" not in value:
        return [f"{path}={text_of(one)}" for path, one in value.items()]
    return value if isinstance(value, (list, tuple)) else [value]

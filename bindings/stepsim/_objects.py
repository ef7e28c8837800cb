"""Model and Cluster: parts of an experiment, built from keywords. _plan.py has the third."""
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import _core
from ._arguments import Files, plain
from ._errors import InputError


class Part:
    """A part of an experiment: an entry of the catalog, and the fields that differ from it.

    The fields are those of experiment files, with the same units: text such as "400Gbps", or numbers
    in bytes, seconds, bytes/s and FLOP/s. They are checked at once; InputError has all problems.
    """

    _kind = ""
    _fields: Dict[str, Any]

    def __init__(self, catalog: Optional[str] = None, **fields: Any):
        self._fields = {} if catalog is None else {"catalog": catalog}
        self._fields.update((name, plain(value)) for name, value in fields.items()
                            if value is not None)
        self._check()

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> "Part":
        """A part whose fields are checked together with the rest of the experiment."""
        part = cls.__new__(cls)
        part._fields = dict(plain(fields))
        return part

    def _check(self) -> None:
        with Files() as files:
            raise_problems(_core.check(self._kind, self._flag(files)[0]), files)

    def to_dict(self) -> Dict[str, Any]:
        """The fields, as an experiment file has them."""
        return dict(self._fields)

    def replace(self, **fields: Any) -> "Part":
        """The same with other fields. None takes one away."""
        changed = {**self._fields, **fields}
        return type(self)(**changed)

    def _flag(self, files: Files) -> Tuple[str, List[str]]:
        """The value of the option, and changes for --set."""
        if list(self._fields) == ["catalog"]:
            return str(self._fields["catalog"]), []
        return files.json(str(self._fields.get("name", self._kind)), self._fields), []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"this {self._kind} does not set {name}") from None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fields == other._fields  # type: ignore

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields.items())
        return f"{type(self).__name__}({fields})"


class Model(Part):
    """A model: `Model("llama3-70b")`, `Model("llama3-70b", layers=40)`, `Model(huggingface=config)`.

    `huggingface` is the config of a model on Hugging Face: an object of transformers, a dict, or the
    path of a config.json. `stepsim help model` has the other fields.
    """

    _kind = "model"

    def __init__(self, catalog: Optional[str] = None, *, huggingface: Any = None, **fields: Any):
        if huggingface is not None:
            fields["huggingface"] = config_of(huggingface)
        super().__init__(catalog, **fields)

    def _flag(self, files: Files) -> Tuple[str, List[str]]:
        config = self._fields.get("huggingface")
        if config is None:
            return super()._flag(files)
        fields = dict(self._fields)
        if isinstance(config, Mapping):
            name = str(config.get("_name_or_path") or "model").rstrip("/").rsplit("/", 1)[-1]
            fields["huggingface"] = files.json(name, config)
            if len(fields) > 1:
                fields.setdefault("name", name)
        else:
            fields["huggingface"] = os.path.abspath(config)
        if list(fields) == ["huggingface"]:
            return fields["huggingface"], []
        return files.json("model-fields", fields), []


class Cluster(Part):
    """A cluster: `Cluster("dgx-h100-512")`, `Cluster("dgx-h100-64", chip={"memory": "120GB"})`.

    `stepsim help cluster` has the fields.
    """

    _kind = "cluster"


def config_of(config: Any) -> Any:
    if hasattr(config, "to_dict"):
        config = config.to_dict()
    return plain(config) if isinstance(config, Mapping) else os.fspath(config)


def raise_problems(problems: List[Tuple[str, str]], files: Files) -> None:
    if problems:
        raise InputError((files.without_folder(field), files.without_folder(message))
                         for field, message in problems)

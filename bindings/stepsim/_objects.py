"""Model, Cluster and Plan: the parts of an experiment, built from keywords."""
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import _core
from ._arguments import Files, plain, text_of
from ._errors import InputError


class _Part:
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
    def _of(cls, fields: Mapping[str, Any]) -> "_Part":
        """A part whose fields are checked together with the rest of the experiment."""
        part = cls.__new__(cls)
        part._fields = dict(plain(fields))
        return part

    def _check(self) -> None:
        with Files() as files:
            _raise(_core.check(self._kind, self._flag(files)[0]), files)

    def to_dict(self) -> Dict[str, Any]:
        """The fields, as an experiment file has them."""
        return dict(self._fields)

    def replace(self, **fields: Any) -> "_Part":
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


class Model(_Part):
    """A model: `Model("llama3-70b")`, `Model("llama3-70b", layers=40)`, `Model(huggingface=config)`.

    `huggingface` is the config of a model on Hugging Face: an object of transformers, a dict, or the
    path of a config.json. docs/model-fields.md has the other fields.
    """

    _kind = "model"

    def __init__(self, catalog: Optional[str] = None, *, huggingface: Any = None, **fields: Any):
        if huggingface is not None:
            fields["huggingface"] = _config_of(huggingface)
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


class Cluster(_Part):
    """A cluster: `Cluster("dgx-h100-512")`, `Cluster("dgx-h100-64", chip={"memory": "120GB"})`.

    docs/cluster-fields.md has the fields.
    """

    _kind = "cluster"


class Plan(_Part):
    """A plan: `Plan(tp=8, pp=4, dp=16, microbatch=1, global_batch=1024, sequence=8192)`.

    The keys are those of --plan with `_` for `-`: docs/plan-keys.md. `schedule` may also be an order
    of one's own, a list of ops for each rank: [["F0.0", "BW0.0"], ["F0.0", "BW0.0"]].
    """

    _kind = "plan"

    def _flag(self, files: Files) -> Tuple[str, List[str]]:
        fields = dict(self._fields)
        if isinstance(fields.get("schedule"), list):
            fields["schedule"] = files.write("schedule.txt", schedule_text(fields["schedule"]))
        if "catalog" in fields:
            return (str(fields["catalog"]) if len(fields) == 1 else files.json("plan", fields)), []
        texts = {name: text_of(value) for name, value in fields.items()}
        # Commas stand between keys, but also within a layout.
        joined = ",".join(f"{name.replace('_', '-')}={text}" for name, text in texts.items()
                          if "," not in text or name == "layout")
        changes = [f"plan.{name}={text}" for name, text in texts.items()
                   if "," in text and name != "layout"]
        return joined, changes


def schedule_text(ranks: Any) -> str:
    """Orders as the lines of a schedule file."""
    return "".join(" ".join(str(op) for op in rank) + "\n" for rank in ranks)


def _config_of(config: Any) -> Any:
    if hasattr(config, "to_dict"):
        config = config.to_dict()
    return plain(config) if isinstance(config, Mapping) else os.fspath(config)


def _raise(problems: List[Tuple[str, str]], files: Files) -> None:
    if problems:
        raise InputError((files.without_folder(field), files.without_folder(message))
                         for field, message in problems)


def is_hugging_face(value: Any) -> bool:
    """Whether it is a config of Hugging Face: an object, or a dict with what only those have."""
    if isinstance(value, Mapping):
        return "model_type" in value or "architectures" in value
    return hasattr(value, "to_dict") and hasattr(value, "model_type")


def part_of(kind: str, value: Any) -> Any:
    """What is given for a part: an object, a name or file, or a dict."""
    if value is None or isinstance(value, (str, os.PathLike, _Part)):
        return value
    if kind == "model" and is_hugging_face(value):
        return Model._of({"huggingface": _config_of(value)})
    if isinstance(value, Mapping):
        return {"model": Model, "cluster": Cluster, "plan": Plan}[kind]._of(value)
    raise TypeError(f"{kind}: must be a name, a file, a dict or a stepsim.{kind.capitalize()}, "
                    f"is {type(value).__name__}")


def flag_of(kind: str, value: Any, files: Files) -> Tuple[Optional[str], List[str]]:
    """The value of --model, --cluster or --plan, and changes for --set."""
    part = part_of(kind, value)
    if part is None:
        return None, []
    if isinstance(part, _Part):
        return part._flag(files)
    return os.fspath(part), []

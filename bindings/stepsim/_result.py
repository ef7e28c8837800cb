"""Results: what the command line writes as JSON, with attributes."""
import functools
import html
import json
from typing import Any, Callable, Dict, Iterator, List, Optional


class Record(Dict[str, Any]):
    """An object of JSON whose members are attributes, too: `result.memory.peak_bytes`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name}; there are: {', '.join(self)}") from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self]


class Result:
    """What a function of stepsim returns. The members of the JSON are its attributes
    (`stepsim help results`; names end in their unit).

    `to_json()` is the text that the command line writes, and `to_dict()` what it says.
    `report()` is the table that the command line prints. `ok` is False where the command line
    would end with status 1: a check failed, or nothing fits.
    """

    def __init__(self, text: str, report: str, status: int = 0, csv: str = ""):
        self._json = text
        self._text = report
        self._csv = csv
        self.ok = status == 0

    @functools.cached_property
    def _members(self) -> Any:
        return json.loads(self._json, object_pairs_hook=Record)

    def to_json(self) -> str:
        """The text that `--json` writes, byte for byte."""
        return self._json

    def to_dict(self) -> Any:
        """The JSON as dicts and lists."""
        return json.loads(self._json)

    def report(self) -> str:
        """The table that the command line prints."""
        return self._text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_members" or not isinstance(self._members, dict):
            raise AttributeError(name)
        return getattr(self._members, name)

    def __getitem__(self, key: Any) -> Any:
        return self._members[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *(self._members if isinstance(self._members, dict) else [])]

    def __repr__(self) -> str:
        return self._text or self._json

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text or self._json)}</pre>"

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_members"}


class RunResult(Result):
    """A simulated training step.

    step_time_s, tokens_per_s, model_flops_utilization (0 to 1), ...: docs/json.md. `breakdown` adds up
    to the step, in seconds. `memory` is in bytes.
    """

    _simulate: Optional[Callable[[Dict[str, Any]], Any]] = None

    @property
    def breakdown(self) -> Record:
        """Where the step goes, in seconds: compute, exposed communication by axis, bubble, idle."""
        parts = dict(self._members["breakdown_s"])
        exposed = parts.pop("exposed_communication")
        return Record(compute=parts.pop("compute"),
                      **{f"exposed_{axis}": seconds for axis, seconds in exposed.items()}, **parts)

    @property
    def memory(self) -> Record:
        """The memory of the rank that needs most, in bytes: peak_bytes, capacity_bytes, fits, ..."""
        memory: Record = self._members["memory"]
        return memory

    def html(self, path: Any) -> None:
        """Writes a page of charts for the browser, one file that needs no network (docs/report.md)."""
        self._again({"html": path})

    def trace(self, path: Any, **options: Any) -> None:
        """Writes a trace for ui.perfetto.dev. The step is simulated again, with the same result.

        `path` ends in .json, .json.gz or .pftrace. Options: trace_ranks="0,8-15",
        trace_detail="pass"|"layer"|"kernel", trace_format="chrome"|"perfetto"|"kineto".
        """
        self._again({"trace": path, **options})

    def _again(self, outputs: Dict[str, Any]) -> None:
        if self._simulate is None:
            raise RuntimeError("this result does not know how it was made; run it again")
        self._simulate(outputs)

    def _repr_html_(self) -> str:
        if "breakdown_s" not in self._members:
            return super()._repr_html_()
        step = self._members["step_time_s"]
        rows = [("step time", f"{step:.6g} s", 1.0)]
        rows += [(name.replace("_", " "), f"{seconds:.4g} s", seconds / step if step else 0.0)
                 for name, seconds in self.breakdown.items() if seconds]
        cells = "".join(
            f"<tr><td>{html.escape(name)}</td><td style='text-align:right'>{value}</td>"
            f"<td style='text-align:right'>{share:.1%}</td>"
            f"<td><div style='background:#548c60;height:0.8em;width:{200 * share:.0f}px'></div></td>"
            "</tr>" for name, value, share in rows)
        memory = self._members.get("memory")
        below = ""
        if memory:
            below = (f"memory: {memory['peak_bytes'] / 1e9:.1f} GB of "
                     f"{memory['capacity_bytes'] / 1e9:.1f} GB"
                     f"{'' if memory['fits'] else ', <b>does not fit</b>'}")
        name = html.escape(str(self._members.get("name", "")))
        return f"<table><caption>{name}</caption>{cells}</table><div>{below}</div>"

    def __getstate__(self) -> Dict[str, Any]:
        return {**super().__getstate__(), "_simulate": None}


class SearchResult(Result):
    """The best plans of a space: `best` and `front`, lists of plans with what they give."""

    def plan(self, place: int = 0) -> Any:
        """The plan at a place of `best`, as a stepsim.Plan."""
        from ._plan import Plan
        return Plan(**self._members["best"][place]["plan"])

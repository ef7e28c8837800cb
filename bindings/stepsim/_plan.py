"""Plan: how the work of a step is divided. _plan.pyi lists the keys."""
import functools
from typing import Any, Dict, List, Tuple

from . import _core
from ._arguments import Files, text_of
from ._objects import Part, raise_problems


class Plan(Part):
    """A plan: `Plan(tp=8, pp=4, dp=16, microbatch=1, global_batch=1024, sequence=8192)`.

    The keys are those of --plan with `_` for `-`: `stepsim help plan`. `schedule` may also be an order
    of one's own, a list of ops for each rank: [["F0.0", "BW0.0"], ["F0.0", "BW0.0"]].

    Keys of software and of a pass, which 0.1 had here, are keywords of run() now: software={"loss":
    "separate"}, pass_={"inference": "decode", "batch": 64}. They are taken here until 2.0.
    """

    _kind = "plan"

    def _check(self) -> None:
        with Files() as files:
            raise_problems(_core.check("plan", _texts(dict(self._fields), files)[0]), files)

    def _flag(self, files: Files) -> Tuple[str, List[str]]:
        return _texts(self._by_group()["plan"], files)

    def _by_group(self) -> Dict[str, Dict[str, Any]]:
        """The keys as --plan, --software and --pass take them."""
        groups: Dict[str, Dict[str, Any]] = {"plan": {}, "software": {}, "pass": {}}
        for name, value in self._fields.items():
            if name == "software":
                groups["software"]["catalog"] = value
            else:
                groups[_group_of().get(name, "plan")][name] = value
        return groups

    def _moved(self) -> Dict[str, Dict[str, Any]]:
        """The keys that 0.1 had in a plan, by their groups."""
        return {group: keys for group, keys in self._by_group().items() if group != "plan" and keys}


@functools.lru_cache(maxsize=None)
def _group_of() -> Dict[str, str]:
    return {name: group for name, _, _, _, group in _core.plan_keys()}


def _texts(fields: Dict[str, Any], files: Files) -> Tuple[str, List[str]]:
    """Keys as a line of --plan, and those of them that only --set takes."""
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

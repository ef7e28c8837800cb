"""Plan: how the work of a step is divided. _plan.pyi lists the keys."""
from typing import Any, List, Tuple

from ._arguments import Files, text_of
from ._objects import Part


class Plan(Part):
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

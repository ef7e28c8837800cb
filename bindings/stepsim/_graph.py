"""OpGraph: work of one's own, rank by rank, that stepsim.run() simulates on any cluster."""
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Union

_UNITS_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
Time = Union[int, float, str]


class Node(NamedTuple):
    """A piece of work of a rank; others of the same rank can wait for it (`after`)."""

    rank: int
    position: int


def _picoseconds(time: Time) -> int:
    if not isinstance(time, str):
        return round(time * 10**12)
    for unit in ("ps", "ns", "us", "ms", "s"):
        number = time.removesuffix(unit)
        if number != time and number.replace(".", "", 1).replace("e-", "", 1).isdigit():
            return round(float(number) * _UNITS_PS[unit])
    raise ValueError(f"time: must be seconds, or a text such as \"5us\"; is {time!r}")


class Rank:
    """The program of one rank. Each method adds a node and returns it.

    Nodes of one lane follow one another in the order of their dependencies; of several that are free
    the first that was added goes first.
    """

    def __init__(self, graph: "OpGraph", number: int):
        self._graph = graph
        self._number = number
        self._nodes: List[Dict[str, Any]] = []

    def kernel(self, name: str = "kernel", time: Optional[Time] = None, *,
               flops: Optional[float] = None, bytes: Optional[int] = None,
               lane: Optional[int] = None, after: Iterable[Node] = ()) -> Node:
        """Work of the chip: a time in seconds (or "5us"), or FLOPs and bytes for its roofline."""
        return self._add("kernel", name, after, lane=lane, flops=flops, bytes=bytes,
                         time_ps=None if time is None else _picoseconds(time))

    def host(self, name: str = "host", time: Time = 0, *, after: Iterable[Node] = ()) -> Node:
        """Work of the host's processor, in seconds."""
        return self._add("other", name, after, time_ps=_picoseconds(time))

    def nothing(self, name: str = "nothing", *, after: Iterable[Node] = ()) -> Node:
        """No work: hands dependencies on."""
        return self._add("nothing", name, after)

    def collective(self, op: str, bytes: int, *, group: int = 0, root: int = 0,
                   name: Optional[str] = None, lane: Optional[int] = None,
                   after: Iterable[Node] = ()) -> Node:
        """A collective of a group (0: all ranks). bytes: as nccl-tests counts them."""
        return self._add("collective", name or op, after, op=op, group=group, root=root,
                         bytes=bytes, lane=lane)

    def send(self, to: int, bytes: int, *, tag: int = 0, name: Optional[str] = None,
             after: Iterable[Node] = ()) -> Node:
        """Sends to another rank; does not wait for the receive."""
        return self._add("send", name or f"send to {to}", after, peer=to, tag=tag, bytes=bytes)

    def receive(self, source: int, bytes: int, *, tag: int = 0, name: Optional[str] = None,
                after: Iterable[Node] = ()) -> Node:
        """Ends when the bytes of the send with this tag have arrived."""
        return self._add("receive", name or f"receive from {source}", after, peer=source, tag=tag,
                         bytes=bytes)

    def _add(self, kind: str, name: str, after: Iterable[Node], **members: Any) -> Node:
        node: Dict[str, Any] = {"kind": kind, "name": self._graph._name(name)}
        node.update((key, value) for key, value in members.items() if value is not None)
        positions: List[int] = []
        for other in after:
            if other.rank != self._number:
                raise ValueError(f"after: a node of rank {other.rank} can't be waited for by rank "
                                 f"{self._number}; use send() and receive()")
            positions.append(other.position)
        if positions:
            node["after"] = positions
        self._nodes.append(node)
        return Node(self._number, len(self._nodes) - 1)


class OpGraph:
    """The work of several ranks. Rank r runs on chip r of the cluster.

        graph = stepsim.OpGraph(ranks=2)
        for rank in graph:
            gradient = rank.kernel("backward", "3ms")
            rank.collective("all-reduce", 64 * 2**20, after=[gradient])
        stepsim.run(graph, cluster="dgx-h100-8").step_time_s
    """

    def __init__(self, ranks: int, source: str = "python"):
        self._source = source
        self._names: Dict[str, int] = {}
        self._groups: List[List[int]] = [list(range(ranks))]
        self._ranks = [Rank(self, number) for number in range(ranks)]

    def __len__(self) -> int:
        return len(self._ranks)

    def __getitem__(self, rank: int) -> Rank:
        return self._ranks[rank]

    def group(self, ranks: Sequence[int]) -> int:
        """Returns the number of a group of ranks, for collectives."""
        if list(ranks) not in self._groups:
            self._groups.append(list(ranks))
        return self._groups.index(list(ranks))

    def to_dict(self) -> Dict[str, Any]:
        """A workload file, which `stepsim run FILE --cluster C` also runs."""
        return {"stepsim_workload": 1, "source": self._source, "ranks": len(self._ranks),
                "groups": self._groups, "names": list(self._names),
                "programs": [rank._nodes for rank in self._ranks]}

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

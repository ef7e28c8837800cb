"""Chips and machines as tables call them: catalog/hardware has their names, and the chip and the cluster that stand for them."""

import dataclasses
import functools
import pathlib
import re

from old_tables.rows import CATALOG, Refused, read_textproto

# Words that don't tell chips apart. "v4" and "v5" alone are generations of Azure's machines.
SAYS_NOTHING = set("""accelerator accelerators ada amazon amd ampere aws azure baseboard blackwell card cards chip chips cloud
    cluster coreweave cpu dgx ec2 edition gcp geforce google gpu gpus grace habana hgx hopper hpu instance instances instinct
    intel lambda mb memory mib module node nodes nvidia nd nvl8 nvlink oam oci oracle pod quadro slice superchip superpod
    system tesla the ultra ultraserver v4 v5 vm volta with x tpu nvl72""".split())
# Makers' names of families that tables write apart from the number after them.
FAMILIES = {"gaudi", "mi", "pro", "rtx", "tpu", "trainium", "trn"}
# Chips whose names have no digit.
NAMES = {"ironwood", "trainium", "trillium"}


@dataclasses.dataclass
class Hardware:
    names: list
    chip: str
    cluster: str
    has_sizes: bool
    chips_per_node: int
    multislice: str
    cores_per_chip: int
    words: set

    def cluster_of(self, chips):
        """The cluster of as many whole nodes as so many chips need."""
        if not self.cluster:
            raise Refused(f"the catalog has no cluster of {self.chip}")
        if not self.has_sizes:
            return self.cluster
        nodes = -(-chips // self.chips_per_node)
        return f"{self.cluster}-{nodes * self.chips_per_node}"


@functools.cache
def _tables():
    return [read_textproto(path) for path in sorted((CATALOG / "hardware").glob("*.textproto"))]


@functools.cache
def all_hardware():
    result = []
    for table in _tables():
        for entry in table["hardware"]:
            def of(field, default):
                return entry.get(field, [default])[0]
            names = entry["name"]
            result.append(Hardware(names=names, chip=of("chip", ""), cluster=of("one_cluster", "") or of("cluster", ""),
                                   has_sizes="one_cluster" not in entry, chips_per_node=int(of("chips_per_node", 8)),
                                   multislice=of("multislice", ""), cores_per_chip=int(of("cores_per_chip", 1)),
                                   words=set().union(*(words_of(name) for name in names))))
    return result


def words_of(name):
    """The words that tell chips apart: "A100-SXM4-40GB" is 40gb, a100 and sxm."""
    cut = []
    for part in re.findall(r"[a-z0-9](?:[a-z0-9]|\.(?=[0-9]))*", name.lower()):
        part = re.sub(r"^[0-9]+x(?=[a-z])", "", part)
        if part.startswith("tpuv"):
            cut.append("tpu")
            part = part[3:]
        form = next((form for form in ("sxm", "pcie", "nvl72") if form in part), None)
        if form is None:
            cut.append(part)
            continue
        before, after = part.split(form, 1)
        cut += [word for word in (before, form, re.sub("^[0-9]", "", after)) if word]
    joined = []
    for word in cut:
        before = joined[-1] if joined else ""
        if word == "core" and before == "tensor":
            joined.pop()
        elif before in FAMILIES and word[0].isdigit():
            joined[-1] += word
        elif before.isdigit() and word in ("gb", "gib"):
            joined[-1] += word
        elif word in ("lite", "litepod") and before.startswith("v"):
            joined[-1] += "lite"
        elif before == "tpu" and word.startswith("v"):
            joined[-1] = word
        else:
            joined.append(word)
    words = {"tpuv4" if word == "v4" and "tpu" in cut else re.sub(r"^([0-9]+)(gib|gb|g)$", r"\1gb", word) for word in joined}
    return {word for word in words if word not in SAYS_NOTHING and not re.fullmatch("[0-9]+[xw]?", word)
            and not word.startswith(("hbm", "gddr", "nvlink"))}


def _names_hardware(word):
    return word in NAMES or bool(re.search("[0-9]", word) and re.search("[a-z]", word) and not re.fullmatch("[0-9]+gb", word))


def find_hardware(name):
    """Returns the entry that a name stands for: the one that has it, or the first that knows all of its words. Throws Refused."""
    for entry in all_hardware():
        if name in entry.names:
            return entry
    words = words_of(name)
    for entry in all_hardware() if words else []:
        if words <= entry.words and (any(map(_names_hardware, words)) or any(words_of(known) == words for known in entry.names)):
            return entry
    raise Refused(f"the catalog has no chip for \"{name}\"")


def network_of_machine(text):
    """Returns Gb/s that the machine which a text names sends and receives, and its name; None if it names none."""
    small = text.lower()
    machines = read_textproto(pathlib.Path(__file__).with_name("machines.textproto"))["machine"]
    for machine in machines:
        for name in machine["name"]:
            if re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", small):
                return float(machine["network_gigabits"][0]), machine["name"][0]
    return None

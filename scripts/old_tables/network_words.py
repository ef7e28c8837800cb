"""The network of a node in the words of old tables: "8x 400 Gb/s InfiniBand per node", "NDR400, 8 HCAs", "EFA 3200 Gbps"."""

import dataclasses
import re

GENERATIONS = {"qdr": 40, "fdr": 56, "edr": 100, "hdr": 200, "ndr": 400, "xdr": 800}  # Gb/s of four lanes
UNIT_ENDINGS = ("", "b", "b/s", "bps", "bit", "bit/s", "bits/s", "b/sec", "be", "byte/s", "bytes/s", "ib/s", "bit/sec")
CARDS = ("x", "*", "cards", "nics", "hcas", "ports", "adapters")
# A rate without a count is that of a card, if cards have such rates.
LEAST_CARD, MOST_CARD = 200, 400


@dataclasses.dataclass
class Clause:
    compute: bool = False  # "Compute: ..."
    other: bool = False  # a network for something else, or bandwidth inside a node
    per_node: bool = False
    per_chip: bool = False
    not_stated: bool = False
    by_machine: bool = False  # networks whose rates are a machine's: EFA
    cards: float | None = None
    gigabits: float | None = None
    generation: float | None = None

    def rate(self):
        return self.generation if self.gigabits is None else self.gigabits

    def of_node(self, chips):
        if self.rate() is None or not (self.cards is not None or self.per_chip or self.per_node):
            return 0
        return (1 if self.cards is None else self.cards) * (chips if self.per_chip else 1) * self.rate()


def _words(clause):
    """Numbers, and what stands between them: "400Gb/s" is two words, "8xNDR" three."""
    words = []
    at = 0
    while at < len(clause):
        number = re.compile(r"[0-9]+(?:\.[0-9]+)*").match(clause, at)
        letters = re.compile(r"(?:[a-zA-Z]|[-/](?=[a-zA-Z]))+(?:-[0-9]+(?:\.[0-9]+)*)?").match(clause, at)
        if clause[at] in "\u00d7*":
            words.append("x" if clause[at] == "\u00d7" else "*")
            at += 1
        elif number:
            words.append(number.group())
            at = number.end()
        elif letters and clause[at].isalpha():
            text = letters.group()
            times = text[0] in "xX" and at > 0 and clause[at - 1].isdigit() and text[1:].lower() in GENERATIONS
            words.append(text[0] if times else text)
            at += len(words[-1])
        else:
            at += 1
    return words


def _gigabits(unit):
    """Gb/s of one of a unit; None if it is none. A capital B is a byte, except in Gbit, GbE and where all letters are capital."""
    small = unit.lower()
    prefix = {"t": 1000, "g": 1, "m": 1e-3}.get(small[:1])
    if prefix is None or small[1:] not in UNIT_ENDINGS:
        return None
    is_bytes = small[1:].startswith("byte") or unit[1:] in ("B", "B/s", "Bps")
    return prefix * (8 if is_bytes else 1)


def _clause(text):
    words = _words(text)
    small = [word.lower() for word in words]
    clause = Clause()

    def word(at):
        return small[at] if 0 <= at < len(small) else ""

    for at, now in enumerate(small):
        if now[0].isdigit():
            if now.count(".") > 1:
                continue
            number = float(now)
            unit = _gigabits(words[at + 1]) if at + 1 < len(words) and not word(at + 1)[0].isdigit() else None
            if unit is not None:
                clause.gigabits = max(clause.gigabits or 0, number * unit)
            elif word(at - 1) in GENERATIONS and number in (100, 200, 400):
                clause.gigabits = number  # "NDR 400", "NDR400", two lanes of "HDR100"
            elif word(at + 1) in CARDS:
                clause.cards = number
            elif word(at - 1) in ("x", "*") and at + 1 == len(words) and clause.cards is None:
                clause.cards = number  # "400 Gb/s x 8"
            continue
        clause.generation = GENERATIONS.get(now, clause.generation)
        clause.compute |= now == "compute"
        clause.not_stated |= now in ("unknown", "n/a") or (now == "not" and word(at + 1) == "stated")
        clause.by_machine |= now.startswith(("efa", "tcpx", "gpudirect-tcpx"))
        clause.other |= now in ("storage", "management", "pcie", "gpu-pcie", "pcie-nic", "nvlink", "dpu")
        if now in ("per", "a", "each", "every"):
            clause.per_node |= word(at + 1) in ("node", "host", "server", "machine", "vm", "instance")
            clause.per_chip |= word(at + 1) in ("gpu", "chip", "accelerator", "device", "tpu", "gcd")
    return clause


def network_of_node(text, chips, card):
    """Returns Gb/s of a node of so many chips, and what was assumed; None if the text doesn't say. `card`: Gb/s of the card that
    a chip of the catalog has."""
    clauses = [_clause(part) for part in re.split("[,;+]", text) if part]
    says_compute = any(clause.compute for clause in clauses)
    clauses = [clause for clause in clauses if not clause.other and (clause.compute or not says_compute)]
    largest = max([clause.of_node(chips) for clause in clauses], default=0)
    together = Clause()  # "8 HCAs, 200 Gb/s each"
    for clause in clauses:
        for field in ("cards", "gigabits", "generation"):
            if getattr(clause, field) is not None:
                setattr(together, field, getattr(clause, field))
        together.not_stated |= clause.not_stated
        together.by_machine |= clause.by_machine
    largest = largest or together.of_node(chips)
    if largest > 0:
        return largest, ""
    rate = together.rate()
    if together.cards is not None or not rate or together.not_stated:
        return None
    of_card = together.gigabits is None or LEAST_CARD <= rate <= max(MOST_CARD, card)
    if together.by_machine or not of_card:
        return rate, "the rate is the node's"
    return rate * chips, "each chip has a card of the rate"

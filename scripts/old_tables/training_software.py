"""The software of a row of an old table of training runs: an entry of catalog/software."""

import functools
import re

from old_tables.rows import CATALOG, is_blank, letters_and_digits, read_textproto, words_of_tables


class Entry:
    """An entry with what those say that it is like. Keys are of plan and software."""

    def __init__(self, fields):
        self.fields = fields
        self.name = fields["name"][0] if "name" in fields else ""
        self.keys = keys_of(fields)

    def on_chip(self, chip):
        """The keys on a chip of the catalog."""
        return self.keys | keys_on_chip(self.fields, chip)

    def recipe(self, name, chip):
        """The keys that a recipe turns on; none if the entry has no such recipe."""
        for recipe in self.fields.get("recipe", []):
            if name in recipe["name"]:
                return keys_of(recipe) | keys_on_chip(recipe, chip)
        return {}


def keys_of(fields):
    return {key: values[0] for group in ("plan", "software") for message in fields.get(group, []) for key, values in message.items()}


def keys_on_chip(fields, chip):
    for change in fields.get("chip", []):
        if chip.startswith(change["begins_with"][0]):
            return keys_of(change)
    return {}


@functools.cache
def entries():
    written = {}
    for path in sorted((CATALOG / "software").glob("*.textproto")):
        for entry in read_textproto(path)["software"]:
            written[entry["name"][0]] = entry

    def completed(name):
        own = written[name]
        if "like" not in own:
            return Entry(own)
        base = completed(own["like"][0])
        entry = Entry({**own, "chip": own.get("chip", []) + base.fields.get("chip", [])})
        entry.keys = base.keys | entry.keys
        return entry

    return {name: completed(name) for name in written}


# ---- which entry a row's software is ----


def _is_date(word):
    return re.fullmatch(r"20[0-9]{2}(\.[0-9]{2})?", word) is not None


def name_words(name):
    """Cuts "Megatron-LM core v0.8, 2024-12" into megatron, lm, core, 0.8 and 2024.12."""
    name = re.sub(r"\b(20[0-9]{2})-([0-9]{2})", r"\1.\2", name.lower())
    return [re.sub("^v(?=[0-9])", "", word) for word in re.findall(r"[a-z0-9.]+", name)]


def _is_release_or_word(word, of_entry):
    """True if a row's word is that of an entry: the same, a release of it ("25.04" of "25"), or a date up to it."""
    if _is_date(of_entry) and _is_date(word):
        if len(word) >= len(of_entry):
            return word[:len(of_entry)] <= of_entry
        return word < of_entry[:len(word)]  # a year alone is not before a month of it
    return word == of_entry or (of_entry[0].isdigit() and word.startswith(of_entry + "."))


def _likeness(row, entry):
    """How well an entry fits a row: by how many words it has, if the row has all of them in this order, or least if the row
    has only its beginning."""
    at = 0
    for word in entry:
        while at < len(row) and not _is_release_or_word(row[at], word):
            at += 1
        if at == len(row):
            return 1 if len(row) < len(entry) and entry[:len(row)] == row else 0
    return 2 * len(entry)


def _may_be(row, entry):
    """True if they are called by the same first word, and the row is of the entry's release if that has one."""
    return entry[0] in row and all(not part[0].isdigit() or any(_is_release_or_word(word, part) for word in row)
                                   for part in entry)


def _is_of_source(row, listed):
    """A source begins where a word does, and no letter follows: "nemo" is in nemo_25, neither in nemotron nor in bionemo."""
    end = "(?![a-z])" if listed[-1].isalpha() else ""
    at_begin = re.match(re.escape(listed) + end, row.text("source_id"))
    begin = "(?<![a-zA-Z0-9])" if listed[0].isalnum() else ""
    return at_begin or re.search(begin + re.escape(listed) + end, row.text("source_ref"))


def metric(row, key):
    """Returns "NeMo" for "framework=" in "framework=NeMo;release=24.11"."""
    found = re.search(re.escape(key) + "([^;]*)", row.text("other_metrics"))
    return found.group(1) if found else ""


def software_of(row):
    """Returns the rule of the dictionary that fits a row, with the entry; None: not known, or none given."""
    rules = words_of_tables("training_words")["software"]
    name = row.text("software")
    is_named = not is_blank(name)
    if not is_named:
        name = metric(row, "framework=")
    release = row.text("release") if is_named else metric(row, "release=")
    words = name_words(f"{name} {release}")

    def is_of_type(rule):
        return "types" not in rule or any(part in row.text("dtype") or part in row.text("release") for part in rule["types"])

    for rule in rules:
        entry = name_words(rule["entry"])
        listed = [source for source in rule.get("sources", []) if not (is_named and source in entry)]
        if any(_is_of_source(row, source) for source in listed) and is_of_type(rule) and (not is_named or _may_be(words, entry)):
            return rule
    if is_blank(name):
        return None

    def likeness(rule):
        if not is_of_type(rule) or any(word in words for word in rule.get("not_called", [])):
            return 0
        return max(_likeness(words, name_words(called)) for called in [rule["entry"], *rule.get("called", [])])

    best = max(rules, key=likeness)
    if likeness(best) > 0:
        return best
    row.assumed.append(f"software \"{name}\" is not known: as if none were given")
    return None


def recipe_of(row, rule, entry, chip):
    """Returns the keys of the entry's recipe for the row's model on a chip; none if it has none."""
    model = letters_and_digits(row.text("model"))
    name = next((name for part, name in (rule or {}).get("recipes", []) if part in model), None)
    return entry.recipe(name, chip) if name else {}

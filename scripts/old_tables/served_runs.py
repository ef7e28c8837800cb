"""Tables of served runs.

Assumed where a row says nothing, and noted: 10 requests for each that is in the system at a time (InferenceMAX's rule), whose
answers are up to a tenth shorter or longer than printed, as requests of one length would stay in step for ever; types by the
names of checkpoints and the custom of the framework; experts over all data-parallel ranks of attention, with copies where they
don't divide.
"""

import dataclasses
import re

from old_tables.catalog import names_of_models, sizes_of, types_of_chip
from old_tables.hardware import all_hardware, find_hardware
from old_tables.rows import Refused, Row, is_blank, letters_and_digits, number_text, words_of_tables
from old_tables.words import said

COLUMNS = ["model", "chip", "chips", "framework", "isl", "osl"]
ORDER = ["id", "source", "grade", "model", "cluster", "chip", "software", "engine", "replicas", "prefill", "decode", "requests",
         "plan", "pass", "model.experts", "chips", "measured", "said", "assumed"]
WORDS = words_of_tables("served_words")
MEASURES = {"ttft_mean_s": "measured.ttft_mean", "tpot_mean_s": "measured.tpot_mean",
            "output_tok_per_s_per_chip": "measured.output_tokens_per_s_per_chip"}
SAID = ["model", "model_id", "chip", "framework", "framework_version", "precision", "kv_dtype", "mode", "length_dist", "load",
        "spec_decode", "provenance", "remarks"]
MEASURABLE = 10  # tokens of which a tenth is one
MOST_OF_NODE = 8


# ---- models ----

def keeps_architecture(word):
    """True of "instruct", "0528" and "2507" (a month or a day), "v0.3", "671b" and "a22b"."""
    if word in WORDS["keeps"]["words"]:
        return True
    return bool(re.fullmatch(r"a?[0-9.]+b|v[0-9.]+b?|[0-9.]{4}", word))


def model_of(name):
    """The model of the catalog with this name, less an owner, and words behind it that leave the architecture as it is."""
    words = re.findall(r"(?:[A-Za-z0-9]|(?<=[0-9])\.(?=[0-9]))+", name.rsplit("/", 1)[-1])
    while words:
        wanted = letters_and_digits("".join(words))
        wanted = letters_and_digits(WORDS["models"].get(wanted, wanted))
        if wanted in names_of_models():
            return names_of_models()[wanted]
        if not keeps_architecture(words.pop().lower()):
            break
    raise Refused(f"model \"{name}\" is not in the catalog")


# ---- how ranks are divided ----

@dataclasses.dataclass
class Layout:
    """How many ranks of each kind a replica has."""
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1

    def ranks(self):
        return self.tp * self.pp * self.dp

    def keys(self, layers, experts):
        """Where stages don't divide the layers, engines give some one more."""
        keys = {"tp": self.tp, "pp": self.pp, "dp": self.dp}
        if layers % self.pp:
            keys["layout"] = "balanced"
        if experts and self.tp > 1:
            ep = max(1, min(self.ep, self.tp))
            keys |= {"ep": ep, "etp": self.tp // ep}
        elif experts:
            keys["ep"] = self.ep
        return keys

    def copies(self, experts):
        """Experts that don't divide over the ranks have copies, as many as the next multiple needs; None: they divide."""
        if self.tp > 1 or experts == 0 or experts % self.ep == 0:
            return None
        return -(-experts // self.ep) * self.ep


class Conversion:
    def __init__(self, cells):
        self.row = Row(cells)
        name, self.watts = self.chip_and_power()
        self.hardware = find_hardware(name)
        if not self.hardware.cluster:
            raise Refused(f"the catalog has no cluster of \"{name}\"")
        self.software = WORDS["frameworks"].get(self.row.text("framework").lower())
        if self.software is None:
            raise Refused(f"framework \"{self.row.text('framework')}\" is unknown")
        self.model = model_of(self.row.text("model"))
        self.layers, self.experts = sizes_of(self.model)
        self.chips = self.row.need("chips")

    def chip_and_power(self):
        """Returns "h100" and 350 of "h100 (350 W cap)"."""
        text = self.row.text("chip")
        capped = re.fullmatch(r"(.*) \(([0-9]+) W cap\)", text)
        return (capped[1], int(capped[2])) if capped else (text, 0)

    def says(self, column, word):
        return word in self.row.text(column).lower()

    def assume(self, what):
        self.row.assumed.append(what)

    def cluster(self):
        """Slices of three axes are as flat as they can be: 4 chips are 2x2x1."""
        if self.hardware.cluster != "v7":
            return self.hardware.cluster_of(self.chips)
        x = 2 if self.chips >= 2 else 1
        y = 2 if self.chips >= 4 else 1
        return f"{self.hardware.cluster}-{x}x{y}x{max(1, self.chips // x // y)}"

    def chip(self):
        """The chip, unless the cluster has it of itself."""
        first = next(entry for entry in all_hardware() if entry.cluster == self.hardware.cluster)
        return "" if first.chip == self.hardware.chip else self.hardware.chip

    # ---- types ----

    def computes(self, dtype):
        return dtype in types_of_chip(self.hardware.chip)

    def has_block_scales(self):
        """Checkpoints of these models have a scale for each block of 128 x 128 weights."""
        return "deepseek" in self.model or ("qwen" in self.model and self.says("model_id", "-fp8"))

    def dtype(self):
        precision = self.row.text("precision").lower().removesuffix("?")
        if "gpt-oss" in self.model or not precision:
            return "bf16"
        if precision == "fp8":
            if self.has_block_scales() and self.computes("fp8_block"):
                return "fp8_block"
            return "fp8" if self.computes("fp8") else "int8"
        if precision == "fp4":
            return "nvfp4" if self.computes("nvfp4") else "mxfp4"
        return precision

    def types(self):
        dtype = self.dtype()
        is_narrow = dtype not in ("bf16", "fp16")
        is_gpt_oss = "gpt-oss" in self.model
        if dtype == "nvfp4" and "deepseek" in self.model:
            cells = {"plan.dtype": "bf16", "pass.expert_dtype": "nvfp4"}  # NVIDIA's checkpoints keep attention in 16 bits
        else:
            cells = {"plan.dtype": dtype} | ({"plan.weight_dtype": dtype} if is_narrow else {})
        if is_gpt_oss and self.computes("mxfp8"):
            cells["pass.expert_dtype"] = "mxfp8"
        # One scale a tensor or one a block: the same work, of which the better kernels are known.
        if dtype == "fp8" and self.experts and self.computes("fp8_block") and not self.computes("nvfp4"):
            cells["pass.expert_dtype"] = "fp8_block"
        return cells | {"pass.cache_dtype": self.cache(is_narrow or is_gpt_oss)}

    def cache(self, is_narrow):
        """TensorRT-LLM keeps keys and values of fp8 and fp4 models in fp8."""
        if not is_blank(self.row.text("kv_dtype")):
            return "fp8" if self.computes("fp8") and self.says("kv_dtype", "fp8") else "bf16"
        cache = "fp8" if self.computes("fp8") and is_narrow and self.software == "trtllm" else "bf16"
        if is_narrow:
            self.assume(f"cache: {cache}")
        return cache

    # ---- requests ----

    def length(self, column):
        most = self.row.need(column)
        if column == "osl" and self.says("length_dist", "assumed") and most >= MEASURABLE:
            self.assume("answers: a tenth shorter to longer")
            return f"uniform:{most * 9 // 10}-{most + most // 10}"
        return f"uniform:{most * 8 // 10}-{most}" if self.says("length_dist", "uniform") else str(most)

    def requests(self):
        lengths = f"input={self.length('isl')},output={self.length('osl')},seed=1"
        if self.says("load", "trace"):
            raise Refused("requests came as a trace of its own says")
        if self.says("mode", "static"):
            return f"burst:count={self.row.need('batch')},{lengths}"
        if self.says("load", "offline"):
            return f"burst:count={self.row.need('num_requests')},{lengths}"
        loop = self.row.integer("concurrency") or self.row.integer("batch")
        if loop is None:
            raise Refused("concurrency is not given")
        count = self.row.integer("num_requests")
        if count is None:
            self.assume("num_requests: 10 x concurrency")
        return f"closed:concurrency={loop},count={count or 10 * loop},{lengths}"

    def engine(self):
        prompt = self.row.integer("isl") or 1
        if self.says("mode", "static"):
            batch = self.row.integer("batch") or 1
            return f"static,sequences={batch},block=16,budget={prompt * batch}"
        keys = WORDS["engines"][self.software]
        if self.says("spec_decode", "mtp"):
            # One module makes one draft. DeepSeek-V3's report (arXiv 2412.19437, section 5.4.3) has 85 to 90 % accepted.
            keys += ",drafter=mtp,drafts=1,acceptance=0.85"
            self.assume("speculation: 1 draft, 85 % accepted")
        # A prompt that is never cut needs room beside those that generate, or it waits for them to end.
        whole = WORDS["whole_prompts"].get(self.software)
        if whole and prompt + whole["sequences"] > whole["budget"]:
            keys += f",budget={prompt + whole['sequences']}"
        return keys

    # ---- replicas ----

    def layout(self, prefix):
        result = Layout(tp=self.row.integer(prefix + "tp") or 1, pp=self.row.integer(prefix + "pp") or 1)
        # Some tables write 0 where nothing is divided.
        if self.row.text(prefix + "ep") != "0":
            result.ep = self.row.integer(prefix + "ep") or 1
        result.dp = self.row.integer(prefix + "dp" if prefix else "attention_dp") or 1
        # Data-parallel attention takes the chips of the tensor group.
        if result.dp > 1:
            result.tp = max(1, result.tp // result.dp)
            if self.experts:
                result.ep = result.dp
        return result

    def chips_of_worker(self, prefix):
        return self.row.need(prefix + "chips") // (self.row.integer(prefix + "workers") or 1)

    def worker(self, prefix):
        """What workers of more chips than tp and dp say do: those of the size of a node or less, which are chosen for low
        latency, divide every layer; wider ones divide attention by requests and spread the experts, as do the prefill workers
        that feed them."""
        result = self.layout(prefix)
        chips = self.chips_of_worker(prefix)
        if chips <= result.ranks():
            return result
        more = chips // result.ranks()
        divides_layers = self.chips_of_worker("decode_") <= MOST_OF_NODE
        self.assume(f"{prefix}{'tp' if divides_layers else 'dp'}: {more}")
        if divides_layers:
            result.tp *= more
        else:
            result.dp *= more
            if self.experts:
                result.ep = result.dp
        return result

    def copies(self, layout):
        copies = layout.copies(self.experts)
        if copies:
            self.assume(f"experts: {copies}, with copies")
        return copies or ""

    def pools(self):
        cells = {}
        served = 0
        for name in ("prefill", "decode"):
            prefix = name + "_"
            workers = self.row.need(prefix + "workers")
            layout = self.worker(prefix)
            keys = {"workers": workers} | layout.keys(self.layers, self.experts)
            cells[name] = ",".join(f"{key}={value}" for key, value in keys.items())
            cells[name + ".model.experts.routed"] = self.copies(layout)
            served += workers * layout.ranks()
        return cells, served

    def replicas(self):
        own = self.layout("")
        own.tp = max(1, own.tp // self.hardware.cores_per_chip)
        if is_blank(self.row.text("ep")) and self.experts and self.says("remarks", "attention data parallel"):
            self.assume("attention: data parallel, experts over all ranks")
            own = Layout(pp=own.pp, dp=own.tp, ep=own.tp)
        if own.ranks() > self.chips:
            raise Refused(f"{own.ranks()} ranks on {self.chips} chips")
        count = max(1, self.chips // own.ranks())
        cells = {"plan." + key: value for key, value in own.keys(self.layers, self.experts).items()}
        cells |= {"model.experts.routed": self.copies(own), "replicas": count if count > 1 else ""}
        return cells, count * own.ranks()

    def measured(self):
        cells = {new: number_text(self.row.positive(old)) for old, new in MEASURES.items()
                 if self.row.positive(old) is not None}
        if not cells:
            raise Refused("none of its figures is predicted")
        return cells

    def cells(self):
        own = {name: self.row.text(name) for name in ("id", "source", "grade")}
        parts = {"model": self.model, "cluster": self.cluster(), "chip": self.chip(),
                 "software": "" if self.software == "jetstream" else self.software}
        if self.watts:
            parts["cluster.chip.power.limit_watts"] = self.watts
        types = self.types()
        parts |= {"requests": self.requests(), "engine": self.engine()}
        cells, served = self.pools() if self.says("mode", "disagg") else self.replicas()
        cells["chips"] = "" if served == self.chips else self.chips
        measured = self.measured()
        words = {"said": said(self.row, *SAID), "assumed": "; ".join(self.row.assumed)}
        return own | parts | cells | types | measured | words


def convert(cells):
    return Conversion(cells).cells()

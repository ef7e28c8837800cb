#include "measured/predict_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "measured/row_fields.h"
#include "measured/timed_rows.h"
#include "proto/load_experiment.h"
#include "sim/base/error.h"
#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"
#include "workload/parts/expert_load.h"
#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostExperts = 1 << 16;

MeasuredKernel read_gemm(Shape& shape, DataType type) {
  const std::int64_t m = shape.size("m");
  const std::int64_t n = shape.size("n");
  const std::int64_t k = shape.size("k");
  const std::optional<DataType> weights = shape.type("weight_dtype");
  const std::string_view inputs = shape.text("inputs");
  if (!inputs.empty() && inputs != "rounded") shape.fail("inputs can only be rounded");
  if (!shape.problem().empty()) return {};
  // The result of one-byte types is kept in 16 bits.
  const DataType result = size_of(type) == Bytes(1) ? DataType::kBf16 : type;
  MeasuredKernel reading{.kernel = matmul("gemm",
                                          {.operands = type, .result = result, .weights = weights},
                                          {.m = m, .n = n, .k = k})};
  if (inputs.empty() && size_of(type) < size_of(DataType::kBf16)) reading.quantized = m * k;
  return reading;
}

MeasuredKernel read_prompt_attention(Shape& shape, DataType type, bool causal) {
  AttentionShape attention{.sequences = shape.count("batch", 1),
                           .heads = shape.size("heads"),
                           .kv_heads = shape.count("kv_heads"),
                           .queries = shape.size("seq_q"),
                           .keys = shape.size("seq_kv"),
                           .qk_dim = shape.size("head_dim")};
  attention.v_dim = attention.qk_dim;
  // The last query sees all keys.
  const auto q = static_cast<double>(attention.queries);
  const auto keys = static_cast<double>(attention.keys);
  attention.pairs = q * keys - (causal ? q * std::min(q, keys) / 2 : 0);
  if (attention.heads % attention.kv_heads != 0) shape.fail("kv_heads must divide heads");
  const std::string_view phase = shape.text("phase");
  if (!phase.empty() && phase != "forward" && phase != "backward") {
    shape.fail("phase must be forward or backward");
  }
  const std::string_view named = shape.text("library");
  const auto library = Text<AttentionLibrary>::read(named);
  if (!named.empty() && !library) {
    shape.fail(fmt::format("library must be {}, is \"{}\"", Text<AttentionLibrary>::accepts(),
                           shortened(named)));
  }
  if (!shape.problem().empty()) return {};
  return {.kernel = phase == "backward" ? attention_backward("attention", type, attention)
                                        : attention_forward("attention", type, attention),
          .library = library};
}

MeasuredKernel read_attention(Shape& shape, DataType type) {
  return read_prompt_attention(shape, type, false);
}

MeasuredKernel read_causal_attention(Shape& shape, DataType type) {
  return read_prompt_attention(shape, type, true);
}

MeasuredKernel read_add(Shape& shape, DataType type) {
  const std::int64_t elements = shape.size("m") * shape.size("n");
  if (!shape.problem().empty()) return {};
  return {.kernel = elementwise("add", type, {.elements = elements, .reads = 2, .flops = 1})};
}

DecodeKernel decode_kernel(Shape& shape, DataType type) {
  DecodeKernel kernel{.type = type, .repeated = true};
  kernel.library = shape.text("library");
  kernel.stored = shape.type("cache_dtype").value_or(type);
  return kernel;
}

MeasuredKernel read_decode_attention(Shape& shape, DataType type) {
  const DecodeKernel kernel = decode_kernel(shape, type);
  DecodeShape attention{.sequences = shape.size("batch"),
                        .heads = shape.size("heads"),
                        .kv_heads = shape.count("kv_heads"),
                        .queries = shape.size("seq_q"),
                        .keys = shape.size("seq_kv"),
                        .window = shape.count("window", 0),
                        .qk_dim = shape.size("head_dim")};
  attention.v_dim = attention.qk_dim;
  if (attention.heads % attention.kv_heads != 0) shape.fail("kv_heads must divide heads");
  if (!shape.problem().empty()) return {};
  return {.kernel = attention_decode("decode_attention", kernel, attention)};
}

MeasuredKernel read_latent_decode(Shape& shape, DataType type) {
  const DecodeKernel kernel = decode_kernel(shape, type);
  const LatentDecodeShape latent{.sequences = shape.size("batch"),
                                 .heads = shape.size("heads"),
                                 .queries = shape.size("seq_q"),
                                 .keys = shape.size("seq_kv")};
  if (!shape.problem().empty()) return {};
  return {.kernel = latent_decode("latent_decode", kernel, latent)};
}

// Returns the load that a law of routing ("balanced", "power_law:1.2") gives the fullest rank.
std::optional<ExpertLoad> load_by(std::string_view law, const ExpertShare& share) {
  constexpr std::string_view kPowerLaw = "power_law:";
  if (law.empty() || law == "balanced") return balanced_load(share);
  if (!law.starts_with(kPowerLaw)) return std::nullopt;
  const std::optional<double> alpha = number_in<double>(law.substr(kPowerLaw.size()));
  if (!alpha || *alpha <= 0 || *alpha == 1) return std::nullopt;
  return power_law_load(share, *alpha);
}

MeasuredKernel read_experts(Shape& shape, DataType type) {
  ExpertLayer layer{.tokens = shape.size("tokens"),
                    .top_k = shape.size("top_k"),
                    .hidden = shape.size("hidden"),
                    .inter = shape.size("intermediate"),
                    .type = type,
                    .weights = shape.type("weight_dtype"),
                    .library = shape.text("library"),
                    .repeated = true};
  const std::int64_t parts = shape.count("etp", 1);
  const ExpertShare share{.tokens = layer.tokens,
                          .experts = shape.count("experts"),
                          .top_k = layer.top_k,
                          .members = shape.count("ep", 1)};
  if (share.experts > kMostExperts) shape.fail("experts must be at most 65536");
  if (share.top_k > share.experts) shape.fail("top_k is more than experts");
  if (share.experts % share.members != 0) shape.fail("ep must divide experts");
  if (layer.inter % parts != 0) shape.fail("etp must divide intermediate");
  if (!shape.problem().empty()) return {};
  layer.inter /= parts;
  const std::optional<ExpertLoad> load = load_by(shape.text("routing"), share);
  if (!load) shape.fail("routing must be balanced or power_law:ALPHA, ALPHA above 0 and not 1");
  layer.load = load.value_or(ExpertLoad{});
  return {.experts = layer};
}

struct KernelOp {
  std::string_view name;
  std::vector<std::string> keys;
  MeasuredKernel (*read)(Shape& shape, DataType type);
};

const std::vector<KernelOp>& kernel_ops() {
  static const std::vector<std::string> kPrompt = {"batch",  "heads",    "kv_heads", "seq_q",
                                                   "seq_kv", "head_dim", "phase",    "library"};
  static const std::vector<KernelOp> kOps = {
      {"gemm", {"m", "n", "k", "weight_dtype", "inputs"}, read_gemm},
      {"attention", kPrompt, read_attention},
      {"attention_causal", kPrompt, read_causal_attention},
      {"add", {"m", "n"}, read_add},
      {"decode_attention",
       {"batch", "heads", "kv_heads", "seq_q", "seq_kv", "head_dim", "window", "cache_dtype",
        "library"},
       read_decode_attention},
      {"latent_decode",
       {"batch", "heads", "seq_q", "seq_kv", "cache_dtype", "library"},
       read_latent_decode},
      {"experts",
       {"tokens", "hidden", "intermediate", "top_k", "experts", "etp", "ep", "routing",
        "weight_dtype", "library"},
       read_experts}};
  return kOps;
}

std::string no_such_op(std::string_view op) {
  std::vector<std::string> names;
  for (const KernelOp& known : kernel_ops()) names.emplace_back(known.name);
  return fmt::format("op: must be {}, is \"{}\"{}", either_of(names), shortened(op),
                     did_you_mean(std::string(op), names));
}

// Loads each chip once.
class KernelChips {
 public:
  // Throws ConfigError.
  const ChipSpec& get(const std::string& name) {
    const auto found = loaded_.find(name);
    return found != loaded_.end() ? found->second
                                  : loaded_.emplace(name, load_chip(name)).first->second;
  }

 private:
  std::map<std::string, ChipSpec> loaded_;
};

void predict_kernel(const CsvTable& table, std::size_t record, KernelChips& chips,
                    AccuracyRow& row) {
  const MeasuredKernel kernel = read_kernel(table, record);
  row.skipped = kernel.problem;
  if (!row.skipped.empty()) return;
  try {
    const ChipSpec& chip = chips.get(row.chip);
    row.chip = chip.name;
    row.skipped = missing_on(kernel, chip);
    if (row.skipped.empty()) row.predicted = to_seconds(time_of(kernel, chip));
  } catch (const ConfigError& error) {
    row.skipped = first_line(error.problems());
  }
}

}  // namespace

MeasuredKernel read_kernel(const CsvTable& table, std::size_t record) {
  const std::string_view name = table.at(record, "op");
  const auto op = std::ranges::find(kernel_ops(), name, &KernelOp::name);
  if (op == kernel_ops().end()) return {.problem = no_such_op(name)};
  DataType type = DataType::kBf16;
  std::string problem = read_type("dtype", table.at(record, "dtype"), type);
  if (!problem.empty()) return {.problem = std::move(problem)};
  Shape shape(table.at(record, "shape"), op->keys);
  MeasuredKernel kernel = op->read(shape, type);
  if (!shape.problem().empty()) return {.problem = shape.problem()};
  return kernel;
}

std::string missing_on(const MeasuredKernel& measured, const ChipSpec& chip) {
  const auto lacks = [&](std::string_view library) {
    return fmt::format("{} has no such kernel of {}", chip.name,
                       library.empty() ? "any library" : library);
  };
  const DataType type = measured.experts ? measured.experts->type : measured.kernel->type;
  const bool decodes = measured.kernel && (measured.kernel->kind == KernelKind::kAttentionDecode ||
                                           measured.kernel->kind == KernelKind::kLatentDecode);
  if (!decodes && chip.peak_of(type) == Throughput(0)) {
    return fmt::format("{} does not compute in {}", chip.name, name_of(type));
  }
  if (const auto& layer = measured.experts) {
    return find_experts(chip.serving.experts, *layer) == nullptr ? lacks(layer->library) : "";
  }
  if (!decodes) return {};
  const Kernel& kernel = *measured.kernel;
  const auto& entries =
      kernel.kind == KernelKind::kLatentDecode ? chip.serving.latent_decode : chip.serving.decode;
  return find_decode(entries, kernel) == nullptr ? lacks(kernel.library) : "";
}

Duration time_of(const MeasuredKernel& measured, const ChipSpec& chip) {
  if (measured.experts) return time_of(*measured.experts, chip).total;
  if (measured.library) {
    ChipSpec in_training = chip;
    in_training.efficiency = chip.efficiency.in_training(measured.library);
    return time_of(*measured.kernel, in_training).total;
  }
  Duration total = time_of(*measured.kernel, chip).total;
  if (measured.quantized) {
    total += time_to_quantize(*measured.quantized, measured.kernel->type, chip);
  }
  return total;
}

AccuracyRow begin_kernel_row(const CsvTable& table, std::size_t record) {
  return begin_timed_row(table, record, std::string(table.at(record, "chip")),
                         {"chip", "op", "shape", "dtype"});
}

std::vector<AccuracyRow> predict_kernels(const CsvTable& table, const PredictOptions& options) {
  std::vector<AccuracyRow> rows;
  KernelChips chips;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    report(options, record, table.records.size());
    rows.push_back(begin_kernel_row(table, record));
    if (is_ended(options)) {
      rows.back().skipped = kInterrupted;
    } else if (rows.back().skipped.empty()) {
      predict_kernel(table, record, chips, rows.back());
    }
  }
  return rows;
}

}  // namespace stepsim

#include "analysis/accuracy/predict_serving_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <map>
#include <utility>
#include <variant>

#include "analysis/accuracy/row_fields.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"
#include "workload/expert_load.h"
#include "workload/kernels.h"

namespace stepsim {
namespace {

// A row that can be timed, or why it can't.
struct Asked {
  std::variant<Kernel, ExpertLayer> what;
  std::string source{};  // of its summary, without the chip: "moe triton bf16"
  std::string problem{};
};

// Sizes of kernels that have times and bytes which fit in 64 bits.
constexpr double kMostProduct = 0x1p55;
constexpr std::int64_t kMostExperts = 1 << 16;

// Reads whole numbers of a record. The first one that can't be read is the problem.
class Sizes {
 public:
  Sizes(const CsvTable& table, std::size_t record) : table_(table), record_(record) {}

  std::int64_t operator()(std::string_view column, std::int64_t least = 1) {
    const std::optional<std::int64_t> value = table_.integer(record_, column);
    if (value && *value >= least) {
      product_ *= static_cast<double>(std::max<std::int64_t>(1, *value));
      return *value;
    }
    if (problem_.empty()) {
      problem_ = no_value(table_, record_, column, "at least " + std::to_string(least));
    }
    return std::max<std::int64_t>(1, least);
  }

  // Returns "" if all could be read and can be timed.
  std::string problem() const {
    if (!problem_.empty()) return problem_;
    return product_ <= kMostProduct ? "" : "the product of the sizes must be at most 2^55";
  }

 private:
  const CsvTable& table_;
  std::size_t record_;
  double product_ = 1;
  std::string problem_;
};

// SGLang runs the kernels that vLLM runs: FlashAttention 3 on Hopper, those of TensorRT-LLM by way
// of FlashInfer on Blackwell.
std::string_view library_of_attention(std::string_view framework) {
  const std::string name = in_small_letters(framework);
  if (name == "trtllm") return "trtllm";
  return name == "vllm" || name == "sglang" ? "vllm" : "";
}

// Returns the library whose kernel a row names: "vllm_fp8moe_triton_tritonexperts" is triton's.
std::string_view library_of_experts(std::string_view kernel) {
  const auto has = [&](std::string_view part) {
    return kernel.find(part) != std::string_view::npos;
  };
  if (has("cutlass")) return "flashinfer-cutlass";
  if (has("triton")) return "triton";
  if (!has("flashinfer_trtllm")) return "";
  return kernel.ends_with("modular") ? "flashinfer-trtllm-modular" : "flashinfer-trtllm";
}

Asked refused(std::string problem) {
  return {.what = Kernel{}, .problem = std::move(problem)};
}

Asked read_attention(const CsvTable& table, std::size_t record, bool latent) {
  Asked asked{.what = Kernel{}};
  DecodeKernel kernel{.repeated = true};
  const std::string_view framework = table.at(record, "framework");
  kernel.library = library_of_attention(framework);
  if (kernel.library.empty()) return refused(fmt::format("no kernels of {}", framework));
  for (auto [column, type] : {std::pair("dtype", &kernel.type), {"kv_dtype", &kernel.stored}}) {
    if (!read_data_type(table.at(record, column), *type)) {
      return refused(fmt::format("no such data type: {}", table.at(record, column)));
    }
  }
  Sizes size(table, record);
  const std::int64_t queries = size("isl");
  const std::int64_t keys = queries + size("step", 0);
  if (latent) {
    asked.what = latent_decode(
        "generation_mla", kernel,
        {.sequences = size("batch"), .heads = size("heads"), .queries = queries, .keys = keys});
  } else {
    const std::int64_t heads = size("heads");
    const std::int64_t own = size("kv_heads");
    if (heads % own != 0) return refused("kv_heads do not divide heads");
    const std::int64_t width = size("head_dim");
    asked.what = attention_decode("generation_attention", kernel,
                                  {.sequences = size("batch"),
                                   .heads = heads,
                                   .kv_heads = own,
                                   .queries = queries,
                                   .keys = keys,
                                   .window = table.integer(record, "window").value_or(0),
                                   .qk_dim = width,
                                   .v_dim = width});
  }
  asked.problem = size.problem();
  asked.source =
      fmt::format("{} {} kv {}", table.at(record, "table"), kernel.library, name_of(kernel.stored));
  return asked;
}

// Returns the load that a law of routing ("balanced", "power_law_1.2") gives the fullest chip.
std::optional<ExpertLoad> load_by(std::string_view law, const ExpertShare& share) {
  constexpr std::string_view kPowerLaw = "power_law_";
  if (law == "balanced") return balanced_load(share);
  if (!law.starts_with(kPowerLaw)) return std::nullopt;
  const std::optional<double> alpha = number_in<double>(law.substr(kPowerLaw.size()));
  if (!alpha || *alpha <= 0 || *alpha == 1) return std::nullopt;
  return power_law_load(share, *alpha);
}

Asked read_experts(const CsvTable& table, std::size_t record) {
  ExpertLayer layer{.repeated = true};
  layer.library = library_of_experts(table.at(record, "kernel"));
  if (layer.library.empty()) {
    return refused(fmt::format("no kernels of {}", table.at(record, "kernel")));
  }
  const std::string_view type = table.at(record, "dtype");
  if (!read_data_types(type, layer.type, layer.weights)) {
    return refused(fmt::format("no such data type: {}", type));
  }
  Sizes size(table, record);
  layer.tokens = size("tokens");
  layer.top_k = size("topk");
  layer.hidden = size("hidden");
  const std::int64_t width = size("inter");
  Sizes split(table, record);
  const std::int64_t parts = split("moe_tp");
  const ExpertShare share{.tokens = layer.tokens,
                          .experts = split("experts"),
                          .top_k = layer.top_k,
                          .members = split("moe_ep")};
  Asked asked{.what = Kernel{}, .problem = size.problem()};
  if (asked.problem.empty()) asked.problem = split.problem();
  if (!asked.problem.empty()) return asked;
  if (share.experts > kMostExperts) return refused("experts must be at most 65536");
  if (share.top_k > share.experts) return refused("topk is more than experts");
  if (share.experts % share.members != 0) return refused("experts do not divide into moe_ep");
  if (width % parts != 0) return refused("inter does not divide into moe_tp");
  layer.inter = width / parts;
  const std::string_view law = table.at(record, "distribution");
  const std::optional<ExpertLoad> load = load_by(law, share);
  if (!load) return refused(fmt::format("no such distribution: {}", law));
  layer.load = *load;
  asked.what = layer;
  asked.source = fmt::format("moe {} {}", layer.library, type);
  return asked;
}

Asked read_row(const CsvTable& table, std::size_t record) {
  const std::string_view kind = table.at(record, "table");
  if (kind == "moe") return read_experts(table, record);
  if (kind == "generation_attention") return read_attention(table, record, false);
  if (kind == "generation_mla") return read_attention(table, record, true);
  return refused(fmt::format("no model for \"{}\"", kind));
}

// Returns why the chip can't be timed with its constants; "" if it can.
std::string missing_kernel(const Asked& asked, const ChipSpec& chip) {
  const auto lacks = [&](std::string_view library) {
    return fmt::format("{} has no such kernel of {}", chip.name, library);
  };
  if (const auto* layer = std::get_if<ExpertLayer>(&asked.what)) {
    if (chip.peak_of(layer->type) == Throughput(0)) {
      return fmt::format("{} does not compute in {}", chip.name, name_of(layer->type));
    }
    return find_experts(chip.serving.experts, *layer) == nullptr ? lacks(layer->library) : "";
  }
  const Kernel& kernel = std::get<Kernel>(asked.what);
  const bool latent = kernel.kind == KernelKind::kLatentDecode;
  const auto& entries = latent ? chip.serving.latent_decode : chip.serving.decode;
  return find_decode(entries, kernel) == nullptr ? lacks(kernel.library) : "";
}

Duration time_on(const ChipSpec& chip, const Asked& asked) {
  if (const auto* layer = std::get_if<ExpertLayer>(&asked.what)) {
    return time_of(*layer, chip).total;
  }
  return time_of(std::get<Kernel>(asked.what), chip).total;
}

// Loads each chip once.
class Chips {
 public:
  const ChipSpec& get(const std::string& name) {
    const auto found = loaded_.find(name);
    return found != loaded_.end() ? found->second
                                  : loaded_.emplace(name, load_chip(name)).first->second;
  }

 private:
  std::map<std::string, ChipSpec> loaded_;
};

void predict_row(const CsvTable& table, std::size_t record, const std::vector<Hardware>& hardware,
                 Chips& chips, AccuracyRow& row) {
  row.source_id = fmt::format("{} {}", table.at(record, "table"), row.chip);
  const std::optional<double> milliseconds = table.number(record, "latency_ms");
  if (!milliseconds || *milliseconds <= 0) {
    row.skipped = "no time was measured";
    return;
  }
  row.measured = *milliseconds * 1e-3;
  const Hardware* entry = find_hardware(hardware, table.at(record, "chip"));
  if (entry == nullptr) {
    row.skipped = "the catalog has no chip for this hardware";
    return;
  }
  const Asked asked = read_row(table, record);
  row.skipped = asked.problem;
  if (!row.skipped.empty()) return;
  const ChipSpec& chip = chips.get(entry->chip);
  row.source_id = fmt::format("{} {}", asked.source, entry->chip);
  row.skipped = missing_kernel(asked, chip);
  if (row.skipped.empty()) row.predicted = to_seconds(time_on(chip, asked));
}

}  // namespace

std::vector<AccuracyRow> predict_serving_kernels(const CsvTable& table,
                                                 const std::vector<Hardware>& hardware,
                                                 const PredictOptions& options) {
  std::vector<AccuracyRow> rows;
  Chips chips;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    report(options, record, table.records.size());
    rows.push_back(start_row(table, record, hardware, "chip", "time_s"));
    if (is_ended(options)) {
      rows.back().skipped = kInterrupted;
    } else {
      predict_row(table, record, hardware, chips, rows.back());
    }
  }
  return rows;
}

}  // namespace stepsim

#include "analysis/accuracy/training_run_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/accuracy/row_fields.h"

namespace stepsim {
namespace {

constexpr std::int64_t kPaddedGpt2Vocabulary = 51'200;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The number behind "experts=" in "experts=160 topk=6 moe_ffn=1536".
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + key.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// One row, column by column. Problems are kept; the first one is reported.
class Row {
 public:
  Row(const CsvTable& table, std::size_t record) : table_(table), record_(record) {}

  std::string_view text(std::string_view column) const { return table_.at(record_, column); }
  std::optional<std::int64_t> integer(std::string_view column) const {
    return table_.integer(record_, column);
  }
  std::int64_t integer_or(std::string_view column, std::int64_t other) const {
    return integer(column).value_or(other);
  }
  std::int64_t need(std::string_view column) {
    const auto value = integer(column);
    if (!value) fail(fmt::format("{} is not given", column));
    return value.value_or(1);
  }
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  const std::string& problem() const { return problem_; }

 private:
  const CsvTable& table_;
  std::size_t record_;
  std::string problem_;
};

// Keys of a plan, each with the value that came last.
class PlanKeys {
 public:
  explicit PlanKeys(std::vector<std::pair<std::string, std::string>> defaults)
      : keys_(std::move(defaults)) {}

  void set(std::string_view key, std::string value) {
    const auto found = std::ranges::find(keys_, key, [](const auto& entry) { return entry.first; });
    if (found != keys_.end()) {
      found->second = std::move(value);
    } else {
      keys_.emplace_back(key, std::move(value));
    }
  }
  void set(std::string_view key, std::int64_t value) { set(key, std::to_string(value)); }
  void set_flag(std::string_view key, bool value) { set(key, value ? "true" : "false"); }
  void set_name(std::string_view key, std::string_view value) {
    set(key, fmt::format("\"{}\"", value));
  }
  std::string text() const {
    std::string text = "plan {\n";
    for (const auto& [key, value] : keys_) text += fmt::format("  {}: {}\n", key, value);
    return text + "}\n";
  }

 private:
  std::vector<std::pair<std::string, std::string>> keys_;
};

std::string experts_text(Row& row) {
  const std::string_view detail = row.text("moe_detail");
  const auto experts = number_after(detail, "experts=");
  const auto top = number_after(detail, "topk=");
  if (!experts || !top) {
    row.fail("experts and how many a token visits are not given");
    return {};
  }
  const std::int64_t width = number_after(detail, "moe_ffn=").value_or(row.integer_or("ffn", 0));
  std::string text =
      fmt::format("  experts {{ routed: {} per_token: {} intermediate: {}", *experts, *top, width);
  std::int64_t shared = number_after(detail, "shared_ffn=").value_or(0);
  if (contains(detail, "+ 1 shared")) shared = width;
  if (shared > 0) text += fmt::format(" shared_intermediate: {}", shared);
  std::int64_t dense = number_after(detail, "dense_layers=").value_or(0);
  if (contains(detail, "3 dense layers")) dense = 3;
  if (dense > 0) text += fmt::format(" first_dense: {}", dense);
  return text + " }\n";
}

// DeepSeek's own sizes (arXiv 2405.04434, 2412.19437): tables say "MLA" and no more.
std::string latent_text(const Row& row) {
  const std::string_view model = row.text("model");
  const bool small = contains(model, "lite") || contains(model, "Lite");
  return fmt::format(
      "  latent {{ {}kv_rank: 512 nope_dim: 128 rope_dim: 64 v_dim: 128 }}\n  head_dim: 192\n",
      small ? "" : "q_rank: 1536 ");
}

// gpt-oss has a learned logit beside the scores of each head. Transformer Engine has no fused
// kernel for that with the cuDNN of 2025 (NVIDIA/TransformerEngine, issue 2318), whatever a table
// says.
bool has_sinks(const Row& row) {
  const std::string_view model = row.text("model");
  return contains(model, "GPT OSS") || contains(model, "gpt-oss") || contains(model, "GPT-OSS");
}

std::string model_text(Row& row, bool dropout) {
  if (row.text("model").starts_with("nemotron3")) {
    row.fail(
        "its layers alternate between Mamba-2, attention and experts: in what order, the "
        "columns do not say");
  }
  const bool gated = !row.text("gated_mlp").starts_with("no");
  const bool experts = row.text("moe") == "yes";
  const bool latent = contains(row.text("moe_detail"), "MLA") || row.text("attention") == "MLA";
  const std::int64_t hidden = row.need("hidden");
  const std::int64_t heads = row.need("heads");
  std::string text = fmt::format(
      "model {{\n  name: \"measured\"\n  layers: {} hidden: {} intermediate: {} heads: {}\n"
      "  kv_heads: {} vocabulary: {} gated_mlp: {}\n",
      row.need("layers"), hidden, row.integer_or("ffn", 4 * hidden), heads,
      row.integer_or("kv_heads", heads), row.integer_or("vocab", kPaddedGpt2Vocabulary), gated);
  if (latent) {
    text += latent_text(row);
  } else if (const auto head_dim = row.integer("head_dim")) {
    text += fmt::format("  head_dim: {}\n", *head_dim);
  }
  if (!gated) {
    text += fmt::format(
        "  learned_positions: {} tied_embeddings: true attention_bias: true mlp_bias: true\n"
        "  norm: \"layer\"\n",
        row.need("seq_len"));
    text += fmt::format("  dropout: {}\n", dropout);
  }
  if (has_sinks(row)) text += "  attention_sinks: true\n";
  if (experts) text += experts_text(row);
  return text + "}\n";
}

// A network card of each GPU, where a table says what a node has.
std::string nic_text(const Row& row) {
  const std::string_view text = row.text("inter_node");
  for (const std::string_view unit : {" Gb/s per node", " Gbps per node"}) {
    const std::size_t at = text.find(unit);
    if (at == std::string_view::npos) continue;
    std::size_t begin = at;
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
    std::int64_t value = 0;
    std::from_chars(text.data() + begin, text.data() + at, value);
    const std::int64_t cards = row.integer_or("chips_per_node", 8);
    if (value > 0)
      return fmt::format(" dgx_superpod {{ nic_bandwidth: \"{}Gbps\" }}", value / cards);
  }
  return {};
}

std::string cluster_text(Row& row, const Hardware& hardware, const Software& software,
                         std::int64_t chips) {
  if (hardware.cluster.empty()) {
    row.fail("the catalog has no cluster of " + hardware.chip);
    return {};
  }
  const bool rails = hardware.cluster.starts_with("dgx") && chips > hardware.chips_per_node;
  std::string chip = fmt::format("catalog: \"{}\"", hardware.chip);
  if (!software.fixed_memory.empty()) {
    chip += fmt::format(" fixed_memory: \"{}\"", software.fixed_memory);
  }
  const auto own = std::ranges::find_if(
      software.chips, [&](const auto& fields) { return hardware.chip.starts_with(fields.first); });
  if (own != software.chips.end()) chip += " " + own->second;
  return fmt::format("cluster {{ catalog: \"{}\" chip {{ {} }}{} }}\n", cluster_of(hardware, chips),
                     chip, rails ? nic_text(row) : "");
}

// Returns how many chunks a rank has.
std::int64_t read_schedule(Row& row, PlanKeys& plan) {
  const std::string_view schedule = row.text("schedule");
  if (row.integer_or("pp", 1) == 1) return 1;
  const std::int64_t chunks = row.integer_or("virtual_stages", 1);
  const auto named = [&](std::string_view name, std::int64_t of_a_rank) {
    plan.set_name("schedule", name);
    if (of_a_rank > 1) plan.set("chunks", of_a_rank);
    return of_a_rank;
  };
  if (schedule.starts_with("ZB-2p")) return named("zb_auto_2p", 1);
  if (schedule.starts_with("ZB-1p")) return named("zb_auto_1p", 1);
  if (schedule.starts_with("ZB-V")) return named("zbv_auto", 2);
  if (schedule.starts_with("interleaved") && chunks > 1) return named("interleaved_1f1b", chunks);
  if (schedule.starts_with("1F1B") || schedule.starts_with("interleaved") || schedule.empty()) {
    return 1;
  }
  row.fail(fmt::format("schedule \"{}\" is not known", schedule));
  return 1;
}

// Where layers do not divide into stages, those at both ends, which have embedding and loss, have
// one less: the last, the first, the last but one and so on.
void read_layout(Row& row, std::int64_t chunks, PlanKeys& plan) {
  const std::int64_t stages = row.integer_or("pp", 1) * chunks;
  const std::int64_t layers = row.need("layers");
  if (stages < 3 || layers % stages == 0) return;
  std::vector<std::int64_t> layout(static_cast<std::size_t>(stages),
                                   (layers + stages - 1) / stages);
  for (std::int64_t spare = layout.front() * stages - layers, i = 0; i < spare; ++i) {
    --layout[static_cast<std::size_t>(i % 2 == 0 ? stages - 1 - i / 2 : i / 2)];
  }
  plan.set_name("layout", fmt::format("{}", fmt::join(layout, ",")));
}

void read_recompute(Row& row, PlanKeys& plan) {
  const std::string_view recompute = row.text("recompute");
  if (recompute.starts_with("full")) return plan.set_name("recompute", "full");
  if (recompute == "selective") return plan.set_name("recompute", "selective");
  // torchtitan's: results of operations, or every second block.
  if (recompute == "selective (layer)") {
    plan.set("recompute_layers", std::max<std::int64_t>(1, row.need("layers") / 2));
    return plan.set_name("recompute", "full");
  }
  const bool by_op = contains(recompute, "op") && recompute.starts_with("selective");
  if (by_op || recompute.starts_with("selective (llama3")) {
    return plan.set_name("recompute", "alternate");
  }
  // Megatron Core's modules: "norm, act, shared_expert".
  static const std::vector<std::pair<std::string_view, std::string_view>> kModules = {
      {"norm", "norm"},
      {"act", "activation"},
      {"shared_expert", "shared_experts"},
      {"mla_up_proj", "latent_up"},
      {"core_attn", "attention"},
      {"mlp", "mlp"},
      {"moe", "experts"}};
  std::string modules;
  for (std::string_view rest = recompute; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(", "), rest.size());
    const auto known = std::ranges::find(kModules, rest.substr(0, comma),
                                         [](const auto& module) { return module.first; });
    rest.remove_prefix(std::min(comma + 2, rest.size()));
    if (known == kModules.end()) {
      modules.clear();
      break;
    }
    modules += (modules.empty() ? "" : "+") + std::string(known->second);
  }
  if (!modules.empty()) {
    plan.set_name("recompute", "selective");
    return plan.set_name("recompute_modules", modules);
  }
  if (recompute.empty() || recompute.starts_with("none") || recompute.starts_with("not stated") ||
      recompute.starts_with("unknown") || recompute.starts_with("recipe dependent")) {
    return;
  }
  row.fail(fmt::format("recompute \"{}\" can't be expressed", recompute));
}

void read_type(const Row& row, PlanKeys& plan) {
  const std::string_view type = row.text("dtype");
  if (type.starts_with("fp8") || type.starts_with("FP8") || type.starts_with("float8")) {
    return plan.set_name("dtype", "fp8");
  }
  if (type.starts_with("fp16")) return plan.set_name("dtype", "fp16");
  if (type.starts_with("int8")) return plan.set_name("dtype", "int8");
  plan.set_name("dtype", "bf16");
  if (contains(type, "MP PURE")) plan.set("gradient_bytes", 2);  // reduced in bf16
}

void read_overlap(const Row& row, PlanKeys& plan) {
  const std::string_view overlap = row.text("overlap");
  const std::string_view zero = row.text("zero_stage");
  const bool divides = zero.starts_with("2") || zero.starts_with("3") || zero.starts_with("FSDP");
  const bool at_the_end =
      overlap.starts_with("no overlap") || overlap.starts_with("no gradient all-reduce");
  if (at_the_end && !divides) plan.set_flag("overlap_gradients", false);
  if (contains(overlap, "overlap-param-gather")) plan.set_flag("overlap_parameters", true);
  const bool tensor = contains(overlap, "TP_COMM_OVERLAP=True") ||
                      contains(overlap, "--tp-comm-overlap") ||
                      contains(overlap, "overlapped with weight-grad");
  if (tensor && row.integer_or("tp", 1) > 1) plan.set_flag("overlap_tensor", true);
}

void read_zero(Row& row, PlanKeys& plan) {
  const std::string_view zero = row.text("zero_stage");
  if (zero.starts_with("3")) return plan.set("zero", 3);
  if (zero.starts_with("FSDP: optimizer+gradient")) return plan.set("zero", 2);
  if (zero == "1" || zero == "2") return plan.set("zero", std::string(zero));
  if (zero.empty() || zero == "0" || zero.starts_with("unknown")) return;
  row.fail(fmt::format("zero_stage \"{}\" is not known", zero));
}

std::string plan_text(Row& row, const Software& software, std::int64_t chips, std::int64_t node) {
  PlanKeys plan(software.plan);
  const std::int64_t tp = row.integer_or("tp", 1);
  const std::int64_t cp = row.integer_or("cp", 1);
  const std::int64_t pp = row.integer_or("pp", 1);
  const std::int64_t dp =
      row.integer("dp").value_or(chips / std::max<std::int64_t>(1, tp * cp * pp));
  plan.set("tp", tp);
  plan.set("cp", cp);
  plan.set("pp", pp);
  plan.set("dp", dp);
  plan.set("ep", row.integer_or("ep", 1));
  plan.set("sequence", row.need("seq_len"));
  plan.set("global_batch", row.need("global_batch"));
  plan.set("microbatch", row.integer_or("micro_batch", 1));
  if (row.text("micro_batch").empty()) row.fail("micro_batch is not given");
  if (tp > 1) {
    // Nobody trains experts on tensor ranks that would all send the same tokens.
    plan.set_flag("sequence_parallel",
                  row.text("sequence_parallel").starts_with("yes") || row.text("moe") == "yes");
  }
  const std::string_view attention = row.text("attention");
  if (!attention.empty()) {
    const bool engine = contains(attention, "TE");
    plan.set_flag("fused_attention",
                  !attention.starts_with("standard") && !(engine && has_sinks(row)));
  }
  if (tp * cp * pp * dp % node != 0) plan.set_flag("allow_idle_chips", true);
  read_zero(row, plan);
  read_layout(row, read_schedule(row, plan), plan);
  read_recompute(row, plan);
  read_type(row, plan);
  read_overlap(row, plan);
  return plan.text();
}

}  // namespace

Software software_of(const CsvTable& table, std::size_t record,
                     const std::vector<Software>& known) {
  const std::string_view name = table.at(record, "software");
  const std::string_view source = table.at(record, "source_id");
  const std::string_view reference = table.at(record, "source_ref");
  for (const Software& software : known) {
    if (!name.empty() ? software.name == name
                      : std::ranges::any_of(software.sources, [&](const std::string& listed) {
                          return source.starts_with(listed) || contains(reference, listed);
                        })) {
      return software;
    }
  }
  return {};
}

RunText training_run_text(const CsvTable& table, std::size_t record, const Hardware& hardware,
                          const Software& software) {
  Row row(table, record);
  const std::int64_t ranks = row.integer_or("tp", 1) * row.integer_or("cp", 1) *
                             row.integer_or("pp", 1) * row.integer_or("dp", 0);
  const std::int64_t chips = ranks > 0 ? ranks : row.need("chip_count");
  RunText result;
  result.experiment = model_text(row, software.dropout) +
                      cluster_text(row, hardware, software, chips) +
                      plan_text(row, software, chips, hardware.chips_per_node);
  result.problem = row.problem();
  return result;
}

}  // namespace stepsim

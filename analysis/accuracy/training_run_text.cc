#include "analysis/accuracy/training_run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
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

std::string model_text(Row& row) {
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
  }
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

std::string cluster_text(Row& row, const Hardware& hardware, std::int64_t chips) {
  if (hardware.cluster.empty()) {
    row.fail("the catalog has no cluster of " + hardware.chip);
    return {};
  }
  const bool rails = hardware.cluster.starts_with("dgx") && chips > hardware.chips_per_node;
  return fmt::format("cluster {{ catalog: \"{}\" chip {{ catalog: \"{}\" }}{} }}\n",
                     cluster_of(hardware, chips), hardware.chip, rails ? nic_text(row) : "");
}

std::string schedule_text(Row& row) {
  const std::string_view schedule = row.text("schedule");
  if (row.integer_or("pp", 1) == 1) return {};
  const std::int64_t chunks = row.integer_or("virtual_stages", 1);
  if (schedule.starts_with("ZB-2p")) return "  schedule: \"zb_auto_2p\"\n";
  if (schedule.starts_with("ZB-1p")) return "  schedule: \"zb_auto_1p\"\n";
  if (schedule.starts_with("ZB-V")) return "  schedule: \"zbv_auto\" chunks: 2\n";
  if (schedule.starts_with("interleaved") && chunks > 1) {
    return fmt::format("  schedule: \"interleaved_1f1b\" chunks: {}\n", chunks);
  }
  if (schedule.starts_with("1F1B") || schedule.starts_with("interleaved") || schedule.empty()) {
    return {};
  }
  row.fail(fmt::format("schedule \"{}\" is not known", schedule));
  return {};
}

// Where layers do not divide into stages but two more would, the first and the last stage, which
// have embedding and loss, have one less: Zero Bubble's models, Llama-3 405B, Qwen3 235B.
std::string layout_text(Row& row, const std::string& schedule) {
  const bool v_shaped = contains(schedule, "zbv");
  const bool chunked = v_shaped || contains(schedule, "interleaved");
  const std::int64_t chunks = v_shaped ? 2 : chunked ? row.integer_or("virtual_stages", 1) : 1;
  const std::int64_t stages = row.integer_or("pp", 1) * chunks;
  const std::int64_t layers = row.need("layers");
  if (stages < 3 || layers % stages == 0 || (layers + 2) % stages != 0) return {};
  const std::int64_t each = (layers + 2) / stages;
  return fmt::format("  layout: \"{},{}*{},{}\"\n", each - 1, each, stages - 2, each - 1);
}

std::string recompute_text(Row& row) {
  const std::string_view recompute = row.text("recompute");
  if (recompute.starts_with("full")) return "  recompute: \"full\"\n";
  if (recompute == "selective") return "  recompute: \"selective\"\n";
  if (contains(recompute, "op")) {  // torchtitan's: the results of matmuls are kept
    if (recompute.starts_with("selective")) return "  recompute: \"matmuls\"\n";
  }
  if (recompute.starts_with("selective (llama3")) return "  recompute: \"matmuls\"\n";
  if (recompute.empty() || recompute.starts_with("none") || recompute.starts_with("not stated") ||
      recompute.starts_with("unknown") || recompute.starts_with("recipe dependent")) {
    return {};
  }
  row.fail(fmt::format("recompute \"{}\" can't be expressed", recompute));
  return {};
}

std::string type_text(Row& row) {
  const std::string_view type = row.text("dtype");
  if (type.starts_with("fp8") || type.starts_with("FP8") || type.starts_with("float8")) {
    return "  dtype: \"fp8\"\n";
  }
  if (type.starts_with("fp16")) return "  dtype: \"fp16\"\n";
  if (type.starts_with("int8")) return "  dtype: \"int8\"\n";
  std::string text = "  dtype: \"bf16\"\n";
  if (contains(type, "MP PURE")) text += "  gradient_bytes: 2\n";  // reduced in bf16
  return text;
}

std::string overlap_text(const Row& row) {
  const std::string_view overlap = row.text("overlap");
  std::string text;
  if (overlap.starts_with("no overlap")) text += "  overlap_gradients: false\n";
  if (overlap.starts_with("no gradient all-reduce")) text += "  overlap_gradients: false\n";
  if (contains(overlap, "overlap-param-gather")) text += "  overlap_parameters: true\n";
  const bool tensor = contains(overlap, "TP_COMM_OVERLAP=True") ||
                      contains(overlap, "--tp-comm-overlap") ||
                      contains(overlap, "overlapped with weight-grad");
  if (tensor && row.integer_or("tp", 1) > 1) text += "  overlap_tensor: true\n";
  return text;
}

std::string zero_text(Row& row) {
  const std::string_view zero = row.text("zero_stage");
  if (zero.starts_with("3")) return "  zero: 3\n";
  if (zero.starts_with("FSDP: optimizer+gradient")) return "  zero: 2\n";
  if (zero == "1" || zero == "2") return fmt::format("  zero: {}\n", zero);
  if (zero.empty() || zero == "0" || zero.starts_with("unknown")) return {};
  row.fail(fmt::format("zero_stage \"{}\" is not known", zero));
  return {};
}

std::string plan_text(Row& row, std::int64_t chips, std::int64_t node) {
  const std::int64_t tp = row.integer_or("tp", 1);
  const std::int64_t cp = row.integer_or("cp", 1);
  const std::int64_t pp = row.integer_or("pp", 1);
  const std::int64_t dp =
      row.integer("dp").value_or(chips / std::max<std::int64_t>(1, tp * cp * pp));
  std::string text = fmt::format(
      "plan {{\n  tp: {} cp: {} pp: {} dp: {} ep: {}\n  sequence: {} global_batch: {} microbatch: "
      "{}\n",
      tp, cp, pp, dp, row.integer_or("ep", 1), row.need("seq_len"), row.need("global_batch"),
      row.integer_or("micro_batch", 1));
  if (row.text("micro_batch").empty()) row.fail("micro_batch is not given");
  if (tp > 1) {
    text +=
        fmt::format("  sequence_parallel: {}\n", row.text("sequence_parallel").starts_with("yes"));
  }
  if (row.text("attention").starts_with("standard")) text += "  fused_attention: false\n";
  if (tp * cp * pp * dp % node != 0) text += "  allow_idle_chips: true\n";
  const std::string schedule = schedule_text(row);
  text += zero_text(row) + schedule + layout_text(row, schedule) + recompute_text(row) +
          type_text(row) + overlap_text(row);
  return text + "}\n";
}

}  // namespace

RunText training_run_text(const CsvTable& table, std::size_t record, const Hardware& hardware) {
  Row row(table, record);
  const std::int64_t ranks = row.integer_or("tp", 1) * row.integer_or("cp", 1) *
                             row.integer_or("pp", 1) * row.integer_or("dp", 0);
  const std::int64_t chips = ranks > 0 ? ranks : row.need("chip_count");
  RunText result;
  result.experiment = model_text(row) + cluster_text(row, hardware, chips) +
                      plan_text(row, chips, hardware.chips_per_node);
  result.problem = row.problem();
  return result;
}

}  // namespace stepsim

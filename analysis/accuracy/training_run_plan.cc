#include "analysis/accuracy/training_run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "analysis/accuracy/type_words.h"
#include "schedules/plan/plan_fields.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostStages = 10'000;

// Sets the plan keys that the catalog's entry gives. Throws ConfigError.
void set_keys(const Software& software, ParallelPlan& plan) {
  std::vector<Problem> problems;
  for (const auto& [key, text] : software.plan) {
    const AnyField* const field = plan_fields().find(key);
    if (field == nullptr) throw std::logic_error("no key " + key + " of a plan");
    for (std::string& problem : field->read(text, &plan)) {
      problems.push_back({software.name + ".plan." + key, std::move(problem)});
    }
  }
  throw_if_any(std::move(problems));
}

void read_sizes(RowReader& row, std::int64_t chips, ParallelPlan& plan) {
  plan.tp = row.integer_or("tp", 1);
  plan.cp = row.integer_or("cp", 1);
  plan.pp = row.integer_or("pp", 1);
  plan.dp =
      row.integer("dp").value_or(chips / std::max<std::int64_t>(1, plan.tp * plan.cp * plan.pp));
  plan.ep = row.integer_or("ep", 1);
  plan.sequence = row.need("seq_len");
  plan.global_batch = row.need("global_batch");
  plan.microbatch_size = row.integer_or("micro_batch", 1);
  if (row.text("micro_batch").empty()) row.assume("micro_batch: 1");
}

void read_attention(const RowReader& row, const MeasuredModel& model, ParallelPlan& plan) {
  if (plan.tp > 1) {
    // Without sequence parallelism all tensor ranks would send the same tokens to the experts,
    // which no training does.
    plan.sequence_parallel =
        row.text("sequence_parallel").starts_with("yes") || row.text("moe") == "yes";
  }
  const std::string_view attention = row.text("attention");
  if (attention.empty()) return;
  // Transformer Engine with the cuDNN of 2025 has no fused kernel for attention sinks
  // (NVIDIA/TransformerEngine, issue 2318), whatever a table says.
  const bool lacks_kernel = model.attention_sinks && contains(attention, "TE");
  plan.fused_attention = !attention.starts_with("standard") && !lacks_kernel;
}

void read_schedule(RowReader& row, ParallelPlan& plan) {
  const std::string_view schedule = row.text("schedule");
  if (plan.pp == 1) return;
  const std::int64_t chunks = row.integer_or("virtual_stages", 1);
  const auto named = [&plan](ScheduleName name, std::int64_t of_a_rank) {
    plan.schedule = name;
    if (of_a_rank > 1) plan.chunks = of_a_rank;
  };
  if (schedule.starts_with("ZB-2p")) return named(ScheduleName::kZeroBubbleAuto2P, 1);
  if (schedule.starts_with("ZB-1p")) return named(ScheduleName::kZeroBubbleAuto1P, 1);
  if (schedule.starts_with("ZB-V")) return named(ScheduleName::kZeroBubbleVAuto, 2);
  if (schedule.starts_with("interleaved") && chunks > 1) {
    return named(ScheduleName::kInterleaved, chunks);
  }
  const bool is_plain =
      schedule.starts_with("1F1B") || schedule.starts_with("interleaved") || schedule.empty();
  if (!is_plain) row.fail(fmt::format("schedule \"{}\" is not known", schedule));
}

// If the layers don't divide into stages, the stages at both ends, which also hold embedding and
// loss, get one layer less: first the last stage, then the first, then the last but one and so on.
void read_layout(RowReader& row, ParallelPlan& plan) {
  const std::int64_t stages = stages_of(plan);
  const std::int64_t layers = row.need("layers");
  if (stages < 3 || layers % stages == 0) return;
  if (stages > kMostStages) {
    return row.fail(
        fmt::format("pp x virtual_stages must be at most {} stages, are {}", kMostStages, stages));
  }
  plan.layout.assign(static_cast<std::size_t>(stages), (layers + stages - 1) / stages);
  for (std::int64_t spare = plan.layout.front() * stages - layers, i = 0; i < spare; ++i) {
    --plan.layout[static_cast<std::size_t>(i % 2 == 0 ? stages - 1 - i / 2 : i / 2)];
  }
}

// Reads Megatron Core's modules: "norm, act, shared_expert". Returns an empty list if one is
// unknown.
std::vector<RecomputeModule> recompute_modules(std::string_view text) {
  static const std::vector<std::pair<std::string_view, RecomputeModule>> kModules = {
      {"norm", RecomputeModule::kNorm},
      {"act", RecomputeModule::kActivation},
      {"shared_expert", RecomputeModule::kSharedExperts},
      {"mla_up_proj", RecomputeModule::kLatentUp},
      {"core_attn", RecomputeModule::kAttention},
      {"mlp", RecomputeModule::kMlp},
      {"moe", RecomputeModule::kExperts}};
  std::vector<RecomputeModule> modules;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(", "), text.size());
    const auto known = std::ranges::find(kModules, text.substr(0, comma),
                                         [](const auto& module) { return module.first; });
    if (known == kModules.end()) return {};
    modules.push_back(known->second);
    text.remove_prefix(std::min(comma + 2, text.size()));
  }
  return modules;
}

void read_recompute(RowReader& row, ParallelPlan& plan) {
  const std::string_view recompute = row.text("recompute");
  const auto set = [&plan](Recompute kind) { plan.recompute = kind; };
  if (recompute.starts_with("full")) return set(Recompute::kFull);
  if (recompute == "selective") return set(Recompute::kSelective);
  // torchtitan's selective checkpointing keeps results of operations, or every second block.
  if (recompute == "selective (layer)") {
    plan.recompute_layers = std::max<std::int64_t>(1, row.need("layers") / 2);
    return set(Recompute::kFull);
  }
  const bool by_op = contains(recompute, "op") && recompute.starts_with("selective");
  if (by_op || recompute.starts_with("selective (llama3")) return set(Recompute::kAlternate);
  if (const auto modules = recompute_modules(recompute); !modules.empty()) {
    plan.recompute_modules = modules;
    return set(Recompute::kSelective);
  }
  if (!recompute.starts_with("none") && !leaves_recompute_open(row))
    row.fail(fmt::format("recompute \"{}\" can't be expressed", recompute));
}

// A table without types is of bf16.
void read_type(RowReader& row, ParallelPlan& plan) {
  const std::string_view text = row.text("dtype");
  if (text.empty()) return row.assume("dtype: bf16");
  const TypeWords words = type_of_words(text);
  if (!words.type) return row.fail(words.problem);
  plan.type = *words.type;
  if (words.scale_block) plan.scale_block = words.scale_block;
  if (words.scale_rows) plan.scale_rows = true;
  const bool half = plan.type == DataType::kBf16 && contains(text, "MP PURE");
  if (half) plan.gradient_bytes = 2;  // gradients are reduced in bf16
}

void read_overlap(const RowReader& row, ParallelPlan& plan) {
  const std::string_view overlap = row.text("overlap");
  const std::string_view zero = row.text("zero_stage");
  const bool divides = zero.starts_with("2") || zero.starts_with("3") || zero.starts_with("FSDP");
  const bool at_the_end =
      overlap.starts_with("no overlap") || overlap.starts_with("no gradient all-reduce");
  if (at_the_end && !divides) plan.overlap_gradients = false;
  if (contains(overlap, "overlap-param-gather")) plan.overlap_parameters = true;
  const bool tensor = contains(overlap, "TP_COMM_OVERLAP=True") ||
                      contains(overlap, "--tp-comm-overlap") ||
                      contains(overlap, "overlapped with weight-grad");
  if (tensor && plan.tp > 1) plan.overlap_tensor = true;
  // Nobody quantises without a compiler: the casts would cost more than fp8 brings.
  const bool compiled = (contains(overlap, "compile") && !contains(overlap, "no compile")) ||
                        size_of(plan.type) < size_of(plan.activations());
  if (compiled) plan.eager_elementwise = false;
}

// NeMo's LoRA has a rank of 32 unless its recipe says otherwise
// (nemo/collections/llm/peft/lora.py).
void read_adapters(RowReader& row, ParallelPlan& plan) {
  constexpr std::int64_t kUsualRank = 32;
  const bool frozen = contains(row.text("model"), "LoRA") ||
                      contains(row.text("other_metrics"), "kind=LoRA") ||
                      contains(row.text("remarks"), "LoRA: frozen base");
  if (!frozen) return;
  plan.lora_rank = kUsualRank;
  row.assume("lora_rank: 32");
}

void read_zero(RowReader& row, ParallelPlan& plan) {
  const std::string_view zero = row.text("zero_stage");
  if (zero.starts_with("3")) {
    plan.zero = 3;
  } else if (zero == "2" || zero.starts_with("FSDP: optimizer+gradient")) {
    plan.zero = 2;
  } else if (zero == "1") {
    plan.zero = 1;
  } else if (!zero.empty() && zero != "0" && !zero.starts_with("unknown")) {
    row.fail(fmt::format("zero_stage \"{}\" is not known", zero));
  }
}

}  // namespace

bool leaves_recompute_open(const RowReader& row) {
  const std::string_view text = row.text("recompute");
  constexpr std::array kOpen = {"not stated", "unknown", "recipe dependent", "as needed", "?"};
  return text.empty() ||
         std::ranges::any_of(kOpen, [text](const char* open) { return text.starts_with(open); });
}

Software software_of(const RowReader& row, const std::vector<Software>& known) {
  const std::string_view name = row.text("software");
  const auto is_source = [&row](const std::string& listed) {
    return row.text("source_id").starts_with(listed) || contains(row.text("source_ref"), listed);
  };
  for (const Software& software : known) {
    const bool found =
        name.empty() ? std::ranges::any_of(software.sources, is_source) : software.name == name;
    if (found) return software;
  }
  return {};
}

ParallelPlan plan_of_row(RowReader& row, const MeasuredModel& model, const Software& software,
                         std::int64_t chips, std::int64_t node) {
  ParallelPlan plan;
  set_keys(software, plan);
  read_sizes(row, chips, plan);
  read_attention(row, model, plan);
  read_adapters(row, plan);
  plan.allow_idle_chips = plan.ranks() % node != 0;
  read_zero(row, plan);
  read_schedule(row, plan);
  read_layout(row, plan);
  read_recompute(row, plan);
  read_type(row, plan);
  read_overlap(row, plan);
  return plan;
}

}  // namespace stepsim

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "proto/field_reader.h"
#include "proto/plan_text.h"
#include "proto/to_spec.h"
#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/pipeline/schedule_file.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostRanksOfAnAxis = 1 << 20;
constexpr std::int64_t kMostSequences = 1 << 24;
constexpr std::int64_t kMostTokens = 1 << 27;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 40;
constexpr std::int64_t kMostBytesOfAParameter = 64;
constexpr int kMostPrefetch = 1000;
constexpr std::int64_t kMostBitsOfAValue = 32;
constexpr std::int64_t kMostUnits = 1'000'000;
constexpr std::int64_t kMostStages = 10'000;
constexpr std::int64_t kMostLayers = 1'000'000;

// A name, or a file in the notation of `stepsim schedule`.
void read_schedule(const std::string& text, ParallelPlan& spec, ProblemList& problems) {
  if (const auto name = schedule_named(text)) {
    spec.schedule = *name;
    return;
  }
  if (text == "optimal") {
    spec.optimal_schedule = true;
    return;
  }
  std::ifstream file(text);
  std::error_code error;
  if (!std::filesystem::is_regular_file(text, error) || !file) {
    std::vector<std::string> names;
    for (const ScheduleName name : all_schedules()) names.emplace_back(name_of(name));
    problems.add("plan.schedule", fmt::format("must be one of {}, optimal, or a file; is \"{}\"{}",
                                              schedule_names(), text, did_you_mean(text, names)));
    return;
  }
  try {
    spec.own_schedule = parse_schedule(std::string(std::istreambuf_iterator<char>(file), {}));
  } catch (const ConfigError& mistakes) {
    for (const Problem& problem : mistakes.problems()) {
      problems.add("plan.schedule: " + text + ": " + problem.field, problem.message);
    }
  }
}

// The values of an enumeration by their names.
template <typename Value>
std::vector<std::pair<std::string, Value>> choices(std::size_t count) {
  std::vector<std::pair<std::string, Value>> result;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<Value>(i);
    result.emplace_back(std::string(name_of(value)), value);
  }
  return result;
}

template <typename Value>
std::vector<std::string> names_of(const std::vector<std::pair<std::string, Value>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  return names;
}

void read_type(const FieldReader& fields, const char* field, std::optional<DataType>& type) {
  std::string text;
  fields.read(field, text);
  if (!fields.has(field)) return;
  type = data_type_named(text);
  if (!type) fields.add(field, "must be one of " + data_type_names() + "; is \"" + text + "\"");
}

// "norm+activation".
void read_recompute_modules(const FieldReader& fields, ParallelPlan& spec) {
  if (!fields.has("recompute_modules")) return;
  std::string text;
  fields.read("recompute_modules", text);
  const auto known = choices<RecomputeModule>(kRecomputeModules);
  std::string names;
  for (const auto& [name, module] : known) names += (names.empty() ? "" : ", ") + name;
  spec.recompute_modules.clear();
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '+');) {
    const auto found =
        std::ranges::find(known, part, [](const auto& choice) { return choice.first; });
    if (found == known.end()) {
      fields.add("recompute_modules",
                 fmt::format("has \"{}\", must be some of {}, joined by +{}", part, names,
                             did_you_mean(part, names_of(known))));
    } else if (std::ranges::count(spec.recompute_modules, found->second) == 0) {
      spec.recompute_modules.push_back(found->second);
    }
  }
  if (text.empty()) fields.add("recompute_modules", "is empty, must be some of " + names);
}

// Bytes of a parameter in all: weight, gradient, optimizer state if there is one.
struct StateAccounting {
  std::int64_t total;
  std::int64_t gradient;
  std::int64_t optimizer;
  bool hold_gradients;
};
constexpr StateAccounting kAccountings[] = {
    {10, 2, 8, false},  // bf16 weight, two fp32 moments
    {12, 2, 8, true},   // and a bf16 gradient
    {16, 2, 12, true},  // and an fp32 weight
    {18, 4, 12, true},  // with an fp32 gradient
};

void read_state_bytes(const FieldReader& fields, ParallelPlan& spec) {
  std::int64_t total = 0;
  fields.read("state_bytes", total);
  if (!fields.has("state_bytes")) return;
  const auto* found = std::ranges::find(kAccountings, total, &StateAccounting::total);
  if (found == std::end(kAccountings)) {
    fields.add("state_bytes", fmt::format("must be 10, 12, 16 or 18; is {}", total));
    return;
  }
  for (const char* part : {"gradient_bytes", "optimizer_bytes"}) {
    if (fields.has(part)) fields.add(part, "can't be given beside state_bytes");
  }
  spec.gradient_bytes = found->gradient;
  if (spec.optimizer != Optimizer::kNone) spec.optimizer_bytes = found->optimizer;
  spec.hold_gradients = found->hold_gradients;
}

// "7,8*14,7": a stage of 7 layers, 14 of 8, one of 7. People write 14*8 for it, too: the reading
// that makes as many stages as the pipeline has is meant. REQUIRES: the schedule has been read.
void read_layout(const std::string& text, ParallelPlan& spec, ProblemList& problems) {
  static const std::regex kPart(R"(\s*(\d{1,6})\s*(?:\*\s*(\d{1,6}))?\s*)");
  std::istringstream parts(text);
  std::vector<std::int64_t> swapped;
  for (std::string part; std::getline(parts, part, ',');) {
    std::smatch match;
    const bool good = std::regex_match(part, match, kPart);
    const std::int64_t layers = good ? std::stoll(match[1]) : 0;
    const std::int64_t times = good && match[2].matched ? std::stoll(match[2]) : 1;
    if (!good || times > kMostStages || layers > kMostLayers) {
      problems.add(
          "plan.layout",
          "must be layers of each stage such as 20,20,20,20 or 7,8*14,7; is \"" + text + "\"");
      spec.layout.clear();
      return;
    }
    spec.layout.insert(spec.layout.end(), static_cast<std::size_t>(times), layers);
    const bool is_product = match[2].matched && layers <= kMostStages;
    swapped.insert(swapped.end(), static_cast<std::size_t>(is_product ? layers : 1),
                   is_product ? times : layers);
  }
  const auto stages = [](const std::vector<std::int64_t>& layout) {
    return static_cast<std::int64_t>(layout.size());
  };
  const std::int64_t wanted = stages_of(spec);
  if (stages(spec.layout) != wanted && stages(swapped) == wanted) spec.layout = std::move(swapped);
}

// The upper limits are far above anything that exists; they keep products of sizes in 64 bits.
template <typename Integer>
void check_range(const char* field, Integer least, Integer most, Integer& value,
                 ProblemList& problems) {
  if (value >= least && value <= most) return;
  problems.add(std::string("plan.") + field,
               value < least ? fmt::format("must be at least {}, is {}", least, value)
                             : fmt::format("must be at most {}, is {}", most, value));
  value = 0;
}

void check_sizes(ParallelPlan& plan, ProblemList& problems) {
  const auto within = [&problems](const char* field, std::int64_t least, std::int64_t most,
                                  std::int64_t& value) {
    check_range(field, least, most, value, problems);
  };
  within("tp", 1, kMostRanksOfAnAxis, plan.tp);
  within("cp", 1, kMostRanksOfAnAxis, plan.cp);
  within("dp", 1, kMostRanksOfAnAxis, plan.dp);
  within("pp", 1, kMostRanksOfAnAxis, plan.pp);
  within("ep", 1, kMostRanksOfAnAxis, plan.ep);
  within("etp", 1, kMostRanksOfAnAxis, plan.etp);
  within("microbatch", 1, kMostSequences, plan.microbatch);
  within("global_batch", 1, kMostSequences, plan.global_batch);
  within("sequence", 1, kMostTokens, plan.sequence);
  within("gradient_bucket_parameters", 1, kMostParameters, plan.gradient_bucket_parameters);
  check_range("prefetch", 0, kMostPrefetch, plan.prefetch, problems);
  within("optimizer_bytes", 1, kMostBytesOfAParameter, plan.optimizer_bytes);
  within("tensor_chunks", 1, kMostTokens, plan.tensor_chunks);
  within("tensor_width", 1, kMostRanksOfAnAxis, plan.tensor_width);
  within("shard", 0, kMostRanksOfAnAxis, plan.shard);
  within("expert_node", 0, kMostRanksOfAnAxis, plan.expert_node);
  within("scale_block", 0, kMostTokens, plan.scale_block);
  within("attention_result_bits", 0, kMostBitsOfAValue, plan.attention_result_bits);
  within("sm_margin", 0, kMostUnits, plan.sm_margin);
  within("node_limit", 0, kMostRanksOfAnAxis, plan.node_limit);
  within("recompute_block", 1, kMostStages, plan.recompute_block);
  within("recompute_layers", 0, kMostStages, plan.recompute_layers);
}

}  // namespace

ParallelPlan to_plan(const file::Plan& plan, ProblemList& problems) {
  ParallelPlan spec;
  const FieldReader fields(plan, "plan.", problems);
  fields.read("tp", spec.tp);
  fields.read("cp", spec.cp);
  fields.read("dp", spec.dp);
  fields.read("pp", spec.pp);
  fields.read("ep", spec.ep);
  fields.read("etp", spec.etp);
  fields.read("microbatch", spec.microbatch);
  fields.read("global_batch", spec.global_batch);
  fields.read("sequence", spec.sequence);
  if (!plan.has_global_batch()) {
    problems.add("plan.global_batch", "must be given: sequences of a step");
  }
  if (!plan.has_sequence()) problems.add("plan.sequence", "must be given: tokens of a sequence");
  fields.read("sequence_parallel", spec.sequence_parallel);
  fields.read("cp_mode", spec.cp_mode, choices<ContextMode>(kContextModes));
  fields.read("dispatch", spec.dispatch, choices<Dispatch>(kDispatches));
  fields.read("expert_node", spec.expert_node);
  fields.read("node_limit", spec.node_limit);
  fields.read("recompute", spec.recompute, choices<Recompute>(kRecomputes));
  read_recompute_modules(fields, spec);
  fields.read("recompute_block", spec.recompute_block);
  fields.read("recompute_layers", spec.recompute_layers);
  fields.read("zero", spec.zero);
  fields.read("shard", spec.shard);
  fields.read("reshard_after_forward", spec.reshard_after_forward);
  fields.read("allow_idle_chips", spec.allow_idle_chips);
  fields.read("gradient_bucket_parameters", spec.gradient_bucket_parameters);
  fields.read("prefetch", spec.prefetch);
  fields.read("overlap_gradients", spec.overlap_gradients);
  fields.read("overlap_parameters", spec.overlap_parameters);
  fields.read("overlap_tensor", spec.overlap_tensor);
  fields.read("tensor_chunks", spec.tensor_chunks);
  fields.read("tensor_width", spec.tensor_width);
  fields.read("overlap_pipeline", spec.overlap_pipeline);
  fields.read("batch_p2p", spec.batch_p2p);
  fields.read("overlap_expert_parallel", spec.overlap_expert_parallel);
  fields.read("overlap_shared_experts", spec.overlap_shared_experts);
  fields.read("clip_gradients", spec.clip_gradients);
  fields.read("post_validation", spec.post_validation);
  fields.read("offload_optimizer", spec.offload_optimizer);
  fields.read("offload_activations", spec.offload_activations);
  fields.read("host_optimizer", spec.host_optimizer);
  fields.read("offload_layers", spec.offload_layers);
  fields.read("fused_attention", spec.fused_attention);
  fields.read("fused_elementwise", spec.fused_elementwise);
  fields.read("transpose_weights", spec.transpose_weights);
  fields.read("attention_result_bits", spec.attention_result_bits);
  fields.read("sm_margin", spec.sm_margin);
  fields.read("loss", spec.loss, choices<LossKernels>(kLossKernels));
  fields.read("gradient_placeholders", spec.gradient_placeholders);
  fields.read("shared_master", spec.shared_master);
  fields.read("optimizer", spec.optimizer, choices<Optimizer>(kOptimizers));
  fields.read("optimizer_bytes", spec.optimizer_bytes);
  fields.read("gradient_bytes", spec.gradient_bytes);
  read_state_bytes(fields, spec);
  std::optional<DataType> type;
  read_type(fields, "dtype", type);
  spec.type = type.value_or(spec.type);
  read_type(fields, "weight_dtype", spec.weight_type);
  read_type(fields, "activation_dtype", spec.activation_type);
  read_type(fields, "communication_dtype", spec.communication_type);
  read_type(fields, "dispatch_dtype", spec.dispatch_type);
  read_type(fields, "combine_dtype", spec.combine_type);
  read_type(fields, "activation_input_dtype", spec.activation_input_type);
  fields.read("scale_block", spec.scale_block);
  if (plan.has_order()) read_order(plan.order(), spec, problems);
  read_map(plan.map(), spec, problems);
  const auto count = [&](const char* field, std::int64_t& value) {
    if (!fields.has(field)) return;
    fields.read(field, value);
    check_range(field, std::int64_t{1}, kMostSequences, value, problems);
  };
  count("chunks", spec.chunks);
  count("microbatch_group", spec.microbatch_group);
  count("memory_limit", spec.memory_limit);
  if (plan.has_schedule()) read_schedule(plan.schedule(), spec, problems);
  if (plan.has_layout()) read_layout(plan.layout(), spec, problems);
  // What is reported stands as 0 from here on, which later checks pass over.
  check_sizes(spec, problems);
  return spec;
}

}  // namespace stepsim

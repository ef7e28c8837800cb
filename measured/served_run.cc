#include "measured/served_run.h"

#include <algorithm>
#include <string_view>

#include "proto/load_experiment.h"
#include "serving/engines/engine_fields.h"
#include "serving/passes/pool_text.h"
#include "serving/serving_text.h"
#include "sim/base/field_text.h"
#include "sim/fields/field_assignments.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostServedChips = 1 << 20;

// Returns "tp=2,cache_dtype=fp8" of "plan.tp=2,pass.cache_dtype=fp8".
std::string without_groups(std::string_view keys) {
  std::string result;
  for (std::string_view entry : split_text(keys, ',')) {
    const std::size_t dot = entry.substr(0, entry.find('=')).rfind('.');
    if (dot != std::string_view::npos) entry.remove_prefix(dot + 1);
    result += (result.empty() ? "" : ",") + std::string(entry);
  }
  return result;
}

// Leaves out keys of experts, which other models refuse.
std::string without_expert_keys(std::string_view keys) {
  std::string result;
  for (const std::string_view entry : split_text(keys, ',')) {
    if (entry.starts_with("expert_")) continue;
    result += (result.empty() ? "" : ",") + std::string(entry);
  }
  return result;
}

bool has_key(std::string_view keys, std::string_view wanted) {
  return std::ranges::any_of(split_text(keys, ','), [wanted](std::string_view entry) {
    return with_underscores(entry.substr(0, entry.find('='))) == wanted;
  });
}

std::optional<std::int64_t> count_in(const std::string& text, const char* column,
                                     std::vector<Problem>& problems) {
  if (text.empty()) return std::nullopt;
  const auto number = number_in<std::int64_t>(text);
  if (number && *number >= 1 && *number <= kMostServedChips) return number;
  problems.push_back({column, "must be a whole number, 1 or more, is \"" + shortened(text) + "\""});
  return std::nullopt;
}

// A prompt that is never cut needs room beside those that generate, or it waits for them to end.
void leave_room_for_prompts(const RequestSource& requests, EngineOptions& options) {
  if (options.batching.chunked_prefill || !requests.input) return;
  Batching& batching = options.batching;
  batching.budget =
      std::max(batching.budget, std::int64_t{requests.input->high} + batching.sequences);
}

}  // namespace

const ClusterSpec& ServedRunReader::cluster(const ServedPlan& plan) {
  const std::pair key(plan.cluster, plan.chip);
  const auto known = clusters_.find(key);
  if (known != clusters_.end()) return known->second;
  return clusters_.emplace(key, load_cluster(plan.cluster, {}, plan.chip)).first->second;
}

EngineSetting ServedRunReader::setting_of(const ServedPlan& plan) {
  const ChipSpec& chip = cluster(plan).chip;
  return stepsim::setting_of(plan.keys, chip.name, chip.memory_capacity);
}

ServedPlan ServedRunReader::plan_of(const RunRow& row, std::vector<Problem>& problems) {
  ServedPlan plan{.model = row.source.model,
                  .cluster = row.source.cluster,
                  .chip = row.source.chip,
                  .library = options_.library.empty() ? row.source.library : options_.library,
                  .software = row.software,
                  .keys = without_groups(row.keys),
                  .overrides = row.source.overrides};
  if (plan.library.empty() && software_) {
    const auto own = software_->libraries.find(cluster(plan).library.name);
    if (own != software_->libraries.end()) plan.library = own->second;
  }
  if (options_.serving_plan.empty()) return plan;
  const bool has_experts = load_model(plan.model).experts.routed > 0;
  plan.keys = with_plan_keys(
      plan.keys, has_experts ? options_.serving_plan : without_expert_keys(options_.serving_plan),
      "--plan", problems);
  return plan;
}

std::string ServedRunReader::engine_of(const RunRow& row) const {
  if (!row.served.engine.empty()) return row.served.engine;
  return software_ ? software_->engine : "vllm";
}

ReplicaGroup ServedRunReader::group_of(const RunRow& row, const ServedPlan& plan,
                                       std::vector<Problem>& problems) {
  const std::string text = with_release(engine_of(row), "engine", setting_of(plan), problems);
  ReplicaGroup group = read_engine(text, problems);
  if (software_ && software_->engine == group.engine->name && !has_key(text, "front_time")) {
    group.options.host.front_time = software_->front_time;
  }
  return group;
}

void ServedRunReader::add_pools(const RunRow& row, ServedRun& run, std::vector<Problem>& problems) {
  const ServedCells& cells = row.served;
  if (cells.prefill.empty() || cells.decode.empty() || !cells.replicas.empty()) {
    problems.push_back({"prefill", "must be given with decode, and without replicas"});
    return;
  }
  const auto pool = [&](const char* name, const std::string& text,
                        const std::vector<std::string>& overrides, ServedPlan& plan) {
    const PoolKeys keys = split_pool_keys(text);
    plan.keys = with_plan_keys(plan.keys, keys.plan, name, problems);
    plan.overrides.insert(plan.overrides.end(), overrides.begin(), overrides.end());
    return read_group(keys.others, name, group_of(row, plan, problems), problems);
  };
  run.decode = run.plan;
  run.options.replicas = pool("prefill", cells.prefill, cells.prefill_overrides, run.plan);
  run.options.decode = pool("decode", cells.decode, cells.decode_overrides, *run.decode);
}

void ServedRunReader::add_engine_keys(const RequestSource& requests, const ServedPlan& plan,
                                      ReplicaGroup& group) {
  std::string keys = options_.serving_engine;
  const std::size_t at = keys.find('@');
  const bool names_release = at < keys.find_first_of(",=:");
  std::vector<Problem> problems;
  if (names_release) {
    const bool is_its_engine = keys.substr(0, at) == group.engine->name;
    const std::string whole = with_release(keys, "--engine", setting_of(plan), problems);
    throw_if_any(std::move(problems));
    if (!is_its_engine) return;
    keys = whole.substr(std::min(whole.find(','), whole.size() - 1) + 1);
  }
  read_assignments(keys, engine_fields(), &group.options, {.option = "--engine"}, problems);
  throw_if_any(std::move(problems));
  if (names_release) leave_room_for_prompts(requests, group.options);
}

ServedRun ServedRunReader::read(const RunRow& row) {
  std::vector<Problem> problems = row.problems;
  if (row.source.model.empty()) problems.push_back({"model", "must be given"});
  if (row.source.cluster.empty()) problems.push_back({"cluster", "must be given"});
  if (row.measures.says_step() || row.measures.peak_memory_bytes) {
    problems.push_back({"measured.*", "must be of a served run, or of a step: not of both"});
  }
  software_ = find_serving_software(row.software);
  if (!row.software.empty() && !software_) {
    problems.push_back({"software", "must be " + either_of(serving_software_names()) +
                                        " of a served run, is \"" + shortened(row.software) +
                                        "\""});
  }
  ServedRun run;
  if (row.served.requests.empty()) {
    problems.push_back(
        {"requests", "must be given: closed:concurrency=64,count=640,input=1024,.."});
  } else {
    run.requests = read_request_source(row.served.requests, problems);
  }
  run.chips = count_in(row.served.chips, "chips", problems);
  throw_if_any(problems);
  run.plan = plan_of(row, problems);
  const ServedCells& cells = row.served;
  if (cells.prefill.empty() && cells.decode.empty() && cells.prefill_overrides.empty() &&
      cells.decode_overrides.empty()) {
    run.options.replicas = group_of(row, run.plan, problems);
    run.options.replicas.count = count_in(cells.replicas, "replicas", problems).value_or(1);
  } else {
    add_pools(row, run, problems);
  }
  throw_if_any(std::move(problems));
  return run;
}

void ServedRunReader::change_engines(ServedRun& run) {
  if (options_.serving_engine.empty()) return;
  add_engine_keys(run.requests, run.plan, run.options.replicas);
  if (run.options.decode) add_engine_keys(run.requests, *run.decode, *run.options.decode);
}

}  // namespace stepsim

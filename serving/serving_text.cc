#include "serving/serving_text.h"

#include <algorithm>
#include <limits>

#include "serving/engines/engine_fields.h"
#include "sim/base/suggestion.h"
#include "sim/fields/field.h"
#include "sim/fields/field_assignments.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

constexpr double kMostStepSeconds = 1e6;
constexpr double kMostWorkers = 4096;
constexpr std::string_view kLinear = "linear:";

struct GroupSize {
  std::int64_t workers = 1;
};

const FieldTable<LinearStepTime::Rates>& step_time_fields() {
  using Rates = LinearStepTime::Rates;
  static const FieldTable<Rates> kTable = [] {
    FieldTable<Rates> table("StepTime");
    const Limits limits = Limits::between(0, kMostStepSeconds);
    table.add("base", &Rates::base, limits, {.help = "Time of every step."});
    table.add("token", &Rates::token, limits, {.help = "Time for each token computed."});
    table.add("kv", &Rates::kv, limits, {.help = "Time for each KV token read."});
    return table;
  }();
  return kTable;
}

const FieldTable<TimedKvTransport::Rates>& transfer_fields() {
  using Rates = TimedKvTransport::Rates;
  static const FieldTable<Rates> kTable = [] {
    FieldTable<Rates> table("Transfer");
    const Limits limits = Limits::between(0, kMostStepSeconds);
    table.add("base", &Rates::base, limits, {.help = "Time of every transfer."});
    table.add("token", &Rates::token, limits, {.help = "Time for each token that moves."});
    return table;
  }();
  return kTable;
}

const FieldTable<ServiceObjective>& objective_fields() {
  using Objective = ServiceObjective;
  static const FieldTable<Objective> kTable = [] {
    FieldTable<Objective> table("Objective");
    const Limits limits = Limits::between(0, kMostStepSeconds);
    table.add("ttft", &Objective::ttft, limits, {.help = "Longest time to the first token."});
    table.add("tpot", &Objective::tpot, limits, {.help = "Longest mean time from token to token."});
    table.add("end_to_end", &Objective::end_to_end, limits, {.help = "Longest time in all."});
    return table;
  }();
  return kTable;
}

const FieldTable<GroupSize>& group_fields() {
  static const FieldTable<GroupSize> kTable = [] {
    FieldTable<GroupSize> table("Workers");
    table.add("workers", &GroupSize::workers, Limits::between(1, kMostWorkers),
              {.help = "Replicas of this kind."});
    return table;
  }();
  return kTable;
}

// Reads a bare time into `base`, or keys behind "linear:".
template <class Rates>
Rates read_rates(std::string_view text, const std::string& option, const FieldTable<Rates>& table,
                 std::vector<Problem>& problems) {
  Rates rates;
  if (text.starts_with(kLinear)) {
    read_assignments(text.substr(kLinear.size()), table, &rates, {.option = option}, problems);
    return rates;
  }
  const AnyField& base = *table.find("base");
  std::vector<std::string> wrong = base.read(text, &rates);
  if (wrong.empty()) {
    if (auto limit = limit_problem(base, &rates)) wrong.push_back(std::move(*limit));
  } else {
    wrong.front() +=
        "; or " + std::string(kLinear) + "KEY=TIME,... with " + comma_separated(table.names());
  }
  for (std::string& message : wrong) problems.push_back({option, std::move(message)});
  return rates;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineRow& row : engine_table()) names.emplace_back(row.name);
  return names;
}

void read_keys(std::string_view keys, const std::string& option, ReplicaGroup& group,
               std::vector<Problem>& problems) {
  const std::vector<std::string_view> allowed = keys_of(*group.engine);
  read_assignments(keys, engine_fields(), &group.options,
                   {.option = option, .allowed = allowed, .who = group.engine->name}, problems);
  for (Problem& problem : check_engine(group.options, option)) {
    problems.push_back(std::move(problem));
  }
}

}  // namespace

ReplicaGroup read_engine(std::string_view text, std::vector<Problem>& problems) {
  ReplicaGroup group;
  const std::size_t end = std::min(text.find_first_of(",:"), text.size());
  const std::string name(text.substr(0, end));
  if (name.find('=') == std::string::npos) {
    const EngineRow* const named = find_engine(name);
    if (named == nullptr) {
      const std::vector<std::string> names = engine_names();
      problems.push_back(
          {"--engine",
           "must begin with an engine or a key, as in sglang or budget="
           "8192; is \"" +
               shortened(text) + "\"" +
               did_you_mean(name, names, "The engines are: " + comma_separated(names))});
      return group;
    }
    group.engine = named;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  group.options = group.engine->defaults;
  read_keys(text, "--engine", group, problems);
  return group;
}

ReplicaGroup read_group(std::string_view text, const std::string& option,
                        const ReplicaGroup& engine, std::vector<Problem>& problems) {
  ReplicaGroup group = engine;
  GroupSize size;
  std::string rest;
  std::string own;
  for (const std::string_view entry : split_text(text, ',')) {
    std::string& which = entry.starts_with("workers=") ? own : rest;
    which += (which.empty() ? "" : ",") + std::string(entry);
  }
  read_assignments(own, group_fields(), &size, {.option = option}, problems);
  group.count = size.workers;
  read_keys(rest, option, group, problems);
  return group;
}

LinearStepTime::Rates read_step_time(std::string_view text, const std::string& option,
                                     std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  const LinearStepTime::Rates rates = read_rates(text, option, step_time_fields(), problems);
  const bool takes_time = rates.base + rates.token + rates.kv > Duration();
  if (!takes_time && problems.size() == before) {
    problems.push_back({option, "must be above 0, is \"" + shortened(text) + "\""});
  }
  return rates;
}

TimedKvTransport::Rates read_transfer(std::string_view text, const std::string& option,
                                      std::vector<Problem>& problems) {
  return read_rates(text, option, transfer_fields(), problems);
}

ServiceObjective read_objective(std::string_view text, std::vector<Problem>& problems) {
  ServiceObjective objective;
  read_assignments(text, objective_fields(), &objective, {.option = "--slo"}, problems);
  return objective;
}

std::optional<RouterPolicy> router_named(std::string_view name) {
  for (std::size_t i = 0; i < kRouterPolicies; ++i) {
    const auto policy = static_cast<RouterPolicy>(i);
    if (name_of(policy) == name) return policy;
  }
  return std::nullopt;
}

}  // namespace stepsim

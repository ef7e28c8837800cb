#include "schedules/plan/keys/plan_syntax.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/pipeline/schedule_file.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/input_file.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

using Messages = std::vector<std::string>;

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

template <class Value>
std::vector<std::string> names_of(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.emplace_back(name_of(static_cast<Value>(i)));
  return names;
}

template <class Value>
std::optional<Value> value_named(std::string_view name, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (name_of(static_cast<Value>(i)) == name) return static_cast<Value>(i);
  }
  return std::nullopt;
}

std::optional<PlanAxis> axis_named(std::string_view name) {
  return value_named<PlanAxis>(name, kPlanAxes);
}

// ---- order ----

std::string accepts_order() {
  return "tp, cp, dp and pp once each, innermost first, joined by -";
}

Messages read_order(std::string_view text, ParallelPlan& plan) {
  const Messages refused = {
      "must name tp, cp, dp and pp once each, innermost first, as in tp-cp-dp-pp; is " +
      quoted(text)};
  const std::vector<std::string_view> names = split_text(text, '-');
  if (names.size() != kPlanAxes) return refused;
  std::array<PlanAxis, kPlanAxes> order{};
  std::set<PlanAxis> seen;
  for (std::size_t i = 0; i < kPlanAxes; ++i) {
    const auto axis = axis_named(names[i]);
    if (!axis || !seen.insert(*axis).second) return refused;
    order[i] = *axis;
  }
  plan.mesh.order = order;
  return {};
}

std::optional<std::string> write_order(const ParallelPlan& plan) {
  std::string text;
  for (const PlanAxis axis : plan.mesh.order) {
    text += (text.empty() ? "" : "-") + std::string(name_of(axis));
  }
  return text;
}

// ---- map ----

std::string accepts_map() {
  return "axes over levels of the cluster, as in tp:x/dp:y+z";
}

std::string wrong_entry(std::string_view entry) {
  return "must give axes (tp, cp, dp, pp) levels of the cluster, as in tp:x/dp:y+z; has " +
         quoted(entry);
}

Messages read_map(std::string_view text, ParallelPlan& plan) {
  std::vector<AxisMapping> map;
  std::set<PlanAxis> seen;
  if (text.empty()) return {};
  for (const std::string_view entry : split_text(text, '/')) {
    const std::size_t colon = entry.find(':');
    const auto axis = axis_named(entry.substr(0, colon));
    if (!axis || colon == std::string_view::npos || colon + 1 == entry.size()) {
      return {wrong_entry(entry)};
    }
    if (!seen.insert(*axis).second) {
      return {"axis " + std::string(name_of(*axis)) + " is mapped twice in " + quoted(text)};
    }
    AxisMapping& mapping = map.emplace_back(AxisMapping{.axis = *axis, .levels = {}});
    for (const std::string_view level : split_text(entry.substr(colon + 1), '+')) {
      mapping.levels.emplace_back(level);
    }
  }
  plan.mesh.map = std::move(map);
  return {};
}

std::optional<std::string> write_map(const ParallelPlan& plan) {
  std::string text;
  for (const AxisMapping& mapping : plan.mesh.map) {
    text += (text.empty() ? "" : "/") + std::string(name_of(mapping.axis));
    char separator = ':';
    for (const std::string& level : mapping.levels) {
      text += separator + level;
      separator = '+';
    }
  }
  return text.empty() ? std::nullopt : std::optional(text);
}

// ---- layout ----

constexpr std::int64_t kMostStagesOfALayout = 10'000;
constexpr std::int64_t kMostLayersOfAStage = 1'000'000;

std::string accepts_layout() {
  return "the layers of each stage, as in 20,20,20,20 or 7,8*14,7, or balanced";
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// "8*14": 14 stages of 8 layers.
struct Run {
  std::int64_t layers;
  std::int64_t times = 1;
  bool is_product = false;
};

std::optional<Run> run_in(std::string_view text) {
  const std::size_t star = text.find('*');
  const auto layers = number_in<std::int64_t>(trimmed(text.substr(0, star)));
  if (!layers || *layers < 0 || *layers > kMostLayersOfAStage) return std::nullopt;
  if (star == std::string_view::npos) return Run{*layers};
  const auto times = number_in<std::int64_t>(trimmed(text.substr(star + 1)));
  if (!times || *times < 0 || *times > kMostStagesOfALayout) return std::nullopt;
  return Run{*layers, *times, true};
}

void append(std::int64_t times, std::int64_t layers, std::vector<std::int64_t>& layout) {
  layout.insert(layout.end(), static_cast<std::size_t>(times), layers);
}

// People also write 14*8 for 8*14. The reading that gives as many stages as the pipeline has is
// taken.
Messages read_layout(std::string_view text, ParallelPlan& plan) {
  plan.pipeline.layout.clear();
  plan.pipeline.balanced = trimmed(text) == "balanced";
  if (plan.pipeline.balanced) return {};
  std::vector<std::int64_t> layout;
  std::vector<std::int64_t> swapped;
  for (const std::string_view part : split_text(text, ',')) {
    const std::optional<Run> run = run_in(part);
    if (!run) {
      return {"must be layers of each stage such as 20,20,20,20 or 7,8*14,7, or balanced; is " +
              quoted(text)};
    }
    if (static_cast<std::int64_t>(layout.size()) + run->times > kMostStagesOfALayout) {
      return {"must be at most " + std::to_string(kMostStagesOfALayout) + " stages"};
    }
    append(run->times, run->layers, layout);
    const bool can_swap = run->is_product && run->layers <= kMostStagesOfALayout;
    append(can_swap ? run->layers : run->times, can_swap ? run->times : run->layers, swapped);
  }
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(0, stages_of(plan)));
  plan.pipeline.layout = layout.size() != wanted && swapped.size() == wanted ? swapped : layout;
  return {};
}

std::optional<std::string> write_layout(const ParallelPlan& plan) {
  std::string text;
  for (auto at = plan.pipeline.layout.begin(); at != plan.pipeline.layout.end();) {
    const auto end =
        std::find_if(at, plan.pipeline.layout.end(), [&](auto layers) { return layers != *at; });
    text += (text.empty() ? "" : ",") + std::to_string(*at);
    if (end - at > 1) text += "*" + std::to_string(end - at);
    at = end;
  }
  return text.empty() ? std::nullopt : std::optional(text);
}

// ---- schedule ----

std::string accepts_schedule() {
  return "a name of docs/schedules.md, optimal, or a file";
}

Messages read_schedule_file(const std::string& path, const std::string& text, ParallelPlan& plan) {
  try {
    plan.pipeline.own_schedule = parse_schedule(text);
    plan.pipeline.schedule_file = path;
  } catch (const ConfigError& mistakes) {
    Messages messages;
    for (const Problem& problem : mistakes.problems()) {
      messages.push_back((path.empty() ? "" : path + ": ") + problem.field + ": " +
                         problem.message);
    }
    return messages;
  }
  return {};
}

Messages read_schedule(std::string_view text, ParallelPlan& plan) {
  plan.pipeline.own_schedule.reset();
  plan.pipeline.schedule_file.clear();
  plan.pipeline.optimal_schedule = text == "optimal";
  if (plan.pipeline.optimal_schedule) return {};
  if (const auto name = schedule_named(text)) {
    plan.pipeline.schedule = *name;
    return {};
  }
  const std::string path(text);
  if (path.find('\n') != std::string::npos) return read_schedule_file("", path, plan);
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  if (error) return {"names " + shortened(path) + ", which can't be read: " + error.message()};
  if (is_there) {
    const TextOrProblem file = read_input(path, InputKind::kText);
    if (!file.text) return {"names " + path + ", which can't be read: " + file.problem};
    return read_schedule_file(path, *file.text, plan);
  }
  std::vector<std::string> names;
  for (const ScheduleName name : all_schedules()) names.emplace_back(name_of(name));
  return {"must be one of " + schedule_names() + ", optimal, or a file; is " + quoted(text) +
          did_you_mean(text, names)};
}

std::optional<std::string> write_plan_schedule(const ParallelPlan& plan) {
  if (!plan.pipeline.own_schedule) return std::string(schedule_text(plan.pipeline));
  return plan.pipeline.schedule_file.empty() ? write_schedule(*plan.pipeline.own_schedule)
                                             : plan.pipeline.schedule_file;
}

// ---- recompute_modules ----

// Reads names joined by +, each once.
template <typename T>
Messages read_some(std::string_view text, std::size_t count, std::vector<T>& values) {
  const std::vector<std::string> names = names_of<T>(count);
  const std::string known = comma_separated(names);
  if (text.empty()) return {"is empty, must be some of " + known};
  Messages messages;
  values.clear();
  for (const std::string_view part : split_text(text, '+')) {
    const auto value = value_named<T>(part, count);
    if (!value) {
      messages.push_back("has " + quoted(part) + ", must be some of " + known + ", joined by +" +
                         did_you_mean(part, names));
    } else if (std::ranges::count(values, *value) == 0) {
      values.push_back(*value);
    }
  }
  return messages;
}

template <typename T>
std::string write_some(const std::vector<T>& values) {
  std::string text;
  for (const T value : values) text += (text.empty() ? "" : "+") + std::string(name_of(value));
  return text;
}

std::string accepts_modules() {
  return "some of " + comma_separated(names_of<RecomputeModule>(kRecomputeModules)) +
         ", joined by +";
}

Messages read_modules(std::string_view text, ParallelPlan& plan) {
  return read_some(text, kRecomputeModules, plan.recomputing.modules);
}

std::optional<std::string> write_modules(const ParallelPlan& plan) {
  return write_some(plan.recomputing.modules);
}

// ---- lora_modules ----

std::string accepts_adapted() {
  return "some of " + comma_separated(names_of<AdapterPlace>(kAdapterPlaces)) + ", joined by +";
}

Messages read_adapted(std::string_view text, ParallelPlan& plan) {
  Messages messages = read_some(text, kAdapterPlaces, plan.training.lora_modules);
  std::ranges::sort(plan.training.lora_modules);
  return messages;
}

std::optional<std::string> write_adapted(const ParallelPlan& plan) {
  return write_some(plan.training.lora_modules);
}

// ---- recompute_keep ----

std::string accepts_kept() {
  return "some of " + comma_separated(names_of<KeptResult>(kKeptResults)) + ", joined by +";
}

Messages read_kept(std::string_view text, ParallelPlan& plan) {
  return read_some(text, kKeptResults, plan.recomputing.keep);
}

std::optional<std::string> write_kept(const ParallelPlan& plan) {
  if (plan.recomputing.keep.empty()) return std::nullopt;
  return write_some(plan.recomputing.keep);
}

// ---- state_bytes ----

// StateAccounting splits the bytes of a parameter into the weight, the gradient and the optimizer's
// state.
struct StateAccounting {
  std::int64_t total;
  std::int64_t gradient;
  std::int64_t optimizer;
  bool hold_gradients;
};
constexpr StateAccounting kAccountings[] = {
    {10, 2, 8, false},  // bf16 weight, two fp32 moments
    {12, 2, 8, true},   // with a bf16 gradient
    {16, 2, 12, true},  // with an fp32 weight, too
    {18, 4, 12, true},  // with an fp32 gradient
};

std::string accepts_state_bytes() {
  return "10, 12, 16 or 18";
}

Messages read_state_bytes(std::string_view text, ParallelPlan& plan) {
  const auto total = number_in<std::int64_t>(text);
  const auto* found = std::ranges::find_if(
      kAccountings, [&](const StateAccounting& accounting) { return accounting.total == total; });
  if (found == std::end(kAccountings)) {
    return {"must be " + accepts_state_bytes() + "; is " + std::string(text)};
  }
  plan.update.gradient_bytes = found->gradient;
  if (plan.training.optimizer != Optimizer::kNone) plan.update.optimizer_bytes = found->optimizer;
  plan.update.hold_gradients = found->hold_gradients;
  return {};
}

std::optional<std::string> write_state_bytes(const ParallelPlan& plan) {
  return plan.update.hold_gradients ? std::nullopt : std::optional<std::string>("10");
}

// ---- batch ----

std::string accepts_batch() {
  return "a whole number of requests, at least 1";
}

Messages read_batch(std::string_view text, ParallelPlan& plan) {
  const auto batch = number_in<std::int64_t>(text);
  if (!batch || *batch < 1) return {"must be " + accepts_batch() + "; is " + std::string(text)};
  plan.batch.global_batch = *batch;
  return {};
}

std::optional<std::string> write_batch(const ParallelPlan&) {
  return std::nullopt;  // as global_batch
}

}  // namespace

const FieldSyntax<ParallelPlan> kBatchSyntax = {read_batch, write_batch, accepts_batch};
const FieldSyntax<ParallelPlan> kOrderSyntax = {read_order, write_order, accepts_order};
const FieldSyntax<ParallelPlan> kMapSyntax = {read_map, write_map, accepts_map};
const FieldSyntax<ParallelPlan> kLayoutSyntax = {read_layout, write_layout, accepts_layout};
const FieldSyntax<ParallelPlan> kScheduleSyntax = {read_schedule, write_plan_schedule,
                                                   accepts_schedule};
const FieldSyntax<ParallelPlan> kRecomputeModulesSyntax = {read_modules, write_modules,
                                                           accepts_modules};
const FieldSyntax<ParallelPlan> kLoraModulesSyntax = {read_adapted, write_adapted, accepts_adapted};
const FieldSyntax<ParallelPlan> kRecomputeKeepSyntax = {read_kept, write_kept, accepts_kept};
const FieldSyntax<ParallelPlan> kStateBytesSyntax = {read_state_bytes, write_state_bytes,
                                                     accepts_state_bytes};

}  // namespace stepsim

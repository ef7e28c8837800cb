#include "proto/plan_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "proto/message_fields.h"

namespace stepsim {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<PlanAxis> axis_named(std::string_view name) {
  for (std::size_t axis = 0; axis < kPlanAxes; ++axis) {
    if (name_of(static_cast<PlanAxis>(axis)) == name) return static_cast<PlanAxis>(axis);
  }
  return std::nullopt;
}

// "tp=8", "layout=7,8*14,7": the layers of a layout have commas themselves.
std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> entries;
  for (const std::string_view part : split(text, ',')) {
    const bool continues = !entries.empty() && entries.back().starts_with("layout=") &&
                           part.find('=') == std::string_view::npos;
    if (!continues) {
      entries.push_back(part);
    } else {
      const char* begin = entries.back().data();
      entries.back() = {begin, static_cast<std::size_t>(part.data() + part.size() - begin)};
    }
  }
  return entries;
}

}  // namespace

void read_plan_text(std::string_view text, file::Plan& plan, ProblemList& problems) {
  std::set<std::string> seen;
  for (const std::string_view entry : entries_of(text)) {
    const std::size_t equals = entry.find('=');
    const std::string key(entry.substr(0, equals));
    if (equals == std::string_view::npos || key.empty()) {
      problems.add("--plan",
                   "must be keys and values, as in tp=8,dp=16; has \"" + std::string(entry) + "\"");
      continue;
    }
    std::string field = key;
    std::replace(field.begin(), field.end(), '-', '_');
    if (!seen.insert(field).second) {
      problems.add("--plan " + key, "is given twice");
    } else if (const auto problem = set_field(plan, field, entry.substr(equals + 1))) {
      problems.add("--plan " + key, *problem);
      problems.mark_reported("plan." + field);
    }
  }
}

void read_order(std::string_view text, ParallelPlan& plan, ProblemList& problems) {
  const auto refuse = [&] {
    problems.add("plan.order",
                 "must name tp, cp, dp and pp once each, innermost first, as in "
                 "tp-cp-dp-pp; is \"" +
                     std::string(text) + "\"");
  };
  const std::vector<std::string_view> names = split(text, '-');
  if (names.size() != kPlanAxes) return refuse();
  std::array<PlanAxis, kPlanAxes> order{};
  std::set<PlanAxis> seen;
  for (std::size_t i = 0; i < kPlanAxes; ++i) {
    const auto axis = axis_named(names[i]);
    if (!axis || !seen.insert(*axis).second) return refuse();
    order[i] = *axis;
  }
  plan.order = order;
}

void read_map(std::string_view text, ParallelPlan& plan, ProblemList& problems) {
  if (text.empty()) return;
  std::set<PlanAxis> seen;
  for (const std::string_view entry : split(text, '/')) {
    const std::size_t colon = entry.find(':');
    const auto axis = axis_named(entry.substr(0, colon));
    if (!axis || colon == std::string_view::npos || colon + 1 == entry.size()) {
      problems.add("plan.map",
                   "must give axes (tp, cp, dp, pp) levels of the cluster, as in "
                   "tp:x/dp:y+z; has \"" +
                       std::string(entry) + "\"");
      return;
    }
    if (!seen.insert(*axis).second) {
      problems.add("plan.map", "axis " + std::string(name_of(*axis)) + " is mapped twice in \"" +
                                   std::string(text) + "\"");
      plan.map.clear();
      return;
    }
    AxisMapping mapping{.axis = *axis, .levels = {}};
    for (const std::string_view level : split(entry.substr(colon + 1), '+')) {
      mapping.levels.emplace_back(level);
    }
    plan.map.push_back(std::move(mapping));
  }
}

}  // namespace stepsim

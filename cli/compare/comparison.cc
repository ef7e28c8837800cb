#include "cli/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "experiment/step/fault_effects.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

constexpr double kPicosecondsOfSecond = 1e12;

// Exact below some 9,000 s, where a double has more than 12 fractional digits.
std::int64_t picoseconds(double seconds) {
  return std::llround(seconds * kPicosecondsOfSecond);
}

// ---- inputs ----

// For information only: what they say is in the fields.
bool is_remark(std::string_view path) {
  return path == "name" || path.starts_with("overrides") || path == "stepsim_version" ||
         path.starts_with("published") || path == "not_published";
}

struct Leaf {
  std::string path;
  std::string value;
};

// Lists every value of an object in its order. Lists of plain values are one.
void add_leaves(const Json& value, const std::string& path, std::vector<Leaf>& leaves) {
  const bool is_list_of_objects = value.is_array() && !value.empty() && value[0].is_object();
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      add_leaves(member, path.empty() ? key : path + "." + key, leaves);
    }
  } else if (is_list_of_objects) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      add_leaves(value[i], path + "[" + std::to_string(i) + "]", leaves);
    }
  } else if (!is_remark(path)) {
    leaves.push_back({path, value.is_string() ? value.get<std::string>() : json_text(value)});
  }
}

std::vector<InputDifference> differing_inputs(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> paths;  // in the order in which they come
  std::map<std::string, std::vector<std::optional<std::string>>> values;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<Leaf> leaves;
    if (const auto at = runs[i].result.find("experiment"); at != runs[i].result.end()) {
      add_leaves(*at, "", leaves);
    }
    for (Leaf& leaf : leaves) {
      const auto [entry, is_new] = values.try_emplace(leaf.path, runs.size());
      if (is_new) paths.push_back(leaf.path);
      entry->second[i] = std::move(leaf.value);
    }
  }
  std::vector<InputDifference> differences;
  for (const std::string& path : paths) {
    const auto& of_runs = values.at(path);
    const bool is_same =
        std::ranges::all_of(of_runs, [&](const auto& value) { return value == of_runs[0]; });
    if (!is_same) differences.push_back({path, of_runs});
  }
  return differences;
}

// ---- lines ----

const Json* member(const Json* value, std::string_view name) {
  if (value == nullptr || !value->is_object()) return nullptr;
  const auto at = value->find(std::string(name));
  return at == value->end() ? nullptr : &*at;
}

std::optional<double> number_in_result(const Json* value, LineUnit unit) {
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
  if (!value->is_number()) return std::nullopt;
  const double number = value->get<double>();
  return unit == LineUnit::kSeconds ? static_cast<double>(picoseconds(number)) : number;
}

class Lines {
 public:
  explicit Lines(const std::vector<ComparedRun>& runs) : runs_(runs) {}

  // `find` returns the value in a result, or nullptr.
  template <typename Find>
  void add(const std::string& section, const std::string& name, LineUnit unit, Find find) {
    ComparedLine line{section, name, unit, {}};
    for (const ComparedRun& run : runs_) {
      line.values.push_back(number_in_result(find(run.result), unit));
    }
    const bool is_anywhere =
        std::ranges::any_of(line.values, [](const auto& value) { return value.has_value(); });
    if (is_anywhere) lines_.push_back(std::move(line));
  }

  // Adds a line for each member that the object at `path` has in any run.
  void add_members(const std::string& section, const std::vector<std::string>& path, LineUnit unit,
                   const std::string& prefix = "") {
    const auto object_of = [&](const Json& result) {
      const Json* object = &result;
      for (const std::string& name : path) object = member(object, name);
      return object;
    };
    std::vector<std::string> names;
    for (const ComparedRun& run : runs_) {
      const Json* const object = object_of(run.result);
      if (object == nullptr || !object->is_object()) continue;
      for (const auto& [name, value] : object->items()) {
        if (value.is_number() && std::ranges::count(names, name) == 0) names.push_back(name);
      }
    }
    for (const std::string& name : names) {
      add(section, prefix + name, unit,
          [&](const Json& result) { return member(object_of(result), name); });
    }
  }

  void add_critical_path() {
    std::vector<std::string> labels;
    for (const ComparedRun& run : runs_) {
      for (const Json& part : path_of(run.result)) {
        const Json* const label = member(&part, "label");
        if (label == nullptr || !label->is_string()) continue;
        if (std::ranges::count(labels, label->get<std::string>()) == 0) {
          labels.push_back(label->get<std::string>());
        }
      }
    }
    for (const std::string& label : labels) {
      add("critical path", label, LineUnit::kSeconds, [&](const Json& result) -> const Json* {
        for (const Json& part : path_of(result)) {
          const Json* const name = member(&part, "label");
          if (name != nullptr && *name == label) return member(&part, "duration_s");
        }
        return nullptr;
      });
    }
  }

  std::vector<ComparedLine> take() { return std::move(lines_); }

 private:
  static const Json& path_of(const Json& result) {
    static const Json kNone = Json::array();
    const Json* const path = member(&result, "critical_path");
    return path != nullptr && path->is_array() ? *path : kNone;
  }

  const std::vector<ComparedRun>& runs_;
  std::vector<ComparedLine> lines_;
};

std::vector<ComparedLine> lines_of(const std::vector<ComparedRun>& runs) {
  Lines lines(runs);
  const auto add = [&](const char* section, const char* text, const char* key, LineUnit unit) {
    lines.add(section, text, unit, [&](const Json& result) { return member(&result, key); });
  };
  add("step", "step time", "step_time_s", LineUnit::kSeconds);
  add("step", "tokens/s", "tokens_per_s", LineUnit::kNumber);
  add("step", "tokens/s a chip", "tokens_per_s_per_chip", LineUnit::kNumber);
  add("step", "MFU", "model_flops_utilization", LineUnit::kShare);
  add("step", "HFU", "hardware_flops_utilization", LineUnit::kShare);
  add("step", "model FLOPs", "model_flops_per_step", LineUnit::kNumber);
  add("step", "chips", "chips", LineUnit::kNumber);
  lines.add_members("breakdown", {"breakdown_s"}, LineUnit::kSeconds);
  lines.add_members("breakdown", {"breakdown_s", "exposed_communication"}, LineUnit::kSeconds,
                    "exposed ");
  lines.add("memory", "peak", LineUnit::kBytes,
            [](const Json& result) { return member(member(&result, "memory"), "peak_bytes"); });
  lines.add("memory", "capacity", LineUnit::kBytes,
            [](const Json& result) { return member(member(&result, "memory"), "capacity_bytes"); });
  lines.add_members("memory", {"memory", "by_category_bytes"}, LineUnit::kBytes);
  lines.add_members("traffic", {"bytes_by_axis"}, LineUnit::kBytes);
  lines.add_critical_path();
  return lines.take();
}

// ---- what makes the difference ----

RunDifference difference_of(const std::vector<ComparedLine>& lines, std::size_t run) {
  RunDifference difference;
  for (const ComparedLine& line : lines) {
    const double change = line.values[run].value_or(0) - line.values[0].value_or(0);
    const auto ps = static_cast<std::int64_t>(change);
    if (line.name == "step time") difference.step_ps = ps;
    if (line.section == "breakdown" && ps != 0) difference.parts.push_back({line.name, ps});
  }
  std::ranges::stable_sort(
      difference.parts, std::ranges::greater{},
      [](const ExplainedDifference& part) { return std::abs(part.picoseconds); });
  return difference;
}

// ---- who is behind it ----

std::string text_in(const Json& object, std::string_view name) {
  const Json* const value = member(&object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

double number_of(const Json& object, std::string_view name) {
  const Json* const value = member(&object, name);
  return value != nullptr && value->is_number() ? value->get<double>() : 0;
}

std::vector<RankId> ranks_in(const Json& object) {
  std::vector<RankId> ranks;
  const Json* const list = member(&object, "ranks");
  if (list == nullptr || !list->is_array()) return ranks;
  for (const Json& rank : *list) {
    if (rank.is_number_unsigned()) ranks.emplace_back(rank.get<std::uint32_t>());
  }
  return ranks;
}

template <typename Each>
void for_each_object(const Json* list, Each each) {
  if (list == nullptr || !list->is_array()) return;
  for (const Json& one : *list) {
    if (one.is_object()) each(one);
  }
}

NamedCause cause_of(std::string text, std::string link, const std::vector<RankId>& ranks,
                    double seconds) {
  NamedCause cause{std::move(text), std::move(link), {}, picoseconds(seconds)};
  for (const RankId rank : ranks) cause.ranks.push_back(rank.index());
  return cause;
}

// The causes that a result names itself.
std::vector<NamedCause> causes_in(const Json& result) {
  std::vector<NamedCause> causes;
  const Json* const faults = member(&result, "faults");
  for_each_object(member(faults, "links"), [&](const Json& one) {
    const FaultyLink link{.name = text_in(one, "link"),
                          .capacity = number_of(one, "capacity"),
                          .ranks = ranks_in(one)};
    causes.push_back(cause_of(link.text(), link.name, link.ranks, 0));
  });
  for_each_object(member(faults, "traffic"), [&](const Json& one) {
    const SlowedTraffic slowed{.name = text_in(one, "name"),
                               .ranks = ranks_in(one),
                               .slowed = static_cast<std::size_t>(number_of(one, "slowed")),
                               .groups = static_cast<std::size_t>(number_of(one, "groups")),
                               .link = text_in(one, "link"),
                               .without_s = number_of(one, "without_s"),
                               .with_s = number_of(one, "with_s")};
    causes.push_back(
        cause_of(slowed.text(), slowed.link, slowed.ranks, slowed.with_s - slowed.without_s));
  });
  for_each_object(member(&result, "slow_ranks"), [&](const Json& one) {
    const RankId rank(static_cast<std::uint32_t>(number_of(one, "rank")));
    const double more = number_of(one, "compute_s") - number_of(one, "stage_compute_s");
    causes.push_back(cause_of(
        fmt::format("rank {} computes {} longer than the mean of its stage, whose ranks wait {} "
                    "longer than it does",
                    rank.index(), to_text(duration_from_seconds(more)),
                    to_text(duration_from_seconds(number_of(one, "stage_waits_s")))),
        "", {rank}, more));
  });
  return causes;
}

// The causes of one run that the other doesn't have.
std::vector<NamedCause> causes_between(const ComparedRun& first, const ComparedRun& run) {
  const std::vector<NamedCause> before = causes_in(first.result);
  const std::vector<NamedCause> now = causes_in(run.result);
  std::vector<NamedCause> causes;
  const auto add = [&](const std::vector<NamedCause>& all, const std::vector<NamedCause>& others,
                       const std::string& name, std::int64_t sign) {
    for (const NamedCause& cause : all) {
      if (std::ranges::count(others, cause.text, &NamedCause::text) > 0) continue;
      causes.push_back(cause);
      causes.back().text = name + ": " + cause.text;
      causes.back().picoseconds *= sign;
    }
  };
  add(now, before, run.name, 1);
  add(before, now, first.name, -1);
  return causes;
}

}  // namespace

std::string trouble_with_result(const Json& result) {
  if (!result.is_object()) return "is no JSON object";
  const Json* const step = member(&result, "step_time_s");
  if (step == nullptr || !step->is_number()) {
    return "has no step_time_s: it is no result of `stepsim run --json` of one network model";
  }
  const Json* const parts = member(&result, "breakdown_s");
  if (parts == nullptr || !parts->is_object()) return "has no breakdown_s";
  return "";
}

RunComparison compare(const std::vector<ComparedRun>& runs) {
  RunComparison comparison{differing_inputs(runs), lines_of(runs), {}};
  for (std::size_t run = 1; run < runs.size(); ++run) {
    comparison.differences.push_back(difference_of(comparison.lines, run));
    comparison.differences.back().causes = causes_between(runs[0], runs[run]);
  }
  return comparison;
}

}  // namespace stepsim

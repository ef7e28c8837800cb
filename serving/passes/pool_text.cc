#include "serving/passes/pool_text.h"

#include <algorithm>

#include "schedules/plan/keys/key_groups.h"
#include "serving/engines/engine_fields.h"
#include "sim/base/field_text.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {

PoolKeys split_pool_keys(std::string_view text) {
  PoolKeys keys;
  std::string* part = &keys.others;
  for (const std::string_view entry : split_text(text, ',')) {
    const std::size_t equals = entry.find('=');
    const std::string name = with_underscores(entry.substr(0, equals));
    // What has no = goes on with a list of layers.
    if (equals != std::string_view::npos || part == &keys.others) {
      const bool is_of_engine = engine_fields().find(name) != nullptr;
      part = find_key(name) != nullptr && !is_of_engine ? &keys.plan : &keys.others;
    }
    *part += (part->empty() ? "" : ",") + std::string(entry);
  }
  return keys;
}

std::string_view value_of_plan(std::string_view plan, std::string_view key) {
  for (const std::string_view part : split_text(plan, ',')) {
    if (part.starts_with(key) && part.substr(key.size()).starts_with('=')) {
      return part.substr(key.size() + 1);
    }
  }
  return "";
}

std::string with_plan_keys(const std::string& plan, const std::string& own,
                           const std::string& option, std::vector<Problem>& problems) {
  if (plan.empty() || own.empty()) return plan + own;
  if (plan.find('=') == std::string::npos) {
    problems.push_back({option, "must have no keys of a plan (" + own +
                                    ") where the plan is a name or a file, " + plan});
    return plan;
  }
  std::string merged;
  bool keeps = true;
  for (const std::string_view entry : split_text(plan, ',')) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos) {
      keeps = value_of_plan(own, entry.substr(0, equals)).empty();
    }
    if (keeps) merged += std::string(entry) + ",";
  }
  return merged + own;
}

}  // namespace stepsim

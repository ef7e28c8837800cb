#include "cli/plan_help.h"

#include "schedules/plan/plan_fields.h"
#include "sim/base/error.h"
#include "sim/base/field_help.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr const char* kPlanHead =
    R"(Keys of a plan, as in --plan tp=8,dp=16,global-batch=1024,sequence=8192: joined by
commas, without spaces, with dashes or underscores. --set plan.tp=8 and the group
`plan` of a file set the same keys. `stepsim help plan KEY` shows one.

)";

std::string help_of_key(const std::string& key) {
  if (auto text = help_text_of(plan_fields(), key)) return *text;
  throw ConfigError(
      {{key, "is no key of a plan" +
                 did_you_mean(key, plan_fields().names(), "`stepsim help plan` lists all keys")}});
}

}  // namespace

std::string plan_help(std::span<const std::string> keys) {
  if (keys.empty()) return kPlanHead + help_text_of(plan_fields());
  if (keys[0] == "--markdown") return markdown_of(plan_fields());
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : "\n") + help_of_key(key);
  return text;
}

}  // namespace stepsim

#include "experiment/step/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "experiment/step/rank_ranges.h"
#include "schedules/plan/keys/key_groups.h"

namespace stepsim {
namespace {

// The title of a report already shows these keys in its own words.
constexpr std::array<std::string_view, 13> kInTitle = {
    "tp",    "cp",           "dp",       "pp",         "schedule",       "batch_p2p",      "zero",
    "dtype", "global_batch", "sequence", "microbatch", "clip_gradients", "post_validation"};

std::string plan_settings(const ParallelPlan& plan) {
  ParallelPlan nothing_set;
  if (plan.is_inference()) {
    // What a pass leaves out is not what training leaves out, so these are always shown.
    nothing_set.tensor.sequence_parallel = !plan.tensor.sequence_parallel;
    if (plan.mesh.cp > 1) nothing_set.tensor.cp_mode = ContextMode::kUlysses;
  }
  std::string text;
  if (!plan.software.empty()) text = "software " + plan.software;
  std::optional<KeyGroup> named;
  for (const FieldValue& value : changed_keys(plan, nothing_set)) {
    if (std::ranges::count(kInTitle, value.path) != 0) continue;
    const std::optional<KeyGroup> group = group_of(value.path);
    text += text.empty() ? "" : ", ";
    if (group != named) text += std::string(name_of(*group)) + " ";
    named = group;
    text += value.path + "=" + value.text;
  }
  return text;
}

std::string variation_settings(const Variation& variation) {
  std::string text;
  for (const Straggler& straggler : variation.stragglers) {
    text += fmt::format("{}stragglers {}: kernels take {} times longer", text.empty() ? "" : "; ",
                        rank_ranges(straggler.ranks), straggler.slowdown);
  }
  for (const RankExchange& exchange : variation.exchanges) {
    text +=
        fmt::format("{}{} on the chips of {}, and the other way round", text.empty() ? "" : "; ",
                    rank_ranges(exchange.ranks), rank_ranges(exchange.with));
  }
  if (variation.jitter > 0) {
    text += fmt::format("{}jitter {}", text.empty() ? "" : "; ", variation.jitter);
  }
  return text;
}

}  // namespace

std::vector<std::string> settings_of(const Experiment& experiment,
                                     const std::vector<std::string>& overrides) {
  constexpr std::string_view kAssumed = "assumed ";  // lines of assume_links()
  std::string others;
  std::string assumed;
  for (const std::string& change : overrides) {
    const bool shown = change.starts_with("plan.") || change.starts_with("variation.");
    if (change.starts_with(kAssumed)) {
      assumed += (assumed.empty() ? kAssumed : ", ");
      assumed += change.substr(kAssumed.size());
    } else if (!shown) {
      others += (others.empty() ? "set " : ", ") + change;
    }
  }
  std::vector<std::string> lines = {plan_settings(experiment.plan),
                                    variation_settings(experiment.variation), others, assumed};
  std::erase(lines, "");
  return lines;
}

}  // namespace stepsim

#include "search/search_space.h"

#include <algorithm>
#include <utility>

#include "schedules/plan/balanced_layout.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/suggestion.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

constexpr std::uint64_t kMostPlans = std::uint64_t{1} << 62;
constexpr std::int64_t kMostOfARange = 4096;

std::size_t place_in_table(std::string_view key) {
  const std::vector<const AnyField*>& keys = all_keys();
  const auto found = std::ranges::find(keys, key, &AnyField::name);
  return static_cast<std::size_t>(found - keys.begin());
}

std::vector<std::string> divisors(std::int64_t whole, std::int64_t most) {
  std::vector<std::string> values;
  for (std::int64_t part = 1; part <= std::min(whole, most); ++part) {
    if (whole % part == 0) values.push_back(std::to_string(part));
  }
  return values;
}

std::vector<std::string> powers_of_two(std::int64_t most) {
  std::vector<std::string> values;
  for (std::int64_t value = 1; value <= most; value *= 2) values.push_back(std::to_string(value));
  return values;
}

}  // namespace

ParallelPlan balanced(ParallelPlan plan, const ModelSpec& model) {
  if (!plan.pipeline.balanced) return plan;
  plan.pipeline.balanced = false;
  if (plan.mesh.pp < 1 || stages_of(plan) > model.layers || stages_of(plan) < 1) return plan;
  plan.pipeline.layout = balanced_layout(plan, model);
  return plan;
}

std::vector<std::string> set_key(std::string_view key, std::string_view value, ParallelPlan& plan) {
  if (key == "layout" && value == "equal") {
    plan.pipeline.layout.clear();
    plan.pipeline.balanced = false;
    return {};
  }
  const AnyField* const field = find_key(key);
  std::vector<std::string> messages = field->read(value, &plan);
  if (!messages.empty()) return messages;
  if (auto message = limit_problem(*field, &plan)) messages.push_back(std::move(*message));
  return messages;
}

SearchSpace::SearchSpace(std::vector<Dimension> dimensions, bool derives_dp)
    : dimensions_(std::move(dimensions)), derives_dp_(derives_dp) {
  std::ranges::stable_sort(
      dimensions_, {}, [](const Dimension& dimension) { return place_in_table(dimension.key); });
  for (const Dimension& dimension : dimensions_) {
    const std::uint64_t count = dimension.values.size();
    size_ = count != 0 && size_ > kMostPlans / count ? kMostPlans : size_ * count;
  }
}

std::uint64_t SearchSpace::numbers_alike(std::uint64_t number,
                                         std::initializer_list<std::string_view> keys) const {
  std::uint64_t alike = 1;
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    if (std::ranges::count(keys, dimensions_[i].key) > 0) break;
    alike *= dimensions_[i].values.size();
  }
  return alike - number % alike;
}

std::vector<std::uint64_t> SearchSpace::along(std::size_t dimension, std::uint64_t number) const {
  std::uint64_t stride = 1;
  for (std::size_t i = dimensions_.size(); i-- > dimension + 1;) {
    stride *= dimensions_[i].values.size();
  }
  const std::uint64_t count = dimensions_[dimension].values.size();
  const std::uint64_t own = number / stride % count;
  constexpr std::uint64_t kFew = 16;
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t away = 1; away < count; away = count <= kFew ? away + 1 : 2 * away) {
    if (own >= away) numbers.push_back(number - away * stride);
    if (own + away < count) numbers.push_back(number + away * stride);
  }
  return numbers;
}

std::vector<std::uint64_t> SearchSpace::neighbours(std::uint64_t number) const {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    for (const std::uint64_t other : along(i, number)) numbers.push_back(other);
  }
  return numbers;
}

std::vector<std::uint64_t> SearchSpace::neighbours_by_two(std::uint64_t number) const {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    for (const std::uint64_t first : along(i, number)) {
      for (std::size_t j = i + 1; j < dimensions_.size(); ++j) {
        for (const std::uint64_t other : along(j, first)) numbers.push_back(other);
      }
    }
  }
  return numbers;
}

PlanOrReason SearchSpace::plan(std::uint64_t number, const ParallelPlan& base,
                               const ModelSpec& model, std::int64_t chips) const {
  PlanOrReason made = draft(number, base, model, chips);
  if (made.plan) made.plan = balanced(std::move(*made.plan), model);
  return made;
}

PlanOrReason SearchSpace::draft(std::uint64_t number, const ParallelPlan& base,
                                const ModelSpec& model, std::int64_t chips) const {
  PlanOrReason result{.plan = base};
  ParallelPlan& plan = *result.plan;
  // `keys`: the reason depends on nothing else.
  const auto refuse = [&](std::string reason, std::string message,
                          std::initializer_list<std::string_view> keys) {
    result.plan.reset();
    result.why = {std::move(reason), std::move(message), numbers_alike(number, keys)};
    return result;
  };
  std::vector<std::size_t> digits(dimensions_.size());
  std::uint64_t rest = number;
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    digits[i] = rest % dimensions_[i].values.size();
    rest /= dimensions_[i].values.size();
  }
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    set_key(dimensions_[i].key, dimensions_[i].values[digits[i]], plan);
  }
  plan = with_recompute_habits(std::move(plan), model);
  if (derives_dp_) {
    const std::int64_t others = plan.mesh.tp * plan.mesh.cp * plan.mesh.pp;
    const std::int64_t left = chips - plan.mesh.expert_chips;
    if (others < 1 || left < 1 || left % others != 0) {
      return refuse("chips",
                    "tp x cp x pp = " + std::to_string(others) + " does not divide the " +
                        std::to_string(left) + " chips",
                    {"tp", "cp", "pp", "ffn_chips"});
    }
    plan.mesh.dp = left / others;
  }
  const bool divides =
      plan.mesh.pp >= 1 && model.layers % std::max<std::int64_t>(1, stages_of(plan)) == 0;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const Dimension& dimension = dimensions_[i];
    if (!dimension.is_usual || digits[i] == 0) continue;
    const auto same = [&](std::initializer_list<std::string_view> keys) {
      return refuse("same as another", "another plan does the same", keys);
    };
    const bool needs_stages = dimension.key == "schedule" || dimension.key == "chunks";
    if (needs_stages && plan.mesh.pp == 1) return same({"pp", dimension.key});
    if (dimension.key == "layout" && (divides || plan.mesh.pp == 1)) {
      return same({"pp", "schedule", "chunks", dimension.key});
    }
    if (dimension.key == "zero" && plan.mesh.replicas() == 1) {
      return same({"tp", "cp", "dp", "pp", dimension.key});
    }
  }
  complete_inference(model, plan);
  return result;
}

std::vector<std::string> usual_keys(const ModelSpec& model) {
  std::vector<std::string> keys = {"tp",        "cp",       "pp",     "zero",  "microbatch",
                                   "recompute", "schedule", "chunks", "layout"};
  if (model.experts.routed > 0) keys.emplace_back("ep");
  return keys;
}

std::vector<std::string> usual_values(std::string_view key, const ModelSpec& model,
                                      const Places& places, const ParallelPlan& base) {
  const auto chips = static_cast<std::int64_t>(places.chips.size());
  constexpr std::int64_t kMostTensor = 64;
  constexpr std::int64_t kMostContext = 16;
  constexpr std::int64_t kLeastTokens = 1024;  // of a context rank
  constexpr std::int64_t kMostMicrobatch = 8;
  if (key == "tp") return divisors(chips, kMostTensor);
  if (key == "cp") {
    return divisors(chips,
                    std::clamp<std::int64_t>(base.batch.sequence / kLeastTokens, 1, kMostContext));
  }
  if (key == "dp") return divisors(chips, chips);
  if (key == "pp") return divisors(chips, std::max<std::int64_t>(1, model.layers));
  if (key == "ep") return divisors(std::max<std::int64_t>(1, model.experts.routed), chips);
  if (key == "zero") return {"0", "1", "2", "3"};
  if (key == "microbatch") return powers_of_two(std::min(kMostMicrobatch, base.batch.global_batch));
  if (key == "recompute") return {"none", "selective", "full"};
  if (key == "schedule") return {"1f1b", "interleaved_1f1b", "zb_h1", "zbv_hand"};
  if (key == "chunks") return {"1", "2", "4"};
  if (key == "layout") return {"equal", "balanced"};
  const AnyField* const field = find_key(key);
  if (field != nullptr && field->accepts() == Text<bool>::accepts()) return {"false", "true"};
  return {};
}

namespace {

// Returns the values of "1..8", or of a single one.
std::vector<std::string> values_of(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {std::string(text)};
  const auto low = number_in<std::int64_t>(text.substr(0, dots));
  const auto high = number_in<std::int64_t>(text.substr(dots + 2));
  if (!low || !high || *low > *high || *high - *low >= kMostOfARange) return {std::string(text)};
  std::vector<std::string> values;
  for (std::int64_t value = *low; value <= *high; ++value) values.push_back(std::to_string(value));
  return values;
}

// Adds a value to the last key that the text has named.
void add_value(std::string_view text, const std::string& option, Dimension& to,
               std::vector<Problem>& problems) {
  if (text == "..") {
    to.is_usual = true;
    return;
  }
  const std::size_t dots = text.find("..");
  if (dots != std::string_view::npos && values_of(text).size() == 1 &&
      text.substr(0, dots) != text.substr(dots + 2)) {
    problems.push_back({option + " " + to.key,
                        "must be a range that rises, of at most " + std::to_string(kMostOfARange) +
                            " numbers, as in 1..8, is \"" + shortened(text) + "\""});
    return;
  }
  for (std::string& value : values_of(text)) {
    ParallelPlan plan;
    plan.mesh.pp = 1;
    for (std::string& message : set_key(to.key, value, plan)) {
      problems.push_back({option + " " + to.key, std::move(message)});
    }
    if (std::ranges::count(to.values, value) == 0) to.values.push_back(std::move(value));
  }
}

}  // namespace

std::vector<Dimension> read_space(std::string_view text, std::string_view option,
                                  std::vector<Problem>& problems) {
  std::vector<Dimension> dimensions;
  const std::string name(option);
  bool is_known = false;  // the key of the values that are being read
  for (const std::string_view part : split_text(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      if (dimensions.empty() && !is_known) {
        problems.push_back({name, "must be keys and values, as in tp=1,2,4,8,zero=1; has \"" +
                                      shortened(part) + "\""});
      } else if (is_known) {
        add_value(part, name, dimensions.back(), problems);
      }
      continue;
    }
    const WrittenKey written = written_key(part.substr(0, equals));
    const std::string& key = written.key;
    is_known = written.group && written.meant.empty();
    if (!is_known) {
      const std::string given = with_underscores(part.substr(0, equals));
      const std::string why = written.group
                                  ? written.meant
                                  : "no key of a plan" + did_you_mean(key, plan_fields().names());
      problems.push_back({name, "has \"" + shortened(given) + "\", which is " + why});
      dimensions.push_back({});
      continue;
    }
    if (std::ranges::count(dimensions, key, &Dimension::key) > 0) {
      problems.push_back({name + " " + key, "is given twice"});
    }
    dimensions.push_back({.key = key, .values = {}});
    add_value(part.substr(equals + 1), name, dimensions.back(), problems);
  }
  std::erase_if(dimensions, [](const Dimension& dimension) { return dimension.key.empty(); });
  return dimensions;
}

}  // namespace stepsim

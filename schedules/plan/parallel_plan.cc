#include "schedules/plan/parallel_plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "schedules/plan/plan_schedule.h"

namespace stepsim {

std::string_view name_of(PlanAxis axis) {
  constexpr std::array<std::string_view, kPlanAxes> kNames = {"tp", "cp", "dp", "pp"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::string_view name_of(Recompute recompute) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "selective", "full"};
  return kNames[static_cast<std::size_t>(recompute)];
}

std::string_view name_of(Optimizer optimizer) {
  return optimizer == Optimizer::kAdam ? "adam" : "none";
}

std::int64_t ParallelPlan::size_of(PlanAxis axis) const {
  switch (axis) {
    case PlanAxis::kTensor:
      return tp;
    case PlanAxis::kContext:
      return cp;
    case PlanAxis::kData:
      return dp;
    case PlanAxis::kPipeline:
      return pp;
  }
  return 1;
}

namespace {

// Collects problems; each rule is one line below.
class Rules {
 public:
  void require(bool holds, std::string field, std::string message) {
    if (!holds) problems_.push_back({std::move(field), std::move(message)});
  }
  void positive(const std::string& field, std::int64_t value) {
    require(value >= 1, field, "must be at least 1, is " + std::to_string(value));
  }
  // `whole` must be a multiple of `part`.
  void divides(const std::string& field, std::int64_t part, const std::string& what,
               std::int64_t whole) {
    if (part < 1 || whole < 1) return;
    require(whole % part == 0, field,
            "is " + std::to_string(part) + ", which does not divide the " + what + " (" +
                std::to_string(whole) + ")");
  }
  std::vector<Problem> take() { return std::move(problems_); }
  bool clean() const { return problems_.empty(); }

 private:
  std::vector<Problem> problems_;
};

std::string list_of_levels(const Places& places) {
  std::string text;
  for (const Level& level : places.levels) {
    text += (text.empty() ? "" : ", ") + level.name + " (" + std::to_string(level.size) + ")";
  }
  return text;
}

constexpr double kMostLayerPasses = 4e6;

void check_sizes(const ParallelPlan& plan, Rules& rules) {
  rules.positive("tp", plan.tp);
  rules.positive("cp", plan.cp);
  rules.positive("dp", plan.dp);
  rules.positive("pp", plan.pp);
  rules.positive("microbatch", plan.microbatch);
  rules.positive("global_batch", plan.global_batch);
  rules.positive("sequence", plan.sequence);
  rules.positive("gradient_bucket_parameters", plan.gradient_bucket_parameters);
  rules.require(plan.prefetch >= 0, "prefetch",
                "must be at least 0, is " + std::to_string(plan.prefetch));
  rules.require(plan.optimizer_bytes >= 1, "optimizer_bytes",
                "must be at least 1, is " + std::to_string(plan.optimizer_bytes));
  rules.require(plan.gradient_bytes == 2 || plan.gradient_bytes == 4, "gradient_bytes",
                "must be 2 (bf16) or 4 (fp32), is " + std::to_string(plan.gradient_bytes));
  rules.require(plan.cp <= 1, "cp",
                "is " + std::to_string(plan.cp) + ", but context parallelism is not built yet: 1");
  rules.require(plan.zero == 0 || plan.zero == 1 || plan.zero == 3, "zero",
                "must be 0, 1 or 3 (FSDP), is " + std::to_string(plan.zero));
  std::set<PlanAxis> named(plan.order.begin(), plan.order.end());
  rules.require(named.size() == kPlanAxes, "order",
                "must name each of tp, cp, dp and pp once, innermost first");
}

std::string describe_stages(const ParallelPlan& plan) {
  if (stages_of(plan) == plan.pp) return "pp is " + std::to_string(plan.pp);
  return "pp x chunks is " + std::to_string(plan.pp) + " x " + std::to_string(chunks_of(plan)) +
         " = " + std::to_string(stages_of(plan));
}

void check_layout(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  std::int64_t sum = 0;
  for (const std::int64_t layers : plan.layout) {
    rules.require(layers >= 0, "layout",
                  "has a stage of " + std::to_string(layers) + " layers, must be at least 0");
    sum += layers;
  }
  rules.require(
      static_cast<std::int64_t>(plan.layout.size()) == stages_of(plan), "layout",
      "has " + std::to_string(plan.layout.size()) + " stages, but " + describe_stages(plan));
  rules.require(sum == model.layers, "layout",
                "adds up to " + std::to_string(sum) + " layers, but the model has " +
                    std::to_string(model.layers));
}

void check_divisions(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.divides("tp", plan.tp, "model's attention heads", model.heads);
  if (plan.tp >= 1 && model.kv_heads >= 1 && plan.tp % model.kv_heads != 0) {
    rules.divides("tp", plan.tp, "model's key-value heads", model.kv_heads);
  }
  rules.divides("tp", plan.tp, "model's MLP width", model.intermediate);
  if (plan.layout.empty()) {
    if (stages_of(plan) == plan.pp) {
      rules.divides("pp", plan.pp, "model's layers", model.layers);
    } else if (plan.pp >= 1 && model.layers >= 1) {
      rules.require(model.layers % stages_of(plan) == 0, "chunks",
                    describe_stages(plan) + " stages, which do not divide the model's layers (" +
                        std::to_string(model.layers) + "): give the layers of each by layout");
    }
  } else {
    check_layout(plan, model, rules);
  }
  if (plan.sequence_parallel && plan.microbatch >= 1) {
    rules.divides("tp", plan.tp, "tokens of a micro-batch, as sequence parallelism asks",
                  plan.microbatch * plan.sequence);
  }
  if (plan.dp >= 1 && plan.microbatch >= 1 && plan.global_batch >= 1) {
    rules.require(plan.global_batch % (plan.dp * plan.microbatch) == 0, "global_batch",
                  "is " + std::to_string(plan.global_batch) +
                      ", which is not a multiple of dp x microbatch = " + std::to_string(plan.dp) +
                      " x " + std::to_string(plan.microbatch));
  }
}

void check_combinations(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.require(
      !(plan.zero == 3 && (model.tied_embeddings || model.prediction_modules > 0)), "zero",
      "is 3 (FSDP) for a model with tied embeddings or multi-token prediction, which can't be "
      "simulated yet: 0 or 1");
  rules.require(model.experts.routed == 0 || plan.tp <= 1, "tp",
                "is " + std::to_string(plan.tp) +
                    " for a model with experts, which can't be simulated yet: 1");
  rules.require(model.learned_positions == 0 || plan.sequence <= model.learned_positions,
                "sequence",
                "is " + std::to_string(plan.sequence) + " tokens, but the model has " +
                    std::to_string(model.learned_positions) + " learned positions");
  if (plan.dp >= 1 && plan.pp >= 1 && plan.microbatch >= 1) {
    // About 25 ops a layer and micro-batch, 50 bytes each.
    const double passes =
        static_cast<double>(plan.microbatches()) * static_cast<double>(model.layers);
    rules.require(passes <= kMostLayerPasses, "global_batch",
                  "makes " + std::to_string(plan.microbatches()) + " micro-batches a rank of " +
                      std::to_string(model.layers) +
                      " layers, more than a step can hold (4 million layers x micro-batches): "
                      "raise dp or microbatch");
  }
}

void check_mapping(const ParallelPlan& plan, const Places& places, Rules& rules) {
  std::set<PlanAxis> axes;
  std::set<std::string> levels;
  for (const AxisMapping& mapping : plan.map) {
    const std::string field = "map." + std::string(name_of(mapping.axis));
    rules.require(axes.insert(mapping.axis).second, field, "is mapped twice");
    std::int64_t size = 1;
    bool known = true;
    for (const std::string& name : mapping.levels) {
      const std::optional<std::size_t> level = places.find(name);
      rules.require(level.has_value(), field,
                    "names level '" + name + "', but the cluster has " + list_of_levels(places));
      rules.require(levels.insert(name).second, field,
                    "uses level '" + name + "', which is mapped already");
      known = known && level.has_value();
      if (level) size *= places.levels[*level].size;
    }
    rules.require(!known || size == plan.size_of(mapping.axis), field,
                  "its levels have " + std::to_string(size) + " places, but " +
                      std::string(name_of(mapping.axis)) + " is " +
                      std::to_string(plan.size_of(mapping.axis)));
  }
}

void check_chips(const ParallelPlan& plan, const Places& places, Rules& rules) {
  for (const PlanAxis axis :
       {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData, PlanAxis::kPipeline}) {
    if (plan.size_of(axis) < 1 || plan.size_of(axis) > 100'000'000) return;
  }
  const auto chips = static_cast<std::int64_t>(places.chips.size());
  const std::string ranks = "tp x cp x dp x pp = " + std::to_string(plan.tp) + " x " +
                            std::to_string(plan.cp) + " x " + std::to_string(plan.dp) + " x " +
                            std::to_string(plan.pp);
  rules.require(plan.ranks() <= chips, "ranks",
                ranks + " is more than the cluster's " + std::to_string(chips) + " chips");
  rules.require(plan.ranks() >= chips || plan.allow_idle_chips, "ranks",
                ranks + " leaves " + std::to_string(chips - plan.ranks()) + " of the cluster's " +
                    std::to_string(chips) + " chips idle: set allow_idle_chips if that is meant");
}

}  // namespace

std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places) {
  Rules rules;
  check_sizes(plan, rules);
  check_divisions(plan, model, rules);
  check_combinations(plan, model, rules);
  check_chips(plan, places, rules);
  check_mapping(plan, places, rules);
  std::vector<Problem> problems = rules.take();
  for (Problem& problem : check_schedule(plan)) problems.push_back(std::move(problem));
  return problems;
}

std::vector<Problem> check(const ParallelPlan& plan, const ChipSpec& chip) {
  if (chip.peak_of(plan.type) > Throughput(0)) return {};
  std::string supported;
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    if (chip.peak_of(type) > Throughput(0)) {
      supported += (supported.empty() ? "" : ", ") + std::string(name_of(type));
    }
  }
  return {{"dtype", "is " + std::string(name_of(plan.type)) + ", but " + chip.name +
                        " has a peak throughput for " + supported + " only"}};
}

std::int64_t coordinate(const ParallelPlan& plan, std::int64_t rank, PlanAxis axis) {
  for (const PlanAxis inner : plan.order) {
    if (inner == axis) return rank % plan.size_of(axis);
    rank /= plan.size_of(inner);
  }
  return 0;
}

std::vector<std::uint32_t> place_ranks(const ParallelPlan& plan, const Places& places) {
  // The levels of each axis, innermost first; axes that are not mapped share what is left, in the
  // plan's order, as one axis.
  std::vector<std::size_t> free_levels;
  std::vector<std::vector<std::size_t>> levels_of(kPlanAxes);
  for (std::size_t level = 0; level < places.levels.size(); ++level) {
    bool mapped = false;
    for (const AxisMapping& mapping : plan.map) {
      mapped = mapped || std::ranges::count(mapping.levels, places.levels[level].name) > 0;
    }
    if (!mapped) free_levels.push_back(level);
  }
  std::vector<bool> is_mapped(kPlanAxes, false);
  for (const AxisMapping& mapping : plan.map) {
    is_mapped[static_cast<std::size_t>(mapping.axis)] = true;
    for (const std::string& name : mapping.levels) {
      levels_of[static_cast<std::size_t>(mapping.axis)].push_back(*places.find(name));
    }
  }
  std::vector<std::uint32_t> stride(places.levels.size(), 1);
  for (std::size_t level = 1; level < stride.size(); ++level) {
    stride[level] = stride[level - 1] * places.levels[level - 1].size;
  }

  std::vector<std::uint32_t> chips;
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
    std::uint32_t chip = 0;
    auto lay = [&](std::int64_t at, const std::vector<std::size_t>& levels) {
      for (const std::size_t level : levels) {
        const std::uint32_t size = places.levels[level].size;
        chip += static_cast<std::uint32_t>(at % size) * stride[level];
        at /= size;
      }
    };
    std::int64_t unmapped = 0;
    std::int64_t unmapped_size = 1;
    for (const PlanAxis axis : plan.order) {
      const std::int64_t at = coordinate(plan, rank, axis);
      if (is_mapped[static_cast<std::size_t>(axis)]) {
        lay(at, levels_of[static_cast<std::size_t>(axis)]);
      } else {
        unmapped += at * unmapped_size;
        unmapped_size *= plan.size_of(axis);
      }
    }
    lay(unmapped, free_levels);
    chips.push_back(chip);
  }
  return chips;
}

}  // namespace stepsim

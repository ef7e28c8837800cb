#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "schedules/plan/domain_share.h"
#include "schedules/plan/plan_rules.h"

namespace stepsim {
namespace {

std::string list_of_levels(const Places& places) {
  std::string text;
  for (const Level& level : places.levels) {
    text += (text.empty() ? "" : ", ") + level.name + " (" + std::to_string(level.size) + ")";
  }
  return text;
}

constexpr double kMostLayerPasses = 4e6;

}  // namespace

void check_axis_order(const ParallelPlan& plan, Rules& rules) {
  const std::set<PlanAxis> named(plan.mesh.order.begin(), plan.mesh.order.end());
  rules.require(named.size() == kPlanAxes, "order",
                "must name each of tp, cp, dp and pp once, innermost first");
}

void check_batch(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.mesh.dp >= 1 && plan.batch.microbatch_size >= 1) {
    rules.multiple_of("global_batch", plan.batch.global_batch,
                      "dp x microbatch = " + std::to_string(plan.mesh.dp) + " x " +
                          std::to_string(plan.batch.microbatch_size),
                      plan.mesh.dp * plan.batch.microbatch_size);
  }
  rules.require(model.embedding.learned_positions == 0 ||
                    plan.batch.sequence <= model.embedding.learned_positions,
                "sequence",
                "is " + std::to_string(plan.batch.sequence) + " tokens, but the model has " +
                    std::to_string(model.embedding.learned_positions) + " learned positions");
  if (plan.mesh.dp >= 1 && plan.mesh.pp >= 1 && plan.batch.microbatch_size >= 1) {
    // Estimates 25 ops per layer and micro-batch, and 50 bytes per op.
    const double passes =
        static_cast<double>(plan.microbatches()) * static_cast<double>(model.layers);
    rules.require(passes <= kMostLayerPasses, "global_batch",
                  "makes " + std::to_string(plan.microbatches()) + " micro-batches a rank of " +
                      std::to_string(model.layers) +
                      " layers, more than a step can hold (4 million layers x micro-batches): "
                      "raise dp or microbatch");
  }
}

void check_chips(const ParallelPlan& plan, const Places& places, Rules& rules) {
  for (const PlanAxis axis :
       {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData, PlanAxis::kPipeline}) {
    if (plan.mesh.size_of(axis) < 1 || plan.mesh.size_of(axis) > 100'000'000) return;
  }
  const auto chips = static_cast<std::int64_t>(places.chips.size());
  if (plan.mesh.expert_chips > 100'000'000) return;
  const std::string apart =
      plan.mesh.splits_ffn() ? ", with ffn_chips = " + std::to_string(plan.mesh.expert_chips) + ","
                             : "";
  const std::string ranks = "tp x cp x dp x pp = " + std::to_string(plan.mesh.tp) + " x " +
                            std::to_string(plan.mesh.cp) + " x " + std::to_string(plan.mesh.dp) +
                            " x " + std::to_string(plan.mesh.pp) + apart;
  const std::int64_t of_a_replica = plan.mesh.tp * plan.mesh.cp * plan.mesh.pp;
  const std::int64_t most =
      std::max<std::int64_t>(0, chips - plan.mesh.expert_chips) / of_a_replica;
  rules.require(plan.mesh.ranks() <= chips, "ranks",
                ranks + " is more than the cluster's " + std::to_string(chips) + " chips" +
                    (most > 0 ? "; nearest: dp = " + std::to_string(most) : ""));
  rules.require(plan.mesh.ranks() >= chips || plan.mesh.allow_idle_chips, "ranks",
                ranks + " leaves " + std::to_string(chips - plan.mesh.ranks()) +
                    " of the cluster's " + std::to_string(chips) + " chips idle: " +
                    (most * of_a_replica + plan.mesh.expert_chips == chips
                         ? "dp = " + std::to_string(most) + ", or "
                         : "") +
                    "set allow_idle_chips if that is meant");
}

void check_domains(const ParallelPlan& plan, const Places& places, Rules& rules) {
  if (!plan.mesh.chips_per_domain) return;
  const std::int64_t domain = chips_per_node(places);
  const std::int64_t share = *plan.mesh.chips_per_domain;
  const std::string is = "is " + std::to_string(share);
  rules.require(domain > 1, "chips_per_domain",
                is + ", but the cluster has no domains of switched chips: leave it out");
  rules.require(plan.mesh.map.empty(), "chips_per_domain",
                is + ", but map says where ranks lie: leave one of them out");
  rules.require(domain == 1 || share <= domain, "chips_per_domain",
                is + " of the " + std::to_string(domain) + " chips of a domain: at most " +
                    std::to_string(domain));
  const std::int64_t domains = static_cast<std::int64_t>(places.chips.size()) / domain;
  rules.require(share < 1 || plan.mesh.ranks() <= share * domains, "chips_per_domain",
                is + " in each of " + std::to_string(domains) + " domains, for " +
                    std::to_string(plan.mesh.ranks()) + " ranks: at least " +
                    std::to_string((plan.mesh.ranks() + domains - 1) / domains));
}

void check_mapping(const ParallelPlan& plan, const Places& places, Rules& rules) {
  std::set<PlanAxis> axes;
  std::set<std::string> levels;
  for (const AxisMapping& mapping : plan.mesh.map) {
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
    rules.require(!known || size == plan.mesh.size_of(mapping.axis), field,
                  "its levels have " + std::to_string(size) + " places, but " +
                      std::string(name_of(mapping.axis)) + " is " +
                      std::to_string(plan.mesh.size_of(mapping.axis)));
  }
}

}  // namespace stepsim

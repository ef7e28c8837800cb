// The limits from the books, with this run's chips and links.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "books/formulas/formula_table.h"
#include "experiment/explained/explain_parts.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/inference_plan.h"
#include "sim/hardware/group_links.h"

namespace stepsim {
namespace {

std::string count(double number) {
  return number >= 100 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

class LimitFinder {
 public:
  explicit LimitFinder(const FinishedRun& run)
      : run_(run),
        plan_(run.experiment.plan),
        model_(run.experiment.model),
        peak_(run.metrics.peak_per_chip.value()) {}

  std::vector<ExplainedThreshold> all() {
    matmuls();
    if (plan_.is_inference()) {
      tensor();
      return std::move(limits_);
    }
    data();
    tensor();
    mixed();
    context();
    experts();
    pipeline();
    return std::move(limits_);
  }

 private:
  // Adds a threshold. `wants_more`: the limit is a minimum; otherwise it is a maximum.
  void add(std::string formula, const std::string& claim, double limit, double actual,
           bool wants_more) {
    limits_.push_back(
        {.formula = std::move(formula),
         .text = fmt::format("{} {} {}; you have {}", claim, wants_more ? "from" : "up to",
                             count(limit), count(actual)),
         .limit = limit,
         .actual = actual,
         .met = wants_more ? actual >= limit : actual <= limit});
  }

  double tokens_of_microbatch() const {
    if (!plan_.is_inference())
      return static_cast<double>(plan_.batch.microbatch_size * plan_.batch.sequence);
    return static_cast<double>(plan_.tokens()) / static_cast<double>(count_of_microbatches(plan_));
  }
  double tokens_of_replica() const {
    const auto microbatches = static_cast<double>(plan_.microbatches());
    return tokens_of_microbatch() * (plan_.state.zero == 3 ? 1 : microbatches);
  }
  double tokens_of_chip() const {
    return static_cast<double>(plan_.batch.global_batch * plan_.batch.sequence) /
           static_cast<double>(plan_.mesh.ranks());
  }
  double bandwidth(Axis axis) const {
    const Communicator* const communicator = find_communicator(run_.graph, axis);
    return communicator == nullptr ? 0 : group_bandwidth(run_, *communicator);
  }

  void matmuls() {
    const double limit =
        value_of("A6", {{"C", peak_}, {"W", run_.cluster.chip.memory_bandwidth.value()}});
    add("A6", "matmuls: bound by arithmetic, in tokens of a micro-batch,", limit,
        tokens_of_microbatch() / static_cast<double>(plan_.mesh.cp), true);
  }

  void data() {
    const double passes = bandwidth(Axis::kData);
    if (passes == 0) return;
    const std::string_view unit = plan_.state.zero == 3 ? "tokens of a replica and micro-batch"
                                                        : "tokens of a replica and step";
    if (model_.experts.routed > 0) {
      // A rank reduces the gradients of its own experts only.
      const double experts =
          static_cast<double>(model_.experts.routed) / static_cast<double>(plan_.mesh.ep);
      const double limit = value_of("E12", {{"E", experts},
                                            {"k", static_cast<double>(model_.experts.visited())},
                                            {"C", peak_},
                                            {"W", passes}});
      add("E12", fmt::format("dp of {:.4g} experts a rank: compute-bound, in {},", experts, unit),
          limit, tokens_of_replica(), true);
    }
    add("E1", fmt::format("dp: compute-bound, in {},", unit),
        value_of("E1", {{"C", peak_}, {"W", passes}}), tokens_of_replica(), true);
  }

  // Returns the width of the MLP that processes a token.
  double width() const {
    const ExpertSpec& experts = model_.experts;
    return static_cast<double>(experts.routed == 0 ? model_.mlp.width
                                                   : experts.visited() * experts.intermediate +
                                                         experts.shared_intermediate);
  }

  void tensor() {
    const double axis = bandwidth(Axis::kTensor);
    if (axis == 0 || width() == 0) return;
    add("E4", "tp: compute-bound if its communication is hidden, in ways,",
        value_of("E4", {{"F", width()}, {"W", axis}, {"C", peak_}}),
        static_cast<double>(plan_.mesh.tp), false);
  }

  void mixed() {
    const double weights = bandwidth(Axis::kData);
    const double activations = bandwidth(Axis::kTensor);
    if (weights == 0 || activations == 0 || width() == 0 || plan_.state.zero != 3) return;
    // E8 has one W for both. M counts the axes of each, so it includes their bandwidth.
    const double limit =
        value_of("E8", {{"C", peak_}, {"W", weights}, {"F", width()}}) * weights / activations;
    add("E8", "FSDP with tp: compute-bound at the best ways of each, in tokens a chip,", limit,
        tokens_of_chip(), true);
  }

  // Chunks of keys and values go round the ring while the previous chunks are multiplied.
  void context() {
    const double limit = rotation_limit(run_);
    if (limit == 0) return;
    add("E23", "cp: keys and values hide, in tokens a chip of a sequence,", limit,
        static_cast<double>(plan_.batch.sequence) / static_cast<double>(plan_.mesh.cp), true);
  }

  // Applies only beyond one node. The width is that of one expert.
  void experts() {
    const double passes = bandwidth(Axis::kExpert);
    const auto ways = static_cast<double>(plan_.mesh.ep);
    const auto node = static_cast<double>(chips_per_node(run_.cluster.places));
    if (passes == 0 || ways <= node) return;
    const double limit =
        value_of("E13.width", {{"k", static_cast<double>(model_.experts.visited())},
                               {"Z", ways},
                               {"d", node},
                               {"C", peak_},
                               {"Wn", passes}});
    add("E13.width", "ep: all-to-alls between nodes hide, in width of an expert,", limit,
        static_cast<double>(model_.experts.intermediate), true);
  }

  void pipeline() {
    if (plan_.mesh.pp == 1) return;
    const double share =
        value_of("G1.fraction", {{"P", static_cast<double>(plan_.mesh.pp)},
                                 {"m", static_cast<double>(plan_.microbatches())}});
    add("G1.fraction",
        fmt::format("pp: a bubble of at most a tenth ({:.1f} % with yours, if it is 1F1B), in "
                    "micro-batches,",
                    100 * share),
        9 * static_cast<double>(plan_.mesh.pp - 1), static_cast<double>(plan_.microbatches()),
        true);
  }

  const FinishedRun& run_;
  const ParallelPlan& plan_;
  const ModelSpec& model_;
  double peak_;
  std::vector<ExplainedThreshold> limits_;
};

}  // namespace

double rotation_limit(const FinishedRun& run) {
  const ContextMode mode = run.experiment.plan.tensor.cp_mode;
  const ModelSpec& model = run.experiment.model;
  const Communicator* const communicator = find_communicator(run.graph, Axis::kContext);
  const bool has_attention = model.kind != ModelKind::kMlpStack && model.attention.heads > 0;
  if (communicator == nullptr || !has_attention || mode == ContextMode::kAllGather ||
      mode == ContextMode::kUlysses) {
    return 0;
  }
  const bool unbalanced = model.attention.causal && mode == ContextMode::kRing;
  return value_of("E23", {{"C", run.metrics.peak_per_chip.value()},
                          {"W", group_bandwidth(run, *communicator)},
                          {"G", static_cast<double>(model.attention.heads) /
                                    static_cast<double>(model.attention.kv_heads)},
                          {"causal", unbalanced ? 2 : 1}});
}

std::vector<ExplainedThreshold> explain_limits(const FinishedRun& run) {
  return LimitFinder(run).all();
}

}  // namespace stepsim

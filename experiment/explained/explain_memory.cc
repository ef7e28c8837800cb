// The peak memory of the rank that needs most, beside the accounting of the books: groups F and H
// of the formula table.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "books/formulas/formula_table.h"
#include "experiment/explained/explain_parts.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/quantity_text.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

class Memory {
 public:
  explicit Memory(const FinishedRun& run)
      : run_(run),
        plan_(run.experiment.plan),
        model_(run.experiment.model),
        peak_(run.result.memory_peaks[run.result.peak_rank.index()]) {}

  std::vector<ExplainedPart> all() {
    state();
    if (plan_.is_inference()) {
      cache();
    } else {
      activations();
      gathered();
    }
    rest(MemoryCategory::kBuffers,
         "workspaces of running kernels, messages in flight, placeholders of gradients");
    rest(MemoryCategory::kFixedOverhead, "context and libraries");
    return std::move(parts_);
  }

 private:
  double simulated(MemoryCategory category) const {
    return static_cast<double>(peak_.by_category[static_cast<std::size_t>(category)].value());
  }

  ExplainedPart& add(MemoryCategory category, std::string formula, std::string text,
                     double predicted) {
    std::string name(name_of(category));
    std::ranges::replace(name, '_', ' ');
    parts_.push_back({.name = std::move(name),
                      .formula = std::move(formula),
                      .text = std::move(text),
                      .predicted = predicted,
                      .simulated = simulated(category),
                      .causes = {}});
    return parts_.back();
  }

  void rest(MemoryCategory category, const char* cause) {
    if (simulated(category) == 0) return;
    ExplainedPart& part = add(category, "", "not in the formulas", 0);
    add_cause(part.causes, cause, part.simulated, part.simulated);
  }

  // P / (tp x pp) of each, divided further according to ZeRO.
  void state() {
    const auto experts = static_cast<double>(expert_parameter_count(model_));
    const double dense = static_cast<double>(parameter_count(model_)) - experts;
    const auto stages = static_cast<double>(plan_.mesh.pp);
    const auto add_state = [&](MemoryCategory category, std::int64_t bytes, bool divided,
                               const char* formula) {
      if (bytes == 0) return;
      const auto over = [&](double parameters, std::int64_t ways, std::int64_t replicas) {
        return parameters / (static_cast<double>(ways * (divided ? replicas : 1)) * stages);
      };
      const double parameters =
          (of_experts_alone() ? 0 : over(dense, plan_.mesh.tp, plan_.sharded_over())) +
          (of_attention_alone() ? 0
                                : over(experts, plan_.mesh.ep * plan_.mesh.etp, plan_.mesh.edp()));
      const double predicted = static_cast<double>(bytes) * parameters;
      std::string text =
          fmt::format("{} bytes a parameter / (tp x pp{}){}", bytes, divided ? " x dp" : "",
                      experts > 0 ? "; of experts / (ep x etp x pp)" : "");
      if (of_attention_alone()) text = fmt::format("{} bytes a parameter / tp, no experts", bytes);
      if (of_experts_alone())
        text = fmt::format("{} bytes a parameter of experts / (ep x etp)", bytes);
      ExplainedPart& part = add(category, formula, std::move(text), predicted);
      const char* cause = "not a mean stage: embedding, head, padding";
      if (category == MemoryCategory::kGradients && plan_.update.free_gradients) {
        cause = "gradients that no backward has made yet at this moment";
      } else if (category == MemoryCategory::kGradients && plan_.state.zero == 3) {
        cause = "gradients of up to two layers are whole until they are reduced";
      } else if (category == MemoryCategory::kOptimizer && plan_.offload.optimizer) {
        cause = "on the host, but for two buckets at a time";
      } else if (category == MemoryCategory::kOptimizer &&
                 plan_.training.optimizer == Optimizer::kMuon) {
        cause = "matrices have one moment (muon)";
      }
      add_cause(part.causes, cause, part.simulated - predicted,
                std::max(part.simulated, predicted));
    };
    add_state(MemoryCategory::kParameters, size_of(plan_.weights()).value(), plan_.state.zero == 3,
              "F7");
    if (plan_.is_inference()) return;
    add_state(MemoryCategory::kGradients, plan_.held_gradient_bytes(), plan_.state.zero >= 2, "F7");
    add_state(MemoryCategory::kOptimizer,
              plan_.training.optimizer == Optimizer::kNone ? 0 : plan_.update.optimizer_bytes,
              plan_.state.zero >= 1, "F7.optimizer");
  }

  // Layers of the stage x micro-batches in flight x bytes that a layer keeps.
  void activations() {
    const std::uint32_t stage = run_.graph.ranks[run_.result.peak_rank.index()].pp;
    double times = 0;
    std::string text;
    if (!plan_.pipeline.own_schedule && !plan_.pipeline.optimal_schedule &&
        plan_.pipeline.schedule == ScheduleName::kOneForwardOneBackward) {
      const auto layers = static_cast<double>(layers_of_stages(plan_, model_.layers)[stage]);
      const double in_flight = value_of("G3", {{"P", static_cast<double>(plan_.mesh.pp)},
                                               {"m", static_cast<double>(plan_.microbatches())},
                                               {"p", static_cast<double>(stage)}});
      times = layers * in_flight;
      text =
          fmt::format(" x {:.4g} layers x {:.4g} micro-batches in flight (G3)", layers, in_flight);
    } else {
      const PipelineReplay replayed = replay(schedule_of(plan_, {}), PipelineCosts{});
      const auto layers =
          static_cast<double>(model_.layers) / static_cast<double>(stages_of(plan_));
      const auto in_flight = static_cast<double>(replayed.peak_in_flight[stage]);
      times = layers * in_flight;
      text =
          fmt::format(" x {:.4g} layers of a chunk x {:.4g} of them in flight", layers, in_flight);
    }
    if (model_.kind == ModelKind::kMlpStack) {
      stack_activations(times, text);
      return;
    }
    if (model_.attention.heads == 0) {
      rest(MemoryCategory::kActivations, "activations of layers without attention");
      return;
    }
    const std::int64_t tokens = plan_.batch.sequence / plan_.mesh.cp;
    const FormulaValues shape = {{"b", static_cast<double>(plan_.batch.microbatch_size)},
                                 {"s", static_cast<double>(tokens)},
                                 {"h", static_cast<double>(model_.hidden)},
                                 {"N", static_cast<double>(model_.attention.heads)},
                                 {"t", static_cast<double>(plan_.mesh.tp)}};
    const bool divided = plan_.tensor.sequence_parallel || plan_.mesh.tp == 1;
    const bool full = plan_.recomputing.kind == Recompute::kFull;
    const char* formula = full ? "H2.full" : divided ? "H2.sequence" : "H2";
    FormulaValues used = shape;
    if (full) {
      used.erase("N");
      used.erase("t");
    }
    const double predicted = times * value_of(formula, used);
    ExplainedPart& part = add(MemoryCategory::kActivations, formula, formula + text, predicted);
    const double scale = std::max(part.simulated, predicted);
    double known = 0;
    if (!full) {
      // The parts of H2, in bytes per value: 5 N s / h for scores, 2 of the 34 for masks.
      const double values = shape.at("s") * shape.at("b") * shape.at("h") / shape.at("t") * times;
      const double scores = -values * 5 * shape.at("N") * shape.at("s") / shape.at("h");
      const double masks = -2 * values;
      known = scores + masks;
      add_cause(part.causes, "fused attention keeps no scores", scores, scale);
      add_cause(part.causes, "no dropout, no masks", masks, scale);
    }
    const char* rest = full ? "the layer that is being recomputed, embedding and loss"
                            : "the model's own layers (gates, grouped heads), embedding and loss";
    if (!full && plan_.recomputing.kind != Recompute::kNone) {
      rest = "recomputed parts are not kept; the model's own layers, embedding and loss";
    }
    if (plan_.offload.activations) rest = "on the host, but for two blocks at a time";
    add_cause(part.causes, rest, part.simulated - predicted - known, scale);
  }

  void stack_activations(double times, const std::string& text) {
    const auto tokens = static_cast<double>(plan_.batch.microbatch_size * plan_.batch.sequence);
    const double inputs = static_cast<double>(model_.hidden) /
                          static_cast<double>(plan_.tensor.sequence_parallel ? plan_.mesh.tp : 1);
    const double made = static_cast<double>(model_.mlp.width) / static_cast<double>(plan_.mesh.tp);
    const double predicted = times * tokens * (inputs + made) * mean_bytes_of(plan_.precision.type);
    ExplainedPart& part = add(MemoryCategory::kActivations, "", "tokens (D + F)" + text, predicted);
    add_cause(part.causes, "recompute and the order of the schedule", part.simulated - predicted,
              std::max(part.simulated, predicted));
  }

  // The rank that needs most, where experts are on chips of their own.
  bool of_experts_alone() const {
    return plan_.mesh.splits_ffn() && run_.result.peak_rank.index() >= plan_.mesh.mesh_ranks();
  }
  bool of_attention_alone() const { return plan_.mesh.splits_ffn() && !of_experts_alone(); }

  void cache() {
    if (of_experts_alone()) return;
    const double predicted = static_cast<double>(run_.metrics.pass->cache.value()) /
                             static_cast<double>(plan_.mesh.mesh_ranks());
    ExplainedPart& part = add(MemoryCategory::kCache, "I2.memory",
                              "requests x cache of a request / chips", predicted);
    add_cause(part.causes, "heads or latents on several chips; stages are unequal",
              part.simulated - predicted, std::max(part.simulated, predicted));
  }

  void gathered() {
    if (plan_.state.zero != 3) return;
    const auto experts = static_cast<double>(expert_parameter_count(model_));
    const double dense = static_cast<double>(parameter_count(model_)) - experts;
    // Returns the share of the model's parameters that tensor and expert parallelism leave on a
    // rank. Experts with one replica are not divided, so they are not gathered.
    const double parameters =
        dense / static_cast<double>(plan_.mesh.tp) +
        (plan_.mesh.edp() > 1 ? experts / static_cast<double>(plan_.mesh.ep * plan_.mesh.etp) : 0);
    const auto layers = static_cast<double>(model_.layers);
    const double blocks = plan_.state.reshard_after_forward
                              ? 1.0 + plan_.state.prefetch
                              : std::ceil(layers / static_cast<double>(plan_.mesh.pp));
    const double predicted = value_of("F8", {{"P", parameters}, {"L", layers}, {"blocks", blocks}});
    ExplainedPart& part =
        add(MemoryCategory::kGatheredParameters, "F8",
            fmt::format("{:.4g} blocks at a time, of 2 P / (L tp){}", blocks,
                        experts > 0 && plan_.mesh.edp() > 1 ? "; of experts / (L ep etp)" : ""),
            predicted);
    add_cause(part.causes, "embedding and head are larger than a block, or smaller",
              part.simulated - predicted, std::max(part.simulated, predicted));
  }

  const FinishedRun& run_;
  const ParallelPlan& plan_;
  const ModelSpec& model_;
  const MemoryPeak& peak_;
  std::vector<ExplainedPart> parts_;
};

}  // namespace

std::vector<ExplainedPart> explain_memory(const FinishedRun& run) {
  return Memory(run).all();
}

}  // namespace stepsim

#include "experiment/bounds/fastest_layout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "experiment/bounds/plan_bounds.h"
#include "schedules/plan/balanced_layout.h"
#include "schedules/plan/plan_schedule.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

constexpr std::int64_t kPlayedRounds = 4;  // micro-batches that are played, for each stage rank
constexpr int kMostTrials = 800;
constexpr double kLeastStep = 1e-4;  // what a move must gain

struct RatedLayout {
  std::vector<std::int64_t> layers;
  Duration step{};
};

class LayoutSearch {
 public:
  LayoutSearch(const Experiment& experiment, const Cluster& cluster)
      : experiment_(experiment),
        cluster_(cluster),
        bounds_(experiment.model, cluster),
        flops_(forward_flops(experiment.model, experiment.plan.batch.sequence,
                             experiment.plan.batch.document_length)),
        whole_(experiment.plan) {
    whole_.pipeline.balanced = false;
    whole_.pipeline.layout = even_layout(whole_, experiment.model);
    played_ = whole_;
    const std::int64_t most = kPlayedRounds * whole_.mesh.pp;
    if (whole_.microbatches() > most && whole_.microbatches() % whole_.mesh.pp == 0) {
      played_.batch.global_batch = whole_.batch.global_batch / whole_.microbatches() * most;
      if (!is_legal(played_)) played_ = whole_;
    }
  }

  std::vector<std::int64_t> run() {
    const std::vector<std::int64_t> even = whole_.pipeline.layout;
    const std::vector<std::int64_t> balanced = balanced_layout(whole_, experiment_.model);
    if (!is_legal(whole_)) return balanced;
    if (whole_.mesh.splits_ffn() || whole_.mesh.pp == 1) return even;
    const Bytes capacity(static_cast<std::int64_t>(
        kRoomOfLayout * static_cast<double>(cluster_.chip.memory_capacity.value())));
    most_memory_ = std::max(bounds_.memory(whole_), capacity);
    RatedLayout best{.layers = even, .step = step_of(even)};
    const Duration of_even = best.step;
    take_if_better(balanced, best);
    while (move_one(best)) {
    }
    return gain(of_even, best.step) >= kLeastGainOfLayout ? best.layers : even;
  }

 private:
  static double gain(Duration from, Duration to) {
    return 1 - to_seconds(to) / std::max(1e-12, to_seconds(from));
  }

  bool is_legal(const ParallelPlan& plan) const {
    return check(plan, experiment_.model, experiment_.cluster, cluster_.places).empty();
  }

  Duration step_of(const std::vector<std::int64_t>& layers) {
    played_.pipeline.layout = layers;
    return bounds_.close(played_);
  }

  bool take_if_better(const std::vector<std::int64_t>& layers, RatedLayout& best) {
    if (!tried_.insert(layers).second || tried_.size() > kMostTrials) return false;
    const Duration step = step_of(layers);
    if (gain(best.step, step) < kLeastStep) return false;
    whole_.pipeline.layout = layers;
    if (!is_legal(whole_) || bounds_.memory(whole_) > most_memory_) return false;
    best = {.layers = layers, .step = step};
    return true;
  }

  // Returns the stages of the rank with the most FLOPs, and the last one.
  std::vector<std::size_t> donors(const std::vector<std::int64_t>& layers) const {
    PipelineSchedule shape{.microbatches = 1,
                           .chunks = static_cast<std::int32_t>(chunks_of(whole_.pipeline)),
                           .placement = placement_of(whole_.pipeline)};
    shape.ranks.resize(static_cast<std::size_t>(whole_.mesh.pp));
    std::vector<double> of_rank(shape.ranks.size(), 0);
    std::vector<std::size_t> rank_of_stage;
    auto at = flops_.layers.begin();
    for (std::size_t stage = 0; stage < layers.size(); ++stage) {
      const auto end = at + layers[stage];
      const double head = stage + 1 == layers.size() ? flops_.head : 0;
      rank_of_stage.push_back(
          static_cast<std::size_t>(rank_of(shape, 0, static_cast<std::int32_t>(stage))));
      of_rank[rank_of_stage.back()] += std::accumulate(at, end, head);
      at = end;
    }
    const auto slowest =
        static_cast<std::size_t>(std::ranges::max_element(of_rank) - of_rank.begin());
    std::vector<std::size_t> stages;
    for (std::size_t stage = 0; stage < layers.size(); ++stage) {
      if (rank_of_stage[stage] == slowest || stage + 1 == layers.size()) stages.push_back(stage);
    }
    return stages;
  }

  // Makes the best move of one layer. Returns false if none helps.
  bool move_one(RatedLayout& best) {
    const std::vector<std::int64_t> from = best.layers;
    bool moved = false;
    for (const std::size_t donor : donors(from)) {
      if (from[donor] < 2) continue;
      for (std::size_t to = 0; to < from.size(); ++to) {
        if (to == donor) continue;
        std::vector<std::int64_t> layers = from;
        --layers[donor];
        ++layers[to];
        moved = take_if_better(layers, best) || moved;
      }
    }
    return moved;
  }

  const Experiment& experiment_;
  const Cluster& cluster_;
  PlanBounds bounds_;
  ForwardFlops flops_;
  ParallelPlan whole_;   // the plan, with the layout that is looked at
  ParallelPlan played_;  // with fewer micro-batches
  Bytes most_memory_{};
  std::set<std::vector<std::int64_t>> tried_;
};

}  // namespace

std::vector<std::int64_t> fastest_layout(const Experiment& experiment, const Cluster& cluster) {
  return LayoutSearch(experiment, cluster).run();
}

}  // namespace stepsim

#include "experiment/bounds/step_bound.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include "experiment/simulate_experiment.h"
#include "schedules/pipeline/orders/fused_neighbours.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

// Most bytes of activations and workspaces on a rank, in the order of its passes. Fused passes run
// by turns, so only what they leave behind counts.
std::int64_t activation_peak(const std::vector<PipelineOp>& order,
                             const std::vector<ChunkCost>& chunks) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  const auto pass = [&](const PassCost& cost) {
    most = std::max(most, held + cost.peak);
    held += cost.kept;
    most = std::max(most, held);
  };
  for (const PipelineOp& op : order) {
    const ChunkCost& chunk = chunks[static_cast<std::size_t>(op.chunk)];
    switch (op.kind) {
      case PipelineOpKind::kForward:
        pass(chunk.forward);
        break;
      case PipelineOpKind::kBackward:
        pass(chunk.backward);
        break;
      case PipelineOpKind::kBackwardInput:
        pass(chunk.input);
        break;
      case PipelineOpKind::kBackwardWeight:
        pass(chunk.weight);
        break;
      case PipelineOpKind::kForwardBackward: {
        const ChunkCost& other = chunks[static_cast<std::size_t>(op.backward_chunk)];
        held += chunk.forward.kept + other.input.kept + other.weight.kept;
        most = std::max(most, held);
        break;
      }
    }
  }
  return most;
}

// What the passes of a micro-batch on a chunk take of a rank, and at least. In fused ops one pass
// runs while the other waits.
struct Work {
  std::int64_t forward = 0;
  std::int64_t backward = 0;  // whole, however it is cut
  std::int64_t input = 0;     // at least, of either way to cut it
  std::int64_t weight = 0;
  std::int64_t dense = 0;  // of forward and backward: dense runs
};

bool has_weight_passes(const PipelineSchedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<PipelineOp>& ops) {
    return std::ranges::count(ops, PipelineOpKind::kBackwardWeight, &PipelineOp::kind) > 0;
  });
}

Work work_of(const ChunkCost& chunk, bool fused) {
  const auto time = [&](const PassCost& cost) { return fused ? cost.compute : cost.chain; };
  const std::int64_t split = time(chunk.input) + chunk.weight.compute;
  const std::int64_t whole = time(chunk.backward);
  Work work{.forward = time(chunk.forward), .backward = std::min(split, whole)};
  work.dense =
      chunk.forward.dense + std::min(chunk.backward.dense, chunk.input.dense + chunk.weight.dense);
  work.input = std::min(time(chunk.input), work.backward);
  work.weight = std::min(chunk.weight.compute, work.backward - work.input);
  return work;
}

// Returns the least of each part, for a stage that two ranks hold.
Work smaller(const Work& a, const Work& b) {
  return {.forward = std::min(a.forward, b.forward),
          .backward = std::min(a.backward, b.backward),
          .input = std::min(a.input, b.input),
          .weight = std::min(a.weight, b.weight),
          .dense = std::min(a.dense, b.dense)};
}

// The passes of all ranks, and what follows from them.
struct StepBound {
  explicit StepBound(const PlanCosts& of)
      : costs(of),
        fused(of.order == nullptr || has_fused_ops(*of.order)),
        weights_apart(of.order == nullptr || has_weight_passes(*of.order)) {
    std::size_t stages = 0;
    for (const RankCost& rank : costs.ranks) {
      for (const ChunkCost& chunk : rank.chunks) {
        stages = std::max(stages, static_cast<std::size_t>(chunk.stage) + 1);
      }
    }
    std::vector<std::optional<Work>> least(stages);
    for (const RankCost& rank : costs.ranks) {
      for (const ChunkCost& chunk : rank.chunks) {
        std::optional<Work>& of_stage = least[static_cast<std::size_t>(chunk.stage)];
        const Work work = work_of(chunk, fused);
        of_stage = of_stage ? smaller(*of_stage, work) : work;
      }
    }
    for (const std::optional<Work>& work : least) by_stage.push_back(work.value_or(Work{}));
    before.push_back({});
    for (const Work& work : by_stage) {
      Work sum = before.back();
      sum.forward += work.forward;
      sum.backward += work.backward;
      sum.input += work.input;
      before.push_back(sum);
    }
  }

  bool is_mirrored() const {
    return placement_of(costs.plan.pipeline) == Placement::kBidirectional;
  }
  std::int64_t microbatches_of_chunk() const {
    return costs.plan.microbatches() / (is_mirrored() ? 2 : 1);
  }
  const Work& sum_before(const RankCost& rank) const {
    return before[static_cast<std::size_t>(rank.first_stage())];
  }
  Work own(const RankCost& rank) const {
    Work sum;
    for (const ChunkCost& chunk : rank.chunks) {
      const Work& work = by_stage[static_cast<std::size_t>(chunk.stage)];
      sum.forward += microbatches_of_chunk() * work.forward;
      sum.backward += microbatches_of_chunk() * work.backward;
      sum.input += microbatches_of_chunk() * work.input;
      sum.weight += microbatches_of_chunk() * work.weight;
      sum.dense += microbatches_of_chunk() * work.dense;
    }
    return sum;
  }
  // From the rank's first pass to the end of the step: its passes and then its optimizer, or the
  // backwards of the stages before it, which wait for its last backward, but not for weight
  // gradients that may come later.
  std::int64_t from_first_pass(const RankCost& rank) const {
    const Work work = own(rank);
    const Work& first = sum_before(rank);
    const std::int64_t all = work.forward + work.backward;
    const std::int64_t behind = weights_apart ? first.input - work.weight : first.backward;
    const std::int64_t last_optimizer = is_mirrored() ? 0 : costs.ranks.front().optimizer;
    return std::max(all + rank.optimizer, all + behind + last_optimizer);
  }
  std::int64_t quick() const {
    std::int64_t most = 0;
    for (const RankCost& rank : costs.ranks) {
      most = std::max(most, sum_before(rank).forward + from_first_pass(rank));
    }
    if (steps_of(costs.plan) == 1) return most;
    return of_two_steps(most, 0);
  }
  // The step after one that some rank ended last. `from_rank_0` and `from_others`: what it takes at
  // least if that was rank 0, or another one.
  std::int64_t of_two_steps(std::int64_t from_rank_0, std::int64_t from_others) const {
    if (costs.plan.update.post_validation || costs.plan.offload.any()) return 0;
    if (is_mirrored()) from_rank_0 = 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t rank = 0; rank < costs.ranks.size(); ++rank) {
      least =
          std::min(least, from_end_of(costs.ranks[rank], rank == 0 ? from_rank_0 : from_others));
    }
    return least;
  }
  // The step after one that `rank` ended last.
  std::int64_t from_end_of(const RankCost& rank, std::int64_t known) const {
    // Gathers that the first forwards of the next step don't all wait for may have ended last.
    if (costs.plan.overlap.parameters) return own(rank).backward + rank.optimizer;
    std::int64_t most = std::max(known, from_first_pass(rank));
    return std::max({most, slowed(rank), moves(rank, {})});
  }
  // What moves the state of the rank's replicas in a step, and its optimizer. `early`: by chunk,
  // how often the gathers of its layers don't count.
  std::int64_t moves(const RankCost& rank, const std::vector<std::int64_t>& early) const {
    const std::int64_t times = costs.plan.state.zero >= 2 ? microbatches_of_chunk() : 1;
    std::int64_t most = traffic(rank, early) + (costs.plan.state.zero == 3 ? rank.optimizer : 0);
    for (std::size_t experts = 0; experts < 2; ++experts) {
      std::int64_t gathers = 0;
      std::int64_t reductions = 0;
      std::int64_t behind = 0;
      for (std::size_t i = 0; i < rank.chunks.size(); ++i) {
        const ChunkCost& chunk = rank.chunks[i];
        const std::int64_t left =
            kVisits * microbatches_of_chunk() - (early.empty() ? 0 : early[i]);
        gathers += left * chunk.gathers[experts];
        reductions += chunk.reductions[experts];
        behind += chunk.parameter_gathers[experts];
      }
      most = std::max(most, std::max(gathers, times * reductions) + rank.optimizer + behind);
    }
    return most;
  }
  // The rank's own passes and its optimizer, slowed by its traffic: plan_bounds.h.
  std::int64_t slowed(const RankCost& rank) const {
    const Work work = own(rank);
    const std::int64_t base = work.forward + work.backward + rank.optimizer;
    const std::int64_t beside = traffic(rank) - (base - work.dense);
    // A millionth less for what is rounded.
    const double lost = rank.slowdown * (1 - 1e-6) * static_cast<double>(beside);
    return base + static_cast<std::int64_t>(std::max(0.0, lost));
  }
  // What the traffic of the rank's replicas occupies its busiest link. `early`: as above.
  std::int64_t traffic(const RankCost& rank, const std::vector<std::int64_t>& early = {}) const {
    LinkLoads loads = rank.loads_of_step;
    add_loads(rank.loads_of_microbatch, microbatches_of_chunk(), loads);
    for (std::size_t i = 0; i < early.size(); ++i) {
      add_loads(rank.chunks[i].gather_loads, -early[i], loads);
    }
    std::int64_t most = 0;
    for (const LinkLoad& load : loads) most = std::max(most, load.busy);
    return most;
  }

  const PlanCosts& costs;
  bool fused = false;
  bool weights_apart = false;
  std::vector<Work> by_stage{};
  std::vector<Work> before{};  // sums of the stages before each
};

// Positions of a rank's first backward; and, of the last backwards of its chunks, of the first one.
// Unset: it has none, or a chunk has none.
struct GradientPositions {
  std::optional<std::size_t> first{};
  std::optional<std::size_t> last{};
};
GradientPositions gradient_positions(const std::vector<PipelineOp>& order, std::size_t chunks) {
  std::vector<std::optional<std::size_t>> last(chunks);
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool is_weight = order[i].kind == PipelineOpKind::kBackwardWeight;
    if (order[i].kind == PipelineOpKind::kForward || is_weight) continue;
    const bool fused = order[i].kind == PipelineOpKind::kForwardBackward;
    const std::int32_t chunk = fused ? order[i].backward_chunk : order[i].chunk;
    if (!first) first = i;
    last[static_cast<std::size_t>(chunk)] = i;
  }
  return {.first = first, .last = *std::ranges::min_element(last)};
}

// What moves the state of a rank's replicas.
struct StateMoves {
  std::int64_t after_first = 0;  // behind the start of the first backward: at least
  std::int64_t after_last = 0;   // behind the start of the last ones (GradientPositions)
  std::int64_t gathers = 0;      // behind the optimizer
};
StateMoves state_moves(const StepBound& bound, const RankCost& rank) {
  StateMoves moves;
  const int zero = bound.costs.plan.state.zero;
  if (zero == 3) return moves;
  for (std::size_t experts = 0; experts < 2; ++experts) {
    std::int64_t reductions = 0;
    std::int64_t parameters = 0;
    for (const ChunkCost& chunk : rank.chunks) {
      reductions += chunk.reductions[experts];
      parameters += chunk.parameter_gathers[experts];
    }
    // Zero 2 reduces every micro-batch, else all move after the last one has begun.
    std::int64_t& behind = zero == 2 ? moves.after_first : moves.after_last;
    behind =
        std::max(behind, zero == 2 ? bound.costs.plan.microbatches() * reductions : reductions);
    moves.gathers = std::max(moves.gathers, parameters);
  }
  if (bound.costs.plan.overlap.parameters) moves.gathers = 0;
  return moves;
}

// Plays an order with the times of `by_stage`. Every op starts as soon as its rank is free and its
// inputs are there; messages take no time.
class Play {
 public:
  // `skips_warm_up`: forwards before a rank's first backward take no time.
  Play(const PipelineSchedule& order, const std::vector<Work>& by_stage, bool skips_warm_up)
      : order_(order),
        by_stage_(by_stage),
        stages_(static_cast<std::size_t>(stage_count(order))),
        forwards_(stages_ * static_cast<std::size_t>(order.microbatches), kNever),
        backwards_(forwards_.size(), kNever),
        starts_(order.ranks.size()),
        free_(order.ranks.size(), 0),
        warm_(order.ranks.size(), skips_warm_up) {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) moves |= advance(rank);
    }
  }

  bool is_whole() const {
    for (std::size_t rank = 0; rank < starts_.size(); ++rank) {
      if (starts_[rank].size() != order_.ranks[rank].size()) return false;
    }
    return true;
  }
  const std::vector<std::int64_t>& starts(std::size_t rank) const { return starts_[rank]; }
  std::int64_t end(std::size_t rank) const { return free_[rank]; }
  // The ranks, each as often as it has passes: every pass comes behind those that it waits for.
  const std::vector<std::uint32_t>& sequence() const { return sequence_; }

 private:
  static constexpr std::int64_t kNever = -1;  // not yet run

  std::size_t at(std::int32_t microbatch, std::int32_t stage) const {
    return static_cast<std::size_t>(microbatch) * stages_ + static_cast<std::size_t>(stage);
  }
  std::int32_t stage_at(std::size_t rank, std::int32_t chunk) const {
    return stage_of(order_, static_cast<std::int32_t>(rank), chunk);
  }

  bool advance(std::size_t rank) {
    const std::vector<PipelineOp>& ops = order_.ranks[rank];
    bool moved = false;
    while (starts_[rank].size() < ops.size() && run(rank, ops[starts_[rank].size()])) moved = true;
    return moved;
  }

  // When the inputs of a pass are there; kNever: not yet.
  std::int64_t input_of_forward(std::int32_t microbatch, std::int32_t stage) const {
    return stage == 0 ? 0 : forwards_[at(microbatch, stage - 1)];
  }
  std::int64_t input_of_backward(std::int32_t microbatch, std::int32_t stage) const {
    const std::int64_t own = forwards_[at(microbatch, stage)];
    if (own == kNever || stage + 1 == static_cast<std::int32_t>(stages_)) return own;
    const std::int64_t next = backwards_[at(microbatch, stage + 1)];
    return next == kNever ? kNever : std::max(own, next);
  }

  bool run(std::size_t rank, const PipelineOp& op) {
    const std::int32_t stage = stage_at(rank, op.chunk);
    const Work& work = by_stage_[static_cast<std::size_t>(stage)];
    switch (op.kind) {
      case PipelineOpKind::kForward:
        return finish(rank, input_of_forward(op.microbatch, stage), warm_[rank] ? 0 : work.forward,
                      &forwards_[at(op.microbatch, stage)]);
      case PipelineOpKind::kBackward:
      case PipelineOpKind::kBackwardInput: {
        const bool is_whole = op.kind == PipelineOpKind::kBackward;
        return finish(rank, input_of_backward(op.microbatch, stage),
                      is_whole ? work.backward : work.input, &backwards_[at(op.microbatch, stage)]);
      }
      case PipelineOpKind::kBackwardWeight:
        return finish(rank, backwards_[at(op.microbatch, stage)], work.backward - work.input,
                      nullptr);
      case PipelineOpKind::kForwardBackward:
        break;
    }
    const std::int32_t other = stage_at(rank, op.backward_chunk);
    const std::int64_t forward = input_of_forward(op.microbatch, stage);
    const std::int64_t backward = input_of_backward(op.backward_microbatch, other);
    if (forward == kNever || backward == kNever) return false;
    return finish_both(rank, std::max(forward, backward), work.forward,
                       by_stage_[static_cast<std::size_t>(other)].backward,
                       forwards_[at(op.microbatch, stage)],
                       backwards_[at(op.backward_microbatch, other)]);
  }

  // The passes of a fused op run by turns, so each result may be there before the other's.
  bool finish_both(std::size_t rank, std::int64_t input, std::int64_t forward,
                   std::int64_t backward, std::int64_t& forward_end, std::int64_t& backward_end) {
    if (!finish(rank, input, forward + backward, nullptr)) return false;
    const std::int64_t start = starts_[rank].back();
    forward_end = start + forward;
    backward_end = start + backward;
    return true;
  }

  bool finish(std::size_t rank, std::int64_t input, std::int64_t time, std::int64_t* result) {
    if (input == kNever) return false;
    const std::int64_t start = std::max(input, free_[rank]);
    starts_[rank].push_back(start);
    sequence_.push_back(static_cast<std::uint32_t>(rank));
    free_[rank] = start + time;
    if (result != nullptr) *result = free_[rank];
    const std::size_t next = starts_[rank].size();
    const std::vector<PipelineOp>& ops = order_.ranks[rank];
    if (next < ops.size() && ops[next].kind != PipelineOpKind::kForward) warm_[rank] = false;
    return true;
  }

  const PipelineSchedule& order_;
  const std::vector<Work>& by_stage_;
  std::size_t stages_;
  std::vector<std::int64_t> forwards_;   // ends, by micro-batch and stage
  std::vector<std::int64_t> backwards_;  // the same of the gradients of inputs
  std::vector<std::vector<std::int64_t>> starts_;
  std::vector<std::int64_t> free_;
  std::vector<bool> warm_;
  std::vector<std::uint32_t> sequence_;
};

// The end of a one-step run, by rank 0's first pass at 0.
std::int64_t end_of_step(const StepBound& bound, const PipelineSchedule& order, const Play& play) {
  const std::vector<RankCost>& ranks = bound.costs.ranks;
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const GradientPositions gradients =
        gradient_positions(order.ranks[rank], ranks[rank].chunks.size());
    const StateMoves moves = state_moves(bound, ranks[rank]);
    const auto start = [&](const std::optional<std::size_t>& position) {
      return position ? play.starts(rank)[*position] : 0;
    };
    const std::int64_t done = std::max({play.end(rank), start(gradients.first) + moves.after_first,
                                        start(gradients.last) + moves.after_last});
    most =
        std::max({most, done + ranks[rank].optimizer + moves.gathers, bound.traffic(ranks[rank])});
  }
  return most;
}

// Returns, by chunk, how often FSDP may have gathered each layer for a step in which the rank's
// first backward has not begun: for the forwards before it, and ahead of layers that have not been
// visited.
std::vector<std::int64_t> early_gathers(const StepBound& bound,
                                        const std::vector<PipelineOp>& order, std::size_t chunks) {
  std::vector<std::int64_t> early(chunks, bound.costs.plan.state.prefetch + 1);
  const std::size_t first = gradient_positions(order, chunks).first.value_or(order.size());
  for (std::size_t i = 0; i < first; ++i) ++early[static_cast<std::size_t>(order[i].chunk)];
  for (std::int64_t& times : early) {
    times = std::min(times, kVisits * bound.microbatches_of_chunk());
  }
  return early;
}

// A step that another rank than rank 0 ended the one before. That rank's passes all come later, so
// every other rank's first backward does, too, and what is behind it in the rank's order: all
// reductions, and gathers for all but the warm-up.
std::int64_t end_without_warm_up(const StepBound& bound, const PipelineSchedule& order,
                                 const Play& play) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < bound.costs.ranks.size(); ++i) {
    const RankCost& rank = bound.costs.ranks[i];
    most = std::max({most, play.end(i) + rank.optimizer,
                     bound.moves(rank, early_gathers(bound, order.ranks[i], rank.chunks.size()))});
  }
  return most;
}

// Plays an order backwards: for each pass the time from its end to the end of the step.
class PlayBack {
 public:
  PlayBack(const StepBound& bound, const PipelineSchedule& order, const Play& play)
      : bound_(bound),
        order_(order),
        stages_(static_cast<std::size_t>(stage_count(order))),
        forwards_(stages_ * static_cast<std::size_t>(order.microbatches), 0),
        backwards_(forwards_.size(), 0),
        next_(order.ranks.size()),
        behind_(order.ranks.size()) {
    for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
      const RankCost& cost = bound.costs.ranks[rank];
      const StateMoves moves = state_moves(bound, cost);
      moves_.push_back({moves.after_first + cost.optimizer + moves.gathers,
                        moves.after_last + cost.optimizer + moves.gathers});
      gradients_.push_back(gradient_positions(order.ranks[rank], cost.chunks.size()));
      next_[rank] = cost.optimizer + moves.gathers;
      behind_[rank].resize(order.ranks[rank].size());
    }
    std::vector<std::size_t> position;
    for (const auto& ops : order.ranks) position.push_back(ops.size());
    const std::vector<std::uint32_t>& sequence = play.sequence();
    for (auto rank = sequence.rbegin(); rank != sequence.rend(); ++rank) {
      run(*rank, --position[*rank]);
    }
  }

  std::vector<std::vector<Duration>> behind() { return std::move(behind_); }

 private:
  struct StateTimes {
    std::int64_t from_first = 0;  // from the start of the rank's first backward to the end
    std::int64_t from_last = 0;
  };

  std::size_t at(std::int32_t microbatch, std::int32_t stage) const {
    return static_cast<std::size_t>(microbatch) * stages_ + static_cast<std::size_t>(stage);
  }
  // What waits for the result of a pass.
  std::int64_t after_forward(std::int32_t microbatch, std::int32_t stage) const {
    const bool is_last = stage + 1 == static_cast<std::int32_t>(stages_);
    return is_last ? backwards_[at(microbatch, stage)] : forwards_[at(microbatch, stage + 1)];
  }
  std::int64_t after_backward(std::int32_t microbatch, std::int32_t stage) const {
    return stage == 0 ? 0 : backwards_[at(microbatch, stage - 1)];
  }

  // Passes that come later have run.
  void run(std::size_t rank, std::size_t position) {
    const PipelineOp& op = order_.ranks[rank][position];
    const std::int32_t stage = stage_of(order_, static_cast<std::int32_t>(rank), op.chunk);
    const Work& work = bound_.by_stage[static_cast<std::size_t>(stage)];
    switch (op.kind) {
      case PipelineOpKind::kForward:
        return finish(rank, position, work.forward, after_forward(op.microbatch, stage),
                      {&forwards_[at(op.microbatch, stage)]});
      case PipelineOpKind::kBackward:
      case PipelineOpKind::kBackwardInput: {
        const bool is_whole = op.kind == PipelineOpKind::kBackward;
        return finish(rank, position, is_whole ? work.backward : work.input,
                      after_backward(op.microbatch, stage),
                      {&backwards_[at(op.microbatch, stage)]});
      }
      case PipelineOpKind::kBackwardWeight:
        return finish(rank, position, work.backward - work.input, 0, {});
      case PipelineOpKind::kForwardBackward:
        break;
    }
    const std::int32_t other = stage_of(order_, static_cast<std::int32_t>(rank), op.backward_chunk);
    const std::int64_t backward = bound_.by_stage[static_cast<std::size_t>(other)].backward;
    const std::int64_t forward_left = after_forward(op.microbatch, stage);
    const std::int64_t backward_left = after_backward(op.backward_microbatch, other);
    // Each result may be there before the other's: only one of them at the end.
    const std::int64_t left = std::min(forward_left, backward_left);
    const std::int64_t apart = std::max(work.forward + forward_left, backward + backward_left);
    finish(rank, position, work.forward + backward, 0,
           {&forwards_[at(op.microbatch, stage)], &backwards_[at(op.backward_microbatch, other)]},
           left, apart);
  }

  // `after`: what waits for the result; `starts`: where to note the time from the pass's start.
  // A fused pass gives `left` and `apart`: what is left at least at its end and at its start.
  void finish(std::size_t rank, std::size_t position, std::int64_t time, std::int64_t after,
              std::initializer_list<std::int64_t*> starts, std::int64_t left = 0,
              std::int64_t apart = 0) {
    const std::int64_t behind = std::max(next_[rank], after);
    behind_[rank][position] = Duration(std::max(behind, left));
    std::int64_t whole = std::max(time + behind, apart);
    if (position == gradients_[rank].first) whole = std::max(whole, moves_[rank].from_first);
    if (position == gradients_[rank].last) whole = std::max(whole, moves_[rank].from_last);
    next_[rank] = whole;
    for (std::int64_t* const start : starts) *start = whole;
  }

  const StepBound& bound_;
  const PipelineSchedule& order_;
  std::size_t stages_;
  std::vector<std::int64_t> forwards_;  // from their starts, by micro-batch and stage
  std::vector<std::int64_t> backwards_;
  std::vector<std::int64_t> next_;  // by rank: from the start of what follows
  std::vector<StateTimes> moves_;
  std::vector<GradientPositions> gradients_;
  std::vector<std::vector<Duration>> behind_;
};

}  // namespace

Bytes least_memory(const PlanCosts& costs) {
  std::int64_t memory = 0;
  for (std::size_t rank = 0; rank < costs.ranks.size(); ++rank) {
    std::int64_t bytes = costs.ranks[rank].resident;
    if (costs.order != nullptr && !costs.plan.offload.activations) {
      bytes += activation_peak(costs.order->ranks[rank], costs.ranks[rank].chunks);
    }
    memory = std::max(memory, bytes);
  }
  return Bytes(memory);
}

Duration quick_bound(const PlanCosts& costs) {
  return Duration(StepBound(costs).quick());
}

Duration close_bound(const PlanCosts& costs) {
  const StepBound bound(costs);
  const std::int64_t quick = bound.quick();
  if (costs.order == nullptr) return Duration(quick);
  const PipelineSchedule& order = *costs.order;
  const Play play(order, bound.by_stage, false);
  if (!play.is_whole()) return Duration(quick);
  const std::int64_t whole = end_of_step(bound, order, play);
  if (steps_of(costs.plan) == 1) return Duration(std::max(quick, whole));
  const Play later(order, bound.by_stage, true);
  return Duration(bound.of_two_steps(whole, end_without_warm_up(bound, order, later)));
}

std::vector<std::vector<Duration>> times_behind(const PlanCosts& costs) {
  const bool unknown = costs.plan.update.post_validation || costs.plan.offload.any();
  if (costs.order == nullptr || unknown) return {};
  const StepBound bound(costs);
  const Play play(*costs.order, bound.by_stage, false);
  if (!play.is_whole()) return {};
  return PlayBack(bound, *costs.order, play).behind();
}

}  // namespace stepsim

#include "goodput/training_run.h"

#include <algorithm>

#include "goodput/checkpoint_cycle.h"

namespace stepsim {
namespace {

enum RunEvent : std::uint32_t { kPhaseEnds, kRepaired, kFound, kMaintenance };

constexpr std::uint64_t kMostEvents = 20'000'000;
constexpr std::uint32_t kIndexMask = (1U << 28) - 1;

constexpr auto kHost = static_cast<std::size_t>(CheckpointPlace::kHost);
constexpr auto kPeer = static_cast<std::size_t>(CheckpointPlace::kPeer);
constexpr auto kStorage = static_cast<std::size_t>(CheckpointPlace::kStorage);

class TrainingRun {
 public:
  TrainingRun(const RunSetup& setup, RunSeed seed, bool keeps_spans)
      : setup_(setup),
        clock_(setup.classes, seed),
        keeps_spans_(keeps_spans),
        healthy_(setup.nodes + setup.spares),
        replicas_(setup.replicas),
        stops_every_(mean_time_between_stops(setup)),
        out_(static_cast<std::size_t>(setup.groups)),
        cycle_(setup.checkpoint, Pace{}, setup.work) {
    result_.failures.resize(setup.classes.size());
  }

  TrainingResult run() {
    if (setup_.maintenance_every) plan(*setup_.maintenance_every, Event(kMaintenance, 0));
    begin_training();
    while (!is_done_) {
      if (++result_.events > kMostEvents) {
        throw RunStuck(
            "a run of training makes no progress: failures come faster than the job "
            "restarts and saves its work");
      }
      step();
    }
    finish();
    return std::move(result_);
  }

 private:
  // A slow node or a silent corruption that has not been found.
  struct Hidden {
    std::uint32_t of;
    std::int64_t node;
    bool is_over = false;
    Ticks clean = 0;  // silent: work of the checkpoint before it
  };

  // Nodes that come back.
  struct Repair {
    std::int64_t nodes = 0;
    std::size_t group = 0;
  };

  Ticks now() const { return queue_.now().since_start.count(); }
  bool fails_now() const {
    return phase_ != RunPhase::kWaiting && phase_ != RunPhase::kMaintaining;
  }

  void plan(Ticks wait, Event event) {
    queue_.schedule(Time{queue_.now().since_start + Duration(wait)}, event);
  }

  // ---- phases ----

  // The earliest event of the run or of the machines; of equal times the run's own.
  void step() {
    const bool can_fail = fails_now() && !clock_.empty();
    const Ticks fails_at = can_fail ? clock_.next() + idle_ : 0;
    if (can_fail && (queue_.empty() || fails_at < queue_.next_time().since_start.count())) {
      queue_.advance_to(Time{Duration(fails_at)});
      return fail(clock_.pop());
    }
    if (queue_.empty()) {
      throw RunStuck("a run of training waits for nodes that never come back");
    }
    const Event event = queue_.pop();
    switch (event.kind()) {
      case kPhaseEnds:
        if (event.index() == (generation_ & kIndexMask)) phase_ends();
        return;
      case kRepaired:
        return repaired(repairs_[event.index()]);
      case kFound:
        return found(hidden_[event.index()]);
      default:
        return maintain();
    }
  }

  // Books the time of the phase that ends here.
  void enter(RunPhase phase, std::optional<std::uint32_t> failure = {}) {
    settle();
    const Ticks length = now() - phase_began_;
    switch (phase_) {
      case RunPhase::kTraining:
        break;
      case RunPhase::kDetecting:
      case RunPhase::kRestarting:
        part(RunPart::kRestart) += length;
        break;
      case RunPhase::kSaving:
        part(RunPart::kCheckpoint) += length;
        break;
      case RunPhase::kWaiting:
      case RunPhase::kMaintaining:
        part(RunPart::kRepair) += length;
        idle_ += length;
        break;
    }
    if (keeps_spans_ && length > 0) {
      result_.spans.push_back({phase_, phase_began_, now(), replicas_, failure});
    }
    phase_ = phase;
    phase_began_ = now();
    ++generation_;
  }

  void enter_for(Ticks length, RunPhase phase, std::optional<std::uint32_t> failure = {}) {
    enter(phase, failure);
    plan(length, Event(kPhaseEnds, generation_ & kIndexMask));
  }

  void phase_ends() {
    switch (phase_) {
      case RunPhase::kTraining:
        settle();
        is_done_ = true;
        return;
      case RunPhase::kSaving:
        saved_.fill(position_);
        if (!maintains_) return restart();
        maintains_ = false;
        return enter_for(setup_.maintenance_time, RunPhase::kMaintaining);
      case RunPhase::kRestarting:
        saved_.fill(position_);
        enter(RunPhase::kTraining);
        return begin_training();
      case RunPhase::kDetecting:
      case RunPhase::kMaintaining:
      case RunPhase::kWaiting:
        return restart();
    }
  }

  // ---- training ----

  Pace pace() const {
    Pace slowest;
    for (const Hidden& hidden : hidden_) {
      const ClassSetup& setup = setup_.classes[hidden.of];
      if (hidden.is_over || setup.effect != FailureEffect::kSlow) continue;
      if (setup.slowed.slower_than(slowest)) slowest = setup.slowed;
    }
    if (is_far_) slowest = slowest.times(setup_.far);
    return setup_.paces[static_cast<std::size_t>(setup_.replicas - replicas_)].times(slowest);
  }

  // Whether a spare of another group has to stand in for a node: some groups miss more nodes than
  // they have spares, and more than the job goes without.
  bool needs_far_spare() const {
    std::int64_t missing = replicas_ * setup_.nodes / setup_.replicas - setup_.nodes;
    for (std::int64_t group = 0; group < setup_.groups; ++group) {
      const std::int64_t spares = share_of(setup_.spares, group);
      missing += std::max<std::int64_t>(0, out_[static_cast<std::size_t>(group)] - spares);
    }
    return missing > 0;
  }
  std::int64_t share_of(std::int64_t whole, std::int64_t group) const {
    return (group + 1) * whole / setup_.groups - group * whole / setup_.groups;
  }

  void begin_training() {
    base_ = position_;
    cycle_ = CheckpointCycle(setup_.checkpoint, pace(), setup_.work - base_);
    point_ = {};
    stretch_elapsed_ = 0;
    settled_at_ = now();
    plan(cycle_.length(), Event(kPhaseEnds, generation_ & kIndexMask));
  }

  // Brings the accounts of training up to now.
  void settle() {
    if (phase_ != RunPhase::kTraining || settled_at_ == now()) return;
    const Ticks elapsed = now() - settled_at_;
    stretch_elapsed_ += elapsed;
    const CyclePoint point = cycle_.at(stretch_elapsed_);
    const Ticks reached = base_ + cycle_.work_at(point);
    const Ticks stalled = point.stalled - point_.stalled;
    part(RunPart::kProductive) += reached - position_;
    part(RunPart::kCheckpoint) += stalled;
    part(RunPart::kDegraded) += elapsed - stalled - (reached - position_);
    position_ = reached;
    point_ = point;
    settled_at_ = now();
    const Ticks copied = base_ + cycle_.copied_at(stretch_elapsed_);
    const Ticks stored = base_ + cycle_.stored_at(stretch_elapsed_);
    saved_[kStorage] = std::max(saved_[kStorage], stored);
    const auto& has = setup_.checkpoint.has;
    saved_[kPeer] = std::max(saved_[kPeer], has[kPeer] ? copied : saved_[kStorage]);
    saved_[kHost] = std::max(saved_[kHost], has[kHost] ? copied : saved_[kPeer]);
  }

  // Training goes on from the same point at another pace.
  void change_pace() {
    settle();
    cycle_ = CheckpointCycle(setup_.checkpoint, pace(), setup_.work - base_);
    stretch_elapsed_ = cycle_.elapsed_at(point_);
    ++generation_;
    plan(cycle_.length() - stretch_elapsed_, Event(kPhaseEnds, generation_ & kIndexMask));
  }

  // ---- failures ----

  void fail(Failure failure) {
    const ClassSetup& setup = setup_.classes[failure.of];
    const std::int64_t node = failure.unit * setup_.nodes / setup.units;
    if (node >= replicas_ * setup_.nodes / setup_.replicas) return;  // it has no ranks
    if (setup.effect == FailureEffect::kStop) return stop(failure.of, node);
    if (setup.effect == FailureEffect::kSilent && phase_ != RunPhase::kTraining) return;
    ++result_.failures[failure.of];
    settle();
    hidden_.push_back({.of = failure.of, .node = node, .clean = saved_[kStorage]});
    plan(setup.detection, Event(kFound, static_cast<std::uint32_t>(hidden_.size() - 1)));
    const bool is_slow = setup.effect == FailureEffect::kSlow;
    if (is_slow && phase_ == RunPhase::kTraining) change_pace();
  }

  void stop(std::uint32_t of, std::int64_t node) {
    ++result_.failures[of];
    const ClassSetup& setup = setup_.classes[of];
    settle();
    take_out(setup, node);
    if (phase_ == RunPhase::kDetecting) return;
    maintains_ = false;
    enter_for(setup.detection, RunPhase::kDetecting, of);
  }

  // Nodes leave the job, and what their memory held is lost.
  void take_out(const ClassSetup& setup, std::int64_t node) {
    if (setup.loses >= FailureScope::kLeaf)
      saved_[kPeer] = std::min(saved_[kPeer], saved_[kStorage]);
    if (setup.loses >= FailureScope::kNode) saved_[kHost] = std::min(saved_[kHost], saved_[kPeer]);
    if (setup.repair == 0 || setup.nodes_lost == 0) return;
    healthy_ -= setup.nodes_lost;
    const auto group = static_cast<std::size_t>(node * setup_.groups / setup_.nodes);
    out_[group] += setup.nodes_lost;
    repairs_.push_back({.nodes = setup.nodes_lost, .group = group});
    plan(setup.repair, Event(kRepaired, static_cast<std::uint32_t>(repairs_.size() - 1)));
  }

  void restart() {
    const std::int64_t per_replica = setup_.nodes / setup_.replicas;
    const std::int64_t replicas = std::min(setup_.replicas, healthy_ / per_replica);
    if (replicas < setup_.least_replicas) {
      if (phase_ != RunPhase::kWaiting) enter(RunPhase::kWaiting);
      return;
    }
    const auto best = std::max_element(saved_.begin(), saved_.end());
    const std::size_t place = place_holding(*best);
    enter_for(setup_.restart + setup_.checkpoint.load[place], RunPhase::kRestarting);
    part(RunPart::kLost) += position_ - *best;
    part(RunPart::kProductive) -= position_ - *best;
    position_ = *best;
    replicas_ = replicas;
    is_far_ = needs_far_spare();
    ++result_.restarts;
    for (Hidden& hidden : hidden_) {
      const bool is_silent = setup_.classes[hidden.of].effect == FailureEffect::kSilent;
      if (is_silent && position_ <= hidden.clean) hidden.is_over = true;
    }
  }

  // The nearest place that the job uses and that holds this much work.
  std::size_t place_holding(Ticks work) const {
    for (const std::size_t place : {kHost, kPeer}) {
      if (setup_.checkpoint.has[place] && saved_[place] == work) return place;
    }
    return kStorage;
  }

  void repaired(Repair repair) {
    healthy_ += repair.nodes;
    out_[repair.group] -= repair.nodes;
    if (phase_ == RunPhase::kWaiting) return restart();
    if (phase_ == RunPhase::kTraining && grows()) save_and_restart();
  }

  // More replicas are worth a restart if they gain more than it takes until the next stop.
  bool grows() const {
    const std::int64_t per_replica = setup_.nodes / setup_.replicas;
    const std::int64_t possible = std::min(setup_.replicas, healthy_ / per_replica);
    if (possible <= replicas_) return false;
    const Pace pace = setup_.paces[static_cast<std::size_t>(setup_.replicas - replicas_)];
    const double lost = 1 - static_cast<double>(pace.work) / static_cast<double>(pace.time);
    const double until = static_cast<double>(stops_every_.value_or(setup_.work));
    return lost * until > static_cast<double>(setup_.restart + setup_.checkpoint.storage_stall);
  }

  void save_and_restart() {
    const CheckpointCosts& costs = setup_.checkpoint;
    enter_for(
        costs.copy_stall + costs.storage_stall + std::max(costs.copy_flush, costs.storage_flush),
        RunPhase::kSaving);
  }

  void found(Hidden& hidden) {
    if (hidden.is_over) return;
    hidden.is_over = true;
    settle();
    const ClassSetup& setup = setup_.classes[hidden.of];
    const Ticks clean = hidden.clean;
    const bool is_silent = setup.effect == FailureEffect::kSilent;
    // A slow node hands over what it holds.
    const std::array<Ticks, kCheckpointPlaces> before = saved_;
    take_out(setup, hidden.node);
    if (!is_silent) saved_ = before;
    if (is_silent) {
      for (Ticks& saved : saved_) saved = std::min(saved, clean);
    }
    // A chip that is throttled cools down by itself.
    if (!is_silent && setup.loses == FailureScope::kNothing) {
      if (phase_ == RunPhase::kTraining) change_pace();
      return;
    }
    if (phase_ == RunPhase::kTraining && !is_silent) return save_and_restart();
    // Who detects, saves or waits restarts anyway.
    if (phase_ == RunPhase::kRestarting || phase_ == RunPhase::kTraining) return restart();
    if (phase_ == RunPhase::kSaving && is_silent) {
      maintains_ = false;
      restart();
    }
  }

  void maintain() {
    plan(*setup_.maintenance_every, Event(kMaintenance, 0));
    if (phase_ != RunPhase::kTraining) return;
    maintains_ = true;
    save_and_restart();
  }

  void finish() {
    enter(phase_);
    result_.length = now();
    for (const Hidden& hidden : hidden_) {
      const bool is_silent = setup_.classes[hidden.of].effect == FailureEffect::kSilent;
      if (is_silent && !hidden.is_over) ++result_.undetected;
    }
  }

  Ticks& part(RunPart part) { return result_.parts[static_cast<std::size_t>(part)]; }

  const RunSetup& setup_;
  EventQueue queue_;
  FailureClock clock_;
  bool keeps_spans_;
  bool is_done_ = false;
  bool maintains_ = false;  // the checkpoint that is written comes before maintenance
  Ticks idle_ = 0;          // time in which nothing could fail

  RunPhase phase_ = RunPhase::kTraining;
  Ticks phase_began_ = 0;
  std::uint32_t generation_ = 0;
  std::int64_t healthy_;  // nodes that work, spares included
  std::int64_t replicas_;
  std::optional<Ticks> stops_every_;
  std::vector<std::int64_t> out_;  // nodes in repair, by group
  std::vector<Repair> repairs_;
  bool is_far_ = false;  // a spare of another group stands in
  std::vector<Hidden> hidden_;

  Ticks position_ = 0;                            // work that is done
  std::array<Ticks, kCheckpointPlaces> saved_{};  // work that the latest checkpoint has
  CheckpointCycle cycle_;
  Ticks base_ = 0;             // position_ where the stretch began
  Ticks stretch_elapsed_ = 0;  // as if all of the stretch had its pace
  Ticks settled_at_ = 0;
  CyclePoint point_;
  TrainingResult result_;
};

}  // namespace

std::string_view name_of(RunPart part) {
  constexpr std::array<std::string_view, kRunParts> kNames = {
      "productive", "checkpoint", "lost", "restart", "repair", "degraded"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string_view name_of(RunPhase phase) {
  constexpr std::array<std::string_view, kRunPhases> kNames = {
      "training", "detecting", "restarting", "waiting", "saving", "maintaining"};
  return kNames[static_cast<std::size_t>(phase)];
}

TrainingResult simulate_training(const RunSetup& setup, RunSeed seed, bool keeps_spans) {
  return TrainingRun(setup, seed, keeps_spans).run();
}

}  // namespace stepsim

#include "schedules/pipeline/search/span_bound.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace stepsim {
namespace {

constexpr std::int64_t kMostWork = 20'000'000;  // most ops looked at in all
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Job is an op that can start at `ready` and takes `time`.
struct Job {
  std::int64_t ready = 0;
  std::int64_t time = 0;
};

// Returns the earliest end of the last job if they run one at a time.
std::int64_t earliest_end(std::vector<Job>& jobs) {
  std::ranges::sort(jobs, {}, &Job::ready);
  std::int64_t end = 0;
  for (const Job& job : jobs) end = std::max(end, job.ready) + job.time;
  return end;
}

class Bound {
 public:
  Bound(const ScheduleShape& shape, const StageCosts& costs, std::int64_t memory_limit)
      : shape_(shape), memory_limit_(memory_limit) {
    const PipelineSchedule stages =
        schedule_by_rank(shape, [](std::int32_t) { return RankOrder(); });
    const std::int32_t count = stage_count(stages);
    for (std::int32_t stage = 0; stage < count; ++stage) {
      steps_.push_back({.rank = rank_of(stages, 0, stage),
                        .chunk = chunk_of(stages, 0, stage),
                        .time = costs.at(stage).forward,
                        .weight = costs.at(stage).backward_weight,
                        .send = costs.at(stage).send});
    }
    for (std::int32_t stage = count; stage-- > 0;) {
      Step back = steps_[at(stage)];
      back.is_forward = false;
      back.time = costs.at(stage).backward_input;
      steps_.push_back(back);
    }
    ends_.assign(steps_.size(), std::vector<std::int64_t>(at(shape.microbatches), 0));
    own_.resize(at(shape.stages));
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      own_[at(steps_[step].rank)].push_back(step);
    }
    const std::int64_t ops = 2 * std::int64_t{count} * shape.microbatches;
    window_ = static_cast<std::int32_t>(std::min<std::int64_t>(
        shape.microbatches, std::max<std::int64_t>(kMostWork / ops / (3 * shape.chunks), 8)));
  }

  std::int64_t run() {
    for (std::int32_t i = 0; i < shape_.microbatches; ++i) {
      for (std::size_t step = 0; step < steps_.size(); ++step) {
        const Step& op = steps_[step];
        std::int64_t ready = before(step, i);
        if (step > 0) {
          const Step& last = steps_[step - 1];
          ready = std::max(ready, ends_[step - 1][at(i)] + (last.rank == op.rank ? 0 : last.send));
        }
        ends_[step][at(i)] = ready + op.time;
      }
    }
    std::int64_t longest = 0;
    for (std::int32_t rank = 0; rank < shape_.stages; ++rank) {
      longest = std::max(longest, end_of(rank) - ends_[at(rank)][0] + steps_[at(rank)].time);
    }
    return longest;
  }

 private:
  // Step is an op on the way of a micro-batch through all stages and back.
  struct Step {
    bool is_forward = true;
    std::int32_t rank = 0;
    std::int32_t chunk = 0;
    std::int64_t time = 0;
    std::int64_t weight = 0;
    std::int64_t send = 0;
  };

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  // Returns the earliest time at which all ops of the rank have ended.
  std::int64_t end_of(std::int32_t rank) {
    jobs_.clear();
    for (const std::size_t step : own_[at(rank)]) {
      for (const std::int64_t end : ends_[step]) {
        jobs_.push_back({end - steps_[step].time, steps_[step].time});
        if (!steps_[step].is_forward) jobs_.push_back({end, steps_[step].weight});
      }
    }
    return earliest_end(jobs_);
  }

  // Returns the earliest time at which everything that must precede this step of micro-batch i has
  // run.
  std::int64_t before(std::size_t step, std::int32_t i) {
    const std::vector<std::size_t>& own = own_[at(steps_[step].rank)];
    const std::int32_t first = std::max(0, i - window_);
    jobs_.clear();
    std::int64_t forwards = 0;  // forwards up to this step, or to the micro-batch's last
    for (const std::size_t other : own) {
      const Step& earlier = steps_[other];
      if (other > step) break;
      for (std::int32_t j = first; j < i + (other < step ? 1 : 0); ++j) {
        jobs_.push_back({ends_[other][at(j)] - earlier.time, earlier.time});
      }
      if (earlier.is_forward) forwards += i + 1;
    }
    // Forwards before a B are in `jobs_` already.
    add_done(own, forwards - memory_limit_, i, steps_[step].is_forward);
    return earliest_end(jobs_);
  }

  // Adds the W (and B) of `done` of the micro-batches x chunks before micro-batch i, those that are
  // ready first.
  void add_done(const std::vector<std::size_t>& own, std::int64_t done, std::int32_t i,
                bool with_inputs) {
    if (done <= 0 || i == 0) return;
    ready_.clear();
    std::int64_t least_input = kNever;
    std::int64_t most_input = 0;
    std::int64_t least_weight = kNever;
    for (const std::size_t other : own) {
      const Step& step = steps_[other];
      if (step.is_forward) continue;
      least_input = std::min(least_input, step.time);
      most_input = std::max(most_input, step.time);
      least_weight = std::min(least_weight, step.weight);
      for (std::int32_t j = 0; j < i; ++j) ready_.push_back(ends_[other][at(j)]);
    }
    const auto count = std::min(static_cast<std::size_t>(done), ready_.size());
    const auto middle = ready_.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(ready_.begin(), middle, ready_.end());
    const std::size_t newest = count - std::min(count, at(window_) * at(shape_.chunks));
    for (std::size_t k = newest; k < count; ++k) {
      jobs_.push_back({ready_[k], least_weight});
      if (with_inputs) jobs_.push_back({ready_[k] - most_input, least_input});
    }
  }

  const ScheduleShape& shape_;
  std::int64_t memory_limit_;
  std::int32_t window_ = 0;
  std::vector<Step> steps_;                      // F of all stages, then B back
  std::vector<std::vector<std::size_t>> own_;    // by rank: its steps
  std::vector<std::vector<std::int64_t>> ends_;  // by step and micro-batch
  std::vector<Job> jobs_;
  std::vector<std::int64_t> ready_;
};

}  // namespace

std::int64_t span_bound(const ScheduleShape& shape, const StageCosts& costs,
                        std::int64_t memory_limit) {
  assert(memory_limit >= shape.chunks);
  return Bound(shape, costs, memory_limit).run();
}

}  // namespace stepsim

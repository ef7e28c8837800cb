#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "schedules/pipeline/orders/interleaved.h"
#include "schedules/pipeline/published/make_schedule.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostStages = 1 << 16;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 40;
constexpr std::int64_t kMostInt64 = std::numeric_limits<std::int64_t>::max();
static_assert(kMostStages <= kMostInt64 / kMostMicrobatches / kMostChunks, "counts of ops fit");
static_assert(kMostMemory <= kMostInt64 / kMostMicrobatches, "memory of all micro-batches fits");

// Times that a forward stands for: F, B and W, each with a message behind it.
constexpr std::int64_t kTimesOfAForward = 6;
static_assert(kMostForwards <= kMostTime / kTimesOfAForward, "the largest schedule has some time");

// Returns " (5, 6, 10)", every group size that is allowed; "" if there is none.
std::string legal_groups(std::int64_t stages, std::int64_t microbatches) {
  constexpr int kShown = 8;
  std::string text;
  int shown = 0;
  for (std::int64_t group = stages; group <= microbatches; ++group) {
    if (!is_legal_group(group, stages, microbatches)) continue;
    if (shown++ == kShown) return " (" + text + ", ...)";
    text += (text.empty() ? "" : ", ") + std::to_string(group);
  }
  return text.empty() ? "" : " (" + text + ")";
}

// Returns "; nearest legal: 8 and 12": the nearest values below and above that the rule allows.
template <typename IsLegal>
std::string nearest(std::int64_t value, std::int64_t least, std::int64_t most,
                    const IsLegal& is_legal) {
  std::string text;
  const auto add = [&](std::int64_t legal) {
    text += (text.empty() ? "; nearest legal: " : " and ") + std::to_string(legal);
  };
  std::int64_t below = std::min(value - 1, most);
  while (below >= least && !is_legal(below)) --below;
  if (below >= least) add(below);
  std::int64_t above = std::max(value + 1, least);
  while (above <= most && !is_legal(above)) ++above;
  if (above <= most) add(above);
  return text;
}

class Checks {
 public:
  explicit Checks(const ScheduleRequest& request)
      : request_(request), row_(published(request.name)) {}

  std::vector<Problem> run() {
    const bool has_stages = check_stages();
    const bool has_microbatches = within("microbatches", request_.microbatches, kMostMicrobatches);
    const bool has_chunks = check_chunks();
    if (has_stages && has_microbatches) check_microbatches();
    check_group(has_stages && has_microbatches);
    check_memory_limit(has_stages);
    check_memory();
    const bool has_costs = check_costs() && check_stage_costs(has_stages && has_chunks);
    if (has_stages && has_microbatches && has_chunks) check_size(has_costs);
    return std::move(problems_);
  }

 private:
  void add(std::string field, std::string message) {
    problems_.push_back({std::move(field), std::move(message)});
  }
  std::string_view schedule() const { return row_.name; }

  bool within(const char* field, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return true;
    add(field, value < 1 ? fmt::format("must be at least 1, is {}", value)
                         : fmt::format("must be at most {}, is {}", most, value));
    return false;
  }

  bool check_stages() {
    if (!within("stages", request_.stages, kMostStages)) return false;
    if (row_.is_bidirectional() && request_.stages % 2 != 0) {
      add("stages",
          fmt::format(
              "must be even for {} (two directions), is {}{}", schedule(), request_.stages,
              nearest(request_.stages, 2, kMostStages, [](std::int64_t p) { return p % 2 == 0; })));
    }
    if (request_.stages < row_.least_stages) {
      add("stages", fmt::format("must be at least {} for {}, is {}", row_.least_stages, schedule(),
                                request_.stages));
    }
    return true;
  }

  bool check_chunks() {
    if (!request_.chunks) return true;
    const std::int64_t chunks = *request_.chunks;
    const auto exactly = [&](std::int64_t only) {
      if (chunks == only) return true;
      add("chunks", fmt::format("must be {} for {}, is {}", only, schedule(), chunks));
      return false;
    };
    switch (row_.chunks) {
      case ChunkRule::kOne:
        return exactly(1);
      case ChunkRule::kTwo:
        return exactly(2);
      case ChunkRule::kAny:
        return within("chunks", chunks, kMostChunks);
      case ChunkRule::kEven:
        break;
    }
    if (!within("chunks", chunks, kMostChunks)) return false;
    if (chunks % 2 == 0) return true;
    add("chunks",
        fmt::format("must be even for {} (two a wave), is {}{}", schedule(), chunks,
                    nearest(chunks, 2, kMostChunks, [](std::int64_t v) { return v % 2 == 0; })));
    return false;
  }

  void check_microbatches() {
    const std::int64_t stages = request_.stages;
    const std::int64_t microbatches = request_.microbatches;
    if (row_.has_groups && request_.microbatch_group) return;  // check_group() reports those
    if (row_.counts.is_legal(stages, microbatches)) return;
    add("microbatches",
        fmt::format(
            "must be {}{} for {}, is {}{}", row_.counts.text(stages),
            row_.has_groups ? legal_groups(stages, microbatches) : "", schedule(), microbatches,
            nearest(microbatches, 1, kMostMicrobatches,
                    [&](std::int64_t count) { return row_.counts.is_legal(stages, count); })));
  }

  void check_group(bool has_counts) {
    if (!request_.microbatch_group) return;
    const std::int64_t group = *request_.microbatch_group;
    if (!row_.has_groups) {
      add("microbatch_group", fmt::format("must not be given for {}: only {} have groups; is {}",
                                          schedule(), schedules_with(has_groups), group));
      return;
    }
    const std::int64_t stages = request_.stages;
    const std::int64_t microbatches = request_.microbatches;
    if (!has_counts || is_legal_group(group, stages, microbatches)) return;
    if (microbatches < stages) {
      add("microbatches", fmt::format("must be at least stages = {} with a microbatch_group, is {}",
                                      stages, microbatches));
      return;
    }
    add("microbatch_group",
        fmt::format("must be {} (stages) to {} (microbatches), and microbatches mod it 0 or at "
                    "least {}; is {}{}",
                    stages, microbatches, stages, group,
                    nearest(group, stages, microbatches, [&](std::int64_t size) {
                      return is_legal_group(size, stages, microbatches);
                    })));
  }

  void check_memory_limit(bool has_stages) {
    if (!request_.memory_limit) return;
    const std::int64_t limit = *request_.memory_limit;
    if (!row_.planning) {
      add("memory_limit",
          fmt::format("must not be given for {}: only {} are planned within one; is {}", schedule(),
                      schedules_with(plans_by_cost, "optimal"), limit));
      return;
    }
    const std::optional<std::int64_t> least = row_.planning->least_limit_in_stages;
    if (!least) {
      if (limit < 1) add("memory_limit", fmt::format("must be at least 1, is {}", limit));
    } else if (has_stages && limit < *least * request_.stages) {
      add("memory_limit", fmt::format("must be at least {} x stages = {} chunks for {}, is {}",
                                      *least, *least * request_.stages, schedule(), limit));
    }
  }

  void check_memory() {
    if (!request_.memory) return;
    const ActivationMemory& memory = *request_.memory;
    if (!counts_weight_memory(row_)) {
      add("memory", fmt::format("must not be given for {}: only {} count what B gives back",
                                schedule(), schedules_with(counts_weight_memory)));
    } else if (memory.weight < 1 || memory.weight > memory.forward ||
               memory.forward > kMostMemory) {
      add("memory", fmt::format("the memory of W must be at least 1 and at most that of F, which "
                                "must be at most {}; they are {} and {}",
                                kMostMemory, memory.weight, memory.forward));
    }
  }

  bool check_costs() {
    const std::size_t before = problems_.size();
    const auto time = [&](const char* field, std::int64_t value, std::int64_t least) {
      if (value >= least && value <= kMostTime) return;
      add(field, value < least ? fmt::format("must be {}, is {}",
                                             least == 1 ? "positive" : "at least 0", value)
                               : fmt::format("must be at most {}, is {}", kMostTime, value));
    };
    time("forward_time", request_.costs.forward, 1);
    time("backward_input_time", request_.costs.backward_input, 1);
    time("backward_weight_time", request_.costs.backward_weight, 1);
    time("send_time", request_.costs.send, 0);
    if (request_.costs.fused) {
      time("fused_time", *request_.costs.fused, 1);
      if (!row_.fuses) {
        add("fused_time",
            fmt::format("must not be given for {}: only {} fuse a forward with a backward",
                        schedule(), schedules_with(fuses)));
      }
    }
    return problems_.size() == before;
  }

  bool check_stage_costs(bool has_stages) {
    if (request_.stage_costs.empty()) return true;
    const std::size_t before = problems_.size();
    if (has_stages) {
      const std::int64_t stages = row_.stage_count(request_.stages, chunks_of(request_));
      const auto listed = static_cast<std::int64_t>(request_.stage_costs.size());
      if (listed != stages) {
        add("stage_costs",
            fmt::format("must be one of each of the {} global stages, are {}", stages, listed));
      }
    }
    const auto is_legal = [](const PipelineCosts& costs) {
      return std::min({costs.forward, costs.backward_input, costs.backward_weight}) >= 1 &&
             costs.send >= 0 && longest(costs) <= kMostTime;
    };
    if (!std::ranges::all_of(request_.stage_costs, is_legal)) {
      add("stage_costs", fmt::format("must be positive and at most {}", kMostTime));
    }
    const PipelineCosts& first = request_.stage_costs.front();
    if (std::ranges::any_of(request_.stage_costs,
                            [&](const PipelineCosts& costs) { return costs.send != first.send; })) {
      add("stage_costs", "must have the same send time");
    }
    if (first.fused || request_.costs.fused) {
      add("fused_time",
          "must not be given if stages differ: an op may fuse a forward of one stage with a "
          "backward of another");
    }
    return problems_.size() == before;
  }

  // Returns the field of the longest time.
  const char* longest_time() const {
    const PipelineCosts costs = longest_stage(costs_of(request_));
    const std::array<std::pair<std::int64_t, const char*>, 5> times = {
        {{costs.forward, "forward_time"},
         {costs.backward_input, "backward_input_time"},
         {costs.backward_weight, "backward_weight_time"},
         {costs.send, "send_time"},
         {costs.fused.value_or(0), "fused_time"}}};
    return std::ranges::max_element(times, {}, [](const auto& time) { return time.first; })->second;
  }

  void check_size(bool has_costs) {
    const std::int64_t chunks = chunks_of(request_);
    const std::int64_t forwards = request_.stages * request_.microbatches * chunks;
    if (forwards > kMostForwards) {
      add("microbatches",
          fmt::format("stages x microbatches x chunks must be at most {}, is {} x {} x {}",
                      kMostForwards, request_.stages, request_.microbatches, chunks));
    } else if (has_costs) {
      const std::int64_t most = kMostTime / forwards / kTimesOfAForward;
      if (longest(longest_stage(costs_of(request_))) > most) {
        add(longest_time(), fmt::format("must be at most {} ps for so many ops", most));
      }
    }
  }

  const ScheduleRequest& request_;
  const PublishedSchedule& row_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> check(const ScheduleRequest& request) {
  return Checks(request).run();
}

}  // namespace stepsim

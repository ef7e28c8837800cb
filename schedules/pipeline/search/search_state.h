// SearchState is a pipeline part of the way through a step: the ops in each rank's list, when each
// rank is free, and the messages on their way to it. search_orders() makes states op by op.
//
//   move m of a rank with V chunks   0..V-1 F of chunk m   V..2V-1 B of chunk m - V   2V W
//
// If a rank's list ends with an op that waits for another rank, nothing more is decided for it
// until that op has run.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedules/pipeline/compact_optional.h"
#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

struct OrderSearchRequest;

// SearchProblem holds the data that all states of a search share.
class SearchProblem {
 public:
  explicit SearchProblem(const OrderSearchRequest& request);

  std::int32_t moves() const { return 2 * chunks + 1; }
  bool is_weight(std::int32_t move) const { return move == 2 * chunks; }
  bool is_forward(std::int32_t move) const { return move < chunks; }
  std::int32_t chunk_of_move(std::int32_t move) const { return move % chunks; }
  std::int64_t time_of_move(std::int32_t rank, std::int32_t move) const;
  std::int64_t ops() const;  // number of ops of all ranks
  std::size_t counts_size() const;
  bool memory_binds() const { return memory_limit < std::int64_t{microbatches} * chunks; }

  std::size_t stage_of(std::int32_t rank, std::int32_t chunk) const {
    return stage_of_[static_cast<std::size_t>(rank * chunks + chunk)];
  }

  std::int32_t ranks;
  std::int32_t chunks;
  std::int32_t microbatches;
  std::int64_t memory_limit;
  std::int64_t send;
  std::span<const std::int64_t> deadlines;

  // Indexed by stage:
  std::vector<std::int32_t> rank_at;
  std::vector<std::int32_t> chunk_at;
  std::vector<char> is_local;  // whether the stage before is on the same rank
  std::vector<std::int64_t> forward_time;
  std::vector<std::int64_t> input_time;
  std::vector<std::int64_t> way_to_end;  // end of F here to end of B on the last stage
  // Indexed by rank:
  std::vector<std::int64_t> way_back;  // end of B on the last stage to end of B on chunk 0
  std::vector<std::int64_t> first_start;
  std::vector<std::int64_t> weight_time;

 private:
  std::vector<std::size_t> stage_of_;
};

// StateScore holds lower bounds on the result of a state. They are exact once all ops have run.
struct StateScore {
  std::int64_t span = 0;      // longest from a rank's first start to its last end
  std::int64_t makespan = 0;  // last end
  std::int64_t sum = 0;       // sum of all ranks' ends
  friend auto operator<=>(const StateScore&, const StateScore&) = default;
};

// States with equal `counts` have run the same ops. If all `times` of one are no later than those
// of the other, it can end no later.
struct PackedState {
  std::vector<std::int32_t> counts{};
  std::vector<std::int64_t> times{};
};

class SearchState {
 public:
  explicit SearchState(const SearchProblem& problem);

  // Returns the rank with ops left that is free first, if there is one.
  std::optional<std::int32_t> next_rank() const;

  // Returns whether the rank's list may continue with this move.
  bool may_run(std::int32_t rank, std::int32_t move) const;

  // Appends the move. Returns false if the state can be dropped, because it cannot meet a deadline
  // or another order is no worse. REQUIRES: may_run().
  bool run(std::int32_t rank, std::int32_t move);

  const StateScore& score() const { return score_; }

  void pack(PackedState& packed) const;
  void unpack(std::span<const std::int32_t> counts, std::span<const std::int64_t> times);

 private:
  std::size_t cell(std::int32_t rank, std::int32_t chunk) const {
    return static_cast<std::size_t>(rank * problem_->chunks + chunk);
  }
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  std::int64_t backwards_of(std::int32_t rank) const;
  std::int64_t in_flight(std::int32_t rank) const;
  bool can_run_now(std::int32_t rank, std::int32_t move) const;
  std::optional<std::int64_t> arrival(std::int32_t rank, std::int32_t move) const;
  std::int32_t source_of(std::int32_t rank) const;
  bool waits_for_itself(std::int32_t rank) const;
  bool start(std::int32_t rank, std::int32_t move);
  bool fits_before(std::int32_t rank, std::int32_t move, std::int64_t end) const;
  bool update_bounds();
  std::int32_t ran(bool is_forward, std::size_t stage) const;
  std::int64_t earliest_input(std::int32_t rank, std::int32_t move) const;
  std::int64_t earliest(std::int32_t rank) const;
  std::int64_t idle_for_gradient(std::int32_t rank) const;

  const SearchProblem* problem_;
  std::vector<std::int32_t> forwards_;   // ops in the list, by rank and chunk
  std::vector<std::int32_t> backwards_;  // the same for B
  std::vector<std::int32_t> weights_;    // by rank
  // Indexed by rank: the move at the end of its list, if it waits.
  std::vector<CompactOptional<std::int32_t>> waiting_;
  std::vector<char> after_weight_;  // by rank: whether its last op was a W
  std::vector<std::int64_t> free_;  // by rank: end of the last op that ran
  // Indexed by stage: when results of the stage before it (or after it, for gradients) arrive.
  std::vector<std::vector<std::int64_t>> activations_;
  std::vector<std::vector<std::int64_t>> gradients_;
  StateScore score_;
};

}  // namespace stepsim

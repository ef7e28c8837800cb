// OrderLists are the lists of F, B and W of a schedule as numbers of ops. They can be changed a
// little and replayed again and again: spans() computes the same as replay(), much faster. It
// relies on F and B waiting for at most one op of another rank. All other waits follow from the
// list's order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/pipeline/compact_optional.h"
#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

class OrderLists {
 public:
  // REQUIRES: F, B and W only; check_order(schedule) is empty.
  OrderLists(const PipelineSchedule& schedule, const StageCosts& costs);

  std::size_t ranks() const { return lists_.size(); }
  const std::vector<std::vector<std::int32_t>>& lists() const { return lists_; }
  std::vector<std::int32_t>& list(std::size_t rank) { return lists_[rank]; }
  const PipelineOp& op(std::int32_t number) const { return ops_[at(number)]; }

  struct Spans {
    std::int64_t longest = 0;  // longest span of a rank, first start to last end
    std::int64_t all = 0;      // sum over all ranks
  };
  // Returns nullopt if ranks wait for each other. It takes 1 to 2 ns per op.
  std::optional<Spans> spans();

  std::vector<RankOrder> orders(const std::vector<std::vector<std::int32_t>>& lists) const;

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  bool advance(std::int32_t rank);

  std::vector<std::vector<std::int32_t>> lists_;  // by rank
  // Indexed by op:
  std::vector<PipelineOp> ops_;
  std::vector<std::int64_t> times_;
  std::vector<CompactOptional<std::int32_t>> sources_;  // the awaited op on another rank
  std::vector<std::int64_t> lags_;
  std::vector<CompactOptional<std::int64_t>> ends_;
  std::vector<CompactOptional<std::int32_t>> waiting_;  // the rank that waits for this op
  // Indexed by rank:
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> free_;
  std::vector<std::int32_t> queue_;
};

}  // namespace stepsim

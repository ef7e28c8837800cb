// The algorithm table has one row for each algorithm that a collective can run by. A row says all
// there is to declare: its name, which operations it can do, in which groups, when `auto` may take
// it, and how it is made. choose_algorithm() reads it; docs/adding-a-collective.md adds to it.
//
// The closed form of an algorithm is in a table of its own, for it needs nothing of the messages
// (analysis/collective_forms/form_table.cc).

#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/auto_bids.h"
#include "sim/collectives/collective.h"

namespace stepsim {

class OpSet {
 public:
  constexpr OpSet(std::initializer_list<CollectiveOp> ops) {
    for (const CollectiveOp op : ops) bits_ |= 1U << static_cast<unsigned>(op);
  }
  constexpr bool contains(CollectiveOp op) const {
    return (bits_ >> static_cast<unsigned>(op) & 1U) != 0;
  }

 private:
  std::uint32_t bits_ = 0;
};

struct AlgorithmRow {
  AlgorithmChoice choice;
  std::string_view name;  // as on the command line
  OpSet ops;

  // Why it can't do the operation in a group of this shape: "needs ...". Empty: it can.
  std::string (*misfit)(CollectiveOp op, const GroupShape& shape);

  // Why it can't do an all-to-all by this matrix, though it can do one of equal shards. Empty: it
  // can.
  std::string (*matrix_misfit)(const ByteMatrix& matrix, const GroupShape& shape);

  // What `auto` expects it to cost; nothing where `auto` never takes it. Asked only for operations
  // and groups that it can do.
  std::optional<AutoBid> (*bid)(const CollectiveTask& task, const GroupShape& shape);

  // REQUIRES: it can do the task in the group. The algorithm keeps what the task refers to.
  std::unique_ptr<CollectiveAlgorithm> (*make)(const CollectiveTask& task, const GroupShape& shape);
};

// In the order of AlgorithmChoice, without kAuto. Where two bids are equal `auto` takes the first.
std::span<const AlgorithmRow> algorithm_table();

// REQUIRES: choice is not kAuto.
const AlgorithmRow& row_of(AlgorithmChoice choice);

}  // namespace stepsim

// The algorithm table has one row for each collective algorithm. A row declares everything about
// it: its name, the operations it can do, the groups it can run in, whether `auto` weighs it, and
// its maker. choose_algorithm() reads the table; docs/adding-a-collective.md explains how to add a
// row.
//
// The closed form of an algorithm is in a separate table, because it does not depend on the
// messages (books/collective_forms/form_table.cc).

#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/algorithm.h"
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

enum class Weighed : std::uint8_t {
  kNo,
  kYes,
  kAlone,  // the task is made for it: nothing else is weighed
};

struct AlgorithmRow {
  AlgorithmChoice choice = AlgorithmChoice::kAuto;  // the table numbers rows without an enumerator
  std::string_view name;                            // as on the command line
  OpSet ops;

  // Returns why it cannot do the operation in a group of this shape: "needs ...". Empty: it can.
  std::string (*misfit)(CollectiveOp op, const GroupShape& shape);

  // Returns why it cannot do an all-to-all with this matrix, though it can do one with equal
  // shards. Empty: it can.
  std::string (*matrix_misfit)(const ByteMatrix& matrix, const GroupShape& shape);

  // Returns whether `auto` weighs it without a library. Asked only for operations and groups that
  // it can do.
  Weighed (*weighed)(const CollectiveTask& task, const GroupShape& shape);

  // REQUIRES: it can do the task in the group. The algorithm refers to the tables of the task.
  std::unique_ptr<CollectiveAlgorithm> (*make)(const CollectiveTask& task, const GroupShape& shape);
};

// The rows in the order of AlgorithmChoice, without kAuto.
std::span<const AlgorithmRow> algorithm_table();

// Returns the algorithms that one can ask for by name: `auto`, and all but kCustom.
std::vector<AlgorithmChoice> named_algorithms();

// REQUIRES: choice is not kAuto.
const AlgorithmRow& row_of(AlgorithmChoice choice);

}  // namespace stepsim

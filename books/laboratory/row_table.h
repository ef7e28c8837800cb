// RowTable builds rows that have most of their fields in common.
//
//   RowTable rows({.formula = "C5", .predicted = 2e-3}, {0, 0.04});   // packets: up to 4 % more
//   rows.add("ring", "8 H100, ring", around(0, 1e-4), "each GPU receives 7/8 of V", simulate);
//   rows.testing("C11", 3e-3).add("nodes", ...).expected_unshared = around(1, 1e-4);
//   return std::move(rows).take();

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "books/laboratory/study.h"

namespace stepsim {

class RowTable {
 public:
  // `common`: the fields that a row has unless it sets them. `on_packets`: how much the expected
  // range widens, down and up, on packets.
  explicit RowTable(StudyRow common, DifferenceRange on_packets = {})
      : common_(std::move(common)), on_packets_(on_packets) {}

  // Sets the formula and value with which the following rows are compared.
  RowTable& testing(std::string formula, double predicted, std::string unit = "s") {
    common_.formula = std::move(formula);
    common_.predicted = predicted;
    common_.unit = std::move(unit);
    return *this;
  }

  // Returns the row. The reference is valid until the next one is added.
  StudyRow& add(std::string id, std::string regime, DifferenceRange expected, std::string why,
                std::function<double(const Laboratory&)> simulate) {
    StudyRow row = common_;
    row.id = std::move(id);
    row.regime = std::move(regime);
    row.expected = expected;
    row.why = std::move(why);
    row.simulate = std::move(simulate);
    if (on_packets_.low != 0 || on_packets_.high != 0) {
      row.expected_packets =
          DifferenceRange{expected.low + on_packets_.low, expected.high + on_packets_.high};
    }
    rows_.push_back(std::move(row));
    return rows_.back();
  }

  std::vector<StudyRow> take() && { return std::move(rows_); }

 private:
  StudyRow common_;
  DifferenceRange on_packets_;
  std::vector<StudyRow> rows_;
};

}  // namespace stepsim

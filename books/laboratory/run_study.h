// Runs the rows of a study and judges them.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "books/laboratory/study.h"

namespace stepsim {

struct RowOutcome {
  std::string id{};  // in full: "S3.split-n16"
  Fidelity fidelity = Fidelity::kFlow;
  DifferenceRange expected{};         // on this network model
  std::optional<double> simulated{};  // unset: the row was skipped
  std::string skipped{};              // the reason
  double difference = 0;              // simulated / predicted - 1
  bool as_expected = true;            // true also if the row was skipped
  bool holds = false;                 // whether the difference is within the row's tolerance
};

std::string row_id(const Study& study, const StudyRow& row);

// Returns the range that the row expects on this network model.
DifferenceRange expected_range(const StudyRow& row, Fidelity fidelity);

RowOutcome run_row(const Study& study, const StudyRow& row, const Laboratory& laboratory);

// Simulates every point of the sweep. Points that are skipped are left out.
Plot run_sweep(const Sweep& sweep, const Laboratory& laboratory);

}  // namespace stepsim

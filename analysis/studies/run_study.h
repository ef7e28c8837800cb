// Running the rows of a study, and judging them.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/study.h"

namespace stepsim {

struct RowOutcome {
  std::string id{};  // in full: "S3.split-n16"
  Fidelity fidelity = Fidelity::kFlow;
  DifferenceRange expected{};         // of this network model
  std::optional<double> simulated{};  // nothing: skipped
  std::string skipped{};              // the reason
  double difference = 0;              // simulated / predicted - 1
  bool as_expected = true;            // also where it was skipped
  bool holds = false;                 // within the regime's tolerance of the formula
};

std::string row_id(const Study& study, const StudyRow& row);

// What the row expects on this network model.
DifferenceRange expected_range(const StudyRow& row, Fidelity fidelity);

RowOutcome run_row(const Study& study, const StudyRow& row, const Laboratory& laboratory);

// Simulates every point of the sweep. Points that are skipped are left out.
Plot run_sweep(const Sweep& sweep, const Laboratory& laboratory);

}  // namespace stepsim

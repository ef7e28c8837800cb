// Compares the size of every model of the catalog with what its publisher says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "proto/load_experiment.h"
#include "sim/base/csv_table.h"
#include "tests/support/reference_folder.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// A published figure and how far off rounding can have put it.
struct Figure {
  double value = 0;
  double rounded_by = 0;  // half of its last digit
};

// Reads "70.6B", "400M" or "8053338176".
Figure figure(std::string_view text) {
  const std::string number(text);
  const double value = std::strtod(number.c_str(), nullptr);
  const std::size_t units = std::string_view("0MBT").find(number.empty() ? '0' : number.back());
  if (units == 0 || units == std::string_view::npos) return {value, 0};
  const double unit = std::pow(1000, static_cast<double>(units) + 1);
  const std::size_t point = number.find('.');
  const std::size_t digits = point == std::string::npos ? 0 : number.size() - point - 2;
  return {value * unit, unit / 2 / std::pow(10, static_cast<double>(digits))};
}

CsvTable published() {
  return read_csv((reference_folder() / "models" / "published_parameters.csv").string());
}

TEST(PublishedModelsTest, HaveThePublishedParameters) {
  const CsvTable table = published();
  ASSERT_GE(table.records.size(), 100U);
  for (std::size_t row = 0; row < table.records.size(); ++row) {
    const std::string name(table.at(row, "model"));
    const ModelSpec model = load_model(name);
    double total = static_cast<double>(parameter_count(model));
    if (table.at(row, "prediction") == "yes") {
      total += static_cast<double>(prediction_parameter_count(model));
    }
    total += figure(table.at(row, "other_parts")).value;
    const Figure said = figure(table.at(row, "total"));
    EXPECT_NEAR(total, said.value, std::max(0.005 * said.value, said.rounded_by)) << name;
  }
}

// Printed figures are rounded, and some leave embeddings out.
TEST(PublishedModelsTest, HaveThePublishedActiveParameters) {
  const CsvTable table = published();
  for (std::size_t row = 0; row < table.records.size(); ++row) {
    const Figure said = figure(table.at(row, "active"));
    if (said.value == 0) continue;
    const std::string name(table.at(row, "model"));
    const ModelSpec model = load_model(name);
    const auto active = static_cast<double>(active_parameter_count(model));
    const double tables = static_cast<double>(model.embedding.vocabulary * model.hidden) *
                          (model.embedding.tied ? 1 : 2);
    EXPECT_GT(active, 0.96 * said.value - said.rounded_by) << name;
    EXPECT_LT(active - tables, 1.04 * said.value + said.rounded_by) << name;
  }
}

}  // namespace
}  // namespace stepsim

#include "goodput/energy/run_energy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "goodput/energy/carbon_table.h"

namespace stepsim {
namespace {

CsvTable table_of(std::string column, const std::vector<std::vector<std::string>>& records) {
  CsvTable table{.file = "grid.csv", .header = {std::move(column), "grams_per_kwh"}};
  for (const auto& record : records) {
    table.records.push_back(record);
    table.lines.push_back(static_cast<std::uint32_t>(table.lines.size() + 2));
  }
  return table;
}

// Every hour of the day emits as many grams as its number.
CsvTable day() {
  std::vector<std::vector<std::string>> records;
  for (int hour = 23; hour >= 0; --hour) {
    records.push_back({std::to_string(hour), std::to_string(hour)});
  }
  return table_of("hour", records);
}

CarbonTable read_table(const CsvTable& table) {
  std::vector<Problem> problems;
  CarbonTable carbon = carbon_of(table, problems);
  EXPECT_TRUE(problems.empty()) << problems.front().field << problems.front().message;
  return carbon;
}

std::string text_of_problems(const CsvTable& table) {
  std::vector<Problem> problems;
  carbon_of(table, problems);
  std::string text;
  for (const Problem& problem : problems) text += problem.field + ": " + problem.message + "\n";
  return text;
}

TEST(CarbonTableTest, ANumberHoldsAtAllTimes) {
  EXPECT_DOUBLE_EQ(mean_grams(constant_carbon(380), 0.5), 380);
  EXPECT_DOUBLE_EQ(mean_grams(constant_carbon(380), 1e6), 380);
  EXPECT_TRUE(std::isinf(hours_of(constant_carbon(380))));
}

TEST(CarbonTableTest, HoursComeAgainEveryDay) {
  const CarbonTable carbon = read_table(day());
  EXPECT_DOUBLE_EQ(mean_grams(carbon, 2), 0.5);
  EXPECT_DOUBLE_EQ(mean_grams(carbon, 24), 11.5);
  EXPECT_DOUBLE_EQ(mean_grams(carbon, 240), 11.5);
  EXPECT_DOUBLE_EQ(mean_grams(carbon, 25), 24 * 11.5 / 25);
}

// 100 g for six hours, 200 g for the 18 until midnight, 300 g as long: the table ends at 18:00.
TEST(CarbonTableTest, ADateHoldsUntilTheNextOne) {
  const CarbonTable carbon = read_table(table_of(
      "date", {{"2024-02-28", "100"}, {"2024-02-28T06:00Z", "200"}, {"2024-02-29", "300"}}));
  EXPECT_DOUBLE_EQ(hours_of(carbon), 42);
  EXPECT_DOUBLE_EQ(mean_grams(carbon, 12), 150);
  EXPECT_DOUBLE_EQ(mean_grams(carbon, 42), (600 + 3600 + 5400) / 42.0);
  EXPECT_DOUBLE_EQ(hours_of(read_table(table_of("date", {{"2024-02-29", "1"}}))), 24);
}

TEST(CarbonTableTest, EveryRowThatIsWrongIsSaid) {
  const std::string text = text_of_problems(table_of("date", {{"2023-02-29", "1"},
                                                              {"2024-05-02", "-1"},
                                                              {"2024-05-01", "1"},
                                                              {"2024-05-03T24:00", "1"},
                                                              {"2024-05-04", "many"}}));
  for (const char* line : {"grid.csv:2: date", "grid.csv:3: grams_per_kwh", "grid.csv:4: date",
                           "grid.csv:5: date", "grid.csv:6: grams_per_kwh"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_NE(text_of_problems(table_of("hour", {{"0", "1"}, {"0", "1"}, {"24", "1"}}))
                .find("grid.csv:3: hour must be a whole hour"),
            std::string::npos);
  EXPECT_NE(text_of_problems(table_of("hour", {{"0", "1"}})).find("all hours from 0 to 23, has 1"),
            std::string::npos);
  EXPECT_NE(text_of_problems(table_of("week", {{"0", "1"}})).find("hour or date"),
            std::string::npos);
  EXPECT_NE(text_of_problems(table_of("date", {})).find("must have a row"), std::string::npos);
}

// 16 chips for ten days, eight of which work, and eight spare ones; 100 W idle and 500 W at work.
TEST(RunEnergyTest, ChipsThatStandStillAndSparesDrawIdleWatts) {
  GoodputResult result{.mean_days = 10};
  result.parts_days = {7, 0.5, 1, 0.5, 0.5, 0.5};
  const RunSetup setup{.nodes = 2, .spares = 1};
  const JobShape job{.chips = 16, .chips_per_node = 8};
  const RunPower power{.step_watts = 500, .idle_watts = 100, .pue = 1.5};
  const RunEnergy energy = energy_of_run(power, setup, job, result, nullptr);
  const double working = 16 * 8 * 24 * 0.5;
  const double standing = (16 * 2 + 8 * 10) * 24 * 0.1;
  EXPECT_DOUBLE_EQ(energy.standing_kilowatt_hours, 1.5 * standing);
  EXPECT_DOUBLE_EQ(energy.kilowatt_hours, 1.5 * (working + standing));
  EXPECT_DOUBLE_EQ(energy.mean_watts, energy.kilowatt_hours * 1000 / 240);
  EXPECT_FALSE(energy.carbon_kilograms);
  const CarbonTable carbon = constant_carbon(400);
  EXPECT_DOUBLE_EQ(energy_of_run(power, setup, job, result, &carbon).carbon_kilograms.value(),
                   energy.kilowatt_hours * 0.4);
}

TEST(RunEnergyTest, ATableMustLastAsLongAsTheRun) {
  const GoodputResult result{.mean_days = 10};
  const CarbonTable carbon = read_table(table_of("date", {{"2024-05-01", "1"}}));
  EXPECT_THROW(energy_of_run({.step_watts = 1}, {}, {}, result, &carbon), ConfigError);
}

}  // namespace
}  // namespace stepsim

#include "goodput/energy/carbon_table.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::int64_t kHours = 24;
constexpr std::string_view kGrams = "grams_per_kwh";

std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() < at + count) return std::nullopt;
  return number_in<int>(text.substr(at, count));
}

// "T13:00", or " 13:00:30", perhaps with a Z.
std::optional<double> hours_of_time(std::string_view text) {
  if (text.ends_with('Z')) text.remove_suffix(1);
  const bool has_seconds = text.size() == 9;
  const bool is_time = (text.size() == 6 || has_seconds) && (text[0] == 'T' || text[0] == ' ') &&
                       text[3] == ':' && (!has_seconds || text[6] == ':');
  if (!is_time) return std::nullopt;
  const auto hour = digits_at(text, 1, 2);
  const auto minute = digits_at(text, 4, 2);
  const auto second = has_seconds ? digits_at(text, 7, 2) : 0;
  if (!hour || !minute || !second) return std::nullopt;
  if (*hour < 0 || *hour > 23 || *minute < 0 || *minute > 59 || *second < 0 || *second > 59) {
    return std::nullopt;
  }
  return *hour + *minute / 60.0 + *second / 3600.0;
}

// "2025-01-31", perhaps with a time: hours since 1970.
std::optional<double> hours_of_date(std::string_view text) {
  constexpr std::size_t kDate = 10;
  if (text.size() < kDate || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = digits_at(text, 0, 4);
  const auto month = digits_at(text, 5, 2);
  const auto day = digits_at(text, 8, 2);
  if (!year || !month || !day || *year < 1 || *month < 1 || *day < 1) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  const auto time = text.size() == kDate ? 0.0 : hours_of_time(text.substr(kDate));
  if (!time) return std::nullopt;
  return static_cast<double>(days * kHours) + *time;
}

// Reads the rows of one file, with a problem for each that is wrong.
class CarbonRows {
 public:
  CarbonRows(const CsvTable& table, std::vector<Problem>& problems)
      : table_(table), problems_(problems) {}

  CarbonTable hours() {
    CarbonTable carbon{.end_hours = kHours};
    std::set<std::int64_t> seen;
    for (std::size_t i = 0; i < table_.records.size(); ++i) {
      const auto hour = table_.integer(i, "hour");
      if (!hour || *hour < 0 || *hour >= kHours || !seen.insert(*hour).second) {
        refuse(i, "hour", "must be a whole hour of the day, 0 to 23, each once");
      }
      carbon.rows.push_back({static_cast<double>(hour.value_or(0)), grams(i)});
    }
    if (problems_.empty() && seen.size() != kHours) {
      problems_.push_back(
          {table_.file, "must have all hours from 0 to 23, has " + std::to_string(seen.size())});
    }
    std::ranges::sort(carbon.rows, {}, &CarbonTable::Row::from_hours);
    return carbon;
  }

  CarbonTable dates() {
    CarbonTable carbon{.repeats = false};
    std::optional<double> before;
    double first = 0;
    double length = kHours;
    for (std::size_t i = 0; i < table_.records.size(); ++i) {
      const auto at = hours_of_date(table_.at(i, "date"));
      if (!at || (before && *at <= *before)) {
        refuse(i, "date",
               "must be later than the one before, such as 2025-01-31 or "
               "2025-01-31T13:00");
        continue;
      }
      if (before) length = *at - *before;
      if (!before) first = *at;
      before = at;
      carbon.rows.push_back({*at - first, grams(i)});
    }
    if (!carbon.rows.empty()) carbon.end_hours = carbon.rows.back().from_hours + length;
    return carbon;
  }

 private:
  void refuse(std::size_t record, std::string_view column, std::string_view accepted) {
    if (problems_.size() >= kMostProblems) return;
    problems_.push_back({table_.file + ":" + std::to_string(table_.lines[record]),
                         std::string(column) + " " + std::string(accepted) + ", is \"" +
                             shortened(table_.at(record, column)) + "\""});
  }

  double grams(std::size_t record) {
    const auto value = table_.number(record, kGrams);
    if (value && *value >= 0 && *value <= kMostGrams) return *value;
    refuse(record, kGrams, "must be a number from 0 to 10000");
    return 0;
  }

  static constexpr std::size_t kMostProblems = 100;  // that are listed
  const CsvTable& table_;
  std::vector<Problem>& problems_;
};

// The grams of each hour of the first ones, summed. REQUIRES: hours <= end_hours.
double sum_of(const CarbonTable& table, double hours) {
  double sum = 0;
  for (std::size_t i = 0; i < table.rows.size() && table.rows[i].from_hours < hours; ++i) {
    const bool is_last = i + 1 == table.rows.size();
    const double until = is_last ? table.end_hours : table.rows[i + 1].from_hours;
    sum += table.rows[i].grams * (std::min(until, hours) - table.rows[i].from_hours);
  }
  return sum;
}

}  // namespace

CarbonTable constant_carbon(double grams) {
  return {.rows = {{.from_hours = 0, .grams = grams}}};
}

CarbonTable carbon_of(const CsvTable& table, std::vector<Problem>& problems) {
  const bool has_hours = table.has("hour");
  if (has_hours == table.has("date") || !table.has(kGrams)) {
    problems.push_back({table.file, "must have the columns hour or date, and grams_per_kwh"});
    return {};
  }
  if (table.records.empty()) {
    problems.push_back({table.file, "must have a row"});
    return {};
  }
  std::vector<Problem> own;
  CarbonRows rows(table, own);
  CarbonTable carbon = has_hours ? rows.hours() : rows.dates();
  problems.insert(problems.end(), own.begin(), own.end());
  return carbon;
}

double hours_of(const CarbonTable& table) {
  return table.repeats ? std::numeric_limits<double>::infinity() : table.end_hours;
}

double mean_grams(const CarbonTable& table, double hours) {
  const double whole = table.repeats ? std::floor(hours / table.end_hours) : 0;
  const double rest = hours - whole * table.end_hours;
  return (whole * sum_of(table, table.end_hours) + sum_of(table, rest)) / hours;
}

}  // namespace stepsim

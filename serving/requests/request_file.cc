#include "serving/requests/request_file.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/csv_table.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostWrongRows = 100;
constexpr std::int64_t kMostPriority = 1'000'000;

class RowReader {
 public:
  RowReader(const std::string& path, const std::string& where, bool with_arrivals)
      : path_(path), with_arrivals_(with_arrivals), table_(read_csv(path)) {
    read_header();
    read_where(where);
  }

  RequestRows read() {
    RequestRows rows;
    for (std::size_t record = 0; record < table_.records.size(); ++record) {
      if (!where_.first.empty() && table_.at(record, where_.first) != where_.second) continue;
      if (problems_.size() >= kMostWrongRows) break;
      rows.requests.push_back(read_row(record));
    }
    rows.prefixes = static_cast<std::uint32_t>(prefixes_.size());
    if (rows.requests.empty() && problems_.empty()) {
      problems_.push_back({path_, where_.first.empty() ? "has no requests"
                                                       : "has no requests where " + where_.first +
                                                             " is \"" + where_.second + "\""});
    }
    throw_if_any(std::move(problems_));
    return rows;
  }

 private:
  void read_header() {
    for (const char* const column : {"input_tokens", "output_tokens"}) {
      if (!table_.has(column)) missing(column);
    }
    in_microseconds_ = table_.has("arrival_us");
    if (with_arrivals_ && in_microseconds_ == table_.has("arrival_s")) {
      problems_.push_back({path_, "must have either the column arrival_s or arrival_us"});
    }
    if (table_.has("prefix") != table_.has("prefix_tokens")) {
      problems_.push_back({path_, "must have both columns prefix and prefix_tokens, or neither"});
    }
    throw_if_any(std::exchange(problems_, {}));
  }

  void missing(const std::string& column) {
    problems_.push_back({path_, "must have the column " + column});
  }

  void read_where(const std::string& where) {
    if (where.empty()) return;
    const std::size_t colon = std::min(where.find(':'), where.size());
    where_.first = where.substr(0, colon);
    if (colon < where.size()) where_.second = where.substr(colon + 1);
    if (colon == where.size() || !table_.has(where_.first)) {
      throw ConfigError({{"--requests where", "must be COLUMN:VALUE with a column of " + path_ +
                                                  ", is \"" + shortened(where) + "\""}});
    }
  }

  Request read_row(std::size_t record) {
    Request request;
    request.input_tokens = tokens(record, "input_tokens");
    request.output_tokens = tokens(record, "output_tokens");
    if (with_arrivals_) request.arrival = arrival(record);
    if (table_.has("prefix")) read_prefix(record, request);
    if (table_.has("priority")) request.priority = priority(record);
    return request;
  }

  void complain(std::size_t record, const std::string& column, const std::string& message) {
    problems_.push_back({path_ + ":" + std::to_string(table_.lines[record]) + " " + column,
                         message + ", is \"" + shortened(table_.at(record, column)) + "\""});
  }

  std::int32_t tokens(std::size_t record, const std::string& column) {
    const auto value = table_.integer(record, column);
    if (value && *value >= 1 && *value <= kMostRequestTokens) {
      return static_cast<std::int32_t>(*value);
    }
    complain(record, column,
             "must be a whole number from 1 to " + std::to_string(kMostRequestTokens));
    return 1;
  }

  Time arrival(std::size_t record) {
    const std::string column = in_microseconds_ ? "arrival_us" : "arrival_s";
    const std::string text(table_.at(record, column));
    const bool is_number = number_in<double>(text).has_value();
    const auto time = parse_duration(text + (in_microseconds_ ? "us" : "s"));
    if (!is_number || !time) {
      complain(record, column, "must be a time that is not negative");
    } else if (*time < last_arrival_) {
      complain(record, column,
               "must not be before the row above (" + exact_seconds(last_arrival_) + " s)");
    } else {
      last_arrival_ = *time;
    }
    return Time{last_arrival_};
  }

  void read_prefix(std::size_t record, Request& request) {
    const std::string_view name = table_.at(record, "prefix");
    if (name.empty()) return;
    const auto value = table_.integer(record, "prefix_tokens");
    if (!value || *value < 0 || *value > request.input_tokens) {
      complain(record, "prefix_tokens", "must be a whole number from 0 to input_tokens");
      return;
    }
    const auto next = static_cast<std::uint32_t>(prefixes_.size());
    request.prefix = prefixes_.try_emplace(std::string(name), PrefixId(next)).first->second;
    request.prefix_tokens = static_cast<std::int32_t>(*value);
  }

  std::int32_t priority(std::size_t record) {
    const auto value = table_.integer(record, "priority");
    if (value && *value >= -kMostPriority && *value <= kMostPriority) {
      return static_cast<std::int32_t>(*value);
    }
    complain(record, "priority", "must be a whole number from -1000000 to 1000000");
    return 0;
  }

  const std::string& path_;
  bool with_arrivals_;
  CsvTable table_;
  bool in_microseconds_ = false;
  std::pair<std::string, std::string> where_;
  Duration last_arrival_{};
  std::map<std::string, PrefixId> prefixes_;
  std::vector<Problem> problems_;
};

}  // namespace

RequestRows read_request_file(const std::string& path, const std::string& where,
                              bool with_arrivals) {
  return RowReader(path, where, with_arrivals).read();
}

}  // namespace stepsim

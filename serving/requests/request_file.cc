#include "serving/requests/request_file.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "serving/requests/json_lines.h"
#include "sim/base/csv_table.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostWrongRows = 100;
constexpr std::int64_t kMostPriority = 1'000'000;

enum class TimeKind { kNumber, kDate };

// How one kind of file names what a request is.
struct TraceColumns {
  std::string_view arrival;
  std::string_view unit;  // of the numbers of `arrival`
  std::string_view input;
  std::string_view output;
  TimeKind time = TimeKind::kNumber;
  bool is_own = false;  // files of this program: rows are in order, and each is a request
  std::string_view chain = {};
  std::int32_t piece_tokens = 1;
};

constexpr TraceColumns kTraces[] = {
    {.arrival = "arrival_us",
     .unit = "us",
     .input = "input_tokens",
     .output = "output_tokens",
     .is_own = true},
    {.arrival = "arrival_s",
     .unit = "s",
     .input = "input_tokens",
     .output = "output_tokens",
     .is_own = true},
    {.arrival = "timestamp",
     .unit = "ms",
     .input = "input_length",
     .output = "output_length",
     .chain = "hash_ids",
     .piece_tokens = 512},
    {.arrival = "TIMESTAMP",
     .unit = "",
     .input = "ContextTokens",
     .output = "GeneratedTokens",
     .time = TimeKind::kDate},
    {.arrival = "Timestamp", .unit = "s", .input = "Request tokens", .output = "Response tokens"},
    {.arrival = "arrived_at",
     .unit = "s",
     .input = "num_prefill_tokens",
     .output = "num_decode_tokens"},
    {.arrival = "start_times", .unit = "s", .input = "input_lens", .output = "output_lens"}};
constexpr const TraceColumns& kOwnColumns = kTraces[1];

CsvTable read_table(const std::string& path) {
  const TextOrProblem read = read_input(path, InputKind::kTable);
  if (!read.text) throw ConfigError({{path, "can't be read: " + read.problem}});
  const std::size_t first = read.text->find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && (*read.text)[first] == '{';
  return is_json ? read_json_lines(path, *read.text) : csv_of(path, *read.text);
}

// Returns the number in `text` up to `end`, which is moved behind it and one character more.
std::optional<std::int64_t> take_number(std::string_view& text, std::string_view ends) {
  const std::size_t end = std::min(text.find_first_of(ends), text.size());
  const auto number = number_in<std::int64_t>(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return number;
}

// Returns the time of "2023-11-16 18:17:03.9799600", with a T or a blank, since the day `first`,
// which is this one where it is unset. Picoseconds of 64 bits last for a hundred days.
std::optional<Duration> time_of_date(std::string_view text, std::optional<std::int64_t>& first) {
  while (text.ends_with('Z') || text.ends_with(' ')) text.remove_suffix(1);
  const auto year = take_number(text, "-");
  const auto month = take_number(text, "-");
  const auto day = take_number(text, " T");
  const auto hour = take_number(text, ":");
  const auto minute = take_number(text, ":");
  const auto seconds = parse_duration(std::string(text.substr(0, text.find('+'))) + "s");
  if (!year || !month || !day || !hour || !minute || !seconds) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59) return std::nullopt;
  constexpr std::int64_t kMostDays = 100;
  const std::int64_t number = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t days = number - first.value_or(number);
  if (days < -kMostDays || days > kMostDays) return std::nullopt;
  if (!first) first = number;
  constexpr std::int64_t kSecondsAnHour = 3600;
  return duration_from_seconds(
             static_cast<double>((days * 24 + *hour) * kSecondsAnHour + *minute * 60)) +
         *seconds;
}

class RowReader {
 public:
  RowReader(const std::string& path, const std::string& where, bool with_arrivals)
      : path_(path), with_arrivals_(with_arrivals), table_(read_table(path)) {
    read_header();
    read_where(where);
  }

  RequestRows read() {
    RequestRows rows;
    for (std::size_t record = 0; record < table_.records.size(); ++record) {
      if (!where_.first.empty() && table_.at(record, where_.first) != where_.second) continue;
      if (problems_.size() >= kMostWrongRows) break;
      if (!columns_->is_own && table_.at(record, columns_->output) == "0") continue;
      rows.requests.push_back(read_row(record, rows));
    }
    if (!columns_->is_own) count_from_first(rows.requests);
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
  static void count_from_first(std::vector<Request>& requests) {
    std::ranges::stable_sort(requests, {}, &Request::arrival);
    if (requests.empty()) return;
    const Duration first = requests.front().arrival.since_start;
    for (Request& request : requests) request.arrival = Time{request.arrival.since_start - first};
  }

  void read_header() {
    const bool has_both = table_.has("arrival_us") && table_.has("arrival_s");
    for (const TraceColumns& columns : kTraces) {
      if (columns_ == nullptr && table_.has(columns.input) && table_.has(columns.output) &&
          (table_.has(columns.arrival) || !with_arrivals_ || columns.input == "input_lens")) {
        columns_ = &columns;
      }
    }
    const bool is_own = columns_ == nullptr || columns_->is_own;
    if (columns_ == nullptr) columns_ = &kOwnColumns;
    if (!is_own) return;
    for (const std::string_view column : {columns_->input, columns_->output}) {
      if (!table_.has(column)) missing(std::string(column));
    }
    if (with_arrivals_ && (has_both || !table_.has(columns_->arrival))) {
      problems_.push_back({path_, "must have either the column arrival_s or arrival_us"});
    }
    if (table_.has("prefix") != table_.has("prefix_tokens")) {
      problems_.push_back({path_, "must have both columns prefix and prefix_tokens, or neither"});
    }
    throw_if_any(std::exchange(problems_, {}));
  }

  void missing(const std::string& column) {
    std::string others;
    for (const TraceColumns& columns : kTraces) {
      if (columns.is_own) continue;
      others += (others.empty() ? "" : "; ") + std::string(columns.arrival) + ", " +
                std::string(columns.input) + ", " + std::string(columns.output);
    }
    problems_.push_back({path_, "must have the column " + column +
                                    ", or those of a published trace (" + others + ")"});
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

  Request read_row(std::size_t record, RequestRows& rows) {
    Request request;
    request.input_tokens = tokens(record, std::string(columns_->input));
    request.output_tokens = tokens(record, std::string(columns_->output));
    if (with_arrivals_ && table_.has(columns_->arrival)) request.arrival = arrival(record);
    if (!columns_->chain.empty() && table_.has(columns_->chain)) read_chain(record, request, rows);
    if (!columns_->is_own) return request;
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
    const std::string column(columns_->arrival);
    const std::string text(table_.at(record, column));
    const bool is_date = columns_->time == TimeKind::kDate;
    const bool is_number = is_date || number_in<double>(text).has_value();
    const auto time = is_date ? time_of_date(text, first_day_)
                              : parse_duration(text + std::string(columns_->unit));
    if (!is_number || !time) {
      complain(record, column,
               is_date ? "must be a date and a time, as 2023-11-16 18:17:03.98"
                       : "must be a time that is not negative");
    } else if (columns_->is_own && *time < last_arrival_) {
      complain(record, column,
               "must not be before the row above (" + exact_seconds(last_arrival_) + " s)");
    } else {
      last_arrival_ = *time;
    }
    return Time{last_arrival_};
  }

  void read_chain(std::size_t record, Request& request, RequestRows& rows) {
    const std::string_view text = table_.at(record, columns_->chain);
    if (text.empty()) return;
    PromptChain& chain = rows.chains.emplace_back();
    chain.piece_tokens = columns_->piece_tokens;
    for (const std::string_view name : split_text(text, ' ')) {
      const auto next = static_cast<std::uint32_t>(prefixes_.size());
      chain.pieces.push_back(
          prefixes_.try_emplace(std::string(name), PrefixId(next)).first->second);
    }
    const auto named = static_cast<std::int64_t>(chain.pieces.size()) * chain.piece_tokens;
    request.prefix_tokens =
        static_cast<std::int32_t>(std::min<std::int64_t>(named, request.input_tokens));
    request.chain = static_cast<std::uint32_t>(rows.chains.size());
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
  const TraceColumns* columns_ = nullptr;
  std::optional<std::int64_t> first_day_{};
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

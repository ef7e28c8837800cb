#include "measured/nccl_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "measured/nccl_records.h"
#include "measured/row_fields.h"
#include "sim/base/field_text.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostLogProblems = 100;  // that are listed
constexpr std::int64_t kMostLogRanks = 1 << 20;
constexpr std::size_t kMostLogRows = 100'000;

enum class Column : std::uint8_t { kSize, kCount, kType, kWord, kTime, kRate, kWrong, kOther };

constexpr std::string_view kTimestamp = "timestamp";  // a column whose values are two words

Column column_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Column>, 11> kColumns = {
      {{"size", Column::kSize},
       {"count", Column::kCount},
       {"type", Column::kType},
       {"redop", Column::kWord},
       {"root", Column::kWord},
       {"time", Column::kTime},
       {"cputime", Column::kTime},
       {"algbw", Column::kRate},
       {"busbw", Column::kRate},
       {"#wrong", Column::kWrong},
       {"error", Column::kWrong}}};
  const auto* const found =
      std::ranges::find(kColumns, name, [](const auto& c) { return c.first; });
  return found == kColumns.end() ? Column::kOther : found->second;
}

bool is_whole(std::string_view text) {
  return number_in<std::int64_t>(text).has_value();
}

bool is_number(std::string_view text) {
  const std::optional<double> value = number_in<double>(text);
  return value && std::isfinite(*value);
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

bool can_be(std::string_view text, Column column) {
  switch (column) {
    case Column::kSize:
    case Column::kCount:
      return is_whole(text) && text.front() != '-';
    case Column::kType:
      return is_word(text) && !is_number(text);
    case Column::kWord:
      return is_word(text);
    case Column::kTime:
    case Column::kRate:
      return is_number(text);
    case Column::kOther:
      return true;
    case Column::kWrong:
      break;
  }
  return text == "N/A" || is_number(text);
}

// LinePrefix is what launchers and loggers put before each line: "[1,0]<stdout>:", "0: ",
// "Thu Jul 18 15:41:05 2024<stdout>:", "pod-3 | ". The header line shows it, as its own text begins
// with '#'; other lines have the same marks with other numbers and words between them.
class LinePrefix {
 public:
  LinePrefix() = default;
  explicit LinePrefix(std::string_view text) {
    for (std::size_t at = text.find_first_not_of(" \t"); at < text.size();) {
      shape_ += kind_at(text, at);
      at = end_of_run(text, at);
    }
    if (shape_.ends_with(' ')) shape_.pop_back();
  }

  // Returns the line without it; the line itself if it begins otherwise. Where each piece of a line
  // got the prefix, all are taken out.
  std::string without(std::string_view line) const {
    std::size_t at = std::min(line.find_first_not_of(" \t"), line.size());
    const std::size_t begin = at;
    for (const char kind : shape_) {
      if (at >= line.size() || kind_at(line, at) != kind) return std::string(line);
      at = end_of_run(line, at);
    }
    const std::string_view own = line.substr(begin, at - begin);
    std::string rest(line.substr(at));
    if (shape_.find_first_not_of("a ") == std::string::npos) return rest;
    for (std::size_t piece = 0; (piece = rest.find(own, piece)) != std::string::npos;) {
      rest.replace(piece, own.size(), " ");
    }
    return rest;
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  static bool is_of_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  // 'a' for a word or a number, ' ' for blanks, others as they are.
  static char kind_at(std::string_view text, std::size_t at) {
    if (is_of_word(text[at])) return 'a';
    return is_blank(text[at]) ? ' ' : text[at];
  }
  static std::size_t end_of_run(std::string_view text, std::size_t at) {
    const char kind = kind_at(text, at++);
    while (at < text.size() && (kind == 'a' || kind == ' ') && kind_at(text, at) == kind) ++at;
    return at;
  }

  std::string shape_;
};

// Returns the columns that a header line names; empty if the line is none.
std::vector<Column> columns_in(const std::vector<std::string_view>& words) {
  std::vector<Column> columns;
  for (std::string_view word : words) {
    if (columns.empty() && word.starts_with("#")) word.remove_prefix(1);
    if (word.empty() || word == kTimestamp) continue;
    columns.push_back(column_of(word));
  }
  const bool is_header = columns.size() > 3 && columns.front() == Column::kSize &&
                         std::ranges::count(columns, Column::kType) == 1 &&
                         std::ranges::count(columns, Column::kTime) > 0;
  return is_header ? columns : std::vector<Column>{};
}

// "# timestamp  size  count ..": each row begins with a time, not only ends with one.
bool columns_begin_with_time(const std::vector<std::string_view>& words) {
  return std::ranges::find(words, kTimestamp) < std::ranges::find(words, "size");
}

// Returns "all_reduce" for "./build/all_reduce_perf -b 8"; empty if no test is named.
std::string_view test_in(std::string_view line) {
  constexpr std::string_view kEnd = "_perf";
  for (const std::string_view word : words_of(line)) {
    const std::string_view file = word.substr(word.rfind('/') + 1);
    if (!file.ends_with(kEnd) || file.size() == kEnd.size() || !is_word(file)) continue;
    return file.substr(0, file.size() - kEnd.size());
  }
  return {};
}

class LogReader {
 public:
  NcclLog read(std::string_view text) {
    std::uint32_t number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end), ++number);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    finish_row("the log ends within this row");
    finish_devices();
    if (log_.rows.empty() && log_.problems.empty()) {
      problem({}, has_header_ ? "has no measurement below its header"
                              : "has no measurement: no header line with size, type and time");
    }
    return std::move(log_);
  }

 private:
  void read_line(std::string_view line, std::uint32_t number) {
    if (read_header(line, number)) return;
    const std::string content = prefix_.without(line);
    const std::size_t mark = content.find('#');
    const bool is_comment =
        mark != std::string::npos && (values_.empty() || content.find_first_not_of(" \t") == mark);
    if (is_comment) return read_comment(std::string_view(content).substr(mark), number);
    if (const std::string_view test = test_in(content); !test.empty()) start_test(test);
    read_values(words_of(content), number);
  }

  // "#  size  count  type  redop  root  time  algbw  busbw #wrong  time ..", behind any prefix.
  bool read_header(std::string_view line, std::uint32_t number) {
    const std::size_t mark = line.find('#');
    if (mark == std::string_view::npos) return false;
    const LinePrefix prefix(line.substr(0, mark));
    const std::string content = prefix.without(line);
    const std::vector<std::string_view> words = words_of(content);
    std::vector<Column> columns = columns_in(words);
    if (columns.empty()) return false;
    if (std::ranges::find(words, "cputime") != words.end()) {
      problem(number, "has times of the processor (-C 1), not of the collective");
    }
    finish_row("this row is cut off");  // its columns were others
    if (is_without_rows_) {
      problem(number,
              "follows another header without rows between them: two runs that print into "
              "one log can't be told apart");
    }
    is_without_rows_ = true;
    columns_ = std::move(columns);
    prefix_ = prefix;
    begins_with_time_ = columns_begin_with_time(words);
    only_in_place_ = above_names_in_place_;
    has_header_ = true;
    return true;
  }

  void read_comment(std::string_view line, std::uint32_t number) {
    const std::vector<std::string_view> words = words_of(line);
    if (const std::string_view test = test_in(line); !test.empty()) start_test(test);
    above_names_in_place_ = line.find("in-place") != std::string_view::npos &&
                            line.find("out-of-place") == std::string_view::npos;
    if (line.find("Using devices") != std::string_view::npos) {
      finish_devices();
      is_without_rows_ = false;
      ranks_.clear();
      hosts_.clear();
      hardware_.clear();
    }
    if (words.size() > 2 && words[1] == "Rank") read_device(line, words, number);
    if (line.find("Out of bounds values") != std::string_view::npos &&
        line.find("FAILED") != std::string_view::npos) {
      problem(number, "says that values were out of bounds: the test failed");
    }
  }

  void start_test(std::string_view test) {
    if (op_ == test) return;
    op_ = test;
    finish_row("this row is cut off");
    columns_.clear();
  }

  // "#  Rank  0 Group  0 Pid  22112 on  host1 device  0 [0x10] NVIDIA H100 80GB HBM3"
  void read_device(std::string_view line, const std::vector<std::string_view>& words,
                   std::uint32_t number) {
    const auto rank = number_in<std::int64_t>(words[2]);
    if (!rank || *rank < 0 || *rank >= kMostLogRanks) return;
    devices_line_ = number;
    if (!ranks_.insert(*rank).second) {
      problem(number, fmt::format("rank {} is listed twice: two runs that print into one log can't "
                                  "be told apart",
                                  *rank));
    }
    const auto on = std::ranges::find(words, "on");
    if (on != words.end() && on + 1 != words.end()) hosts_.emplace(*(on + 1));
    const std::size_t name = line.find("] ");
    if (name == std::string_view::npos) return;
    std::string device(line.substr(name + 2));
    device.erase(device.find_last_not_of(" \t\r") + 1);
    if (!hardware_.empty() && device != hardware_) {
      problem(number, "the devices must be alike: \"" + shortened(device) + "\" beside \"" +
                          shortened(hardware_) + "\"");
    }
    hardware_ = std::move(device);
  }

  void finish_devices() {
    if (ranks_.empty() || static_cast<std::int64_t>(ranks_.size()) == *ranks_.rbegin() + 1) return;
    problem(devices_line_, fmt::format("the list of devices has {} ranks, the last is rank {}",
                                       ranks_.size(), *ranks_.rbegin()));
  }

  void read_values(std::vector<std::string_view> words, std::uint32_t number) {
    if (begins_with_time_) {
      words.erase(words.begin(), std::ranges::find_if(words, is_whole));
    }
    if (columns_.empty() || words.empty()) return;
    if (const std::size_t count = fitting(words, 0); count > 2) {
      finish_row("this row is cut off");
      row_line_ = number;
      values_.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
    } else if (!values_.empty() && fitting(words, values_.size()) == words.size()) {
      values_.insert(values_.end(), words.begin(), words.end());
    } else {
      return;
    }
    if (values_.size() == columns_.size()) add_row();
  }

  // Returns how many of the words could stand in the columns from `first` on.
  std::size_t fitting(const std::vector<std::string_view>& words, std::size_t first) const {
    std::size_t count = 0;
    while (count < words.size() && first + count < columns_.size() &&
           can_be(words[count], columns_[first + count])) {
      ++count;
    }
    return count;
  }

  void finish_row(const char* why) {
    if (!values_.empty()) problem(row_line_, why);
    values_.clear();
  }

  void add_row() {
    NcclRow row{.line = row_line_, .op = op_, .hardware = hardware_, .type = {}};
    if (!ranks_.empty()) row.ranks = static_cast<std::int64_t>(ranks_.size());
    if (!hosts_.empty()) row.nodes = static_cast<std::int64_t>(hosts_.size());
    bool is_second = only_in_place_;
    bool is_good = true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& value = values_[i];
      if (columns_[i] == Column::kSize) row.bytes = *number_in<std::int64_t>(value);
      if (columns_[i] == Column::kType) row.type = value;
      if (columns_[i] == Column::kTime) {
        std::optional<double>& time = is_second ? row.in_place_us : row.out_of_place_us;
        time = number_in<double>(value);
        is_good = is_good && *time > 0;
        is_second = true;
      }
      if (columns_[i] == Column::kWrong && value != "N/A" && *number_in<double>(value) > 0) {
        problem(row_line_, value + " values are wrong: the test failed");
      }
    }
    values_.clear();
    is_without_rows_ = false;
    if (row.bytes == 0) return;  // sizes below a rank's element
    if (!is_good) return problem(row_line_, "a time must be above 0");
    if (log_.rows.size() == kMostLogRows) {
      return problem({}, fmt::format("has more than {} measurements", kMostLogRows));
    }
    log_.rows.push_back(std::move(row));
  }

  void problem(std::optional<std::uint32_t> line, std::string message) {
    if (log_.problems.size() >= kMostLogProblems) return;
    log_.problems.push_back({line ? std::to_string(*line) : "", std::move(message)});
  }

  NcclLog log_;
  LinePrefix prefix_;
  std::vector<Column> columns_;
  bool is_without_rows_ = false;     // a header was read, and nothing behind it
  bool begins_with_time_ = false;    // rows begin with a date and a time
  std::vector<std::string> values_;  // of a row that is not yet whole
  std::uint32_t row_line_ = 0;
  std::string op_;
  std::string hardware_;
  std::set<std::int64_t> ranks_;
  std::set<std::string, std::less<>> hosts_;
  std::uint32_t devices_line_ = 0;
  bool has_header_ = false;
  bool above_names_in_place_ = false;
  bool only_in_place_ = false;
};

// What nccl-tests and rccl-tests call otherwise than tables do.
using LogWord = std::pair<std::string_view, std::string_view>;
constexpr std::array<LogWord, 6> kOpsOfLogs = {{{"alltoall", "all_to_all"},
                                                {"sendrecv", "send_receive"},
                                                {"send_recv", "send_receive"},
                                                {"allreduce", "all_reduce"},
                                                {"allgather", "all_gather"},
                                                {"reducescatter", "reduce_scatter"}}};
constexpr std::array<LogWord, 3> kTypesOfLogs = {
    {{"half", "fp16"}, {"float", "fp32"}, {"bfloat16", "bf16"}}};

std::string word_of_tables(std::span<const LogWord> words, const std::string& word) {
  const auto found = std::ranges::find(words, word, &LogWord::first);
  return found == words.end() ? word : std::string(found->second);
}

}  // namespace

NcclLog read_nccl_log(std::string_view text) {
  if (std::optional<NcclLog> table = read_nccl_records(text)) return std::move(*table);
  return LogReader().read(text);
}

std::string cluster_of_ranks(const Hardware* hardware, std::int64_t nodes) {
  if (hardware == nullptr || hardware->cluster.empty()) return {};
  if (!hardware->cluster_has_sizes) return hardware->cluster;
  return fmt::format("{}-{}", hardware->cluster, nodes * hardware->chips_per_node);
}

CsvTable table_of(const NcclLog& log, const std::string& path, const LogFacts& facts,
                  const std::vector<Hardware>& hardware, std::vector<Problem>& problems) {
  CsvTable table{
      .file = std::filesystem::path(path).filename().string(),
      .header = {"cluster", "op", "ranks", "nodes", "bytes", "dtype", "measured.time", "said"}};
  std::set<std::string> missing;
  const Hardware* const told = find_hardware(hardware, facts.hardware);
  for (const NcclRow& row : log.rows) {
    const std::string op = with_underscores(row.op.empty() ? facts.op : row.op);
    const auto ranks = row.ranks ? row.ranks : facts.ranks;
    const std::int64_t nodes = row.nodes ? *row.nodes : facts.nodes.value_or(1);
    const Hardware* const named = find_hardware(hardware, row.hardware);
    const std::string cluster = !facts.cluster.empty()
                                    ? facts.cluster
                                    : cluster_of_ranks(named != nullptr ? named : told, nodes);
    if (op.empty()) missing.insert("names no test: --op says which, such as all_reduce");
    if (cluster.empty()) {
      missing.insert(row.hardware.empty() ? "names no devices: --hardware says which"
                                          : "ran on " + row.hardware +
                                                ", of which the catalog has no cluster: "
                                                "--hardware says which chip that is");
    }
    if (!ranks) missing.insert("lists no ranks: --ranks says how many");
    table.records.push_back(
        {cluster, word_of_tables(kOpsOfLogs, op), ranks ? std::to_string(*ranks) : "",
         nodes == 1 ? "" : std::to_string(nodes), std::to_string(row.bytes),
         word_of_tables(kTypesOfLogs, row.type), fmt::format("{}us", row.time_us()), "nccl-tests"});
    table.lines.push_back(row.line);
  }
  for (const std::string& message : missing) problems.push_back({path, message});
  return table;
}

}  // namespace stepsim

#include "measured/nccl_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "proto/messages/json_value.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostRecords = 100'000;
constexpr std::size_t kMostRecordProblems = 100;

// The values of a measurement, as texts.
using Record = std::map<std::string, std::string, std::less<>>;

std::string text_of_json(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : json_text(value);
}

std::string trimmed_cell(std::string_view cell) {
  const auto is_edge = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '"'; };
  while (!cell.empty() && is_edge(cell.front())) cell.remove_prefix(1);
  while (!cell.empty() && is_edge(cell.back())) cell.remove_suffix(1);
  return std::string(cell);
}

class RecordReader {
 public:
  NcclLog log() {
    if (log_.rows.empty() && log_.problems.empty()) problem(0, "has no measurement");
    return std::move(log_);
  }

  void problem(std::uint32_t line, std::string message) {
    if (log_.problems.size() >= kMostRecordProblems) return;
    log_.problems.push_back({line == 0 ? "" : std::to_string(line), std::move(message)});
  }

  // A row of rccl-tests: one place, in or out.
  void add(const Record& record, std::uint32_t line) {
    const auto ranks = count_in(record, record.contains("ranks") ? "ranks" : "gpus", line);
    const std::string in_place = value_in(record, "inPlace");
    NcclRow row{
        .line = line, .op = in_small_letters(value_in(record, "name")), .hardware = {}, .type = {}};
    row.ranks = ranks;
    row.nodes = count_in(record, "nodes", line);
    if (in_place != "0" && in_place != "1") {
      return problem(line, "inPlace must be 0 or 1, is \"" + shortened(in_place) + "\"");
    }
    fill(std::move(row), record, in_place == "1", line);
  }

  // A result of nccl-tests: `place` is "out_of_place" or "in_place".
  void add(const NcclRow& like, const Json& result, const char* place) {
    const auto found = result.find(place);
    if (found == result.end() || found->is_null()) return;
    Record record;
    for (const auto& [key, value] : result.items()) record[key] = text_of_json(value);
    if (found->is_object()) {
      for (const auto& [key, value] : found->items()) record[key] = text_of_json(value);
    }
    if (record.contains("cpu_time")) {
      return problem(0, "has times of the processor (-C 1), not of the collective");
    }
    record["#wrong"] = value_in(record, "nwrong");
    fill(like, record, place[0] == 'i', 0);
  }

  NcclRow devices(const Json& list) {
    NcclRow row{.op = {}, .hardware = {}, .type = {}};
    std::set<std::int64_t> ranks;
    std::set<std::string> hosts;
    for (const Json& device : list) {
      if (!device.is_object()) continue;
      const Record record = record_of(device);
      const std::string hardware = value_in(record, "device_info");
      if (!row.hardware.empty() && hardware != row.hardware) {
        problem(0, "the devices must be alike: \"" + shortened(hardware) + "\" beside \"" +
                       shortened(row.hardware) + "\"");
      }
      row.hardware = hardware;
      hosts.insert(value_in(record, "hostname"));
      ranks.insert(number_in<std::int64_t>(value_in(record, "rank")).value_or(-1));
    }
    if (list.empty()) return row;
    if (ranks.size() != list.size() || *ranks.begin() != 0 ||
        *ranks.rbegin() != static_cast<std::int64_t>(list.size()) - 1) {
      problem(0, "devices must have each rank from 0 once");
    }
    row.ranks = static_cast<std::int64_t>(list.size());
    row.nodes = static_cast<std::int64_t>(hosts.size());
    return row;
  }

  static Record record_of(const Json& object) {
    Record record;
    for (const auto& [key, value] : object.items()) record[key] = text_of_json(value);
    return record;
  }

 private:
  static std::string value_in(const Record& record, std::string_view key) {
    const auto found = record.find(key);
    return found == record.end() ? "" : found->second;
  }

  std::optional<std::int64_t> count_in(const Record& record, const char* key, std::uint32_t line) {
    const std::string text = value_in(record, key);
    if (text.empty()) return std::nullopt;
    const auto count = number_in<std::int64_t>(text);
    if (count && *count > 0 && *count <= (1 << 20)) return count;
    problem(line, fmt::format("{} must be a number above 0, is \"{}\"", key, shortened(text)));
    return std::nullopt;
  }

  void fill(NcclRow row, const Record& record, bool in_place, std::uint32_t line) {
    const auto bytes = number_in<std::int64_t>(value_in(record, "size"));
    const auto time = number_in<double>(value_in(record, "time"));
    const std::string wrong = value_in(record, record.contains("#wrong") ? "#wrong" : "wrong");
    if (!bytes || *bytes < 0) {
      return problem(line,
                     "size must be bytes, is \"" + shortened(value_in(record, "size")) + "\"");
    }
    if (*bytes == 0) return;
    if (!time || !(*time > 0) || *time > 1e12) {
      return problem(line, "time must be microseconds, above 0, is \"" +
                               shortened(value_in(record, "time")) + "\"");
    }
    if (const auto count = number_in<double>(wrong); count && *count > 0) {
      problem(line, shortened(wrong) + " values are wrong: the test failed");
    }
    if (row.nodes && row.ranks && *row.ranks < *row.nodes) {
      return problem(line, fmt::format("{} ranks can't be on {} nodes", *row.ranks, *row.nodes));
    }
    row.bytes = *bytes;
    row.type = value_in(record, "type");
    (in_place ? row.in_place_us : row.out_of_place_us) = *time;
    if (!join(row)) log_.rows.push_back(std::move(row));
    if (log_.rows.size() > kMostRecords) problem(0, "has more than 100,000 measurements");
  }

  // The two places of a size are one row.
  bool join(const NcclRow& row) {
    if (log_.rows.empty()) return false;
    NcclRow& last = log_.rows.back();
    const bool is_same = last.op == row.op && last.type == row.type && last.bytes == row.bytes &&
                         last.ranks == row.ranks && last.nodes == row.nodes;
    if (!is_same || !row.in_place_us || last.in_place_us) return false;
    last.in_place_us = row.in_place_us;
    return true;
  }

  NcclLog log_;
};

NcclLog read_results(const Json& file) {
  RecordReader reader;
  const Json none = Json::array();
  const auto list_in = [&](const Json& of, const char* key) -> const Json& {
    const auto found = of.find(key);
    return found != of.end() && found->is_array() ? *found : none;
  };
  const auto config = file.find("config");
  const bool has_config = config != file.end() && config->is_object();
  NcclRow like = reader.devices(has_config ? list_in(*config, "devices") : none);
  const Json& words = list_in(file, "args");
  if (!words.empty() && words[0].is_string()) {
    std::string test = words[0].get<std::string>();
    test.erase(0, test.rfind('/') + 1);
    if (test.ends_with("_perf")) like.op = test.substr(0, test.size() - 5);
  }
  for (const Json& result : list_in(file, "results")) {
    if (!result.is_object()) continue;
    reader.add(like, result, "out_of_place");
    reader.add(like, result, "in_place");
  }
  for (const Json& error : list_in(file, "errors")) {
    reader.problem(0, "says: " + shown(error));
  }
  return reader.log();
}

// An object a line, or a list of them.
NcclLog read_objects(std::string_view text) {
  RecordReader reader;
  if (text.front() == '[') {
    const JsonOrProblem whole = parse_json(text);
    if (!whole.value) reader.problem(0, "must be JSON: " + whole.problem);
    for (const Json& object : whole.value.value_or(Json::array())) {
      object.is_object() ? reader.add(RecordReader::record_of(object), 0)
                         : reader.problem(0, "must hold objects, holds " + shown(object));
    }
    return reader.log();
  }
  std::uint32_t number = 0;
  for (const std::string_view line : split_text(text, '\n')) {
    ++number;
    if (words_of(line).empty()) continue;
    const JsonOrProblem object = parse_json(line);
    if (!object.value || !object.value->is_object()) {
      reader.problem(number,
                     object.value ? "must be an object" : "must be JSON: " + object.problem);
      break;
    }
    reader.add(RecordReader::record_of(*object.value), number);
  }
  return reader.log();
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (const std::string_view cell : split_text(line, ',')) cells.push_back(trimmed_cell(cell));
  return cells;
}

bool is_header_of_records(const std::vector<std::string>& cells) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(cells, name) != cells.end();
  };
  return cells.size() > 3 && has("size") && has("time") && has("type");
}

NcclLog read_table(std::string_view text) {
  RecordReader reader;
  std::vector<std::string> header;
  std::uint32_t number = 0;
  for (const std::string_view line : split_text(text, '\n')) {
    ++number;
    if (words_of(line).empty()) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (is_header_of_records(cells)) {
      header = cells;
      continue;
    }
    if (cells.size() != header.size()) {
      reader.problem(number, fmt::format("must have {} cells as the header, has {}", header.size(),
                                         cells.size()));
      continue;
    }
    Record record;
    for (std::size_t i = 0; i < cells.size(); ++i) record[header[i]] = cells[i];
    reader.add(record, number);
  }
  return reader.log();
}

}  // namespace

std::optional<NcclLog> read_nccl_records(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (text.empty()) return std::nullopt;
  const std::string_view behind =
      text.substr(std::min(text.find_first_not_of(" \t\r\n", 1), text.size() - 1));
  if (text.front() == '[') {
    return behind.front() == '{' ? std::optional(read_objects(text)) : std::nullopt;
  }
  if (text.front() == '{') {
    const JsonOrProblem whole = parse_json(text);
    const bool is_file = whole.value && whole.value->contains("results");
    return is_file ? read_results(*whole.value) : read_objects(text);
  }
  const std::string_view first = text.substr(0, text.find('\n'));
  return is_header_of_records(cells_of(first)) ? std::optional(read_table(text)) : std::nullopt;
}

}  // namespace stepsim

#include "cli/schedule/schedule_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

// Returns whether the text is a time below one picosecond. Reading rounds it up to one.
bool is_below_picosecond(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::optional<Duration> unit = parse_duration("1" + std::string(rest, end));
  return error == std::errc() && unit && number > 0 &&
         number * static_cast<double>(unit->count()) < 1;
}

// Reads one time or, if `may_be_list`, one per stage; empty if it was not given or cannot be read.
std::vector<std::int64_t> read_times(const CommandLine& line, const std::string& option,
                                     std::int64_t least, bool may_be_list,
                                     std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return {};
  const std::string whole = line.value(option);
  std::vector<std::int64_t> times;
  for (const std::string& text : may_be_list ? split_at_commas(whole) : std::vector{whole}) {
    const std::optional<Duration> time = parse_duration(text);
    const bool is_in_range = time && time->count() >= least && time->count() <= kMostTime;
    if (is_in_range && !is_below_picosecond(text)) {
      times.push_back(time->count());
      continue;
    }
    problems.push_back(
        {"--" + option,
         fmt::format("must be {}{}, {} and at most 53 days, is \"{}\"", accepted_duration(),
                     may_be_list ? " (or one of each stage: T,T,...)" : "",
                     least > 0 ? "at least 1 ps" : "0 or at least 1 ps", text)});
    return {};
  }
  return times;
}

}  // namespace

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(',', begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

void read_costs(const CommandLine& line, ScheduleRequest& request, std::vector<Problem>& problems) {
  request.costs = {kSecond, kSecond, kSecond, 0};
  constexpr std::array<std::pair<const char*, std::int64_t PipelineCosts::*>, 3> kKinds = {{
      {"forward-time", &PipelineCosts::forward},
      {"backward-input-time", &PipelineCosts::backward_input},
      {"backward-weight-time", &PipelineCosts::backward_weight},
  }};
  for (const std::int64_t time : read_times(line, "fused-time", 1, false, problems)) {
    request.costs.fused = time;
  }
  for (const std::int64_t time : read_times(line, "send-time", 0, false, problems)) {
    request.costs.send = time;
  }
  std::array<std::vector<std::int64_t>, kKinds.size()> times;
  const char* first_list = nullptr;
  std::size_t stages = 1;
  bool lists_agree = true;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    const auto& [option, kind] = kKinds[i];
    times[i] = read_times(line, option, 1, true, problems);
    if (times[i].empty()) times[i] = {request.costs.*kind};
    request.costs.*kind = *std::ranges::max_element(times[i]);
    if (times[i].size() == 1) continue;
    if (first_list == nullptr) {
      first_list = option;
      stages = times[i].size();
    } else if (times[i].size() != stages) {
      problems.push_back(
          {std::string("--") + option, fmt::format("must be one time, or {} as --{} has, are {}",
                                                   stages, first_list, times[i].size())});
      lists_agree = false;
    }
  }
  if (stages == 1 || !lists_agree) return;
  request.stage_costs.assign(stages, request.costs);
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    for (std::size_t stage = 0; stage < stages; ++stage) {
      request.stage_costs[stage].*kKinds[i].second = times[i][times[i].size() == 1 ? 0 : stage];
    }
  }
}

}  // namespace stepsim

#include "cli/schedule/schedule_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli/command_line.h"
#include "cli/schedule/schedule_times.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/schedule_file.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"
#include "sim/base/quantity_text.h"
#include "sim/base/suggestion.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

std::optional<std::int64_t> read_count(const CommandLine& line, const std::string& option,
                                       std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return std::nullopt;
  const std::string text = line.value(option);
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (!text.empty() && error == std::errc::result_out_of_range && rest == end) {
    problems.push_back({"--" + option, fmt::format("is too large: \"{}\"", text)});
    return std::nullopt;
  }
  if (text.empty() || error != std::errc() || rest != end || count < 1) {
    problems.push_back(
        {"--" + option, fmt::format("must be a whole number, at least 1, is \"{}\"", text)});
    return std::nullopt;
  }
  return count;
}

// Reads "0.432" as millionths.
void read_share(const CommandLine& line, const std::string& option,
                std::optional<ActivationMemory>& memory, std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return;
  constexpr std::int64_t kMillion = 1'000'000;
  const std::string text = line.value(option);
  const auto share = number_in<double>(text);
  if (!share || !(*share > 0 && *share <= 1)) {
    problems.push_back(
        {"--" + option, fmt::format("must be a number above 0, at most 1, is \"{}\"", text)});
    return;
  }
  const std::int64_t kept = std::llround(*share * static_cast<double>(kMillion));
  memory = ActivationMemory{kMillion, std::max<std::int64_t>(1, kept)};
}

Problem unknown_name(const std::string& field, const std::string& name, bool may_be_file) {
  return {field,
          fmt::format(
              "\"{}\" is no schedule{}{} There are: {}", name, may_be_file ? " and no file" : "",
              [&] {
                const std::string hint = did_you_mean(name, all_schedule_names());
                return hint.empty() ? std::string(".") : hint;
              }(),
              schedule_names() + ", optimal")};
}

std::string option_of(const std::string& field) {
  return "--" + with_dashes(field);
}

// Returns problems of a request in terms of options. A count of 0 was not given or could not be
// read, which has been reported.
std::vector<Problem> in_options(std::vector<Problem> problems, std::int64_t stages,
                                std::int64_t microbatches) {
  std::erase_if(problems, [&](const Problem& problem) {
    return (problem.field == "stages" && stages == 0) ||
           (problem.field == "microbatches" && microbatches == 0);
  });
  for (Problem& problem : problems) {
    if (problem.field == "stage_costs") {
      problem.field = "--forward-time and other times by stage";
      continue;
    }
    problem.field = option_of(problem.field == "memory" ? "weight_memory" : problem.field);
  }
  return problems;
}

bool is_own_name(const std::string& name) {
  return schedule_named(name).has_value() || name == kOptimal;
}

}  // namespace

po::options_description schedule_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("stages", text("P"), "number of ranks; must be given unless NAME is a file");
  add("microbatches", text("M"), "number of micro-batches; must be given unless NAME is a file");
  add("chunks", text("V"),
      "chunks (virtual stages) of each rank (default: 1, or 2 if the schedule needs them)");
  add("microbatch-group", text("N"),
      (schedules_with(has_groups) + ": micro-batches that pass a chunk in turn").c_str());
  add("forward-time", text("T"),
      "time of a forward, default 1s; each of these times may also be a list with one for each "
      "stage: T,T,...");
  add("backward-input-time", text("T"), "time of a backward for the input, default 1s");
  add("backward-weight-time", text("T"), "time of a backward for the weights, default 1s");
  add("fused-time", text("T"),
      (schedules_with(fuses, "files") +
       ": time of a forward fused with a full backward (default: their sum)")
          .c_str());
  add("send-time", text("T"), "time of a message from one rank to the next, default 0");
  add("memory-limit", text("K"),
      (schedules_with(plans_by_cost, "optimal") +
       ": the most micro-batches x chunks in flight on a rank")
          .c_str());
  add("weight-memory", text("SHARE"),
      (schedules_with(counts_weight_memory) +
       ": share of a micro-batch's activations that stays from B to W, above 0 up to 1 "
       "(default: 1)")
          .c_str());
  add("compare", text("NAMES"),
      "compare NAME with these (a,b,... or all) on the same work; each uses the options above that "
      "apply to it");
  add("batch-p2p",
      "post messages in batches, as the runtime of the schedule's authors does (default: one by "
      "one)");
  add_trace_options(options, "write NAME as a trace of every rank");
  add_json_option(options);
  add("plot", po::value<std::string>()->value_name("FILE"),
      "draw the ops of each rank over time, and what it holds; FILE ends in .svg");
  add("export", po::value<std::string>()->value_name("KIND PATH"),
      "torchtitan FILE.csv: write the order as PyTorch and torchtitan read it "
      "(pipeline_parallel_schedule_csv)");
  add_input_option(options);
  return options;
}

std::vector<std::string> all_schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleName name : all_schedules()) names.emplace_back(name_of(name));
  return names;
}

ScheduleOptions read_schedule_options(const std::vector<std::string>& arguments,
                                      std::vector<Problem>& problems) {
  const CommandLine line = read_command_line(arguments, schedule_option_list(), problems);
  ScheduleOptions options;
  if (std::ranges::any_of(problems, [](const Problem& problem) {
        return problem.field == "command line";  // then no option could be read
      })) {
    return options;
  }
  if (line.words.empty()) {
    problems.push_back(
        {"NAME", "must be given: a schedule file, or one of " + schedule_names() + ", optimal"});
  } else {
    options.name = line.words.front();
  }
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "there can be only one NAME"});
  }
  ScheduleRequest& request = options.request;
  request.stages = read_count(line, "stages", problems).value_or(0);
  request.microbatches = read_count(line, "microbatches", problems).value_or(0);
  request.chunks = read_count(line, "chunks", problems);
  request.microbatch_group = read_count(line, "microbatch-group", problems);
  request.memory_limit = read_count(line, "memory-limit", problems);
  read_share(line, "weight-memory", request.memory, problems);
  read_costs(line, request, problems);
  options.batch_p2p = line.options.count("batch-p2p") != 0;
  if (line.options.count("compare") != 0) {
    if (line.value("compare").empty()) {
      problems.push_back({"--compare", "must name a schedule, or be all"});
    } else {
      options.named = split_at_commas(line.value("compare"));
    }
  }
  for (const std::string& name : options.named) {
    if (name != "all" && !is_own_name(name)) {
      problems.push_back(unknown_name("--compare", name, false));
    }
  }
  if (!options.name.empty() && !is_own_name(options.name)) {
    std::error_code ignored;
    if (!std::filesystem::exists(options.name, ignored)) {
      problems.push_back(unknown_name("NAME", options.name, true));
    }
  }
  options.trace = read_trace_request(line, problems);
  options.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  refuse_same_output(line, "trace", "json", problems);
  options.plot = read_output_path(line, "plot", OutputFormat::kSvg, problems);
  refuse_same_output(line, "trace", "plot", problems);
  refuse_same_output(line, "json", "plot", problems);
  if (!options.json.empty() && options.json == options.trace.path) {
    problems.push_back({"--json", "must not be the file of --trace"});
  }
  const bool is_file = !options.name.empty() && !is_own_name(options.name);
  for (const auto& [option, count] :
       {std::pair("stages", request.stages), std::pair("microbatches", request.microbatches)}) {
    if (!is_file && count == 0 && line.options.count(option) == 0) {
      problems.push_back({std::string("--") + option, "must be given"});
    }
  }
  return options;
}

std::vector<Problem> check_options(const ScheduleRequest& request) {
  return in_options(check(request), request.stages, request.microbatches);
}

std::vector<Problem> check_options(const OptimalRequest& request) {
  return in_options(check(request), request.stages, request.microbatches);
}

OptimalRequest optimal_request(const ScheduleRequest& given) {
  PipelineCosts costs = given.costs;
  costs.fused.reset();
  std::vector<PipelineCosts> stage_costs = given.stage_costs;
  for (PipelineCosts& stage : stage_costs) stage.fused.reset();
  return {.stages = given.stages,
          .microbatches = given.microbatches,
          .chunks = given.chunks.value_or(1),
          .costs = costs,
          .stage_costs = std::move(stage_costs),
          .memory_limit = given.memory_limit};
}

ScheduleRequest request_for(ScheduleName name, const ScheduleRequest& given) {
  ScheduleRequest request = given;
  request.name = name;
  const PublishedSchedule& schedule = published(name);
  if (!plans_by_cost(schedule)) request.memory_limit.reset();
  if (!counts_weight_memory(schedule)) request.memory.reset();
  if (!has_groups(schedule)) request.microbatch_group.reset();
  if (!fuses(schedule)) {
    request.costs.fused.reset();
    for (PipelineCosts& stage : request.stage_costs) stage.fused.reset();
  }
  const std::vector<Problem> problems = check(request);
  if (std::any_of(problems.begin(), problems.end(),
                  [](const Problem& problem) { return problem.field == "chunks"; })) {
    request.chunks.reset();
  }
  return request;
}

std::vector<Problem> unused_options(const ScheduleRequest& given,
                                    const std::vector<ScheduleRequest>& takers) {
  std::vector<Problem> problems;
  const auto check = [&](const char* option, const std::string& whose, const auto& value_of) {
    if (!value_of(given).has_value()) return;
    if (std::ranges::none_of(takers, [&](const ScheduleRequest& request) {
          return value_of(request).has_value();
        })) {
      problems.push_back({option, "must not be given here: only " + whose});
    }
  };
  check("--chunks", "schedules with several chunks have it",
        [](const ScheduleRequest& request) { return request.chunks; });
  check("--microbatch-group", schedules_with(has_groups) + " have groups",
        [](const ScheduleRequest& request) { return request.microbatch_group; });
  check("--memory-limit", schedules_with(plans_by_cost, "optimal") + " are planned within one",
        [](const ScheduleRequest& request) { return request.memory_limit; });
  check("--weight-memory", schedules_with(counts_weight_memory) + " count what B gives back",
        [](const ScheduleRequest& request) { return request.memory; });
  check("--fused-time", schedules_with(fuses, "files with FB") + " fuse a forward with a backward",
        [](const ScheduleRequest& request) { return request.costs.fused; });
  return problems;
}

PipelineSchedule read_schedule_file(const ScheduleOptions& options,
                                    std::vector<Problem>& problems) {
  const std::string& path = options.name;
  const TextOrProblem file = read_input(path, InputKind::kText);
  if (!file.text) {
    problems.push_back({path, "can't be read: " + file.problem});
    return {};
  }
  PipelineSchedule schedule;
  std::vector<Problem> found;
  try {
    schedule = parse_schedule(*file.text);
    found = check_order(schedule);
  } catch (const ConfigError& error) {
    found = error.problems();
  }
  for (const Problem& problem : found) {
    problems.push_back({path + " " + problem.field, problem.message});
  }
  if (!found.empty()) return schedule;
  const ScheduleRequest& request = options.request;
  const auto must_be = [&](const char* option, std::optional<std::int64_t> given,
                           std::int64_t own) {
    if (given && *given != own) {
      problems.push_back({option, fmt::format("must be the file's {}, is {}", own, *given)});
    }
  };
  const auto given = [](std::int64_t count) {
    return count == 0 ? std::nullopt : std::optional(count);
  };
  must_be("--stages", given(request.stages), schedule.size());
  must_be("--microbatches", given(request.microbatches), schedule.microbatches);
  must_be("--chunks", request.chunks, schedule.chunks);
  const auto listed = static_cast<std::int32_t>(request.stage_costs.size());
  if (listed != 0 && listed != stage_count(schedule)) {
    problems.push_back({"--forward-time and other times by stage",
                        fmt::format("must be one of each of the {} global stages, are {}",
                                    stage_count(schedule), listed)});
  }
  const std::int64_t forwards =
      std::int64_t{schedule.size()} * schedule.microbatches * schedule.chunks;
  const std::int64_t most = kMostTime / forwards / 6;
  if (longest(request.costs) > most) {
    problems.push_back({"--forward-time", fmt::format("times must be at most {} picoseconds for so "
                                                      "many ops",
                                                      most)});
  }
  return schedule;
}

std::string describe_schedules() {
  const auto chunks = [](ChunkRule rule) {
    switch (rule) {
      case ChunkRule::kOne:
        return "1";
      case ChunkRule::kTwo:
        return "2";
      case ChunkRule::kEven:
        return "even";
      case ChunkRule::kAny:
        break;
    }
    return "any";
  };
  std::string text = "Schedules, each with the number of chunks a rank (V) that it takes:\n";
  for (const ScheduleName name : all_schedules()) {
    const PublishedSchedule& schedule = published(name);
    text +=
        fmt::format("  {:<20}{:<6}{}\n", schedule.name, chunks(schedule.chunks), schedule.summary);
  }
  return text + fmt::format("  {:<20}{:<6}{}\n", kOptimal, "any",
                            "searched for, for given times and a given memory");
}

}  // namespace stepsim

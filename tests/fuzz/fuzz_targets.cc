#include "tests/fuzz/fuzz_targets.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "analysis/accuracy/accuracy.h"
#include "analysis/accuracy/csv_table.h"
#include "proto/collective_files.h"
#include "proto/json_value.h"
#include "proto/load_experiment.h"
#include "proto/network_case/network_case.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/schedule_file.h"
#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "tests/fuzz/input_on_disk.h"

namespace stepsim {
namespace {

// Throws std::logic_error, which no reader may throw.
void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

void read_experiment_file(std::string_view input, std::string_view extension) {
  const InputOnDisk file(input, extension);
  load_experiment({.experiment = file.path()});
}

void read_model(std::string_view input) {
  const InputOnDisk file(input, ".json");
  load_model(file.path());
}

void read_cluster(std::string_view input) {
  const InputOnDisk file(input, ".textproto");
  load_cluster(file.path());
}

void read_plan_keys(std::string_view input) {
  load_experiment({.model = "llama3-8b", .cluster = "dgx-h100-8", .plan = std::string(input)});
}

// A line is "path=value" of --set.
void read_overrides(std::string_view input) {
  ExperimentSource source{.experiment = "llama3-8b-dgx-h100-8"};
  while (!input.empty() && source.overrides.size() < 20) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    source.overrides.emplace_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  load_experiment(source);
}

void read_network_case(std::string_view input) {
  const InputOnDisk file(input, ".json");
  load_network_case(file.path());
}

// A schedule that was read is written as text that reads as the same.
void read_schedule(std::string_view input) {
  const PipelineSchedule schedule = parse_schedule(input);
  require(write_schedule(parse_schedule(write_schedule(schedule))) == write_schedule(schedule),
          "a schedule changes when it is written and read");
  check_order(schedule);
}

void read_steps(std::string_view input) {
  const InputOnDisk file(input, ".textproto");
  load_step_list(file.path());
}

void read_matrix(std::string_view input) {
  const InputOnDisk file(input, ".json");
  load_byte_matrix(file.path());
}

void read_table(std::string_view input) {
  const InputOnDisk file(input, ".csv");
  const CsvTable table = read_csv(file.path());
  if (!kind_of(table)) missing_columns(table);
}

// A printed value reads as the same.
void read_json_value(std::string_view input) {
  const JsonOrProblem read = parse_json(input);
  if (!read.value) throw_if_any({{"input", read.problem}});
  const std::string text = json_text(*read.value);
  const JsonOrProblem again = parse_json(text);
  require(again.value && json_text(*again.value) == text, "a value changes when it is printed");
}

void read_quantities(std::string_view input) {
  const std::string text(input);
  const bool is_one =
      parse_bytes(text) || parse_bandwidth(text) || parse_throughput(text) || parse_duration(text);
  if (!is_one) throw_if_any({{"input", "is no quantity"}});
}

constexpr FuzzTarget kTargets[] = {
    {"experiment_text", [](std::string_view in) { read_experiment_file(in, ".textproto"); }},
    {"experiment_json", [](std::string_view in) { read_experiment_file(in, ".json"); }},
    {"hugging_face", read_model},
    {"cluster", read_cluster},
    {"plan_keys", read_plan_keys},
    {"overrides", read_overrides},
    {"network_case", read_network_case},
    {"schedule", read_schedule},
    {"algorithm", read_steps},
    {"byte_matrix", read_matrix},
    {"csv", read_table},
    {"json", read_json_value},
    {"quantity", read_quantities},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() {
  return kTargets;
}

const FuzzTarget* fuzz_target(std::string_view name) {
  const auto* found = std::ranges::find(kTargets, name, &FuzzTarget::name);
  return found == std::end(kTargets) ? nullptr : found;
}

bool is_accepted(const FuzzTarget& target, std::string_view input) {
  try {
    target.read(input);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace stepsim

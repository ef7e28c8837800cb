#include "tests/fuzz/fuzz_targets.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "measured/accuracy.h"
#include "pages/result_page.h"
#include "proto/catalog/load_failures.h"
#include "proto/collective_files.h"
#include "proto/load_experiment.h"
#include "proto/messages/json_value.h"
#include "proto/network_case/network_case.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/schedule_file.h"
#include "sim/base/csv_table.h"
#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "tests/fuzz/command_line_targets.h"
#include "tests/fuzz/import_targets.h"
#include "tests/fuzz/input_on_disk.h"
#include "tests/fuzz/measured_targets.h"
#include "tests/fuzz/random/choices.h"
#include "tests/fuzz/random/random_experiment.h"
#include "tests/fuzz/random/random_run.h"
#include "tests/fuzz/serving_targets.h"
#include "tests/fuzz/target_parts.h"

namespace stepsim {
namespace {

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

// A cluster with the fields of a chip or of a library, which are those of the catalog's files.
void read_part_of_cluster(std::string_view part, std::string_view fields) {
  std::string text = R"(nvlink_domain { gpus: 2 } )";
  if (part != "chip") text += R"(chip { catalog: "h100-sxm" } )";
  text.append(part).append(" {\n").append(fields).append("\n}\n");
  read_cluster(text);
}

void read_failures(std::string_view input) {
  const InputOnDisk file(input, ".textproto");
  load_failures(file.path());
}

void read_random_run(std::string_view input) {
  Choices choices(input);
  const RandomOutcome outcome = run_random(random_experiment(choices), Laws::kAll);
  require(outcome.broken.empty(), outcome.broken.c_str());
  throw_if_any(outcome.refused);
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
  is_measured_table(read_csv(file.path()));
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

// `stepsim view` of any result but a run's, which is an experiment.
void read_saved_result(std::string_view input) {
  const JsonOrProblem json = parse_json(input);
  const std::optional<ResultKind> kind = json.value ? kind_of_result(*json.value) : std::nullopt;
  if (!kind || *kind == ResultKind::kRun) throw_if_any({{"result", "has no page"}});
  const std::string html = result_page(*kind, *json.value);
  require(html.ends_with("</html>\n"), "a page that does not end");
}

constexpr FuzzTarget kTargets[] = {
    {"experiment_text", [](std::string_view in) { read_experiment_file(in, ".textproto"); }},
    {"experiment_json", [](std::string_view in) { read_experiment_file(in, ".json"); }},
    {"hugging_face", read_model},
    {"cluster", read_cluster},
    {"chip", [](std::string_view in) { read_part_of_cluster("chip", in); }},
    {"library", [](std::string_view in) { read_part_of_cluster("library", in); }},
    {"failures", read_failures},
    {"plan_keys", read_plan_keys},
    {"overrides", read_overrides},
    {"sweep_axes", read_sweep_axes},
    {"result_store", read_result_store},
    {"network_case", read_network_case},
    {"schedule", read_schedule},
    {"algorithm", read_steps},
    {"byte_matrix", read_matrix},
    {"csv", read_table},
    {"measured_rows", read_measured_rows},
    {"carbon_table", read_carbon_table},
    {"nccl_tests", read_nccl_tests},
    {"json", read_json_value},
    {"quantity", read_quantities},
    {"formula", read_formula_words},
    {"schedule_options", read_schedule_words},
    {"routing", read_expert_routing},
    {"ranks", read_ranks},
    {"serving_cases", read_serving_cases},
    {"serving_requests", read_serving_requests},
    {"serve_options", read_serve_words},
    {"chakra", read_chakra_trace},
    {"import_job", read_import_job},
    {"saved_result", read_saved_result},
    {"astra", read_astra_files},
    {"kineto", read_kineto_trace},
    {"xplane", read_xla_profile},
    {"goal", read_goal_schedule},
    {"aicb", read_aicb_workload},
    {"nccl_topology", [](std::string_view in) { read_network("nccl-topology", in); }},
    {"slurm_topology", [](std::string_view in) { read_network("slurm-topology", in); }},
    {"ns3_topology", [](std::string_view in) { read_network("ns3-topology", in); }},
    {"htsim_topology", [](std::string_view in) { read_network("htsim-topology", in); }},
    {"msccl", read_msccl_algorithm},
    {"megatron", [](std::string_view in) { read_trainer("megatron", in, ".sh"); }},
    {"torchtitan", [](std::string_view in) { read_trainer("torchtitan", in, ".toml"); }},
    {"maxtext", [](std::string_view in) { read_trainer("maxtext", in, ".yml"); }},
    {"nemo", [](std::string_view in) { read_trainer("nemo", in, ".yaml"); }},
    {"llama_factory", [](std::string_view in) { read_trainer("llama-factory", in, ".yaml"); }},
    {"ms_swift", [](std::string_view in) { read_trainer("ms-swift", in, ".sh"); }},
    {"primus", [](std::string_view in) { read_trainer("primus", in, ".yaml"); }},
    {"nanotron", [](std::string_view in) { read_trainer("nanotron", in, ".yaml"); }},
    {"deepspeed", [](std::string_view in) { read_trainer("deepspeed", in, ".json", "llama3-8b"); }},
    {"random_run", read_random_run},
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
  } catch (const std::range_error&) {  // a time or a size past its range, as main() says it
    return false;
  }
}

}  // namespace stepsim

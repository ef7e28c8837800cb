#include "tests/fuzz/import_targets.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "import/aicb/aicb.h"
#include "import/astra/astra.h"
#include "import/chakra/chakra.h"
#include "import/goal/goal.h"
#include "import/importer.h"
#include "import/job_file.h"
#include "import/replay.h"
#include "import/trace/kineto_import.h"
#include "import/trace/read_trace.h"
#include "import/trace/step_diff.h"
#include "import/trace/trace_measurements.h"
#include "proto/collective_files.h"
#include "proto/load_experiment.h"
#include "sim/base/error.h"
#include "tests/fuzz/input_on_disk.h"
#include "tests/fuzz/target_parts.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

// Any job that was read has an op graph, or problems.
void lower(const TraceJob& job) {
  const ChipSpec chip = ideal_chip();
  const OpGraph graph = replay(job, {.chip = &chip});
  require(graph.ranks.size() == job.ranks, "a graph of other ranks");
}

// A job that was written is read as the same.
void write_and_read(const TraceJob& job) {
  std::vector<Problem> problems;
  const std::string text = job_text(job);
  const std::optional<TraceJob> again = read_job(text, "job", problems);
  require(again && job_text(*again) == text, "a job changes when it is written and read");
}

}  // namespace

void read_chakra_trace(std::string_view input) {
  std::vector<Problem> problems;
  const ImportedJob read = read_chakra_text(input, problems);
  throw_if_any(std::move(problems));
  lower(read.job);
  write_and_read(read.job);
}

void read_import_job(std::string_view input) {
  std::vector<Problem> problems;
  const std::optional<TraceJob> job = read_job(input, "job", problems);
  throw_if_any(std::move(problems));
  require(job.has_value(), "neither a job nor a problem");
  write_and_read(*job);
  if (job->ranks <= 64) lower(*job);
}

// The network and the JSON of the system, with a line of dashes between them.
void read_astra_files(std::string_view input) {
  const std::size_t cut = input.find("\n---\n");
  const InputOnDisk network(input.substr(0, cut), ".yml");
  const InputOnDisk system(cut == std::string_view::npos ? "{}" : input.substr(cut + 5), ".sys");
  std::vector<Problem> problems;
  const auto dimensions = read_astra_network(network.path(), problems);
  const AstraSystem read = read_astra_system(system.path(), problems);
  throw_if_any(std::move(problems));
  std::size_t chips = 1;
  for (const AstraDimension& dimension : dimensions) chips *= dimension.size;
  if (chips <= 64) require(!astra_cluster(dimensions, read).empty(), "no cluster");
}

// A trace is diffed with itself, which leaves nothing, and its work is replayed.
void read_trace_at(const std::string& path) {
  std::vector<Problem> problems;
  const DeviceTrace trace = read_device_trace({path}, problems);
  throw_if_any(std::move(problems));
  const StepDiff diff = diff_steps(trace, trace, {}, problems);
  for (const KindDifference& kind : diff.by_kind) {
    require(kind.difference() == Duration(), "a trace that differs from itself");
  }
  const Imported imported = import_kineto({.files = {path}});
  lower(*imported.job);
}

void read_xla_profile(std::string_view input) {
  read_trace_at(InputOnDisk(input, ".pb").path());
}

void read_kineto_trace(std::string_view input) {
  const InputOnDisk file(input, ".json");
  read_trace_at(file.path());
  std::vector<Problem> problems;
  const TraceMeasurements measured = measure_trace({file.path()}, problems);
  require(!problems.empty() || measured.kernels.records.size() == measured.kernels.lines.size(),
          "a row without a line");
}

void read_goal_schedule(std::string_view input) {
  std::vector<Problem> problems;
  const GoalJob read = read_goal(input, "schedule.goal", problems);
  throw_if_any(problems);
  lower(read.job);
  const std::string text = goal_text(read.job, problems);
  const GoalJob again = read_goal(text, "schedule.goal", problems);
  require(problems.empty() && goal_text(again.job, problems) == text,
          "a schedule changes when it is written and read");
}

// What was read loads as it was written. A small cluster keeps each input short.
void read_trainer(std::string_view kind, std::string_view input, std::string_view extension,
                  const std::string& model) {
  const InputOnDisk file(input, extension);
  ImportRequest request;
  request.files = {file.path()};
  request.cluster = "dgx-h100-16";
  request.sets = {"plan.allow_idle_chips=true"};
  request.model = model;
  const Imported imported = find_importer(kind)->read(request);
  load_experiment({.experiment = std::string(kind), .text = imported.text});
}

void read_network(std::string_view kind, std::string_view input) {
  const InputOnDisk file(input, ".txt");
  const Imported imported = find_importer(kind)->read({.files = {file.path()}});
  const InputOnDisk cluster(imported.text, ".textproto");
  load_cluster(cluster.path());
}

void read_msccl_algorithm(std::string_view input) {
  const InputOnDisk file(input, ".xml");
  const Imported imported = find_importer("msccl")->read({.files = {file.path()}});
  const InputOnDisk algorithm(imported.text, ".textproto");
  load_step_list(algorithm.path());
}

void read_aicb_workload(std::string_view input) {
  std::vector<Problem> problems;
  const AicbJob read = read_aicb(input, "workload.txt", 0, problems);
  throw_if_any(std::move(problems));
  if (read.job.nodes() < 100'000 && read.job.ranks <= 4096) lower(read.job);
}

}  // namespace stepsim

#include "cli/sweep/point_bench.h"

#include <optional>
#include <string_view>
#include <utility>

#include "cli/run/experiment_result.h"
#include "cli/session/session.h"
#include "cli/version.h"
#include "proto/catalog/measured_tables.h"
#include "proto/messages/json_value.h"
#include "sim/base/error.h"
#include "sim/base/field_text.h"
#include "sim/run/simulate.h"
#include "store/result_store.h"

namespace stepsim {
namespace {

// The problems of a point in one line.
std::string text_of(const ConfigError& error) {
  std::string text;
  for (const Problem& problem : error.problems()) {
    std::string_view field = problem.field;
    if (field.starts_with("--set ")) field.remove_prefix(6);
    text += (text.empty() ? "" : "; ") + std::string(field) + ": " + problem.message;
  }
  return text;
}

class LocalBench final : public PointBench {
 public:
  LocalBench(const SweepRequest& request, const std::vector<IntervalEntry>& intervals)
      : request_(request), intervals_(intervals) {}

  PointState read(std::uint64_t number) override {
    ExperimentSource source = request_.source;
    for (std::string& text : request_.space.overrides(number)) {
      source.overrides.push_back(std::move(text));
    }
    try {
      loaded_ = load_with_topology(source);
    } catch (const ConfigError& error) {
      return {.problem = text_of(error)};
    }
    if (loaded_->simulation.fidelities.size() > 1) {
      return {.problem = "simulation.fidelity: must be one network model"};
    }
    // How the fields came to their values doesn't matter.
    const ExperimentRecord record{
        .fields = loaded_->record.fields, .lines = loaded_->record.lines, .overrides = {}};
    return {.key = key_of_experiment(record_json(record, loaded_->simulation, version()))};
  }

  PointResult run() override {
    try {
      loaded_->simulation.progress = session_progress;
      loaded_->simulation.progress_context = session_;
      return {.json = experiment_result(std::move(*loaded_), intervals_)};
    } catch (const DeadlockError&) {
      return {.problem = "the step never ends: `stepsim run` says which ranks wait for each other"};
    } catch (const ConfigError& error) {
      return {.problem = text_of(error)};
    }
  }

 private:
  const SweepRequest& request_;
  const std::vector<IntervalEntry>& intervals_;
  Session* const session_ = current_session();  // of the thread that made the bench
  std::optional<LoadedExperiment> loaded_;
};

// Questions to another process: the number of a point to be read, or kRun. Answers begin with what
// they are.
constexpr std::string_view kRun = "run";
constexpr char kResult = 'D';
constexpr char kNoResult = 'P';

class RemoteBench final : public PointBench {
 public:
  RemoteBench(ProcessGroup& group, std::size_t place) : group_(group), place_(place) {}

  PointState read(std::uint64_t number) override {
    const std::string text = group_.ask(place_, std::to_string(number));
    if (text.front() == kNoResult) return {.problem = text.substr(1)};
    return {.key = text.substr(1)};
  }
  PointResult run() override {
    std::string text = group_.ask(place_, std::string(kRun));
    const bool is_done = text.front() == kResult;
    text.erase(0, 1);
    return is_done ? PointResult{.json = std::move(text)} : PointResult{.problem = std::move(text)};
  }

 private:
  ProcessGroup& group_;
  std::size_t place_;
};

std::string answer_of(const std::string& done, const std::string& problem) {
  return problem.empty() ? kResult + done : kNoResult + problem;
}

std::string answer(PointBench& bench, const std::string& question) {
  if (question == kRun) {
    const PointResult result = bench.run();
    return answer_of(result.json, result.problem);
  }
  const PointState state = bench.read(number_in<std::uint64_t>(question).value());
  return answer_of(state.key, state.problem);
}

}  // namespace

std::unique_ptr<PointBench> make_bench(const SweepRequest& request,
                                       const std::vector<IntervalEntry>& intervals) {
  return std::make_unique<LocalBench>(request, intervals);
}

std::unique_ptr<PointBench> make_remote_bench(ProcessGroup& group, std::size_t place) {
  return std::make_unique<RemoteBench>(group, place);
}

std::string job_of(const SweepRequest& request) {
  return "stepsim " + std::string(version()) + ", sweep " + request.description;
}

void do_points_for(ProcessGroup& group, const std::vector<std::string>& arguments) {
  std::optional<SweepRequest> request;
  const std::vector<IntervalEntry> intervals = load_intervals();
  group.answer([&](const std::string& job) {
    request = read_sweep_request(arguments);
    if (job_of(*request) != job) {
      throw ConfigError({{"stepsim", "does not do what the first process does (" + job + "), but " +
                                         job_of(*request)}});
    }
    ProcessGroup::Answerers answerers;
    for (std::size_t thread = 0; thread < request->jobs; ++thread) {
      answerers.threads.push_back(
          [bench = std::shared_ptr<PointBench>(make_bench(*request, intervals))](
              const std::string& question) { return answer(*bench, question); });
    }
    return answerers;
  });
}

}  // namespace stepsim

#include "books/studies/training/pipeline_order.h"

#include <algorithm>

#include "experiment/step/schedule_run.h"
#include "schedules/lowering/order_graph.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

constexpr std::int64_t kForward = 1'000'000'000;  // a millisecond in picoseconds

}  // namespace

ScheduleRequest schedule_request(const Pipeline& pipeline) {
  const auto time = [&](std::int64_t thousandths) {
    return thousandths * (kForward / 1000) / pipeline.chunks;
  };
  ScheduleRequest request{
      .name = pipeline.name, .stages = pipeline.stages, .microbatches = pipeline.microbatches};
  if (pipeline.chunks > 1) request.chunks = pipeline.chunks;
  request.costs = {time(pipeline.forward), time(pipeline.input), time(pipeline.weight),
                   pipeline.message * (kForward / 1000)};
  return request;
}

PipelineReplay run(const Laboratory& laboratory, const Pipeline& pipeline,
                   const PipelineSchedule& schedule) {
  const PipelineCosts costs = schedule_request(pipeline).costs;
  const OpGraph graph = order_graph(schedule, costs);
  SimulationOptions options;
  options.recorded_ranks = all_ranks(graph);
  return replayed_of(
      graph,
      laboratory.simulate(graph, order_cluster(schedule.size(), Duration(costs.send)), options));
}

PipelineReplay run(const Laboratory& laboratory, const Pipeline& pipeline) {
  return run(laboratory, pipeline, make_schedule(schedule_request(pipeline)));
}

double bubble_fraction(const PipelineReplay& replayed) {
  return static_cast<double>(replayed.bubble()) / static_cast<double>(replayed.makespan);
}

double in_forwards(std::int64_t picoseconds) {
  return static_cast<double>(picoseconds) / static_cast<double>(kForward);
}

std::string short_name(const Pipeline& pipeline) {
  if (pipeline.name == ScheduleName::kInterleaved) {
    return "v" + std::to_string(pipeline.chunks);
  }
  return with_dashes(name_of(pipeline.name));
}

}  // namespace stepsim

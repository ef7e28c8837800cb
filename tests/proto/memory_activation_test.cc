// Activation memory and model state of Korthikanti et al. (arXiv 2205.05198), figures 1 and 7, as
// in tests/reference/measured/memory_activation.csv. The values here follow from the models of the
// catalog, the kernels of their layers, the recompute of the plan and the order of the pipeline
// schedule.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "proto/catalog/catalog_reference.h"
#include "proto/to_spec.h"
#include "schedules/lowering/recompute/recompute.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/replay.h"
#include "sim/base/csv_table.h"
#include "tests/support/reference_folder.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// Table 3 of the paper; 2,048 tokens.
struct Configuration {
  const char* model;
  std::int64_t pipeline, chunks, microbatch, microbatches;
};
const std::map<std::string, Configuration> kConfigurations = {
    {"22B", {"megatron-22b", 1, 1, 4, 1}},
    {"175B", {"megatron-175b", 8, 3, 1, 64}},
    {"530B", {"megatron-530b", 35, 3, 1, 280}},
    {"1T", {"megatron-1t", 64, 1, 1, 512}}};
constexpr std::int64_t kTensor = 8;

ModelSpec model_named(const char* name) {
  file::Model message;
  message.set_catalog(name);
  ProblemList problems;
  EXPECT_TRUE(resolve(message, "", problems)) << name;
  return to_model(message, problems);
}

struct Saving {
  bool sequence_parallel = false;
  bool selective = false;
  bool full = false;
};

// Returns the bytes that one layer keeps of a micro-batch.
double kept(const Configuration& configuration, const Saving& saving) {
  const Layer layer =
      build_layers(model_named(configuration.model), {.sequences = configuration.microbatch,
                                                      .sequence_length = 2048,
                                                      .tensor = kTensor,
                                                      .sequence_parallel = saving.sequence_parallel,
                                                      .kernels = {.fused_attention = false}})
          .block(0);
  if (saving.full) return static_cast<double>(layer.ops.front().saved.total.value());
  ParallelPlan plan;
  if (saving.selective) plan.recomputing.kind = Recompute::kSelective;
  return static_cast<double>(
      kept(recomputed_ops(layer, plan.recomputing, plan.mesh, plan.tensor.cp_mode)).value());
}

// Returns the peak activations of the first stage, in units of one layer's.
double layers_in_flight(const Configuration& configuration) {
  const PipelineSchedule schedule =
      make_schedule({.name = configuration.chunks > 1 ? ScheduleName::kInterleaved
                                                      : ScheduleName::kOneForwardOneBackward,
                     .stages = configuration.pipeline,
                     .microbatches = configuration.microbatches,
                     .chunks = configuration.chunks});
  const std::int64_t in_flight = replay(schedule, PipelineCosts{}).peak_in_flight.front();
  const double layers = static_cast<double>(model_named(configuration.model).layers) /
                        static_cast<double>(configuration.pipeline * configuration.chunks);
  return static_cast<double>(in_flight) * layers;
}

// bf16 weights, fp32 gradients, fp32 weights and two moments: 18 bytes a parameter.
double state(const Configuration& configuration) {
  return 18.0 * static_cast<double>(parameter_count(model_named(configuration.model))) /
         static_cast<double>(kTensor * configuration.pipeline);
}

const std::map<std::string, Saving> kSavings = {
    {"no recompute, no SP", {}},
    {"selective recompute + SP", {.sequence_parallel = true, .selective = true}},
    {"TP only", {}},
    {"SP", {.sequence_parallel = true}},
    {"selective", {.selective = true}},
    {"SP+selective", {.sequence_parallel = true, .selective = true}},
    {"full recompute", {.full = true}}};

TEST(MemoryActivationTest, EveryRowIsPredictedWithinThreePercent) {
  const CsvTable table =
      read_csv((reference_folder() / "measured" / "memory_activation.csv").string());
  EXPECT_EQ(table.records.size(), 32U);
  for (std::size_t row = 0; row < table.records.size(); ++row) {
    const std::string how(table.at(row, "config"));
    const std::string model(table.at(row, "model"));
    const std::string_view quantity = table.at(row, "quantity");
    const Configuration& configuration = kConfigurations.at(model);
    double predicted = 0;
    if (quantity == "parameters+optimizer") {
      predicted = state(configuration) / (1 << 30);
    } else if (quantity == "activations") {
      predicted =
          kept(configuration, kSavings.at(how)) * layers_in_flight(configuration) / (1 << 30);
    } else {
      predicted = 100 * kept(configuration, kSavings.at(how)) / kept(configuration, {});
    }
    EXPECT_NEAR(predicted / table.number(row, "value").value(), 1, 0.03) << model << ", " << how;
  }
}

}  // namespace
}  // namespace stepsim

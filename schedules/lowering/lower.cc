#include "schedules/lowering/lower.h"

#include <cassert>
#include <string>
#include <utility>

#include "schedules/lowering/graph_tables.h"
#include "schedules/lowering/planned_bytes.h"
#include "schedules/lowering/recompute.h"
#include "schedules/lowering/stage_lowering.h"
#include "schedules/lowering/tensor.h"
#include "schedules/pipeline/one_forward_one_backward.h"
#include "schedules/plan/communicators.h"
#include "workload/layers.h"

namespace stepsim {
namespace {

// The last stage reads the embedding's table, of which the first is the owner.
bool copies_table(const ModelSpec& model, const ParallelPlan& plan) {
  return (model.tied_embeddings || model.prediction_modules > 0) && plan.pp > 1;
}

PlanCommunicators add_communicators(const ModelSpec& model, const ParallelPlan& plan,
                                    GraphTables& tables) {
  PlanCommunicators result;
  auto add = [&](std::string name, Axis purpose, std::initializer_list<PlanAxis> axes) {
    return tables.communicator(partition(plan, std::move(name), purpose, axes));
  };
  if (plan.tp > 1) {
    result.tensor = add("tp", Axis::kTensor, {PlanAxis::kTensor});
    if (plan.sequence_parallel) {
      result.tensor_regather = add("tp regather", Axis::kTensor, {PlanAxis::kTensor});
    }
  }
  if (plan.pp > 1) result.pipeline = add("pp", Axis::kPipeline, {PlanAxis::kPipeline});
  if (plan.dp * plan.cp > 1) {
    const auto replicas = {PlanAxis::kContext, PlanAxis::kData};
    result.gradients = add("dp gradients", Axis::kData, replicas);
    if (plan.zero >= 1) result.parameters = add("dp parameters", Axis::kData, replicas);
  }
  if (copies_table(model, plan)) {
    result.tied_embedding =
        tables.communicator(first_and_last_stage(plan, "tied embedding", Axis::kData));
  }
  return result;
}

std::vector<RankData> place(const ParallelPlan& plan, const Places& places) {
  const std::vector<std::uint32_t> chips = place_ranks(plan, places);
  std::vector<RankData> ranks;
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
    const auto at = [&](PlanAxis axis) {
      return static_cast<std::uint32_t>(coordinate(plan, rank, axis));
    };
    ranks.push_back({.program = ProgramId(at(PlanAxis::kPipeline)),
                     .chip = chips[static_cast<std::size_t>(rank)],
                     .tp = at(PlanAxis::kTensor),
                     .cp = at(PlanAxis::kContext),
                     .dp = at(PlanAxis::kData),
                     .pp = at(PlanAxis::kPipeline)});
  }
  return ranks;
}

LoweredLayer lower_block(const Layer& layer, const ParallelPlan& plan, Bytes boundary) {
  const bool selective = plan.recompute == Recompute::kSelective;
  const LoweredLayer block =
      lower_tensor(selective ? recompute_selectively(layer) : layer, plan, boundary, false);
  return plan.recompute == Recompute::kFull ? recompute_fully(block) : block;
}

struct LoweredModule {
  LoweredLayer entry;
  LoweredLayer head;
};

// The only schedule that a checked plan can name so far.
PipelineSchedule make_schedule(const ParallelPlan& plan) {
  assert(plan.schedule == ScheduleName::kOneForwardOneBackward);
  return one_forward_one_backward(static_cast<std::int32_t>(plan.pp),
                                  static_cast<std::int32_t>(plan.microbatches()));
}

}  // namespace

OpGraph lower(const ModelSpec& model, const ParallelPlan& plan, const Places& places,
              const ChipSpec& chip) {
  const ModelLayers layers =
      build_layers(model, {.sequences = plan.microbatch,
                           .sequence_length = plan.sequence,
                           .tensor = plan.tp,
                           .sequence_parallel = plan.sequence_parallel && plan.tp > 1,
                           .types = all_of_type(plan.type)});
  const Bytes crossing = layers.tensor_boundary;
  const LoweredLayer embedding = lower_tensor(layers.embedding, plan, crossing, false);
  std::vector<LoweredLayer> blocks;
  for (const Layer& block : layers.blocks) blocks.push_back(lower_block(block, plan, crossing));
  const LoweredLayer head = lower_tensor(layers.head, plan, crossing, true);
  std::vector<LoweredModule> prediction;
  for (const PredictionModule& module : layers.prediction) {
    prediction.push_back({.entry = lower_tensor(module.entry, plan, crossing, false),
                          .head = lower_tensor(module.head, plan, crossing, true)});
  }

  OpGraph graph;
  graph.path_labels = {"forward", "backward", "recompute", "optimizer"};
  graph.pipeline_stages = static_cast<std::uint32_t>(plan.pp);
  graph.ranks = place(plan, places);
  GraphTables tables(graph);
  const PlanCommunicators communicators = add_communicators(model, plan, tables);
  const PipelineSchedule schedule = make_schedule(plan);
  std::size_t next_block = 0;
  for (std::int32_t stage = 0; stage < plan.pp; ++stage) {
    const bool first = stage == 0;
    const bool last = stage == plan.pp - 1;
    std::vector<StageUnit> units;
    if (first && !embedding.empty()) units.push_back({&embedding, "embedding", -1});
    for (std::int64_t i = 0; i < plan.layers_of(stage, model.layers); ++i) {
      const std::uint32_t kind = layers.kind_of_block[next_block];
      units.push_back(
          {&blocks[kind], layers.blocks[kind].name, static_cast<std::int32_t>(next_block++)});
    }
    if (last && !head.empty()) units.push_back({&head, "head", -1});
    for (std::size_t module = 0; last && module < prediction.size(); ++module) {
      const std::uint32_t kind = layers.prediction[module].kind_of_block;
      units.push_back({&prediction[module].entry, layers.prediction[module].entry.name, -1});
      units.push_back(
          {&blocks[kind], layers.blocks[kind].name, static_cast<std::int32_t>(next_block++)});
      units.push_back({&prediction[module].head, layers.prediction[module].head.name, -1});
    }
    Stage writing{.plan = plan,
                  .communicators = communicators,
                  .tables = tables,
                  .number = stage,
                  .units = std::move(units),
                  .boundary = layers.boundary,
                  .tied_parameters = copies_table(model, plan) && (first || last)
                                         ? layers.embedding.parameters()
                                         : 0,
                  .builder = ProgramBuilder("stage " + std::to_string(stage))};
    graph.programs.push_back(lower_stage(
        std::move(writing), schedule.ranks[static_cast<std::size_t>(stage)], chip.fixed_memory));
  }
  graph.planned_bytes = planned_bytes(model, plan, layers);
  return graph;
}

}  // namespace stepsim

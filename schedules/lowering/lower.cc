#include "schedules/lowering/lower.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "schedules/lowering/bytes/planned_bytes.h"
#include "schedules/lowering/split_pass.h"
#include "schedules/lowering/stages/graph_tables.h"
#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/lowering/stages/offload.h"
#include "schedules/lowering/stages/shared_weights.h"
#include "schedules/lowering/stages/stage_contents.h"
#include "schedules/lowering/stages/stage_lowering.h"
#include "schedules/lowering/steps/context.h"
#include "schedules/pipeline/orders/fused_neighbours.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/communicators.h"
#include "schedules/plan/expert_places.h"
#include "schedules/plan/plan_schedule.h"
#include "workload/experts.h"

namespace stepsim {
namespace {

// Adds the communicators of ranks with equal parameters: one for reductions and, with hybrid
// sharding, one for sums over the groups that divide the state.
ReplicaGroups add_replica_groups(const Communicator& replicas, const std::string& name,
                                 std::int64_t size, std::int64_t shards, int zero,
                                 GraphTables& tables) {
  ReplicaGroups result{
      .replicas = size, .shards = shards, .gradients = {}, .parameters = {}, .across = {}};
  const auto add = [&](Communicator communicator, const std::string& what) {
    communicator.name = name + " " + what;
    return tables.communicator(std::move(communicator));
  };
  const Communicator dividing =
      shards == size ? replicas : neighbours(replicas, replicas.name, shards);
  if (shards > 1) {
    result.gradients = add(dividing, "gradients");
    if (zero >= 1) result.parameters = add(dividing, "parameters");
  }
  if (shards < size) {
    result.across = add(across_neighbours(replicas, replicas.name, shards), "gradients across");
  }
  return result;
}

void add_lane(Lane lane, Communicator communicator, GraphTables& tables,
              PlanCommunicators& result) {
  communicator.name = name_of(lane);
  communicator.in_background = is_regather(lane);
  result.lanes[static_cast<std::size_t>(lane)] = tables.communicator(std::move(communicator));
}

void add_expert_lanes(const ParallelPlan& plan, GraphTables& tables, PlanCommunicators& result) {
  const auto group = [&](ExpertAxis axis) {
    return expert_partition(plan, "ep", Axis::kExpert, {axis});
  };
  if (plan.mesh.etp > 1) {
    add_lane(Lane::kExpertTensor, group(ExpertAxis::kExpertTensor), tables, result);
  }
  if (plan.mesh.ep > 1) add_lane(Lane::kExperts, group(ExpertAxis::kExpert), tables, result);
}

void add_width_lanes(const ParallelPlan& plan, GraphTables& tables, PlanCommunicators& result) {
  const Communicator all = partition(plan, "", Axis::kTensor, {PlanAxis::kTensor});
  for (const Lane lane : {Lane::kWidth, Lane::kWidthRegather}) {
    add_lane(lane, neighbours(all, "", plan.tensor.tensor_width), tables, result);
  }
  for (const Lane lane : {Lane::kFeatures, Lane::kFeaturesRegather}) {
    add_lane(lane, across_neighbours(all, "", plan.tensor.tensor_width), tables, result);
  }
}

PlanCommunicators add_communicators(const ModelSpec& model, const ParallelPlan& plan,
                                    const PipelineSchedule& schedule, GraphTables& tables) {
  PlanCommunicators result;
  const auto add = [&](std::string name, Axis purpose, std::initializer_list<PlanAxis> axes) {
    return tables.communicator(partition(plan, std::move(name), purpose, axes));
  };
  const auto add_axis = [&](Lane lane, PlanAxis axis) {
    add_lane(lane, partition(plan, "", axis_of(lane), {axis}), tables, result);
  };
  if (plan.mesh.tp > 1) {
    add_axis(Lane::kTensor, PlanAxis::kTensor);
    if (has_fused_ops(schedule)) add_axis(Lane::kTensorBackward, PlanAxis::kTensor);
    if (plan.tensor.sequence_parallel) add_axis(Lane::kTensorRegather, PlanAxis::kTensor);
    if (plan.divides_width()) add_width_lanes(plan, tables, result);
  }
  if (plan.mesh.cp > 1) {
    add_axis(Lane::kContext, PlanAxis::kContext);
    if (plan.tensor.cp_mode != ContextMode::kUlysses && !plan.is_inference()) {
      add_axis(Lane::kContextGradients, PlanAxis::kContext);
    }
  }
  if (model.experts.routed > 0) add_expert_lanes(plan, tables, result);
  if (plan.mesh.pp > 1) result.pipeline = add("pp", Axis::kPipeline, {PlanAxis::kPipeline});
  const bool copies = schedule.placement == Placement::kBidirectional;
  const auto add_replicas = [&](Communicator replicas, const std::string& name,
                                std::int64_t shards) {
    const Communicator all = copies ? mirrored(plan, replicas) : std::move(replicas);
    return add_replica_groups(all, name, static_cast<std::int64_t>(all.groups.front().size()),
                              shards * (copies ? 2 : 1), plan.state.zero, tables);
  };
  const auto add_dense = [&](const std::string& name) {
    return add_replicas(partition(plan, "dp", Axis::kData, {PlanAxis::kContext, PlanAxis::kData}),
                        name, plan.sharded_over());
  };
  const auto add_experts = [&](const std::string& name) {
    return add_replicas(expert_partition(plan, "edp", Axis::kData, {ExpertAxis::kExpertData}), name,
                        plan.edp());
  };
  result.dense = add_dense("dp");
  if (copies) result.upper_dense = add_dense("dp upper");
  if (model.experts.routed > 0) {
    result.experts = add_experts("edp");
    if (copies) result.upper_experts = add_experts("edp upper");
  }
  for (const SharedWeights& weights : shared_weights(model, plan)) {
    result.shared.push_back(
        tables.communicator(some_stages(plan, weights.name, Axis::kData, weights.holders)));
  }
  // Replicas with whole gradients compute the same norm.
  const bool alike = plan.state.zero == 0 && plan.mesh.ep == 1;
  const std::int64_t of_a_stage = alike ? plan.mesh.tp : plan.ranks() / plan.mesh.pp;
  if (plan.update.clip_gradients && plan.update.post_validation && of_a_stage > 1) {
    result.norm = alike ? add("gradient norm", Axis::kOther, {PlanAxis::kTensor})
                        : add("gradient norm", Axis::kOther,
                              {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData});
  } else if (plan.update.clip_gradients && !plan.update.post_validation &&
             of_a_stage * plan.mesh.pp > 1) {
    result.norm = alike
                      ? add("gradient norm", Axis::kOther, {PlanAxis::kTensor, PlanAxis::kPipeline})
                      : tables.communicator(everybody(plan, "gradient norm", Axis::kOther));
  }
  return result;
}

std::vector<RankData> place(const ModelSpec& model, const ParallelPlan& plan,
                            const Places& places) {
  const std::vector<std::uint32_t> chips = place_ranks(plan, places);
  const auto roles = static_cast<std::uint32_t>(roles_of(model, plan).size());
  std::vector<RankData> ranks;
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
    const auto at = [&](PlanAxis axis) {
      return static_cast<std::uint32_t>(coordinate(plan, rank, axis));
    };
    const auto role = static_cast<std::uint32_t>(role_of(model, plan, rank));
    ranks.push_back({.program = ProgramId(at(PlanAxis::kPipeline) * roles + role),
                     .chip = chips[static_cast<std::size_t>(rank)],
                     .tp = at(PlanAxis::kTensor),
                     .cp = at(PlanAxis::kContext),
                     .dp = at(PlanAxis::kData),
                     .pp = at(PlanAxis::kPipeline)});
  }
  return ranks;
}

std::string name_of(std::int32_t stage, const Role& role, const ModelSpec& model,
                    const ParallelPlan& plan) {
  std::string name = "stage " + std::to_string(stage);
  if (context_ranks_differ(plan, model)) name += ", cp " + std::to_string(role.context_rank);
  if (!model.experts.load.empty()) name += ", ep " + std::to_string(role.expert_rank);
  return name;
}

void add_host(const HostLaunches& launches, OpGraph& graph) {
  graph.host = {.launch = *launches.host_launch_cost,
                .queue_depth = static_cast<std::uint32_t>(launches.host_queue_depth)};
  for (Program& program : graph.programs) {
    for (LaunchCall& call : program.launches) {
      const Op& op = program.ops[call.op.index()];
      if (op.kind == OpKind::kCompute) call.launches = launches_of(graph.compute_works[op.work]);
    }
  }
}

}  // namespace

OpGraph lower(const ModelSpec& model, const ParallelPlan& plan, const Places& places,
              const ChipSpec& chip, const PipelineCosts& costs) {
  if (plan.splits_ffn()) return lower_split_pass(model, plan, places, chip);
  const std::vector<Role> roles = roles_of(model, plan);
  ExpertExchange exchange;
  if (routes_by_matrix(model, plan)) {
    const Shard shard = shard_of(plan, {});
    exchange = expert_exchange(model, plan, token_routing(part_of_model(model, shard)), places);
  }
  std::vector<LoweredModel> models;
  for (const Role& role : roles) models.push_back(lower_model(model, plan, role, exchange));

  OpGraph graph;
  graph.path_labels = {"forward", "backward", "recompute", "optimizer"};
  graph.pipeline_stages = static_cast<std::uint32_t>(plan.mesh.pp);
  graph.ranks = place(model, plan, places);
  GraphTables tables(graph);
  const PipelineSchedule schedule = schedule_of(plan, costs);
  std::optional<Posting> posting;
  if (const auto rule = posting_rule(plan)) posting = rule->post(schedule, costs);
  const PlanCommunicators communicators = add_communicators(model, plan, schedule, tables);
  const ModelLayers& layers = models.front().layers;
  const std::vector<std::int32_t> first_block = first_blocks(model, plan, schedule);
  std::vector<Bytes> boundaries;
  for (std::size_t stage = 1; stage + 1 < first_block.size(); ++stage) {
    boundaries.push_back(message_size(model, plan, layers, first_block[stage]));
  }
  std::vector<Bytes> on_host;  // by program: bytes copied to the host and back
  const auto write = [&](std::int32_t rank, std::size_t role) {
    Stage writing{.plan = plan,
                  .communicators = communicators,
                  .schedule = schedule,
                  .posting = posting ? &*posting : nullptr,
                  .tables = tables,
                  .number = rank,
                  .chunks = {},
                  .boundaries = boundaries,
                  .boundary = layers.boundary,
                  .weights = Bytes(0),
                  .cache = Bytes(0),
                  .builder = ProgramBuilder(name_of(rank, roles[role], model, plan))};
    // Stages have about as many ops as the one before.
    if (!graph.programs.empty()) writing.builder.expect(graph.programs.back());
    fill_stage(model, models[role], writing);
    on_host.push_back(offloaded_bytes(writing));
    return lower_stage(std::move(writing), chip.fixed_memory);
  };
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    for (std::size_t role = 0; role < roles.size(); ++role) {
      graph.programs.push_back(write(rank, role));
    }
  }
  if (plan.is_launched()) add_host(plan.launches, graph);
  graph.axes = axis_names();
  graph.planned_bytes = planned_bytes(model, plan, models.front(), exchange);
  graph.byte_matrices = std::move(exchange.matrices);
  Bytes& copied = (*graph.planned_bytes)[static_cast<std::size_t>(Axis::kHost)];
  for (const RankData& rank : graph.ranks) copied += on_host[rank.program.index()];
  return graph;
}

}  // namespace stepsim

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

void add_expert_lanes(const Ranks& mesh, GraphTables& tables, PlanCommunicators& result) {
  const auto group = [&](ExpertAxis axis) {
    return expert_partition(mesh, "ep", Axis::kExpert, {axis});
  };
  if (mesh.etp > 1) {
    add_lane(Lane::kExpertTensor, group(ExpertAxis::kExpertTensor), tables, result);
  }
  if (mesh.ep > 1) add_lane(Lane::kExperts, group(ExpertAxis::kExpert), tables, result);
}

void add_width_lanes(const Ranks& mesh, std::int64_t width, GraphTables& tables,
                     PlanCommunicators& result) {
  const Communicator all = partition(mesh, "", Axis::kTensor, {PlanAxis::kTensor});
  for (const Lane lane : {Lane::kWidth, Lane::kWidthRegather}) {
    add_lane(lane, neighbours(all, "", width), tables, result);
  }
  for (const Lane lane : {Lane::kFeatures, Lane::kFeaturesRegather}) {
    add_lane(lane, across_neighbours(all, "", width), tables, result);
  }
}

PlanCommunicators add_communicators(const ModelSpec& model, const ParallelPlan& plan,
                                    const PipelineSchedule& schedule, GraphTables& tables) {
  PlanCommunicators result;
  const auto add = [&](std::string name, Axis purpose, std::initializer_list<PlanAxis> axes) {
    return tables.communicator(partition(plan.mesh, std::move(name), purpose, axes));
  };
  const auto add_axis = [&](Lane lane, PlanAxis axis) {
    add_lane(lane, partition(plan.mesh, "", axis_of(lane), {axis}), tables, result);
  };
  if (plan.mesh.tp > 1) {
    add_axis(Lane::kTensor, PlanAxis::kTensor);
    if (has_fused_ops(schedule)) add_axis(Lane::kTensorBackward, PlanAxis::kTensor);
    if (plan.tensor.sequence_parallel) add_axis(Lane::kTensorRegather, PlanAxis::kTensor);
    if (plan.tensor.divides_width())
      add_width_lanes(plan.mesh, plan.tensor.tensor_width, tables, result);
  }
  if (plan.mesh.cp > 1) {
    add_axis(Lane::kContext, PlanAxis::kContext);
    if (plan.tensor.cp_mode != ContextMode::kUlysses && !plan.is_inference()) {
      add_axis(Lane::kContextGradients, PlanAxis::kContext);
    }
  }
  if (model.experts.routed > 0) add_expert_lanes(plan.mesh, tables, result);
  if (plan.mesh.pp > 1) result.pipeline = add("pp", Axis::kPipeline, {PlanAxis::kPipeline});
  const bool copies = schedule.placement == Placement::kBidirectional;
  const auto add_replicas = [&](Communicator replicas, const std::string& name,
                                std::int64_t shards) {
    const Communicator all = copies ? mirrored(plan.mesh, replicas) : std::move(replicas);
    return add_replica_groups(all, name, static_cast<std::int64_t>(all.groups.front().size()),
                              shards * (copies ? 2 : 1), plan.state.zero, tables);
  };
  const auto add_dense = [&](const std::string& name) {
    return add_replicas(
        partition(plan.mesh, "dp", Axis::kData, {PlanAxis::kContext, PlanAxis::kData}), name,
        plan.sharded_over());
  };
  const auto add_experts = [&](const std::string& name) {
    return add_replicas(expert_partition(plan.mesh, "edp", Axis::kData, {ExpertAxis::kExpertData}),
                        name, plan.mesh.edp());
  };
  result.dense = add_dense("dp");
  if (copies) result.upper_dense = add_dense("dp upper");
  if (model.experts.routed > 0) {
    result.experts = add_experts("edp");
    if (copies) result.upper_experts = add_experts("edp upper");
  }
  for (const SharedWeights& weights : shared_weights(model, plan)) {
    result.shared.push_back(
        tables.communicator(some_stages(plan.mesh, weights.name, Axis::kData, weights.holders)));
  }
  // Replicas with whole gradients compute the same norm.
  const bool alike = plan.state.zero == 0 && plan.mesh.ep == 1;
  const std::int64_t of_a_stage = alike ? plan.mesh.tp : plan.mesh.ranks() / plan.mesh.pp;
  if (plan.update.clip_gradients && plan.update.post_validation && of_a_stage > 1) {
    result.norm = alike ? add("gradient norm", Axis::kOther, {PlanAxis::kTensor})
                        : add("gradient norm", Axis::kOther,
                              {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData});
  } else if (plan.update.clip_gradients && !plan.update.post_validation &&
             of_a_stage * plan.mesh.pp > 1) {
    result.norm = alike
                      ? add("gradient norm", Axis::kOther, {PlanAxis::kTensor, PlanAxis::kPipeline})
                      : tables.communicator(everybody(plan.mesh, "gradient norm", Axis::kOther));
  }
  return result;
}

std::vector<RankData> place(const Ranks& mesh, const Roles& roles, const Places& places) {
  const std::vector<std::uint32_t> chips = place_ranks(mesh, places);
  std::vector<RankData> ranks;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const auto at = [&](PlanAxis axis) {
      return static_cast<std::uint32_t>(coordinate(mesh, rank, axis));
    };
    const std::size_t program = at(PlanAxis::kPipeline) * roles.size() + roles.of(mesh, rank);
    ranks.push_back({.program = ProgramId(static_cast<std::uint32_t>(program)),
                     .chip = chips[static_cast<std::size_t>(rank)],
                     .tp = at(PlanAxis::kTensor),
                     .cp = at(PlanAxis::kContext),
                     .dp = at(PlanAxis::kData),
                     .pp = at(PlanAxis::kPipeline)});
  }
  return ranks;
}

std::string name_of(std::int32_t stage, const Role& role, const Roles& roles) {
  std::string name = "stage " + std::to_string(stage);
  if (roles.contexts > 1) name += ", cp " + std::to_string(role.context_rank);
  if (roles.experts > 1) name += ", ep " + std::to_string(role.expert_rank);
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
  if (plan.mesh.splits_ffn()) return lower_split_pass(model, plan, places, chip);
  const Roles roles = roles_of(model, plan);
  ExpertExchange exchange;
  if (routes_by_matrix(model, plan.mesh, plan.experts)) {
    const Shard shard = shard_of(plan, {});
    exchange = expert_exchange(model, plan.mesh, plan.experts,
                               token_routing(part_of_model(model, shard)), places);
  }
  std::vector<LoweredModel> models;
  for (std::size_t role = 0; role < roles.size(); ++role) {
    models.push_back(lower_model(model, plan, roles[role], exchange));
  }

  OpGraph graph;
  graph.path_labels = {"forward", "backward", "recompute", "optimizer"};
  graph.pipeline_stages = static_cast<std::uint32_t>(plan.mesh.pp);
  graph.ranks = place(plan.mesh, roles, places);
  GraphTables tables(graph);
  const PipelineSchedule schedule = schedule_of(plan, costs);
  std::optional<Posting> posting;
  if (const auto rule = posting_rule(plan)) posting = rule->post(schedule, costs);
  const PlanCommunicators communicators = add_communicators(model, plan, schedule, tables);
  const ModelLayers& layers = models.front().layers;
  const std::vector<std::int32_t> first_block = first_blocks(layers_of_stages(plan, model.layers));
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
                  .builder = ProgramBuilder(name_of(rank, roles[role], roles))};
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
  if (plan.launches.delay_ops()) add_host(plan.launches, graph);
  graph.axes = axis_names();
  graph.planned_bytes = planned_bytes(model, plan, models.front(), exchange);
  graph.byte_matrices = std::move(exchange.matrices);
  Bytes& copied = (*graph.planned_bytes)[static_cast<std::size_t>(Axis::kHost)];
  for (const RankData& rank : graph.ranks) copied += on_host[rank.program.index()];
  return graph;
}

}  // namespace stepsim

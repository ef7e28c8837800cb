#include "experiment/bounds/plan_bounds.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "experiment/pass_dispatch.h"
#include "schedules/lowering/stages/optimizer.h"
#include "schedules/lowering/stages/stage.h"
#include "schedules/lowering/stages/stage_contents.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/communicators.h"
#include "schedules/plan/expert_places.h"
#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/run/ops/chip_share.h"
#include "workload/experts.h"

namespace stepsim {

namespace {

// A plan without what changes no layer of one rank, as text.
std::string share_key(ParallelPlan plan, bool has_matrix) {
  if (!has_matrix) {
    plan.mesh.dp = 1;
    plan.mesh.order = ParallelPlan{}.mesh.order;
    plan.mesh.map.clear();
    plan.mesh.chips_per_domain.reset();
  }
  plan.mesh.pp = 1;
  plan.batch.global_batch = 0;
  plan.pipeline.schedule = ScheduleName::kOneForwardOneBackward;
  plan.pipeline.own_schedule.reset();
  plan.pipeline.schedule_file.clear();
  plan.pipeline.optimal_schedule = false;
  plan.pipeline.chunks.reset();
  plan.pipeline.layout.clear();
  if (!plan.buffers.fsdp_copies) plan.state.zero = 0;
  std::string key;
  for (const AnyField* field : all_keys()) key += field->write(&plan).value_or("") + ",";
  return key;
}

std::string mesh_key(const Ranks& mesh) {
  std::string key;
  for (const std::int64_t size :
       {mesh.tp, mesh.cp, mesh.dp, mesh.pp, mesh.ep, mesh.etp, mesh.chips_per_domain.value_or(0)}) {
    key += std::to_string(size) + ",";
  }
  for (const PlanAxis axis : mesh.order) key += std::string(name_of(axis)) + "-";
  for (const AxisMapping& mapping : mesh.map) {
    key += std::string(name_of(mapping.axis)) + ":";
    for (const std::string& level : mapping.levels) key += level + "+";
  }
  return key;
}

std::string order_key(const PipelinePlan& pipeline, std::int64_t pp, std::int64_t microbatches,
                      bool fuses) {
  std::string key(schedule_text(pipeline));
  for (const std::int64_t number :
       {pp, microbatches, chunks_of(pipeline), pipeline.microbatch_group.value_or(0),
        pipeline.memory_limit.value_or(0), std::int64_t{fuses}}) {
    key += "," + std::to_string(number);
  }
  return key;
}

// Looks `key` up under the lock, and makes the value outside of it.
template <typename Value, typename Make>
std::shared_ptr<Value> remembered(std::mutex& mutex,
                                  std::map<std::string, std::shared_ptr<Value>>& known,
                                  const std::string& key, const Make& make) {
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  std::shared_ptr<Value> made = make();
  const std::scoped_lock lock(mutex);
  return known.emplace(key, std::move(made)).first->second;
}

// Returns the rank of a pipeline rank's column.
std::uint32_t rank_in_column(const Ranks& mesh, std::int64_t pipeline_rank) {
  std::int64_t stride = 1;
  for (const PlanAxis axis : mesh.order) {
    if (axis == PlanAxis::kPipeline) break;
    stride *= mesh.size_of(axis);
  }
  return static_cast<std::uint32_t>(pipeline_rank * stride);
}

std::vector<std::uint32_t> chips_of_group(const Communicator& partition, std::uint32_t rank,
                                          const std::vector<std::uint32_t>& chips) {
  std::vector<std::uint32_t> members;
  for (const RankId member : partition.groups[partition.seat_of[rank].group]) {
    members.push_back(chips[member.index()]);
  }
  return members;
}

// The pass over all layers of a chunk. `held`: bytes that FSDP and zero 2 hold besides while a
// layer is visited.
template <typename Held>
PassCost pass_over(const StageChunk& chunk, PassPart part, LayerCosts& costs,
                   const LaneGroups& groups, const Held& held) {
  PassCost sum;
  const Pass pass{.part = part, .microbatch = 0, .chunk = 0, .completes = {}};
  const LoweredLayer* last = nullptr;
  LayerCosts::Parts parts{};
  for (const Stop& stop : stops_of(pass, chunk)) {
    if (stop.unit->layer != last) parts = costs.of(*(last = stop.unit->layer), groups);
    PassCost layer =
        parts[static_cast<std::size_t>(stop.again ? LayerPart::kAgain : part_of(part))];
    if (layer.peak > 0) {
      layer.peak += held(*stop.unit, stop.again ? LayerVisit{} : pass.visit(*stop.unit->layer));
    }
    sum = then(sum, layer);
  }
  return sum;
}

// Returns what is left behind each op of the compute stream. The last op of a pass has what is left
// behind the pass, others nothing. Passes follow one another, and have ops of different names.
// Nothing if a pass has no op, as that of weight gradients in a chunk without layers.
std::vector<Duration> behind_ops(const Program& program, const std::vector<Duration>& passes) {
  const Stream& compute = *std::ranges::find(program.streams, true, &Stream::computes);
  const auto label_of = [&](std::uint32_t position) -> const OpLabel& {
    return program.labels[compute.first_op + position];
  };
  std::vector<std::uint32_t> last_ops;
  for (std::uint32_t i = 0; i < compute.ops; ++i) {
    const OpLabel& label = label_of(i);
    if (i + 1 < compute.ops && label_of(i + 1).pass == label.pass) continue;
    if (label.pass && StepPart{label.part} != StepPart::kOptimizer) last_ops.push_back(i);
  }
  if (last_ops.size() != passes.size()) return {};
  std::vector<Duration> ops(compute.ops);
  for (std::size_t i = 0; i < passes.size(); ++i) ops[last_ops[i]] = passes[i];
  return ops;
}

// Returns whether the gradients of a unit of these move in a collective of their own: they fill a
// bucket, and those of the unit before it, made in the same pass, have filled another. Each pass of
// zero 2 begins with a new bucket. Of larger buckets it is not known what they take, as a library
// may move more in less time.
bool moves_alone(const std::vector<StageUnit>& units, std::size_t number, bool experts,
                 std::int64_t bucket, int zero) {
  const StageUnit& unit = units[number];
  const auto fills = [&](const StageUnit& one) {
    return one.layer->parameters_of(experts) >= bucket && !one.waits_for_chunks;
  };
  if (!fills(unit)) return false;
  // Backwards go down.
  for (std::size_t i = number + 1; i < units.size(); ++i) {
    if (units[i].layer->parameters_of(experts) == 0) continue;
    if (!fills(units[i])) return false;
    if (zero == 2) continue;
    return units[i].layer->has_weight_part() == unit.layer->has_weight_part();
  }
  return zero == 2;
}

}  // namespace

std::shared_ptr<PlanBounds::Shares> PlanBounds::shares_of(const ParallelPlan& plan) {
  const bool has_matrix = routes_by_matrix(model_, plan.mesh, plan.experts);
  return remembered(mutex_, shares_, share_key(plan, has_matrix), [&] {
    ParallelPlan lowered = plan;
    lowered.experts.dispatch = dispatch_of_pass(plan, cluster_.library, cluster_.places);
    ExpertExchange exchange;
    if (routes_by_matrix(model_, lowered.mesh, lowered.experts)) {
      exchange = expert_exchange(model_, lowered.mesh, lowered.experts,
                                 token_routing(part_of_model(model_, shard_of(lowered, {}))),
                                 cluster_.places);
    }
    return std::make_shared<Shares>(Shares{lower_model(model_, lowered, {}, exchange),
                                           std::make_unique<LayerCosts>(cluster_.chip, times_)});
  });
}

std::shared_ptr<const PlanBounds::Column> PlanBounds::column_of(const Ranks& mesh,
                                                                bool divides_width) {
  const std::string key = mesh_key(mesh) + (divides_width ? " width" : "");
  return remembered(mutex_, columns_, key, [&]() -> std::shared_ptr<const Column> {
    const auto column = std::make_shared<Column>();
    column->lanes.resize(static_cast<std::size_t>(mesh.pp));
    const std::vector<std::uint32_t> chips = place_ranks(mesh, cluster_.places);
    const auto each = [&](const Communicator& partition, const auto& take) {
      for (std::int64_t rank = 0; rank < mesh.pp; ++rank) {
        take(static_cast<std::size_t>(rank),
             times_.number_of(chips_of_group(partition, rank_in_column(mesh, rank), chips)));
      }
    };
    const auto lane = [&](const Communicator& partition, std::initializer_list<Lane> lanes) {
      each(partition, [&](std::size_t rank, GroupNumber group) {
        for (const Lane of : lanes) column->lanes[rank][static_cast<std::size_t>(of)] = group;
      });
    };
    if (mesh.tp > 1 && !divides_width) {
      lane(partition(mesh, "tp", Axis::kTensor, {PlanAxis::kTensor}), {Lane::kTensor});
    }
    if (mesh.cp > 1) {
      lane(partition(mesh, "cp", Axis::kContext, {PlanAxis::kContext}), {Lane::kContext});
    }
    if (mesh.ep > 1) {
      lane(expert_partition(mesh, "ep", Axis::kExpert, {ExpertAxis::kExpert}), {Lane::kExperts});
    }
    if (mesh.etp > 1) {
      lane(expert_partition(mesh, "etp", Axis::kExpert, {ExpertAxis::kExpertTensor}),
           {Lane::kExpertTensor});
    }
    each(partition(mesh, "dp", Axis::kData, {PlanAxis::kContext, PlanAxis::kData}),
         [&](std::size_t, GroupNumber group) { column->replicas.push_back(group); });
    each(expert_partition(mesh, "edp", Axis::kData, {ExpertAxis::kExpertData}),
         [&](std::size_t, GroupNumber group) { column->expert_replicas.push_back(group); });
    return column;
  });
}

std::shared_ptr<const PipelineSchedule> PlanBounds::order_of(const ParallelPlan& plan) {
  if (plans_by_cost(plan) || plan.pipeline.optimal_schedule || plan.pipeline.own_schedule)
    return nullptr;
  const std::string key =
      order_key(plan.pipeline, plan.mesh.pp, plan.microbatches(), plan.overlap.expert_parallel);
  return remembered(mutex_, orders_, key, [&] {
    return std::make_shared<const PipelineSchedule>(schedule_of(plan, PipelineCosts{}));
  });
}

const LoneTimes::Lone& PlanBounds::replica_traffic(CollectiveOp op, std::int64_t parameters,
                                                   DataType type, bool experts, std::int32_t rank,
                                                   const Column& column) {
  const auto& groups = experts ? column.expert_replicas : column.replicas;
  return times_.of({.op = op, .bytes = parameters * size_of(type), .type = type},
                   groups[static_cast<std::size_t>(rank)]);
}

RankCost PlanBounds::rank_cost(const ParallelPlan& plan, const PipelineSchedule& shape,
                               Shares& shares, const Column* column, std::int32_t rank,
                               bool replicas) {
  const std::int64_t copies = placement_of(plan.pipeline) == Placement::kBidirectional ? 2 : 1;
  PlanCommunicators communicators;
  communicators.dense.shards = plan.sharded_over() * copies;
  communicators.experts.shards = model_.experts.routed > 0 ? plan.mesh.edp() * copies : 1;
  communicators.upper_dense.shards = communicators.dense.shards;
  communicators.upper_experts.shards = communicators.experts.shards;
  OpGraph graph;
  GraphTables tables(graph);
  Stage stage{.plan = plan,
              .communicators = communicators,
              .schedule = shape,
              .posting = nullptr,
              .tables = tables,
              .number = rank,
              .chunks = {},
              .boundaries = {},
              .cache = Bytes(0),
              .builder = ProgramBuilder("")};
  fill_stage(model_, shares.lowered, stage);
  stage.compute = stage.builder.add_stream("compute", true);
  hold_model_state(stage, cluster_.chip.fixed_memory);

  RankCost cost;
  const bool updates = !plan.is_inference() && plan.training.optimizer == Optimizer::kAdam;
  if (updates && !plan.offload.optimizer) {
    add_adam(stage, stage.updated_parameters(), {});
    for (const Kernel& kernel : graph.compute_works.back().kernels) {
      cost.optimizer += time_of(kernel, cluster_.chip).total.count();
    }
  }
  const DataType weights = plan.weights();
  const auto shards = [&](bool experts) { return stage.groups(experts).shards; };
  const auto held = [&](const StageUnit& unit, const LayerVisit& visit) {
    std::int64_t bytes = 0;
    for (const bool experts : {false, true}) {
      if (shards(experts) <= 1 || plan.state.zero < 2) continue;
      if (plan.state.zero == 3 && visit.reads_parameters) {
        bytes += (unit.gathered(experts) * size_of(weights)).value();
      }
      // Zero 2 moves gradients that two chunks of the rank make only after both.
      const bool is_deferred = plan.state.zero == 2 && unit.waits_for_chunks;
      if (!visit.makes_gradients || is_deferred) continue;
      bytes += plan.update.gradient_bytes *
               (plan.state.zero == 3 ? unit.reduced(experts) : unit.layer->parameters_of(experts));
    }
    return bytes;
  };
  const LaneGroups groups =
      column == nullptr ? LaneGroups{} : column->lanes[static_cast<std::size_t>(rank)];
  for (const StageChunk& chunk : stage.chunks) {
    ChunkCost& chunk_cost = cost.chunks.emplace_back();
    chunk_cost.stage = chunk.stage;
    const auto pass = [&](PassPart part) {
      return pass_over(chunk, part, *shares.costs, groups, held);
    };
    chunk_cost.forward = pass(PassPart::kForward);
    if (plan.is_inference()) continue;
    chunk_cost.backward = pass(PassPart::kBackward);
    chunk_cost.input = pass(PassPart::kInputGradients);
    chunk_cost.weight = pass(PassPart::kWeightGradients);
  }
  const bool moves_state = plan.mesh.replicas() > 1 && !plan.state.shard && copies == 1;
  if (replicas && column != nullptr && moves_state) add_state(stage, *column, cost);
  const MemoryBytes resident = std::move(stage.builder).build().resident;
  for (const Bytes bytes : resident) cost.resident += bytes.value();
  return cost;
}

// Returns the share of its time that a dense run loses while a collective holds a share of the
// units: a run of 1 takes 1 + kDense u / (1 - u).
double PlanBounds::slowdown_of(double units) const {
  const CommunicationUnits& communication = cluster_.chip.communication;
  double margin = 0;
  if (communication.margin != 0) {
    margin = static_cast<double>(communication.margin) / static_cast<double>(communication.units);
  }
  const double more = std::max(0.0, std::min(ChipShare::kMost, units) - margin) / (1 - margin);
  const double taken = std::min(ChipShare::kMost, more);
  const double longer = kDense * taken / (1 - taken);
  return longer / (1 + longer);
}

// The traffic of the state that replicas divide.
void PlanBounds::add_state(const Stage& stage, const Column& column, RankCost& cost) {
  const int zero = stage.plan.state.zero;
  std::optional<double> least_units;  // of collectives of FSDP
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    const std::vector<StageUnit>& units = stage.chunks[i].units;
    for (std::size_t number = 0; number < units.size(); ++number) {
      const StageUnit& unit = units[number];
      for (const bool experts : {false, true}) {
        if (stage.groups(experts).shards <= 1) continue;
        // Returns the time of one, and counts what `times` a micro-batch or a step occupy.
        const auto time = [&](CollectiveOp op, std::int64_t parameters, DataType type,
                              std::int64_t times, LinkLoads& loads) {
          const LoneTimes::Lone& lone =
              replica_traffic(op, parameters, type, experts, stage.number, column);
          add_loads(lone.loads, times, loads);
          if (times > 0 && parameters > 0) {
            least_units = std::min(least_units.value_or(lone.units), lone.units);
          }
          return lone.time.count();
        };
        ChunkCost& chunk = cost.chunks[i];
        const auto at = static_cast<std::size_t>(experts);
        if (zero == 3) {
          if (stage.plan.state.reshard_after_forward) {
            chunk.gathers[at] += time(CollectiveOp::kAllGather, unit.gathered(experts),
                                      stage.plan.weights(), 1, chunk.gather_loads);
          }
          chunk.reductions[at] += time(CollectiveOp::kReduceScatter, unit.reduced(experts),
                                       stage.gradient_type(), 1, cost.loads_of_microbatch);
          continue;
        }
        if (!moves_alone(units, number, experts, stage.plan.bucket_parameters(), zero)) continue;
        const std::int64_t parameters = unit.layer->parameters_of(experts);
        chunk.reductions[at] += time(
            zero >= 1 ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce, parameters,
            stage.gradient_type(), 1, zero == 2 ? cost.loads_of_microbatch : cost.loads_of_step);
        if (zero == 0) continue;
        chunk.parameter_gathers[at] +=
            time(CollectiveOp::kAllGather, parameters, stage.plan.weights(), 1, cost.loads_of_step);
      }
    }
  }
  for (const ChunkCost& chunk : cost.chunks) {
    add_loads(chunk.gather_loads, kVisits, cost.loads_of_microbatch);
  }
  // Others move in buckets of several layers, whose collectives are others.
  if (zero == 3) cost.slowdown = slowdown_of(least_units.value_or(0));
}

PlanCosts PlanBounds::costs_of(const ParallelPlan& plan, Depth depth) {
  const std::shared_ptr<Shares> shares = shares_of(plan);
  const std::shared_ptr<const Column> column =
      depth == Depth::kMemory ? nullptr : column_of(plan.mesh, plan.tensor.divides_width());
  PipelineSchedule shape{.microbatches = static_cast<std::int32_t>(plan.microbatches()),
                         .chunks = static_cast<std::int32_t>(chunks_of(plan.pipeline)),
                         .placement = placement_of(plan.pipeline)};
  shape.ranks.resize(static_cast<std::size_t>(plan.mesh.pp));
  std::vector<RankCost> ranks;
  for (std::int32_t rank = 0; rank < shape.size(); ++rank) {
    ranks.push_back(rank_cost(plan, shape, *shares, column.get(), rank, depth == Depth::kReplicas));
  }
  return {.plan = plan, .ranks = std::move(ranks), .order = order_of(plan)};
}

Bytes PlanBounds::memory(const ParallelPlan& plan) {
  if (plan.mesh.splits_ffn()) return {};
  return least_memory(costs_of(plan, Depth::kMemory));
}

PlanBounds::Quick PlanBounds::memory_and_quick(const ParallelPlan& plan) {
  if (plan.mesh.splits_ffn()) return {};
  const PlanCosts costs = costs_of(plan, Depth::kPasses);
  return {.memory = least_memory(costs), .step = quick_bound(costs)};
}

Duration PlanBounds::close(const ParallelPlan& plan) {
  if (plan.mesh.splits_ffn()) return {};
  return close_bound(costs_of(plan, Depth::kReplicas));
}

std::vector<std::vector<Duration>> PlanBounds::behind(const ParallelPlan& plan,
                                                      const OpGraph& graph) {
  if (plan.mesh.splits_ffn()) return std::vector<std::vector<Duration>>(graph.programs.size());
  const std::vector<std::vector<Duration>> passes = times_behind(costs_of(plan, Depth::kReplicas));
  std::vector<std::vector<Duration>> ops(graph.programs.size());
  // Bounds are those of the first role of each stage.
  const std::size_t roles = graph.programs.size() / static_cast<std::size_t>(plan.mesh.pp);
  for (std::size_t rank = 0; rank < passes.size(); ++rank) {
    ops[rank * roles] = behind_ops(graph.programs[rank * roles], passes[rank]);
  }
  return ops;
}

}  // namespace stepsim

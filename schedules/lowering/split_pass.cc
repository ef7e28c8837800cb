#include "schedules/lowering/split_pass.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/lowering/bytes/planned_bytes.h"
#include "schedules/lowering/stages/expert_chips.h"
#include "schedules/lowering/stages/graph_tables.h"
#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/lowering/stages/stage.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/communicators.h"
#include "schedules/plan/inference_plan.h"
#include "sim/program/program_builder.h"
#include "workload/experts.h"
#include "workload/inference.h"

namespace stepsim {
namespace {

using LaneCommunicators = std::array<std::optional<CommunicatorId>, kLanes>;

// Where a step stands: "block", layer 17, micro-batch 1; of embedding and head neither.
struct StepPlace {
  std::string unit;
  std::optional<std::int32_t> layer{};
  std::optional<std::int32_t> microbatch{};
};

// Track is how far a micro-batch has come in a program.
struct Track {
  std::vector<Dependency> waits{};  // of its next compute op
  std::optional<OpRef> last_compute{};
};

// SplitProgram writes steps into the program of one kind of chips.
class SplitProgram {
 public:
  SplitProgram(const std::string& name, std::initializer_list<Lane> lanes,
               const LaneCommunicators& communicators, GraphTables& tables)
      : communicators_(communicators), tables_(tables), builder_(name) {
    compute_ = builder_.add_stream("compute", true);
    for (const Lane lane : lanes) {
      const auto at = static_cast<std::size_t>(lane);
      if (communicators_[at]) streams_[at] = builder_.add_stream(std::string(name_of(lane)));
    }
  }

  void hold(MemoryCategory category, Bytes bytes) { builder_.hold(category, bytes); }

  // Writes a step that the track's next compute op waits for.
  void write(const LayerStep& step, const StepPlace& place, Track& track) {
    if (step.kind == LayerStep::Kind::kCompute) {
      compute(step, place, track);
    } else {
      track.waits = {after(post(step, place, std::move(track.waits), track.last_compute))};
    }
  }

  // Writes a collective for which nobody waits yet.
  OpRef post(const LayerStep& step, const StepPlace& place, std::vector<Dependency> waits,
             const std::optional<OpRef>& last_compute) {
    const auto lane = static_cast<std::size_t>(step.lane);
    OpDraft op{.stream = *streams_[lane], .kind = OpKind::kCollective, .axis = axis_of(step.lane)};
    op.work = tables_.collective({.communicator = *communicators_[lane],
                                  .op = step.collective,
                                  .bytes = step.bytes,
                                  .type = step.type,
                                  .algorithm = step.algorithm,
                                  .byte_matrix = step.byte_matrix,
                                  .experts = step.experts});
    const bool has_own_name = step.lane == Lane::kDispatch || step.lane == Lane::kCombine;
    op.label =
        label(std::string(has_own_name ? name_of(step.lane) : name_of(step.collective)), place);
    op.dependencies = std::move(waits);
    if (last_compute) op.dependencies.push_back(after(*last_compute));
    return builder_.add(op);
  }

  // Copies or results lie in memory from the start of one op to the end of another.
  void hold_between(OpRef from, OpRef to, Bytes bytes) {
    const auto category = MemoryCategory::kBuffers;
    builder_.change_memory(from, {.category = category, .at_end = false, .bytes = bytes});
    builder_.change_memory(to, {.category = category, .at_end = true, .bytes = bytes});
  }

  Program build() && { return std::move(builder_).build(); }

 private:
  OpLabel label(const std::string& name, const StepPlace& place) {
    const std::string pass =
        place.microbatch ? "F " + std::to_string(*place.microbatch) : place.unit;
    return {.name = tables_.name(name),
            .layer = place.layer,
            .microbatch = place.microbatch,
            .pass = tables_.name(pass)};
  }

  void compute(const LayerStep& step, const StepPlace& place, Track& track) {
    OpDraft op{.stream = compute_, .kind = OpKind::kCompute};
    op.work = tables_.compute(step.kernels, static_cast<std::uint32_t>(PathLabel::kForward));
    const std::string what(step.kernels.empty() ? "arrival" : step.kernels.front().name);
    op.label = label(place.unit + " forward: " + what, place);
    op.dependencies = std::exchange(track.waits, {});
    op.memory_changes = {
        {.category = MemoryCategory::kBuffers, .at_end = false, .bytes = step.workspace},
        {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = step.workspace}};
    track.last_compute = builder_.add(op);
  }

  const LaneCommunicators& communicators_;
  GraphTables& tables_;
  ProgramBuilder builder_;
  StreamId compute_{};
  std::array<std::optional<StreamId>, kLanes> streams_{};
};

// A block's steps on attention chips, cut where tokens leave and where they come back. A block
// without routed experts is all `before`.
struct CutBlock {
  std::vector<LayerStep> before;
  std::optional<LayerStep> dispatch;
  std::vector<LayerStep> beside;  // the shared experts
  std::optional<LayerStep> combine;
  std::vector<LayerStep> behind;
};

CutBlock cut(const LoweredLayer& block) {
  CutBlock result;
  for (const LayerStep& step : block.forward) {
    const bool travels = step.kind == LayerStep::Kind::kCollective;
    if (travels && step.lane == Lane::kDispatch) {
      result.dispatch = step;
    } else if (travels && step.lane == Lane::kCombine) {
      result.combine = step;
    } else {
      std::vector<LayerStep>& part = result.combine    ? result.behind
                                     : result.dispatch ? result.beside
                                                       : result.before;
      part.push_back(step);
    }
  }
  return result;
}

// What lies in memory of a chip while it travels or waits: copies of tokens, and results.
struct InFlight {
  Bytes copies{};
  Bytes results{};
};

// Takes what is counted as in flight out of the workspace of a step that reads or makes it.
void take_from_workspace(Bytes in_flight, LayerStep& step) {
  step.workspace -= std::min(step.workspace, in_flight);
}

// A size of micro-batch.
struct PassPart {
  ParallelPlan plan;  // with its requests
  ExpertExchange exchange;
  LoweredModel lowered;
  std::vector<CutBlock> blocks;  // by kind
  InFlight at_attention{};
  InFlight at_experts{};
};

class SplitPass {
 public:
  SplitPass(const ModelSpec& model, const ParallelPlan& plan, const ChipSpec& chip)
      : model_(model),
        plan_(plan),
        chip_(chip),
        whole_(lower_model(model, plan, {}, exchange_of(plan))) {
    for (RequestBatch& requests : microbatches_of(requests_of(plan), plan.pass.pass_microbatches)) {
      microbatches_.push_back(part_of_size(std::move(requests)));
    }
  }

  OpGraph graph(const Places& places) && {
    graph_.path_labels = {"forward"};
    graph_.pipeline_stages = 2;
    graph_.stage_names = {"attention", "experts"};
    graph_.axes = axis_names();
    place(places);
    GraphTables tables(graph_);
    const LaneCommunicators communicators = add_communicators(tables);
    graph_.programs.push_back(attention(communicators, tables));
    graph_.programs.push_back(experts(communicators, tables));
    std::vector<PlannedMicrobatch> planned;
    for (const std::size_t microbatch : microbatches_) {
      const PassPart& part = parts_[microbatch];
      planned.push_back({part.plan, part.lowered.layers});
    }
    graph_.planned_bytes = planned_bytes_of_split(plan_, whole_.layers, planned);
    return std::move(graph_);
  }

 private:
  ExpertExchange exchange_of(const ParallelPlan& plan) const {
    const Shard shard = shard_of(plan, {});
    return exchange_with_expert_chips(plan.mesh, plan.precision, requests_of(plan).tokens(),
                                      token_routing(part_of_model(model_, shard)));
  }

  std::size_t part_of_size(RequestBatch requests) {
    const auto known = std::ranges::find_if(
        parts_, [&](const PassPart& part) { return part.plan.pass.own_requests == requests; });
    if (known != parts_.end()) return static_cast<std::size_t>(known - parts_.begin());
    PassPart part{.plan = plan_, .exchange = {}, .lowered = {}, .blocks = {}};
    part.plan.pass.own_requests = std::move(requests);
    part.exchange = exchange_of(part.plan);
    part.exchange.first = static_cast<std::uint32_t>(graph_.byte_matrices.size());
    for (const ByteMatrix& matrix : part.exchange.matrices) {
      graph_.byte_matrices.push_back(matrix);
    }
    part.lowered = lower_model(model_, part.plan, {}, part.exchange);
    for (const LoweredBlock& block : part.lowered.blocks) {
      part.blocks.push_back(cut(block.in(BlockRecompute::kNone)));
    }
    count_in_flight(part);
    parts_.push_back(std::move(part));
    return parts_.size() - 1;
  }

  void count_in_flight(PassPart& part) const {
    const auto expert = static_cast<std::uint32_t>(plan_.mesh.mesh_ranks());
    const InFlight pair{.copies = part.exchange.matrices[0].between(0, expert),
                        .results = part.exchange.matrices[1].between(expert, 0)};
    part.at_attention = {plan_.mesh.expert_chips * pair.copies,
                         plan_.mesh.expert_chips * pair.results};
    part.at_experts = {plan_.mesh.mesh_ranks() * pair.copies,
                       plan_.mesh.mesh_ranks() * pair.results};
    for (CutBlock& block : part.blocks) {
      if (!block.dispatch) continue;
      take_from_workspace(part.at_attention.copies, block.before.back());
      take_from_workspace(part.at_attention.results, block.behind.front());
    }
    for (LoweredExperts& experts : part.lowered.experts_apart) {
      for (LayerStep& step : experts.steps.forward) {
        take_from_workspace(part.at_experts.copies + part.at_experts.results, step);
      }
    }
  }

  void place(const Places& places) {
    const std::vector<std::uint32_t> chips = place_ranks(plan_.mesh, places);
    for (std::int64_t rank = 0; rank < plan_.mesh.ranks(); ++rank) {
      const bool is_expert = rank >= plan_.mesh.mesh_ranks();
      const std::int64_t own = is_expert ? rank - plan_.mesh.mesh_ranks() : rank;
      const std::int64_t inner = is_expert ? plan_.mesh.etp : plan_.mesh.tp;
      graph_.ranks.push_back({.program = ProgramId(is_expert ? 1 : 0),
                              .chip = chips[static_cast<std::size_t>(rank)],
                              .tp = static_cast<std::uint32_t>(own % inner),
                              .dp = static_cast<std::uint32_t>(own / inner),
                              .pp = is_expert ? 1U : 0U});
    }
  }

  LaneCommunicators add_communicators(GraphTables& tables) const {
    LaneCommunicators result;
    const auto add = [&](Lane lane, Communicator communicator) {
      result[static_cast<std::size_t>(lane)] = tables.communicator(std::move(communicator));
    };
    const auto name = [](Lane lane) { return std::string(name_of(lane)); };
    if (plan_.mesh.tp > 1) {
      add(Lane::kTensor,
          partition(plan_.mesh, name(Lane::kTensor), Axis::kTensor, {PlanAxis::kTensor}));
    }
    if (plan_.mesh.etp > 1) {
      add(Lane::kExpertTensor,
          sharing_experts(plan_.mesh, name(Lane::kExpertTensor), Axis::kExpert));
    }
    for (const Lane lane : {Lane::kDispatch, Lane::kCombine}) {
      add(lane, everybody(plan_.mesh, name(lane), Axis::kExpert));
    }
    return result;
  }

  Program attention(const LaneCommunicators& communicators, GraphTables& tables) const {
    SplitProgram program(graph_.stage_names[0], {Lane::kTensor, Lane::kDispatch, Lane::kCombine},
                         communicators, tables);
    hold_attention_state(program);
    Track start;
    for (const LayerStep& step : whole_.embedding.forward) {
      program.write(step, {.unit = "embedding"}, start);
    }
    std::vector<Track> tracks(microbatches_.size(), start);
    struct Away {  // a micro-batch whose results have not been read
      const CutBlock* block = nullptr;
      OpRef combine{};
    };
    std::vector<Away> away(microbatches_.size());
    const auto come_back = [&](std::int32_t layer, std::size_t microbatch) {
      const Away one = std::exchange(away[microbatch], {});
      if (one.block == nullptr) return;
      Track& track = tracks[microbatch];
      const StepPlace place{"block", layer, static_cast<std::int32_t>(microbatch)};
      for (const LayerStep& step : one.block->behind) program.write(step, place, track);
      program.hold_between(one.combine, *track.last_compute,
                           parts_[microbatches_[microbatch]].at_attention.results);
    };
    for (std::int32_t layer = 0; layer < model_.layers; ++layer) {
      for (std::size_t microbatch = 0; microbatch < tracks.size(); ++microbatch) {
        Track& track = tracks[microbatch];
        come_back(layer - 1, microbatch);
        const PassPart& part = parts_[microbatches_[microbatch]];
        const CutBlock& block = part.blocks[kind_of_block(layer)];
        const StepPlace place{"block", layer, static_cast<std::int32_t>(microbatch)};
        for (const LayerStep& step : block.before) program.write(step, place, track);
        if (!block.dispatch) continue;
        const OpRef sent =
            program.post(*block.dispatch, place, std::move(track.waits), track.last_compute);
        track.waits.clear();
        program.hold_between(*track.last_compute, sent, part.at_attention.copies);
        for (const LayerStep& step : block.beside) program.write(step, place, track);
        const OpRef combine = program.post(*block.combine, place, {after(sent)}, {});
        track.waits.push_back(after(combine));
        away[microbatch] = {&block, combine};
      }
    }
    Track end;
    for (std::size_t microbatch = 0; microbatch < tracks.size(); ++microbatch) {
      Track& track = tracks[microbatch];
      come_back(static_cast<std::int32_t>(model_.layers) - 1, microbatch);
      end.waits.insert(end.waits.end(), track.waits.begin(), track.waits.end());
      end.last_compute = track.last_compute;
    }
    for (const LayerStep& step : whole_.head.forward) {
      program.write(step, {.unit = "head"}, end);
    }
    return std::move(program).build();
  }

  // The experts' side of a dispatch is posted ahead: it waits for nothing but the dispatch before.
  Program experts(const LaneCommunicators& communicators, GraphTables& tables) const {
    SplitProgram program(graph_.stage_names[1],
                         {Lane::kExpertTensor, Lane::kDispatch, Lane::kCombine}, communicators,
                         tables);
    hold_expert_state(program);
    for (std::int32_t layer = 0; layer < model_.layers; ++layer) {
      for (std::size_t microbatch = 0; microbatch < microbatches_.size(); ++microbatch) {
        const PassPart& part = parts_[microbatches_[microbatch]];
        const CutBlock& block = part.blocks[kind_of_block(layer)];
        if (!block.dispatch) continue;
        const StepPlace place{"block", layer, static_cast<std::int32_t>(microbatch)};
        Track track;
        const OpRef dispatch = program.post(*block.dispatch, place, {}, {});
        track.waits = {after(dispatch)};
        for (const LayerStep& step :
             part.lowered.experts_apart[kind_of_block(layer)].steps.forward) {
          program.write(step, place, track);
        }
        const OpRef computed = *track.last_compute;
        const OpRef combine = program.post(*block.combine, place, std::move(track.waits), computed);
        program.hold_between(dispatch, computed, part.at_experts.copies);
        program.hold_between(computed, combine, part.at_experts.results);
      }
    }
    return std::move(program).build();
  }

  void hold_attention_state(SplitProgram& program) const {
    const ModelLayers& layers = whole_.layers;
    const DataTypes types = data_types(plan_);
    Bytes weights = weights_size(layers.embedding, types) + weights_size(layers.head, types);
    for (std::int64_t i = 0; i < model_.layers; ++i) {
      weights += weights_size(layers.block(i), types);
    }
    program.hold(MemoryCategory::kParameters, weights);
    program.hold(MemoryCategory::kCache,
                 cache_of_layers(model_, requests_of(plan_), plan_.mesh.tp, plan_.cache.split, 0,
                                 model_.layers, plan_.mesh.cp));
    program.hold(MemoryCategory::kFixedOverhead, chip_.fixed_memory);
  }

  void hold_expert_state(SplitProgram& program) const {
    const DataTypes types = data_types(plan_);
    Bytes weights;
    for (std::int32_t i = 0; i < model_.layers; ++i) {
      weights += weights_size(whole_.experts_apart[kind_of_block(i)].layer, types);
    }
    program.hold(MemoryCategory::kParameters, weights);
    program.hold(MemoryCategory::kFixedOverhead, chip_.fixed_memory);
  }

  std::size_t kind_of_block(std::int32_t layer) const {
    return whole_.layers.kind_of_block[static_cast<std::size_t>(layer)];
  }

  const ModelSpec& model_;
  const ParallelPlan& plan_;
  const ChipSpec& chip_;
  OpGraph graph_{};
  LoweredModel whole_;
  std::vector<PassPart> parts_;            // of different sizes
  std::vector<std::size_t> microbatches_;  // index in parts_
};

}  // namespace

OpGraph lower_split_pass(const ModelSpec& model, const ParallelPlan& plan, const Places& places,
                         const ChipSpec& chip) {
  assert(plan.mesh.splits_ffn());
  return SplitPass(model, plan, chip).graph(places);
}

}  // namespace stepsim

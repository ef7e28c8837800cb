#include "schedules/lowering/order_graph.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "schedules/lowering/stages/message_names.h"
#include "schedules/plan/axis.h"
#include "sim/program/program_builder.h"

namespace stepsim {
namespace {

constexpr double kFlopsPerSecond = 1e12;  // one FLOP per picosecond

// A time in seconds is a double that rounds up to picoseconds. A kernel is made half a picosecond
// shorter than `time`, so that it comes out as `time` as long as doubles are much finer than that.
constexpr std::int64_t kLongestKernel = std::int64_t{1} << 48;

constexpr std::array kKinds = {PipelineOpKind::kForward, PipelineOpKind::kBackward,
                               PipelineOpKind::kBackwardInput, PipelineOpKind::kBackwardWeight,
                               PipelineOpKind::kForwardBackward};

std::string_view name_of(PipelineOpKind kind) {
  switch (kind) {
    case PipelineOpKind::kForward:
      return "forward";
    case PipelineOpKind::kBackward:
      return "backward";
    case PipelineOpKind::kBackwardInput:
      return "backward input";
    case PipelineOpKind::kBackwardWeight:
      return "backward weight";
    case PipelineOpKind::kForwardBackward:
      break;
  }
  return "forward and backward";
}

ComputeWork work_of(PipelineOpKind kind, std::int64_t all) {
  ComputeWork work{.kernels = {}, .path_label = static_cast<std::uint32_t>(kind)};
  for (std::int64_t left = all; left > 0;) {
    const std::int64_t time = std::min(left, kLongestKernel);
    work.kernels.push_back({.name = name_of(kind),
                            .type = DataType::kFp32,
                            .flops = Flops(static_cast<double>(time) - 0.5)});
    left -= time;
  }
  return work;
}

class OrderLowering {
 public:
  OrderLowering(const PipelineSchedule& schedule, const StageCosts& costs, const Posting* posting)
      : schedule_(schedule), costs_(costs), posting_(posting), stages_(stage_count(schedule)) {
    const auto ranks = static_cast<std::uint32_t>(schedule.size());
    Communicator all{.name = "pipeline", .axis = Axis::kPipeline, .groups = {{}}, .seat_of = {}};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      all.groups[0].emplace_back(rank);
      all.seat_of.push_back({0, rank});
      graph_.ranks.push_back({.program = ProgramId(rank), .chip = rank, .pp = rank});
    }
    graph_.communicators.push_back(std::move(all));
    graph_.pipeline_stages = ranks;
    graph_.axes = axis_names();
    for (const PipelineOpKind kind : kKinds) graph_.path_labels.emplace_back(name_of(kind));
  }

  OpGraph take() {
    for (std::int32_t rank = 0; rank < schedule_.size(); ++rank) {
      graph_.programs.push_back(program_of(rank));
    }
    return std::move(graph_);
  }

 private:
  // Wire holds the streams of one rank for one kind of message.
  struct Wire {
    StreamId receive;
    std::vector<StreamId> sends;
    std::size_t next_send = 0;
  };
  struct Rank {
    std::int32_t rank = 0;
    ProgramBuilder program;
    std::array<Wire, 2> wires{};  // by MessageKind
    // The stream of the batches, with a posting.
    StreamId line{};
    std::size_t next_batch = 0;
    std::optional<OpRef> last_compute{};
    std::optional<OpRef> last_batch{};
    std::map<PostedMessage, OpRef> brought_by{};
  };

  Program program_of(std::int32_t rank) {
    Rank at{.rank = rank, .program = ProgramBuilder("rank " + std::to_string(rank))};
    const StreamId compute = at.program.add_stream("compute", true);
    if (posting_ != nullptr) return program_in_batches(at, compute);
    std::int64_t between_forwards = kLongestKernel;
    std::int64_t between_backwards = kLongestKernel;
    for (std::int32_t chunk = 0; chunk < schedule_.chunks; ++chunk) {
      const PipelineCosts& costs = costs_.at(stage_of(schedule_, rank, chunk));
      const std::int64_t fused = costs.fused_or_sum();
      between_forwards = std::min({between_forwards, costs.forward, fused});
      between_backwards = std::min({between_backwards, costs.backward_input, fused});
    }
    add_wire(at, MessageKind::kActivation, "activation", between_forwards);
    add_wire(at, MessageKind::kGradient, "gradient", between_backwards);
    for (const PipelineOp& op : schedule_.ranks[static_cast<std::size_t>(rank)]) {
      add_op(at, compute, op);
    }
    return std::move(at.program).build();
  }

  Program program_in_batches(Rank& at, StreamId compute) {
    at.line = at.program.add_stream("messages");
    const std::vector<PipelineOp>& order = schedule_.ranks[static_cast<std::size_t>(at.rank)];
    for (std::size_t i = 0; i < order.size(); ++i) {
      post_batches(at, i);
      add_op(at, compute, order[i]);
    }
    post_batches(at, order.size());
    return std::move(at.program).build();
  }

  // Posts the batches that stand before the op of this number.
  void post_batches(Rank& at, std::size_t op) {
    const std::vector<PostedBatch>& batches = posting_->ranks[static_cast<std::size_t>(at.rank)];
    for (; at.next_batch < batches.size() && batches[at.next_batch].before == op; ++at.next_batch) {
      const std::vector<PostedMessage>& messages = batches[at.next_batch].messages;
      OpDraft draft{.stream = at.line, .kind = OpKind::kMessages, .axis = Axis::kPipeline};
      draft.work = static_cast<std::uint32_t>(graph_.messages.size());
      draft.work_count = static_cast<std::uint32_t>(messages.size());
      for (const PostedMessage& message : messages) {
        const MessageWay way = *way_of(schedule_, at.rank, message);
        graph_.messages.push_back({.is_send = message.is_send,
                                   .kind = kind_of(message),
                                   .communicator = CommunicatorId(0),
                                   .peer = static_cast<std::uint32_t>(way.peer),
                                   .microbatch = message.microbatch,
                                   .boundary = way.boundary,
                                   .bytes = {}});
      }
      const auto posted = std::span<const Message>(graph_.messages).subspan(draft.work);
      draft.label = {.name = name(stepsim::name_of(posted)),
                     .microbatch = messages.front().microbatch};
      if (at.last_compute) draft.dependencies.push_back(after(*at.last_compute));
      at.last_batch = at.program.add(std::move(draft));
      for (const PostedMessage& message : messages) {
        if (!message.is_send) at.brought_by[message] = *at.last_batch;
      }
    }
  }

  // Makes the op wait for its batches.
  void wait_for_batches(const Rank& at, const PipelineOp& op, OpDraft& draft) const {
    if (posting_->waits_for_all) {
      if (at.last_batch) draft.dependencies.push_back(after(*at.last_batch));
      return;
    }
    for (const PostedMessage& input : inputs_of(schedule_, at.rank, op)) {
      draft.dependencies.push_back(after(at.brought_by.at(input)));
    }
  }

  // Adds a wire. Results of one kind are at least `apart` from each other.
  void add_wire(Rank& at, MessageKind kind, const std::string& name, std::int64_t apart) {
    const auto most = std::int64_t{schedule_.microbatches} * schedule_.chunks;
    const std::int64_t send = costs_.at(0).send;
    const std::int64_t sends =
        std::clamp<std::int64_t>(send / apart + (send % apart == 0 ? 0 : 1), 1, most);
    Wire& wire = at.wires[static_cast<std::size_t>(kind)];
    wire.receive = at.program.add_stream("receive " + name);
    for (std::int64_t i = 0; i < sends; ++i) {
      wire.sends.push_back(
          at.program.add_stream("send " + name + (sends == 1 ? "" : " " + std::to_string(i))));
    }
  }

  void add_op(Rank& at, StreamId compute, const PipelineOp& op) {
    const bool is_fused = op.kind == PipelineOpKind::kForwardBackward;
    const bool runs_forward = is_fused || op.kind == PipelineOpKind::kForward;
    const bool runs_input = op.kind == PipelineOpKind::kBackward ||
                            op.kind == PipelineOpKind::kBackwardInput || is_fused;
    const bool runs_weight = runs_input ? op.kind != PipelineOpKind::kBackwardInput
                                        : op.kind == PipelineOpKind::kBackwardWeight;
    const std::int32_t forward_stage = stage_of(schedule_, at.rank, op.chunk);
    const std::int32_t backward_microbatch = is_fused ? op.backward_microbatch : op.microbatch;
    const std::int32_t backward_stage =
        stage_of(schedule_, at.rank, is_fused ? op.backward_chunk : op.chunk);

    OpDraft draft{.stream = compute};
    draft.work = work(op.kind, time_of(schedule_, at.rank, op, costs_));
    draft.label = {.name = name(to_text(op)), .microbatch = op.microbatch};
    if (posting_ != nullptr) wait_for_batches(at, op, draft);
    if (runs_forward) {
      receive(at, MessageKind::kActivation, op.microbatch, forward_stage - 1, draft);
      draft.memory_changes.push_back({.at_end = false, .bytes = Bytes(1)});
    }
    if (runs_input) receive(at, MessageKind::kGradient, backward_microbatch, backward_stage, draft);
    if (runs_weight) draft.memory_changes.push_back({.at_end = true, .bytes = Bytes(1)});
    const OpRef computed = at.program.add(std::move(draft));
    at.last_compute = computed;
    if (runs_forward) {
      send(at, MessageKind::kActivation, op.microbatch, forward_stage, computed);
    }
    if (runs_input) {
      send(at, MessageKind::kGradient, backward_microbatch, backward_stage - 1, computed);
    }
  }

  // Returns the rank on the other side of the boundary between stages `boundary` and `boundary` +
  // 1. nullopt: there is none, or it is this rank.
  std::optional<std::uint32_t> peer(const Rank& at, std::int32_t microbatch, std::int32_t boundary,
                                    std::int32_t other_stage) const {
    if (posting_ != nullptr) return std::nullopt;  // all messages go in batches
    if (boundary < 0 || boundary + 1 >= stages_) return std::nullopt;
    const std::int32_t rank = rank_of(schedule_, microbatch, other_stage);
    if (rank == at.rank) return std::nullopt;
    return static_cast<std::uint32_t>(rank);
  }

  void receive(Rank& at, MessageKind kind, std::int32_t microbatch, std::int32_t boundary,
               OpDraft& consumer) {
    const std::int32_t from = kind == MessageKind::kActivation ? boundary : boundary + 1;
    const auto source = peer(at, microbatch, boundary, from);
    if (!source) return;
    const Wire& wire = at.wires[static_cast<std::size_t>(kind)];
    consumer.dependencies.push_back(after(post(at, wire.receive,
                                               {.is_send = false,
                                                .kind = kind,
                                                .eager = true,
                                                .communicator = CommunicatorId(0),
                                                .peer = *source,
                                                .microbatch = microbatch,
                                                .boundary = boundary,
                                                .bytes = {}},
                                               {})));
  }

  void send(Rank& at, MessageKind kind, std::int32_t microbatch, std::int32_t boundary,
            OpRef producer) {
    const std::int32_t to = kind == MessageKind::kActivation ? boundary + 1 : boundary;
    const auto destination = peer(at, microbatch, boundary, to);
    if (!destination) return;
    Wire& wire = at.wires[static_cast<std::size_t>(kind)];
    const StreamId stream = wire.sends[wire.next_send++ % wire.sends.size()];
    post(at, stream,
         {.is_send = true,
          .kind = kind,
          .eager = true,
          .communicator = CommunicatorId(0),
          .peer = *destination,
          .microbatch = microbatch,
          .boundary = boundary,
          .bytes = {}},
         {after(producer)});
  }

  OpRef post(Rank& at, StreamId stream, const Message& message,
             std::vector<Dependency> dependencies) {
    OpDraft draft{.stream = stream, .kind = OpKind::kMessages, .axis = Axis::kPipeline};
    draft.work = static_cast<std::uint32_t>(graph_.messages.size());
    draft.label = {.name = name(stepsim::name_of(std::span(&message, 1))),
                   .microbatch = message.microbatch};
    draft.dependencies = std::move(dependencies);
    graph_.messages.push_back(message);
    return at.program.add(std::move(draft));
  }

  std::uint32_t work(PipelineOpKind kind, std::int64_t time) {
    const auto [place, added] = works_.try_emplace(
        std::pair(kind, time), static_cast<std::uint32_t>(graph_.compute_works.size()));
    if (added) graph_.compute_works.push_back(work_of(kind, time));
    return place->second;
  }

  std::uint32_t name(const std::string& text) {
    const auto [place, added] =
        names_.try_emplace(text, static_cast<std::uint32_t>(graph_.names.size()));
    if (added) graph_.names.push_back(text);
    return place->second;
  }

  const PipelineSchedule& schedule_;
  const StageCosts& costs_;
  const Posting* posting_;
  std::int32_t stages_;
  OpGraph graph_;
  std::map<std::pair<PipelineOpKind, std::int64_t>, std::uint32_t> works_;
  std::unordered_map<std::string, std::uint32_t> names_;
};

}  // namespace

OpGraph order_graph(const PipelineSchedule& schedule, const StageCosts& costs,
                    const Posting* posting) {
  for ([[maybe_unused]] const PipelineCosts& stage : costs.listed()) {
    assert(stage.forward > 0 && stage.backward_input > 0 && stage.backward_weight > 0);
    assert(stage.send >= 0 && stage.send == costs.at(0).send);
  }
  return OrderLowering(schedule, costs, posting).take();
}

ChipSpec order_chip() {
  ChipSpec chip;
  chip.name = "rank of a pipeline";
  chip.peak = peaks_of_all_types(Throughput(kFlopsPerSecond));
  chip.memory_bandwidth = Bandwidth(1);  // kernels move no bytes
  chip.memory_capacity = Bytes(std::int64_t{1} << 40);
  return chip;
}

}  // namespace stepsim

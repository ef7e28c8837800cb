// A run written by hand for the tests of this folder: two stages of two tensor-parallel ranks on
// four chips around a switch, of which ranks 0, 1 and 2 are recorded. Times are in picoseconds and
// chosen so that cutting to nanoseconds matters.
//
//   rank 0  compute  forward     0 ......... 1,500,700
//           tp       all-reduce              1,500,700 (posted) 2,000,999 (moving) .. 3,000,000
//           send                                              3,000,000 ......... 3,500,400
//   rank 1  compute  forward     0 .................. 2,000,999
//           tp       all-reduce                       2,000,999 ........ 3,000,000
//           send     (eager, to rank 3)                          3,000,100 . 3,000,300
//   rank 2  receive  0 (posted) .............................. 3,000,000 .... 3,500,400
//           compute  forward                                        3,500,400 .... 5,000,000
//           compute  loss, optimizer            5,000,000 . 5,000,200 . 5,000,600
//
// The run ends at 5,001,000 ps.

#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "experiment/step/step_report.h"
#include "schedules/plan/axis.h"

namespace stepsim {

struct HandMadeRun {
  Experiment experiment;
  Cluster cluster;
  OpGraph graph;
  SimulationOptions options;
  SimulationResult result;
  StepMetrics metrics;

  StepReport view() const {
    return {.run = {experiment, cluster, graph, options, result, metrics}};
  }
};

inline ModelSpec hand_made_model() {
  ModelSpec model;
  model.name = "tiny";
  model.layers = 2;
  model.hidden = 8;
  model.mlp.width = 16;
  model.attention.heads = 2;
  model.attention.kv_heads = 2;
  model.attention.head_dim = 4;
  model.embedding.vocabulary = 32;
  return model;
}

inline Experiment hand_made_experiment() {
  Experiment experiment;
  experiment.name = "tiny-on-four";
  experiment.model = hand_made_model();
  experiment.cluster.name = "four";
  experiment.cluster.chip.name = "X1";
  experiment.cluster.chip.set_peak(DataType::kBf16, Throughput(5e10));
  experiment.cluster.chip.set_peak(DataType::kFp32, Throughput(5e10));
  experiment.cluster.chip.memory_bandwidth = Bandwidth(1e12);
  experiment.cluster.chip.memory_capacity = Bytes(1'000'000'000);
  experiment.plan.mesh.tp = 2;
  experiment.plan.mesh.pp = 2;
  experiment.plan.state.zero = 1;
  experiment.plan.batch.global_batch = 4;
  experiment.plan.batch.sequence = 10;
  return experiment;
}

// From chip a to chip b over links 2a and 2b + 1.
class HandMadeRouter final : public Router {
 public:
  void route(NodeId from, NodeId to, std::uint64_t, std::vector<LinkId>& out) const override {
    if (from == to) return;
    out.emplace_back(2 * from.index());
    out.emplace_back(2 * to.index() + 1);
  }
};

// Chips 0 to 3 around one switch: link 2c leads from chip c to the switch, link 2c + 1 back.
inline Cluster hand_made_cluster(const ChipSpec& chip) {
  Cluster cluster;
  cluster.chip = chip;
  for (int i = 0; i < 4; ++i) {
    cluster.places.chips.push_back(
        cluster.fabric.add(NodeKind::kChip, "node0.gpu" + std::to_string(i)));
  }
  const NodeId hub = cluster.fabric.add(NodeKind::kSwitch, "node0.nvswitch");
  for (const NodeId node : cluster.places.chips) {
    cluster.fabric.connect(node, hub, Bandwidth(1e9), Duration(0));
  }
  Level level;
  level.name = "gpu";
  level.size = 4;
  cluster.places.levels.push_back(level);
  cluster.router = std::make_unique<HandMadeRouter>();
  return cluster;
}

inline Op hand_made_op(OpKind kind, Axis axis, std::uint32_t work) {
  Op op;
  op.kind = kind;
  op.axis = axis;
  op.work = work;
  return op;
}

inline OpGraph hand_made_graph() {
  OpGraph graph;
  graph.pipeline_stages = 2;
  graph.axes = axis_names();
  graph.names = {"forward", "all-reduce", "send", "receive", "loss", "optimizer \"fused\""};
  Kernel kernel;
  kernel.flops = Flops(300);
  kernel.read = Bytes(20);
  kernel.written = Bytes(10);
  graph.compute_works.push_back({.kernels = {kernel, kernel}, .path_label = 0});

  Communicator tensor{.name = "tp", .axis = Axis::kTensor, .groups = {}, .seat_of = {}};
  tensor.groups = {{RankId(0), RankId(1)}, {RankId(2), RankId(3)}};
  tensor.seat_of = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  Communicator pipeline{.name = "pp", .axis = Axis::kPipeline, .groups = {}, .seat_of = {}};
  pipeline.groups = {{RankId(0), RankId(2)}, {RankId(1), RankId(3)}};
  pipeline.seat_of = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  graph.communicators = {tensor, pipeline};

  CollectiveWork all_reduce;
  all_reduce.communicator = CommunicatorId(0);
  all_reduce.bytes = Bytes(4096);
  all_reduce.algorithm = AlgorithmChoice::kRing;
  graph.collective_works = {all_reduce};
  Message send;
  send.is_send = true;
  send.communicator = CommunicatorId(1);
  send.peer = 1;
  send.microbatch = 3;
  send.bytes = Bytes(500);
  Message receive = send;
  receive.is_send = false;
  receive.peer = 0;
  graph.messages = {send, receive};

  Program first;
  first.name = "stage 0";
  first.streams = {{"compute", true, 0, 1}, {"tp", false, 1, 1}, {"send", false, 2, 1}};
  first.ops = {hand_made_op(OpKind::kCompute, Axis::kOther, 0),
               hand_made_op(OpKind::kCollective, Axis::kTensor, 0),
               hand_made_op(OpKind::kMessages, Axis::kPipeline, 0)};
  first.labels = {{0, 7, 3}, {1, 7, 3}, {2, std::nullopt, 3}};
  Program last;
  last.name = "stage 1";
  last.streams = {{"receive", false, 0, 1}, {"compute", true, 1, 3}};
  last.ops = {hand_made_op(OpKind::kMessages, Axis::kPipeline, 1),
              hand_made_op(OpKind::kCompute, Axis::kOther, 0),
              hand_made_op(OpKind::kCompute, Axis::kOther, 0),
              hand_made_op(OpKind::kCompute, Axis::kOther, 0)};
  last.labels = {
      {3, std::nullopt, 3}, {0, 8, 3}, {4, std::nullopt, 3}, {5, std::nullopt, std::nullopt}};
  graph.programs = {first, last};
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    RankData data;
    data.program = ProgramId(rank / 2);
    data.chip = rank;
    data.tp = rank % 2;
    data.pp = rank / 2;
    graph.ranks.push_back(data);
  }
  return graph;
}

inline Time picoseconds(std::int64_t count) {
  return Time{Duration(count)};
}

inline TimelineOp hand_made_entry(std::uint32_t op, std::int64_t started, std::int64_t moving,
                                  std::int64_t ended) {
  return {.op = op,
          .step = 0,
          .ready = picoseconds(started),
          .started = picoseconds(started),
          .moving = picoseconds(moving),
          .ended = picoseconds(ended)};
}

inline MemoryBytes hand_made_memory(std::int64_t parameters, std::int64_t activations) {
  MemoryBytes bytes{};
  bytes[static_cast<std::size_t>(MemoryCategory::kParameters)] = Bytes(parameters);
  bytes[static_cast<std::size_t>(MemoryCategory::kActivations)] = Bytes(activations);
  return bytes;
}

inline SimulationResult hand_made_result() {
  SimulationResult result;
  result.end = picoseconds(5'001'000);
  result.window = result.end.since_start;
  result.step_time = result.window;
  const auto axis = [](Axis which) { return static_cast<std::size_t>(which); };
  result.breakdown.compute = Duration(2'000'000);
  result.breakdown.exposed_communication[axis(Axis::kTensor)] = Duration(1'000'000);
  result.breakdown.exposed_communication[axis(Axis::kPipeline)] = Duration(500'000);
  result.breakdown.bubble = Duration(1'501'000);
  result.critical_path = {
      {"forward", Duration(3'501'000)}, {"tp", Duration(1'000'000)}, {"pp", Duration(500'000)}};
  result.memory_peaks.resize(4, {Bytes(300), picoseconds(0), hand_made_memory(300, 0)});
  result.memory_peaks[2] = {Bytes(750'000'000), picoseconds(3'500'400),
                            hand_made_memory(500'000'000, 250'000'000), OpId(1)};
  result.peak_rank = RankId(2);
  result.bytes_by_axis[axis(Axis::kTensor)] = Bytes(16384);
  result.bytes_by_axis[axis(Axis::kPipeline)] = Bytes(1000);
  result.flops = Flops(600'120);
  for (std::uint32_t link = 0; link < 8; ++link) result.links.push_back({LinkId(link), 0, 0});
  result.links[0] = {LinkId(0), 2500, 0.5};
  result.links[1] = {LinkId(1), 2000, 0.4};
  result.links[6] = {LinkId(6), 2500, 0.5};

  Timeline rank0{.rank = RankId(0), .ops = {}, .memory = {}};
  rank0.ops = {hand_made_entry(0, 0, 0, 1'500'700),
               hand_made_entry(1, 1'500'700, 2'000'999, 3'000'000),
               hand_made_entry(2, 3'000'000, 3'000'000, 3'500'400)};
  rank0.memory = {{picoseconds(0), hand_made_memory(300, 0)},
                  {picoseconds(1'500'700), hand_made_memory(300, 50)},
                  {picoseconds(3'500'400), hand_made_memory(300, 0)}};
  Timeline rank1{.rank = RankId(1), .ops = {}, .memory = {}};
  rank1.ops = {hand_made_entry(0, 0, 0, 2'000'999),
               hand_made_entry(1, 2'000'999, 2'000'999, 3'000'000),
               hand_made_entry(2, 3'000'100, 3'000'100, 3'000'300)};
  Timeline rank2{.rank = RankId(2), .ops = {}, .memory = {}};
  rank2.ops = {hand_made_entry(0, 0, 3'000'000, 3'500'400),
               hand_made_entry(1, 3'500'400, 3'500'400, 5'000'000),
               hand_made_entry(2, 5'000'000, 5'000'000, 5'000'200),
               hand_made_entry(3, 5'000'200, 5'000'200, 5'000'600)};
  const auto wait = [](std::int64_t from, std::int64_t to, WaitCause cause,
                       std::optional<std::uint32_t> op = {}, std::optional<RankId> last_rank = {}) {
    return TimelineWait{picoseconds(from), picoseconds(to), cause, op, 0, last_rank};
  };
  rank0.waits = {wait(1'500'700, 2'000'999, WaitCause::kPeers, 1, RankId(1)),
                 wait(2'000'999, 3'000'000, WaitCause::kData, 1),
                 wait(3'000'000, 3'500'400, WaitCause::kData, 2),
                 wait(3'500'400, 5'001'000, WaitCause::kNothingLeft)};
  rank1.waits = {wait(2'000'999, 3'000'000, WaitCause::kData, 1),
                 wait(3'000'000, 3'000'100, WaitCause::kHost, 2),
                 wait(3'000'100, 3'000'300, WaitCause::kData, 2),
                 wait(3'000'300, 5'001'000, WaitCause::kNothingLeft)};
  rank2.waits = {wait(0, 3'000'000, WaitCause::kOtherStage, 0, RankId(0)),
                 wait(3'000'000, 3'500'400, WaitCause::kData, 0),
                 wait(5'000'600, 5'001'000, WaitCause::kNothingLeft)};
  result.timelines = {rank0, rank1, rank2};
  result.recorded = {{RankId(0), 0}, {RankId(1), 1}, {RankId(2), 2}};
  result.flows = {{0, 2, 2, 0}, {1, 1, 0, 1}};  // send to receive; all-reduce of rank 1 to rank 0

  // Six bins of 1 us; at 1 GB/s a full one is 1,000 bytes, and the last one is 1 ns long.
  result.bin_width = Duration(1'000'000);
  result.link_series = {{LinkId(0), {0, 0, 1000, 500, 0, 1}},
                        {LinkId(6), {500, 500, 500, 500, 500, 0}},
                        {LinkId(7), {0, 0, 0, 0, 0, 0}}};
  result.statistics = {.ops = 10'000'000,
                       .events = 25'000'000,
                       .transfers = 5,
                       .rate_updates = 77,
                       .wall_s = 2.5,
                       .cpu_s = 2.25,
                       .peak_rss_bytes = 123'000'000};
  return result;
}

inline HandMadeRun hand_made_run() {
  HandMadeRun run;
  run.experiment = hand_made_experiment();
  run.cluster = hand_made_cluster(run.experiment.cluster.chip);
  run.graph = hand_made_graph();
  run.result = hand_made_result();
  run.metrics = measure(run.experiment, run.result);
  return run;
}

}  // namespace stepsim

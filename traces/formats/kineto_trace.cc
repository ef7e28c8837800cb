#include "traces/formats/kineto_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_text.h"
#include "traces/formats/collective_facts.h"
#include "traces/formats/compute_lane.h"
#include "traces/formats/trace_events.h"
#include "traces/formats/trace_lanes.h"

namespace stepsim {
namespace {

constexpr int kDevice = 0;
constexpr int kHostProcess = 1000;
constexpr std::uint32_t kFirstStream = 7;

struct NcclNames {
  std::string_view kernel;      // "AllGather"
  std::string_view collective;  // "_allgather_base"
};

NcclNames nccl_names(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kAllReduce:
      return {"AllReduce", "allreduce"};
    case CollectiveOp::kAllGather:
      return {"AllGather", "_allgather_base"};
    case CollectiveOp::kReduceScatter:
      return {"ReduceScatter", "_reduce_scatter_base"};
    case CollectiveOp::kAllToAll:
      return {"SendRecv", "all_to_allv"};
    case CollectiveOp::kBroadcast:
      return {"Broadcast", "broadcast"};
    case CollectiveOp::kReduce:
      return {"Reduce", "reduce"};
    case CollectiveOp::kGather:
      return {"SendRecv", "gather"};
    case CollectiveOp::kScatter:
      return {"SendRecv", "scatter"};
    case CollectiveOp::kBarrier:
      return {"AllReduce", "barrier"};
    default:
      return {"SendRecv", name_of(op)};
  }
}

std::string_view torch_name(DataType type) {
  switch (type) {
    case DataType::kFp32:
      return "Float";
    case DataType::kBf16:
      return "BFloat16";
    case DataType::kFp16:
      return "Half";
    default:
      return "Byte";
  }
}

// "ring LL128" as NCCL writes it: "RING_LL128".
std::string upper_with_underscores(std::string text) {
  for (char& letter : text) {
    if (letter == ' ' || letter == '-') letter = '_';
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return text;
}

class KinetoWriter {
 public:
  KinetoWriter(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result,
               std::size_t recorded, OutputFile& out)
      : graph_(graph),
        cluster_(cluster),
        result_(result),
        rank_(result.recorded[recorded].rank),
        timeline_(result.timelines[result.recorded[recorded].timeline]),
        program_(graph.programs[graph.ranks[rank_.index()].program.index()]),
        shares_(graph, cluster),
        facts_(graph, cluster),
        events_(out) {
    for (std::uint32_t stream = 0; stream < program_.streams.size(); ++stream) {
      const Stream& ops = program_.streams[stream];
      stream_of_op_.resize(std::max<std::size_t>(stream_of_op_.size(), ops.first_op + ops.ops));
      // The compute stream is the first, as in PyTorch.
      const std::uint32_t number = ops.computes ? kFirstStream : kFirstStream + 1 + stream;
      std::fill_n(stream_of_op_.begin() + ops.first_op, ops.ops, number);
    }
  }

  void write() {
    write_names();
    write_steps();
    for (const TimelineOp& entry : timeline_.ops) {
      const Op& op = program_.ops[entry.op];
      if (op.kind == OpKind::kCompute) write_compute(entry, op);
      if (op.kind == OpKind::kCollective) write_collective(entry, op);
      if (op.kind == OpKind::kMessages) write_messages(entry, op);
      if (op.kind == OpKind::kHost) write_copy(entry, op);
    }
    events_.end(more());
  }

 private:
  struct Device {
    std::string name;
    std::string_view category;
    std::uint32_t stream = 0;
    Span span;
    std::string arguments;  // members of the object, each after a comma
  };

  void write_names() {
    write_name("process_name", kDevice, "stepsim");
    write_label(kDevice, "GPU 0");
    write_name("process_name", kHostProcess, "stepsim");
    write_label(kHostProcess, "CPU");
    for (const Stream& stream : program_.streams) {
      if (stream.ops == 0) continue;
      const std::uint32_t number = stream_of_op_[stream.first_op];
      events_.begin();
      events_.append(
          R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"ts":0.000,"args":{{"name":"stream {} {}"}}}})",
          kDevice, number, number, json_escaped(stream.name));
    }
  }
  void write_name(std::string_view what, int process, std::string_view name) {
    events_.begin();
    events_.append(R"({{"ph":"M","name":"{}","pid":{},"tid":0,"ts":0.000,"args":{{"name":"{}"}}}})",
                   what, process, name);
  }
  void write_label(int process, std::string_view label) {
    events_.begin();
    events_.append(
        R"({{"ph":"M","name":"process_labels","pid":{},"tid":0,"ts":0.000,"args":{{"labels":"{}"}}}})",
        process, label);
  }

  // From the first op of a step to the last one.
  void write_steps() {
    std::vector<Span> steps(result_.steps);
    std::vector<bool> begun(result_.steps, false);
    for (const TimelineOp& entry : timeline_.ops) {
      Span& step = steps[entry.step];
      const Span span{nanoseconds(entry.started), nanoseconds(entry.ended)};
      step.begin = begun[entry.step] ? std::min(step.begin, span.begin) : span.begin;
      step.end = std::max(step.end, span.end);
      begun[entry.step] = true;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!begun[i]) continue;
      const std::string name = fmt::format("ProfilerStep#{}", i);
      write_event({name, "user_annotation", kHostProcess, steps[i], ""}, kHostProcess);
      write_event({name, "gpu_user_annotation", kFirstStream, steps[i], ""}, kDevice);
    }
  }

  void write_event(const Device& event, int process) {
    events_.begin();
    events_.append(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":)", event.category,
                   json_escaped(event.name), process, event.stream);
    events_.append_time({event.span.begin});
    events_.append_text(R"(,"dur":)");
    events_.append_time({event.span.length()});
    events_.append(R"(,"args":{{"Ev Idx":{}{}}}}})", next_event_++, event.arguments);
  }

  // Writes a kernel or a copy, its launch, and the arrow between them.
  void write_launched(Device device) {
    const std::uint64_t correlation = ++correlation_;
    const std::string launch =
        fmt::format(R"(,"External id":{},"correlation":{},"cbid":211)", correlation, correlation);
    const bool copies = device.category == "gpu_memcpy";
    write_event({copies ? "cudaMemcpyAsync" : "cudaLaunchKernel",
                 "cuda_runtime",
                 kHostProcess,
                 {device.span.begin, device.span.begin},
                 launch},
                kHostProcess);
    write_arrow_end("s", "", correlation, kHostProcess, kHostProcess, device.span.begin);
    write_arrow_end("f", R"(,"bp":"e")", correlation, kDevice, device.stream, device.span.begin);
    device.arguments =
        fmt::format(R"(,"External id":{},"device":{},"context":1,"stream":{},"correlation":{}{})",
                    correlation, kDevice, device.stream, correlation, device.arguments);
    write_event(device, kDevice);
  }
  void write_arrow_end(std::string_view phase, std::string_view more, std::uint64_t number,
                       int process, std::uint32_t thread, std::int64_t at) {
    events_.begin();
    events_.append(R"({{"ph":"{}","id":{},"pid":{},"tid":{},"ts":)", phase, number, process,
                   thread);
    events_.append_time({at});
    events_.append(R"(,"cat":"ac2g","name":"ac2g"{}}})", more);
  }

  void write_compute(const TimelineOp& entry, const Op& op) {
    const ComputeWork& work = graph_.compute_works[op.work];
    const std::vector<KernelShares::Share>& shares = shares_.of(op.work);
    const Duration whole = entry.ended - entry.started;
    Time begin = entry.started;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const Time end = entry.started + KernelShares::end_of(shares, i, whole);
      const Kernel& kernel = work.kernels[i];
      const std::string& label = graph_.names[program_.labels[entry.op].name];
      write_launched({kernel.name.empty() ? label : std::string(kernel.name),
                      "kernel",
                      stream_of_op_[entry.op],
                      {nanoseconds(begin), nanoseconds(end)},
                      fmt::format(R"(,"flops":{},"bytes":{},"op":"{}")", kernel.flops.value(),
                                  (kernel.read + kernel.written).value(), json_escaped(label))});
      begin = end;
    }
  }

  std::string group_arguments(CommunicatorId id) const {
    const Communicator& communicator = graph_.communicators[id.index()];
    const auto& members = communicator.groups[communicator.seat_of[rank_.index()].group];
    return fmt::format(
        R"(,"Group size":{},"Process Group Name":"{}","Process Group Description":"{}","Process Group Ranks":"{}")",
        members.size(), id.index(), json_escaped(communicator.name), ranks_text(members));
  }
  // "[0, 1, 2]": a text, as PyTorch writes it.
  static std::string ranks_text(const std::vector<RankId>& ranks) {
    std::vector<std::uint32_t> numbers;
    for (const RankId rank : ranks) numbers.push_back(rank.index());
    return fmt::format("[{}]", fmt::join(numbers, ", "));
  }

  void write_collective(const TimelineOp& entry, const Op& op) {
    const CollectiveWork& work = graph_.collective_works[op.work];
    const Communicator& communicator = graph_.communicators[work.communicator.index()];
    const GroupId group(communicator.seat_of[rank_.index()].group);
    const CollectiveFact& fact = facts_.of(CollectiveWorkId(op.work), group);
    const NcclNames names = nccl_names(work.op);
    const std::int64_t whole = work.bytes.value() / size_of(work.type).value();
    const std::int64_t part = whole / std::max(1U, fact.ranks);
    const bool gathers = work.op == CollectiveOp::kAllGather;
    const bool scatters = work.op == CollectiveOp::kReduceScatter;
    write_launched(
        {fmt::format("ncclDevKernel_{}_{}", names.kernel, upper_with_underscores(fact.algorithm)),
         "kernel",
         stream_of_op_[entry.op],
         {nanoseconds(entry.started), nanoseconds(entry.ended)},
         fmt::format(
             R"(,"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"dtype":"{}","In split size":"[]","Out split size":"[]"{})",
             names.collective, gathers ? part : whole, scatters ? part : whole,
             torch_name(work.type), group_arguments(work.communicator))});
  }

  void write_messages(const TimelineOp& entry, const Op& op) {
    const auto messages = std::span(graph_.messages).subspan(op.work, op.work_count);
    if (messages.empty()) return;
    Bytes sent;
    Bytes received;
    for (const Message& message : messages) {
      (message.is_send ? sent : received) += message.bytes;
    }
    const std::string_view name = received == Bytes(0) ? "send"
                                  : sent == Bytes(0)   ? "recv"
                                                       : "batch";
    write_launched(
        {"ncclDevKernel_SendRecv",
         "kernel",
         stream_of_op_[entry.op],
         {nanoseconds(entry.started), nanoseconds(entry.ended)},
         fmt::format(
             R"(,"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"dtype":"Byte","In split size":"[]","Out split size":"[]"{})",
             name, sent.value(), received.value(),
             group_arguments(messages.front().communicator))});
  }

  void write_copy(const TimelineOp& entry, const Op& op) {
    const HostWork& work = graph_.host_works[op.work];
    if (work.action == HostAction::kUpdate) return;  // the GPU does nothing
    const bool out = work.action == HostAction::kCopyOut;
    write_launched({out ? "Memcpy DtoH (Device -> Pinned)" : "Memcpy HtoD (Pinned -> Device)",
                    "gpu_memcpy",
                    stream_of_op_[entry.op],
                    {nanoseconds(entry.started), nanoseconds(entry.ended)},
                    fmt::format(R"(,"bytes":{})", work.bytes.value())});
  }

  std::string more() const {
    std::vector<std::string> groups;
    for (std::size_t i = 0; i < graph_.communicators.size(); ++i) {
      const Communicator& communicator = graph_.communicators[i];
      const std::uint32_t group = communicator.seat_of[rank_.index()].group;
      if (group >= communicator.groups.size()) continue;
      const std::vector<RankId>& members = communicator.groups[group];
      if (std::ranges::find(members, rank_) == members.end()) continue;
      groups.push_back(fmt::format(
          R"({{"pg_name":"{}","pg_desc":"{}","backend_config":"cuda:nccl","pg_size":{},"ranks":{}}})",
          i, json_escaped(communicator.name), members.size(), ranks_text(members)));
    }
    return fmt::format(
        R"(,"schemaVersion":1,"baseTimeNanoseconds":0,"deviceProperties":[{{"id":0,"name":"{}","totalGlobalMem":{}}}],"distributedInfo":{{"backend":"nccl","rank":{},"world_size":{},"pg_count":{},"pg_config":[{}]}})",
        json_escaped(cluster_.chip.name), cluster_.chip.memory_capacity.value(), rank_.index(),
        graph_.ranks.size(), groups.size(), fmt::join(groups, ","));
  }

  const OpGraph& graph_;
  const Cluster& cluster_;
  const SimulationResult& result_;
  RankId rank_;
  const Timeline& timeline_;
  const Program& program_;
  KernelShares shares_;
  CollectiveFacts facts_;
  TraceEvents events_;
  std::vector<std::uint32_t> stream_of_op_;  // by op of the program: a CUDA stream
  std::uint64_t correlation_ = 0;
  std::uint64_t next_event_ = 0;
};

}  // namespace

void write_kineto_trace(const OpGraph& graph, const Cluster& cluster,
                        const SimulationResult& result, std::size_t recorded, OutputFile& out) {
  KinetoWriter(graph, cluster, result, recorded, out).write();
}

}  // namespace stepsim

#include "traces/formats/communication_lanes.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/formats/trace_lanes.h"

namespace stepsim {
namespace {

// By Axis: names that Chrome's viewer reserves.
constexpr std::array<std::string_view, kMostAxes> kAxisColours = {
    "good",      "yellow",       "bad",         "olive", "thread_state_runnable",
    "rail_load", "generic_work", "generic_work"};

class CommunicationLanes {
 public:
  CommunicationLanes(const TracedRank& rank, CollectiveFacts& facts, TraceSink& sink)
      : rank_(rank),
        graph_(rank.graph),
        program_(graph_.programs[graph_.ranks[rank.rank.index()].program.index()]),
        facts_(facts),
        sink_(sink) {
    for (const std::string& axis : rank.axes) critical_axes_.push_back(axis + ",critical");
  }

  void write() {
    for (std::size_t i = 0; i < rank_.timeline.ops.size(); ++i) {
      if (program_.ops[rank_.timeline.ops[i].op].kind != OpKind::kCompute) write(i);
    }
  }

 private:
  void write(std::size_t i) {
    const TimelineOp& entry = rank_.timeline.ops[i];
    const Op& op = program_.ops[entry.op];
    const std::string& name = graph_.names[program_.labels[entry.op].name];
    set_place(entry);
    const Span wait = wait_span(entry, op.kind);
    const Span drawn{wait.begin + (rank_.layout.waits_late[i] ? 1 : 0), wait.end};
    const std::uint32_t process = rank_.layout.process;
    if (drawn.length() > 0) {
      write_slice({.track = {process, rank_.layout.main_thread(entry.op)},
                   .span = drawn,
                   .name = "wait: " + name,
                   .category = "wait",
                   .colour = "grey",
                   .arguments = arguments_});
    }
    if (rank_.critical[i]) arguments_.push_back({"critical_path", std::string("yes")});
    add_work(op, entry.ended - entry.moving);
    if (wait.length() > 0) arguments_.push_back({"waited_us", microseconds(wait.length())});
    const Span launch{nanoseconds(entry.ready), nanoseconds(entry.started)};
    if (launch.length() > 0) {
      arguments_.push_back({"launch_wait_us", microseconds(launch.length())});
    }
    write_slice({.track = {process, rank_.layout.thread_of(i, entry.op)},
                 .span = work_span(entry, op.kind),
                 .name = name,
                 .category = rank_.critical[i] ? critical_axes_[static_cast<std::size_t>(op.axis)]
                                               : rank_.axes[static_cast<std::size_t>(op.axis)],
                 .colour = kAxisColours[static_cast<std::size_t>(op.axis)],
                 .arguments = arguments_,
                 .arrows = rank_.arrows.of(i)});
  }

  void write_slice(const SliceEvent& slice) {
    sink_.open(slice);
    sink_.close();
  }

  static double microseconds(std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1000;
  }

  void set_place(const TimelineOp& entry) {
    const OpLabel& label = program_.labels[entry.op];
    arguments_.clear();
    arguments_.push_back({"step", std::int64_t{entry.step}});
    if (label.microbatch) arguments_.push_back({"microbatch", std::int64_t{*label.microbatch}});
    if (label.layer) arguments_.push_back({"layer", std::int64_t{*label.layer}});
  }

  // `moving`: how long data moved.
  void add_work(const Op& op, Duration moving) {
    if (op.kind == OpKind::kMessages) return add_messages(op);
    if (op.kind == OpKind::kHost) {
      arguments_.push_back({"bytes", graph_.host_works[op.work].bytes.value()});
      return;
    }
    const CollectiveWork& work = graph_.collective_works[op.work];
    const Communicator& communicator = graph_.communicators[work.communicator.index()];
    const GroupId group(communicator.seat_of[rank_.rank.index()].group);
    const CollectiveFact& fact = facts_.of(CollectiveWorkId(op.work), group);
    arguments_.push_back({"op", std::string(name_of(work.op))});
    arguments_.push_back({"bytes", work.bytes.value()});
    arguments_.push_back({"algorithm", fact.algorithm});
    arguments_.push_back({"ranks", std::int64_t{fact.ranks}});
    arguments_.push_back({"communicator", communicator.name});
    if (!fact.limiting_link.empty()) arguments_.push_back({"limited_by", fact.limiting_link});
    if (moving == Duration()) return;
    const double speed = static_cast<double>(work.bytes.value()) / to_seconds(moving) / 1e9;
    arguments_.push_back({"algbw_GB_per_s", speed});
    arguments_.push_back({"busbw_GB_per_s", speed * fact.bus_factor});
  }

  // Adds messages: ["send activation of micro-batch 3 to rank 12"].
  void add_messages(const Op& op) {
    Bytes bytes;
    std::vector<std::string> texts;
    for (const Message& message : std::span(graph_.messages).subspan(op.work, op.work_count)) {
      const Communicator& communicator = graph_.communicators[message.communicator.index()];
      const std::uint32_t group = communicator.seat_of[rank_.rank.index()].group;
      bytes += message.bytes;
      std::string text =
          fmt::format("{} {}", message.is_send ? "send" : "receive", name_of(message.kind));
      if (message.microbatch) text += fmt::format(" of micro-batch {}", *message.microbatch);
      texts.push_back(fmt::format("{} {} rank {}", text, message.is_send ? "to" : "from",
                                  communicator.groups[group][message.peer].index()));
    }
    arguments_.push_back({"messages", std::move(texts)});
    arguments_.push_back({"bytes", bytes.value()});
  }

  const TracedRank& rank_;
  const OpGraph& graph_;
  const Program& program_;
  CollectiveFacts& facts_;
  TraceSink& sink_;
  std::vector<std::string> critical_axes_;  // categories of ops on the critical path
  std::vector<TraceArgument> arguments_;    // of the op that is being written
};

}  // namespace

void write_communication(const TracedRank& rank, CollectiveFacts& facts, TraceSink& sink) {
  CommunicationLanes(rank, facts, sink).write();
}

}  // namespace stepsim

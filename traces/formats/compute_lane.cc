#include "traces/formats/compute_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "sim/chips/chip_spec.h"

namespace stepsim {
namespace {

const Program& program_of(const OpGraph& graph, RankId rank) {
  return graph.programs[graph.ranks[rank.index()].program.index()];
}

RankId member(const OpGraph& graph, CommunicatorId id, RankId rank, std::uint32_t peer) {
  const Communicator& communicator = graph.communicators[id.index()];
  return communicator.groups[communicator.seat_of[rank.index()].group][peer];
}

// Returns the lowest rank of a collective's group that is simulated as one with `like`.
std::optional<RankId> peer_like(RankId like, const Op& op, const TracedRank& of) {
  const std::vector<std::uint32_t>& classes = of.result.class_of_rank;
  if (classes.empty()) return like;
  const CommunicatorId id = of.graph.collective_works[op.work].communicator;
  const Communicator& communicator = of.graph.communicators[id.index()];
  std::optional<RankId> found;
  for (const RankId rank : communicator.groups[communicator.seat_of[of.rank.index()].group]) {
    const bool alike = classes[rank.index()] == classes[like.index()];
    if (alike && (!found || rank < *found)) found = rank;
  }
  return found;
}

// "gradient of micro-batch 3 from rank 24"; of several messages the first that is received.
std::string text_of_messages(const Op& op, const OpGraph& graph, RankId rank) {
  const auto messages = std::span(graph.messages).subspan(op.work, op.work_count);
  if (messages.empty()) return "messages";
  const auto received = std::ranges::find(messages, false, &Message::is_send);
  const Message& message = received == messages.end() ? messages.front() : *received;
  std::string text(name_of(message.kind));
  if (message.microbatch) text += fmt::format(" of micro-batch {}", *message.microbatch);
  return fmt::format("{} {} rank {}", text, message.is_send ? "to be taken by" : "from",
                     member(graph, message.communicator, rank, message.peer).index());
}

std::string text_of_op(const Op& op, const OpGraph& graph, RankId rank) {
  switch (op.kind) {
    case OpKind::kCollective: {
      const CollectiveWork& work = graph.collective_works[op.work];
      return fmt::format("{} ({})", name_of(work.op),
                         graph.communicators[work.communicator.index()].name);
    }
    case OpKind::kMessages:
      return text_of_messages(op, graph, rank);
    case OpKind::kHost:
      return "a copy to or from the host";
    case OpKind::kCompute:
      break;
  }
  return "compute";
}

struct Phase {
  std::string_view category;
  std::string_view colour;
  std::string_view critical;  // the categories of what is on the critical path
};

// By the words of a label: "block forward: qkv_projection", "block weight gradient: ...".
Phase phase_of(std::string_view label) {
  constexpr std::array<Phase, 4> kPhases = {
      {{"forward", "thread_state_running", "forward,critical"},
       {"backward", "rail_response", "backward,critical"},
       {"recompute", "thread_state_iowait", "recompute,critical"},
       {"weight gradient", "rail_animation", "weight gradient,critical"}}};
  const std::string_view before = label.substr(0, label.find(':'));
  for (const Phase& phase : kPhases) {
    if (before.ends_with(phase.category)) return phase;
  }
  return {"other compute", "rail_idle", "other compute,critical"};
}

class ComputeLane {
 public:
  ComputeLane(const TracedRank& rank, TraceDetail detail, KernelShares& shares, TraceSink& sink)
      : rank_(rank),
        program_(program_of(rank.graph, rank.rank)),
        detail_(detail),
        shares_(shares),
        sink_(sink),
        track_{rank.layout.process, rank.layout.process} {
    for (std::size_t i = 0; i < rank.timeline.ops.size(); ++i) {
      const TimelineOp& entry = rank.timeline.ops[i];
      if (program_.ops[entry.op].kind != OpKind::kCompute) continue;
      entries_.push_back(&entry);
      arrows_.push_back(rank.arrows.of(i));
      critical_.push_back(rank.critical[i]);
    }
  }

  void write() {
    for (std::size_t begin = 0; begin < entries_.size();) {
      const std::size_t end =
          run_of(begin, entries_.size(), [](const OpLabel& label) { return label.pass; });
      write_pass(begin, end);
      begin = end;
    }
    write_waits({});
  }

 private:
  const OpLabel& label_of(std::size_t entry) const { return program_.labels[entries_[entry]->op]; }
  const std::string& name_of_entry(std::size_t entry) const {
    return rank_.graph.names[label_of(entry).name];
  }
  std::string_view words_of(std::size_t entry) const {
    const std::string_view name = name_of_entry(entry);
    return name.substr(0, name.find(':'));
  }

  // Returns the end of the entries from `begin` on that are of one step and alike.
  template <typename Key>
  std::size_t run_of(std::size_t begin, std::size_t most, Key key) const {
    std::size_t end = begin + 1;
    while (end < most && entries_[end]->step == entries_[begin]->step &&
           key(label_of(end)) == key(label_of(begin))) {
      ++end;
    }
    return end;
  }

  Span span_of(std::size_t begin, std::size_t end) const {
    return {nanoseconds(entries_[begin]->started), nanoseconds(entries_[end - 1]->ended)};
  }

  std::int64_t compute_ps(std::size_t begin, std::size_t end) const {
    Duration sum;
    for (std::size_t i = begin; i < end; ++i) sum += entries_[i]->ended - entries_[i]->started;
    return sum.count();
  }

  void write_pass(std::size_t begin, std::size_t end) {
    const std::optional<std::uint32_t> pass = label_of(begin).pass;
    innermost_ = pass ? detail_ : std::max(detail_, TraceDetail::kLayer);
    write_waits(entries_[begin]->started);
    const bool opened = pass && open({.begin = begin,
                                      .end = end,
                                      .level = TraceDetail::kPass,
                                      .name = rank_.graph.names[*pass],
                                      .category = "pass"});
    if (innermost_ == TraceDetail::kPass) {
      for (std::size_t i = begin; i < end; ++i) write_waits(entries_[i]->started);
    } else {
      write_layers(begin, end);
    }
    if (opened) sink_.close();
  }

  void write_layers(std::size_t begin, std::size_t end) {
    for (std::size_t first = begin; first < end;) {
      std::size_t last = first + 1;
      while (last < end && label_of(last).layer == label_of(first).layer &&
             words_of(last) == words_of(first)) {
        ++last;
      }
      write_layer(first, last);
      first = last;
    }
  }

  void write_layer(std::size_t begin, std::size_t end) {
    write_waits(entries_[begin]->started);
    const std::optional<std::int32_t> layer = label_of(begin).layer;
    const std::string words(words_of(begin));
    const bool is_one_kernel = end - begin == 1 && work_of(begin).kernels.size() <= 1;
    const bool opened = open({.begin = begin,
                              .end = end,
                              .level = is_one_kernel ? innermost_ : TraceDetail::kLayer,
                              .name = layer ? fmt::format("layer {}: {}", *layer, words) : words,
                              .category = phase_of(words).category});
    for (std::size_t i = begin; i < end; ++i) {
      write_waits(entries_[i]->started);
      if (innermost_ == TraceDetail::kKernel && !is_one_kernel) write_kernels(i);
    }
    if (opened) sink_.close();
  }

  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
    TraceDetail level = TraceDetail::kPass;
    std::string_view name;
    std::string_view category;
  };
  // Opens the slice of a pass or a layer. Returns whether it did: one shorter than a nanosecond is
  // an instant, if nothing inside it is shown.
  bool open(const Group& group) {
    const Span span = span_of(group.begin, group.end);
    const std::vector<TraceArgument> arguments = arguments_of(group.begin, group.end, group.level);
    if (span.length() == 0) {
      if (group.level == innermost_) {
        sink_.instant({track_, span.begin, group.name, group.category, arguments});
      }
      return false;
    }
    const std::vector<TraceArrowEnd> arrows = arrows_of(group.begin, group.end, group.level);
    sink_.open({.track = track_,
                .span = span,
                .name = group.name,
                .category = group.category,
                .colour = phase_of(name_of_entry(group.begin)).colour,
                .arguments = arguments,
                .arrows = arrows});
    return true;
  }

  // Returns the arguments that a pass or a layer has. The innermost slices also say how long they
  // compute.
  std::vector<TraceArgument> arguments_of(std::size_t begin, std::size_t end,
                                          TraceDetail level) const {
    const OpLabel& label = label_of(begin);
    std::vector<TraceArgument> arguments = {{"step", std::int64_t{entries_[begin]->step}}};
    if (label.microbatch) arguments.push_back({"microbatch", std::int64_t{*label.microbatch}});
    if (level == TraceDetail::kLayer && label.layer) {
      arguments.push_back({"layer", std::int64_t{*label.layer}});
    }
    if (level == innermost_) arguments.push_back({"compute_ps", compute_ps(begin, end)});
    if (is_critical(begin, end)) arguments.push_back({"critical_path", std::string("yes")});
    if (label.pass && level == TraceDetail::kPass) return arguments;
    Flops flops;
    Bytes memory;
    std::int64_t kernels = 0;
    for (std::size_t i = begin; i < end; ++i) {
      for (const Kernel& kernel : work_of(i).kernels) {
        flops += kernel.flops;
        memory += kernel.read + kernel.written;
        ++kernels;
      }
    }
    arguments.push_back({"kernels", kernels});
    arguments.push_back({"flops", flops.value()});
    arguments.push_back({"memory_bytes", memory.value()});
    return arguments;
  }

  bool is_critical(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (critical_[i]) return true;
    }
    return false;
  }

  // Returns the arrows of the innermost slices that are shown: those of all their ops.
  std::vector<TraceArrowEnd> arrows_of(std::size_t begin, std::size_t end,
                                       TraceDetail level) const {
    std::vector<TraceArrowEnd> arrows;
    if (level != innermost_) return arrows;
    for (std::size_t i = begin; i < end; ++i) {
      arrows.insert(arrows.end(), arrows_[i].begin(), arrows_[i].end());
    }
    return arrows;
  }

  const ComputeWork& work_of(std::size_t entry) const {
    return rank_.graph.compute_works[program_.ops[entries_[entry]->op].work];
  }

  void write_kernels(std::size_t entry) {
    const TimelineOp& op = *entries_[entry];
    const ComputeWork& work = work_of(entry);
    const std::vector<KernelShares::Share>& shares = shares_.of(program_.ops[op.op].work);
    std::int64_t written = 0;  // picoseconds since the op's start that stand in a slice
    std::span<const TraceArrowEnd> arrows = arrows_[entry];
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const std::int64_t until = KernelShares::end_of(shares, i, op.ended - op.started).count();
      const Span span{nanoseconds(op.started + Duration(written)),
                      nanoseconds(op.started + Duration(until))};
      const bool last = i + 1 == shares.size();
      if (span.length() == 0 && !(last && until > written)) continue;
      write_kernel(entry, {work.kernels[i], span, until - written, shares[i].memory_bound}, arrows);
      arrows = {};
      written = until;
    }
  }

  struct KernelSlice {
    const Kernel& kernel;
    Span span;
    std::int64_t compute_ps = 0;
    bool memory_bound = false;
  };
  void write_kernel(std::size_t entry, const KernelSlice& slice,
                    std::span<const TraceArrowEnd> arrows) {
    const Kernel& kernel = slice.kernel;
    const Span span = slice.span;
    const Phase phase = phase_of(name_of_entry(entry));
    const double seconds = to_seconds(Duration(slice.compute_ps));
    const double peak = rank_.cluster.chip.peak_of(kernel.type).value();
    std::vector<TraceArgument>& arguments = arguments_;
    arguments.clear();
    arguments.push_back({"step", std::int64_t{entries_[entry]->step}});
    arguments.push_back({"compute_ps", slice.compute_ps});
    arguments.push_back({"flops", kernel.flops.value()});
    arguments.push_back({"memory_bytes", (kernel.read + kernel.written).value()});
    arguments.push_back({"bound", std::string(slice.memory_bound ? "memory" : "compute")});
    if (peak > 0 && seconds > 0) {
      const double share = kernel.flops.value() / (peak * seconds);
      arguments.push_back({"percent_of_peak", std::round(1000 * share) / 10});
    }
    if (critical_[entry]) arguments.push_back({"critical_path", std::string("yes")});
    const std::string_view name = kernel.name.empty() ? words_of(entry) : kernel.name;
    const std::string_view category = critical_[entry] ? phase.critical : phase.category;
    if (span.length() == 0) {
      return sink_.instant({track_, span.begin, name, category, arguments});
    }
    sink_.open({.track = track_,
                .span = span,
                .name = name,
                .category = category,
                .colour = phase.colour,
                .arguments = arguments,
                .arrows = arrows});
    sink_.close();
  }

  // Writes the waits that begin before `until`; all that are left if it is unset.
  void write_waits(std::optional<Time> until) {
    const std::vector<TimelineWait>& waits = rank_.timeline.waits;
    for (; next_wait_ < waits.size(); ++next_wait_) {
      const TimelineWait& wait = waits[next_wait_];
      if (until && wait.from >= *until) return;
      const std::string name = text_of(wait, rank_);
      std::vector<TraceArgument>& arguments = arguments_;
      arguments.clear();
      arguments.push_back({"counts_as", part_of_breakdown(wait, rank_.graph, rank_.rank)});
      arguments.push_back({"idle_ps", wait.length().count()});
      const Span span{nanoseconds(wait.from), nanoseconds(wait.to)};
      if (span.length() == 0) {
        sink_.instant({track_, span.begin, name, "idle", arguments});
        continue;
      }
      sink_.open({.track = track_,
                  .span = span,
                  .name = name,
                  .category = "idle",
                  .colour = "grey",
                  .arguments = arguments});
      sink_.close();
    }
  }

  const TracedRank& rank_;
  const Program& program_;
  TraceDetail detail_;
  KernelShares& shares_;
  TraceDetail innermost_ = TraceDetail::kKernel;  // of the pass being written
  TraceSink& sink_;
  TraceTrack track_;
  std::vector<const TimelineOp*> entries_;
  std::vector<std::span<const TraceArrowEnd>> arrows_;  // by entry
  std::vector<bool> critical_;                          // by entry
  std::vector<TraceArgument> arguments_;                // of the slice that is being written
  std::size_t next_wait_ = 0;
};

}  // namespace

std::string_view name_of(TraceDetail detail) {
  constexpr std::array<std::string_view, kTraceDetails> kNames = {"pass", "layer", "kernel"};
  return kNames[static_cast<std::size_t>(detail)];
}

KernelShares::KernelShares(const OpGraph& graph, const Cluster& cluster)
    : graph_(graph), chip_(cluster.chip), shares_(graph.compute_works.size()) {}

const std::vector<KernelShares::Share>& KernelShares::of(std::uint32_t work) {
  std::vector<Share>& shares = shares_[work];
  if (!shares.empty()) return shares;
  Duration sum;
  for (const Kernel& kernel : graph_.compute_works[work].kernels) {
    const KernelTime time = time_of(kernel, chip_);
    sum += time.total;
    shares.push_back({sum, time.memory_bound()});
  }
  for (std::size_t i = 0; i < shares.size() && sum == Duration(); ++i) {
    shares[i].until = Duration(static_cast<std::int64_t>(i) + 1);
  }
  return shares;
}

Duration KernelShares::end_of(const std::vector<Share>& shares, std::size_t i, Duration whole) {
  __extension__ using Wide = __int128;
  const Wide part = Wide{whole.count()} * shares[i].until.count() / shares.back().until.count();
  return Duration(static_cast<std::int64_t>(part));
}

void write_compute_lane(const TracedRank& rank, TraceDetail detail, KernelShares& shares,
                        TraceSink& sink) {
  ComputeLane(rank, detail, shares, sink).write();
}

std::string text_of(const TimelineWait& wait, const TracedRank& of) {
  if (!wait.op) return "nothing left to run";
  const OpGraph& graph = of.graph;
  const RankId rank = of.rank;
  const Program& program = program_of(graph, rank);
  const Op& op = program.ops[*wait.op];
  if (wait.cause == WaitCause::kHost) {
    return "waits for its host to launch " + graph.names[program.labels[*wait.op].name];
  }
  const std::string text = "waits for " + text_of_op(op, graph, rank);
  const bool meets = wait.cause != WaitCause::kData && wait.last;
  if (!meets || op.kind != OpKind::kCollective) return text;
  const auto last = peer_like(*wait.last, op, of);
  return last && *last != rank ? text + fmt::format(" with rank {}", last->index()) : text;
}

std::string part_of_breakdown(const TimelineWait& wait, const OpGraph& graph, RankId rank) {
  switch (wait.cause) {
    case WaitCause::kData:
      return "exposed " + name_of(graph, program_of(graph, rank).ops[*wait.op].axis);
    case WaitCause::kOtherStage:
      return "bubble";
    case WaitCause::kPeers:
      return "idle";
    case WaitCause::kHost:
      return "launch";
    case WaitCause::kNothingLeft:
      break;
  }
  return graph.pipeline_stages > 1 ? "bubble" : "idle";
}

}  // namespace stepsim

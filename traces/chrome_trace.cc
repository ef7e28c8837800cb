#include "traces/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "traces/json_text.h"
#include "traces/trace_events.h"
#include "traces/trace_lanes.h"

namespace stepsim {
namespace {

class TraceWriter {
 public:
  TraceWriter(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result,
              OutputFile& out)
      : graph_(graph), cluster_(cluster), result_(result), events_(out) {
    for (const std::string& name : graph.names) names_.push_back(json_escaped(name));
  }

  TraceSummary write() {
    std::uint32_t next_thread = links_process() + 1;
    for (const Timeline& timeline : result_.timelines) {
      layouts_.push_back(lay_out(graph_, timeline, next_thread));
    }
    write_names();
    for (std::size_t i = 0; i < result_.timelines.size(); ++i) {
      write_slices(result_.timelines[i], layouts_[i]);
      write_memory(result_.timelines[i]);
    }
    for (const TimelineFlow& flow : result_.flows) write_arrow(flow);
    write_links();
    events_.end();
    return summary_;
  }

 private:
  const Program& program_of(const Timeline& timeline) const {
    return graph_.programs[graph_.ranks[timeline.rank.index()].program.index()];
  }

  // The process number of the links, after all ranks.
  std::uint32_t links_process() const {
    return process_of(RankId(static_cast<std::uint32_t>(graph_.ranks.size())));
  }

  void write_metadata(std::string_view what, std::uint32_t process, std::uint32_t thread,
                      std::string_view arguments) {
    events_.begin();
    events_.append(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, process,
                   thread, arguments);
  }

  void write_process(std::uint32_t process, std::string_view name, std::size_t position) {
    write_metadata("process_name", process, process,
                   fmt::format(R"("name":"{}")", json_escaped(name)));
    write_metadata("process_sort_index", process, process,
                   fmt::format(R"("sort_index":{})", position));
  }

  std::string name_of_rank(RankId id) const {
    const RankData& rank = graph_.ranks[id.index()];
    const bool has_context =
        std::ranges::any_of(graph_.ranks, [](const RankData& other) { return other.cp > 0; });
    return fmt::format("rank {} (stage {}, tp {}, {}dp {})", id.index(), rank.pp, rank.tp,
                       has_context ? fmt::format("cp {}, ", rank.cp) : "", rank.dp);
  }

  void write_names() {
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      const RankLayout& layout = layouts_[i];
      write_process(layout.process, name_of_rank(result_.timelines[i].rank), i);
      std::uint32_t position = 0;
      for (const std::vector<TraceLane>& lanes : layout.lanes) {
        for (const TraceLane& lane : lanes) {
          write_metadata("thread_name", layout.process, lane.thread,
                         fmt::format(R"("name":"{}")", json_escaped(lane.name)));
          write_metadata("thread_sort_index", layout.process, lane.thread,
                         fmt::format(R"("sort_index":{})", position++));
        }
      }
    }
    if (!traced_links(graph_, cluster_, result_).empty()) {
      write_process(links_process(), "link utilization", layouts_.size());
    }
  }

  void write_slices(const Timeline& timeline, const RankLayout& layout) {
    const Program& program = program_of(timeline);
    for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
      const TimelineOp& entry = timeline.ops[i];
      const Op& op = program.ops[entry.op];
      const Span wait = wait_span(entry, op.kind);
      const Span drawn{wait.begin + (layout.waits_late[i] ? 1 : 0), wait.end};
      if (drawn.length() > 0) {
        begin_slice(entry, program, layout,
                    {layout.main_thread(entry.op), drawn, "wait: ", "wait"});
        events_.append_text("}}");
      }
      const std::string category =
          op.kind == OpKind::kCompute ? "compute" : name_of(graph_, op.axis);
      begin_slice(entry, program, layout,
                  {layout.thread_of(i, entry.op), work_span(entry, op.kind), "", category});
      append_work(op, timeline.rank);
      if (wait.length() > 0) {
        events_.append_text(R"(,"waited_us":)");
        events_.append_time({wait.length()});
      }
      const Span launch{nanoseconds(entry.ready), nanoseconds(entry.started)};
      if (launch.length() > 0) {
        events_.append_text(R"(,"launch_wait_us":)");
        events_.append_time({launch.length()});
      }
      events_.append_text("}}");
    }
  }

  struct Slice {
    std::uint32_t thread = 0;
    Span span;
    std::string_view prefix;
    std::string_view category;
  };

  // Writes a slice up to the arguments that every slice has. The caller closes the two objects.
  void begin_slice(const TimelineOp& entry, const Program& program, const RankLayout& layout,
                   const Slice& slice) {
    const OpLabel& label = program.labels[entry.op];
    events_.begin();
    events_.append(R"({{"ph":"X","name":"{}{}","cat":"{}","pid":{},"tid":{},"ts":)", slice.prefix,
                   names_[label.name], slice.category, layout.process, slice.thread);
    events_.append_time({slice.span.begin});
    events_.append_text(R"(,"dur":)");
    events_.append_time({slice.span.length()});
    events_.append(R"(,"args":{{"step":{})", entry.step);
    if (label.microbatch) events_.append(R"(,"microbatch":{})", *label.microbatch);
    if (label.layer) events_.append(R"(,"layer":{})", *label.layer);
    ++summary_.slices;
  }

  void append_work(const Op& op, RankId rank) {
    switch (op.kind) {
      case OpKind::kCompute: {
        const ComputeWork& work = graph_.compute_works[op.work];
        Flops flops;
        Bytes memory;
        for (const Kernel& kernel : work.kernels) {
          flops += kernel.flops;
          memory += kernel.read + kernel.written;
        }
        events_.append(R"(,"kernels":{},"flops":{:.0f},"memory_bytes":{})", work.kernels.size(),
                       flops.value(), memory.value());
        return;
      }
      case OpKind::kCollective: {
        const CollectiveWork& work = graph_.collective_works[op.work];
        const Communicator& communicator = graph_.communicators[work.communicator.index()];
        const std::uint32_t group = communicator.seat_of[rank.index()].group;
        events_.append(R"(,"op":"{}","bytes":{},"algorithm":"{}","ranks":{},"communicator":"{}")",
                       name_of(work.op), work.bytes.value(), name_of(work.algorithm),
                       communicator.groups[group].size(), json_escaped(communicator.name));
        return;
      }
      case OpKind::kHost:
        events_.append(R"(,"bytes":{})", graph_.host_works[op.work].bytes.value());
        return;
      case OpKind::kMessages:
        append_messages(op, rank);
    }
  }

  // Writes "messages":["send activation of micro-batch 3 to rank 12"].
  void append_messages(const Op& op, RankId rank) {
    Bytes bytes;
    events_.append_text(R"(,"messages":[)");
    const auto messages = std::span(graph_.messages).subspan(op.work, op.work_count);
    for (const Message& message : messages) {
      const Communicator& communicator = graph_.communicators[message.communicator.index()];
      const std::uint32_t group = communicator.seat_of[rank.index()].group;
      bytes += message.bytes;
      events_.append(R"({}"{} {})", &message == &messages[0] ? "" : ",",
                     message.is_send ? "send" : "receive", name_of(message.kind));
      if (message.microbatch) events_.append(" of micro-batch {}", *message.microbatch);
      events_.append(R"( {} rank {}")", message.is_send ? "to" : "from",
                     communicator.groups[group][message.peer].index());
    }
    events_.append(R"(],"bytes":{})", bytes.value());
  }

  // Writes a sample of the total and of each category that changed.
  void write_memory(const Timeline& timeline) {
    MemoryBytes shown{};
    std::optional<Bytes> shown_total;
    for (const MemorySample& sample : timeline.memory) {
      Bytes total;
      for (const Bytes bytes : sample.bytes) total += bytes;
      const std::uint32_t process = process_of(timeline.rank);
      if (total != shown_total) write_memory_counter(process, "total", sample.at, total);
      shown_total = total;
      for (std::size_t i = 0; i < kMemoryCategories; ++i) {
        if (sample.bytes[i] == shown[i]) continue;
        write_memory_counter(process, name_of(static_cast<MemoryCategory>(i)), sample.at,
                             sample.bytes[i]);
        shown[i] = sample.bytes[i];
      }
    }
  }

  void write_memory_counter(std::uint32_t process, std::string_view category, Time at,
                            Bytes bytes) {
    events_.begin();
    events_.append(R"({{"ph":"C","name":"memory: {}","pid":{},"ts":)", category, process);
    events_.append_time({nanoseconds(at)});
    events_.append(R"(,"args":{{"bytes":{}}}}})", bytes.value());
    ++summary_.counter_samples;
  }

  struct ArrowEnd {
    std::uint32_t process = 0;
    std::uint32_t thread = 0;
    OpKind kind = OpKind::kCompute;
    Span work;
  };

  ArrowEnd arrow_end(std::uint32_t timeline_index, std::uint32_t entry_index) const {
    const Timeline& timeline = result_.timelines[timeline_index];
    const RankLayout& layout = layouts_[timeline_index];
    const TimelineOp& entry = timeline.ops[entry_index];
    const OpKind kind = program_of(timeline).ops[entry.op].kind;
    return {layout.process, layout.thread_of(entry_index, entry.op), kind, work_span(entry, kind)};
  }

  // Both ends lie inside the slices in which data moved, and the head is never before the tail. A
  // message's arrow points to its arrival; a collective's points to the start.
  void write_arrow(const TimelineFlow& flow) {
    const ArrowEnd from = arrow_end(flow.from_timeline, flow.from_entry);
    const ArrowEnd to = arrow_end(flow.to_timeline, flow.to_entry);
    const bool message = to.kind == OpKind::kMessages;
    const std::int64_t tail = from.work.begin;
    const std::int64_t last = std::max(to.work.begin, to.work.end - 1);
    const std::int64_t head = message ? last : std::clamp(tail, to.work.begin, last);
    if (head < tail) return;  // both are in one nanosecond, and no reader could draw it
    const std::string_view name = message ? "message" : "collective";
    write_arrow_end("s", name, from, tail);
    write_arrow_end("f", name, to, head);
    ++summary_.arrows;
  }

  void write_arrow_end(std::string_view phase, std::string_view name, const ArrowEnd& end,
                       std::int64_t at) {
    events_.begin();
    events_.append(R"({{"ph":"{}","name":"{}","cat":"flow","id":{},"pid":{},"tid":{},"ts":)", phase,
                   name, summary_.arrows + 1, end.process, end.thread);
    events_.append_time({at});
    events_.append_text(phase == "f" ? R"(,"bp":"e"})" : "}");
  }

  void write_links() {
    std::vector<const LinkSeries*> series_of(cluster_.fabric.links().size(), nullptr);
    for (const LinkSeries& series : result_.link_series) {
      series_of[series.link.index()] = &series;
    }
    for (const LinkId link : traced_links(graph_, cluster_, result_)) {
      write_link(*series_of[link.index()]);
    }
  }

  // Writes a sample wherever the utilization changes, and zero at the end of the run.
  void write_link(const LinkSeries& series) {
    const std::string name = json_escaped(cluster_.fabric.link_name(series.link));
    const double bandwidth = cluster_.fabric.link(series.link).bandwidth.value();
    const std::size_t bins = series.bytes.size();
    const std::size_t merged = (bins + kMostTraceBins - 1) / kMostTraceBins;  // bins in one
    std::optional<std::int64_t> shown;
    for (std::size_t bin = 0; bin < bins; bin += merged) {
      const Time begin{result_.bin_width * static_cast<std::int64_t>(bin)};
      if (begin >= result_.end) break;
      const Time end = std::min(
          Time{result_.bin_width * static_cast<std::int64_t>(std::min(bin + merged, bins))},
          result_.end);
      double bytes = 0;
      for (std::size_t i = bin; i < std::min(bin + merged, bins); ++i) bytes += series.bytes[i];
      // Utilization in hundredths of a percent.
      const auto utilization = static_cast<std::int64_t>(
          std::llround(1e4 * bytes / (bandwidth * to_seconds(end - begin))));
      if (utilization != shown) write_link_counter(name, begin, utilization);
      shown = utilization;
    }
    if (shown && *shown != 0) write_link_counter(name, result_.end, 0);
  }

  void write_link_counter(std::string_view name, Time at, std::int64_t hundredths) {
    events_.begin();
    events_.append(R"({{"ph":"C","name":"{}","pid":{},"ts":)", name, links_process());
    events_.append_time({nanoseconds(at)});
    events_.append(R"(,"args":{{"percent":{}.{:02}}}}})", hundredths / 100, hundredths % 100);
    ++summary_.counter_samples;
  }

  const OpGraph& graph_;
  const Cluster& cluster_;
  const SimulationResult& result_;
  TraceEvents events_;
  TraceSummary summary_;
  std::vector<std::string> names_;   // OpGraph::names, as JSON
  std::vector<RankLayout> layouts_;  // by timeline
};

}  // namespace

TraceSummary write_chrome_trace(const OpGraph& graph, const Cluster& cluster,
                                const SimulationResult& result, OutputFile& out) {
  return TraceWriter(graph, cluster, result, out).write();
}

std::vector<LinkId> traced_links(const OpGraph& graph, const Cluster& cluster,
                                 const SimulationResult& result) {
  const std::vector<Link>& links = cluster.fabric.links();
  std::vector<bool> at_recorded_chip(cluster.fabric.nodes().size(), false);
  for (const Timeline& timeline : result.timelines) {
    const std::uint32_t chip = graph.ranks[timeline.rank.index()].chip;
    at_recorded_chip[cluster.places.chips[chip].index()] = true;
  }
  std::vector<bool> chosen(links.size(), false);
  for (std::size_t i = 0; i < links.size(); ++i) {
    chosen[i] = at_recorded_chip[links[i].from.index()] || at_recorded_chip[links[i].to.index()];
  }
  for (const LinkTotal& link : busiest_links(result, kBusiestTracedLinks)) {
    chosen[link.link.index()] = true;
  }
  std::vector<LinkId> traced;
  for (const LinkSeries& series : result.link_series) {
    const bool used = std::ranges::any_of(series.bytes, [](double bytes) { return bytes > 0; });
    if (used && chosen[series.link.index()]) traced.push_back(series.link);
  }
  std::ranges::sort(traced);
  return traced;
}

std::vector<LinkTotal> busiest_links(const SimulationResult& result, std::size_t count) {
  std::vector<LinkTotal> links;
  std::ranges::copy_if(result.links, std::back_inserter(links),
                       [](const LinkTotal& link) { return link.bytes > 0; });
  const auto busier = [](const LinkTotal& a, const LinkTotal& b) {
    return a.utilization != b.utilization ? a.utilization > b.utilization : a.link < b.link;
  };
  const std::size_t kept = std::min(count, links.size());
  std::partial_sort(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(kept), links.end(),
                    busier);
  links.resize(kept);
  return links;
}

}  // namespace stepsim

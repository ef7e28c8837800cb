#include "cli/network/transport_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedPorts = 5;

bool has_something(const PortCounters& port) {
  return port.peak_bytes + port.pauses + port.marked + port.trimmed + port.dropped > 0;
}

std::string completions_text(const NetworkCase& input, std::span<const Time> finish) {
  std::vector<Duration> taken;
  double sum = 0;
  double rates = 0;
  double squares = 0;
  for (std::size_t flow = 0; flow < finish.size(); ++flow) {
    if (finish[flow] == FlowRun::kNotEnded) continue;
    taken.push_back(finish[flow] - input.flows.flows[flow].start);
    const double seconds = to_seconds(taken.back());
    sum += seconds;
    if (seconds <= 0) continue;
    const double rate = static_cast<double>(input.flows.flows[flow].bytes.value()) / seconds;
    rates += rate;
    squares += rate * rate;
  }
  if (taken.empty()) return "";
  std::ranges::sort(taken);
  const auto count = static_cast<double>(taken.size());
  const auto at = [&taken](std::size_t percent) {
    return to_text(taken[std::min(taken.size() - 1, taken.size() * percent / 100)]);
  };
  return fmt::format(
      "\n  completion: mean {}, p50 {}, p99 {}, last {}; fairness (Jain) {:.3f}\n",
      to_text(Duration(static_cast<std::int64_t>(sum / count * kPicosecondsPerSecond))), at(50),
      at(99), to_text(taken.back()), squares > 0 ? rates * rates / (count * squares) : 1.0);
}

}  // namespace

const ResultTable<MessageCounters>& message_results() {
  static const ResultTable<MessageCounters> kTable = [] {
    constexpr std::string_view kTransport = "with a transport";
    ResultTable<MessageCounters> table;
    table.add("acked_s",
              [](const MessageCounters& of) {
                return OrNull{of.acknowledged == kNever ? std::nullopt
                                                        : std::optional(Duration(of.acknowledged))};
              },
              {"when the sender knows; null: never", "s", kTransport});
    table.add("packets", &MessageCounters::packets, {"that were sent", "", kTransport});
    table.add("marked", &MessageCounters::marked, {"of them", "", kTransport});
    table.add("trimmed", &MessageCounters::trimmed, {"to their headers", "", kTransport});
    table.add("dropped", &MessageCounters::dropped, {"of them", "", kTransport});
    table.add("retransmitted", &MessageCounters::repeated, {"sent again", "", kTransport});
    table.add("paused_s", [](const MessageCounters& of) { return Duration(of.paused); },
              {"its host's link was paused", "s", kTransport});
    return table;
  }();
  return kTable;
}

std::vector<CaseQueue> queues_of(const TransportNetwork& network, const NetworkCase& input) {
  std::vector<CaseQueue> queues;
  for (std::uint32_t link = 0; link < input.fabric.links().size(); ++link) {
    const PortCounters& of = network.port(LinkId(link));
    if (has_something(of)) queues.push_back({std::string(input.link_ids.name(link)), of});
  }
  return queues;
}

const ResultTable<CaseQueue>& queue_results() {
  static const ResultTable<CaseQueue> kTable = [] {
    const auto of_port = [](auto member) {
      return [member](const CaseQueue& queue) { return queue.port.*member; };
    };
    ResultTable<CaseQueue> table;
    table.add("link", [](const CaseQueue& queue) { return RawJson{queue.link}; },
              {"as in the file"});
    table.add("peak_bytes", of_port(&PortCounters::peak_bytes), {"the longest queue", "bytes"});
    table.add("pauses", of_port(&PortCounters::pauses), {"that it was sent"});
    table.add("paused_s", [](const CaseQueue& queue) { return Duration(queue.port.paused); },
              {"how long it stood", "s"});
    table.add("marked", of_port(&PortCounters::marked), {"packets"});
    table.add("trimmed", of_port(&PortCounters::trimmed), {"packets"});
    table.add("dropped", of_port(&PortCounters::dropped), {"packets"});
    return table;
  }();
  return kTable;
}

std::string transport_text(const TransportNetwork& network, const NetworkCase& input,
                           std::span<const Time> finish) {
  MessageCounters all;
  for (std::uint32_t flow = 0; flow < finish.size(); ++flow) {
    const MessageCounters& of = network.message(TransferId(flow));
    all.packets += of.packets;
    all.marked += of.marked;
    all.trimmed += of.trimmed;
    all.dropped += of.dropped;
    all.repeated += of.repeated;
  }
  std::string text = completions_text(input, finish);
  text += fmt::format(
      "  {} data packets: {} marked, {} trimmed, {} dropped, {} sent again\n\n  {:<40} {:>10} "
      "{:>7} {:>10} {:>8} {:>8} {:>8}\n",
      all.packets, all.marked, all.trimmed, all.dropped, all.repeated, "longest queues", "bytes",
      "pauses", "paused", "marked", "trimmed", "dropped");
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < input.fabric.links().size(); ++link) {
    if (has_something(network.port(LinkId(link)))) links.push_back(link);
  }
  std::ranges::stable_sort(links, [&network](std::uint32_t a, std::uint32_t b) {
    return network.port(LinkId(a)).peak_bytes > network.port(LinkId(b)).peak_bytes;
  });
  links.resize(std::min(links.size(), kListedPorts));
  for (const std::uint32_t link : links) {
    const PortCounters& of = network.port(LinkId(link));
    text += fmt::format("  {:<40} {:>10} {:>7} {:>10} {:>8} {:>8} {:>8}\n",
                        plain_id(input.link_ids.name(link)),
                        to_text(Bytes(static_cast<std::int64_t>(of.peak_bytes))), of.pauses,
                        to_text(Duration(of.paused)), of.marked, of.trimmed, of.dropped);
  }
  return text;
}

}  // namespace stepsim

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

std::string transport_json_of_flow(const TransportNetwork& network, std::uint32_t flow) {
  const MessageCounters& of = network.message(TransferId(flow));
  return fmt::format(
      ", \"acked_s\": {}, \"packets\": {}, \"marked\": {}, \"trimmed\": {}, \"dropped\": {}, "
      "\"retransmitted\": {}, \"paused_s\": {}",
      of.acknowledged == kNever ? "null" : exact_seconds(Duration(of.acknowledged)), of.packets,
      of.marked, of.trimmed, of.dropped, of.repeated, exact_seconds(Duration(of.paused)));
}

std::string transport_json_of_queues(const TransportNetwork& network, const NetworkCase& input) {
  std::string text = "\n  \"queues\": [";
  bool is_first = true;
  for (std::uint32_t link = 0; link < input.fabric.links().size(); ++link) {
    const PortCounters& of = network.port(LinkId(link));
    if (!has_something(of)) continue;
    text += fmt::format(
        "{}\n    {{\"link\": {}, \"peak_bytes\": {}, \"pauses\": {}, \"paused_s\": {}, "
        "\"marked\": {}, \"trimmed\": {}, \"dropped\": {}}}",
        is_first ? "" : ",", input.link_ids.name(link), of.peak_bytes, of.pauses,
        exact_seconds(Duration(of.paused)), of.marked, of.trimmed, of.dropped);
    is_first = false;
  }
  return text + "\n  ],";
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

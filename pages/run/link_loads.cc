#include "pages/run/link_loads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pages/run/run_drawings.h"
#include "traces/formats/link_kinds.h"
#include "traces/formats/trace_counters.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostLinkBins = 300;
constexpr std::size_t kMostDrawnKinds = 12;

// Utilization by bin, in hundredths of a percent. Bins of the recording may outlast the run.
Json load_over_time(const LinkKindLoad& load, Duration bin_width, Duration whole) {
  const double whole_s = to_seconds(whole);
  const double width = to_seconds(bin_width);
  const auto used = static_cast<std::size_t>(std::ceil(whole_s / width - 1e-9));
  const std::size_t bins =
      std::min({kMostLinkBins, load.bytes.size(), std::max<std::size_t>(used, 1)});
  std::vector<double> bytes(bins, 0);
  const double drawn = whole_s / static_cast<double>(bins);
  for (std::size_t i = 0; i < load.bytes.size(); ++i) {
    // What a bin carried is spread evenly over those that it overlaps.
    const double from = width * static_cast<double>(i);
    const double to = std::min(from + width, whole_s);
    if (to <= from) continue;
    auto bin = std::min(static_cast<std::size_t>(from / drawn), bins - 1);
    for (double at = from; at < to && bin < bins; ++bin) {
      const double until =
          bin + 1 == bins ? to : std::min(to, drawn * static_cast<double>(bin + 1));
      bytes[bin] += load.bytes[i] * std::max(0.0, until - at) / (to - from);
      at = std::max(at, until);
    }
  }
  Json over_time = Json::array();
  for (const double one : bytes) {
    over_time.push_back(std::llround(1e4 * one / (load.bandwidth * drawn)));
  }
  return over_time;
}

}  // namespace

Json link_loads(const FinishedRun& run) {
  const SimulationResult& result = run.result;
  const Duration whole = result.end.since_start;
  const LinkKinds kinds = link_kinds(run.cluster.fabric, run.cluster.places);
  std::map<std::string, double> busiest;
  std::map<std::string, double> bytes;
  for (const LinkTotal& link : result.links) {
    if (link.link.index() >= kinds.of_link.size()) continue;
    double& most = busiest[kinds.name_of(link.link)];
    most = std::max(most, link.utilization);
    bytes[kinds.name_of(link.link)] += link.bytes;
  }
  std::vector<LinkKindLoad> loads = link_kind_loads(run.cluster, result);
  const auto mean_of = [&](const LinkKindLoad& load) {
    double sum = 0;
    for (const double one : load.bytes) sum += one;
    return sum / (load.bandwidth * to_seconds(whole));
  };
  std::ranges::stable_sort(
      loads, [&](const LinkKindLoad& a, const LinkKindLoad& b) { return mean_of(a) > mean_of(b); });
  Json all = Json::object();
  all["end_s"] = to_seconds(whole);
  all["kinds"] = Json::array();
  for (const LinkKindLoad& load : loads) {
    Json kind = Json::object();
    kind["name"] = load.kind;
    kind["links"] = load.links;
    kind["bytes"] = rounded(bytes[load.kind]);
    kind["bandwidth_bytes_per_s"] = rounded(load.bandwidth / static_cast<double>(load.links));
    kind["mean"] = rounded(mean_of(load));
    kind["busiest"] = rounded(busiest[load.kind]);
    if (all["kinds"].size() < kMostDrawnKinds) {
      kind["over_time"] = load_over_time(load, result.bin_width, whole);
    }
    all["kinds"].push_back(std::move(kind));
  }
  return all;
}

}  // namespace stepsim

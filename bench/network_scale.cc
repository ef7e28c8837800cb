// How the cost of the flow model grows: CPU seconds and memory of large loads, and their cost
// against the number of rate updates. The slope in log-log scale is 1 if the cost is linear.
//
//   build/release/bench/network_scale          the large loads (about 2 minutes)
//   build/release/bench/network_scale slope    the same traffic for longer and longer
//
// Seconds are from making the network to the last end. Memory is the peak of a child process that
// runs this load alone, the list of flows included.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/network_loads.h"
#include "sim/network/flow_network.h"

namespace stepsim {
namespace {

using namespace literals;

struct Cost {
  double flows = 0;
  double makespan_s = 0;
  double rate_updates = 0;
  double cpu_s = 0;
  double peak_MB = 0;
};

double cpu_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Cost run(const Load& load) {
  const double begin = cpu_now();
  const auto network = make_flow_network(load.fabric);
  const FlowRun result = run_flows(load.flows, load.fabric, *network);
  const Time makespan = *std::max_element(result.finish.begin(), result.finish.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.flows = static_cast<double>(load.flows.flows.size()),
          .makespan_s = to_seconds(makespan.since_start),
          .rate_updates = static_cast<double>(network->statistics().rate_updates),
          .cpu_s = cpu_now() - begin,
          .peak_MB = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6};
}

// Runs in a process of its own, so that its memory is measured alone.
Cost run_alone(const std::function<Load()>& make) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no child process");
  Cost cost;
  if (child == 0) {
    cost = run(make());
    _exit(write(ends[1], &cost, sizeof cost) == sizeof cost ? 0 : 1);
  }
  close(ends[1]);
  const bool is_there = read(ends[0], &cost, sizeof cost) == sizeof cost;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!is_there) throw std::runtime_error("a load did not come to an end");
  return cost;
}

Cost report(const std::string& name, const std::function<Load()>& make) {
  const Cost cost = run_alone(make);
  fmt::print("{:<44} {:>9.0f} {:>12.6f} {:>12.0f} {:>9.3f} {:>9.1f} {:>8.0f}\n", name, cost.flows,
             cost.makespan_s, cost.rate_updates, cost.cpu_s, 1e9 * cost.cpu_s / cost.rate_updates,
             cost.peak_MB);
  std::fflush(stdout);
  return cost;
}

void print_header() {
  fmt::print("{:<44} {:>9} {:>12} {:>12} {:>9} {:>9} {:>8}\n", "load", "flows", "makespan s",
             "rate updates", "CPU s", "ns/update", "peak MB");
}

void run_large_loads() {
  constexpr TorusLinks kTorus{.side = 16, .bandwidth = 50_GBps, .latency = 500ns};
  print_header();
  report("all-to-all, 1,024 hosts, fat tree 4:1",
         [] { return all_to_all_on_fat_tree({.ports = 16, .taper = 4}, 1_MiB); });
  for (const std::size_t count : {1'000u, 10'000u, 100'000u}) {
    report(fmt::format("{} random, 16 MiB, torus 16x16x16", count),
           [&] { return random_on_torus(kTorus, {.count = count, .bytes = 16_MiB}); });
  }
  for (const std::size_t count : {10'000u, 100'000u}) {
    report(fmt::format("{} random, 1 to 64 MB, torus 16x16x16", count),
           [&] { return random_on_torus(kTorus, {.count = count}); });
  }
}

void show_slope(const std::string& name, const std::vector<std::size_t>& counts,
                const std::function<Load(std::size_t)>& make) {
  std::vector<Cost> costs;
  for (const std::size_t count : counts) {
    costs.push_back(report(fmt::format("{}, {}", name, count), [&] { return make(count); }));
  }
  const Cost& first = costs.front();
  const Cost& last = costs.back();
  fmt::print("  slope {:.2f}\n",
             std::log(last.cpu_s / first.cpu_s) / std::log(last.rate_updates / first.rate_updates));
}

void run_slopes() {
  print_header();
  show_slope("Poisson, torus 8x8x8", {2'000, 20'000, 200'000, 2'000'000}, [](std::size_t count) {
    return random_on_torus({.side = 8, .bandwidth = 45_GBps}, {.count = count, .mean_gap = 4us});
  });
  show_slope("Poisson, fat tree k=16", {2'000, 20'000, 200'000, 2'000'000}, [](std::size_t count) {
    return random_on_fat_tree({.ports = 16}, {.count = count, .mean_gap = 1500ns});
  });
  show_slope("all at once, torus 16x16x16", {1'000, 3'000, 10'000, 30'000}, [](std::size_t count) {
    return random_on_torus({.side = 16, .bandwidth = 50_GBps}, {.count = count});
  });
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "slope") {
    stepsim::run_slopes();
  } else if (mode.empty()) {
    stepsim::run_large_loads();
  } else {
    fmt::print(stderr, "usage: network_scale [slope]\n");
    return 2;
  }
}

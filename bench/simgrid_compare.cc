// Runs network cases on stepsim's flow model and on SimGrid 3.32, in the same run on the same
// machine, and compares CPU seconds, makespans and the finish times of all flows.
//
//   build/release/bench/simgrid_compare tests/reference/network/cases [CASE.json[.gz] ...]
//
// stepsim is timed from making the network to the last end, without reading the file. SimGrid is
// timed in Engine::run() alone: making its platform and its activities is not counted. Each
// repeats until 0.2 s have been spent, and the median counts. SimGrid has one engine a process, so
// each of its repetitions is a child process.
//
// How SimGrid is driven: model CM02 set to plain max-min sharing (no bandwidth factor, no weights,
// no cross traffic, no window), precision 1e-13, its default lazy updates. One star zone; one host
// for each distinct route, with the route as its way up; one sink; one Comm a flow. Without
// latencies one actor starts the flows and add_successor() keeps their order; with latencies one
// actor a flow waits for the others, sleeps for the latency, and sends. In the lazy mode SimGrid
// treats flows without latency apart, so links have a latency of 1 s there and a latency factor 0.
// Flows of zero bytes are not given to SimGrid.
//
// The goals printed: SimGrid time / stepsim time of at least 100 where cases of at least 1,000
// flows arrive at random instants, 20 for other cases of at least 1,000 flows that take SimGrid
// 50 ms, 5 for cases of that size below 50 ms, 1 for all others. Exit status 1 if one is missed.

#include <fmt/format.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xbt/log.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "proto/network_case/network_case.h"
#include "sim/network/flow_network.h"

namespace stepsim {
namespace {

namespace sg = simgrid::s4u;

constexpr double kRepeatFor_s = 0.2;
constexpr std::size_t kMostRepetitions = 2001;

struct Outcome {
  double cpu_s = 0;
  std::vector<double> finish_s;  // indexed by flow
};

double cpu_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// ---- stepsim ----

Outcome run_stepsim(const NetworkCase& input) {
  Outcome outcome;
  const double begin = cpu_now();
  const auto network = make_flow_network(input.fabric);
  const FlowRun result = run_flows(input.flows, input.fabric, *network);
  outcome.cpu_s = cpu_now() - begin;
  for (const Time finish : result.finish)
    outcome.finish_s.push_back(to_seconds(finish.since_start));
  return outcome;
}

// ---- SimGrid ----

// Platform holds the source host of each flow, and the common sink.
struct Platform {
  std::vector<sg::Host*> sources;
  sg::Host* sink;
};

Platform make_platform(const NetworkCase& input) {
  sg::NetZone* const zone = sg::create_star_zone("zone");
  std::vector<const sg::Link*> links;
  for (const Link& link : input.fabric.links()) {
    links.push_back(zone->create_link(fmt::format("link{}", links.size()), link.bandwidth.value())
                        ->set_latency(1)
                        ->seal());
  }
  Platform platform{{}, zone->create_host("sink", 1e9)->seal()};
  zone->add_route(nullptr, platform.sink->get_netpoint(), nullptr, nullptr,
                  std::vector<sg::LinkInRoute>{}, false);
  std::map<std::vector<LinkId>, sg::Host*> hosts;
  for (const FlowList::Flow& flow : input.flows.flows) {
    const std::span<const LinkId> route = input.flows.route(flow);
    sg::Host*& host = hosts[std::vector<LinkId>(route.begin(), route.end())];
    if (host == nullptr) {
      host = zone->create_host(fmt::format("host{}", hosts.size()), 1e9)->seal();
      std::vector<sg::LinkInRoute> way;
      for (const LinkId link : route) way.emplace_back(links[link.index()]);
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, way, false);
    }
    platform.sources.push_back(host);
  }
  zone->seal();
  return platform;
}

bool has_latencies(const NetworkCase& input) {
  return std::any_of(input.fabric.links().begin(), input.fabric.links().end(),
                     [](const Link& link) { return link.latency > Duration::zero(); });
}

// Adds all flows as activities that wait for each other. One actor starts them at their times.
void add_as_activities(const NetworkCase& input, const Platform& platform,
                       std::vector<sg::CommPtr>& comms) {
  const std::vector<FlowList::Flow>& flows = input.flows.flows;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    comms.push_back(sg::Comm::sendto_init(platform.sources[i], platform.sink));
    comms[i]->set_payload_size(static_cast<std::uint64_t>(flows[i].bytes.value()));
  }
  for (const auto& [flow, after] : input.flows.dependences) {
    comms[after]->add_successor(comms[flow]);
  }
  std::vector<std::size_t> order(flows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return flows[a].start < flows[b].start; });
  sg::Actor::create("starter", platform.sink, [&flows, &comms, order] {
    for (const std::size_t i : order) {
      const double start = to_seconds(flows[i].start.since_start);
      if (start > sg::Engine::get_clock()) sg::this_actor::sleep_until(start);
      comms[i]->vetoable_start();
    }
  });
}

// Adds one actor per flow. A flow that others wait for posts to a mailbox of each of them.
void add_as_actors(const NetworkCase& input, const Platform& platform,
                   std::vector<double>& finish_s) {
  const std::size_t count = input.flows.flows.size();
  std::vector<int> awaited(count, 0);
  std::vector<std::vector<std::uint32_t>> followers(count);
  for (const auto& [flow, after] : input.flows.dependences) {
    ++awaited[flow];
    followers[after].push_back(flow);
  }
  std::vector<sg::SemaphorePtr> ended;
  for (std::size_t i = 0; i < count; ++i) ended.push_back(sg::Semaphore::create(0));
  for (std::size_t i = 0; i < count; ++i) {
    const FlowList::Flow& flow = input.flows.flows[i];
    Duration latency{};
    for (const LinkId link : input.flows.route(flow)) latency += input.fabric.link(link).latency;
    sg::Actor::create(fmt::format("flow{}", i), platform.sources[i], [=, &finish_s] {
      for (int waited = 0; waited < awaited[i]; ++waited) ended[i]->acquire();
      const double start = to_seconds(flow.start.since_start);
      if (start > sg::Engine::get_clock()) sg::this_actor::sleep_until(start);
      if (latency > Duration::zero()) sg::this_actor::sleep_for(to_seconds(latency));
      sg::Comm::sendto(platform.sources[i], platform.sink,
                       static_cast<std::uint64_t>(flow.bytes.value()));
      finish_s[i] = sg::Engine::get_clock();
      for (const std::uint32_t follower : followers[i]) ended[follower]->release();
    });
  }
}

Outcome run_simgrid_here(const NetworkCase& input) {
  xbt_log_control_set("root.threshold:warning");
  int argc = 1;
  std::string name = "simgrid_compare";
  char* arguments[] = {name.data(), nullptr};
  sg::Engine engine(&argc, arguments);
  for (const char* const setting :
       {"network/model:CM02", "network/optim:Lazy", "network/latency-factor:0",
        "network/bandwidth-factor:1", "network/weight-S:0", "network/crosstraffic:0",
        "network/TCP-gamma:1e30", "maxmin/precision:1e-13", "surf/precision:1e-13"}) {
    sg::Engine::set_config(setting);
  }
  Outcome outcome;
  outcome.finish_s.resize(input.flows.flows.size());
  const Platform platform = make_platform(input);
  std::vector<sg::CommPtr> comms;
  if (has_latencies(input)) {
    add_as_actors(input, platform, outcome.finish_s);
  } else {
    add_as_activities(input, platform, comms);
  }
  const double begin = cpu_now();
  engine.run();
  outcome.cpu_s = cpu_now() - begin;
  for (std::size_t i = 0; i < comms.size(); ++i) outcome.finish_s[i] = comms[i]->get_finish_time();
  return outcome;
}

void write_all(int file, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written <= 0) _exit(1);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

void read_all(int file, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(file, at, size);
    if (got <= 0) throw std::runtime_error("SimGrid did not come to an end");
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

Outcome run_simgrid(const NetworkCase& input) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no child process");
  Outcome outcome;
  if (child == 0) {
    close(ends[0]);
    outcome = run_simgrid_here(input);
    write_all(ends[1], &outcome.cpu_s, sizeof outcome.cpu_s);
    write_all(ends[1], outcome.finish_s.data(), outcome.finish_s.size() * sizeof(double));
    _exit(0);
  }
  close(ends[1]);
  outcome.finish_s.resize(input.flows.flows.size());
  read_all(ends[0], &outcome.cpu_s, sizeof outcome.cpu_s);
  read_all(ends[0], outcome.finish_s.data(), outcome.finish_s.size() * sizeof(double));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return outcome;
}

// ---- both ----

template <typename Run>
Outcome repeat(Run run) {
  std::vector<double> cpu_s;
  double spent = 0;
  Outcome outcome;
  while (spent < kRepeatFor_s && cpu_s.size() < kMostRepetitions) {
    outcome = run();
    cpu_s.push_back(outcome.cpu_s);
    spent += outcome.cpu_s;
  }
  outcome.cpu_s = median(cpu_s);
  return outcome;
}

double makespan(const Outcome& outcome) {
  return *std::max_element(outcome.finish_s.begin(), outcome.finish_s.end());
}

double worst_difference(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.finish_s.size(); ++i) {
    worst = std::max(worst, std::abs(a.finish_s[i] - b.finish_s[i]) / b.finish_s[i]);
  }
  return worst;
}

double goal_of(const NetworkCase& input, double simgrid_s) {
  if (input.name.find("poisson") != std::string::npos) return 100;
  if (input.flows.flows.size() < 1000) return 1;
  return simgrid_s >= 0.05 ? 20 : 5;
}

bool can_be_compared(const NetworkCase& input) {
  const std::vector<FlowList::Flow>& flows = input.flows.flows;
  return !input.packets && !flows.empty() &&
         std::all_of(flows.begin(), flows.end(),
                     [](const FlowList::Flow& flow) { return flow.bytes > Bytes(0); });
}

// Returns whether the goal is reached.
bool compare(const std::string& path) {
  const NetworkCase input = load_network_case(path);
  if (!can_be_compared(input)) return true;
  const Outcome ours = repeat([&] { return run_stepsim(input); });
  const Outcome theirs = repeat([&] { return run_simgrid(input); });
  const double ratio = theirs.cpu_s / ours.cpu_s;
  const double goal = goal_of(input, theirs.cpu_s);
  const double makespan_difference = std::abs(makespan(ours) - makespan(theirs)) / makespan(theirs);
  fmt::print("{:<30} {:>7} {:>12.6f} {:>12.6f} {:>8.1f} {:>6} {:>10.1e} {:>10.1e}{}\n", input.name,
             input.flows.flows.size(), theirs.cpu_s, ours.cpu_s, ratio, goal, makespan_difference,
             worst_difference(ours, theirs), ratio >= goal ? "" : "  missed");
  std::fflush(stdout);
  return ratio >= goal;
}

int compare_all(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    if (!std::filesystem::is_directory(argument)) {
      paths.push_back(argument);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argument)) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  fmt::print("{:<30} {:>7} {:>12} {:>12} {:>8} {:>6} {:>10} {:>10}\n", "case", "flows", "SimGrid s",
             "stepsim s", "ratio", "goal", "makespan", "worst flow");
  std::size_t missed = 0;
  for (const std::string& path : paths) missed += compare(path) ? 0u : 1u;
  fmt::print("{} goals missed\n", missed);
  return missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: simgrid_compare FOLDER|CASE.json[.gz] ...\n");
    return 2;
  }
  return stepsim::compare_all({argv + 1, argv + argc});
}

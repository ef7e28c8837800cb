// The hold model: n events wait; each step pops the earliest and schedules another at now + random.
// The same runs with std::priority_queue of 16-byte events: quote the ratio of the two.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <queue>
#include <random>
#include <vector>

#include "sim/engine/event_queue.h"

namespace stepsim {
namespace {

const std::vector<std::int64_t>& delays() {
  static const std::vector<std::int64_t> kDelays = [] {
    std::mt19937_64 random(1);
    std::vector<std::int64_t> result(1 << 16);
    for (std::int64_t& delay : result) delay = static_cast<std::int64_t>(random() % (1 << 20)) + 1;
    return result;
  }();
  return kDelays;
}

void BM_EventQueue(benchmark::State& state) {
  const auto& delay = delays();
  EventQueue queue;
  std::size_t next = 0;
  std::uint64_t sum = 0;
  auto hold = [&] {
    const Event event = queue.pop();
    sum += event.index();
    queue.schedule(queue.now() + Duration(delay[next++ & 0xffff]), event);
  };
  for (int i = 0; i < state.range(0); ++i) {
    queue.schedule(Time{Duration(delay[next++ & 0xffff])}, Event(0, 1));
  }
  for (int i = 0; i < state.range(0); ++i) hold();  // replaces every event of the queue once
  for (auto _ : state) hold();
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EventQueue)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

struct PlainEvent {
  std::int64_t at;
  std::uint32_t sequence;
  std::uint32_t event;
  bool operator<(const PlainEvent& other) const {
    return at != other.at ? at > other.at : sequence > other.sequence;
  }
};

void BM_PriorityQueue(benchmark::State& state) {
  const auto& delay = delays();
  std::priority_queue<PlainEvent> queue;
  std::size_t next = 0;
  std::uint32_t sequence = 0;
  std::uint64_t sum = 0;
  auto hold = [&] {
    const PlainEvent event = queue.top();
    queue.pop();
    sum += event.event;
    queue.push({event.at + delay[next++ & 0xffff], sequence++, event.event});
  };
  for (int i = 0; i < state.range(0); ++i) queue.push({delay[next++ & 0xffff], sequence++, 1});
  for (int i = 0; i < state.range(0); ++i) hold();
  for (auto _ : state) hold();
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_PriorityQueue)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

}  // namespace
}  // namespace stepsim

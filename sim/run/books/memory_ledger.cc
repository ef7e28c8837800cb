#include "sim/run/books/memory_ledger.h"

#include <algorithm>

namespace stepsim {

MemoryLedger::MemoryLedger(const Job& job) : states_(job.ranks().size()) {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    State& state = states_[rank];
    state.bytes = job.program(RankId(static_cast<std::uint32_t>(rank))).resident;
    for (const Bytes bytes : state.bytes) state.total += bytes;
  }
}

void MemoryLedger::change(RankId rank, Time now, OpId op, MemoryCategory category, Bytes bytes) {
  State& state = states_[rank.index()];
  if (now != state.changed_at) {
    look(state);
    state.changed_at = now;
    state.taken.clear();
  }
  const auto taken = std::ranges::find(state.taken, op, &Taken::op);
  if (taken == state.taken.end()) {
    state.taken.push_back({op, bytes});
  } else {
    taken->bytes += bytes;
  }
  state.bytes[static_cast<std::size_t>(category)] += bytes;
  state.total += bytes;
}

void MemoryLedger::skip(Time from, Time to) {
  for (State& state : states_) {
    if (state.changed_at == from) state.changed_at = to;
  }
}

void MemoryLedger::look(State& state) {
  if (state.total <= state.peak.bytes) return;
  const Taken* most = nullptr;
  for (const Taken& taken : state.taken) {
    if (taken.bytes <= Bytes(0)) continue;
    const bool is_most = most == nullptr || taken.bytes > most->bytes ||
                         (taken.bytes == most->bytes && taken.op < most->op);
    if (is_most) most = &taken;
  }
  state.peak = {.bytes = state.total,
                .at = state.changed_at,
                .by_category = state.bytes,
                .op = most != nullptr ? std::optional(most->op) : std::nullopt};
}

std::vector<MemoryPeak> MemoryLedger::peaks() const {
  std::vector<MemoryPeak> peaks;
  for (State state : states_) {
    look(state);
    peaks.push_back(state.peak);
  }
  return peaks;
}

}  // namespace stepsim

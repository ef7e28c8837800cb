#include "sim/run/books/memory_ledger.h"

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
    state.last = state.most = {};
  }
  if (state.last.op != op) state.last = {.op = op, .bytes = {}};
  state.last.bytes += bytes;
  const bool is_most =
      state.last.bytes > state.most.bytes ||
      (state.last.bytes == state.most.bytes && (!state.most.op || op < *state.most.op));
  if (state.last.bytes > Bytes(0) && is_most) state.most = state.last;
  state.bytes[static_cast<std::size_t>(category)] += bytes;
  state.total += bytes;
}

void MemoryLedger::look(State& state) {
  if (state.total > state.peak.bytes) {
    state.peak = {.bytes = state.total,
                  .at = state.changed_at,
                  .by_category = state.bytes,
                  .op = state.most.op};
  }
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

#include "serving/engines/jetstream.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace stepsim {
namespace {

constexpr std::uint32_t kLeastPrompt = 16;

std::size_t slots_of(const EngineState& state) {
  return static_cast<std::size_t>(state.options().sequences);
}

std::int64_t padded(std::int64_t tokens) {
  return std::int64_t{std::bit_ceil(std::max(static_cast<std::uint32_t>(tokens), kLeastPrompt))};
}

}  // namespace

// Slots are taken in order of admission, so those that have one are the first that run.
void JetstreamEngine::form(EngineState& state) {
  state.begin(std::numeric_limits<std::int64_t>::max());
  move_into_slots(state);
  const bool has_slot = state.running().size() < slots_of(state);
  const bool generates = !state.running().empty();
  if ((has_slot || !prefilled_last_ || !generates) && prefill_next(state)) {
    prefilled_last_ = true;
    return;
  }
  generate(state);
  prefilled_last_ = false;
}

void JetstreamEngine::move_into_slots(EngineState& state) {
  const std::vector<RequestId>& running = state.running();
  const std::size_t slots = slots_of(state);
  const auto has_slot = [&](RequestId request) {
    const auto end = running.begin() + static_cast<std::ptrdiff_t>(std::min(slots, running.size()));
    return std::find(running.begin(), end, request) != end;
  };
  std::erase_if(parked_, [&](RequestId request) {
    if (has_slot(request)) state.batch().unparked.push_back(request);
    return has_slot(request);
  });
  for (std::size_t i = slots; i < running.size(); ++i) {
    if (std::ranges::count(parked_, running[i]) > 0) continue;
    parked_.push_back(running[i]);
    state.batch().parked.push_back(running[i]);
  }
}

bool JetstreamEngine::prefill_next(EngineState& state) {
  if (state.waiting().empty()) return false;
  const EngineOptions& options = state.options();
  const auto parked = static_cast<std::int64_t>(parked_.size()) + state.lent();
  if (parked >= caches_without_slot(options)) return false;
  const Sequence& sequence = state.sequence(state.waiting().front());
  const std::int64_t holds =
      options.max_length.value_or(std::int64_t{sequence.prompt} + sequence.to_emit);
  if (state.kv().blocks_of(holds) > state.kv().free()) return false;
  const std::int64_t tokens = sequence.known();
  state.admit(0, {}, tokens, holds);
  if (options.pads_prompts) state.batch().pad(padded(tokens) - tokens);
  return true;
}

void JetstreamEngine::generate(EngineState& state) {
  const std::size_t taken = std::min(state.running().size(), slots_of(state));
  for (std::size_t i = 0; i < taken; ++i) state.schedule(state.running()[i], 1);
  if (taken > 0) state.batch().leave_empty(static_cast<std::int64_t>(slots_of(state) - taken));
}

}  // namespace stepsim

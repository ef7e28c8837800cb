#include "serving/engines/jetstream.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "serving/engines/engine_fields.h"
#include "serving/engines/engine_table.h"

namespace stepsim {
namespace {

class JetstreamEngine final : public Engine {
 public:
  void form(EngineState& state) override;

 private:
  void move_into_slots(EngineState& state);
  bool prefill_next(EngineState& state);
  void generate(EngineState& state);

  std::vector<RequestId> parked_;  // have their first token, and no slot
  bool prefilled_last_ = false;
};

// Caches wait in the backlogs and in the hands of two threads.
WaitingCaches jetstream_caches(const EngineOptions& options) {
  constexpr std::int64_t kThreads = 2;
  const auto& own = own_options<JetstreamOptions>(options);
  return {.most = own.transfer_backlog + own.generate_backlog + kThreads,
          .received = own.generate_backlog};
}

constexpr std::uint32_t kLeastPrompt = 16;

std::size_t slots_of(const EngineState& state) {
  return static_cast<std::size_t>(state.options().batching.sequences);
}

std::int64_t padded(std::int64_t tokens) {
  return std::int64_t{std::bit_ceil(std::max(static_cast<std::uint32_t>(tokens), kLeastPrompt))};
}

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
  if (parked >= jetstream_caches(options).most) return false;
  const Sequence& sequence = state.sequence(state.waiting().front());
  const std::int64_t holds =
      options.batching.max_length.value_or(std::int64_t{sequence.prompt} + sequence.to_emit);
  if (state.kv().whole_of(holds) > state.kv().free()) return false;
  const std::int64_t tokens = sequence.known();
  state.admit(0, {}, tokens, holds);
  if (own_options<JetstreamOptions>(options).pads_prompts)
    state.batch().pad(padded(tokens) - tokens);
  return true;
}

void JetstreamEngine::generate(EngineState& state) {
  const std::size_t taken = std::min(state.running().size(), slots_of(state));
  for (std::size_t i = 0; i < taken; ++i) state.schedule(state.running()[i], 1);
  if (taken > 0) state.batch().leave_empty(static_cast<std::int64_t>(slots_of(state) - taken));
}

EngineOptions jetstream_defaults() {
  EngineOptions options = reserving_defaults(96);
  options.own = JetstreamOptions{};
  return options;
}

void add_jetstream_fields(FieldTable<EngineOptions>& table) {
  using Own = JetstreamOptions;
  constexpr auto kOwn = &EngineOptions::own;
  constexpr double kMostBacklog = 1 << 20;
  table.add_of(
      kOwn, "transfer_backlog", &Own::transfer_backlog, Limits::between(0, kMostBacklog),
      {.help = "jetstream: caches that wait behind prefill for the thread that transfers them.",
       .advice = "JetStream has 1, and 4 where prefill and decode are apart."});
  table.add_of(kOwn, "generate_backlog", &Own::generate_backlog, Limits::between(0, kMostBacklog),
               {.help = "jetstream: caches that wait for a slot, beside those in transfer.",
                .advice = "JetStream has 1; apart, decode replicas have a third of their slots. A "
                          "prefill replica that hands them over has 0."});
  table.add_of(
      kOwn, "pads_prompts", &Own::pads_prompts, {},
      {.help = "jetstream: computes a prompt as the next power of two, of at least 16 tokens."});
}

}  // namespace

EngineRow jetstream_engine() {
  return {.name = "jetstream",
          .summary = "JetStream: whole prompts one by one, backlogs, slots that generate",
          .defaults = jetstream_defaults(),
          .add_own_fields = add_jetstream_fields,
          .make = make_engine<JetstreamEngine>,
          .reserves_answer = reserves_always,
          .waiting_caches = jetstream_caches};
}

}  // namespace stepsim

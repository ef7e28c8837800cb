#include "serving/engines/sglang.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include "serving/engines/engine_fields.h"
#include "serving/engines/engine_table.h"

namespace stepsim {
namespace {

class SglangEngine final : public Engine {
 public:
  explicit SglangEngine(const EngineOptions& options);
  void form(EngineState& state) override;

 private:
  void form_prefill(EngineState& state);
  bool admit_next(EngineState& state, std::int64_t& input_left);
  std::int64_t promised(const Sequence& sequence) const;
  void form_decode(EngineState& state);
  void retract(EngineState& state);

  double first_share_;
  double share_;  // of an answer for which room is kept
};

const SglangOptions& options_of(const EngineState& state) {
  return own_options<SglangOptions>(state.options());
}

constexpr double kFirstShare = 0.7;
constexpr double kLeastShare = 0.14;  // of the first
constexpr double kDecaySteps = 600;
constexpr std::int64_t kMostPromised = 4096;     // tokens of an answer
constexpr std::int64_t kRetractSteps = 20;       // that the new share shall last for
constexpr std::size_t kMostSortedWaiting = 128;  // longer queues are served as they come

std::int64_t decode_tokens(const EngineState& state, const Sequence& sequence) {
  return std::max<std::int64_t>(state.next_tokens(sequence), 1);
}

// Whether the request takes part in the next decodes. In a mixed step some prefill already.
bool is_to_decode(const Sequence& sequence) {
  return EngineState::is_decoding(sequence) && sequence.in_flight == 0 && !sequence.is_done();
}

// Blocks that a decode step of all running requests takes.
std::int64_t wanted_blocks(const EngineState& state) {
  std::int64_t blocks = 0;
  for (const RequestId request : state.running()) {
    const Sequence& sequence = state.sequence(request);
    if (!is_to_decode(sequence)) continue;
    const std::int64_t held = sequence.computed + decode_tokens(state, sequence);
    blocks += state.kv().lacks(sequence.holding, held);
  }
  return blocks;
}

// The position in waiting() of the request to admit next.
std::size_t next_waiting(const EngineState& state) {
  const WaitingQueue& waiting = state.waiting();
  const bool is_sorted = state.options().batching.policy == QueuePolicy::kLongestPrefix &&
                         waiting.size() <= kMostSortedWaiting;
  std::size_t best = 0;
  std::int32_t longest = -1;
  for (std::size_t i = 0; is_sorted && i < waiting.size(); ++i) {
    const std::int32_t hits = state.find_hits(waiting.at(i)).blocks;
    if (hits <= longest) continue;
    longest = hits;
    best = i;
  }
  return best;
}

SglangEngine::SglangEngine(const EngineOptions& options)
    : first_share_(
          std::min(kFirstShare * own_options<SglangOptions>(options).conservativeness, 1.0)),
      share_(first_share_) {}

void SglangEngine::form(EngineState& state) {
  form_prefill(state);
  const bool has_prefill = !state.batch().empty();
  if (!has_prefill || options_of(state).mixed_chunk) form_decode(state);
}

// Room that is kept for the rest of a request's answer, whose last token never needs any.
std::int64_t SglangEngine::promised(const Sequence& sequence) const {
  const std::int64_t rest =
      std::clamp<std::int64_t>(sequence.to_emit - sequence.emitted - 1, 0, kMostPromised);
  return static_cast<std::int64_t>(std::ceil(share_ * static_cast<double>(rest)));
}

void SglangEngine::form_prefill(EngineState& state) {
  state.begin(options_of(state).chunk);
  for (std::size_t i = 0; i < state.running().size(); ++i) {
    const RequestId request = state.running()[i];
    const Sequence& sequence = state.sequence(request);
    if (sequence.is_done() || EngineState::is_decoding(sequence)) continue;
    const std::int64_t tokens =
        std::min({state.next_tokens(sequence), state.budget(), options_of(state).most_of_prompt()});
    if (tokens > 0 && state.grow(request, tokens)) state.schedule(request, tokens);
  }
  std::int64_t input_left = options_of(state).max_prefill;
  while (!state.waiting().empty() && state.budget() > 0 && state.has_room()) {
    if (!admit_next(state, input_left)) return;
  }
}

bool SglangEngine::admit_next(EngineState& state, std::int64_t& input_left) {
  const std::size_t position = next_waiting(state);
  const RequestId request = state.waiting().at(position);
  const Sequence& sequence = state.sequence(request);
  const KvPool::Hits hits = state.find_hits(request);
  const std::int64_t computed = std::int64_t{hits.blocks} * state.kv().block_tokens();
  std::int64_t kept = 0;
  for (const RequestId other : state.running()) {
    const Sequence& running = state.sequence(other);
    const std::int64_t uncomputed = std::max(running.known() - running.computed, 0);
    kept += promised(running) + (EngineState::is_decoding(running) ? 0 : uncomputed);
  }
  if (state.is_to_fetch(request, hits)) {
    return state.fetch(position, hits, sequence.known() + promised(sequence),
                       state.kv().free() - state.kv().blocks_of(kept));
  }
  const std::int64_t blocks =
      state.blocks_wanted(sequence.known() + promised(sequence), hits) + state.kv().blocks_of(kept);
  if (blocks > state.kv().free()) return false;
  const std::int64_t input = sequence.known() - computed;
  if (input > input_left && !state.batch().empty()) return false;
  const std::int64_t tokens = std::min({input, state.budget(), options_of(state).most_of_prompt()});
  input_left -= tokens;
  state.admit(position, hits, tokens, computed + tokens);
  return true;
}

void SglangEngine::form_decode(EngineState& state) {
  if (state.batch().empty())
    state.begin(state.options().batching.sequences * (1 + state.options().speculation.drafts));
  if (wanted_blocks(state) > state.kv().free()) {
    retract(state);
  } else {
    share_ = std::max(share_ - first_share_ * (1 - kLeastShare) / kDecaySteps,
                      first_share_ * kLeastShare);
  }
  for (std::size_t i = 0; i < state.running().size(); ++i) {
    const RequestId request = state.running()[i];
    const Sequence& sequence = state.sequence(request);
    if (!is_to_decode(sequence)) continue;
    // Drafts that find no room are left out.
    const std::int64_t tokens = decode_tokens(state, sequence);
    if (state.grow(request, tokens)) {
      state.schedule(request, tokens);
    } else if (state.grow(request, 1)) {
      state.schedule(request, 1);
    }
  }
}

void SglangEngine::retract(EngineState& state) {
  const auto rank = [&state](RequestId request) {
    const Sequence& sequence = state.sequence(request);
    return std::tuple(sequence.emitted, -sequence.prompt);
  };
  while (state.running().size() > 1 && wanted_blocks(state) > state.kv().free()) {
    const std::vector<RequestId>& running = state.running();
    std::size_t victim = running.size();
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (!is_to_decode(state.sequence(running[i]))) continue;
      if (victim == running.size() || rank(running[i]) < rank(running[victim])) victim = i;
    }
    state.preempt(victim, EngineState::Back::kTail);
  }
  std::int64_t emitted = 0;
  std::int64_t to_emit = 0;
  for (const RequestId request : state.running()) {
    emitted += state.sequence(request).emitted;
    to_emit += state.sequence(request).to_emit;
  }
  const auto count = static_cast<std::int64_t>(state.running().size());
  share_ = std::min(
      static_cast<double>(emitted + kRetractSteps * count) / static_cast<double>(to_emit + 1), 1.0);
}

EngineOptions sglang_defaults() {
  EngineOptions options;
  options.batching.sequences = 4096;
  options.cache.block = 1;
  options.own = SglangOptions{};
  return options;
}

constexpr std::string_view kSglangKeys[] = {"policy",     "prefix_cache", "drafts",
                                            "accepted",   "acceptance",   "drafter",
                                            "draft_time", "host_blocks",  "host_memory"};

void add_sglang_fields(FieldTable<EngineOptions>& table) {
  using Own = SglangOptions;
  constexpr auto kOwn = &EngineOptions::own;
  table.add_of(kOwn, "chunk", &Own::chunk, Limits::between(1, kMostStepTokens),
               {.help = "sglang: tokens of a prefill step (chunked_prefill_size)."});
  table.add_of(kOwn, "max_prefill", &Own::max_prefill, Limits::between(1, kMostStepTokens),
               {.help = "sglang: tokens that one step admits, at most; the first request is always "
                        "taken."});
  table.add_of(kOwn, "mixed_chunk", &Own::mixed_chunk, {},
               {.help = "sglang: decodes go with the prefills."});
  table.add_of(
      kOwn, "conservativeness", &Own::conservativeness, Limits::between(0, 100),
      {.help = "sglang: how much room is kept for answers; 1 keeps 0.7 of them at first."});
}

}  // namespace

EngineRow sglang_engine() {
  return {.name = "sglang",
          .summary = "SGLang: prefills first and alone, room kept for a share of answers",
          .defaults = sglang_defaults(),
          .keys = kSglangKeys,
          .add_own_fields = add_sglang_fields,
          .make = [](const EngineOptions& options) -> std::unique_ptr<Engine> {
            return std::make_unique<SglangEngine>(options);
          },
          .reserves_answer = reserves_never};
}

}  // namespace stepsim

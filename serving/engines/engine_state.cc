#include "serving/engines/engine_state.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace stepsim {

EngineState::EngineState(const EngineOptions& options, std::int64_t kv_blocks,
                         IdTable<RequestId, Sequence>& sequences)
    : options_(options),
      sequences_(sequences),
      kv_(kv_blocks, static_cast<std::int32_t>(options.cache.block), options.cache.prefix_cache,
          options.cache.host_blocks, options.cache.shape),
      waiting_(options.batching.policy == QueuePolicy::kPriority) {}

// ---- forming a step ----

void EngineState::begin(std::int64_t budget) {
  batch_.clear();
  budget_ = budget;
}

std::int32_t EngineState::drafts_of(const Sequence& sequence) const {
  return is_decoding(sequence) ? static_cast<std::int32_t>(options_.speculation.drafts) : 0;
}

std::int64_t EngineState::capped(const Sequence& sequence, std::int64_t tokens) const {
  if (!options_.batching.max_length) return tokens;
  return std::min(tokens, *options_.batching.max_length - 1 - sequence.computed);
}

std::int64_t EngineState::next_tokens(const Sequence& sequence) const {
  const std::int64_t tokens = sequence.known() + drafts_of(sequence) - sequence.computed;
  return capped(sequence, tokens);
}

std::int64_t EngineState::tokens_in_budget(const Sequence& sequence) const {
  const std::int64_t most = options_.batching.long_prefill_threshold.value_or(budget_);
  return std::min({next_tokens(sequence), most, budget_});
}

bool EngineState::grow(RequestId request, std::int64_t tokens) {
  Sequence& sequence = sequences_[request];
  const bool looks_ahead =
      options_.speculation.drafts > 0 && options_.speculation.drafter != Drafter::kNGram;
  std::int64_t held = sequence.computed + tokens + (looks_ahead ? options_.speculation.drafts : 0);
  if (options_.batching.max_length) held = std::min(held, *options_.batching.max_length);
  if (held <= std::int64_t{sequence.holding.blocks} * kv_.block_tokens()) return true;
  if (kv_.lacks(sequence.holding, held) > kv_.free()) return false;
  kv_.take(sequence.holding, kv_.blocks_of(held) - sequence.holding.blocks);
  return true;
}

void EngineState::schedule(RequestId request, std::int64_t tokens) {
  Sequence& sequence = sequences_[request];
  const std::int32_t uncomputed = sequence.known() - sequence.computed;
  const auto count = static_cast<std::int32_t>(tokens);
  const BatchEntry entry{.request = request,
                         .computed = sequence.computed,
                         .tokens = count,
                         .drafts = std::max(count - uncomputed, 0),
                         .life = sequence.preemptions,
                         .is_decode = is_decoding(sequence),
                         .emits = count >= uncomputed};
  batch_.add(entry);
  budget_ -= tokens;
  sequence.computed += count;
  if (entry.emits) sequence.in_flight += 1 + entry.drafts;
  kv_.name_shared(sequence.holding, identity_of(request), sequence.computed);
}

RequestId EngineState::preempt(std::size_t position, Back back) {
  const RequestId request = running_[position];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(position));
  Sequence& sequence = sequences_[request];
  for (std::size_t i = batch_.entries.size(); i-- > 0;) {
    const BatchEntry entry = batch_.entries[i];
    if (entry.request != request) continue;
    batch_.remove(i);
    budget_ += entry.tokens;
    sequence.computed = entry.computed;
    if (entry.emits) sequence.in_flight -= 1 + entry.drafts;
    break;
  }
  kv_.name_all(sequence.holding, identity_of(request),
               std::min(sequence.computed, sequence.prompt + sequence.emitted));
  kv_.release(sequence.holding);
  sequence.computed = 0;
  ++sequence.preemptions;
  sequence.is_running = false;
  if (back == Back::kHead) {
    waiting_.push_front(place_of(request));
  } else {
    waiting_.push_back(place_of(request));
  }
  batch_.preempted.push_back(request);
  return request;
}

KvPool::Hits EngineState::find_hits(RequestId request) const {
  const Sequence& sequence = sequences_[request];
  if (sequence.holding.blocks > 0) return {.blocks = sequence.holding.blocks};  // fetched
  const std::int32_t most = (sequence.known() - 1) / kv_.block_tokens();
  return kv_.find(identity_of(request), most);
}

std::int64_t EngineState::blocks_wanted(std::int64_t tokens, const KvPool::Hits& hits) const {
  return kv_.whole_of(tokens) - hits.blocks + hits.of_them_free;
}

void EngineState::admit(std::size_t position, const KvPool::Hits& hits, std::int64_t tokens,
                        std::int64_t holds) {
  const RequestId request = waiting_.at(position);
  waiting_.erase(position);
  Sequence& sequence = sequences_[request];
  if (sequence.holding.blocks == 0) {
    kv_.share(sequence.holding, identity_of(request), hits.blocks);
  } else {
    forget_fetch(request);
  }
  sequence.computed = hits.blocks * kv_.block_tokens();
  kv_.take(sequence.holding, kv_.blocks_of(holds) - sequence.holding.blocks);
  sequence.is_running = true;
  running_.push_back(request);
  batch_.admitted.push_back(request);
  batch_.hit_tokens += sequence.computed;
  batch_.host_hit_tokens += std::int64_t{sequence.fetched} * kv_.block_tokens();
  sequence.fetched = 0;
  schedule(request, tokens);
}

bool EngineState::fetch(std::size_t position, const KvPool::Hits& hits, std::int64_t holds,
                        std::int64_t room) {
  const RequestId request = waiting_.at(position);
  Sequence& sequence = sequences_[request];
  const std::int32_t found = hits.blocks + hits.behind;
  const std::int64_t whole = std::max<std::int64_t>(kv_.whole_of(holds), found);
  const std::int64_t taken = whole - hits.blocks + hits.of_them_free - hits.behind_held;
  if (taken + promised_ > room) return false;
  waiting_.erase(position);
  const std::int32_t blocks = kv_.begin_fetch(sequence.holding, identity_of(request), hits);
  sequence.promised = static_cast<std::int32_t>(whole) - found;
  promised_ += sequence.promised;
  sequence.fetched = blocks;
  fetches_.push_back({request, blocks});
  ++fetching_;
  return true;
}

void EngineState::end_fetch(RequestId request) {
  kv_.end_fetch(sequences_[request].holding, identity_of(request));
  --fetching_;
  fetched_.push_back(request);
  waiting_.push_front(place_of(request));
}

void EngineState::forget_fetch(RequestId request) {
  promised_ -= sequences_[request].promised;
  sequences_[request].promised = 0;
  std::erase(fetched_, request);
}

bool EngineState::give_up_fetched() {
  const bool any = !fetched_.empty();
  while (!fetched_.empty()) {
    const RequestId request = fetched_.back();
    kv_.release(sequences_[request].holding);
    sequences_[request].fetched = 0;
    forget_fetch(request);
  }
  return any;
}

// ---- what comes and goes ----

void EngineState::arrive(RequestId request) {
  sequences_[request].order = arrivals_++;
  waiting_.push_back(place_of(request));
}

std::int32_t EngineState::finish(const BatchEntry& entry, std::int64_t accepted) {
  Sequence& sequence = sequences_[entry.request];
  if (!entry.emits) return 0;
  sequence.in_flight -= 1 + entry.drafts;
  if (sequence.is_done()) return 0;
  const auto right = static_cast<std::int32_t>(std::min<std::int64_t>(accepted, entry.drafts));
  const std::int32_t tokens = std::min(right + 1, sequence.to_emit - sequence.emitted);
  sequence.emitted += tokens;
  if (sequence.preemptions == entry.life) sequence.computed -= entry.drafts - right;
  return tokens;
}

void EngineState::retire(const std::vector<RequestId>& requests) {
  for (const RequestId request : requests) {
    Sequence& sequence = sequences_[request];
    if (!sequence.is_running) waiting_.remove(request);
    sequence.is_running = false;
    release(request);
  }
  std::erase_if(running_, [this](RequestId request) { return !sequences_[request].is_running; });
}

// ---- blocks of requests that come from, or go to, another replica ----

KvHolding EngineState::lend(RequestId request) {
  Sequence& sequence = sequences_[request];
  KvHolding holding = std::move(sequence.holding);
  sequence.holding = {};
  sequence.is_running = false;
  std::erase(running_, request);
  ++lent_;
  return holding;
}

bool EngineState::receive(RequestId request, std::int64_t tokens) {
  Sequence& sequence = sequences_[request];
  std::int64_t promised = 0;  // to admitted prefills
  for (const RequestId other : running_) {
    const Sequence& admitted = sequences_[other];
    promised += kv_.lacks(admitted.holding, admitted.known());
  }
  if (kv_.whole_of(tokens) + promised > kv_.free()) return false;
  kv_.take(sequence.holding, kv_.blocks_of(tokens));
  sequence.order = arrivals_++;
  ++coming_;
  return true;
}

void EngineState::take_back(RequestId request, KvHolding& holding) {
  --lent_;
  if (!kv_.host().empty()) kv_.name_all(holding, identity_of(request), sequences_[request].prompt);
  kv_.release(holding);
}

// Frees the blocks of a request that has ended. Nobody will ask for those that it has for itself,
// but engines don't know that: with a host tier they too are evicted to the host.
void EngineState::release(RequestId request) {
  Sequence& sequence = sequences_[request];
  if (!kv_.host().empty()) {
    kv_.name_all(sequence.holding, identity_of(request),
                 std::min(sequence.computed, sequence.prompt + sequence.emitted));
  }
  kv_.release(sequence.holding);
}

void EngineState::join_ready() {
  while (!ready_.empty() && has_room()) {
    running_.push_back(ready_.front());
    sequences_[ready_.front()].is_running = true;
    ready_.pop_front();
  }
}

PromptIdentity EngineState::identity_of(RequestId request) const {
  const Sequence& sequence = sequences_[request];
  return {.request = request,
          .prefix = sequence.prefix,
          .prefix_tokens = sequence.prefix_tokens,
          .chain = sequence.chain};
}

WaitingQueue::Place EngineState::place_of(RequestId request) const {
  const Sequence& sequence = sequences_[request];
  return {.priority = sequence.priority, .order = sequence.order, .request = request};
}

}  // namespace stepsim

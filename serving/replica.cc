#include "serving/replica.h"

#include <algorithm>
#include <string>
#include <utility>

#include "serving/serve.h"

namespace stepsim {

std::int64_t kv_blocks_of(const EngineRow& engine, const EngineOptions& options,
                          const RequestList& requests, std::size_t model) {
  if (options.cache.kv_blocks) return *options.cache.kv_blocks;
  std::int64_t longest = 1;
  std::int64_t count = 0;
  for (const Request& request : requests.requests) {
    if (requests.model_of(request) != model) continue;
    longest = std::max(longest, std::int64_t{request.input_tokens} + request.output_tokens);
    ++count;
  }
  std::int64_t most = options.batching.sequences;
  if (engine.waiting_caches != nullptr) {
    most += engine.waiting_caches(options).most;
    longest = options.batching.max_length.value_or(longest);
  }
  const std::int64_t running = std::clamp<std::int64_t>(count, 1, most);
  return running * ((longest + 2 * options.speculation.drafts + options.cache.block - 1) /
                    options.cache.block);
}

EngineOptions with_useful_cache(EngineOptions options, const RequestList& requests,
                                std::size_t model) {
  const bool shares =
      std::any_of(requests.requests.begin(), requests.requests.end(), [&](const Request& request) {
        return request.prefix_tokens > 0 && requests.model_of(request) == model;
      });
  options.cache.prefix_cache = options.cache.prefix_cache && (shares || options.cache.kv_blocks);
  if (!options.cache.prefix_cache) options.cache.host_blocks = 0;
  return options;
}

bool resumes_all(const EngineOptions& options, const RequestList& requests, std::size_t model) {
  if (options.batching.chunked_prefill) return true;
  return std::ranges::none_of(requests.requests, [&](const Request& request) {
    const std::int64_t computed = std::int64_t{request.input_tokens} + request.output_tokens - 1;
    return requests.model_of(request) == model && computed > options.batching.budget_of_rank();
  });
}

Replica::Replica(const EngineRow& engine, const EngineOptions& options, std::int64_t kv_blocks,
                 StepCost& cost, IdTable<RequestId, Sequence>& sequences)
    : state_(options, kv_blocks, sequences),
      engine_(engine.make(options)),
      cost_(cost),
      reserves_answer_(engine.reserves_answer(options)) {
  if (engine.waiting_caches != nullptr) waiting_caches_ = engine.waiting_caches(options);
  totals.kv_blocks = state_.shown_blocks(kv_blocks);
}

// Forms the next step in state_.batch(). A request that can't even have its own next block goes
// back to waiting and may leave the step empty; then the next one is formed at once.
bool Replica::form() {
  bool again = true;
  while (again) {
    state_.join_ready();
    engine_->form(state_);
    const Batch& batch = state_.batch();
    preempted_.insert(preempted_.end(), batch.preempted.begin(), batch.preempted.end());
    totals.preemptions += static_cast<std::int64_t>(batch.preempted.size());
    again = batch.empty() && !batch.preempted.empty();
    if (again) count_vain_start(batch.preempted.back());
    // Nobody can go on, because requests that wait hold blocks that came from the host.
    const bool is_stuck = batch.empty() && !again && !is_busy() && state_.fetching() == 0;
    if (is_stuck) again = state_.give_up_fetched();
  }
  totals.peak_kv_blocks = std::max(totals.peak_kv_blocks, state_.shown_blocks(state_.kv().held()));
  if (waiting_caches_) {
    const auto running = static_cast<std::int64_t>(state_.running().size());
    const std::int64_t parked =
        std::max<std::int64_t>(running - state_.options().batching.sequences, 0);
    const std::int64_t backlog = parked + state_.lent() + static_cast<std::int64_t>(state_.ready());
    totals.peak_backlog = std::max(totals.peak_backlog, backlog);
  }
  return !state_.batch().empty();
}

// Drafts may need more blocks than there are. Computed again, a request emits its next token
// without drafts, unless its last chunk is that token alone.
void Replica::count_vain_start(RequestId request) {
  constexpr std::int32_t kMostVainStarts = 3;
  const std::int32_t emitted = state_.sequence(request).emitted;
  if (vain_.request != request || vain_.emitted != emitted) vain_ = {request, emitted, 0};
  if (++vain_.count <= kMostVainStarts) return;
  throw ServingStuck("request " + std::to_string(request.index()) + " has " +
                     std::to_string(state_.sequence(request).known()) +
                     " tokens and starts again for ever: with its drafts it needs more than all " +
                     std::to_string(state_.kv().total()) + " KV blocks");
}

Duration Replica::pass_time() const {
  const EngineOptions& options = state_.options();
  const Duration drafting =
      step_.drafts > 0 ? options.speculation.drafts * options.speculation.draft_time : Duration();
  return cost_.time_of(step_) + drafting;
}

std::optional<Time> Replica::begin_step(Time now) {
  if (is_busy()) return std::nullopt;
  const EngineOptions& options = state_.options();
  if (!prepared_) {
    if (!form()) return std::nullopt;
    prepared_ = now;
  }
  std::swap(step_, state_.batch());
  start_ = now;
  launch_ = std::max(now, *prepared_ + options.host.host_time);
  end_ = launch_ + pass_time();
  prepared_.reset();
  ++totals.steps;
  totals.busy += *end_ - now;
  return end_;
}

bool Replica::receive(RequestId request) {
  const Sequence& sequence = state_.sequence(request);
  const EngineOptions& options = state_.options();
  std::int64_t whole = sequence.prompt + sequence.to_emit + options.speculation.drafts;
  if (waiting_caches_) {
    const auto free =
        options.batching.sequences - static_cast<std::int64_t>(state_.running().size());
    const std::int64_t ahead = state_.coming() + static_cast<std::int64_t>(state_.ready());
    if (ahead >= free + waiting_caches_->received) return false;
    whole = options.batching.max_length.value_or(whole);
  }
  const KvPool& kv = state_.kv();
  whole = std::min(whole, kv.most_tokens());  // the last token takes no room
  return state_.receive(request, reserves_answer_ ? whole : sequence.computed);
}

void Replica::prepare() {
  if (state_.options().host.async && is_busy() && !prepared_ && form()) prepared_ = launch_;
}

}  // namespace stepsim

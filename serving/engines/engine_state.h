// EngineState is one replica as its engine sees it: who runs, who waits, the KV cache, and the step
// that is being formed. It has the moves that every engine is made of; an engine (engine.h) decides
// which of them to make.
//
//   state.begin();                          // an empty step with the whole budget
//   if (state.grow(request, tokens)) state.schedule(request, tokens);
//   else state.preempt(position);
//
// Every move keeps the books: blocks held, tokens computed, the sums of the batch.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "serving/engines/batch.h"
#include "serving/engines/engine_options.h"
#include "serving/engines/sequence.h"
#include "serving/engines/waiting_queue.h"
#include "serving/kv/kv_pool.h"

namespace stepsim {

class EngineState {
 public:
  // `sequences` are those of all replicas and must outlive this. `kv_blocks` stands for
  // options.kv_blocks where that is unset.
  EngineState(const EngineOptions& options, std::int64_t kv_blocks,
              IdTable<RequestId, Sequence>& sequences);

  const EngineOptions& options() const { return options_; }
  Sequence& sequence(RequestId request) { return sequences_[request]; }
  const Sequence& sequence(RequestId request) const { return sequences_[request]; }
  const KvPool& kv() const { return kv_; }
  // Returns blocks of the pool as engines count them: only those of tokens, of requests as long as
  // can be.
  std::int64_t shown_blocks(std::int64_t blocks) const {
    const double share = options_.cache.shown_share;
    return share == 1 ? blocks : static_cast<std::int64_t>(share * static_cast<double>(blocks));
  }
  Batch& batch() { return batch_; }

  std::vector<RequestId>& running() { return running_; }  // in order of admission
  const std::vector<RequestId>& running() const { return running_; }
  WaitingQueue& waiting() { return waiting_; }
  const WaitingQueue& waiting() const { return waiting_; }
  bool has_room() const { return std::int64_t(running_.size()) < options_.batching.sequences; }

  // ---- forming a step ----

  void begin(std::int64_t budget);
  std::int64_t budget() const { return budget_; }

  // The drafts that the request would have in this step: behind the last emitted token alone.
  std::int32_t drafts_of(const Sequence& sequence) const;
  // Whether all but the newest token of an answer is computed: the next step emits another one.
  static bool is_decoding(const Sequence& sequence) {
    return sequence.known() - sequence.computed == 1 && sequence.known() > sequence.prompt;
  }
  // Tokens that the request could compute in this step, without regard to blocks and budget.
  std::int64_t next_tokens(const Sequence& sequence) const;
  // The same within the budget and the threshold of long prefills.
  std::int64_t tokens_in_budget(const Sequence& sequence) const;

  // Makes a running request hold the blocks for so many more tokens. Returns false, and changes
  // nothing, if they are not free.
  bool grow(RequestId request, std::int64_t tokens);

  // Puts a request that holds the blocks into the step.
  void schedule(RequestId request, std::int64_t tokens);

  // Takes the request at this position of running() off: its blocks are freed, it starts again.
  // kHead puts it first among those that wait, kTail last. If it stands in the step already, it
  // leaves it. Returns the request.
  enum class Back { kHead, kTail };
  RequestId preempt(std::size_t position, Back back = Back::kHead);

  // The blocks of a request's beginning that are in the cache: at most all but its last known
  // token.
  KvPool::Hits find_hits(RequestId request) const;
  // Blocks to be free before the request can hold `tokens` in all, hits counted.
  std::int64_t blocks_wanted(std::int64_t tokens, const KvPool::Hits& hits) const;

  // Takes the request at `position` of waiting() in: shares its hits, takes blocks for `holds`
  // tokens in all, and schedules `tokens` of them. REQUIRES: enough blocks are free.
  void admit(std::size_t position, const KvPool::Hits& hits, std::int64_t tokens,
             std::int64_t holds);

  // Whether blocks of the request's beginning are to come from the host's memory before it is
  // admitted.
  bool is_to_fetch(RequestId request, const KvPool::Hits& hits) const {
    return hits.behind > 0 && sequences_[request].in_flight == 0;
  }
  // Takes the request at `position` of waiting() out and makes it hold the blocks that it has in
  // the pool and those that come from the host. Returns false, and changes nothing, if `holds`
  // tokens would not fit within `room` blocks beside what others that fetched will want.
  bool fetch(std::size_t position, const KvPool::Hits& hits, std::int64_t holds, std::int64_t room);

  // ---- what comes and goes ----

  void arrive(RequestId request);
  // Books an entry whose step has ended: `accepted` of its drafts were right. Returns the tokens
  // that the request emits; 0 if it had ended already.
  std::int32_t finish(const BatchEntry& entry, std::int64_t accepted);
  // Takes requests out of running() and frees their blocks.
  void retire(const std::vector<RequestId>& requests);

  // ---- blocks that come from the host's memory ----

  struct Fetch {
    RequestId request;
    std::int32_t blocks = 0;  // to be copied
  };
  // Those that began since fetches() was cleared.
  std::vector<Fetch>& fetches() { return fetches_; }
  // The blocks have come: the request waits again, at the head.
  void end_fetch(RequestId request);
  // Frees the blocks of requests that have fetched and wait. Returns whether there were any.
  bool give_up_fetched();
  std::int64_t fetching() const { return fetching_; }

  // ---- blocks of requests that come from, or go to, another replica ----

  // Takes the request out of running() and returns its blocks, which stay held.
  KvHolding lend(RequestId request);
  std::int64_t lent() const { return lent_; }  // that have not been taken back
  void take_back(RequestId request, KvHolding& holding);
  // Makes a request that was computed elsewhere hold the blocks of `tokens` tokens. Returns false
  // if they are not free beside what admitted prefills will still take.
  bool receive(RequestId request, std::int64_t tokens);
  std::int64_t coming() const { return coming_; }  // received, and not joined
  // A request whose blocks are all there joins as soon as there is room.
  void join(RequestId request) {
    --coming_;
    ready_.push_back(request);
  }
  void join_ready();
  std::size_t ready() const { return ready_.size(); }

 private:
  PromptIdentity identity_of(RequestId request) const;
  WaitingQueue::Place place_of(RequestId request) const;
  void release(RequestId request);
  void forget_fetch(RequestId request);
  std::int64_t capped(const Sequence& sequence, std::int64_t tokens) const;

  EngineOptions options_;
  IdTable<RequestId, Sequence>& sequences_;
  KvPool kv_;
  Batch batch_;
  std::int64_t budget_ = 0;
  std::vector<RequestId> running_;
  WaitingQueue waiting_;
  std::deque<RequestId> ready_;
  std::uint32_t arrivals_ = 0;
  std::vector<Fetch> fetches_;
  std::vector<RequestId> fetched_;  // that wait
  std::int64_t fetching_ = 0;
  std::int64_t lent_ = 0;
  std::int64_t coming_ = 0;
  std::int64_t promised_ = 0;  // blocks, to those that fetch or have fetched
};

}  // namespace stepsim

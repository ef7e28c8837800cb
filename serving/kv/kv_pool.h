// KvPool holds the KV cache of one replica: blocks of equal size, and which of them requests hold.
//
// Without a prefix cache blocks are alike and only counted. With it every block has an identity: a
// full block is named by the tokens that it and the blocks before it hold, a freed block keeps its
// name until it is taken again, and a request whose beginning has a name takes that block instead
// of computing it. Free blocks are taken least recently freed first; a request frees its last block
// first, so the ends of prefixes go before their beginnings (vLLM's block_pool.py).
//
// Names: block k of a prefix is one name for all requests of that prefix whose shared tokens fill
// the block; of a chain, of all whose piece of its last token is the same. Every other block is
// named by its request and k, and only its own request, come back after a preemption, finds it.
// Such names are given when a request is preempted: nobody else could have found them earlier.
//
// With a host tier (host_tier.h) a block whose name goes is kept in the host's memory, and a
// request can fetch its beginning from there: it holds the blocks while they are copied, and they
// have their names when the copy has ended.
//
// What a request keeps in layers with windows or states stands in further blocks (cache_shape.h),
// which come and go with those of its tokens.
//
// All functions are O(blocks they touch).

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "serving/kv/cache_shape.h"
#include "serving/kv/host_tier.h"
#include "serving/requests/request.h"

namespace stepsim {

// PromptIdentity says which blocks of a request are shared.
struct PromptIdentity {
  RequestId request;
  PrefixId prefix;
  std::int32_t prefix_tokens = 0;
  const PromptChain* chain = nullptr;  // in place of `prefix`, where prefixes branch
};

// KvHolding is the blocks that a request holds. It belongs to the pool that filled it.
struct KvHolding {
  std::int32_t blocks = 0;
  std::vector<std::uint32_t> ids{};         // with a prefix cache only: by position in the sequence
  std::int32_t named = 0;                   // the first blocks, which have names
  std::int32_t beside = 0;                  // further blocks, for windows and states
  std::vector<std::uint32_t> beside_ids{};  // with a prefix cache only
  std::vector<std::int32_t> fetched{};      // positions of blocks that come from the host

  std::int64_t all() const { return std::int64_t{blocks} + beside; }
};

class KvPool {
 public:
  // REQUIRES: blocks >= 1, block_tokens >= 1; fewer than 2^31 blocks with a prefix cache, without
  // which there are no host blocks.
  KvPool(std::int64_t blocks, std::int32_t block_tokens, bool has_prefix_cache,
         std::int64_t host_blocks = 0, CacheShape shape = {});

  std::int64_t total() const { return total_; }
  std::int64_t free() const { return free_; }
  std::int64_t held() const { return total_ - free_; }
  std::int32_t block_tokens() const { return block_tokens_; }
  bool has_prefix_cache() const { return has_prefix_cache_; }
  const HostTier& host() const { return host_; }

  // Returns the blocks that hold so many tokens of a request.
  std::int64_t blocks_of(std::int64_t tokens) const { return shape_.chain(tokens, block_tokens_); }
  // The same with the blocks beside them.
  std::int64_t whole_of(std::int64_t tokens) const { return shape_.whole(tokens, block_tokens_); }
  // Returns the tokens of the longest request that fits.
  std::int64_t most_tokens() const {
    const std::int64_t beside = shape_.beside(std::min(total_, shape_.most_chain), block_tokens_);
    return (total_ - beside) * block_tokens_;
  }
  // Returns the blocks that a holding lacks for so many tokens.
  std::int64_t lacks(const KvHolding& holding, std::int64_t tokens) const {
    return std::max<std::int64_t>(whole_of(tokens) - holding.all(), 0);
  }

  // Hits are the first blocks of a request that have their names in the pool.
  struct Hits {
    std::int32_t blocks = 0;
    std::int32_t of_them_free = 0;  // held by nobody: taking them uses free blocks
    std::int32_t behind = 0;        // further blocks that are in the pool or in the host's memory
    std::int32_t behind_held = 0;   // of them, those in the pool that others hold
  };
  // Returns at most `most` hits, those behind counted.
  Hits find(const PromptIdentity& identity, std::int32_t most) const;

  // Makes an empty holding share the first `blocks` hits of find().
  void share(KvHolding& holding, const PromptIdentity& identity, std::int32_t blocks);

  // Adds blocks to the end of a holding, and those beside that they bring. REQUIRES: they are free.
  void take(KvHolding& holding, std::int64_t blocks);

  // Names the blocks that the first `tokens` tokens of the prompt fill and that others share.
  void name_shared(KvHolding& holding, const PromptIdentity& identity, std::int64_t tokens);
  // Names all blocks that the first `tokens` tokens of the sequence fill.
  void name_all(KvHolding& holding, const PromptIdentity& identity, std::int64_t tokens);

  // Makes an empty holding have the first hits.blocks + hits.behind blocks: those of the pool are
  // shared, new ones are taken for the others. Returns how many come from the host. REQUIRES:
  // enough are free; end_fetch() follows before the holding is released.
  std::int32_t begin_fetch(KvHolding& holding, const PromptIdentity& identity, const Hits& hits);
  void end_fetch(KvHolding& holding, const PromptIdentity& identity);

  // Frees all blocks, the last first.
  void release(KvHolding& holding);

 private:
  using Name = std::uint64_t;

  // A block is in the free queue if nobody holds it, and in the list of its name if it has one.
  struct Block {
    std::uint32_t holders = 0;
    std::optional<Name> name{};
    std::uint32_t before = 0;  // in the free queue; index 0 is the queue itself
    std::uint32_t after = 0;
    std::uint32_t next_of_name = 0;  // a younger block of the same name; 0: none
  };

  Name name_of(const PromptIdentity& identity, std::int32_t block) const;
  std::int32_t shared_blocks(const PromptIdentity& identity) const;
  void name_up_to(KvHolding& holding, const PromptIdentity& identity, std::int64_t blocks);
  void give_name(std::uint32_t block, Name name);
  void drop_name(std::uint32_t block);
  void share_next(KvHolding& holding, std::uint32_t block);
  void append_free(std::uint32_t block);
  void remove_free(std::uint32_t block);
  std::uint32_t take_first();
  void give_back(const std::vector<std::uint32_t>& ids);

  std::int64_t total_;
  std::int64_t free_;
  std::int32_t block_tokens_;
  bool has_prefix_cache_;
  CacheShape shape_;
  std::vector<Block> blocks_;                            // with a prefix cache; entry 0 is no block
  std::unordered_map<Name, std::uint32_t> first_named_;  // the oldest block of each name
  HostTier host_;
};

}  // namespace stepsim

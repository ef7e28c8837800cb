#include "serving/kv/kv_pool.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stepsim {

KvPool::KvPool(std::int64_t blocks, std::int32_t block_tokens, bool has_prefix_cache,
               std::int64_t host_blocks, CacheShape shape)
    : total_(blocks),
      free_(blocks),
      block_tokens_(block_tokens),
      has_prefix_cache_(has_prefix_cache),
      shape_(std::move(shape)),
      host_(host_blocks) {
  assert(blocks >= 1 && block_tokens >= 1 && (has_prefix_cache || host_blocks == 0));
  if (!has_prefix_cache) return;
  blocks_.resize(static_cast<std::size_t>(blocks) + 1);
  for (std::uint32_t block = 1; block < blocks_.size(); ++block) append_free(block);
}

// Bit 63 tells prefixes from requests, 31 bits say which, 32 bits are the block.
KvPool::Name KvPool::name_of(const PromptIdentity& identity, std::int32_t block) const {
  const bool is_shared = block < shared_blocks(identity);
  const std::int64_t last = (std::int64_t{block} + 1) * block_tokens_ - 1;
  const PrefixId prefix = identity.chain ? identity.chain->piece_of(last) : identity.prefix;
  const Name owner = is_shared ? Name{1} << 31 | prefix.index() : identity.request.index();
  return owner << 32 | static_cast<std::uint32_t>(block);
}

std::int32_t KvPool::shared_blocks(const PromptIdentity& identity) const {
  return identity.prefix_tokens / block_tokens_;
}

KvPool::Hits KvPool::find(const PromptIdentity& identity, std::int32_t most) const {
  Hits hits;
  if (!has_prefix_cache_) return hits;
  while (hits.blocks < most) {
    const auto found = first_named_.find(name_of(identity, hits.blocks));
    if (found == first_named_.end()) break;
    if (blocks_[found->second].holders == 0) ++hits.of_them_free;
    ++hits.blocks;
  }
  while (!host_.empty() && hits.blocks + hits.behind < most) {
    const Name name = name_of(identity, hits.blocks + hits.behind);
    const auto found = first_named_.find(name);
    if (found == first_named_.end() && !host_.has(name)) break;
    ++hits.behind;
    if (found != first_named_.end() && blocks_[found->second].holders > 0) ++hits.behind_held;
  }
  return hits;
}

void KvPool::share(KvHolding& holding, const PromptIdentity& identity, std::int32_t blocks) {
  assert(holding.blocks == 0);
  for (std::int32_t i = 0; i < blocks; ++i) {
    share_next(holding, first_named_.at(name_of(identity, i)));
  }
  holding.named = blocks;
}

void KvPool::share_next(KvHolding& holding, std::uint32_t block) {
  if (blocks_[block].holders++ == 0) {
    remove_free(block);
    --free_;
  }
  holding.ids.push_back(block);
  ++holding.blocks;
}

// Blocks of the pool are shared first: taking new ones could evict them.
std::int32_t KvPool::begin_fetch(KvHolding& holding, const PromptIdentity& identity,
                                 const Hits& hits) {
  share(holding, identity, hits.blocks);
  const std::int32_t end = hits.blocks + hits.behind;
  for (std::int32_t i = hits.blocks; i < end; ++i) {
    const auto found = first_named_.find(name_of(identity, i));
    if (found != first_named_.end()) {
      share_next(holding, found->second);
      continue;
    }
    host_.begin_read(name_of(identity, i));
    holding.fetched.push_back(i);
    holding.ids.push_back(0);
    ++holding.blocks;
  }
  for (const std::int32_t position : holding.fetched) {
    holding.ids[static_cast<std::size_t>(position)] = take_first();
    --free_;
  }
  return static_cast<std::int32_t>(holding.fetched.size());
}

void KvPool::end_fetch(KvHolding& holding, const PromptIdentity& identity) {
  for (const std::int32_t position : holding.fetched) {
    host_.end_read(name_of(identity, position));
    give_name(holding.ids[static_cast<std::size_t>(position)], name_of(identity, position));
  }
  holding.fetched.clear();
  holding.named = holding.blocks;
}

void KvPool::take(KvHolding& holding, std::int64_t blocks) {
  holding.blocks += static_cast<std::int32_t>(blocks);
  const std::int64_t beside = shape_.beside(holding.blocks, block_tokens_) - holding.beside;
  assert(blocks + beside <= free_);
  free_ -= blocks + beside;
  holding.beside += static_cast<std::int32_t>(beside);
  if (!has_prefix_cache_) return;
  for (std::int64_t i = 0; i < blocks; ++i) holding.ids.push_back(take_first());
  for (std::int64_t i = 0; i < beside; ++i) holding.beside_ids.push_back(take_first());
}

void KvPool::name_shared(KvHolding& holding, const PromptIdentity& identity, std::int64_t tokens) {
  if (!has_prefix_cache_ || holding.named >= shared_blocks(identity)) return;
  name_up_to(holding, identity,
             std::min<std::int64_t>(tokens / block_tokens_, shared_blocks(identity)));
}

void KvPool::name_all(KvHolding& holding, const PromptIdentity& identity, std::int64_t tokens) {
  if (has_prefix_cache_) name_up_to(holding, identity, tokens / block_tokens_);
}

void KvPool::name_up_to(KvHolding& holding, const PromptIdentity& identity, std::int64_t blocks) {
  for (; holding.named < std::min<std::int64_t>(blocks, holding.blocks); ++holding.named) {
    give_name(holding.ids[static_cast<std::size_t>(holding.named)],
              name_of(identity, holding.named));
  }
}

void KvPool::release(KvHolding& holding) {
  if (!has_prefix_cache_) {
    free_ += holding.all();
  } else {
    give_back(holding.beside_ids);
    give_back(holding.ids);
  }
  holding = {};
}

void KvPool::give_back(const std::vector<std::uint32_t>& ids) {
  for (std::size_t i = ids.size(); i-- > 0;) {
    if (--blocks_[ids[i]].holders > 0) continue;
    append_free(ids[i]);
    ++free_;
  }
}

// ---- names ----

// Two requests that compute the same tokens at one time make two blocks of one name; the older one
// is found.
void KvPool::give_name(std::uint32_t block, Name name) {
  blocks_[block].name = name;
  blocks_[block].next_of_name = 0;
  const auto [first, is_new] = first_named_.try_emplace(name, block);
  if (is_new) return;
  std::uint32_t last = first->second;
  while (blocks_[last].next_of_name != 0) last = blocks_[last].next_of_name;
  blocks_[last].next_of_name = block;
}

void KvPool::drop_name(std::uint32_t block) {
  const auto first = first_named_.find(*blocks_[block].name);
  const std::uint32_t next = blocks_[block].next_of_name;
  if (first->second != block) {
    std::uint32_t before = first->second;
    while (blocks_[before].next_of_name != block) before = blocks_[before].next_of_name;
    blocks_[before].next_of_name = next;
  } else if (next != 0) {
    first->second = next;
  } else {
    first_named_.erase(first);
    host_.keep(*blocks_[block].name);
  }
  blocks_[block].name.reset();
}

// ---- the queue of free blocks: a ring through entry 0 ----

void KvPool::append_free(std::uint32_t block) {
  const std::uint32_t last = blocks_[0].before;
  blocks_[block].before = last;
  blocks_[block].after = 0;
  blocks_[last].after = block;
  blocks_[0].before = block;
}

void KvPool::remove_free(std::uint32_t block) {
  blocks_[blocks_[block].before].after = blocks_[block].after;
  blocks_[blocks_[block].after].before = blocks_[block].before;
}

std::uint32_t KvPool::take_first() {
  const std::uint32_t block = blocks_[0].after;
  remove_free(block);
  if (blocks_[block].name) drop_name(block);
  blocks_[block].holders = 1;
  return block;
}

}  // namespace stepsim

#include "serving/kv/kv_pool.h"

#include <gtest/gtest.h>

namespace stepsim {
namespace {

PromptIdentity prompt(std::uint32_t request, std::int32_t shared) {
  return {.request = RequestId(request), .prefix = PrefixId(7), .prefix_tokens = shared};
}

TEST(KvPoolTest, BlocksAreCounted) {
  KvPool pool(10, 16, false);
  KvHolding holding;
  pool.take(holding, pool.blocks_of(33));
  EXPECT_EQ(holding.blocks, 3);
  EXPECT_EQ(pool.held(), 3);
  pool.release(holding);
  EXPECT_EQ(pool.free(), 10);
}

// Blocks of 16 tokens and 1,600 bytes. A window of 40 tokens at 50 bytes and a state of 1,000
// bytes: with 1 block of tokens 1,000 + 16 x 50 = 1,800 bytes beside, with 3 and more 1,000 + 40
// x 50.
TEST(KvPoolTest, WindowsAndStatesStandBeside) {
  const CacheShape shape{.of_block = Bytes(1600),
                         .of_request = Bytes(1000),
                         .windows = {{.tokens = 40, .of_token = Bytes(50)}}};
  for (const bool has_prefix_cache : {false, true}) {
    KvPool pool(20, 16, has_prefix_cache, 0, shape);
    KvHolding holding;
    EXPECT_EQ(pool.whole_of(16), 1 + 2);
    EXPECT_EQ(pool.lacks(holding, 160), 10 + 2);
    pool.take(holding, 1);
    EXPECT_EQ(pool.held(), 3);
    pool.take(holding, 9);
    EXPECT_EQ(pool.held(), 12);
    EXPECT_EQ(pool.most_tokens(), 18 * 16);
    KvHolding other;
    EXPECT_GT(pool.lacks(other, 112), pool.free());
    pool.take(other, 6);
    EXPECT_EQ(pool.free(), 0);
    pool.release(holding);
    pool.release(other);
    EXPECT_EQ(pool.free(), 20);
  }
}

// 700 tokens in pieces of 512 share 32 blocks of 16 with a request whose first piece is the same.
TEST(KvPoolTest, PrefixesBranch) {
  const PromptChain left{.pieces = {PrefixId(0), PrefixId(1)}, .piece_tokens = 512};
  const PromptChain right{.pieces = {PrefixId(0), PrefixId(2)}, .piece_tokens = 512};
  KvPool pool(200, 16, true);
  KvHolding first;
  const auto asked = [](std::uint32_t request, const PromptChain& chain) {
    return PromptIdentity{
        .request = RequestId(request), .prefix = {}, .prefix_tokens = 700, .chain = &chain};
  };
  pool.take(first, pool.blocks_of(700));
  pool.name_shared(first, asked(0, left), 700);
  EXPECT_EQ(pool.find(asked(1, left), 43).blocks, 43);
  EXPECT_EQ(pool.find(asked(2, right), 43).blocks, 32);
}

TEST(KvPoolTest, ABeginningIsFoundWhileItIsHeldAndAfterwards) {
  KvPool pool(10, 4, true);
  KvHolding first;
  pool.take(first, 3);
  pool.name_shared(first, prompt(0, 8), 12);  // 2 of the 3 blocks are shared
  KvPool::Hits hits = pool.find(prompt(1, 8), 5);
  EXPECT_EQ(hits.blocks, 2);
  EXPECT_EQ(hits.of_them_free, 0);
  pool.release(first);
  hits = pool.find(prompt(1, 8), 5);
  EXPECT_EQ(hits.blocks, 2);
  EXPECT_EQ(hits.of_them_free, 2);
  EXPECT_EQ(pool.find(prompt(1, 8), 1).blocks, 1);
  EXPECT_EQ(pool.find(prompt(1, 7), 5).blocks, 1);  // 7 tokens fill one block

  KvHolding second;
  pool.share(second, prompt(1, 8), 2);
  EXPECT_EQ(pool.held(), 2);
  KvHolding third;
  pool.share(third, prompt(2, 8), 2);
  EXPECT_EQ(pool.held(), 2);  // the same blocks
  pool.release(second);
  EXPECT_EQ(pool.held(), 2);
  pool.release(third);
  EXPECT_EQ(pool.held(), 0);
}

TEST(KvPoolTest, TheEndOfTheOldestIsTakenFirst) {
  KvPool pool(4, 4, true);
  KvHolding old;
  pool.take(old, 2);
  pool.name_shared(old, prompt(0, 8), 8);
  pool.release(old);  // free: 3rd, 4th, then block 1 of the prefix, block 0
  KvHolding other;
  pool.take(other, 3);
  EXPECT_EQ(pool.find(prompt(1, 8), 2).blocks, 1);  // its end is gone, its beginning is not
  KvHolding last;
  pool.take(last, 1);
  EXPECT_EQ(pool.find(prompt(1, 8), 2).blocks, 0);
}

TEST(KvPoolTest, ARequestFindsItsOwnBlocksAfterAPreemption) {
  KvPool pool(4, 4, true);
  KvHolding holding;
  pool.take(holding, 3);
  pool.name_all(holding, prompt(5, 0), 10);  // 2 full blocks
  pool.release(holding);
  EXPECT_EQ(pool.find(prompt(5, 0), 3).blocks, 2);
  EXPECT_EQ(pool.find(prompt(6, 0), 3).blocks, 0);
}

TEST(KvPoolTest, BlocksOfOneNameStandInForEachOther) {
  KvPool pool(3, 4, true);
  KvHolding one;
  KvHolding two;
  pool.take(one, 1);
  pool.take(two, 1);
  pool.name_shared(one, prompt(0, 4), 4);
  pool.name_shared(two, prompt(1, 4), 4);
  pool.release(one);
  KvHolding rest;
  pool.take(rest, 2);  // the third block, then that of `one`
  EXPECT_EQ(pool.find(prompt(2, 4), 1).blocks, 1);
  pool.release(two);
  EXPECT_EQ(pool.find(prompt(2, 4), 1).of_them_free, 1);
}

// 4 blocks, 3 more in the host's memory: a prefix of 3 blocks that is evicted comes back.
TEST(KvPoolTest, WhatIsEvictedIsKeptByTheHost) {
  KvPool pool(4, 4, true, 3);
  KvHolding old;
  pool.take(old, 3);
  pool.name_shared(old, prompt(0, 12), 12);
  pool.release(old);  // free: a block without name, then blocks 2, 1, 0 of the prefix
  KvHolding other;
  pool.take(other, 3);
  EXPECT_EQ(pool.host().held(), 2);  // blocks 2 and 1
  const KvPool::Hits hits = pool.find(prompt(1, 12), 3);
  EXPECT_EQ(hits.blocks, 1);
  EXPECT_EQ(hits.of_them_free, 1);
  EXPECT_EQ(hits.behind, 2);
  EXPECT_EQ(hits.behind_held, 0);
  EXPECT_EQ(pool.find(prompt(1, 12), 2).behind, 1);  // no more than are asked for

  pool.release(other);
  KvHolding fetched;
  EXPECT_EQ(pool.begin_fetch(fetched, prompt(1, 12), hits), 2);
  EXPECT_EQ(pool.held(), 3);
  EXPECT_EQ(pool.find(prompt(2, 12), 3).blocks, 1);  // not there before the copy has ended
  EXPECT_EQ(pool.find(prompt(2, 12), 3).behind, 2);
  EXPECT_FALSE(pool.host().is_balanced_and_idle());
  pool.end_fetch(fetched, prompt(1, 12));
  EXPECT_EQ(pool.find(prompt(2, 12), 3).blocks, 3);
  pool.release(fetched);
  EXPECT_EQ(pool.held(), 0);
  EXPECT_TRUE(pool.host().is_balanced_and_idle());
  EXPECT_EQ(pool.host().totals().read, 2);
}

TEST(HostTierTest, TheLeastRecentlyUsedIsDropped) {
  HostTier tier(2);
  tier.keep(1);
  tier.keep(2);
  tier.keep(1);  // is there already, and is used
  tier.keep(3);
  EXPECT_TRUE(tier.has(1));
  EXPECT_FALSE(tier.has(2));
  tier.begin_read(1);
  tier.keep(4);  // 1 is being read, so 3 goes
  EXPECT_TRUE(tier.has(1));
  EXPECT_FALSE(tier.has(3));
  tier.begin_read(4);
  tier.keep(5);  // no room
  EXPECT_FALSE(tier.has(5));
  tier.end_read(1);
  tier.end_read(4);
  EXPECT_TRUE(tier.is_balanced_and_idle());
  EXPECT_EQ(tier.totals().written, 4);
  EXPECT_EQ(tier.totals().dropped, 2);
  EXPECT_EQ(tier.totals().peak, 2);
}

}  // namespace
}  // namespace stepsim

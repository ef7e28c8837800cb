// The time of attention while tokens are generated: a few queries a sequence over a long cache of
// keys and values. Libraries give each block of threads one head of keys of one sequence, with all
// its query heads, and split long caches over blocks whose results are then added up
// (Flash-Decoding: Dao, Haziza, Massa, Sizov 2023; FlashInfer, arXiv 2501.01005; FlashMLA for
// latent caches, which all heads share).
//
//   blocks   batch x row blocks x parts; batch is sequences x heads of keys. The library splits a
//            cache in the number of parts that takes least, of 1 to 128 and at least 64 keys
//   block    block_start + keys of a part x max(bytes of a key / block_bandwidth, arithmetic of its
//            rows); units x blocks_per_unit of them run at a time. The last, partial wave counts
//            half as full: blocks start when others end
//   memory   every key and value once, at memory_fraction of the peak
//   time = cbrt(blocks^3 + memory^3) + start + (parts > 1: split_start and the partial results)
//          + queries and outputs x query_bytes / bandwidth
//
// The cube root stands for the overlap of both: the longer one, and a quarter more where they are
// equal. A kernel that is repeated on the same data (Kernel::repeated, as benchmarks do) finds in
// the second-level cache what fits in there.
//
// Some libraries compute the requests that generate and the prompts of a pass in one call whose
// blocks have one query head each and don't split caches (FlashAttention 2; its later version packs
// the heads that share keys). Then (DecodeEfficiency::beside_prompts) each query of each head is a
// block with a start and a bandwidth of its own: heads of a group read the same keys again, from
// caches. The call itself starts with the prompts.
//
// Time never falls with more keys, and never rises with more units. Cost of a call: O(14).
//
// Not modelled: sequences of unequal length (give the mean), pages of the cache, the choice among
// several kernels of a library by shape beyond what the keys of DecodeEfficiency say; beside
// prompts, keys that leave the second-level cache before the next head of their group reads them
// (one head's keys of all sequences are larger than the cache: up to twice as long), and several
// queries of a head in one block (drafts).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/chips/kernel.h"

namespace stepsim {

// Blocks of one query head.
struct SingleHeadBlocks {
  Duration start{};
  Bandwidth bandwidth{};
};

// Constants of one kernel of a library. The first members say which kernels it is for; unset ones
// match any. Every field is explained where it is declared for files, in
// sim/chips/serving_fields.cc (`stepsim help chip`).
struct DecodeEfficiency {
  std::string library{};
  std::optional<DataType> stored{};
  std::optional<bool> own_heads{};
  std::optional<std::int64_t> head_dim{};

  std::optional<Duration> start{};
  Duration block_start{};
  double blocks_per_unit = 1;
  std::optional<Bandwidth> block_bandwidth{};
  double memory_fraction = 1;
  Duration split_start{};
  double peak_fraction = 1;
  std::int64_t row_tile = 64;
  std::int64_t narrow_rows = 0;
  double query_bytes = 0;
  std::optional<SingleHeadBlocks> beside_prompts{};
};

// The second-level cache, as kernels see it that are repeated on the same data.
struct ChipCache {
  Bytes capacity{};  // of data that is found again in full; of twice as much nothing is
  Bandwidth bandwidth{};
};

// Returns the part of `bytes` that a repeated kernel reads from memory: none up to the capacity,
// all from twice the capacity. Without a cache: all.
double share_from_memory(double bytes, const std::optional<ChipCache>& cache);

// What the models of serving kernels need of a chip.
struct ServingChip {
  double peak = 0;       // FLOP/s of all units in the type that the kernel computes in
  double bandwidth = 0;  // bytes/s, peak
  std::int64_t units = 1;
  std::optional<ChipCache> cache{};
  Duration launch_overhead{};
};

struct DecodeTime {
  double memory_s = 0;      // by itself
  double overlapped_s = 0;  // blocks and memory together: at least memory_s
  Duration around{};        // start, splitting, queries
};

// Returns the first of `entries` whose keys match; nullptr if none does. `library` "" matches any.
const DecodeEfficiency* find_decode(const std::vector<DecodeEfficiency>& entries,
                                    const Kernel& kernel);

// REQUIRES: kernel is kAttentionDecode or kLatentDecode with a batch, m, n and k of at least 1 and
// FLOPs; chip.peak > 0; chip.bandwidth > 0.
DecodeTime time_of_decode(const Kernel& kernel, const DecodeEfficiency& efficiency,
                          const ServingChip& chip);

}  // namespace stepsim

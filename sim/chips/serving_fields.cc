#include "sim/chips/serving_fields.h"

#include "sim/chips/data_type_text.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

FieldTable<ChipCache> make_cache_fields() {
  FieldTable<ChipCache> table("ChipCache");
  table.add("capacity", &ChipCache::capacity, Limits::positive(),
            {.help = "Data that a kernel finds again when it is repeated at once. Of twice as much "
                     "it finds nothing.",
             .advice = "Half the second-level cache where two halves of the chip keep copies.",
             .required = true});
  table.add("bandwidth", &ChipCache::bandwidth, Limits::positive(),
            {.help = "How fast all units together read from it.", .required = true});
  return table;
}

void add_decode_keys(FieldTable<DecodeEfficiency>& table) {
  using Decode = DecodeEfficiency;
  table.add("library", &Decode::library,
            {.help = "The serving library whose kernel this is, by a name that accuracy and "
                     "serving plans use.",
             .advice = "vllm or trtllm."});
  table.add("stored", &Decode::stored,
            {.help = "The type of cached keys and values.", .unset = "any"});
  table.add("own_heads", &Decode::own_heads,
            {.help = "True: each query head has keys of its own. False: some share keys.",
             .unset = "both"});
  table.add("head_dim", &Decode::head_dim, Limits::at_least(1),
            {.help = "Width of a head.",
             .advice = "Give it where the library has another kernel for other widths.",
             .unset = "any"});
}

void add_decode_times(FieldTable<DecodeEfficiency>& table) {
  using Decode = DecodeEfficiency;
  table.add("start", &Decode::start,
            {.help = "Time beyond the kernel's work, with small kernels around it (rotation, the "
                     "new key's way to the cache).",
             .advice = "Fit it to short contexts of one sequence.",
             .unset = "launch_overhead"});
  table.add("block_start", &Decode::block_start,
            {.help = "What a block of threads takes before and after its keys.",
             .advice = "Fit it to short contexts of many sequences."});
  table.add("blocks_per_unit", &Decode::blocks_per_unit, Limits::positive(),
            {.help = "Blocks that one compute unit runs at a time.",
             .advice = "Below 1 where several units work on a block."});
  table.add("block_bandwidth", &Decode::block_bandwidth, Limits::positive(),
            {.help = "How fast a block reads keys and values.",
             .advice = "Fit it to long contexts of few sequences.",
             .unset = "no limit"});
  table.add("memory_fraction", &Decode::memory_fraction, Limits::fraction(),
            {.help = "Fraction of memory_bandwidth that the kernel would reach by itself, without "
                     "its blocks' time.",
             .advice = "Fit it to long contexts of many sequences."});
  table.add("split_start", &Decode::split_start,
            {.help = "What it takes to add up parts, where contexts are split."});
  table.add("peak_fraction", &Decode::peak_fraction, Limits::fraction(),
            {.help = "Fraction of the peak that its matrix instructions reach."});
  table.add("row_tile", &Decode::row_tile, Limits::at_least(16),
            {.help = "Queries that a block multiplies with its keys. More need more blocks, which "
                     "each read the keys.",
             .advice = "64 or 128."});
  table.add("narrow_rows", &Decode::narrow_rows, Limits::at_least(0),
            {.help = "Up to so many queries, the library takes its kernel for 16.",
             .advice = "0: it has none."});
  table.add("query_bytes", &Decode::query_bytes, Limits::at_least(0),
            {.help = "Bytes that the kernels around it move for each value of queries and "
                     "outputs."});
}

FieldTable<SingleHeadBlocks> make_single_head_fields() {
  FieldTable<SingleHeadBlocks> table("SingleHeadBlocks");
  table.add("start", &SingleHeadBlocks::start,
            {.help = "What such a block takes before and after its keys."});
  table.add("bandwidth", &SingleHeadBlocks::bandwidth, Limits::positive(),
            {.help = "How fast it reads keys and values.", .required = true});
  return table;
}

FieldTable<DecodeEfficiency> make_decode_fields() {
  static const FieldTable<SingleHeadBlocks> kSingleHead = make_single_head_fields();
  FieldTable<DecodeEfficiency> table("DecodeEfficiency");
  add_decode_keys(table);
  add_decode_times(table);
  table.group("beside_prompts", &DecodeEfficiency::beside_prompts, kSingleHead,
              {.help = "Blocks of one query head, in which requests generate where the same pass "
                       "computes prompts.",
               .advice = "Give it where the library has one kernel for both that does not pack the "
                         "heads that share keys (FlashAttention 2)."});
  return table;
}

void add_expert_times(FieldTable<ExpertEfficiency>& table) {
  using Experts = ExpertEfficiency;
  table.add("start", &Experts::start,
            {.help = "Time of all the layer's kernels beyond their work.",
             .advice = "Fit it to layers of a few tokens."});
  table.add("peak_fraction", &Experts::peak_fraction, Limits::fraction(),
            {.help = "Fraction of the peak that full tiles of the grouped matmuls reach."});
  table.add("inner_ramp", &Experts::inner_ramp, Limits::at_least(0),
            {.help = "What filling and emptying a tile takes, in steps of the inner dimension."});
  table.add("least_rows", &Experts::least_rows,
            Limits::choice_of({{8, ""}, {16, ""}, {32, ""}, {64, ""}, {128, ""}}),
            {.help = "Rows of the library's smallest tile: experts with fewer pay for as many."});
  table.add("operand_bandwidth", &Experts::operand_bandwidth, Limits::positive(),
            {.help = "How fast all units together load operands of tiles from caches.",
             .unset = "no limit"});
  table.add("memory_fraction", &Experts::memory_fraction, Limits::fraction(),
            {.help = "Fraction of memory_bandwidth at which weights are read."});
  table.add("row_bytes", &Experts::row_bytes, Limits::at_least(0),
            {.help = "Bytes that sorting, activation and adding up move for each value of a row, "
                     "of hidden and inter values."});
  table.add("remote_rows", &Experts::remote_rows, Limits::between(0, 1),
            {.help = "The part of that which rows of other chips' experts cost, too.",
             .advice = "1 where the library keeps a place for every token and expert."});
  table.add("expert_start", &Experts::expert_start,
            {.help = "Time for each expert that has a row."});
  table.add("remote_start", &Experts::remote_start,
            {.help = "Time that a layer takes longer where other chips have experts too."});
}

FieldTable<ExpertEfficiency> make_expert_fields() {
  using Experts = ExpertEfficiency;
  FieldTable<Experts> table("ExpertEfficiency");
  table.add("library", &Experts::library,
            {.help = "The library whose kernels these are.",
             .advice = "triton, flashinfer-cutlass or flashinfer-trtllm."});
  table.add("type", &Experts::type,
            {.help = "The type that the matmuls compute in.", .unset = "any"});
  table.add("weights", &Experts::weights,
            {.help = "The type of the weights, where it is narrower.", .unset = "as type"});
  add_expert_times(table);
  return table;
}

}  // namespace

const FieldTable<ServingKernels>& serving_fields() {
  static const FieldTable<ServingKernels> kTable = [] {
    static const FieldTable<ChipCache> kCache = make_cache_fields();
    static const FieldTable<DecodeEfficiency> kDecode = make_decode_fields();
    static const FieldTable<ExpertEfficiency> kExperts = make_expert_fields();
    FieldTable<ServingKernels> table("ServingKernels");
    table.group("cache", &ServingKernels::cache, kCache,
                {.help = "The second-level cache, as kernels see it that are repeated on the same "
                         "data, which only benchmarks do."});
    table.list("decode", &ServingKernels::decode, kDecode,
               {.help = "Kernels of attention over a cache of keys and values, as tokens are "
                        "generated. The first that fits a case is taken.",
                .advice = "Fit them with scripts/fit_serving_kernels."});
    table.list("latent_decode", &ServingKernels::latent_decode, kDecode,
               {.help = "The same of attention over latents (MLA)."});
    table.list("experts", &ServingKernels::experts, kExperts,
               {.help = "Layers of experts, as serving libraries fuse them. The first that fits a "
                        "case is taken."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim

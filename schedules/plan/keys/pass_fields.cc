#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/keys/key_limits.h"
#include "schedules/plan/keys/plan_syntax.h"
#include "sim/chips/data_type_text.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<Inference> = kInferences;
template <>
inline constexpr std::size_t kValuesOf<CacheSplit> = kCacheSplits;

namespace {

using Plan = ParallelPlan;
using Table = FieldTable<ParallelPlan>;

void add_pass(Table& table) {
  table.theme(
      "One pass of inference",
      "One pass over some requests in place of a training step: forwards only, with a cache of "
      "keys and values.");
  table.add_inner(
      "inference", &Plan::pass, &InferencePass::inference,
      {.help = "What the pass computes. prefill: new tokens of prompts; decode: the next "
               "token of each request; none: a training step.",
       .advice = "Not with keys that say how to train."});
  table.add(
      "batch", kBatchSyntax,
      {.help = "Requests of the pass, in all replicas: another name of global_batch.",
       .advice = "A larger batch reads the weights once for more requests; each of them has a "
                 "cache of its own.",
       .rules = "A multiple of dp.",
       .unset = "global_batch"});
  table.add_inner(
      "context", &Plan::pass, &InferencePass::context, Limits::between(1, kMostTokens).or_zero(),
      {.help = "Tokens of each request that attention reads: its new ones (sequence), and "
               "those in the cache before them. Where requests differ, their mean.",
       .advice = "Prompt and answer so far. A decode pass reads the cache of all of them.",
       .rules = "At least sequence. decode needs it.",
       .unset = "prefill: sequence, so that nothing lies in the cache"});
  table.add_inner(
      "prefill_tokens", &Plan::pass, &InferencePass::prefill_tokens,
      Limits::between(1, kMostTokens).or_zero(),
      {.help = "Tokens of a prompt that each replica computes in the same pass, beside the "
               "requests that generate (chunked prefill).",
       .advice = "A larger chunk ends the prompt in fewer passes, each of which keeps those "
                 "that generate waiting longer.",
       .rules = "Needs inference=decode.",
       .unset = "none"});
  table.add_inner(
      "prefill_context", &Plan::pass, &InferencePass::prefill_context,
      Limits::between(1, kMostTokens).or_zero(),
      {.help = "Tokens of that prompt after the pass: prefill_tokens and those computed "
               "before.",
       .advice = "Later chunks of a long prompt attend to the earlier ones.",
       .rules = "At least prefill_tokens.",
       .unset = "prefill_tokens"});
}

void add_cache(Table& table) {
  table.theme("Cache");
  table.add_inner("cache_dtype", &Plan::cache, &CachePlan::type,
                  {.help = "Type of keys and values, or latents, in the cache.",
                   .advice = "fp8 halves the cache and what attention reads.",
                   .unset = "activation_dtype"});
  table.add_inner(
      "cache_split", &Plan::cache, &CachePlan::split,
      {.help = "How the tensor group divides the cache of requests that generate. heads: each "
               "chip has some key-value heads of all; requests: all heads of some, so that "
               "queries and results travel by an all-to-all each.",
       .advice = "requests where tp is above the number of key-value heads, which several "
                 "chips would keep and read else, and for latents.",
       .rules = "requests needs inference and tp above 1; not with states or indexers."});
}

void add_experts_of_pass(Table& table) {
  table.theme("Experts");
  table.add_inner(
      "expert_weight_dtype", &Plan::pass, &InferencePass::expert_weight_type,
      {.help = "Type in which routed experts are held. The kernel widens it as it reads.",
       .advice = "mxfp4 for gpt-oss.",
       .rules = "Needs a model with experts.",
       .unset = "weight_dtype; as the model was published, where it says so"});
  table.add_inner(
      "expert_dtype", &Plan::pass, &InferencePass::expert_type,
      {.help = "Type in which the matmuls of routed experts compute.",
       .advice = "nvfp4 under dtype=bf16 for checkpoints whose experts alone are in nvfp4; "
                 "mxfp8 for gpt-oss on chips that multiply it with mxfp4.",
       .rules = "Needs inference and a model with experts. The chip has a peak throughput for "
                "it.",
       .unset = "dtype"});
  table.add_inner(
      "expert_spread", &Plan::pass, &InferencePass::expert_spread, Limits::between(1, 10'000),
      {.help = "How many times as often as the least popular expert the most popular one is "
               "chosen. Logarithms of the chances in between are evenly spaced.",
       .advice = "More than 1 lets few tokens visit fewer experts, whose weights are read. "
                 "Experts of published models are 5 to 20 apart.",
       .rules = "Needs inference and a model with experts."});
  table.add_inner(
      "ffn_chips", &Plan::mesh, &Ranks::expert_chips, Limits::between(1, kMostRanks).or_zero(),
      {.help =
           "Chips that hold the routed experts and nothing else, behind those of tp x dp, which "
           "do all other work (attention-FFN disaggregation: MegaScale-Infer, Step-3).",
       .advice = "As many that the experts take as long as attention does (docs/inference.md). The "
                 "requests of all attention chips then meet at few experts, whose weights are read "
                 "once for more tokens.",
       .rules = "Needs inference and a model with routed experts, evenly loaded and without a "
                "capacity; ep x etp = ffn_chips; cp and pp are 1; sequence_parallel with tp above "
                "1; dispatch all_to_all, cache_split heads; no map, no host_launch_cost. At most "
                "4,096 ranks.",
       .unset = "experts are on the chips of all other layers"});
  table.add_inner(
      "pass_microbatches", &Plan::pass, &InferencePass::pass_microbatches, Limits::between(1, 64),
      {.help = "Parts that a pass with ffn_chips is cut into. While experts work on one, attention "
               "works on others (ping-pong pipeline).",
       .advice = "2 where tokens travel in no time, 3 or 4 to hide their way. More make kernels "
                 "small, and each part reads the weights again.",
       .rules =
           "Above 1 needs ffn_chips. A pass has no more parts than requests that generate, or "
           "tokens of a prompt. With tp the tokens of a part are padded to a multiple of tp."});
}

Table make_pass_fields() {
  Table table("Plan");
  add_pass(table);
  add_cache(table);
  add_experts_of_pass(table);
  return table;
}

}  // namespace

const FieldTable<ParallelPlan>& pass_fields() {
  static const Table kTable = make_pass_fields();
  return kTable;
}

}  // namespace stepsim

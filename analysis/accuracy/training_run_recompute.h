// Reads what a row of a table of training runs recomputes, in the words of its software:
//
//   Megatron    full; selective; modules: "norm, act", "mla_up_proj mlp", "core-attn, moe"
//   torchtitan  selective (op); selective (layer); "selective AC (fraction of blocks not stated)"
//   MaxText     its remat policies (save_qkv_proj, minimal_flash, qkv_proj_offloaded, ...) and
//   lists:
//               "custom: all but decoder_layer_input(offload), query_proj(offload)"
//               (src/MaxText/layers/decoders.py, get_remat_policy)
//   anybody     no; yes; "activation checkpointing"; "8 of 10 layers", "4 layers" or "block 4" of
//   each
//               stage, "every 2nd layer", "50 %"; "selective activation recomputation"; SAC
//   Paxml       save_dot_except_logits_ffn1 and others (praxis/layers/checkpoint_policy.py)
//
// The name of a setting may stand before it ("remat_policy=minimal", "recompute_modules: norm").
// What can't be read is not known, as if nothing were said, and the row says so.
//
// A name that is offloaded offloads all that a block keeps: a plan has no finer choice.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/accuracy/row_reader.h"
#include "schedules/plan/parallel_plan.h"

namespace stepsim {

// RecomputeGuess is what a row may have recomputed that doesn't say it.
struct RecomputeGuess {
  std::string words;
  Recompute kind = Recompute::kNone;
  std::optional<std::int64_t> layers{};  // RecomputePlan::layers
  std::vector<KeptResult> keep{};        // RecomputePlan::keep
};

// Sets the plan's keys for recompute and the offload of activations. Returns guesses, cheapest
// first, if the row leaves open what is recomputed, otherwise nothing. `layers`: of the model.
// REQUIRES: the plan's sizes and type have been read.
std::vector<RecomputeGuess> read_recompute(RowReader& row, std::int64_t layers, ParallelPlan& plan);

// Makes full recompute, of the plan and of the guesses, leave out the last matmul of each block,
// whose result no backward reads. Its place is the input of the next block, so nothing more is
// kept. REQUIRES: the model is dense.
void recompute_as_needed(ParallelPlan& plan, std::vector<RecomputeGuess>& guesses);

}  // namespace stepsim

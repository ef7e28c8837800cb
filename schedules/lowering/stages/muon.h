// Muon (Jordan 2024, kellerjordan.github.io/posts/muon; at scale: Moonlight, arXiv 2502.16982): the
// momentum of each matrix is made orthogonal by Newton-Schulz steps and is then its update. Tables,
// the head, norms and biases have Adam.
//
// A matrix of a x b, a <= b, takes per step the matmuls X X^T (a x a x b), its square (a x a x a)
// and their product with X (a x b x a): 4 a^2 b + 2 a^3 FLOPs, in bf16, whatever the batch
// (emerging_optimizers, muon_utils.py; Megatron-Core's muon_fp32_matmul_prec medium). Matrices run
// one after the other, as software holds them: query, key and value in one, gate and up in one,
// each expert's of its own. Memory holds the weight and one moment: second_moment_bytes less.
//
//   zero 0     every replica does all of it
//   zero 1, 2  whole matrices belong to replicas (Megatron-Core's layer-wise distributed optimizer,
//              dist_muon): the largest goes to the replica that has least. The busiest one counts.
//              Gradients and weights go as with Adam
//   zero 3     each matrix is divided over all replicas: an all-to-all in bf16 brings whole ones
//              together, and one divides the updates again (microsoft/dion, Muon under FSDP)
//   tp         a tensor rank's part is a matrix of its own (Megatron-Core's muon_tp_mode blockwise)
//
// Not modelled: modes that make the whole matrix orthogonal over tensor ranks.

#pragma once

#include <vector>

#include "schedules/lowering/stages/stage.h"

namespace stepsim {

// Returns the values of this rank's matrices, before replicas divide them.
std::int64_t matrix_values(const Stage& stage, bool experts);

// Returns the matrices that one replica of `shards` makes orthogonal, each with count 1: those of
// the busiest. Cost: O(n log n) in their number.
std::vector<WeightMatrix> own_matrices(std::vector<WeightMatrix> matrices, std::int64_t shards);

// Returns the values of a replica's part that are brought together under ZeRO-3: padded, so that
// it has as many for each other replica.
constexpr std::int64_t exchanged_values(std::int64_t values, std::int64_t shards) {
  return part_of(values, shards * shards) * shards;
}

// Adds the step of Muon and that of Adam beside it.
OpRef add_muon(Stage& stage, std::vector<Dependency> dependencies);

}  // namespace stepsim

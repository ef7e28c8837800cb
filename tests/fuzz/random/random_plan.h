// random_plan() makes a plan for a cluster, and random_model() a model for that plan. The mesh
// comes first, as a factorisation of the chips; then the schedule with micro-batches that suit it;
// then a model whose layers, heads, widths and experts the mesh divides; then every other key,
// where its rules allow it (`stepsim help plan`). A few rules are left to chance, so that some plans
// are refused.

#pragma once

#include "schedules/plan/parallel_plan.h"
#include "tests/fuzz/random/choices.h"
#include "tests/fuzz/random/random_cluster.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// RandomJob is a plan and its model while they are made.
struct RandomJob {
  ParallelPlan plan{};
  ModelSpec model{};
};

// Sets the mesh, the schedule and the batch.
void choose_mesh(Choices& choices, const RandomCluster& cluster, RandomJob& job);

// Sets the model, the length of sequences, and what depends on the number of layers.
void choose_model(Choices& choices, RandomJob& job);

// Sets how layers of a transformer mix tokens, where that is not plain attention.
void choose_mixers(Choices& choices, RandomJob& job);

// Sets layers that came later than the others: compressed keys, residual streams, a vision part.
void choose_late_layers(Choices& choices, RandomJob& job);

// Sets all other keys of the plan.
void choose_keys(Choices& choices, const RandomCluster& cluster, RandomJob& job);

// Sets those layers, and the keys that go with them, and Muon. Drawn behind all else, so that a
// seed's run stays as it was unless it gets one of them.
void choose_late(Choices& choices, RandomJob& job);

}  // namespace stepsim

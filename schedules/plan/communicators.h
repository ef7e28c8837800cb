// Communicators of a plan: the ranks that differ only along some axes of the mesh form a group.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// Returns one group for each combination of the coordinates along the other axes. Members are in
// the order of their coordinates along `axes`, the innermost axis of the plan's order fastest.
Communicator partition(const Ranks& mesh, std::string name, Axis purpose,
                       std::initializer_list<PlanAxis> axes);

// The same in the experts' mesh: groups differ along `axes` among etp, ep and edp, within a stage.
Communicator expert_partition(const Ranks& mesh, std::string name, Axis purpose,
                              std::initializer_list<ExpertAxis> axes);

// neighbours() returns groups of `size` neighbours in each group of `whole`. across() returns the
// members with the same place in their neighbourhood. REQUIRES: `size` divides the size of every
// group.
Communicator neighbours(const Communicator& whole, std::string name, std::int64_t size);
Communicator across_neighbours(const Communicator& whole, std::string name, std::int64_t size);

// With experts on chips of their own: groups of those that share the same experts (etp). REQUIRES:
// mesh.splits_ffn().
Communicator sharing_experts(const Ranks& mesh, std::string name, Axis purpose);

// Returns all ranks as one group.
Communicator everybody(const Ranks& mesh, std::string name, Axis purpose);

// Returns the groups of `replicas` joined in pairs: those of pipeline stages s and pp - 1 - s,
// which hold copies of the same two stages. The lower stage's ranks come first. REQUIRES: pp is
// even; the groups of `replicas` lie within stages.
Communicator mirrored(const Ranks& mesh, const Communicator& replicas);

// Returns groups of these ranks of the pipeline, with otherwise equal coordinates. Other ranks
// belong to no group. REQUIRES: `stages` ascend, and are below mesh.pp.
Communicator some_stages(const Ranks& mesh, std::string name, Axis purpose,
                         const std::vector<std::int32_t>& stages);

}  // namespace stepsim

// Writes an op graph as Chakra execution traces: the message of schema 0.0.4, a file a rank, as
// feeders of ASTRA-sim read them (mlcommons/chakra@21585d8). read_chakra() reads the same work
// back.
//
//   kernels      COMP_NODE: duration_micros (rounded up), num_ops, tensor_size, and the time in
//                picoseconds as attribute duration_ps
//   collectives  COMM_COLL_NODE with comm_size as feeders want it (an all-gather's shard) and
//   pg_name;
//                the groups of the rank in a METADATA_NODE. send-receive and permute become
//                messages.
//   messages     COMM_SEND_NODE and COMM_RECV_NODE; the tag tells micro-batch and boundary
//   host         MEM_LOAD_NODE and MEM_STORE_NODE with their bytes, or COMP_NODE of the processor
//
// A node waits for the one before it on its stream and for its dependencies of this step.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/chips/chip_spec.h"
#include "sim/program/op_graph.h"

namespace stepsim {

inline constexpr const char* kChakraSchema = "0.0.4";

// Returns the bytes of the file of a rank.
std::string chakra_file(const OpGraph& graph, const ChipSpec& chip, std::uint32_t rank);

// Returns what the files can't say: matrices of uneven all-to-alls, dependencies on the step
// before.
std::vector<std::string> chakra_losses(const OpGraph& graph);

}  // namespace stepsim

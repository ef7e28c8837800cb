// Reads Chakra execution traces: one file a rank, a sequence of length-delimited protobuf messages
// of which the first is GlobalMetadata and the others are nodes (mlcommons/chakra@21585d8,
// schema/protobuf/et_def.proto), also of the old schema 0.0.1 (its own fields in place of
// attributes). The JSON of PyTorch's host traces is no such file and is refused.
//
//   std::vector<Problem> problems;
//   ImportedJob read = read_chakra(files, {}, problems);
//   replay(read.job, ...)
//
// A node waits for its data_deps and ctrl_deps; a ctrl_dep that does not exist is a parent that the
// converter has left out, and nothing waits for it. In files where the two together go round in a
// circle (parents that wait for their parts), only data_deps count. Of several that are free the
// one with the lowest id goes first. is_cpu_op: the node takes its time on the host. Sizes: an
// all-gather's comm_size is one rank's shard, of the others it is the larger buffer. A collective
// without a size takes no time. `stream` of kernels and collectives is honoured.
//
// Files come from strangers: a file that is cut off, ids that are given twice or don't exist, and
// fields that are needed and missing are problems, each with its node. Cost: O(bytes).

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/trace_job.h"
#include "sim/base/error.h"

namespace stepsim {

struct ChakraOptions {
  std::string groups{};     // a comm_group.json: {"1": [0, 1]}; empty: none
  std::uint32_t ranks = 0;  // one file stands for so many ranks that do the same; 0: one a file
};

// ImportedJob is a job with what a person should know of how it was read.
struct ImportedJob {
  TraceJob job;
  std::vector<std::string> notes;  // what could not be told, or has no counterpart
  std::string schema;              // that the files state: "0.0.4"
};

// REQUIRES: there are files. Adds problems; the job is complete if there were none.
ImportedJob read_chakra(const std::vector<std::string>& files, const ChakraOptions& options,
                        std::vector<Problem>& problems);

// Reads the text of one rank, for tests. Groups are those of its own metadata.
ImportedJob read_chakra_text(std::string_view text, std::vector<Problem>& problems);

}  // namespace stepsim

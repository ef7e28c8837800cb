// What traces of PyTorch's profiler measure: matmuls by their shape, collectives by their size, and
// what a launch costs the host. `stepsim calibrate` fits constants to them (docs/calibrate.md).
//
// Matmuls: a kernel belongs to the op with its `External id`, or with that of the launch with its
// `correlation`; in older traces, where that id is the correlation, to the op in which the launch
// stands. Ops aten::mm, addmm, bmm of one matrix and _scaled_mm say m, n and k by their
// `Input Dims` ("record_shapes" of the profiler) and the type by `Input type`. The time of a call
// is the sum of its kernels; a shape has the median of its calls.
//
// Collectives: those whose bytes and ranks the trace has, and whose wait for the slowest rank can
// be told because all ranks of the group are there; the median of what is left without the wait.
// The bytes are those of the larger buffer.
//
// Launches: the time from one kernel's launch to the next of the same thread, where no call between
// them waited for the chip: a launch itself waits only if 1,024 are ahead of it. What Python and
// the profiler do between them is in it.
//
// Not measured: kernels without shapes, batched matmuls, matmuls in TF32 (by the name of the
// kernel), attention, elementwise kernels. Cost: O(bytes + events x log); memory: the launches and
// kernels, not the text.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/csv_table.h"
#include "sim/base/error.h"

namespace stepsim {

struct LaunchGaps {
  std::vector<std::int64_t> nanoseconds{};  // in order of time
};

struct TraceMeasurements {
  std::string device;    // "NVIDIA H100 80GB HBM3"; empty: the files don't say
  CsvTable kernels;      // tables of `stepsim accuracy`, without the column `chip`
  CsvTable collectives;  // and without `cluster`
  LaunchGaps launches;
  std::map<std::string, std::size_t> unused{};  // kernels and collectives by reason
};

// `paths` are the ranks of one trace, or a folder of them. Adds problems; the rest is of use only
// if there were none.
TraceMeasurements measure_trace(const std::vector<std::string>& paths,
                                std::vector<Problem>& problems);

}  // namespace stepsim

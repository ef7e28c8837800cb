// Reads what ran on chips from Chrome traces: PyTorch's Kineto (NVIDIA and AMD, all dialects of
// time, with and without distributedInfo) and stepsim's own (`run --trace`).
//
// Kineto: kernels, copies and memsets are slices, of a stream each; `ProfilerStep#k` are the steps.
// A kernel belongs to the step in whose window it was launched (same `correlation`); without
// launches, to that of the chip's annotation or to the window it starts in. A step begins with its
// first slice and ends where the next one begins, the last where its last slice ends. Without
// ProfilerStep all is one step. Without a chip the ops of the processor are the slices.
//
// stepsim: ranks are processes called "rank N (...)"; all ranks share the clock and the step, which
// begins at 0 (or with the end of the step before).
//
// JAX and XLA: import/trace/xplane.h.
//
// Each file is a rank, or has several. Cost: O(bytes + slices x log); memory: the slices.

#pragma once

#include <string>
#include <vector>

#include "import/trace/device_trace.h"
#include "sim/base/error.h"

namespace stepsim {

// Returns the files themselves, and those of each folder that end in .json, or else .json.gz, or
// else .pb.
std::vector<std::string> files_of_traces(const std::vector<std::string>& paths,
                                         std::vector<Problem>& problems);

// REQUIRES: there are paths; a folder stands for its files that end in .json, .json.gz or .pb. Adds
// problems; the trace is complete if there were none.
DeviceTrace read_device_trace(const std::vector<std::string>& paths,
                              std::vector<Problem>& problems);

}  // namespace stepsim

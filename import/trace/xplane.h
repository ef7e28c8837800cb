// Reads profiles of JAX and XLA: `xplane.pb`, an XSpace of the profiler of TensorFlow and XLA
// (xplane.proto there), of TPUs and GPUs.
//
// A chip is a plane "/device:TPU:0" or "/device:GPU:0"; what ran on it are the events of its lines:
// of a TPU "XLA Ops" and "Async XLA Ops", of a GPU its streams. Events that hold others (loops,
// calls) are left out, so that no time counts twice. Line "Steps" has the steps.
//
// The kind of an op is its HLO category where the profile has one, else the opcode in its name; of
// a GPU the kernel's name. On TPUs matmuls are convolutions. The path of the framework's op says
// the direction ("transpose(jvp(..))" is the backward) and the layer, if layers are not scanned.
//
// Not read: what hosts do, sizes and groups of collectives, counters.

#pragma once

#include <string>
#include <vector>

#include "import/trace/device_trace.h"
#include "import/trace_job.h"
#include "sim/base/error.h"

namespace stepsim {

// Whether a file is read here: its name ends in .pb or .pb.gz.
bool is_xplane(const std::string& path);

// Adds the chips of a file to the trace. Adds a problem under the file if it is no such profile, or
// nothing ran on a chip. O(bytes + events log events).
void read_xplane(const std::string& path, DeviceTrace& trace, TraceNames& names,
                 std::vector<Problem>& problems);

// Returns the kind of an op of XLA by its category ("loop fusion"), or else by its name
// ("%all-reduce.3 = ..").
SliceKind kind_of_hlo(std::string_view category, std::string_view name);

}  // namespace stepsim

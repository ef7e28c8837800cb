// Reads workload files of SimAI and AICB (aliyun/aicb@23eec3c), and of ASTRA-sim 1.0: a header
// line, a number of rows, rows of 12 columns.
//
//   name  dependency  forward_ns comm bytes  input_grad_ns comm bytes  weight_grad_ns comm bytes
//   update
//
// A step is all rows forward, then all rows backward in reverse, weight gradients behind input
// gradients; each compute is followed by its collective, and collectives of weight gradients by
// nothing but the end. The rows have all micro-batches (`ga` is not applied again). Groups: of
// forward and input gradients tensor parallel, of weight gradients data parallel; _EP expert
// parallel, _DP_EP the ranks with the same experts. Ranks are numbered tensor, then data parallel
// (experts inside data). Sizes are those of the larger buffer. A header `MICRO` has rows of all
// ranks. All ranks do the same, so the job has one program, whatever their number, and divisions of
// the ranks (TraceJob::divisions).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/trace_job.h"
#include "sim/base/error.h"

namespace stepsim {

struct AicbJob {
  TraceJob job;
  std::vector<std::string> notes;
};

// `ranks`: how many there are, if the header does not say (all_gpus); 0: not given.
// Adds every problem (at most 20), with its line.
AicbJob read_aicb(std::string_view text, const std::string& path, std::uint32_t ranks,
                  std::vector<Problem>& problems);

}  // namespace stepsim

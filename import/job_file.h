// The work of a trace as a file of stepsim, which `stepsim run FILE --cluster C` runs. JSON:
//
//   {"stepsim_workload": 1, "source": "chakra", "ranks": 2, "groups": [[0, 1]], "names": ["gemm"],
//    "programs": [[{"kind": "kernel", "name": 0, "time_ps": 1000000, "after": []}, ...], ...]}
//
// Members of a node that are 0 or not given are left out (import/trace_job.h says what each is).

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "import/trace_job.h"
#include "sim/base/error.h"

namespace stepsim {

std::string job_text(const TraceJob& job);

// Returns whether the file begins like such a file; false if it can't be read.
bool looks_like_job(const std::string& path);

// Returns nullopt, and adds every problem (at most 20), if the text is none.
std::optional<TraceJob> read_job(std::string_view text, const std::string& path,
                                 std::vector<Problem>& problems);

}  // namespace stepsim

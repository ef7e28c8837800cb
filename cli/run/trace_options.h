// The options of subcommands that write the trace of a run: --trace, --trace-detail and
// --trace-format.

#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "sim/base/error.h"
#include "traces/formats/trace_file.h"

namespace stepsim {

// `what`: "write a trace of one rank of each stage".
void add_trace_options(boost::program_options::options_description& options,
                       const std::string& what);

TraceRequest read_trace_request(const CommandLine& line, std::vector<Problem>& problems);

}  // namespace stepsim

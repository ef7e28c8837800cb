// The trace of a run as files: Chrome's JSON, Perfetto's format, or one file a rank as PyTorch's
// profiler writes it.
//
//   for (const TraceFile& file : trace_files(request, result)) {
//     OutputFile out(file.path);
//     write_trace(file, request, {graph, cluster, result}, notes, out);
//     out.commit();
//   }

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"
#include "traces/files/output_file.h"
#include "traces/formats/compute_lane.h"
#include "traces/formats/run_trace.h"

namespace stepsim {

enum class TraceFormat : std::uint8_t {
  kChrome,    // traces/formats/chrome_sink.h
  kPerfetto,  // traces/formats/perfetto_sink.h
  kKineto,    // traces/formats/kineto_trace.h
};
inline constexpr std::size_t kTraceFormats = 3;
std::string_view name_of(TraceFormat format);       // "chrome"
TraceFormat format_of_path(std::string_view path);  // kPerfetto if it ends in .pftrace

struct TraceRequest {
  std::string path{};  // empty: no trace
  TraceFormat format = TraceFormat::kChrome;
  TraceDetail detail = TraceDetail::kKernel;
};

struct TraceFile {
  std::string path;
  std::optional<std::size_t> recorded{};  // kKineto: the rank, in SimulationResult::recorded
};

// Returns the files of a trace. With kKineto one a recorded rank: "t.rank3.json" for "t.json". None
// if none was asked for.
std::vector<TraceFile> trace_files(const TraceRequest& request, const SimulationResult& result);

struct TracedRun {
  const OpGraph& graph;
  const Cluster& cluster;
  const SimulationResult& result;
};

// Does not commit `out`. Throws OutputError if it cannot be written.
void write_trace(const TraceFile& file, const TraceRequest& request, const TracedRun& run,
                 const TraceNotes& notes, OutputFile& out);

}  // namespace stepsim

#include "traces/formats/trace_file.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "sim/base/small_letters.h"
#include "traces/formats/chrome_sink.h"
#include "traces/formats/kineto_trace.h"
#include "traces/formats/perfetto_sink.h"

namespace stepsim {
namespace {

// "t.json.gz" of rank 3: "t.rank3.json.gz".
std::string path_of_rank(const std::string& path, RankId rank) {
  const std::size_t end = in_small_letters(path).rfind(".json");
  return fmt::format("{}.rank{}{}", path.substr(0, end), rank.index(), path.substr(end));
}

}  // namespace

std::string_view name_of(TraceFormat format) {
  constexpr std::array<std::string_view, kTraceFormats> kNames = {"chrome", "perfetto", "kineto"};
  return kNames[static_cast<std::size_t>(format)];
}

TraceFormat format_of_path(std::string_view path) {
  const bool perfetto = in_small_letters(path).ends_with(".pftrace");
  return perfetto ? TraceFormat::kPerfetto : TraceFormat::kChrome;
}

std::vector<TraceFile> trace_files(const TraceRequest& request, const SimulationResult& result) {
  if (request.path.empty()) return {};
  if (request.format != TraceFormat::kKineto) return {{request.path}};
  std::vector<TraceFile> files;
  for (std::size_t i = 0; i < result.recorded.size(); ++i) {
    files.push_back({path_of_rank(request.path, result.recorded[i].rank), i});
  }
  return files;
}

void write_trace(const TraceFile& file, const TraceRequest& request, const TracedRun& run,
                 const TraceNotes& notes, OutputFile& out) {
  if (file.recorded) {
    return write_kineto_trace(run.graph, run.cluster, run.result, *file.recorded, out);
  }
  const std::unique_ptr<TraceSink> sink = request.format == TraceFormat::kPerfetto
                                              ? perfetto_sink(out)
                                              : std::make_unique<ChromeSink>(out);
  write_run_trace(run.graph, run.cluster, run.result, request.detail, notes, *sink);
}

}  // namespace stepsim

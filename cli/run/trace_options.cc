#include "cli/run/trace_options.h"

#include <optional>
#include <string_view>

#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

// Reads one of the names of an enumeration. Returns nullopt if the option was not given, or is
// none.
template <typename Choice>
std::optional<Choice> read_choice(const CommandLine& line, const char* name, std::size_t count,
                                  std::vector<Problem>& problems) {
  if (line.options.count(name) == 0) return std::nullopt;
  if (line.options.count("trace") == 0) {
    problems.push_back(
        {std::string("--") + name, "needs --trace, which says where the trace goes"});
  }
  const std::string text = line.value(name);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.emplace_back(name_of(static_cast<Choice>(i)));
    if (names.back() == text) return static_cast<Choice>(i);
  }
  problems.push_back({std::string("--") + name, "must be " + either_of(names) + ", is \"" +
                                                    shortened(text) + "\"" +
                                                    did_you_mean(text, names)});
  return std::nullopt;
}

}  // namespace

void add_trace_options(po::options_description& options, const std::string& what) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  auto add = options.add_options();
  add("trace", text("FILE"),
      (what + " for ui.perfetto.dev; FILE ends in .json, .json.gz or .pftrace (the smallest)")
          .c_str());
  add("trace-detail", text("pass|layer|kernel"),
      "the innermost slices of the compute lane (default: kernel)");
  add("trace-format", text("chrome|perfetto|kineto"),
      "kineto: a file a rank, FILE.rankN.json, as PyTorch's profiler writes it (default: by the "
      "name of FILE)");
}

TraceRequest read_trace_request(const CommandLine& line, std::vector<Problem>& problems) {
  TraceRequest request{.path = read_output_path(line, "trace", OutputFormat::kTrace, problems)};
  const TraceFormat of_path = format_of_path(request.path);
  request.detail = read_choice<TraceDetail>(line, "trace-detail", kTraceDetails, problems)
                       .value_or(TraceDetail::kKernel);
  request.format =
      read_choice<TraceFormat>(line, "trace-format", kTraceFormats, problems).value_or(of_path);
  const bool is_perfetto = request.format == TraceFormat::kPerfetto;
  if (!request.path.empty() && is_perfetto != (of_path == TraceFormat::kPerfetto)) {
    problems.push_back(
        {"--trace", std::string("must end in ") + (is_perfetto ? ".pftrace" : ".json or .json.gz") +
                        " with --trace-format " + std::string(name_of(request.format)) + ", is \"" +
                        shortened(request.path) + "\""});
  }
  return request;
}

}  // namespace stepsim

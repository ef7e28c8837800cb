#include "import/trace/diff_trace.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string>

#include "import/trace/decimal_time.h"
#include "proto/messages/json_value.h"

namespace stepsim {
namespace {

constexpr std::array<std::string_view, 2> kSides = {"simulated", "real"};

// Processes are numbered rank by rank, the simulated one first, which is how viewers order them.
void write_side(const DeviceTrace& trace, const RankTrace& rank, const TraceStep& step,
                const ComparedRank& compared, std::size_t side, std::size_t process,
                const std::function<void(std::string_view)>& write) {
  const std::string title = fmt::format("rank {} {}", compared.rank, kSides[side]);
  write(fmt::format(
      ",\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},\"args\":{{\"name\":\"{1}\"}}}},\n"
      "{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},\"args\":{{\"sort_index\":{0}}}}"
      "}",
      process, title));
  std::set<std::uint32_t> lanes;
  for (const TraceSlice& slice : rank.slices) {
    if (slice.start >= step.end || slice.end <= step.begin) continue;
    if (lanes.insert(slice.lane).second) {
      write(
          fmt::format(",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{"
                      "\"name\":\"stream {}\"}}}}",
                      process, slice.lane, slice.lane));
    }
    write(
        fmt::format(",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"cat\":\"{}\","
                    "\"name\":{}}}",
                    process, slice.lane, microseconds_text(slice.start - step.begin),
                    microseconds_text(slice.end - slice.start), name_of(slice.kind),
                    json_text(Json(trace.names[slice.name]))));
  }
}

}  // namespace

void write_diff_trace(const DeviceTrace& simulated, const DeviceTrace& real, const StepDiff& diff,
                      const std::function<void(std::string_view)>& write) {
  write(
      "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"stepsim "
      "diff\",\"pid\":0}");
  std::size_t process = 0;
  for (const ComparedRank& compared : diff.compared) {
    for (std::size_t side = 0; side < 2; ++side) {
      const DeviceTrace& trace = side == 0 ? simulated : real;
      write_side(trace, trace.ranks[compared.places[side]], compared.steps[side], compared, side,
                 ++process, write);
    }
  }
  write("\n]}\n");
}

}  // namespace stepsim

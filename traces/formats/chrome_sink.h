// ChromeSink writes a trace as Chrome's JSON, for ui.perfetto.dev, speedscope and everything else
// that reads the format. Times are microseconds with three decimals, printed from integers.

#pragma once

#include "traces/files/output_file.h"
#include "traces/formats/trace_events.h"
#include "traces/formats/trace_sink.h"

namespace stepsim {

class ChromeSink final : public TraceSink {
 public:
  explicit ChromeSink(OutputFile& out) : events_(out) {}

  void process(std::uint32_t process, std::string_view name, std::size_t position) override;
  void thread(TraceTrack track, std::string_view name, std::size_t position) override;
  void metadata(std::string_view key, const std::string& value) override;
  void open(const SliceEvent& slice) override;
  void close() override {}  // a slice is written whole
  void instant(const TraceInstant& instant) override;
  void sample(const TraceSample& sample) override;
  void end() override;

 private:
  void write_metadata(std::string_view what, TraceTrack track, std::string_view arguments);
  void write_name(std::string_view phase, std::string_view name, std::string_view category,
                  TraceTrack track, std::int64_t at);
  void write_arguments(std::span<const TraceArgument> arguments);
  void write_arrow_end(const TraceArrowEnd& end, TraceTrack track);

  TraceEvents events_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace stepsim

#include "traces/formats/chrome_sink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "sim/base/json_text.h"

namespace stepsim {
namespace {

std::string text_of(const TraceValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) {
    return fmt::format("\"{}\"", json_escaped(*text));
  }
  std::vector<std::string> texts;
  for (const std::string& text : std::get<std::vector<std::string>>(value)) {
    texts.push_back(fmt::format("\"{}\"", json_escaped(text)));
  }
  return fmt::format("[{}]", fmt::join(texts, ","));
}

}  // namespace

void ChromeSink::write_metadata(std::string_view what, TraceTrack track,
                                std::string_view arguments) {
  events_.begin();
  events_.append(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, track.process,
                 track.thread, arguments);
}

void ChromeSink::process(std::uint32_t process, std::string_view name, std::size_t position) {
  const TraceTrack track{process, process};
  write_metadata("process_name", track, fmt::format(R"("name":"{}")", json_escaped(name)));
  write_metadata("process_sort_index", track, fmt::format(R"("sort_index":{})", position));
}

void ChromeSink::thread(TraceTrack track, std::string_view name, std::size_t position) {
  write_metadata("thread_name", track, fmt::format(R"("name":"{}")", json_escaped(name)));
  write_metadata("thread_sort_index", track, fmt::format(R"("sort_index":{})", position));
}

void ChromeSink::metadata(std::string_view key, const std::string& value) {
  metadata_.emplace_back(key, value);
}

void ChromeSink::write_name(std::string_view phase, std::string_view name,
                            std::string_view category, TraceTrack track, std::int64_t at) {
  events_.begin();
  events_.append(R"({{"ph":"{}","name":"{}","cat":"{}","pid":{},"tid":{},"ts":)", phase,
                 json_escaped(name), category, track.process, track.thread);
  events_.append_time({at});
}

void ChromeSink::write_arguments(std::span<const TraceArgument> arguments) {
  events_.append_text(R"(,"args":{)");
  bool first = true;
  for (const TraceArgument& argument : arguments) {
    events_.append(R"({}"{}":{})", first ? "" : ",", argument.key, text_of(argument.value));
    first = false;
  }
  events_.append_text("}}");
}

void ChromeSink::open(const SliceEvent& slice) {
  write_name("X", slice.name, slice.category, slice.track, slice.span.begin);
  events_.append_text(R"(,"dur":)");
  events_.append_time({slice.span.length()});
  if (!slice.colour.empty()) events_.append(R"(,"cname":"{}")", slice.colour);
  write_arguments(slice.arguments);
  for (const TraceArrowEnd& end : slice.arrows) write_arrow_end(end, slice.track);
  ++summary_.slices;
}

void ChromeSink::instant(const TraceInstant& instant) {
  write_name("i", instant.name, instant.category, instant.track, instant.at);
  events_.append_text(R"(,"s":"t")");
  write_arguments(instant.arguments);
  ++summary_.instants;
}

void ChromeSink::write_arrow_end(const TraceArrowEnd& end, TraceTrack track) {
  events_.begin();
  events_.append(R"({{"ph":"{}","name":"{}","cat":"flow","id":{},"pid":{},"tid":{},"ts":)",
                 end.is_head ? "f" : "s", end.name, end.number, track.process, track.thread);
  events_.append_time({end.at});
  events_.append_text(end.is_head ? R"(,"bp":"e"})" : "}");
  if (end.is_head) ++summary_.arrows;
}

void ChromeSink::sample(const TraceSample& sample) {
  events_.begin();
  events_.append(R"({{"ph":"C","name":"{}","pid":{},"ts":)", json_escaped(sample.name),
                 sample.process);
  events_.append_time({sample.at});
  events_.append(R"(,"args":{{"{}":{}}}}})", sample.unit, sample.value);
  ++summary_.counter_samples;
}

void ChromeSink::end() {
  std::vector<std::string> texts;
  for (const auto& [key, value] : metadata_) {
    texts.push_back(fmt::format(R"("{}":"{}")", json_escaped(key), json_escaped(value)));
  }
  events_.end(texts.empty() ? "" : fmt::format(R"(,"metadata":{{{}}})", fmt::join(texts, ",")));
}

}  // namespace stepsim

#include "traces/formats/serving_trace.h"

#include <algorithm>
#include <string>
#include <vector>

#include "traces/formats/trace_events.h"

namespace stepsim {
namespace {

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;

Microseconds trace_time(Time time) {
  return {time.since_start.count() / kPicosecondsPerNanosecond};
}

// Returns "prefill 3 x 512 + decode 61"; prompts of different lengths are "prefill 3 (1200
// tokens)".
std::string name_of_step(const StepRecord& step) {
  std::string name;
  if (step.chunks > 0 && step.has_equal_chunks) {
    name = fmt::format("prefill {} x {}", step.chunks, step.chunk_tokens / step.chunks);
  } else if (step.chunks > 0) {
    name = fmt::format("prefill {} ({} tokens)", step.chunks, step.chunk_tokens);
  }
  if (step.decodes == 0) return name;
  return fmt::format("{}{}decode {}{}", name, name.empty() ? "" : " + ", step.decodes,
                     step.drafts > 0 ? fmt::format(" with {} drafts", step.drafts) : "");
}

class ServingTraceWriter {
 public:
  ServingTraceWriter(const ServingResult& result, OutputFile& out)
      : result_(result), events_(out) {}

  void write() {
    for (std::uint32_t i = 0; i < result_.replicas.size(); ++i) {
      write_name(
          "process_name", process_of(i),
          fmt::format("replica {}{}", i, result_.replicas[i].is_prefill ? " (prefill)" : ""));
      write_name("thread_name", process_of(i), "steps");
    }
    write_name("process_name", requests_process(), "requests");
    for (const StepRecord& step : result_.step_records) write_step(step);
    write_requests();
    events_.end();
  }

 private:
  static std::uint32_t process_of(std::uint32_t replica) { return replica + 1; }
  std::uint32_t requests_process() const {
    return process_of(static_cast<std::uint32_t>(result_.replicas.size()));
  }

  void write_name(std::string_view what, std::uint32_t process, std::string_view name) {
    events_.begin();
    events_.append(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"}}}})", what,
                   process, process, name);
  }

  void write_step(const StepRecord& step) {
    const std::uint32_t process = process_of(step.replica);
    const Microseconds start = trace_time(step.start);
    events_.begin();
    events_.append(R"({{"ph":"X","name":"{}","cat":"step","pid":{},"tid":{},"ts":)",
                   name_of_step(step), process, process);
    events_.append_time(start);
    events_.append_text(R"(,"dur":)");
    events_.append_time({trace_time(step.end).nanoseconds - start.nanoseconds});
    events_.append(R"(,"args":{{"prefill_tokens":{},"decodes":{}}}}})", step.chunk_tokens,
                   step.decodes);
    write_counter(process, "running requests", start, step.load.running);
    write_counter(process, "waiting requests", start, step.load.waiting);
    write_counter(process, "KV blocks", start, step.load.kv_blocks);
  }

  void write_counter(std::uint32_t process, std::string_view name, Microseconds at,
                     std::int64_t value) {
    events_.begin();
    events_.append(R"({{"ph":"C","name":"{}","pid":{},"ts":)", name, process);
    events_.append_time(at);
    events_.append(R"(,"args":{{"count":{}}}}})", value);
  }

  void write_requests() {
    std::vector<PartRecord> parts = result_.part_records;
    std::stable_sort(parts.begin(), parts.end(), [](const PartRecord& a, const PartRecord& b) {
      return a.request < b.request;
    });
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const RequestId request = parts[i].request;
      const bool is_first = i == 0 || parts[i - 1].request != request;
      const bool is_last = i + 1 == parts.size() || parts[i + 1].request != request;
      const Time end = is_last ? result_.requests[request].last_token : parts[i + 1].at;
      const std::string whole = fmt::format("request {}", request.index());
      if (is_first) write_async("b", request, whole, parts[i].at);
      write_async("b", request, name_of(parts[i].part), parts[i].at);
      write_async("e", request, name_of(parts[i].part), end);
      if (is_last) write_async("e", request, whole, end);
    }
  }

  void write_async(std::string_view phase, RequestId request, std::string_view name, Time at) {
    events_.begin();
    events_.append(R"({{"ph":"{}","name":"{}","cat":"request","id":{},"pid":{},"tid":{},"ts":)",
                   phase, name, request.index(), requests_process(), requests_process());
    events_.append_time(trace_time(at));
    events_.append_text("}");
  }

  const ServingResult& result_;
  TraceEvents events_;
};

}  // namespace

void write_serving_trace(const ServingResult& result, OutputFile& out) {
  ServingTraceWriter(result, out).write();
}

}  // namespace stepsim

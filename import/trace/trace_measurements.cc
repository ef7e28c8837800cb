#include "import/trace/trace_measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "import/input_bytes.h"
#include "import/trace/decimal_time.h"
#include "import/trace/device_trace.h"
#include "import/trace/read_trace.h"
#include "import/trace/trace_event.h"
#include "import/trace/trace_event_file.h"
#include "proto/messages/json_value.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::int64_t kLatestTime = std::numeric_limits<std::int64_t>::max() / 4;  // ns
constexpr std::size_t kMostEvents = 50'000'000;  // kernels and launches of a file

// What a matmul is measured by.
struct MatmulShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::string type;

  friend auto operator<=>(const MatmulShape&, const MatmulShape&) = default;
};

using Matrix = std::array<std::int64_t, 2>;

// The sizes of a tensor of two dimensions, or of three of which the first is 1.
std::optional<Matrix> matrix_in(const Json& sizes) {
  if (!sizes.is_array() || sizes.size() < 2 || sizes.size() > 3) return std::nullopt;
  if (!std::ranges::all_of(sizes, [](const Json& size) { return size.is_number_unsigned(); })) {
    return std::nullopt;
  }
  const std::size_t rows = sizes.size() - 2;
  if (rows == 1 && sizes[0] != 1) return std::nullopt;
  const Matrix matrix = {sizes[rows].get<std::int64_t>(), sizes[rows + 1].get<std::int64_t>()};
  const bool is_good = matrix[0] >= 1 && matrix[1] >= 1;
  return is_good ? std::optional(matrix) : std::nullopt;
}

struct MatmulOp {
  std::string_view name;
  std::size_t first;  // of its inputs: the left matrix; the right one is the next
};
constexpr std::array<MatmulOp, 5> kMatmulOps = {{{"aten::mm", 0},
                                                 {"aten::addmm", 1},
                                                 {"aten::bmm", 0},
                                                 {"aten::baddbmm", 1},
                                                 {"aten::_scaled_mm", 0}}};

const MatmulOp* matmul_op(std::string_view name) {
  const auto found = std::ranges::find(kMatmulOps, name, &MatmulOp::name);
  return found == kMatmulOps.end() ? nullptr : found;
}

std::string type_of(const Json& types, std::size_t input) {
  if (!types.is_array() || input >= types.size() || !types[input].is_string()) return {};
  const auto text = types[input].get<std::string>();
  if (text.find("Float8") != std::string::npos) return "fp8";
  if (text.find("BFloat16") != std::string::npos) return "bf16";
  if (text.find("Half") != std::string::npos) return "fp16";
  return text == "float" ? "fp32" : "";
}

// Returns nullopt if the op says no shape of one matmul.
std::optional<MatmulShape> shape_of(const MatmulOp& op, const TraceEvent& event) {
  const JsonOrProblem dims = parse_json(event.input_dims);
  const JsonOrProblem types = parse_json(event.input_types);
  if (!dims.value || !types.value || !dims.value->is_array()) return std::nullopt;
  if (dims.value->size() < op.first + 2) return std::nullopt;
  const auto left = matrix_in((*dims.value)[op.first]);
  const auto right = matrix_in((*dims.value)[op.first + 1]);
  std::string type = type_of(*types.value, op.first);
  if (!left || !right || (*left)[1] != (*right)[0] || type.empty()) return std::nullopt;
  return MatmulShape{.m = (*left)[0], .n = (*right)[1], .k = (*left)[1], .type = std::move(type)};
}

bool computes_in_tf32(std::string_view kernel) {
  return kernel.find("tf32") != std::string_view::npos ||
         kernel.find("s1688") != std::string_view::npos;
}

bool waits_for_chip(std::string_view call) {
  return call.find("Synchronize") != std::string_view::npos || call == "cudaMemcpy" ||
         call == "hipMemcpy" || call == "hipMemcpyWithStream";
}

bool is_call_of_runtime(std::string_view category) {
  return category.ends_with("_runtime") || category.ends_with("_driver");
}

std::int64_t median_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Times of one shape or size, in the order in which they were seen.
using Times = std::vector<std::int64_t>;

struct Measured {
  std::map<MatmulShape, Times> matmuls{};
  std::map<std::tuple<std::string, std::uint32_t, std::int64_t>, Times> collectives{};
};

// Reads one file, that of one rank.
class RankMeasurement {
 public:
  RankMeasurement(const std::string& path, TraceMeasurements& all, Measured& measured,
                  std::vector<Problem>& problems)
      : path_(path), all_(all), measured_(measured), problems_(problems), file_(path) {}

  void read() {
    read_events(file_, [this](const TraceEvent& event) {
      if (event.phase == "X") take(event);
    });
    if (!file_.problem().empty()) {
      problems_.push_back({short_name(path_), file_.problem()});
      return;
    }
    take_device();
    if (chips_.size() > 1) {
      ++all_.unused["files with the kernels of several chips: give a file a rank"];
      return;
    }
    add_matmuls();
    add_gaps();
  }

 private:
  struct DeviceKernel {
    std::int64_t correlation;
    std::int64_t external;  // 0: not told
    std::int64_t nanoseconds;
    bool multiplies;
    bool in_tf32;
  };
  struct OpStretch {
    std::int64_t start;
    std::int64_t end;
    std::int64_t external;
  };
  struct Call {
    std::int64_t start;
    std::int64_t external;
    std::int64_t correlation;
    std::string thread;
    bool waits;
  };

  void take(const TraceEvent& event) {
    if (!event.start || !event.duration || *event.duration < 0) return;
    if (std::abs(*event.start) > kLatestTime || *event.duration > kLatestTime) {
      return file_.refuse("has a time out of range");
    }
    if (event.category == "kernel" || event.category == "Kernel") return take_kernel(event);
    if (is_call_of_runtime(event.category)) return take_call(event);
    if (event.category != "cpu_op" || !event.external_id) return;
    const MatmulOp* const op = matmul_op(event.name);
    if (op == nullptr || event.input_dims.empty()) return;
    const std::optional<MatmulShape> shape = shape_of(*op, event);
    if (!shape) return;
    ops_.insert_or_assign(*event.external_id, *shape);
    stretches_[event.thread].push_back(
        {*event.start, *event.start + *event.duration, *event.external_id});
  }

  void take_kernel(const TraceEvent& event) {
    if (kernels_.size() == kMostEvents) return file_.refuse("is one kernel too many");
    if (chips_.empty() || chips_.back() != event.process) {
      if (std::ranges::find(chips_, event.process) == chips_.end()) {
        chips_.push_back(event.process);
      }
    }
    if (chips_.size() > kMostChips) return file_.refuse("names more than 64 chips");
    kernels_.push_back({.correlation = event.correlation.value_or(0),
                        .external = event.external_id.value_or(0),
                        .nanoseconds = *event.duration,
                        .multiplies = kind_of_kernel(event.name) == SliceKind::kMatmul,
                        .in_tf32 = computes_in_tf32(event.name)});
  }

  void take_call(const TraceEvent& event) {
    if (calls_.size() == kMostEvents) return file_.refuse("is one launch too many");
    const bool waits = waits_for_chip(event.name);
    if (!waits && !event.correlation) return;
    calls_.push_back({.start = *event.start,
                      .external = event.external_id.value_or(0),
                      .correlation = event.correlation.value_or(0),
                      .thread = event.thread,
                      .waits = waits});
  }

  void take_device() {
    const std::string_view text = file_.header("deviceProperties");
    if (text.empty()) return;
    const JsonOrProblem read = parse_json(text);
    if (!read.value || !read.value->is_array()) return;
    for (const Json& device : *read.value) {
      if (!device.is_object() || !device.contains("name") || !device["name"].is_string()) continue;
      const std::string name = shortened(device["name"].get<std::string>(), 100);
      if (all_.device.empty()) all_.device = name;
      if (name == all_.device) continue;
      problems_.push_back(
          {short_name(path_), "ran on " + name + ", another file or chip on " + all_.device});
      return;
    }
  }

  // Returns the External id of the op that launched a kernel. Older traces have the correlation in
  // its place; there it is the op in which the launch stands.
  std::optional<std::int64_t> op_of(const DeviceKernel& kernel, const Call* launch) const {
    const auto is_op = [&](std::int64_t external) {
      return external != kernel.correlation && ops_.contains(external);
    };
    if (is_op(kernel.external)) return kernel.external;
    if (launch == nullptr) return std::nullopt;
    if (is_op(launch->external)) return launch->external;
    const auto found = stretches_.find(launch->thread);
    if (found == stretches_.end()) return std::nullopt;
    const auto behind =
        std::ranges::upper_bound(found->second, launch->start, {}, &OpStretch::start);
    if (behind == found->second.begin() || (behind - 1)->end <= launch->start) return std::nullopt;
    return (behind - 1)->external;
  }

  // Sums up the kernels of each call of an op.
  void add_matmuls() {
    std::unordered_map<std::int64_t, const Call*> launch_of;  // by correlation
    for (const Call& call : calls_) {
      if (!call.waits) launch_of.insert_or_assign(call.correlation, &call);
    }
    for (auto& [thread, stretches] : stretches_) {
      std::ranges::stable_sort(stretches, {}, &OpStretch::start);
    }
    struct Sum {
      std::int64_t nanoseconds = 0;
      std::size_t matmuls = 0;
      bool in_tf32 = false;
    };
    std::map<std::int64_t, Sum> sums;  // by op
    std::size_t without = 0;
    for (const DeviceKernel& kernel : kernels_) {
      const auto launch = launch_of.find(kernel.correlation);
      const std::optional<std::int64_t> op =
          op_of(kernel, launch == launch_of.end() ? nullptr : launch->second);
      if (!op) {
        if (kernel.multiplies) ++without;
        continue;
      }
      Sum& sum = sums[*op];
      sum.nanoseconds += kernel.nanoseconds;
      sum.matmuls += kernel.multiplies ? 1 : 0;
      sum.in_tf32 = sum.in_tf32 || kernel.in_tf32;
    }
    for (const auto& [external, sum] : sums) {
      if (sum.matmuls == 0 || sum.nanoseconds == 0) continue;
      const MatmulShape& shape = ops_.at(external);
      if (shape.type == "fp32" && sum.in_tf32) {
        ++all_.unused["matmuls in TF32, which is no type of stepsim"];
      } else {
        measured_.matmuls[shape].push_back(sum.nanoseconds);
      }
    }
    if (without > 0) {
      all_.unused["kernels of matmuls whose op says no shape of one matmul"] += without;
    }
  }

  void add_gaps() {
    std::unordered_set<std::int64_t> launches;
    for (const DeviceKernel& kernel : kernels_) launches.insert(kernel.correlation);
    std::erase_if(calls_, [&](const Call& call) {
      return !call.waits && !launches.contains(call.correlation);
    });
    std::ranges::stable_sort(calls_, {}, &Call::start);
    std::map<std::string, std::int64_t> launched;  // the last start of each thread
    for (const Call& call : calls_) {
      if (call.waits) {
        launched.erase(call.thread);
        continue;
      }
      const auto last = launched.find(call.thread);
      if (last != launched.end() && call.start > last->second) {
        all_.launches.nanoseconds.push_back(call.start - last->second);
      }
      launched.insert_or_assign(call.thread, call.start);
    }
  }

  static constexpr std::size_t kMostChips = 64;

  const std::string& path_;
  TraceMeasurements& all_;
  Measured& measured_;
  std::vector<Problem>& problems_;
  TraceEventFile file_;
  std::vector<std::string> chips_;
  std::vector<DeviceKernel> kernels_;
  std::vector<Call> calls_;
  std::unordered_map<std::int64_t, MatmulShape> ops_;        // by External id
  std::map<std::string, std::vector<OpStretch>> stretches_;  // of these ops, by thread
};

// The name of tables of collectives; "" where they have no such op.
std::string_view table_word(SliceKind kind) {
  switch (kind) {
    case SliceKind::kAllReduce:
      return "all_reduce";
    case SliceKind::kAllGather:
      return "all_gather";
    case SliceKind::kReduceScatter:
      return "reduce_scatter";
    case SliceKind::kAllToAll:
      return "all_to_all";
    case SliceKind::kBroadcast:
      return "broadcast";
    default:
      return "";
  }
}

void add_collectives(const DeviceTrace& trace, TraceMeasurements& all, Measured& measured) {
  for (const RankTrace& rank : trace.ranks) {
    for (const TraceSlice& slice : rank.slices) {
      if (!communicates(slice.kind)) continue;
      const std::string_view word = table_word(slice.kind);
      const SliceCollective* const of =
          slice.collective ? &rank.collectives[*slice.collective] : nullptr;
      if (word.empty()) {
        ++all.unused["sends, receives and other communication"];
      } else if (of == nullptr || of->bytes == 0 || !of->members) {
        ++all.unused["collectives whose bytes or ranks the trace does not have"];
      } else if (*of->members < 2) {
        ++all.unused["collectives of one rank"];
      } else if (!trace.knows_waits) {
        ++all.unused
              ["collectives whose time contains the wait for the slowest rank: the traces of "
               "all its ranks would tell"];
      } else if (slice.end > slice.moving) {
        measured.collectives[{std::string(word), *of->members, of->bytes}].push_back(slice.end -
                                                                                     slice.moving);
      }
    }
  }
}

void write_tables(const std::string& name, const Measured& measured, TraceMeasurements& all) {
  all.kernels = {.file = name, .header = {"op", "dtype", "shape", "measured.time", "said"}};
  all.collectives = {.file = name, .header = {"op", "ranks", "bytes", "measured.time", "dtype"}};
  const auto add = [](CsvTable& table, std::vector<std::string> record) {
    table.records.push_back(std::move(record));
    table.lines.push_back(static_cast<std::uint32_t>(table.records.size()));
  };
  for (const auto& [shape, times] : measured.matmuls) {
    // What makes its operands narrow is a kernel of its own here.
    const char* const inputs = shape.type == "fp8" ? ",inputs=rounded" : "";
    add(all.kernels,
        {"gemm", shape.type, fmt::format("m={},n={},k={}{}", shape.m, shape.n, shape.k, inputs),
         microseconds_text(median_of(times)) + "us", fmt::format("median of {}", times.size())});
  }
  for (const auto& [key, times] : measured.collectives) {
    const auto& [op, ranks, bytes] = key;
    add(all.collectives, {op, std::to_string(ranks), std::to_string(bytes),
                          microseconds_text(median_of(times)) + "us", "bf16"});
  }
}

}  // namespace

TraceMeasurements measure_trace(const std::vector<std::string>& paths,
                                std::vector<Problem>& problems) {
  TraceMeasurements all;
  const DeviceTrace trace = read_device_trace(paths, problems);
  if (!problems.empty()) return all;
  if (trace.is_simulated) {
    problems.push_back({short_name(paths.front()),
                        "is a trace that stepsim wrote: it measures "
                        "nothing"});
    return all;
  }
  Measured measured;
  for (const std::string& path : files_of_traces(paths, problems)) {
    RankMeasurement(path, all, measured, problems).read();
  }
  if (!problems.empty()) return all;
  add_collectives(trace, all, measured);
  write_tables(short_name(paths.front()), measured, all);
  return all;
}

}  // namespace stepsim

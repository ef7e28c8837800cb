#include "import/trace/read_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "import/input_bytes.h"
#include "import/trace/launch_places.h"
#include "import/trace/trace_event.h"
#include "import/trace/trace_event_file.h"
#include "import/trace/xplane.h"
#include "import/trace_job.h"
#include "proto/messages/json_value.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostNanoseconds = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::size_t kMostTraceFiles = 4096;
// Of all events of a file, and of a step: 11 days. Sums over ranks then fit in 64 bits.
constexpr std::int64_t kMostTotal = 1'000'000'000'000'000;

struct Window {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string name;
};

// A slice of stepsim's own around the kernels of a layer.
struct OwnLayer {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int32_t layer = 0;
  SliceDirection direction = SliceDirection::kUnknown;
};

struct Launch {
  std::int64_t start = 0;
  std::uint32_t thread = 0;  // of LaunchPlaces
};

// What a file has of one process or chip, before steps are known.
struct RawRank {
  RankTrace trace;
  std::vector<std::int64_t> correlations;  // by slice; -1 is a number that files have, too
  std::vector<bool> has_correlation;
  std::vector<Window> annotations;  // of the chip
  std::vector<OwnLayer> layers;
  bool is_named = false;  // "rank N (...)": stepsim's own
};

bool is_launch(std::string_view category) {
  return category.ends_with("_runtime") || category.ends_with("_driver");
}

bool is_on_chip(std::string_view category) {
  static constexpr std::array<std::string_view, 6> kOnChip = {"kernel", "gpu_memcpy", "gpu_memset",
                                                              "Kernel", "Memcpy",     "Memset"};
  return std::ranges::find(kOnChip, category) != kOnChip.end();
}

std::int64_t bytes_of_type(const std::string& type) {
  struct TypeBytes {
    std::string_view name;
    std::int64_t bytes;
  };
  static constexpr TypeBytes kTypes[] = {
      {"Double", 8}, {"Long", 8},  {"Float8", 1}, {"Float", 4}, {"Int", 4}, {"BFloat16", 2},
      {"Half", 2},   {"Short", 2}, {"Byte", 1},   {"Char", 1},  {"Bool", 1}};
  for (const TypeBytes& known : kTypes) {
    if (type.starts_with(known.name)) return known.bytes;
  }
  return 0;
}

class FileReader {
 public:
  FileReader(const std::string& path, DeviceTrace& trace, TraceNames& names,
             std::vector<Problem>& problems)
      : path_(path), trace_(trace), names_(names), problems_(problems), file_(path) {}

  void read() {
    read_events(file_, [this](const TraceEvent& event) { take(event); });
    if (!file_.problem().empty()) {
      problems_.push_back({short_name(path_), file_.problem()});
      return;
    }
    finish();
  }

 private:
  void take(const TraceEvent& event) {
    if (event.phase == "M") {
      if (event.name == "process_name") name_process(event);
      return;
    }
    if (event.phase != "X" || event.category == "Trace") return;
    if (!event.start || !event.duration) return file_.refuse("needs ts and dur");
    if (*event.start > kMostNanoseconds || *event.start < -kMostNanoseconds ||
        *event.duration > kMostNanoseconds) {
      return file_.refuse("has a time out of range");
    }
    if (*event.duration < 0) {
      ++negative_;
      return;
    }
    total_ += std::min(*event.duration, kMostTotal);
    if (total_ > kMostTotal) return file_.refuse("has durations that add up to more than 11 days");
    const auto named = ranks_.find(event.process);
    if (named != ranks_.end() && named->second.is_named && event.category != "kernel") {
      return take_own(event, named->second);
    }
    if (is_on_chip(event.category)) return take_kernel(event);
    const bool is_step = event.name.starts_with("ProfilerStep");
    if (event.category == "user_annotation" && is_step) steps_.push_back(window_of(event));
    if (event.category == "gpu_user_annotation" && is_step) {
      rank_of(event.process).annotations.push_back(window_of(event));
    }
    if (is_launch(event.category) && event.correlation) {
      launches_.insert_or_assign(*event.correlation,
                                 Launch{*event.start, places_.thread(event.thread)});
    }
    take_place(event);
    if (event.category == "cpu_op") take_host(event);
  }

  // What a launch may stand in.
  void take_place(const TraceEvent& event) {
    const std::int64_t end = *event.start + *event.duration;
    if (event.category == "python_function") {
      if (const auto layer = layer_of_module(event.name)) {
        places_.add_layer(places_.thread(event.thread), *event.start, end, *layer);
      }
    } else if (event.category == "cpu_op" && event.sequence) {
      places_.add_op(places_.thread(event.thread), *event.start, end, *event.sequence,
                     event.forward_thread.value_or(0) != 0);
    }
  }

  static Window window_of(const TraceEvent& event) {
    return {*event.start, *event.start + *event.duration, shortened(event.name)};
  }

  RawRank& rank_of(const std::string& process) {
    if (ranks_.size() >= kMostTraceFiles && !ranks_.contains(process)) {
      file_.refuse("names more than 4,096 processes");
    }
    return ranks_[process];
  }

  void name_process(const TraceEvent& event) {
    std::string_view text = event.text_name;
    if (!text.starts_with("rank ")) return;
    text.remove_prefix(5);
    const auto number = number_in<std::uint32_t>(text.substr(0, text.find(' ')));
    if (!number) return;
    RawRank& rank = rank_of(event.process);
    rank.is_named = true;
    rank.trace.rank = *number;
  }

  TraceSlice slice_of(const TraceEvent& event, std::string_view lane) {
    TraceSlice slice;
    slice.start = *event.start;
    slice.end = *event.start + *event.duration;
    slice.moving = slice.start;
    slice.name = names_.number(shortened(event.name, 200));
    slice.lane = event.stream && *event.stream >= 0
                     ? static_cast<std::uint32_t>(*event.stream & 0x7fffffff)
                     : lane_of(lane);
    return slice;
  }
  std::uint32_t lane_of(std::string_view thread) {
    const auto number = number_in<std::uint32_t>(thread);
    if (number) return *number;
    return lanes_.try_emplace(std::string(thread), static_cast<std::uint32_t>(lanes_.size()))
        .first->second;
  }

  void take_kernel(const TraceEvent& event) {
    RawRank& rank = rank_of(event.process);
    TraceSlice slice = slice_of(event, event.thread);
    slice.kind = event.category == "kernel" || event.category == "Kernel"
                     ? kind_of_kernel(event.name)
                     : SliceKind::kCopy;
    if (communicates(slice.kind)) add_collective(event, rank, slice);
    rank.trace.slices.push_back(slice);
    rank.correlations.push_back(event.correlation.value_or(0));
    rank.has_correlation.push_back(event.correlation.has_value());
  }

  void add_collective(const TraceEvent& event, RawRank& rank, TraceSlice& slice) {
    if (!event.collective.empty()) {
      const SliceKind told = kind_of_collective(event.collective);
      if (told != SliceKind::kCommunication) slice.kind = told;
    }
    SliceCollective collective;
    const std::int64_t elements =
        std::max(event.in_elements.value_or(0), event.out_elements.value_or(0));
    const std::int64_t size = bytes_of_type(event.type);
    if (event.bytes && *event.bytes > 0) {
      collective.bytes = *event.bytes;
    } else if (elements > 0 && size > 0 && elements < kMostCollectiveBytes.value() / size) {
      collective.bytes = elements * size;
    }
    if (event.group_size && *event.group_size > 0 && *event.group_size < (1 << 24)) {
      collective.members = static_cast<std::uint32_t>(*event.group_size);
    }
    const bool has_ranks =
        !event.group_ranks.empty() && event.group_ranks.find("...") == std::string::npos;
    collective.group = names_.number(has_ranks ? event.group_ranks : event.group);
    slice.collective = static_cast<std::uint32_t>(rank.trace.collectives.size());
    rank.trace.collectives.push_back(collective);
  }

  // Ops of the processor, of which those that stand inside another don't count.
  void take_host(const TraceEvent& event) {
    TraceSlice slice = slice_of(event, event.thread);
    slice.kind = SliceKind::kHost;
    host_.push_back(slice);
  }

  // A slice of stepsim's own: "wait: all-gather" before "all-gather". The compute lane, whose
  // number is that of the process, also has passes, layers and waits, which stand around kernels
  // and between them. Category "compute": of traces without these.
  void take_own(const TraceEvent& event, RawRank& rank) {
    const bool computes = event.computes || event.category == "compute";
    if (event.thread == event.process && event.layer && *event.layer >= 0) {
      rank.layers.push_back(
          {*event.start, *event.start + *event.duration,
           static_cast<std::int32_t>(std::min<std::int64_t>(*event.layer, 1 << 20)),
           direction_of(event.category)});
    }
    if (!computes && event.thread == event.process) return;
    TraceSlice slice = slice_of(event, event.thread);
    const std::string_view name = event.name;
    const bool waits = event.category == "wait";
    if (computes) {
      slice.kind = kind_of_kernel(name);
    } else {
      const SliceKind by_op = kind_of_collective(event.collective);
      slice.kind = by_op != SliceKind::kCommunication ? by_op : kind_of_collective(name);
      add_collective(event, rank, slice);
    }
    if (waits) slice.moving = slice.end;
    if (event.layer && *event.layer >= 0) {
      slice.layer = static_cast<std::int32_t>(std::min<std::int64_t>(*event.layer, 1 << 20));
    }
    if (computes) slice.direction = direction_of(event.category);
    slice.step =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(event.step.value_or(0), 0, 1 << 20));
    rank.trace.slices.push_back(slice);
  }

  // By the category of a layer's slice: "forward", "weight gradient,critical".
  static SliceDirection direction_of(std::string_view category) {
    if (category.starts_with("forward")) return SliceDirection::kForward;
    const bool is_backward = category.starts_with("backward") ||
                             category.starts_with("recompute") ||
                             category.starts_with("weight gradient");
    return is_backward ? SliceDirection::kBackward : SliceDirection::kUnknown;
  }

  // ---- the end of the file ----

  void finish() {
    places_.prepare();
    for (auto& [process, rank] : ranks_) {
      if (rank.trace.slices.empty()) continue;
      if (rank.is_named) {
        set_own_layers(rank);
        own_.push_back(&rank.trace);
      } else {
        set_places(rank);
        set_steps(rank);
        on_chip_.push_back(&rank.trace);
      }
    }
    if (!own_.empty()) set_own_steps();
    if (own_.empty() && on_chip_.empty()) add_host_rank();
    number_ranks();
    for (auto& list : {own_, on_chip_}) {
      for (RankTrace* rank : list) keep(std::move(*rank));
    }
    trace_.is_simulated = trace_.is_simulated || !own_.empty();
    if (negative_ > 0) {
      trace_.notes.push_back(fmt::format("{}: {} events with a negative dur are left out",
                                         short_name(path_), negative_));
    }
  }

  void keep(RankTrace rank) {
    std::ranges::sort(rank.slices, [](const TraceSlice& a, const TraceSlice& b) {
      return std::tuple(a.start, a.end, a.lane) < std::tuple(b.start, b.end, b.lane);
    });
    trace_.ranks.push_back(std::move(rank));
  }

  // The rank of distributedInfo is that of the file's first chip.
  void number_ranks() {
    const std::string_view text = file_.header("distributedInfo");
    if (text.empty() || on_chip_.size() != 1) return;
    const JsonOrProblem read = parse_json(text);
    if (!read.value || !read.value->is_object() || !read.value->contains("rank")) return;
    const Json& rank = (*read.value)["rank"];
    if (rank.is_number_unsigned() && rank < (1 << 24)) {
      on_chip_[0]->rank = rank.get<std::uint32_t>();
    }
  }

  static std::optional<std::size_t> window_at(const std::vector<Window>& windows, std::int64_t at) {
    const auto behind = std::ranges::upper_bound(windows, at, {}, &Window::begin);
    if (behind == windows.begin()) return std::nullopt;
    const auto index = static_cast<std::size_t>(behind - windows.begin()) - 1;
    if (at >= windows[index].end) return std::nullopt;
    return index;
  }

  // Kernels have the layer around them.
  static void set_own_layers(RawRank& rank) {
    std::ranges::stable_sort(rank.layers, {}, &OwnLayer::start);
    for (TraceSlice& slice : rank.trace.slices) {
      if (slice.layer >= 0 || communicates(slice.kind)) continue;
      const auto behind = std::ranges::upper_bound(rank.layers, slice.start, {}, &OwnLayer::start);
      if (behind == rank.layers.begin() || slice.end > (behind - 1)->end) continue;
      slice.layer = (behind - 1)->layer;
      slice.direction = (behind - 1)->direction;
    }
  }

  // Those in which they were launched.
  void set_places(RawRank& rank) {
    for (std::size_t i = 0; i < rank.trace.slices.size(); ++i) {
      if (!rank.has_correlation[i]) continue;
      const auto launch = launches_.find(rank.correlations[i]);
      if (launch == launches_.end()) continue;
      const LaunchPlace place = places_.at(launch->second.thread, launch->second.start);
      rank.trace.slices[i].layer = place.layer.value_or(-1);
      rank.trace.slices[i].direction = place.direction;
    }
  }

  void set_steps(RawRank& rank) {
    std::ranges::sort(steps_, {}, &Window::begin);
    std::ranges::sort(rank.annotations, {}, &Window::begin);
    const bool by_chip = steps_.empty();
    const std::vector<Window>& windows = by_chip ? rank.annotations : steps_;
    std::vector<std::optional<Window>> spans(windows.size());
    for (std::size_t i = 0; i < rank.trace.slices.size(); ++i) {
      const TraceSlice& slice = rank.trace.slices[i];
      std::int64_t at = slice.start;
      if (!by_chip && rank.has_correlation[i]) {
        const auto launch = launches_.find(rank.correlations[i]);
        if (launch != launches_.end()) at = launch->second.start;
      }
      const std::optional<std::size_t> step = window_at(windows, at);
      if (!step) continue;
      if (!spans[*step]) spans[*step] = Window{slice.start, slice.end, windows[*step].name};
      spans[*step]->begin = std::min(spans[*step]->begin, slice.start);
      spans[*step]->end = std::max(spans[*step]->end, slice.end);
    }
    for (const auto& span : spans) {
      if (span) rank.trace.steps.push_back({span->begin, span->end, span->name});
    }
    close_gaps(rank.trace);
  }

  // Steps end where the next one begins. Without any, all is one.
  static void close_gaps(RankTrace& rank) {
    std::ranges::sort(rank.steps, {}, &TraceStep::begin);
    for (std::size_t i = 0; i + 1 < rank.steps.size(); ++i) {
      rank.steps[i].end = rank.steps[i + 1].begin;
    }
    std::erase_if(rank.steps, [](const TraceStep& step) { return step.end <= step.begin; });
    if (!rank.steps.empty()) return;
    TraceStep all{.begin = rank.slices[0].start, .end = rank.slices[0].end, .name = "all"};
    for (const TraceSlice& slice : rank.slices) {
      all.begin = std::min(all.begin, slice.start);
      all.end = std::max(all.end, slice.end);
    }
    rank.steps.push_back(all);
  }

  void set_own_steps() {
    std::map<std::uint32_t, std::int64_t> ends;
    for (const RankTrace* rank : own_) {
      for (const TraceSlice& slice : rank->slices) {
        std::int64_t& end = ends[slice.step];
        end = std::max(end, slice.end);
      }
    }
    std::vector<TraceStep> steps;
    std::int64_t begin = 0;
    for (const auto& [number, end] : ends) {
      if (end > begin) steps.push_back({begin, end, "step " + std::to_string(number)});
      begin = std::max(begin, end);
    }
    if (steps.empty()) steps.push_back({0, begin, "step 0"});
    for (RankTrace* rank : own_) rank->steps = steps;
  }

  void add_host_rank() {
    if (host_.empty()) {
      problems_.push_back({short_name(path_), fmt::format("has no kernels and no ops among its {} "
                                                          "events",
                                                          file_.events())});
      return;
    }
    std::ranges::sort(steps_, {}, &Window::begin);
    host_rank_.trace.slices = std::move(host_);
    for (const Window& step : steps_) {
      host_rank_.trace.steps.push_back({step.begin, step.end, step.name});
    }
    if (host_rank_.trace.steps.empty()) close_gaps(host_rank_.trace);
    on_chip_.push_back(&host_rank_.trace);
    trace_.notes.push_back(short_name(path_) +
                           ": nothing ran on a chip; the ops of the processor count");
  }

  const std::string& path_;
  DeviceTrace& trace_;
  TraceNames& names_;
  std::vector<Problem>& problems_;
  TraceEventFile file_;
  std::map<std::string, RawRank> ranks_;  // by process
  std::map<std::string, std::uint32_t, std::less<>> lanes_;
  std::vector<Window> steps_;
  std::unordered_map<std::int64_t, Launch> launches_;  // by correlation
  LaunchPlaces places_;
  std::vector<TraceSlice> host_;
  RawRank host_rank_;
  std::vector<RankTrace*> own_;
  std::vector<RankTrace*> on_chip_;
  std::size_t negative_ = 0;
  std::int64_t total_ = 0;  // duration of all events, ns
};

// A file whose rank is not told has the number in its name, or its place.
void name_ranks(DeviceTrace& trace, const std::vector<std::size_t>& file_of,
                const std::vector<std::string>& files) {
  if (files.size() < 2) return;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    if (!trace.ranks[i].rank) trace.ranks[i].rank = rank_in_name(files[file_of[i]]);
  }
}

}  // namespace

std::vector<std::string> files_of_traces(const std::vector<std::string>& paths,
                                         std::vector<Problem>& problems) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::vector<Problem> without;
    std::vector<std::string> plain = files_of({path}, ".json", without);
    if (!without.empty()) {
      without.clear();
      plain = files_of({path}, ".json.gz", without);
    }
    if (!without.empty()) plain = files_of({path}, ".pb", problems);
    files.insert(files.end(), plain.begin(), plain.end());
  }
  return files;
}

DeviceTrace read_device_trace(const std::vector<std::string>& paths,
                              std::vector<Problem>& problems) {
  DeviceTrace trace;
  TraceNames names(trace.names);
  names.number("");
  const std::vector<std::string> files = files_of_traces(paths, problems);
  if (files.size() > kMostTraceFiles) problems.push_back({"files", "there may be 4,096"});
  if (!problems.empty()) return trace;
  std::vector<std::size_t> file_of;
  for (std::size_t file = 0; file < files.size(); ++file) {
    if (is_xplane(files[file])) {
      read_xplane(files[file], trace, names, problems);
    } else {
      FileReader(files[file], trace, names, problems).read();
    }
    file_of.resize(trace.ranks.size(), file);
  }
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    for (const TraceStep& step : trace.ranks[i].steps) {
      if (step.end - step.begin <= kMostTotal) continue;
      problems.push_back({short_name(files[file_of[i]]), "has a step of more than 11 days"});
      break;
    }
  }
  if (!problems.empty()) return trace;
  name_ranks(trace, file_of, files);
  trace.knows_waits = trace.is_simulated;
  find_waits(trace);
  return trace;
}

}  // namespace stepsim

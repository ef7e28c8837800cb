#include "import/trace/xplane.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "import/chakra/wire.h"
#include "import/input_bytes.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostTime = std::int64_t{1} << 61;  // ns

struct HloWord {
  std::string_view word;
  SliceKind kind;
};

// Categories and opcodes; the first that a name has counts.
constexpr HloWord kHloWords[] = {
    {"all-reduce", SliceKind::kAllReduce},
    {"reduce-scatter", SliceKind::kReduceScatter},
    {"all-gather", SliceKind::kAllGather},
    {"all-to-all", SliceKind::kAllToAll},
    {"collective-permute", SliceKind::kSendReceive},
    {"collective-broadcast", SliceKind::kBroadcast},
    {"send", SliceKind::kSendReceive},
    {"recv", SliceKind::kSendReceive},
    {"attention", SliceKind::kAttention},
    {"convolution", SliceKind::kMatmul},
    {"output fusion", SliceKind::kMatmul},
    {"dot", SliceKind::kMatmul},
    {"gemm", SliceKind::kMatmul},
    {"copy", SliceKind::kCopy},
    {"data formatting", SliceKind::kCopy},
    {"transpose", SliceKind::kCopy},
    {"infeed", SliceKind::kCopy},
    {"outfeed", SliceKind::kCopy},
    {"gather", SliceKind::kEmbedding},
    {"scatter", SliceKind::kEmbedding},
    {"reduce", SliceKind::kReduction},
    {"input fusion", SliceKind::kReduction},
    {"fusion", SliceKind::kElementwise},
    {"broadcast", SliceKind::kElementwise},
};

// What a plane says of all events of a kind.
struct EventKind {
  std::string_view name;
  std::string_view display;
  std::string_view category;
  std::string_view path;  // of the framework's op
};

struct PlaneEvent {
  std::int64_t start = 0;  // ns
  std::int64_t end = 0;
  std::uint64_t kind = 0;
};

std::int64_t signed_number(const WireReader& wire) {
  return static_cast<std::int64_t>(wire.number());
}

bool is_stream(std::string_view line) {
  return line.starts_with("Stream #");
}

// "layers_3/..": the number behind the last word that begins with "layer".
std::int32_t layer_in(std::string_view path) {
  const std::size_t at = path.rfind("layer");
  if (at == std::string_view::npos) return -1;
  const std::size_t digit = path.find_first_of("0123456789/", at);
  std::int32_t layer = -1;
  if (digit == std::string_view::npos || path[digit] == '/') return -1;
  std::from_chars(path.data() + digit, path.data() + path.size(), layer);
  return layer;
}

SliceDirection direction_in(std::string_view path) {
  if (path.find("transpose(") != std::string_view::npos) return SliceDirection::kBackward;
  if (path.find("rematted_computation") != std::string_view::npos) {
    return SliceDirection::kBackward;
  }
  return path.find("jvp(") != std::string_view::npos ? SliceDirection::kForward
                                                     : SliceDirection::kUnknown;
}

// Leaves out events that hold others. `events` are sorted by start, and longest first.
std::vector<PlaneEvent> leaves_of(const std::vector<PlaneEvent>& events) {
  std::vector<PlaneEvent> leaves;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool holds_next = i + 1 < events.size() && events[i + 1].start < events[i].end &&
                            events[i + 1].end <= events[i].end;
    if (!holds_next && events[i].end > events[i].start) leaves.push_back(events[i]);
  }
  return leaves;
}

class PlaneReader {
 public:
  PlaneReader(std::string_view plane, TraceNames& names) : plane_(plane), names_(names) {}

  // Returns nullopt if the plane is no chip, or nothing ran on it.
  std::optional<RankTrace> read() {
    std::string_view name;
    for (WireReader wire(plane_); wire.next();) {
      if (wire.field() == 2) name = wire.bytes();
    }
    is_gpu_ = name.starts_with("/device:GPU:");
    if (!is_gpu_ && !name.starts_with("/device:TPU:")) return std::nullopt;
    read_stat_names();
    for (WireReader wire(plane_); wire.next();) {
      if (wire.field() == 4) read_kind(wire.bytes());
    }
    for (WireReader wire(plane_); wire.next();) {
      if (wire.field() == 3) read_line(wire.bytes());
      if (!wire.problem().empty()) problem_ = wire.problem();
    }
    if (rank_.slices.empty()) return std::nullopt;
    std::ranges::sort(rank_.slices, [](const TraceSlice& a, const TraceSlice& b) {
      return std::pair(a.start, a.end) < std::pair(b.start, b.end);
    });
    std::ranges::sort(rank_.steps, {}, &TraceStep::begin);
    if (rank_.steps.empty()) {
      TraceStep all{.begin = rank_.slices.front().start, .end = 0, .name = "all"};
      for (const TraceSlice& slice : rank_.slices) all.end = std::max(all.end, slice.end);
      rank_.steps.push_back(all);
    }
    return std::move(rank_);
  }

  const std::string& problem() const { return problem_; }

 private:
  void read_stat_names() {
    for (WireReader wire(plane_); wire.next();) {
      if (wire.field() != 5) continue;
      for (WireReader entry(wire.bytes()); entry.next();) {
        if (entry.field() == 2) read_stat_name(entry.bytes());
      }
    }
  }

  void read_stat_name(std::string_view message) {
    std::uint64_t id = 0;
    std::string_view name;
    for (WireReader wire(message); wire.next();) {
      if (wire.field() == 1) id = wire.number();
      if (wire.field() == 2) name = wire.bytes();
    }
    stat_names_[id] = name;
  }

  // The name of a stat and its text; "" where it is no text.
  std::pair<std::string_view, std::string_view> stat(std::string_view message) const {
    std::string_view name;
    std::string_view text;
    for (WireReader wire(message); wire.next();) {
      if (wire.field() == 1) name = stat_name(wire.number());
      if (wire.field() == 5) text = wire.bytes();
      if (wire.field() == 7) text = stat_name(wire.number());
    }
    return {name, text};
  }

  std::string_view stat_name(std::uint64_t id) const {
    const auto found = stat_names_.find(id);
    return found == stat_names_.end() ? std::string_view() : found->second;
  }

  void read_kind(std::string_view entry) {
    for (WireReader wire(entry); wire.next();) {
      if (wire.field() != 2) continue;
      std::uint64_t id = 0;
      EventKind kind;
      for (WireReader field(wire.bytes()); field.next();) {
        if (field.field() == 1) id = field.number();
        if (field.field() == 2) kind.name = field.bytes();
        if (field.field() == 4) kind.display = field.bytes();
        if (field.field() != 5) continue;
        const auto [name, text] = stat(field.bytes());
        if (name == "hlo_category") kind.category = text;
        if (name == "tf_op") kind.path = text;
      }
      kinds_[id] = kind;
    }
  }

  void read_line(std::string_view line) {
    std::string_view name;
    std::int64_t origin = 0;
    for (WireReader wire(line); wire.next();) {
      if (wire.field() == 2) name = wire.bytes();
      if (wire.field() == 3) origin = signed_number(wire);
    }
    const bool is_steps = name == "Steps";
    const bool is_ops = is_gpu_ ? is_stream(name) : name == "XLA Ops" || name == "Async XLA Ops";
    if (!is_steps && !is_ops) return;
    std::vector<PlaneEvent> events;
    for (WireReader wire(line); wire.next();) {
      if (wire.field() == 4) read_event(wire.bytes(), origin, events);
    }
    std::ranges::stable_sort(events, [](const PlaneEvent& a, const PlaneEvent& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    if (is_steps) {
      for (const PlaneEvent& event : events) {
        const EventKind& kind = kinds_[event.kind];
        if (event.end > event.start) {
          rank_.steps.push_back({event.start, event.end, "step " + std::string(kind.name)});
        }
      }
      return;
    }
    for (const PlaneEvent& event : leaves_of(events)) add_slice(event, lanes_);
    ++lanes_;
  }

  void read_event(std::string_view message, std::int64_t origin, std::vector<PlaneEvent>& events) {
    constexpr std::int64_t kPicoseconds = 1000;  // of a nanosecond
    PlaneEvent event;
    std::int64_t offset = 0;
    std::int64_t duration = 0;
    for (WireReader wire(message); wire.next();) {
      if (wire.field() == 5) return;  // a count of several
      if (wire.field() == 1) event.kind = wire.number();
      if (wire.field() == 2) offset = signed_number(wire);
      if (wire.field() == 3) duration = signed_number(wire);
    }
    if (offset < 0 || duration < 0 || origin < 0 || origin > kMostTime) {
      problem_ = "has a time out of range";
      return;
    }
    event.start = origin + offset / kPicoseconds;
    event.end = origin + (offset / kPicoseconds + duration / kPicoseconds);
    events.push_back(event);
  }

  void add_slice(const PlaneEvent& event, std::uint32_t lane) {
    const EventKind& kind = kinds_[event.kind];
    const std::string_view name = kind.display.empty() ? kind.name : kind.display;
    TraceSlice slice{.start = event.start, .end = event.end, .moving = event.start};
    slice.name = names_.number(name);
    slice.lane = lane;
    slice.kind = is_gpu_ && kind.category.empty() ? kind_of_kernel(kind.name)
                                                  : kind_of_hlo(kind.category, kind.name);
    slice.direction = direction_in(kind.path);
    slice.layer = layer_in(kind.path);
    rank_.slices.push_back(slice);
  }

  std::string_view plane_;
  TraceNames& names_;
  bool is_gpu_ = false;
  std::uint32_t lanes_ = 0;
  std::unordered_map<std::uint64_t, std::string_view> stat_names_;
  std::unordered_map<std::uint64_t, EventKind> kinds_;
  RankTrace rank_;
  std::string problem_;
};

}  // namespace

bool is_xplane(const std::string& path) {
  return path.ends_with(".pb") || path.ends_with(".pb.gz");
}

SliceKind kind_of_hlo(std::string_view category, std::string_view name) {
  // A kernel of the model's own says in its name what it is.
  const std::string_view opcode = name.substr(0, name.find(" = "));
  for (const std::string_view text :
       {opcode.find("attention") != std::string_view::npos ? opcode : category,
        category.empty() ? opcode : std::string_view()}) {
    for (const HloWord& word : kHloWords) {
      if (text.find(word.word) != std::string_view::npos) return word.kind;
    }
  }
  return SliceKind::kOtherWork;
}

void read_xplane(const std::string& path, DeviceTrace& trace, TraceNames& names,
                 std::vector<Problem>& problems) {
  const std::optional<std::string> bytes = read_bytes(path, problems);
  if (!bytes) return;
  std::size_t planes = 0;
  std::size_t chips = 0;
  WireReader wire(*bytes);
  while (wire.next()) {
    if (wire.field() != 1) continue;
    ++planes;
    PlaneReader reader(wire.bytes(), names);
    std::optional<RankTrace> rank = reader.read();
    if (!reader.problem().empty()) problems.push_back({short_name(path), reader.problem()});
    if (!rank) continue;
    ++chips;
    trace.ranks.push_back(std::move(*rank));
  }
  if (!wire.problem().empty()) {
    problems.push_back({short_name(path), "is no xplane.pb: it " + wire.problem()});
  } else if (chips == 0) {
    problems.push_back(
        {short_name(path), fmt::format("has nothing that ran on a chip in its {} planes: planes "
                                       "/device:TPU:N or /device:GPU:N are looked for",
                                       planes)});
  }
}

}  // namespace stepsim

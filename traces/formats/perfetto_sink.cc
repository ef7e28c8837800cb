#include "traces/formats/perfetto_sink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <future>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/formats/perfetto_packets.h"

namespace stepsim {
namespace {

// Field numbers of protos/perfetto/trace (Apache License 2.0); tests/traces/perfetto.proto has the
// messages.
namespace trace_field {
constexpr std::uint32_t kPacket = 1;
}
namespace packet_field {
constexpr std::uint32_t kTimestamp = 8;
constexpr std::uint32_t kSequence = 10;
constexpr std::uint32_t kTrackEvent = 11;
constexpr std::uint32_t kInterned = 12;
constexpr std::uint32_t kSequenceFlags = 13;
constexpr std::uint32_t kCompressed = 50;
constexpr std::uint32_t kTrackDescriptor = 60;
}  // namespace packet_field
namespace interned_field {
constexpr std::uint32_t kCategories = 1;
constexpr std::uint32_t kNames = 2;
constexpr std::uint32_t kKeys = 3;
constexpr std::uint32_t kTexts = 29;
}  // namespace interned_field
namespace descriptor_field {
constexpr std::uint32_t kUuid = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kProcess = 3;
constexpr std::uint32_t kThread = 4;
constexpr std::uint32_t kParent = 5;
constexpr std::uint32_t kCounter = 8;
constexpr std::uint32_t kPosition = 12;
}  // namespace descriptor_field
namespace event_field {
constexpr std::uint32_t kCategory = 3;
constexpr std::uint32_t kArguments = 4;
constexpr std::uint32_t kType = 9;
constexpr std::uint32_t kName = 10;
constexpr std::uint32_t kTrack = 11;
constexpr std::uint32_t kCounter = 30;
constexpr std::uint32_t kRealCounter = 44;
constexpr std::uint32_t kFlow = 47;
constexpr std::uint32_t kFlowEnd = 48;
}  // namespace event_field

enum EventType : std::uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

// Numbers texts from 1 on, and says which are new.
class Interned {
 public:
  explicit Interned(std::uint32_t field) : field_(field) {}

  struct Number {
    std::uint64_t value = 0;
    bool is_new = false;
  };
  Number number_of(std::string_view text) {
    Recent& recent = recent_[text.empty() ? 0 : hash(text) % recent_.size()];
    if (recent.text != nullptr && *recent.text == text) return {recent.number, false};
    const auto [place, is_new] = numbers_.try_emplace(std::string(text), numbers_.size() + 1);
    recent = {&place->first, place->second};
    return {place->second, is_new};
  }
  std::uint32_t field() const { return field_; }  // of InternedData

 private:
  struct Recent {
    const std::string* text = nullptr;
    std::uint64_t number = 0;
  };
  static std::size_t hash(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    return text.size() * 131 + at(0) * 31U + at(text.size() / 2) * 7U + at(text.size() - 1);
  }

  std::uint32_t field_;
  std::array<Recent, 509> recent_{};
  std::unordered_map<std::string, std::uint64_t> numbers_;  // looked up, never iterated
};

// Returns the packets in zlib's format.
std::string compressed(const std::string& packets) {
  std::string bytes(compressBound(packets.size()), '\0');
  uLongf size = bytes.size();
  const int status =
      compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
                reinterpret_cast<const Bytef*>(packets.data()), packets.size(), Z_BEST_SPEED);
  if (status != Z_OK) throw std::bad_alloc();
  bytes.resize(size);
  return bytes;
}

std::optional<std::int64_t> whole_number(double value) {
  constexpr double kMost = 9e15;
  if (std::abs(value) > kMost || std::trunc(value) != value) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

class PerfettoSink final : public TraceSink {
 public:
  explicit PerfettoSink(OutputFile& out) : out_(out) {}

  void process(std::uint32_t process, std::string_view name, std::size_t position) override {
    const std::uint64_t track = track_of_process(process);
    write_descriptor(track, [&] {
      const std::size_t message = packets_.begin(descriptor_field::kProcess);
      packets_.number(1, process);  // pid
      packets_.text(6, name);
      packets_.end(message);
      packets_.number(descriptor_field::kPosition, position);
    });
  }

  void thread(TraceTrack track, std::string_view name, std::size_t position) override {
    const std::uint64_t parent = track_of_process(track.process);
    write_descriptor(track_of(track), [&] {
      packets_.number(descriptor_field::kParent, parent);
      const std::size_t message = packets_.begin(descriptor_field::kThread);
      packets_.number(1, track.process);
      packets_.number(2, track.thread);
      packets_.text(5, name);
      packets_.end(message);
      packets_.number(descriptor_field::kPosition, position);
    });
  }

  void metadata(std::string_view key, const std::string& value) override {
    labels_.push_back(fmt::format("{}: {}", key, value));
  }

  void open(const SliceEvent& slice) override {
    const std::uint64_t track = track_of(slice.track);
    const Numbers numbers = intern(slice.name, slice.category, slice.arguments);
    begin_event(slice.span.begin, kBegin, track);
    write_numbers(numbers, slice.arguments);
    for (const TraceArrowEnd& end : slice.arrows) {
      packets_.fixed(end.is_head ? event_field::kFlowEnd : event_field::kFlow, end.number);
      if (end.is_head) ++summary_.arrows;
    }
    end_event();
    open_.emplace_back(track, slice.span.end);
    ++summary_.slices;
  }

  void close() override {
    const auto [track, at] = open_.back();
    open_.pop_back();
    begin_event(at, kEnd, track);
    end_event();
  }

  void instant(const TraceInstant& instant) override {
    const std::uint64_t track = track_of(instant.track);
    const Numbers numbers = intern(instant.name, instant.category, instant.arguments);
    begin_event(instant.at, kInstant, track);
    write_numbers(numbers, instant.arguments);
    end_event();
    ++summary_.instants;
  }

  void sample(const TraceSample& sample) override {
    begin_event(sample.at, kCounter, track_of_counter(sample));
    if (const auto whole = whole_number(sample.value)) {
      packets_.number(event_field::kCounter, static_cast<std::uint64_t>(*whole));
    } else {
      packets_.real(event_field::kRealCounter, sample.value);
    }
    end_event();
    ++summary_.counter_samples;
  }

  void end() override {
    if (!labels_.empty()) {
      write_descriptor(track_of_process(kMetadataProcess), [&] {
        const std::size_t message = packets_.begin(descriptor_field::kProcess);
        packets_.number(1, kMetadataProcess);
        packets_.text(6, "run");
        for (const std::string& label : labels_) packets_.text(8, label);
        packets_.end(message);
      });
    }
    flush();
    take_compressed();
  }

 private:
  static constexpr std::uint64_t kSequence = 1;
  static constexpr std::uint64_t kStateCleared = 1;
  static constexpr std::uint64_t kNeedsState = 2;
  static constexpr std::size_t kFlushAt = std::size_t{1} << 20;  // bytes
  static constexpr std::uint32_t kMetadataProcess = 1'000'000'000;

  struct Numbers {
    std::uint64_t name = 0;
    std::uint64_t category = 0;
  };

  std::size_t begin_packet() {
    if (packets_.bytes().size() >= kFlushAt) flush();
    const std::size_t packet = packets_.begin(trace_field::kPacket);
    packets_.number(packet_field::kSequence, kSequence);
    packets_.number(packet_field::kSequenceFlags, first_ ? kStateCleared : kNeedsState);
    first_ = false;
    return packet;
  }

  void begin_event(std::int64_t at, EventType type, std::uint64_t track) {
    packet_ = begin_packet();
    packets_.number(packet_field::kTimestamp, static_cast<std::uint64_t>(at));
    event_ = packets_.begin(packet_field::kTrackEvent);
    packets_.number(event_field::kType, type);
    packets_.number(event_field::kTrack, track);
  }
  void end_event() {
    packets_.end(event_);
    packets_.end(packet_);
  }

  template <typename Write>
  void write_descriptor(std::uint64_t track, Write write) {
    const std::size_t packet = begin_packet();
    const std::size_t message = packets_.begin(packet_field::kTrackDescriptor);
    packets_.number(descriptor_field::kUuid, track);
    write();
    packets_.end(message);
    packets_.end(packet);
  }

  // Tracks are numbered as they come. A process is a track too.
  std::uint64_t track_of(TraceTrack track) {
    const std::pair key(track.process, track.thread);
    if (!last_track_ || last_track_->first != key) {
      last_track_ = *tracks_.try_emplace(key, next_track()).first;
    }
    return last_track_->second;
  }
  std::uint64_t track_of_process(std::uint32_t process) {
    return processes_.try_emplace(process, next_track()).first->second;
  }
  std::uint64_t track_of_counter(const TraceSample& sample) {
    auto& of_process = counters_[sample.process];
    const auto place = of_process.find(sample.name);
    if (place != of_process.end()) return place->second;
    const std::uint64_t parent = track_of_process(sample.process);
    const std::uint64_t track = next_track();
    ++counter_tracks_;
    of_process.emplace(sample.name, track);
    write_descriptor(track, [&] {
      packets_.text(descriptor_field::kName, sample.name);
      packets_.number(descriptor_field::kParent, parent);
      const std::size_t counter = packets_.begin(descriptor_field::kCounter);
      constexpr std::uint64_t kBytes = 3;
      if (sample.unit == "bytes") packets_.number(3, kBytes);
      if (sample.unit != "bytes") packets_.text(6, sample.unit);
      packets_.end(counter);
    });
    return track;
  }
  std::uint64_t next_track() const {
    return 1 + tracks_.size() + processes_.size() + counter_tracks_;
  }

  // Returns the numbers of an event's texts. New ones go into a packet before the event's.
  Numbers intern(std::string_view name, std::string_view category,
                 std::span<const TraceArgument> arguments) {
    const Numbers numbers{number(names_, name), number(categories_, category)};
    arguments_.clear();
    for (const TraceArgument& argument : arguments) {
      arguments_.push_back({number(keys_, argument.key), number_of_text(argument.value)});
    }
    return numbers;
  }

  std::uint64_t number(Interned& texts, std::string_view text) {
    const auto [value, is_new] = texts.number_of(text);
    if (!is_new) return value;
    const std::size_t packet = begin_packet();
    const std::size_t interned = packets_.begin(packet_field::kInterned);
    const std::size_t entry = packets_.begin(texts.field());
    packets_.number(1, value);
    packets_.text(2, text);
    packets_.end(entry);
    packets_.end(interned);
    packets_.end(packet);
    return value;
  }

  std::optional<std::uint64_t> number_of_text(const TraceValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return number(texts_, *text);
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if (list == nullptr) return std::nullopt;
    return number(texts_, fmt::format("{}", fmt::join(*list, "; ")));
  }

  void write_numbers(const Numbers& numbers, std::span<const TraceArgument> arguments) {
    packets_.number(event_field::kName, numbers.name);
    packets_.number(event_field::kCategory, numbers.category);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::size_t annotation = packets_.begin(event_field::kArguments);
      packets_.number(1, arguments_[i].key);
      write_value(arguments[i].value, arguments_[i].text);
      packets_.end(annotation);
    }
  }

  void write_value(const TraceValue& value, std::optional<std::uint64_t> text) {
    constexpr std::uint32_t kWhole = 4;
    constexpr std::uint32_t kReal = 5;
    constexpr std::uint32_t kText = 17;
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      packets_.number(kWhole, static_cast<std::uint64_t>(*number));
    } else if (const auto* real = std::get_if<double>(&value)) {
      const auto whole = whole_number(*real);
      if (whole) packets_.number(kWhole, static_cast<std::uint64_t>(*whole));
      if (!whole) packets_.real(kReal, *real);
    } else {
      packets_.number(kText, *text);
    }
  }

  // Writes what was compressed meanwhile, and has the packets compressed. A system that gives no
  // thread for that compresses them when they are written.
  void flush() {
    take_compressed();
    compressing_ = std::async(std::launch::async | std::launch::deferred,
                              [bytes = packets_.bytes()] { return compressed(bytes); });
    packets_.clear();
  }
  void take_compressed() {
    if (!compressing_.valid()) return;
    PerfettoPackets trace;
    const std::size_t packet = trace.begin(trace_field::kPacket);
    trace.text(packet_field::kCompressed, compressing_.get());
    trace.end(packet);
    out_.write(trace.bytes());
  }

  OutputFile& out_;
  PerfettoPackets packets_;  // that are not being compressed yet
  std::future<std::string> compressing_;
  std::size_t packet_ = 0;  // the event that is being written
  std::size_t event_ = 0;
  bool first_ = true;
  Interned categories_{interned_field::kCategories};
  Interned names_{interned_field::kNames};
  Interned keys_{interned_field::kKeys};
  Interned texts_{interned_field::kTexts};
  struct ArgumentNumbers {
    std::uint64_t key = 0;
    std::optional<std::uint64_t> text{};
  };
  std::vector<ArgumentNumbers> arguments_;  // of the event that is being written
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> tracks_;
  std::optional<std::pair<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>> last_track_;
  std::map<std::uint32_t, std::uint64_t> processes_;
  std::unordered_map<std::uint32_t, std::map<std::string, std::uint64_t, std::less<>>> counters_;
  std::size_t counter_tracks_ = 0;
  std::vector<std::pair<std::uint64_t, std::int64_t>> open_;  // track and end of open slices
  std::vector<std::string> labels_;
};

}  // namespace

std::unique_ptr<TraceSink> perfetto_sink(OutputFile& out) {
  return std::make_unique<PerfettoSink>(out);
}

}  // namespace stepsim

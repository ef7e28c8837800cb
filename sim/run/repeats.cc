#include "sim/run/repeats.h"

#include <algorithm>
#include <limits>

namespace stepsim {
namespace {

constexpr std::size_t kLeastMarkers = 8;  // a run of fewer micro-batches has little to skip

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t hash = (a + 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ hash >> 31) + b;
  hash *= 0x94d049bb133111ebU;
  hash ^= hash >> 29;
  hash *= 0xff51afd7ed558ccdU;
  return hash ^ hash >> 32;
}

std::uint64_t picoseconds(Duration duration) {
  return static_cast<std::uint64_t>(duration.count());
}

bool may_repeat(const OpGraph& graph, const SimulationOptions& options) {
  return options.repeats && options.fidelity != Fidelity::kPacket &&
         options.granularity == Granularity::kPipelined && options.recorded_ranks.empty() &&
         !options.record_links && !options.shuffle_seed && !graph.host &&
         graph.jitter.deviation == 0 && graph.host_works.empty() &&
         std::ranges::none_of(graph.messages, &Message::eager);
}

bool is_same_change(const MemoryChange& a, const MemoryChange& b) {
  return a.category == b.category && a.at_end == b.at_end && a.bytes == b.bytes;
}

// The work of an op, without that of messages, whose numbers are those of their micro-batches.
std::uint64_t work_of_op(const Op& op) {
  const auto kind = static_cast<std::uint64_t>(op.kind) << 32;
  return op.kind == OpKind::kMessages ? kind : kind | op.work;
}

}  // namespace

Repeats::Repeats(const Job& job, const Streams& streams) : job_(job), streams_(streams) {}

std::optional<Repeats> Repeats::watch(const Job& job, const Streams& streams,
                                      const SimulationOptions& options) {
  if (!may_repeat(job.graph(), options) || job.ranks().empty()) return std::nullopt;
  Repeats repeats(job, streams);
  const RankId rank(0);
  const Program& program = job.program(rank);
  for (const RankStreamId stream : streams.of(rank)) {
    if (!streams.computes(stream)) continue;
    const Stream& compute = streams.stream(stream);
    if (compute.ops == 0) return std::nullopt;
    repeats.of_marker_ = stream;
    repeats.marker_ = OpId(compute.first_op + compute.ops / 2);
    std::size_t markers = 0;
    const OpLabel& label = program.labels[repeats.marker_.index()];
    for (std::uint32_t op = compute.first_op; op < compute.first_op + compute.ops; ++op) {
      if (program.ops[op].work != program.ops[repeats.marker_.index()].work) continue;
      if (program.labels[op].layer == label.layer && program.labels[op].name == label.name)
        ++markers;
    }
    if (markers >= kLeastMarkers) return repeats;
  }
  return std::nullopt;
}

bool Repeats::is_marker(RankStreamId stream) const {
  if (stream != of_marker_) return false;
  const Program& program = streams_.program_of(stream);
  const OpId op = streams_.op_id(stream);
  if (program.ops[op.index()].work != program.ops[marker_.index()].work) return false;
  const OpLabel& label = program.labels[op.index()];
  const OpLabel& marker = program.labels[marker_.index()];
  return label.layer == marker.layer && label.name == marker.name;
}

void Repeats::ends(RankStreamId stream, Time now) {
  const std::uint64_t what = std::uint64_t{stream.index()} << 36 ^ work_of_op(streams_.op(stream));
  signature_ +=
      mixed(what, picoseconds(now - since_) +
                      0x9e3779b97f4a7c15U * picoseconds(now - streams_.started_at(stream)));
  if (is_marker(stream)) is_due_ = true;
}

Repeats::Found Repeats::close(Time now) {
  is_due_ = false;
  std::uint64_t signature = mixed(signature_, picoseconds(now - since_));
  for (std::uint32_t number = 0; number < streams_.count(); ++number) {
    const RankStreamId stream(number);
    if (!streams_.running(stream)) continue;
    const std::uint64_t what = ~(std::uint64_t{number} << 36 ^ work_of_op(streams_.op(stream)));
    signature += mixed(what, picoseconds(now - streams_.started_at(stream)));
  }
  since_ = now;
  signature_ = 0;
  const std::size_t number = signatures_.size();
  signatures_.push_back(signature);
  const auto [place, is_new] = last_.try_emplace(signature, number);
  const std::size_t before = std::exchange(place->second, number);
  if (begun_) {
    if (signature == signatures_[number - begun_->period]) {
      return number == begun_->number + begun_->period ? Found::kAgain : Found::kNothing;
    }
    begun_.reset();
  }
  if (is_new) return Found::kNothing;
  begun_ = {.number = number, .period = number - before, .at = now, .ended = {}, .steps = {}};
  return Found::kBegin;
}

void Repeats::begin(Time now) {
  begun_->number = signatures_.size() - 1;
  begun_->at = now;
  begun_->ended.clear();
  begun_->steps.clear();
  for (std::uint32_t number = 0; number < streams_.count(); ++number) {
    const RankStreamId stream(number);
    begun_->ended.push_back(streams_.ended(stream));
    begun_->steps.push_back(streams_.finished(stream) ? ~0U : streams_.step(stream));
  }
}

void Repeats::forget(Time now) {
  since_ = now;
  signature_ = 0;
  signatures_.clear();
  last_.clear();
  begun_.reset();
}

// The op of a stream that stood still must go on waiting.
std::uint64_t Repeats::times_of_waiting(RankStreamId stream,
                                        const std::vector<std::uint32_t>& moved) const {
  if (streams_.finished(stream)) return std::numeric_limits<std::uint64_t>::max();
  if (streams_.running(stream)) return 0;
  std::uint64_t times = 0;
  for (const Dependency& dependency :
       streams_.program_of(stream).dependencies_of(streams_.op_id(stream))) {
    const RankStreamId on = streams_.depended_on(stream, dependency);
    const std::uint64_t needed = streams_.needed(stream, dependency);
    if (streams_.ended(on) >= needed) continue;
    if (moved[on.index()] == 0) return std::numeric_limits<std::uint64_t>::max();
    times = std::max(times, (needed - 1 - streams_.ended(on)) / moved[on.index()]);
  }
  return times;
}

bool Repeats::is_like(RankStreamId stream, OpId op, OpId later,
                      const std::vector<std::uint32_t>& moved,
                      std::optional<std::int32_t>& microbatches) const {
  const Program& program = streams_.program_of(stream);
  const Op& a = program.ops[op.index()];
  const Op& b = program.ops[later.index()];
  if (a.kind != b.kind || a.axis != b.axis || a.work_count != b.work_count) return false;
  if (a.kind != OpKind::kMessages && a.work != b.work) return false;
  if (!std::ranges::equal(program.memory_changes_of(op), program.memory_changes_of(later),
                          is_same_change)) {
    return false;
  }
  const bool same_waits = std::ranges::equal(
      program.dependencies_of(op), program.dependencies_of(later),
      [&](const Dependency& one, const Dependency& other) {
        if (one.stream != other.stream || one.previous_step != other.previous_step) return false;
        const RankStreamId on = streams_.depended_on(stream, one);
        const std::uint64_t needed = streams_.needed(stream, one);
        const std::uint64_t needed_later = streams_.needed(stream, other);
        if (needed_later == needed + moved[on.index()]) return true;
        return std::max(needed, needed_later) <= begun_->ended[on.index()];
      });
  if (!same_waits || a.kind != OpKind::kMessages) return same_waits;
  for (std::uint32_t m = 0; m < a.work_count; ++m) {
    const Message& one = job_.graph().messages[a.work + m];
    Message other = job_.graph().messages[b.work + m];
    if (!one.microbatch || !other.microbatch) return false;
    const std::int32_t distance = *other.microbatch - *one.microbatch;
    if (microbatches.value_or(distance) != distance) return false;
    microbatches = distance;
    const bool same = one.is_send == other.is_send && one.kind == other.kind &&
                      one.communicator == other.communicator && one.peer == other.peer &&
                      one.boundary == other.boundary && one.bytes == other.bytes;
    if (!same) return false;
  }
  return true;
}

// Ops from the start of the period on are compared with those one period later.
std::uint64_t Repeats::times_of_moving(RankStreamId stream, const Skip& skip, std::uint64_t most,
                                       std::optional<std::int32_t>& microbatches) const {
  const std::uint32_t moved = skip.moved[stream.index()];
  const Stream& in_program = streams_.stream(stream);
  const std::uint32_t first = streams_.position(stream) - moved;
  const std::uint64_t room = in_program.ops - first - moved;  // ops that have one a period later
  const std::uint64_t wanted = std::min<std::uint64_t>(room, most > room ? room : most * moved + 1);
  std::uint64_t like = 0;
  while (like < wanted) {
    const auto op = static_cast<std::uint32_t>(in_program.first_op + first + like);
    if (!is_like(stream, OpId(op), OpId(op + moved), skip.moved, microbatches)) break;
    ++like;
  }
  return like == 0 ? 0 : (like - 1) / moved;
}

Repeats::Skip Repeats::find_skip(Time now) const {
  Skip skip{.times = 0, .period = now - begun_->at, .microbatches = 0, .moved = {}};
  for (std::uint32_t number = 0; number < streams_.count(); ++number) {
    const RankStreamId stream(number);
    const std::uint32_t step = streams_.finished(stream) ? ~0U : streams_.step(stream);
    if (step != begun_->steps[number]) return skip;
    const std::uint64_t moved = streams_.ended(stream) - begun_->ended[number];
    if (moved == 0 && streams_.computes(stream)) return skip;
    skip.moved.push_back(static_cast<std::uint32_t>(moved));
  }
  std::uint64_t times = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::int32_t> microbatches;
  for (std::uint32_t number = 0; number < streams_.count() && times > 0; ++number) {
    const RankStreamId stream(number);
    times = std::min(times, skip.moved[number] == 0
                                ? times_of_waiting(stream, skip.moved)
                                : times_of_moving(stream, skip, times, microbatches));
  }
  skip.times = times;
  skip.microbatches = microbatches.value_or(0);
  return skip;
}

}  // namespace stepsim

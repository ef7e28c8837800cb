#include "schedules/lowering/stages/pipeline.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "schedules/lowering/stages/message_names.h"
#include "schedules/plan/axis.h"

namespace stepsim {
namespace {

constexpr std::int32_t kAnyBoundary = -1;

// Returns whether the two messages of a fused op are one batch. In groups of more micro-batches
// than stages, the peer has them in different ops, so that each of two batches would wait for the
// other.
bool are_one_batch(const Stage& stage) {
  const std::int64_t pp = stage.plan.mesh.pp;
  return !stage.plan.overlap.expert_parallel ||
         stage.plan.pipeline.microbatch_group.value_or(pp) <= pp;
}

void append(std::vector<Dependency>& all, std::vector<Dependency> more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

StageMessages::StageMessages(Stage& stage) : stage_(stage) {
  if (stage.posting != nullptr) {
    batches_ = stage.builder.add_stream("messages");
    return;
  }
  struct Single {
    bool is_send;
    MessageKind kind;
    std::uint32_t peer;
    std::int32_t boundary;
    bool operator==(const Single&) const = default;
  };
  std::vector<Single> lines;
  for (std::int32_t chunk = 0; chunk < stage.schedule.chunks; ++chunk) {
    const std::int32_t microbatch =
        stage.has_copies() && chunk == 1 ? stage.schedule.microbatches / 2 : 0;
    const auto add = [&](bool is_send, MessageKind kind) {
      const auto found = way({kind, microbatch, chunk}, is_send);
      if (!found || found->peer == stage.number) return;
      const Single line{is_send, kind, static_cast<std::uint32_t>(found->peer),
                        boundary_of_line(found->boundary)};
      if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
    };
    add(false, MessageKind::kActivation);
    add(true, MessageKind::kGradient);
    add(true, MessageKind::kActivation);
    add(false, MessageKind::kGradient);
  }
  for (const Single& line : lines) {
    const bool is_only = std::ranges::count_if(lines, [&](const Single& other) {
                           return other.is_send == line.is_send && other.kind == line.kind;
                         }) == 1;
    std::string name = (line.is_send ? "send " : "receive ") + std::string(name_of(line.kind));
    if (!is_only) name += (line.is_send ? " to " : " from ") + std::to_string(line.peer);
    if (line.boundary != kAnyBoundary) name += " behind stage " + std::to_string(line.boundary);
    streams_.emplace(Line{line.is_send, {line.peer}, {line.kind}, line.boundary},
                     stage.builder.add_stream(std::move(name)));
  }
}

std::optional<StageMessages::Way> StageMessages::way(const Handover& handover,
                                                     bool is_output) const {
  const PipelineSchedule& schedule = stage_.schedule;
  const std::int32_t here = stage_of(schedule, stage_.number, handover.chunk);
  const bool is_upwards = is_output == (handover.kind == MessageKind::kActivation);
  const std::int32_t there = is_upwards ? here + 1 : here - 1;
  if (there < 0) return std::nullopt;
  const bool is_loss = there == stage_count(schedule);
  return Way{.peer = is_loss ? stage_.number : rank_of(schedule, handover.microbatch, there),
             .boundary = std::min(here, there)};
}

Bytes StageMessages::bytes_at(std::int32_t boundary) const {
  return stage_.boundaries[static_cast<std::size_t>(boundary)];
}

Message StageMessages::message(const Handover& handover, const Way& way, bool is_send) const {
  return {.is_send = is_send,
          .kind = handover.kind,
          .communicator = *stage_.communicators.pipeline,
          .peer = static_cast<std::uint32_t>(way.peer),
          .microbatch = handover.microbatch,
          .boundary = way.boundary,
          .bytes = bytes_at(way.boundary)};
}

std::int32_t StageMessages::boundary_of_line(std::int32_t boundary) const {
  return shares_ways(stage_.schedule) ? boundary : kAnyBoundary;
}

StreamId StageMessages::stream_for(const std::vector<Message>& batch) {
  if (stage_.posting != nullptr) return batches_;
  Line line{batch[0].is_send,
            {},
            {},
            batch.size() == 1 ? boundary_of_line(batch[0].boundary) : kAnyBoundary};
  for (const Message& message : batch) {
    std::get<1>(line).push_back(message.peer);
    std::get<2>(line).push_back(message.kind);
  }
  const auto [place, added] = streams_.try_emplace(std::move(line));
  if (!added) return place->second;
  std::string name = batch[0].is_send ? "send" : "receive";
  for (const Message& message : batch) {
    name += " " + std::string(name_of(message.kind)) + (message.is_send ? " to " : " from ") +
            std::to_string(message.peer);
  }
  place->second = stage_.builder.add_stream(std::move(name));
  return place->second;
}

OpRef StageMessages::post(const std::vector<Message>& batch, std::vector<Dependency> dependencies) {
  OpDraft op{.stream = stream_for(batch), .kind = OpKind::kMessages, .axis = Axis::kPipeline};
  op.dependencies = std::move(dependencies);
  op.work_count = static_cast<std::uint32_t>(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Message& message = batch[i];
    const std::uint32_t index = stage_.tables.message(message);
    if (i == 0) op.work = index;
    op.memory_changes.push_back(
        {.category = MemoryCategory::kBuffers, .at_end = false, .bytes = message.bytes});
    if (message.is_send) {
      op.memory_changes.push_back(
          {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = message.bytes});
    }
  }
  op.label = stage_.label(name_of(batch), {}, batch[0].microbatch);
  return stage_.builder.add(std::move(op));
}

std::vector<Dependency> StageMessages::post_batches(std::size_t op) {
  if (stage_.posting == nullptr) return {};
  const auto rank = static_cast<std::size_t>(stage_.number);
  const std::vector<PostedBatch>& batches = stage_.posting->ranks[rank];
  for (; next_batch_ < batches.size() && batches[next_batch_].before == op; ++next_batch_) {
    std::vector<Message> messages;
    std::vector<Dependency> needs;
    if (stage_.front().last_compute) needs.push_back(after(*stage_.front().last_compute));
    for (const PostedMessage& posted : batches[next_batch_].messages) {
      const Handover handover{kind_of(posted), posted.microbatch, posted.chunk};
      messages.push_back(message(handover, *way(handover, posted.is_send), posted.is_send));
      if (posted.is_send) append(needs, made_by_.extract(key_of(handover)).mapped());
    }
    last_batch_ = post(messages, std::move(needs));
    for (const PostedMessage& posted : batches[next_batch_].messages) {
      if (posted.is_send) continue;
      brought_by_[{kind_of(posted), posted.microbatch, posted.chunk}] = *last_batch_;
    }
  }
  const bool is_end = op == stage_.schedule.ranks[rank].size();
  if (!last_batch_ || !(is_end || stage_.posting->waits_for_all)) return {};
  return {after(*last_batch_)};
}

std::vector<Dependency> StageMessages::receive(const std::vector<Handover>& inputs) {
  std::vector<Dependency> waits = std::exchange(sent_, {});
  std::vector<Message> batch;
  for (const Handover& input : inputs) {
    const auto from = way(input, false);
    if (!from) continue;
    if (from->peer != stage_.number) {
      if (stage_.posting == nullptr) {
        batch.push_back(message(input, *from, false));
      } else if (!stage_.posting->waits_for_all) {
        waits.push_back(after(brought_by_.at(key_of(input))));
      }
      continue;
    }
    const auto handed = handed_.find({input.kind, input.microbatch, from->boundary});
    if (handed == handed_.end()) continue;
    append(waits, std::move(handed->second));
    handed_.erase(handed);
  }
  if (are_one_batch(stage_)) {
    if (!batch.empty()) waits.push_back(after(post(batch, {})));
  } else {
    for (const Message& one : batch) waits.push_back(after(post({one}, {})));
  }
  return waits;
}

Bytes StageMessages::buffer_of(const Handover& input) const {
  const auto from = way(input, false);
  return from && from->peer != stage_.number ? bytes_at(from->boundary) : Bytes(0);
}

void StageMessages::send(std::vector<Result> results) {
  std::vector<Message> batch;
  std::vector<Dependency> made_by;
  for (Result& result : results) {
    const Handover& output = result.output;
    const auto to = way(output, true);
    if (!to) continue;
    if (to->peer == stage_.number) {
      // Compute ops run in the rank's order anyway, so a dependency on them is not needed.
      std::erase_if(result.made_by,
                    [&](const Dependency& made) { return made.stream == stage_.compute; });
      const bool is_loss = to->boundary + 1 == stage_count(stage_.schedule);
      handed_[{is_loss ? MessageKind::kGradient : output.kind, output.microbatch, to->boundary}] =
          std::move(result.made_by);
      continue;
    }
    if (stage_.posting != nullptr) {
      made_by_[key_of(output)] = std::move(result.made_by);
      continue;
    }
    if (!are_one_batch(stage_)) {
      const OpRef sent = post({message(output, *to, true)}, std::move(result.made_by));
      if (!stage_.plan.overlap.pipeline) sent_.push_back(after(sent));
      continue;
    }
    batch.push_back(message(output, *to, true));
    append(made_by, std::move(result.made_by));
  }
  if (batch.empty()) return;
  const OpRef sent = post(batch, std::move(made_by));
  if (!stage_.plan.overlap.pipeline) sent_.push_back(after(sent));
}

}  // namespace stepsim

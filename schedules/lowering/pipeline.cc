#include "schedules/lowering/pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

namespace stepsim {
namespace {

std::string name_of(MessageKind kind) {
  return kind == MessageKind::kActivation ? "activation" : "gradient";
}

}  // namespace

StageMessages::StageMessages(Stage& stage)
    : stage_(stage),
      bytes_(stage.plan.sequence_parallel ? stage.boundary / stage.plan.tp : stage.boundary) {
  const auto here = static_cast<std::uint32_t>(stage.number);
  const auto open = [&](const std::string& what) { return stage.builder.add_stream(what); };
  if (!stage.is_first()) {
    forth_.receives = open("receive activation");
    back_.sends = open("send gradient");
    forth_.from = back_.to = here - 1;
  }
  if (!stage.is_last()) {
    forth_.sends = open("send activation");
    back_.receives = open("receive gradient");
    forth_.to = back_.from = here + 1;
  }
}

OpDraft StageMessages::draft(StreamId stream, MessageKind kind, std::int32_t microbatch,
                             bool is_send) {
  const auto here = static_cast<std::uint32_t>(stage_.number);
  const std::uint32_t peer = is_send ? way(kind).to : way(kind).from;
  OpDraft op{.stream = stream, .kind = OpKind::kMessages, .axis = Axis::kPipeline};
  op.work = stage_.tables.message({.is_send = is_send,
                                   .kind = kind,
                                   .communicator = *stage_.communicators.pipeline,
                                   .peer = peer,
                                   .microbatch = microbatch,
                                   .boundary = static_cast<std::int32_t>(std::min(here, peer)),
                                   .bytes = bytes_});
  op.label = stage_.label((is_send ? "send " : "receive ") + name_of(kind), -1, microbatch);
  op.memory_changes = {{.category = MemoryCategory::kBuffers, .at_end = false, .bytes = bytes_}};
  return op;
}

void StageMessages::receive(MessageKind kind, std::int32_t microbatch) {
  if (!way(kind).receives) return;
  received_ = stage_.builder.add(draft(*way(kind).receives, kind, microbatch, false));
  stage_.waits.push_back(after(*received_));
}

void StageMessages::computed() {
  if (!received_) return;
  stage_.builder.change_memory(
      *stage_.last_compute,
      {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = bytes_});
  received_.reset();
}

void StageMessages::send(MessageKind kind, std::int32_t microbatch) {
  if (!way(kind).sends) return;
  OpDraft op = draft(*way(kind).sends, kind, microbatch, true);
  op.dependencies = stage_.take_waits();
  op.dependencies.push_back(after(*stage_.last_compute));
  op.memory_changes.push_back(
      {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = bytes_});
  stage_.builder.add(std::move(op));
}

}  // namespace stepsim

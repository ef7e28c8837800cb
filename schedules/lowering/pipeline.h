// Messages between pipeline stages: a boundary's activations go to the next stage, their gradients
// come back. With sequence parallelism each tensor rank sends its own part of the tokens.
//
// A receive is posted when the one before it on its stream has arrived, ahead of its use: messages
// travel beside the compute (docs/decisions/0006). Its buffer is held from the post to the end of
// the first compute op that reads it; a send's while it goes.

#pragma once

#include <cstdint>
#include <optional>

#include "schedules/lowering/stage.h"

namespace stepsim {

class StageMessages {
 public:
  explicit StageMessages(Stage& stage);

  // The next compute op waits for the message; nothing where there is no such neighbour.
  void receive(MessageKind kind, std::int32_t microbatch);
  // To be called after each compute op: frees the buffer that it has read.
  void computed();
  // Sends what the last compute op, or the collective behind it, has made.
  void send(MessageKind kind, std::int32_t microbatch);

 private:
  struct Way {
    std::optional<StreamId> receives;
    std::optional<StreamId> sends;
    std::uint32_t from = 0;  // stages
    std::uint32_t to = 0;
  };
  Way& way(MessageKind kind) { return kind == MessageKind::kActivation ? forth_ : back_; }
  OpDraft draft(StreamId stream, MessageKind kind, std::int32_t microbatch, bool is_send);

  Stage& stage_;
  Bytes bytes_;
  Way forth_;                      // activations
  Way back_;                       // gradients
  std::optional<OpRef> received_;  // whose buffer the next compute op reads
};

}  // namespace stepsim

// Messages between pipeline stages: activations go to the next stage, and their gradients come
// back. With sequence parallelism each tensor rank sends its own part of the tokens. Nothing is
// sent if the neighbouring stage is on the same rank (the turn of a V).
//
// There is a stream for each combination of send or receive, peer, and activation or gradient, in
// the order of the rank's ops. If shares_ways() of the schedule says that the order may differ,
// each boundary has streams of its own. A receive is posted when the previous one on its stream has
// arrived, ahead of its use: messages travel beside the compute (docs/decisions.md, 6). The messages
// of a fused op are one batch at its start and one at its end, and each batch ends as a whole. Each
// direction has a stream for them.
//
// With plan.batch_p2p all messages are in one stream, in the batches of sends and receives that the
// schedule's runtime posts (posting.h). A batch starts when the compute before it in the rank's
// order has ended. The next op waits for the batch, or only the op whose input it brings.
//
// Without overlap (plan.overlap_pipeline) the next pass waits until the sends of the pass before it
// have arrived, as if a blocking batch of sends and receives stood between passes. Weight gradients
// don't wait, because nobody waits for them.
//
// The buffer of a receive is held from the post to the end of the first compute op that reads it.
// The buffer of a send is held until the send ends.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "schedules/lowering/stages/stage.h"

namespace stepsim {

// Handover is the activations or gradients that a pass over a chunk receives from the pass before
// it (its input) or hands to the next one. The loss counts as a stage behind the last one, on its
// rank.
struct Handover {
  MessageKind kind = MessageKind::kActivation;
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
};

class StageMessages {
 public:
  explicit StageMessages(Stage& stage);

  // Posts the batches that precede the op of this number in the rank's order (its size: after the
  // last op). Returns the ops that must end before that op starts. Returns nothing without batches.
  std::vector<Dependency> post_batches(std::size_t op);

  // Returns the ops that must end before passes with these inputs start. Posts the receives
  // together if they are not in batches.
  std::vector<Dependency> receive(const std::vector<Handover>& inputs);

  // Returns the buffer in which an input arrives; 0 if it does not come from another rank.
  Bytes buffer_of(const Handover& input) const;

  struct Result {
    Handover output;
    std::vector<Dependency> made_by;
  };
  // Hands on the results of passes. Posts their sends together if they are not in batches.
  void send(std::vector<Result> results);

 private:
  // Way describes the other end of a handover.
  struct Way {
    std::int32_t peer = 0;      // pipeline rank; nothing is sent if it is this one
    std::int32_t boundary = 0;  // between global stages boundary and boundary + 1
  };
  std::optional<Way> way(const Handover& handover, bool is_output) const;

  Bytes bytes_at(std::int32_t boundary) const;  // of a message over this boundary
  Message message(const Handover& handover, const Way& way, bool is_send) const;
  StreamId stream_for(const std::vector<Message>& batch);
  OpRef post(const std::vector<Message>& batch, std::vector<Dependency> dependencies);

  using Line = std::tuple<bool, std::vector<std::uint32_t>, std::vector<MessageKind>, std::int32_t>;
  std::int32_t boundary_of_line(std::int32_t boundary) const;
  Stage& stage_;
  std::map<Line, StreamId> streams_;  // by direction, peers, kinds in a batch, and boundary
  std::map<std::tuple<MessageKind, std::int32_t, std::int32_t>, std::vector<Dependency>>
      handed_;                    // handed over on this rank, by kind, micro-batch and boundary
  std::vector<Dependency> sent_;  // without overlap: sends since the last receive

  // The rest is for batches only.
  using HandoverKey = std::tuple<MessageKind, std::int32_t, std::int32_t>;  // micro-batch, chunk
  static HandoverKey key_of(const Handover& handover) {
    return {handover.kind, handover.microbatch, handover.chunk};
  }
  StreamId batches_{};
  std::size_t next_batch_ = 0;
  std::optional<OpRef> last_batch_{};
  std::map<HandoverKey, OpRef> brought_by_{};
  std::map<HandoverKey, std::vector<Dependency>> made_by_{};  // results that are not posted yet
};

}  // namespace stepsim

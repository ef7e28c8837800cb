// Messages between pipeline stages: a boundary's activations go to the next stage, their gradients
// come back. With sequence parallelism each tensor rank sends its own part of the tokens. Where the
// neighbouring stage is on the same rank (the turn of a V) nothing is sent.
//
// There is a stream for each of send and receive, peer, activation and gradient (and boundary,
// where shares_ways() of the schedule says that their order may differ), in the order of the rank's
// ops. A receive is posted when the one before it on its stream has arrived, ahead of its use:
// messages travel beside the compute (docs/decisions/0006). The messages of a fused op are one
// batch at its start and one at its end, which end together; each direction has a stream for them.
//
// With plan.batch_p2p all messages are in one stream, in batches of sends and receives as the
// runtime of the schedule posts them (posting.h): a batch goes when the compute before it in the
// rank's order has ended, and the next op waits for it, or only the one whose input it brings.
//
// Without overlap (plan.overlap_pipeline) the next pass waits until what the one before has sent
// has arrived, as where a blocking batch of sends and receives stands between passes. Weight
// gradients, which nobody waits for, don't wait.
//
// The buffer of a receive is held from the post to the end of the first compute op that reads it; a
// send's while it goes.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "schedules/lowering/stage.h"

namespace stepsim {

// The activations or gradients that a pass over a chunk takes from the pass before it (its input)
// or hands on to the next one. The loss counts as a stage behind the last one, on its rank.
struct Handover {
  MessageKind kind = MessageKind::kActivation;
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
};

class StageMessages {
 public:
  explicit StageMessages(Stage& stage);

  // Posts the batches that go before the op of this number in the rank's order (its size: behind
  // the last op). Returns the ops that must have ended before that op starts. Nothing without
  // batches.
  std::vector<Dependency> post_batches(std::size_t op);

  // The ops that must have ended before passes with these inputs start. Posts the receives
  // together, if they are not in batches.
  std::vector<Dependency> receive(const std::vector<Handover>& inputs);

  // The buffer in which an input arrives; 0 if it does not come from another rank.
  Bytes buffer_of(const Handover& input) const;

  struct Result {
    Handover output;
    std::vector<Dependency> made_by;
  };
  // Hands on what passes have made; posts their sends together, if they are not in batches.
  void send(std::vector<Result> results);

 private:
  // The other end of a handover.
  struct Way {
    std::int32_t peer = 0;      // rank of the pipeline; this one: nothing is sent
    std::int32_t boundary = 0;  // below it and above it: global stages boundary and boundary + 1
  };
  std::optional<Way> way(const Handover& handover, bool is_output) const;

  Message message(const Handover& handover, const Way& way, bool is_send) const;
  StreamId stream_for(const std::vector<Message>& batch);
  OpRef post(const std::vector<Message>& batch, std::vector<Dependency> dependencies);

  using Line = std::tuple<bool, std::vector<std::uint32_t>, std::vector<MessageKind>, std::int32_t>;
  std::int32_t boundary_of_line(std::int32_t boundary) const;
  Stage& stage_;
  Bytes bytes_;
  std::map<Line, StreamId> streams_;  // by send or receive, peers and kinds of a batch, boundary
  std::map<std::tuple<MessageKind, std::int32_t, std::int32_t>, std::vector<Dependency>>
      handed_;                    // on this rank, by kind, micro-batch and boundary
  std::vector<Dependency> sent_;  // without overlap, since the last receive

  // In batches.
  using HandoverKey = std::tuple<MessageKind, std::int32_t, std::int32_t>;  // micro-batch, chunk
  static HandoverKey key_of(const Handover& handover) {
    return {handover.kind, handover.microbatch, handover.chunk};
  }
  StreamId batches_{};
  std::size_t next_batch_ = 0;
  std::optional<OpRef> last_batch_{};
  std::map<HandoverKey, OpRef> brought_by_{};
  std::map<HandoverKey, std::vector<Dependency>> made_by_{};  // not yet posted
};

}  // namespace stepsim

// Offload keeps data on the chip's host that the chip needs only part of the time
// (sim/hardware/hosts.h describes the links).
//
//   optimizer    master weights and moments live on the host. On the chip (ZeRO-Infinity, arXiv
//                2104.07857): they stream through, bucket by bucket, at most two at a time: 2 x
//                optimizer_bytes a parameter that the rank updates. On the host (host_optimizer;
//                ZeRO-Offload, arXiv 2101.06840): reduced gradients go there, bucket by bucket
//                beside the backward, the host updates and the new weights come back:
//                gradient_bytes + weight bytes a parameter; the host reads gradient and state and
//                writes state and weight, bound by its memory
//   activations  what a block keeps goes out after its forward and comes back before its backward,
//                2 x what it keeps a micro-batch. The copy back begins with the layer that is
//                visited before it; a block does not begin its forward before what the last block
//                but one kept is out. So at most two blocks are on the chip beside those that stay
//
//   checkpoint   weights in 16 bits and the optimizer's state go out beside the step, each value
//                from one of the replicas that hold it; the optimizer waits until they are out
//
// Copies run on streams of their own, "host out" and "host in". Embedding and head stay on the
// chip. Not modelled: memory that the host's optimizer needs besides state and gradients.

#pragma once

#include <vector>

#include "schedules/lowering/stages/stage.h"

namespace stepsim {

// CompleteGradients is a bucket of complete gradients and the op that completed them: their
// reduction or their backward.
struct CompleteGradients {
  OpRef by;
  std::int64_t parameters = 0;  // this rank's share
};

// Adds the optimizer step with its state on the host, as offload_optimizer and host_optimizer ask.
// `ready`: ops after which all gradients exist. `valid`: ops after which the norm for clipping is
// known too. Returns the op after which the weights are new.
OpRef add_offloaded_optimizer(Stage& stage, std::vector<CompleteGradients> complete,
                              const std::vector<Dependency>& ready,
                              const std::vector<Dependency>& valid);

// Adds the copy of an asynchronous checkpoint, which begins with the step, and returns it.
OpRef add_checkpoint_copy(Stage& stage);

class ActivationOffload {
 public:
  explicit ActivationOffload(Stage& stage);

  // Called around the steps of a forward over a layer and before the steps of its backward (before
  // its first part, if it is split).
  void before_forward(const StageUnit& unit);
  void after_forward(const StageUnit& unit, std::int32_t microbatch);
  void before_backward(const StageUnit& unit, std::int32_t microbatch);

 private:
  struct Kept {
    const StageUnit* unit;
    std::int32_t microbatch;
    OpRef out;
  };
  void visit() { visited_ = std::exchange(visiting_, stage_.front().last_compute); }

  Stage& stage_;
  StreamId out_;
  StreamId in_;
  std::vector<Kept> kept_;           // activations now on the host
  std::vector<OpRef> outs_;          // all copies out so far
  std::optional<OpRef> visited_{};   // last compute op of the layer before the previous one
  std::optional<OpRef> visiting_{};  // last compute op of the previous layer
};

// Returns the bytes that the rank copies to and from its host in one step, computed from the plan.
Bytes offloaded_bytes(const Stage& stage);

}  // namespace stepsim

// lower_stage() writes the program of one pipeline rank. It unrolls each op of the rank's order
// into passes over the layers of a chunk, and each pass into the steps of those layers. Around them
// it adds what the plan asks for.
//
//   F    forward        B   steps of the split backward without weight gradients
//   BW   whole backward  W   the weight gradients
//   FB   a forward and a split backward by turns: one runs until it has posted a collective, and
//        while that is under way the other does. The backward begins, and does the weight gradients
//        of a stretch behind the collective of that stretch. So, with experts (DeepSeek-V3, arXiv
//        2412.19437, figure 4, and their trace):
//
//          compute   attn(F) mlp(B) mlp(W)   mlp(F)     attn(B) attn(W)  attn(F) ...
//          network   combine(B) | dispatch(F) | dispatch(B) | combine(F) |
//
// Streams of the program (only those that are needed):
//
//   compute                      kernels, one run after another
//   tp                           collectives that compute waits for
//   tp backward                  the same of backwards, in schedules with fused ops
//   tp regather                  inputs gathered again beside the backward pass
//   receive/send activation      messages (pipeline.h)
//   receive/send gradient
//   dp gradients, dp parameters  whole replicas (data_parallel.h)
//   fsdp gather, fsdp reduce     divided parameters (fully_sharded.h)
//   host out, host in, ...       what lies on the host (offload.h)
//
// A compute step waits for the tensor collective before it and, under FSDP, for its layer's
// parameters. The first step of a pass also waits for the message of the neighbouring stage.
// Activations are held from the forward to the end of the backward step that reads them. Workspaces
// are held while their step runs.

#pragma once

#include "schedules/lowering/stages/stage.h"

namespace stepsim {

Program lower_stage(Stage stage, Bytes fixed_memory);

}  // namespace stepsim

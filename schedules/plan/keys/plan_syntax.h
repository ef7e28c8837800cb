// Keys of a plan whose values have a syntax of their own, or set several members.
//
//   batch=64                global_batch by the name of inference
//   order=tp-cp-dp-pp       innermost axis first
//   map=tp:x/dp:y+z         tensor parallelism over level x, data parallelism over y and then z
//   layout=7,8*14,7         layers of each stage: 7, 14 times 8, and 7
//   schedule=1f1b           a name, `optimal`, or a file in the notation of `stepsim schedule`
//   recompute_modules=norm+mlp
//   lora_modules=qkv+out
//   state_bytes=16          all bytes of a parameter
//
// Readers return the problems of the text. Writers return a text that reads back.

#pragma once

#include "schedules/plan/parallel_plan.h"
#include "sim/fields/field.h"

namespace stepsim {

// Sets global_batch, and is never written.
extern const FieldSyntax<ParallelPlan> kBatchSyntax;
extern const FieldSyntax<ParallelPlan> kOrderSyntax;
extern const FieldSyntax<ParallelPlan> kMapSyntax;
// Reading needs the number of stages, so it comes after the schedule, the chunks and pp.
extern const FieldSyntax<ParallelPlan> kLayoutSyntax;
extern const FieldSyntax<ParallelPlan> kScheduleSyntax;
extern const FieldSyntax<ParallelPlan> kRecomputeModulesSyntax;
extern const FieldSyntax<ParallelPlan> kLoraModulesSyntax;
extern const FieldSyntax<ParallelPlan> kRecomputeKeepSyntax;
// Sets optimizer_bytes, gradient_bytes and hold_gradients, so it comes after the optimizer. It is
// written only if those two do not determine it: 10, which holds no gradients.
extern const FieldSyntax<ParallelPlan> kStateBytesSyntax;

}  // namespace stepsim

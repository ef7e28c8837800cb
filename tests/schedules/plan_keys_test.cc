// Keys that nothing in a plan acts on are refused, with what would be accepted. The same keys are
// accepted where they act, and so is a default that is written out.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/plan/parallel_plan.h"
#include "schedules/plan/plan_schedule.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;
using Change = std::function<void(ParallelPlan&)>;

// Eight ranks of a model with every feature.
ParallelPlan plan_of(std::int64_t tp, std::int64_t dp, std::int64_t pp, int zero = 0) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.state.zero = zero;
  plan.batch.global_batch = 8 * dp;
  plan.batch.sequence = 128;
  return plan;
}

ModelSpec with_experts() {
  ModelSpec model = small_model(8);
  model.experts = {.routed = 8, .per_token = 2, .intermediate = 256};
  return model;
}

ModelSpec mlp_stack() {
  return {.name = "stack",
          .kind = ModelKind::kMlpStack,
          .layers = 8,
          .hidden = 512,
          .mlp = {.width = 1024}};
}

struct Case {
  std::string field;
  Change change;
  ParallelPlan dead;   // plan in which the key is refused
  std::string says;    // a part of the message
  ParallelPlan alive;  // plan in which the key is accepted
  ModelSpec model = small_model(8);
  ModelSpec alive_model = small_model(8);
};

ParallelPlan with(ParallelPlan plan, const Change& change) {
  change(plan);
  return plan;
}

std::vector<Problem> problems(const ParallelPlan& plan, const ModelSpec& model) {
  return check(plan, model, one_node(static_cast<int>(plan.mesh.ranks()), 1_GBps).places);
}

std::vector<Case> cases() {
  using enum ScheduleName;
  const Change zb = [](ParallelPlan& plan) { plan.pipeline.schedule = kZeroBubbleH1; };
  const Change full = [](ParallelPlan& plan) { plan.recomputing.kind = Recompute::kFull; };
  const Change no_optimizer = [](ParallelPlan& plan) {
    plan.training.optimizer = Optimizer::kNone;
  };
  const Change bucket = [](ParallelPlan& plan) {
    plan.messages.gradient_bucket_parameters = 1'000'000;
  };
  const Change ahead = [](ParallelPlan& plan) { plan.state.prefetch = 3; };
  const Change saves_gathered = [](ParallelPlan& plan) { plan.buffers.save_gathered = true; };
  const Change keeps_root = [](ParallelPlan& plan) { plan.buffers.keep_root = true; };
  const Change none_ahead = [](ParallelPlan& plan) { plan.state.prefetch = 0; };
  const Change at_the_end = [](ParallelPlan& plan) { plan.overlap.gradients = false; };
  const Change tensor = [](ParallelPlan& plan) { plan.pieces.overlap_tensor = true; };
  const Change ulysses = [](ParallelPlan& plan) { plan.tensor.cp_mode = ContextMode::kUlysses; };
  const Change two_blocks = [](ParallelPlan& plan) { plan.recomputing.block = 2; };
  const Change even = [](ParallelPlan& plan) { plan.pipeline.layout = {1, 1, 1, 1, 1, 1, 1, 1}; };
  const Change uneven = [](ParallelPlan& plan) { plan.pipeline.layout = {1, 4, 2, 1}; };
  const Change offload = [](ParallelPlan& plan) { plan.offload.optimizer = true; };
  const Change saves = [](ParallelPlan& plan) { plan.offload.copy_checkpoint = true; };
  const Change ahead_of_norm = [](ParallelPlan& plan) {
    plan.update.clip_gradients = plan.update.post_validation = true;
  };
  const Change state = [](ParallelPlan& plan) { plan.update.optimizer_bytes = 8; };
  const Change sends_fp8 = [](ParallelPlan& plan) {
    plan.precision.communication_type = DataType::kFp8;
  };
  const Change combines_fp8 = [](ParallelPlan& plan) {
    plan.precision.combine_type = DataType::kFp8;
  };
  const Change scales = [](ParallelPlan& plan) { plan.narrow.scale_block = 128; };
  const Change fp8 = [](ParallelPlan& plan) { plan.precision.type = DataType::kFp8; };
  const Change mxfp8 = [](ParallelPlan& plan) { plan.precision.type = DataType::kMxfp8; };
  const Change by_row = [](ParallelPlan& plan) { plan.narrow.scale_rows = true; };
  const Change wide = [](ParallelPlan& plan) {
    plan.narrow.activation_input_type = DataType::kFp32;
  };
  const Change narrow = [](ParallelPlan& plan) {
    plan.narrow.activation_input_type = DataType::kFp8;
  };
  const Change two_level = [](ParallelPlan& plan) { plan.experts.dispatch = Dispatch::kTwoLevel; };
  const Change node = [](ParallelPlan& plan) { plan.experts.expert_node = 8; };
  const Change ep = [](ParallelPlan& plan) { plan.mesh.ep = 8; };
  const Change scores = [](ParallelPlan& plan) { plan.kernels.fused_attention = false; };
  const Change flash2 = [](ParallelPlan& plan) {
    plan.kernels.attention_library = AttentionLibrary::kFlash2;
  };
  const Change whole_inputs = [](ParallelPlan& plan) { plan.tensor.sequence_parallel = false; };
  const Change input_copies = [](ParallelPlan& plan) { plan.buffers.copy_inputs = true; };
  const Change gate = [](ParallelPlan& plan) { plan.kernels.eager_gate = true; };
  const Change eager = [](ParallelPlan& plan) { plan.kernels.eager_elementwise = true; };
  const Change holds = [](ParallelPlan& plan) { plan.loss.hold_logits = true; };
  const Change separate = [](ParallelPlan& plan) { plan.loss.kernels = LossKernels::kSeparate; };
  const Change metrics = [](ParallelPlan& plan) { plan.loss.metric_losses = 2; };
  const Change in_place = [](ParallelPlan& plan) { plan.loss.kernels = LossKernels::kInPlace; };
  const Change matmuls = [](ParallelPlan& plan) { plan.recomputing.kind = Recompute::kMatmuls; };
  const Change copies = [](ParallelPlan& plan) { plan.buffers.fsdp_copies = true; };
  const Change short_queue = [](ParallelPlan& plan) { plan.launches.host_queue_depth = 64; };
  const Change graphs = [](ParallelPlan& plan) { plan.launches.cuda_graphs = CudaGraphs::kBlocks; };
  const Change whole_graph = [](ParallelPlan& plan) {
    plan.launches.cuda_graphs = CudaGraphs::kStep;
  };
  const Change no_counts = [](ParallelPlan& plan) { plan.launches.host_reads_counts = false; };
  const Change host = [](ParallelPlan& plan) { plan.launches.host_launch_cost = 10us; };
  const Change adapters = [](ParallelPlan& plan) { plan.training.lora_rank = 8; };
  const Change adapted = [](ParallelPlan& plan) {
    plan.training.lora_modules = {AdapterPlace::kQkv};
  };
  const Change apart = [](ParallelPlan& plan) { plan.update.separate_accumulation = true; };
  const Change frees = [](ParallelPlan& plan) { plan.update.free_gradients = true; };
  const Change unheld = [](ParallelPlan& plan) {
    plan.update.hold_gradients = false;
    plan.batch.global_batch = plan.mesh.dp * plan.batch.microbatch_size;  // one micro-batch
  };
  const Change mlps = [](ParallelPlan& plan) { plan.training.lora_modules = {AdapterPlace::kMlp}; };
  const Change documents = [](ParallelPlan& plan) { plan.batch.document_length = 16; };
  const Change long_documents = [](ParallelPlan& plan) { plan.batch.document_length = 1 << 20; };
  ParallelPlan context = plan_of(2, 2, 1);
  context.mesh.cp = 2;
  const ParallelPlan experts = with(plan_of(1, 8, 1), ep);
  return {
      {"fsdp_copies", copies, plan_of(1, 8, 1, 2), "is true, but zero is 2", plan_of(1, 8, 1, 3)},
      {"host_queue_depth", short_queue, plan_of(1, 8, 1), "is 64, but launching costs nothing",
       with(plan_of(1, 8, 1), host)},
      {"cuda_graphs", graphs, plan_of(1, 8, 1), "is blocks, but launching costs nothing",
       with(plan_of(1, 8, 1), host)},
      {"cuda_graphs", whole_graph, with(experts, host), "is step, but the host reads",
       with(with(experts, host), no_counts), with_experts(), with_experts()},
      {"host_reads_counts", no_counts, experts, "is false, but launching costs nothing",
       with(experts, host), with_experts(), with_experts()},
      {"host_reads_counts", no_counts, with(plan_of(1, 8, 1), host), "no routed experts: true",
       with(experts, host), small_model(8), with_experts()},
      {"save_gathered", saves_gathered, plan_of(1, 8, 1, 2),
       "is true, but parameters are not dropped", plan_of(1, 8, 1, 3)},
      {"keep_root", keeps_root, plan_of(1, 8, 1, 2), "is true, but parameters are not dropped",
       plan_of(1, 8, 1, 3)},
      {"prefetch", ahead, plan_of(1, 8, 1), "is 3, but zero is 0", plan_of(1, 8, 1, 3)},
      {"prefetch", none_ahead, plan_of(1, 8, 1, 2), "is 0, but zero is 2", plan_of(1, 8, 1, 3)},
      {"gradient_bucket_parameters", bucket, plan_of(1, 8, 1, 3), "reduces layer by layer",
       plan_of(1, 8, 1, 2)},
      {"gradient_bucket_parameters", bucket, plan_of(2, 4, 1, 3), "is 1000000, but FSDP",
       with(plan_of(1, 8, 1, 3), offload)},
      {"overlap_gradients", at_the_end, plan_of(1, 8, 1, 2), "is false, but zero is 2",
       plan_of(1, 8, 1, 3)},
      {"overlap_tensor", tensor, plan_of(1, 8, 1), "with tp = 1", plan_of(2, 4, 1)},
      {"overlap_tensor", tensor, with(plan_of(2, 1, 4), zb), "but zb_h1 runs", plan_of(2, 1, 4)},
      {"cp_mode", ulysses, plan_of(2, 4, 1), "is ulysses, but with cp = 1", context},
      {"recompute_block", two_blocks, with(plan_of(1, 1, 8), full), "no stage has two blocks",
       with(plan_of(1, 2, 4), full)},
      {"recompute_block", two_blocks, with(with(plan_of(1, 1, 8), full), even),
       "no stage has two blocks", with(with(plan_of(1, 2, 4), full), uneven)},
      {"recompute_block", two_blocks, with(with(plan_of(1, 8, 1), full), zb),
       "on one stage of zb_h1", with(with(plan_of(1, 2, 4), full), zb)},
      {"offload_optimizer", offload, with(plan_of(1, 8, 1), no_optimizer), "optimizer is none",
       plan_of(1, 8, 1)},
      {"copy_checkpoint", saves, with(plan_of(1, 8, 1), offload), "is true, but offload_optimizer",
       plan_of(1, 8, 1)},
      {"post_validation", ahead_of_norm, with(plan_of(1, 2, 4), no_optimizer), "optimizer is none",
       plan_of(1, 2, 4)},
      {"post_validation", ahead_of_norm, plan_of(1, 8, 1, 1), "single stage waits for no other",
       plan_of(1, 2, 4)},
      {"optimizer_bytes", state, with(plan_of(1, 8, 1), no_optimizer), "is 8, but optimizer is",
       plan_of(1, 8, 1)},
      {"communication_dtype", sends_fp8, plan_of(1, 2, 4), "is fp8, but with tp = 1",
       plan_of(2, 1, 4)},
      {"combine_dtype", combines_fp8, plan_of(1, 8, 1), "with ep = 1", experts, with_experts(),
       with_experts()},
      {"scale_block", scales, plan_of(1, 8, 1), "no values have one byte",
       with(plan_of(1, 8, 1), fp8)},
      {"scale_block", scales, with(plan_of(1, 8, 1), mxfp8), "and scales of the plan",
       with(plan_of(1, 8, 1), fp8)},
      {"scale_rows", by_row, with(plan_of(1, 8, 1), mxfp8), "is true, but dtype is mxfp8",
       with(plan_of(1, 8, 1), fp8)},
      {"scale_rows", by_row, with(with(plan_of(1, 8, 1), fp8), scales), "one of the two",
       with(plan_of(1, 8, 1), fp8)},
      {"activation_input_dtype", wide, plan_of(1, 8, 1), "is fp32, but activations are bf16",
       with(plan_of(1, 8, 1),
            [](ParallelPlan& plan) { plan.precision.activation_type = DataType::kFp32; })},
      {"dispatch", two_level, plan_of(1, 8, 1), "with ep = 1", experts, with_experts(),
       with_experts()},
      {"expert_node", node, experts, "only dispatch = two_level", with(experts, two_level),
       with_experts(), with_experts()},
      {"fused_attention", scores, plan_of(1, 8, 1), "no attention", plan_of(1, 8, 1), mlp_stack()},
      {"attention_library", flash2, with(plan_of(1, 8, 1), scores), "no kernel of attention",
       plan_of(1, 8, 1)},
      {"attention_library", flash2, plan_of(1, 8, 1), "no attention", plan_of(1, 8, 1),
       mlp_stack()},
      {"loss", in_place, plan_of(1, 8, 1), "no loss", plan_of(1, 8, 1), mlp_stack()},
      {"copy_inputs", input_copies, plan_of(1, 8, 1), "no tensor ranks share whole inputs",
       with(plan_of(2, 4, 1), whole_inputs)},
      {"eager_gate", gate, with(plan_of(1, 8, 1), eager), "eager_elementwise is true",
       plan_of(1, 8, 1)},
      {"hold_logits", holds, plan_of(1, 8, 1), "is true, but loss is fused",
       with(plan_of(1, 8, 1), separate)},
      {"metric_losses", metrics, plan_of(1, 8, 1), "no loss", plan_of(1, 8, 1), mlp_stack()},
      {"activation_input_dtype", narrow, plan_of(1, 8, 1), "no activation functions",
       plan_of(1, 8, 1), mlp_stack()},
      {"separate_accumulation", apart, plan_of(1, 8, 1, 2), "zero is 2", plan_of(1, 8, 1, 1)},
      {"free_gradients", frees, with(plan_of(1, 8, 1), apart), "keeps flat buffers",
       plan_of(1, 8, 1)},
      {"free_gradients", frees, with(plan_of(1, 8, 1), unheld), "holds no gradients",
       plan_of(1, 8, 1)},
      {"separate_accumulation", apart,
       with(plan_of(1, 8, 1), [](ParallelPlan& plan) { plan.update.gradient_bytes = 2; }),
       "no fp32 sums", plan_of(1, 8, 1)},
      {"separate_accumulation", apart, with(plan_of(1, 8, 1), adapters), "those of adapters",
       plan_of(1, 8, 1)},
      {"separate_accumulation", apart, plan_of(1, 8, 1), "written, not summed up", plan_of(1, 8, 1),
       mlp_stack()},
      {"lora_modules", adapted, plan_of(1, 8, 1), "without lora_rank nothing has adapters",
       with(plan_of(1, 8, 1), adapters)},
      {"lora_modules", mlps, with(experts, adapters), "nothing would be trained",
       with(plan_of(1, 8, 1), adapters), with_experts()},
      {"document_length", long_documents, plan_of(1, 8, 1), "but a sequence has",
       with(plan_of(1, 8, 1), [](ParallelPlan& plan) { plan.batch.sequence = 1 << 20; })},
      {"document_length", documents, plan_of(1, 8, 1), "no attention", plan_of(1, 8, 1),
       mlp_stack()},
      {"recompute", matmuls, plan_of(1, 8, 1), "is matmuls", plan_of(1, 8, 1), mlp_stack()},
  };
}

TEST(PlanKeysTest, KeysThatNothingActsOnAreRefused) {
  for (const Case& of : cases()) {
    SCOPED_TRACE(of.field + ": " + of.says);
    EXPECT_EQ(problems(of.dead, of.model), std::vector<Problem>{}) << "without the key";
    const std::vector<Problem> found = problems(with(of.dead, of.change), of.model);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].field, of.field);
    EXPECT_NE(found[0].message.find(of.says), std::string::npos) << found[0].message;
    EXPECT_EQ(problems(with(of.alive, of.change), of.alive_model), std::vector<Problem>{});
  }
}

// Values in a format with scales of its own exist only where a matmul reads them.
TEST(PlanKeysTest, FormatsWithScalesAreForMatmuls) {
  ParallelPlan plan = plan_of(2, 4, 1);
  plan.precision.type = DataType::kNvfp4;
  EXPECT_EQ(problems(plan, small_model(8)), std::vector<Problem>{});
  EXPECT_EQ(plan.weights(), DataType::kBf16);
  plan.narrow.activation_input_type = plan.precision.communication_type = DataType::kNvfp4;
  const std::vector<Problem> found = problems(plan, small_model(8));
  ASSERT_EQ(found.size(), 2U);
  for (const Problem& problem : found) {
    EXPECT_NE(problem.message.find("is nvfp4, a format for dtype alone"), std::string::npos);
  }
}

// FSDP's part of the state has no layers. With parts as small as one parameter there would be
// millions of copies.
TEST(PlanKeysTest, StateOnTheHostMovesInLargeParts) {
  ParallelPlan plan = plan_of(1, 8, 1, 3);
  plan.offload.optimizer = true;
  for (const std::int64_t bucket : {999'999, 1'000'000}) {
    plan.messages.gradient_bucket_parameters = bucket;
    EXPECT_EQ(problems(plan, small_model(8)).empty(), bucket == 1'000'000);
  }
}

// Keys that switch off or limit something that does not exist are refused. Sizes of axes change;
// other keys stay.
TEST(PlanKeysTest, SwitchesAreOffWhereThereIsNothing) {
  ParallelPlan plan = plan_of(1, 1, 1, 1);
  plan.tensor.sequence_parallel = plan.overlap.pipeline = plan.overlap.gradients = false;
  plan.messages.gradient_bucket_parameters = 1000;
  EXPECT_EQ(problems(plan, small_model(8)), std::vector<Problem>{});
}

TEST(PlanKeysTest, DefaultsThatAreWrittenOutAreFine) {
  ParallelPlan plan = plan_of(1, 8, 1);
  plan.precision.communication_type = plan.precision.combine_type =
      plan.narrow.activation_input_type = DataType::kBf16;
  EXPECT_EQ(problems(plan, with_experts()), std::vector<Problem>{});
}

// Checks what plans assume about published schedules against the schedules that are made.
TEST(PlanKeysTest, SchedulesThatSplitAllBackwardsAreKnown) {
  for (const ScheduleName name : all_schedules()) {
    const ScheduleRequest request{.name = name,
                                  .stages = 4,
                                  .microbatches = name == ScheduleName::kNaive ? 1 : 16,
                                  .chunks = published(name).default_chunks()};
    ASSERT_EQ(check(request), std::vector<Problem>{}) << name_of(name);
    bool whole = false;
    for (const std::vector<PipelineOp>& order : make_schedule(request).ranks) {
      whole = whole || std::ranges::count(order, PipelineOpKind::kBackward, &PipelineOp::kind) > 0;
    }
    ParallelPlan plan = plan_of(1, 1, 4);
    plan.pipeline.schedule = name;
    EXPECT_EQ(splits_all_backwards(plan.pipeline), !whole) << name_of(name);
  }
}

TEST(PlanKeysTest, OverlappedExpertsOfOtherSchedulesAreRefusedInTheWordsOfThePlan) {
  ParallelPlan plan = plan_of(1, 4, 2);
  plan.mesh.ep = 4;
  plan.overlap.expert_parallel = true;
  plan.pipeline.schedule = ScheduleName::kNaiveSequential;
  const std::vector<Problem> found = problems(plan, with_experts());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], (Problem{"overlap_expert_parallel",
                               "is true, but with naive_sequential a forward that runs by turns "
                               "with the backward before it would wait for the end of that "
                               "backward on another rank: eager_1f1b, interleaved_1f1b, or 1f1b on "
                               "one stage"}));
}

}  // namespace
}  // namespace stepsim

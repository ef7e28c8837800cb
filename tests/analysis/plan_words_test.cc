// What tables of training runs say of a plan in words.

#include "analysis/accuracy/plan_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/accuracy/simulate_training_run.h"
#include "analysis/accuracy/training_run.h"
#include "proto/catalog/measured_tables.h"
#include "proto/load_experiment.h"
#include "sim/base/csv_table.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

TEST(PlanWordsTest, StagesOfZero) {
  for (const char* words : {"3", "3 (FSDP)", "ZeRO-3", "zero stage 3", "FSDP2", "Full Shard"}) {
    EXPECT_EQ(zero_of_words(words), 3) << words;
  }
  for (const char* words : {"2", "FSDP: optimizer+gradient", "SHARD_GRAD_OP", "ZeRO-2"}) {
    EXPECT_EQ(zero_of_words(words), 2) << words;
  }
  for (const char* words : {"1", "ZeRO-1", "distributed optimizer", "Distributed_Adam"}) {
    EXPECT_EQ(zero_of_words(words), 1) << words;
  }
  for (const char* words : {"", "0", "no", "none", "unknown (0 in a model)", "DDP", "zero: off",
                            "zero_optimization=False", "ddp (FSDP NO_SHARD)"}) {
    EXPECT_EQ(zero_of_words(words), 0) << words;
  }
  for (const char* words : {"sharded data parallel", "ZeRO optimizer", "mcore_distrib_optim"}) {
    EXPECT_EQ(zero_of_words(words), 1) << words;
  }
  for (const char* words : {"12", "4", "some"}) EXPECT_EQ(zero_of_words(words), std::nullopt);
}

TEST(PlanWordsTest, Schedules) {
  using enum ScheduleName;
  const std::vector<std::pair<const char*, ScheduleName>> cases = {
      {"", kOneForwardOneBackward},
      {"1F1B (interleaving not stated)", kOneForwardOneBackward},
      {"interleaved/1F1B not stated", kOneForwardOneBackward},
      {"non-interleaved 1F1B", kOneForwardOneBackward},
      {"Interleaved 1F1B, one layer per chunk", kInterleaved},
      {"VPP", kInterleaved},
      {"ZB-2p (auto, memory = 2x)", kZeroBubbleAuto2P},
      {"zb_1p", kZeroBubbleAuto1P},
      {"ZB-V", kZeroBubbleVAuto},
      {"Zero Bubble", kZeroBubbleH1},
      {"ZB-H2", kZeroBubbleH2},
      {"DualPipe", kDualPipe},
      {"DualPipeV", kDualPipeV},
      {"DeepSpeed pipeline (1F1B)", kOneForwardOneBackward},
      {"GPipe", kGPipe}};
  for (const auto& [words, name] : cases) EXPECT_EQ(schedule_of_words(words), name) << words;
  EXPECT_EQ(schedule_of_words("a new one"), std::nullopt);
}

TEST(PlanWordsTest, Overlaps) {
  const OverlapWords words(
      "overlap_grad_sync;ub_tp_comm_overlap=True;FULL_CUDA_GRAPH=0;moe_a2a_overlap: false");
  EXPECT_TRUE(words.says("overlapgradsync"));
  EXPECT_TRUE(words.says("tpcommoverlap"));
  EXPECT_FALSE(words.denies("tpcommoverlap"));
  EXPECT_TRUE(words.denies("fullcudagraph"));
  EXPECT_TRUE(words.denies("moea2aoverlap"));
  EXPECT_FALSE(words.says("moea2aoverlap"));
  EXPECT_FALSE(words.says("overlapparamgather") || words.denies("overlapparamgather"));
  for (const char* no : {"no tp_comm_overlap", "a; without tp_comm_overlap", "tp_comm_overlap=off",
                         "TP_COMM_OVERLAP: disabled", "tp_comm_overlap_cfg=1, tp_comm_overlap=0"}) {
    EXPECT_TRUE(OverlapWords(no).denies("tpcommoverlap")) << no;
  }
  EXPECT_TRUE(OverlapWords("cuda_graphs=False").denies("cudagraph"));
  const OverlapWords longer("overlap_param_gather_with_optimizer_step=False");
  EXPECT_FALSE(longer.says("overlapparamgather") || longer.denies("overlapparamgather"));
}

TEST(PlanWordsTest, Yes) {
  for (const char* words : {"yes", "Yes (SP)", "True", "on", "1", "Y"}) {
    EXPECT_TRUE(says_yes(words)) << words;
  }
  for (const char* words : {"", "no", "not stated", "false", "0", "0 (False)", "10", "unknown"}) {
    EXPECT_FALSE(says_yes(words)) << words;
  }
}

TEST(PlanWordsTest, SequenceParallelism) {
  for (const char* words :
       {"yes", "1 (True)", "sequence_parallel true", "sequence_parallel: 1", "--sequence-parallel",
        "sequence parallelism enabled", "model and sequence parallelism (Korthikanti et al.)",
        "flag passed (TP 1)"}) {
    EXPECT_TRUE(divides_sequence(words)) << words;
  }
  for (const char* words :
       {"", "no", "0 (False)", "sequence_parallel: false", "sequence_parallel 0",
        "no sequence parallelism", "ring attention", "context parallelism",
        "sequence_parallel_size 8 (Ulysses-like all-to-all)"}) {
    EXPECT_FALSE(divides_sequence(words)) << words;
  }
}

TrainingRun run_of(const std::string& columns, const std::string& values) {
  const std::filesystem::path path = temporary_folder() / "run.csv";
  std::ofstream(path) << columns << "\n" << values << "\n";
  return training_run(read_csv(path.string()), 0,
                      {.hardware = load_hardware(),
                       .machines = load_machines(),
                       .software = load_software(),
                       .models = load_measured_models(),
                       .catalog = load_catalog_models()},
                      "");
}

// A run of Llama 3 70B on 64 H100 with these columns besides.
TrainingRun run_with(const std::string& columns, const std::string& values) {
  return run_of(
      "source_id,chip,chip_count,model,seq_len,global_batch,micro_batch,recompute,"
      "step_time_s," +
          columns,
      "mine,H100,64,llama3-70b,4096,64,1,full,1.0," + values);
}

TrainingRun readable_run(const std::string& columns, const std::string& values) {
  TrainingRun run = run_with(columns, values);
  EXPECT_EQ(run.problem, "") << values;
  return run;
}

TEST(PlanWordsTest, LibrariesOfAttentionAreNamed) {
  using enum AttentionLibrary;
  const std::vector<std::pair<std::string, std::optional<AttentionLibrary>>> texts = {
      {"flash_attention_2", kFlash2},
      {"Flash attention 2", kFlash2},
      {"flash_attention2 + RMS kernel", kFlash2},
      {"flash_attentionv1.0.8", kFlash1},
      {"use_flash_attn: True (FlashAttention 1)", kFlash1},
      {"varlen attention (FA4)", kFlash4},
      {"Flash Attention 3; window pattern SSSL", kFlash3},
      {"cudnn_flash_te", kCudnn},
      {"flash (PyTorch SDPA)", kFlash2},
      {"F.scaled_dot_product_attention, causal", kFlash2},
      {"flash3", kFlash3},
      {"flash attention v3", kFlash3},
      {"flash-attn 1.0.9", kFlash1},
      {"use_fa2", std::nullopt},
      {"use_flash_attention 1", std::nullopt},
      {"use_flash_attn=1", std::nullopt},
      {"flash attention 16k", std::nullopt},
      {"flash attention 2048 tokens", std::nullopt},
      {"alfa2", std::nullopt},
      {"TE fused", std::nullopt},
      {"flash attention", std::nullopt},
      {"", std::nullopt}};
  for (const auto& [text, library] : texts) {
    EXPECT_EQ(attention_library_of_words(text, std::nullopt), library) << text;
  }
  EXPECT_EQ(attention_library_of_words("SDPA", kCudnn), kCudnn);
}

TEST(PlanWordsTest, AMachineHasItsCloudsNetwork) {
  const auto card = [](const std::string& network) {
    const TrainingRun run = run_with("dp,inter_node", "64," + network);
    EXPECT_EQ(run.problem, "") << network;
    return std::get<DgxSuperPodSpec>(run.experiment.cluster.topology).nic_bandwidth.value() / 1e9;
  };
  EXPECT_EQ(card("A3 VM"), 12.5);
  EXPECT_EQ(card("EFA (p5.48xlarge)"), 50);
  EXPECT_EQ(card("A3 VM; 4x 100 Gb/s"), 6.25) << "a rate that is given goes first";
}

TEST(PlanWordsTest, InterleavedHasSeveralChunks) {
  const TrainingRun open = run_with("pp,dp,schedule", "8,8,interleaved 1F1B");
  ASSERT_EQ(open.problem, "");
  EXPECT_EQ(open.experiment.plan.pipeline.schedule, ScheduleName::kInterleaved);
  EXPECT_EQ(open.experiment.plan.pipeline.chunks, 2);
  EXPECT_EQ(std::ranges::count(open.assumed, "virtual_stages: 2"), 1);

  const ParallelPlan five = run_with("pp,dp,schedule,virtual_stages", "8,8,1F1B,5").experiment.plan;
  EXPECT_EQ(five.pipeline.schedule, ScheduleName::kInterleaved);
  EXPECT_EQ(five.pipeline.chunks, 5);

  const ParallelPlan one =
      run_with("pp,dp,schedule,virtual_stages", "8,8,interleaved,1").experiment.plan;
  EXPECT_EQ(one.pipeline.schedule, ScheduleName::kOneForwardOneBackward);

  EXPECT_EQ(run_with("pp,dp,schedule", "8,8,DualPipeV").experiment.plan.pipeline.schedule,
            ScheduleName::kDualPipeV);
  const TrainingRun unknown = run_with("pp,dp,schedule", "8,8,a new one");
  EXPECT_EQ(unknown.experiment.plan.pipeline.schedule, ScheduleName::kOneForwardOneBackward);
  EXPECT_EQ(std::ranges::count(unknown.assumed, "schedule \"a new one\" is not known: 1F1B"), 1);
}

TEST(PlanWordsTest, AsynchronousTensorRanksCutAChunkForEach) {
  const std::string columns = "tp,dp,sequence_parallel,overlap";
  EXPECT_EQ(run_with(columns, "8,8,True,FSDP + async TP").experiment.plan.pieces.tensor_chunks, 8);
  EXPECT_EQ(run_with(columns, "8,8,True,FSDP + TP").experiment.plan.pieces.tensor_chunks, 1);
}

TEST(PlanWordsTest, Adapters) {
  using enum AdapterPlace;
  const auto read = [](const char* text) { return adapters_of_words(text); };
  EXPECT_EQ(read("Llama 2 70B (LoRA rank 16)").rank, 16);
  EXPECT_EQ(read("llama-7b (LoRA r8 q,v)").rank, 8);
  EXPECT_EQ(read("llama-7b (LoRA r8 q,v)").places, std::vector{kQkv});
  EXPECT_EQ(read("Qwen2-7B (LoRA r4 q,k,v,o)").places, (std::vector{kQkv, kOut}));
  EXPECT_EQ(read("falcon-40b (LoRA r64, all linear)").places, Adapters{}.places);
  EXPECT_EQ(read("lora rank=32 attention").places, (std::vector{kQkv, kOut}));
  EXPECT_EQ(read("QLoRA q_proj,o_proj").places, (std::vector{kQkv, kOut}));
  EXPECT_EQ(read("lora_rank=16").rank, 16);
  EXPECT_EQ(read("LLAMA2-7B LoRA, 8 nodes, flash attention").rank, std::nullopt);
  EXPECT_EQ(read("LLAMA2-7B LoRA, 8 nodes, flash attention").places, std::vector<AdapterPlace>{});
  EXPECT_EQ(read("rl-lora16").rank, 16);
  for (const char* silent : {"LLAMA3_70B (LoRA) 128 GPUs", "LoRA", "kv_lora_rank=512", ""}) {
    EXPECT_EQ(read(silent).rank, std::nullopt) << silent;
    EXPECT_EQ(read(silent).places, std::vector<AdapterPlace>{}) << silent;
  }
  EXPECT_TRUE(says_lora("task=LoRA Performance"));
  EXPECT_TRUE(says_lora("QLoRA"));
  EXPECT_TRUE(says_lora("lora_rank=16"));
  EXPECT_FALSE(says_lora("from an exploration"));
  EXPECT_FALSE(says_lora("q_lora_rank=1536 kv_lora_rank=512"));
}

// NVIDIA's tables of fine-tuning pack SQuAD, and adapt queries, keys and values.
TEST(PlanWordsTest, RecipesOfTuning) {
  const std::string columns = "dp,software,other_metrics";
  const ParallelPlan lora =
      run_with(columns, "64,NeMo 25.02,task=LoRA Performance").experiment.plan;
  EXPECT_EQ(lora.training.lora_rank, 32);
  EXPECT_EQ(lora.training.lora_modules, std::vector{AdapterPlace::kQkv});
  EXPECT_EQ(lora.batch.document_length, 200);
  const ParallelPlan own = run_with(columns, "64,NeMo 25.02,LoRA r16 q+k+v+o+mlp").experiment.plan;
  EXPECT_EQ(own.training.lora_rank, 16);
  EXPECT_EQ(own.training.lora_modules, Adapters{}.places) << "the row's own, not the recipe's";
  const TrainingRun whole = run_with(columns, "64,NeMo 25.02,kind=SFT");
  EXPECT_EQ(whole.problem, "");
  EXPECT_EQ(whole.experiment.plan.batch.document_length, 200);
  EXPECT_EQ(whole.experiment.plan.training.lora_rank, std::nullopt);
  EXPECT_EQ(std::ranges::count(whole.assumed, "document_length: 200"), 1);
  EXPECT_EQ(run_with(columns, "64,NeMo 25.02,").experiment.plan.batch.document_length, 0);
}

// A source's own entry holds, unless the row names other software, or another release of it.
TEST(PlanWordsTest, SoftwareOfASource) {
  const std::string columns = "source_ref,dp,tp,sequence_parallel,software,release";
  const auto assumes_none = [&](const std::string& values) {
    const TrainingRun run = run_with(columns, values);
    EXPECT_EQ(run.problem, "") << values;
    return std::ranges::any_of(run.assumed, [](const std::string& text) {
      return text.find("is not known: as if none were given") != std::string::npos;
    });
  };
  EXPECT_FALSE(assumes_none("x-sft-full-8,64,1,no,prime-rl,2026-01-15"));
  EXPECT_EQ(
      run_with(columns, "x-sft-full-8,64,1,no,prime-rl,2026-01-15").experiment.plan.loss.kernels,
      LossKernels::kSeparate);
  EXPECT_EQ(run_with(columns, "x,64,1,no,prime-rl,").experiment.plan.loss.kernels,
            LossKernels::kFused);
  EXPECT_TRUE(assumes_none("x-sft-full-8,64,1,no,something else,"));
  // NeMo 25 transposes on Hopper.
  EXPECT_TRUE(run_with(columns, "x,8,8,yes,NeMo,25.02").experiment.plan.narrow.transpose_operands);
  EXPECT_TRUE(run_with(columns, "x,8,8,yes,NeMo,25.02").experiment.plan.narrow.gather_narrow);
}

// PyTorch's linear layers keep what was gathered for them, but under Hugging Face's Trainer, and
// with the weights of a stage that divides none.
TEST(PlanWordsTest, DeepSpeedAloneKeepsGatheredWeights) {
  const std::string columns = "dp,tp,sequence_parallel,zero_stage,software";
  const auto saves = [&](const std::string& values) {
    return readable_run(columns, values).experiment.plan.buffers.save_gathered;
  };
  EXPECT_TRUE(saves("64,1,no,3,PyTorch 2.2 and DeepSpeed 0.14.2"));
  EXPECT_FALSE(saves("64,1,no,2,DeepSpeed"));
  EXPECT_FALSE(saves("64,1,no,3,transformers Trainer and DeepSpeed"));
  EXPECT_FALSE(saves("64,1,no,3 (reshard never),DeepSpeed"));
}

// PyTorch's FSDP keeps the embedding gathered, if weights are dropped after each pass.
TEST(PlanWordsTest, TheOutermostUnitOfFsdpStays) {
  const std::string columns = "dp,tp,sequence_parallel,zero_stage,software";
  const auto keeps = [&](const std::string& values) {
    return readable_run(columns, values).experiment.plan.buffers.keep_root;
  };
  EXPECT_TRUE(keeps("64,1,no,FSDP,transformers"));
  EXPECT_FALSE(keeps("64,1,no,0,transformers"));
  EXPECT_FALSE(keeps("64,1,no,FSDP (reshard never),transformers"));
}

// Remainders of the weights (2 bytes) and two moments; without bf16 weights, whole ones.
TEST(PlanWordsTest, PrecisionAwareOptimizersNameTheirTypes) {
  const std::string columns = "dp,tp,sequence_parallel,dtype,other_metrics";
  const auto bytes = [&](const std::string& values) {
    return readable_run(columns, values).experiment.plan.update.optimizer_bytes;
  };
  EXPECT_EQ(bytes("8,8,yes,bf16,step of 4 s"), 12);
  EXPECT_EQ(bytes("8,8,yes,bf16,use_precision_aware_optimizer"), 10);
  const std::string both =
      "use_precision_aware_optimizer; exp_avg_dtype bf16; exp_avg_sq_dtype=bf16";
  EXPECT_EQ(bytes("8,8,yes,bf16," + both), 6);
  EXPECT_EQ(bytes("8,8,yes,fp8 blockwise," + both), 8);
  EXPECT_EQ(bytes("8,8,yes,bf16,--use-precision-aware-optimizer --exp-avg-dtype fp8"), 7);
}

// Until December 2025 torchtitan's checkpoints made cuDNN's attention again.
TEST(PlanWordsTest, CheckpointsKnowTheKernelsOfTheirTime) {
  const auto recompute = [](const std::string& chip, const std::string& release) {
    const TrainingRun run = run_of(
        "source_id,chip,chip_count,model,seq_len,global_batch,dp,zero_stage,recompute,"
        "step_time_s,software,release",
        "mine," + chip + ",8,llama3-8b,8192,8,8,FSDP2,per-op SAC,1,torchtitan," + release);
    EXPECT_EQ(run.problem, "");
    return run.experiment.plan.recomputing.kind;
  };
  EXPECT_EQ(recompute("B200", "2025-08"), Recompute::kAlternateMatmuls);
  EXPECT_EQ(recompute("H100", "2025-08"), Recompute::kAlternate);
  EXPECT_EQ(recompute("B200", "2026-01"), Recompute::kAlternate);
}

// DeepSpeed's ZeRO 1 and 2 copy a rank's gradients flat, but not its BF16_Optimizer, nor a host.
TEST(PlanWordsTest, FlatCopiesOfGradientsAreOfZero1And2) {
  const std::string columns = "dp,tp,sequence_parallel,zero_stage,dtype,software";
  const auto bytes = [&](const std::string& values) {
    return readable_run(columns, values).flat_gradient_bytes;
  };
  EXPECT_EQ(bytes("8,8,no,1,fp16,Megatron-DeepSpeed (DeepSpeed 0.11.1)"), 6);
  EXPECT_EQ(bytes("64,1,no,2,bf16,transformers and DeepSpeed"), 6);
  EXPECT_EQ(bytes("64,1,no,3,bf16,transformers and DeepSpeed"), 0);
  EXPECT_EQ(bytes("64,1,no,2 with offload_optimizer,bf16,transformers and DeepSpeed"), 0);
  EXPECT_EQ(bytes("8,8,no,0,bf16,Megatron-DeepSpeed (DeepSpeed 0.11.1)"), 0);
  EXPECT_EQ(bytes("8,8,no,1,bf16,Megatron-LM"), 0);
}

// What the allocator does not use is there while the chip has room for it.
TEST(RunPredictionTest, UnusedMemoryEndsWithTheChips) {
  RunPrediction run{.tensor_bytes = 60, .unused_bytes = 6, .fixed_bytes = 2, .capacity_bytes = 80};
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kAllocated), 60);
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kReserved), 66);
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kDevice), 68);
  run.capacity_bytes = 65;
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kReserved), 63);
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kDevice), 65);
  run.capacity_bytes = 50;  // the tensors alone don't fit
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kDevice), 62);
}

}  // namespace
}  // namespace stepsim

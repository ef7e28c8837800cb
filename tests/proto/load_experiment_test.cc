#include "proto/load_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "proto/catalog/measured_tables.h"
#include "sim/base/units.h"
#include "tests/support/experiment_case.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

using namespace literals;

class LoadExperimentTest : public ExperimentCase {};

constexpr const char* kText = R"(
# A whole experiment without the catalog.
name: "small"
model { layers: 4 hidden: 512 intermediate: 1024 heads: 8 vocabulary: 1000 norm: "layer" }
cluster {
  name: "ring"
  chip {
    name: "chip"
    peak { type: "bf16" throughput: "100TFLOPS" }
    peak { type: "fp32" throughput: "1e13" }
    memory_bandwidth: "1TB/s"
    memory_capacity: "16GiB"
    launch_overhead: "2us"
    efficiency { matmul { peak_fraction: 0.5 tile_m: 128 } memory_ramp: "1MiB" }
    communication { compute_share: 0.25 }
  }
  torus { axes { size: 4 wraps: true } axes { size: 2 } link_bandwidth: "400Gbps" link_latency: "1us" }
}
plan { tp: 4 dp: 2 zero: 3 microbatch: 2 global_batch: 8 sequence: 128 dtype: "bf16"
       map: "tp:x/dp:y" order: "dp-tp-cp-pp" overlap_tensor: true prefetch: 3 }
)";

constexpr const char* kJson = R"({
  "name": "small",
  "model": {"layers": 4, "hidden": 512, "intermediate": 1024, "heads": 8, "vocabulary": 1000,
            "norm": "layer", "head_dim": null},
  "cluster": {
    "name": "ring",
    "chip": {
      "name": "chip",
      "peak": [{"type": "bf16", "throughput": "100TFLOPS"}, {"type": "fp32", "throughput": 1e13}],
      "memory_bandwidth": "1TB/s", "memory_capacity": "16GiB", "launch_overhead": "2us",
      "efficiency": {"matmul": {"peak_fraction": 0.5, "tile_m": 128}, "memory_ramp": "1MiB"},
      "communication": {"compute_share": 0.25}},
    "torus": {"axes": [{"size": 4, "wraps": true}, {"size": 2}],
              "link_bandwidth": "400Gbps", "link_latency": "1us"}},
  "plan": {"tp": 4, "dp": 2, "zero": 3, "microbatch": 2, "global_batch": 8, "sequence": 128,
           "dtype": "bf16", "map": "tp:x/dp:y", "order": "dp-tp-cp-pp", "overlap_tensor": true,
           "prefetch": 3}
})";

void expect_small(const Experiment& experiment) {
  EXPECT_EQ(experiment.name, "small");
  EXPECT_EQ(experiment.model.layers, 4);
  EXPECT_EQ(experiment.model.attention.kv_heads, 8) << "as many as heads unless given";
  EXPECT_EQ(experiment.model.attention.head_dim, 64) << "hidden / heads unless given";
  EXPECT_EQ(experiment.model.norms.kind, NormKind::kLayer);
  const ChipSpec& chip = experiment.cluster.chip;
  EXPECT_EQ(chip.peak_of(DataType::kBf16), 100_TFLOPS);
  EXPECT_EQ(chip.peak_of(DataType::kFp32), 10_TFLOPS);
  EXPECT_EQ(chip.peak_of(DataType::kFp8), Throughput(0));
  EXPECT_EQ(chip.memory_bandwidth, 1000_GBps);
  EXPECT_EQ(chip.memory_capacity, 16_GiB);
  EXPECT_EQ(chip.launch_overhead, 2us);
  EXPECT_EQ(chip.efficiency.matmul.peak_fraction, 0.5);
  EXPECT_EQ(chip.efficiency.matmul.tile_m, 128);
  EXPECT_EQ(chip.efficiency.matmul.tile_n, 1) << "default";
  EXPECT_EQ(chip.efficiency.memory_fraction, 1) << "default";
  EXPECT_EQ(chip.efficiency.memory_ramp, 1_MiB);
  EXPECT_EQ(chip.communication.fixed->compute_share, 0.25);
  const auto& torus = std::get<TorusSpec>(experiment.cluster.topology);
  ASSERT_EQ(torus.axes.size(), 2U);
  EXPECT_EQ(torus.axes[0].size, 4);
  EXPECT_TRUE(torus.axes[0].wraps);
  EXPECT_FALSE(torus.axes[1].wraps);
  EXPECT_EQ(torus.link_bandwidth, 50_GBps);
  EXPECT_EQ(torus.link_latency, 1us);
  const ParallelPlan& plan = experiment.plan;
  EXPECT_EQ(plan.mesh.tp, 4);
  EXPECT_EQ(plan.mesh.dp, 2);
  EXPECT_EQ(plan.state.zero, 3);
  EXPECT_EQ(plan.batch.microbatch_size, 2);
  EXPECT_EQ(plan.state.prefetch, 3);
  EXPECT_TRUE(plan.pieces.overlap_tensor);
  EXPECT_TRUE(plan.tensor.sequence_parallel) << "default";
  EXPECT_EQ(plan.mesh.order[0], PlanAxis::kData);
  ASSERT_EQ(plan.mesh.map.size(), 2U);
  EXPECT_EQ(plan.mesh.map[1].axis, PlanAxis::kData);
  EXPECT_EQ(plan.mesh.map[1].levels, std::vector<std::string>{"y"});
}

TEST_F(LoadExperimentTest, ReadsProtobufText) {
  expect_small(load_experiment(from(write("small.textproto", kText))));
}

TEST_F(LoadExperimentTest, ReadsTheSameMessagesAsJson) {
  expect_small(load_experiment(from(write("small.json", kJson))));
}

TEST_F(LoadExperimentTest, OffloadNeedsAHost) {
  const std::string file = write("small.textproto", kText);
  EXPECT_FALSE(load_experiment(from(file)).cluster.host.given());
  ExperimentSource source = from(file);
  source.overrides = {"plan.offload_optimizer=true"};
  const std::vector<std::string> problems = problems_of(source);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(problems[0].starts_with("plan.offload_optimizer: needs a host: chip has none"))
      << problems[0];
  source.overrides = {"plan.offload_optimizer=true", "cluster.host.link_bandwidth=20GB/s",
                      "cluster.host.uplink_chips=3"};
  EXPECT_EQ(problems_of(source).size(), 3U) << "uplinks, memory, its size";
  source.overrides = {"plan.offload_optimizer=true", "cluster.host.link_bandwidth=20GB/s",
                      "cluster.host.memory_bandwidth=200GB/s", "cluster.host.memory_capacity=1TB"};
  const HostSpec host = load_experiment(source).cluster.host;
  EXPECT_EQ(host.link_bandwidth, 20_GBps);
  EXPECT_EQ(host.chips, 8) << "default";
}

// The cluster's data on its hosts overrides the chip's.
TEST_F(LoadExperimentTest, HostsAreThoseOfTheChipUnlessGiven) {
  const std::string file = write("mine.textproto", R"(
    model { catalog: "llama3-8b" }
    cluster { catalog: "dgx-h100-8" host { memory_capacity: "4TB" } switch_adders: "2.7TB/s" }
    plan { dp: 8 global_batch: 8 sequence: 1024 })");
  const ClusterSpec cluster = load_experiment(from(file)).cluster;
  EXPECT_EQ(cluster.host.memory_capacity, Bytes(4'000'000'000'000));
  EXPECT_EQ(cluster.host.link_bandwidth, 55_GBps);
  EXPECT_EQ(cluster.switch_adders, 2700_GBps);
  EXPECT_TRUE(build_cluster(cluster).hosts.of_chip.empty()) << "not asked for";
  EXPECT_EQ(build_cluster(cluster, true).hosts.of_chip.size(), 8U);
}

TEST_F(LoadExperimentTest, TakesItsNameFromTheFile) {
  const std::string file = write("mine.textproto", R"(
    model { catalog: "llama3-8b" } cluster { catalog: "dgx-h100-8" }
    plan { dp: 8 global_batch: 8 sequence: 1024 })");
  EXPECT_EQ(load_experiment(from(file)).name, "mine");
}

TEST_F(LoadExperimentTest, FlagsAloneAreAnExperiment) {
  const Experiment experiment = load_experiment(from_flags(
      "llama3-70b", "dgx-h100-512",
      "tp=8,pp=4,dp=16,microbatch=1,global-batch=1024,sequence=8192,schedule=1f1b,zero=1"));
  EXPECT_EQ(experiment.name, "llama3-70b-dgx-h100-512");
  EXPECT_EQ(experiment.model.layers, 80);
  EXPECT_EQ(std::get<DgxSuperPodSpec>(experiment.cluster.topology).nodes, 64);
  EXPECT_EQ(experiment.plan.mesh.ranks(), 512);
  EXPECT_EQ(experiment.plan.microbatches(), 64);  // 1024 / (16 x 1)
  EXPECT_EQ(experiment.plan.state.zero, 1);
}

TEST_F(LoadExperimentTest, FlagsGoOverAnExperiment) {
  ExperimentSource source = from("llama3-8b-dgx-h100-8");
  source.cluster = "dgx-h100-64";
  source.plan = "dp=32";
  const Experiment experiment = load_experiment(source);
  EXPECT_EQ(experiment.cluster.name, "dgx-h100-64");
  EXPECT_EQ(experiment.plan.mesh.tp, 2) << "still that of the file";
  EXPECT_EQ(experiment.plan.mesh.dp, 32);
}

// The bytes held per parameter on one chip that has all of them: weight, gradient and optimizer
// state.
TEST_F(LoadExperimentTest, StateBytesAreAllBytesOfAParameter) {
  for (const std::int64_t total : {10, 12, 16, 18}) {
    const Experiment experiment = load_experiment(
        with_overrides("llama3-8b-dgx-h100-8",
                       {"plan.tp=1", "plan.dp=8", "plan.pp=1", "plan.zero=0", "plan.global_batch=8",
                        "software.state_bytes=" + std::to_string(total)}));
    const OpGraph graph = lower_experiment(experiment, cluster_for_steps(experiment));
    std::int64_t state = 0;
    for (const MemoryCategory category :
         {MemoryCategory::kParameters, MemoryCategory::kGradients, MemoryCategory::kOptimizer}) {
      state += graph.programs[0].resident[static_cast<std::size_t>(category)].value();
    }
    EXPECT_EQ(state, total * parameter_count(experiment.model)) << total;
  }
  EXPECT_TRUE(has_line(
      problems_of(with_overrides("llama3-8b-dgx-h100-8",
                                 {"software.state_bytes=10", "plan.global_batch=1024"})),
      "software.state_bytes: is 10, without a place for gradients, but they are summed over 256 "
      "micro-batches: 12, 16 or 18, or a single micro-batch"));
}

TEST_F(LoadExperimentTest, PlanKeysThatAreWrongAreNamed) {
  const Lines lines = problems_of(from_flags(
      "llama3-8b", "dgx-h100-8", "tp=8,microbach=1,tp=4,global-batch=x,sequence=8192,zero"));
  EXPECT_TRUE(
      has_line(lines, "--plan microbach: no field microbach in Plan; did you mean microbatch?"));
  EXPECT_TRUE(has_line(lines, "--plan tp: is given twice"));
  EXPECT_TRUE(has_line(lines, "--plan global-batch: must be a whole number, is \"x\""));
  EXPECT_TRUE(has_line(lines, "--plan: must be keys and values, as in tp=8,dp=16; has \"zero\""));
  EXPECT_FALSE(has_line(lines, "plan.global_batch")) << "reported once";
}

TEST_F(LoadExperimentTest, OverridesReachEveryPartOfTheExpandedExperiment) {
  const Experiment experiment = load_experiment(with_overrides(
      "llama3-8b-dgx-h100-8",
      {"plan.global-batch=128", "cluster.chip.launch_overhead=1us", "model.layers=16",
       "cluster.dgx_superpod.nic_bandwidth=100GB/s", "cluster.chip.peak[1].throughput=500TFLOPS",
       "plan.sequence_parallel=false", "name=other"}));
  EXPECT_EQ(experiment.name, "other");
  EXPECT_EQ(experiment.plan.batch.global_batch, 128);
  EXPECT_EQ(experiment.cluster.chip.launch_overhead, 1us);
  EXPECT_EQ(experiment.model.layers, 16);
  EXPECT_EQ(experiment.model.hidden, 4096) << "still that of the catalog";
  EXPECT_EQ(std::get<DgxSuperPodSpec>(experiment.cluster.topology).nic_bandwidth, 100_GBps);
  EXPECT_EQ(experiment.cluster.chip.peak_of(DataType::kBf16), 500_TFLOPS);
  EXPECT_FALSE(experiment.plan.tensor.sequence_parallel);
}

TEST_F(LoadExperimentTest, AnOverrideMayNameAnotherCatalogEntry) {
  const Experiment experiment = load_experiment(with_overrides(
      "llama3-8b-dgx-h100-8", {"cluster.chip.memory_capacity=100GiB", "cluster.chip.catalog=b200",
                               "model.catalog=llama2-13b"}));
  EXPECT_EQ(experiment.cluster.chip.name, "b200");
  EXPECT_EQ(experiment.cluster.chip.memory_capacity, 100_GiB);
  EXPECT_EQ(experiment.model.layers, 40);
}

TEST_F(LoadExperimentTest, AChipOfTheCatalogMayBeChangedInPlace) {
  const std::string file = write("changed.textproto", R"(
    model { catalog: "llama3-8b" }
    cluster { catalog: "dgx-h100-8" chip { memory_bandwidth: "4TB/s" } }
    plan { dp: 8 global_batch: 8 sequence: 1024 })");
  const ChipSpec chip = load_experiment(from(file)).cluster.chip;
  EXPECT_EQ(chip.name, "h100-sxm");
  EXPECT_EQ(chip.memory_bandwidth, 4000_GBps);
}

// "nemo 25" is like "nemo", which is like "megatron-core": keys and chips of all three hold, the
// nearest first; recipes are an entry's own.
TEST_F(LoadExperimentTest, AnEntrySaysWhatDiffersFromAnother) {
  const auto plan = [&](const std::string& software) {
    return load_experiment(with_keys(from("llama3-8b-dgx-h100-8"), "zero=1,software=" + software))
        .plan;
  };
  EXPECT_EQ(plan("nemo-25").loss.kernels, LossKernels::kFused);
  EXPECT_EQ(plan("nemo").loss.kernels, LossKernels::kInPlace);
  EXPECT_EQ(plan("nemo-25").messages.gradient_bucket_parameters, 134'217'728);
  EXPECT_TRUE(plan("nemo-25").narrow.gather_narrow);
  EXPECT_TRUE(plan("nemo-25").narrow.transpose_operands) << "on Hopper, as megatron-core";
  EXPECT_FALSE(plan("nemo-25").habits.dropout);
  EXPECT_TRUE(plan("megatron-core").habits.dropout);
  EXPECT_EQ(plan("nemo-25").habits.pads_vocabulary, 128);
  EXPECT_EQ(plan("nemo-2023.05").kernels.attention_library, AttentionLibrary::kFlash1);
  EXPECT_EQ(plan("megatron-lm-2023").allocator.figure, MemoryFigure::kAllocated);
}

TEST_F(LoadExperimentTest, AReleaseIsOfTheEntryThatHoldsForIt) {
  const auto name = [&](const std::string& software) {
    return load_experiment(with_keys(from("llama3-8b-dgx-h100-8"), "zero=1,software=" + software))
        .plan.software;
  };
  EXPECT_EQ(name("torchtitan-2024.12"), "torchtitan-2025.03");
  EXPECT_EQ(name("torchtitan-2025.03"), "torchtitan-2025.03");
  EXPECT_EQ(name("torchtitan-2025.08"), "torchtitan-2025.11");
  EXPECT_EQ(name("torchtitan-2026.01"), "torchtitan");
  EXPECT_EQ(name("nemo-25.04"), "nemo-25");
  EXPECT_EQ(name("megatron-lm-2023.05"), "megatron-lm-2023");
  EXPECT_EQ(name("megatron-bridge-26.04/llama3-70b"), "megatron-bridge/llama3-70b");
}

// What a recipe turns on goes over its software, and what is given over both.
TEST_F(LoadExperimentTest, ARecipeIsChosenByItsName) {
  const auto plan = [&](const std::string& keys) {
    ExperimentSource source;
    source.model = "deepseek-v3";
    source.cluster = "dgx-h100-256";
    return load_experiment(with_keys(source,
                                     "pp=4,dp=64,ep=64,zero=1,global_batch=2048,"
                                     "sequence=4096,layout=balanced,software=" +
                                         keys))
        .plan;
  };
  using Modules = std::vector<RecomputeModule>;
  const ParallelPlan recipe = plan("megatron-bridge/deepseek-v3");
  EXPECT_EQ(recipe.recomputing.modules,
            (Modules{RecomputeModule::kLatentUp, RecomputeModule::kMlp}));
  EXPECT_TRUE(recipe.overlap.parameters);
  EXPECT_EQ(plan("megatron-bridge/deepseek-v3,recompute=full").recomputing.kind, Recompute::kFull);
  EXPECT_EQ(plan("megatron-bridge").recomputing.kind, Recompute::kNone);
  const auto problems =
      problems_of(with_keys(from("llama3-8b-dgx-h100-8"), "software=nemo-25/bert"));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().find("must be a recipe of nemo 25: sft, deepseek-v3"),
            std::string::npos)
      << problems.front();
}

// Software that ends a recompute as soon as all is there again leaves out a block's last matmul.
TEST_F(LoadExperimentTest, ASoftwareRecomputesInItsOwnWay) {
  const auto plan = [&](const std::string& keys) {
    return load_experiment(with_keys(from("llama3-8b-dgx-h100-8"), "zero=3," + keys)).plan;
  };
  EXPECT_EQ(plan("software=torchtitan,recompute=full").recomputing.kind, Recompute::kAllBut);
  EXPECT_EQ(plan("software=torchtitan,recompute=full").recomputing.keep,
            std::vector<KeptResult>{KeptResult::kDown});
  EXPECT_EQ(plan("recompute=full").recomputing.kind, Recompute::kFull);
  EXPECT_EQ(plan("recomputes_as_needed=true,recompute=full").recomputing.kind, Recompute::kAllBut);
  EXPECT_EQ(
      plan("recomputes_cudnn=true,attention_library=cudnn,recompute=alternate").recomputing.kind,
      Recompute::kAlternateMatmuls);
}

TEST_F(LoadExperimentTest, APlanMayNameItsSoftware) {
  ExperimentSource source = from("llama3-8b-dgx-h100-8");
  source = with_keys(source, "software=torchtitan-2025.03,zero=3");
  Experiment experiment = load_experiment(source);
  EXPECT_EQ(experiment.plan.software, "torchtitan-2025.03");
  EXPECT_EQ(experiment.plan.loss.kernels, LossKernels::kSeparate);
  EXPECT_TRUE(experiment.plan.buffers.shared_master);
  EXPECT_EQ(experiment.plan.kernels.attention_library, AttentionLibrary::kFlash2);

  source.software += ",loss=fused,attention_library=cudnn";
  experiment = load_experiment(source);
  EXPECT_EQ(experiment.plan.loss.kernels, LossKernels::kFused) << "what is given goes first";
  EXPECT_EQ(experiment.plan.kernels.attention_library, AttentionLibrary::kCudnn);

  source = with_keys(source, "software=megatron-core-simumax");
  source.overrides = {"cluster.chip.catalog=b200"};
  const MatmulEfficiency simumax = load_experiment(source).cluster.chip.efficiency.matmul;
  EXPECT_EQ(simumax.peak_fraction, 0.663);
  source.overrides.emplace_back("cluster.chip.efficiency.matmul.peak_fraction=0.5");
  const MatmulEfficiency given = load_experiment(source).cluster.chip.efficiency.matmul;
  EXPECT_EQ(given.peak_fraction, 0.5) << "what is given goes first";
  EXPECT_EQ(given.tile_overhead, simumax.tile_overhead);
  source.overrides.clear();

  source = with_keys(source, "software=nemo,zero=1");
  EXPECT_EQ(load_experiment(source).plan.messages.gradient_bucket_parameters, 134'217'728);
  source = with_keys(source, "software=nemo,zero=3");  // FSDP reduces layer by layer
  EXPECT_EQ(load_experiment(source).plan.messages.gradient_bucket_parameters, std::nullopt);
  source = with_keys(source, "software=megatron-lm-2023,dp=2,pp=2,zero=1");
  EXPECT_TRUE(load_experiment(source).plan.messages.batch_p2p);
  EXPECT_FALSE(load_experiment(source).plan.overlap.gradients);
  source = with_keys(source, "software=megatron-lm-2023,pp=1,zero=2");  // ZeRO-2 always overlaps
  EXPECT_FALSE(load_experiment(source).plan.messages.batch_p2p);
  EXPECT_TRUE(load_experiment(source).plan.overlap.gradients);
  source = with_keys(source, "software=turbotitan");
  const auto problems = problems_of(source);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(
      problems.front().find("nemo, torchtitan-2025.03, torchtitan-2025.07, torchtitan-2025.11"),
      std::string::npos)
      << problems.front();
}

// What the plan says rules out keys of the software that don't go with it.
TEST_F(LoadExperimentTest, EverySoftwareGoesWithUsualPlans) {
  ExperimentSource source;
  source.model = "llama3-8b";
  source.cluster = "dgx-h100-8";
  for (const std::string& name : software_names()) {
    const bool of_experts = name == "megatron-core-deepep" || name.ends_with("/deepseek-v3") ||
                            name.ends_with("/kimi-k2") || name.find("/nemotron3") != name.npos;
    if (of_experts) continue;
    for (const char* keys :
         {"zero=0", "zero=1", "zero=2", "zero=3", "dtype=fp8", "dtype=fp32", "state_bytes=16",
          "gradient_bytes=2", "optimizer=none", "lora_rank=8"}) {
      source = with_keys(
          source, "dp=8,global_batch=8,sequence=1024," + std::string(keys) + ",software=" + name);
      EXPECT_EQ(problems_of(source), std::vector<std::string>{}) << source.plan << source.software;
    }
    for (const char* divided : {"true", "false"}) {
      source =
          with_keys(source, "tp=2,dp=4,zero=1,global_batch=8,sequence=1024,sequence_parallel=" +
                                std::string(divided) + ",software=" + name);
      EXPECT_EQ(problems_of(source), std::vector<std::string>{}) << source.plan << source.software;
    }
    source = with_keys(source, "tp=8,inference=decode,batch=8,context=1024,software=" + name);
    EXPECT_EQ(problems_of(source), std::vector<std::string>{}) << source.plan << source.software;
  }
}

// Until July 2025 torchtitan's outermost unit had the embedding, and its checkpoints made cuDNN's
// attention again, which it has on Blackwell.
TEST_F(LoadExperimentTest, SoftwareOfATimeHasItsOwnUnitsAndCheckpoints) {
  ExperimentSource source;
  source.model = "llama3-8b";
  const auto plan_on = [&source](const std::string& cluster, const std::string& software) {
    source.cluster = cluster;
    source = with_keys(
        source, "dp=8,global_batch=8,sequence=1024,recompute=alternate,software=" + software);
    return load_experiment(source).plan;
  };
  EXPECT_TRUE(plan_on("dgx-b200-8", "torchtitan-2025.07").buffers.keep_root);
  EXPECT_FALSE(plan_on("dgx-b200-8", "torchtitan").buffers.keep_root);
  EXPECT_EQ(plan_on("dgx-b200-8", "torchtitan-2025.11").recomputing.kind,
            Recompute::kAlternateMatmuls);
  EXPECT_EQ(plan_on("dgx-h100-8", "torchtitan-2025.11").recomputing.kind, Recompute::kAlternate);
  EXPECT_EQ(plan_on("dgx-b200-8", "torchtitan").recomputing.kind, Recompute::kAlternate);
}

TEST_F(LoadExperimentTest, SoftwareHasKeysOfItsOwnForAChip) {
  ExperimentSource source = from("llama3-8b-dgx-h100-8");
  source = with_keys(source, "software=nemo-25");
  EXPECT_TRUE(load_experiment(source).plan.narrow.transpose_operands);
  source = with_keys(source, "software=nemo-25,transpose_operands=false");
  EXPECT_FALSE(load_experiment(source).plan.narrow.transpose_operands)
      << "what is given goes first";
  ExperimentSource other;
  other.model = "llama3-8b";
  other.cluster = "dgx-b200-8";
  other = with_keys(other, "dp=8,global_batch=8,sequence=1024,software=nemo-25");
  EXPECT_FALSE(load_experiment(other).plan.narrow.transpose_operands);
  other.cluster = "nvlink-gh200-4";
  other = with_keys(other, "dp=4,global_batch=8,sequence=1024,software=nemo-25");
  EXPECT_TRUE(load_experiment(other).plan.narrow.transpose_operands);
}

// The plan gives the margin, the chip gives the units.
TEST_F(LoadExperimentTest, StepsRunOnUnitsThatAreNotCommunications) {
  ExperimentSource source = from("llama3-8b-dgx-h100-8");
  source.overrides.push_back("software.sm_margin=33");
  LoadedExperiment loaded = load_with_topology(source);
  const ChipSpec whole = sustained(slowest_of(8, loaded.experiment.cluster.chip));
  const Cluster cluster = cluster_for_steps(loaded.experiment, std::move(loaded.topology));
  EXPECT_EQ(cluster.chip.communication.margin, 33);
  EXPECT_EQ(cluster.chip.peak_of(DataType::kBf16).value(),
            0.75 * whole.peak_of(DataType::kBf16).value());
}

TEST_F(LoadExperimentTest, KindsOfElementwiseKernelsAreNamed) {
  const std::string file = write("kinds.textproto", R"(
    model { catalog: "llama3-8b" }
    cluster { catalog: "dgx-h100-8" chip { efficiency {
      elementwise_of { kind: "norm" memory_fraction: 0.5 }
      elementwise_of { kind: "rounding" memory_fraction: 0.7 } } } }
    plan { dp: 8 global_batch: 8 sequence: 1024 })");
  const Efficiency efficiency = load_experiment(from(file)).cluster.chip.efficiency;
  EXPECT_EQ(efficiency.memory_fraction_of(ElementwiseKind::kPlain), std::nullopt);
  EXPECT_EQ(efficiency.memory_fraction_of(ElementwiseKind::kNorm), 0.5);
  EXPECT_EQ(efficiency.memory_fraction_of(ElementwiseKind::kRounding), 0.7);
}

// A timing replaces the one with the same path and protocol. The others are those of the library
// that it is based on.
TEST_F(LoadExperimentTest, ALibraryChangesTheTimingsThatItNames) {
  const CommunicationLibrary base = load_cluster("dgx-h100-8").library;
  const CommunicationLibrary changed =
      load_cluster("dgx-h100-8", "nccl-2.29-hopper-deepep-2025.02").library;
  EXPECT_EQ(changed.timings.size(), base.timings.size());
  for (const ProtocolTiming& timing : base.timings) {
    const ProtocolTiming* other = changed.find(timing.path, timing.protocol);
    ASSERT_NE(other, nullptr);
    const bool same = timing.path != LibraryPath::kRelay;
    EXPECT_EQ(other->link_fraction == timing.link_fraction, same) << name_of(timing.path);
  }
}

}  // namespace
}  // namespace stepsim

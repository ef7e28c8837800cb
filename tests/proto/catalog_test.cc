#include "proto/catalog/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "proto/catalog/catalog_reference.h"
#include "proto/catalog/measured_tables.h"
#include "proto/load_experiment.h"
#include "proto/to_spec.h"
#include "sim/base/parallel.h"
#include "tests/support/experiment_case.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

ClusterSpec cluster_named(const std::string& name) {
  file::Cluster message;
  message.set_catalog(name);
  ProblemList problems;
  EXPECT_TRUE(resolve(message, problems)) << name;
  ClusterSpec spec = to_cluster(message, problems);
  EXPECT_EQ(problems.all(), std::vector<Problem>{}) << name;
  return spec;
}

ModelSpec model_named(const std::string& name) {
  file::Model message;
  message.set_catalog(name);
  ProblemList problems;
  EXPECT_TRUE(resolve(message, "", problems)) << name;
  ModelSpec spec = to_model(message, problems);
  EXPECT_EQ(problems.all(), std::vector<Problem>{}) << name;
  return spec;
}

std::string problem_of(CatalogKind kind, const char* name) {
  const CatalogAnswer answer = find(kind, name);
  EXPECT_FALSE(answer.found.has_value());
  return answer.problem;
}

TEST(CatalogTest, EveryModelClusterAndExperimentIsGood) {
  EXPECT_GE(list(CatalogKind::kModel).size(), 5U);
  EXPECT_GE(list(CatalogKind::kExperiment).size(), 3U);
  for (const std::string& name : list(CatalogKind::kModel)) {
    EXPECT_EQ(model_named(name).name, name);
  }
  for (const std::string& name : list(CatalogKind::kCluster)) {
    EXPECT_EQ(cluster_named(name).name, name);
  }
  for (const std::string& name : list(CatalogKind::kExperiment)) {
    EXPECT_NO_THROW(EXPECT_EQ(load_experiment(from(name)).name, name)) << name;
  }
}

TEST(CatalogTest, EveryChipIsGood) {
  EXPECT_GE(list(CatalogKind::kChip).size(), 3U);
  for (const std::string& name : list(CatalogKind::kChip)) {
    file::Cluster message;
    message.mutable_chip()->set_catalog(name);
    message.mutable_dgx_superpod()->set_nodes(1);
    ProblemList problems;
    EXPECT_TRUE(resolve(message, problems)) << name;
    EXPECT_EQ(to_cluster(message, problems).chip.name, name);
    EXPECT_EQ(problems.all(), std::vector<Problem>{}) << name;
  }
}

// GPUs run collectives on their multiprocessors; TPUs, Trainium and Gaudi by DMA.
TEST(CatalogTest, ChipsSayWhatCollectivesRunOn) {
  for (const std::string& name : list(CatalogKind::kChip)) {
    file::Cluster message;
    message.mutable_chip()->set_catalog(name);
    message.mutable_dgx_superpod()->set_nodes(1);
    ProblemList problems;
    EXPECT_TRUE(resolve(message, problems)) << name;
    const CommunicationUnits units = to_cluster(message, problems).chip.communication;
    const bool gpu =
        !name.starts_with("tpu") && !name.starts_with("trainium") && !name.starts_with("gaudi");
    EXPECT_EQ(units.units > 0, gpu) << name;
    EXPECT_FALSE(units.fixed) << name;
    for (const DataType type : {DataType::kFp32, DataType::kFp16}) {
      EXPECT_EQ(units.reduction_of(type).value() > 0, gpu) << name;
    }
  }
}

// 128 chips are 4x4x8, made of cubes, before the more compact 4x4x8 of none; 8 are 2x2x2.
TEST(CatalogTest, ANumberOfChipsIsTheMostCompactSlice) {
  const auto sizes_of = [](const TorusSpec& torus) {
    std::vector<int> sizes;
    for (const TorusAxis& axis : torus.axes) sizes.push_back(axis.size);
    return sizes;
  };
  const auto slice = [&](const char* name) {
    return sizes_of(std::get<TorusSpec>(cluster_named(name).topology));
  };
  EXPECT_EQ(slice("v6e-256"), (std::vector<int>{16, 16}));
  EXPECT_EQ(slice("v6e-32"), (std::vector<int>{4, 8}));
  EXPECT_EQ(slice("v5p-8"), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(slice("v5p-192"), (std::vector<int>{4, 4, 12}));  // 4x6x8 is not made of cubes
  EXPECT_EQ(slice("v7-9216"), (std::vector<int>{16, 24, 24}));
  const auto slices = std::get<ComposedSpec>(cluster_named("multislice-v6e-2x256").topology);
  EXPECT_EQ(slices.tiers.front().count, 2);
  EXPECT_EQ(sizes_of(std::get<TorusSpec>(slices.domain)), (std::vector<int>{16, 16}));
  EXPECT_NE(problem_of(CatalogKind::kCluster, "v6e-512"), "");  // a pod has 256
  EXPECT_NE(problem_of(CatalogKind::kCluster, "v6e-257"), "");
}

// Nodes of Trainium are tori, and are counted by their chips.
TEST(CatalogTest, NodesThatAreToriCountChips) {
  const auto nodes = std::get<ComposedSpec>(cluster_named("trn1-core-64").topology);
  EXPECT_EQ(nodes.tiers.front().count, 2);
  EXPECT_NE(problem_of(CatalogKind::kCluster, "trn1-core-48"), "");
}

// Names of tables find a chip, and the cluster that the chip stands in.
TEST(CatalogTest, EveryAliasNamesWhatExists) {
  for (const Hardware& hardware : load_hardware()) {
    EXPECT_TRUE(find(CatalogKind::kChip, hardware.chip).found) << hardware.chip;
    if (hardware.cluster.empty()) continue;
    const std::string size = std::to_string(
        hardware.multislice.empty() ? hardware.chips_per_node : std::int64_t{16});  // a slice
    const std::string name =
        hardware.cluster_has_sizes ? hardware.cluster + "-" + size : hardware.cluster;
    EXPECT_TRUE(find(CatalogKind::kCluster, name).found) << name;
    if (hardware.multislice.empty()) continue;
    EXPECT_TRUE(find(CatalogKind::kCluster, hardware.multislice + "-2x" + size).found) << size;
  }
}

TEST(CatalogTest, ChipsWithoutMeasuredKernelsNameASister) {
  for (const std::string& name : list(CatalogKind::kChip)) {
    const std::string sister = load_chip(name).kernel_constants_of;
    EXPECT_TRUE(sister.empty() || find(CatalogKind::kChip, sister).found) << name;
  }
  for (const char* name : {"h20", "rtx3090", "a10g", "mi300x", "mi355x", "tpu-v7", "trainium1-core",
                           "trainium2", "gaudi2", "gaudi3"}) {
    EXPECT_NE(load_chip(name).kernel_constants_of, "") << name;
  }
  EXPECT_EQ(load_chip("h100-sxm").kernel_constants_of, "");
}

TEST(CatalogTest, AChipWithoutServingKernelsHasThoseOfItsSister) {
  EXPECT_FALSE(load_chip("gh200").efficiency.attention_of.empty());
  EXPECT_TRUE(load_chip("mi300x").efficiency.attention_of.empty())
      << "it has an attention of its own";
  const std::size_t h100 = load_chip("h100-sxm").serving.decode.size();
  EXPECT_GT(h100, 2U);
  EXPECT_EQ(load_chip("h200-sxm").serving.decode.size(), h100);
  EXPECT_EQ(load_chip("gb300").serving.experts.size(), load_chip("b200").serving.experts.size());
  EXPECT_TRUE(load_chip("tpu-v7").serving.empty());
}

TEST(CatalogTest, EveryChipSaysWhatHostItHangsOn) {
  for (const std::string& name : list(CatalogKind::kChip)) {
    file::Cluster message;
    message.mutable_chip()->set_catalog(name);
    message.mutable_dgx_superpod()->set_nodes(1);
    ProblemList problems;
    EXPECT_TRUE(resolve(message, problems)) << name;
    const HostSpec host = to_cluster(message, problems).host;
    ASSERT_TRUE(host.link_bandwidth) << name;
    EXPECT_GT(host.link_bandwidth->value(), 5e9) << name;
    EXPECT_GT(host.memory_bandwidth, host.link_bandwidth) << name;
  }
}

TEST(CatalogTest, EveryPathOfALibrarySaysItsChannels) {
  for (const std::string& name : list(CatalogKind::kLibrary)) {
    for (const ProtocolTiming& timing : load_cluster("dgx-h100-8", name).library.timings) {
      EXPECT_GE(timing.channels.most, 16) << name << " " << name_of(timing.path);
      EXPECT_GT(timing.channels.accesses, 0) << name << " " << name_of(timing.path);
    }
  }
}

TEST(CatalogTest, EveryPlanIsGood) {
  for (const std::string& name : list(CatalogKind::kPlan)) {
    file::Plan message;
    message.set_catalog(name);
    ProblemList problems;
    EXPECT_TRUE(resolve(message, problems)) << name;
    EXPECT_GE(to_plan(message, problems).mesh.ranks(), 1);
    EXPECT_EQ(problems.all(), std::vector<Problem>{}) << name;
  }
}

TEST(CatalogTest, NumbersInDgxNamesCountChips) {
  for (const int chips : {8, 64, 104, 512, 1024, 2048, 4096}) {
    const ClusterSpec cluster = cluster_named("dgx-h100-" + std::to_string(chips));
    EXPECT_EQ(std::get<DgxSuperPodSpec>(cluster.topology).nodes, chips / 8);
    EXPECT_EQ(cluster.chip.name, "h100-sxm");
  }
}

TEST(CatalogTest, DgxSizesThatAreNotThereSayWhichAre) {
  const std::string sizes =
      "the size of dgx-h100-<size> must be a multiple of 8 chips, up to 16384";
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "dgx-h100-16392"), sizes + "; is \"16392\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "dgx-h100-12"), sizes + "; is \"12\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "dgx-h100-0"), sizes + "; is \"0\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "dgx-h100-8x8"), sizes + "; is \"8x8\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "dgx-h100"), sizes + "; is \"\"");
}

TEST(CatalogTest, SlicesOfWholeCubesWrapOnEveryAxis) {
  for (const char* name : {"v5p-4x4x4", "v5p-4x4x8", "v5p-16x20x28"}) {
    const auto torus = std::get<TorusSpec>(cluster_named(name).topology);
    ASSERT_EQ(torus.axes.size(), 3U) << name;
    for (const TorusAxis& axis : torus.axes) EXPECT_TRUE(axis.wraps) << name;
  }
  const auto torus = std::get<TorusSpec>(cluster_named("v5p-16x20x28").topology);
  EXPECT_EQ(torus.axes[0].size, 16);
  EXPECT_EQ(torus.axes[1].size, 20);
  EXPECT_EQ(torus.axes[2].size, 28);
}

TEST(CatalogTest, OtherSlicesDoNotWrapAtAll) {
  for (const char* name : {"v5p-2x2x4", "v5p-2x2x1", "v5p-2x4x4"}) {
    const auto torus = std::get<TorusSpec>(cluster_named(name).topology);
    for (const TorusAxis& axis : torus.axes) EXPECT_FALSE(axis.wraps) << name;
  }
}

TEST(CatalogTest, SlicesThatTheHardwareDoesNotHaveAreRefused) {
  for (const char* name : {"v5p-4x4x6", "v5p-6x6x6", "v5e-12x12", "v6e-12x12"}) {
    EXPECT_NE(problem_of(CatalogKind::kCluster, name).find("must be one that the hardware has"),
              std::string::npos)
        << name;
  }
}

TEST(CatalogTest, FlatSlicesWrapOnlyWhereTheyAreAsLongAsThePod) {
  const auto axes_of = [](const char* name) {
    return std::get<TorusSpec>(cluster_named(name).topology).axes;
  };
  for (const char* name : {"v5e-16x16", "v6e-16x16", "v3-32x32"}) {
    for (const TorusAxis& axis : axes_of(name)) EXPECT_TRUE(axis.wraps) << name;
  }
  for (const char* name : {"v5e-8x8", "v6e-4x8", "v3-16x16", "v5e-4x8"}) {
    for (const TorusAxis& axis : axes_of(name)) EXPECT_FALSE(axis.wraps) << name;
  }
  EXPECT_FALSE(axes_of("v5e-8x16")[0].wraps);
  EXPECT_TRUE(axes_of("v5e-8x16")[1].wraps);
  EXPECT_EQ(
      problem_of(CatalogKind::kCluster, "v5e-16x32"),
      "the size of v5e-<size> must be the axes of a torus that fits into 16x16, as in 2x2, or its "
      "number of chips; is \"16x32\"");
}

TEST(CatalogTest, SlicesThatAreNotThereSayWhichAre) {
  const std::string sizes =
      "the size of v5p-<size> must be the axes of a torus that fits into 16x20x28, as in 4x4x4, or "
      "its number of chips";
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "v5p-16x20x32"), sizes + "; is \"16x20x32\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "v5p-4x4x32"), sizes + "; is \"4x4x32\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "v5p-20x20x20"), sizes + "; is \"20x20x20\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "v5p-4x4"), sizes + "; is \"4x4\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "v5p-4x4x0"), sizes + "; is \"4x4x0\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "v5p-4x4x"), sizes + "; is \"4x4x\"");
  EXPECT_EQ(problem_of(CatalogKind::kCluster, "v5p-99999x99999x99999"),
            sizes + "; is \"99999x99999x99999\"");
}

TEST(CatalogTest, MisspeltNamesGetASuggestion) {
  EXPECT_TRUE(problem_of(CatalogKind::kModel, "lama3-70b")
                  .starts_with("no model lama3-70b in the catalog; did you mean llama3-70b?"));
  EXPECT_TRUE(problem_of(CatalogKind::kChip, "H100_SXM").find("did you mean h100-sxm?") !=
              std::string::npos);
  EXPECT_TRUE(problem_of(CatalogKind::kModel, "completely-other")
                  .starts_with("no model completely-other in the catalog. There are: "));
}

TEST(CatalogTest, ListsFamiliesByTheirUsualSizes) {
  const std::vector<std::string> names = list(CatalogKind::kCluster);
  EXPECT_EQ(std::count(names.begin(), names.end(), "dgx-h100-512"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "v5p-16x20x28"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "dgx-h100"), 0);
}

// What was read before is kept; nobody may see a difference.
TEST(CatalogTest, ReadingAnEntryAgainGivesTheSame) {
  std::vector<std::string> first;
  const std::vector<std::string> names = list(CatalogKind::kModel);
  const auto text_of = [](const std::string& name) {
    file::Model message;
    message.set_catalog(name);
    ProblemList problems;
    EXPECT_TRUE(resolve(message, "", problems));
    EXPECT_TRUE(problems.empty());
    const std::string text = message.SerializeAsString();
    message.set_layers(1);  // of the caller alone
    message.clear_heads();
    return text;
  };
  for (const std::string& name : names) first.push_back(text_of(name));
  std::vector<std::string> again(names.size());
  for_each_in_parallel(names.size(), 8, [&](std::size_t i) { again[i] = text_of(names[i]); });
  EXPECT_EQ(again, first);
}

TEST(CatalogTest, ThreadsReadAnEntryOfTheCatalogAtOnce) {
  // A size of a family is a text of its own, which nobody has read yet.
  std::vector<std::string> sizes;
  for (int nodes = 301; nodes < 311; ++nodes) {
    sizes.push_back("dgx-a100-" + std::to_string(8 * nodes));
  }
  std::vector<std::string> texts(8 * sizes.size());
  for_each_in_parallel(texts.size(), 8, [&](std::size_t i) {
    file::Cluster message;
    message.set_catalog(sizes[i / 8]);
    ProblemList problems;
    EXPECT_TRUE(resolve(message, problems));
    texts[i] = message.SerializeAsString();
  });
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], texts[i / 8 * 8]) << i;
  EXPECT_NE(texts[0], texts[8]);
}

TEST(CatalogTest, AFamilyOfAModelIsPartOfWhatIsKept) {
  const auto read_as = [](const std::string& family) {
    file::Model message;
    message.set_catalog("mistral-7b");
    if (!family.empty()) message.set_as(family);
    ProblemList problems;
    resolve(message, "", problems);
    return message.note();
  };
  const std::string own = read_as("");
  EXPECT_NE(read_as("llama"), own);
  EXPECT_EQ(read_as(""), own);
}

TEST(CatalogTest, AFileOfAUserIsReadEachTime) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "changing_chip.textproto";
  const auto launch_of = [&path](const char* overhead) {
    std::ofstream(path) << "catalog: \"h100-sxm\" launch_overhead: \"" << overhead << "\"\n";
    return load_chip(path.string()).launch_overhead;
  };
  EXPECT_EQ(to_seconds(launch_of("3us")), 3e-6);
  EXPECT_EQ(to_seconds(launch_of("4us")), 4e-6);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace stepsim

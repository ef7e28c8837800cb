#include "proto/catalog/hardware_words.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "proto/catalog/measured_tables.h"

namespace stepsim {
namespace {

using Words = std::vector<std::string>;

TEST(HardwareWordsTest, KeepsWhatTellsChipsApart) {
  EXPECT_EQ(hardware_words("NVIDIA A100-SXM4-40GB"), (Words{"40gb", "a100", "sxm"}));
  EXPECT_EQ(hardware_words("8x H100SXM5 80 GB HBM3 (700W)"), (Words{"80gb", "h100", "sxm"}));
  EXPECT_EQ(hardware_words("8xH100 (DGX)"), Words{"h100"});
  EXPECT_EQ(hardware_words("GeForce RTX 4090"), Words{"rtx4090"});
  EXPECT_EQ(hardware_words("Google TPU v5 lite"), Words{"v5lite"});
  EXPECT_EQ(hardware_words("TPU-v5p-256"), Words{"v5p"});
  EXPECT_EQ(hardware_words("tpuv4"), Words{"tpuv4"});
  EXPECT_EQ(hardware_words("Intel Gaudi 3 HPU"), Words{"gaudi3"});
  EXPECT_EQ(hardware_words("AWS trn2.48xlarge"), Words{"trn2.48xlarge"});
  EXPECT_EQ(hardware_words("8 GPUs."), Words{});
  EXPECT_EQ(hardware_words(""), Words{});
}

// Names of the same chip as people write them, and names of none: what a chip has must not be
// read over ("64GB", "NVL"), nor a word that isn't known.
TEST(HardwareWordsTest, FindsTheChipThatANameMeans) {
  const std::vector<std::pair<std::string, std::string>> chips = {
      {"H100 SXM5", "h100-sxm"},
      {"h100 sxm 80gb", "h100-sxm"},
      {"HGX H100", "h100-sxm"},
      {"NVIDIA H100 Tensor Core GPU", "h100-sxm"},
      {"H100 (SXM5, 80 GB HBM3)", "h100-sxm"},
      {"AWS p5.48xlarge", "h100-sxm"},
      {"ND H100 v5", "h100-sxm"},
      {"NVIDIA H100 PCIe 80GB", "h100-pcie"},
      {"H200 SXM 141GB", "h200-sxm"},
      {"H800-SXM", "h800-sxm"},
      {"A800", "a800-sxm-80gb"},
      {"A100-SXM4-80GB", "a100-sxm-80gb"},
      {"DGX A100 80GB", "a100-sxm-80gb"},
      {"A100-SXM4-40GB", "a100-sxm-40gb"},
      {"A100 40 GiB", "a100-sxm-40gb"},
      {"A100 80GB PCIe", "a100-pcie-80gb"},
      {"Tesla V100-SXM2-32GB", "v100-sxm-32gb"},
      {"B200 SXM 180GB", "b200"},
      {"GB200 NVL72", "gb200"},
      {"NVIDIA GB300 NVL72 superchip", "gb300"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-se"},
      {"NVIDIA RTX PRO 6000 Blackwell", "rtx-pro-6000"},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-we"},
      {"MI 300X OAM", "mi300x"},
      {"Instinct MI355X 288 GB", "mi355x"},
      {"Cloud TPU v5e", "tpu-v5e"},
      {"TPU v6e-256", "tpu-v6e"},
      {"TPU Ironwood", "tpu-v7"},
      {"Trainium", "trainium1"},
      {"Trainium 2", "trainium2"},
      {"Intel Gaudi2", "gaudi2"}};
  const std::vector<Hardware> hardware = load_hardware();
  for (const auto& [name, chip] : chips) {
    const Hardware* found = find_hardware(hardware, name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->chip, chip) << name;
  }
  for (const char* name : {"", "GPU", "80GB", "SXM", "8x", "TPU", "TPU v5", "RTX", "RTX 2080",
                           "RTX PRO 5000", "A100-SXM-64GB", "H100 NVL", "B100", "T4", "Ascend 910B",
                           "Cerebras WSE-2", "H100 and A100", "a server", "40gb v4"}) {
    EXPECT_EQ(find_hardware(hardware, name), nullptr) << name;
  }
}

// Every name of the catalog is found as it stands, and no name of one entry by words alone in
// another that comes first.
TEST(HardwareWordsTest, NamesOfTheCatalogLeadToTheirOwnEntries) {
  const std::vector<Hardware> hardware = load_hardware();
  for (const Hardware& entry : hardware) {
    for (const std::string& name : entry.names) {
      EXPECT_EQ(find_hardware(hardware, name), &entry) << name;
      const Hardware* by_words = find_hardware(hardware, "NVIDIA  " + name);
      EXPECT_TRUE(by_words == nullptr || by_words->chip == entry.chip) << name;
    }
  }
}

}  // namespace
}  // namespace stepsim

// A sample of the laws of collectives; scripts/check_laws.sh checks them all.

#include "tests/laws/collective_laws.h"

#include <gtest/gtest.h>

#include "proto/load_experiment.h"

namespace stepsim {
namespace {

struct Sample {
  const char* cluster;
  std::vector<std::uint32_t> members;
};

class CollectiveLawsTest : public testing::TestWithParam<Sample> {};

TEST_P(CollectiveLawsTest, Hold) {
  const LawScope scope{.sizes = {1 << 10, 1 << 14, 1 << 17, 1 << 18, 1 << 20, 1 << 22, 1 << 26,
                                 std::int64_t{1} << 30},
                       .members = GetParam().members,
                       .most_stepped = 16,
                       .most_exchanging = 144};
  const LawReport report =
      check_collective_laws(GetParam().cluster, load_cluster(GetParam().cluster), scope);
  EXPECT_GT(report.checked, 100U);
  for (const BrokenLaw& law : report.broken) {
    ADD_FAILURE() << law.law << ": " << law.where << " takes " << 1e6 * law.found << " us, at most "
                  << 1e6 * law.expected;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, CollectiveLawsTest,
    testing::Values(Sample{"dgx-h100-144", {2, 8, 16, 128, 136}},
                    Sample{"dgx-a100-32", {8, 16, 32}}, Sample{"dgx-b200-16", {4, 8, 16}},
                    Sample{"xgmi-mi350x-16", {8, 16}}, Sample{"gb200-nvl72-72", {16, 72}},
                    Sample{"v5e-4x4", {16}}, Sample{"leaf-spine-h100-64", {16, 64}}),
    [](const testing::TestParamInfo<Sample>& sample) {
      std::string name = sample.param.cluster;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace stepsim

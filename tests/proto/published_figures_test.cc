// The simulation of every catalog experiment is within the range that it states around its
// published figures.
//
// The largest experiments run here with fewer replicas, so that all take half a minute. Replicas do
// the same work side by side, so only the exchange of gradients and parameters changes. `stepsim
// catalog experiments` runs the full ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/simulate_experiment.h"
#include "experiment/step/published_comparison.h"
#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"

namespace stepsim {
namespace {

// Fewer replicas; each keeps its number of sequences.
struct Smaller {
  std::string_view experiment;
  const char* cluster;
  const char* plan;
};
constexpr std::array kSmaller = {
    Smaller{"llama3-405b-dgx-h100-16384", "dgx-h100-1024", "dp=8,global-batch=128"},
    Smaller{"llama3-405b-128k-dgx-h100-16384", "dgx-h100-2048", "dp=1,global-batch=16"},
    Smaller{"megatron-1t-dgx-a100-3072", "dgx-a100-512", "dp=1,global-batch=512"},
    Smaller{"megatron-530b-dgx-a100-2520", "dgx-a100-560", "dp=2,global-batch=560"},
};

ExperimentSource named(const std::string& name) {
  ExperimentSource source;
  source.experiment = name;
  return source;
}

Publication publication_of(const std::string& name) {
  return load_with_topology(named(name)).publication;
}

// Returns the experiment, or its smaller version.
Experiment experiment_to_run(const std::string& name) {
  ExperimentSource source = named(name);
  const auto* const smaller = std::ranges::find(kSmaller, name, &Smaller::experiment);
  if (smaller != kSmaller.end()) {
    source.cluster = smaller->cluster;
    source.plan = smaller->plan;
  }
  return load_experiment(source);
}

std::vector<std::string> experiments_with_figures() {
  std::vector<std::string> names = list(CatalogKind::kExperiment);
  // tests/end_to_end/serve_test.py runs those that are served.
  std::erase_if(names, [](const std::string& name) {
    const LoadedExperiment loaded = load_with_topology(named(name));
    return loaded.publication.figures.empty() || loaded.served.given();
  });
  return names;
}

class PublishedFiguresTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedFiguresTest, AreWithinTheirRange) {
  const Experiment experiment = experiment_to_run(GetParam());
  const SimulatedExperiment done = simulate_experiment(experiment);
  const SimulatedStep& step = done.runs.front();
  for (const PublishedComparison& one :
       compare_with_published(publication_of(GetParam()), experiment, step.result, step.metrics)) {
    EXPECT_TRUE(one.as_expected())
        << name_of(one.figure.metric) << ": published " << one.figure.value << ", simulated "
        << one.simulated << ", " << one.ratio() << " of it; expected " << one.figure.low << " to "
        << one.figure.high;
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char letter) { return letter == '-' || letter == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Catalog, PublishedFiguresTest,
                         ::testing::ValuesIn(experiments_with_figures()), test_name);

// Names may have a dot: "llama3.1-405b".
TEST(PublishedFiguresTest, AnExperimentHasTheNameOfItsEntry) {
  for (const std::string& name : list(CatalogKind::kExperiment)) {
    EXPECT_EQ(load_experiment(named(name)).name, name);
  }
}

// Requests are served by an experiment that says so, and only figures of serving stand beside them.
TEST(PublishedFiguresTest, FiguresOfServingAreOfServedExperiments) {
  for (const std::string& name : list(CatalogKind::kExperiment)) {
    const LoadedExperiment loaded = load_with_topology(named(name));
    for (const PublishedFigure& figure : loaded.publication.figures) {
      EXPECT_EQ(is_of_serving(figure.metric), loaded.served.given()) << name;
    }
  }
}

TEST(PublishedFiguresTest, SmallerStandInsHaveReplicasAsLong) {
  for (const Smaller& smaller : kSmaller) {
    const std::string name(smaller.experiment);
    const ParallelPlan whole = load_experiment(named(name)).plan;
    ParallelPlan part = experiment_to_run(name).plan;
    EXPECT_EQ(part.batch.global_batch * whole.mesh.dp, whole.batch.global_batch * part.mesh.dp)
        << name;
    EXPECT_LT(part.mesh.dp, whole.mesh.dp) << name;
    EXPECT_EQ(part.mesh.tp * part.mesh.cp * part.mesh.pp,
              whole.mesh.tp * whole.mesh.cp * whole.mesh.pp)
        << name;
  }
}

}  // namespace
}  // namespace stepsim

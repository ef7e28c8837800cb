// Published figures of an experiment: they are read from files, refused if they make no sense, and
// present for every experiment of the catalog.

#include "experiment/published.h"

#include <gtest/gtest.h>

#include "proto/catalog/catalog.h"
#include "tests/support/experiment_case.h"

namespace stepsim {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kExperiment = R"(model { catalog: "llama3-8b" }
cluster { catalog: "dgx-h100-8" }
plan { tp: 2 dp: 4 microbatch: 1 global_batch: 64 sequence: 8192 }
)";

Publication publication_of(const ExperimentSource& source) {
  return load_with_topology(source).publication;
}

class PublishedTest : public ExperimentCase {
 protected:
  ExperimentSource source_with(const std::string& published) const {
    ExperimentSource source;
    source.experiment = write("published.textproto", kExperiment + published);
    return source;
  }
  Lines problems_with(const std::string& published) const {
    return problems_of(source_with(published));
  }
};

TEST_F(PublishedTest, FiguresAreReadInBaseUnits) {
  const Publication publication = publication_of(source_with(R"(
published { step_time: "19.9s" source: "a" }
published { tokens_per_s: 238300 source: "a" plan: "TP 4" }
published { flops_per_chip: "400TFLOPS" attention_flops: "full" source: "a" }
published { model_flops_utilization: 0.41 source: "a" low: 0.7 why: "b" }
published { hardware_flops_utilization: 0.5 source: "a" }
published { peak_memory: "60GB" source: "a" low: 0.95 high: 1.05 }
published { tpot: "20ms" source: "a" }
published { ttft: "0.5s" source: "a" }
published { output_tokens_per_s_per_chip: 1234 source: "a" }
)"));
  const std::vector<PublishedFigure>& figures = publication.figures;
  ASSERT_EQ(figures.size(), kPublishedMetrics);
  const double values[] = {19.9, 238'300, 4e14, 0.41, 0.5, 6e10, 0.02, 0.5, 1234};
  for (std::size_t i = 0; i < figures.size(); ++i) {
    EXPECT_EQ(figures[i].metric, static_cast<PublishedMetric>(i));
    EXPECT_DOUBLE_EQ(figures[i].value, values[i]);
    EXPECT_EQ(figures[i].source, "a");
  }
  EXPECT_EQ(figures[0].low, 0.9);
  EXPECT_EQ(figures[0].high, 1.1);
  EXPECT_EQ(figures[1].plan, "TP 4");
  EXPECT_EQ(figures[2].attention, AttentionFlops::kFull);
  EXPECT_EQ(figures[3].attention, AttentionFlops::kCausal);
  EXPECT_EQ(figures[3].why, "b");
  EXPECT_EQ(figures[5].low, 0.95);
}

TEST_F(PublishedTest, NonsenseIsRefused) {
  EXPECT_EQ(problems_with(R"(published { step_time: "19.9" } published { source: "a" })"),
            (Lines{"published[1].step_time: or another figure must be given: step_time, "
                   "tokens_per_s, flops_per_chip, model_flops_utilization, "
                   "hardware_flops_utilization, peak_memory, tpot, ttft, "
                   "output_tokens_per_s_per_chip",
                   "published[0].source: must be given, as in \"arXiv 2407.21783, table 4\""}));
  EXPECT_EQ(problems_with(R"(published { step_time: "2s" tokens_per_s: 3 source: "a" })"),
            Lines{"published[0].tokens_per_s: is given beside step_time; a figure each"});
  EXPECT_EQ(problems_with(R"(published { model_flops_utilization: 41 source: "a" })"),
            Lines{"published[0].model_flops_utilization: must be at most 1, is 41: 41 % is 0.41"});
  EXPECT_EQ(problems_with(R"(published { tokens_per_s: 0 source: "a" })"),
            Lines{"published[0].tokens_per_s: must be above 0, is 0"});
  EXPECT_EQ(problems_with(R"(published { step_time: "2s" low: 1.2 source: "a" })"),
            Lines{"published[0].low: must be above 0 and below high (1.1), is 1.2"});
  EXPECT_EQ(problems_with(R"(published { step_time: "2s" high: 1.2 source: "a" })"),
            Lines{"published[0].why: must be given for a range beyond 0.9 to 1.1, is 0.9 to 1.2"});
  EXPECT_EQ(problems_with(R"(published { step_time: "2s" attention_flops: "full" source: "a" })"),
            Lines{"published[0].attention_flops: says nothing about step_time"});
  EXPECT_EQ(problems_with(R"(published { step_time: "2s" source: "a" } not_published: "b")"),
            Lines{"not_published: must not be given beside published figures"});
}

TEST_F(PublishedTest, AreOfTheExperimentAsItIsWritten) {
  ExperimentSource source = source_with(R"(published { step_time: "6s" source: "a" })");
  EXPECT_EQ(publication_of(source).figures.size(), 1U);
  source.overrides = {"plan.zero=1"};
  EXPECT_EQ(publication_of(source).figures.size(), 0U);
  source.overrides = {};
  source.plan = "tp=1,dp=8";
  EXPECT_EQ(publication_of(source).figures.size(), 0U);
}

TEST_F(PublishedTest, EveryExperimentOfTheCatalogSaysWhatOrWhyNot) {
  for (const std::string& name : list(CatalogKind::kExperiment)) {
    ExperimentSource source;
    source.experiment = name;
    const Publication publication = publication_of(source);
    EXPECT_NE(publication.figures.empty(), publication.none.empty()) << name;
  }
}

}  // namespace
}  // namespace stepsim

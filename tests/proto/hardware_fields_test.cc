// Fields of clusters, chips, hosts and libraries: every field of a file is read, and every value
// read has limits.

#include <gtest/gtest.h>

#include <algorithm>

#include "experiment/cluster_fields.h"
#include "experiment/passes/served_load.h"
#include "experiment/published_fields.h"
#include "proto/experiment.pb.h"
#include "proto/messages/read_fields.h"
#include "sim/chips/chip_fields.h"
#include "sim/collectives/library_fields.h"
#include "sim/hardware/host_fields.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {
namespace {

// These fields are put into other messages before a message is read, by resolve()
// (proto/catalog/catalog_reference.h), to_cluster() and the catalog's families of sizes.
const std::vector<std::string> kResolved = {"Cluster.catalog",      "Cluster.sizes",
                                            "Cluster.chip.catalog", "Cluster.chip.library",
                                            "Cluster.chip.host",    "Cluster.library.catalog"};

// Returns a line for each field of the message that nothing reads, and for each row that no file
// can give.
std::string unmatched(const google::protobuf::Descriptor& message, const AnyFieldTable& table) {
  std::string lines;
  for (const std::string& line : unmatched_fields(message, table)) {
    const bool is_resolved = std::ranges::any_of(kResolved, [&](const std::string& field) {
      return line.starts_with(field + " has no row");
    });
    if (!is_resolved) lines += "\n  " + line;
  }
  return lines;
}

TEST(HardwareFieldsTest, EveryFieldOfAMessageHasARowAndEveryRowAField) {
  EXPECT_EQ(unmatched(*file::Cluster::descriptor(), cluster_fields()), "")
      << "declare them in proto/cluster.proto, chip.proto or library.proto, or in the table: "
         "experiment/cluster_fields.cc, topology/kinds/*_fields.cc, sim/chips/chip_fields.cc, "
         "sim/hardware/host_fields.cc, sim/collectives/library_fields.cc";
}

// load_experiment() reads an experiment's name and parts, tables read the parts' fields, and
// to_simulation() reads how it is simulated.
TEST(HardwareFieldsTest, EveryFieldOfAnExperimentIsReadBySomeone) {
  const std::vector<std::string> parts = {
      "name",       "model",           "cluster", "plan",  "variation", "seed", "overrides",
      "simulation", "stepsim_version", "over",    "serve", "software",  "pass", "transport"};
  for (const std::string& line :
       unmatched_fields(*file::Experiment::descriptor(), publication_fields())) {
    const bool is_part = std::ranges::any_of(parts, [&](const std::string& part) {
      return line == "Experiment." + part + " has no row, so nothing reads it";
    });
    EXPECT_TRUE(is_part) << line
                         << ": declare it in experiment/published_fields.cc or "
                            "proto/experiment.proto";
  }
}

TEST(HardwareFieldsTest, EveryFieldOfATransportIsReadBySomeone) {
  EXPECT_EQ(unmatched_fields(*file::Transport::descriptor(), transport_fields()),
            std::vector<std::string>{});
}

// load_experiment() reads the list of requests.
TEST(HardwareFieldsTest, EveryFieldOfServingIsReadBySomeone) {
  EXPECT_EQ(unmatched_fields(*file::Serve::descriptor(), served_load_fields()),
            std::vector<std::string>{"Serve.requests has no row, so nothing reads it"});
}

TEST(HardwareFieldsTest, MatmulsOfATypeStartFromThoseOfAll) {
  file::Chip message;
  message.mutable_efficiency()->mutable_matmul()->set_tile_m(128);
  message.mutable_efficiency()->mutable_matmul()->set_inner_ramp(150);
  file::MatmulEfficiency& fp8 = *message.mutable_efficiency()->add_matmul_of();
  fp8.set_type("fp8");
  fp8.set_inner_ramp(500);
  ProblemList problems;
  ChipSpec chip;
  read_fields(message, chip_fields(), chip, "", problems);
  const MatmulEfficiency& read = chip.efficiency.matmul_for(DataType::kFp8);
  EXPECT_EQ(read.tile_m, 128);
  EXPECT_EQ(read.inner_ramp, 500);
  EXPECT_EQ(chip.efficiency.matmul_for(DataType::kBf16).inner_ramp, 150);
}

TEST(HardwareFieldsTest, WhatMustBeGivenSaysHowItIsWritten) {
  ProblemList problems;
  ChipSpec chip;
  read_fields(file::Chip(), chip_fields(), chip, "", problems);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems.all()[0].field, "peak");
  EXPECT_TRUE(problems.all()[1].message.starts_with(
      "must be given: peak of the chip's memory, reads and writes together (a bandwidth such as "))
      << problems.all()[1].message;
  EXPECT_EQ(problems.all()[2].field, "memory_capacity");
}

TEST(HardwareFieldsTest, NumbersOfALibraryHaveLimits) {
  file::Library message;
  file::ProtocolTiming& timing = *message.add_timing();
  timing.set_path("ring");
  timing.set_protocol("Simple");
  timing.set_network_fraction(1.5);
  timing.set_fill_bytes("0B");
  timing.mutable_channels()->set_most(-1);
  message.set_most_channels(-2);
  message.add_timing()->set_path("star");
  ProblemList problems;
  CommunicationLibrary library;
  read_fields(message, library_fields(), library, "", problems);
  const std::vector<Problem> expected{
      {"most_channels", "must be at least 1, is -2"},
      {"timing[0].network_fraction", "must be above 0 and at most 1, is 1.5"},
      {"timing[0].fill_bytes", "must be positive, is 0"},
      {"timing[0].channels.most", "must be at least 0, is -1"},
      {"timing[1].path", "must be ring, tree, nvls, nvls-tree, messages or relay; is \"star\""}};
  for (const Problem& problem : expected) {
    EXPECT_EQ(std::ranges::count(problems.all(), problem), 1) << problem.field;
  }
  EXPECT_EQ(problems.size(), expected.size() + 1) << "timing[1].protocol is missing";
}

void expect_help(const AnyFieldTable& table) {
  for (const auto& field : table.fields()) {
    EXPECT_TRUE(field->doc().help.ends_with('.')) << table.name() << "." << field->name();
    if (field->fields() != nullptr) expect_help(*field->fields());
  }
}

TEST(HardwareFieldsTest, EveryFieldSaysWhatItIs) {
  expect_help(cluster_fields());
}

TEST(HardwareFieldsTest, APartThatHoldsNoTopologySaysWhichThereAre) {
  file::Composed message;
  message.mutable_domain();
  ProblemList problems;
  ComposedSpec spec;
  read_fields(message, composed_fields(), spec, "", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.all()[0].field, "domain");
  EXPECT_TRUE(problems.all()[0].message.starts_with("must be a topology: dgx_superpod, torus, "))
      << problems.all()[0].message;
}

}  // namespace
}  // namespace stepsim

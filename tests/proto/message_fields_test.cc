#include "proto/messages/message_fields.h"

#include <gtest/gtest.h>

#include "proto/experiment.pb.h"

namespace stepsim {
namespace {

std::string problem_of(file::Experiment& message, const char* path, const char* value) {
  return set_field(message, path, value).value_or("none");
}

TEST(SetFieldTest, SetsFieldsOfEveryType) {
  file::Experiment message;
  EXPECT_EQ(problem_of(message, "plan.tp", "8"), "none");
  EXPECT_EQ(problem_of(message, "plan.zero", "3"), "none");
  EXPECT_EQ(problem_of(message, "plan.allow-idle-chips", "true"), "none");
  EXPECT_EQ(problem_of(message, "cluster.dgx_superpod.oversubscription", "1.5"), "none");
  EXPECT_EQ(problem_of(message, "cluster.chip.memory_capacity", "80GiB"), "none");
  EXPECT_EQ(message.plan().tp(), 8);
  EXPECT_EQ(message.plan().zero(), 3);
  EXPECT_TRUE(message.plan().allow_idle_chips());
  EXPECT_EQ(message.cluster().dgx_superpod().oversubscription(), 1.5);
  EXPECT_EQ(message.cluster().chip().memory_capacity(), "80GiB");
}

TEST(SetFieldTest, ReachesElementsOfListsAndAppends) {
  file::Experiment message;
  EXPECT_EQ(problem_of(message, "cluster.torus.axes[0].size", "4"), "none");
  EXPECT_EQ(problem_of(message, "cluster.torus.axes[1].size", "8"), "none");
  EXPECT_EQ(problem_of(message, "cluster.torus.axes[0].size", "6"), "none");
  ASSERT_EQ(message.cluster().torus().axes_size(), 2);
  EXPECT_EQ(message.cluster().torus().axes(0).size(), 6);
  EXPECT_EQ(problem_of(message, "cluster.torus.axes[3].size", "8"),
            "axes has 2 elements: index must be 0 to 2 (which appends), is 3");
  EXPECT_EQ(problem_of(message, "cluster.torus.axes.size", "8"),
            "axes is a list: say which element, as in axes[0]");
  EXPECT_EQ(problem_of(message, "cluster.torus.axes[x].size", "8"),
            "the index of axes must be a whole number in brackets");
  EXPECT_EQ(problem_of(message, "plan.tp[0]", "8"), "tp is not a list and takes no index");
}

TEST(SetFieldTest, SetsAListOfPlainValuesAsAWhole) {
  file::Experiment message;
  EXPECT_EQ(problem_of(message, "cluster.sizes.listed", "8,64"), "none");
  EXPECT_EQ(problem_of(message, "cluster.sizes.listed", "512,1024"), "none");
  ASSERT_EQ(message.cluster().sizes().listed_size(), 2);
  EXPECT_EQ(message.cluster().sizes().listed(1), "1024");
}

TEST(SetFieldTest, ListsMayHoldNumbersAndTruths) {
  file::Experiment message;
  EXPECT_EQ(problem_of(message, "model.experts.load", "3,1,0.5"), "none");
  ASSERT_EQ(message.model().experts().load_size(), 3);
  EXPECT_EQ(message.model().experts().load(2), 0.5);
  EXPECT_EQ(problem_of(message, "model.experts.load", "3,x"), "must be a number, is \"3,x\"");
  ASSERT_EQ(message.model().experts().load_size(), 3) << "unchanged";
  EXPECT_EQ(problem_of(message, "cluster.twisted_torus.shape", "4,4,8"), "none");
  EXPECT_EQ(message.cluster().twisted_torus().shape(2), 8);
  EXPECT_EQ(problem_of(message, "cluster.tpu_slice.wraps", "true,false"), "none");
  EXPECT_FALSE(message.cluster().tpu_slice().wraps(1));
}

TEST(SetFieldTest, AMemberOfAOneofTakesThePlaceOfTheOther) {
  file::Experiment message;
  message.mutable_cluster()->mutable_dgx_superpod()->set_nodes(4);
  EXPECT_EQ(problem_of(message, "cluster.torus.link_bandwidth", "90GB/s"), "none");
  EXPECT_FALSE(message.cluster().has_dgx_superpod());
  EXPECT_TRUE(message.cluster().has_torus());
}

TEST(SetFieldTest, AnUnknownPathListsWhatThereIs) {
  file::Experiment message;
  EXPECT_EQ(problem_of(message, "plann.tp", "8"),
            "no field plann in Experiment; did you mean plan?");
  EXPECT_EQ(problem_of(message, "cluster.torus.sizes", "8"),
            "no field sizes in Torus; it has: axes, link_bandwidth, link_latency");
  EXPECT_EQ(problem_of(message, "plan.tp.x", "8"), "tp has no fields of its own");
  EXPECT_EQ(problem_of(message, "cluster.torus", "8"),
            "torus is a group of fields, set one of them: axes, link_bandwidth, link_latency");
}

TEST(SetFieldTest, ValuesOfTheWrongTypeSayWhatIsTaken) {
  file::Experiment message;
  EXPECT_EQ(problem_of(message, "plan.tp", "8.5"), "must be a whole number, is \"8.5\"");
  EXPECT_EQ(problem_of(message, "plan.tp", ""), "must be a whole number, is \"\"");
  EXPECT_EQ(problem_of(message, "plan.zero", "3000000000"),
            "must be a whole number of at most 2147483647, is \"3000000000\"");
  EXPECT_EQ(problem_of(message, "plan.allow_idle_chips", "yes"),
            "must be true or false, is \"yes\"; did you mean true?");
  EXPECT_EQ(problem_of(message, "cluster.dgx_superpod.oversubscription", "much"),
            "must be a number, is \"much\"");
}

TEST(SetFieldTest, WhatCannotBeSetLeavesNothingBehind) {
  file::Experiment message;
  message.mutable_cluster()->mutable_dgx_superpod()->set_nodes(4);
  EXPECT_NE(problem_of(message, "cluster.torus.axes[0].size", "four"), "none");
  EXPECT_NE(problem_of(message, "plan.tp", "four"), "none");
  EXPECT_TRUE(message.cluster().has_dgx_superpod());
  EXPECT_FALSE(message.has_plan());
}

TEST(PutOverTest, FieldsOfTheChangesWinAndListsAreReplaced) {
  file::Cluster base;
  base.set_name("base");
  base.mutable_chip()->set_name("chip");
  base.mutable_chip()->set_memory_bandwidth("1TB/s");
  base.mutable_chip()->add_peak()->set_type("bf16");
  base.mutable_chip()->add_peak()->set_type("fp32");
  base.mutable_dgx_superpod()->set_nodes(4);
  file::Cluster changes;
  changes.mutable_chip()->set_memory_bandwidth("2TB/s");
  changes.mutable_chip()->add_peak()->set_type("fp8");
  changes.mutable_torus()->set_link_latency("1us");
  put_over(base, changes);
  EXPECT_EQ(base.name(), "base");
  EXPECT_EQ(base.chip().name(), "chip");
  EXPECT_EQ(base.chip().memory_bandwidth(), "2TB/s");
  ASSERT_EQ(base.chip().peak_size(), 1);
  EXPECT_EQ(base.chip().peak(0).type(), "fp8");
  EXPECT_TRUE(base.has_torus());
  EXPECT_FALSE(base.has_dgx_superpod());
}

}  // namespace
}  // namespace stepsim

// Compares tables of fields with the messages of files: every field of a message is read, every row
// can be given, and values in force read back.

#include <gtest/gtest.h>

#include <algorithm>

#include "experiment/simulation_fields.h"
#include "proto/experiment.pb.h"
#include "proto/messages/message_fields.h"
#include "proto/messages/read_fields.h"
#include "proto/to_spec.h"
#include "schedules/plan/keys/key_groups.h"
#include "sim/program/variation_fields.h"
#include "workload/model/model_fields.h"

namespace stepsim {
namespace {

// These fields name the source of a message. They are resolved before the message is read.
const std::vector<std::string> kSources = {"catalog", "huggingface", "as"};

// Returns a line for each field of the message that nothing reads, and for each row that no file
// can give.
std::string unmatched(const google::protobuf::Descriptor& message, const AnyFieldTable& table) {
  std::string lines;
  for (const std::string& line : unmatched_fields(message, table)) {
    const bool is_source = std::ranges::any_of(kSources, [&](const std::string& source) {
      return line.starts_with(message.name() + "." + source + " has no row");
    });
    if (!is_source) lines += "\n  " + line;
  }
  return lines;
}

TEST(FieldsTest, EveryFieldOfEveryMessageHasARowAndEveryRowAField) {
  EXPECT_EQ(unmatched(*file::Model::descriptor(), model_fields()), "")
      << "declare them in workload/model/model_fields.cc or proto/model.proto";
  EXPECT_EQ(unmatched(*file::Variation::descriptor(), variation_fields()), "")
      << "declare them in sim/program/variation_fields.cc or proto/experiment.proto";
  EXPECT_EQ(unmatched(*file::Simulation::descriptor(), simulation_fields()), "")
      << "declare them in experiment/simulation_fields.cc or proto/experiment.proto";
}

// One message has the keys of all three groups, and the names of catalog entries.
TEST(FieldsTest, EveryKeyIsAFieldAndEveryFieldAKeyOfOneGroup) {
  const auto& message = *file::Plan::descriptor();
  for (int i = 0; i < message.field_count(); ++i) {
    const std::string& name = message.field(i)->name();
    if (name == "catalog" || name == "software") continue;
    EXPECT_TRUE(group_of(name)) << name << ": declare it in schedules/plan/*_fields.cc";
  }
  for (const AnyField* const key : all_keys()) {
    const std::string name(key->name());
    EXPECT_NE(message.FindFieldByName(name), nullptr) << name << ": declare it in proto/plan.proto";
    const auto is_key = [&name](KeyGroup group) { return fields_of(group).find(name) != nullptr; };
    EXPECT_EQ(std::ranges::count_if(kKeyGroups, is_key), 1) << name;
  }
}

TEST(FieldsTest, AFieldWithoutARowIsFound) {
  FieldTable<ParallelPlan> table("Plan");
  table.add_inner("tp", &ParallelPlan::mesh, &Ranks::tp, {.help = "Ranks."});
  table.add_inner("colour", &ParallelPlan::mesh, &Ranks::cp, {.help = "Colour."});
  const std::vector<std::string> lines = unmatched_fields(*file::Plan::descriptor(), table);
  const auto has = [&](const char* line) { return std::ranges::count(lines, line) == 1; };
  EXPECT_TRUE(has("Plan.dp has no row, so nothing reads it"));
  EXPECT_FALSE(has("Plan.tp has no row, so nothing reads it"));
  EXPECT_TRUE(has("Plan.colour has a row but no field in the message, so no file can give it"));
}

// Returns a value other than the default for each key.
std::string other_value(const AnyField& field) {
  static const std::vector<std::pair<std::string_view, std::string>> kValues = {
      {"order", "dp-tp-cp-pp"},
      {"map", "tp:x/dp:y+z"},
      {"layout", "7,8*14,7"},
      {"schedule", "zb_h1"},
      {"recompute_modules", "norm+mlp"},
      {"recompute_keep", "qkv+out"},
      {"lora_modules", "qkv+out"},
      {"state_bytes", "10"},
      {"gradient_bytes", "2"},
      {"optimizer_bytes", "8"},
      {"cp_mode", "ulysses"},
      {"cache_split", "requests"},
      {"dispatch", "two_level"},
      {"inference", "decode"},
      {"recompute", "full"},
      {"loss", "separate"},
      {"attention_library", "flash2"},
      {"host_launch_cost", "0.000010000000"},
      {"cuda_graphs", "blocks"},
      {"memory_figure", "reserved"},
      {"optimizer", "none"},
      {"vision", "projector"}};
  for (const auto& [name, value] : kValues) {
    if (name == field.name()) return value;
  }
  if (field.accepts() == Text<bool>::accepts()) {
    return software_fields().default_of(field) == "true" ? "false" : "true";
  }
  return field.accepts().starts_with("fp32") ? "fp8" : "3";
}

TEST(FieldsTest, EveryPlanKeyIsReadFromAFileAndWrittenBackAlike) {
  for (const AnyField* const field : all_keys()) {
    const std::string name(field->name());
    if (name == "batch") continue;  // written as global_batch
    const std::string value = other_value(*field);
    file::Plan message;
    message.set_global_batch(64);
    message.set_sequence(128);
    ASSERT_EQ(set_field(message, name, value), std::nullopt) << name;
    ProblemList problems;
    const ParallelPlan plan = to_plan(message, problems);
    EXPECT_TRUE(problems.empty()) << name << ": " << problems.all().front().message;
    const std::vector<FieldValue> changed = changed_keys(plan);
    const auto found = std::ranges::find(changed, name, &FieldValue::path);
    ASSERT_NE(found, changed.end()) << name << " = " << value << " changed nothing";
    EXPECT_EQ(found->text, value) << name;
  }
}

TEST(FieldsTest, BatchIsAnotherNameOfGlobalBatch) {
  file::Plan message;
  message.set_inference("decode");
  message.set_batch(64);
  message.set_context(100);
  ProblemList problems;
  const ParallelPlan plan = to_plan(message, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(plan.batch.global_batch, 64);
  EXPECT_EQ(plan.batch.sequence, 1);
  message.set_global_batch(32);
  to_plan(message, problems);
  EXPECT_EQ(problems.all().size(), 1U);
}

TEST(FieldsTest, APlanIsMadeAgainFromWhatIsInForce) {
  file::Plan message;
  for (const char* key :
       {"tp=2", "dp=4", "pp=2", "chunks=2", "schedule=interleaved_1f1b", "global_batch=64",
        "sequence=128", "layout=1*3,0", "state_bytes=10", "map=tp:gpu"}) {
    const std::string text(key);
    const std::size_t equals = text.find('=');
    ASSERT_EQ(set_field(message, text.substr(0, equals), text.substr(equals + 1)), std::nullopt);
  }
  ProblemList problems;
  const std::vector<FieldValue> first = keys_in_force(to_plan(message, problems));
  file::Plan again;
  for (const FieldValue& value : first) {
    ASSERT_EQ(set_field(again, value.path, value.text), std::nullopt) << value.path;
  }
  EXPECT_EQ(keys_in_force(to_plan(again, problems)), first);
  EXPECT_TRUE(problems.empty());
}

TEST(FieldsTest, AValueThatWasReportedIsNotReportedTwice) {
  file::Plan message;
  message.set_tp(-3);
  message.set_global_batch(8);
  message.set_sequence(8);
  ProblemList problems;
  const ParallelPlan plan = to_plan(message, problems);
  EXPECT_EQ(problems.all(), (std::vector<Problem>{{"plan.tp", "must be at least 1, is -3"}}));
  EXPECT_EQ(plan.mesh.tp, 0) << "which later checks pass over";
}

TEST(FieldsTest, AStragglerIsGivenByARangeOfRanks) {
  file::Experiment message;
  ASSERT_EQ(set_field(message, "variation.straggler[0].rank", "0-2,5"), std::nullopt);
  ASSERT_EQ(set_field(message, "variation.straggler[0].slowdown", "1.5"), std::nullopt);
  ProblemList problems;
  Variation variation;
  read_fields(message.variation(), variation_fields(), variation, "variation.", problems);
  ASSERT_TRUE(problems.empty());
  EXPECT_EQ(
      variation_fields().changed(variation),
      (std::vector<FieldValue>{{"straggler[0].rank", "0-2,5"}, {"straggler[0].slowdown", "1.5"}}));
}

TEST(FieldsTest, EveryKeySaysWhatItIsAndWhenToChangeIt) {
  for (const AnyField* const field : all_keys()) {
    EXPECT_TRUE(field->doc().help.ends_with('.')) << field->name();
    const bool explains = field->doc().advice.ends_with('.') || field->doc().required;
    EXPECT_TRUE(explains) << field->name();
  }
}

}  // namespace
}  // namespace stepsim

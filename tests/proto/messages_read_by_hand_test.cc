// Messages without a table of fields, because their values become several things or part of one.
// Every field must still be read somewhere. A new field of such a message has to be read by the
// file named here and then listed; a removed one has to be removed from both.
//
// Messages with tables: fields_test.cc and hardware_fields_test.cc.

#include <gtest/gtest.h>

#include <algorithm>

#include "proto/algorithm.pb.h"
#include "proto/experiment.pb.h"
#include "proto/hardware.pb.h"
#include "proto/request_mix.pb.h"
#include "proto/software.pb.h"
#include "proto/trainer_names.pb.h"
#include "proto/uncertainty.pb.h"

namespace stepsim {
namespace {

using Names = std::vector<std::string>;

struct ReadByHand {
  const google::protobuf::Descriptor* message;
  const char* reader;
  Names fields;
};

std::vector<ReadByHand> messages_read_by_hand() {
  return {
      {file::Algorithm::descriptor(),
       "proto/collective_files.cc",
       {"name", "op", "members", "shards", "pieces", "shard_of", "step"}},
      {file::Algorithm::Step::descriptor(),
       "proto/collective_files.cc",
       {"lane", "round", "from", "to", "reduce", "block", "after", "also_after"}},
      {file::Algorithm::Round::descriptor(), "proto/collective_files.cc", {"lane", "round"}},
      {file::HardwareTable::descriptor(),
       "proto/catalog/load_hardware.cc",
       {"hardware", "socket_link"}},
      {file::Hardware::descriptor(),
       "proto/catalog/load_hardware.cc",
       {"name", "chip", "cluster", "one_cluster", "chips_per_node", "multislice", "cores_per_chip",
        "pci_device", "architecture", "link_bandwidth"}},
      {file::TrainerNames::descriptor(),
       "proto/catalog/trainer_names.cc",
       {"remat_policy", "recomputed_module", "model", "keys", "choice", "preset", "fields"}},
      {file::RematPolicy::descriptor(),
       "proto/catalog/trainer_names.cc",
       {"name", "keep", "offload"}},
      {file::RecomputedModule::descriptor(),
       "proto/catalog/trainer_names.cc",
       {"name", "module", "needs"}},
      {file::TrainerModel::descriptor(),
       "proto/catalog/trainer_names.cc",
       {"trainer", "name", "catalog", "fields"}},
      {file::TrainerFields::descriptor(),
       "proto/catalog/trainer_names.cc",
       {"software", "group", "field"}},
      {file::TrainerField::descriptor(),
       "proto/catalog/trainer_names.cc",
       {"key", "path", "kind", "values", "absent", "omit", "why"}},
      {file::Sizes::descriptor(),
       "proto/catalog/cluster_family.cc",
       {"listed", "maximum_chips", "chips_per_count", "maximum_count", "box",
        "wraps_when_multiple_of", "wraps_when_size", "may_be_twisted"}},
      {file::SoftwareTable::descriptor(), "proto/catalog/load_software.cc", {"software"}},
      {file::Software::descriptor(),
       "proto/catalog/load_software.cc",
       {"name", "until", "plan", "software", "chip", "recipe", "like"}},
      {file::SoftwareRecipe::descriptor(),
       "proto/catalog/load_software.cc",
       {"name", "plan", "software", "chip"}},
      {file::EngineReleaseTable::descriptor(),
       "proto/catalog/load_engine_releases.cc",
       {"release", "software"}},
      {file::ServingSoftware::descriptor(),
       "proto/catalog/load_serving_software.cc",
       {"name", "engine", "front_time", "library", "decode_kernels", "expert_kernels"}},
      {file::ServingLibrary::descriptor(),
       "proto/catalog/load_serving_software.cc",
       {"on", "name"}},
      {file::EngineRelease::descriptor(),
       "proto/catalog/load_engine_releases.cc",
       {"name", "engine", "keys", "defaults"}},
      {file::EngineDefaults::descriptor(),
       "proto/catalog/load_engine_releases.cc",
       {"usage", "memory_from", "memory_below", "chip", "not_chip", "tp_from", "keys",
        "reserved_memory", "reserved_memory_per_chip", "reserved_memory_at_least"}},
      {file::RequestMix::descriptor(),
       "proto/catalog/load_mix.cc",
       {"name", "input", "output", "source"}},
      {file::UncertaintyTable::descriptor(), "proto/catalog/load_intervals.cc", {"interval"}},
      {file::MeasuredInterval::descriptor(),
       "proto/catalog/load_intervals.cc",
       {"metric", "own_kernels", "experts", "across_nodes", "narrow", "low", "high", "rows",
        "sources", "median"}},
      {file::SoftwareChip::descriptor(),
       "proto/catalog/load_software.cc",
       {"begins_with", "fields", "plan", "software"}},
  };
}

TEST(MessagesReadByHandTest, EveryFieldIsReadByItsFile) {
  for (const ReadByHand& read : messages_read_by_hand()) {
    Names in_message;
    for (int i = 0; i < read.message->field_count(); ++i) {
      in_message.push_back(read.message->field(i)->name());
      EXPECT_EQ(std::ranges::count(read.fields, in_message.back()), 1)
          << read.message->name() << "." << in_message.back() << " is new: read it in "
          << read.reader << ", then list it here";
    }
    for (const std::string& field : read.fields) {
      EXPECT_EQ(std::ranges::count(in_message, field), 1)
          << read.message->name() << " has no field " << field << " any more: remove it in "
          << read.reader << " and here";
    }
  }
}

// Collects the message and those that it holds.
void collect(const google::protobuf::Descriptor& message, Names& names) {
  if (std::ranges::count(names, message.full_name()) > 0) return;
  names.push_back(message.full_name());
  for (int i = 0; i < message.field_count(); ++i) {
    if (const auto* held = message.field(i)->message_type()) collect(*held, names);
  }
}

TEST(MessagesReadByHandTest, EveryMessageHasATableOrIsReadByHand) {
  Names known;  // an experiment's parts have tables
  collect(*file::Experiment::descriptor(), known);
  for (const ReadByHand& read : messages_read_by_hand()) collect(*read.message, known);
  for (const google::protobuf::Descriptor* any :
       {file::Algorithm::descriptor(), file::Chip::descriptor(), file::Cluster::descriptor(),
        file::Experiment::descriptor(), file::Hardware::descriptor(), file::Library::descriptor(),
        file::Model::descriptor(), file::Plan::descriptor(), file::Software::descriptor()}) {
    for (int i = 0; i < any->file()->message_type_count(); ++i) {
      const std::string name = any->file()->message_type(i)->full_name();
      EXPECT_EQ(std::ranges::count(known, name), 1)
          << name << " is a new message: give it a table of fields, or list it here";
    }
  }
}

}  // namespace
}  // namespace stepsim

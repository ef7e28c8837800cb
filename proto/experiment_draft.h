// ExperimentDraft is an experiment file in the making: fields are set by their paths, as by --set,
// and the whole is written as the text of a file (.textproto). What importers read becomes one.
//
//   ExperimentDraft draft;
//   if (auto problem = draft.set("plan.tp", "8")) ...
//   load_experiment({.experiment = "imported", .text = draft.text()});

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

class ExperimentDraft {
 public:
  ExperimentDraft();
  ~ExperimentDraft();
  ExperimentDraft(const ExperimentDraft&) = delete;
  ExperimentDraft& operator=(const ExperimentDraft&) = delete;

  // Returns what is wrong, and then nothing has changed.
  std::optional<std::string> set(std::string_view path, std::string_view value);

  // Returns the text of a plain field that is set: "8"; nullopt if it is not, or there is none.
  std::optional<std::string> find(std::string_view path) const;
  bool has(std::string_view path) const { return find(path).has_value(); }
  // Returns a whole number, 0 if it is not set.
  std::int64_t integer(std::string_view path) const;

  // Replace the model, by a config.json of Hugging Face or its folder, and the cluster, by a file.
  // Return every problem.
  std::vector<Problem> set_hugging_face(const std::string& path);
  std::vector<Problem> set_cluster_file(const std::string& path);
  // The cluster of a record's fields (proto/experiment_record.h).
  std::vector<Problem> set_cluster_of_record(const std::string& json);

  std::string text() const;

 private:
  struct Message;
  std::unique_ptr<Message> message_;
};

}  // namespace stepsim

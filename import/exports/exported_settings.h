// ExportedSettings are the keys of a trainer's file while an exporter makes them, in the order in
// which they will be written:
//
//   made.set("parallelism.tensor_parallel_degree", 8);
//   made.refuse("plan.schedule", "torchtitan has no such schedule");
//   made.explain("plan.order", "torchtitan numbers tensor ranks first");
//
// refuse() is for what can't be said at all. explain() gives the reason for a key that may read
// back with another value, which then is a note; whether it does is found by reading the file
// (trainer_export.h).

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/messages/json_value.h"
#include "sim/base/error.h"

namespace stepsim {

struct ExportedSetting {
  std::string key;  // "parallelism.tensor_parallel_degree"; groups are joined by dots
  Json value;       // a truth value, a number, a text, or a list of numbers or texts
};

class ExportedSettings {
 public:
  void set(std::string_view key, Json value) {
    all_.push_back({std::string(key), std::move(value)});
  }
  void refuse(std::string_view path, std::string why) {
    refused_.push_back({std::string(path), std::move(why)});
  }
  void explain(std::string_view path, std::string why) {
    reasons_[std::string(path)] = std::move(why);
  }
  void accept(std::string_view path, std::string why) {
    accepted_.insert(std::string(path));
    explain(path, std::move(why));
  }
  bool accepts(const std::string& path) const { return accepted_.contains(path); }

  // Takes what was refused and explained of the same plan under other names.
  void take_reasons(const ExportedSettings& other) {
    refused_ = other.refused_;
    reasons_ = other.reasons_;
  }

  const std::vector<ExportedSetting>& all() const { return all_; }
  const std::vector<Problem>& refused() const { return refused_; }
  // Returns why a key may read back with another value; nullptr: nobody expected it.
  const std::string* reason(const std::string& path) const {
    const auto found = reasons_.find(path);
    return found == reasons_.end() ? nullptr : &found->second;
  }

 private:
  std::vector<ExportedSetting> all_;
  std::vector<Problem> refused_;
  std::map<std::string, std::string> reasons_;
  std::set<std::string> accepted_;
};

// Return the settings as the text of a file. Keys of one group stand together, where its first one
// does. Texts and keys are an exporter's own words: nothing of a stranger's file is among them.
std::string toml_of(const ExportedSettings& settings);
std::string yaml_of(const ExportedSettings& settings);

// Returns "--a 8 \" and so on, a flag a line; `flag_of` names the flag of a key with this value,
// "": the software has none, and the value is its default.
std::string flags_of(const ExportedSettings& settings,
                     std::string (*flag_of)(std::string_view key, bool is_off));

}  // namespace stepsim

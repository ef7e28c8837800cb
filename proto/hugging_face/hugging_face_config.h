// HuggingFaceConfig reads keys of one config.json, reports those that are missing or of the wrong
// kind, and remembers which it was asked for: a key that shapes a model and that nobody asked for
// must not be passed over in silence.
//
// Null means absent. `field` is the model's own name of what a key gives: a problem of the key is
// not reported a second time under it.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "proto/problem_list.h"

namespace stepsim {

class HuggingFaceConfig {
 public:
  // `name` is the file's, for problems. `object` must outlive this.
  HuggingFaceConfig(std::string name, const nlohmann::json& object, ProblemList& problems)
      : name_(std::move(name)), object_(object), problems_(problems) {}

  bool has(std::string_view key);

  // A size of the model: must be there.
  std::int64_t size(std::string_view key, std::string_view field);
  std::int64_t size_or(std::string_view key, std::string_view field, std::int64_t absent);
  // The same for what may be 0.
  std::int64_t count_or(std::string_view key, std::string_view field, std::int64_t absent);
  bool flag_or(std::string_view key, bool absent);
  double number_or(std::string_view key, double absent);
  // A list of texts or of whole numbers; empty if absent.
  std::vector<std::string> texts(std::string_view key);
  std::vector<std::int64_t> numbers(std::string_view key);
  // The key must be absent or say this: the model can't be told otherwise.
  void expect(std::string_view key, const nlohmann::json& value, std::string_view why);

  // Width of one head, where the file does not give it.
  std::int64_t divide_over_heads(std::int64_t width, std::int64_t heads, std::string_view key);

  // The first of two spellings that is there.
  std::string_view either(std::string_view key, std::string_view other) {
    const bool has_other = has(other);
    return has(key) || !has_other ? key : other;
  }

  // A later problem of the model's field has its cause in a key that is reported already.
  void leave_out(std::string_view field) { problems_.mark_reported("model." + std::string(field)); }

  void refuse(std::string_view key, std::string_view field, std::string message);

  // Refuses keys that shape a model, say something, and were not asked for by `family`.
  void refuse_unread(std::string_view family);

 private:
  std::int64_t whole(std::string_view key, std::string_view field, std::int64_t least);
  const nlohmann::json& at(std::string_view key) const { return object_.find(key).value(); }

  std::string name_;
  const nlohmann::json& object_;
  ProblemList& problems_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace stepsim

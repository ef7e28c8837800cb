// Settings are the keys of a trainer's configuration, whatever file they come from: YAML, TOML,
// JSON, flags of a command, the arguments that a log prints. Groups are joined by dots:
// "parallelism.tensor_parallel_degree".
//
//   settings.set({.key = "tp", .name = "--tp", .value = "8", .place = "run.sh:12"});
//   settings.integer("tp")              // 8, and "tp" counts as used
//   settings.unused()                   // what nobody has asked for
//
// If a key is given twice, the last value counts, as for argparse, Hydra and MaxText. A value of
// the wrong kind is a problem at its place, and then reads as not given. So do null, None and an
// empty text.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/messages/json_value.h"
#include "sim/base/error.h"

namespace stepsim {

struct Setting {
  std::string key{};    // "plan.tp", as readers look it up
  std::string name{};   // as the file spells it, for messages: "--tensor-model-parallel-size"
  Json value{};         // null, true or false, a number, a text, or a list of them
  std::string place{};  // "run.sh:12"
  bool is_used = false;

  // Returns "run.sh:12: --tensor-model-parallel-size".
  std::string where() const { return place.empty() ? name : place + ": " + name; }
  // Returns the value for a message, shortened.
  std::string shown() const;
};

// Limits on what a file may hold, beside its bytes.
inline constexpr std::size_t kMostSettings = 100'000;
inline constexpr std::size_t kMostSettingDepth = 64;

class Settings {
 public:
  // `problems` must outlive this.
  explicit Settings(std::vector<Problem>& problems) : problems_(&problems) {}

  void set(Setting setting);
  // Gives a value to what has none: defaults, merged parts.
  void set_if_absent(Setting setting);
  // Renames keys: `rename` returns the new key, or "" to drop it. If two get one name, the later
  // counts.
  void rename(const std::function<std::string(const Setting&)>& rename);

  std::size_t size() const { return order_.size(); }
  // Returns the setting, or nullptr if there is none or its value is null, None or empty.
  const Setting* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Returns whether the key is there, null or not.
  bool names(std::string_view key) const { return by_key_.contains(std::string(key)); }

  // Each marks the key as used.
  std::optional<std::int64_t> integer(std::string_view key);
  std::optional<double> number(std::string_view key);
  std::optional<bool> truth(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  // A list, or words of a text between commas or blanks.
  std::optional<std::vector<std::string>> words(std::string_view key);
  void use(std::string_view key);

  bool is_true(std::string_view key) { return truth(key).value_or(false); }
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise) {
    return integer(key).value_or(otherwise);
  }

  // Reports a problem at the place of the key.
  void fail(std::string_view key, const std::string& message);

  // In the order in which they were first given.
  std::vector<const Setting*> all() const;
  std::vector<const Setting*> unused() const;

 private:
  Setting* used(std::string_view key);
  void refuse(const Setting& setting, const std::string& accepted);

  std::map<std::string, Setting, std::less<>> by_key_;
  std::vector<std::string> order_;
  std::vector<Problem>* problems_;
};

// Returns whether a value says nothing: null, None or "".
bool is_blank_value(const Json& value);

// Return whether the key is, or begins with, one of the words between blanks.
bool is_one_of(std::string_view key, std::string_view words);
bool begins_with_one_of(std::string_view key, std::string_view words);

// Gathers settings while a file is read: SettingsBuilder knows the groups that are open, and keeps
// the limits.
class SettingsBuilder {
 public:
  // `file` is what places begin with.
  SettingsBuilder(Settings& settings, std::string file)
      : settings_(&settings), file_(std::move(file)) {}

  // Both return false, once, if the file has too many settings or is nested too deeply; problem()
  // says so.
  bool open(std::string_view group);
  void close();
  bool add(std::string_view name, Json value, std::size_t line, bool if_absent = false);

  const std::string& problem() const { return problem_; }
  std::string key_of(std::string_view name) const;

 private:
  Settings* settings_;
  std::string file_;
  std::vector<std::string> groups_;
  std::size_t bytes_ = 0;  // of keys
  std::string problem_;
};

}  // namespace stepsim

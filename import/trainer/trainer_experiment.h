// TrainerExperiment gathers an experiment from a trainer's settings, with what nobody may have to
// guess: what the files do not say and what was assumed in its place, and what they say that has no
// counterpart here.
//
//   TrainerExperiment made("megatron", settings, request, problems);
//   made.set("plan.tp", 8, "tensor_model_parallel_size");
//   made.assume("tokenizer: vocabulary of 50257");
//   made.leave("moe_router_dtype", "the router computes in bf16 here");
//   made.place(TrainerHardware::kGpu, ranks);
//   return made.finish(is_harmless);
//
// finish() lists the settings that nobody has asked for: those that change no step's time are
// counted, the others are "not known here". It loads the experiment as `stepsim run` would, and
// reports its problems at the settings that they come from.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/importer.h"
#include "import/settings/settings.h"
#include "proto/experiment_draft.h"
#include "workload/model/model_spec.h"

namespace stepsim {

enum class TrainerHardware : std::uint8_t { kGpu, kTpu };

class TrainerExperiment {
 public:
  TrainerExperiment(std::string_view kind, Settings& settings, const ImportRequest& request,
                    std::vector<Problem>& problems);

  Settings& settings() { return *settings_; }
  const ImportRequest& request() const { return *request_; }

  // Sets a field. `from`: the key that says so, "" if it follows from others.
  void set(std::string_view path, std::string_view value, std::string_view from = "");
  void set(std::string_view path, const char* value, std::string_view from = "") {
    set(path, std::string_view(value), from);
  }
  void set(std::string_view path, std::int64_t value, std::string_view from = "");
  void set(std::string_view path, bool value, std::string_view from = "");
  // Sets the field if the key has a whole number.
  void set_integer(std::string_view path, std::string_view key);

  // Names the model of the catalog that the other fields change.
  void start_from_model(const std::string& catalog_name, std::string_view from);
  // Takes the model of a config.json of Hugging Face, or of its folder.
  void set_model_file(const std::string& path);
  const ExperimentDraft& draft() const { return draft_; }
  // Returns a model of the catalog or of a file. One that can't be read is a problem, and then an
  // empty one is returned.
  ModelSpec based_model(const std::string& name);

  // Reports a problem of a setting.
  void fail(std::string_view key, const std::string& message) { settings_->fail(key, message); }
  bool has_problems() const { return !problems_->empty(); }

  void assume(std::string text) { assumed_.push_back(std::move(text)); }
  void assume(const std::vector<std::string>& lines) {
    assumed_.insert(assumed_.end(), lines.begin(), lines.end());
  }
  // Says of a setting that it has no counterpart, if it is there and its value is not the one that
  // changes nothing.
  void leave(std::string_view key, std::string_view why);
  void leave_unless(std::string_view key, std::string_view harmless_value, std::string_view why);
  void leave_if_true(std::string_view key, std::string_view why);
  // The same for all that the tables list (catalog/trainers/choices.textproto).
  void leave_listed(std::string_view reader);

  // Chooses a cluster for so many ranks: --cluster, or `hint` (a name of the catalog), or an
  // assumed one. Ranks that do not fill it leave chips idle.
  void place(TrainerHardware hardware, std::int64_t ranks, const std::string& hint = {},
             std::string_view why = {});

  // Returns the chips of --cluster; nullopt if there is none, or it can't be read.
  std::optional<std::int64_t> chips_of_cluster();

  // `changes_no_time`: whether a key, in small letters, changes no step's time.
  Imported finish(const std::function<bool(const Setting&)>& changes_no_time);

 private:
  struct Left {
    const Setting* setting;
    std::string why;
  };

  void apply_sets();
  void check(const std::string& text);
  std::string heading() const;
  std::string harmless_text() const;

  std::string kind_;
  Settings* settings_;
  const ImportRequest* request_;
  std::vector<Problem>* problems_;
  ExperimentDraft draft_;
  std::map<std::string, std::string, std::less<>> origins_;  // of fields: "run.sh:12: --tp"
  std::vector<std::string> assumed_;
  std::vector<Left> left_;
  std::vector<const Setting*> unknown_;
  std::vector<const Setting*> harmless_;
};

// Reads the files of a request that are no KEY=VALUE, each with its name; the words that are go
// over them. Returns nothing, with problems, if there is no file.
struct TrainerFiles {
  std::vector<std::string> paths;
  std::vector<std::string> overrides;
};
TrainerFiles trainer_files(const ImportRequest& request, std::vector<Problem>& problems);

// Returns the text of a file of settings, or that which the request has in its place.
std::optional<std::string> settings_text(const ImportRequest& request, const std::string& path,
                                         std::vector<Problem>& problems);

// Hands the text of each file to `read`, with its short name. A file of Python is a problem, which
// ends in `instead`: what writes the settings that can be read. Throws ConfigError if there are
// problems.
TrainerFiles read_trainer_files(
    const ImportRequest& request, std::string_view instead, std::vector<Problem>& problems,
    const std::function<void(const std::string& text, const std::string& name)>& read);

// Returns a x b and a least common multiple, or 0 where they pass a million ranks.
std::int64_t ranks_times(std::int64_t a, std::int64_t b);
std::int64_t common_ranks(std::int64_t a, std::int64_t b);

// Writes layers of stages as plan.layout has them: "7,8*14,7".
std::string layout_text(const std::vector<std::int64_t>& layers);

// Reads the Python that Megatron takes for patterns of layers, "[0]*3+[1]*58" and "([1]*3+[0])*2".
// nullopt if it is no such text, or has more than 10,000 elements.
std::optional<std::vector<std::int64_t>> layer_list(std::string_view text);

}  // namespace stepsim

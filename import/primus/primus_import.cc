#include "import/primus/primus_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "import/input_bytes.h"
#include "import/maxtext/maxtext_import.h"
#include "import/megatron/core_experiment.h"
#include "import/settings/settings_files.h"
#include "import/torchtitan/torchtitan_import.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_keys.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::string_view kModules = "modules.";

// "llama3_8B" of "${PRIMUS_MODEL:llama3_8B}.yaml".
std::string name_without_ending(std::string name) {
  for (const std::string_view ending : {".yaml", ".yml"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

class Primus {
 public:
  Primus(const ImportRequest& request, std::vector<Problem>& problems)
      : request_(request), problems_(problems), experiment_(problems), settings_(problems) {}

  Imported read() {
    read_files();
    throw_if_any(problems_);
    find_module();
    throw_if_any(problems_);
    take_model();
    take_overrides();
    throw_if_any(problems_);
    const TrainerKeys& keys = keys_of_trainer("primus " + framework_);
    if (framework_ == "torchtitan") {
      return import_torchtitan_settings("primus", keys, request_, settings_, problems_);
    }
    if (framework_ == "maxtext") {
      return import_maxtext_settings("primus", keys, request_, settings_, problems_);
    }
    return import_core_of_hub("primus", keys, settings_, request_, problems_);
  }

 private:
  void read_files() {
    const TrainerFiles files =
        read_trainer_files(request_, "Primus takes YAML", problems_,
                           [&](const std::string& text, const std::string& name) {
                             if (first_.empty()) {
                               first_ = name;
                               read_yaml_settings(text, name, experiment_, problems_);
                             } else {
                               others_.emplace(name, Settings(problems_));
                               read_yaml_settings(text, name, others_.at(name), problems_);
                             }
                           });
    overrides_ = files.overrides;
    fill_environment();
  }

  // "${PRIMUS_MODEL:llama3_8B}.yaml": a variable with what counts if it isn't set. KEY=VALUE sets
  // it.
  void fill_environment() {
    std::map<std::string, std::string> given;
    for (const std::string& word : overrides_) {
      given[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    std::vector<Setting> filled;
    for (const Setting* const setting : experiment_.all()) {
      if (!setting->value.is_string()) continue;
      std::string text = setting->value.get<std::string>();
      const std::size_t begin = text.find("${");
      const std::size_t colon = text.find(':', begin);
      const std::size_t end = text.find('}', begin);
      if (begin == std::string::npos || colon == std::string::npos || end == std::string::npos ||
          colon > end)
        continue;
      const auto own = given.find(text.substr(begin + 2, colon - begin - 2));
      const std::string value =
          own == given.end() ? text.substr(colon + 1, end - colon - 1) : own->second;
      text.replace(begin, end - begin + 1, value);
      filled.push_back(*setting);
      filled.back().value = std::move(text);
    }
    for (Setting& setting : filled) experiment_.set(std::move(setting));
  }

  // The one module that trains.
  void find_module() {
    for (const Setting* const setting : experiment_.all()) {
      const bool is_framework =
          setting->key.starts_with(kModules) && setting->key.ends_with(".framework");
      if (!is_framework || !module_.empty()) continue;
      module_ = setting->key.substr(0, setting->key.size() - std::string_view("framework").size());
    }
    if (module_.empty()) {
      problems_.push_back({first_, "has no module of Primus: modules.pre_trainer.framework"});
      return;
    }
    check("framework", {"megatron", "torchtitan", "maxtext"}, framework_);
    std::string config;
    check("config", {"pre_trainer.yaml"}, config);
  }

  void check(const char* key, const std::vector<std::string>& accepted, std::string& value) {
    value = experiment_.text(module_ + key).value_or("");
    if (std::ranges::find(accepted, value) == accepted.end()) {
      experiment_.fail(module_ + key, not_accepted(value, accepted));
    }
  }

  // The model's own files under the experiment's; else its name.
  void take_model() {
    const std::string file = experiment_.text(module_ + "model").value_or("");
    if (others_.contains(file)) {
      extend(file, 0);
      settings_.set_if_absent({.key = "model.file", .name = file, .value = file, .place = first_});
      return;
    }
    if (!others_.empty()) {
      experiment_.fail(module_ + "model", fmt::format("is {}: give that file as well", file));
    }
    experiment_.use(module_ + "model");
    const Setting* const named = experiment_.find(module_ + "model");
    if (named == nullptr || !request_.model.empty() || framework_ == "maxtext")
      return maxtext_name(named);
    const std::string name = name_without_ending(file);
    if (framework_ == "torchtitan") return torchtitan_name(*named, name);
    Setting model = *named;
    model.key = "model";
    model.value = name;
    settings_.set(std::move(model));
  }

  void maxtext_name(const Setting* named) {
    if (named == nullptr || framework_ != "maxtext") return;
    Setting model = *named;
    model.key = "model_name";
    model.value = catalog_model(name_without_ending(named->shown()));
    settings_.set(std::move(model));
  }

  // torchtitan's models have a name and a flavor, which the name of Primus' file joins.
  void torchtitan_name(const Setting& named, const std::string& name) {
    request_.model = catalog_model(name.ends_with("-fp8") ? name.substr(0, name.size() - 4) : name);
    if (request_.model.empty()) {
      experiment_.fail(named.key, fmt::format("is {}, which the catalog does not have: give its "
                                              "file as well, or --model M",
                                              shortened(name)));
    }
    if (name.ends_with("-fp8")) {
      experiment_.fail(named.key, "has a model file that sets types: give it as well");
    }
  }

  // What extends says first, then the file's own keys over it.
  void extend(const std::string& name, int depth) {
    constexpr int kMostDepth = 16;
    const auto found = others_.find(name);
    if (found == others_.end() || depth > kMostDepth) {
      problems_.push_back({first_, fmt::format("needs {}, which extends names: give that file as "
                                               "well",
                                               name)});
      return;
    }
    resolve_references(found->second);
    for (const std::string& base :
         found->second.words("extends").value_or(std::vector<std::string>())) {
      extend(short_name(base), depth + 1);
    }
    for (const Setting* const setting : found->second.all()) {
      if (setting->key != "extends" && setting->key != "includes") settings_.set(*setting);
    }
  }

  void take_overrides() {
    const std::string group = module_ + "overrides.";
    for (const Setting* const setting : experiment_.all()) {
      if (setting->is_used) continue;
      Setting own = *setting;
      if (own.key.starts_with(group)) own.key = own.key.substr(group.size());
      settings_.set(std::move(own));
    }
    for (const std::string& word : overrides_) {
      const bool is_variable = std::ranges::none_of(word.substr(0, word.find('=')),
                                                    [](char c) { return c >= 'a' && c <= 'z'; });
      if (!is_variable) apply_override(word, settings_);
    }
  }

  ImportRequest request_;
  std::vector<Problem>& problems_;
  std::string first_;
  Settings experiment_;
  std::map<std::string, Settings> others_;  // by the names of their files
  std::vector<std::string> overrides_;
  std::string module_;
  std::string framework_;
  Settings settings_;
};

}  // namespace

Imported import_primus(const ImportRequest& request) {
  std::vector<Problem> problems;
  return Primus(request, problems).read();
}

}  // namespace stepsim

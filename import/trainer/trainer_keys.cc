#include "import/trainer/trainer_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "proto/catalog/catalog.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"
#include "sim/base/suggestion.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

constexpr std::string_view kAnyRest = "*";

const TrainerKey* key_named(const TrainerKeys& keys, const std::string& name) {
  const auto found = std::ranges::find_if(keys.keys, [&](const TrainerKey& key) {
    if (!key.name.ends_with(kAnyRest)) return key.name == name;
    return name.starts_with(std::string_view(key.name).substr(0, key.name.size() - 1));
  });
  return found == keys.keys.end() ? nullptr : &*found;
}

std::string new_name(const TrainerKey& key, const std::string& name) {
  return key.name.ends_with(kAnyRest) ? key.becomes + name.substr(key.name.size() - 1)
                                      : key.becomes;
}

// "AttnBackend.flash" is flash, and dashes and blanks count as one.
std::string plain_word(std::string_view text) {
  std::string word = with_underscores(in_small_letters(text));
  std::erase_if(word, [](char c) { return c == '\'' || c == '"'; });
  std::ranges::replace(word, ' ', '_');
  const std::size_t dot = word.find('.');
  const bool is_enum = dot != std::string::npos && word.find_first_of("0123456789./") == dot;
  return is_enum ? word.substr(word.rfind('.') + 1) : word;
}

// Names of models, without what says how they were tuned or stored.
std::string letters_of_model(std::string_view text) {
  constexpr std::string_view kEndings =
      "instruct chat base it pt hf thinking 2507 bf16 fp8 nothink pretrain v0.1 v0.2 v0.3 mg 2512";
  std::string name = in_small_letters(text);
  std::ranges::replace(name, '_', '-');
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (const std::string_view ending : words_of(kEndings)) {
      if (!name.ends_with("-" + std::string(ending))) continue;
      name.resize(name.size() - ending.size() - 1);
      is_changed = true;
    }
  }
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  if (name.starts_with("meta")) name.erase(0, 4);  // Meta-Llama-3
  return name;
}

}  // namespace

const TrainerKeys& keys_of_trainer(std::string_view trainer) {
  const TrainerKeys* const keys = find_trainer_keys(trainer);
  if (keys == nullptr) throw ConfigError({{std::string(trainer), "has no table of keys"}});
  return *keys;
}

void rename_keys(const TrainerKeys& keys, Settings& settings, std::vector<Problem>& problems) {
  std::vector<Setting> translated;
  settings.rename([&](const Setting& setting) {
    const TrainerKey* const key = key_named(keys, setting.key);
    if (key == nullptr) return setting.key;
    const std::string name = new_name(*key, setting.key);
    if (key->values.empty() || is_blank_value(setting.value)) return name;
    std::string word = in_small_letters(setting.shown());
    if (setting.value.is_array()) {
      word.clear();
      for (const Json& each : setting.value) {
        word +=
            (word.empty() ? "" : " ") + (each.is_string() ? each.get<std::string>() : shown(each));
      }
    }
    const auto value =
        std::ranges::find(key->values, word, &std::pair<std::string, std::string>::first);
    if (value == key->values.end()) {
      std::vector<std::string> accepted;
      for (const auto& [from, to] : key->values) accepted.push_back(from);
      problems.push_back({setting.where(), not_accepted(word, accepted)});
      return std::string();
    }
    translated.push_back(setting);
    translated.back().key = name;
    translated.back().value = value->second;
    return std::string();
  });
  for (Setting& setting : translated) settings.set(std::move(setting));
}

std::vector<std::string> set_defaults(const TrainerKeys& keys, Settings& settings,
                                      bool has_experts) {
  std::vector<std::string> assumed;
  for (const TrainerDefault& each : keys.defaults) {
    const bool is_of_experts = each.key.starts_with("moe_") || each.key.starts_with("expert_");
    if (settings.has(each.key) || (is_of_experts && !has_experts)) continue;
    settings.set({.key = each.key,
                  .name = each.key,
                  .value = each.value,
                  .place = "default of " + keys.name});
    assumed.push_back(fmt::format("{} {}: {}", each.key, each.value, each.why));
  }
  return assumed;
}

bool changes_no_time(const TrainerKeys& keys, const Setting& setting) {
  return std::ranges::any_of(words_of(keys.no_effect), [&](std::string_view word) {
    if (!word.ends_with(kAnyRest)) return setting.key == word || setting.name == word;
    word.remove_suffix(1);
    return setting.key.starts_with(word) || setting.name.starts_with(word);
  });
}

void check_choices(std::string_view reader, Settings& settings) {
  for (const TrainerChoice& choice : trainer_choices()) {
    if (choice.reader != reader || choice.notes || !settings.has(choice.key)) continue;
    const Setting& setting = *settings.find(choice.key);
    std::vector<std::string> values;
    if (setting.value.is_array()) {
      for (const Json& each : setting.value)
        values.push_back(each.is_string() ? each.get<std::string>() : shown(each));
    } else {
      values.push_back(setting.shown());
    }
    settings.use(choice.key);
    for (const std::string& value : values) {
      const std::string word = plain_word(value);
      if (std::ranges::find(choice.accepts, word, with_underscores) != choice.accepts.end())
        continue;
      settings.fail(choice.key, not_accepted(value, choice.accepts) +
                                    (choice.why.empty() ? "" : ": " + choice.why));
      break;
    }
  }
}

std::string not_accepted(std::string_view value, const std::vector<std::string>& accepted) {
  return fmt::format("must be one of {}, is {}{}", comma_separated(accepted),
                     shortened(std::string(value)),
                     did_you_mean(in_small_letters(value), accepted));
}

std::string catalog_model(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  const std::string wanted = letters_of_model(name.substr(name.rfind('/') + 1));
  if (const TrainerModel* const other = find_trainer_model("hub", wanted)) return other->catalog;
  constexpr std::size_t kFewLetters = 4;
  if (wanted.size() < kFewLetters) return "";
  for (const std::string& known : list(CatalogKind::kModel)) {
    if (letters_of_model(known) == wanted) return known;
  }
  return "";
}

}  // namespace stepsim

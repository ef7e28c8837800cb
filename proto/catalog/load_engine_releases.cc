#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/catalog/engine_releases.h"
#include "proto/software.pb.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr std::string_view kServer = "server";
constexpr std::string_view kOffline = "offline";
constexpr std::string_view kDefaultEngine = "vllm";

std::optional<Bytes> size_of(const std::string& text, const std::string& where,
                             ProblemList& problems) {
  if (text.empty()) return std::nullopt;
  const std::optional<Bytes> size = parse_bytes(text);
  if (!size) problems.add(where, "must be a size such as 70GiB, is \"" + text + "\"");
  return size;
}

EngineDefaults defaults_of(const file::EngineDefaults& message, const std::string& where,
                           ProblemList& problems) {
  const auto size = [&](const std::string& text) { return size_of(text, where, problems); };
  EngineDefaults defaults{.usage = message.usage(),
                          .memory_from = size(message.memory_from()),
                          .memory_below = size(message.memory_below()),
                          .chips = {message.chip().begin(), message.chip().end()},
                          .not_chips = {message.not_chip().begin(), message.not_chip().end()}};
  if (message.has_tp_from()) defaults.tp_from = message.tp_from();
  defaults.keys = message.keys();
  defaults.reserved = size(message.reserved_memory());
  defaults.reserved_per_chip = size(message.reserved_memory_per_chip()).value_or(Bytes());
  defaults.reserved_at_least = size(message.reserved_memory_at_least()).value_or(Bytes());
  return defaults;
}

bool fits(const EngineDefaults& defaults, std::string_view usage, const EngineSetting& setting) {
  const auto is_part = [&setting](const std::string& part) {
    return setting.chip.find(part) != std::string::npos;
  };
  return (defaults.usage.empty() || defaults.usage == usage) &&
         (!defaults.memory_from || setting.memory >= *defaults.memory_from) &&
         (!defaults.memory_below || setting.memory < *defaults.memory_below) &&
         (defaults.chips.empty() || std::ranges::any_of(defaults.chips, is_part)) &&
         std::ranges::none_of(defaults.not_chips, is_part) && setting.tp >= defaults.tp_from;
}

std::string_view key_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// An underscore and a dash are the same in keys.
bool is_same_key(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char left, char right) {
    return (left == '_' ? '-' : left) == (right == '_' ? '-' : right);
  });
}

// Keys, of which later ones replace earlier ones.
class KeyList {
 public:
  void add(std::string_view text) {
    for (const std::string_view assignment : split_text(text, ',')) {
      if (assignment.empty()) continue;
      std::erase_if(entries_, [assignment](const std::string& entry) {
        return is_same_key(key_of(entry), key_of(assignment));
      });
      entries_.emplace_back(assignment);
    }
  }
  // Gives each rank its part of these keys, whose values hold where the list has none.
  void divide(std::string_view text, std::int64_t ranks) {
    for (const std::string_view assignment : split_text(text, ',')) {
      const auto same = std::ranges::find_if(entries_, [assignment](const std::string& entry) {
        return is_same_key(key_of(entry), key_of(assignment));
      });
      const std::string_view whole = same == entries_.end() ? assignment : std::string_view(*same);
      const std::string key(key_of(assignment));
      const auto value = number_in<std::int64_t>(whole.substr(key.size() + 1)).value_or(1);
      add(fmt::format("{}={}", key, std::max<std::int64_t>(value / ranks, 1)));
    }
  }
  std::string behind(std::string text) const {
    for (const std::string& entry : entries_) text += "," + entry;
    return text;
  }

 private:
  std::vector<std::string> entries_;
};

std::string fraction_key(const EngineDefaults& defaults, const EngineSetting& setting) {
  if (!defaults.reserved || setting.memory <= Bytes(0)) return "";
  const Bytes asked = *defaults.reserved + setting.tp * setting.pp * defaults.reserved_per_chip;
  const Bytes reserved = std::max(asked, defaults.reserved_at_least);
  const double share =
      1 - static_cast<double>(reserved.value()) / static_cast<double>(setting.memory.value());
  return fmt::format("kv-fraction={:.3f}", std::max(share, 0.001));
}

void add_keys_of_ranks(const EngineRelease& release, const EngineSetting& setting, KeyList& keys) {
  if (!setting.divides_attention_by_request()) return;
  if (!release.shared_by_ranks.empty()) keys.divide(release.shared_by_ranks, setting.dp);
  keys.add(release.keys_of_ranks);
}

// Returns the text of an engine without a release with what holds for all: `keys` alone are those
// of the engine that runs where none is named.
std::string with_memory(std::string_view text, const EngineSetting& setting) {
  const std::string_view first = text.substr(0, text.find_first_of(",:"));
  const bool is_named = first.find('=') == std::string_view::npos;
  const std::string engine(is_named ? first : kDefaultEngine);
  const std::string_view own =
      is_named ? text.substr(std::min(first.size() + 1, text.size())) : text;
  const std::vector<EngineRelease> releases = load_engine_releases();
  const auto last = std::find_if(releases.rbegin(), releases.rend(),
                                 [&engine](const auto& one) { return one.engine == engine; });
  if (last == releases.rend()) return std::string(text);
  KeyList keys;
  keys.add(last->memory);
  const auto defaults = std::ranges::find_if(last->defaults, [&](const EngineDefaults& candidate) {
    return fits(candidate, kServer, setting);
  });
  if (defaults != last->defaults.end()) keys.add(fraction_key(*defaults, setting));
  add_keys_of_ranks(*last, setting, keys);
  keys.add(own);
  return keys.behind(engine);
}

}  // namespace

std::vector<EngineRelease> load_engine_releases() {
  ProblemList problems;
  std::vector<EngineRelease> releases;
  const auto table = catalog_table<file::EngineReleaseTable>("engines", problems);
  for (const file::EngineRelease& message : table.release()) {
    EngineRelease& release = releases.emplace_back(
        EngineRelease{.name = message.name(), .engine = message.engine(), .keys = message.keys()});
    release.memory = message.memory();
    release.shared_by_ranks = message.shared_by_ranks();
    release.keys_of_ranks = message.keys_of_ranks();
    const std::string where = release.engine + "@" + release.name;
    for (const file::EngineDefaults& defaults : message.defaults()) {
      release.defaults.push_back(defaults_of(defaults, where, problems));
    }
  }
  throw_if_any(problems.all());
  return releases;
}

EngineSetting setting_of(std::string_view plan, std::string chip, Bytes memory) {
  static constexpr std::int64_t kMostRanks = 1 << 20;
  const auto ranks = [plan](std::string_view key) {
    for (const std::string_view entry : split_text(plan, ',')) {
      if (key_of(entry) != key || key.size() == entry.size()) continue;
      const auto value = number_in<std::int64_t>(entry.substr(key.size() + 1));
      return std::clamp<std::int64_t>(value.value_or(1), 1, kMostRanks);
    }
    return std::int64_t{1};
  };
  return {.chip = std::move(chip),
          .memory = memory,
          .tp = ranks("tp"),
          .pp = ranks("pp"),
          .dp = ranks("dp"),
          .ep = ranks("ep")};
}

std::string with_release(std::string_view text, const std::string& option,
                         const EngineSetting& setting, std::vector<Problem>& problems) {
  const std::string_view name = text.substr(0, text.find_first_of(",:"));
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos || name.find('=') < at) return with_memory(text, setting);
  const std::string engine(name.substr(0, at));
  const std::string_view asked = name.substr(at + 1);
  const std::string version(asked.substr(0, asked.find('/')));
  const std::string_view usage =
      version.size() < asked.size() ? asked.substr(version.size() + 1) : kServer;
  const std::string_view own = text.substr(std::min(name.size() + 1, text.size()));
  if (usage != kServer && usage != kOffline) {
    problems.push_back({option, "must be used as server or offline behind the release, is \"" +
                                    shortened(std::string(name)) + "\""});
  }
  std::vector<std::string> names;
  for (const EngineRelease& release : load_engine_releases()) {
    names.push_back(release.engine + "@" + release.name);
    if (release.engine != engine || release.name != version) continue;
    KeyList keys;
    keys.add(release.keys);
    const auto defaults = std::ranges::find_if(
        release.defaults,
        [&](const EngineDefaults& candidate) { return fits(candidate, usage, setting); });
    if (defaults != release.defaults.end()) {
      keys.add(defaults->keys);
      keys.add(fraction_key(*defaults, setting));
    }
    keys.add(release.memory);
    add_keys_of_ranks(release, setting, keys);
    keys.add(own);
    return keys.behind(engine);
  }
  problems.push_back({option, "no such release: \"" + shortened(std::string(name)) + "\"" +
                                  did_you_mean(engine + "@" + version, names,
                                               "There are: " + comma_separated(names))});
  return engine + (own.empty() ? "" : "," + std::string(own));
}

}  // namespace stepsim

#include "cli/catalog_command.h"

#include <optional>
#include <string_view>

#include "proto/catalog/catalog.h"
#include "proto/suggestion.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

std::optional<CatalogKind> kind_named(std::string_view name) {
  for (const CatalogKind kind : kCatalogKinds) {
    if (name == name_of(kind) || name == one_of(kind)) return kind;
  }
  return std::nullopt;
}

CatalogKind read_kind(const std::string& name) {
  if (const auto kind = kind_named(name)) return *kind;
  std::vector<std::string> names;
  for (const CatalogKind kind : kCatalogKinds) names.emplace_back(name_of(kind));
  throw ConfigError({{"KIND", "must be one of " + comma_separated(names) + "; is \"" + name + "\"" +
                                  did_you_mean(name, names)}});
}

std::string names_text(CatalogKind kind, std::string_view indent) {
  std::string text;
  for (const std::string& name : list(kind)) text += std::string(indent) + name + "\n";
  return text;
}

}  // namespace

std::string catalog_text(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::string text;
    for (const CatalogKind kind : kCatalogKinds) {
      text += std::string(name_of(kind)) + "\n" + names_text(kind, "  ");
    }
    return text;
  }
  if (arguments.size() > 2) {
    throw ConfigError({{arguments[2], "stepsim catalog takes at most KIND and NAME"}});
  }
  const CatalogKind kind = read_kind(arguments[0]);
  if (arguments.size() == 1) return names_text(kind, "");
  const CatalogAnswer answer = find(kind, arguments[1]);
  if (!answer.found) throw ConfigError({{"NAME", answer.problem}});
  return answer.found->text;
}

}  // namespace stepsim

#include "proto/catalog/hardware_words.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

// Words that don't tell chips apart. "v4" and "v5" alone are generations of Azure's machines; TPUs
// are "tpuv4", "v5e", "v5p", "v5lite".
constexpr auto kSaysNothing = std::to_array<std::string_view>(
    {"accelerator", "accelerators", "ada",       "amazon",      "amd",
     "ampere",      "aws",          "azure",     "baseboard",   "blackwell",
     "card",        "cards",        "chip",      "chips",       "cloud",
     "cluster",     "coreweave",    "cpu",       "dgx",         "ec2",
     "edition",     "gcp",          "geforce",   "google",      "gpu",
     "gpus",        "grace",        "habana",    "hgx",         "hopper",
     "hpu",         "instance",     "instances", "instinct",    "intel",
     "lambda",      "mb",           "memory",    "mib",         "module",
     "node",        "nodes",        "nvidia",    "nd",          "nvl8",
     "nvlink",      "oam",          "oci",       "oracle",      "pod",
     "quadro",      "slice",        "superchip", "superpod",    "system",
     "tesla",       "the",          "ultra",     "ultraserver", "v4",
     "v5",          "vm",           "volta",     "with",        "x"});

// Makers' names of families that tables write apart from the number after them.
constexpr auto kFamilies =
    std::to_array<std::string_view>({"gaudi", "mi", "pro", "rtx", "tpu", "trainium", "trn"});

// Chips whose names have no digit.
constexpr auto kNames = std::to_array<std::string_view>({"ironwood", "trainium", "trillium"});

bool is_letter(char letter) {
  return letter >= 'a' && letter <= 'z';
}

bool is_number(std::string_view word) {
  return std::ranges::all_of(word, is_digit);
}

// True of digits followed by `unit`.
bool is_count_of(std::string_view word, std::string_view unit) {
  return word.size() > unit.size() && word.ends_with(unit) &&
         is_number(word.substr(0, word.size() - unit.size()));
}

// Returns the parts of letters, digits and points between digits, in lower case.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char letter =
        name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] + 32) : name[i];
    const bool inside =
        letter == '.' && !parts.back().empty() && i + 1 < name.size() && is_digit(name[i + 1]);
    if (is_digit(letter) || is_letter(letter) || inside) {
      parts.back() += letter;
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// Cuts a form factor out of a word: "h100sxm5" is h100 and sxm.
void cut_form(std::string part, std::vector<std::string>& words) {
  for (const std::string_view form : {"sxm", "pcie", "nvl72"}) {
    const std::size_t at = part.find(form);
    if (at == std::string::npos) continue;
    if (at > 0) words.push_back(part.substr(0, at));
    words.emplace_back(form);
    std::string rest = part.substr(at + form.size());
    if (!rest.empty() && is_digit(rest.front())) rest.erase(0, 1);  // generation: sxm5
    if (!rest.empty()) words.push_back(std::move(rest));
    return;
  }
  words.push_back(std::move(part));
}

std::string in_gigabytes(std::string_view word) {
  for (const std::string_view unit : {"gib", "gb", "g"}) {
    if (is_count_of(word, unit)) {
      return std::string(word.substr(0, word.size() - unit.size())) + "gb";
    }
  }
  return std::string(word);
}

// Joins words that tables write apart: "rtx 4090", "80 gb", "v5 lite", "tpu v4".
std::vector<std::string> joined(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    const std::string before = all.empty() ? "" : all.back();
    const bool of_family =
        std::ranges::find(kFamilies, before) != kFamilies.end() && is_digit(word.front());
    const bool is_unit = is_number(before) && !before.empty() && (word == "gb" || word == "gib");
    const bool is_lite = (word == "lite" || word == "litepod") && before.starts_with("v");
    if (word == "core" && before == "tensor") {
      all.pop_back();
    } else if (of_family || is_unit || is_lite) {
      all.back() += is_lite ? "lite" : word;
    } else if (before == "tpu" && word.front() == 'v') {
      all.back() = word;
    } else {
      all.push_back(word);
    }
  }
  return all;
}

bool says_nothing(std::string_view word) {
  return std::ranges::find(kSaysNothing, word) != kSaysNothing.end() || is_number(word) ||
         is_count_of(word, "x") || is_count_of(word, "w") || word.starts_with("hbm") ||
         word.starts_with("gddr") || word.starts_with("nvlink") || word == "tpu" || word == "nvl72";
}

}  // namespace

std::vector<std::string> hardware_words(std::string_view name) {
  std::vector<std::string> cut;
  for (std::string& part : parts_of(name)) {
    // "8xh100": a count before the name.
    const std::size_t times = part.find('x');
    if (times != std::string::npos && times > 0 && times + 1 < part.size() &&
        is_number(std::string_view(part).substr(0, times)) && is_letter(part[times + 1])) {
      part.erase(0, times + 1);
    }
    if (part.starts_with("tpuv")) {
      cut.emplace_back("tpu");
      part.erase(0, 3);
    }
    cut_form(std::move(part), cut);
  }
  const bool is_tpu = std::ranges::find(cut, "tpu") != cut.end();
  std::vector<std::string> words;
  for (const std::string& word : joined(cut)) {
    const std::string size = word == "v4" && is_tpu ? "tpuv4" : in_gigabytes(word);
    if (!says_nothing(size)) words.push_back(size);
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

bool names_hardware(std::string_view word) {
  if (std::ranges::find(kNames, word) != kNames.end()) return true;
  return std::ranges::any_of(word, is_digit) && std::ranges::any_of(word, is_letter) &&
         !is_count_of(word, "gb");
}

}  // namespace stepsim

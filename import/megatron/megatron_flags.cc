#include "import/megatron/megatron_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "import/input_bytes.h"
#include "import/settings/settings_files.h"
#include "import/settings/shell_script.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"

namespace stepsim {
namespace {

// Flags that set a key of another name.
struct FlagOfOtherKey {
  std::string_view flag;
  std::string_view key;
  std::string_view value;     // "": the flag's own
  bool is_only_name = false;  // the key itself is no flag
};
constexpr std::array kFlagsOfOtherKeys = {
    FlagOfOtherKey{"disable_bias_linear", "add_bias_linear", "False"},
    FlagOfOtherKey{"no_position_embedding", "add_position_embedding", "False"},
    FlagOfOtherKey{"no_overlap_p2p_communication", "overlap_p2p_comm", "False"},
    FlagOfOtherKey{"no_gradient_accumulation_fusion", "gradient_accumulation_fusion", "False"},
    FlagOfOtherKey{"no_scatter_gather_tensors_in_pipeline", "scatter_gather_tensors_in_pipeline",
                   "False"},
    FlagOfOtherKey{"recompute_activations", "recompute_granularity", "selective"},
    FlagOfOtherKey{"checkpoint_activations", "recompute_granularity", "full"},
    FlagOfOtherKey{"activations_checkpoint_method", "recompute_method", ""},
    FlagOfOtherKey{"activations_checkpoint_num_layers", "recompute_num_layers", ""},
    FlagOfOtherKey{"fp8_format", "fp8", "", true},
    FlagOfOtherKey{"fp4_format", "fp4", "", true},
    FlagOfOtherKey{"microbatch_group_size_per_virtual_pipeline_stage",
                   "microbatch_group_size_per_vp_stage", "", true},
    FlagOfOtherKey{"num_moe_experts", "num_experts", ""},
    FlagOfOtherKey{"nproc_per_node", "nproc_per_node", ""},
    FlagOfOtherKey{"quick_geglu", "swiglu", "True"},
    FlagOfOtherKey{"hybrid_override_pattern", "hybrid_layer_pattern", ""},
    FlagOfOtherKey{"use_custom_fsdp", "use_megatron_fsdp", ""},
    FlagOfOtherKey{"no_delay_wgrad_compute", "delay_wgrad_compute", "False"},
};

// Keys of Megatron-LM up to 2023, which tell how old a command is.
constexpr auto kOldFlags = std::to_array<std::string_view>(
    {"ddp_impl", "activations_checkpoint_method", "activations_checkpoint_num_layers",
     "checkpoint_activations", "use_legacy_models"});

std::string key_of_flag(std::string_view flag) {
  std::string key;
  for (const char c : flag) {
    key += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return key;
}

void set_flag(std::string_view name, Json value, const std::string& place, Settings& settings) {
  std::string key = key_of_flag(name);
  const std::string shown = "--" + std::string(name);
  if (std::ranges::find(kOldFlags, key) != kOldFlags.end()) {
    settings.set({.key = "is_old_megatron", .name = shown, .value = true, .place = place});
  }
  const auto other = std::ranges::find(kFlagsOfOtherKeys, key, &FlagOfOtherKey::flag);
  if (other != kFlagsOfOtherKeys.end()) {
    if (key == "activations_checkpoint_method") {
      settings.set(
          {.key = "recompute_granularity", .name = shown, .value = "full", .place = place});
    }
    key = other->key;
    if (!other->value.empty()) {
      // "--flag False" of YAML turns it around.
      const bool is_off = value.is_string() && (value == "False" || value == "false");
      if (is_off) return;
      value = std::string(other->value);
    }
  }
  settings.set({.key = key, .name = shown, .value = std::move(value), .place = place});
}

// ---- logs ----

bool is_argument_name(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

// "  hidden_size ......... 4096", behind whatever a launcher writes before each line. Names of 48
// letters and more have no dots.
std::optional<std::pair<std::string, std::string>> argument_of_line(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool is_dots = words[i].find_first_not_of('.') == std::string_view::npos;
    if (!is_dots || !is_argument_name(words[i - 1])) continue;
    const std::size_t begin =
        static_cast<std::size_t>(words[i].data() - line.data()) + words[i].size();
    const std::string_view rest = line.substr(begin);
    const std::size_t first = rest.find_first_not_of(" \t");
    std::string_view value = first == std::string_view::npos ? "" : rest.substr(first);
    while (!value.empty() && (value.back() == '\r' || value.back() == ' ')) value.remove_suffix(1);
    return std::pair(std::string(words[i - 1]), std::string(value));
  }
  return std::nullopt;
}

bool has_title(std::string_view line, std::string_view title) {
  const std::size_t at = line.find(title);
  if (at == std::string_view::npos) return false;
  return line.find("----") != std::string_view::npos;
}

// Returns whether there is a block of arguments.
bool read_log(std::string_view text, const std::string& file, Settings& settings) {
  struct Argument {
    std::string name;
    std::string value;
    std::size_t line;
  };
  std::vector<Argument> arguments;
  bool is_inside = false;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (has_title(line, "- end of arguments -")) {
      is_inside = false;
    } else if (has_title(line, "- arguments -")) {
      is_inside = true;
      arguments.clear();
    } else if (is_inside && arguments.size() < kMostSettings) {
      if (auto argument = argument_of_line(line)) {
        arguments.push_back({std::move(argument->first), std::move(argument->second), line_number});
      }
    }
  }
  for (Argument& argument : arguments) {
    const std::string key = key_of_flag(argument.name);
    const std::string place = fmt::format("{}:{}", file, argument.line);
    if (std::ranges::find(kOldFlags, key) != kOldFlags.end() && argument.value != "None" &&
        argument.value != "False") {
      settings.set({.key = "is_old_megatron", .name = key, .value = true, .place = place});
    }
    settings.set(
        {.key = key, .name = argument.name, .value = std::move(argument.value), .place = place});
  }
  return !arguments.empty();
}

// ---- scripts and lists ----

bool is_flag(std::string_view word) {
  return word.size() > 2 && word.starts_with("--") &&
         std::isalpha(static_cast<unsigned char>(word[2])) != 0;
}

// Words that a shell would hand on as one, as those of bash -c, are cut again.
std::vector<ShellWord> cut_again(const std::vector<ShellWord>& words) {
  std::vector<ShellWord> cut;
  for (const ShellWord& word : words) {
    const bool is_many = word.text.find(" --") != std::string::npos ||
                         word.text.find("\n--") != std::string::npos ||
                         (is_flag(word.text) && word.text.find(' ') != std::string::npos);
    if (!is_many) {
      cut.push_back(word);
      continue;
    }
    for (ShellWord& part : words_with_lines(word.text, word.line)) {
      std::erase_if(part.text, [](char c) { return c == '"' || c == '\'' || c == '\\'; });
      if (!part.text.empty()) cut.push_back(std::move(part));
    }
  }
  return cut;
}

std::size_t count_flags(const std::vector<ShellWord>& words) {
  return static_cast<std::size_t>(
      std::ranges::count_if(words, [](const ShellWord& word) { return is_flag(word.text); }));
}

// "megatron sft" and "swift sft" of ms-swift; "" for other commands.
std::string swift_program(const std::vector<ShellWord>& words) {
  constexpr std::string_view kPrograms = "megatron swift";
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const bool is_swift = is_one_of(words[i].text, kPrograms) && !is_flag(words[i + 1].text) &&
                          words[i + 1].text.find('=') == std::string::npos;
    if (is_swift) return words[i].text + " " + words[i + 1].text;
  }
  return "";
}

bool names_program(const std::vector<ShellWord>& words) {
  if (!swift_program(words).empty()) return true;
  return std::ranges::any_of(words, [](const ShellWord& word) {
    return word.text.ends_with(".py") || word.text.ends_with("torchrun");
  });
}

void set_flags(const std::vector<ShellWord>& words, const std::string& file, Settings& settings) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_flag(words[i].text)) continue;
    std::string name = words[i].text.substr(2);
    const std::string place = fmt::format("{}:{}", file, words[i].line);
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos) {
      set_flag(name.substr(0, equals), name.substr(equals + 1), place, settings);
      continue;
    }
    Json values = Json::array();
    for (std::size_t next = i + 1; next < words.size() && values.size() < 1'000; ++next) {
      const std::string& text = words[next].text;
      // What follows the program are its own flags.
      if (is_flag(text) || text.ends_with(".py") || text == "-m" || text.starts_with(">")) break;
      values.push_back(text);
    }
    if (values.empty()) {
      set_flag(name, true, place, settings);
    } else if (values.size() == 1) {
      set_flag(name, values[0], place, settings);
    } else {
      set_flag(name, std::move(values), place, settings);
    }
  }
}

// The command that starts a program with the most flags; of equals the last. Where there is none,
// what variables hold.
void read_script(std::string_view text, const std::string& file,
                 const std::map<std::string, std::string>& given, Settings& settings,
                 std::vector<Problem>& problems) {
  const ShellScript script = read_shell_script(text, file, given, problems);
  std::vector<ShellWord> best;
  for (const ShellCommand& command : script.commands) {
    std::vector<ShellWord> words = cut_again(command.words);
    if (names_program(words) && count_flags(words) > 0 && count_flags(words) >= count_flags(best)) {
      best = std::move(words);
    }
  }
  constexpr std::size_t kFewFlags = 4;  // those of the launcher alone
  if (count_flags(best) < kFewFlags) {
    for (const auto& [name, words] : script.variables) set_flags(cut_again(words), file, settings);
    for (const ShellCommand& command : script.commands) {
      set_flags(cut_again(command.words), file, settings);
    }
  }
  set_flags(best, file, settings);
  if (const std::string program = swift_program(best); !program.empty()) {
    settings.set({.key = "swift_program",
                  .name = program,
                  .value = program,
                  .place = fmt::format("{}:{}", file, best.front().line)});
  }
  for (const auto& [name, words] : script.variables) {
    // Where the script counts its processes, though the launcher is another one. ms-swift takes
    // two of them as its launcher's.
    const bool is_swift = settings.has("swift_program");
    const bool is_count = name == "WORLD_SIZE" || name == "NNODES" || name == "NUM_NODES" ||
                          name == "GPUS_PER_NODE" || (is_swift && name == "NPROC_PER_NODE");
    if (is_count && words.size() == 1) {
      settings.set({.key = (is_swift ? "" : "script_") + key_of_flag(name),
                    .name = name,
                    .value = words[0].text,
                    .place = fmt::format("{}:{}", file, words[0].line)});
    }
  }
}

// ---- YAML ----

bool has_yaml_arguments(std::string_view text) {
  return text.starts_with("MODEL_ARGS:") || text.find("\nMODEL_ARGS:") != std::string_view::npos;
}

void read_yaml_arguments(std::string_view text, const std::string& file, Settings& settings,
                         std::vector<Problem>& problems) {
  Settings all(problems);
  read_yaml_settings(text, file, all, problems);
  for (const Setting* const setting : all.all()) {
    constexpr std::string_view kGroup = "MODEL_ARGS.";
    std::string_view name = setting->key;
    if (!name.starts_with(kGroup)) continue;
    name.remove_prefix(kGroup.size());
    while (name.starts_with('-')) name.remove_prefix(1);
    set_flag(name, setting->value, setting->place, settings);
  }
}

}  // namespace

std::string megatron_flag(std::string_view key, bool is_off) {
  std::string_view name = is_off ? "" : key;
  for (const FlagOfOtherKey& row : kFlagsOfOtherKeys) {
    if (row.key != key) continue;
    if (row.value == "False") name = is_off ? row.flag : "";
    if (row.is_only_name && !is_off) name = row.flag;
  }
  std::string flag(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::optional<MegatronSource> read_megatron_flags(std::string_view text, const std::string& path,
                                                  const std::vector<std::string>& overrides,
                                                  Settings& settings,
                                                  std::vector<Problem>& problems) {
  const std::string file = short_name(path);
  std::map<std::string, std::string> given;
  for (const std::string& word : overrides) {
    const std::size_t equals = word.find('=');
    given[word.substr(0, equals)] = word.substr(equals + 1);
  }
  MegatronSource source = MegatronSource::kFlags;
  if (read_log(text, file, settings)) {
    source = MegatronSource::kLog;
  } else if (text.size() > static_cast<std::size_t>(most_bytes(InputKind::kText).value())) {
    problems.push_back({path, "is no log of Megatron-LM, and can't be read as a script: " +
                                  too_long(InputKind::kText, "has")});
  } else if (has_yaml_arguments(text)) {
    read_yaml_arguments(text, file, settings, problems);
  } else {
    read_script(text, file, given, settings, problems);
  }
  for (const auto& [name, value] : given) {
    std::string flag = name;
    while (flag.starts_with('-')) flag.erase(0, 1);
    const bool is_variable = std::ranges::none_of(
        flag, [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; });
    if (!is_variable) set_flag(flag, value, "KEY=VALUE", settings);
  }
  const bool is_some = settings.names("num_layers") || settings.names("hidden_size") ||
                       settings.names("micro_batch_size") ||
                       settings.names("tensor_model_parallel_size") ||
                       settings.names("hybrid_layer_pattern") || settings.names("swift_program");
  if (is_some) return source;
  if (problems.empty()) {
    problems.push_back(
        {path,
         "has no arguments of Megatron-LM: neither a log with its block of arguments, "
         "nor a script or a list with flags like --num-layers"});
  }
  return std::nullopt;
}

}  // namespace stepsim

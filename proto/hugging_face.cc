#include "proto/hugging_face.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace stepsim {
namespace {

using nlohmann::json;

class Config {
 public:
  Config(const SourceText& source, const json& object, ProblemList& problems)
      : source_(source), object_(object), problems_(problems) {}

  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }

  // A size of the model. Nothing is reported under the model's own name of it a second time.
  std::int64_t size(const char* key, const char* field) {
    if (has(key)) return size_or(key, field, 0);
    refuse(key, field, "must be given: a whole number of at least 1");
    return 0;
  }

  std::int64_t size_or(const char* key, const char* field, std::int64_t absent) {
    if (!has(key)) return absent;
    const json& value = object_[key];
    if (value.is_number_integer() && value.get<double>() >= 1 && value.get<double>() < 0x1p62) {
      return value.get<std::int64_t>();
    }
    refuse(key, field, "must be a whole number of at least 1, is " + value.dump());
    return 0;
  }

  bool flag_or(const char* key, bool absent) {
    if (!has(key)) return absent;
    if (object_[key].is_boolean()) return object_[key].get<bool>();
    refuse(key, "", "must be true or false, is " + object_[key].dump());
    return absent;
  }

  // Width of one head, where the file does not give it.
  std::int64_t divide_over_heads(std::int64_t width, std::int64_t heads, const char* key) {
    if (width == 0 || heads == 0) return 1;  // reported already
    if (width % heads == 0) return width / heads;
    refuse(key, "head_dim",
           "must divide the hidden size (" + std::to_string(width) +
               ") where head_dim is not given, is " + std::to_string(heads));
    return 1;
  }

  void refuse(const char* key, const std::string& field, std::string message) {
    if (!field.empty()) problems_.mark_reported("model." + field);
    problems_.add(source_.name + ": " + key, std::move(message));
  }

 private:
  const SourceText& source_;
  const json& object_;
  ProblemList& problems_;
};

void read_llama(Config& config, file::Model& model) {
  model.set_layers(config.size("num_hidden_layers", "layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_intermediate(config.size("intermediate_size", "intermediate"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_kv_heads(config.size_or("num_key_value_heads", "kv_heads", model.heads()));
  model.set_head_dim(
      config.has("head_dim")
          ? config.size_or("head_dim", "head_dim", 0)
          : config.divide_over_heads(model.hidden(), model.heads(), "num_attention_heads"));
  model.set_learned_positions(0);
  model.set_gated_mlp(true);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
  model.set_norm("rms");
}

void read_gpt2(Config& config, file::Model& model) {
  model.set_layers(config.size("n_layer", "layers"));
  model.set_hidden(config.size("n_embd", "hidden"));
  model.set_heads(config.size("n_head", "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_learned_positions(config.size("n_positions", "learned_positions"));
  model.set_intermediate(config.size_or("n_inner", "intermediate", 4 * model.hidden()));
  model.set_kv_heads(model.heads());
  model.set_head_dim(config.divide_over_heads(model.hidden(), model.heads(), "n_head"));
  model.set_gated_mlp(false);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_attention_bias(true);
  model.set_mlp_bias(true);
  model.set_norm("layer");
}

}  // namespace

bool is_hugging_face(const SourceText& source) {
  if (source.extension != ".json") return false;
  const json object = json::parse(source.text, nullptr, false);
  return object.is_object() && object.contains("model_type");
}

void read_hugging_face(const SourceText& source, file::Model& model, ProblemList& problems) {
  json object;
  try {
    object = json::parse(source.text);
  } catch (const json::parse_error& error) {
    const std::string what = error.what();
    problems.add(source.name, what.substr(std::min(what.find("] ") + 2, what.size())));
    return;
  }
  if (!object.is_object()) {
    problems.add(source.name, "must hold one object in braces");
    return;
  }
  Config config(source, object, problems);
  const std::string type = config.has("model_type") ? object["model_type"].dump() : "missing";
  if (type == "\"llama\"") {
    read_llama(config, model);
  } else if (type == "\"gpt2\"") {
    read_gpt2(config, model);
  } else {
    config.refuse("model_type", "", "must be \"llama\" or \"gpt2\", is " + type);
  }
}

}  // namespace stepsim

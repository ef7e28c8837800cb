#include "proto/messages/message_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "proto/messages/json_value.h"
#include "proto/messages/message_fields.h"

namespace stepsim {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

constexpr std::size_t kMostProblems =
    100;  // of unknown fields; finding one takes a pass over the text

// Complaint is a problem of protobuf text. Line and column count from 0.
struct Complaint {
  int line = 0;
  int column = 0;
  std::string message;
};

std::string place(const SourceText& source, int line, int column) {
  return source.name + ":" + std::to_string(line + 1) + ":" + std::to_string(column + 1);
}

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    errors.push_back({line, column, message});
  }
  // The parser goes on after an unknown field, and only warns.
  void AddWarning(int line, google::protobuf::io::ColumnNumber column,
                  const std::string& message) override {
    if (unknown_fields.size() < kMostProblems) unknown_fields.push_back({line, column, message});
  }

  std::vector<Complaint> errors;
  std::vector<Complaint> unknown_fields;
};

std::size_t offset_of(const std::string& text, int line, int column) {
  std::size_t offset = 0;
  for (int i = 0; i < line; ++i) offset = text.find('\n', offset) + 1;
  // A tab moves the parser's column to the next multiple of 8.
  for (int at = 0; at < column && offset < text.size(); ++offset) {
    at = text[offset] == '\t' ? (at / 8 + 1) * 8 : at + 1;
  }
  return offset;
}

// The parser reports 'Message type "stepsim.file.Plan" has no field named "tpp".' behind the name.
// This rewords it and moves it to the name.
void describe_unknown_field(const std::string& text, Complaint& complaint) {
  std::vector<std::string> quoted;
  const std::string& warning = complaint.message;
  for (std::size_t open = warning.find('"'); open != std::string::npos;) {
    const std::size_t close = warning.find('"', open + 1);
    if (close == std::string::npos) break;
    quoted.push_back(warning.substr(open + 1, close - open - 1));
    open = warning.find('"', close + 1);
  }
  if (quoted.size() != 2) return;
  const Descriptor* type = DescriptorPool::generated_pool()->FindMessageTypeByName(quoted[0]);
  if (type == nullptr) return;
  complaint.message = find_field(*type, quoted[1]).problem;
  const std::size_t behind = offset_of(text, complaint.line, complaint.column);
  const std::size_t name = text.rfind(quoted[1], behind);
  if (name == std::string::npos || text.find('\n', name) < behind) return;
  complaint.column -= static_cast<int>(behind - name);
}

// Replaces a value of the wrong type by 0 (or ""), so that the parser can continue behind it.
// Returns false if the error is of another kind.
bool replace_value(std::string& text, const Complaint& error) {
  const bool is_number = error.message.starts_with("Expected integer") ||
                         error.message.starts_with("Integer out of range") ||
                         error.message.starts_with("Expected double");
  const bool is_string = error.message.starts_with("Expected string");
  if (!is_number && !is_string) return false;
  const std::size_t begin = offset_of(text, error.line, error.column);
  if (begin >= text.size()) return false;
  std::size_t end = begin + 1;
  if (text[begin] == '"' || text[begin] == '\'') {
    end = text.find(text[begin], end);
    if (end == std::string::npos) return false;
    ++end;
  } else {
    end = std::min(text.find_first_of(" \t\r\n{}[]<>,;#", begin), text.size());
  }
  const std::size_t length = end - begin;
  if (length < (is_string ? 2U : 1U)) return false;
  std::string value = is_string ? "\"\"" : "0";
  value.resize(length, ' ');
  text.replace(begin, length, value);
  return true;
}

// Finds the path of the last field that begins before a place in the text.
class FieldAt {
 public:
  explicit FieldAt(const Complaint& at) : at_(at.line, at.column) {}

  void search(const ProtoMessage& message, TextFormat::ParseInfoTree& tree,
              const std::string& prefix) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> given;
    reflection.ListFields(message, &given);
    for (const FieldDescriptor* field : given) {
      const bool is_list = field->is_repeated();
      const int count = is_list ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        const int index = is_list ? i : -1;
        const TextFormat::ParseLocation location = tree.GetLocation(field, index);
        const std::pair<int, int> begin(location.line, location.column);
        if (begin > at_) continue;
        const std::string name =
            prefix + field->name() + (is_list ? "[" + std::to_string(i) + "]" : "");
        if (begin >= begin_) {
          begin_ = begin;
          path_ = name;
        }
        if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
        const ProtoMessage& inner = is_list ? reflection.GetRepeatedMessage(message, field, i)
                                            : reflection.GetMessage(message, field);
        search(inner, *tree.GetTreeForNested(field, index), name + ".");
      }
    }
  }

  const std::string& path() const { return path_; }

 private:
  std::pair<int, int> at_;  // line and column
  std::pair<int, int> begin_{-1, -1};
  std::string path_;
};

// JsonReading is the result of one pass of the parser over a text.
struct JsonReading {
  std::optional<Complaint> error;  // the parser stops at the first one
  std::vector<Complaint> unknown_fields;
  std::unique_ptr<TextFormat::ParseInfoTree> locations;
};

JsonReading parse(const std::string& text, ProtoMessage& message) {
  JsonReading reading{.error = {},
                      .unknown_fields = {},
                      .locations = std::make_unique<TextFormat::ParseInfoTree>()};
  Collector collector;
  TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMostNesting);
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(reading.locations.get());
  message.Clear();
  parser.ParseFromString(text, &message);
  if (!collector.errors.empty()) reading.error = collector.errors.front();
  reading.unknown_fields = std::move(collector.unknown_fields);
  return reading;
}

bool read_text(const SourceText& source, std::string_view prefix, ProtoMessage& message,
               ProblemList& problems) {
  // Each error takes another parsing, so a long text is parsed up to its second error.
  const std::size_t most_errors = source.text.size() < (1U << 20) ? 50 : 1;
  std::string text = source.text;
  std::vector<Complaint> replaced;
  JsonReading reading = parse(text, message);
  while (reading.error && replaced.size() < most_errors && replace_value(text, *reading.error)) {
    replaced.push_back(*reading.error);
    reading = parse(text, message);
  }
  for (const Complaint& error : replaced) {
    FieldAt field(error);
    field.search(message, *reading.locations, std::string(prefix));
    problems.mark_reported(field.path());
  }
  std::vector<Complaint> complaints = std::move(replaced);
  if (reading.error) complaints.push_back(*reading.error);
  for (Complaint& unknown : reading.unknown_fields) {
    describe_unknown_field(text, unknown);
    complaints.push_back(unknown);
  }
  std::stable_sort(complaints.begin(), complaints.end(),
                   [](const Complaint& a, const Complaint& b) {
                     return std::pair(a.line, a.column) < std::pair(b.line, b.column);
                   });
  for (const Complaint& complaint : complaints) {
    problems.add(place(source, complaint.line, complaint.column), complaint.message);
  }
  return !reading.error;
}

std::string element_path(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

// JsonReader reads one JSON object into a message, with all its problems.
class JsonReader {
 public:
  JsonReader(const SourceText& source, ProblemList& problems)
      : source_(source), problems_(problems) {}

  void read(const Json& object, const std::string& prefix, ProtoMessage& message) {
    for (const auto& [key, value] : object.items()) {
      if (problems_.size() >= kMostProblems) return;
      const FieldOrProblem found = find_field(*message.GetDescriptor(), key);
      if (found.field == nullptr) {
        complain(prefix + key, found.problem);
      } else if (!value.is_null()) {
        read_field(value, prefix + found.field->name(), message, *found.field);
      }
    }
  }

 private:
  void read_field(const Json& value, const std::string& path, ProtoMessage& message,
                  const FieldDescriptor& field) {
    if (!field.is_repeated()) {
      read_value(value, path, message, field);
    } else if (!value.is_array()) {
      complain(path, "must be a list in brackets, is " + shown(value));
    } else {
      for (std::size_t i = 0; i < value.size(); ++i) {
        read_value(value[i], element_path(path, i), message, field);
      }
    }
  }

  void read_value(const Json& value, const std::string& path, ProtoMessage& message,
                  const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (const auto* oneof = field.real_containing_oneof()) {
      if (reflection.HasOneof(message, oneof)) {
        complain(path, "there can be only one " + oneof->name() + ", and there is already " +
                           reflection.GetOneofFieldDescriptor(message, oneof)->name());
        return;
      }
    }
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!value.is_object()) {
        complain(path, "must be a group of fields in braces, is " + shown(value));
        return;
      }
      ProtoMessage* inner = field.is_repeated() ? reflection.AddMessage(&message, &field)
                                                : reflection.MutableMessage(&message, &field);
      read(value, path + ".", *inner);
      return;
    }
    // Quantities are texts, but a number without a unit is in base units.
    const bool is_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const bool fits =
        is_text ? value.is_string() || value.is_number() : value.is_number() || value.is_boolean();
    if (!fits) {
      complain(path, is_text
                         ? "must be a text in quotes, is " + shown(value)
                         : "must be a number, true or false, without quotes, is " + shown(value));
      return;
    }
    const std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
    if (const auto refusal = set_plain(message, field, text)) {
      complain(path, refusal->accepted + ", is " + shown(value) + refusal->hint);
    }
  }

  void complain(const std::string& path, std::string message) {
    problems_.mark_reported(path);
    problems_.add(source_.name + ": " + path, std::move(message));
  }

  const SourceText& source_;
  ProblemList& problems_;
};

bool read_json(const SourceText& source, std::string_view prefix, ProtoMessage& message,
               ProblemList& problems) {
  const JsonOrProblem read = parse_json(source.text);
  if (!read.value) {
    problems.add(source.name, read.problem);
    return false;
  }
  const Json& object = *read.value;
  if (!object.is_object()) {
    problems.add(source.name, "must hold one object in braces");
    return false;
  }
  JsonReader(source, problems).read(object, std::string(prefix), message);
  return true;
}

std::string_view without_gz(std::string_view name) {
  constexpr std::string_view kCompressed = ".gz";
  if (name.ends_with(kCompressed)) name.remove_suffix(kCompressed.size());
  return name;
}

}  // namespace

bool ends_like_file(std::string_view name) {
  const std::string_view inner = without_gz(name);
  return inner.ends_with(".json") || inner.ends_with(".textproto");
}

bool looks_like_file(std::string_view name) {
  return name.find('/') != std::string_view::npos || ends_like_file(name);
}

bool is_foreign_file(const std::string& name) {
  std::error_code ignored;
  return !ends_like_file(name) && std::filesystem::is_regular_file(name, ignored);
}

std::string stem_of(const std::string& path) {
  return std::filesystem::path(without_gz(path)).stem().string();
}

std::optional<SourceText> read_source(const std::string& path, std::string_view field,
                                      ProblemList& problems, InputKind kind) {
  SourceText source{.name = path,
                    .extension = std::filesystem::path(without_gz(path)).extension().string(),
                    .text = {}};
  if (source.extension != ".json" && source.extension != ".textproto") {
    problems.add(std::string(field), "must be a file ending in .textproto or .json, is " + path);
    return std::nullopt;
  }
  TextOrProblem file = read_input(path, kind);
  if (!file.text) {
    problems.add(std::string(field), "cannot read " + path + ": " + file.problem);
    return std::nullopt;
  }
  source.text = std::move(*file.text);
  return source;
}

bool read_message(const SourceText& source, std::string_view prefix, ProtoMessage& message,
                  ProblemList& problems) {
  return source.extension == ".json" ? read_json(source, prefix, message, problems)
                                     : read_text(source, prefix, message, problems);
}

}  // namespace stepsim

#include "import/trace/trace_event.h"

#include <simdjson.h>

#include <cstring>
#include <new>
#include <vector>

#include "import/trace/decimal_time.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

using simdjson::ondemand::json_type;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

// A member that can't be read; said as the problem of its event.
struct BadMember {
  std::string what;
};

template <class Result>
auto checked_value(Result&& result) {
  if (result.error() == simdjson::MEMALLOC) throw std::bad_alloc();
  if (result.error() != simdjson::SUCCESS) {
    throw BadMember{std::string("is no JSON: ") + simdjson::error_message(result.error())};
  }
  return std::forward<Result>(result).value_unsafe();
}

// Reads a value that is not used, so that it is checked too.
void pass(value item) {
  switch (checked_value(item.type())) {
    case json_type::array:
      for (auto element : checked_value(item.get_array())) pass(checked_value(std::move(element)));
      return;
    case json_type::object:
      for (auto field : checked_value(item.get_object())) {
        pass(checked_value(std::move(field)).value());
      }
      return;
    case json_type::number:
      checked_value(item.get_number());
      return;
    case json_type::string:
      checked_value(item.get_string());
      return;
    case json_type::boolean:
      checked_value(item.get_bool());
      return;
    case json_type::null:
      if (!checked_value(item.is_null())) throw BadMember{"is no JSON: a null that is none"};
  }
}

void take_text(value item, std::string& text) {
  const json_type type = checked_value(item.type());
  if (type == json_type::string) {
    text = checked_value(item.get_string());
  } else if (type == json_type::number) {
    const std::string_view token = item.raw_json_token();
    text = token.substr(0, token.find_last_not_of(" \n\t\r") + 1);
    checked_value(item.get_number());
  } else {
    pass(item);
  }
}

void take_whole(value item, std::optional<std::int64_t>& number) {
  std::string text;
  take_text(item, text);
  number = number_in<std::int64_t>(text);
}

void take_time(value item, const char* name, std::optional<std::int64_t>& time) {
  std::string text;
  take_text(item, text);
  time = nanoseconds_in(text);
  if (!time) throw BadMember{std::string(name) + " must be microseconds, is " + shortened(text)};
}

// The text of a list that is read later. A long one is left out.
void take_list(value item, std::string& text) {
  constexpr std::size_t kMostJson = 4096;
  if (checked_value(item.type()) != json_type::array) return pass(item);
  const std::string_view json = checked_value(checked_value(item.get_array()).raw_json());
  if (json.size() <= kMostJson) text = json;
}

void take_argument(std::string_view name, value item, TraceEvent& event) {
  if (name == "correlation") return take_whole(item, event.correlation);
  if (name == "External id") return take_whole(item, event.external_id);
  if (name == "stream") return take_whole(item, event.stream);
  if (name == "step") return take_whole(item, event.step);
  if (name == "layer") return take_whole(item, event.layer);
  if (name == "Sequence number") return take_whole(item, event.sequence);
  if (name == "Fwd thread id") return take_whole(item, event.forward_thread);
  if (name == "bytes") return take_whole(item, event.bytes);
  if (name == "In msg nelems") return take_whole(item, event.in_elements);
  if (name == "Out msg nelems") return take_whole(item, event.out_elements);
  if (name == "Group size" || name == "ranks") return take_whole(item, event.group_size);
  if (name == "Collective name" || name == "op") return take_text(item, event.collective);
  if (name == "dtype") return take_text(item, event.type);
  if (name == "Process Group Name" || name == "communicator") return take_text(item, event.group);
  if (name == "Process Group Ranks") return take_text(item, event.group_ranks);
  if (name == "Input Dims") return take_list(item, event.input_dims);
  if (name == "Input type") return take_list(item, event.input_types);
  if (name == "name") return take_text(item, event.text_name);
  if (name == "compute_ps") {
    event.computes = true;
    return pass(item);
  }
  if (name == "waited_us") return take_time(item, "waited_us", event.waited);
  pass(item);
}

void take_member(std::string_view name, value item, TraceEvent& event) {
  if (name == "ph") return take_text(item, event.phase);
  if (name == "cat") return take_text(item, event.category);
  if (name == "name") return take_text(item, event.name);
  if (name == "pid") return take_text(item, event.process);
  if (name == "tid") return take_text(item, event.thread);
  if (name == "ts") return take_time(item, "ts", event.start);
  if (name == "dur") return take_time(item, "dur", event.duration);
  if (name != "args" || checked_value(item.type()) != json_type::object) return pass(item);
  for (auto argument : checked_value(item.get_object())) {
    auto field = checked_value(std::move(argument));
    take_argument(checked_value(field.unescaped_key()), field.value(), event);
  }
}

}  // namespace

void TraceEvent::clear() {
  *this = TraceEvent{};
}

struct TraceEventReader::Parser {
  simdjson::ondemand::parser parser;
  std::vector<char> text;
};

TraceEventReader::TraceEventReader() : parser_(std::make_unique<Parser>()) {}
TraceEventReader::~TraceEventReader() = default;

std::string TraceEventReader::read(std::string_view text, TraceEvent& event) {
  event.clear();
  std::vector<char>& padded = parser_->text;
  if (padded.size() < text.size() + simdjson::SIMDJSON_PADDING) {
    padded.resize(2 * text.size() + simdjson::SIMDJSON_PADDING);
  }
  std::memcpy(padded.data(), text.data(), text.size());
  std::memset(padded.data() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
  try {
    simdjson::ondemand::document document =
        checked_value(parser_->parser.iterate(padded.data(), text.size(), padded.size()));
    for (auto member : checked_value(document.get_object())) {
      auto field = checked_value(std::move(member));
      take_member(checked_value(field.unescaped_key()), field.value(), event);
    }
  } catch (const BadMember& bad) {
    return bad.what;
  }
  return {};
}

}  // namespace stepsim

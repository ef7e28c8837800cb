#include "sim/fields/plain_value.h"

#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"

namespace stepsim {

std::optional<PlainValue> plain_value_of(const std::string& text) {
  if (const auto number = number_in<double>(text)) return PlainValue{*number, ""};
  if (const auto rate = parse_bandwidth(text)) return PlainValue{rate->value(), "B/s"};
  if (const auto time = parse_duration(text)) return PlainValue{to_seconds(*time), "s"};
  if (const auto flops = parse_throughput(text)) return PlainValue{flops->value(), "FLOP/s"};
  if (const auto size = parse_bytes(text)) {
    return PlainValue{static_cast<double>(size->value()), "B"};
  }
  return std::nullopt;
}

}  // namespace stepsim

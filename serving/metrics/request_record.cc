#include "serving/metrics/request_record.h"

namespace stepsim {

std::string_view name_of(RequestPart part) {
  constexpr std::array<std::string_view, kRequestParts> kNames = {"queue", "prefill", "preempted",
                                                                  "transfer", "decode"};
  return kNames[static_cast<std::size_t>(part)];
}

}  // namespace stepsim

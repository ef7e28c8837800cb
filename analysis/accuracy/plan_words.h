// The parts of a plan in the words of a table's author, whatever their case, spaces, "-" and "_":
//
//   yes, true, on, 1                                     says_yes()
//   3 (HSDP: sharded in a node), ZeRO-3, FSDP2           zero_of_words(): 3
//   ZeRO-1, distributed optimizer                        zero_of_words(): 1
//   interleaved 1F1B, one layer per chunk; VPP           schedule_of_words(): interleaved_1f1b
//   ZB-2p (auto, memory = 2x)                            schedule_of_words(): zb_auto_2p
//
// Words that are not known give nothing: the row is skipped with the reason, not taken for another
// plan.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "schedules/pipeline/schedule_name.h"

namespace stepsim {

bool says_yes(std::string_view text);

// Returns 0 if the text is blank or says that nothing is divided.
std::optional<std::int64_t> zero_of_words(std::string_view text);

// Returns 1F1B if the text is blank, or says that it is not known which.
std::optional<ScheduleName> schedule_of_words(std::string_view text);

}  // namespace stepsim

// The list of engines, where a new one is named: its function here, and its options in the variant
// if it has some that no other engine has. All else about an engine stands in its file pair
// (serving/engines/engine_table.h says what), and the tables, helps and pages follow.

#pragma once

#include <variant>

#include "serving/engines/jetstream.h"
#include "serving/engines/orca.h"
#include "serving/engines/sarathi.h"
#include "serving/engines/sglang.h"
#include "serving/engines/static_batch.h"
#include "serving/engines/trtllm.h"
#include "serving/engines/vllm.h"

namespace stepsim {

using OwnOptions = std::variant<std::monostate, SglangOptions, TrtllmOptions, JetstreamOptions>;

// The first is the one that runs where none is named.
inline constexpr EngineRow (*kEngines[])() = {vllm_engine,     sglang_engine,  trtllm_engine,
                                              orca_engine,     sarathi_engine, static_engine,
                                              jetstream_engine};

}  // namespace stepsim

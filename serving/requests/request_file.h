// A request file is a CSV with a request a row:
//
//   arrival_s or arrival_us   since the start, or since any moment; not before the row above
//   input_tokens, output_tokens
//   prefix, prefix_tokens     optional: requests of one prefix begin with the same tokens
//   priority                  optional: a whole number
//
// Other columns are for people, and for `where`. Traces are read as they are published, too:
//
//   Mooncake    JSON lines: timestamp (ms), input_length, output_length, hash_ids, the names of
//               pieces of 512 tokens, which branch (PromptChain); kvcache-ai/Mooncake,
//               FAST25-release/traces
//   Azure       TIMESTAMP (a date and a time), ContextTokens, GeneratedTokens; AzurePublicDataset
//   BurstGPT    Timestamp (s), Request tokens, Response tokens; HPMLL/BurstGPT
//   Vidur       arrived_at (s), num_prefill_tokens, num_decode_tokens; microsoft/vidur
//   vLLM and SGLang, results of their benchmarks with details: input_lens, output_lens, start_times
//               (s; without them all come at the start), each a list
//
// Their times count from the first request, in whatever order the rows are. Requests without an
// answer, which failed, are left out.

#pragma once

#include <string>
#include <vector>

#include "serving/requests/request_source.h"

namespace stepsim {

// The rows of a file that a source asks for. PrefixIds are numbered from 0 in order of appearance.
struct RequestRows {
  std::vector<Request> requests;
  std::uint32_t prefixes = 0;
  std::vector<PromptChain> chains{};
};

// Throws ConfigError with the problems of the file, at most a hundred. A file whose first character
// is { has JSON values, one a line. Without `with_arrivals` only
// lengths are read.
RequestRows read_request_file(const std::string& path, const std::string& where,
                              bool with_arrivals);

}  // namespace stepsim

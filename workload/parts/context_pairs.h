// Which tokens of a sequence each context rank has, and how many pairs of a query and a key
// attention scores between the tokens of two of them. Pairs are areas, like s^2 / 2 for a causal
// sequence of s tokens (attention_pairs() in kernels.h), so those of all ranks add up to those of
// the sequence.

#pragma once

#include <cstdint>
#include <vector>

#include "workload/model/model_spec.h"

namespace stepsim {

// A stretch of tokens of a sequence.
struct TokenSpan {
  double from = 0;
  double until = 0;
};

struct AttentionMask {
  bool causal = true;
  std::int64_t window = 0;  // as in ModelSpec
  WindowKind window_kind = WindowKind::kSliding;
  std::int64_t document = 0;  // tokens of the documents that the sequence is packed of; 0: one
};

// Returns the tokens of a rank: one of `ranks` stretches in a row, or with `zigzag` two of 2 x
// ranks, its own from the beginning and its own from the end.
std::vector<TokenSpan> spans_of_rank(std::int64_t length, std::int64_t ranks, std::int64_t rank,
                                     bool zigzag);

// Returns the pairs that are scored. Cost: O(1); with a chunked window O(chunks of the spans), with
// documents O(documents of the spans) times that.
double pairs_between(const AttentionMask& mask, const TokenSpan& queries, const TokenSpan& keys);

}  // namespace stepsim

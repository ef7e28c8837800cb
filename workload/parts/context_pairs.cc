#include "workload/parts/context_pairs.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// The integral of min(max(x, 0), length).
double below(double x, double length) {
  if (x <= 0) return 0;
  return x < length ? x * x / 2 : length * x - length * length / 2;
}

// Counts the pairs with key <= query - distance. This is an area, like s^2/2 for a causal sequence.
double pairs_back(const TokenSpan& queries, const TokenSpan& keys, double distance) {
  const double length = keys.until - keys.from;
  return below(queries.until - distance - keys.from, length) -
         below(queries.from - distance - keys.from, length);
}

// Returns the part of the stretch between two places.
TokenSpan within_span(const TokenSpan& span, double from, double until) {
  return {std::max(span.from, from),
          std::max(std::max(span.from, from), std::min(span.until, until))};
}

// Causal pairs whose query and key lie in the same chunk of the sequence.
double pairs_in_chunks(double chunk, const TokenSpan& queries, const TokenSpan& keys) {
  const double from = std::max(queries.from, keys.from);
  double pairs = 0;
  for (double start = std::floor(from / chunk) * chunk; start < std::min(queries.until, keys.until);
       start += chunk) {
    pairs += pairs_back(within_span(queries, start, start + chunk),
                        within_span(keys, start, start + chunk), 0);
  }
  return pairs;
}

}  // namespace

std::vector<TokenSpan> spans_of_rank(std::int64_t length, std::int64_t ranks, std::int64_t rank,
                                     bool zigzag) {
  const auto tokens = static_cast<double>(length);
  const auto parts = static_cast<double>(ranks);
  const auto part = [tokens](double number, double of) {
    return TokenSpan{tokens * number / of, tokens * (number + 1) / of};
  };
  const auto at = static_cast<double>(rank);
  if (!zigzag) return {part(at, parts)};
  return {part(at, 2 * parts), part(2 * parts - 1 - at, 2 * parts)};
}

namespace {

// Counts the pairs within one document; its tokens are counted from its beginning.
double pairs_of_document(const AttentionMask& mask, const TokenSpan& queries,
                         const TokenSpan& keys) {
  const auto window = static_cast<double>(mask.window);
  if (!mask.causal && mask.window == 0) {
    return (queries.until - queries.from) * (keys.until - keys.from);
  }
  if (mask.window == 0) return pairs_back(queries, keys, 0);
  if (mask.window_kind == WindowKind::kChunked) return pairs_in_chunks(window, queries, keys);
  const double ahead = mask.causal ? 0 : -window;
  return pairs_back(queries, keys, ahead) - pairs_back(queries, keys, window);
}

}  // namespace

double pairs_between(const AttentionMask& mask, const TokenSpan& queries, const TokenSpan& keys) {
  if (mask.document == 0) return pairs_of_document(mask, queries, keys);
  const auto length = static_cast<double>(mask.document);
  const double from = std::max(queries.from, keys.from);
  double pairs = 0;
  for (double start = std::floor(from / length) * length;
       start < std::min(queries.until, keys.until); start += length) {
    const auto part_of = [&](const TokenSpan& span) {
      const TokenSpan part = within_span(span, start, start + length);
      return TokenSpan{part.from - start, part.until - start};
    };
    pairs += pairs_of_document(mask, part_of(queries), part_of(keys));
  }
  return pairs;
}

}  // namespace stepsim

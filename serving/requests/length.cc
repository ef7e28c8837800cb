#include "serving/requests/length.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "serving/requests/random_use.h"
#include "sim/base/exact_math.h"
#include "sim/base/random.h"

namespace stepsim {
namespace {

constexpr double kMostSigma = 8;

std::optional<std::int32_t> tokens_in(std::string_view text) {
  const auto tokens = number_in<std::int32_t>(text);
  if (!tokens || *tokens < 1 || *tokens > kMostRequestTokens) return std::nullopt;
  return tokens;
}

std::optional<Length> read_uniform(std::string_view text) {
  const std::vector<std::string_view> ends = split_text(text, '-');
  if (ends.size() != 2) return std::nullopt;
  const auto low = tokens_in(ends[0]);
  const auto high = tokens_in(ends[1]);
  if (!low || !high || *low > *high) return std::nullopt;
  return Length{.kind = LengthKind::kUniform, .low = *low, .high = *high};
}

std::optional<Length> read_lognormal(std::string_view text) {
  const std::vector<std::string_view> parts = split_text(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  const auto median = tokens_in(parts[0]);
  const auto sigma = number_in<double>(parts[1]);
  const auto most = parts.size() == 3 ? tokens_in(parts[2]) : std::optional(kMostRequestTokens);
  const bool is_sigma = sigma && *sigma >= 0 && *sigma <= kMostSigma;
  if (!median || !is_sigma || !most || *most < *median) return std::nullopt;
  return Length{.kind = LengthKind::kLognormal, .low = *median, .high = *most, .sigma = *sigma};
}

}  // namespace

std::optional<Length> Text<Length>::read(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const auto tokens = tokens_in(text);
    if (!tokens) return std::nullopt;
    return Length{.low = *tokens, .high = *tokens};
  }
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  if (kind == "uniform") return read_uniform(rest);
  if (kind == "lognormal") return read_lognormal(rest);
  if (kind != "empirical" || rest.empty()) return std::nullopt;
  return Length{.kind = LengthKind::kEmpirical, .file = std::string(rest)};
}

std::string Text<Length>::write(const Length& length) {
  const std::string low = std::to_string(length.low);
  const std::string high = std::to_string(length.high);
  switch (length.kind) {
    case LengthKind::kFixed:
      return low;
    case LengthKind::kUniform:
      return "uniform:" + low + "-" + high;
    case LengthKind::kLognormal:
      return "lognormal:" + low + ":" + write_double(length.sigma) + ":" + high;
    case LengthKind::kEmpirical:
      break;
  }
  return "empirical:" + length.file;
}

LengthDraw::LengthDraw(const Length& length, std::uint64_t seed, bool is_input,
                       std::vector<std::int32_t> rows)
    : length_(length), seed_(seed), is_input_(is_input), rows_(std::move(rows)) {}

std::int32_t LengthDraw::of(std::uint64_t request) const {
  const RandomUse use = is_input_ ? RandomUse::kInputLength : RandomUse::kOutputLength;
  switch (length_.kind) {
    case LengthKind::kFixed:
      return length_.low;
    case LengthKind::kUniform: {
      const auto count = static_cast<std::uint64_t>(length_.high - length_.low) + 1;
      const std::uint64_t drawn = RandomStream(seed_, use).below(count, request);
      return length_.low + static_cast<std::int32_t>(drawn);
    }
    case LengthKind::kLognormal: {
      const double z = normal(RandomStream(seed_, use, request));
      const double tokens = std::floor(length_.low * exact_exp(length_.sigma * z) + 0.5);
      return static_cast<std::int32_t>(std::clamp(tokens, 1.0, static_cast<double>(length_.high)));
    }
    case LengthKind::kEmpirical:
      break;
  }
  return rows_[RandomStream(seed_, RandomUse::kTableRow).below(rows_.size(), request)];
}

}  // namespace stepsim

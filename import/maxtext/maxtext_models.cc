#include <bit>

#include "import/maxtext/maxtext_import.h"
#include "proto/catalog/catalog.h"
#include "proto/catalog/trainer_names.h"

namespace stepsim {
std::string maxtext_model(std::string_view model_name) {
  const TrainerModel* const other = find_trainer_model("maxtext", model_name);
  const std::string name(other == nullptr ? model_name : other->catalog);
  return find(CatalogKind::kModel, name).found ? name : "";
}

std::optional<MaxtextScales> maxtext_scales(std::int64_t scale) {
  constexpr std::int64_t kMost = 1 << 20;
  const bool is_power =
      scale >= 1 && scale <= kMost && std::has_single_bit(static_cast<std::uint64_t>(scale));
  if (!is_power) return std::nullopt;
  const int log = std::countr_zero(static_cast<std::uint64_t>(scale));
  const int third = log / 3;
  const int rest = log % 3;
  const auto power = [](int exponent) { return std::int64_t{1} << exponent; };
  return MaxtextScales{.width = power(third + (rest > 1 ? 1 : 0)),
                       .heads = power(third + (rest > 0 ? 1 : 0)),
                       .mlp = power(third + (rest > 0 ? 1 : 0)),
                       .layers = power(third)};
}

}  // namespace stepsim

// NameTable numbers texts 0, 1, 2, ... in the order in which they are added, and finds them again.
// The texts stand one after another in one block: a million short names take 20 MB, hash included.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

class NameTable {
 public:
  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }

  // REQUIRES: number < size(). Valid until the next add().
  std::string_view name(std::uint32_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(text_).substr(begin, ends_[number] - begin);
  }

  std::optional<std::uint32_t> find(std::string_view name) const {
    if (places_.empty()) return std::nullopt;
    const std::uint32_t number = places_[place_of(name)];
    if (number == kNone) return std::nullopt;
    return number;
  }

  // Returns the number of the new name; nullopt if it exists already.
  std::optional<std::uint32_t> add(std::string_view name) {
    if (ends_.size() * 2 >= places_.size()) grow();
    std::uint32_t& place = places_[place_of(name)];
    if (place != kNone) return std::nullopt;
    place = size();
    text_ += name;
    ends_.push_back(text_.size());
    return place;
  }

  std::uint32_t find_or_add(std::string_view name) {
    if (const auto number = find(name)) return *number;
    return *add(name);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Returns the index of the name in places_, or of the free place for it.
  std::size_t place_of(std::string_view wanted) const {
    const std::size_t mask = places_.size() - 1;
    std::size_t place = std::hash<std::string_view>{}(wanted)&mask;
    while (places_[place] != kNone && name(places_[place]) != wanted) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    places_.assign(places_.empty() ? 64 : places_.size() * 2, kNone);
    for (std::uint32_t number = 0; number < size(); ++number) {
      places_[place_of(name(number))] = number;
    }
  }

  std::string text_;
  std::vector<std::size_t> ends_;      // by number: end in text_
  std::vector<std::uint32_t> places_;  // open addressing; a power of two, at most half full
};

}  // namespace stepsim

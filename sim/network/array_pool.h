// ArrayPool holds many small growing arrays in one block of memory: the rows and heaps of a network
// with thousands of links, most of them short, without a malloc for each.
//
//   ArrayPool<Entry> pool;
//   PooledArray row;                 // 12 bytes, empty: costs nothing until the first push
//   pool.push_back(row, entry);
//   for (Entry& e : pool.view(row)) ...
//
// Capacities are powers of two. An array that outgrows its place moves to one of twice the size
// and leaves the old one to the next array of that size, so a workload that repeats stops
// allocating. A push_back on any array invalidates the views of all. At most 2^32 elements.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace stepsim {

struct PooledArray {
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;

  bool empty() const { return size == 0; }
};

template <typename Element>
class ArrayPool {
  static_assert(std::is_trivially_copyable_v<Element>, "elements are moved by copying");

 public:
  Element* data(const PooledArray& array) { return memory_.data() + array.begin; }
  const Element* data(const PooledArray& array) const { return memory_.data() + array.begin; }

  std::span<Element> view(const PooledArray& array) { return {data(array), array.size}; }
  std::span<const Element> view(const PooledArray& array) const {
    return {data(array), array.size};
  }

  void push_back(PooledArray& array, const Element& element) {
    if (array.size == array.capacity) grow(array, array.capacity * 2);
    memory_[array.begin + array.size++] = element;
  }

  // Makes room for `more` additional elements.
  void reserve(PooledArray& array, std::uint32_t more) {
    if (array.size + more > array.capacity) grow(array, std::bit_ceil(array.size + more));
  }

 private:
  static constexpr std::uint32_t kSmallest = 4;

  // Grows the array to `capacity`, a power of two.
  void grow(PooledArray& array, std::uint32_t capacity) {
    capacity = std::max(capacity, kSmallest);
    std::vector<std::uint32_t>& free = free_[static_cast<std::size_t>(std::countr_zero(capacity))];
    std::uint32_t begin = static_cast<std::uint32_t>(memory_.size());
    if (free.empty()) {
      assert(memory_.size() + capacity <= UINT32_MAX);
      memory_.resize(memory_.size() + capacity);
    } else {
      begin = free.back();
      free.pop_back();
    }
    for (std::uint32_t i = 0; i < array.size; ++i) memory_[begin + i] = memory_[array.begin + i];
    if (array.capacity != 0) {
      free_[static_cast<std::size_t>(std::countr_zero(array.capacity))].push_back(array.begin);
    }
    array.begin = begin;
    array.capacity = capacity;
  }

  std::vector<Element> memory_;
  std::array<std::vector<std::uint32_t>, 32> free_;  // free places, by log2 of their capacity
};

}  // namespace stepsim

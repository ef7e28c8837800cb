// CacheShape says how many blocks of a cache a request takes. A block holds the keys and values of
// so many tokens in the layers that keep every token; what other layers keep of a request stands in
// blocks beside those, which no other request can share:
//
//   windows   the newest tokens, up to the length of the window
//   states    as much for every request, however long it is
//
// so that a request takes ceil(bytes / bytes of a block) blocks beside those of its tokens. Where
// no layer keeps every token, the blocks are those of the first window, and there are no more than
// it fills (most_chain); with states only, a block is a state.
//
// Without a shape (of_block is 0) a request takes the blocks of its tokens and no others. All
// functions are O(windows).

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/units.h"

namespace stepsim {

struct CacheShape {
  struct Window {
    std::int64_t tokens = 0;
    Bytes of_token{};
  };

  Bytes of_block{};
  Bytes of_request{};
  std::vector<Window> windows{};
  std::int64_t most_chain = std::numeric_limits<std::int64_t>::max();

  // Returns the blocks of the tokens.
  std::int64_t chain(std::int64_t tokens, std::int64_t block) const {
    return std::min((tokens + block - 1) / block, most_chain);
  }
  // Returns the blocks that stand beside so many blocks of tokens.
  std::int64_t beside(std::int64_t chain, std::int64_t block) const {
    if (of_block == Bytes(0)) return 0;
    Bytes bytes = of_request;
    for (const Window& window : windows) {
      bytes += std::min(chain * block, window.tokens) * window.of_token;
    }
    return (bytes.value() + of_block.value() - 1) / of_block.value();
  }
  // Returns all blocks of a request that has so many tokens.
  std::int64_t whole(std::int64_t tokens, std::int64_t block) const {
    const std::int64_t blocks = chain(tokens, block);
    return blocks + beside(blocks, block);
  }
};

}  // namespace stepsim

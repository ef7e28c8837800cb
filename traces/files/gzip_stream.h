// GzipStream compresses a stream with gzip. Its bytes depend only on what goes in: the header holds
// no time and no name. Takes some 500 KB.

#pragma once

#include <zlib.h>

#include <functional>
#include <string>
#include <string_view>

namespace stepsim {

class GzipStream {
 public:
  GzipStream();  // throws std::bad_alloc
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  // Hands compressed bytes to `take`, as they come. `last` also ends the stream.
  void compress(std::string_view bytes, bool last,
                const std::function<void(std::string_view)>& take);

 private:
  void run(std::string_view bytes, int flush, const std::function<void(std::string_view)>& take);

  z_stream stream_{};
  std::string compressed_;
};

}  // namespace stepsim

#include "traces/files/gzip_stream.h"

#include <new>

namespace stepsim {
namespace {

constexpr std::size_t kCompressedChunk = std::size_t{1} << 18;

// Traces are so repetitive that higher levels cost time and gain little.
constexpr int kCompressionLevel = 3;
constexpr int kGzip = 15 + 16;  // zlib: largest window, gzip header and trailer
constexpr int kMemoryLevel = 9;

}  // namespace

GzipStream::GzipStream() : compressed_(kCompressedChunk, '\0') {
  if (deflateInit2(&stream_, kCompressionLevel, Z_DEFLATED, kGzip, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

GzipStream::~GzipStream() {
  deflateEnd(&stream_);
}

// zlib counts what it gets in 32 bits.
void GzipStream::compress(std::string_view bytes, bool last,
                          const std::function<void(std::string_view)>& take) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  for (; bytes.size() > kMost; bytes.remove_prefix(kMost)) {
    run(bytes.substr(0, kMost), Z_NO_FLUSH, take);
  }
  run(bytes, last ? Z_FINISH : Z_NO_FLUSH, take);
}

void GzipStream::run(std::string_view bytes, int flush,
                     const std::function<void(std::string_view)>& take) {
  // zlib never writes to next_in; its interface is just older than const.
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(compressed_.data());
    stream_.avail_out = static_cast<uInt>(compressed_.size());
    deflate(&stream_, flush);
    take(std::string_view(compressed_).substr(0, compressed_.size() - stream_.avail_out));
  } while (stream_.avail_out == 0);
}

}  // namespace stepsim

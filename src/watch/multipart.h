// An MJPEG stream over HTTP as bytes: one response without end, whose parts are JPEGs. Pure: no network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace weir::watch {

// Reads multipart/x-mixed-replace (RFC 2046, section 5.1), plain or chunked (RFC 9112, section 7.1). Nothing
// that the server sends is trusted. One thread at a time.
class MultipartReader {
 public:
  struct Options {
    size_t max_head = 16 << 10;  // of the response's headers, and of each part's
    size_t max_part = size_t{32} << 20;
  };
  struct Part {
    std::string data;
    std::optional<Duration> timestamp;  // X-Timestamp of the part: wall time since 1970
  };
  explicit MultipartReader(Options options) : options_(options) {}

  // Takes bytes as they come.
  void Add(std::string_view bytes);
  // The next whole part; nullopt: more bytes are needed. After an error the stream is of no further use:
  // kInvalidArgument for a status other than 200 (401 with the remedy) or another content type, kOverloaded
  // for a head or part over its limit, kCorrupt for the rest.
  Result<std::optional<Part>> Next();
  // Whether the response's headers were read and are those of a stream.
  bool begun() const { return begun_; }
  // The stream ended by its own end mark.
  bool ended() const { return ended_; }

 private:
  Result<bool> ReadHead();
  Status ReadPartHead(std::string_view head);
  Status Dechunk();

  const Options options_;
  std::string raw_;   // as it came, where it is chunked
  std::string body_;  // without chunks
  size_t at_ = 0;     // of body_
  std::string boundary_;
  bool begun_ = false, chunked_ = false, ended_ = false, in_part_ = false, last_chunk_ = false;
  size_t chunk_left_ = 0;
  bool chunk_end_ = false;  // the line end behind a chunk is to come
  std::optional<size_t> length_;
  std::optional<Duration> timestamp_;
};

}  // namespace weir::watch

// An MJPEG stream over HTTP as bytes: one response without end, whose parts are JPEGs. Pure: no network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
    bool wrong_length = false;          // its Content-Length was not that of its data
  };
  // The response's head, as far as it decides what to do next.
  struct Response {
    int64_t status = 0;
    std::string location;                 // of a redirection
    std::vector<std::string> challenges;  // values of WWW-Authenticate
  };
  explicit MultipartReader(Options options) : options_(options) {}

  // Takes bytes as they come.
  void Add(std::string_view bytes);
  // The next whole part; nullopt: more bytes are needed. After an error the stream is of no further use:
  // kInvalidArgument for a status that the client is to blame for (401 with the remedy) or another content
  // type, kIo for a server's own failure, kOverloaded for a head or part over its limit, kCorrupt for the
  // rest.
  Result<std::optional<Part>> Next();
  // The server closed: the part that its end completes, where there is one.
  std::optional<Part> Close();
  // Once its head was read.
  const std::optional<Response>& response() const { return response_; }
  // Whether the response's headers were read and are those of a stream.
  bool begun() const { return begun_; }
  // The stream ended by its own end mark.
  bool ended() const { return ended_; }

 private:
  Result<bool> ReadHead();
  Status ReadResponse(std::string_view head);
  Result<bool> FindBoundary();
  Result<bool> BeginPart();
  Status ReadPartHead(std::string_view head);
  std::optional<size_t> FindDelimiter(std::string_view rest);
  Result<std::optional<size_t>> PartSize();
  Part TakePart(size_t size);
  Status Dechunk();
  std::string_view rest() const { return std::string_view(body_).substr(at_); }

  const Options options_;
  std::string raw_;   // as it came, where it is chunked
  std::string body_;  // without chunks
  size_t at_ = 0;     // of body_
  std::string boundary_;
  std::optional<Response> response_;
  bool begun_ = false, chunked_ = false, ended_ = false, last_chunk_ = false;
  bool boundary_seen_ = false, in_part_ = false, wrong_length_ = false;
  bool doubtful_ = false;                 // the part has bytes that looked like a delimiter
  size_t chunk_left_ = 0, searched_ = 0;  // bytes of the part that hold no delimiter
  bool chunk_end_ = false;                // the line end behind a chunk is to come
  std::optional<size_t> length_;
  std::optional<Duration> timestamp_;
};

}  // namespace weir::watch

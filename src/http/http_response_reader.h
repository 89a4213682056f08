// One HTTP/1.1 answer after the other, read as its bytes come; the body goes straight into its own memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/error.h"

namespace weir::http {

struct HttpClientResponse {
  int status = 0;
  // Laid so that the byte after so many is aligned to 64: the first binary tensor.
  std::optional<uint64_t> header_length;  // Inference-Header-Content-Length
  Bytes body;
  bool keep_alive = false;  // the connection may carry another request
};

// A longer body is refused before memory is asked for.
inline constexpr uint64_t kMostBody = uint64_t{1} << 30;
// The most of a body that does not say its length beforehand.
inline constexpr uint64_t kMostUnsizedBody = uint64_t{64} << 20;

// One thread at a time. Nothing the server sends is trusted: an error is kCorrupt, and the connection is then
// of no further use.
class HttpResponseReader {
 public:
  HttpResponseReader();
  ~HttpResponseReader();

  // The longest body of the answer to come. REQUIRES: !begun().
  void Limit(uint64_t most);
  // Where the next bytes from the socket go: never empty, except once an answer is whole and not yet taken.
  std::span<std::byte> Room();
  bool EndsWithRoom() const;  // of what comes behind Room() nothing is of this answer
  // The first `size` bytes of Room() are there. True: the answer is whole.
  Result<bool> Filled(size_t size);
  // The server has closed its side. True: that is how this answer ends. REQUIRES: begun().
  Result<bool> Closed();
  bool begun() const;  // some bytes of an answer have come
  // The whole answer; the next one may come.
  HttpClientResponse Take();

 private:
  class Parser;
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace weir::http

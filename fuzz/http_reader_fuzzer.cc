// Bytes as a client of HTTP might send them, whole and in pieces: the same requests must come of both.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "http/http_request_reader.h"

namespace {

using namespace weir;

struct Read {
  std::vector<std::string> requests;
  int refused = 0;
};

std::string Text(const http::HttpRequest& request) {
  std::string text(request.method);
  for (const std::string_view part : {request.path, request.query, request.body.text()}) {
    text += '\n';
    text += part;
  }
  for (const auto& [name, value] : request.headers) text.append("\n").append(name).append(":").append(value);
  return text;
}

Read ReadAll(std::string_view bytes, size_t piece) {
  const http::HttpLimits limits{.max_header = 1024, .max_body = 4096, .align_after = "n"};
  const auto budget = std::make_shared<http::ByteBudget>(10000);
  Read read;
  {
    http::HttpRequestReader reader(limits, budget);
    while (!bytes.empty() && read.refused == 0) {
      const std::span<std::byte> space = reader.Space();
      CHECK(!space.empty());
      const size_t size = std::min({piece, space.size(), bytes.size()});
      std::memcpy(space.data(), bytes.data(), size);
      reader.Filled(size, Instant(1s));
      bytes.remove_prefix(size);
      for (bool more = true; more;) {
        auto next = reader.Next();
        if (const auto* request = std::get_if<http::HttpRequest>(&next)) {
          CHECK(request->body.size() <= limits.max_body);
          read.requests.push_back(Text(*request));
        } else {
          if (const auto* refusal = std::get_if<http::HttpRefusal>(&next)) read.refused = refusal->status;
          more = false;
        }
      }
      CHECK(budget->used() <= 10000);
    }
  }
  CHECK(budget->used() == 0);
  return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Read whole = ReadAll(bytes, std::string::npos);
  const Read pieces = ReadAll(bytes, size_t{1} + data[0] % 64);
  // A fault may be met a few bytes later where they come in pieces; the requests before it are the same.
  CHECK(whole.requests == pieces.requests);
  return 0;
}

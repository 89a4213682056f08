// Any bytes as what comes from a server, in pieces of any size: whole answers, or refused. The first byte is
// the seed of the sizes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/seed.h"
#include "http/http_response_reader.h"

using namespace weir;  // NOLINT: a program of one file

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Random random = Seed(*data++).MakeRandom();
  --size;
  http::HttpResponseReader reader;
  while (size > 0) {
    const auto room = reader.Room();
    CHECK(!room.empty());
    const size_t step = std::min({size, room.size(), static_cast<size_t>(random.Integer(1, 64))});
    std::memcpy(room.data(), data, step);
    data += step;
    size -= step;
    const auto whole = reader.Filled(step);
    if (!whole) return 0;
    if (!*whole) continue;
    const http::HttpClientResponse answer = reader.Take();
    CHECK(answer.status >= 100 && answer.status < 1000);
    CHECK(answer.header_length.value_or(0) <= answer.body.size());
    if (!answer.keep_alive) return 0;
  }
  if (reader.begun()) (void)reader.Closed();
  return 0;
}

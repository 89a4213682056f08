#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cluster/message.h"

// A message that is read is written so that it is read again; its histograms too.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::cluster;
  MessageReader reader;
  reader.Add({reinterpret_cast<const char*>(data), size});
  while (true) {
    const auto message = reader.Next();
    if (!message || !*message) return 0;
    MessageReader again;
    again.Add(EncodeMessage(**message));
    const auto same = again.Next();
    CHECK(same && *same && (*same)->block == (*message)->block);
    std::string_view block = (*message)->block;
    while (!block.empty()) {
      auto histogram = weir::stats::Histogram::TakeFrom(block);
      if (!histogram) break;
      std::string bytes;
      histogram->AppendTo(bytes);
      std::string_view rest = bytes;
      const auto read = weir::stats::Histogram::TakeFrom(rest);
      CHECK(read && rest.empty() && read->Buckets() == histogram->Buckets());
      (void)histogram->StandardDeviation();
    }
  }
}

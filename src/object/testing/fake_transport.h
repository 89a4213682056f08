// A network of a test's making: transfers end when the test says so.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "object/transport.h"

namespace weir::object {

class FakeTransport final : public Transport {
 public:
  uint64_t Start(HttpRequest request, Done done) override {
    requests.push_back(request);
    open_.emplace(++last_, std::make_pair(std::move(request), std::move(done)));
    most_open = std::max(most_open, open_.size());
    return last_;
  }
  void Cancel(uint64_t transfer) override {
    open_.erase(transfer);
    ++cancelled;
  }
  std::optional<Instant> LastBytes(uint64_t) const override { return last_bytes; }
  void Drive(Instant) override {}
  void Wake() override {}

  size_t open() const { return open_.size(); }
  // Ends the transfer that was begun first, or the `nth` after it.
  void Answer(TransportResult result, size_t nth = 0) {
    auto node = open_.extract(std::next(open_.begin(), static_cast<std::ptrdiff_t>(nth)));
    node.mapped().second(std::move(result));
  }
  void Answer(int status, std::string_view body, std::map<std::string, std::string, std::less<>> headers = {},
              size_t nth = 0) {
    Answer(HttpResponse{status, std::move(headers), Bytes::Copy(body)}, nth);
  }
  void Break(size_t nth = 0) {
    Answer(std::unexpected(TransportFault{TransportFault::Kind::kMayPass, "reset"}), nth);
  }

  std::vector<HttpRequest> requests;  // all, in their order
  size_t most_open = 0;
  int cancelled = 0;
  std::optional<Instant> last_bytes;  // of every transfer

 private:
  std::map<uint64_t, std::pair<HttpRequest, Done>> open_;
  uint64_t last_ = 0;
};

}  // namespace weir::object

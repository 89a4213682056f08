// Messages between rank 0 and an agent: a JSON object, and beside it bytes such as histograms. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "stats/histogram.h"

namespace weir::cluster {

constexpr uint8_t kProtocolVersion = 1;
constexpr size_t kMostMessageBytes = size_t{64} << 20;  // of both parts
constexpr size_t kMostTextBytes = size_t{8} << 20;      // of the JSON
constexpr size_t kMostFirstBytes = size_t{64} << 10;    // of the first message of a connection

struct Message {
  Json body = Json::object();
  std::string block;  // binary; empty: none
};

// "WA", the version, a reserved byte of 0, then the sizes of the JSON and of the block (32 bits each, lowest
// byte first), then both. kUnsupported if it is larger than the other side takes.
Result<std::string> EncodeMessage(const Message& message);

// Takes bytes as they come, in pieces of any size. Holds at most one message that is not whole, and what came
// behind it. One thread at a time.
class MessageReader {
 public:
  // A message of more bytes is an error as soon as its header is there.
  explicit MessageReader(size_t most = kMostMessageBytes) : most_(most) {}
  void set_most(size_t most) { most_ = most; }
  void Add(std::string_view bytes) { bytes_ += bytes; }
  // Whether Next would give a message. The errors are those of Next.
  Result<bool> HasNext() const;
  // Returns the next message that is whole; nullopt if more bytes are needed. kCorrupt for bytes that are no
  // message, and for one that is too large; kUnsupported for another version. After an error nothing more can
  // be read.
  Result<std::optional<Message>> Next();

 private:
  struct Sizes {
    size_t text = 0, block = 0;
  };
  // Returns the sizes of the message that begins here; nullopt while its header is not whole.
  Result<std::optional<Sizes>> NextSizes() const;

  size_t most_;
  std::string bytes_;
  size_t read_ = 0;  // of these
};

// Whether all are from 0 to 2^53, so that sums over all hosts stay numbers: for what another host counted.
template <typename Number>
bool AreCounts(const std::vector<Number>& numbers) {
  constexpr int64_t kMost = int64_t{1} << 53;
  return std::ranges::all_of(numbers, [](Number each) {
    return std::cmp_greater_equal(each, 0) && std::cmp_less_equal(each, kMost);
  });
}

// Histograms in the block of a message, in order.
void AppendHistograms(std::string& block, const std::vector<const stats::Histogram*>& histograms);
// Takes as many as there are pointers. kCorrupt if the block holds others.
Status TakeHistograms(std::string_view& block, const std::vector<stats::Histogram*>& histograms);

}  // namespace weir::cluster

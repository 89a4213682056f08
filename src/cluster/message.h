// Messages between rank 0 and an agent: a JSON object, and beside it bytes such as histograms. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "stats/histogram.h"

namespace weir::cluster {

constexpr uint8_t kProtocolVersion = 1;
constexpr size_t kMostMessageBytes = size_t{64} << 20;

struct Message {
  Json body = Json::object();
  std::string block;  // binary; empty: none
};

// "WA", the version, a reserved byte of 0, then the sizes of the JSON and of the block (32 bits each, lowest
// byte first), then both. REQUIRES: together at most kMostMessageBytes.
std::string EncodeMessage(const Message& message);

// Takes bytes as they come, in pieces of any size. One thread at a time.
class MessageReader {
 public:
  void Add(std::string_view bytes) { bytes_ += bytes; }
  // Returns the next message that is whole; nullopt if more bytes are needed. kCorrupt for bytes that are no
  // message, and for one that is too large; kUnsupported for another version. After an error nothing more can
  // be read.
  Result<std::optional<Message>> Next();

 private:
  std::string bytes_;
  size_t read_ = 0;  // of these
};

// Histograms in the block of a message, in order.
void AppendHistograms(std::string& block, const std::vector<const stats::Histogram*>& histograms);
// Takes as many as there are pointers. kCorrupt if the block holds others.
Status TakeHistograms(std::string_view& block, const std::vector<stats::Histogram*>& histograms);

}  // namespace weir::cluster

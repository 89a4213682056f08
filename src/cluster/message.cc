#include "cluster/message.h"

#include <fmt/format.h>

#include <utility>

namespace weir::cluster {
namespace {

constexpr size_t kHeader = 12;

void AppendSize(std::string& bytes, size_t size) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(size >> shift));
}

size_t SizeAt(std::string_view bytes, size_t at) {
  size_t size = 0;
  for (size_t i = 0; i < 4; ++i) size |= size_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return size;
}

Status CheckHeader(std::string_view header) {
  if (!header.starts_with("WA") || header[3] != 0)
    return Fail(ErrorCode::kCorrupt, "the other side does not speak the agents' protocol");
  const auto version = static_cast<uint8_t>(header[2]);
  if (version != kProtocolVersion)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("the other side speaks version {} of the agents' protocol, this weir version {}: "
                            "install one weir on all hosts",
                            version, kProtocolVersion));
  return {};
}

}  // namespace

std::string EncodeMessage(const Message& message) {
  const std::string text = DumpJson(message.body);
  CHECK(text.size() + message.block.size() <= kMostMessageBytes);
  std::string bytes = "WA";
  bytes.reserve(kHeader + text.size() + message.block.size());
  bytes.push_back(static_cast<char>(kProtocolVersion));
  bytes.push_back(0);
  AppendSize(bytes, text.size());
  AppendSize(bytes, message.block.size());
  bytes += text;
  bytes += message.block;
  return bytes;
}

Result<std::optional<Message>> MessageReader::Next() {
  const std::string_view rest = std::string_view(bytes_).substr(read_);
  if (rest.size() < kHeader) {
    bytes_.erase(0, std::exchange(read_, 0));
    return std::nullopt;
  }
  TRY_STATUS(CheckHeader(rest.substr(0, kHeader)));
  const size_t text = SizeAt(rest, 4), block = SizeAt(rest, 8);
  if (text + block > kMostMessageBytes)
    return Fail(ErrorCode::kCorrupt, fmt::format("a message of {} bytes: at most {} are allowed",
                                                 text + block, kMostMessageBytes));
  if (rest.size() < kHeader + text + block) return std::nullopt;
  Message message{.body = TRY_CONTEXT(ParseJson(rest.substr(kHeader, text)), "a message"),
                  .block = std::string(rest.substr(kHeader + text, block))};
  if (!message.body.is_object()) return Fail(ErrorCode::kCorrupt, "a message is not a JSON object");
  read_ += kHeader + text + block;
  return message;
}

void AppendHistograms(std::string& block, const std::vector<const stats::Histogram*>& histograms) {
  for (const stats::Histogram* histogram : histograms) histogram->AppendTo(block);
}

Status TakeHistograms(std::string_view& block, const std::vector<stats::Histogram*>& histograms) {
  for (stats::Histogram* histogram : histograms) {
    auto taken = stats::Histogram::TakeFrom(block);
    if (!taken) return Fail(ErrorCode::kCorrupt, "a message's histogram is broken");
    *histogram = *std::move(taken);
  }
  return {};
}

}  // namespace weir::cluster

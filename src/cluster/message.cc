#include "cluster/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::cluster {
namespace {

constexpr size_t kHeader = 12;
constexpr JsonLimits kJsonLimits{.bytes = kMostTextBytes, .values = size_t{1} << 20, .depth = 64};

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

Status CheckSizes(size_t text, size_t block, size_t most) {
  if (text <= kMostTextBytes && text + block <= most) return {};
  return Fail(
      ErrorCode::kCorrupt,
      fmt::format("a message of {} bytes of text and {} others: at most {} and {} together are allowed", text,
                  block, std::min(kMostTextBytes, most), most));
}

}  // namespace

Result<std::string> EncodeMessage(const Message& message) {
  const std::string text = DumpJson(message.body);
  if (const Status fits = CheckSizes(text.size(), message.block.size(), kMostMessageBytes); !fits)
    return Fail(ErrorCode::kUnsupported, fits.error().message);
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

Result<std::optional<MessageReader::Sizes>> MessageReader::NextSizes() const {
  const std::string_view rest = std::string_view(bytes_).substr(read_);
  if (rest.size() < kHeader) return std::nullopt;
  TRY_STATUS(CheckHeader(rest.substr(0, kHeader)));
  const Sizes sizes{.text = SizeAt(rest, 4), .block = SizeAt(rest, 8)};
  TRY_STATUS(CheckSizes(sizes.text, sizes.block, most_));
  return sizes;
}

Result<bool> MessageReader::HasNext() const {
  const auto sizes = TRY(NextSizes());
  return sizes && bytes_.size() - read_ >= kHeader + sizes->text + sizes->block;
}

Result<std::optional<Message>> MessageReader::Next() {
  const auto sizes = TRY(NextSizes());
  const size_t whole = sizes ? kHeader + sizes->text + sizes->block : kHeader;
  if (bytes_.size() - read_ < whole) {
    bytes_.erase(0, std::exchange(read_, 0));
    return std::nullopt;
  }
  const std::string_view rest = std::string_view(bytes_).substr(read_ + kHeader);
  Message message{.body = TRY_CONTEXT(ParseJson(rest.substr(0, sizes->text), kJsonLimits), "a message"),
                  .block = std::string(rest.substr(sizes->text, sizes->block))};
  if (!message.body.is_object()) return Fail(ErrorCode::kCorrupt, "a message is not a JSON object");
  read_ += whole;
  return message;
}

void AppendHistograms(std::string& block, const std::vector<const stats::Histogram*>& histograms) {
  for (const stats::Histogram* histogram : histograms) histogram->AppendTo(block);
}

Status TakeHistograms(std::string_view& block, const std::vector<stats::Histogram*>& histograms) {
  for (stats::Histogram* histogram : histograms) {
    auto taken = stats::Histogram::TakeFrom(block);
    if (!taken || !AreCounts<int64_t>({taken->count()}))
      return Fail(ErrorCode::kCorrupt, "a message's histogram is broken");
    *histogram = *std::move(taken);
  }
  return {};
}

}  // namespace weir::cluster

// Estimates the memory that a file of messages would take before it is parsed.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <optional>

namespace weir::onnx {

// Two bytes of a file can be an empty message of 200 bytes in memory, so a small file can take all of it.
// Returns an estimate of the bytes that a message of `type` in `input` takes once it is parsed: messages,
// strings, numbers and unknown fields. Stops counting, and reading, past `limit`. Reads no content of
// strings. Returns nullopt for what is no message of the wire format, or is nested deeper than 100.
std::optional<uint64_t> EstimateParsedBytes(google::protobuf::io::CodedInputStream& input,
                                            const google::protobuf::Descriptor& type, uint64_t limit);

// The most that a file of `file_bytes` may take: three times its size and 256 MiB. Networks that tools write
// stay below twice their size, but for small ones.
constexpr uint64_t MostParsedBytes(uint64_t file_bytes) { return 3 * file_bytes + (uint64_t{256} << 20); }

}  // namespace weir::onnx

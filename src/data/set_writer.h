// Writes a prepared set, whole or not at all.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/reject.h"
#include "data/set.h"

namespace weir::data {

// Pictures go in one after the other; their order alone gives their names. set.json is written last, by
// rename, so a folder whose making was broken off holds no set. A writer destroyed before Finish takes away
// what it wrote. One thread at a time.
class SetWriter {
 public:
  // Makes `folder`. kInvalidArgument when something is in it already. Of `facts` the format, geometry, size,
  // channels and classes are used; a raw set needs a size. A shard holds `shard_bytes` at most, and at least
  // one record.
  static Result<SetWriter> Create(const std::string& folder, SetFacts facts, int64_t shard_bytes = 256 << 20);
  ~SetWriter();
  SetWriter(SetWriter&&) noexcept;

  struct Picture {
    std::string_view source;  // raw bytes; escaped in the manifest
    std::optional<int> label;
    std::span<const std::byte> bytes;  // encoded; for a raw set the record's pixels
    std::string_view extension;        // of its file, without the dot; unused for a raw set
  };
  // Gives the entry as it stands in the manifest. REQUIRES: for a raw set exactly record_bytes() bytes.
  Result<SetEntry> Add(const Picture& picture);
  // Adds a real copy of a picture that is in the set already.
  Status Repeat(const SetEntry& entry);
  Status AddReject(std::string_view source, const Reject& reject);

  Result<SetFacts> Finish();

 private:
  struct State;
  explicit SetWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::data

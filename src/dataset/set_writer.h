// Writes a prepared set, so that it can be gone on with after a kill at any moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "dataset/set.h"
#include "dataset/set_text.h"
#include "image/reject.h"

namespace weir::dataset {

// How far a set has been written. Its files, cut to these lengths, and without those that come later, are the
// set as it was then.
struct SetPoint {
  int64_t images = 0;
  int64_t bytes = 0;  // of their pictures
  int64_t manifest_bytes = 0;
  int64_t rejects_bytes = 0;
  int64_t shard = 0;        // number of the shard that is being filled, or would come next
  int64_t shard_bytes = 0;  // of it; 0: not begun
  int64_t shard_records = 0;
  std::map<std::string, int64_t> rejected;  // by reason

  Json ToValue() const;
  static Result<SetPoint> FromValue(const Json& json);  // kCorrupt names the key
  bool operator==(const SetPoint&) const = default;
};

// Data that has been written and may not be on the disk yet. May be settled on another thread than the
// writer's.
struct Unsettled {
  struct ClosedShard {
    UniqueFd fd;
    std::string written_as, path;
  };
  std::vector<ClosedShard> closed;  // whole shards that have their last name to get
  std::vector<UniqueFd> open;       // files that grow
  bool whole_file_system = false;   // pictures are files of their own: too many to be told one by one
};
// Waits for the disk, and gives the closed shards their names.
Status Settle(Unsettled& unsettled);

// Pictures go in one after the other; their order alone gives their names. A shard is written under a name
// that ends in ".part" and gets its own once it is whole and on the disk. set.json is written last, by
// rename. A writer that is destroyed before Finish leaves what it wrote, for Resume. One thread at a time.
class SetWriter {
 public:
  static constexpr int64_t kShardBytes = 256 << 20;

  // kInvalidArgument, with the remedy, unless `folder` is absent or empty.
  static Status CheckIsFree(const std::string& folder);

  // Makes `folder`, which has to be free. Of `facts` the format, geometry, size, channels, classes, and what
  // made it are used; a raw set needs a size. A shard holds `shard_bytes` at most, and at least one record.
  static Result<SetWriter> Create(const std::string& folder, SetFacts facts,
                                  int64_t shard_bytes = kShardBytes);
  // Goes on with what a writer of the same facts and shard size has left in `folder`, from `point` on; what
  // came after it is taken away. kCorrupt where less is there than `point` tells.
  static Result<SetWriter> Resume(const std::string& folder, SetFacts facts, int64_t shard_bytes,
                                  const SetPoint& point);
  // Whether Resume would find all that `point` tells of.
  static bool CanResume(const std::string& folder, const SetFacts& facts, const SetPoint& point);

  ~SetWriter();
  SetWriter(SetWriter&&) noexcept;

  struct Picture {
    std::string_view source;  // raw bytes; escaped in the manifest
    int64_t input = -1;
    std::optional<int> label;
    std::span<const std::byte> bytes;  // encoded; for a raw set the record's pixels
    std::string_view extension;        // of its format, without the dot; unused for a raw set
    std::string_view hash;             // HashOf(bytes), where it has been worked out; else done here
    int width = 0, height = 0;
    std::string_view sha256, source_hash, source_sha256;
    int64_t source_bytes = 0;
  };
  // Gives the entry as it stands in the manifest. REQUIRES: for a raw set exactly record_bytes() bytes.
  Result<SetEntry> Add(const Picture& picture);
  // Adds a real copy of a picture that is in the set already, as `entry` tells.
  Status Repeat(const SetEntry& entry);
  // Adds the picture that has `bytes` and stands as `entry` in another set of the same format; where it
  // stands there is not used. kCorrupt for bytes that are no record of a raw set.
  Status Copy(const SetEntry& entry, std::span<const std::byte> bytes);
  Status AddReject(std::string_view source, int64_t input, std::string_view reason, std::string_view detail);
  // Adds the line as it is: its texts have gone through EscapeBytes.
  Status AddReject(const RejectEntry& entry);
  Status AddReject(std::string_view source, const image::Reject& reject);

  // Hands all to the system, and tells how far it is.
  Result<SetPoint> Flush();
  // All that was written since the last call, up to the last Flush.
  Result<Unsettled> TakeUnsettled();

  int64_t images() const;
  // Returns the byte of the manifest at which the next entry's line will begin.
  int64_t manifest_bytes() const;
  // Returns the entry whose line begins at this byte of the manifest. kCorrupt where no line does; kIo.
  Result<SetEntry> EntryAt(int64_t manifest_byte);

  // Settles the rest and writes set.json.
  Result<SetFacts> Finish();

 private:
  struct State;
  explicit SetWriter(std::unique_ptr<State> state);
  static Result<SetWriter> Open(const std::string& folder, SetFacts facts, int64_t shard_bytes,
                                const SetPoint& point);
  std::unique_ptr<State> state_;
};

}  // namespace weir::dataset

// The texts of a prepared set: set.json and the lines of its manifest.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "dataset/set.h"

namespace weir::dataset {

std::string FormatSetFacts(const SetFacts& facts);
// Believes nothing: kCorrupt names the key that is missing, of the wrong type, or out of its limits;
// kUnsupported names a version of set.json that is newer or older than this program's.
Result<SetFacts> ParseSetFacts(std::string_view text);

// Returns the facts that must be the same to resume a set, inputs apart, as one object: the options' keys
// stand beside the others.
Json MakingOf(const SetFacts& facts);

// One line, without its newline.
std::string FormatSetEntry(const SetEntry& entry);
// kCorrupt as above, and for a path that leaves the set's folder.
Result<SetEntry> ParseSetEntry(std::string_view line);

// One line of rejects.jsonl.
struct RejectEntry {
  std::string source;  // as of a SetEntry
  int64_t input = -1;  // as of a SetEntry
  std::string reason;  // of the closed list of reject.h
  std::string detail;  // text, bytes escaped
  // For a duplicate: the picture that came first, as its SetEntry has it, and the hash of the bytes of both.
  // Empty and -1 for other reasons.
  std::string twin;
  int64_t twin_input = -1;
  std::string source_hash;
};
std::string FormatRejectEntry(const RejectEntry& entry);
Result<RejectEntry> ParseRejectEntry(std::string_view line);

// True for a name that can be a folder of a split: 1 to 100 letters, digits, dots, dashes and underscores;
// the first is no dot, and it does not begin as the folders of parts do ("part-").
bool IsSplitName(std::string_view name);

// The header of a raw set's shard.
inline constexpr int64_t kShardHeaderBytes = 4096;
// The header's 4,096 bytes for the shard whose records begin with number `first`.
std::string FormatShardHeader(const SetFacts& facts, int64_t first, int64_t records);

}  // namespace weir::dataset

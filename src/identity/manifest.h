// The file that says which files an index consists of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "identity/threshold.h"

namespace weir::identity {

struct Manifest {
  struct SegmentEntry {
    uint64_t number = 0;  // of the file
    uint64_t rows = 0, probes = 1, candidates = 0;
    uint64_t trained_rows = 0;  // rows when its lists were trained; 0: one list
    bool operator==(const SegmentEntry&) const = default;
  };
  size_t dimension = 0;
  int bits = 1;
  std::string model_hash;    // of the model that made the embeddings; empty where none was named
  double mate_cosine = 0.4;  // look-ups are planned for
  uint64_t next = 2;         // the number of the next file
  std::vector<SegmentEntry> segments;
  std::vector<uint64_t> logs{1};  // in order; the last is written to
  StrangerScores strangers;
  bool operator==(const Manifest&) const = default;
};

// Returns the hash that ties an index's files to its model and dimension.
uint64_t OwnerOf(const Manifest& manifest);

// One line of JSON and one with its checksum.
std::string FormatManifest(const Manifest& manifest);
// Returns the path of the manifest of the index in `folder`.
std::string ManifestPath(const std::string& folder);
// Returns kUnsupported: a file of version `found`, where this program reads `known`.
std::unexpected<Error> OtherVersion(std::string_view found, std::string_view known);
// kCorrupt for a wrong checksum and for values out of range, kUnsupported for another version.
Result<Manifest> ParseManifest(std::string_view text);

}  // namespace weir::identity

// Sources on this machine's file systems.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "dataset/set.h"
#include "feed/file_index.h"
#include "feed/source.h"

namespace weir::feed {

// A folder that is no prepared set, or one of files; and its masks.
Result<std::shared_ptr<const Source>> OpenFolder(const std::string& folder, const SourceOptions& options);
Result<std::shared_ptr<const Source>> OpenFileSet(const std::string& folder, const dataset::SetFacts& facts,
                                                  const SourceOptions& options);
Result<std::shared_ptr<const Source>> OpenFolderOfMasks(const std::string& folder, const FileIndex& pictures,
                                                        const SourceOptions& options);
// A prepared set with shards.
Result<std::shared_ptr<const Source>> OpenShards(const std::string& folder, dataset::SetFacts facts,
                                                 const SourceOptions& options);

// Rejects bytes whose XXH3-128 does not begin with `hash`; 0: not known.
image::Accepted<void> CheckHash(std::span<const std::byte> bytes, uint64_t hash);

// Returns the list of files in the order of `pictures`: for each the one of `masks` with the same path, the
// ending apart. kNotFound names the first picture that has none, kInvalidArgument one that has two.
Result<std::shared_ptr<const FileIndex>> MatchMasks(const FileIndex& pictures, const FileIndex& masks,
                                                    const std::string& where);

// Returns the files that a manifest of the format "files" lists. kCorrupt if it is not the one of `facts`.
Result<std::shared_ptr<const FileIndex>> ReadManifest(std::string_view text, const dataset::SetFacts& facts);

bool HasLabels(const FileIndex& index);

// The error of a place that holds no picture.
std::unexpected<Error> NoPictures(const std::string& where);

}  // namespace weir::feed

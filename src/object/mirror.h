// Copies of many objects: from a store into a folder that keeps them, and from a folder into a store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "object/source.h"

namespace weir::object {

struct MirrorOptions {
  std::stop_token stop;
  std::function<void(int64_t done, int64_t total)> progress;  // objects
};

struct MirrorReport {
  int64_t objects = 0;  // of the prefix, or of the folder
  int64_t copied = 0;   // that were not there already
  int64_t bytes = 0;    // of those
};

// Makes `folder` hold the objects that begin with `prefix`, each below the name without the prefix. Objects
// that an earlier call brought are not read again if their ETag and size are the same; files of objects that
// are gone are removed. Its files are for their owner alone: an index of identities may lie there. Each file
// is written beside its place, synced and renamed, so a kill leaves whole files only. Several processes may
// call it for one folder: one downloads, the others wait. kInvalidArgument for keys that are no paths ("..",
// an empty part); kNotFound if there is no object.
Result<MirrorReport> Download(ObjectSource& source, const std::string& prefix, const std::string& folder,
                              const MirrorOptions& options = {});

// Writes all files of `folder` below `prefix`, those named set.json last: a reader finds a set whole or not
// at all. Files whose contents are there by size and ETag are not sent again.
Result<MirrorReport> Upload(ObjectSource& source, const std::string& folder, const std::string& prefix,
                            const MirrorOptions& options = {});

// Returns the ETag that S3 gives a file that is written by ObjectSource::WriteFile, without quotes: its MD5,
// or the MD5 of the parts' MD5s with their number.
Result<std::string> ETagOfFile(const std::string& path);

// The folder for copies of `url`: below WEIR_CACHE_DIR, else XDG_CACHE_HOME/weir, else ~/.cache/weir.
// kInvalidArgument if none of them is set.
Result<std::string> CacheFolder(const Environment& environment, const std::string& url);
// Where a set is made before it is written to `url`.
Result<std::string> StagingFolder(const Environment& environment, const std::string& url);

// Returns a local path for `url`: the prefix as a folder if there are objects below "URL/", else the one
// object as a file. A path that is no URL comes back as it is.
// Where nothing is at `url` any more (kNotFound), its copies are removed too.
Result<std::string> Localise(SourceSet& sources, const std::string& url, const MirrorOptions& options = {});
// Writes `folder` to `url`.
Result<MirrorReport> Publish(SourceSet& sources, const std::string& folder, const std::string& url,
                             const MirrorOptions& options = {});

// The process's own variables.
Environment ProcessEnvironment();

}  // namespace weir::object

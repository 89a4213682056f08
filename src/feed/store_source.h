// Sources in object storage and on web servers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feed/file_index.h"
#include "feed/source.h"
#include "object/source.h"

namespace weir::feed {

// Opens the prepared set below `url`, or the folder by classes below an URL of s3. Its samples are read from
// the store, many at a time. Errors as OpenSource.
Result<std::shared_ptr<const Source>> OpenStore(const std::string& url, const SourceOptions& options);
Result<std::shared_ptr<const Source>> OpenStoreOfMasks(const std::string& url, const FileIndex& pictures,
                                                       const SourceOptions& options);

// Returns the pictures below `prefix` as a folder of this machine would have them: by classes if any lies in
// a folder, in the same order; hidden ones and others left out. An entry's hash is of the ETag. Pure. Errors
// as dataset::NumberLabels.
Result<std::shared_ptr<const FileIndex>> IndexOfObjects(std::span<const object::ListedObject> objects,
                                                        std::string_view prefix, bool by_classes);

}  // namespace weir::feed

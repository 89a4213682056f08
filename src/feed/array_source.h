// Records that are no pictures: arrays in numpy's files.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "feed/source.h"

namespace weir::feed {

// Returns whether `path` is a file named *.npy, or a folder that holds one.
bool IsArray(const std::string& path);

// Opens FILE.npy, or all of a folder in byte order of their names. The first dimension counts the records;
// all files have records of one form. FILE.labels.npy beside FILE.npy holds the labels: whole numbers, one
// for each record. The hash is of the headers and of the first and last 64 KiB of each file. kCorrupt for a
// file that is cut; kInvalidArgument for files that do not fit together, or no record.
Result<std::shared_ptr<const Source>> OpenArrays(const std::string& path);

}  // namespace weir::feed

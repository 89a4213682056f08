// What DATA on the command line stands for: a list of inputs in a fixed order, and what was passed over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "data/recipe.h"
#include "data/reject.h"

namespace weir::data {

// One picture to be answered for. Small: many are held.
struct Input {
  std::string name;         // as found: the path (raw bytes), or for a prepared set its path in the set
  std::optional<int> label; // class, where the data set knows it
  int64_t record = -1;      // index in a raw set; -1: a file of its own
  int set = -1;             // index of the prepared set it belongs to; -1: none
};

struct Skipped {
  std::string name;
  std::string why;  // "hidden", "not a picture by name or content", "folder already visited"
};

// A prepared set: a folder with a set.json (see set.h).
class PreparedSet;

struct Listing {
  std::vector<Input> inputs;
  std::vector<Skipped> skipped;
  std::vector<std::shared_ptr<const PreparedSet>> sets;
};

// Lists files, folders and prepared sets. Folders: recursive, entries in byte order of their names; hidden entries, and files that
// are neither named (.jpg .jpeg .jpe .jfif .png .tif .tiff .gif .bmp .dib .webp, any case) nor shaped (SniffFormat) like a picture, are
// skipped. What is named on the command line itself is never skipped. A linked folder is entered once (by device and inode, so circles
// end); every linked file is an input; links that lead nowhere, pipes, sockets and folders by a picture's name are inputs that loading will
// reject (a folder by a picture's name is also entered). kNotFound when an argument is not there.
Result<Listing> ListInputs(const std::vector<std::string>& arguments);

}  // namespace weir::data

// The data sets that the trials of a study read, each made once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "trial/setting.h"

namespace weir::trial {

// One of them.
struct DataSet {
  std::string path;  // as weir run takes it
  int64_t pictures = 0;
};

// One thread at a time. `clock` must outlive it.
class DatasetCache {
 public:
  struct Options {
    std::string program;  // this program: it prepares the sets
    std::string source;   // pictures, a folder or a prepared set of them; empty: there are none
    std::string folder;   // where the sets are made, and found again
  };
  DatasetCache(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  // Returns the data that a trial reads: the source itself if all of it is read unchanged; else a set in
  // `folder` with the first `images` pictures, real copies of them, at the recipe's size. The first request
  // for a set takes as long as preparing it. kInvalidArgument if the source has too few pictures or
  // there is no recipe to prepare by; else the error of weir prepare.
  Result<DataSet> Get(const Setting& setting, const dataset::Recipe* recipe);

 private:
  struct Wish {
    DataPath path = DataPath::kFiles;  // kMemory is kFilesAtModelSize here
    std::optional<int64_t> images;
    int replication = 1;
    std::string Name(const dataset::Recipe* recipe) const;  // of its folder
  };
  Result<DataSet> Make(const Wish& wish, const dataset::Recipe* recipe, const std::string& folder);
  Result<std::string> LinkFirst(int64_t images);  // a folder with links to the first so many; its path

  const Options options_;
  const Clock& clock_;
  std::map<std::string, DataSet> sets_;
};

}  // namespace weir::trial

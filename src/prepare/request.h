// A preparation as a person asks for it: pictures or made ones in, a set, its parts joined, or a check.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "prepare/prepare.h"
#include "prepare/sources.h"

namespace weir::prepare {

struct PrepareRequest {
  SourceOptions sources;           // of pictures; with `join` the paths are the parts'
  std::string list;                // file of names; empty: none
  Options options;                 // without geometry, variations and judge
  std::string recipe;              // as ReadVariations takes it; empty: files are copied
  int64_t make = 0;                // pictures to draw instead of reading sources
  int64_t sample = 0;              // sources to take, chosen by `seed`; 0: all
  int64_t seed = 1;                // of made pictures, the sample, the split and the preview
  std::string recognise;           // model that must recognise each picture; empty: none
  double min_score = 0.5;          // of its best class
  std::string preview;             // file for a contact sheet; empty: none
  std::string verify;              // finished set to check; nothing is made then
  std::string verify_name;         // as the user has named it, where that is a copy; empty: it is none
  bool join = false;               // joins finished parts
  std::string publish;             // URL that the finished set is written to; empty: none
  std::vector<std::string> given;  // the flags, by their long names
};

// kInvalidArgument for flags that contradict each other, and for those that the way of working that was asked
// for (verify, join, make, or reading) would not look at.
Status CheckRequest(const PrepareRequest& request);

// Puts local folders in the place of URLs: copies of what is read, and a folder to make what is published.
Status Localise(PrepareRequest& request, const std::stop_token& stop);

// Reads the recipes, and gives the seed to what depends on it. Errors as ReadVariations.
Status CompleteRequest(PrepareRequest& request);

}  // namespace weir::prepare

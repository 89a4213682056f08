// One loader thread's work: an input to pixels of the recipe's geometry.
#pragma once

#include <cstdint>

#include "data/prepare.h"
#include "data/recipe.h"
#include "data/source.h"

namespace weir::run {

// Keeps decoders and buffers. One thread at a time; each loader thread has its own. `listing` must outlive
// it.
class Loader {
 public:
  struct Options {
    data::DecodeOptions decode;
    uint64_t max_file_bytes = 256 << 20;
  };
  Loader(const data::Listing& listing, const data::Geometry& geometry, const Options& options);

  // Valid until the next call.
  data::Accepted<data::PixelView> Load(const data::Input& input);

 private:
  const data::Listing& listing_;
  const data::Geometry geometry_;
  const Options options_;
  Bytes encoded_;
  data::Preparer from_pictures_;  // as they come: the whole geometry
  data::Preparer from_prepared_;  // already of the geometry: decoded only
};

// The sets of a listing hold pictures of another geometry than `geometry`: kInvalidArgument, naming the set
// and the remedy.
Status CheckGeometry(const data::Listing& listing, const data::Geometry& geometry);

}  // namespace weir::run

// One loader thread's work: an input to pixels of the recipe's geometry.
#pragma once

#include <cstdint>

#include "dataset/preparer.h"
#include "dataset/recipe.h"
#include "dataset/source.h"

namespace weir::run {

// Keeps decoders and buffers. One thread at a time; each loader thread has its own. `listing` must outlive
// it.
class Loader {
 public:
  struct Options {
    image::DecodeOptions decode;
    uint64_t max_file_bytes = 256 << 20;
  };
  Loader(const dataset::Listing& listing, const dataset::Geometry& geometry, const Options& options);

  // Valid until the next call.
  image::Accepted<dataset::PixelView> Load(const dataset::Input& input);

 private:
  const dataset::Listing& listing_;
  const dataset::Geometry geometry_;
  const Options options_;
  Bytes encoded_;
  dataset::Preparer from_pictures_;  // as they come: the whole geometry
  dataset::Preparer from_prepared_;  // already of the geometry: decoded only
};

// The sets of a listing hold pictures of another geometry than `geometry`: kInvalidArgument, naming the set
// and the remedy.
Status CheckGeometry(const dataset::Listing& listing, const dataset::Geometry& geometry);

}  // namespace weir::run

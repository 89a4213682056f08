// Where pictures come from, as the making of a set sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/json.h"
#include "dataset/labels.h"
#include "image/reject.h"

namespace weir::prepare {

// One picture as a feed gives it.
struct FedPicture {
  std::string source;  // its name in the manifest, raw bytes; the same wherever the data lies
  std::optional<int> label;
  image::Accepted<Bytes> encoded;
  bool from_network = false;
};

// `get` is called from several threads at once, once for each index of 0 to count - 1, roughly in order; what
// it gives depends on the index alone.
//
// Its functions may be called from several threads at once.
struct Feed {
  int64_t count = 0;
  dataset::LabelRule label_rule = dataset::LabelRule::kGiven;
  std::vector<std::string> classes;  // names by label, where known
  int64_t not_taken = 0;  // how many of the count, the last, are entries of the sources that are no pictures
  std::function<FedPicture(int64_t index)> get;
  const char* stage = "disk read";  // what `get` takes its time for, unless a picture is from the network
  // The arguments that the pictures and their labels depend on, and that are no property of a picture: a set
  // that was begun with others is not gone on with.
  struct Arguments {
    std::string labels;  // where they are from; empty: no argument
    std::optional<int64_t> sample;
    std::optional<uint64_t> seed;
    Json ToJson() const;
  };
  Arguments arguments;
  // The name and the label that `get` will give, without reading the picture.
  std::function<std::string(int64_t index)> name;
  std::function<std::optional<int>(int64_t index)> label;
  // How many of the labels that were given belong to no picture, and the names of some.
  int64_t unused_labels = 0;
  std::vector<std::string> unused_label_examples;  // raw bytes
  // Identifies a feed without reading its pictures: a text for each index, as name and label.
  // Absent: only the count does.
  std::function<std::string(int64_t index)> describe;
  // Shows whether a picture's bytes may have changed since an interrupted making: sizes and times, which
  // a set itself must not depend on. Absent: nothing does. From several threads at once.
  std::function<std::string(int64_t index)> state;
  // Asked at the end: an error says how the sources have changed since they were listed. Absent: they cannot.
  std::function<Status()> check_unchanged;
};

// The feed's pictures of these indices, in their order, and what is not taken of its sources. `feed` is
// shared, not copied. REQUIRES: indices of pictures.
Feed Pick(Feed feed, std::vector<int64_t> indices);

// Which pictures of a feed have a label.
struct LabelReport {
  static constexpr size_t kExamples = 5;

  bool asked_for = false;  // labels were given, or a picture has one
  int64_t labelled = 0, unlabelled = 0;
  std::vector<std::string> unlabelled_examples;  // names, raw bytes; the first kExamples
  int64_t unused = 0;                            // Feed::unused_labels
  std::vector<std::string> unused_examples;
};
LabelReport ReportLabels(const Feed& feed);

// `count` of the numbers 0 to `total` - 1, rising, each choice as likely as any other; all where there are no
// more. The same for the same seed.
std::vector<int64_t> SampleOf(int64_t total, int64_t count, uint64_t seed);

// XXH3-128 over the descriptions of all of its pictures, and their number.
std::string HashOfInputs(const Feed& feed);

}  // namespace weir::prepare

// A model as the judge of pictures that go into a set.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "image/decode.h"
#include "model/model.h"
#include "run/application.h"

namespace weir::dataset {
class Preparer;
}

namespace weir::run {

struct JudgeOptions {
  std::string model;     // a file or folder; a server's model could change from one picture to the next
  double min_score = 0;  // of the best class: a probability where the recipe says softmax
  image::DecodeOptions decode;
};

// Decides whether the model recognises a picture. Thread-safe.
class PictureJudge {
 public:
  // Accepts an encoded picture, or rejects it: by the decoder's reasons, or as kUnrecognised with the best
  // class and its score. For one thread.
  using Judge = std::function<image::Accepted<void>(std::span<const std::byte> encoded)>;

  // `clock` must outlive it. kUnsupported for a URL, kInvalidArgument for a model without a recipe; other
  // errors are those of opening the model.
  static Result<std::unique_ptr<PictureJudge>> Open(const JudgeOptions& options, const Clock& clock);

  // Makes a judge for one thread; this must outlive it.
  Judge MakeJudge() const;

  // The model's name, a hash of its file and the least score: the same identity gives the same verdicts.
  const std::string& identity() const { return identity_; }

 private:
  explicit PictureJudge(const JudgeOptions& options) : options_(options) {}
  image::Accepted<void> Check(dataset::Preparer& preparer, std::span<const std::byte> encoded) const;

  const JudgeOptions options_;
  model::OpenedSession opened_;
  Target target_;
  std::string identity_;
};

}  // namespace weir::run

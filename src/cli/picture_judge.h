// A model as the judge of pictures that go into a set.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "image/decode.h"
#include "model/model.h"
#include "prepare/maker.h"
#include "run/application.h"

namespace weir::cli {

struct JudgeFlags {
  std::string model;     // a file or folder; a server's answers could not be had again the same
  double min_score = 0;  // of its best class: a probability where the recipe says softmax
  image::DecodeOptions decode;
};

// Thread-safe.
class PictureJudge {
 public:
  // `clock` must outlive it. Errors as `weir run` has them for the model.
  static Result<std::unique_ptr<PictureJudge>> Open(const JudgeFlags& flags, const Clock& clock);

  // One for each thread; this must outlive them. Rejects what the decoder rejects, and kUnrecognised with the
  // best class and its score.
  prepare::Judge MakeJudge() const;

  // The model's name, a hash of its file and the score: the same where its verdicts are.
  const std::string& identity() const { return identity_; }

 private:
  explicit PictureJudge(const JudgeFlags& flags) : flags_(flags) {}
  image::Accepted<void> Judge(dataset::Preparer& preparer, std::span<const std::byte> encoded) const;

  const JudgeFlags flags_;
  model::OpenedSession opened_;
  run::Target target_;
  std::string identity_;
};

}  // namespace weir::cli

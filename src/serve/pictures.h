// Makes a model's input from what NAME.pixels and NAME.image are sent: as the application in the same process
// would, to the bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "dataset/preparer.h"
#include "http/byte_budget.h"
#include "infer/tensor.h"
#include "serve/decode_pool.h"
#include "serve/loaded_model.h"

namespace weir::serve {

// The decoders of one server, handed out for a picture and taken back. Thread-safe.
class Preparers {
 public:
  explicit Preparers(image::DecodeOptions options) : options_(options) {}

  // Prepares a picture by the recipe's geometry and writes its part of the input.
  image::Accepted<void> Prepare(const dataset::Recipe& recipe, std::span<const std::byte> encoded,
                                std::byte* out);

 private:
  struct Idle {
    dataset::Geometry geometry;
    dataset::Preparer preparer;
  };
  dataset::Preparer Take(const dataset::Geometry& geometry);
  void Keep(Idle idle);

  const image::DecodeOptions options_;
  Mutex mutex_;
  std::list<Idle> idle_ GUARDED_BY(mutex_);  // the last used at the end
};

// One request's pictures on the pool.
class PictureWork final : public DecodePool::Work {
 public:
  using Done = std::move_only_function<void(Result<infer::Tensor>)>;

  // `input` is the request's: checked, of the form of `served`, at least one picture. `budget` bounds the
  // memory of what is made. `still_wanted` is asked before the first picture: its error ends the work. `done`
  // gets the model's input, or the error, which names the first picture that is broken, on a thread of the
  // pool.
  PictureWork(std::shared_ptr<ServedModel> served, infer::Tensor input, Preparers& preparers,
              http::ByteBudget& budget, std::move_only_function<Status() const> still_wanted, Done done);

  size_t pieces() const override { return pieces_; }
  void Do(size_t piece) override;
  void Finish() override;

 private:
  std::byte* Open();  // the memory, made by whoever comes first; null once it is not to be had
  void Broken(int64_t picture, Error error);
  Status Make(size_t picture, std::byte* out);

  const std::shared_ptr<ServedModel> served_;
  const infer::Tensor input_;
  const dataset::Recipe recipe_;  // the model's; without the normalising where a GPU does that
  const size_t item_bytes_;
  size_t pieces_, per_piece_;
  std::vector<std::span<const std::byte>> pictures_;
  Preparers& preparers_;
  http::ByteBudget& budget_;
  const std::move_only_function<Status() const> still_wanted_;
  Done done_;

  std::atomic<int64_t> failed_at_;  // pictures after it need not be done

  Mutex mutex_;
  bool opened_ GUARDED_BY(mutex_) = false;
  Bytes output_ GUARDED_BY(mutex_);
  std::optional<Error> error_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve

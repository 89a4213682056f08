#include "probe/storage_decode.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/json.h"
#include "feed/augment.h"
#include "feed/picture.h"

namespace weir::probe {
namespace {

feed::AugmentOptions RowOf(const DecodeWork& work) { return {.width = work.width, .height = work.height}; }

class DecodingReader final : public SampleReader {
 public:
  DecodingReader(std::unique_ptr<SampleReader> reader, const DecodeWork& work, const Clock& clock)
      : reader_(std::move(reader)),
        under_way_(static_cast<size_t>(reader_->Slots())),
        maker_(RowOf(work), {}, clock),
        row_(RowOf(work).sample_bytes()) {}

  Result<ReadMoments> Read(const StorageSample& sample) override {
    return Decode(0, sample, TRY(reader_->Read(sample)));
  }
  int Slots() const override { return reader_->Slots(); }
  void Begin(int slot, const StorageSample& sample) override {
    under_way_[static_cast<size_t>(slot)] = &sample;
    reader_->Begin(slot, sample);
  }
  ReadDone Wait() override {
    ReadDone done = reader_->Wait();
    if (done.read) done.read = Decode(done.slot, *under_way_[static_cast<size_t>(done.slot)], *done.read);
    return done;
  }
  std::span<const std::byte> Contents(int slot, const StorageSample& sample) const override {
    return reader_->Contents(slot, sample);
  }

 private:
  Result<ReadMoments> Decode(int slot, const StorageSample& sample, ReadMoments moments) {
    const auto made = maker_.MakeEncoded(reader_->Contents(slot, sample), {.item = decoded_++}, row_.data());
    if (!made)
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}: {} {}", EscapeBytes(sample.path), image::ToString(made.error().reason),
                              EscapeBytes(made.error().detail)));
    const feed::PictureTimes times = maker_.TakeTimes();
    moments.decode = times.decode;
    moments.augment = times.augment;
    return moments;
  }

  const std::unique_ptr<SampleReader> reader_;
  std::vector<const StorageSample*> under_way_;  // by slot
  feed::PictureMaker maker_;
  std::vector<std::byte> row_;
  uint64_t decoded_ = 0;
};

}  // namespace

Result<std::unique_ptr<SampleReader>> MakeWorkingReader(const ReadOptions& options, const DecodeWork* work,
                                                        const Clock& clock) {
  auto reader = TRY(SampleReader::Make(options, clock));
  if (work == nullptr) return reader;
  return std::make_unique<DecodingReader>(std::move(reader), *work, clock);
}

}  // namespace weir::probe

// Streams that this program draws, with a truth: planted persons, burnt-in codes, faults on request.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "base/seed.h"
#include "watch/made_video.h"
#include "watch/source.h"

namespace weir::watch {

class MadeSource final : public Source {
 public:
  // kUnsupported where the codec's library is missing.
  static Result<std::unique_ptr<Source>> Create(const MadeSpec& spec, const SourceOptions& options,
                                                const Clock& clock);
  Status Connect(Instant until) override;
  Result<std::optional<SourceFrame>> Read(Instant until) override;
  std::optional<int64_t> produced() const override { return produced_; }
  std::deque<SourceFrame> Leave() override;

 private:
  struct Coming {
    MadePacket packet;
    Instant due{};
  };
  MadeSource(const MadeSpec& spec, SourceOptions options, const Clock& clock);
  Instant PlanOf(int64_t index) const;
  Result<std::optional<Coming>> MakeNext();
  Result<std::optional<Coming>> MakePicture(int64_t index);
  Result<std::optional<Coming>> MakeRest();

  const MadeSpec spec_;
  const SourceOptions options_;
  const Clock& clock_;
  Random random_;
  std::unique_ptr<MadeVideo> video_;
  std::optional<MadePicture> last_;
  Instant start_{};
  Duration wall_offset_{};
  int64_t next_ = 0, produced_ = 0;
  uint32_t counter_ = 0;
  std::optional<Coming> coming_, held_back_;
  std::deque<SourceFrame> ready_;
  bool begun_ = false, cut_done_ = false, resized_ = false;
};

}  // namespace weir::watch

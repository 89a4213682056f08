#include "serve/decode_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace weir::serve {
namespace {

// Keeps which pieces were done, and can hold them back.
class Counted final : public DecodePool::Work {
 public:
  explicit Counted(size_t pieces) : pieces_(pieces) {}
  size_t pieces() const override { return pieces_; }
  void Do(size_t piece) override {
    MutexLock lock(mutex_);
    ++begun_;
    changed_.NotifyAll();
    while (held_) changed_.Wait(mutex_);
    done_.insert(piece);
  }
  void Finish() override {
    MutexLock lock(mutex_);
    ++finished_;
    changed_.NotifyAll();
  }
  void Hold(bool held) {
    MutexLock lock(mutex_);
    held_ = held;
    changed_.NotifyAll();
  }
  void WaitUntilBegun(size_t count) {
    MutexLock lock(mutex_);
    while (begun_ < count) changed_.Wait(mutex_);
  }
  // How many pieces there were when it was over.
  size_t WaitUntilFinished() {
    MutexLock lock(mutex_);
    while (finished_ == 0) changed_.Wait(mutex_);
    EXPECT_EQ(finished_, 1);
    return done_.size();
  }

 private:
  const size_t pieces_;
  Mutex mutex_;
  CondVar changed_;
  bool held_ GUARDED_BY(mutex_) = false;
  size_t begun_ GUARDED_BY(mutex_) = 0;
  std::set<size_t> done_ GUARDED_BY(mutex_);
  int finished_ GUARDED_BY(mutex_) = 0;
};

TEST(DecodePool, DoesEveryPieceAndFinishesOnce) {
  DecodePool pool(3, 8);
  for (const size_t pieces : {1, 2, 50}) {
    const auto work = std::make_shared<Counted>(pieces);
    ASSERT_TRUE(pool.Offer(work));
    EXPECT_EQ(work->WaitUntilFinished(), pieces);
  }
}

TEST(DecodePool, WorksOnThePiecesOfOneWorkSideBySide) {
  DecodePool pool(2, 8);
  const auto work = std::make_shared<Counted>(2);
  work->Hold(true);
  ASSERT_TRUE(pool.Offer(work));
  work->WaitUntilBegun(2);
  work->Hold(false);
  EXPECT_EQ(work->WaitUntilFinished(), 2U);
}

TEST(DecodePool, RefusesMoreThanMayWait) {
  DecodePool pool(1, 2);
  const auto held = std::make_shared<Counted>(1);
  held->Hold(true);
  ASSERT_TRUE(pool.Offer(held));
  held->WaitUntilBegun(1);
  const auto second = std::make_shared<Counted>(1), third = std::make_shared<Counted>(1),
             fourth = std::make_shared<Counted>(1);
  EXPECT_TRUE(pool.Offer(second));
  EXPECT_TRUE(pool.Offer(third));
  EXPECT_FALSE(pool.Offer(fourth));
  held->Hold(false);
  EXPECT_EQ(third->WaitUntilFinished(), 1U);
}

TEST(DecodePool, FinishesWhatWaitsBeforeItEnds) {
  const auto last = std::make_shared<Counted>(5);
  {
    DecodePool pool(1, 8);
    ASSERT_TRUE(pool.Offer(last));
  }
  EXPECT_EQ(last->WaitUntilFinished(), 5U);
}

}  // namespace
}  // namespace weir::serve

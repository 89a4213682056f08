#include "run/assembly.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "base/seed.h"
#include "base/thread.h"

namespace weir::run {
namespace {

class AssemblyTest : public ::testing::Test {
 protected:
  // Takes the next picture and puts it into its slot.
  static void LoadOne(Assembly& assembly) {
    const auto index = assembly.Next();
    ASSERT_TRUE(index);
    assembly.Commit(assembly.Claim(*index), {});
  }
  ManualClock clock_;
};

TEST_F(AssemblyTest, ABatchIsDueOnceItIsFull) {
  Assembly assembly(clock_, {.pictures = 5, .batch = 2, .item_bytes = 4, .buffers = 3, .in_flight = 3});
  LoadOne(assembly);
  EXPECT_EQ(assembly.TakeDue(), nullptr);
  LoadOne(assembly);
  const BatchPtr batch = assembly.TakeDue();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->slots.size(), 2u);
  EXPECT_EQ(batch->slots[1].index, 1);
}

TEST_F(AssemblyTest, TheLastPicturesGoAsAPartBatch) {
  Assembly assembly(clock_, {.pictures = 3, .batch = 2, .item_bytes = 4, .buffers = 3, .in_flight = 3});
  for (int i = 0; i < 3; ++i) LoadOne(assembly);
  EXPECT_EQ(assembly.TakeDue()->slots.size(), 2u);
  EXPECT_EQ(assembly.TakeDue()->slots.size(), 1u);
  EXPECT_EQ(assembly.Next(), std::nullopt);
}

TEST_F(AssemblyTest, ARejectedLastPictureSendsWhatTheBatchHolds) {
  Assembly assembly(clock_, {.pictures = 2, .batch = 2, .item_bytes = 4, .buffers = 1, .in_flight = 1});
  LoadOne(assembly);
  ASSERT_TRUE(assembly.Next());
  assembly.Reject();
  EXPECT_EQ(assembly.TakeDue()->slots.size(), 1u);
}

TEST_F(AssemblyTest, HoldsBackWhatExceedsTheDepthAndTellsForHowLong) {
  Assembly assembly(clock_, {.pictures = 4, .batch = 1, .item_bytes = 4, .buffers = 3, .in_flight = 1});
  LoadOne(assembly);
  BatchPtr first = assembly.TakeDue();
  ASSERT_NE(first, nullptr);
  LoadOne(assembly);
  EXPECT_EQ(assembly.TakeDue(), nullptr);
  clock_.Advance(5ms);
  assembly.Answered();
  EXPECT_NE(assembly.TakeDue(), nullptr);
  EXPECT_EQ(assembly.HeldBack(), 5ms);
}

TEST_F(AssemblyTest, APartBatchGoesWhenTheWindowIsClosed) {
  Assembly assembly(
      clock_, {.pictures = 100, .batch = 4, .item_bytes = 4, .buffers = 4, .in_flight = 4, .window = 2});
  LoadOne(assembly);
  EXPECT_EQ(assembly.TakeDue(), nullptr);
  LoadOne(assembly);
  const BatchPtr batch = assembly.TakeDue();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->slots.size(), 2u);
}

TEST_F(AssemblyTest, StopSendsWhatHasBegunAndHandsOutNoMore) {
  Assembly assembly(clock_, {.pictures = 100, .batch = 4, .item_bytes = 4, .buffers = 1, .in_flight = 1});
  LoadOne(assembly);
  assembly.Stop();
  EXPECT_EQ(assembly.TakeDue()->slots.size(), 1u);
  EXPECT_EQ(assembly.Next(), std::nullopt);
  EXPECT_EQ(assembly.Begun(), 1);
}

// Property: whatever the sizes, and whichever pictures are rejected, with loaders and answerers on threads of
// their own every picture is answered or rejected exactly once, no batch is larger than asked, and everything
// ends.
TEST_F(AssemblyTest, EveryPictureComesOutOnceWhateverTheSizes) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random = Seed(seed).MakeRandom();
    const int64_t pictures = random.Integer(0, 200);
    const int batch = static_cast<int>(random.Integer(1, 9));
    const int buffers = static_cast<int>(random.Integer(1, 4));
    const int in_flight = static_cast<int>(random.Integer(1, 4));
    const int64_t window = random.Integer(1, 40);
    const int64_t reject_every = random.Integer(1, 6);
    const int loaders = static_cast<int>(random.Integer(1, 4));
    Assembly assembly(clock_, {pictures, batch, 8, buffers, in_flight, window});
    Mutex mutex;
    std::multiset<int64_t> seen;
    int64_t finished = 0;  // in order, as the application reports it
    const auto finish = [&](const std::vector<int64_t>& indices) {
      int64_t count = 0;
      {
        MutexLock lock(mutex);
        seen.insert(indices.begin(), indices.end());
        while (seen.contains(finished + count)) count += 1;
        finished += count;
      }
      assembly.Finished(count);
    };
    const auto answer_due = [&] {
      while (BatchPtr due = assembly.TakeDue()) {
        EXPECT_LE(std::ssize(due->slots), batch);
        std::vector<int64_t> indices;
        for (const auto& slot : due->slots) indices.push_back(slot.index);
        assembly.Answered();
        assembly.Release(std::move(due));
        finish(indices);
      }
    };
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < loaders; ++i) {
        threads.push_back(StartThread("load", [&](std::stop_token) {
          while (const auto index = assembly.Next()) {
            if (*index % reject_every == 0) {
              finish({*index});
              assembly.Reject();
            } else {
              assembly.Commit(assembly.Claim(*index), {});
            }
            answer_due();
          }
        }));
      }
    }
    answer_due();
    ASSERT_EQ(std::ssize(seen), pictures) << "seed " << seed;
    ASSERT_EQ(finished, pictures) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::run

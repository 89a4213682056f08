#include "identity/index.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "identity/evaluate.h"
#include "identity/made.h"

namespace weir::identity {
namespace {

using Access = Index::Access;

std::vector<Enrolment> Made(uint64_t rows, size_t dimension, uint64_t first = 0) {
  const MadeIdentities made({.dimension = dimension, .intrinsic = 0, .seed = 7});
  std::vector<Enrolment> enrolments;
  for (uint64_t i = first; i < first + rows; ++i)
    enrolments.push_back({"p" + std::to_string(i), made.Vector(i)});
  return enrolments;
}

// Gives vectors that it holds.
class HeldSource final : public VectorSource {
 public:
  explicit HeldSource(std::vector<Enrolment> rows) : rows_(std::move(rows)) {}
  Result<std::vector<Enrolment>> Next(size_t most) override {
    const size_t count = std::min(most, rows_.size() - next_);
    next_ += count;
    return std::vector<Enrolment>(rows_.begin() + static_cast<ptrdiff_t>(next_ - count),
                                  rows_.begin() + static_cast<ptrdiff_t>(next_));
  }

 private:
  std::vector<Enrolment> rows_;
  size_t next_ = 0;
};

// Fails the call number `fail_at`, from 0, before or after it was done.
class FailingDisk final : public Disk {
 public:
  enum class When { kBefore, kAfter };
  void FailAt(int call, When when) {
    calls_ = 0;
    fail_at_ = call;
    when_ = when;
  }
  int calls() const { return calls_; }
  Status Write(const UniqueFd& fd, const std::string& path, std::span<const std::byte> bytes,
               uint64_t offset) override {
    return Do([&] { return Disk::Write(fd, path, bytes, offset); });
  }
  Status Sync(const UniqueFd& fd, const std::string& path) override {
    return Do([&] { return Disk::Sync(fd, path); });
  }
  Status Truncate(const UniqueFd& fd, const std::string& path, uint64_t bytes) override {
    return Do([&] { return Disk::Truncate(fd, path, bytes); });
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return Do([&] { return Disk::Rename(from, to); });
  }
  Status SyncFolder(const std::string& path) override {
    return Do([&] { return Disk::SyncFolder(path); });
  }
  Status Remove(const std::string& path) override {
    return Do([&] { return Disk::Remove(path); });
  }

 private:
  template <typename Call>
  Status Do(const Call& call) {
    const bool fails = calls_++ == fail_at_;
    if (fails && when_ == When::kBefore) return Fail(ErrorCode::kIo, "injected");
    const Status status = call();
    return fails ? Status(Fail(ErrorCode::kIo, "injected")) : status;
  }
  std::atomic<int> calls_{0};
  int fail_at_ = -1;
  When when_ = When::kBefore;
};

class IndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "index_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Create(size_t dimension, const std::string& model = "") {
    ASSERT_TRUE(Index::Create(folder_, {.dimension = dimension, .model_hash = model}));
  }
  std::unique_ptr<Index> Write(Disk* disk = nullptr) {
    return Index::Open(folder_, {.access = Access::kWrite, .disk = disk}).value();
  }
  static std::string Best(const Index& index, const std::vector<float>& vector) {
    const auto found = index.Search(std::span(&vector, 1), {.best = 1}).value();
    return found.front().empty() ? "" : found.front().front().name;
  }
  static std::set<std::string> Names(const Index& index) {
    std::set<std::string> names;
    EXPECT_TRUE(index.ForEach([&](const RowView& row) -> Status {
      names.emplace(row.name);
      return {};
    }));
    return names;
  }
  // Whether any file of the folder holds these bytes.
  bool AnyFileHolds(std::string_view bytes) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      if (text.find(bytes) != std::string::npos) return true;
    }
    return false;
  }

  std::string folder_;
};

TEST_F(IndexTest, KeepsWhatItAcknowledgedThroughSealingAndReopening) {
  Create(70, "aa");
  const auto rows = Made(50, 70);
  {
    auto index = Write();
    ASSERT_TRUE(index->Enrol(rows));
    EXPECT_EQ(Index::Open(folder_, {.access = Access::kWrite}).error().code, ErrorCode::kOverloaded);
  }
  auto index = Index::Open(folder_, {.access = Access::kWrite, .model_hash = "aa"}).value();
  EXPECT_EQ(Best(*index, rows[3].vector), "p3");
  ASSERT_TRUE(index->Seal(Index::SealScope::kTail));
  EXPECT_EQ(index->facts().sealed, 50U);
  ASSERT_TRUE(index->Enrol(Made(1, 70, 50)));
  EXPECT_EQ(index->facts().rows, 51U);
  const auto found = index->Search(std::span(&rows[3].vector, 1), {.best = 2}).value().front();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found.front().name, "p3");
  EXPECT_NEAR(found.front().score, 1, 0.001);
  index.reset();
  EXPECT_EQ(Index::Open(folder_, {}).value()->facts().rows, 51U);
  EXPECT_EQ(Index::Open(folder_, {.model_hash = "bb"}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Index::Create(folder_, {.dimension = 70}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(IndexTest, ADeletedNameIsInNoFileAnyMore) {
  Create(16);
  auto rows = Made(40, 16);
  rows[3].name = rows[30].name = "to-be-forgotten";
  auto index = Write();
  ASSERT_TRUE(index->Enrol(std::span(rows).first(20)));
  ASSERT_TRUE(index->Seal(Index::SealScope::kTail));
  ASSERT_TRUE(index->Enrol(std::span(rows).subspan(20)));
  ASSERT_TRUE(AnyFileHolds("to-be-forgotten"));
  const std::string names[] = {"to-be-forgotten", "p4"};
  EXPECT_EQ(index->Delete(names).value(), 3U);
  EXPECT_FALSE(AnyFileHolds("to-be-forgotten"));
  EXPECT_FALSE(AnyFileHolds({reinterpret_cast<const char*>(rows[30].vector.data()), 64}));
  EXPECT_EQ(index->facts().rows, 37U);
  EXPECT_EQ(index->Delete(names).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(index->facts().rows, 37U);
  index.reset();
  EXPECT_EQ(Names(*Index::Open(folder_, {}).value()).size(), 37U);
}

TEST_F(IndexTest, AllNamesCanBeDeleted) {
  Create(16);
  auto index = Write();
  ASSERT_TRUE(index->Enrol(Made(2, 16)));
  const std::string names[] = {"p0", "p1"};
  EXPECT_EQ(index->Delete(names).value(), 2U);
  EXPECT_EQ(Best(*index, Made(1, 16).front().vector), "");
  index.reset();
  EXPECT_EQ(Write()->facts().rows, 0U);
}

// Each step of sealing and of deleting fails once, before and after it was done. Whatever was acknowledged
// before and after the failure is found, in the object and after it is opened again.
TEST_F(IndexTest, AFailureAtAnyStepLosesNoAcknowledgedRow) {
  const auto rows = Made(30, 16);
  for (const bool deletes : {false, true}) {
    for (const auto when : {FailingDisk::When::kBefore, FailingDisk::When::kAfter}) {
      for (int step = 0, steps = 1; step < steps; ++step) {
        std::filesystem::remove_all(folder_);
        Create(16);
        std::set<std::string> wanted;
        bool uncertain = false;
        {
          FailingDisk disk;
          auto index = Write(&disk);
          ASSERT_TRUE(index->Enrol(std::span(rows).first(10)));
          ASSERT_TRUE(index->Seal(Index::SealScope::kTail));
          ASSERT_TRUE(index->Enrol(std::span(rows).subspan(10, 10)));
          disk.FailAt(step, when);
          const std::string name = "p5";
          const bool done = deletes ? index->Delete(std::span(&name, 1)).has_value()
                                    : index->Seal(Index::SealScope::kAll).has_value();
          steps = disk.calls() > step ? step + 2 : step;  // as long as there was such a step
          disk.FailAt(-1, when);
          uncertain = deletes && !done;
          ASSERT_TRUE(index->Enrol(std::span(rows).subspan(20, 5))) << step;
          const bool again = index->Seal(Index::SealScope::kTail).has_value();
          EXPECT_TRUE(again) << step;
          ASSERT_TRUE(index->Enrol(std::span(rows).subspan(25, 5))) << step;
          for (const Enrolment& row : rows) wanted.insert(row.name);
          if (deletes) wanted.erase("p5");
          auto names = Names(*index);
          if (uncertain) names.erase("p5");
          EXPECT_EQ(names, wanted) << step;
        }
        auto names = Names(*Write());
        if (uncertain) names.erase("p5");
        EXPECT_EQ(names, wanted) << "deletes " << deletes << " step " << step;
      }
    }
  }
}

TEST_F(IndexTest, AFailedEnrolmentIsNotThereAfterwards) {
  const auto rows = Made(3, 16);
  for (const auto when : {FailingDisk::When::kBefore, FailingDisk::When::kAfter}) {
    for (const int step : {0, 1}) {
      std::filesystem::remove_all(folder_);
      Create(16);
      {
        FailingDisk disk;
        auto index = Write(&disk);
        ASSERT_TRUE(index->Enrol(std::span(rows).first(1)));
        disk.FailAt(step, when);
        EXPECT_FALSE(index->Enrol(std::span(rows).subspan(1, 1)));
        EXPECT_EQ(Names(*index), std::set<std::string>{"p0"});
        ASSERT_TRUE(index->Enrol(std::span(rows).subspan(2, 1)));
      }
      EXPECT_EQ(Names(*Write()), (std::set<std::string>{"p0", "p2"}));
    }
  }
}

TEST_F(IndexTest, ATornLastRecordIsDroppedAndTheRestKept) {
  Create(16);
  ASSERT_TRUE(Write()->Enrol(Made(3, 16)));
  const std::string log = folder_ + "/1.log";
  const auto size = std::filesystem::file_size(log);
  std::filesystem::resize_file(log, size - 5);
  {
    auto index = Write();
    EXPECT_EQ(index->facts().rows, 2U);
    EXPECT_GT(index->facts().torn_bytes, 0U);
    ASSERT_TRUE(index->Enrol(Made(1, 16, 9)));
  }
  EXPECT_EQ(Names(*Index::Open(folder_, {}).value()), (std::set<std::string>{"p0", "p1", "p9"}));
}

TEST_F(IndexTest, FilesAreForTheirOwnerAlone) {
  Create(16);
  auto index = Write();
  ASSERT_TRUE(index->Enrol(Made(3, 16)));
  ASSERT_TRUE(index->Seal(Index::SealScope::kTail));
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    struct stat facts{};
    ASSERT_EQ(::stat(entry.path().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U) << entry.path();
  }
}

TEST_F(IndexTest, FindsEveryFlippedByteAndEveryCutOfASealedFile) {
  Create(16);
  {
    auto index = Write();
    ASSERT_TRUE(index->Enrol(Made(9, 16)));
    ASSERT_TRUE(index->Seal(Index::SealScope::kTail));
  }
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().extension() == ".identities") path = entry.path();
  }
  const Bytes whole = ReadFile(path, 1 << 20).value();
  Manifest manifest;
  manifest.dimension = 16;
  const auto check = [&](std::span<const std::byte> bytes) {
    const auto segment = Segment::FromBytes(bytes, OwnerOf(manifest));
    return segment && (*segment)->VerifyRows({});
  };
  ASSERT_TRUE(check(whole.span()));
  for (size_t i = 0; i < whole.size(); ++i) {
    Bytes flipped = Bytes::Copy(whole.span());
    flipped.mutable_data()[i] ^= std::byte{4};
    EXPECT_FALSE(check(flipped.span())) << i;
    if (i % 7 == 0) {
      EXPECT_FALSE(check(whole.span().first(i))) << i;
    }
  }
  EXPECT_FALSE(Segment::FromBytes(whole.span(), OwnerOf(manifest) + 1));
}

TEST_F(IndexTest, AReaderFollowsTheWriter) {
  Create(16);
  const auto rows = Made(30, 16);
  auto writer = Write();
  auto reader = Index::Open(folder_, {}).value();
  ASSERT_TRUE(writer->Enrol(std::span(rows).first(10)));
  ASSERT_TRUE(reader->Refresh());
  EXPECT_EQ(reader->facts().rows, 10U);
  ASSERT_TRUE(writer->Enrol(std::span(rows).subspan(10, 10)));
  ASSERT_TRUE(reader->Refresh());
  EXPECT_EQ(Best(*reader, rows[15].vector), "p15");
  ASSERT_TRUE(writer->Seal(Index::SealScope::kTail));
  ASSERT_TRUE(writer->Enrol(std::span(rows).subspan(20)));
  ASSERT_TRUE(reader->Refresh());
  EXPECT_EQ(reader->facts().rows, 30U);
  EXPECT_EQ(reader->facts().sealed, 20U);
  const std::string name = "p2";
  ASSERT_TRUE(writer->Delete(std::span(&name, 1)));
  ASSERT_TRUE(reader->Refresh());
  EXPECT_FALSE(Names(*reader).contains("p2"));
  EXPECT_EQ(reader->Enrol(rows).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(IndexTest, SealsInTheBackgroundWhileOthersEnrolAndSearch) {
  Create(16);
  const auto rows = Made(600, 16);
  auto index =
      Index::Open(folder_, {.access = Access::kWrite, .threads = 2, .background = true, .seal_rows = 100})
          .value();
  std::atomic<bool> done = false;
  std::atomic<size_t> enrolled = 0;
  std::jthread searcher([&] {
    while (!done) {
      const size_t last = enrolled.load();
      if (last > 0) {
        EXPECT_EQ(Best(*index, rows[last - 1].vector), rows[last - 1].name);
      }
    }
  });
  for (size_t i = 0; i < rows.size(); i += 10) {
    ASSERT_TRUE(index->Enrol(std::span(rows).subspan(i, 10)));
    enrolled = i + 10;
  }
  done = true;
  searcher.join();
  EXPECT_FALSE(index->background_error().has_value());
  EXPECT_EQ(Names(*index).size(), 600U);
  index.reset();
  EXPECT_EQ(Names(*Write()).size(), 600U);
}

TEST_F(IndexTest, FilledIndexOfListsFindsItsPlantedMates) {
  ASSERT_TRUE(Index::Create(folder_, {.dimension = 32, .mate_cosine = 0.85}));
  const MadeIdentities made({.dimension = 32, .intrinsic = 6, .seed = 5});
  std::vector<Enrolment> rows;
  for (uint64_t i = 0; i < 33000; ++i) rows.push_back({MadeIdentities::Name(i), made.Vector(i)});
  {
    HeldSource source(rows);
    auto index = Index::Open(folder_, {.access = Access::kWrite, .threads = 2}).value();
    ASSERT_EQ(index->Fill(source, {}, {}).value(), rows.size());
    EXPECT_GT(index->facts().lists, 100U);
  }
  std::vector<Enrolment> mates, strangers;
  for (uint64_t i = 0; i < 200; ++i) {
    mates.push_back({MadeIdentities::Name(i * 150), made.Mate(i * 150, 0.85)});
    strangers.push_back({"", made.Vector(1000000 + i)});
  }
  for (const RowAccess access : {RowAccess::kMap, RowAccess::kMemory, RowAccess::kDirect}) {
    auto index = Index::Open(folder_, {.rows = access, .threads = 2});
    if (access == RowAccess::kDirect && !index && index.error().code == ErrorCode::kUnsupported) continue;
    ASSERT_TRUE(index) << index.error().message;
    EvaluationOptions options;
    options.exact = access == RowAccess::kMap;
    options.batch = access == RowAccess::kMemory ? 7 : 1;
    options.search.threshold = (*index)->Threshold(0.05).value();
    const SteadyClock clock;
    const auto evaluation = Evaluate(**index, mates, strangers, options, clock, {});
    if (access == RowAccess::kDirect && !evaluation && evaluation.error().code == ErrorCode::kUnsupported)
      continue;
    ASSERT_TRUE(evaluation) << evaluation.error().message;
    if (options.exact) {
      EXPECT_GE(evaluation->recall->value, 0.98);
    }
    EXPECT_LE(evaluation->fpir->low, 0.06);
    EXPECT_GE(evaluation->fpir->high, 0.03);
    EXPECT_LT(evaluation->rows_scanned, 33000.0);
  }
}

}  // namespace
}  // namespace weir::identity

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "identity/index.h"
#include "identity/made.h"

namespace weir::identity {
namespace {

TEST(RowFetcher, FindsTheSameWhetherRowsAreInThePageCacheOrNot) {
  const std::string folder = ::testing::TempDir() + "fetch-" + std::to_string(::getpid());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(Index::Create(folder, {.dimension = 64}));
  const MadeIdentities made({.dimension = 64, .intrinsic = 0, .seed = 5});
  std::vector<Enrolment> rows;
  for (uint64_t i = 0; i < 3000; ++i) rows.push_back({"p" + std::to_string(i), made.Vector(i)});
  {
    const auto index = Index::Open(folder, {.access = Index::Access::kWrite}).value();
    ASSERT_TRUE(index->Enrol(rows));
    ASSERT_TRUE(index->Seal(Index::SealScope::kAll));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const UniqueFd file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(file.valid());
    EXPECT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
  const auto mapped = Index::Open(folder, {.rows = RowAccess::kMap}).value(),
             held = Index::Open(folder, {.rows = RowAccess::kMemory}).value();
  // More look-ups than ask for their pages after one that had to wait.
  for (size_t i = 0; i < rows.size(); i += 10) {
    const std::span query(&rows[i].vector, 1);
    const auto found = mapped->Search(query, {.best = 3}).value().front(),
               wanted = held->Search(query, {.best = 3}).value().front();
    ASSERT_EQ(found.size(), wanted.size());
    EXPECT_EQ(found.front().name, rows[i].name);
    for (size_t k = 0; k < found.size(); ++k) {
      EXPECT_EQ(found[k].name, wanted[k].name);
      EXPECT_EQ(found[k].score, wanted[k].score);
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weir::identity

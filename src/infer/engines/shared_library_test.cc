#include "infer/engines/shared_library.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace weir::infer {
namespace {

std::string EmptyFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "weir_shared_library_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(SharedLibrary, OneThatIsNowhereSaysWhereItWasLookedForAndWhatInstallsIt) {
  const std::string folder = EmptyFolder("empty");
  const auto library =
      SharedLibrary::OpenIn({folder}, {.engine = "x", .files = {"libweir_none.so"}, .folder = "x"});
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kNotFound);
  for (const std::string& part : {std::string("engine x"), std::string("libweir_none.so"), folder,
                                  std::string("./dev setup"), std::string("WEIR_ENGINES")}) {
    EXPECT_NE(library.error().message.find(part), std::string::npos) << part;
  }
}

TEST(SharedLibrary, AFileThatIsNoLibraryIsAnErrorWithTheLoadersWords) {
  const std::string folder = EmptyFolder("broken");
  std::ofstream(folder + "/libweir_none.so") << "not a library";
  const auto library =
      SharedLibrary::OpenIn({folder}, {.engine = "x", .files = {"libweir_none.so"}, .folder = "x"});
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kInternal);
  EXPECT_NE(library.error().message.find(folder), std::string::npos);
}

TEST(SharedLibrary, LeavesTheSearchToTheLoaderAtTheEnd) {
  const auto library =
      SharedLibrary::OpenIn({}, {.engine = "c", .files = {"libweir_none.so", "libc.so.6"}, .folder = "x"});
  ASSERT_TRUE(library);
  EXPECT_EQ(library->path(), "libc.so.6");
  EXPECT_NE(library->Find("malloc"), nullptr);
  EXPECT_EQ(library->Find("weir_has_no_such_function"), nullptr);
}

}  // namespace
}  // namespace weir::infer

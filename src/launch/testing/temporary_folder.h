// A folder of a test's own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace weir::launch::testing {

// Gone with this object, whatever is in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& beside = ::testing::TempDir()) {
    std::string pattern = std::filesystem::absolute(beside).lexically_normal().string() + "/weir-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << pattern << ": no folder can be made";
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace weir::launch::testing

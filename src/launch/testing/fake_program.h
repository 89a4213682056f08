// A program of a test's own in the place of another.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "launch/testing/temporary_folder.h"

namespace weir::launch::testing {

// A script that is found first under this name while this object lives.
class FakeProgram {
 public:
  FakeProgram(const std::string& name, const std::string& script) : program_(folder_.path() + "/" + name) {
    std::ofstream(program_) << script;
    ::chmod(program_.c_str(), 0755);
    ::setenv("PATH", (folder_.path() + ":" + path_).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ~FakeProgram() { ::setenv("PATH", path_.c_str(), 1); }  // NOLINT(concurrency-mt-unsafe)

  // Returns the lines that the script has written to "$0.calls".
  std::string Calls() const {
    std::ostringstream all;
    all << std::ifstream(program_ + ".calls").rdbuf();
    return all.str();
  }

 private:
  const TemporaryFolder folder_;
  const std::string path_ = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  const std::string program_;
};

}  // namespace weir::launch::testing

// A folder of sources of a test, and what `weir prepare` makes of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dataset/tar.h"
#include "prepare/sources.h"

namespace weir::prepare::testing_sources {

class SourcesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        ::testing::TempDir() + "sources_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& contents) {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << contents;
  }
  // "source label first-byte-or-reason" of each input.
  std::vector<std::string> Read(SourceOptions options) {
    sources_ = Sources::Open(std::move(options)).value();
    const Feed feed = sources_->MakeFeed();
    std::vector<std::string> lines;
    not_taken_.clear();
    for (int64_t i = 0; i < feed.count; ++i) {
      const FedPicture picture = feed.get(i);
      auto& into = i < feed.count - feed.not_taken ? lines : not_taken_;
      into.push_back(picture.source + " " + (picture.label ? std::to_string(*picture.label) : "-") + " " +
                     (picture.encoded ? std::string(picture.encoded->text().substr(0, 1))
                                      : std::string(ToString(picture.encoded.error().reason))));
    }
    classes_ = feed.classes;
    rule_ = feed.label_rule;
    return lines;
  }
  Error Refusal(SourceOptions options) { return Sources::Open(std::move(options)).error(); }
  static std::string Member(const std::string& name, const std::string& contents) {
    const auto size = static_cast<int64_t>(contents.size());
    return dataset::FormatTarHeader(name, size) + contents + dataset::TarPadding(size);
  }

  std::string folder_;
  std::unique_ptr<Sources> sources_;
  std::vector<std::string> classes_, not_taken_;
  dataset::LabelRule rule_ = dataset::LabelRule::kUnknown;
};

}  // namespace weir::prepare::testing_sources

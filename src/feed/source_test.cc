#include "feed/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "feed/file_index.h"
#include "feed/store_source.h"

namespace weir::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "/feed_source_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    ASSERT_TRUE(WriteFileWhole(root_ + "/" + name, text));
  }
  std::string root_;
};

std::string ReadText(const Source& source, int64_t sample) {
  ReadBuffer buffer;
  const auto bytes = source.Read(sample, buffer);
  if (!bytes) return std::string(image::ToString(bytes.error().reason));
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

TEST_F(Folder, ByClassesIsReadInByteOrder) {
  Put("set/dog/b.jpg", "dog b");
  Put("set/dog/deep/c.PNG", "dog c");
  Put("set/Cat/a.jpg", "cat a");
  Put("set/Cat/notes.txt", "text");
  Put("set/Cat/.hidden.jpg", "hidden");
  Put("set/empty/readme", "text");
  const auto source = OpenSource(root_ + "/set/", {});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT((*source)->classes(), ElementsAre("Cat", "dog"));
  ASSERT_EQ((*source)->size(), 3);
  EXPECT_EQ(ReadText(**source, 0), "cat a");
  EXPECT_EQ(ReadText(**source, 1), "dog b");
  EXPECT_EQ((*source)->Label(1), 1);
  EXPECT_EQ((*source)->Name(2), root_ + "/set/dog/deep/c.PNG");
  EXPECT_EQ((*source)->hash().size(), 32u);
}

TEST_F(Folder, WithoutFoldersHasNoClasses) {
  Put("set/b.jpg", "b");
  Put("set/a.jpg", "a");
  const auto source = OpenSource(root_ + "/set", {});
  ASSERT_TRUE(source);
  EXPECT_TRUE((*source)->classes().empty());
  EXPECT_EQ((*source)->Label(0), -1);
  EXPECT_EQ(ReadText(**source, 0), "a");
}

TEST_F(Folder, SaysWhatIsWrong) {
  EXPECT_EQ(OpenSource(root_ + "/none", {}).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(OpenSource(root_, {}).error().message, HasSubstr("holds no pictures"));
  Put("file.jpg", "x");
  EXPECT_THAT(OpenSource(root_ + "/file.jpg", {}).error().message, HasSubstr("not a folder"));
  Put("begun/manifest.jsonl", "");
  Put("begun/rejects.jsonl", "");
  EXPECT_THAT(OpenSource(root_ + "/begun", {}).error().message, HasSubstr("not finished"));
}

TEST_F(Folder, ThatLosesAFileRejectsIt) {
  Put("set/a.jpg", "a");
  const auto source = OpenSource(root_ + "/set", {});
  ASSERT_TRUE(source);
  std::filesystem::remove(root_ + "/set/a.jpg");
  EXPECT_EQ(ReadText(**source, 0), "vanished");
}

TEST_F(Folder, KeepsItsIndex) {
  Put("set/x/a.jpg", "a");
  Put("set/y/b.jpg", "b");
  const SourceOptions options{.index = root_ + "/index"};
  const auto first = OpenSource(root_ + "/set", options);
  ASSERT_TRUE(first) << first.error().message;
  Put("set/y/new.jpg", "new");  // the index does not look
  const auto second = OpenSource(root_ + "/set", options);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ((*second)->hash(), (*first)->hash());
  EXPECT_EQ((*second)->size(), 2);
  EXPECT_THAT((*second)->classes(), ElementsAre("x", "y"));
  EXPECT_EQ(ReadText(**second, 1), "b");
}

TEST(IndexOfObjects, HasTheOrderOfAFolder) {
  const std::vector<object::ListedObject> objects = {{"p/dog/b.jpg", 5, "\"1\""}, {"p/dog.png", 1, ""},
                                                     {"p/Cat/a.JPG", 3, "\"2\""}, {"p/Cat/.x.jpg", 1, ""},
                                                     {"p/Cat/z/a.jpg", 2, ""},    {"p/Cat/b.jpg", 2, ""},
                                                     {"p/Cat/notes", 2, ""},      {"p/dog/", 0, ""}};
  const auto index = IndexOfObjects(objects, "p/", true).value();
  ASSERT_EQ(index->size(), 4);
  EXPECT_THAT(index->classes(), ElementsAre("Cat", "dog"));
  EXPECT_EQ(index->name(0), "Cat/a.JPG");
  EXPECT_EQ(index->name(1), "Cat/b.jpg");
  EXPECT_EQ(index->name(2), "Cat/z/a.jpg");
  EXPECT_EQ(index->name(3), "dog/b.jpg");
  EXPECT_EQ(index->entry(3).label, 1);
  EXPECT_EQ(index->entry(3).bytes, 5u);
  EXPECT_NE(index->entry(3).hash, index->entry(0).hash);
  EXPECT_EQ(index->entry(1).hash, 0u);
  EXPECT_EQ(IndexOfObjects(objects, "p/", false).value()->size(), 5);
}

TEST_F(Folder, OfMasksHasTheOrderOfItsPictures) {
  Put("set/x/a.jpg", "a");
  Put("set/y/b.jpg", "b");
  Put("masks/y/b.png", "mask b");
  Put("masks/x/a.bmp", "mask a");
  Put("masks/x/more.png", "of no picture");
  const auto source = OpenSource(root_ + "/set", {});
  ASSERT_TRUE(source);
  const auto masks = OpenMasks(root_ + "/masks/", **source, {});
  ASSERT_TRUE(masks) << masks.error().message;
  ASSERT_EQ((*masks)->size(), 2);
  EXPECT_EQ(ReadText(**masks, 0), "mask a");
  EXPECT_EQ(ReadText(**masks, 1), "mask b");
  Put("masks/x/a.png", "another");
  EXPECT_THAT(OpenMasks(root_ + "/masks", **source, {}).error().message, HasSubstr("the same picture"));
  std::filesystem::remove_all(root_ + "/masks/x");
  EXPECT_THAT(OpenMasks(root_ + "/masks", **source, {}).error().message, HasSubstr("no mask for x/a.jpg"));
}

TEST_F(Folder, RefusesADamagedIndex) {
  Put("set/x/a.jpg", "a");
  const SourceOptions options{.index = root_ + "/index"};
  ASSERT_TRUE(OpenSource(root_ + "/set", options));
  const std::string whole = *ReadTextFile(options.index);
  for (const std::string& damaged :
       {whole.substr(0, whole.size() - 1), whole.substr(0, 10), whole + "x", "X" + whole.substr(1),
        std::string(), whole.substr(0, 150) + "?" + whole.substr(151)}) {
    ASSERT_TRUE(WriteFileWhole(options.index, damaged));
    const auto source = OpenSource(root_ + "/set", options);
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(source.error().message, HasSubstr("delete it"));
  }
}

}  // namespace
}  // namespace weir::feed

#include "dataset/source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "dataset/set.h"
#include "dataset/set_writer.h"

namespace weir::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kJpegHead[] = "\xff\xd8\xff\xe0 the rest";

class SourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "source_test_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeFolders(folder_));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, std::string_view contents = "x") const {
    std::ofstream(Path(name), std::ios::binary) << contents;
  }
  void Link(const std::string& target, const std::string& name) const {
    ASSERT_EQ(::symlink(target.c_str(), Path(name).c_str()), 0);
  }

  static std::vector<std::string> Names(const Listing& listing) {
    std::vector<std::string> names;
    for (const Input& input : listing.inputs) names.emplace_back(input.relative_name());
    return names;
  }
  std::vector<std::pair<std::string, std::string>> Skips(const Listing& listing) const {
    std::vector<std::pair<std::string, std::string>> skips;
    for (const Skipped& skipped : listing.skipped)
      skips.emplace_back(skipped.name.substr(folder_.size() + 1), skipped.why);
    return skips;
  }
  static image::RejectReason ReasonFor(const Listing& listing, std::string_view name) {
    for (const Input& input : listing.inputs) {
      if (input.relative_name() != name) continue;
      const auto bytes = LoadInput(listing, input, 1000);
      EXPECT_FALSE(bytes) << name;
      return bytes ? image::RejectReason::kFailed : bytes.error().reason;
    }
    ADD_FAILURE() << "no input " << name;
    return image::RejectReason::kFailed;
  }

  std::string folder_;
};

TEST_F(SourceTest, ListsPicturesByNameOrContentInByteOrder) {
  for (const char* name : {"b.jpg", "B.JPEG", "a.tiff", "-dash.gif", "z.webp", "no_dot_jpg"}) Write(name);
  Write("no_extension", kJpegHead);
  Write("text.txt", "text");
  Write(".hidden.jpg", kJpegHead);
  Write("empty");
  ASSERT_TRUE(MakeFolders(Path("b")));
  Write("b/inner.png");
  ASSERT_TRUE(MakeFolders(Path(".git")));
  Write(".git/x.jpg");
  const Listing listing = ListInputs({folder_}).value();
  EXPECT_THAT(Names(listing),
              ElementsAre("-dash.gif", "B.JPEG", "a.tiff", "b/inner.png", "b.jpg", "no_extension", "z.webp"));
  EXPECT_THAT(Skips(listing), ElementsAre(Pair(".git", "hidden"), Pair(".hidden.jpg", "hidden"),
                                          Pair("empty", "not a picture by name or content"),
                                          Pair("no_dot_jpg", "not a picture by name or content"),
                                          Pair("text.txt", "not a picture by name or content")));
  EXPECT_EQ(listing.inputs[0].name, folder_ + "/-dash.gif");
  EXPECT_EQ(Names(ListInputs({folder_ + "/"}).value()), Names(listing));
}

TEST_F(SourceTest, WhatIsNamedItselfIsNeverSkipped) {
  Write(".hidden.txt");
  const Listing listing = ListInputs({Path(".hidden.txt"), folder_, Path(".hidden.txt")}).value();
  EXPECT_THAT(Names(listing), ElementsAre(".hidden.txt", ".hidden.txt"));
  EXPECT_EQ(ListInputs({Path("none.jpg")}).error().code, ErrorCode::kNotFound);
}

TEST_F(SourceTest, KeepsNamesOfAnyBytes) {
  const std::vector<std::string> names = {"caf\xe9.jpg", "two\nlines.jpg", std::string(251, 'n') + ".jpg",
                                          "写真, x.jpg"};
  for (const std::string& name : names) Write(name, name);
  const Listing listing = ListInputs({folder_}).value();
  EXPECT_THAT(Names(listing), ::testing::UnorderedElementsAreArray(names));
  for (const Input& input : listing.inputs)
    EXPECT_EQ(LoadInput(listing, input)->text(), input.relative_name());
}

TEST_F(SourceTest, LinksInCirclesEndAndAreAnsweredFor) {
  Link("loop_b.jpg", "loop_a.jpg");
  Link("loop_a.jpg", "loop_b.jpg");
  Link("/nonexistent", "gone.jpg");
  Link("/nonexistent", "gone");
  ASSERT_TRUE(MakeFolders(Path("d")));
  Link("..", "d/up");
  Write("d/x.jpg");
  Link("d", "e");  // a class of its own, with the pictures of d
  Link("d/x.jpg", "y.jpg");
  const Listing listing = ListInputs({folder_}).value();
  EXPECT_THAT(Names(listing),
              ElementsAre("d/x.jpg", "e/x.jpg", "gone.jpg", "loop_a.jpg", "loop_b.jpg", "y.jpg"));
  EXPECT_THAT(Skips(listing),
              ElementsAre(Pair("d/up/", "folder already visited"), Pair("e/up/", "folder already visited"),
                          Pair("gone", HasSubstr("No such file"))));
  EXPECT_EQ(ReasonFor(listing, "gone.jpg"), image::RejectReason::kUnreadable);
  EXPECT_EQ(ReasonFor(listing, "loop_a.jpg"), image::RejectReason::kUnreadable);
}

TEST_F(SourceTest, WhatIsNoFileIsRejectedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(Path("pipe.jpg").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  ASSERT_TRUE(MakeFolders(Path("x.jpg")));
  Write("x.jpg/inside.jpg");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string name = Path("s.jpg");
  ASSERT_LT(name.size(), sizeof(address.sun_path));
  name.copy(address.sun_path, name.size());
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const Listing listing = ListInputs({folder_}).value();
  EXPECT_THAT(Names(listing), ElementsAre("pipe.jpg", "s.jpg", "x.jpg", "x.jpg/inside.jpg"));
  EXPECT_THAT(Skips(listing), ElementsAre(Pair("pipe", "not a picture by name, and not a file")));
  for (const char* input : {"pipe.jpg", "s.jpg", "x.jpg"})
    EXPECT_EQ(ReasonFor(listing, input), image::RejectReason::kNotAFile);
  ::close(socket);
}

TEST_F(SourceTest, FilesThatVanishOrAreTooLargeAreRejected) {
  Write("gone.jpg");
  Write("large.jpg");
  ASSERT_EQ(::truncate(Path("large.jpg").c_str(), off_t{2} << 30), 0);
  Write("right.jpg", "right");
  Write("empty.jpg", "");
  const Listing listing = ListInputs({folder_}).value();
  std::filesystem::remove(Path("gone.jpg"));
  EXPECT_EQ(ReasonFor(listing, "gone.jpg"), image::RejectReason::kVanished);
  EXPECT_EQ(ReasonFor(listing, "large.jpg"), image::RejectReason::kTooManyBytes);
  EXPECT_EQ(LoadInput(listing, listing.inputs[3])->text(), "right");
  EXPECT_TRUE(LoadInput(listing, listing.inputs[0])->empty());
}

TEST_F(SourceTest, TheReasonsDetailDoesNotRepeatTheName) {
  Link("/nonexistent", "gone.jpg");
  const Listing listing = ListInputs({folder_}).value();
  EXPECT_THAT(LoadInput(listing, listing.inputs[0]).error().detail, ::testing::Not(HasSubstr("gone.jpg")));
}

TEST_F(SourceTest, APreparedSetIsListedAsItsManifestSays) {
  SetWriter writer = SetWriter::Create(Path("set"), {}).value();
  for (const char* text : {"third", "first"}) {
    ASSERT_TRUE(writer.Add(
        {.source = text, .label = 7, .bytes = std::as_bytes(std::span(text, 5)), .extension = "jpg"}));
  }
  ASSERT_TRUE(writer.Finish());
  Write("a.jpg");
  for (const std::string& argument : {Path("set"), folder_}) {  // asked for, and met on the way
    const Listing listing = ListInputs({argument}).value();
    ASSERT_EQ(listing.sets.size(), 1u);
    const Input& input = listing.inputs[listing.inputs.size() - 2];
    EXPECT_TRUE(input.name.ends_with("/set/pictures/00000/00000000.jpg")) << input.name;
    EXPECT_EQ(input.label, 7);
    EXPECT_EQ(input.set, 0);
    EXPECT_EQ(LoadInput(listing, input)->text(), "third");
  }
  Write("set/manifest.jsonl", "");
  EXPECT_EQ(ListInputs({folder_}).error().code, ErrorCode::kCorrupt);
}

TEST_F(SourceTest, AnotherProgramsSetJsonIsLeftAlone) {
  Write("set.json", "{\"name\": \"alpha\"}");
  Write("a.jpg");
  EXPECT_THAT(Names(ListInputs({folder_}).value()), ElementsAre("a.jpg"));
}

}  // namespace
}  // namespace weir::dataset

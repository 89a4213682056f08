#include "dataset/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

namespace weir::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Member(const std::string& name, const std::string& contents) {
  const auto size = static_cast<int64_t>(contents.size());
  return FormatTarHeader(name, size) + contents + TarPadding(size);
}

// A header with another type, its checksum put right (all bytes, those of the checksum as blanks).
std::string Typed(const std::string& name, char type, const std::string& contents) {
  std::string block = FormatTarHeader(name, static_cast<int64_t>(contents.size()));
  block[156] = type;
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  block.replace(148, 6, digits, 6);
  block[154] = '\0';
  return block + contents + TarPadding(static_cast<int64_t>(contents.size()));
}

struct Found {
  Status status;
  std::vector<std::string> names, contents, links;
  std::vector<TarKind> kinds;
};

Found Scan(const std::string& archive) {
  Found found;
  const TarRead read = [&](int64_t offset, int64_t size) -> Result<std::string> {
    if (offset >= std::ssize(archive)) return std::string();
    return archive.substr(static_cast<size_t>(offset), static_cast<size_t>(size));
  };
  found.status = ScanTar(read, std::ssize(archive), [&](const TarMember& member) -> Status {
    found.names.push_back(member.name);
    found.links.push_back(member.link);
    found.kinds.push_back(member.kind);
    found.contents.push_back(
        archive.substr(static_cast<size_t>(member.offset), static_cast<size_t>(member.size)));
    return {};
  });
  return found;
}

const std::string kEnd(1024, '\0');

TEST(Tar, MembersAreFoundWhereTheyLie) {
  const std::string long_text(1000, 'x');
  const Found found =
      Scan(Member("a.jpg", "one") + Member("b/c.jpg", long_text) + Member("empty", "") + kEnd);
  ASSERT_TRUE(found.status);
  EXPECT_THAT(found.names, ElementsAre("a.jpg", "b/c.jpg", "empty"));
  EXPECT_THAT(found.contents, ElementsAre("one", long_text, ""));
}

TEST(Tar, NamesMayBeLong) {
  const std::string name(300, 'n');
  const std::string pax = "316 path=" + name.substr(0, 306) + "\n";  // 3 + 1 + 5 + 300 + 1 = 310
  const Found gnu =
      Scan(Typed("././@LongLink", 'L', name + '\0') + Member("short", "1") + Member("own", "2"));
  ASSERT_TRUE(gnu.status) << gnu.status.error().message;
  EXPECT_THAT(gnu.names, ElementsAre(name, "own"));
  const Found posix =
      Scan(Typed("PaxHeaders/x", 'x', "310 path=" + name + "\n") + Member("short", "1") + kEnd);
  ASSERT_TRUE(posix.status) << posix.status.error().message;
  EXPECT_THAT(posix.names, ElementsAre(name));
  EXPECT_EQ(Scan(Typed("x", 'x', pax) + Member("short", "1")).status.error().code, ErrorCode::kCorrupt);
  const Found too_long = Scan(Typed("././@LongLink", 'L', std::string(70'000, 'n')) + Member("short", "1"));
  EXPECT_EQ(too_long.status.error().code, ErrorCode::kUnsupported);
}

TEST(Tar, FoldersArePassedOverAndLinksTold) {
  std::string link = Typed("link", '2', "");
  const Found found = Scan(Typed("folder/", '5', "") + Typed("old/", '0', "") + Typed("hard", '1', "") +
                           Typed("pipe", '6', "") + link + Member("a", "1") + kEnd);
  ASSERT_TRUE(found.status);
  EXPECT_THAT(found.names, ElementsAre("hard", "pipe", "link", "a"));
  EXPECT_THAT(found.kinds,
              ElementsAre(TarKind::kHardLink, TarKind::kOther, TarKind::kSoftLink, TarKind::kFile));
}

TEST(Tar, TheTargetOfALinkMayBeLong) {
  const std::string target(300, 't');
  const Found gnu = Scan(Typed("././@LongLink", 'K', target + '\0') + Typed("link", '1', "") + kEnd);
  EXPECT_THAT(gnu.links, ElementsAre(target));
  const Found posix = Scan(Typed("x", 'x', "314 linkpath=" + target + "\n") + Typed("link", '2', "") + kEnd);
  EXPECT_THAT(posix.links, ElementsAre(target));
}

TEST(Tar, AnArchiveBehindAnotherIsReadAndOtherThingsAreTold) {
  const Found both = Scan(Member("a", "1") + kEnd + std::string(9 * 512, '\0') + Member("b", "2") + kEnd);
  ASSERT_TRUE(both.status) << both.status.error().message;
  EXPECT_THAT(both.names, ElementsAre("a", "b"));
  const Found rest = Scan(Member("a", "1") + kEnd + "some words");
  ASSERT_TRUE(rest.status) << rest.status.error().message;
  EXPECT_THAT(rest.names, ElementsAre("a", ""));
  EXPECT_THAT(rest.contents, ElementsAre("1", "some words"));
  EXPECT_THAT(rest.kinds, ElementsAre(TarKind::kFile, TarKind::kRest));
}

TEST(Tar, AnArchiveWithoutItsEndIsGoodAndACutOneIsNot) {
  const std::string archive = Member("a", "1") + Member("b", std::string(600, 'b'));
  EXPECT_TRUE(Scan(archive).status);
  EXPECT_THAT(Scan(archive.substr(0, 512 + 512 + 100)).status.error().message,
              HasSubstr("byte 1024: the archive is cut"));
  const Status cut = Scan(archive.substr(0, archive.size() - 600)).status;
  EXPECT_EQ(cut.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(cut.error().message, HasSubstr("a member of 600 bytes"));
}

TEST(Tar, WhatIsNoHeaderIsRefused) {
  std::string archive = Member("a", "1");
  archive[3] = 'x';
  EXPECT_THAT(Scan(archive).status.error().message, HasSubstr("checksum"));
  const Status packed = Scan("\x1f\x8b" + std::string(600, 'z')).status;
  EXPECT_EQ(packed.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(packed.error().message, HasSubstr("gzip"));
}

TEST(Tar, SizesOfBase256AreRead) {
  std::string block = FormatTarHeader("a", 3);
  // GNU tar, "extended numeric": the first bit set, then the number with its first byte first.
  block.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12));
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  block.replace(148, 7, digits, 7);
  EXPECT_EQ(ParseTarHeader(std::as_bytes(std::span(block)))->size, 3);
}

TEST(Tar, AFileIsKnownByItsFirstBlock) {
  const std::string path = ::testing::TempDir() + "tar_test.tar";
  std::ofstream(path) << Member("a", "1") << kEnd;
  EXPECT_TRUE(IsTar(path));
  std::ofstream(path) << std::string(600, 'x');
  EXPECT_FALSE(IsTar(path));
  EXPECT_THAT(ScanTar(path, [](const TarMember&) { return Status(); }).error().message, HasSubstr(path));
}

}  // namespace
}  // namespace weir::dataset

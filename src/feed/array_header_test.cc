#include "feed/array_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string File(std::string dictionary, int version = 1) {
  std::string head = "\x93NUMPY";
  head += static_cast<char>(version);
  head += '\0';
  head += static_cast<char>(dictionary.size() & 0xff);
  head += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) head += std::string(2, '\0');
  return head + dictionary;
}

Result<ArrayHeader> Parse(const std::string& file) {
  return ParseArrayHeader(std::as_bytes(std::span(file)));
}

TEST(ArrayHeader, TellsFormAndPlaceOfTheRecords) {
  for (const int version : {1, 2, 3}) {
    const std::string file =
        File("{'descr': '<f4', 'fortran_order': False, 'shape': (60, 3, 2), }   \n", version);
    const auto header = Parse(file + "numbers");
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->form.type, "<f4");
    EXPECT_THAT(header->form.shape, ElementsAre(3, 2));
    EXPECT_EQ(header->form.bytes, 24u);
    EXPECT_EQ(header->records, 60);
    EXPECT_EQ(header->begin, file.size());
  }
}

TEST(ArrayHeader, OfOneDimensionHasSingleNumbers) {
  const auto header = Parse(File("{\"descr\": \"|u1\", 'fortran_order': True, 'shape': (7,)}\n"));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_THAT(header->form.shape, IsEmpty());
  EXPECT_EQ(header->form.bytes, 1u);
  EXPECT_EQ(header->records, 7);
}

TEST(ArrayHeader, SaysWhatIsWrong) {
  const struct {
    std::string file;
    ErrorCode code;
    const char* words;
  } cases[] = {
      {"", ErrorCode::kCorrupt, "not a file of numpy"},
      {"PK\x03\x04 an archive of arrays", ErrorCode::kCorrupt, "not a file of numpy"},
      {File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}").substr(0, 30), ErrorCode::kCorrupt,
       "cut"},
      {File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)"), ErrorCode::kCorrupt, "cannot be read"},
      {File("{'descr': '<f4', 'shape': (1,)}"), ErrorCode::kCorrupt, "lacks"},
      {File("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}"), ErrorCode::kCorrupt,
       "cannot be read"},
      {File("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), ErrorCode::kCorrupt,
       "cannot be read"},
      {File("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), ErrorCode::kUnsupported, "|O"},
      {File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"), ErrorCode::kUnsupported,
       "structures"},
      {File("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}"), ErrorCode::kUnsupported, "Fortran"},
      {File("{'descr': '<f4', 'fortran_order': False, 'shape': ()}"), ErrorCode::kUnsupported, "dimension"},
      {File("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}"), ErrorCode::kUnsupported,
       "a side is 0"},
      {File("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4611686018427387904, 16)}"),
       ErrorCode::kUnsupported, "more than"},
      {File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4), ErrorCode::kUnsupported,
       "version 4"},
  };
  for (const auto& wrong : cases) {
    const auto header = Parse(wrong.file);
    ASSERT_FALSE(header) << wrong.words;
    EXPECT_EQ(header.error().code, wrong.code) << header.error().message;
    EXPECT_THAT(header.error().message, HasSubstr(wrong.words));
  }
}

}  // namespace
}  // namespace weir::feed

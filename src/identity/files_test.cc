#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <fstream>

#include "base/seed.h"
#include "identity/log.h"
#include "identity/manifest.h"
#include "identity/threshold.h"
#include "identity/vectors_file.h"

namespace weir::identity {
namespace {

TEST(Log, IsCutOnlyWhereARecordIsUnfinished) {
  const Enrolment a{"a", {1, 2}}, b{"bb", {3, 4}};
  const std::string first = FormatLogRecord(a, 4, 0), text = first + FormatLogRecord(b, 4, 1);
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(ParseLog(bytes, 2, 4)->records, (std::vector{a, b}));
  EXPECT_EQ(ParseLog(bytes.subspan(first.size()), 2, 4, 1)->records, std::vector{b});
  for (size_t size = 0; size < text.size(); ++size) {
    const auto cut = ParseLog(bytes.first(size), 2, 4).value();
    EXPECT_EQ(cut.records.size(), size >= first.size() ? 1U : 0U);
    EXPECT_EQ(cut.whole_bytes + cut.torn_bytes, size);
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] ^= 4;
    EXPECT_FALSE(ParseLog(std::as_bytes(std::span(flipped)), 2, 4).has_value()) << i;
  }
  EXPECT_FALSE(ParseLog(bytes, 2, 5));  // of another log
  EXPECT_FALSE(ParseLog(bytes, 3, 4));  // of another dimension
  const std::string zeros = first + std::string(100, '\0');
  EXPECT_EQ(ParseLog(std::as_bytes(std::span(zeros)), 2, 4)->torn_bytes, 100U);
}

TEST(Manifest, ComesBackAndEveryFlipIsFound) {
  Manifest manifest;
  manifest.dimension = 512;
  manifest.model_hash = "abc";
  manifest.next = 9;
  manifest.segments.push_back({.number = 3, .rows = 10, .probes = 2, .candidates = 5, .trained_rows = 0});
  manifest.logs = {4, 8};
  const std::string text = FormatManifest(manifest);
  EXPECT_EQ(ParseManifest(text).value(), manifest);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] ^= 1;
    EXPECT_FALSE(ParseManifest(flipped)) << i;
    EXPECT_FALSE(ParseManifest(std::string_view(text).substr(0, i))) << i;
  }
  manifest.logs = {3};
  EXPECT_FALSE(ParseManifest(FormatManifest(manifest)));  // a file cannot be a log and a sealed file
}

TEST(Manifest, OfAnOlderVersionIsRefusedWithTheRemedy) {
  Manifest manifest;
  manifest.dimension = 512;
  std::string text = FormatManifest(manifest);
  text = text.substr(0, text.find('\n'));
  const std::string now = "weir identities 2";
  text.replace(text.find(now), now.size(), "weir identities 1");
  const auto parsed =
      ParseManifest(fmt::format("{}\n{:016x}\n", text, XXH3_64bits(text.data(), text.size())));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(parsed.error().message.contains("version 1")) << parsed.error().message;
}

TEST(Threshold, IsTheScoreThatTheShareOfStrangersReaches) {
  // Best scores whose distribution is known: the largest of 1,000 uniform numbers.
  Random random(3);
  std::vector<double> best;
  for (int i = 0; i < 20000; ++i) best.push_back(std::pow(random.Uniform(), 1.0 / 1000));
  const StrangerScores strangers = SummariseStrangers(best, 1000);
  for (const double rate : {0.3, 0.1, 0.01}) {
    EXPECT_NEAR(1 - std::pow(ThresholdFor(rate, 1000, strangers).value(), 1000), rate, 0.12 * rate) << rate;
    // Ten times as many enrolled: the largest of 10,000.
    EXPECT_NEAR(1 - std::pow(ThresholdFor(rate, 10000, strangers).value(), 10000), rate, 0.25 * rate) << rate;
  }
  EXPECT_EQ(ThresholdFor(1e-7, 1000, strangers).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(ThresholdFor(0.01, 1000, {}).error().code, ErrorCode::kUnsupported);
}

TEST(Share, HasWilsonsInterval) {
  const Share share = ShareOf(5, 100);  // 0.0215 to 0.1118, R's prop.test without correction
  EXPECT_NEAR(share.low, 0.0215, 1e-4);
  EXPECT_NEAR(share.high, 0.1118, 1e-4);
}

TEST(Npy, HeaderIsReadOrRefusedWithTheRemedy) {
  const auto file = [](std::string head) {
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(head.size()) + std::string(1, '\0') + head;
  };
  const auto header = ParseNpyHeader(file("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 512), }\n"));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->rows, 3U);
  EXPECT_EQ(header->columns, 512U);
  EXPECT_EQ(
      ParseNpyHeader(file("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 512), }")).error().code,
      ErrorCode::kUnsupported);
  EXPECT_EQ(ParseNpyHeader(file("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }")).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(ParseNpyHeader("no").error().code, ErrorCode::kCorrupt);
}

TEST(Vectors, ComeFromFilesWithTheirNames) {
  const std::string path = ::testing::TempDir() + "vectors.npy", names = ::testing::TempDir() + "names.txt";
  const std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
  const float values[] = {1, 2, 3, 4};
  std::ofstream(path, std::ios::binary)
      << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(head.size()) << '\0' << head
      << std::string(reinterpret_cast<const char*>(values), sizeof(values));
  std::ofstream(names) << "a\nb\n";
  auto source = OpenVectors(path, names).value();
  EXPECT_EQ(source->Next(1).value(), (std::vector<Enrolment>{{"a", {1, 2}}}));
  EXPECT_EQ(source->Next(9).value(), (std::vector<Enrolment>{{"b", {3, 4}}}));
  EXPECT_TRUE(source->Next(9).value().empty());
  std::ofstream(names) << "a\nb\nc\n";
  source = OpenVectors(path, names).value();
  ASSERT_TRUE(source->Next(9));
  EXPECT_EQ(source->Next(9).error().code, ErrorCode::kInvalidArgument);
}

TEST(Vectors, MayBeginWithTheMarkOfUtf8) {
  const std::string mark = "\xef\xbb\xbf", line = "{\"name\":\"a\",\"embedding\":[1,2]}\n";
  EXPECT_EQ(ParseVectorLines(mark + line).value(), (std::vector<Enrolment>{{"a", {1, 2}}}));
  const std::string path = ::testing::TempDir() + "marked.jsonl";
  std::ofstream(path) << mark << line;
  EXPECT_EQ(ReadVectors(path).value(), (std::vector<Enrolment>{{"a", {1, 2}}}));
}

TEST(Vectors, LinesNameTheirFault) {
  EXPECT_EQ(
      ParseVectorLines("{\"name\":\"a\",\"embedding\":[1,2]}\n\n{\"name\":1}\n").error().message.substr(0, 6),
      "line 3");
  const Enrolment row{"a\xff", {1, 0.5F}};
  EXPECT_EQ(ParseVectorLine(FormatVectorLine(row)).value(), row);
}

}  // namespace
}  // namespace weir::identity

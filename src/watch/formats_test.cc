#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "image/decode.h"
#include "infer/testing/answers.h"
#include "results/watch_result.h"
#include "watch/detections.h"
#include "watch/frame_code.h"
#include "watch/made_jpeg.h"
#include "watch/multipart.h"
#include "watch/picture_input.h"
#include "watch/tally.h"

namespace weir::watch {
namespace {

using infer::testing::FloatTensor;

std::vector<infer::Tensor> YuNetOutputs(int width, int height) {
  std::vector<infer::Tensor> outputs;
  for (const int stride : {8, 16, 32}) {
    const int64_t cells = int64_t{width / stride} * (height / stride);
    const auto add = [&](const char* name, int64_t values) {
      outputs.push_back(FloatTensor(name + std::to_string(stride), {1, cells, values},
                                    std::vector<float>(static_cast<size_t>(cells * values), 0)));
    };
    add("cls_", 1);
    add("obj_", 1);
    add("bbox_", 4);
  }
  return outputs;
}

void Set(infer::Tensor& tensor, size_t at, float value) {
  std::memcpy(tensor.data.mutable_data() + at * sizeof(float), &value, sizeof value);
}

TEST(ReadDetections, YuNetPutsBoxesWhereTheGridSays) {
  auto outputs = YuNetOutputs(320, 320);
  // Stride 16: cell (row 5, column 4) of 20 columns; centre at half a cell, 64 by 32 pixels.
  const size_t cell = 5 * 20 + 4;
  Set(outputs[3], cell, 0.81F);
  Set(outputs[4], cell, 1);
  Set(outputs[5], cell * 4, 0.5F);
  Set(outputs[5], cell * 4 + 1, 0.5F);
  Set(outputs[5], cell * 4 + 2, std::log(4.0F));
  Set(outputs[5], cell * 4 + 3, std::log(2.0F));
  const auto found = ReadDetections(DetectionHead::kYuNet, outputs, 320, 320, {});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1U);
  EXPECT_NEAR((*found)[0].score, 0.9, 1e-5);
  EXPECT_NEAR((*found)[0].box.x0 * 320, 72 - 32, 1e-3);
  EXPECT_NEAR((*found)[0].box.y1 * 320, 88 + 16, 1e-3);
  Set(outputs[3], cell, std::nanf(""));
  EXPECT_THAT(ReadDetections(DetectionHead::kYuNet, outputs, 320, 320, {}).error().message,
              testing::HasSubstr("openvino"));
  EXPECT_FALSE(ReadDetections(DetectionHead::kYuNet, YuNetOutputs(640, 640), 320, 320, {}))
      << "another input's outputs";
}

TEST(ReadDetections, FastestDetTakesTheBestClass) {
  std::vector<float> values(7 * 4, 0);  // two classes over a grid of 2x2
  const auto set = [&](int channel, int cell, float value) {
    values[static_cast<size_t>(channel * 4 + cell)] = value;
  };
  set(0, 3, 1);
  set(5, 3, 0.2F);
  set(6, 3, 1);
  const std::vector<infer::Tensor> outputs{FloatTensor("out", {1, 7, 2, 2}, values)};
  const auto found = ReadDetections(DetectionHead::kFastestDet, outputs, 352, 352, {});
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ((*found)[0].class_index, 1);
  EXPECT_NEAR((*found)[0].box.x0, 0.25, 1e-5) << "centre 0.5, width sigmoid(0) = 0.5";
  EXPECT_TRUE(ReadDetections(DetectionHead::kFastestDet, outputs, 352, 352, {.class_index = 0})->empty());
}

TEST(ReadDetections, SsdRowsAndBoxes) {
  const std::vector<infer::Tensor> rows{FloatTensor(
      "rows", {1, 1, 3, 7},
      {0, 1, 0.9F, 0.1F, 0.1F, 0.4F, 0.4F, -1, 0, 0, 0, 0, 0, 0, 0, 1, 0.9F, 0.5F, 0.5F, 0.8F, 0.8F})};
  EXPECT_EQ(ReadDetections(DetectionHead::kSsdRows, rows, 300, 300, {})->size(), 1U)
      << "a negative picture ends the list";
  const std::vector<infer::Tensor> boxes{
      FloatTensor("scores", {1, 2, 3}, {0.1F, 0.2F, 0.7F, 0.95F, 0.05F, 0}),
      FloatTensor("boxes", {1, 2, 4}, {-0.2F, 0.1F, 0.5F, 1.4F, 0, 0, 1, 1})};
  const auto found = ReadDetections(DetectionHead::kSsdBoxes, boxes, 300, 300, {});
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ((*found)[0].class_index, 2);
  EXPECT_EQ((*found)[0].box, (Box{0, 0.1F, 0.5F, 1})) << "cut to the picture";
}

TEST(FindHead, KnowsTheFormsAndNamesThemOtherwise) {
  const std::vector<infer::TensorInfo> fastest{{.name = "o", .shape = {1, 85, 22, 22}}},
      rows{{.name = "o", .shape = {1, 1, 100, 7}}},
      boxes{{.name = "s", .shape = {1, 100, 2}}, {.name = "b", .shape = {1, 100, 4}}},
      scores{{.name = "x", .shape = {1, 1000}}};
  EXPECT_EQ(*FindHead(fastest), DetectionHead::kFastestDet);
  EXPECT_EQ(*FindHead(rows), DetectionHead::kSsdRows);
  EXPECT_EQ(*FindHead(boxes), DetectionHead::kSsdBoxes);
  EXPECT_THAT(FindHead(scores).error().message, testing::HasSubstr("YuNet"));
}

TEST(SuppressOverlaps, KeepsTheBestOfEachClass) {
  const auto kept = SuppressOverlaps(
      {{{0, 0, 1, 1}, 0.7F, 0}, {{0, 0, 1, 0.9F}, 0.9F, 0}, {{0, 0, 1, 1}, 0.8F, 1}, {{2, 2, 3, 3}, 0.6F, 0}},
      {});
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_FLOAT_EQ(kept[0].score, 0.9F);
  EXPECT_EQ(kept[1].class_index, 1);
}

constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=\"b\"\r\n\r\n";

std::vector<MultipartReader::Part> ReadAll(std::string_view bytes, size_t step, MultipartReader& reader) {
  std::vector<MultipartReader::Part> parts;
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Add(bytes.substr(at, step));
    while (true) {
      auto part = reader.Next();
      EXPECT_TRUE(part) << part.error().message;
      if (!part || !*part) break;
      parts.push_back(**std::move(part));
    }
  }
  return parts;
}

TEST(MultipartReader, ReadsPartsHoweverTheBytesCome) {
  const std::string body =
      "--b\r\nContent-Length: 5\r\nX-Timestamp: 12.5\r\n\r\nab--b\r\n--b\r\nContent-Type: "
      "image/jpeg\r\n\r\nxyz\r\n--b--\r\n";
  std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: multipart/x-mixed-replace; "
      "boundary=b\r\n\r\n";
  for (const char c : body) chunked += std::string("1\r\n") + c + "\r\n";
  chunked += "0\r\n\r\n";
  for (const std::string& whole : {std::string(kHead) + body, chunked}) {
    for (const size_t step : {size_t{1}, size_t{7}, whole.size()}) {
      MultipartReader reader({});
      const auto parts = ReadAll(whole, step, reader);
      ASSERT_EQ(parts.size(), 2U) << step;
      EXPECT_EQ(parts[0].data, "ab--b") << "a boundary inside a part of known length";
      EXPECT_EQ(parts[0].timestamp, 12500ms);
      EXPECT_EQ(parts[1].data, "xyz");
      EXPECT_TRUE(reader.ended());
    }
  }
}

// A whole JPEG as far as the reader looks: its first and its last mark.
std::string Jpeg(const std::string& content) { return "\xff\xd8" + content + "\xff\xd9"; }

std::string PartOf(const std::string& data, size_t length, const char* line_end = "\r\n") {
  return fmt::format("--b{0}Content-Length: {1}{0}{0}{2}{0}", line_end, length, data);
}

TEST(MultipartReader, ABoundaryEndsAPartWhoseLengthIsWrong) {
  const std::string first = Jpeg(std::string(700, 'x')), second = Jpeg("second"), third = Jpeg("third");
  for (const int off : {500, 3, -3, -300}) {
    std::string whole(kHead);
    for (const std::string& data : {first, second, third})
      whole += PartOf(data, data.size() + static_cast<size_t>(std::max(off, -static_cast<int>(data.size()))));
    whole += "--b--\r\n";
    for (const size_t step : {size_t{1}, size_t{13}, whole.size()}) {
      MultipartReader reader({});
      const auto parts = ReadAll(whole, step, reader);
      ASSERT_EQ(parts.size(), 3U) << off << " " << step;
      EXPECT_EQ(parts[0].data, first) << off << " " << step;
      EXPECT_EQ(parts[1].data, second);
      EXPECT_EQ(parts[2].data, third);
      for (const auto& part : parts) EXPECT_TRUE(part.wrong_length) << off << " " << step;
    }
  }
}

TEST(MultipartReader, APartOfTheRightLengthIsGivenAtOnce) {
  MultipartReader reader({});
  const std::string jpeg = Jpeg("a\r\n--b\r\nc");  // looks like a delimiter within
  reader.Add(std::string(kHead) + "--b\r\nContent-Length: " + std::to_string(jpeg.size()) + "\r\n\r\n" +
             jpeg);
  const auto part = reader.Next();
  ASSERT_TRUE(part && *part);
  EXPECT_EQ((*part)->data, jpeg);
  EXPECT_FALSE((*part)->wrong_length);
  EXPECT_FALSE(*reader.Next()) << "no more has come";
}

TEST(MultipartReader, ReadsBareLineFeedsAndBoundariesThatAreNotAsDeclared) {
  const std::string data = Jpeg("1");
  for (const char* declared : {"b", "--b", "\"b\"", "other", "--"}) {
    std::string whole =
        fmt::format("HTTP/1.0 200 OK\nContent-type: multipart/x-mixed-replace; Boundary={}\n\n", declared);
    whole += PartOf(data, data.size(), "\n") + PartOf(data, data.size(), "\n") + "--b--\n";
    MultipartReader reader({});
    EXPECT_EQ(ReadAll(whole, 1, reader).size(), 2U) << declared;
    EXPECT_TRUE(reader.ended()) << declared;
  }
  // RFC 2046 puts two dashes before a boundary that begins with two.
  MultipartReader reader({});
  std::string whole = "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=--b\r\n\r\n";
  whole += "----b\r\n\r\nxyz\r\n----b\r\n\r\nabc\r\n----b--\r\n";
  const auto parts = ReadAll(whole, 1, reader);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].data, "abc");
}

TEST(MultipartReader, TheEndOfTheConnectionCompletesAWholePicture) {
  MultipartReader reader({});
  const std::string jpeg = Jpeg("last");
  reader.Add(std::string(kHead) + PartOf(jpeg, jpeg.size() + 99));
  EXPECT_FALSE(*reader.Next());
  const auto last = reader.Close();
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->wrong_length);
  MultipartReader part({});
  part.Add(std::string(kHead) + "--b\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_FALSE(*part.Next());
  EXPECT_FALSE(part.Close());
}

TEST(MultipartReader, TellsWhereToGoAndWhatToShow) {
  MultipartReader moved({});
  moved.Add("HTTP/1.1 302 Found\r\nLocation: /new\r\n\r\n");
  EXPECT_FALSE(moved.Next());
  EXPECT_EQ(moved.response()->location, "/new");
  MultipartReader asked({});
  asked.Add("HTTP/1.1 401 No\nWWW-Authenticate: Digest realm=\"a\"\nWWW-Authenticate: Basic\n\n");
  EXPECT_FALSE(asked.Next());
  EXPECT_EQ(asked.response()->challenges.size(), 2U);
  MultipartReader later({});
  later.Add("HTTP/1.1 503 Wait\r\n\r\n");
  EXPECT_EQ(later.Next().error().code, ErrorCode::kIo) << "it may be there soon";
}

TEST(MultipartReader, RefusesWhatIsNoStream) {
  const auto error = [](const std::string& text, MultipartReader::Options options = {}) {
    MultipartReader reader(options);
    reader.Add(text);
    const auto part = reader.Next();
    return part ? std::string() : part.error().message;
  };
  EXPECT_THAT(error("HTTP/1.1 401 No\r\n\r\n"), testing::HasSubstr("PASSWORD"));
  EXPECT_THAT(error("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), testing::HasSubstr("text/html"));
  EXPECT_THAT(error("SSH-2.0\r\n\r\n"), testing::HasSubstr("HTTP"));
  EXPECT_THAT(error(std::string(20000, 'a')), testing::HasSubstr("long"));
  EXPECT_THAT(error(std::string(kHead) + "--b\r\nContent-Length: 99\r\n\r\n", {.max_part = 10}),
              testing::HasSubstr("over the limit"));
  EXPECT_THAT(error(std::string(kHead) + "--b\r\nContent-Length: x\r\n\r\n"),
              testing::HasSubstr("Content-Length"));
  EXPECT_THAT(error(std::string(kHead) + std::string(20000, 'a')), testing::HasSubstr("boundary"));
}

TEST(MadeClip, IsAJpegWhoseCodeChangesAndWhosePersonsMove) {
  MadeSpec spec;
  spec.width = 320;
  spec.height = 240;
  const auto clip = MadeClip::Create(spec, 320, 240);
  ASSERT_TRUE(clip) << clip.error().message;
  JpegFrames decoder;
  std::vector<image::Pixels> pictures;
  for (const int phase : {0, 9}) {
    const auto jpeg = (*clip)->Encode(phase, 3, static_cast<uint32_t>(1000 + phase), 5s);
    ASSERT_TRUE(jpeg);
    const auto pixels = decoder.Decode(std::as_bytes(std::span(*jpeg)), 1 << 20, [](int, int) { return 1; });
    ASSERT_TRUE(pixels) << pixels.error().message;
    EXPECT_EQ(ReadCode(*pixels),
              (FrameCode{.stream = 3, .counter = static_cast<uint32_t>(1000 + phase), .captured = 5s}));
    pictures.push_back(*pixels);
  }
  EXPECT_NE((*clip)->Persons(0), (*clip)->Persons(9));
  EXPECT_EQ((*clip)->Persons(0).size(), 2U);
  // The shirt of person 0 is at its place in both pictures.
  const auto shirt = [&](size_t picture, int phase) {
    const Box& box = (*clip)->Persons(phase)[0];
    const int x = static_cast<int>((box.x0 + box.x1) / 2 * 320),
              y = static_cast<int>((box.y0 * 0.6F + box.y1 * 0.4F) * 240);
    return static_cast<int>(pictures[picture].data[static_cast<size_t>((y * 320 + x) * 3)]);
  };
  EXPECT_NEAR(shirt(0, 0), shirt(1, 9), 60);
}

TEST(FindScan, RefusesWhatIsNoBaselineJpeg) {
  EXPECT_FALSE(FindScan(""));
  EXPECT_FALSE(FindScan("\xff\xd8\xff"));
  EXPECT_FALSE(FindScan(std::string("\xff\xd8\xff\xda\x00\x02 abc", 10)));
}

TEST(Tally, CapturedIsAnsweredAndDropped) {
  Tally tally({.names = {"a"}, .deadline = 50ms});
  FrameRecord record{.times = {.capture = Instant(1s), .arrived = Instant(1s)}};
  record.times.done = Instant(1s + 40ms);
  tally.Ended(record, {});
  record.times.done = Instant(1s + 90ms);
  tally.Ended(record, {});
  record.dropped = DropCause::kSuperseded;
  tally.Ended(record, {});
  tally.Lost(0, 5);
  tally.Lost(0, -1);
  tally.Fault(0, "stalled", "no frame");
  tally.Fault(0, "stalled", "again");
  results::WatchResult result;
  tally.Fill(result);
  EXPECT_EQ(result.frames.captured, 7);
  EXPECT_EQ(result.frames.answered, 2);
  EXPECT_EQ(result.frames.in_time, 1);
  EXPECT_EQ(result.frames.dropped, (std::map<std::string, int64_t>{{"lost", 4}, {"superseded", 1}}));
  EXPECT_NEAR(*result.in_time_percent, 100.0 / 7, 1e-9);
  ASSERT_EQ(result.per_stream[0].faults.size(), 1U);
  EXPECT_EQ(result.per_stream[0].faults[0].count, 2);
  EXPECT_EQ(result.per_stream[0].faults[0].message, "no frame");
  const auto again = results::WatchResult::FromJson(result.ToJson());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, result);
}

}  // namespace
}  // namespace weir::watch

#include "monitor/prometheus.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace weir::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The example of the format's own page, with each of its oddities.
constexpr std::string_view kExample =
    R"(# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"}    3 1395066363000

# Escaping in label values:
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9

# Minimalistic line:
metric_without_timestamp_and_labels 12.47

# A weird metric from before the epoch:
something_weird{problem="division by zero"} +Inf -3982045

# A histogram, which has a pretty complex representation in the text format:
# HELP http_request_duration_seconds A histogram of the request duration.
# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le="0.05"} 24054
http_request_duration_seconds_bucket{le="+Inf"} 144320
http_request_duration_seconds_sum 53423
http_request_duration_seconds_count 144320
)";

TEST(ParsePrometheus, ReadsTheFormatsOwnExample) {
  const auto metrics = ParsePrometheus(kExample);
  ASSERT_TRUE(metrics) << metrics.error().message;
  ASSERT_EQ(metrics->size(), 9u);
  EXPECT_EQ(metrics->at(0), (Metric{.name = "http_requests_total",
                                    .labels = {{"method", "post"}, {"code", "200"}},
                                    .value = 1027,
                                    .timestamp_ms = 1395066363000}));
  EXPECT_EQ(metrics->at(2).labels[0].second, R"(C:\DIR\FILE.TXT)");
  EXPECT_EQ(metrics->at(2).labels[1].second, "Cannot find file:\n\"FILE.TXT\"");
  EXPECT_DOUBLE_EQ(metrics->at(2).value, 1.458255915e9);
  EXPECT_EQ(metrics->at(3), (Metric{.name = "metric_without_timestamp_and_labels", .value = 12.47}));
  EXPECT_EQ(metrics->at(4).value, INFINITY);
  EXPECT_EQ(metrics->at(4).timestamp_ms, -3982045);
  EXPECT_EQ(metrics->at(8).name, "http_request_duration_seconds_count");
}

TEST(ParsePrometheus, TakesWhatTheFormatAllows) {
  EXPECT_THAT(*ParsePrometheus(""), IsEmpty());
  EXPECT_THAT(*ParsePrometheus("\n \t\n#\n#no HELP a\n# TYPED\n"), IsEmpty());
  EXPECT_THAT(
      *ParsePrometheus("\t a:b_9 \t{ x = \"}, \" , } -1.5e-3 \t7\t\n"),
      ElementsAre(Metric{.name = "a:b_9", .labels = {{"x", "}, "}}, .value = -0.0015, .timestamp_ms = 7}));
  EXPECT_THAT(*ParsePrometheus("a{} 0\n"), ElementsAre(Metric{.name = "a"}));
  EXPECT_TRUE(std::isnan(ParsePrometheus("a NaN\n")->front().value));
  EXPECT_EQ(ParsePrometheus("a -Inf\n")->front().value, -INFINITY);
  EXPECT_TRUE(ParsePrometheus("# HELP a\n# HELP b with \"any\" \\ text\n# TYPE a untyped\na 1\n"));
}

TEST(ParsePrometheus, SaysWhichLineBreaksWhichRule) {
  const std::pair<const char*, const char*> faults[] = {
      {"a 1\nb 2", "line 2: it has no end"},
      {"a 1\n9a 1\n", "line 2: it does not begin with a metric's name"},
      {"a.b 1\n", "metric's name"},
      {"{a=\"b\"} 1\n", "metric's name"},
      {"a\n", "the value of a is no number"},
      {"a x\n", "the value of a is no number"},
      {"a 1e999\n", "the value of a is no number"},
      {"a +-1\n", "the value of a is no number"},
      {"a nan(1)\n", "the value of a is no number"},
      {"a 0x10\n", "the value of a is no number"},
      {"a 1\r\n", "the value of a is no number"},
      {"a 1 2.5\n", "only a time in milliseconds"},
      {"a 1 2 3\n", "only a time in milliseconds"},
      {"a{b} 1\n", "a label has no proper name"},
      {"a{b 1\n", "label b has no value"},
      {"a{b:c=\"1\"} 1\n", "a label has no proper name"},
      {"a{b=1} 1\n", "a label's value wants quotes"},
      {"a{b=\"1} 1\n", "a label's value has no end"},
      {"a{b=\"\\t\"} 1\n", "are escapes"},
      {"a{b=\"\\\n", "are escapes"},
      {"a{b=\"1\" c=\"2\"} 1\n", "labels want a comma"},
      {"a{b=\"1\",b=\"2\"} 1\n", "label b twice"},
      {"a{,} 1\n", "a label has no proper name"},
      {"# TYPE a meter\n", "TYPE wants one of"},
      {"# TYPE a gauge x\n", "TYPE wants one of"},
      {"# TYPE a\n", "TYPE wants one of"},
      {"# TYPE\n", "TYPE wants a metric's name"},
      {"# TYPE a gauge\n# TYPE a gauge\n", "line 2: a second TYPE for a"},
      {"# HELP a x\n# HELP a x\n", "line 2: a second HELP for a"},
      {"a 1\n# TYPE a gauge\n", "line 2: TYPE of a after its samples"},
  };
  for (const auto& [text, said] : faults) {
    const auto metrics = ParsePrometheus(text);
    ASSERT_FALSE(metrics) << text;
    EXPECT_EQ(metrics.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(metrics.error().message, HasSubstr(said)) << text;
  }
}

TEST(ParsePrometheus, NamesTheLineOfEveryCutShortText) {
  // Every beginning of the example is whole lines, or refused.
  for (size_t size = 0; size <= kExample.size(); ++size) {
    const std::string_view text = kExample.substr(0, size);
    EXPECT_EQ(ParsePrometheus(text).has_value(), text.empty() || text.ends_with('\n')) << size;
  }
}

TEST(ParsePrometheus, HasBounds) {
  EXPECT_TRUE(ParsePrometheus("a 1\nb 2\n", {.bytes = 8, .metrics = 2}));
  EXPECT_THAT(ParsePrometheus("a 1\nb 2\n", {.bytes = 7}).error().message, HasSubstr("more than 7 bytes"));
  EXPECT_THAT(ParsePrometheus("a 1\nb 2\n", {.metrics = 1}).error().message,
              HasSubstr("more than 1 metrics"));
  EXPECT_THAT(ParsePrometheus("a{b=\"\",c=\"\"} 1\n", {.labels = 1}).error().message,
              HasSubstr("more than 1 labels"));
}

}  // namespace
}  // namespace weir::monitor

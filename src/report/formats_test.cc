// Escapes, axes and the three formats of a document.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "report/axis.h"
#include "report/escape.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/svg.h"
#include "report/vega.h"

namespace weir::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Chart Lines() {
  return {.kind = Chart::Kind::kLines,
          .title = "Rate <b> & \"more\"",
          .x_label = "batch",
          .x_unit = "pictures",
          .y_label = "rate",
          .y_unit = "images/s",
          .series = {{.name = "sync",
                      .points = {{.x = 1, .value = 50, .low = 40, .high = 60}, {.x = 128, .value = 100}}},
                     {.name = "<i>async</i>", .points = {{.x = 1, .value = 80}}}},
          .note = "Error bars"};
}

Document Whole() {
  return {.title = "T & <x>",
          .subtitle = "sub",
          .sections = {{.title = "One",
                        .blocks = {Paragraph{"yes > no", Paragraph::Tone::kAnswer},
                                   Paragraph{"```rm```", Paragraph::Tone::kCommand}, List{{"a|b"}},
                                   Table{.caption = "c",
                                         .columns = {"name", "n"},
                                         .rows = {{"<script>alert(1)</script>", "1"}},
                                         .notes = {"note"}},
                                   Lines()}},
                       {.title = "Two", .blocks = {Paragraph{"hidden"}}, .folded = true}}};
}

size_t Count(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(EscapeHtml, LeavesNoMarkupAndNoBytesThatAreNoText) {
  EXPECT_EQ(EscapeHtml("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
  EXPECT_EQ(EscapeHtml("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(EscapeHtml("\xff"
                       "a\x01"),
            "\xef\xbf\xbd"
            "a\xef\xbf\xbd");
}

TEST(EscapeMarkdown, LeavesNoMarkup) {
  EXPECT_EQ(EscapeMarkdown("a|b*c_d[e]`f`<g>\nh"), "a\\|b\\*c\\_d\\[e\\]\\`f\\`&lt;g> h");
}

TEST(TicksOver, AreTheValuesWhereTheyAreFewAndRoundNumbersElse) {
  EXPECT_THAT(TicksOver({1, 4, 8}), ElementsAre(1, 4, 8));
  std::vector<double> many;
  for (int i = 0; i < 100; ++i) many.push_back(3 + 0.11 * i);
  EXPECT_THAT(TicksOver(many), ElementsAre(5, 10));
  for (double& value : many) value = std::exp(value);
  for (const double tick : TicksOver(many)) {
    EXPECT_GE(tick, many.front());
    EXPECT_LE(tick, many.back());
  }
  EXPECT_THAT(TicksOver(many), testing::SizeIs(testing::AllOf(testing::Ge(4u), testing::Le(20u))));
}

TEST(TicksFromZero, AreRoundAndReachTheMost) {
  EXPECT_THAT(TicksFromZero(100), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(TicksFromZero(101), ElementsAre(0, 50, 100, 150));
  EXPECT_THAT(TicksFromZero(0.5), ElementsAre(0, 0.1, 0.2, testing::DoubleEq(0.3), 0.4, 0.5));
  for (const double most : {1e-7, 3.0, 458.7, 1e9}) EXPECT_GE(TicksFromZero(most).back(), most * (1 - 1e-9));
}

TEST(Scale, GivesEachDoublingOfABatchTheSameRoom) {
  EXPECT_EQ(KindFor({1, 2, 4, 128}), Scale::Kind::kLogarithmic);
  EXPECT_EQ(KindFor({0, 100}), Scale::Kind::kLinear);
  EXPECT_EQ(KindFor({4, 8}), Scale::Kind::kLinear);
  const Scale scale(Scale::Kind::kLogarithmic, 1, 128, 0, 70);
  EXPECT_NEAR(scale(2), 10, 1e-12);
  EXPECT_NEAR(scale(64), 60, 1e-12);
  const Scale upright(Scale::Kind::kLinear, 0, 100, 300, 0);
  EXPECT_NEAR(upright(25), 225, 1e-12);
}

TEST(ToSvg, DrawsEachPointWithItsErrorBarAndItsWords) {
  const std::string svg = ToSvg(Lines(), "c1");
  EXPECT_EQ(Count(svg, "<circle"), 3u);
  EXPECT_EQ(Count(svg, "<polyline"), 2u);
  EXPECT_EQ(Count(svg, "stroke-width=\"1.4\""), 3u);  // one error bar: a line and two feet
  EXPECT_THAT(svg, HasSubstr("role=\"img\" aria-labelledby=\"c1-title c1-desc\""));
  EXPECT_THAT(svg, HasSubstr("<title id=\"c1-title\">Rate &lt;b&gt; &amp; &quot;more&quot;</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>sync, batch 1: 50 (40 to 60) images/s</title>"));
  EXPECT_THAT(svg, HasSubstr(">batch (pictures)</text>"));
  EXPECT_THAT(svg, HasSubstr(">rate (images/s)</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("<i>")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

// With the axis from 0 to 100 over 300 units, 14 from the top: 50 stands at 164, its error bar from 194 to
// 134.
TEST(ToSvg, PutsAPointWhereItBelongs) {
  const std::string svg = ToSvg(Lines(), "c1");
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"90.0\" cy=\"164.0\""));
  EXPECT_THAT(svg, HasSubstr("y1=\"194.0\" x2=\"90.0\" y2=\"134.0\""));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"720.0\" cy=\"14.0\""));
}

TEST(ToSvg, DrawsBarsAsLongAsTheirValues) {
  const Chart bars{.kind = Chart::Kind::kBars,
                   .title = "t",
                   .y_label = "images/s",
                   .series = {{.points = {{.name = "one", .value = 50},
                                          {.name = "two", .value = 100, .low = 90, .high = 110}}}}};
  const std::string svg = ToSvg(bars, "c2");
  EXPECT_EQ(Count(svg, "<rect"), 2u);
  // The axis goes to 150 over 650 units.
  EXPECT_THAT(svg, HasSubstr("width=\"216.7\""));
  EXPECT_THAT(svg, HasSubstr("width=\"433.3\""));
  EXPECT_EQ(Count(svg, "class=\"error\""), 3u);
}

TEST(ToSvg, CutsANameThatIsWiderThanTheDrawing) {
  const std::string fits(112, 'a');
  std::string longer;
  for (int i = 0; i < 200; ++i) longer += "\xc3\xa9";
  const Chart bars{.kind = Chart::Kind::kBars,
                   .title = "t",
                   .y_label = "y",
                   .series = {{.points = {{.name = fits, .value = 1}, {.name = longer, .value = 2}}}}};
  const std::string svg = ToSvg(bars, "c");
  EXPECT_THAT(svg, HasSubstr(">" + fits + "</text>"));
  EXPECT_THAT(svg, HasSubstr(">" + longer.substr(0, 2 * 111) + "…</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>" + longer + ": 2</title>"));
}

TEST(ToSvg, DrawsASinglePointAndNothingAtAll) {
  const Chart one{.kind = Chart::Kind::kLines,
                  .title = "t",
                  .x_label = "x",
                  .y_label = "y",
                  .series = {{.name = "s", .points = {{.x = 8, .value = 0}}}}};
  EXPECT_THAT(ToSvg(one, "c"), Not(HasSubstr("nan")));
  EXPECT_EQ(ToSvg({}, "c"), "");
}

TEST(ToHtml, NeedsNothingElseAndRunsNothing) {
  const std::string html = ToHtml(Whole());
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_EQ(Count(html, "href="), Count(html, "href=\"data:text/csv"));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_EQ(Count(html, "http"), Count(html, "http://www.w3.org/2000/svg") + Count(html, "http-equiv"));
}

TEST(ToVegaLite, HasTheNumbersOfTheChart) {
  const Chart lines = Lines();
  const Json spec = ToVegaLite(lines);
  ASSERT_EQ(spec["data"]["values"].size(), 3u);
  const Point& first = lines.series[0].points[0];
  EXPECT_EQ(spec["data"]["values"][0]["value"], first.value);
  EXPECT_EQ(spec["data"]["values"][0]["x"], *first.x);
  EXPECT_EQ(spec["data"]["values"][0]["low"], *first.low);
  Chart bars{.kind = Chart::Kind::kBars, .title = "t", .y_label = "time", .y_unit = "ms"};
  bars.series.push_back({.points = {{.name = "a", .value = 2}}});
  bars.series[0].points[0].from = 1;
  bars.series[0].points[0].dots = {{1.9}, {2.1, true}};
  const Json layers = ToVegaLite(bars)["layer"];
  EXPECT_EQ(layers[0]["encoding"]["x2"]["field"], "from");
  ASSERT_EQ(layers.size(), 2u);  // no interval, so no layer of error bars
  EXPECT_EQ(layers[1]["data"]["values"][1]["verdict"], "SUSPECT");
}

TEST(ToHtml, DrawsWithTheBundleWhereTheProgramHasIt) {
  const std::string html = ToHtml(Whole(), Charts::kInteractive);
  EXPECT_THAT(html, HasSubstr("<svg"));  // for print, and for readers without scripts
  if (VegaBundle().empty()) {
    EXPECT_EQ(html, ToHtml(Whole()));
    return;
  }
  EXPECT_THAT(html, HasSubstr("window.vegaEmbed"));
  EXPECT_THAT(html, HasSubstr("data-chart=\"chart-1-spec\""));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("unsafe-eval")));
  EXPECT_THAT(html, Not(HasSubstr("src=\"http")));
}

TEST(ChartCsv, HasARowForEachPoint) {
  EXPECT_THAT(ChartCsv(Lines()), testing::StartsWith("series,x,value,low,high,note\nsync,1,50,40,60,"));
}

TEST(ToHtml, EscapesEverything) {
  const std::string html = ToHtml(Whole());
  EXPECT_THAT(html, HasSubstr("<title>T &amp; &lt;x&gt;</title>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"words\">&lt;script&gt;alert(1)&lt;/script&gt;</td><td>1</td>"));
  EXPECT_THAT(html, HasSubstr("<p class=\"answer\">yes &gt; no</p>"));
}

TEST(ToHtml, ClosesWhatItOpens) {
  const std::string html = ToHtml(Whole());
  for (const char* tag : {"section", "details", "table", "svg", "figure", "ul", "p", "pre", "main", "body",
                          "html", "summary", "div"})
    EXPECT_EQ(Count(html, std::string("<") + tag + ">") + Count(html, std::string("<") + tag + " "),
              Count(html, std::string("</") + tag + ">"))
        << tag;
}

TEST(ToMarkdown, WritesTablesThatHold) {
  const std::string text = ToMarkdown(Whole());
  EXPECT_THAT(text, HasSubstr("# T &amp; &lt;x>\n"));
  EXPECT_THAT(text, HasSubstr("| name | n |\n| --- | ---: |\n| &lt;script>alert(1)&lt;/script> | 1 |\n"));
  EXPECT_THAT(text, HasSubstr("- a\\|b\n"));
  EXPECT_THAT(text, HasSubstr("````\n```rm```\n````\n"));
  EXPECT_THAT(text, HasSubstr("|  | batch (pictures) | rate (images/s) | low | high |  |\n"));
  EXPECT_THAT(text, HasSubstr("| sync | 1 | 50 | 40 | 60 |"));
}

}  // namespace
}  // namespace weir::report

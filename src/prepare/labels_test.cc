#include "prepare/labels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "dataset/set.h"
#include "dataset/tar.h"
#include "prepare/prepare.h"
#include "prepare/testing/pictures.h"
#include "prepare/testing/sources.h"

namespace weir::prepare {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_pictures::EncodedNoise;
using testing_pictures::MakeFeed;
using testing_sources::SourcesTest;

TEST_F(SourcesTest, ACsvFileGivesLabels) {
  Write("in/a.jpg", "a");
  Write("in/sub/b, c.jpg", "b");
  Write("labels.csv", "file,size,label\na.jpg,1,\"tiger, big\"\n\"b, c.jpg\",2,\"a \"\"cat\"\"\"\n");
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = Path("labels.csv")}),
              ElementsAre("a.jpg 1 a", "sub/b, c.jpg 0 b"));
  EXPECT_THAT(classes_, ElementsAre("a \"cat\"", "tiger, big"));
  Write("labels.csv", "elsewhere.jpg,1\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("names none of the pictures"));
  Write("labels.csv", "a.jpg,1\nb\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message, HasSubstr("line 2"));
}

TEST_F(SourcesTest, WhatIsNoLabelAndASecondLabelOfANameAreRefusedWithTheirLine) {
  Write("in/a.jpg", "a");
  for (const char* label : {"-1", "2147483648", "99999999999999999999"}) {
    Write("labels.csv", fmt::format("name,label\na.jpg,{}\n", label));
    const Error error = Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")});
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message, HasSubstr(fmt::format("line 2: {} is no label", label)));
    Write("list", fmt::format("{}\t{}\n", Path("in/a.jpg"), label));
    EXPECT_THAT(Refusal({.lists = {Path("list")}}).message, HasSubstr("line 1"));
  }
  Write("labels.csv", "a.jpg,2147483647\nb.jpg,1\n");
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = Path("labels.csv")}), ElementsAre("a.jpg 2147483647 a"));
  Write("labels.csv", "a.jpg,1\nb.jpg,1\na.jpg,2\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("line 3: a.jpg has another label already, of line 1"));
}

TEST_F(SourcesTest, LabelsThatAreGivenReplaceThoseOfTheSources) {
  Write("in.tar", Member("x/0.cls", "4") + Member("x/0.jpg", "A") + Member("x/1.jpg", "B") +
                      Member("x/1.cls", "zebra") + std::string(1024, '\0'));
  Write("labels.csv", "0.jpg,cat\n1.jpg,dog\n");
  EXPECT_THAT(Read({.paths = {Path("in.tar")}, .labels = Path("labels.csv")}),
              ElementsAre("in.tar/x/0.jpg 0 A", "in.tar/x/1.jpg 1 B"));
  EXPECT_THAT(classes_, ElementsAre("cat", "dog"));

  const SteadyClock clock;
  ASSERT_TRUE(PrepareSet(MakeFeed(4), {.folder = Path("set")}, clock, {}, {}));  // of classes even and odd
  for (const char* name :
       {"in/1\xff", "in/1\\xFF", "1\xff"}) {  // as it is, as the manifest has it, its last part
    Write("numbers.csv", std::string(name) + ",70\n");
    const auto read = Read({.paths = {Path("set")}, .labels = Path("numbers.csv")});
    EXPECT_THAT(read, Contains(HasSubstr("in/1\xff 70"))) << name;
  }
  EXPECT_TRUE(classes_.empty());
}

TEST_F(SourcesTest, AMarkOfByteOrderIsNoPartOfAName) {
  Write("in/a.jpg", "a");
  Write("labels.csv",
        "\xef\xbb\xbf"
        "file,other,label\r\na.jpg,1,7\r\n");
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = Path("labels.csv")}), ElementsAre("a.jpg 7 a"));
  Write("list", "\xef\xbb\xbf" + Path("in/a.jpg") + "\r\n");
  EXPECT_THAT(Read({.lists = {Path("list")}}), ElementsAre(Path("in/a.jpg") + " - a"));
}

TEST_F(SourcesTest, ThePictureOfATarMemberHasTheLabelOfItsOwnName) {
  const std::string j = "J";
  const auto read = [&](const std::string& archive) {
    Write("in.tar", archive + std::string(1024, '\0'));
    return Read({.paths = {Path("in.tar")}});
  };
  EXPECT_THAT(
      read(Member("c.0.jpg", j) + Member("c.0.cls", "5") + Member("c.1.jpg", j) + Member("c.1.cls", "6")),
      ElementsAre("in.tar/c.0.jpg 5 J", "in.tar/c.1.jpg 6 J"));
  EXPECT_THAT(read(Member("a.jpg", j) + Member("a.cls", "1") + Member("a.coarse.cls", "9")),
              ElementsAre("in.tar/a.jpg 1 J"));
  EXPECT_THAT(not_taken_, ElementsAre("in.tar/a.coarse.cls - unused-label"));
  EXPECT_THAT(read(Member("b.cls", "1") + Member("a.jpg", j) + Member("b.jpg", j) + Member("a.cls", "0")),
              ElementsAre("in.tar/a.jpg 0 J", "in.tar/b.jpg 1 J"));
  EXPECT_THAT(read(Member("v1.2/A.JPG", j) + Member("v1.2/A.CLS", "\xef\xbb\xbf 3 \r\n")),
              ElementsAre("in.tar/v1.2/A.JPG 3 J"));
  EXPECT_THAT(read(Member("a.left.jpg", j) + Member("a.right.jpg", j) + Member("a.cls", "4")),
              ElementsAre("in.tar/a.left.jpg 4 J", "in.tar/a.right.jpg 4 J"));
  EXPECT_THAT(
      read(Member("./a.jpg", j) + Member("a.cls", "0") + Member("/x//b.jpg", j) + Member("x/b.cls", "NaN")),
      ElementsAre("in.tar/a.jpg 0 J", "in.tar/x/b.jpg - J"));
  EXPECT_THAT(read(Member("a.jpg", j) + Member("a.cls", "01") + Member("b.jpg", j) + Member("b.cls", "1")),
              ElementsAre("in.tar/a.jpg 0 J", "in.tar/b.jpg 1 J"));
  EXPECT_THAT(classes_, ElementsAre("01", "1"));
}

TEST_F(SourcesTest, ALabelThatMayBeAnothersIsRefused) {
  const std::string j = "J";
  for (const std::string& archive : {Member("a.jpg", j) + Member("a.x.cls", "0") + Member("a.y.cls", "1"),
                                     Member("a.jpg", j) + Member("a.cls", "0") + Member("a.CLS", "0"),
                                     Member("c.0.jpg", j) + Member("c.0.cls", "0") + Member("c.1.jpg", j),
                                     Member("a.jpg", j) + Member("a.cls", "0\n1")}) {
    Write("in.tar", archive + std::string(1024, '\0'));
    EXPECT_THAT(Refusal({.paths = {Path("in.tar")}}).message,
                ::testing::AnyOf(HasSubstr("a.x.cls or of a.y.cls"), HasSubstr("a.cls or of a.CLS"),
                                 HasSubstr("c.0.cls of the same key"), HasSubstr("control character")));
    EXPECT_TRUE(Sources::Open({.paths = {Path("in.tar")}, .labels = Path("labels.csv")})
                    .error()
                    .message.contains("labels.csv"));
  }
}

TEST_F(SourcesTest, WhatAnArchiveHoldsAndDoesNotGiveIsTold) {
  Write("in.tar", Member("a.jpg", "J") + Member("a.cls", "0") + Member("a.json", "{\"label\": 1}") +
                      Member("b.jpg", "J") + Member("b.json", "{\"label\": 1}") + Member("c.avif", "x") +
                      Member("._a.jpg", "x") + Member("d/.e/f.jpg", "x") + Member("lonely.cls", "3") +
                      Member("notes.txt", "x") + std::string(1024, '\0') + Member("z.jpg", "Z") +
                      std::string(1024, '\0') + "words");
  EXPECT_THAT(Read({.paths = {Path("in.tar")}}),
              ElementsAre("in.tar/a.jpg 0 J", "in.tar/b.jpg - J", "in.tar/z.jpg - Z"));
  EXPECT_THAT(not_taken_,
              ::testing::UnorderedElementsAre(
                  "in.tar/c.avif - unsupported", "in.tar/._a.jpg - hidden", "in.tar/d/.e/f.jpg - hidden",
                  "in.tar/notes.txt - not-a-picture", "in.tar/lonely.cls - unused-label",
                  "in.tar/b.json - unused-label", HasSubstr("(byte ")));
  EXPECT_EQ(ReportLabels(sources_->MakeFeed()).unused, 1);
  EXPECT_THAT(ReportLabels(sources_->MakeFeed()).unused_examples, ElementsAre("in.tar/lonely.cls"));
}

TEST_F(SourcesTest, ALabelFileIsReadAsItsWriterMeantIt) {
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg", "#d.jpg"}) Write(std::string("in/") + name, "x");
  const auto read = [&](const std::string& text) {
    Write("labels.csv", text);
    std::vector<std::string> labels;
    for (const std::string& line : Read({.paths = {Path("in")}, .labels = Path("labels.csv")}))
      labels.push_back(line.substr(line.find(' ') + 1, line.rfind(' ') - line.find(' ') - 1));
    return labels;  // of #d, a, b, c
  };
  const std::vector<std::string> numbers = {"-", "0", "10", "2"};
  for (const char* text :
       {"a.jpg,0\nb.jpg,10\nc.jpg,2\n", "filepath,label\na.jpg,0\nb.jpg,10\nc.jpg,2\n",
        "image_id,label\na.jpg, 0\nb.jpg,10 \nc.jpg,\t2\n", "photo,species\na.jpg,0\nb.jpg,10\nc.jpg,2\n",
        "label,name\n0,a.jpg\n10,b.jpg\n2,c.jpg\n", ",filename,label\n0,a.jpg,0\n1,b.jpg,10\n2,c.jpg,2\n",
        "a.jpg,0,\r\nb.jpg,10,\r\nc.jpg,2,\r\n#d.jpg,,\r\n", "a.jpg,0\nb.jpg,10\nc.jpg,2\n#d.jpg,NaN\n",
        "\xef\xbb\xbf\"filename\", \"label\"\r\n\"a.jpg\", \"0\" \r\n./b.jpg,10\r\nc.jpg,2\r\n",
        "sep=,\nname,label\na.jpg,0\nb.jpg,10\nc.jpg,2\na.jpg,0\n",
        "x/in/none.jpg,7\na.jpg,0\nb.jpg,10\nc.jpg,2\n"}) {
    EXPECT_EQ(read(text), numbers) << text;
    EXPECT_EQ(rule_, dataset::LabelRule::kNumbers);
  }
  EXPECT_EQ(read("#d.jpg,cat\na.jpg,dog\nb.jpg,cat\n"), (std::vector<std::string>{"0", "1", "0", "-"}));
  EXPECT_EQ(read("photo,species\na.jpg,dog\nb.jpg,cat\n"), (std::vector<std::string>{"-", "1", "0", "-"}));
  EXPECT_EQ(read("a.jpg,01\nb.jpg,1\nc.jpg,10\n"), (std::vector<std::string>{"-", "0", "1", "2"}));
  EXPECT_EQ(rule_, dataset::LabelRule::kNames);
}

TEST_F(SourcesTest, ALabelFileThatMayMeanSomethingElseIsRefused) {
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg", "x/d.jpg", "y/d.jpg"})
    Write(std::string("in/") + name, "x");
  const auto refusal = [&](const std::string& text) {
    Write("labels.csv", text);
    const auto sources = Sources::Open({.paths = {Path("in")}, .labels = Path("labels.csv")});
    return sources ? std::string("taken") : sources.error().message;
  };
  EXPECT_THAT(refusal("a.jpg,0\nb.jpg,1\nc.jpg,cat\n"), HasSubstr("line 3: the label \"cat\" is no number"));
  EXPECT_THAT(refusal("a.jpg,0\nb.jpg,1.0\n"), HasSubstr("line 2: 1.0 is no label"));
  EXPECT_THAT(refusal("a.jpg,0\nb.jpg,1e3\n"), HasSubstr("line 2: 1e3 is no label"));
  EXPECT_THAT(refusal("a.jpg;0\nb.jpg;1\n"),
              HasSubstr("line 2: wants a name, a comma and a label: its columns"));
  EXPECT_THAT(refusal("1,a.jpg\n2,b.jpg\n2,c.jpg\n"), HasSubstr("line 3: the labels stand before the names"));
  EXPECT_THAT(refusal("0,a.jpg\n1,b.jpg\n"), HasSubstr("names none of the pictures"));
  EXPECT_THAT(refusal("name,label\n"), HasSubstr("names none of the pictures"));
  EXPECT_THAT(refusal("d.jpg,0\n"), HasSubstr("d.jpg may mean x/d.jpg or y/d.jpg"));
  EXPECT_THAT(refusal("d.jpg,0\nx/d.jpg,1\ny/d.jpg,2\n"), "taken");
  EXPECT_THAT(refusal("image,width,breed\na.jpg,7,cat\n"), HasSubstr("line 1: no column is called"));
  EXPECT_THAT(refusal("a.jpg,cat\rb.jpg,dog\r"), HasSubstr("control character"));
  EXPECT_THAT(refusal("# a comment\nname,label\na.jpg,1\n"), HasSubstr("line 2: is a header"));
}

TEST_F(SourcesTest, FoldersWithoutAPictureByNameAreNoClasses) {
  for (const char* name :
       {"in/cat/a.jpg", "in/notes/readme.txt", "in/dog/x/b.PNG", "in/eel/c.avif", "in/.d/d.jpg"})
    Write(name, "x");
  std::filesystem::create_directories(Path("in/bird"));
  std::filesystem::create_directories(Path("in/ant/trap.jpg"));
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = "folders"}),
              ElementsAre("ant/trap.jpg - not-a-file", "cat/a.jpg 0 x", "dog/x/b.PNG 1 x"));
  EXPECT_THAT(classes_, ElementsAre("cat", "dog"));
  Write("in.tar", Member("cat/a.jpg", "x") + Member("./dog/b.jpg", "x") + std::string(1024, '\0'));
  EXPECT_THAT(Read({.paths = {Path("in.tar")}, .labels = "folders"}),
              ElementsAre("in.tar/cat/a.jpg 0 x", "in.tar/dog/b.jpg 1 x"));
  for (const char* name : {"n/10/a.jpg", "n/9/a.jpg"}) Write(name, "x");
  EXPECT_THAT(Read({.paths = {Path("n")}, .labels = "folders"}), ElementsAre("10/a.jpg 10 x", "9/a.jpg 9 x"));
  Write("n/09/a.jpg", "x");
  EXPECT_THAT(Read({.paths = {Path("n")}, .labels = "folders"}),
              ElementsAre("09/a.jpg 0 x", "10/a.jpg 1 x", "9/a.jpg 2 x"));
}

TEST_F(SourcesTest, ASetOfTheOldRuleIsRefusedAndNumberedAnew) {
  const SteadyClock clock;
  Write("in/a/1.png", EncodedNoise(20, 20, 1, true));
  Write("in/b/2.png", EncodedNoise(20, 20, 2, true));
  for (const auto format :
       {dataset::SetFormat::kFiles, dataset::SetFormat::kTar, dataset::SetFormat::kTfrecord}) {
    const std::string name = Path(std::string("set-") + std::string(ToString(format)));
    sources_ = Sources::Open({.paths = {Path("in")}, .labels = "folders"}).value();
    ASSERT_TRUE(PrepareSet(sources_->MakeFeed(), {.folder = name, .format = format}, clock, {}, {}));
    std::string facts = ReadTextFile(name + "/set.json").value();
    const std::string rule = "\"label_rule\": \"names\"";
    ASSERT_THAT(facts, HasSubstr(rule));
    // An empty label was a class of its own.
    facts.replace(facts.find(rule), rule.size() + 1, "");
    facts.replace(facts.find("\"a\""), 3, "\"\"");
    std::ofstream(name + "/set.json") << facts;
    const Status old = dataset::CheckLabelRule(*dataset::PreparedSet::Open(name).value());
    ASSERT_FALSE(old);
    EXPECT_EQ(old.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(old.error().message, HasSubstr("weir prepare " + name + " -o NEW"));
    EXPECT_THAT(Read({.paths = {name}}), ElementsAre("a/1.png - \x89", "b/2.png 0 \x89"));
    EXPECT_THAT(classes_, ElementsAre("b"));
    EXPECT_EQ(rule_, dataset::LabelRule::kNames);
    EXPECT_FALSE(PrepareSet(sources_->MakeFeed(), {.folder = name, .format = format}, clock, {}, {}));
  }
}

TEST_F(SourcesTest, SourcesThatNumberAndSourcesThatNameAreNotMixed) {
  Write("one.tar", Member("a.jpg", "x") + Member("a.cls", "3") + std::string(1024, '\0'));
  Write("two.tar", Member("b.jpg", "x") + Member("b.cls", "cat") + std::string(1024, '\0'));
  EXPECT_THAT(Refusal({.paths = {Path("one.tar"), Path("two.tar")}}).message,
              HasSubstr("numbers its classes, and"));
  EXPECT_EQ(Read({.paths = {Path("one.tar"), Path("one.tar")}}).size(), 2u);
  // A set's own names count, and not their numbers; alone it keeps these.
  const SteadyClock clock;
  ASSERT_TRUE(PrepareSet(MakeFeed(4), {.folder = Path("set")}, clock, {}, {}));  // of classes even and odd
  Write("more.tar", Member("b.jpg", "x") + Member("b.cls", "few") + std::string(1024, '\0'));
  EXPECT_THAT(Read({.paths = {Path("set"), Path("more.tar")}}), Contains("more.tar/b.jpg 1 x"));
  EXPECT_THAT(classes_, ElementsAre("even", "few", "odd"));
  EXPECT_THAT(Refusal({.paths = {Path("set"), Path("one.tar")}}).message,
              HasSubstr("numbers its classes, and"));
}

std::vector<std::string> FieldsOf(std::string_view line) {
  CsvRecord record;
  EXPECT_EQ(record.Add(line), CsvRecord::State::kWhole) << line;
  return record.TakeFields();
}

TEST(CsvRecord, QuotesHoldCommasAndQuotes) {
  EXPECT_EQ(FieldsOf(R"(a,"b,c","d""e",)"), (std::vector<std::string>{"a", "b,c", "d\"e", ""}));
  EXPECT_EQ(FieldsOf(""), std::vector<std::string>{""});
  EXPECT_EQ(FieldsOf("a,b\r"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(FieldsOf("a,\"b\"\r"), (std::vector<std::string>{"a", "b"}));
  for (const char* wrong : {R"(a"b)", R"("a"b)"})
    EXPECT_EQ(CsvRecord().Add(wrong), CsvRecord::State::kWrong) << wrong;
}

TEST(CsvRecord, QuotesHoldLineBreaks) {
  CsvRecord record;
  EXPECT_EQ(record.Add("\"a\r"), CsvRecord::State::kOpen);
  EXPECT_EQ(record.Add(""), CsvRecord::State::kOpen);
  EXPECT_EQ(record.Add("b\"\"c\",7"), CsvRecord::State::kWhole);
  EXPECT_EQ(record.TakeFields(), (std::vector<std::string>{"a\r\n\nb\"c", "7"}));
  EXPECT_EQ(record.Add("d,e"), CsvRecord::State::kWhole);
  EXPECT_EQ(record.TakeFields(), (std::vector<std::string>{"d", "e"}));
}

TEST_F(SourcesTest, ALabelFileMayHoldNamesWithLineBreaks) {
  Write("in/two\nlines.jpg", "a");
  Write("in/b.jpg", "b");
  Write("labels.csv", "name,label\n\"two\nlines.jpg\",\"first\"\nb.jpg,second\n");
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = Path("labels.csv")}),
              ElementsAre("b.jpg 1 b", "two\nlines.jpg 0 a"));
  EXPECT_THAT(classes_, ElementsAre("first", "second"));
  Write("labels.csv", "b.jpg,\"two\nlines\"\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("line 1: two\nlines is no label"));
  Write("labels.csv", "b.jpg,1\nc.jpg,\"open\nd.jpg,2\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("line 2: a quote that opens here is not closed"));
  Write("labels.csv", "\"a\nb\",1\nc\n");  // the line where a record begins, not the number of records
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("line 3: wants"));
}

TEST_F(SourcesTest, PicturesWithoutALabelAndLabelsWithoutAPictureAreCounted) {
  for (const char* name : {"in/a.jpg", "in/b.jpg", "in/c\xff.jpg"}) Write(name, "x");
  Write("labels.csv", "none.jpg,1\na.jpg,1\nno more.jpg,2\n");
  sources_ = Sources::Open({.paths = {Path("in")}, .labels = Path("labels.csv")}).value();
  LabelReport report = ReportLabels(sources_->MakeFeed());
  EXPECT_TRUE(report.asked_for);
  EXPECT_EQ(report.labelled, 1);
  EXPECT_EQ(report.unlabelled, 2);
  EXPECT_THAT(report.unlabelled_examples, ElementsAre("b.jpg", "c\xff.jpg"));
  EXPECT_EQ(report.unused, 2);
  EXPECT_THAT(report.unused_examples, ElementsAre("none.jpg", "no more.jpg"));
  report = ReportLabels(Pick(sources_->MakeFeed(), {0}));
  EXPECT_EQ(report.unlabelled, 0);
  sources_ = Sources::Open({.paths = {Path("in")}}).value();
  EXPECT_FALSE(ReportLabels(sources_->MakeFeed()).asked_for);
}

TEST_F(SourcesTest, OtherLabelsAreAnotherArgument) {
  Write("in/a/a.jpg", "x");
  const auto arguments = [&](const std::string& labels) {
    const auto sources = Sources::Open({.paths = {Path("in")}, .labels = labels}).value();
    return DumpJson(sources->MakeFeed().arguments.ToJson());
  };
  Write("one.csv", "a.jpg,1\n");
  Write("same.csv", "a.jpg,1\n");
  Write("other.csv", "a.jpg,2\n");
  EXPECT_EQ(arguments(""), "{}");
  EXPECT_EQ(arguments("folders"), R"({"labels":"folders"})");
  EXPECT_EQ(arguments(Path("one.csv")), arguments(Path("same.csv")));
  EXPECT_NE(arguments(Path("one.csv")), arguments(Path("other.csv")));
}

}  // namespace
}  // namespace weir::prepare

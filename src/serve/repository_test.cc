#include "serve/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "infer/testing/answers.h"
#include "serve/testing/fake_models.h"

namespace weir::serve {
namespace {

namespace fs = std::filesystem;
using infer::testing::Answers;
using infer::testing::FloatTensor;
using ::testing::ElementsAre;
using testing::FakeLoader;
using ::testing::HasSubstr;

class RepositoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(::testing::TempDir()) / ("repository-" + std::to_string(::getpid()));
    fs::remove_all(base_);
    Add("a");
    Add("b");
  }
  void TearDown() override {
    if (repository_) loader_->Open();
    repository_.reset();
    fs::remove_all(base_);
  }

  void Add(const std::string& name) const { fs::create_directories(base_ / name); }
  void Start(Repository::Options options) {
    auto repository =
        Repository::Create(*Catalogue::Open({base_.string()}), std::move(options), std::move(owned_), clock_,
                           [this](LogLevel, const std::string& line) {
                             MutexLock lock(mutex_);
                             lines_.push_back(line);
                           });
    ASSERT_TRUE(repository.has_value()) << repository.error().message;
    repository_ = *std::move(repository);
  }
  void StartExplicit(std::vector<std::string> load) {
    Start({.control = Repository::Control::kExplicit, .load = std::move(load)});
    ASSERT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  }
  Status Load(const std::string& name) {
    std::promise<Status> done;
    repository_->Load(name, "", [&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
  std::future<Status> Unload(const std::string& name) {
    auto done = std::make_shared<std::promise<Status>>();
    repository_->Unload(name, [done](Status status) { done->set_value(std::move(status)); });
    return done->get_future();
  }
  std::string Version(const std::string& name, const std::string& version = "") {
    const auto found = repository_->Find(name, version);
    return found ? (*found)->version : found.error().message;
  }
  ErrorCode WhyNot(const std::string& name, const std::string& version = "") {
    const auto found = repository_->Find(name, version);
    EXPECT_FALSE(found.has_value());
    return found ? ErrorCode::kInternal : found.error().code;
  }
  std::vector<std::string> lines() {
    MutexLock lock(mutex_);
    return std::exchange(lines_, {});
  }
  // A call that is in the engine until Open, and that nobody waits for.
  void HoldAlone(const std::string& model, Answers& answers, size_t runs) {
    loader_->SessionOf(model + "/1")->Close();
    infer::Call call = answers.MakeCall("held", {FloatTensor("x", {1, 4}, {1, 2, 3, 4})});
    (*repository_->Find(model, ""))->loaded.runner().Submit(std::move(call));
    loader_->SessionOf(model + "/1")->WaitForRuns(runs);
  }
  // The versions that the index has of `model`, with what it says of them: "1 READY, 2 UNAVAILABLE torn".
  std::string Indexed(const std::string& model) {
    std::string text;
    for (const oip::IndexEntry& entry : repository_->Index(false)) {
      if (entry.name != model) continue;
      text += (text.empty() ? "" : ", ") + entry.version + " " + entry.state;
      if (!entry.reason.empty()) text += " " + entry.reason;
    }
    return text;
  }
  // A call that is in the engine of `what` until Open.
  void Hold(const std::string& model, Answers& answers) {
    loader_->SessionOf(model + "/1")->Close();
    const auto served = *repository_->Find(model, "");
    infer::Call call = answers.MakeCall("held", {FloatTensor("x", {1, 4}, {1, 2, 3, 4})});
    // As the server does it: whoever waits for an answer keeps the model.
    auto inner = std::make_shared<infer::Completion>(std::move(call.completion));
    call.completion =
        infer::Completion([served, inner](Result<infer::Response> result, const infer::Times& t) {
          inner->Answer(std::move(result), t);
        });
    served->loaded.runner().Submit(std::move(call));
    loader_->SessionOf(model + "/1")->WaitForRuns(1);
  }

  ManualClock clock_;
  Metrics metrics_;
  std::unique_ptr<FakeLoader> owned_ = std::make_unique<FakeLoader>(clock_, metrics_);
  FakeLoader* const loader_ = owned_.get();
  std::unique_ptr<Repository> repository_;
  fs::path base_;
  Mutex mutex_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

TEST_F(RepositoryTest, LoadsEverythingWhereNothingIsControlled) {
  Start({});
  ASSERT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  EXPECT_EQ(Version("a"), "1");
  EXPECT_EQ(Version("b"), "1");
  EXPECT_TRUE(repository_->AllReady().has_value());
  EXPECT_EQ(WhyNot("c"), ErrorCode::kNotFound);
  EXPECT_EQ(Load("a").error().code, ErrorCode::kUnsupported);
}

TEST_F(RepositoryTest, IsNotReadyAndSaysSoWhileItLoads) {
  loader_->Close();
  Start({});
  EXPECT_FALSE(repository_->WaitUntilLoaded(Instant{}));
  EXPECT_EQ(WhyNot("a"), ErrorCode::kOverloaded);
  EXPECT_THAT(Version("a"), HasSubstr("loading"));
  EXPECT_THAT(repository_->AllReady().error().message, HasSubstr("loading"));
  EXPECT_EQ(repository_->Index(false).at(0).state, "LOADING");
  loader_->Open();
  EXPECT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  EXPECT_TRUE(repository_->AllReady().has_value());
}

TEST_F(RepositoryTest, LoadsWhatItIsAskedFor) {
  StartExplicit({"b"});
  EXPECT_EQ(Version("b"), "1");
  EXPECT_EQ(WhyNot("a"), ErrorCode::kNotFound);
  EXPECT_TRUE(Load("a").has_value());
  EXPECT_EQ(Version("a"), "1");
  Add("late");
  EXPECT_TRUE(Load("late").has_value());
  for (const char* name : {"nope", "", "..", "../a", "a/../b", "./a"})
    EXPECT_EQ(Load(name).error().code, ErrorCode::kNotFound) << name;
}

TEST_F(RepositoryTest, GivesTheHighestVersionOrTheOneAskedFor) {
  loader_->SetVersions("a", {"2", "10"});
  StartExplicit({"a"});
  EXPECT_EQ(Version("a"), "10");
  EXPECT_EQ(Version("a", "2"), "2");
  EXPECT_THAT(repository_->VersionsOf("a"), ElementsAre("2", "10"));
  for (const char* version : {"1", "02", "-2", "two", "99999999999999999999"})
    EXPECT_EQ(WhyNot("a", version), ErrorCode::kNotFound) << version;
}

TEST_F(RepositoryTest, KeepsTheOldWhereTheNewFails) {
  StartExplicit({"a"});
  loader_->SetVersions("a", {"2"});
  loader_->SetFault("a/2", "torn");
  EXPECT_EQ(Load("a").error().message, "torn");
  EXPECT_EQ(Version("a"), "1");
  EXPECT_EQ(WhyNot("a", "2"), ErrorCode::kNotFound);
  EXPECT_THAT(Version("a", "2"), HasSubstr("torn"));
  const auto index = repository_->Index(false);
  ASSERT_GE(index.size(), 2U);
  EXPECT_EQ(index[0].state, "READY");
  EXPECT_EQ(index[1].state, "UNAVAILABLE");
  EXPECT_EQ(index[1].reason, "torn");
  EXPECT_TRUE(repository_->AllReady().has_value());
  loader_->SetFault("a/2", "");
  EXPECT_TRUE(Load("a").has_value());
  EXPECT_THAT(repository_->VersionsOf("a"), ElementsAre("2"));
}

TEST_F(RepositoryTest, IsUnreadyForWhatFailedAtTheStartOnly) {
  loader_->SetFault("a/1", "torn");
  StartExplicit({"a"});
  EXPECT_THAT(repository_->AllReady().error().message, HasSubstr("torn"));
  loader_->SetFault("a/1", "");
  ASSERT_TRUE(Load("a").has_value());
  EXPECT_TRUE(repository_->AllReady().has_value());
  loader_->SetFault("b/1", "torn");
  EXPECT_FALSE(Load("b").has_value());
  EXPECT_TRUE(repository_->AllReady().has_value());
}

TEST_F(RepositoryTest, FinishesCallsOnTheModelTheyBeganOn) {
  StartExplicit({"a"});
  Answers answers;
  const auto old = loader_->SessionOf("a/1");
  Hold("a", answers);
  ASSERT_TRUE(Load("a").has_value());  // does not wait for the call
  EXPECT_NE(loader_->SessionOf("a/1"), old);
  EXPECT_EQ(answers.count(), 0U);
  old->Open();
  EXPECT_TRUE(answers.Wait(1)[0].result.has_value());
}

TEST_F(RepositoryTest, UnloadsWhenTheLastCallHasBeenAnswered) {
  StartExplicit({"a"});
  Answers answers;
  const auto session = loader_->SessionOf("a/1");
  Hold("a", answers);
  std::future<Status> gone = Unload("a");
  ASSERT_TRUE(Load("b").has_value());  // after the unloading was begun
  EXPECT_EQ(gone.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(WhyNot("a"), ErrorCode::kOverloaded);
  EXPECT_THAT(Version("a"), HasSubstr("being unloaded"));
  EXPECT_EQ(repository_->Index(false).at(0).state, "UNLOADING");
  session->Open();
  EXPECT_TRUE(gone.get().has_value());
  EXPECT_TRUE(answers.Wait(1)[0].result.has_value());
  EXPECT_EQ(WhyNot("a"), ErrorCode::kNotFound);
  EXPECT_EQ(repository_->Index(false).at(0).reason, "unloaded");
  EXPECT_EQ(Unload("nope").get().error().code, ErrorCode::kNotFound);
}

TEST_F(RepositoryTest, LoadsAgainWhatStillLeaves) {
  StartExplicit({"a"});
  Answers answers;
  const auto session = loader_->SessionOf("a/1");
  Hold("a", answers);
  std::future<Status> gone = Unload("a");
  ASSERT_TRUE(Load("a").has_value());
  EXPECT_EQ(Version("a"), "1");
  EXPECT_EQ(gone.wait_for(0s), std::future_status::timeout);
  session->Open();
  EXPECT_TRUE(gone.get().has_value());  // the new one stays
  EXPECT_EQ(Version("a"), "1");
}

TEST_F(RepositoryTest, ServesWhileItLoads) {
  StartExplicit({"a"});
  loader_->Close();
  repository_->Load("b", "", [](const Status&) {});
  EXPECT_EQ(Version("a"), "1");
  loader_->Open();
}

TEST_F(RepositoryTest, AnswersTheJobsThatWaitWhenItEnds) {
  StartExplicit({});
  std::promise<void> go_on;
  repository_->Load("a", "", [&](const Status&) { go_on.get_future().wait(); });  // holds its thread
  std::future<Status> waiting = Unload("b");
  std::thread later([&] { go_on.set_value(); });
  repository_.reset();
  later.join();
  const Status said = waiting.get();  // it may have got as far as that
  EXPECT_TRUE(said.has_value() || said.error().code == ErrorCode::kCancelled);
}

TEST_F(RepositoryTest, GivesNamesThatAreUtf8AndWholePaths) {
  Add("caf\xE9");
  fs::current_path(base_.parent_path());
  const std::string relative = base_.filename().string() + "/./";
  const auto models = Catalogue::Open({relative})->List();
  ASSERT_TRUE(models.has_value());
  EXPECT_TRUE(models->contains("caf\\xe9") || models->contains("caf\\xE9"));
  for (const auto& [name, path] : *models) EXPECT_TRUE(path.starts_with(base_.string() + "/")) << path;
}

TEST_F(RepositoryTest, IsNotReadyWhileAnEngineHangsAndServesTheOthers) {
  StartExplicit({"a", "b"});
  Answers answers;
  infer::Call first = answers.MakeCall("first", {FloatTensor("x", {1, 4}, {1, 2, 3, 4})});
  (*repository_->Find("a", ""))->loaded.runner().Submit(std::move(first));
  answers.Wait(1);
  HoldAlone("a", answers, 2);
  clock_.Advance(9s);
  repository_->WatchEngines();
  EXPECT_TRUE(repository_->AllReady().has_value());
  lines();
  clock_.Advance(3s);
  repository_->WatchEngines();
  repository_->WatchEngines();
  const std::vector<std::string> told = lines();
  ASSERT_EQ(told.size(), 1U) << "it is told once";
  EXPECT_THAT(told[0], HasSubstr("model \"a\" version 1: its engine hangs: a batch has run for 12 s"));
  EXPECT_THAT(repository_->AllReady().error().message, HasSubstr("its engine hangs"));
  EXPECT_TRUE(Load("b").has_value());
  EXPECT_TRUE(Unload("b").get().has_value());

  loader_->SessionOf("a/1")->Open();
  answers.Wait(2);
  EXPECT_TRUE(repository_->AllReady().has_value());
  repository_->WatchEngines();
  EXPECT_THAT(lines().back(), HasSubstr("its engine answers again"));
}

TEST_F(RepositoryTest, LetsGoAModelWhoseEngineHangsWithoutHoldingUpOthers) {
  StartExplicit({"a", "b"});
  Answers answers;
  HoldAlone("a", answers, 1);
  std::future<Status> gone = Unload("a");
  EXPECT_TRUE(Load("b").has_value());
  EXPECT_TRUE(Unload("b").get().has_value()) << "also what is to be let go behind it";
  EXPECT_EQ(gone.wait_for(0s), std::future_status::timeout);
  EXPECT_FALSE(repository_->Stop(Instant{})) << "an engine that hangs is told, not waited for";
  loader_->SessionOf("a/1")->Open();
  EXPECT_TRUE(repository_->Stop(Instant::max()));
  EXPECT_TRUE(gone.get().has_value());
}

TEST_F(RepositoryTest, ForgetsVersionsThatWereDeleted) {
  loader_->SetVersions("a", {"1", "2"});
  loader_->SetFault("a/2", "torn");
  StartExplicit({"a"});
  EXPECT_EQ(Indexed("a"), "1 READY torn, 2 UNAVAILABLE torn");
  loader_->SetVersions("a", {"1", "3"});
  loader_->SetFault("a/3", "torn, too");
  EXPECT_FALSE(Load("a").has_value());
  EXPECT_EQ(Indexed("a"), "1 READY torn, too, 3 UNAVAILABLE torn, too") << "2 is there no more";
  loader_->SetVersions("a", {"3"});
  ASSERT_TRUE(Unload("a").get().has_value());
  EXPECT_EQ(Indexed("a"), "3 UNAVAILABLE unloaded");
}

TEST_F(RepositoryTest, ForgetsAModelThatWasDeleted) {
  StartExplicit({"a"});
  fs::remove_all(base_ / "a");
  EXPECT_EQ(Load("a").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(Indexed("a"), HasSubstr("1 READY")) << "what is loaded is served";
  ASSERT_TRUE(Unload("a").get().has_value());
  EXPECT_EQ(Indexed("a"), "");
}

TEST_F(RepositoryTest, FollowsTheFilesWherePollingIsAskedFor) {
  Start({.control = Repository::Control::kPoll});
  ASSERT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  EXPECT_EQ(Version("a"), "1");
  EXPECT_EQ(Load("a").error().code, ErrorCode::kUnsupported);
  const auto poll = [&] {
    repository_->Poll();
    repository_->Poll();
  };
  Add("late");
  poll();
  while (Version("late") != "1") std::this_thread::yield();
  EXPECT_TRUE(repository_->AllReady().has_value());

  fs::remove_all(base_ / "a");
  poll();
  while (repository_->Find("a", "").has_value()) std::this_thread::yield();
  while (!Indexed("a").empty()) std::this_thread::yield();
  EXPECT_TRUE(repository_->AllReady().has_value()) << "a model that was removed makes no server unready";
  EXPECT_EQ(Version("b"), "1");

  loader_->SetVersions("b", {"1", "2"});
  Add("b/2");
  poll();
  while (Version("b") != "2") std::this_thread::yield();
}

TEST_F(RepositoryTest, LoadsNothingAnewUnlessPollingIsAskedFor) {
  Start({});
  ASSERT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  Add("late");
  repository_->Poll();
  repository_->Poll();
  EXPECT_EQ(WhyNot("late"), ErrorCode::kNotFound);
}

TEST_F(RepositoryTest, TellsOfALinkToWhatIsNotThere) {
  fs::create_directory_symlink(base_ / "gone", base_ / "dangling");
  Start({});
  ASSERT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  EXPECT_THAT(Indexed("dangling"), HasSubstr("is a link to"));
  EXPECT_THAT(repository_->AllReady().error().message, HasSubstr("dangling"));
  EXPECT_EQ(Version("a"), "1");
}

TEST_F(RepositoryTest, NamesAFolderThatTakesTheNameOfAnothersPictures) {
  Add("a.image");
  std::ofstream(base_ / "a/recipe.yaml") << "layout: NCHW\n";
  Start({});
  ASSERT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  EXPECT_THAT(repository_->AllReady().error().message, HasSubstr("takes pictures: rename one of them"));
  EXPECT_THAT(Version("a.image"), HasSubstr("takes pictures: rename one of them"));
}

TEST_F(RepositoryTest, ServesAFolderWhoseNameIsNoOthers) {
  Add("a.image");  // a has no recipe
  Start({});
  ASSERT_TRUE(repository_->WaitUntilLoaded(Instant::max()));
  EXPECT_EQ(Version("a.image"), "1");
}

TEST_F(RepositoryTest, NamesWhatIsThereTwice) {
  const fs::path other = base_ / "other";
  fs::create_directories(other / "a");
  const auto catalogue = Catalogue::Open({base_.string(), other.string()});
  ASSERT_FALSE(catalogue.has_value());
  EXPECT_THAT(catalogue.error().message, HasSubstr("\"a\" is there twice"));
}

TEST_F(RepositoryTest, TellsAFolderOfModelsFromAModel) {
  const auto names = [](const fs::path& place) {
    std::vector<std::string> list;
    const std::map<std::string, std::string> models = *Catalogue::Open({place.string()})->List();
    for (const auto& [name, path] : models) list.push_back(name);
    return list;
  };
  fs::create_directories(base_ / ".hidden");
  EXPECT_THAT(names(base_), ElementsAre("a", "b"));
  fs::create_directories(base_ / "a/7");
  EXPECT_THAT(names(base_ / "a"), ElementsAre("a"));
  EXPECT_THAT(names(base_ / "a/"), ElementsAre("a"));
  EXPECT_EQ(Catalogue::Open({(base_ / "nowhere").string()}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir::serve

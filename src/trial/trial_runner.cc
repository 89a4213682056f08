#include "trial/trial_runner.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "dataset/source.h"
#include "infer/engine.h"
#include "launch/container/container.h"
#include "launch/page_cache.h"
#include "launch/process/command.h"
#include "launch/process/orphans.h"
#include "launch/ssh/ssh_watch.h"
#include "oip/client.h"
#include "study/length_check.h"
#include "trial/page_cache_wish.h"
#include "trial/places.h"
#include "trial/repository.h"

namespace weir::trial {
namespace {

constexpr Duration kPatience = 20s;  // of a server that is to end: it finishes what it has begun
constexpr Duration kLongest = 2h;    // of a client, whose work is counted and not timed
constexpr int kTimesLonger = 10;     // of one whose work is timed: starts, warms up, waits for the last
constexpr char kServer[] = "the server";
constexpr char kClientResult[] = "the client's result";
constexpr double kMostDifferent = 0.002;  // of answers: another batch adds up in another order

std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return EscapeBytes(text.substr(text.rfind('\n') + 1));
}

Result<results::LoadResult> ReadLoadResult(std::string_view text) {
  return results::LoadResult::FromJson(TRY(ParseJson(text)));
}

CacheFacts FactsOf(const DataSet& data) {
  CacheFacts facts{.path = data.path};
  struct statfs system{};
  if (::statfs(data.path.c_str(), &system) == 0)
    facts.lives_in_memory = system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) facts.memory_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  return facts;
}

// An earlier trial may have let go of the pages, or read them; what else the machine does moves them, too.
Status SetPageCache(std::optional<PageCache> wish, const DataSet& data) {
  if (wish == PageCache::kCold) return CheckCold(TRY(launch::DropFromCache({data.path})), FactsOf(data));
  if (wish == PageCache::kWarm) return CheckWarm(TRY(launch::ReadIntoCache({data.path})), FactsOf(data));
  return {};
}

}  // namespace

TrialRunner::TrialRunner(Options options, const study::StudyFile& study, const study::Design& design,
                         const Clock& clock)
    : options_(std::move(options)),
      study_(study),
      design_(design),
      clock_(clock),
      shelf_({.program = options_.program,
              .source = FindBeside(study.data, options_.study_folder),
              .folder = options_.folder + "/data"},
             clock),
      servers_({.program = options_.program,
                .image = options_.image,
                .folder = options_.folder + "/repositories",
                .host = study.server_host ? std::optional(launch::SshHost{.destination = *study.server_host})
                                          : std::nullopt},
               clock) {}

Result<Setting> TrialRunner::SettingOf(const study::Configuration& configuration) const {
  Setting setting = TRY(ReadSetting(configuration.factors));
  setting.model = FindBeside(setting.model, options_.study_folder);
  if (setting.server)
    setting.server->repository = FindBeside(setting.server->repository, options_.study_folder);
  if (!study_.client_hosts.empty() && !configuration.factors.contains("clients"))
    setting.clients = static_cast<int>(study_.client_hosts.size());
  return setting;
}

Result<const model::Model*> TrialRunner::ModelOf(const Setting& setting) {
  static const model::Model kUnknown;  // of another server, which knows its own
  if (setting.model.empty() && setting.server) return &kUnknown;
  if (setting.model.empty()) return Fail(ErrorCode::kInvalidArgument, "the study names no model");
  const auto found = models_.find(setting.model);
  if (found != models_.end()) return &found->second;
  return &models_.emplace(setting.model, TRY(model::OpenModel(setting.model, {}))).first->second;
}

// In this process, with an accelerator that takes no time in the place of an emulated one: what it answers
// does not depend on that.
Result<const TrialRunner::Reference*> TrialRunner::ReferenceOf(const Setting& setting,
                                                               const model::Model& model,
                                                               const DataSet& data) {
  Setting plain{.model = setting.model,
                .batch = setting.batch,
                .engine = setting.is_emulated() ? "emulated:base=0ms" : setting.engine,
                .device = setting.device,
                .precision = setting.precision};
  // An accelerator's answers are the same at every batch; those of CPU engines nearly so.
  if (plain.is_emulated()) plain.batch = 8;
  const std::string key = fmt::format("{}|{}|{}|{}|{}", model.path.empty() ? model.folder : model.path,
                                      data.path, plain.engine, plain.device, ToString(plain.precision));
  const auto found = references_.find(key);
  if (found != references_.end()) return &found->second;
  const std::string folder = options_.folder + "/references";
  TRY_STATUS(MakeFolders(folder));
  Reference reference{.file = fmt::format("{}/{:016x}.csv", folder, Seed(1).Stream(key).value()),
                      .answers = {}};
  std::error_code error;
  if (!std::filesystem::exists(reference.file, error)) {
    const auto words = ClientArguments(plain, {.passes = 1},
                                       {.program = options_.program,
                                        .model = setting.model,
                                        .data = {data.path},
                                        .expected = {},
                                        .answers = reference.file,
                                        .streams = StreamsOf(plain, model),
                                        .shapes = {}});
    TRY_CONTEXT(launch::RunWell({.arguments = words, .timeout = kLongest}, clock_), "the reference answers");
  }
  reference.answers = TRY_CONTEXT(ReadAnswers(TRY(ReadTextFile(reference.file))), reference.file);
  return &references_.emplace(key, std::move(reference)).first->second;
}

Result<Length> TrialRunner::LengthOf(const study::Trial& trial, const Setting& setting,
                                     std::optional<int64_t> pictures) {
  const study::Configuration& configuration = design_.configurations[trial.configuration];
  const bool is_application = std::holds_alternative<ApplicationLoad>(setting.load);
  if (study_.trial.seconds) {
    CHECK(!is_application);  // study::MakeDesign
    return Length{.seconds = study_.trial.seconds};
  }
  if (const auto* streams = std::get_if<StreamsLoad>(&setting.load)) {
    const auto frames = study::ImagesPerTrial(study_.trial, configuration, std::nullopt);
    if (!frames)
      return Fail(ErrorCode::kInvalidArgument,
                  "passes say nothing of live streams: give a trial's length in seconds or images");
    return Length{.seconds = std::max(1.0, static_cast<double>(*frames) / (streams->streams * streams->fps))};
  }
  const auto images = study::ImagesPerTrial(study_.trial, configuration, pictures);
  if (!images)
    return Fail(ErrorCode::kInvalidArgument,
                "passes say nothing of a trial without data: give its length in images");
  Length length{.requests = study::RequestsPerTrial(study_, *images, setting.batch)};
  if (is_application && pictures) length.passes = std::max<int64_t>(1, (*images + *pictures - 1) / *pictures);
  return length;
}

Result<TrialRunner::ClientRun> TrialRunner::Run(const std::vector<std::string>& arguments,
                                                const std::string& answers_file, const Setting& setting,
                                                RunningServer* server) {
  ClientRun ran;
  std::optional<launch::NetworkLink::Counters> before;
  if (server != nullptr && server->link != nullptr) before = TRY(server->link->ReadCounters());
  std::unique_ptr<launch::SshWatch> watch;
  if (server != nullptr && server->host) watch = TRY(launch::SshWatch::Start(*server->host, clock_));
  const Duration longest =
      study_.trial.seconds ? 120s + kTimesLonger * FromSeconds(*study_.trial.seconds) : kLongest;
  const Instant begin = clock_.Now();
  const launch::Output output = TRY(
      launch::RunCommand({.arguments = arguments, .cpus = setting.client_cpus, .timeout = longest}, clock_));
  const Instant end = clock_.Now();
  if (watch) {
    auto there = watch->Stop();
    if (there)
      ran.seen.there = std::move(*there);
    else
      ran.seen.there_absent = there.error().message;
  }
  if (before) {
    const auto after = TRY(server->link->ReadCounters());
    const double rate = server->rate ? server->rate->schedule().MeanBetween(begin - server->rate->begin(),
                                                                            end - server->rate->begin())
                                     : setting.network.gbit_per_s.value_or(0);
    ran.seen.link =
        Observation::Link{.to_server = static_cast<int64_t>(after.to_far.bytes - before->to_far.bytes),
                          .from_server = static_cast<int64_t>(after.to_near.bytes - before->to_near.bytes),
                          .gbit_per_s = rate};
  }
  // Status 3: the load generator does not believe its own claim; its verdict says why.
  constexpr int kClaimInvalid = 3;
  if (output.ending.signal != 0 ||
      (output.ending.exit_status != 0 && output.ending.exit_status != kClaimInvalid))
    return Fail(ErrorCode::kIo,
                fmt::format("the client ended with {}: {}", output.ending.ToString(), LastLine(output.err)));
  const Json json = TRY_CONTEXT(ParseJson(output.out), kClientResult);
  if (std::holds_alternative<ApplicationLoad>(setting.load)) {
    ran.result = TRY_CONTEXT(results::RunResult::FromJson(json), kClientResult);
    ran.answers = TRY(ReadTextFile(answers_file));
  } else if (std::holds_alternative<StreamsLoad>(setting.load)) {
    ran.result = TRY_CONTEXT(results::WatchResult::FromJson(json), kClientResult);
  } else {
    ran.result = TRY_CONTEXT(results::LoadResult::FromJson(json), kClientResult);
  }
  return ran;
}

Status TrialRunner::CheckAnswers(const Reference& reference, const Setting& setting, ClientRun& ran) const {
  if (ran.answers.empty()) return {};  // the load generator checks its own
  const Answers answers = TRY(ReadAnswers(ran.answers));
  const int64_t differ = TRY(CountDifferences(reference.answers, answers));
  ran.seen.answers = std::ssize(answers.best);
  ran.seen.answers_differ = differ;
  const double most = setting.is_emulated() ? 0 : kMostDifferent * static_cast<double>(ran.seen.answers);
  if (static_cast<double>(differ) <= most) return {};
  return Fail(ErrorCode::kCorrupt, fmt::format("{} of {} answers are not those of the model in one process",
                                               differ, ran.seen.answers));
}

Status TrialRunner::CheckSome(const Setting& setting, ClientPlaces places, const std::string& expected) {
  places.expected = expected;
  places.server_pids.clear();
  places.metrics_url.clear();
  Setting closed = setting;
  closed.load = ClosedLoad{};
  closed.in_flight = closed.clients = 1;
  places.client_hosts.clear();
  const launch::Output output = TRY(launch::RunCommand(
      {.arguments = ClientArguments(closed, {.requests = 16}, places), .timeout = kLongest}, clock_));
  const auto result = ReadLoadResult(output.out);
  if (!result) return Fail(ErrorCode::kIo, "the answers could not be checked: " + LastLine(output.err));
  for (const results::LoadResult::Level& level : result->levels) {
    if (level.failed == 0) continue;
    const auto& words = level.error_messages;
    return Fail(ErrorCode::kCorrupt, words.empty() ? "answers are wrong" : words.front());
  }
  return {};
}

Result<results::LoadResult::Level> TrialRunner::MeasureResponses(const Setting& setting, ClientPlaces places,
                                                                 const Length& length) {
  places.server_pids.clear();
  places.metrics_url.clear();
  places.client_hosts.clear();
  // In one process the generator knows no recipe: it makes inputs of the model's shape.
  if (setting.architecture == Architecture::kInProcess) places.data.clear();
  Setting closed = setting;
  closed.load = ClosedLoad{};
  constexpr int kUsualInFlight = 4;
  if (closed.mode == Mode::kAsync && !closed.in_flight) closed.in_flight = kUsualInFlight;
  const launch::Output output = TRY(launch::RunCommand({.arguments = ClientArguments(closed, length, places),
                                                        .cpus = setting.client_cpus,
                                                        .timeout = kLongest},
                                                       clock_));
  auto result = ReadLoadResult(output.out);
  if (!result)
    return Fail(ErrorCode::kIo, "the response times could not be measured: " + LastLine(output.err));
  if (result->levels.size() != 1) return Fail(ErrorCode::kIo, "the load generator told of no response times");
  return std::move(result->levels.front());
}

// Stops the server. Its last words are added to the client's error. If the client succeeded, the server must
// have succeeded too.
Status TrialRunner::TakeDown(RunningServer server, Result<ClientRun>& ran) {
  if (server.rate) {
    const auto report = server.rate->Stop();
    if (!report && ran) return std::unexpected(report.error());
    if (report && ran && ran->seen.link) {
      ran->seen.link->rate_changes = report->changes;
      ran->seen.link->latest_change_ms = Milliseconds(report->latest);
    }
  }
  if (!server.started) return {};
  launch::Launched& program = *server.started->launched;
  if (ran) ran->seen.server_start_s = Seconds(server.started->start);
  if (server.balancer) server.balancer->launched->Stop(kPatience);
  for (launch::StartedServer& other : server.others) {
    const launch::Ending ended = other.launched->Stop(kPatience);
    if (ran && ended != launch::Ending{})
      ran = Fail(ErrorCode::kIo, fmt::format("a server ended with {}: {}", ended.ToString(),
                                             LastLine(other.launched->LastWords())));
  }
  const launch::Ending ending = program.Stop(kPatience);
  if (!ran)
    return Fail(ran.error().code, fmt::format("{} (the server said last: {})", ran.error().message,
                                              LastLine(program.LastWords())));
  if (server.is_own && ending != launch::Ending{})
    return Fail(ErrorCode::kIo,
                fmt::format("the server ended with {}: {}", ending.ToString(), program.LastWords()));
  return {};
}

// Returns the answers of each server so far, where there are several or a balancer is in front.
Result<std::vector<int64_t>> TrialRunner::CountAtServers(const RunningServer& server,
                                                         const std::string& model) {
  std::vector<int64_t> answers;
  for (const std::string& url : server.urls()) {
    const auto client = TRY(oip::MakeClient(url, {}, clock_));
    answers.push_back(static_cast<int64_t>(TRY_CONTEXT(client->Statistics(model, ""), url).success.count));
  }
  return answers;
}

// The model as its server describes it; nothing where it tells nothing.
std::optional<infer::ModelInfo> TrialRunner::DescriptionOf(const RunningServer& server) {
  const auto url = oip::ParseModelUrl(server.model_url);
  if (!url) return std::nullopt;
  const auto client = oip::MakeClient(url->server, {}, clock_);
  if (!client) return std::nullopt;
  auto info = (*client)->Info(url->model, url->version);
  return info ? std::optional(*std::move(info)) : std::nullopt;
}

Result<std::unique_ptr<PhasesBeside>> TrialRunner::StartPhases(const Setting& setting,
                                                               const std::optional<DataSet>& data,
                                                               uint64_t seed) {
  if (!setting.feed_beside && !setting.prepare_beside) return nullptr;
  if (!data || study_.data.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "phases beside the client want data: name pictures in the study, and a model with a recipe");
  return PhasesBeside::Start({.program = options_.program,
                              .set = data->path,
                              .source = FindBeside(study_.data, options_.study_folder),
                              .folder = options_.folder + "/beside",
                              .feed = setting.feed_beside,
                              .prepare = setting.prepare_beside,
                              .limits = setting.limits,
                              .seed = seed},
                             clock_);
}

Status TrialRunner::CheckNothingIsLeft() {
  const auto left = launch::StillRunning(launch::ThisProcess(), clock_.Now() + 5s, clock_);
  if (left.empty()) return {};
  std::string names;
  for (const launch::Started& each : left) names += (names.empty() ? "" : ", ") + each.ToString();
  return Fail(ErrorCode::kInternal, "the trial left something running: " + names);
}

Result<results::TrialResult> TrialRunner::Play(const study::Trial& trial) {
  const study::Configuration& configuration = design_.configurations[trial.configuration];
  const Setting setting = TRY(SettingOf(configuration));
  const model::Model& model = *TRY(ModelOf(setting));
  const dataset::Recipe* recipe = model.recipe ? &*model.recipe : nullptr;
  const bool is_application = std::holds_alternative<ApplicationLoad>(setting.load);

  std::optional<DataSet> data;
  const Reference* reference = nullptr;
  if (is_application || (recipe != nullptr && !study_.data.empty())) {
    Setting wanted = setting;
    if (!is_application && setting.payload != Payload::kImage) wanted.data_path = DataPath::kFilesAtModelSize;
    data = TRY(shelf_.Get(wanted, recipe));
    reference = TRY(ReferenceOf(setting, model, *data));
    TRY_STATUS(SetPageCache(setting.page_cache, *data));
  }
  const Length length = TRY(LengthOf(trial, setting, data ? std::optional(data->pictures) : std::nullopt));

  std::optional<RunningServer> server;
  if (setting.architecture != Architecture::kInProcess)
    server = TRY_CONTEXT(servers_.Start(setting, model, Seed(trial.seed)), kServer);
  const std::string server_command = server ? server->Command() : "";
  const std::string answers_file = options_.folder + "/answers.csv";
  const bool reads_answers = !setting.shared_memory;
  ClientPlaces places{.program = options_.program,
                      .model = server ? server->model_url : setting.model,
                      .data = data ? std::vector{data->path} : std::vector<std::string>{},
                      .expected = {},
                      .answers = answers_file,
                      .streams = StreamsOf(setting, model),
                      .server_pids = server ? server->pids() : std::vector<int>(),
                      .metrics_url = server ? server->metrics_url : "",
                      .client_hosts = study_.client_hosts,
                      .shapes = {},
                      .seed = trial.seed};
  // They are of this model's inputs: a server of others tells its own.
  if (!setting.server) places.shapes = {study_.shapes.begin(), study_.shapes.end()};
  // Without data the model itself answers: an emulated accelerator in its place invents other answers.
  const bool is_checkable = reference != nullptr || !setting.is_emulated();
  if (!is_application && reads_answers && is_checkable && server && !setting.server)
    TRY_STATUS(CheckSome(setting, places, reference != nullptr ? reference->file : setting.model));
  const std::vector<std::string> arguments = ClientArguments(setting, length, places);
  const auto before = server ? TRY(CountAtServers(*server, model.name)) : std::vector<int64_t>();
  const auto served = server ? DescriptionOf(*server) : std::nullopt;
  std::unique_ptr<CpuLimit> serve_limit;
  if (server && setting.limits.serve) {
    serve_limit = TRY(CpuLimit::Make("serve", *setting.limits.serve));
    for (const int pid : server->pids()) TRY_STATUS(serve_limit->Add(pid));
  }
  const auto phases = TRY(StartPhases(setting, data, trial.seed));
  auto ran = Run(arguments, answers_file, setting, server ? &*server : nullptr);
  if (ran && !before.empty()) {
    ran->seen.server_urls = server->urls();
    ran->seen.server_answers = TRY(CountAtServers(*server, model.name));
    for (size_t i = 0; i < before.size(); ++i) ran->seen.server_answers[i] -= before[i];
  }
  if (ran && is_application && (study_.targets.p99_ms || study_.trial.responses)) {
    auto responses = MeasureResponses(setting, places, {.requests = *study::ResponsesPerTrial(study_)});
    if (responses)
      ran->seen.responses = std::move(*responses);
    else
      ran->seen.responses_absent = responses.error().message;
  }
  if (ran) ran->seen.served = served;
  if (phases) {
    auto beside = phases->Stop();
    if (ran && !beside) ran = std::unexpected(beside.error());
    if (ran) ran->seen.beside = std::move(*beside);
  }
  if (server) {
    const Status ended = TakeDown(*std::exchange(server, std::nullopt), ran);
    if (!ended) return std::unexpected(ended.error());
  }
  if (!ran) return std::unexpected(ran.error());
  TRY_STATUS(CheckNothingIsLeft());
  if (reference != nullptr) TRY_STATUS(CheckAnswers(*reference, setting, *ran));
  Outcome outcome = TRY(MakeOutcome(ran->result, setting, ran->seen));
  return results::TrialResult{.factors = configuration.factors,
                              .metrics = outcome.metrics.ToJson(),
                              .verdict = std::move(outcome.verdict),
                              .provenance = "provenance.json",
                              .command = launch::ToShell(arguments),
                              .server_command = server_command};
}

Result<results::StudyProvenance::Materials> TrialRunner::Materials() {
  const auto digest = [](std::string_view bytes) {
    return fmt::format("{:016x}", Seed(1).Stream(bytes).value());
  };
  constexpr uint64_t kMostBytes = uint64_t{64} << 30;
  results::StudyProvenance::Materials materials;
  TRY_STATUS(CheckIsThere("data", study_.data, options_.study_folder));
  for (const study::Configuration& configuration : design_.configurations) {
    const std::string name = TRY(ReadSetting(configuration.factors)).model;
    if (name.empty() || materials.models.contains(name)) continue;
    TRY_STATUS(CheckIsThere("model", name, options_.study_folder));
    const model::Model& model = *TRY(ModelOf(TRY(SettingOf(configuration))));
    results::StudyProvenance::Model& facts = materials.models[name];
    facts.configuration = digest(model.config.message);
    if (!model.path.empty()) {
      const Bytes bytes = TRY(ReadFile(model.path, kMostBytes));
      facts.file_bytes = bytes.size();
      facts.file_hash = digest(bytes.text());
    }
  }
  materials.program = digest(TRY(ReadFile(options_.program, kMostBytes)).text());
  if (!study_.data.empty()) {
    const std::string data = FindBeside(study_.data, options_.study_folder);
    materials.pictures = std::ssize(TRY(dataset::ListInputs({data})).inputs);
    if (materials.pictures == 0)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("data: no picture is in {}: name a folder of pictures, or a prepared set",
                              EscapeBytes(data)));
  }
  return materials;
}

std::map<std::string, std::string> TrialRunner::Libraries() {
  std::map<std::string, std::string> libraries;
  bool contained = false;
  for (const study::Configuration& configuration : design_.configurations) {
    const auto setting = SettingOf(configuration);
    if (!setting) continue;  // its trial says why
    contained = contained || (setting->architecture == Architecture::kMicroservice &&
                              (!setting->server || !setting->server->image.empty()));
    const auto model = ModelOf(*setting);
    if (!model || setting->is_emulated() ||
        (setting->server && setting->architecture != Architecture::kInProcess))
      continue;
    const std::string name = model::EngineOf(**model, setting->engine);
    if (name.starts_with("emulated") || libraries.contains(name)) continue;
    if (const auto engine = infer::OpenEngine(name, clock_)) libraries[name] = (*engine)->version();
  }
  if (contained) libraries.merge(launch::ContainerToolVersions(clock_));
  return libraries;
}

results::StudyProvenance::Paths TrialRunner::ResolvedPaths() const {
  const auto resolved = [&](const std::string& name) {
    std::error_code error;
    const std::string path = FindBeside(name, options_.study_folder);
    const auto absolute = std::filesystem::absolute(path, error);
    return EscapeBytes(error || path.contains("://") ? path : absolute.lexically_normal().string());
  };
  results::StudyProvenance::Paths paths;
  if (!study_.data.empty()) paths.data = resolved(study_.data);
  for (const study::Configuration& configuration : design_.configurations) {
    const auto setting = ReadSetting(configuration.factors);
    if (setting && !setting->model.empty())
      paths.models[EscapeBytes(setting->model)] = resolved(setting->model);
    if (setting && setting->server && !setting->server->repository.empty())
      paths.repositories[EscapeBytes(setting->server->repository)] = resolved(setting->server->repository);
  }
  return paths;
}

Status TrialRunner::CheckAble(const Setting& setting) {
  const Status server = servers_.Check(setting);
  if (!server) return Fail(server.error().code, fmt::format("{}: {}", kServer, server.error().message));
  const Limits& limits = setting.limits;
  if (limits.serve || limits.feed || limits.prepare) TRY(CpuLimit::Make("check", 1));
  return {};
}

std::vector<TrialRunner::Inability> TrialRunner::FindInabilities() {
  std::vector<Inability> inabilities;
  for (const study::Configuration& configuration : design_.configurations) {
    const auto setting = SettingOf(configuration);
    if (!setting) continue;  // its trial says why
    const Status able = CheckAble(*setting);
    if (able || able.error().code != ErrorCode::kUnsupported) continue;
    const std::string why = able.error().message;
    const auto known = std::ranges::find(inabilities, why, &Inability::why);
    if (known != inabilities.end()) {
      known->configurations += 1;
    } else {
      inabilities.push_back({.why = why, .configurations = 1});
    }
  }
  return inabilities;
}

}  // namespace weir::trial

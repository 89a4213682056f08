#include "trial/study_live.h"

#include <fmt/format.h>

#include <utility>

#include "http/listen_place.h"
#include "stats/summary.h"
#include "study/measured.h"

namespace weir::trial {

StudyLive::StudyLive(const study::StudyFile& study, const study::Design& design) : design_(design) {
  state_.study = study.name;
  state_.metric = study.objective.metric;
  state_.total = std::ssize(design.trials);
  Publish();
}

Result<std::unique_ptr<StudyLive>> StudyLive::Start(const std::string& place, const study::StudyFile& study,
                                                    const study::Design& design, const Clock& clock) {
  const http::ListenPlace listen = TRY(http::ParseListenPlace("--live", place));
  std::unique_ptr<StudyLive> live(new StudyLive(study, design));
  live->host_ = listen.host;
  StudyLive* const self = live.get();
  live->server_ = TRY(http::HttpServer::Create(
      {.name = "live page",
       .flag_prefix = "--live",
       .address = live->host_,
       .port = listen.port,
       .max_body = 0,
       .max_connections = 32,
       .is_probe = [](const http::HttpRequest&) { return true; }},
      [self](http::HttpRequest request, http::HttpResponder responder) {
        if (request.method != "GET" || request.path != "/") {
          responder.Send({.status = 404, .content_type = "text/plain"});
          return;
        }
        std::string page;
        {
          const MutexLock lock(self->mutex_);
          page = self->page_;
        }
        responder.Send({.content_type = "text/html; charset=utf-8",
                        .headers = {{"Cache-Control", "no-store"}},
                        .body = {Bytes::Copy(page)}});
      },
      clock));
  return live;
}

std::string StudyLive::url() const { return fmt::format("http://{}:{}/", host_, server_->port()); }

void StudyLive::Begin(const study::Trial& trial) {
  state_.now =
      fmt::format("{}, block {}", design_.configurations[trial.configuration].label, trial.block + 1);
  Publish();
}

void StudyLive::Count(const study::PlayedTrials& played) {
  state_.suspect += played.record.verdict.standing == results::Standing::kSuspect;
  if (!study::Counts(played) || played.trial.is_reference()) return;
  for (const auto& [name, value] : study::Flatten(played.record.metrics).numbers) {
    if (name == state_.metric) values_[played.trial.configuration][played.trial.block] = value;
  }
}

void StudyLive::AddEarlier(const std::vector<study::PlayedTrials>& played) {
  for (const study::PlayedTrials& one : played) Count(one);
  Publish();
}

void StudyLive::Add(const study::Progress& progress, const study::PlayedTrials& played) {
  Count(played);
  state_.done = progress.done;
  state_.failed = progress.failed;
  state_.skipped = progress.skipped;
  state_.left_s = progress.left_s;
  state_.now.clear();
  Publish();
}

void StudyLive::Finish() {
  state_.finished = true;
  state_.now.clear();
  Publish();
}

void StudyLive::Publish() {
  state_.results.clear();
  for (const auto& [configuration, by_block] : values_) {
    std::vector<double> values;
    for (const auto& [block, value] : by_block) values.push_back(value);
    const auto summary = stats::Summarise(values);
    if (!summary) continue;
    state_.results.push_back({.label = design_.configurations[configuration].label,
                              .n = summary->n,
                              .mean = summary->mean,
                              .low = summary->low,
                              .high = summary->high});
  }
  std::string page = report::LivePage(state_);
  const MutexLock lock(mutex_);
  page_ = std::move(page);
}

}  // namespace weir::trial

// The page that shows a study while it runs (weir study --live).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "http/http_server.h"
#include "report/live_page.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/run.h"
#include "study/study_file.h"

namespace weir::trial {

// Serves one page on one thread. The study's thread updates it; thread-safe against its own server. `study`,
// `design` and `clock` must outlive it.
class StudyLive {
 public:
  // Starts the server at `place`, HOST:PORT; port 0 takes any free port. kInvalidArgument if `place` has
  // another form; kIo as HttpServer.
  static Result<std::unique_ptr<StudyLive>> Start(const std::string& place, const study::StudyFile& study,
                                                  const study::Design& design, const Clock& clock);

  std::string url() const;
  void Begin(const study::Trial& trial);
  void Add(const study::Progress& progress, const study::PlayedTrials& played);
  // Adds the trials of an earlier run.
  void AddEarlier(const std::vector<study::PlayedTrials>& played);
  void Finish();

 private:
  StudyLive(const study::StudyFile& study, const study::Design& design);
  void Count(const study::PlayedTrials& played);
  void Publish();

  const study::Design& design_;
  std::string host_;
  report::LiveState state_;                         // of the study's thread
  std::map<size_t, std::map<int, double>> values_;  // by configuration and block
  Mutex mutex_;
  std::string page_ GUARDED_BY(mutex_);
  std::unique_ptr<http::HttpServer> server_;  // the last: its thread reads the page
};

}  // namespace weir::trial

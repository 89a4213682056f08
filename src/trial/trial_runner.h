// Plays the trials of a study: sets up what a configuration names, plays it, watches both sides, takes all
// down.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/ssh/ssh.h"
#include "model/model.h"
#include "results/study_provenance.h"
#include "results/trial_result.h"
#include "study/design.h"
#include "study/study_file.h"
#include "trial/answers.h"
#include "trial/commands.h"
#include "trial/dataset_cache.h"
#include "trial/outcome.h"
#include "trial/phases_beside.h"
#include "trial/server_launcher.h"
#include "trial/setting.h"

namespace weir::trial {

// One thread at a time: its programs end with the thread that started them. `study`, `design` and `clock`
// must outlive it.
class TrialRunner {
 public:
  struct Options {
    std::string program;  // this program
    std::string folder;   // for the data sets, repositories and reference answers; kept between runs
    std::string image = "localhost/weir";  // of weir's server in a container
    std::string study_folder;  // of the study file: what it names is looked for there first (FindBeside)
  };
  TrialRunner(Options options, const study::StudyFile& study, const study::Design& design,
              const Clock& clock);

  // Server and client start anew and are gone when this returns; what still runs then has failed the trial.
  // The answers are held against those of the model in this process over the same data. kUnsupported, with
  // the remedy: this machine cannot do it. Other errors fail the trial.
  Result<results::TrialResult> Play(const study::Trial& trial);

  // A part of the study that this machine cannot do, with the remedy, found before a trial. Each reason once
  struct Inability {
    std::string why;  // as the error of its trials says
    int64_t configurations = 0;
  };
  std::vector<Inability> FindInabilities();

  // The absolute paths of the models and the data that the study names.
  results::StudyProvenance::Paths ResolvedPaths() const;

  // Returns the versions of the engines in this process or in weir's servers and, where trials need
  // containers, of the tools that start them.
  std::map<std::string, std::string> Libraries();

  // Returns the facts that must not change while a study lasts and that its file does not say: digests of
  // this program and of the models, and the number of pictures.
  Result<results::StudyProvenance::Materials> Materials();

 private:
  // The expected answers of the trials of one data set and one engine.
  struct Reference {
    std::string file;  // a predictions file
    Answers answers;
  };
  // A client's run, watched.
  struct ClientRun {
    ClientResult result;
    std::string answers;  // the protocol's text; empty: none was written
    Observation seen;
  };
  // With the model's path in the place of its name in the study.
  Result<Setting> SettingOf(const study::Configuration& configuration) const;
  Result<const model::Model*> ModelOf(const Setting& setting);
  Result<const Reference*> ReferenceOf(const Setting& setting, const model::Model& model,
                                       const DataSet& data);
  Result<Length> LengthOf(const study::Trial& trial, const Setting& setting, std::optional<int64_t> pictures);
  Result<ClientRun> Run(const std::vector<std::string>& arguments, const std::string& answers_file,
                        const Setting& setting, RunningServer* server);
  // A few of the load generator's requests, their answers held against `expected` (a protocol, or a model);
  // apart from the measured ones, which are not read.
  Status CheckSome(const Setting& setting, ClientPlaces places, const std::string& expected);
  // The response times of a closed loop with the setting's batches in flight, over the same server; the
  // application itself has none. From the load generator's level.
  Result<results::LoadResult::Level> MeasureResponses(const Setting& setting, ClientPlaces places,
                                                      const Length& length);
  Status CheckAnswers(const Reference& reference, const Setting& setting, ClientRun& ran) const;
  Status TakeDown(RunningServer server, Result<ClientRun>& ran);
  Result<std::vector<int64_t>> CountAtServers(const RunningServer& server, const std::string& model);
  std::optional<infer::ModelInfo> DescriptionOf(const RunningServer& server);
  // The phases of the setting, started; nothing where it has none. kInvalidArgument without data.
  Result<std::unique_ptr<PhasesBeside>> StartPhases(const Setting& setting,
                                                    const std::optional<DataSet>& data, uint64_t seed);
  // Whether this machine can start the server of that setting, and set its limits. kUnsupported as Play.
  Status CheckAble(const Setting& setting);
  Status CheckNothingIsLeft();

  const Options options_;
  const study::StudyFile& study_;
  const study::Design& design_;
  const Clock& clock_;
  DatasetCache shelf_;
  ServerLauncher servers_;
  std::map<std::string, model::Model> models_;
  std::map<std::string, Reference> references_;
};

}  // namespace weir::trial

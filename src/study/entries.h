// The lines of a study's journal. The first says what is studied, where and with what; each other is one try
// of one trial.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "record/journal.h"
#include "results/trial_result.h"
#include "study/design.h"

namespace weir::study {

struct Header {
  Json study;       // StudyFile::ToJson
  Json provenance;  // Provenance::ToJson, and what else must not change while the study lasts
};

struct PlayedTrials {
  Trial trial;
  int attempt = 1;    // 2: the first failed
  double took_s = 0;  // the whole trial, launch and stop included
  results::TrialResult record;
};

struct StudyJournal {
  Header header;
  std::vector<PlayedTrials> played;  // in the order in which they ended
};

Json ToJson(const Header& header);
Json ToJson(const PlayedTrials& played);
Result<PlayedTrials> PlayedFromJson(const Json& entry);  // kCorrupt names the key

// kCorrupt names the line (from 1) that is no entry of a study; kUnsupported for another schema_version;
// kNotFound where there is none at all.
Result<StudyJournal> ReadEntries(const record::JournalContents& contents);

}  // namespace weir::study

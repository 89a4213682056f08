#include "study/entries.h"

#include <fmt/format.h>

#include <utility>

#include "results/schema_version.h"

namespace weir::study {
namespace {

Result<Json> GetMap(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object())
    return Fail(ErrorCode::kCorrupt, fmt::format("key \"{}\" is missing or is not an object", key));
  return *found;
}

Result<int> GetSmall(const Json& json, const char* key, int64_t low) {
  const int64_t value = TRY(GetInteger(json, key));
  if (value < low || value > 1'000'000'000)
    return Fail(ErrorCode::kCorrupt, fmt::format("key \"{}\": {} is out of range", key, value));
  return static_cast<int>(value);
}

Result<Header> HeaderFromJson(const Json& entry) {
  if (entry.value("entry", Json()) != "study")
    return Fail(ErrorCode::kCorrupt, "not the first line of a study");
  TRY_STATUS(results::CheckSchemaVersion(entry, "a journal"));
  return Header{.study = TRY(GetMap(entry, "study")), .provenance = TRY(GetMap(entry, "provenance"))};
}

}  // namespace

Json ToJson(const Header& header) {
  return {{"entry", "study"},
          {results::kSchemaVersionKey, results::kSchemaVersion},
          {"study", header.study},
          {"provenance", header.provenance}};
}

Json ToJson(const PlayedTrials& played) {
  const Trial& trial = played.trial;
  return {{"entry", "trial"},
          {"id", trial.id},
          {"attempt", played.attempt},
          {"configuration", trial.configuration},
          {"block", trial.block},
          {"position", trial.position},
          {"role", ToString(trial.role)},
          {"seed", trial.seed},
          {"took_s", played.took_s},
          {"record", played.record.ToJson()}};
}

Result<PlayedTrials> PlayedFromJson(const Json& entry) {
  if (entry.value("entry", Json()) != "trial") return Fail(ErrorCode::kCorrupt, "not the line of a trial");
  PlayedTrials played;
  Trial& trial = played.trial;
  trial.id = TRY(GetString(entry, "id"));
  played.attempt = TRY(GetSmall(entry, "attempt", 1));
  trial.configuration = static_cast<size_t>(TRY(GetSmall(entry, "configuration", 0)));
  trial.block = TRY(GetSmall(entry, "block", 0));
  trial.position = TRY(GetSmall(entry, "position", 0));
  const std::string role = TRY(GetString(entry, "role"));
  const auto known = ParseRole(role);
  if (!known) return Fail(ErrorCode::kCorrupt, fmt::format("key \"role\": no role \"{}\"", role));
  trial.role = *known;
  const auto seed = entry.find("seed");
  if (seed == entry.end() || !seed->is_number_integer())
    return Fail(ErrorCode::kCorrupt, "key \"seed\" is missing or is not a whole number");
  trial.seed = seed->get<uint64_t>();
  played.took_s = TRY(GetNumber(entry, "took_s"));
  played.record = TRY_CONTEXT(results::TrialResult::FromJson(TRY(GetMap(entry, "record"))), "record");
  return played;
}

Result<StudyJournal> ReadEntries(const record::JournalContents& contents) {
  if (contents.entries.empty())
    return Fail(ErrorCode::kNotFound, "the journal is empty: no study was begun there");
  StudyJournal journal;
  for (size_t i = 0; i < contents.entries.size(); ++i) {
    const std::string line = fmt::format("line {}", i + 1);
    if (i == 0) {
      journal.header = TRY_CONTEXT(HeaderFromJson(contents.entries[i]), line);
    } else {
      journal.played.push_back(TRY_CONTEXT(PlayedFromJson(contents.entries[i]), line));
    }
  }
  return journal;
}

}  // namespace weir::study

#include "study/study_file.h"

namespace weir::study {
namespace {

Json ToJson(const LevelLists& lists) {
  Json json = Json::object();
  for (const FactorLevels& one : lists) json[one.factor] = one.levels;
  return json;
}

Json ToJson(const TrialLength& trial) {
  Json json = Json::object();
  PutIfAny(json, "images", trial.images);
  PutIfAny(json, "passes", trial.passes);
  PutIfAny(json, "seconds", trial.seconds);
  json["batches"] = trial.batches;
  PutIfAny(json, "responses", trial.responses);
  return json;
}

Json ToJson(const Targets& targets) {
  Json json = Json::object();
  PutIfAny(json, "p99_ms", targets.p99_ms);
  PutIfAny(json, "images_per_s", targets.images_per_s);
  if (!targets.price_per_hour.empty()) json["price_per_hour"] = targets.price_per_hour;
  return json;
}

Json ToJson(const Figure& figure) {
  Json json{{"title", figure.title}};
  if (!figure.metric.empty()) json["metric"] = figure.metric;
  PutIfAny(json, "x", figure.x);
  if (!figure.series.empty()) json["series"] = figure.series;
  for (const LevelLists& lists : figure.where) json["where"].push_back(ToJson(lists));
  return json;
}

}  // namespace

Json StudyFile::ToJson() const {
  using study::ToJson;
  Json json{{"study", name}, {"question", question}, {"data", data}};
  json["design"] = layout == Layout::kStar ? "star" : "factorial";
  json["factors"] = ToJson(factors);
  json["fixed"] = ToJson(fixed);
  json["base"] = ToJson(base);
  json["reference"] = ToJson(reference);
  json["also"] = Json::array();
  for (const LevelLists& lists : also) json["also"].push_back(ToJson(lists));
  json["except"] = Json::array();
  for (const Exception& one : except)
    json["except"].push_back({{"when", ToJson(one.when)}, {"why", one.why}});
  json["repeats"] = repeats;
  json["trial"] = ToJson(trial);
  json["seed"] = seed;
  if (!shapes.empty()) json["shapes"] = shapes;
  PutIfAny(json, "server_host", server_host);
  if (!client_hosts.empty()) json["client_hosts"] = client_hosts;
  json["objective"] = {{"metric", objective.metric},
                       {"better", objective.better == Better::kHigher ? "higher" : "lower"}};
  json["targets"] = ToJson(targets);
  json["figures"] = Json::array();
  for (const Figure& figure : figures) json["figures"].push_back(ToJson(figure));
  if (waterfall) json["waterfall"] = ToJson(*waterfall);
  return json;
}

}  // namespace weir::study

#include "study/study_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/nearest.h"
#include "study/factor.h"
#include "yaml/strict.h"

namespace weir::study {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr int64_t kMaxNodes = 100'000;  // aliases of aliases make a small file endless
constexpr int kMaxDepth = 20;

using yaml::Into;
using yaml::Node;
using yaml::NumberInto;
using yaml::Place;
using yaml::PlaceOf;
using yaml::ReadEach;
using yaml::ReadMap;
using yaml::ReadNumber;
using yaml::ReadText;
using yaml::Refuse;
using yaml::TextInto;

Status CheckFactor(std::string_view name, const Place& place) {
  if (IsFactor(name)) return {};
  const auto names = FactorNames();
  const auto meant = Nearest(name, names);
  return Refuse(place,
                fmt::format("no factor \"{}\"{}; there are: {}", name,
                            meant ? fmt::format(", did you mean {}?", *meant) : "", fmt::join(names, ", ")));
}

Result<std::string> ReadName(const Node& node, const Place& place) {
  std::string name = TRY(ReadText(node, place));
  const auto is_odd = [](unsigned char c) { return c < ' ' || c == 0x7f || c == '/'; };
  if (std::ranges::none_of(name, is_odd)) return name;
  return Refuse(place, "a name has no / and no control character: what it is about goes under question");
}

// Plain words are numbers and truths where they look like it (YAML 1.2, core schema); quoted ones are texts.
Json ScalarToJson(const Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (text == "true" || text == "false") return text == "true";
  const char* const end = text.data() + text.size();
  int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && stop == end)
    return whole;
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && std::isfinite(number)) return number;
  return text;
}

Result<Json> ToJson(const Node& node, const Place& place, int64_t& nodes, int depth = 0) {
  if (++nodes > kMaxNodes || depth > kMaxDepth) return Refuse(place, "is too large or too deep for a level");
  if (node.IsScalar()) return ScalarToJson(node);
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& item : node)
      list.push_back(TRY(ToJson(item, PlaceOf(item, place.key), nodes, depth + 1)));
    return list;
  }
  if (!node.IsMap()) return Refuse(place, "has no value");
  Json map = Json::object();
  TRY_STATUS(
      ReadEach(node, place, [&](const std::string& name, const Node& value, const Place& here) -> Status {
        map[name] = TRY(ToJson(value, here, nodes, depth + 1));
        return {};
      }));
  return map;
}

// The whole file's reader: it counts what it has seen, over all levels.
class Reader {
 public:
  Status Read(const Node& root, const Place& top);
  StudyFile Take() { return std::move(file_); }

 private:
  Result<Json> ReadLevel(const std::string& factor, const Node& node, const Place& place) {
    const Json level = TRY(ToJson(node, place, nodes_));
    auto checked = CheckLevel(factor, level);
    if (!checked) return Refuse(place, checked.error().message);
    return checked;
  }
  Result<FactorLevels> ReadLevels(const std::string& factor, const Node& node, const Place& place);

  enum class Many { kLists, kOneEach };
  Status ReadFactor(const std::string& factor, const Node& node, const Place& place, Many many,
                    LevelLists& lists);
  Result<LevelLists> ReadLists(const Node& node, const Place& place, Many many);
  auto ListsInto(LevelLists& target, Many many) {
    return [this, &target, many](const Node& node, const Place& place) -> Status {
      LevelLists lists = TRY(ReadLists(node, place, many));
      target.insert(target.end(), lists.begin(), lists.end());
      return {};
    };
  }
  // A key of the top that is a factor: one level fixes it, a list varies it.
  auto FactorAtTop(std::string factor) {
    return [this, factor](const Node& node, const Place& place) -> Status {
      const bool varies = node.IsSequence();
      return ReadFactor(factor, node, place, varies ? Many::kLists : Many::kOneEach,
                        varies ? file_.factors : file_.fixed);
    };
  }

  Status ReadNetwork(const Node& node, const Place& place);
  Status ReadClientHosts(const Node& node, const Place& place);
  Status ReadLayout(const Node& node, const Place& place);
  Status ReadAlso(const Node& node, const Place& place);
  Status ReadExcept(const Node& node, const Place& place);
  Status ReadTrial(const Node& node, const Place& place);
  Status ReadObjective(const Node& node, const Place& place);
  Status ReadTargets(const Node& node, const Place& place);
  Status ReadPrices(const Node& node, const Place& place);
  Status ReadShapes(const Node& node, const Place& place);
  Status ReadFigures(const Node& node, const Place& place);
  static Status ReadX(const Node& node, const Place& place, Figure& figure);
  static Status ReadSeries(const Node& node, const Place& place, Figure& figure);
  Status ReadWhere(const Node& node, const Place& place, Figure& figure);
  Status ReadWaterfall(const Node& node, const Place& place);
  Status CheckWhole(const Place& top) const;

  StudyFile file_;
  int64_t nodes_ = 0;
};

Result<FactorLevels> Reader::ReadLevels(const std::string& factor, const Node& node, const Place& place) {
  FactorLevels found{.factor = factor};
  if (!node.IsSequence()) {
    found.levels.push_back(TRY(ReadLevel(factor, node, place)));
    return found;
  }
  for (const auto& item : node) {
    const Place here = PlaceOf(item, place.key);
    Json level = TRY(ReadLevel(factor, item, here));
    if (std::ranges::find(found.levels, level) != found.levels.end()) {
      return Refuse(here, fmt::format("the level {} is there twice", LevelText(factor, level)));
    }
    found.levels.push_back(std::move(level));
  }
  if (found.levels.empty()) return Refuse(place, "wants at least one level");
  return found;
}

Status Reader::ReadFactor(const std::string& factor, const Node& node, const Place& place, Many many,
                          LevelLists& lists) {
  TRY_STATUS(CheckFactor(factor, place));
  if (many == Many::kOneEach && node.IsSequence())
    return Refuse(place, "wants one level; a list belongs under factors");
  lists.push_back(TRY(ReadLevels(factor, node, place)));
  return {};
}

Result<LevelLists> Reader::ReadLists(const Node& node, const Place& place, Many many) {
  LevelLists lists;
  TRY_STATUS(ReadEach(node, place, [&](const std::string& name, const Node& value, const Place& here) {
    return ReadFactor(name, value, here, many, lists);
  }));
  return lists;
}

Status Reader::ReadClientHosts(const Node& node, const Place& place) {
  if (!node.IsSequence() || node.size() == 0) return Refuse(place, "wants a list of hosts: [user@a, user@b]");
  for (const Node& item : node) {
    const std::string host = TRY(ReadText(item, place));
    if (host.empty() || host.find_first_of(", ") != std::string::npos)
      return Refuse(place, fmt::format("\"{}\" is no host: give user@host", host));
    file_.client_hosts.push_back(host);
  }
  return {};
}

// The second node's host is not the link's: it is kept apart from the level.
Status Reader::ReadNetwork(const Node& node, const Place& place) {
  if (!node.IsMap()) return FactorAtTop("network")(node, place);
  Node link(YAML::NodeType::Map);
  for (const auto& item : node) {
    if (!item.first.IsScalar() || item.first.Scalar() != "hosts") {
      link.force_insert(item.first, item.second);
      continue;
    }
    std::string host;
    TRY_STATUS(ReadMap(item.second, PlaceOf(item.first, "network.hosts"),
                       {{"server", TextInto(host)}, {"clients", [&](const Node& hosts, const Place& here) {
                                                       return ReadClientHosts(hosts, here);
                                                     }}}));
    if (host.empty()) return Refuse(PlaceOf(item.first, "network.hosts"), "wants server: user@host");
    file_.server_host = host;
  }
  return link.size() == 0 ? Status{} : FactorAtTop("network")(link, place);
}

Status Reader::ReadLayout(const Node& node, const Place& place) {
  const std::string text = TRY(ReadText(node, place));
  if (text != "factorial" && text != "star")
    return Refuse(place, fmt::format("\"{}\" is none of factorial, star", text));
  file_.layout = text == "star" ? Layout::kStar : Layout::kFactorial;
  return {};
}

Status Reader::ReadAlso(const Node& node, const Place& place) {
  if (!node.IsSequence()) return Refuse(place, "wants a list of combinations");
  for (const auto& item : node) {
    LevelLists lists = TRY(ReadLists(item, PlaceOf(item, "also"), Many::kLists));
    file_.also.push_back(std::move(lists));
  }
  return {};
}

Status Reader::ReadExcept(const Node& node, const Place& place) {
  if (!node.IsSequence()) return Refuse(place, "wants a list of combinations, each with why");
  for (const auto& item : node) {
    Exception exception;
    const Place at = PlaceOf(item, "except");
    TRY_STATUS(
        ReadEach(item, at, [&](const std::string& name, const Node& value, const Place& here) -> Status {
          if (name == "why") return TextInto(exception.why)(value, here);
          return ReadFactor(name, value, here, Many::kLists, exception.when);
        }));
    if (exception.why.empty() || exception.when.empty())
      return Refuse(at, "wants levels of factors, and why: the reason");
    file_.except.push_back(std::move(exception));
  }
  return {};
}

Status Reader::ReadTrial(const Node& node, const Place& place) {
  TrialLength& trial = file_.trial;
  TRY_STATUS(ReadMap(node, place,
                     {{"images", NumberInto(trial.images, int64_t{1}, int64_t{1'000'000'000})},
                      {"passes", NumberInto(trial.passes, 1e-3, 1e6)},
                      {"seconds", NumberInto(trial.seconds, 1e-2, 86400.0)},
                      {"batches", NumberInto(trial.batches, int64_t{30}, int64_t{1'000'000})},
                      {"responses", NumberInto(trial.responses, int64_t{1}, int64_t{1'000'000'000})}}));
  if (trial.seconds && (trial.images || trial.passes || trial.responses))
    return Refuse(place,
                  "wants either seconds, or images, passes and responses: a length is fixed beforehand");
  return {};
}

Status Reader::ReadObjective(const Node& node, const Place& place) {
  return ReadMap(node, place,
                 {{"metric", TextInto(file_.objective.metric)},
                  {"better", [this](const Node& value, const Place& here) -> Status {
                     const std::string text = TRY(ReadText(value, here));
                     if (text != "higher" && text != "lower")
                       return Refuse(here, fmt::format("\"{}\" is none of higher, lower", text));
                     file_.objective.better = text == "higher" ? Better::kHigher : Better::kLower;
                     return {};
                   }}});
}

Status Reader::ReadTargets(const Node& node, const Place& place) {
  Targets& targets = file_.targets;
  return ReadMap(node, place,
                 {{"p99_ms", NumberInto(targets.p99_ms, 1e-6, 1e9)},
                  {"images_per_s", NumberInto(targets.images_per_s, 1e-9, 1e12)},
                  {"price_per_hour", [this](const Node& n, const Place& p) { return ReadPrices(n, p); }}});
}

Status Reader::ReadPrices(const Node& node, const Place& place) {
  return ReadEach(node, place, [&](const std::string& name, const Node& value, const Place& here) -> Status {
    if (auto checked = CheckLevel("architecture", name); !checked)
      return Refuse(here, checked.error().message);
    file_.targets.price_per_hour[name] = TRY(ReadNumber<double>(value, here, 0, 1e9));
    return {};
  });
}

Status Reader::ReadShapes(const Node& node, const Place& place) {
  return ReadEach(node, place, [&](const std::string& name, const Node& value, const Place& here) -> Status {
    if (!value.IsSequence() || value.size() == 0)
      return Refuse(here, "wants a list of sizes, such as [3, 224, 224]");
    for (const auto& item : value)
      file_.shapes[name].push_back(
          TRY(ReadNumber<int64_t>(item, PlaceOf(item, here.key), 1, int64_t{1} << 40)));
    return {};
  });
}

Status Reader::ReadX(const Node& node, const Place& place, Figure& figure) {
  figure.x = TRY(ReadText(node, place));
  TRY_STATUS(CheckFactor(*figure.x, place));
  if (TakesNumbers(*figure.x)) return {};
  return Refuse(place,
                fmt::format("{} has no numbers to draw along; leave x out for bars side by side", *figure.x));
}

Status Reader::ReadSeries(const Node& node, const Place& place, Figure& figure) {
  std::vector<std::pair<std::string, Place>> names;
  if (node.IsSequence()) {
    for (const auto& item : node)
      names.emplace_back(TRY(ReadText(item, PlaceOf(item, place.key))), PlaceOf(item, place.key));
  } else {
    names.emplace_back(TRY(ReadText(node, place)), place);
  }
  for (auto& [name, at] : names) {
    TRY_STATUS(CheckFactor(name, at));
    figure.series.push_back(std::move(name));
  }
  return {};
}

Status Reader::ReadWhere(const Node& node, const Place& place, Figure& figure) {
  if (!node.IsSequence()) {
    figure.where.push_back(TRY(ReadLists(node, place, Many::kLists)));
    return {};
  }
  for (const auto& item : node)
    figure.where.push_back(TRY(ReadLists(item, PlaceOf(item, place.key), Many::kLists)));
  return {};
}

Status Reader::ReadFigures(const Node& node, const Place& place) {
  if (!node.IsSequence()) return Refuse(place, "wants a list of figures");
  for (const auto& item : node) {
    Figure figure;
    const Place at = PlaceOf(item, "figures");
    TRY_STATUS(ReadMap(item, at,
                       {{"title", TextInto(figure.title)},
                        {"metric", TextInto(figure.metric)},
                        {"x", [&](const Node& n, const Place& p) { return ReadX(n, p, figure); }},
                        {"series", [&](const Node& n, const Place& p) { return ReadSeries(n, p, figure); }},
                        {"where", [&](const Node& n, const Place& p) { return ReadWhere(n, p, figure); }}}));
    if (figure.title.empty()) return Refuse(at, "wants a title");
    if (!figure.x && !figure.series.empty())
      return Refuse(at, "series want an x; without it each configuration is a bar");
    file_.figures.push_back(std::move(figure));
  }
  return {};
}

// Reads true, false, or the levels of the waterfall's end.
Status Reader::ReadWaterfall(const Node& node, const Place& place) {
  if (node.IsMap()) {
    file_.waterfall = TRY(ReadLists(node, place, Many::kOneEach));
    return {};
  }
  const std::string text = TRY(ReadText(node, place));
  if (text != "true" && text != "false") return Refuse(place, "wants true, false or levels of factors");
  if (text == "true") file_.waterfall.emplace();
  return {};
}

// Whether no trial runs a model of this program: every server is another one that names its model.
bool ServersKnowTheirModel(const StudyFile& file) {
  for (const LevelLists* lists : {&file.factors, &file.fixed}) {
    const auto server = std::ranges::find(*lists, "server", &FactorLevels::factor);
    if (server == lists->end()) continue;
    return std::ranges::all_of(server->levels,
                               [](const Json& one) { return one.is_object() && one.contains("model"); });
  }
  return false;
}

// Checks the rules that concern several keys.
Status Reader::CheckWhole(const Place& top) const {
  if (file_.name.empty()) return Refuse(top, "wants study: its name");
  std::vector<std::string> given;
  for (const LevelLists* lists : {&file_.factors, &file_.fixed}) {
    for (const FactorLevels& one : *lists) {
      if (std::ranges::find(given, one.factor) != given.end())
        return Refuse(top,
                      fmt::format("{} is given twice: once under factors, fixed or at the top", one.factor));
      given.push_back(one.factor);
    }
  }
  if (std::ranges::find(given, "model") == given.end() && !ServersKnowTheirModel(file_))
    return Refuse(top, "wants model: what the trials run");
  for (const LevelLists* lists : {&file_.base, &file_.reference}) {
    for (const FactorLevels& one : *lists) {
      given.push_back(one.factor);
      const auto fixed = std::ranges::find(file_.fixed, one.factor, &FactorLevels::factor);
      if (fixed != file_.fixed.end())
        return Refuse(top, fmt::format("{} is fixed: base and reference cannot change it", one.factor));
    }
  }
  for (const LevelLists& lists : file_.also) {
    for (const FactorLevels& one : lists) given.push_back(one.factor);
  }
  const auto is_given = [&](std::string_view factor) {
    return std::ranges::find(given, factor) != given.end();
  };
  if (file_.server_host && is_given("network"))
    return Refuse(
        top,
        "network has hosts, a second node whose link is what it is: leave its rate, delay and other "
        "levels out");
  for (const auto* lists : {&file_.factors, &file_.fixed, &file_.base, &file_.reference}) {
    for (const FactorLevels& one : *lists) {
      if (one.factor != "clients" || file_.client_hosts.empty()) continue;
      for (const Json& level : one.levels)
        if (level.get<size_t>() > file_.client_hosts.size())
          return Refuse(top, fmt::format("clients {}: network.hosts.clients names {} hosts", DumpJson(level),
                                         file_.client_hosts.size()));
    }
  }
  for (const Figure& figure : file_.figures) {
    if (figure.x && !is_given(*figure.x))
      return Refuse(top, fmt::format("figure \"{}\": no configuration has {}, its x: give it levels",
                                     figure.title, *figure.x));
  }
  return {};
}

Status Reader::Read(const Node& root, const Place& top) {
  const auto call = [this](Status (Reader::*read)(const Node&, const Place&)) {
    return [this, read](const Node& node, const Place& place) { return (this->*read)(node, place); };
  };
  TRY_STATUS(ReadMap(root, top,
                     {{"study", Into(file_.name, ReadName)},
                      {"question", TextInto(file_.question)},
                      {"model", FactorAtTop("model")},
                      {"data", TextInto(file_.data)},
                      {"server", FactorAtTop("server")},
                      {"factors", ListsInto(file_.factors, Many::kLists)},
                      {"fixed", ListsInto(file_.fixed, Many::kOneEach)},
                      {"design", call(&Reader::ReadLayout)},
                      {"base", ListsInto(file_.base, Many::kOneEach)},
                      {"reference", ListsInto(file_.reference, Many::kOneEach)},
                      {"also", call(&Reader::ReadAlso)},
                      {"except", call(&Reader::ReadExcept)},
                      {"repeats", NumberInto(file_.repeats, 1, 10'000)},
                      {"trial", call(&Reader::ReadTrial)},
                      {"network", call(&Reader::ReadNetwork)},
                      {"seed", NumberInto(file_.seed, uint64_t{0}, uint64_t{INT64_MAX})},
                      {"shapes", call(&Reader::ReadShapes)},
                      {"objective", call(&Reader::ReadObjective)},
                      {"targets", call(&Reader::ReadTargets)},
                      {"figures", call(&Reader::ReadFigures)},
                      {"waterfall", call(&Reader::ReadWaterfall)}}));
  return CheckWhole(top);
}

}  // namespace

Result<StudyFile> ParseStudy(std::string_view text) {
  Reader reader;
  TRY_STATUS(yaml::ReadFile(text, kMaxBytes, "study file",
                            [&](const Node& root, const Place& top) { return reader.Read(root, top); }));
  return reader.Take();
}

}  // namespace weir::study

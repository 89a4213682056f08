#include "prepare/feed.h"

#include <memory>
#include <utility>

#include "base/fields.h"
#include "base/seed.h"
#include "dataset/hash.h"

namespace weir::prepare {

template <typename F>
void Describe(F& fields, Described<F, Feed::Arguments>& arguments) {
  fields.Unless("labels", arguments.labels);
  fields("sample", arguments.sample);
  fields("seed", arguments.seed);
}

Json Feed::Arguments::ToJson() const { return FieldsToJson(*this); }

Feed Pick(Feed feed, std::vector<int64_t> indices) {
  for (int64_t i = feed.count - feed.not_taken; i < feed.count; ++i) indices.push_back(i);
  const auto shared = std::make_shared<const std::vector<int64_t>>(std::move(indices));
  Feed picked = feed;
  picked.count = static_cast<int64_t>(shared->size());
  picked.get = [get = feed.get, shared](int64_t index) { return get((*shared)[static_cast<size_t>(index)]); };
  for (auto text : {&Feed::describe, &Feed::state, &Feed::name}) {
    if (!(feed.*text)) continue;
    picked.*
        text = [of = feed.*text, shared](int64_t index) { return of((*shared)[static_cast<size_t>(index)]); };
  }
  if (feed.label) {
    picked.label = [of = feed.label, shared](int64_t index) {
      return of((*shared)[static_cast<size_t>(index)]);
    };
  }
  return picked;
}

LabelReport ReportLabels(const Feed& feed) {
  LabelReport report;
  report.unused = feed.unused_labels;
  report.unused_examples = feed.unused_label_examples;
  if (!feed.label) return report;
  for (int64_t i = 0; i < feed.count - feed.not_taken; ++i) {
    if (feed.label(i)) {
      report.labelled += 1;
      continue;
    }
    report.unlabelled += 1;
    if (report.unlabelled_examples.size() < LabelReport::kExamples && feed.name)
      report.unlabelled_examples.push_back(feed.name(i));
  }
  report.asked_for = report.labelled > 0 || !feed.arguments.labels.empty();
  return report;
}

// Selection sampling (Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm S).
std::vector<int64_t> SampleOf(int64_t total, int64_t count, uint64_t seed) {
  Random random = Seed(seed).Stream("sample").MakeRandom();
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < total && std::ssize(chosen) < count; ++i) {
    const int64_t wanted = count - std::ssize(chosen), left = total - i;
    if (random.Integer(0, left - 1) < wanted) chosen.push_back(i);
  }
  return chosen;
}

std::string HashOfInputs(const Feed& feed) {
  dataset::StreamHash hash;
  for (int64_t i = 0; i < feed.count && feed.describe; ++i) {
    const std::string text = feed.describe(i);
    hash.Add(std::as_bytes(std::span(text)));
  }
  const std::string count = std::to_string(feed.count);
  hash.Add(std::as_bytes(std::span(count)));
  return hash.Digest();
}

}  // namespace weir::prepare

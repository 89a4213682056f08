#include <fmt/format.h>

#include <algorithm>

#include "predict/predictor.h"

namespace weir::predict {

std::string Predictor::Explain() const {
  std::vector<std::string> bases;  // several estimators correct the same
  const auto number_of = [&](const std::string& base) {
    const auto there = std::ranges::find(bases, base);
    const auto number = there - bases.begin() + 1;
    if (there == bases.end()) bases.push_back(base);
    return number;
  };
  std::string text;
  for (const Model& model : models_) {
    const Estimator& estimator = model.estimator;
    const std::string base =
        estimator.linear() ? estimator.linear()->Text(spec()) : estimator.physical()->Text(spec());
    text += fmt::format("{}: log(time) is {} on [{}]\n", ToString(model.split), estimator.name(),
                        number_of(base));
  }
  for (size_t i = 0; i < bases.size(); ++i) text += fmt::format("[{}]\n{}", i + 1, bases[i]);
  text += "terms\n";
  for (const Named& term : spec().terms)
    text += fmt::format("  {} = {}\n", term.name, term.expression.text());
  return text;
}

}  // namespace weir::predict

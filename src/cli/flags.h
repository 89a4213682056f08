// The flags of one verb. A thin front to the flag parser, so that only one file pays for its headers.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/choices.h"
#include "base/clock.h"
#include "base/error.h"

namespace weir::cli {

class Flags {
 public:
  // `summary` is one sentence; `example` a command that works.
  Flags(const std::string& verb, const std::string& summary, const std::string& example);
  ~Flags();

  // Each puts what the user gave into its target, which keeps its default otherwise. `name` is "--name", or
  // "-o,--output" with a short form, or "NAME" for what stands without a flag. An empty text is refused.
  void Text(const std::string& name, std::string& target, const std::string& help);
  void Required(const std::string& name, std::string& target, const std::string& help);
  void Texts(const std::string& name, std::vector<std::string>& target, const std::string& help,
             bool required);
  // One value after each time it is given.
  void Repeated(const std::string& name, std::vector<std::string>& target, const std::string& help);
  void Optional(const std::string& name, std::string& target, const std::string& help);
  // Without a value after it, or with an empty one, it has the value `bare`.
  void TextOrBare(const std::string& name, std::string& target, const std::string& bare,
                  const std::string& help);
  void Integers(const std::string& name, std::vector<int>& target, const std::string& help);
  // Whole numbers and numbers go straight into the field of an options struct. `unit` is the target's value
  // for 1, such as 1 << 20 where the user gives MiB.
  template <std::integral Target>
  void Integer(const std::string& name, Target& target, int64_t low, int64_t high, const std::string& help,
               int64_t unit = 1) {
    AddWhole(
        name, static_cast<int64_t>(target) / unit, low, high,
        [&target, unit](int64_t value) { target = static_cast<Target>(value * unit); }, help);
  }
  template <std::integral Target>
  void Integer64(const std::string& name, Target& target, int64_t low, int64_t high,
                 const std::string& help) {
    Integer(name, target, low, high, help);
  }
  template <std::floating_point Target>
  void Number(const std::string& name, Target& target, double low, double high, const std::string& help) {
    AddNumber(
        name, target, low, high, [&target](double value) { target = static_cast<Target>(value); }, help);
  }
  // No value where the flag is not given.
  template <typename Target>
  void Number(const std::string& name, std::optional<Target>& target, double low, double high,
              const std::string& help) {
    AddNumber(
        name, std::nullopt, low, high, [&target](double value) { target = static_cast<Target>(value); },
        help);
  }
  // A number of seconds; `unit` is another unit of the number, such as 1ms.
  template <typename Rep, typename Period>
  void Seconds(const std::string& name, std::chrono::duration<Rep, Period>& target, double low, double high,
               const std::string& help, std::chrono::duration<double> unit = std::chrono::seconds(1)) {
    using Target = std::chrono::duration<Rep, Period>;
    AddNumber(
        name, std::chrono::duration<double>(target) / unit, low, high,
        [&target, unit](double value) { target = std::chrono::duration_cast<Target>(value * unit); }, help);
  }
  // A time with its unit, as 100ms; at least `least`. `shown` is the default in the help.
  void Time(const std::string& name, Duration& target, Duration least, const std::string& shown,
            const std::string& help);
  // The choice whose ToString is the user's word.
  template <typename Value>
  void OneOf(const std::string& name, Value& target, std::initializer_list<Value> choices,
             const std::string& help) {
    std::vector<std::pair<std::string, Value>> named;
    for (const Value choice : choices) named.emplace_back(ToString(choice), choice);
    OneOf(name, target, std::move(named), help);
  }
  // The same where the words of the flag are its own.
  template <typename Value>
  void OneOf(const std::string& name, Value& target, std::vector<std::pair<std::string, Value>> choices,
             const std::string& help) {
    std::vector<std::string> words;
    std::string shown;
    for (const auto& [word, choice] : choices) {
      words.push_back(word);
      if (choice == target) shown = word;
    }
    AddChoice(
        name, shown, words,
        [&target, choices = std::move(choices)](const std::string& given) {
          for (const auto& [word, choice] : choices) {
            if (word == given) target = choice;
          }
        },
        help);
  }
  // The choice whose word is the user's. A target that is an optional has no default.
  template <typename Target, typename Value, size_t kCount>
  void OneOf(const std::string& name, Target& target, const Choices<Value, kCount>& choices,
             const std::string& help) {
    std::vector<std::string> words;
    std::string shown;
    for (const Choice<Value>& choice : choices) {
      words.emplace_back(choice.word);
      if (target == choice.value) shown = choice.word;
    }
    AddChoice(
        name, shown, words,
        [&target, &choices](const std::string& given) { target = *FindChoice(choices, given); }, help);
  }
  // The value that `parse`, from a text to a Result, makes of the text. `shown` is the default in the help.
  template <typename Target, typename Parse>
  void Parsed(const std::string& name, Target& target, Parse parse, const std::string& help,
              const std::string& shown = "") {
    AddParsed(
        name, shown,
        [&target, parse](const std::string& text) -> Status {
          target = TRY(parse(text));
          return {};
        },
        help);
  }
  void Switch(const std::string& name, bool& target, const std::string& help);

  // Nothing when all is well; otherwise the exit status (0 after --help, 2 after a fault, both said to the
  // user).
  std::optional<int> Parse(const std::vector<std::string>& arguments);
  // Returns the flags that the user gave, by their long names: "--output", or "NAME".
  std::vector<std::string> Given() const;

 private:
  void AddWhole(const std::string& name, int64_t shown, int64_t low, int64_t high,
                const std::function<void(int64_t)>& put, const std::string& help);
  void AddNumber(const std::string& name, std::optional<double> shown, double low, double high,
                 const std::function<void(double)>& put, const std::string& help);
  void AddChoice(const std::string& name, const std::string& shown, const std::vector<std::string>& words,
                 const std::function<void(const std::string&)>& put, const std::string& help);
  void AddParsed(const std::string& name, const std::string& shown,
                 const std::function<Status(const std::string&)>& put, const std::string& help);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::cli

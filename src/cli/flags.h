// The flags of one verb. A thin front to the flag parser, so that only one file pays for its headers.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  void Integer(const std::string& name, int& target, int low, int high, const std::string& help);
  void Integer64(const std::string& name, int64_t& target, int64_t low, int64_t high,
                 const std::string& help);
  void Number(const std::string& name, double& target, double low, double high, const std::string& help);
  void Choice(const std::string& name, std::string& target, const std::vector<std::string>& choices,
              const std::string& help);
  void Switch(const std::string& name, bool& target, const std::string& help);

  // Nothing when all is well; otherwise the exit status (0 after --help, 2 after a fault, both said to the
  // user).
  std::optional<int> Parse(const std::vector<std::string>& arguments);
  // Returns the flags that the user gave, by their long names: "--output", or "NAME".
  std::vector<std::string> Given() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the choice whose ToString is `word`. REQUIRES: there is one; Flags::Choice has checked it.
template <typename Choice>
Choice ChoiceOf(const std::string& word, std::initializer_list<Choice> choices) {
  return *std::ranges::find_if(choices, [&](Choice choice) { return ToString(choice) == word; });
}

}  // namespace weir::cli

#include "cli/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <CLI/CLI.hpp>

#include "base/duration.h"
#include "base/secrets.h"

namespace weir::cli {

struct Flags::State {
  CLI::App app;
};

namespace {

// The library by itself calls "1.5" out of the range, and takes for the largest number what is larger.
std::string CheckWhole(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  (void)std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0') return "\"" + text + "\" is not a whole number";
  return errno == ERANGE ? text + " is beyond what a whole number can be" : "";
}

// A variable of a script that was not set; as what the user left out it would be ignored without a word.
std::string CheckText(const std::string& text) {
  return text.empty() ? "\"\" says nothing: give it a value, or leave it out" : "";
}

template <typename Target>
CLI::Option* AddText(CLI::App& app, const std::string& name, Target& target, const std::string& help) {
  return app.add_option(name, target, help)->check(CheckText);
}

}  // namespace

Flags::Flags(const std::string& verb, const std::string& summary, const std::string& example)
    : state_(new State) {
  state_->app.name("weir " + verb);
  state_->app.description(summary);
  state_->app.footer("Example:\n  " + example);
  state_->app.get_formatter()->column_width(32);
}
Flags::~Flags() = default;

void Flags::Text(const std::string& name, std::string& target, const std::string& help) {
  AddText(state_->app, name, target, help)->capture_default_str();
}
void Flags::Required(const std::string& name, std::string& target, const std::string& help) {
  AddText(state_->app, name, target, help)->required();
}
void Flags::Texts(const std::string& name, std::vector<std::string>& target, const std::string& help,
                  bool required) {
  AddText(state_->app, name, target, help)->required(required);
}
void Flags::Repeated(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  AddText(state_->app, name, target, help)->allow_extra_args(false);
}
void Flags::Optional(const std::string& name, std::string& target, const std::string& help) {
  AddText(state_->app, name, target, help);
}
void Flags::TextOrBare(const std::string& name, std::string& target, const std::string& bare,
                       const std::string& help) {
  state_->app.add_option(name, target, help)->expected(0, 1)->default_str(bare);
}
void Flags::Integers(const std::string& name, std::vector<int>& target, const std::string& help) {
  state_->app.add_option(name, target, help);
}
void Flags::AddWhole(const std::string& name, int64_t shown, int64_t low, int64_t high,
                     const std::function<void(int64_t)>& put, const std::string& help) {
  state_->app.add_option_function<int64_t>(name, put, help)
      ->check(CheckWhole)
      ->check(CLI::Range(low, high))
      ->default_str(std::to_string(shown));
}
void Flags::AddNumber(const std::string& name, std::optional<double> shown, double low, double high,
                      const std::function<void(double)>& put, const std::string& help) {
  const CLI::Validator number(
      [](const std::string& text) {  // "nan" lies in every range
        return text.find_first_of("nN") == std::string::npos ? "" : "\"" + text + "\" is not a number";
      },
      "");
  CLI::Option* option =
      state_->app.add_option_function<double>(name, put, help)->check(number)->check(CLI::Range(low, high));
  if (shown) option->default_str(fmt::format("{:g}", *shown));
}
void Flags::AddChoice(const std::string& name, const std::string& shown,
                      const std::vector<std::string>& words,
                      const std::function<void(const std::string&)>& put, const std::string& help) {
  state_->app.add_option_function<std::string>(name, put, help)
      ->check(CLI::IsMember(words))
      ->default_str(shown);
}
void Flags::AddParsed(const std::string& name, const std::string& shown,
                      const std::function<Status(const std::string&)>& put, const std::string& help) {
  const auto put_or_refuse = [name, put](const std::string& text) {
    const Status taken = put(text);
    if (taken) return;
    const std::string& why = taken.error().message;
    if (why.starts_with(name)) throw CLI::ValidationError(why, CLI::ExitCodes::ValidationError);
    throw CLI::ValidationError(name, why);
  };
  state_->app.add_option_function<std::string>(name, put_or_refuse, help)
      ->check(CheckText)
      ->default_str(shown);
}
void Flags::Time(const std::string& name, Duration& target, Duration least, const std::string& shown,
                 const std::string& help) {
  const auto parse = [least](const std::string& text) -> Result<Duration> {
    const Duration given = TRY(ParseDuration(text));
    if (given >= least) return given;
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is less than {:g} ms", text, Milliseconds(least)));
  };
  Parsed(name, target, parse, help, shown);
}
void Flags::Switch(const std::string& name, bool& target, const std::string& help) {
  state_->app.add_flag(name, target, help);
}

std::optional<int> Flags::Parse(const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as the parser wants them
    state_->app.parse(reversed);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::fputs(state_->app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ExtrasError&) {
    const std::string name = state_->app.get_name();
    std::fprintf(stderr, "%s: there is no flag or argument \"%s\"\n  %s --help lists them\n", name.c_str(),
                 WithoutSecrets(state_->app.remaining().front()).c_str(), name.c_str());
    return 2;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s\n  %s --help lists the flags\n", state_->app.get_name().c_str(),
                 WithoutSecrets(error.what()).c_str(), state_->app.get_name().c_str());
    return 2;
  }
}

std::vector<std::string> Flags::Given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : state_->app.get_options()) {
    if (option->count() > 0) names.push_back(option->get_name());
  }
  return names;
}

}  // namespace weir::cli

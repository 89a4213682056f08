#include "load/inputs/answer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/csv.h"
#include "base/json.h"

namespace weir::load {
namespace {

using infer::DType;
using infer::Tensor;

template <typename Float>
double At(const Tensor& tensor, size_t index) {
  Float value;
  std::memcpy(&value, tensor.data.data() + index * sizeof value, sizeof value);
  return value;
}

using Reading = double (*)(const Tensor&, size_t);

// Nothing for what are not floats of the machine.
Reading ReadingOf(DType dtype) {
  if (dtype == DType::kFp32) return At<float>;
  if (dtype == DType::kFp64) return At<double>;
  return nullptr;
}

size_t ElementsOf(const Tensor& tensor) {
  return tensor.data.size() / (tensor.dtype == DType::kFp64 ? sizeof(double) : sizeof(float));
}

std::optional<std::string> CompareFloats(const Tensor& got, const Tensor& wanted, Reading read,
                                         double tolerance) {
  double largest = 0;
  const size_t count = ElementsOf(wanted);
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(read(wanted, i)));
  for (size_t i = 0; i < count; ++i) {
    const double a = read(got, i), b = read(wanted, i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * largest) continue;
    return fmt::format("output {}: element {} is {:.9g}, and {:.9g} was expected", wanted.name, i, a, b);
  }
  return std::nullopt;
}

std::optional<std::string> Compare(const Tensor& got, const Tensor& wanted, double tolerance) {
  if (got.dtype != wanted.dtype || got.shape != wanted.shape || got.data.size() != wanted.data.size())
    return fmt::format("output {} is {} {}, and {} {} was expected", wanted.name, infer::ToString(got.dtype),
                       infer::ToString(got.shape), infer::ToString(wanted.dtype),
                       infer::ToString(wanted.shape));
  const Reading read = ReadingOf(wanted.dtype);
  if (tolerance > 0 && read != nullptr) return CompareFloats(got, wanted, read, tolerance);
  const auto [mine, other] = std::ranges::mismatch(got.data.span(), wanted.data.span());
  if (mine == got.data.span().end()) return std::nullopt;
  const size_t byte = static_cast<size_t>(mine - got.data.span().begin());
  if (read == nullptr) return fmt::format("output {}: byte {} is not what was expected", wanted.name, byte);
  const size_t element = byte / (wanted.data.size() / std::max<size_t>(1, ElementsOf(wanted)));
  return fmt::format("output {}: element {} is {:.9g}, and {:.9g} was expected", wanted.name, element,
                     read(got, element), read(wanted, element));
}

// The class of the greatest of `columns` values from `begin` on; the lower index first.
int BestClass(const Tensor& scores, Reading read, size_t begin, size_t columns, int first_class) {
  size_t best = static_cast<size_t>(first_class);
  for (size_t i = best + 1; i < columns; ++i) {
    if (read(scores, begin + i) > read(scores, begin + best)) best = i;
  }
  return static_cast<int>(best) - first_class;
}

std::string LastPart(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace

AnswerCheck HasOutputs(std::vector<std::vector<Tensor>> expected, double tolerance) {
  return [expected = std::move(expected), tolerance](
             size_t request, const infer::Response& response) -> std::optional<std::string> {
    for (const Tensor& wanted : expected[request]) {
      const auto got = std::ranges::find(response.outputs, wanted.name, &Tensor::name);
      if (got == response.outputs.end()) return fmt::format("output {} is missing", wanted.name);
      if (auto fault = Compare(*got, wanted, tolerance)) return fault;
    }
    return std::nullopt;
  };
}

AnswerCheck HasTopClasses(std::vector<std::vector<int>> classes, int first_class) {
  return [classes = std::move(classes), first_class](
             size_t request, const infer::Response& response) -> std::optional<std::string> {
    const std::vector<int>& wanted = classes[request];
    if (response.outputs.empty()) return "there is no output";
    const Tensor& scores = response.outputs.front();
    const Reading read = ReadingOf(scores.dtype);
    const size_t count = read == nullptr ? 0 : ElementsOf(scores), columns = count / wanted.size();
    if (columns == 0 || columns * wanted.size() != count || columns <= static_cast<size_t>(first_class))
      return fmt::format("output {} {} {} is not a row of scores for each of {} pictures", scores.name,
                         infer::ToString(scores.dtype), infer::ToString(scores.shape), wanted.size());
    for (size_t row = 0; row < wanted.size(); ++row) {
      const int best = BestClass(scores, read, row * columns, columns, first_class);
      if (best != wanted[row])
        return fmt::format("picture {} of the request is of class {}, and {} was expected", row, best,
                           wanted[row]);
    }
    return std::nullopt;
  };
}

void TopClasses::Add(std::map<std::string, Classes>& classes, const std::string& name,
                     const std::string& file, int value) {
  const auto [at, is_new] = classes.try_emplace(name, Classes{.first = value, .file = file, .other = {}});
  Classes& known = at->second;
  if (is_new || known.differ || value == known.first) return;
  known.differ = true;
  known.other = file;
}

Result<int> TopClasses::Of(const std::string& picture) const {
  const auto exact = by_name_.find(picture);
  const auto last = by_last_part_.find(LastPart(picture));
  const bool is_exact = exact != by_name_.end();
  if (!is_exact && last == by_last_part_.end())
    return Invalid(fmt::format("it has no answer for {}: make it with weir run over the same pictures",
                               EscapeBytes(picture)));
  const Classes& found = is_exact ? exact->second : last->second;
  if (!found.differ) return found.first;
  if (is_exact) return Invalid(fmt::format("it has several classes for {}", EscapeBytes(picture)));
  return Invalid(fmt::format(
      "it has several classes for {}, {} and {} among them: make it with weir run over the same folders, "
      "named the same way",
      EscapeBytes(last->first), EscapeBytes(found.file), EscapeBytes(found.other)));
}

Result<TopClasses> TopClasses::Read(std::string_view text) {
  const Csv csv = TRY(ParseCsv(text));
  const auto column = [&](std::string_view name) {
    return std::ranges::find(csv.columns, name) - csv.columns.begin();
  };
  const auto file = column("file"), status = column("status"), rank = column("rank"), best = column("class");
  const auto columns = std::ssize(csv.columns);
  if (file == columns || status == columns || rank == columns || best == columns)
    return Invalid("it is no predictions file: one has the columns file, status, rank and class");
  TopClasses classes;
  for (int64_t i = 0; i < csv.rows(); ++i) {
    const auto row = csv.row(i);
    const auto cell = [&](std::ptrdiff_t at) -> const std::string& { return row[static_cast<size_t>(at)]; };
    if (cell(status) != "ok" || cell(rank) != "1") continue;
    int value = -1;
    const std::string& word = cell(best);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 0)
      return Invalid(fmt::format("line {}: the class \"{}\" is no number of one",
                                 csv.lines[static_cast<size_t>(i)], EscapeBytes(word)));
    Add(classes.by_name_, cell(file), cell(file), value);
    Add(classes.by_last_part_, LastPart(cell(file)), cell(file), value);
  }
  return classes;
}

}  // namespace weir::load

#include "load/inputs/answer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>
#include <type_traits>

#include "base/csv.h"
#include "base/json.h"
#include "infer/half.h"

namespace weir::load {
namespace {

using infer::DType;
using infer::Tensor;

template <typename Float>
double At(const Tensor& tensor, size_t index) {
  Float value;
  std::memcpy(&value, tensor.data.data() + index * sizeof value, sizeof value);
  return static_cast<double>(static_cast<std::conditional_t<sizeof value == 8, double, float>>(value));
}

// How a type of floats is read.
struct Floats {
  double (*at)(const Tensor&, size_t);
  double step = 0;  // the largest distance of neighbours, relative
  double most = 0;  // the greatest finite value
};

// Null for what are not floats.
const Floats* FloatsOf(DType dtype) {
  static constexpr Floats kHalf{At<infer::Fp16>, 0x1p-10, 65504}, kBrain{At<infer::Bf16>, 0x1p-7, 0x1.fep127},
      kSingle{At<float>, 0x1p-23, FLT_MAX}, kDouble{At<double>, 0x1p-52, DBL_MAX};
  switch (dtype) {
    case DType::kFp16:
      return &kHalf;
    case DType::kBf16:
      return &kBrain;
    case DType::kFp32:
      return &kSingle;
    case DType::kFp64:
      return &kDouble;
    default:
      return nullptr;
  }
}

size_t ElementsOf(const Tensor& tensor) { return tensor.data.size() / infer::ByteSize(tensor.dtype); }

// The scale of an output: infinities, and the greatest value of the type, which stands for one, are none.
double LargestOf(const Tensor& wanted, const Floats& floats) {
  double largest = 0;
  for (size_t i = 0; i < ElementsOf(wanted); ++i) {
    const double magnitude = std::abs(floats.at(wanted, i));
    if (magnitude < floats.most) largest = std::max(largest, magnitude);
  }
  return largest;
}

// `margin`: absolute, from the scale of the output.
bool LiesNear(double got, double wanted, double margin, double tolerance, double step) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return true;
  if (!std::isfinite(got) || !std::isfinite(wanted)) return false;
  const double apart = std::abs(got - wanted), own = std::max(tolerance, step) * std::abs(wanted);
  return apart <= std::max(margin, own);
}

// Without a tolerance: to the last bit, but one NaN is as good as another, as not every form keeps its bits.
bool IsSame(const Tensor& got, const Tensor& wanted, size_t element, const Floats& floats) {
  const size_t size = infer::ByteSize(wanted.dtype), at = element * size;
  return std::memcmp(got.data.data() + at, wanted.data.data() + at, size) == 0 ||
         (std::isnan(floats.at(got, element)) && std::isnan(floats.at(wanted, element)));
}

std::optional<std::string> CompareFloats(const Tensor& got, const Tensor& wanted, const Floats& floats,
                                         double tolerance) {
  const double margin = tolerance > 0 ? tolerance * LargestOf(wanted, floats) : 0;
  for (size_t i = 0; i < ElementsOf(wanted); ++i) {
    const double a = floats.at(got, i), b = floats.at(wanted, i);
    if (tolerance > 0 ? LiesNear(a, b, margin, tolerance, floats.step) : IsSame(got, wanted, i, floats))
      continue;
    return fmt::format("output {}: element {} is {:.9g}, and {:.9g} was expected", wanted.name, i, a, b);
  }
  return std::nullopt;
}

std::optional<std::string> Compare(const Tensor& got, const Tensor& wanted, double tolerance) {
  if (got.dtype != wanted.dtype || got.shape != wanted.shape || got.data.size() != wanted.data.size())
    return fmt::format("output {} is {} {}, and {} {} was expected", wanted.name, infer::ToString(got.dtype),
                       infer::ToString(got.shape), infer::ToString(wanted.dtype),
                       infer::ToString(wanted.shape));
  if (const Floats* floats = FloatsOf(wanted.dtype)) return CompareFloats(got, wanted, *floats, tolerance);
  const auto [mine, other] = std::ranges::mismatch(got.data.span(), wanted.data.span());
  if (mine == got.data.span().end()) return std::nullopt;
  return fmt::format("output {}: byte {} is not what was expected", wanted.name,
                     mine - got.data.span().begin());
}

// The class of the greatest of `columns` values from `begin` on, the lower index first; nothing where one is
// no number.
std::optional<int> BestClass(const Tensor& scores, const Floats& floats, size_t begin, size_t columns,
                             int first_class) {
  size_t best = static_cast<size_t>(first_class);
  for (size_t i = 0; i < columns; ++i) {
    if (std::isnan(floats.at(scores, begin + i))) return std::nullopt;
    if (i > best && floats.at(scores, begin + i) > floats.at(scores, begin + best)) best = i;
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
    const Floats* floats = FloatsOf(scores.dtype);
    const size_t count = floats == nullptr ? 0 : ElementsOf(scores), columns = count / wanted.size();
    if (columns == 0 || columns * wanted.size() != count || columns <= static_cast<size_t>(first_class))
      return fmt::format("output {} {} {} is not a row of floats for each of {} pictures", scores.name,
                         infer::ToString(scores.dtype), infer::ToString(scores.shape), wanted.size());
    for (size_t row = 0; row < wanted.size(); ++row) {
      const auto best = BestClass(scores, *floats, row * columns, columns, first_class);
      if (!best) return fmt::format("the scores of picture {} of the request are not numbers (NaN)", row);
      if (*best != wanted[row])
        return fmt::format("picture {} of the request is of class {}, and {} was expected", row, *best,
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

#include "run/answers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"

namespace weir::run {
namespace {

// Keeps the `top` best of scores[first..count) by (score descending, index ascending).
template <typename T>
std::vector<Answer> Best(const T* scores, int64_t count, int first, int top) {
  const auto better = [](const Answer& a, const Answer& b) {
    return a.score > b.score || (a.score == b.score && a.class_index < b.class_index);
  };
  std::vector<Answer> best;
  best.reserve(static_cast<size_t>(top) + 1);
  for (int64_t i = first; i < count; ++i) {
    const Answer candidate{static_cast<int>(i - first), double{scores[i]}};
    if (std::ssize(best) == top && !better(candidate, best.back())) continue;
    best.insert(std::upper_bound(best.begin(), best.end(), candidate, better), candidate);
    if (std::ssize(best) > top) best.pop_back();
  }
  return best;
}

// Probabilities over all outputs, the background included (the usual softmax, shifted by the largest score).
template <typename T>
void TurnIntoProbabilities(const T* scores, int64_t count, std::vector<Answer>& answers) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, double{scores[i]});
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(double{scores[i]} - largest);
  for (Answer& answer : answers) answer.score = std::exp(answer.score - largest) / sum;
}

template <typename T>
Result<std::vector<Answer>> Rank(const T* scores, int64_t count, const dataset::Recipe& recipe, int top) {
  if (std::any_of(scores, scores + count, [](T score) { return std::isnan(score); })) {
    return Fail(ErrorCode::kCorrupt, "the model's scores are not numbers (NaN)");
  }
  std::vector<Answer> answers = Best(scores, count, recipe.first_class, top);
  if (recipe.softmax) TurnIntoProbabilities(scores, count, answers);
  return answers;
}

}  // namespace

Result<std::vector<Answer>> RankAnswers(const infer::Tensor& scores, int64_t items, int64_t item,
                                        const dataset::Recipe& recipe, int top) {
  const int64_t elements = TRY(infer::ElementCount(scores.shape));
  const size_t element = infer::ByteSize(scores.dtype);
  if (scores.shape.empty() || scores.shape[0] != items || item >= items || elements % scores.shape[0] != 0 ||
      scores.data.size() != static_cast<size_t>(elements) * element) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("output {} of shape {} is no batch of {} scores",
                                                         scores.name, infer::ToString(scores.shape), items));
  }
  const int64_t count = elements / scores.shape[0];
  if (count <= recipe.first_class) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("output {} has {} scores an item and the recipe's first_class is {}", scores.name,
                            count, recipe.first_class));
  }
  const std::byte* begin = scores.data.data() + static_cast<size_t>(item * count) * element;
  switch (scores.dtype) {
    case infer::DType::kFp32:
      return Rank(reinterpret_cast<const float*>(begin), count, recipe, top);
    case infer::DType::kFp64:
      return Rank(reinterpret_cast<const double*>(begin), count, recipe, top);
    default:
      return Fail(ErrorCode::kUnsupported, fmt::format("output {} is {}: scores must be FP32 or FP64",
                                                       scores.name, infer::ToString(scores.dtype)));
  }
}

std::string CsvField(std::string_view text) {
  std::string cell = Defused(text);
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string field = "\"";
  for (const char c : cell) {
    if (c == '"') field += '"';
    field += c;
  }
  field += '"';
  return field;
}

Result<std::unique_ptr<AnswerWriter>> AnswerWriter::Create(const std::string& path) {
  struct stat facts{};
  const bool in_place = ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode);
  const std::string beside = in_place ? "" : TemporaryBeside(path);
  std::FILE* file = std::fopen((in_place ? path : beside).c_str(), "we");
  if (!file) return FailErrno(fmt::format("answers file {}", path), errno);
  std::unique_ptr<AnswerWriter> writer(new AnswerWriter(path, beside, file));
  std::fputs("file,status,rank,class,label,score,reason\n", file);
  return writer;
}

AnswerWriter::AnswerWriter(std::string path, std::string beside, std::FILE* file)
    : path_(std::move(path)), beside_(std::move(beside)), file_(file) {}

AnswerWriter::~AnswerWriter() {
  if (file_) std::fclose(file_);
  if (file_ && !beside_.empty()) ::unlink(beside_.c_str());
}

void AnswerWriter::Write(std::string_view file, const std::vector<Answer>& answers,
                         const std::vector<std::string>& labels) {
  const std::string name = CsvField(file);
  line_.clear();
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    const Answer& answer = answers[rank];
    const auto index = static_cast<size_t>(answer.class_index);
    fmt::format_to(std::back_inserter(line_), "{},ok,{},{},{},{:.6g},\n", name, rank + 1, answer.class_index,
                   index < labels.size() ? CsvField(labels[index]) : "", answer.score);
  }
  Put();
}

void AnswerWriter::WriteReject(std::string_view file, const image::Reject& reject) {
  const std::string detail = reject.detail.empty() ? "" : ": " + EscapeBytes(reject.detail);
  line_ = fmt::format("{},rejected,,,,,{}\n", CsvField(file),
                      CsvField(fmt::format("{}{}", ToString(reject.reason), detail)));
  Put();
}

void AnswerWriter::Put() {
  if (std::fwrite(line_.data(), 1, line_.size(), file_) != line_.size() && error_ == 0) error_ = errno;
}

Status AnswerWriter::Finish() {
  if (std::fflush(file_) != 0 && error_ == 0) error_ = errno;
  std::fclose(std::exchange(file_, nullptr));
  if (error_ == 0 && !beside_.empty() && ::rename(beside_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ == 0) return {};
  if (!beside_.empty()) ::unlink(beside_.c_str());
  return Fail(ErrorCode::kIo,
              fmt::format("answers file {}: {}", path_, std::generic_category().message(error_)));
}

}  // namespace weir::run

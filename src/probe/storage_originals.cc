#include "probe/storage_originals.h"

#include <utility>

#include "base/json.h"
#include "base/thread.h"

namespace weir::probe {

Status Originals::Start(int threads) {
  for (int i = 0; i < threads; ++i) TRY_STATUS(StartReader());
  return {};
}

Result<Bytes> Originals::Read(int64_t index) {
  const auto job = std::make_shared<Job>(index);
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(job);
    work_.NotifyOne();
    while (!job->result && !job->abandoned) {
      const Instant now = clock_.Now();
      if (job->begun && now - *job->begun >= timeout_) Abandon(*job);
      if (!job->abandoned) done_.WaitUntil(mutex_, now + kLook);
    }
    if (job->result) return std::move(*job->result);
  }
  TRY_STATUS(StartReader());
  return Fail(ErrorCode::kIo, NameOf(index) + ": the read did not end within the timeout");
}

ReadTally Originals::Finish() {
  std::vector<std::jthread> threads;  // ends before this function does, without the lock
  const MutexLock lock(mutex_);
  ended_ = true;
  work_.NotifyAll();
  if (!tally_.hung.empty()) {
    for (std::jthread& thread : threads_) thread.detach();
    threads_.clear();
  }
  threads.swap(threads_);
  return tally_;
}

std::string Originals::NameOf(int64_t index) const {
  return EscapeBytes(samples_[static_cast<size_t>(index)].path);
}

void Originals::Abandon(Job& job) {
  job.abandoned = true;
  tally_.AddError(NameOf(job.index) + ": the read did not end within the timeout");
  tally_.hung.push_back(NameOf(job.index));
}

Status Originals::StartReader() {
  auto reader = TRY(SampleReader::Make(read_, clock_));
  const MutexLock lock(mutex_);
  threads_.push_back(StartThread("reader", [self = shared_from_this(), reader = std::move(reader)](
                                               const std::stop_token&) mutable { self->Serve(*reader); }));
  return {};
}

void Originals::Serve(SampleReader& reader) {
  while (const auto job = Take()) {
    const StorageSample& sample = samples_[static_cast<size_t>(job->index)];
    const auto read = reader.Read(sample);
    Result<Bytes> bytes = read ? Result<Bytes>(Bytes::Copy(reader.Contents(0, sample)))
                               : Result<Bytes>(std::unexpected(read.error()));
    const MutexLock lock(mutex_);
    if (job->abandoned) return;
    if (read) {
      tally_.Add(*read);
    } else {
      tally_.AddError(read.error().message);
    }
    job->result = std::move(bytes);
    done_.NotifyAll();
  }
}

std::shared_ptr<Originals::Job> Originals::Take() {
  const MutexLock lock(mutex_);
  while (jobs_.empty() && !ended_) work_.Wait(mutex_);
  if (jobs_.empty()) return nullptr;
  auto job = jobs_.front();
  jobs_.pop_front();
  job->begun = clock_.Now();
  return job;
}

}  // namespace weir::probe

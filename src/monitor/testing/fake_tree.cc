#include "monitor/testing/fake_tree.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>

#include "base/file.h"

namespace weir::monitor {

FakeTree::FakeTree() {
  std::string name = std::filesystem::temp_directory_path() / "fake_tree.XXXXXX";
  CHECK(::mkdtemp(name.data()) != nullptr);
  root_ = name;
}

FakeTree::~FakeTree() { std::filesystem::remove_all(root_); }

void FakeTree::Put(const std::string& path, std::string_view text) {
  const std::filesystem::path whole = root_ + path;
  CHECK(MakeFolders(whole.parent_path()).has_value());
  // Rewritten in place, as the kernel's files are: a reader that holds one open sees the new text.
  FILE* file = ::fopen(whole.c_str(), "w");
  CHECK(file != nullptr);
  CHECK(::fwrite(text.data(), 1, text.size(), file) == text.size());
  CHECK(::fclose(file) == 0);
}

void FakeTree::Remove(const std::string& path) { std::filesystem::remove_all(root_ + path); }

std::string StatLine(const FakeTree::Process& p) {
  return fmt::format("{} ({}) {} {} 1 1 0 -1 0 0 0 0 0 {} {} {} {} 20 0 {} 0 {} 1000000 {} 184467 1 1 0\n",
                     p.pid, p.name, p.state, p.parent, p.user, p.system, p.reaped_user, p.reaped_system,
                     p.threads, p.start, p.pages);
}

void FakeTree::PutProcess(const Process& process) {
  const std::string folder = fmt::format("/{}", process.pid);
  Put(folder + "/stat", StatLine(process));
  Put(fmt::format("{}/task/{}/stat", folder, process.pid), StatLine(process));
  Put(fmt::format("{}/task/{}/children", folder, process.pid), process.children);
}

}  // namespace weir::monitor

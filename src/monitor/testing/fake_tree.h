// A folder of files with chosen contents: a /proc or a cgroup tree of a machine that is not there.
#pragma once

#include <string>
#include <string_view>

namespace weir::monitor {

class FakeTree {
 public:
  FakeTree();
  ~FakeTree();
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::string& root() const { return root_; }
  void Put(const std::string& path, std::string_view text);  // with the folders above it
  void Remove(const std::string& path);                      // a file, or a folder with all below it

  // /PID/stat and /PID/task/PID/{stat,children}. CPU times in ticks of 10 ms, memory in pages.
  struct Process {
    int pid = 0;
    int parent = 1;
    std::string name = "program";
    char state = 'S';
    int user = 0, system = 0, reaped_user = 0, reaped_system = 0;
    int start = 100;
    int pages = 0;
    int threads = 1;
    std::string children;  // pids with blanks between
  };
  void PutProcess(const Process& process);

 private:
  std::string root_;
};

// A line of /proc/PID/stat.
std::string StatLine(const FakeTree::Process& process);

}  // namespace weir::monitor

/* A file system in user space that shows a folder and injects faults, for tests of reads and writes.
 *
 *   faultfs FOLDER MOUNTPOINT RULE...
 *
 * A rule names files by a part of their path:
 *   eio=PART      reads fail with EIO
 *   short=PART    reads end at half of the file
 *   vanish=PART   the file is listed, but open fails with ENOENT
 *   hang=PART     reads do not end before their caller is killed, or this process
 *   stuck=PART    writes do not end before their caller is killed, or this process
 *   enospc=BYTES  writes fail with ENOSPC once so many bytes were written in all
 *   delay=US      each read takes so many microseconds more
 *   exp=US        each read takes US * -log(1 - u) microseconds more; u goes evenly through [0, 1)
 *   stall=N:MS    read number N takes MS milliseconds more
 * It stays in the foreground. "ready" on standard output says that the mount is there.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { kMostRules = 16, kPath = 4096 };

struct Rule {
  char kind[16];
  char value[256];
};

static char folder[kPath];
static struct Rule rules[kMostRules];
static int rule_count;
static atomic_long written, reads;

static const char* Value(const char* kind) {
  for (int i = 0; i < rule_count; ++i)
    if (strcmp(rules[i].kind, kind) == 0) return rules[i].value;
  return NULL;
}

static int Applies(const char* kind, const char* path) {
  const char* part = Value(kind);
  return part != NULL && strstr(path, part) != NULL;
}

static void Full(const char* path, char* full) { snprintf(full, kPath, "%s%s", folder, path); }
static int Answer(int result) { return result < 0 ? -errno : 0; }

static void SleepMicroseconds(double us) {
  if (us <= 0) return;
  struct timespec time = {(time_t)(us / 1e6), (long)(fmod(us, 1e6) * 1e3)};
  while (nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

static void Delay(void) {
  const long number = atomic_fetch_add(&reads, 1);
  const char* fixed = Value("delay");
  const char* mean = Value("exp");
  const char* stall = Value("stall");
  double us = fixed != NULL ? atof(fixed) : 0;
  if (mean != NULL) us += atof(mean) * -log1p(-fmod(0.5 + (double)number * 0.6180339887498949, 1.0));
  if (stall != NULL && strchr(stall, ':') != NULL && atol(stall) == number)
    us += 1e3 * atof(strchr(stall, ':') + 1);
  SleepMicroseconds(us);
}

static void* OnInit(struct fuse_conn_info* connection, struct fuse_config* config) {
  (void)connection;
  config->use_ino = 1;
  printf("ready\n");
  fflush(stdout);
  return NULL;
}

static int OnGetattr(const char* path, struct stat* info, struct fuse_file_info* file) {
  (void)file;
  char full[kPath];
  Full(path, full);
  return Answer(lstat(full, info));
}

static int OnReaddir(const char* path, void* buffer, fuse_fill_dir_t fill, off_t offset,
                     struct fuse_file_info* file, enum fuse_readdir_flags flags) {
  (void)offset;
  (void)file;
  (void)flags;
  char full[kPath];
  Full(path, full);
  DIR* directory = opendir(full);
  if (directory == NULL) return -errno;
  for (const struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory))
    fill(buffer, entry->d_name, NULL, 0, 0);
  closedir(directory);
  return 0;
}

static int OnOpen(const char* path, struct fuse_file_info* file) {
  if (Applies("vanish", path)) return -ENOENT;
  char full[kPath];
  Full(path, full);
  const int fd = open(full, file->flags & ~O_DIRECT);
  if (fd < 0) return -errno;
  file->fh = (uint64_t)fd;
  file->direct_io = 1; /* otherwise the kernel fills short reads up */
  return 0;
}

static int OnCreate(const char* path, mode_t mode, struct fuse_file_info* file) {
  char full[kPath];
  Full(path, full);
  const int fd = open(full, (file->flags & ~O_DIRECT) | O_CREAT, mode);
  if (fd < 0) return -errno;
  file->fh = (uint64_t)fd;
  file->direct_io = 1;
  return 0;
}

static int OnRead(const char* path, char* buffer, size_t size, off_t offset, struct fuse_file_info* file) {
  Delay();
  if (Applies("eio", path)) return -EIO;
  if (Applies("hang", path)) {
    while (!fuse_interrupted()) SleepMicroseconds(10000);
    return -EINTR;
  }
  if (Applies("short", path)) {
    struct stat info;
    if (fstat((int)file->fh, &info) != 0) return -errno;
    const off_t end = info.st_size / 2;
    if (offset >= end) return 0;
    if ((off_t)size > end - offset) size = (size_t)(end - offset);
  }
  const ssize_t got = pread((int)file->fh, buffer, size, offset);
  return got < 0 ? -errno : (int)got;
}

static int OnWrite(const char* path, const char* buffer, size_t size, off_t offset,
                   struct fuse_file_info* file) {
  if (Applies("stuck", path)) {
    while (!fuse_interrupted()) SleepMicroseconds(10000);
    return -EINTR;
  }
  const char* most = Value("enospc");
  if (most != NULL && atomic_fetch_add(&written, (long)size) + (long)size > atol(most)) return -ENOSPC;
  const ssize_t put = pwrite((int)file->fh, buffer, size, offset);
  return put < 0 ? -errno : (int)put;
}

static int OnRelease(const char* path, struct fuse_file_info* file) {
  (void)path;
  return Answer(close((int)file->fh));
}

static int OnFsync(const char* path, int data_only, struct fuse_file_info* file) {
  (void)path;
  return Answer(data_only ? fdatasync((int)file->fh) : fsync((int)file->fh));
}

static int OnUnlink(const char* path) {
  char full[kPath];
  Full(path, full);
  return Answer(unlink(full));
}

static int OnMkdir(const char* path, mode_t mode) {
  char full[kPath];
  Full(path, full);
  return Answer(mkdir(full, mode));
}

static int OnRmdir(const char* path) {
  char full[kPath];
  Full(path, full);
  return Answer(rmdir(full));
}

static int OnRename(const char* from, const char* to, unsigned flags) {
  if (flags != 0) return -EINVAL;
  char full_from[kPath], full_to[kPath];
  Full(from, full_from);
  Full(to, full_to);
  return Answer(rename(full_from, full_to));
}

static int OnTruncate(const char* path, off_t size, struct fuse_file_info* file) {
  (void)file;
  char full[kPath];
  Full(path, full);
  return Answer(truncate(full, size));
}

static int OnStatfs(const char* path, struct statvfs* info) {
  (void)path;
  return Answer(statvfs(folder, info));
}

static const struct fuse_operations kOperations = {.getattr = OnGetattr,
                                                   .mkdir = OnMkdir,
                                                   .unlink = OnUnlink,
                                                   .rmdir = OnRmdir,
                                                   .rename = OnRename,
                                                   .truncate = OnTruncate,
                                                   .open = OnOpen,
                                                   .read = OnRead,
                                                   .write = OnWrite,
                                                   .statfs = OnStatfs,
                                                   .release = OnRelease,
                                                   .fsync = OnFsync,
                                                   .readdir = OnReaddir,
                                                   .init = OnInit,
                                                   .create = OnCreate};

int main(int argc, char** argv) {
  if (argc < 3 || realpath(argv[1], folder) == NULL) {
    fprintf(stderr, "usage: faultfs FOLDER MOUNTPOINT [KIND=VALUE...]\n");
    return 2;
  }
  for (int i = 3; i < argc && rule_count < kMostRules; ++i, ++rule_count)
    if (sscanf(argv[i], "%15[a-z]=%255[^\n]", rules[rule_count].kind, rules[rule_count].value) != 2) {
      fprintf(stderr, "faultfs: %s is no rule\n", argv[i]);
      return 2;
    }
  char* arguments[] = {argv[0], argv[2], "-f", "-o", "max_threads=64,auto_unmount,default_permissions", NULL};
  return fuse_main(5, arguments, &kOperations, NULL);
}

/* The bare loops that bench/probe.py measures weir probe storage against, on one thread each:
 *   probe_loops files SECONDS LIST     opens, reads whole and closes the files of LIST, in its order, again and again
 *   probe_loops copy SECONDS BYTES N   copies blocks of BYTES out of 64 MiB, on N threads
 * Prints files/s, or bytes/s. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int Files(double seconds, const char* list) {
  enum { kMost = 100000, kBuffer = 16 << 20 };
  static char* names[kMost];
  static size_t sizes[kMost];
  size_t count = 0, capacity = 0;
  char* line = NULL;
  FILE* file = fopen(list, "r");
  if (file == NULL) return 1;
  for (ssize_t length = getline(&line, &capacity, file); length > 0 && count < kMost;
       length = getline(&line, &capacity, file)) {
    line[strcspn(line, "\n")] = 0;
    struct stat info;
    if (stat(line, &info) != 0) return 1;
    sizes[count] = (size_t)info.st_size;
    names[count++] = strdup(line);
  }
  char* buffer = aligned_alloc(4096, kBuffer);
  memset(buffer, 1, kBuffer);
  const double begin = Now();
  long done = 0;
  while (Now() - begin < seconds) {
    const size_t i = (size_t)done++ % count;
    const int fd = open(names[i], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, buffer, sizes[i]) != (ssize_t)sizes[i]) return 1;
    close(fd);
  }
  printf("%f\n", (double)done / (Now() - begin));
  return 0;
}

struct Copy {
  double seconds, rate;
  size_t bytes;
};

static void* CopyBlocks(void* argument) {
  struct Copy* copy = argument;
  const size_t source_bytes = (size_t)64 << 20;
  char* source = aligned_alloc(4096, source_bytes);
  char* target = aligned_alloc(4096, (copy->bytes + 4095) / 4096 * 4096);
  memset(source, 1, source_bytes);
  memset(target, 1, copy->bytes);
  const double begin = Now();
  size_t at = 0;
  double done = 0;
  while (Now() - begin < copy->seconds) {
    if (at + copy->bytes > source_bytes) at = 0;
    memcpy(target, source + at, copy->bytes);
    __asm__ volatile("" : : "r"(target) : "memory");
    at += copy->bytes;
    done += (double)copy->bytes;
  }
  copy->rate = done / (Now() - begin);
  return NULL;
}

static int Copies(double seconds, size_t bytes, int threads) {
  pthread_t handles[64];
  struct Copy copies[64];
  if (threads < 1 || threads > 64) return 1;
  for (int i = 0; i < threads; ++i) {
    copies[i] = (struct Copy){seconds, 0, bytes};
    pthread_create(&handles[i], NULL, CopyBlocks, &copies[i]);
  }
  double rate = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(handles[i], NULL);
    rate += copies[i].rate;
  }
  printf("%f\n", rate);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "files") == 0) return Files(atof(argv[2]), argv[3]);
  if (argc == 5 && strcmp(argv[1], "copy") == 0) return Copies(atof(argv[2]), (size_t)atol(argv[3]), atoi(argv[4]));
  return 2;
}

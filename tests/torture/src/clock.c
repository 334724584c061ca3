/* Loaded into a server before all else: the time that it is told is ahead of this machine's by the nanoseconds that the
   file named by CROSSLOCK_TORTURE_CLOCK holds. Nothing here allocates: an allocator may ask for the time while it
   starts, which is where libfaketime and jemalloc wait for each other. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static long long ahead(void) {
  static const volatile long long *shared;
  if (!shared) {
    const char *path = getenv("CROSSLOCK_TORTURE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
      close(file);
    if (mapped == MAP_FAILED)
      return 0;
    shared = mapped;
  }
  return *shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    long long nanos = now->tv_sec * SECOND + now->tv_nsec + ahead();
    now->tv_sec = nanos / SECOND;
    now->tv_nsec = nanos % SECOND;
  }
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec time;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &time))
    return -1;
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now))
    return -1;
  if (result)
    *result = now.tv_sec;
  return now.tv_sec;
}

/* Loaded before the C library: clocks that jump by up to an hour, back and forth, from call to call.
 *
 *   CLOCK_COUNT   a file to which every process appends how often it asked for the time
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static atomic_uint calls = 0;

static long jump(void) { /* seconds from -3600 to 3599 */
  const unsigned mixed = (atomic_fetch_add(&calls, 1) + 1) * 2654435761u;
  return (long)((mixed >> 8) % 7200u) - 3600;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int code = REAL(clock_gettime)(clock, now);
  if (code == 0 && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID) now->tv_sec += jump() + 3600;
  return code;
}
time_t time(time_t* out) {
  const time_t now = REAL(time)(NULL) + jump();
  if (out != NULL) *out = now;
  return now;
}
int gettimeofday(struct timeval* now, void* zone) {
  const int code = REAL(gettimeofday)(now, zone);
  now->tv_sec += jump();
  return code;
}

__attribute__((destructor)) static void report(void) {
  const char* path = getenv("CLOCK_COUNT");
  FILE* out = path == NULL ? NULL : fopen(path, "a");
  if (out == NULL) return;
  fprintf(out, "%u\n", atomic_load(&calls));
  fclose(out);
}

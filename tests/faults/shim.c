/* Loaded before the C library: counts calls that write below one folder, and makes one of them fail.
 *
 *   FAULT_UNDER   the folder
 *   FAULT_AT      which of the calls fails, from 1; 0: none
 *   FAULT_KIND    fail: it returns the error; short: a write takes half of its bytes
 *   FAULT_ERROR   the number of the error
 *   FAULT_COUNT   a file to which every process appends the number of its calls
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int calls = 0;

static const char* word(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? "" : text;
}
static int under(const char* path) {
  char whole[PATH_MAX];
  const char* folder = word("FAULT_UNDER");
  if (folder[0] == '\0' || path == NULL) return 0;
  if (path[0] == '/') {
    snprintf(whole, sizeof whole, "%s", path);
  } else if (getcwd(whole, sizeof whole) != NULL) {
    const size_t used = strlen(whole);
    snprintf(whole + used, sizeof whole - used, "/%s", path);
  }
  return strncmp(whole, folder, strlen(folder)) == 0;
}
static int descriptor_under(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0 || path[0] != '/') return 0; /* a pipe has no path */
  path[size] = '\0';
  return under(path);
}
/* Whether this call is the one. */
static int struck(void) {
  ++calls;
  if (calls != atoi(word("FAULT_AT"))) return 0;
  errno = atoi(word("FAULT_ERROR"));
  return 1;
}
static int shortened(void) { return strcmp(word("FAULT_KIND"), "short") == 0; }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int writes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; }

#define OPEN(name)                                                                \
  int name(const char* path, int flags, ...) {                                    \
    va_list more;                                                                 \
    va_start(more, flags);                                                        \
    const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;              \
    va_end(more);                                                                 \
    if (writes(flags) && under(path) && struck() && !shortened()) return -1;      \
    return REAL(name)(path, flags, mode);                                         \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                                              \
  FILE* name(const char* path, const char* mode) {                                               \
    if (strpbrk(mode, "wa+") != NULL && under(path) && struck() && !shortened()) return NULL;    \
    return REAL(name)(path, mode);                                                               \
  }
FOPEN(fopen)
FOPEN(fopen64)

ssize_t write(int file, const void* bytes, size_t count) {
  if (descriptor_under(file) && struck()) {
    if (!shortened()) return -1;
    if (count > 1) count /= 2;
  }
  return REAL(write)(file, bytes, count);
}
ssize_t writev(int file, const struct iovec* parts, int count) {
  if (descriptor_under(file) && struck()) {
    if (!shortened()) return -1;
    return REAL(write)(file, parts[0].iov_base, parts[0].iov_len);
  }
  return REAL(writev)(file, parts, count);
}
int fsync(int file) {
  if (descriptor_under(file) && struck() && !shortened()) return -1;
  return REAL(fsync)(file);
}
int rename(const char* from, const char* to) {
  if (under(to) && struck() && !shortened()) return -1;
  return REAL(rename)(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (under(to) && struck() && !shortened()) return -1;
  return REAL(renameat2)(from_folder, from, to_folder, to, flags);
}
int mkdir(const char* path, mode_t mode) {
  if (under(path) && struck() && !shortened()) return -1;
  return REAL(mkdir)(path, mode);
}

__attribute__((destructor)) static void report(void) {
  FILE* out = REAL(fopen)(word("FAULT_COUNT"), "a");
  if (out == NULL) return;
  fprintf(out, "%d\n", calls);
  fclose(out);
}

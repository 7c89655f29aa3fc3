
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const void *girih_map(const char *path, size_t length, const uint8_t *head, size_t head_length) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  struct stat is;
  void *at = MAP_FAILED;
  if (fstat(file, &is) == 0) {
    if ((uint64_t)is.st_size == length) at = mmap(0, length, PROT_READ, MAP_PRIVATE, file, 0);
    else errno = EINVAL;
  }
  int error = errno;
  close(file);
  errno = error;
  if (at == MAP_FAILED) return 0;
  if (memcmp(at, head, head_length) == 0) return at;
  munmap(at, length);
  errno = EINVAL;
  return 0;
}

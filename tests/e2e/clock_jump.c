/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into takt (LD_PRELOAD): the wall clock jumps when a test says so, as when somebody sets
 * it or a clock that was wrong is put right. The file that JUMP_FILE names holds one native
 * int64_t, nanoseconds to add to CLOCK_REALTIME, and may change at any time; without it nothing
 * jumps.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *offset_ns;

__attribute__((constructor)) static void find_offset(void)
{
	const char *path = getenv("JUMP_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map = MAP_FAILED;

	if (fd >= 0)
		map = mmap(NULL, sizeof(*offset_ns), PROT_READ, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		offset_ns = map;
	if (fd >= 0)
		close(fd);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
	const int64_t second_ns = 1000000000;
	int rc = (int)syscall(SYS_clock_gettime, id, ret);
	int64_t at_ns;

	if (rc != 0 || id != CLOCK_REALTIME || !offset_ns)
		return rc;
	at_ns = ret->tv_sec * second_ns + ret->tv_nsec + atomic_load(offset_ns);
	ret->tv_sec = at_ns / second_ns;
	ret->tv_nsec = at_ns % second_ns;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs say of how far they are: the file is the job's, so whatever is in it, what is taken was
 * said by a rank that there may be, and rates come of it or none.
 */
#include "telemetry/progress_ranks.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz_input.h"

static const char folder[] = "/tmp";

/* A name of this process's own: a file of a few bytes is made anew for each input. */
static const char *file_name(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "takt-fuzz-progress-%ld", (long)getpid());
	return name;
}

static int put(int dirfd, const uint8_t *data, size_t size)
{
	int fd = openat(dirfd, file_name(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);
	int rc = fd >= 0 && write(fd, data, size) == (ssize_t)size ? 0 : -1;

	if (fd >= 0)
		close(fd);
	return rc;
}

static void follow(struct takt_progress_said *said)
{
	struct takt_progress_ranks ranks = {0};
	struct takt_progress_rates rates;
	struct takt_progress_file slowest;
	struct takt_mono now = {UINT64_C(1) << 40};

	takt_progress_living(said, now);
	if (takt_progress_slowest(said, &slowest))
		for (uint32_t i = 0; i < said->count; i++)
			fuzz_expect(said->rank[i].has == 0 || said->rank[i].at_ns <= now.ns);
	if (takt_progress_ranks_feed(&ranks, said, now) &&
	    takt_progress_ranks_rates(&ranks, now, &rates))
		fuzz_expect(rates.ranks <= said->count);
	takt_progress_ranks_fini(&ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct takt_progress_said said;
	int dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	memset(&said, 0, sizeof(said));
	if (dirfd >= 0 && put(dirfd, data, size) == 0 &&
	    takt_progress_read(dirfd, file_name(), getuid(), &said) == 0) {
		fuzz_expect(said.count >= 1 && said.count <= TAKT_PROGRESS_MAX_RANKS);
		follow(&said);
	}
	if (dirfd >= 0) {
		(void)unlinkat(dirfd, file_name(), 0);
		close(dirfd);
	}
	return 0;
}

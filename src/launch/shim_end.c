/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a job: its user writes to its files no more. And why it ended badly, as far as its
 * shim can know: the kernel counts whom it ended for want of memory; that of the GPU nobody outside
 * the job sees run out, but its program says so last. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "launch/shim_job.h"

enum {
	LAST_WORDS = 64 * 1024
};

/* Of the driver, the runtime, PyTorch and XLA. */
static const char *const words[] = {
	"CUDA out of memory",
	"CUDA error: out of memory",
	"CUDA_ERROR_OUT_OF_MEMORY",
	"cudaErrorMemoryAllocation",
	"RESOURCE_EXHAUSTED: Out of memory",
};

static bool says_so(const char *text, size_t len)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(words); i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}

/* In the end of its log; what it said earlier it has lived with. */
static bool ran_out_of_gpu_memory(const struct takt_shim *shim)
{
	int fd = openat(shim->dirfd, "log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *text = fd >= 0 ? takt_alloc(LAST_WORDS) : NULL;
	struct stat st;
	ssize_t len = -1;
	bool said;

	if (text && fstat(fd, &st) == 0)
		len = pread(fd, text, LAST_WORDS,
			    st.st_size > LAST_WORDS ? st.st_size - LAST_WORDS : 0);
	said = len > 0 && says_so(text, (size_t)len);
	takt_free(text);
	if (fd >= 0)
		close(fd);
	return said;
}

/* Where his files are his own he is let through to them no more. */
void takt_shim_take_back(const struct takt_shim *shim)
{
	int rc = 0;

	if (shim->spec.hook_event[0])
		return;
	if (shim->logfd >= 0)
		rc = takt_job_user_take_back(shim->user, shim->logfd);
	if (shim->progressfd >= 0)
		rc |= takt_job_user_take_back(shim->user, shim->progressfd);
	if (rc < 0)
		takt_job_user_shut_out(shim->user, shim->dirfd);
}

void takt_shim_explain_end(struct takt_shim *shim)
{
	struct takt_attempt_status *end = &shim->end;

	if (end->exit_kind == TAKT_EXIT_EXEC_FAILED ||
	    (end->exit_kind == TAKT_EXIT_EXITED && end->exit_code == 0))
		return;
	end->out_of_memory =
		shim->place->job[0] &&
		takt_job_cgroup_ran_out(shim->place->job, end->message, sizeof(end->message));
	end->out_of_gpu_memory = !end->out_of_memory && ran_out_of_gpu_memory(shim);
}

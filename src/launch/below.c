/* SPDX-License-Identifier: Apache-2.0 */
/* Ending what runs below us. */
#include "launch/below.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/pace.h"
#include "base/sys.h"
#include "launch/job_cgroup.h"
#include "launch/proc_tree.h"

enum {
	STUBBORN_ROUNDS = 8, /* a quarter of a second; then it may fork no more */
	REAPS_AT_ONCE = 1024,
};

static const struct takt_pace rounds = {TAKT_NS_PER_MS, TAKT_NS_PER_S};

int takt_below_kill(int32_t root, const char *leaf)
{
	struct takt_proc_tree tree = TAKT_PROC_TREE_INIT;
	int rc;

	if (leaf[0])
		(void)takt_cgroup_kill(leaf);
	rc = takt_proc_tree_read(&tree);
	if (rc == 0) {
		takt_proc_tree_mark(&tree, root);
		TAKT_VEC_EACH (entry, &tree.procs)
			if (entry->below)
				takt_proc_signal(entry, SIGKILL);
	}
	takt_proc_tree_fini(&tree);
	return rc;
}

/* False when no child is left; of those that have ended some are taken, and more may come. */
static bool has_children(void)
{
	pid_t pid = 1;

	for (int i = 0; pid > 0 && i < REAPS_AT_ONCE; i++)
		pid = waitpid(-1, NULL, WNOHANG);
	return pid >= 0 || errno != ECHILD;
}

static void pause_after(uint32_t round)
{
	uint64_t ns = takt_pace_ns(&rounds, round);
	struct timespec t = {(time_t)(ns / TAKT_NS_PER_S), (long)(ns % TAKT_NS_PER_S)};

	(void)nanosleep(&t, NULL);
}

int takt_below_end(const char *leaf, uint32_t limit_ms)
{
	struct takt_boot began = takt_boot_now(takt_sys_real());
	struct takt_job_forks forks = {0};
	int rc = 0;

	for (uint32_t round = 0; rc == 0; round++) {
		if (round == STUBBORN_ROUNDS)
			takt_job_cgroup_stop_forks(leaf, &forks);
		(void)takt_below_kill(getpid(), leaf);
		if (!has_children())
			break;
		pause_after(round);
		if (limit_ms && takt_boot_elapsed_ns(takt_boot_now(takt_sys_real()), began) >=
					limit_ms * TAKT_NS_PER_MS)
			rc = -ETIMEDOUT;
	}
	takt_job_cgroup_let_fork(leaf, &forks);
	return rc;
}

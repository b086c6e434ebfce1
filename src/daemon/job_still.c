/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job that was told to stand still does, and what it keeps of its GPUs meanwhile. */
#include "daemon/daemon.h"
#include "launch/proc_tree.h"

/* Its first process is a child of its shim's, and so are all the others that lost their parent. */
static int32_t shim_of(const struct takt_proc_tree *tree, int32_t first)
{
	TAKT_VEC_EACH (entry, &tree->procs)
		if (entry->pid == first)
			return entry->stat.ppid;
	return 0;
}

static bool is_stopped(const struct takt_proc_entry *entry)
{
	return entry->stat.state == 'T' || entry->stat.state == 't';
}

/* A STOP that comes between vfork and the child's exec stops the child alone: the parent waits for
 * it in the kernel, and stops when it is let go. */
static bool waits_for_stopped_child(const struct takt_proc_tree *tree,
				    const struct takt_proc_entry *parent)
{
	TAKT_VEC_EACH (entry, &tree->procs)
		if (entry->stat.ppid == parent->pid && entry->stat.flags & TAKT_PROC_FORKED &&
		    is_stopped(entry))
			return true;
	return false;
}

static bool runs(const struct takt_proc_tree *tree, const struct takt_proc_entry *entry)
{
	switch (entry->stat.state) {
	case 'T': /* stopped, traced, a zombie, dead */
	case 't':
	case 'Z':
	case 'X':
		return false;
	case 'D':
		return !waits_for_stopped_child(tree, entry);
	default:
		return true;
	}
}

static bool all_stand_still(struct takt_proc_tree *tree, int32_t first)
{
	int32_t shim = shim_of(tree, first);

	takt_proc_tree_mark(tree, shim);
	TAKT_VEC_EACH (entry, &tree->procs)
		if (entry->below && runs(tree, entry))
			return false;
	return shim > 1;
}

static uint32_t used_mib(const struct takt_daemon *daemon, uint64_t gpu_mask)
{
	struct takt_mono now = takt_mono_now(daemon->sys);
	const struct takt_gpu_reading *reading;
	uint64_t most = 0;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (gpu_mask >> gpu & 1 &&
		    takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) == 0 &&
		    reading->has & TAKT_HAS_MEMORY && reading->mem_used_bytes > most)
			most = reading->mem_used_bytes;
	return (uint32_t)(most >> 20);
}

bool takt_daemon_stands_still(void *ctx, const struct takt_queue_job *job, uint32_t *ret_mem_mib)
{
	const struct takt_daemon *daemon = ctx;
	struct takt_proc_tree tree = TAKT_PROC_TREE_INIT;
	bool still = takt_proc_tree_read(&tree) == 0 && all_stand_still(&tree, job->pid);

	takt_proc_tree_fini(&tree);
	*ret_mem_mib = used_mib(daemon, job->row.gpu_mask);
	return still;
}

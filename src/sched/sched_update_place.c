/* SPDX-License-Identifier: Apache-2.0 */
/* Events of jobs: where they are. */
#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "sched/sched_update.h"

/* What an engine says of one task, in the cluster's terms. */
static int translate(const struct takt_sched *sched, const struct takt_sched_entry *entry,
		     const struct takt_sched_slot *from, struct takt_slot *ret,
		     struct takt_err *err)
{
	const struct takt_sched_host *host = takt_sched_need_host(sched, from->node_id, err);
	const struct takt_request *request = takt_cluster_request(sched->cluster, entry->kind);

	if (!host)
		return -EINVAL;
	*ret = (struct takt_slot){
		.node = host->node,
		.milli = from->milli,
		.mig_start = from->mig_start,
		.dev_mask = from->gpu_mask,
	};
	if (from->milli == 0 && request && request->devices && !request->mig_profile)
		ret->milli = request->milli;
	return 0;
}

/* GPUs of a node that the job itself holds. */
static uint64_t own_mask(const struct takt_sched_entry *entry, uint32_t node)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < entry->slot_count; i++)
		if (entry->slots[i].node == node)
			mask |= entry->slots[i].dev_mask;
	return mask;
}

static int check_mask(const struct takt_sched_entry *entry, const struct takt_sched_host *host,
		      const struct takt_slot *slot, struct takt_err *err)
{
	uint64_t mask = slot->dev_mask;
	uint64_t busy = host->draining & mask;

	if (mask & ~takt_sched_low_bits(host->gpu_count))
		return takt_err_set(err, -EINVAL,
				    "gpu_mask 0x%" PRIx64 " of job %" PRIu64
				    " is beyond the %" PRIu32 " GPUs of node %" PRIu32,
				    mask, entry->job.id, host->gpu_count, host->id);
	if (takt_sched_count(mask) != entry->job.gpus)
		return takt_err_set(err, -EINVAL,
				    "gpu_mask 0x%" PRIx64 " of job %" PRIu64 " is not %" PRIu32
				    " GPUs",
				    mask, entry->job.id, entry->job.gpus);
	if (slot->milli == TAKT_REQUEST_WHOLE)
		busy |= (host->assigned | host->running) & mask & ~own_mask(entry, host->node);
	if (busy)
		return takt_err_set(err, -EINVAL,
				    "gpu_mask 0x%" PRIx64 " of job %" PRIu64
				    " has GPU %d, %s by job %" PRIu64,
				    mask, entry->job.id, __builtin_ctzll(busy),
				    host->draining & busy & -busy ? "left unclean" : "held",
				    host->gpu_job[__builtin_ctzll(busy)]);
	return 0;
}

/* Slots of all tasks, checked one by one; `slots` has room for as many as the event has. */
static int read_slots(const struct takt_sched *sched, const struct takt_sched_entry *entry,
		      const struct takt_sched_event *event, struct takt_slot *slots,
		      struct takt_err *err)
{
	struct takt_sched_slot one = {.node_id = event->node_id, .gpu_mask = event->gpu_mask};
	uint32_t n = event->slot_count ? event->slot_count : 1;
	const struct takt_sched_slot *from = event->slot_count ? event->slots : &one;

	for (uint32_t i = 0; i < n; i++) {
		int rc = translate(sched, entry, &from[i], &slots[i], err);

		if (rc == 0)
			rc = check_mask(entry, sched->host_of.at[slots[i].node], &slots[i], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int check_count(const struct takt_sched_entry *entry, uint32_t n, struct takt_err *err)
{
	const struct takt_sched_job *job = &entry->job;

	if (n >= takt_sched_min_tasks(job) && n <= takt_sched_tasks(job))
		return 0;
	return takt_err_set(err, -EINVAL,
			    "slots of job %" PRIu64 " are %" PRIu32 ", it has %" PRIu32
			    " tasks and needs %" PRIu32,
			    job->id, n, takt_sched_tasks(job), takt_sched_min_tasks(job));
}

static int take_slots(struct takt_sched *sched, const struct takt_sched_entry *entry,
		      const struct takt_slot *slots, uint32_t n, struct takt_err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		int rc = takt_cluster_take(sched->cluster, entry->kind, &slots[i]);

		if (rc == -ENOMEM)
			return takt_err_set(err, rc, "job %" PRIu64, entry->job.id);
		if (rc < 0)
			return takt_err_set(err, -EINVAL,
					    "task %" PRIu32 " of job %" PRIu64
					    " is not free to be on node %" PRIu32,
					    i, entry->job.id, sched->host_of.at[slots[i].node]->id);
	}
	return 0;
}

static void hold_all(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	for (uint32_t i = 0; i < entry->slot_count; i++)
		takt_sched_host_hold(sched->host_of.at[entry->slots[i].node], entry,
				     &entry->slots[i]);
}

static void enter_placed(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	entry->next_placed = sched->placed;
	entry->placed_link = &sched->placed;
	if (sched->placed)
		sched->placed->placed_link = &entry->next_placed;
	sched->placed = entry;
}

static void leave_placed(struct takt_sched_entry *entry)
{
	*entry->placed_link = entry->next_placed;
	if (entry->next_placed)
		entry->next_placed->placed_link = entry->placed_link;
}

void takt_sched_settle_in(struct takt_sched *sched, struct takt_sched_entry *entry, uint64_t at_ns)
{
	takt_sched_waits_no_more(sched, entry, at_ns);
	takt_sched_leave(sched, entry);
	entry->phase = TAKT_SCHED_ASSIGNED;
	enter_placed(sched, entry);
	takt_sched_runs_since(sched, entry, at_ns);
	if (entry->array)
		entry->array->running++;
	hold_all(sched, entry);
}

int takt_sched_on_job_placed(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job_id, err);
	uint32_t n = event->slot_count ? event->slot_count : 1;
	struct takt_slot one;
	struct takt_slot *slots = &one;
	uint64_t mark;
	int rc;

	if (!entry)
		return -EINVAL;
	if (entry->phase != TAKT_SCHED_WAITING)
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " does not wait",
				    entry->job.id);
	rc = check_count(entry, n, err);
	if (rc < 0)
		return rc;
	if (n > 1)
		slots = takt_calloc(n, sizeof(*slots));
	if (!slots)
		return takt_err_set(err, -ENOMEM, "job %" PRIu64, entry->job.id);
	rc = read_slots(sched, entry, event, slots, err);
	mark = takt_cluster_mark(sched->cluster);
	if (rc == 0)
		rc = take_slots(sched, entry, slots, n, err);
	if (rc < 0) {
		takt_cluster_rollback(sched->cluster, mark);
		if (slots != &one)
			takt_free(slots);
		return rc;
	}
	takt_cluster_commit(sched->cluster, mark);
	takt_sched_set_slots(entry, slots, n, &one);
	takt_sched_settle_in(sched, entry, event->at_ns);
	return 0;
}

void takt_sched_set_slots(struct takt_sched_entry *entry, struct takt_slot *slots, uint32_t n,
			  const struct takt_slot *local)
{
	if (entry->slots != &entry->one)
		takt_free(entry->slots);
	entry->slots = slots == local ? &entry->one : slots;
	if (slots == local)
		entry->one = *local;
	entry->slot_count = n;
}

void takt_sched_clear_slots(struct takt_sched_entry *entry)
{
	if (entry->slots != &entry->one)
		takt_free(entry->slots);
	entry->slots = &entry->one;
	entry->slot_count = 0;
}

int takt_sched_on_job_running(struct takt_sched *sched, const struct takt_sched_event *event,
			      struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	if (entry->phase != TAKT_SCHED_ASSIGNED)
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " is not assigned",
				    event->job_id);
	entry->phase = TAKT_SCHED_RUNNING;
	if (event->at_ns > 0)
		entry->since_ns = event->at_ns;
	for (uint32_t i = 0; i < entry->slot_count; i++) {
		const struct takt_slot *slot = &entry->slots[i];
		struct takt_sched_host *host = sched->host_of.at[slot->node];

		host->assigned &= ~slot->dev_mask;
		host->running |= slot->dev_mask;
	}
	return 0;
}

/* The task lets go of its place: its GPUs drain, and a removed node that only it kept is gone. */
static void leave_slot(struct takt_sched *sched, struct takt_sched_entry *entry,
		       const struct takt_slot *slot)
{
	struct takt_sched_host *host = sched->host_of.at[slot->node];

	(void)takt_cluster_give(sched->cluster, entry->kind, slot);
	takt_sched_host_release(sched, host, entry, slot);
	if (host->removed && host->placed == 0)
		takt_sched_host_forget(sched, host);
	else if (host->draining || host->unclean)
		takt_sched_host_tell(sched, host);
}

void takt_sched_leave_place(struct takt_sched *sched, struct takt_sched_entry *entry,
			    uint64_t at_ns)
{
	if (!takt_sched_is_placed(entry))
		return;
	leave_placed(entry);
	takt_sched_runs_no_more(sched, entry, at_ns);
	for (uint32_t i = 0; i < entry->slot_count; i++)
		leave_slot(sched, entry, &entry->slots[i]);
	if (entry->array)
		entry->array->running--;
	takt_sched_clear_slots(entry);
}

int takt_sched_on_job_draining(struct takt_sched *sched, const struct takt_sched_event *event,
			       struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	if (entry->phase == TAKT_SCHED_DRAINING)
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " is draining already",
				    event->job_id);
	if (entry->phase == TAKT_SCHED_WAITING)
		takt_sched_waits_no_more(sched, entry, event->at_ns);
	takt_sched_leave(sched, entry);
	takt_sched_leave_place(sched, entry, event->at_ns);
	entry->phase = TAKT_SCHED_DRAINING;
	return 0;
}

int takt_sched_on_job_requeued(struct takt_sched *sched, const struct takt_sched_event *event,
			       struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job_id, err);
	struct takt_sched_group *group;

	if (!entry)
		return -EINVAL;
	if (entry->phase == TAKT_SCHED_WAITING)
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " waits already",
				    event->job_id);
	group = takt_sched_group_for(sched, entry);
	if (!group)
		return takt_err_set(err, -ENOMEM, "job %" PRIu64, event->job_id);
	takt_sched_leave_place(sched, entry, event->at_ns);
	takt_sched_join(sched, entry, group);
	entry->phase = TAKT_SCHED_WAITING;
	takt_sched_waits_since(sched, entry, event->at_ns);
	return 0;
}

/* The masks of nodes follow; what the job keeps is not unclean. */
static void move(struct takt_sched *sched, struct takt_sched_entry *entry,
		 const struct takt_slot *slots)
{
	for (uint32_t i = 0; i < entry->slot_count; i++)
		takt_sched_host_release(sched, sched->host_of.at[entry->slots[i].node], entry,
					&entry->slots[i]);
	for (uint32_t i = 0; i < entry->slot_count; i++) {
		struct takt_sched_host *host = sched->host_of.at[slots[i].node];
		struct takt_sched_host *left = sched->host_of.at[entry->slots[i].node];

		host->draining &= ~slots[i].dev_mask;
		takt_sched_host_hold(host, entry, &slots[i]);
		entry->slots[i] = slots[i];
		takt_sched_host_tell(sched, host);
		if (left->removed && left->placed == 0)
			takt_sched_host_forget(sched, left);
		else
			takt_sched_host_tell(sched, left);
	}
}

int takt_sched_on_job_moved(struct takt_sched *sched, const struct takt_sched_event *event,
			    struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job_id, err);
	TAKT_CLEANUP(freep) struct takt_slot *slots = NULL;
	uint64_t mark;
	int rc;

	if (!entry)
		return -EINVAL;
	if (!takt_sched_is_placed(entry) || event->slot_count != entry->slot_count)
		return takt_err_set(err, -EINVAL,
				    "job_id %" PRIu64 " is not placed, or has other than %" PRIu32
				    " tasks",
				    event->job_id, event->slot_count);
	slots = takt_calloc(event->slot_count, sizeof(*slots));
	if (!slots)
		return takt_err_set(err, -ENOMEM, "job %" PRIu64, event->job_id);
	mark = takt_cluster_mark(sched->cluster);
	for (uint32_t i = 0; i < entry->slot_count; i++)
		(void)takt_cluster_give(sched->cluster, entry->kind, &entry->slots[i]);
	rc = read_slots(sched, entry, event, slots, err);
	if (rc == 0)
		rc = take_slots(sched, entry, slots, event->slot_count, err);
	if (rc < 0) {
		takt_cluster_rollback(sched->cluster, mark);
		return rc;
	}
	takt_cluster_commit(sched->cluster, mark);
	move(sched, entry, slots);
	return 0;
}

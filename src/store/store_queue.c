/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue between posters and the writer: pending changes one way, finished tickets the other.
 *
 * A change is one allocation with its texts, made when it is posted; from there to the completion
 * nothing is allocated, so a ticket once given is always answered.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/store_impl.h"

enum {
	DECISIONS_TO_WAKE = 16 /* that wait for no job before they get a commit of their own */
};

void takt_store_list_init(struct takt_store_list *list)
{
	list->first = NULL;
	list->end = &list->first;
	list->len = 0;
}

static void append(struct takt_store_list *list, struct takt_store_change *change)
{
	change->next = NULL;
	*list->end = change;
	list->end = &change->next;
	list->len++;
}

static struct takt_store_change *shift(struct takt_store_list *list)
{
	struct takt_store_change *change = list->first;

	list->first = change->next;
	if (!list->first)
		list->end = &list->first;
	list->len--;
	return change;
}

static void free_texts(struct takt_store_change *change)
{
	if (change->kind == TAKT_STORE_DECISION) {
		takt_free(change->u.decision.snapshot_json);
		takt_free(change->u.decision.plan_json);
	} else if (change->kind == TAKT_STORE_KEEP) {
		takt_free(change->u.kept.key);
		takt_free(change->u.kept.text);
	} else if (change->kind != TAKT_STORE_FINISHED) {
		takt_job_fini(&change->u.job);
	}
}

static void change_free(struct takt_store_change *change)
{
	free_texts(change);
	takt_free(change);
}

void takt_store_list_free(struct takt_store_list *list)
{
	while (list->len)
		change_free(shift(list));
}

void takt_store_change_finish(struct takt_store_change *change, int rc, const char *message)
{
	free_texts(change);
	change->kind = TAKT_STORE_FINISHED;
	change->rc = rc;
	takt_strcpy(change->u.message, sizeof(change->u.message), message);
}

static int check_job(const struct takt_job *job, enum takt_store_kind kind, struct takt_err *err)
{
	unsigned long long id = job->id;

	if (job->id == 0 || job->id > INT64_MAX)
		return takt_err_set(err, -EINVAL, "job id %llu is not in 1..%lld", id,
				    (long long)INT64_MAX);
	if ((unsigned)job->state >= TAKT_JOB_STATE_COUNT)
		return takt_err_set(err, -EINVAL, "job %llu has no known state", id);
	if (kind == TAKT_STORE_UPDATE)
		return 0;
	if (job->submit_seq == 0 || job->submit_seq > INT64_MAX)
		return takt_err_set(err, -EINVAL, "submit_seq of job %llu is not in 1..%lld", id,
				    (long long)INT64_MAX);
	if (!job->spec_json)
		return takt_err_set(err, -EINVAL, "job %llu has no description", id);
	if (strlen(job->spec_json) > TAKT_STORE_MAX_SPEC ||
	    (job->env_json && strlen(job->env_json) > TAKT_STORE_MAX_SPEC))
		return takt_err_set(err, -TAKT_E_LIMIT, "description of job %llu is over %d bytes",
				    id, TAKT_STORE_MAX_SPEC);
	return 0;
}

/* Copies text if there is any and counts it; false when out of memory. */
static bool keep_text(struct takt_store_change *change, char **ret, const char *text)
{
	*ret = takt_strdup(text);
	if (text)
		change->bytes += strlen(text) + 1;
	return !text || *ret;
}

/* Links the change in; the ticket, or why not (the change is then freed). */
static int64_t post(struct takt_store *store, struct takt_store_change *change,
		    struct takt_err *err)
{
	bool decision = change->kind == TAKT_STORE_DECISION;
	int64_t ticket = 0;

	pthread_mutex_lock(&store->lock);
	if (store->queued_bytes + change->bytes > TAKT_STORE_MAX_QUEUED_BYTES ||
	    store->outstanding >= TAKT_STORE_MAX_OUTSTANDING) {
		ticket = -TAKT_E_LIMIT;
	} else {
		if (!decision) {
			ticket = ++store->last_ticket;
			store->outstanding++;
		} else {
			store->pending_decisions++;
		}
		change->ticket = ticket;
		store->queued_bytes += change->bytes;
		append(&store->pending, change);
		pthread_cond_signal(&store->wake);
	}
	pthread_mutex_unlock(&store->lock);
	if (ticket >= 0)
		return ticket;
	change_free(change);
	return takt_err_set(err, (int)ticket,
			    "too many changes wait for the database '%s' (at most %d changes, %d "
			    "bytes)",
			    store->path, TAKT_STORE_MAX_OUTSTANDING, TAKT_STORE_MAX_QUEUED_BYTES);
}

static int64_t post_job(struct takt_store *store, enum takt_store_kind kind,
			const struct takt_job *job, uint64_t tag, struct takt_err *err)
{
	struct takt_store_change *change;
	int rc = check_job(job, kind, err);

	if (rc < 0)
		return rc;
	change = takt_zalloc(sizeof(*change));
	if (!change)
		return takt_err_set(err, -ENOMEM, "store job %llu", (unsigned long long)job->id);
	change->kind = kind;
	change->tag = tag;
	change->u.job = *job;
	change->u.job.spec_json = change->u.job.env_json = NULL;
	change->u.job.mig = change->u.job.gpu_uuids = NULL;
	if (!keep_text(change, &change->u.job.message, job->message) ||
	    !keep_text(change, &change->u.job.mig, job->mig) ||
	    !keep_text(change, &change->u.job.gpu_uuids, job->gpu_uuids) ||
	    (kind == TAKT_STORE_INSERT &&
	     (!keep_text(change, &change->u.job.spec_json, job->spec_json) ||
	      !keep_text(change, &change->u.job.env_json, job->env_json)))) {
		change_free(change);
		return takt_err_set(err, -ENOMEM, "store job %llu", (unsigned long long)job->id);
	}
	return post(store, change, err);
}

int64_t takt_store_insert(struct takt_store *store, const struct takt_job *job, uint64_t tag,
			  struct takt_err *err)
{
	return post_job(store, TAKT_STORE_INSERT, job, tag, err);
}

int64_t takt_store_update(struct takt_store *store, const struct takt_job *job, uint64_t tag,
			  struct takt_err *err)
{
	return post_job(store, TAKT_STORE_UPDATE, job, tag, err);
}

int64_t takt_store_keep(struct takt_store *store, const char *key, const char *text, uint64_t tag,
			struct takt_err *err)
{
	struct takt_store_change *change;

	if (strlen(key) > TAKT_STORE_MAX_KEY || (text && strlen(text) > TAKT_STORE_MAX_KEPT))
		return takt_err_set(err, -TAKT_E_LIMIT, "'%.60s' is over %d bytes", key,
				    TAKT_STORE_MAX_KEPT);
	change = takt_zalloc(sizeof(*change));
	if (!change)
		return takt_err_set(err, -ENOMEM, "keep '%.60s'", key);
	change->kind = TAKT_STORE_KEEP;
	change->tag = tag;
	if (!keep_text(change, &change->u.kept.key, key) ||
	    !keep_text(change, &change->u.kept.text, text)) {
		change_free(change);
		return takt_err_set(err, -ENOMEM, "keep '%.60s'", key);
	}
	return post(store, change, err);
}

int takt_store_decision(struct takt_store *store, uint64_t version, const char *snapshot_json,
			const char *plan_json, struct takt_err *err)
{
	struct takt_store_change *change;

	if (strlen(snapshot_json) + strlen(plan_json) > TAKT_STORE_MAX_DECISION)
		return takt_err_set(err, -TAKT_E_LIMIT, "a decision's inputs are over %d bytes",
				    TAKT_STORE_MAX_DECISION);
	change = takt_zalloc(sizeof(*change));
	if (!change)
		return takt_err_set(err, -ENOMEM, "keep a decision");
	change->kind = TAKT_STORE_DECISION;
	change->u.decision.version = version;
	if (!keep_text(change, &change->u.decision.snapshot_json, snapshot_json) ||
	    !keep_text(change, &change->u.decision.plan_json, plan_json)) {
		change_free(change);
		return takt_err_set(err, -ENOMEM, "keep a decision");
	}
	return (int)post(store, change, err);
}

static bool worth_a_commit(const struct takt_store *store)
{
	return store->pending.len > store->pending_decisions ||
	       store->pending_decisions >= DECISIONS_TO_WAKE;
}

bool takt_store_take_batch(struct takt_store *store, struct takt_store_list *ret_batch)
{
	struct takt_store_change *change;
	bool goes_on;

	takt_store_list_init(ret_batch);
	pthread_mutex_lock(&store->lock);
	while (!store->stopping && !worth_a_commit(store) && !store->reserve.errand)
		pthread_cond_wait(&store->wake, &store->lock);
	while (store->pending.len && ret_batch->len < TAKT_STORE_MAX_BATCH) {
		change = shift(&store->pending);
		store->queued_bytes -= change->bytes;
		store->pending_decisions -= change->kind == TAKT_STORE_DECISION;
		append(ret_batch, change);
	}
	goes_on = ret_batch->len != 0 || !store->stopping;
	pthread_mutex_unlock(&store->lock);
	return goes_on;
}

void takt_store_report(struct takt_store *store, struct takt_store_list *batch)
{
	struct takt_store_change *change;
	bool was_empty;

	pthread_mutex_lock(&store->lock);
	was_empty = store->done.len == 0;
	while (batch->len) {
		change = shift(batch);
		if (change->ticket)
			append(&store->done, change);
		else
			change_free(change);
	}
	if (was_empty && store->done.len)
		(void)eventfd_write(store->event_fd, 1);
	pthread_mutex_unlock(&store->lock);
}

int takt_store_fd(const struct takt_store *store)
{
	return store->event_fd;
}

size_t takt_store_completions(struct takt_store *store, struct takt_store_completion *ret,
			      size_t max)
{
	struct takt_store_change *change;
	eventfd_t count;
	size_t n = 0;

	pthread_mutex_lock(&store->lock);
	for (; n < max && store->done.len; n++) {
		change = shift(&store->done);
		store->outstanding--;
		ret[n].ticket = change->ticket;
		ret[n].tag = change->tag;
		ret[n].rc = change->rc;
		takt_strcpy(ret[n].message, sizeof(ret[n].message), change->u.message);
		change_free(change);
	}
	if (n && store->done.len == 0)
		(void)eventfd_read(store->event_fd, &count);
	pthread_mutex_unlock(&store->lock);
	return n;
}

bool takt_store_has_room(struct takt_store *store, size_t bytes)
{
	bool room;

	pthread_mutex_lock(&store->lock);
	room = store->queued_bytes + bytes <= TAKT_STORE_MAX_QUEUED_BYTES / 2 &&
	       store->outstanding < TAKT_STORE_MAX_OUTSTANDING / 2;
	pthread_mutex_unlock(&store->lock);
	return room;
}

size_t takt_store_outstanding(struct takt_store *store)
{
	size_t n;

	pthread_mutex_lock(&store->lock);
	n = store->outstanding;
	pthread_mutex_unlock(&store->lock);
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment is the largest part of a description, and nobody asks for it before its job is
 * made ready to start. So after a start of the daemon that of a job which waits stays in the store
 * until then: of a hundred thousand jobs these are millions of small texts to make, keep and give
 * back.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

/* A hook has the environment, too, and may be told of an end, which takes it out of the store. */
static bool may_stay(const struct takt_queue_job *job)
{
	return job->row.state == TAKT_JOB_WAITING && !job->row.staged && !job->spec.hook;
}

/* A copy of a database has no environments. What was given with it (a path, a token) is not to be
 * guessed, so its jobs wait for somebody's word. */
static void hold(struct takt_queue_job *job)
{
	if (job->row.state != TAKT_JOB_WAITING || job->row.held != TAKT_HOLD_NONE)
		return;
	job->row.held = TAKT_HOLD_OWNER;
	takt_queue_say(job, "held: its environment is not in this database; release it to run "
			    "without, or cancel it and submit it again");
}

int takt_queue_env_load(struct takt_queue_job *job, const struct takt_job *row,
			struct takt_err *err)
{
	if (job->env)
		return 0;
	if (!row->env_json) {
		hold(job);
		return 0;
	}
	if (!may_stay(job))
		return takt_jobspec_env_from_json(row->env_json, strlen(row->env_json), &job->spec,
						  err);
	job->env_away_bytes = strlen(row->env_json);
	return 0;
}

/* -TAKT_E_NOT_FOUND: there is none that could be read some time later. */
static int fetch(struct takt_queue *queue, struct takt_queue_job *job)
{
	char *json = NULL;
	int rc = takt_store_environment(queue->config.store, job->row.id, &json, NULL);

	if (rc == 0)
		rc = json ? takt_jobspec_env_from_json(json, strlen(json), &job->spec, NULL)
			  : -TAKT_E_NOT_FOUND;
	if (json && rc < 0 && rc != -ENOMEM)
		rc = -TAKT_E_NOT_FOUND;
	takt_free(json);
	return rc;
}

bool takt_queue_env_fetch(struct takt_queue *queue, struct takt_queue_job *job)
{
	int rc = job->env_away_bytes ? fetch(queue, job) : 0;

	if (rc == 0 || rc == -TAKT_E_NOT_FOUND)
		job->env_away_bytes = 0;
	if (rc == 0)
		return true;
	if (rc == -TAKT_E_NOT_FOUND) {
		hold(job);
		(void)takt_queue_tell(queue, TAKT_SCHED_JOB_CHANGE, job, NULL);
		(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
		takt_queue_changed(queue, job);
	} else {
		queue->dirty = true;
		takt_queue_pause(queue);
	}
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "loss_witness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void witness_init(struct witness *witness)
{
	memset(witness, 0, sizeof(*witness));
}

void witness_blame(struct witness *witness, const char *fmt, ...)
{
	va_list ap;

	if (witness->why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(witness->why, sizeof(witness->why), fmt, ap);
	va_end(ap);
	for (char *at = witness->why; *at; at++)
		if (*at == '\n')
			*at = ' ';
}

static struct witness_job *job_of(struct witness *witness, uint32_t serial)
{
	if (serial == 0 || serial > witness->nr_jobs)
		abort(); /* a test that loses its own numbers */
	return &witness->jobs[serial - 1];
}

uint32_t witness_submit(struct witness *witness, uint32_t milli, bool requeue)
{
	if (witness->nr_jobs == WITNESS_MAX_JOBS)
		abort();
	witness->jobs[witness->nr_jobs] = (struct witness_job){.milli = milli, .requeue = requeue};
	return ++witness->nr_jobs;
}

static void know_id(struct witness *witness, uint32_t serial, uint64_t id)
{
	struct witness_job *job = job_of(witness, serial);

	if (job->id != 0 && job->id != id)
		witness_blame(witness, "s%u is job %llu and job %llu", serial,
			      (unsigned long long)job->id, (unsigned long long)id);
	job->id = id;
}

void witness_accepted(struct witness *witness, uint32_t serial, uint64_t id)
{
	know_id(witness, serial, id);
	job_of(witness, serial)->accepted = true;
}

void witness_ended(struct witness *witness, uint32_t serial, const struct takt_job *row)
{
	struct witness_job *job = job_of(witness, serial);

	know_id(witness, serial, row->id);
	if (job->end_told)
		witness_blame(witness, "s%u ended twice: %s, then %s", serial,
			      takt_job_state_name(job->state), takt_job_state_name(row->state));
	job->end_told = true;
	job->state = row->state;
	job->exit_code = row->exit_code;
	job->exit_signal = row->exit_signal;
}

void witness_cancel(struct witness *witness, uint32_t serial, uint32_t attempt)
{
	struct witness_job *job = job_of(witness, serial);

	job->cancel_asked = true;
	if (job->cancel_kept || job->cancel_fresh)
		return;
	job->cancel_fresh = true;
	job->cancel_attempt = attempt;
	job->cancel_boot = witness->power_losses;
}

void witness_anew(struct witness *witness, uint32_t serial, uint32_t attempt)
{
	if (attempt > 63)
		abort();
	job_of(witness, serial)->anew_asked |= 1ull << attempt;
}

void witness_anew_kept(struct witness *witness, uint32_t serial, uint32_t attempt)
{
	job_of(witness, serial)->anew_kept = attempt;
}

void witness_all_written(struct witness *witness)
{
	for (uint32_t i = 0; i < witness->nr_jobs; i++)
		witness->jobs[i].cancel_kept |= witness->jobs[i].cancel_fresh;
}

void witness_daemon_death(struct witness *witness)
{
	for (uint32_t i = 0; i < witness->nr_jobs; i++)
		witness->jobs[i].cancel_fresh = false;
}

/* The newest run of a job, or NULL. */
static const struct witness_run *last_run(const struct witness *witness, uint32_t serial)
{
	for (uint32_t i = witness->nr_runs; i-- > 0;)
		if (witness->runs[i].serial == serial)
			return &witness->runs[i];
	return NULL;
}

/* Somebody has asked that the job begin anew after that run, however it ends. */
static bool follows_a_wish(const struct witness_job *job, const struct witness_run *last)
{
	return last && last->attempt < 64 && job->anew_asked >> last->attempt & 1;
}

/* Nobody is given more of a GPU than the others have left. */
static void judge_gpu(struct witness *witness, uint32_t serial, uint32_t gpu)
{
	uint32_t milli = job_of(witness, serial)->milli;

	for (uint32_t i = 0; i < witness->nr_runs; i++)
		if (witness->runs[i].alive && witness->runs[i].gpus >> gpu & 1)
			milli += job_of(witness, witness->runs[i].serial)->milli;
	if (milli > 1000)
		witness_blame(witness, "s%u runs, and %u thousandths of GPU %u are given out",
			      serial, milli, gpu);
}

static void judge_exec(struct witness *witness, uint32_t serial, uint32_t attempt, uint64_t gpus)
{
	const struct witness_job *job = job_of(witness, serial);
	const struct witness_run *last = last_run(witness, serial);
	bool wished = follows_a_wish(job, last);

	if (job->end_told)
		witness_blame(witness, "s%u runs after its end was told", serial);
	if (gpus == 0) /* all of them ask for some */
		witness_blame(witness, "s%u runs before it was given GPUs", serial);
	if ((job->cancel_fresh || job->cancel_kept) &&
	    (attempt > job->cancel_attempt || witness->power_losses > job->cancel_boot))
		witness_blame(witness, "s%u runs attempt %u though attempt %u was cancelled",
			      serial, attempt, job->cancel_attempt);
	if (last && !job->requeue && !wished)
		witness_blame(witness, "s%u runs again, attempts %u and %u", serial, last->attempt,
			      attempt);
	if (last && last->recorded && !wished)
		witness_blame(witness, "s%u runs again though its end is on record", serial);
	if (last && last->attempt >= attempt)
		witness_blame(witness, "s%u runs attempt %u after %u", serial, attempt,
			      last->attempt);
	for (uint32_t i = 0; i < witness->nr_runs; i++) {
		const struct witness_run *other = &witness->runs[i];

		if (other->alive && other->serial == serial)
			witness_blame(witness, "s%u runs twice at once", serial);
	}
	for (; gpus; gpus &= gpus - 1)
		judge_gpu(witness, serial, (uint32_t)__builtin_ctzll(gpus));
}

uint32_t witness_exec(struct witness *witness, uint32_t serial, uint64_t id, uint32_t attempt,
		      uint64_t gpus)
{
	bool anew;

	if (witness->nr_runs == WITNESS_MAX_RUNS)
		abort();
	know_id(witness, serial, id);
	judge_exec(witness, serial, attempt, gpus);
	anew = follows_a_wish(job_of(witness, serial), last_run(witness, serial));
	witness->runs[witness->nr_runs] = (struct witness_run){.serial = serial,
							       .attempt = attempt,
							       .id = id,
							       .gpus = gpus,
							       .alive = true,
							       .anew = anew};
	return witness->nr_runs++;
}

void witness_run_over(struct witness *witness, uint32_t run, int code, int signal)
{
	struct witness_run *at = &witness->runs[run];

	at->alive = false;
	at->over = true;
	at->code = code;
	at->signal = signal;
}

void witness_power_loss(struct witness *witness)
{
	witness->power_losses++;
	for (uint32_t i = 0; i < witness->nr_runs; i++)
		witness->runs[i].alive = false;
}

bool witness_gpu_used(const struct witness *witness, uint32_t gpu, uint64_t id)
{
	for (uint32_t i = 0; i < witness->nr_runs; i++)
		if (witness->runs[i].alive && witness->runs[i].gpus >> gpu & 1 &&
		    (id == 0 || witness->runs[i].id == id))
			return true;
	return false;
}

static bool ran_so(const struct witness_run *run, const struct takt_job *row)
{
	bool good = row->exit_code == 0 && row->exit_signal == 0;

	return run && run->over && run->attempt == row->attempt && run->code == row->exit_code &&
	       run->signal == row->exit_signal && good == (row->state == TAKT_JOB_DONE);
}

/* The end of its newest attempt is on record. */
static bool end_recorded(const struct witness_run *last, const struct takt_job *row)
{
	return last && last->recorded && last->attempt == row->attempt;
}

/* Could it have ended like this, by what was seen? */
static bool end_is_true(const struct witness *witness, uint32_t serial, const struct takt_job *row)
{
	const struct witness_job *job = &witness->jobs[serial - 1];
	const struct witness_run *last = last_run(witness, serial);

	switch (row->state) {
	case TAKT_JOB_DONE:
	case TAKT_JOB_FAILED:
		return ran_so(last, row);
	case TAKT_JOB_CANCELLED:
		return job->cancel_asked;
	case TAKT_JOB_LOST:
		return (witness->killed_shims > 0 || witness->calls_failed) &&
		       !end_recorded(last, row);
	case TAKT_JOB_INTERRUPTED:
		return witness->power_losses > 0 && !end_recorded(last, row);
	default:
		return false;
	}
}

static void judge_row(struct witness *witness, uint32_t serial, const struct takt_job *row)
{
	const struct witness_job *job = &witness->jobs[serial - 1];
	char name[32];

	snprintf(name, sizeof(name), "\"s%u\"", serial);
	if (!strstr(row->spec_json, name))
		witness_blame(witness, "s%u: job %llu is another's now", serial,
			      (unsigned long long)row->id);
	if (!end_is_true(witness, serial, row))
		witness_blame(witness, "s%u is %s (code %d, signal %d, attempt %u): not so", serial,
			      takt_job_state_name(row->state), row->exit_code, row->exit_signal,
			      row->attempt);
	if (job->anew_kept && row->attempt <= job->anew_kept && !job->cancel_asked)
		witness_blame(witness, "s%u ended with attempt %u, which was to end for another",
			      serial, row->attempt);
	if (job->end_told && (job->state != row->state || job->exit_code != row->exit_code ||
			      job->exit_signal != row->exit_signal))
		witness_blame(witness, "s%u was told to be %s and is %s", serial,
			      takt_job_state_name(job->state), takt_job_state_name(row->state));
}

void witness_judge(struct witness *witness, struct takt_store *store)
{
	for (uint32_t serial = 1; serial <= witness->nr_jobs; serial++) {
		uint64_t id = witness->jobs[serial - 1].id;
		struct takt_job row = {0};
		struct takt_err err = {0};

		if (id == 0)
			continue;
		if (takt_store_get(store, id, &row, &err) < 0) {
			witness_blame(witness, "s%u, job %llu: %s", serial, (unsigned long long)id,
				      err.msg);
			continue;
		}
		judge_row(witness, serial, &row);
		witness->ends[row.state]++;
		takt_job_fini(&row);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts that are refused, for those who look: why a job waits that has had its turn, and a warning
 * where no start succeeds at all.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

enum {
	NOTE = 8
};

/* What the refuser said may name what is its owner's; what is the machine's is everybody's. */
static bool is_for_all(enum takt_refusal kind)
{
	return kind == TAKT_REFUSAL_LAUNCHER || kind == TAKT_REFUSAL_ISOLATION;
}

static void say(const struct takt_queue_refusal *refusal, bool whole, char *ret, size_t size)
{
	const char *text = whole || is_for_all(refusal->kind) ? refusal->text : "";

	snprintf(ret, size, "%s did not start it, tried %u time%s%s%s; %s",
		 takt_refusal_by(refusal->kind), refusal->tries, refusal->tries == 1 ? "" : "s",
		 text[0] ? ": " : "", text, takt_refusal_mend(refusal->kind));
}

void takt_refused_fill(struct takt_daemon *daemon, const struct takt_queue_job *job,
		       struct takt_job_view *ret)
{
	const struct takt_queue_refusal *refusal = takt_queue_refused(daemon->queue, job);
	int64_t next_ms;

	if (!refusal)
		return;
	takt_strcpy(ret->refused, sizeof(ret->refused), takt_refusal_name(refusal->kind));
	takt_strcpy(ret->refused_by, sizeof(ret->refused_by), takt_refusal_by(refusal->kind));
	say(refusal, ret->mine, ret->refused_text, sizeof(ret->refused_text));
	ret->refused_tries = refusal->tries;
	ret->refused_since_ms = refusal->since.ns / (int64_t)TAKT_NS_PER_MS;
	next_ms = refusal->next.ns / (int64_t)TAKT_NS_PER_MS;
	if (next_ms > ret->retry_at_ms)
		ret->retry_at_ms = next_ms;
	/* It has had its turn: but for the pause nothing stands in its way. */
	if (job->phase != TAKT_PHASE_WAITING ||
	    (ret->why[0] && strcmp(ret->why, takt_why_name(TAKT_WHY_EARLIEST)) != 0) ||
	    next_ms < ret->begin_ms)
		return;
	takt_strcpy(ret->why, sizeof(ret->why), "refused");
	snprintf(ret->why_words, sizeof(ret->why_words), "start refused: %s",
		 takt_refusal_name(refusal->kind));
	takt_strcpy(ret->why_text, sizeof(ret->why_text), ret->refused_text);
}

static void describe(const struct takt_queue_refusal *refusal, char *ret, size_t size)
{
	bool tells = is_for_all(refusal->kind) && refusal->text[0];

	snprintf(ret, size,
		 "no job can be started: %u start%s refused, none succeeded since%s%s; %s",
		 refusal->tries, refusal->tries == 1 ? " was" : "s were", tells ? ": " : "",
		 tells ? refusal->text : "", takt_refusal_mend(refusal->kind));
}

void takt_refused_look(struct takt_daemon *daemon)
{
	const struct takt_queue_refusal *refusal = takt_queue_all_refused(daemon->queue);
	char *note = daemon->notes[NOTE];
	bool was = note[0];

	note[0] = '\0';
	if (refusal)
		describe(refusal, note, sizeof(daemon->notes[NOTE]));
	if (refusal && !was)
		takt_log(TAKT_LOG_WARNING, "%s", note);
	else if (!refusal && was)
		takt_log(TAKT_LOG_NOTICE, "jobs are started again");
}

void takt_refused_update_page(struct takt_daemon *daemon)
{
	const struct takt_queue_refusal *refusal = takt_queue_all_refused(daemon->queue);

	takt_telemetry_gauge(daemon->telemetry, "takt_starts_refused",
			     "Starts that were refused in a row, while none succeeds; 0 = some do.",
			     false, refusal ? refusal->tries : 0);
}

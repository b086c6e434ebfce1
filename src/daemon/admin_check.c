/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt admin check: whether the files of a daemon agree with each other. Database, folders of
 * attempts and the journal of clocks are read, nothing is changed, and a daemon may be at work
 * meanwhile; so the folders are read before the database, which hears of an attempt first.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "actuate/journal.h"
#include "base/str.h"
#include "daemon/admin.h"
#include "daemon/daemon.h"
#include "daemon/shared_places.h"
#include "store/store_admin.h"

enum {
	LINE = 400
};

struct check {
	const char *jobs_dir;
	takt_admin_say *say;
	void *ctx;
	struct takt_admin_attempts attempts;
	unsigned wrong;
};

__attribute__((format(printf, 5, 6))) static void
tell(struct check *check, bool wrong, const char *about, const char *todo, const char *format, ...)
{
	struct takt_admin_line line = {.about = about, .todo = todo, .wrong = wrong};
	char found[LINE];
	va_list args;

	va_start(args, format);
	vsnprintf(found, sizeof(found), format, args);
	va_end(args);
	line.found = found;
	check->say(check->ctx, &line);
	check->wrong += wrong;
}

/* Its folders are known; what runs by the database has its records. */
static void look_at_job(void *ctx, uint64_t job_id, uint32_t attempt, bool runs)
{
	struct check *check = ctx;
	bool there = false;
	size_t first, count = takt_admin_attempts_of(&check->attempts, job_id, &first);

	for (size_t i = first; i < first + count; i++) {
		struct takt_admin_attempt *found = &check->attempts.list.at[i];

		found->known = found->attempt <= attempt;
		there = there ||
			(found->attempt == attempt && found->status.state != TAKT_ATTEMPT_ABSENT);
	}
	if (runs && !there)
		tell(check, true, "attempts",
		     "the next start of takt serve calls it lost, or runs it again if it was "
		     "handed "
		     "in with --requeue",
		     "job %" PRIu64 " runs, but there are no records of its attempt %u", job_id,
		     attempt);
}

static void look_at_environment(void *ctx, uint64_t job_id)
{
	char todo[160];

	snprintf(todo, sizeof(todo),
		 "stop takt serve and run: sqlite3 takt.db 'DELETE FROM environment WHERE job_id = "
		 "%" PRIu64 "'",
		 job_id);
	tell(ctx, true, "environments", todo,
	     "the environment of job %" PRIu64 " is kept, but no such job waits or runs", job_id);
}

/* No job of the database has it: left behind, or of another database. */
static void tell_unknown(struct check *check, const struct takt_admin_attempt *found)
{
	const struct takt_attempt_status *status = &found->status;
	bool lives = status->state == TAKT_ATTEMPT_ALIVE;
	char todo[PATH_MAX + 160];

	if (lives)
		snprintf(todo, sizeof(todo),
			 "restore the database that knows it, or end it: kill %d (its takt-shim)",
			 status->shim.pid);
	else
		snprintf(todo, sizeof(todo),
			 "if it is still there in a minute, nobody needs it: rm -r %s/%" PRIu64
			 ".%u",
			 check->jobs_dir, found->job_id, found->attempt);
	tell(check, lives, "attempts", todo,
	     "attempt %" PRIu64 ".%u %s, and the database knows no such attempt", found->job_id,
	     found->attempt, lives ? "runs" : "is on disk");
}

static int check_database(struct check *check, const char *db, struct takt_err *err)
{
	const struct takt_store_file_look look = {look_at_job, look_at_environment, check};
	unsigned wrong = check->wrong;
	uint64_t jobs = 0;
	int64_t schema = 0;
	int rc = takt_store_file_check(db, &schema, &jobs, &look, err);

	if (rc < 0)
		return rc;
	TAKT_VEC_EACH (found, &check->attempts.list)
		if (!found->known)
			tell_unknown(check, found);
	tell(check, false, "database", "", "sound, schema %" PRId64 ", %" PRIu64 " jobs", schema,
	     jobs);
	if (check->wrong == wrong)
		tell(check, false, "attempts", "", "those of running jobs are there");
	return 0;
}

/* Whether actuator or guard hold the right to set clocks. */
static bool is_answered_for(const char *clocks_dir)
{
	char path[PATH_MAX], holder[96];

	snprintf(path, sizeof(path), "%s/clocks.lock", clocks_dir);
	return takt_lock_is_held(path, holder, sizeof(holder));
}

static void tell_changed(struct check *check, const struct takt_journal *journal,
			 const struct takt_journal_record *record, bool answered_for)
{
	char todo[2 * TAKT_JOURNAL_UUID + 140], text[TAKT_SETTING_TEXT];

	snprintf(todo, sizeof(todo),
		 "start takt serve, which puts it back; or by hand: nvidia-smi -i %s -rgc",
		 record->uuid);
	if (record->found_power_mw)
		snprintf(todo + strlen(todo), sizeof(todo) - strlen(todo),
			 "; nvidia-smi -i %s -pl %u", record->uuid, record->found_power_mw / 1000);
	takt_setting_text(&record->setting, text);
	if (answered_for)
		tell(check, false, "clocks", "",
		     "%s is changed to %s for job %" PRIu64 "; the %s, pid %d, answers for it",
		     record->uuid, text, record->job_id, journal->holder.name, journal->holder.pid);
	else
		tell(check, true, "clocks", todo,
		     "%s is changed to %s for job %" PRIu64 ", and nobody answers for it",
		     record->uuid, text, record->job_id);
}

/* Of an earlier boot nothing is in force. */
static void look_at_records(struct check *check, const struct takt_journal *journal,
			    bool answered_for)
{
	char boot_id[TAKT_JOURNAL_BOOT];
	unsigned changed = 0;

	takt_boot_id(boot_id);
	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++) {
		const struct takt_journal_pair *pair = &journal->pairs[i];

		if (pair->state != TAKT_JOURNAL_VALID ||
		    pair->record.state != TAKT_JOURNAL_CHANGED ||
		    takt_boot_differs(pair->record.boot_id, boot_id))
			continue;
		if (strcmp(pair->record.uuid, TAKT_CPU_UUID) == 0)
			tell(check, !answered_for, "clocks",
			     answered_for ? "" : "start takt serve, which puts them back",
			     "CPUs are limited by takt%s",
			     answered_for ? "" : ", and nobody answers for it");
		else
			tell_changed(check, journal, &pair->record, answered_for);
		changed++;
	}
	if (takt_journal_damaged(journal) > 0)
		tell(check, !answered_for, "clocks",
		     answered_for ? "" : "start takt serve, which puts every such GPU back",
		     "%u records of the journal are unreadable: any GPU without a record of its "
		     "own "
		     "may be changed",
		     takt_journal_damaged(journal));
	else if (changed == 0)
		tell(check, false, "clocks", "", "every GPU is at its baseline");
}

static int check_clocks(struct check *check, const char *clocks_dir, struct takt_err *err)
{
	struct takt_journal journal;
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/clocks.journal", clocks_dir);
	rc = takt_journal_look(takt_sys_real(), path, &journal, err);
	if (rc == -ENOENT) {
		tell(check, false, "clocks", "", "takt has changed none here");
		return 0;
	}
	if (rc == -TAKT_E_CORRUPT) {
		tell(check, true, "clocks",
		     "start takt serve, which mends a journal that was cut short and puts every "
		     "GPU "
		     "back",
		     "%s", err->msg);
		return 0;
	}
	if (rc == 0)
		look_at_records(check, &journal, is_answered_for(clocks_dir));
	return rc;
}

int takt_admin_check(const struct takt_config *config, const char *db, takt_admin_say *say,
		     void *ctx, struct takt_err *err)
{
	char jobs_dir[PATH_MAX];
	struct check check = {.jobs_dir = jobs_dir, .say = say, .ctx = ctx};
	struct takt_admin_owner owner;
	int rc;

	snprintf(jobs_dir, sizeof(jobs_dir), "%s/jobs", config->state_dir);
	rc = takt_admin_attempts_read(jobs_dir, &check.attempts, err);
	if (rc == 0)
		rc = takt_admin_as_owner(config->state_dir, &owner, err);
	if (rc == 0) {
		rc = check_database(&check, db, err);
		takt_admin_as_before(&owner);
	}
	if (rc == 0)
		rc = check_clocks(&check, config->clocks_dir, err);
	takt_admin_attempts_fini(&check.attempts);
	if (rc < 0 || check.wrong == 0)
		return rc;
	return takt_err_set(err, -TAKT_E_CORRUPT, "%u of the things above are wrong", check.wrong);
}

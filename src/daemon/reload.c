/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration read again: at SIGHUP, and when an administrator asks. It is read as at the
 * start, the file first and then the flags, which win. One that is wrong in one place is refused
 * whole; of one that is right the settings marked so in the table of keys count at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/govern.h"
#include "daemon/log.h"

enum {
	NOTE = 3,
	NAMES = 600,
};

static enum takt_queue_staging staging_of(enum takt_stage_config stage)
{
	return stage == TAKT_STAGE_CONFIG_ALL	? TAKT_STAGING_ALL
	       : stage == TAKT_STAGE_CONFIG_OFF ? TAKT_STAGING_OFF
						: TAKT_STAGING_ASKED;
}

static struct takt_sched_settings settings_of(const struct takt_config *config)
{
	struct takt_sched_settings settings = {
		.backfill = (enum takt_backfill)config->backfill,
		.preempt = config->preempt,
		.guard_ns = config->guard_ms * TAKT_NS_PER_MS,
		.min_runtime_ns = config->min_runtime_ms * TAKT_NS_PER_MS,
	};

	takt_strcpy(settings.order, sizeof(settings.order), takt_config_orders[config->order]);
	return settings;
}

struct takt_queue_terms takt_daemon_queue_terms(const struct takt_config *config)
{
	static const enum takt_failure_policy on_fault[] = {
		[TAKT_ON_FAULT_LEAVE] = TAKT_FAILURE_KEEP,
		[TAKT_ON_FAULT_REQUEUE] = TAKT_FAILURE_REQUEUE,
		[TAKT_ON_FAULT_STOP] = TAKT_FAILURE_STOP,
	};

	return (struct takt_queue_terms){
		.settings = settings_of(config),
		.staging = staging_of(config->stage),
		.on_gpu_failure = on_fault[config->on_gpu_fault],
		.max_jobs = config->max_jobs,
		.user_max_jobs = config->user_max_jobs,
		.user_max_bytes = (size_t)config->user_descriptions_mib * 1024 * 1024,
	};
}

static int read_again(const struct takt_daemon *daemon, struct takt_config *ret,
		      struct takt_err *err)
{
	enum takt_config_action action;
	int rc = takt_config_from_args(ret, daemon->argc, daemon->argv, &action, err);

	return rc < 0 ? rc
		      : takt_config_resolve(ret, getuid(), getenv("XDG_RUNTIME_DIR"),
					    getenv("XDG_STATE_HOME"), getenv("HOME"), err);
}

/* What may refuse comes first. */
static int put_in_force(struct takt_daemon *daemon, const struct takt_config *next,
			struct takt_str *changed, struct takt_str *need_restart,
			struct takt_err *err)
{
	struct takt_queue_terms terms = takt_daemon_queue_terms(next);
	TAKT_CLEANUP(strp) struct takt_str again = TAKT_STR(NAMES);
	int rc = takt_govern_check_setting(daemon, next, err);

	if (rc == 0)
		rc = takt_queue_set_terms(daemon->queue, &terms, err);
	if (rc < 0)
		return rc;
	takt_config_adopt(&daemon->read, next, changed, need_restart);
	takt_config_adopt(&daemon->config, next, &again, &again);
	takt_store_keep_ended(daemon->store, daemon->config.keep_ended);
	takt_store_keep_bytes(daemon->store, takt_job_output_history(daemon));
	takt_tenants_file_read(daemon);
	takt_tls_files_read(daemon);
	return 0;
}

static void note(struct takt_daemon *daemon, const char *what, const char *detail)
{
	snprintf(daemon->notes[NOTE], sizeof(daemon->notes[NOTE]), "%s%.140s", what, detail);
	takt_log(what[0] ? TAKT_LOG_WARNING : TAKT_LOG_NOTICE, "%s%s",
		 what[0] ? what : "configuration read again", detail);
}

int takt_daemon_reload(struct takt_daemon *daemon, struct takt_reload_view *ret,
		       struct takt_err *err)
{
	TAKT_CLEANUP(strp)
	struct takt_str changed = TAKT_STR(NAMES), need_restart = TAKT_STR(NAMES);
	struct takt_config next;
	struct takt_err wrong = {0};
	int rc = read_again(daemon, &next, &wrong);

	if (rc == 0)
		rc = put_in_force(daemon, &next, &changed, &need_restart, &wrong);
	if (rc < 0) {
		note(daemon, "configuration as before, the new one was refused: ", wrong.msg);
		*err = wrong;
		return rc;
	}
	note(daemon, need_restart.len ? "takt serve has to be started again for: " : "",
	     takt_str_text(&need_restart));
	takt_strcpy(ret->changed, sizeof(ret->changed), takt_str_text(&changed));
	takt_strcpy(ret->need_restart, sizeof(ret->need_restart), takt_str_text(&need_restart));
	return 0;
}

int takt_api_reload(void *ctx, const struct takt_peer *peer, struct takt_reload_view *ret,
		    struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;

	if (!peer->admin)
		return takt_err_set(err, -EPERM, "only root and members of group %s may do so",
				    daemon->config.admin_group);
	return takt_daemon_reload(daemon, ret, err);
}

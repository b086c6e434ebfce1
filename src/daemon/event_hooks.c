/* SPDX-License-Identifier: Apache-2.0 */
/* See event_hooks.h. */
#include "daemon/event_hooks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_whose.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "engine/local/jobenv.h"

enum {
	MAX_WAITING = 4096,
	MAX_BYTES = 64 * 1024 * 1024, /* of their environments together */
	MAX_TOLD = 12,		      /* variables that tell of the event */
	GRACE_MS = 1000,
};

/* One run of a hook. What an earlier daemon started has no words. */
struct hook {
	uint64_t job_id;
	uint32_t attempt; /* of the hook, from TAKT_ENGINE_ASIDE on */
	uint32_t job_attempt;
	uid_t uid;
	gid_t gid;
	enum takt_job_event event;
	bool runs;
	char *command, *cwd, **env; /* owned, or NULL */
	size_t bytes;
	struct takt_job_limits limits;
};

struct takt_event_hooks {
	struct takt_daemon *daemon;
	TAKT_VEC(struct hook) list; /* in the order of their events */
	size_t bytes;
	uint32_t next_attempt; /* above TAKT_ENGINE_ASIDE */
	uint64_t next_action;
};

int takt_event_hooks_new(struct takt_daemon *daemon, struct takt_event_hooks **ret)
{
	struct takt_event_hooks *hooks = takt_zalloc(sizeof(*hooks));
	uint64_t now_ns = (uint64_t)takt_wall_now(daemon->sys).ns;

	if (!hooks)
		return -ENOMEM;
	hooks->daemon = daemon;
	hooks->list.max = MAX_WAITING;
	hooks->next_attempt = (uint32_t)(now_ns / TAKT_NS_PER_S);
	/* Apart from the queue's own, which are above and below. */
	hooks->next_action = UINT64_C(1) << 62 | (now_ns & ((UINT64_C(1) << 61) - 1));
	*ret = hooks;
	return 0;
}

static void free_words(struct hook *hook)
{
	takt_free(hook->command);
	takt_free(hook->cwd);
	takt_jobenv_free(hook->env);
}

static void drop(struct takt_event_hooks *hooks, size_t at)
{
	struct hook *hook = &hooks->list.at[at];

	hooks->bytes -= hook->bytes;
	free_words(hook);
	takt_vec_remove(&hooks->list, at);
}

void takt_event_hooks_free(struct takt_event_hooks *hooks)
{
	if (!hooks)
		return;
	while (hooks->list.len > 0)
		drop(hooks, hooks->list.len - 1);
	takt_vec_fini(&hooks->list);
	takt_free(hooks);
}

/* "0,3" */
static void list_gpus(uint64_t gpu_mask, char *ret, size_t size)
{
	size_t at = 0;

	ret[0] = '\0';
	for (; gpu_mask && at + 4 < size; gpu_mask &= gpu_mask - 1)
		at += (size_t)snprintf(ret + at, size - at, "%s%d", at ? "," : "",
				       __builtin_ctzll(gpu_mask));
}

static bool has_exit_code(const struct takt_queue_job *job)
{
	return job->row.state == TAKT_JOB_DONE || job->row.state == TAKT_JOB_FAILED;
}

static bool tells_cause(enum takt_job_event event)
{
	return event == TAKT_EVENT_REQUEUED || event == TAKT_EVENT_PREEMPTED ||
	       event == TAKT_EVENT_ENDED;
}

/* How many variables that is. */
static size_t tell_cause(const struct takt_job_cause *cause, char told[][320])
{
	size_t n = 0;

	if (cause->cause == TAKT_CAUSE_NONE)
		return 0;
	snprintf(told[n++], 320, "TAKT_CAUSE=%s", takt_cause_name(cause->cause));
	if (cause->gpu >= 0)
		snprintf(told[n++], 320, "TAKT_CAUSE_GPU=%" PRId32, cause->gpu);
	if (cause->xid)
		snprintf(told[n++], 320, "TAKT_CAUSE_XID=%" PRIu32, cause->xid);
	if (cause->at.ns)
		snprintf(told[n++], 320, "TAKT_CAUSE_AT_MS=%" PRId64,
			 cause->at.ns / (int64_t)TAKT_NS_PER_MS);
	return n;
}

/* What is told of the event, beside what any process of the job finds. */
static void tell(const struct takt_queue_job *job, enum takt_job_event event,
		 char told[MAX_TOLD][320], char *ret_list[MAX_TOLD + 1])
{
	size_t n = 0;
	char gpus[200];

	list_gpus(job->row.gpu_mask, gpus, sizeof(gpus));
	snprintf(told[n++], 320, "TAKT_EVENT=%s", takt_job_event_name(event));
	snprintf(told[n++], 320, "TAKT_JOB_NAME=%s", job->spec.name);
	snprintf(told[n++], 320, "TAKT_GPUS=%s", gpus);
	snprintf(told[n++], 320, "TAKT_JOB_STATE=%s", takt_job_state_name(job->row.state));
	if (event == TAKT_EVENT_ENDED && job->row.exit_signal)
		snprintf(told[n++], 320, "TAKT_EXIT_SIGNAL=%d", job->row.exit_signal);
	else if (event == TAKT_EVENT_ENDED && has_exit_code(job))
		snprintf(told[n++], 320, "TAKT_EXIT_CODE=%d", job->row.exit_code);
	if (tells_cause(event))
		n += tell_cause(&job->row.cause, &told[n]);
	if (job->row.message && job->row.message[0])
		snprintf(told[n++], 320, "TAKT_MESSAGE=%s", job->row.message);
	for (size_t i = 0; i < n; i++)
		ret_list[i] = told[i];
	ret_list[n] = NULL;
}

static int build_env(const struct takt_queue_job *job, enum takt_job_event event, char ***ret)
{
	char told[MAX_TOLD][320], *more[MAX_TOLD + 1];
	struct takt_jobenv in = {
		.user_env = job->spec.env,
		.job_id = job->row.id,
		.restarts = job->row.restarts,
		.array_id = job->spec.array_id,
		.array_index = job->spec.array_index,
		.checkpoint_dir = job->spec.checkpoint_dir,
		.params = job->spec.params,
		.attempt_id = "",
		.more = more,
	};

	tell(job, event, told, more);
	return takt_jobenv_build(&in, ret, NULL);
}

static size_t bytes_of(const struct hook *hook)
{
	size_t bytes = strlen(hook->command) + strlen(hook->cwd);

	for (char **env = hook->env; *env; env++)
		bytes += strlen(*env) + sizeof(*env);
	return bytes;
}

static int make(struct takt_event_hooks *hooks, const struct takt_queue_job *job,
		enum takt_job_event event, struct hook *ret)
{
	struct hook hook = {
		.job_id = job->row.id,
		.attempt = TAKT_ENGINE_ASIDE | (hooks->next_attempt++ & (TAKT_ENGINE_ASIDE - 1)),
		.job_attempt = job->row.attempt,
		.uid = job->row.uid,
		.gid = job->row.gid,
		.event = event,
		.limits = {.cpu_milli = job->spec.cpu_milli,
			   .mem_mib = job->spec.mem_mib,
			   .processes = hooks->daemon->config.job_processes},
	};
	int rc = build_env(job, event, &hook.env);

	hook.command = takt_strdup(job->spec.hook);
	hook.cwd = takt_strdup(job->spec.cwd);
	if (rc == 0 && hook.command && hook.cwd) {
		hook.bytes = bytes_of(&hook);
		*ret = hook;
		return 0;
	}
	free_words(&hook);
	return -ENOMEM;
}

/* Those of a job run one after the other, in the order of their events. */
static bool is_first(const struct takt_event_hooks *hooks, uint64_t job_id, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (hooks->list.at[i].job_id == job_id)
			return false;
	return true;
}

static void complain(const struct hook *hook, const char *why)
{
	takt_log(TAKT_LOG_WARNING, "hook of job %" PRIu64 " at '%s': %s", hook->job_id,
		 takt_job_event_name(hook->event), why);
}

static int start(struct takt_event_hooks *hooks, struct hook *hook)
{
	struct takt_action action = {
		.id = hooks->next_action++,
		.kind = TAKT_ACTION_START,
		.job_id = hook->job_id,
		.attempt = hook->attempt,
		.node_id = TAKT_QUEUE_NODE,
	};
	struct takt_err err;
	int rc = takt_engine_apply(hooks->daemon->engine, &action, 1, &err);

	if (rc < 0)
		complain(hook, err.msg);
	hook->runs = rc >= 0;
	return rc;
}

static void start_due(struct takt_event_hooks *hooks)
{
	size_t running = 0;

	for (size_t i = 0; i < hooks->list.len && running < TAKT_HOOKS_AT_ONCE;) {
		struct hook *hook = &hooks->list.at[i];
		bool due = !hook->runs && is_first(hooks, hook->job_id, i);

		if (due && start(hooks, hook) < 0) {
			drop(hooks, i);
			continue;
		}
		running += hook->runs;
		i++;
	}
}

void takt_event_hooks_event(struct takt_event_hooks *hooks, const struct takt_queue_job *job,
			    enum takt_job_event event)
{
	struct hook hook = {.command = NULL};
	int rc = make(hooks, job, event, &hook);

	if (rc == 0 && hooks->bytes + hook.bytes > MAX_BYTES)
		rc = -TAKT_E_LIMIT;
	if (rc == 0)
		rc = takt_vec_push(&hooks->list, hook);
	if (rc == 0) {
		hooks->bytes += hook.bytes;
		start_due(hooks);
		return;
	}
	free_words(&hook);
	takt_log(TAKT_LOG_WARNING, "hook of job %" PRIu64 " at '%s' is not run: %s", job->row.id,
		 takt_job_event_name(event), takt_err_sentence(rc));
}

static size_t find(const struct takt_event_hooks *hooks, uint64_t job_id, uint32_t attempt)
{
	size_t i = 0;

	while (i < hooks->list.len &&
	       (hooks->list.at[i].job_id != job_id || hooks->list.at[i].attempt != attempt))
		i++;
	return i;
}

void takt_event_hooks_aside(struct takt_event_hooks *hooks, const struct takt_engine_event *event)
{
	size_t at = find(hooks, event->job_id, event->attempt);
	bool refused =
		event->kind == TAKT_ENGINE_OUTCOME &&
		(event->outcome == TAKT_OUTCOME_FAILED || event->outcome == TAKT_OUTCOME_CONFLICT);

	if (at == hooks->list.len || !(refused || event->kind == TAKT_ENGINE_ENDED))
		return;
	if (refused || event->end == TAKT_END_NEVER_RAN)
		complain(&hooks->list.at[at], event->message);
	(void)takt_attempt_remove(hooks->daemon->sys, hooks->daemon->jobs_dirfd, event->job_id,
				  event->attempt, NULL);
	drop(hooks, at);
	start_due(hooks);
}

/* The entry stands there, empty. */
static int name_attempt(char **env, const char *attempt_id)
{
	struct takt_str text = TAKT_STR(TAKT_ATTEMPT_ID_MAX + 32);
	char *entry;

	while (*env && strcmp(*env, "TAKT_ATTEMPT=") != 0)
		env++;
	(void)takt_str_addf(&text, "TAKT_ATTEMPT=%s", attempt_id);
	entry = *env ? takt_str_take(&text) : NULL;
	takt_str_fini(&text);
	if (!entry)
		return -ENOMEM;
	takt_free(*env);
	*env = entry;
	return 0;
}

static char **shell_argv(char **command)
{
	char **argv = takt_calloc(4, sizeof(*argv));

	if (!argv)
		return NULL;
	argv[0] = takt_strdup("/bin/sh");
	argv[1] = argv[0] ? takt_strdup("-c") : NULL;
	if (!argv[1]) {
		takt_jobenv_free(argv);
		return NULL;
	}
	argv[2] = *command;
	*command = NULL;
	return argv;
}

int takt_event_hooks_describe(struct takt_event_hooks *hooks, const struct takt_action *start,
			      const char *attempt_id, struct takt_attempt_spec *ret_spec,
			      uid_t *ret_uid, gid_t *ret_gid, struct takt_err *err)
{
	size_t at = find(hooks, start->job_id, start->attempt);
	struct hook *hook = at < hooks->list.len ? &hooks->list.at[at] : NULL;

	if (!hook || !hook->command)
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "the hook");
	ret_spec->argv = shell_argv(&hook->command);
	ret_spec->cwd = hook->cwd;
	ret_spec->env = hook->env;
	hook->cwd = NULL;
	hook->env = NULL;
	hooks->bytes -= hook->bytes;
	hook->bytes = 0;
	if (!ret_spec->argv || name_attempt(ret_spec->env, attempt_id) < 0)
		return takt_err_set(err, -ENOMEM, "the hook");
	ret_spec->grace_ms = GRACE_MS;
	ret_spec->limits = hook->limits;
	ret_spec->hook_limit_ms = hooks->daemon->config.hook_limit_ms;
	ret_spec->hook_log = hook->job_attempt;
	ret_spec->output_limit =
		takt_job_output_of_hook(hooks->daemon, hook->job_id, hook->job_attempt);
	takt_strcpy(ret_spec->hook_event, sizeof(ret_spec->hook_event),
		    takt_job_event_name(hook->event));
	*ret_uid = hook->uid;
	*ret_gid = hook->gid;
	return 0;
}

static bool may_be_alive(struct takt_daemon *daemon, uint64_t job_id, uint32_t attempt)
{
	struct takt_attempt_status status;

	return takt_attempt_status(daemon->sys, daemon->jobs_dirfd, job_id, attempt, &status,
				   NULL) == 0 &&
	       (status.state == TAKT_ATTEMPT_ALIVE || status.state == TAKT_ATTEMPT_ORPHANED);
}

/* Its log is its user's, or lent to him, while the directory may be root's. */
static bool whose_log(const struct takt_daemon *daemon, int dirfd, struct stat *ret_stat,
		      uid_t *ret_uid)
{
	int fd;

	if (daemon->sys->fstatat(daemon->sys, dirfd, "log", ret_stat) < 0)
		return false;
	*ret_uid = ret_stat->st_uid;
	if (*ret_uid != 0)
		return true;
	fd = daemon->sys->openat(daemon->sys, dirfd, "log",
				 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	*ret_uid = takt_file_whose(fd, ret_stat);
	(void)daemon->sys->close(daemon->sys, fd);
	return true;
}

/* True when the engine is to look after
 * it. */
static bool take_over(struct takt_event_hooks *hooks, uint64_t job_id, uint32_t attempt,
		      struct takt_engine_live *ret)
{
	struct takt_daemon *daemon = hooks->daemon;
	int fd = takt_attempt_open(daemon->sys, daemon->jobs_dirfd, job_id, attempt, NULL);
	struct hook hook = {.job_id = job_id, .attempt = attempt, .runs = true};
	struct stat st;
	uid_t uid;
	bool found = fd >= 0 && whose_log(daemon, fd, &st, &uid);

	if (fd >= 0)
		(void)daemon->sys->close(daemon->sys, fd);
	if (!found || !is_first(hooks, job_id, hooks->list.len) ||
	    takt_vec_push(&hooks->list, hook) < 0)
		return false;
	*ret = (struct takt_engine_live){
		.job_id = job_id, .attempt = attempt, .uid = uid, .gid = st.st_gid};
	return true;
}

size_t takt_event_hooks_adopt(struct takt_event_hooks *hooks, struct takt_engine_live *ret,
			      size_t max)
{
	struct takt_daemon *daemon = hooks->daemon;
	int fd = openat(daemon->jobs_dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t n = 0;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		uint64_t job_id;
		uint32_t attempt;

		if (sscanf(entry->d_name, "%" SCNu64 ".%" SCNu32, &job_id, &attempt) != 2 ||
		    attempt < TAKT_ENGINE_ASIDE)
			continue;
		if (!may_be_alive(daemon, job_id, attempt))
			(void)takt_attempt_remove(daemon->sys, daemon->jobs_dirfd, job_id, attempt,
						  NULL);
		else if (n < max && take_over(hooks, job_id, attempt, &ret[n]))
			n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

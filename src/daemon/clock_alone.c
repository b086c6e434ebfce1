/* SPDX-License-Identifier: Apache-2.0 */
/* See clock_alone.h. */
#include "daemon/clock_alone.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actuate/actuate.h"
#include "actuate/baseline.h"
#include "actuate/journal.h"
#include "base/mem.h"
#include "daemon/admin.h"
#include "daemon/clock_terms.h"
#include "daemon/daemon.h"
#include "daemon/libexec.h"
#include "daemon/shared_places.h"

enum {
	MAX_FILE = 64 * 1024,
	ANSWER_MS = 70000, /* MIG instances take seconds each */
	TRIES = 3,	   /* of an actuator that somebody kills */
};

static const uint64_t sample_ns = 2 * TAKT_NS_PER_S;
static const char next_name[] = "clocks.next"; /* what is to be declared, for the actuator */

extern char **environ;

/* The files and programs that takt serve would use. */
struct place {
	const struct takt_config *config;
	const struct takt_sys *sys;
	int runtime_fd;
	char socket[PATH_MAX], declared[PATH_MAX], next[PATH_MAX], journal[PATH_MAX],
		lock[PATH_MAX], actuate[PATH_MAX + 16], guard[PATH_MAX + 16];
};

static void join(char ret[PATH_MAX], const char *dir, const char *name)
{
	snprintf(ret, PATH_MAX, "%s/%s", dir, name);
}

static void name_files(const struct takt_config *config, struct place *ret)
{
	char libexec[PATH_MAX];

	*ret = (struct place){.config = config, .sys = takt_sys_real(), .runtime_fd = -1};
	takt_libexec_dir(libexec);
	join(ret->socket, config->helpers_dir, "actuate.sock");
	join(ret->declared, config->runtime_dir, takt_declared_name);
	join(ret->next, config->runtime_dir, next_name);
	join(ret->journal, config->clocks_dir, "clocks.journal");
	join(ret->lock, config->clocks_dir, "clocks.lock");
	snprintf(ret->actuate, sizeof(ret->actuate), "%s/takt-actuate", libexec);
	snprintf(ret->guard, sizeof(ret->guard), "%s/takt-guard", libexec);
}

/* *ret is owned; "" when there is no such file. */
static int read_declared(const struct place *place, char **ret, struct takt_err *err)
{
	size_t len;
	int rc = takt_file_read_plain(place->sys, AT_FDCWD, place->declared, MAX_FILE, ret, &len,
				      err);

	if (rc != -ENOENT)
		return rc;
	*ret = takt_strdup("");
	return *ret ? 0 : takt_err_set(err, -ENOMEM, "what is declared of clocks");
}

static int open_machine(const struct takt_config *config, struct takt_machine **ret,
			struct takt_err *err)
{
	const struct takt_machine_config open = {
		.source = config->nvml_path[0] ? TAKT_SOURCE_NVML : TAKT_SOURCE_AUTO,
		.nvml_path = config->nvml_path[0] ? config->nvml_path : NULL,
		.no_processes = true,
		.sysfs_root = config->sysfs_root,
	};
	int rc = takt_machine_open(&open, ret, err);

	if (rc < 0 || takt_machine_info(*ret)->gpu_count)
		return rc;
	rc = takt_err_set(err, -TAKT_E_UNAVAILABLE, "no GPU to be seen: %.180s",
			  takt_machine_info(*ret)->why_none);
	takt_machine_close(*ret);
	return rc;
}

static void look_at_boards(struct takt_machine *machine, struct takt_clock_view *ret)
{
	struct takt_mono until = {takt_mono_now(takt_sys_real()).ns + sample_ns};
	struct takt_gpu_reading reading;

	*ret = (struct takt_clock_view){
		.simulated = takt_machine_info(machine)->simulated,
		.gpu_count = takt_machine_info(machine)->gpu_count,
	};
	takt_machine_sample(machine, UINT32_MAX);
	for (uint32_t gpu = 0; gpu < ret->gpu_count; gpu++) {
		ret->gpu[gpu].index = gpu;
		takt_clock_gpu_facts(takt_machine_facts(machine, gpu), &ret->gpu[gpu]);
		if (takt_machine_wait(machine, gpu, 0, until) == 0 &&
		    takt_machine_reading(machine, gpu, &reading) == 0)
			takt_clock_gpu_reading(&reading, &ret->gpu[gpu]);
	}
}

/* A record of this boot; of an earlier one nothing is in force. */
static const struct takt_journal_record *find_record(const struct takt_journal *journal,
						     const char *prefix, const char *uuid)
{
	char name[TAKT_JOURNAL_UUID], boot_id[TAKT_JOURNAL_BOOT];
	const struct takt_journal_record *record;

	snprintf(name, sizeof(name), "%s%s", prefix, uuid);
	record = takt_journal_find(journal, name);
	takt_boot_id(boot_id);
	return record && !takt_boot_differs(record->boot_id, boot_id) ? record : NULL;
}

static void look_at_record(const struct takt_journal *journal, struct takt_clock_gpu *gpu)
{
	const struct takt_journal_record *clock = find_record(journal, "", gpu->uuid);
	const struct takt_journal_record *mig = find_record(journal, TAKT_MIG_UUID, gpu->uuid);

	takt_strcpy(gpu->clock_state, sizeof(gpu->clock_state), "clean");
	if (clock)
		gpu->cap_power_mw = clock->cap_power_mw;
	if ((!clock || clock->state != TAKT_JOURNAL_CHANGED) &&
	    (!mig || mig->state != TAKT_JOURNAL_CHANGED))
		return;
	takt_strcpy(gpu->clock_state, sizeof(gpu->clock_state), "changed");
	takt_strcpy(gpu->note, sizeof(gpu->note), "not at its baseline yet, by the journal");
}

/* What takt has changed, and what is declared. */
static int look_at_files(const struct place *place, struct takt_clock_view *view,
			 struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_baseline *baseline = takt_zalloc(sizeof(*baseline));
	TAKT_CLEANUP(freep)
	struct takt_journal *journal = takt_zalloc(sizeof(*journal));
	TAKT_CLEANUP(freep) char *text = NULL;
	bool declared;
	int rc = baseline && journal ? read_declared(place, &text, err)
				     : takt_err_set(err, -ENOMEM, "no memory for the clocks");

	if (rc == 0)
		rc = takt_baseline_load_declared(place->sys, place->declared,
						 place->config->baseline_file, baseline, &declared,
						 err);
	if (rc == 0)
		rc = takt_journal_look(place->sys, place->journal, journal, err);
	if (rc == -ENOENT || rc == -TAKT_E_CORRUPT)
		rc = 0; /* none yet, or one that the actuator mends */
	for (uint32_t i = 0; rc == 0 && i < view->gpu_count; i++) {
		struct takt_clock_gpu *gpu = &view->gpu[i];
		struct takt_baseline_rule rule = takt_baseline_of(baseline, gpu->uuid);

		gpu->base_min_mhz = rule.locked ? rule.range.min_mhz : 0;
		gpu->base_max_mhz = rule.locked ? rule.range.max_mhz : 0;
		gpu->base_power_mw = rule.power_limit_mw;
		takt_declared_mig(text, gpu->uuid, gpu->base_mig);
		look_at_record(journal, gpu);
	}
	return rc;
}

int takt_clock_alone_look(const struct takt_config *config, struct takt_clock_view *ret,
			  struct takt_err *err)
{
	struct takt_machine *machine;
	struct place place;
	int rc = open_machine(config, &machine, err);

	if (rc < 0)
		return rc;
	name_files(config, &place);
	look_at_boards(machine, ret);
	takt_machine_close(machine);
	return look_at_files(&place, ret, err);
}

/* A takt serve that does not answer yet, or another user's. */
static int check_owners(const struct takt_config *config, const struct takt_clock_view *view,
			struct takt_err *err)
{
	char owner[96];

	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (takt_gpu_is_locked(config, view->gpu[i].uuid, owner, sizeof(owner)))
			return takt_err_set(err, -TAKT_E_BUSY,
					    "GPU %u is managed by %s; ask it, or wait until it "
					    "answers",
					    view->gpu[i].index, owner);
	return 0;
}

/* Which instances jobs hold that have not come to them yet, only takt serve knows. */
static int check_cuts(const struct takt_config *config, const struct takt_declaration *declaration,
		      const struct takt_clock_view *view, struct takt_err *err)
{
	struct takt_admin_attempts attempts;
	char jobs_dir[PATH_MAX];
	bool cuts = false, alive = false;
	int rc;

	for (uint32_t i = 0; declaration && i < declaration->count; i++) {
		const struct takt_declared *wish = &declaration->gpu[i];

		cuts = cuts ||
		       (wish->mig[0] && strcmp(wish->mig, view->gpu[wish->index].base_mig) != 0);
	}
	if (!cuts)
		return 0;
	join(jobs_dir, config->state_dir, "jobs");
	rc = takt_admin_attempts_read(jobs_dir, &attempts, err);
	TAKT_VEC_EACH (found, &attempts.list)
		alive = alive || found->status.state == TAKT_ATTEMPT_ALIVE;
	takt_admin_attempts_fini(&attempts);
	if (rc == 0 && alive)
		rc = takt_err_set(err, -TAKT_E_BUSY,
				  "'mig': jobs run, and only takt serve knows on which instances");
	return rc;
}

static int open_place(struct place *place, struct takt_err *err)
{
	const char *path = place->config->runtime_dir;
	bool root = getuid() == 0;
	int rc;

	umask(0022); /* what is declared is read by the daemon, whoever that is */
	rc = takt_mkdirs_durable(place->sys, path, root ? 0755 : 0700, err);

	if (rc == 0)
		rc = takt_service_dir_check("runtime_dir", path, err);
	if (rc == 0)
		rc = takt_mkdirs_durable(place->sys, place->config->clocks_dir, root ? 0711 : 0700,
					 err);
	if (rc < 0)
		return rc;
	place->runtime_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return place->runtime_fd < 0 ? takt_err_set(err, -errno, "open '%s'", path) : 0;
}

static int write_text(const struct place *place, const char *name, const char *text,
		      struct takt_err *err)
{
	return takt_file_write_durable(place->sys, place->runtime_fd, name, text, strlen(text),
				       0644, err);
}

/* An actuator that is there already reads the file that takt serve would have written. */
static int ask_actuator(const struct place *place, struct takt_actuate_client *client,
			const char *text, struct takt_err *err)
{
	struct pollfd fd = {.fd = takt_actuate_fd(client), .events = POLLIN};
	struct takt_actuate_request request = {.op = TAKT_ACTUATE_DECLARE, .seq = 1};
	struct takt_actuate_reply reply;
	int rc = write_text(place, takt_declared_name, text, err);

	if (rc == 0)
		rc = takt_actuate_send(client, request, err);
	while (rc == 0) {
		if (poll(&fd, 1, ANSWER_MS) == 0)
			return takt_err_set(err, -ETIMEDOUT, "a GPU did not answer in time");
		rc = takt_actuate_recv(client, &reply, err);
	}
	if (rc < 0)
		return rc;
	return reply.rc < 0 ? takt_err_set(err, reply.rc, "%s", reply.message) : 0;
}

/* Cuts the last line off; "" when there is none. */
static const char *cut_last_line(char *said)
{
	size_t len = strlen(said);
	char *before;

	if (len > 0)
		said[len - 1] = '\0'; /* its end */
	before = strrchr(said, '\n');
	if (!before)
		return said;
	*before = '\0';
	return before + 1;
}

/* The last line of what it said is why; each begins with its name. */
static int refusal_of(int status, char *said, struct takt_err *err)
{
	static const int known[] = {-EPERM, -TAKT_E_BUSY, -EINVAL, -TAKT_E_UNAVAILABLE};
	static const char self[] = "takt-actuate: ";
	const char *last = cut_last_line(said);
	int rc = -EIO;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(known); i++)
		if (takt_err_exit_status(known[i]) == WEXITSTATUS(status))
			rc = known[i];
	if (last != said)
		(void)fprintf(stderr, "%s\n", said);
	if (strncmp(last, self, strlen(self)) == 0)
		last += strlen(self);
	return takt_err_set(err, rc, "%s", last[0] ? last : "takt-actuate could not do it");
}

static int outcome_of(int status, char *said, struct takt_err *err)
{
	if (WIFSIGNALED(status))
		return takt_err_set(err, -EINTR, "takt-actuate died of signal %d",
				    WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		return refusal_of(status, said, err);
	(void)fputs(said, stderr);
	return 0;
}

/* What it says until it ends. Its guard may live on, and must not keep our caller's standard error
 * open. */
static int hear_out(pid_t pid, int fd, struct takt_str *said)
{
	struct pollfd fds[2] = {{fd, POLLIN, 0}, {pidfd_open(pid, 0), POLLIN, 0}};
	char part[1024];
	ssize_t n;
	int status;

	while (!fds[1].revents && poll(fds, 2, -1) >= 0) {
		while ((n = read(fd, part, sizeof(part))) > 0)
			(void)takt_str_addn(said, part, (size_t)n);
		if (n == 0)
			fds[0].fd = -1;
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

static int spawn(const char *const *argv, int said_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc != 0)
		return -rc;
	rc = posix_spawn_file_actions_adddup2(&actions, said_fd, STDERR_FILENO);
	if (rc == 0)
		rc = posix_spawn(ret_pid, argv[0], &actions, NULL, (char **)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

static int run(const char *const *argv, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str said = TAKT_STR(MAX_FILE);
	TAKT_CLEANUP(freep) char *text = NULL;
	int ends[2], status, rc;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return takt_err_set(err, -errno, "make a pipe");
	rc = spawn(argv, ends[1], &pid);
	close(ends[1]);
	status = rc == 0 ? hear_out(pid, ends[0], &said) : rc;
	close(ends[0]);
	if (status < 0)
		return takt_err_set(err, status, "start '%.200s'", argv[0]);
	text = takt_str_take(&said);
	if (!text)
		text = takt_strdup("");
	return text ? outcome_of(status, text, err) : takt_err_set(err, -ENOMEM, "%s", argv[0]);
}

static int run_actuator(const struct place *place, struct takt_err *err)
{
	const struct takt_config *config = place->config;
	const char *argv[24] = {place->actuate,	   "--declare", place->next,	"--declared",
				place->declared,   "--journal", place->journal, "--lock",
				place->lock,	   "--guard",	place->guard,	"--sysfs",
				config->sysfs_root};
	size_t n = 13;

	if (config->nvml_path[0]) {
		argv[n++] = "--nvml";
		argv[n++] = config->nvml_path;
	}
	if (config->driver_calls) {
		argv[n++] = "--driver-calls";
		argv[n++] = "any";
	}
	if (config->baseline_file[0]) {
		argv[n++] = "--baseline";
		argv[n++] = config->baseline_file;
	}
	return run(argv, err);
}

/* One of our own, as often as it is killed; its guard has then finished what it had begun. */
static int start_actuator(const struct place *place, const char *text, struct takt_err *err)
{
	int rc = write_text(place, next_name, text, err), tries = 0;

	if (rc < 0)
		return rc;
	do
		rc = run_actuator(place, err);
	while (rc == -EINTR && ++tries < TRIES);
	(void)unlink(place->next);
	return rc;
}

static int put_in_force(const struct place *place, const char *text, struct takt_err *err)
{
	struct takt_actuate_client *client;
	int rc;

	if (takt_actuate_connect(place->socket, &client, NULL) < 0)
		return start_actuator(place, text, err);
	rc = ask_actuator(place, client, text, err);
	takt_actuate_client_free(client);
	return rc == -EPIPE ? start_actuator(place, text, err) : rc;
}

static bool any_changed(const struct takt_clock_view *view)
{
	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (strcmp(view->gpu[i].clock_state, "changed") == 0)
			return true;
	return false;
}

static int declare(struct place *place, const struct takt_declaration *declaration,
		   const struct takt_clock_view *view, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_FILE);
	TAKT_CLEANUP(freep) char *was = NULL;
	int rc = open_place(place, err);

	for (uint32_t i = 0; declaration && i < declaration->count; i++)
		takt_declared_line(&declaration->gpu[i], view->gpu[declaration->gpu[i].index].uuid,
				   &text);
	if (rc == 0 && text.rc < 0)
		rc = takt_err_set(err, text.rc, "no memory for what is declared");
	if (rc == 0)
		rc = read_declared(place, &was, err);
	if (rc < 0)
		return rc;
	rc = put_in_force(place, takt_str_text(&text), err);
	if (rc < 0 && declaration)
		(void)put_in_force(place, was, NULL);
	return rc;
}

int takt_clock_alone_declare(const struct takt_config *config,
			     const struct takt_declaration *declaration,
			     struct takt_clock_view *view, struct takt_err *err)
{
	struct place place;
	struct takt_err unseen;
	int rc = check_owners(config, view, err), seen;

	if (rc == 0)
		rc = check_cuts(config, declaration, view, err);
	if (rc < 0)
		return rc;
	name_files(config, &place);
	rc = declare(&place, declaration, view, err);
	if (place.runtime_fd >= 0)
		close(place.runtime_fd);
	seen = takt_clock_alone_look(config, view, rc < 0 ? &unseen : err);
	if (rc < 0 && !declaration && seen == 0 && any_changed(view))
		return 0; /* as the view has it; the guard goes on trying */
	return rc < 0 ? rc : seen;
}

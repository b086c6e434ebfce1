/* SPDX-License-Identifier: Apache-2.0 */
/* The part of takt init that needs a machine that runs: its service manager, jobs, state. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/pace.h"
#include "base/sys.h"
#include "base/way.h"
#include "cli/init.h"

enum {
	MAX_WORDS = 8,
	MAX_SAID = 4096,
	MAX_DEPTH = 16,
};

static const uint64_t answer_ns = 60 * TAKT_NS_PER_S;
static const struct takt_pace answering = {100 * TAKT_NS_PER_MS, 2 * TAKT_NS_PER_S};

static void become(const char *const *words, int out)
{
	static const char path[] = "/usr/sbin:/usr/bin:/sbin:/bin";
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (geteuid() == 0 && setenv("PATH", path, 1) < 0)
		_exit(127);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	execvp(words[0], (char *const *)words);
	_exit(127);
}

/* What it said is for the message when it fails. */
static int run_words(const char *const *words, struct takt_str *said)
{
	int pipes[2], status = 0;
	char part[512];
	ssize_t n;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become(words, pipes[1]);
	close(pipes[1]);
	while (pid > 0 && (n = read(pipes[0], part, sizeof(part))) > 0)
		(void)takt_str_addn(said, part, (size_t)n);
	close(pipes[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* A command of the system's, kept for the report; in a dry run that is all. */
static int run_command(struct takt_init *init, const char *text, struct takt_err *err)
{
	struct takt_str said = TAKT_STR(MAX_SAID);
	char copy[TAKT_INIT_COMMAND], *rest = NULL;
	const char *words[MAX_WORDS + 1] = {NULL};
	int rc = 0;
	size_t n = 0;

	if (init->command_count < TAKT_INIT_COMMANDS)
		takt_strcpy(init->commands[init->command_count++], TAKT_INIT_COMMAND, text);
	takt_strcpy(copy, sizeof(copy), text);
	for (char *word = strtok_r(copy, " ", &rest); word && n < MAX_WORDS;
	     word = strtok_r(NULL, " ", &rest))
		words[n++] = word;
	if (!init->dry_run)
		rc = run_words(words, &said);
	if (rc < 0)
		takt_err_set(err, rc, "run '%s'", text);
	else if (rc > 0)
		rc = takt_err_set(err, -TAKT_E_UNAVAILABLE, "'%s' ended with %d%s%.140s", text, rc,
				  said.len ? ": " : "", takt_str_text(&said));
	takt_str_fini(&said);
	if (rc < 0 && err)
		err->msg[strcspn(err->msg, "\n")] = '\0';
	return rc;
}

static const char *manager(const struct takt_init *init)
{
	return init->place.who == TAKT_SETUP_ALL ? "systemctl" : "systemctl --user";
}

static int tell_manager(struct takt_init *init, const char *words, struct takt_err *err)
{
	char text[TAKT_INIT_COMMAND];

	snprintf(text, sizeof(text), "%s %s", manager(init), words);
	return run_command(init, text, err);
}

/* Whether there is a manager that may be told. */
static bool has_manager(const struct takt_init *init)
{
	return init->live && (init->place.who == TAKT_SETUP_ALL ? init->machine.systemd
								: init->machine.user_manager);
}

static int make_account(struct takt_init *init, struct takt_err *err)
{
	int rc = run_command(init, "systemd-sysusers", err);

	if (rc < 0 || init->dry_run)
		return rc;
	if (!getpwnam("takt"))
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "systemd-sysusers has not made the account takt");
	init->plan.account_made = true;
	return 0;
}

static bool answers(const char *socket)
{
	struct takt_client *client = NULL;
	bool there = takt_client_connect(socket, &client, NULL) == 0 &&
		     takt_client_ask(client, "/v1/version", NULL, NULL) == 0;

	takt_client_free(client);
	return there;
}

static int wait_for_answer(const struct takt_init *init, struct takt_err *err)
{
	struct takt_mono begin = takt_mono_now(takt_sys_real());

	for (uint32_t tries = 0; !answers(init->config.socket); tries++) {
		uint64_t pause = takt_pace_ns(&answering, tries);
		struct timespec time = {(time_t)(pause / TAKT_NS_PER_S),
					(long)(pause % TAKT_NS_PER_S)};

		if (takt_mono_now(takt_sys_real()).ns - begin.ns > answer_ns)
			return takt_err_set(
				err, -TAKT_E_UNAVAILABLE,
				"takt was started and does not answer at '%.80s'; journalctl "
				"%s takt says why",
				init->config.socket,
				init->place.who == TAKT_SETUP_ALL ? "-u" : "--user -u");
		(void)nanosleep(&time, NULL);
	}
	return 0;
}

static int start_units(struct takt_init *init, struct takt_err *err)
{
	int rc = 0;

	if (init->place.who == TAKT_SETUP_ALL) {
		/* The way in which it was started before may have been another. */
		rc = tell_manager(init, "start takt-jobs.service takt-launch.service", err);
		if (rc == 0 && init->plan.again)
			rc = tell_manager(init, "try-restart takt-actuate.service", err);
	}
	return rc == 0 ? tell_manager(init, "restart takt.service", err) : rc;
}

int takt_init_start(struct takt_init *init, struct takt_err *err)
{
	int rc = 0;

	if (!has_manager(init))
		return 0;
	if (init->plan.account_needed)
		rc = make_account(init, err);
	if (rc == 0)
		rc = tell_manager(init, "daemon-reload", err);
	if (rc == 0)
		rc = start_units(init, err);
	return rc < 0 || init->dry_run ? rc : wait_for_answer(init, err);
}

void takt_init_start_undone(struct takt_init *init)
{
	struct takt_err err;

	if (!has_manager(init))
		return;
	if (!init->plan.again)
		(void)tell_manager(init,
				   init->place.who == TAKT_SETUP_ALL ? "stop takt.slice"
								     : "stop takt.service",
				   &err);
	(void)tell_manager(init, "daemon-reload", &err);
	if (init->plan.again)
		(void)tell_manager(init, "restart takt.service", &err);
}

/* What starts with the machine since it was set up, and runs. */
static bool are_units_enabled(const struct takt_setup_plan *plan)
{
	TAKT_VEC_EACH (item, &plan->items)
		if (item->kind == TAKT_SETUP_LINK && item->fate == TAKT_SETUP_DROP)
			return true;
	return false;
}

int takt_init_stop(struct takt_init *init, struct takt_err *err)
{
	if (!has_manager(init) || !are_units_enabled(&init->plan))
		return 0;
	return tell_manager(
		init, init->place.who == TAKT_SETUP_ALL ? "stop takt.slice" : "stop takt.service",
		err);
}

void takt_init_stopped(struct takt_init *init)
{
	struct takt_err err;

	if (has_manager(init))
		(void)tell_manager(init, "daemon-reload", &err);
}

int takt_init_count_jobs(struct takt_init *init, struct takt_err *err)
{
	struct takt_client *client = NULL;
	struct takt_status_view view;
	int rc = 0;

	if (!init->live || !answers(init->config.socket))
		return 0;
	rc = takt_client_connect(init->config.socket, &client, err);
	if (rc == 0)
		rc = takt_client_status(client, &view, err);
	takt_client_free(client);
	if (rc < 0)
		return rc;
	init->running = view.running;
	init->waiting = view.waiting;
	takt_status_view_fini(&view);
	return 0;
}

/* Through folders that are users' own, whose names they may change at any time: none is left by a
 * path, and no link is followed. */
static int delete_all(int dirfd, unsigned depth)
{
	DIR *dir = depth < MAX_DEPTH ? fdopendir(dirfd) : NULL;
	struct dirent *entry;
	int rc = 0;

	if (!dir) {
		rc = depth < MAX_DEPTH ? -errno : -ELOOP;
		close(dirfd);
		return rc;
	}
	while (rc == 0 && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		int fd;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    unlinkat(dirfd, name, 0) == 0)
			continue;
		if (errno != EISDIR && errno != EPERM) {
			rc = -errno;
			break;
		}
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = fd < 0 ? -errno : delete_all(fd, depth + 1);
		if (rc == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
			rc = -errno;
	}
	closedir(dir);
	return rc;
}

/* A setting that names somebody else's folder deletes nothing of it. */
static bool is_of_takt(int dirfd)
{
	return faccessat(dirfd, "takt.db", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(dirfd, "clocks.journal", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int cannot_delete(const char *path, int rc, struct takt_err *err)
{
	return takt_err_set(err, rc, "delete '%s'", path);
}

static int delete_folder(const struct takt_init *init, const char *path, struct takt_str *ret_what,
			 struct takt_err *err)
{
	char full[2 * PATH_MAX];
	struct takt_way way;
	int fd, rc;

	snprintf(full, sizeof(full), "%s%s", init->root, path);
	for (size_t n = strlen(full); n > 1 && full[n - 1] == '/'; n--)
		full[n - 1] = '\0';
	rc = takt_way_open(full, false, &way, err);
	if (rc < 0)
		return rc == -ENOENT || rc == -ENOTDIR ? 0
		       : rc == -EPERM		       ? rc
						       : cannot_delete(full, rc, err);
	fd = openat(way.dirfd, way.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		rc = errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	} else if (!is_of_takt(fd)) {
		close(fd);
	} else {
		takt_str_addf(ret_what, "%s%s", ret_what->len ? ", " : "", full);
		if (init->dry_run)
			close(fd);
		else
			rc = delete_all(fd, 0);
		if (rc == 0 && !init->dry_run && unlinkat(way.dirfd, way.name, AT_REMOVEDIR) < 0)
			rc = -errno;
	}
	takt_way_close(&way);
	return rc < 0 ? cannot_delete(full, rc, err) : 0;
}

int takt_init_purge(struct takt_init *init, struct takt_str *ret_what, struct takt_err *err)
{
	int rc = delete_folder(init, init->config.state_dir, ret_what, err);

	if (rc == 0 && strcmp(init->config.clocks_dir, init->config.state_dir) != 0)
		rc = delete_folder(init, init->config.clocks_dir, ret_what, err);
	if (rc < 0 || !init->plan.account_made || !init->live)
		return rc;
	takt_str_addf(ret_what, "%sthe account takt", ret_what->len ? ", " : "");
	return run_command(init, "userdel takt", err);
}

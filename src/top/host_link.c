/* SPDX-License-Identifier: Apache-2.0 */
/* See host_link.h. */
#include "top/host_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "top/look_line.h"
#include "top/top_json.h"

enum {
	LINE_BYTES = 128,
};

static const uint64_t patience_ns = 20 * TAKT_NS_PER_S; /* for an answer */
static const struct takt_pace tries = {TAKT_NS_PER_S, 10 * TAKT_NS_PER_S};

struct takt_host_link {
	const char *host;
	bool driver_only, allow_foreign;
	pid_t pid;   /* 0 = none runs */
	int fd;	     /* its input and output */
	int said_fd; /* its messages */
	struct takt_mono retry_at;
	uint32_t failures; /* in a row */
	bool past_asked;   /* of what runs */
	struct takt_str answer;
	struct takt_err why; /* of the latest failure */
};

struct takt_host_link *takt_host_link_new(const char *host, bool driver_only)
{
	struct takt_host_link *link = takt_zalloc(sizeof(*link));

	if (!link)
		return NULL;
	link->host = host;
	link->driver_only = driver_only;
	link->answer = TAKT_STR(TAKT_TOP_MAX_LOOK);
	return link;
}

/* The last line that it said, "" for none. */
static void read_last_line(int fd, char *ret, size_t size)
{
	char text[4096], *line;
	ssize_t n = read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	for (n = (ssize_t)strlen(text); n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'); n--)
		text[n - 1] = '\0';
	line = strrchr(text, '\n');
	takt_strcpy(ret, size, line ? line + 1 : text);
}

/* Its exit status, or the negative number of the signal that ended it. */
static int hang_up(struct takt_host_link *link)
{
	int status = 0;

	close(link->fd);
	(void)kill(link->pid, SIGTERM);
	while (waitpid(link->pid, &status, 0) < 0 && errno == EINTR)
		;
	link->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void takt_host_link_free(struct takt_host_link *link)
{
	if (!link)
		return;
	if (link->pid) {
		hang_up(link);
		close(link->said_fd);
	}
	takt_str_fini(&link->answer);
	takt_free(link);
}

/* With no signal blocked, as they are in the thread that looks. */
static int spawn_with(const posix_spawn_file_actions_t *actions, const char *const argv[],
		      pid_t *ret)
{
	posix_spawnattr_t attr;
	sigset_t none;
	int rc = posix_spawnattr_init(&attr);

	if (rc != 0)
		return rc;
	sigemptyset(&none);
	rc = posix_spawnattr_setsigmask(&attr, &none);
	if (rc == 0)
		rc = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	if (rc == 0)
		rc = posix_spawnp(ret, argv[0], actions, &attr, (char **)argv, environ);
	posix_spawnattr_destroy(&attr);
	return rc;
}

static int spawn(const struct takt_host_link *link, int ours, int said, pid_t *ret)
{
	const char *argv[] = {"ssh",
			      "-T",
			      "-oBatchMode=yes",
			      "-oConnectTimeout=10",
			      "--",
			      link->host,
			      "takt",
			      "top",
			      "--json",
			      "--each-line",
			      link->driver_only	    ? "--driver"
			      : link->allow_foreign ? "--allow-foreign"
						    : NULL,
			      NULL};
	posix_spawn_file_actions_t actions;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc != 0)
		return -rc;
	rc = posix_spawn_file_actions_adddup2(&actions, ours, STDIN_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, ours, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
	if (rc == 0)
		rc = spawn_with(&actions, argv, ret);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

static int start(struct takt_host_link *link, struct takt_err *err)
{
	int talk[2], said[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) < 0)
		return takt_err_set(err, -errno, "make a socket pair");
	if (pipe2(said, O_CLOEXEC | O_NONBLOCK) < 0) {
		rc = takt_err_set(err, -errno, "make a pipe");
		close(talk[0]);
		close(talk[1]);
		return rc;
	}
	rc = spawn(link, talk[1], said[1], &link->pid);
	close(talk[1]);
	close(said[1]);
	link->fd = talk[0];
	link->said_fd = said[0];
	if (rc == 0)
		return 0;
	link->pid = 0;
	close(talk[0]);
	close(said[0]);
	return takt_err_set(err, rc, "start ssh: %s", takt_err_sentence(rc));
}

/* Whole once its last byte is a newline: only one answer is on its way. */
static bool is_whole(const struct takt_str *answer)
{
	return answer->len && takt_str_text(answer)[answer->len - 1] == '\n';
}

/* What is there of the answer. */
static int take(struct takt_host_link *link, struct takt_err *err)
{
	char bytes[16384];
	ssize_t n = recv(link->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		return takt_str_addn(&link->answer, bytes, (size_t)n) < 0
			       ? takt_err_set(err, link->answer.rc, "its answer is too long")
			       : 0;
	return n < 0 && (errno == EAGAIN || errno == EINTR)
		       ? 0
		       : takt_err_set(err, -TAKT_E_UNAVAILABLE, "ssh has ended");
}

static int hear(struct takt_host_link *link, struct takt_mono end, struct takt_err *err)
{
	struct takt_mono now = takt_mono_now(takt_sys_real());
	struct pollfd fd = {link->fd, POLLIN, 0};
	int n;

	if (now.ns >= end.ns)
		return takt_err_set(err, -ETIMEDOUT, "no answer within %d s",
				    (int)(patience_ns / TAKT_NS_PER_S));
	n = poll(&fd, 1, (int)((end.ns - now.ns) / TAKT_NS_PER_MS) + 1);
	if (n > 0)
		return take(link, err);
	return n < 0 && errno != EINTR ? takt_err_set(err, -errno, "wait for ssh") : 0;
}

static int ask(struct takt_host_link *link, const struct takt_look_words *words,
	       struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str line = TAKT_STR(LINE_BYTES);
	struct takt_mono end = takt_mono_add(takt_mono_now(takt_sys_real()), patience_ns);
	int rc = 0;

	takt_str_reset(&link->answer);
	takt_look_to_line(words, &line);
	if (line.rc < 0)
		rc = takt_err_set(err, line.rc, "no memory for the request");
	else if (send(link->fd, line.s, line.len, MSG_NOSIGNAL) != (ssize_t)line.len)
		rc = takt_err_set(err, -TAKT_E_UNAVAILABLE, "ssh has ended");
	while (rc == 0 && !is_whole(&link->answer))
		rc = hear(link, end, err);
	return rc;
}

/* Where ssh has ended, its last words, or those of takt there, say more than that. */
static void explain(struct takt_host_link *link)
{
	char said[160];
	int status = hang_up(link);

	read_last_line(link->said_fd, said, sizeof(said));
	close(link->said_fd);
	if (link->why.rc == -TAKT_E_UNAVAILABLE && said[0])
		takt_err_set(&link->why, link->why.rc, "%s", said);
	else if (link->why.rc == -TAKT_E_UNAVAILABLE)
		takt_err_set(&link->why, link->why.rc, "ssh has ended (%d)", status);
}

static int look(struct takt_host_link *link, uint32_t past_step_ms, uint64_t log_job,
		struct takt_top_snapshot *ret)
{
	struct takt_look_words words = {.log_job = log_job};
	int rc = 0;

	if (takt_mono_now(takt_sys_real()).ns < link->retry_at.ns)
		return link->why.rc;
	if (!link->pid) {
		link->past_asked = false;
		rc = start(link, &link->why);
	}
	if (!link->past_asked)
		words.past_step_ms = past_step_ms;
	if (rc == 0)
		rc = ask(link, &words, &link->why);
	link->past_asked |= rc == 0;
	if (rc == 0)
		rc = takt_top_from_json(takt_str_text(&link->answer), link->answer.len, ret,
					&link->why);
	if (rc < 0 && link->pid)
		explain(link);
	if (rc < 0)
		link->retry_at = takt_mono_add(takt_mono_now(takt_sys_real()),
					       takt_pace_ns(&tries, link->failures++));
	else
		link->failures = 0;
	return rc;
}

void takt_host_link_look(struct takt_host_link *link, uint32_t past_step_ms, uint64_t log_job,
			 struct takt_top_snapshot *ret)
{
	takt_top_snapshot_init(ret);
	if (look(link, past_step_ms, log_job, ret) < 0)
		snprintf(ret->why_not, sizeof(ret->why_not), "%.60s: %.160s", link->host,
			 link->why.msg);
}

int takt_host_link_tell(struct takt_host_link *link, const char *line, bool allow_foreign,
			struct takt_err *err)
{
	int rc;

	link->allow_foreign = allow_foreign;
	rc = start(link, err);
	if (rc < 0)
		return rc;
	/* An ssh that has ended by now is heard of like one that ends later, with its last words.
	 */
	(void)send(link->fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)shutdown(link->fd, SHUT_WR); /* it is the only one */
	return 0;
}

int takt_host_link_fd(const struct takt_host_link *link)
{
	return link->pid ? link->fd : -1;
}

int takt_host_link_hear(struct takt_host_link *link, const char **ret, struct takt_err *err)
{
	int rc = take(link, &link->why);

	if (rc == 0 && is_whole(&link->answer)) {
		*ret = takt_str_text(&link->answer);
		return 1;
	}
	if (rc == 0)
		return 0;
	explain(link);
	*err = link->why;
	return link->why.rc;
}

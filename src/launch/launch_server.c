/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's loop: one client, requests in, replies out. A reply may have to wait for a shim's
 * exec, and a client that reads slowly is given no new ones: nothing is read from him while replies
 * are waiting, so that the queue of replies cannot outgrow the table of pending starts by more than
 * one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "launch/attempt.h"
#include "launch/launch.h"
#include "launch/launch_spawn.h"
#include "launch/launch_target.h"
#include "launch/launch_wire.h"
#include "launch/user_session.h"

enum {
	MAX_REPLIES = TAKT_LAUNCH_MAX_PENDING + 1,
	POLL_SIGNAL = 0,
	POLL_SOCKET = 1, /* the client, or the listening socket while there is none */
	POLL_PENDING = 2,
};

struct pending {
	int report;	 /* owned */
	uint64_t client; /* which client asked */
	struct takt_launch_reply reply;
};

struct server {
	struct takt_spawn spawn;
	int signalfd;	  /* owned */
	int jobs_dirfd;	  /* owned */
	int client;	  /* owned; -1 = none */
	uint64_t clients; /* served so far */
	struct takt_boot lonely_since;
	struct pending pending[TAKT_LAUNCH_MAX_PENDING];
	size_t pending_count;
	struct takt_launch_reply replies[MAX_REPLIES]; /* oldest first */
	size_t reply_count;
	bool stop;
};

static void drop_client(struct server *server)
{
	if (server->client >= 0)
		close(server->client);
	server->client = -1;
	server->reply_count = 0;
	server->lonely_since = takt_boot_now(server->spawn.sys);
}

/* What is not allowed is said by whoever forbids it; of anything else the kernel's word counts. */
static void fill_reply(struct takt_launch_reply *reply, int rc, const struct takt_err *err)
{
	reply->rc = rc;
	if (rc == -EPERM)
		takt_strcpy(reply->message, sizeof(reply->message), err->msg);
	else if (rc < 0)
		takt_err_text(err, reply->message, sizeof(reply->message));
}

static void queue_reply(struct server *server, const struct takt_launch_reply *reply)
{
	server->replies[server->reply_count++] = *reply;
}

static void send_replies(struct server *server)
{
	ssize_t put = 0;

	while (server->reply_count > 0 && server->client >= 0) {
		takt_crash_point("launch.before_reply");
		put = send(server->client, &server->replies[0], sizeof(server->replies[0]),
			   MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put < 0)
			break;
		server->reply_count--;
		memmove(&server->replies[0], &server->replies[1],
			server->reply_count * sizeof(server->replies[0]));
	}
	if (put < 0 && errno != EAGAIN && errno != EINTR)
		drop_client(server);
}

/* Whether anything may be started for this user. */
static int check_user(const struct server *server, uid_t uid, uint32_t *ret_refusal,
		      struct takt_err *err)
{
	const struct takt_launch_server_config *config = server->spawn.config;
	const char *weak = server->spawn.cgroups.why_no_devices;
	int rc = takt_spawn_allowed(config, uid, err);

	*ret_refusal = TAKT_REFUSAL_USER;
	if (rc == 0 && weak[0] && !config->allow_weak && geteuid() == 0 && uid != 0) {
		*ret_refusal = TAKT_REFUSAL_ISOLATION;
		rc = takt_err_set(err, -EPERM, "%s", weak);
	}
	return rc;
}

/* Refuses what ran or runs already; a race with a shim on its way is decided by the lock. */
static int check_startable(struct server *server, const struct takt_launch_request *request,
			   struct takt_err *err)
{
	struct takt_attempt_status status;
	int rc = takt_attempt_status(server->spawn.sys, server->jobs_dirfd, request->job_id,
				     request->attempt, &status, err);

	if (rc < 0)
		return rc;
	switch (status.state) {
	case TAKT_ATTEMPT_NOT_STARTED:
		return 0;
	case TAKT_ATTEMPT_ABSENT:
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "the attempt has no spec");
	case TAKT_ATTEMPT_ALIVE:
		return takt_err_set(err, -TAKT_E_CONFLICT, "the attempt is alive");
	case TAKT_ATTEMPT_EXITED:
		return takt_err_set(err, -TAKT_E_CONFLICT, "the attempt has ended");
	case TAKT_ATTEMPT_ORPHANED:
		break;
	}
	return takt_err_set(err, -TAKT_E_CONFLICT, "the attempt has started");
}

/* Once the next pending's report says what it is to be. */
static void reply_later(struct server *server, const struct takt_launch_reply *reply)
{
	struct pending *pending = &server->pending[server->pending_count++];

	pending->reply = *reply;
	pending->client = server->clients;
}

/* True when the reply follows later. */
static bool start(struct server *server, const struct takt_launch_request *request,
		  struct takt_launch_reply *reply)
{
	struct pending *pending = &server->pending[server->pending_count];
	struct takt_err err;
	int rc = check_user(server, request->uid, &reply->refusal, &err);

	if (rc == 0) {
		reply->refusal = TAKT_REFUSAL_ATTEMPT;
		rc = check_startable(server, request, &err);
	}
	if (rc == 0 && server->pending_count == 0)
		takt_job_cgroups_sweep(&server->spawn.cgroups);
	if (rc == 0) {
		reply->refusal = TAKT_REFUSAL_LAUNCHER;
		rc = takt_spawn_shim(&server->spawn, request, &reply->shim, &pending->report, &err);
	}
	if (rc < 0) {
		fill_reply(reply, rc, &err);
		return false;
	}
	reply->refusal = TAKT_REFUSAL_NONE;
	reply_later(server, reply);
	return true;
}

/* As above: a clean-up that is under way is waited for. */
static bool reap(struct server *server, const struct takt_launch_request *request,
		 struct takt_launch_reply *reply)
{
	struct pending *pending = &server->pending[server->pending_count];
	struct takt_err err;
	int rc = takt_target_reap(&server->spawn, request, &pending->report, &err);

	if (rc == 0 && pending->report >= 0) {
		reply_later(server, reply);
		return true;
	}
	fill_reply(reply, rc, &err);
	return false;
}

static void handle(struct server *server, const struct takt_launch_request *request)
{
	struct takt_launch_reply reply = {
		.version = TAKT_LAUNCH_VERSION, .op = request->op, .seq = request->seq};
	struct takt_err err;
	int rc = 0;

	switch (request->op) {
	case TAKT_LAUNCH_HELLO:
		break;
	case TAKT_LAUNCH_START:
		if (start(server, request, &reply))
			return;
		queue_reply(server, &reply);
		return;
	case TAKT_LAUNCH_SIGNAL:
	case TAKT_LAUNCH_STOP:
	case TAKT_LAUNCH_LOOK:
		rc = takt_target_signal(&server->spawn, request, &err);
		break;
	case TAKT_LAUNCH_WHOSE:
		rc = takt_target_whose(&server->spawn, request, reply.message, &err);
		break;
	case TAKT_LAUNCH_REAP:
		if (reap(server, request, &reply))
			return;
		queue_reply(server, &reply);
		return;
	default:
		rc = takt_err_set(&err, -TAKT_E_UNSUPPORTED, "unknown operation %u", request->op);
	}
	fill_reply(&reply, rc, &err);
	queue_reply(server, &reply);
}

static void read_requests(struct server *server)
{
	unsigned char bytes[sizeof(struct takt_launch_request)];
	struct takt_launch_request request;
	ssize_t got;

	while (server->client >= 0 && server->reply_count == 0 &&
	       server->pending_count < TAKT_LAUNCH_MAX_PENDING) {
		got = recv(server->client, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0 || takt_launch_read_request(bytes, (size_t)got, &request, NULL) < 0) {
			drop_client(server);
			return;
		}
		handle(server, &request);
		send_replies(server);
	}
}

/* A shim runs, or said why not. */
static void finish_start(struct server *server, size_t i)
{
	struct pending *pending = &server->pending[i];
	struct takt_spawn_failed failed;
	ssize_t got = read(pending->report, &failed, sizeof(failed));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got == (ssize_t)sizeof(failed)) {
		pending->reply.refusal = failed.refusal;
		fill_reply(&pending->reply, failed.err.rc, &failed.err);
	}
	close(pending->report);
	if (pending->client == server->clients && server->client >= 0)
		queue_reply(server, &pending->reply);
	*pending = server->pending[--server->pending_count];
}

static void accept_client(struct server *server)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd = accept4(server->spawn.config->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    (peer.uid != server->spawn.config->client_uid && peer.uid != 0)) {
		close(fd);
		return;
	}
	server->client = fd;
	server->clients++;
}

/* What to wait for; returns how many. */
static nfds_t prepare_poll(const struct server *server, struct pollfd *fds)
{
	bool alone = server->client < 0;

	fds[POLL_SIGNAL] = (struct pollfd){.fd = server->signalfd, .events = POLLIN};
	fds[POLL_SOCKET] =
		(struct pollfd){.fd = alone ? server->spawn.config->listen_fd : server->client};
	if (server->reply_count > 0)
		fds[POLL_SOCKET].events = POLLOUT;
	else if (server->pending_count < TAKT_LAUNCH_MAX_PENDING)
		fds[POLL_SOCKET].events = POLLIN;
	for (size_t i = 0; i < server->pending_count; i++)
		fds[POLL_PENDING + i] =
			(struct pollfd){.fd = server->pending[i].report, .events = POLLIN};
	return POLL_PENDING + server->pending_count;
}

/* Milliseconds until a lonely launcher ends; -1 = it has no reason to. */
static int time_left(const struct server *server)
{
	uint64_t limit = server->spawn.config->idle_ms, lonely;

	if (limit == 0 || server->client >= 0)
		return -1;
	lonely = takt_boot_elapsed_ns(takt_boot_now(server->spawn.sys), server->lonely_since) /
		 TAKT_NS_PER_MS;
	return lonely < limit ? (int)(limit - lonely) : 0;
}

static void dispatch(struct server *server, const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = n; i-- > POLL_PENDING;) /* backwards: a finished one takes the last */
		if (fds[i].revents)
			finish_start(server, i - POLL_PENDING);
	if (fds[POLL_SIGNAL].revents)
		server->stop = true;
	if (fds[POLL_SOCKET].revents && server->client < 0)
		accept_client(server);
	else if (fds[POLL_SOCKET].revents & (POLLHUP | POLLERR) &&
		 !(fds[POLL_SOCKET].events & POLLIN))
		drop_client(server);
	send_replies(server);
	read_requests(server);
}

static int serve(struct server *server, struct takt_err *err)
{
	struct pollfd fds[POLL_PENDING + TAKT_LAUNCH_MAX_PENDING];
	nfds_t n;
	int left;

	while (!server->stop) {
		n = prepare_poll(server, fds);
		left = time_left(server);
		if (left == 0)
			return 0;
		if (poll(fds, n, left) < 0) {
			if (errno == EINTR)
				continue;
			return takt_err_set(err, -errno, "wait for requests");
		}
		dispatch(server, fds, n);
	}
	return 0;
}

/* SIGCHLD is ignored: shims are nobody's children for long, and leave no zombies. */
static int take_signals(struct takt_err *err)
{
	struct sigaction act = {.sa_handler = SIG_IGN};
	sigset_t set;
	int fd;

	(void)sigaction(SIGCHLD, &act, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? takt_err_set(err, -errno, "make a signal descriptor") : fd;
}

static int prepare(struct server *server, const struct takt_launch_server_config *config,
		   struct takt_err *err)
{
	const struct takt_sys *sys = takt_sys_real();

	server->jobs_dirfd =
		sys->openat(sys, AT_FDCWD, config->jobs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (server->jobs_dirfd < 0)
		return takt_err_set(err, server->jobs_dirfd, "open '%s'", config->jobs_dir);
	if (config->shim_path[0] != '/' || access(config->shim_path, X_OK) < 0)
		return takt_err_set(err, config->shim_path[0] == '/' ? -errno : -EINVAL,
				    "shim '%s': the absolute path of a program is needed",
				    config->shim_path);
	server->signalfd = take_signals(err);
	if (server->signalfd < 0)
		return server->signalfd;
	server->spawn =
		(struct takt_spawn){.config = config, .sys = sys, .jobs_dirfd = server->jobs_dirfd};
	takt_job_cgroups_open(&server->spawn.cgroups, config->cgroup, server->jobs_dirfd);
	server->lonely_since = takt_boot_now(sys);
	return 0;
}

int takt_launch_serve(const struct takt_launch_server_config *config, struct takt_err *err)
{
	struct server *server = takt_zalloc(sizeof(*server));
	int rc;

	if (!server)
		return takt_err_set(err, -ENOMEM, "launcher");
	server->signalfd = server->jobs_dirfd = server->client = -1;
	rc = prepare(server, config, err);
	if (rc == 0 && geteuid() == 0)
		takt_user_session_prepare();
	if (rc == 0)
		rc = serve(server, err);
	if (server->pending_count == 0)
		takt_job_cgroups_sweep(&server->spawn.cgroups);
	for (size_t i = 0; i < server->pending_count; i++)
		close(server->pending[i].report);
	if (server->client >= 0)
		close(server->client);
	if (server->signalfd >= 0)
		close(server->signalfd);
	if (server->jobs_dirfd >= 0)
		close(server->jobs_dirfd);
	takt_free(server);
	return rc;
}

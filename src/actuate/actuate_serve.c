/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actuator process: one thread, one poll. Every wait is in that poll; the driver is called by
 * the device's workers and clients are never waited for (one that does not read its replies is
 * disconnected).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "actuate/actuate_log.h"
#include "actuate/actuator.h"
#include "actuate/guard_watch.h"
#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "device/driver_look.h"
#include "device/sysfs_pci.h"

enum {
	MAX_CLIENTS = 16,
	POLL_FIXED = 3, /* stop, machine, listen */
	BURST = 64,	/* requests of one client before the others have their turn */
};

#define LOCK_PATIENCE_NS  (3 * TAKT_NS_PER_S)
#define GUARD_PATIENCE_NS (20 * TAKT_NS_PER_S)
#define STOP_PATIENCE_NS  (5 * TAKT_NS_PER_S)
#define CUT_PATIENCE_NS	  (60 * TAKT_NS_PER_S) /* MIG instances take seconds each */
#define LONGEST_POLL_MS	  1000

struct connection {
	int fd;	     /* -1: free */
	uint64_t id; /* never used twice */
};

struct server {
	const struct takt_actuate_config *config; /* borrowed */
	struct takt_machine_config machine_config;
	struct takt_machine *machine;	     /* owned */
	struct takt_driver_look driver_look; /* for one that was not there, or is gone */
	struct takt_journal journal;
	struct takt_mandate mandate;
	struct takt_baseline baseline;
	struct takt_guard_watch guard;
	struct takt_actuator actuator;
	bool driver_may_come; /* it was not there when we began */
	int wake;	      /* eventfd of the machine */
	bool stopping;
	uint64_t last_id;
	struct connection clients[MAX_CLIENTS];
};

static struct takt_boot boot_now(const struct server *server)
{
	return takt_boot_now(server->config->sys);
}

static void disconnect(struct server *server, struct connection *client)
{
	takt_actuator_forget(&server->actuator, client->id);
	close(client->fd);
	client->fd = -1;
}

static void answer(struct server *server, struct connection *client,
		   const struct takt_actuate_reply *reply)
{
	if (send(client->fd, reply, sizeof(*reply), MSG_DONTWAIT | MSG_NOSIGNAL) ==
	    (ssize_t)sizeof(*reply))
		return;
	takt_actuate_say(&server->config->log, "a client does not take its replies: disconnected");
	disconnect(server, client);
}

/* A refusal before there is a connection to speak of. */
static void turn_away(int fd, int rc, const char *why)
{
	struct takt_actuate_reply reply = {.version = TAKT_ACTUATE_VERSION, .rc = rc};

	takt_strcpy(reply.message, sizeof(reply.message), why);
	(void)send(fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static void take_client(struct server *server)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int fd;

	fd = accept4(server->config->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    (peer.uid != 0 && peer.uid != server->config->client_uid)) {
		turn_away(fd, -EACCES, "this actuator serves another user");
		return;
	}
	for (int i = 0; i < MAX_CLIENTS; i++) {
		if (server->clients[i].fd >= 0)
			continue;
		server->clients[i] = (struct connection){fd, ++server->last_id};
		/* Whoever comes may do so because the driver was loaded anew. */
		takt_machine_sample(server->machine, UINT32_MAX);
		return;
	}
	turn_away(fd, -TAKT_E_LIMIT, "the actuator has 16 clients already");
}

/* False when there is nothing more to read from this client now. */
static bool serve_request(struct server *server, struct connection *client)
{
	unsigned char bytes[sizeof(struct takt_actuate_request)];
	struct takt_actuate_reply reply;
	ssize_t got;

	got = recv(client->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return false;
	if (got <= 0) {
		disconnect(server, client);
		return false;
	}
	if (takt_actuator_message(&server->actuator, client->id, bytes, (size_t)got,
				  boot_now(server), &reply))
		answer(server, client, &reply);
	return client->fd >= 0;
}

static void send_replies(struct server *server)
{
	struct takt_actuate_reply reply;
	uint64_t id;

	while (takt_actuator_reply(&server->actuator, &id, &reply)) {
		for (int i = 0; i < MAX_CLIENTS; i++) {
			if (server->clients[i].fd >= 0 && server->clients[i].id == id)
				answer(server, &server->clients[i], &reply);
		}
	}
}

/* At most a second, since poll's clock stands still while the machine sleeps and leases' does not.
 */
static int poll_ms(struct takt_boot now, struct takt_boot until)
{
	uint64_t ms;

	if (until.ns == UINT64_MAX)
		return -1;
	if (until.ns <= now.ns)
		return 0;
	ms = (until.ns - now.ns + TAKT_NS_PER_MS - 1) / TAKT_NS_PER_MS;
	return ms < LONGEST_POLL_MS ? (int)ms : LONGEST_POLL_MS;
}

static struct takt_boot earlier(struct takt_boot a, struct takt_boot b)
{
	return a.ns < b.ns ? a : b;
}

/* All work that is due, and when there will be more. */
static struct takt_boot work(struct server *server)
{
	struct takt_boot now = boot_now(server);
	struct takt_boot guard = takt_guard_watch_step(&server->guard, now);
	struct takt_boot next;

	server->actuator.keeper.guarded = server->guard.ready || !server->config->guard_path;
	next = takt_actuator_step(&server->actuator, now);
	send_replies(server);
	return earlier(guard, next);
}

static void wait_and_serve(struct server *server, struct takt_boot until)
{
	struct pollfd fds[POLL_FIXED + MAX_CLIENTS + TAKT_GUARD_WATCH_FDS];
	uint64_t count;
	nfds_t n = 0;

	fds[n++] = (struct pollfd){.fd = server->stopping ? -1 : server->config->stop_fd,
				   .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = server->wake, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = server->stopping ? -1 : server->config->listen_fd,
				   .events = POLLIN};
	for (int i = 0; i < MAX_CLIENTS; i++)
		fds[n++] = (struct pollfd){.fd = server->clients[i].fd, .events = POLLIN};
	n += takt_guard_watch_poll(&server->guard, &fds[n]);
	if (poll(fds, n, poll_ms(boot_now(server), until)) <= 0)
		return;
	if (fds[0].revents)
		server->stopping = true;
	if (fds[1].revents)
		(void)!read(server->wake, &count, sizeof(count));
	if (fds[2].revents)
		take_client(server);
	for (int i = 0; i < MAX_CLIENTS; i++) {
		if (!fds[POLL_FIXED + i].revents)
			continue;
		for (int k = 0; k < BURST && serve_request(server, &server->clients[i]); k++)
			;
	}
}

/* Everything back before leaving; what refuses is the guard's. */
static int wind_down(struct server *server, struct takt_err *err)
{
	struct takt_keeper *keeper = &server->actuator.keeper;
	struct takt_boot until = takt_boot_add(boot_now(server), STOP_PATIENCE_NS), next;

	takt_machine_sample(server->machine, UINT32_MAX);
	takt_actuator_end_all(&server->actuator, boot_now(server));
	for (;;) {
		next = work(server);
		if (takt_keeper_all_clean(keeper) || keeper->stale ||
		    takt_machine_driver_is_gone(server->machine) || boot_now(server).ns >= until.ns)
			break;
		wait_and_serve(server, earlier(next, until));
	}
	if (takt_keeper_all_clean(keeper))
		return 0;
	return takt_err_set(err, -EAGAIN,
			    "stopped with a GPU not at its baseline; the guard goes on trying");
}

/* A GPU that hung when we began cannot be put back by us, who do not know it, nor any by a driver
 * that was loaded anew: whoever starts us does so again, and then we do. Until then nothing stays
 * changed of the others. */
static int begin_again(struct server *server, struct takt_err *err)
{
	int rc = wind_down(server, err);

	return rc < 0 ? rc
		      : takt_err_set(
				err, -TAKT_E_STALE,
				"a GPU or the driver answers that did not: to be started again");
}

/* The driver was not there when we began, or is gone since, and answers now. */
static bool driver_has_come(struct server *server, struct takt_boot *next)
{
	struct takt_boot look_at;

	if (!server->driver_may_come && !takt_machine_driver_is_gone(server->machine))
		return false;
	if (takt_driver_look_step(&server->driver_look, boot_now(server), &look_at))
		return true;
	*next = earlier(*next, look_at);
	return false;
}

static int serve_until_stopped(struct server *server, struct takt_err *err)
{
	const struct takt_keeper *keeper = &server->actuator.keeper;
	struct takt_boot next;

	while (!server->stopping) {
		next = work(server);
		if (driver_has_come(server, &next) || takt_machine_knows_more(server->machine))
			return begin_again(server, err);
		wait_and_serve(server, next);
		if (keeper->stale)
			return takt_err_set(
				err, -TAKT_E_STALE,
				"epoch %llu is over: another process sets the clocks now",
				(unsigned long long)keeper->mandate->mine.epoch);
	}
	return wind_down(server, err);
}

/* Every GPU was tried once; *ret_cuts: what is missing is how one is cut. */
static bool is_settled(const struct server *server, bool *ret_cuts)
{
	const struct takt_keeper *keeper = &server->actuator.keeper;
	bool settled = true;

	*ret_cuts = false;
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		settled = settled && keeper->gpus[i].settled;
		*ret_cuts = *ret_cuts || !keeper->gpus[i].mig.settled;
	}
	return settled && !*ret_cuts;
}

/* The first GPU that does not stand as declared. */
static int look_at_declared(const struct server *server, struct takt_err *err)
{
	const struct takt_keeper *keeper = &server->actuator.keeper;

	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		const struct takt_keeper_gpu *gpu = &keeper->gpus[i];

		if (gpu->mig.outcome.rc < 0)
			return takt_err_set(err, gpu->mig.outcome.rc, "GPU %u: %s", i,
					    gpu->mig.outcome.msg);
		if (gpu->outcome.rc < 0)
			return takt_err_set(err, gpu->outcome.rc, "GPU %u: %s", i,
					    gpu->outcome.msg);
	}
	return 0;
}

/* Until everything is settled, also behind a GPU that refuses: none is left half way. */
static int settle(struct server *server, struct takt_err *err)
{
	struct takt_boot began = boot_now(server), next, until;
	bool cuts;

	for (;;) {
		next = work(server);
		if (is_settled(server, &cuts))
			return look_at_declared(server, err);
		until = takt_boot_add(began, cuts ? CUT_PATIENCE_NS : STOP_PATIENCE_NS);
		if (boot_now(server).ns >= until.ns)
			return takt_err_set(err, -ETIMEDOUT,
					    "a GPU has not answered; takt serve goes on trying");
		wait_and_serve(server, earlier(next, until));
	}
}

/* From then on somebody finishes what was begun if this process dies. */
static int wait_for_guard(struct server *server, struct takt_err *err)
{
	struct takt_boot until = takt_boot_add(boot_now(server), STOP_PATIENCE_NS), next;

	for (;;) {
		next = work(server);
		if (server->actuator.keeper.guarded)
			return 0;
		if (boot_now(server).ns >= until.ns)
			return takt_err_set(err, -TAKT_E_UNAVAILABLE,
					    "no guard is running that would go on if this died");
		wait_and_serve(server, earlier(next, until));
	}
}

/* The file to declare takes the place of the declared one, durably. */
static int keep_declared(const struct takt_actuate_config *config, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	TAKT_CLEANUP(freep) char *dir = takt_strdup(config->declared_path);
	char *name = dir ? strrchr(dir, '/') : NULL;
	size_t len;
	int fd, rc;

	if (!name)
		return takt_err_set(err, -ENOMEM, "keep what is declared");
	*name++ = '\0';
	rc = takt_file_read_plain(config->sys, AT_FDCWD, config->declare, TAKT_BASELINE_MAX_BYTES,
				  &text, &len, err);
	if (rc < 0)
		return rc;
	fd = open(dir[0] ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return takt_err_set(err, -errno, "open '%s'", dir);
	rc = takt_file_write_durable(config->sys, fd, name, text, len, 0644, err);
	close(fd);
	return rc;
}

/* Puts in force what is declared and leaves: nothing of that is a lease. */
static int declare_once(struct server *server, struct takt_err *err)
{
	const struct takt_actuate_config *config = server->config;
	int rc = wait_for_guard(server, err);

	if (rc == 0)
		rc = takt_actuator_declare(&server->actuator, config->declare, boot_now(server),
					   err);
	/* No board has been touched yet. Whoever starts after a death from here on goes on by the
	 * file. */
	if (rc == 0)
		rc = keep_declared(config, err);
	if (rc < 0)
		return rc;
	takt_crash_point("declare.kept");
	return settle(server, err);
}

/* Who has the lock, as far as the journal says. */
static struct takt_journal_holder read_holder(struct server *server)
{
	struct takt_journal_holder holder = {0};

	if (takt_journal_open(server->config->sys, server->config->journal_path, &server->journal,
			      NULL) == 0)
		holder = server->journal.holder;
	takt_journal_close(&server->journal);
	return holder;
}

static void pause_for_lock(uint32_t tries)
{
	static const struct takt_pace tries_for_it = {2 * TAKT_NS_PER_MS, 50 * TAKT_NS_PER_MS};
	const struct timespec pause = {.tv_nsec = (long)takt_pace_ns(&tries_for_it, tries)};

	(void)nanosleep(&pause, NULL);
}

/* An actuator that was killed is gone soon; a guard that restores has its work to finish. */
static int take_lock(struct server *server, struct takt_err *err)
{
	struct takt_boot began = boot_now(server);
	struct takt_journal_holder holder;
	uint32_t tries = 0;
	uint64_t waited;
	int rc;

	while ((rc = takt_mandate_lock(&server->mandate, err)) == -TAKT_E_BUSY) {
		waited = takt_boot_elapsed_ns(boot_now(server), began);
		if (waited >= LOCK_PATIENCE_NS) {
			holder = read_holder(server);
			if (strcmp(holder.name, "guard") != 0 || waited >= GUARD_PATIENCE_NS)
				return takt_err_wrap(err, rc, "held by the %s with pid %d",
						     holder.name[0] ? holder.name : "process",
						     holder.pid);
		}
		pause_for_lock(tries++);
	}
	return rc;
}

static int open_machine(struct server *server, struct takt_err *err)
{
	const struct takt_actuate_config *config = server->config;
	int rc;

	server->machine_config = (struct takt_machine_config){
		.source =
			config->nvml_path && config->declare ? TAKT_SOURCE_NVML : TAKT_SOURCE_AUTO,
		.nvml_path = config->nvml_path,
		.call_deadline_ns = config->call_deadline_ns,
		.no_processes = true,
		.counts_errors = true,
		.sysfs_root = config->sysfs_root ? config->sysfs_root : "/sys",
	};
	takt_driver_look_init(&server->driver_look, &server->machine_config, boot_now(server));
	rc = takt_machine_open(&server->machine_config, &server->machine, err);
	if (rc < 0)
		return rc;
	server->driver_may_come =
		takt_machine_info(server->machine)->why_none[0] &&
		(config->nvml_path || takt_sysfs_has_gpu(server->machine_config.sysfs_root));
	server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->wake < 0)
		return takt_err_set(err, -errno, "make an eventfd");
	takt_machine_notify(server->machine, server->wake);
	return 0;
}

static int start_keeper(struct server *server, struct takt_err *err)
{
	struct takt_keeper *keeper = &server->actuator.keeper;

	keeper->sys = server->config->sys;
	keeper->machine = server->machine;
	keeper->journal = &server->journal;
	keeper->mandate = &server->mandate;
	keeper->baseline = &server->baseline;
	keeper->log = server->config->log;
	keeper->cpu.sysfs_root = server->config->sysfs_root;
	keeper->call_deadline_ns = server->config->call_deadline_ns;
	server->actuator.sets_nothing = server->config->sets_nothing;
	server->actuator.baseline = &server->baseline;
	server->actuator.baseline_path = server->config->baseline_path;
	server->actuator.declared_path = server->config->declared_path;
	keeper->declared = keeper->declared && !server->config->sets_nothing;
	takt_keeper_init(keeper);
	return takt_keeper_recover(keeper, boot_now(server), err);
}

/* In this order: what is left changed is found by whoever has the right to put it back, and who had
 * that right before may have declared something. */
static int start(struct server *server, struct takt_err *err)
{
	const struct takt_actuate_config *config = server->config;
	int rc;

	rc = take_lock(server, err);
	if (rc == 0)
		rc = takt_baseline_load_declared(config->sys, config->declared_path,
						 config->baseline_path, &server->baseline,
						 &server->actuator.keeper.declared, err);
	if (rc == 0)
		rc = takt_journal_open(config->sys, config->journal_path, &server->journal, err);
	if (rc == 0)
		rc = takt_mandate_begin(&server->mandate, &server->journal, "actuator", err);
	takt_crash_point("actuate.epoch_raised");
	if (rc == 0)
		rc = open_machine(server, err);
	return rc == 0 ? start_keeper(server, err) : rc;
}

static void finish(struct server *server)
{
	for (int i = 0; i < MAX_CLIENTS; i++) {
		if (server->clients[i].fd >= 0)
			close(server->clients[i].fd);
	}
	takt_driver_look_fini(&server->driver_look);
	takt_machine_close(server->machine);
	takt_mandate_fini(&server->mandate);
	takt_journal_close(&server->journal);
	takt_guard_watch_fini(&server->guard);
	if (server->wake >= 0)
		close(server->wake);
}

int takt_actuate_serve(const struct takt_actuate_config *config, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct server *server = takt_zalloc(sizeof(*server));
	int rc;

	if (!server)
		return takt_err_set(err, -ENOMEM, "start the actuator");
	server->config = config;
	server->wake = server->journal.fd = -1;
	for (int i = 0; i < MAX_CLIENTS; i++)
		server->clients[i].fd = -1;
	takt_guard_watch_init(&server->guard, config);
	rc = takt_mandate_init(&server->mandate, config->sys, config->lock_path, err);
	if (rc < 0)
		return rc;
	rc = start(server, err);
	if (rc == 0)
		rc = config->declare ? declare_once(server, err) : serve_until_stopped(server, err);
	finish(server);
	return rc;
}

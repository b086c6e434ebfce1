/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. The launcher, the shims, what they are linked in place of, and their deaths. */
#include "loss_procs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "launch/attempt.h"

enum {
	SIGNAL_STOP = 15,
	SIGNAL_KILL = 9,
	MAX_TURNS = 12, /* that a job runs */
	MAX_AWAY = 20,	/* turns that the launcher is away */
};

static struct loss_procs *present; /* where the engine's calls go */

struct takt_launch_client {
	uint64_t number;
	int fd; /* owned */
};

/* In place of the libraries' own. */

void takt_boot_id(char buf[40])
{
	snprintf(buf, 40, "boot-%u", present->boots);
}

int takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err)
{
	return takt_err_set(err, -ESRCH, "process %d", pid);
}

int takt_proc_open(const struct takt_proc_id *id)
{
	for (size_t i = 0; i < present->nr_shims; i++)
		if (present->shims[i].self.pid == id->pid &&
		    strcmp(present->shims[i].self.boot_id, id->boot_id) == 0)
			return dup(present->shims[i].ended_fd);
	return -ESRCH;
}

int takt_launch_connect(const char *socket_path, struct takt_launch_client **ret,
			struct takt_err *err)
{
	struct takt_launch_client *client;

	if (present->away > 0)
		return takt_err_set(err, -ECONNREFUSED, "no launcher");
	client = takt_alloc(sizeof(*client));
	if (!client)
		abort();
	client->number = ++present->clients;
	client->fd = present->client_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	present->nr_outbox = 0;
	*ret = client;
	return 0;
}

int takt_launch_fd(const struct takt_launch_client *client)
{
	return client->fd;
}

int takt_launch_send(struct takt_launch_client *client, struct takt_launch_request request,
		     struct takt_err *err)
{
	if (present->client_fd != client->fd)
		return -EPIPE;
	if (present->nr_inbox == LOSS_MAX_MESSAGES)
		return -EAGAIN;
	present->inbox_client[present->nr_inbox] = client->number;
	present->inbox[present->nr_inbox++] = request;
	return 0;
}

int takt_launch_recv(struct takt_launch_client *client, struct takt_launch_reply *ret,
		     struct takt_err *err)
{
	eventfd_t ignored;

	if (present->client_fd != client->fd)
		return -EPIPE;
	if (present->nr_outbox == 0) {
		(void)eventfd_read(client->fd, &ignored);
		return 0;
	}
	*ret = present->outbox[0];
	present->nr_outbox--;
	memmove(&present->outbox[0], &present->outbox[1],
		present->nr_outbox * sizeof(present->outbox[0]));
	return 1;
}

void takt_launch_client_free(struct takt_launch_client *client)
{
	if (!client)
		return;
	if (present->client_fd == client->fd)
		present->client_fd = -1;
	close(client->fd);
	takt_free(client);
}

/* Replies to a client that is gone are lost, as with any socket. */
static void reply_to(struct loss_procs *procs, uint64_t client,
		     const struct takt_launch_reply *reply)
{
	if (client != procs->clients || procs->client_fd < 0)
		return;
	if (procs->nr_outbox == LOSS_MAX_MESSAGES)
		abort();
	procs->outbox[procs->nr_outbox++] = *reply;
	(void)eventfd_write(procs->client_fd, 1);
}

static int open_jobs(struct loss_procs *procs)
{
	return procs->sys->openat(procs->sys, AT_FDCWD, procs->jobs_dir,
				  O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

static int open_attempt(struct loss_procs *procs, uint64_t job_id, uint32_t attempt)
{
	int jobs = open_jobs(procs), fd;

	if (jobs < 0)
		return jobs;
	fd = takt_attempt_open(procs->sys, jobs, job_id, attempt, NULL);
	(void)procs->sys->close(procs->sys, jobs);
	return fd;
}

static void close_fake(struct loss_procs *procs, int *fd)
{
	if (*fd >= 0)
		(void)procs->sys->close(procs->sys, *fd);
	*fd = -1;
}

/* The shims. */

static void shim_gone(struct loss_procs *procs, size_t i)
{
	struct loss_shim *shim = &procs->shims[i];

	close_fake(procs, &shim->lockfd);
	close_fake(procs, &shim->dirfd);
	(void)eventfd_write(shim->ended_fd, 1); /* whoever watches has a descriptor of his own */
	close(shim->ended_fd);
	*shim = procs->shims[--procs->nr_shims];
}

static bool shim_sync_names(struct loss_procs *procs, struct loss_shim *shim)
{
	int jobs = open_jobs(procs);
	int rc = jobs;

	if (rc >= 0 && !(procs->mistakes & LOSS_NO_JOBS_SYNC))
		rc = takt_attempt_sync(procs->sys, jobs, NULL);
	close_fake(procs, &jobs);
	shim->reply.rc = rc < 0 ? rc : 0;
	reply_to(procs, shim->client, &shim->reply);
	shim->step = SHIM_EXECED;
	return rc >= 0;
}

static int read_arguments(struct loss_procs *procs, struct loss_shim *shim,
			  int (*read)(const struct takt_sys *, int, struct takt_attempt_spec *,
				      struct takt_err *))
{
	struct takt_attempt_spec spec;
	int rc = read(procs->sys, shim->dirfd, &spec, NULL);

	if (rc < 0)
		return rc;
	shim->staged = spec.stage_lease_ms > 0;
	shim->serial = (uint32_t)strtoul(spec.argv[1], NULL, 10);
	shim->gpus = strtoull(spec.argv[2], NULL, 10);
	takt_attempt_spec_fini(&spec);
	return 0;
}

static bool shim_take_attempt(struct loss_procs *procs, struct loss_shim *shim)
{
	int rc;

	if (shim->dirfd < 0)
		shim->dirfd = open_attempt(procs, shim->job_id, shim->attempt);
	if (shim->dirfd < 0)
		return false;
	shim->lockfd = takt_attempt_lock(procs->sys, shim->dirfd, NULL);
	if (shim->lockfd < 0)
		return shim->lockfd == -TAKT_E_BUSY;
	rc = takt_attempt_unused(procs->sys, shim->dirfd, NULL);
	if (rc == 0)
		rc = takt_attempt_record_shim(procs->sys, shim->dirfd, &shim->self, NULL);
	if (rc == 0)
		rc = read_arguments(procs, shim, takt_attempt_read_spec);
	shim->step = SHIM_LOCKED;
	return rc == 0;
}

static bool shim_record_started(struct loss_procs *procs, struct loss_shim *shim)
{
	struct takt_proc_id job = shim->self;

	job.pid++;
	shim->started = takt_attempt_record_started(procs->sys, shim->dirfd, &job,
						    takt_wall_now(procs->sys), NULL) == 0;
	return shim->started;
}

static bool shim_stage(struct loss_procs *procs, struct loss_shim *shim)
{
	shim->step = SHIM_WAITS;
	return takt_attempt_record_staged(procs->sys, shim->dirfd, &shim->self, NULL) == 0;
}

/* Void; where that cannot be written it goes without a word. */
static bool shim_called_off(struct loss_procs *procs, const struct loss_shim *shim)
{
	struct takt_attempt_status end = {.exit_kind = TAKT_EXIT_VOID,
					  .ended_at = takt_wall_now(procs->sys)};

	(void)takt_attempt_record_exit(procs->sys, shim->dirfd, &end, NULL);
	return false;
}

static bool shim_wait(struct loss_procs *procs, struct loss_shim *shim)
{
	int rc;

	if (shim->stop)
		return shim_called_off(procs, shim);
	if (procs->mistakes & LOSS_NO_TURN) {
		shim->step = SHIM_TURN;
		return true;
	}
	if (!shim->look)
		return true;
	shim->look = false;
	rc = read_arguments(procs, shim, takt_attempt_read_go);
	if (rc == 0)
		shim->step = SHIM_TURN;
	return rc == 0 || rc == -ENOENT || shim_called_off(procs, shim);
}

/* Whether the machine is still on is asked last: one that is off executes nothing. */
static void shim_exec(struct loss_procs *procs, struct loss_shim *shim)
{
	if (fake_sys_is_off(procs->world))
		return;
	shim->run =
		witness_exec(procs->witness, shim->serial, shim->job_id, shim->attempt, shim->gpus);
	shim->step = SHIM_RUNS;
	shim->left = (uint32_t)takt_rng_below(procs->rng, MAX_TURNS);
	shim->code = takt_rng_below(procs->rng, 4) == 0 ? 3 : 0;
}

static void shim_run(struct loss_procs *procs, struct loss_shim *shim)
{
	if (procs->mistakes & LOSS_NO_LOCK)
		close_fake(procs, &shim->lockfd);
	if (!shim->started && !shim_record_started(procs, shim))
		return;
	if (shim->stop)
		witness_run_over(procs->witness, shim->run, 0, SIGNAL_STOP);
	else if (shim->left == 0)
		witness_run_over(procs->witness, shim->run, shim->code, 0);
	else
		shim->left--;
	if (procs->witness->runs[shim->run].over)
		shim->step = SHIM_ENDS;
}

/* Tried until it succeeds; then the shim is done. */
static bool shim_record_exit(struct loss_procs *procs, const struct loss_shim *shim)
{
	struct witness_run *run = &procs->witness->runs[shim->run];
	struct takt_attempt_status end = {
		.exit_kind = run->signal ? TAKT_EXIT_SIGNALED : TAKT_EXIT_EXITED,
		.exit_code = run->signal ? run->signal : run->code,
		.ended_at = takt_wall_now(procs->sys),
	};

	if (takt_attempt_record_exit(procs->sys, shim->dirfd, &end, NULL) < 0)
		return true;
	run->recorded = true;
	return false;
}

/* False when this was its last step. */
static bool shim_step(struct loss_procs *procs, struct loss_shim *shim)
{
	switch (shim->step) {
	case SHIM_FORKED:
		return shim_sync_names(procs, shim);
	case SHIM_EXECED:
		return shim_take_attempt(procs, shim);
	case SHIM_WAITS:
		return shim_wait(procs, shim);
	case SHIM_LOCKED:
		if (shim->staged)
			return shim_stage(procs, shim);
		__attribute__((fallthrough));
	case SHIM_TURN:
		if (!(procs->mistakes & LOSS_LATE_STARTED) && !shim_record_started(procs, shim) &&
		    !(procs->mistakes & LOSS_CARELESS))
			return false;
		shim->step = SHIM_RECORDED;
		return true;
	case SHIM_RECORDED:
		shim_exec(procs, shim);
		return true;
	case SHIM_RUNS:
		shim_run(procs, shim);
		return true;
	case SHIM_ENDS:
		return shim_record_exit(procs, shim);
	}
	return false;
}

/* Its job's first process goes with it; what that one has started may stay. */
static void shim_kill(struct loss_procs *procs, size_t i)
{
	const struct loss_shim *shim = &procs->shims[i];

	procs->witness->killed_shims++;
	if (shim->step == SHIM_FORKED)
		reply_to(procs, shim->client, &shim->reply); /* closed pipe: taken for exec */
	if (shim->step == SHIM_RUNS && procs->nr_orphans == LOSS_MAX_SHIMS)
		abort();
	if (shim->step == SHIM_RUNS)
		procs->orphans[procs->nr_orphans++] =
			(struct loss_orphan){shim->job_id, shim->attempt, shim->run, false};
	shim_gone(procs, i);
}

/* The launcher. */

static int check_startable(struct loss_procs *procs, const struct takt_launch_request *request)
{
	struct takt_attempt_status status;
	int jobs = open_jobs(procs);
	int rc = jobs < 0 ? jobs
			  : takt_attempt_status(procs->sys, jobs, request->job_id, request->attempt,
						&status, NULL);

	close_fake(procs, &jobs);
	if (rc < 0)
		return rc;
	if (status.state == TAKT_ATTEMPT_ABSENT)
		return -TAKT_E_NOT_FOUND;
	return status.state == TAKT_ATTEMPT_NOT_STARTED ? 0 : -TAKT_E_CONFLICT;
}

/* True when the reply follows from the child. */
static bool launch(struct loss_procs *procs, const struct takt_launch_request *request,
		   uint64_t client, struct takt_launch_reply *reply)
{
	struct loss_shim *shim = &procs->shims[procs->nr_shims];

	reply->rc = procs->nr_shims == LOSS_MAX_SHIMS ? -EAGAIN : check_startable(procs, request);
	if (reply->rc < 0)
		return false;
	procs->nr_shims++;
	*shim = (struct loss_shim){.client = client,
				   .job_id = request->job_id,
				   .attempt = request->attempt,
				   .dirfd = -1,
				   .lockfd = -1};
	shim->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	procs->last_pid += 2;
	shim->self.pid = procs->last_pid;
	shim->self.start_ticks = (uint64_t)procs->last_pid;
	takt_boot_id(shim->self.boot_id);
	reply->shim = shim->self;
	shim->reply = *reply;
	return true;
}

static int tell(struct loss_procs *procs, const struct takt_launch_request *request)
{
	for (size_t i = 0; i < procs->nr_shims; i++)
		if (procs->shims[i].self.pid == request->target.pid) {
			procs->shims[i].stop |= request->op == TAKT_LAUNCH_STOP;
			procs->shims[i].look |= request->op == TAKT_LAUNCH_LOOK;
			return 0;
		}
	return -ESRCH;
}

/* SIGKILL to each; they go a moment later. How many there were. */
static int kill_orphans(struct loss_procs *procs, const struct takt_launch_request *request)
{
	int found = 0;

	for (size_t i = 0; i < procs->nr_orphans; i++) {
		struct loss_orphan *orphan = &procs->orphans[i];

		if (orphan->job_id != request->job_id || orphan->attempt != request->attempt)
			continue;
		orphan->dying = true;
		found++;
	}
	return found;
}

static void orphans_turn(struct loss_procs *procs)
{
	for (size_t i = procs->nr_orphans; i-- > 0;) {
		if (!procs->orphans[i].dying || takt_rng_below(procs->rng, 3) != 0)
			continue;
		procs->witness->runs[procs->orphans[i].run].alive = false;
		procs->orphans[i] = procs->orphans[--procs->nr_orphans];
	}
}

static int reap(struct loss_procs *procs, const struct takt_launch_request *request)
{
	int dirfd = open_attempt(procs, request->job_id, request->attempt);
	int lock, rc;

	if (dirfd < 0)
		return dirfd;
	lock = takt_attempt_lock(procs->sys, dirfd, NULL);
	rc = lock < 0 ? lock : kill_orphans(procs, request);
	close_fake(procs, &lock);
	close_fake(procs, &dirfd);
	return rc == -TAKT_E_BUSY ? -TAKT_E_CONFLICT : rc;
}

static void serve_one(struct loss_procs *procs)
{
	struct takt_launch_request request = procs->inbox[0];
	uint64_t client = procs->inbox_client[0];
	struct takt_launch_reply reply = {.op = request.op, .seq = request.seq};

	procs->nr_inbox--;
	memmove(&procs->inbox[0], &procs->inbox[1], procs->nr_inbox * sizeof(procs->inbox[0]));
	memmove(&procs->inbox_client[0], &procs->inbox_client[1],
		procs->nr_inbox * sizeof(procs->inbox_client[0]));
	if (request.op == TAKT_LAUNCH_START && launch(procs, &request, client, &reply))
		return;
	if (request.op == TAKT_LAUNCH_STOP || request.op == TAKT_LAUNCH_LOOK)
		reply.rc = tell(procs, &request);
	if (request.op == TAKT_LAUNCH_REAP)
		reply.rc = reap(procs, &request);
	reply_to(procs, client, &reply);
}

/* What nobody has read is lost with the socket; shims go on. */
static void launcher_ends(struct loss_procs *procs)
{
	procs->away = 1 + (unsigned)takt_rng_below(procs->rng, MAX_AWAY);
	procs->nr_inbox = procs->nr_outbox = 0;
	if (procs->client_fd >= 0)
		(void)eventfd_write(procs->client_fd, 1);
	procs->client_fd = -1;
}

void loss_procs_turn(struct loss_procs *procs)
{
	if (procs->away > 0)
		procs->away--;
	else if (procs->launcher_one_in && takt_rng_below(procs->rng, procs->launcher_one_in) == 0)
		launcher_ends(procs);
	if (procs->nr_inbox > 0 && takt_rng_below(procs->rng, 3) != 0 &&
	    !fake_sys_is_off(procs->world))
		serve_one(procs);
	orphans_turn(procs);
	for (size_t i = procs->nr_shims; i-- > 0 && !fake_sys_is_off(procs->world);) {
		if (procs->kill_one_in && takt_rng_below(procs->rng, procs->kill_one_in) == 0)
			shim_kill(procs, i);
		else if (takt_rng_below(procs->rng, 3) != 0 &&
			 !shim_step(procs, &procs->shims[i]) && !fake_sys_is_off(procs->world))
			shim_gone(procs, i);
	}
}

bool loss_procs_idle(const struct loss_procs *procs)
{
	return procs->nr_shims == 0 && procs->nr_inbox == 0;
}

/* Beginnings and ends. */

void loss_procs_init(struct loss_procs *procs, struct fake_sys *world, struct witness *witness,
		     struct takt_rng *rng, const char *jobs_dir)
{
	*procs = (struct loss_procs){.world = world,
				     .sys = fake_sys_table(world),
				     .witness = witness,
				     .rng = rng,
				     .jobs_dir = jobs_dir,
				     .boots = 1,
				     .last_pid = 1000,
				     .client_fd = -1};
	present = procs;
}

static void forget_all(struct loss_procs *procs)
{
	for (size_t i = 0; i < procs->nr_shims; i++)
		close(procs->shims[i].ended_fd);
	procs->nr_shims = procs->nr_inbox = procs->nr_outbox = procs->nr_orphans = 0;
}

void loss_procs_fini(struct loss_procs *procs)
{
	forget_all(procs);
	present = NULL;
}

void loss_procs_power_loss(struct loss_procs *procs, uint64_t seed)
{
	forget_all(procs);
	procs->boots++;
	witness_power_loss(procs->witness);
	fake_sys_power_loss(procs->world, seed);
}

/* fake_sys knows one process only, whose death takes every descriptor: the shims' are opened again
 * before anybody can look. */
void loss_procs_daemon_death(struct loss_procs *procs)
{
	fake_sys_process_death(procs->world);
	for (size_t i = 0; i < procs->nr_shims; i++) {
		struct loss_shim *shim = &procs->shims[i];
		bool locked = shim->lockfd >= 0;

		if (shim->dirfd < 0)
			continue;
		shim->dirfd = open_attempt(procs, shim->job_id, shim->attempt);
		shim->lockfd = locked ? takt_attempt_lock(procs->sys, shim->dirfd, NULL) : -1;
		if (shim->dirfd < 0 || (locked && shim->lockfd < 0))
			abort(); /* nobody else can hold it */
	}
}

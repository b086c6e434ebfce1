/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. The daemon, its users, and their turns. */
#include "loss_life.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "engine/local/local_engine.h"

#define STATE "/var/takt"
#define JOBS  STATE "/jobs"

enum {
	TURN_MS = 100,
	MAX_TURNS = 4000,
	STORE_PATIENCE_MS = 20000,
	STORE_ANSWERS = 8,
	CHECKPOINT_FRAMES = 12,
	MAX_CLAIMS = 1024,
};

static uint32_t serial_of(const struct takt_queue_job *job)
{
	return (uint32_t)strtoul(job->spec.name + 1, NULL, 10);
}

/* What the queue tells its users. */

static void accepted(void *ctx, void *token, const struct takt_queue_job *job,
		     const struct takt_err *error)
{
	struct loss_machine *machine = ctx;

	if (!error)
		witness_accepted(&machine->witness, (uint32_t)(uintptr_t)token, job->row.id);
}

/* The token is the attempt that is to end. */
static void noted(void *ctx, void *token, const struct takt_queue_job *job,
		  const struct takt_err *error)
{
	struct loss_machine *machine = ctx;

	if (!error)
		witness_anew_kept(&machine->witness, serial_of(job), (uint32_t)(uintptr_t)token);
}

static void prepare(void *ctx, const struct takt_queue_job *job)
{
	takt_queue_prepared(((struct loss_machine *)ctx)->queue, job->row.id, "");
}

static void release(void *ctx, const struct takt_queue_job *job, struct takt_job_report *ret_report)
{
}

static void changed(void *ctx, const struct takt_queue_job *job)
{
	struct loss_machine *machine = ctx;

	if (takt_job_state_ended(job->row.state))
		witness_ended(&machine->witness, serial_of(job), &job->row);
}

static const struct takt_queue_hooks hooks = {.accepted = accepted,
					      .noted = noted,
					      .prepare = prepare,
					      .release = release,
					      .changed = changed};

static char *print_number(uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return takt_strdup(text);
}

static char *name_attempt(const char *attempt_id)
{
	char text[TAKT_ATTEMPT_ID_MAX + 16];

	snprintf(text, sizeof(text), "TAKT_ATTEMPT=%s", attempt_id);
	return takt_strdup(text);
}

static int describe(void *ctx, const struct takt_action *start, const char *attempt_id,
		    struct takt_attempt_spec *ret_spec, uid_t *ret_uid, gid_t *ret_gid,
		    struct takt_err *err)
{
	struct loss_machine *machine = ctx;
	const struct takt_queue_job *job = takt_queue_find(machine->queue, start->job_id);

	if (!job)
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "job %" PRIu64, start->job_id);
	ret_spec->argv = takt_calloc(4, sizeof(char *));
	ret_spec->env = takt_calloc(2, sizeof(char *));
	ret_spec->env[0] = name_attempt(attempt_id);
	ret_spec->argv[0] = takt_strdup("job");
	ret_spec->argv[1] = print_number(serial_of(job));
	ret_spec->argv[2] = print_number(start->gpu_mask);
	ret_spec->cwd = takt_strdup("/");
	*ret_uid = job->row.uid;
	*ret_gid = job->row.gid;
	return 0;
}

/* Starting the daemon. */

static int open_store(struct loss_machine *machine, struct takt_err *err)
{
	struct takt_store_config config = {
		.path = STATE "/takt.db",
		.sys = fake_sys_table(machine->world),
		.checkpoint_frames = CHECKPOINT_FRAMES,
		.vfs = "loss",
		.allow_network_fs = true,
		.unsafe_no_sync = machine->no_sync,
	};

	return takt_store_open(&config, &machine->store, err);
}

static int open_engine(struct loss_machine *machine, struct takt_err *err)
{
	struct takt_engine_local_config config = {
		.sys = fake_sys_table(machine->world),
		.jobs_dir = JOBS,
		.launch_socket = "launch.sock",
		.describe = describe,
		.ctx = machine,
	};

	return takt_engine_local_new(&config, &machine->engine, err);
}

static uint64_t highest_attempt(struct loss_machine *machine)
{
	const char *at = fake_sys_list(machine->world, JOBS);
	uint64_t highest = 0, job;

	while (at && *at) {
		job = strtoull(at, NULL, 10);
		highest = job > highest ? job : highest;
		at += strcspn(at, " ");
		at += *at == ' ';
	}
	return highest;
}

struct claims {
	TAKT_VEC(struct takt_engine_live) live;
};

static int claim(void *ctx, const struct takt_queue_job *job, struct takt_err *err)
{
	struct claims *claims = ctx;

	return takt_vec_push(&claims->live,
			     (struct takt_engine_live){job->row.id, job->row.attempt, job->row.uid,
						       job->row.gid, job->stage != TAKT_STAGE_NONE,
						       job->row.gpu_mask});
}

static int open_queue(struct loss_machine *machine, struct takt_err *err)
{
	static const int32_t flat[LOSS_GPUS * LOSS_GPUS];
	struct takt_queue_config config = {
		.store = machine->store,
		.engine = machine->engine,
		.pair_score = flat,
		.gpu_count = LOSS_GPUS,
		.hooks = &hooks,
		.hooks_ctx = machine,
		.highest_known_id = highest_attempt(machine),
		.signal_id_base = 1ull << 63,
		.staging = machine->stages ? TAKT_STAGING_ALL : TAKT_STAGING_OFF,
	};
	struct claims claims = {.live = TAKT_VEC_INIT(MAX_CLAIMS)};
	int rc = takt_queue_new(&config, &machine->queue, err);

	if (rc == 0)
		rc = takt_queue_load(machine->queue, claim, &claims, err);
	if (rc == 0)
		rc = takt_engine_local_recover(machine->engine, claims.live.at, claims.live.len,
					       err);
	takt_vec_fini(&claims.live);
	return rc;
}

/* Only a machine that is off or whose calls fail has an excuse. */
static bool start_daemon(struct loss_machine *machine)
{
	struct takt_err err = {0};
	int rc = takt_mkdirs_durable(fake_sys_table(machine->world), JOBS, 0700, &err);

	if (rc == 0)
		rc = open_store(machine, &err);
	if (rc == 0)
		rc = open_engine(machine, &err);
	if (rc == 0)
		rc = open_queue(machine, &err);
	if (rc < 0 && !fake_sys_is_off(machine->world) && !machine->may_not_start)
		witness_blame(&machine->witness, "takt does not start: %s", err.msg);
	return rc == 0;
}

static void close_daemon(struct loss_machine *machine)
{
	takt_queue_free(machine->queue);
	takt_engine_free(machine->engine);
	takt_store_close(machine->store);
	machine->queue = NULL;
	machine->engine = NULL;
	machine->store = NULL;
	if (sys_vfs_open_count(machine->vfs) != 0)
		witness_blame(&machine->witness, "files were left open");
}

/* Users. */

static void submit(struct loss_machine *machine)
{
	static const uint32_t shares[] = {1000, 1000, 1000, 600, 400, 250};
	bool requeue = takt_rng_below(&machine->rng, 2);
	uint32_t milli = shares[takt_rng_below(&machine->rng, TAKT_ARRAY_LEN(shares))];
	uint32_t serial = witness_submit(&machine->witness, milli, requeue);
	struct takt_jobspec spec;

	takt_jobspec_init(&spec);
	snprintf(spec.name, sizeof(spec.name), "s%u", serial);
	spec.argv = takt_calloc(2, sizeof(char *));
	spec.argv[0] = takt_strdup("job");
	spec.env = takt_calloc(1, sizeof(char *));
	spec.cwd = takt_strdup("/");
	spec.gpus = 1 + (uint32_t)takt_rng_below(&machine->rng, LOSS_GPUS - 1);
	spec.gpu_milli = milli < 1000 ? milli : 0;
	spec.priority = (int)takt_rng_below(&machine->rng, 3);
	spec.requeue = requeue;
	(void)takt_queue_submit(machine->queue, 1000, 1000, &spec,
				takt_wall_now(fake_sys_table(machine->world)),
				(void *)(uintptr_t)serial, NULL);
	takt_jobspec_fini(&spec);
}

static void cancel(struct loss_machine *machine)
{
	uint32_t serial = 1 + (uint32_t)takt_rng_below(&machine->rng, machine->witness.nr_jobs);
	uint64_t id = machine->witness.jobs[serial - 1].id;
	const struct takt_queue_job *job = takt_queue_find(machine->queue, id);

	if (!machine->witness.jobs[serial - 1].accepted || !job)
		return;
	witness_cancel(&machine->witness, serial, job->row.attempt);
	(void)takt_queue_cancel(machine->queue, id, TAKT_CAUSE_CANCELLED,
				takt_wall_now(fake_sys_table(machine->world)), NULL);
}

/* Whichever of the jobs runs, from a random one on. */
static void ask_anew(struct loss_machine *machine)
{
	uint32_t first = (uint32_t)takt_rng_below(&machine->rng, machine->witness.nr_jobs);
	const struct takt_queue_change anew = {.begin_anew = true};

	for (uint32_t i = 0; i < machine->witness.nr_jobs; i++) {
		uint32_t serial = 1 + (first + i) % machine->witness.nr_jobs;
		uint64_t id = machine->witness.jobs[serial - 1].id;
		const struct takt_queue_job *job = id ? takt_queue_find(machine->queue, id) : NULL;
		uint32_t attempt = job ? job->row.attempt : 0;

		if (!job || takt_queue_change(machine->queue, id, &anew, (void *)(uintptr_t)attempt,
					      NULL) < 0)
			continue;
		witness_anew(&machine->witness, serial, attempt);
		return;
	}
}

static bool comes_up(struct loss_machine *machine, unsigned one_in)
{
	return one_in && machine->witness.nr_jobs > 0 && takt_rng_below(&machine->rng, one_in) == 0;
}

static void users_turn(struct loss_machine *machine)
{
	if (machine->submits > 0 && takt_rng_below(&machine->rng, 2)) {
		machine->submits--;
		submit(machine);
	}
	if (comes_up(machine, machine->cancel_one_in))
		cancel(machine);
	if (comes_up(machine, machine->anew_one_in))
		ask_anew(machine);
}

/* Turns. */

/* The driver's word: a GPU is clean when no process is left on it. */
static void look_at_gpus(struct loss_machine *machine)
{
	const struct takt_queue_holding *held;
	struct takt_queue_holding gone;
	size_t count;

	held = takt_queue_holdings(machine->queue, &count);
	for (size_t i = count; i-- > 0;) {
		bool whole = held[i].milli == 1000;

		if (!held[i].left ||
		    witness_gpu_used(&machine->witness, held[i].gpu, whole ? 0 : held[i].job_id))
			continue;
		gone = held[i];
		(void)takt_queue_holding_gone(machine->queue, &gone, NULL);
		held = takt_queue_holdings(machine->queue, &count);
		i = i < count ? i : count;
	}
}

static void pump_queue(struct loss_machine *machine)
{
	const struct takt_sys *sys = fake_sys_table(machine->world);
	uint64_t next;

	(void)takt_queue_pump(machine->queue, takt_boot_now(sys), takt_wall_now(sys), &next, NULL);
}

/* Until the store has answered all that it was asked, so that its thread's pace makes no
 * difference; within bounds, since an answer may lead to the next question. */
static void wait_for_store(struct loss_machine *machine)
{
	struct pollfd fd = {.fd = takt_store_fd(machine->store), .events = POLLIN};

	for (int i = 0; i < STORE_ANSWERS && takt_store_outstanding(machine->store) > 0; i++) {
		if (poll(&fd, 1, STORE_PATIENCE_MS) != 1)
			witness_blame(&machine->witness, "the store does not answer");
		pump_queue(machine);
	}
}

static void daemon_turn(struct loss_machine *machine, bool wait)
{
	uint64_t next;

	(void)takt_engine_pump(machine->engine, takt_boot_now(fake_sys_table(machine->world)),
			       &next, NULL);
	look_at_gpus(machine);
	pump_queue(machine);
	if (wait)
		wait_for_store(machine);
	if (takt_store_outstanding(machine->store) == 0 && !fake_sys_is_off(machine->world))
		witness_all_written(&machine->witness);
}

/* With kill_only what the others call does not bring the daemon's end nearer. */
static unsigned long others_turn(struct loss_machine *machine, unsigned long cut_at)
{
	unsigned long before = fake_sys_calls(machine->world, FAKE_SYS_ANY), after;

	if (cut_at == 0 || !machine->kill_only) {
		loss_procs_turn(&machine->procs);
		return cut_at;
	}
	fake_sys_cut_power_at(machine->world, 0);
	loss_procs_turn(&machine->procs);
	after = fake_sys_calls(machine->world, FAKE_SYS_ANY);
	cut_at += after - before;
	fake_sys_cut_power_at(machine->world, cut_at > after ? cut_at - after : 1);
	return cut_at;
}

static void cut_now(struct loss_machine *machine)
{
	machine->was_cut = fake_sys_is_off(machine->world);
	if (!machine->was_cut)
		fake_sys_cut_power_at(machine->world, 1);
	close_daemon(machine);
	witness_daemon_death(&machine->witness);
	if (machine->kill_only)
		loss_procs_daemon_death(&machine->procs);
	else
		loss_procs_power_loss(&machine->procs, takt_rng_next(&machine->rng));
}

void loss_machine_live(struct loss_machine *machine, unsigned turns, unsigned long cut)
{
	unsigned long cut_at = cut ? fake_sys_calls(machine->world, FAKE_SYS_ANY) + cut : 0;

	fake_sys_cut_power_at(machine->world, cut);
	if (start_daemon(machine))
		for (unsigned i = 0; i < turns && !fake_sys_is_off(machine->world); i++) {
			fake_sys_advance(machine->world, TURN_MS * TAKT_NS_PER_MS);
			users_turn(machine);
			daemon_turn(machine, takt_rng_below(&machine->rng, 3) != 0);
			if (!fake_sys_is_off(machine->world))
				cut_at = others_turn(machine, cut_at);
		}
	cut_now(machine);
}

static bool at_rest(struct loss_machine *machine)
{
	uint32_t waiting, running;

	takt_queue_counts(machine->queue, &waiting, &running);
	return waiting + running == 0 && loss_procs_idle(&machine->procs);
}

static int blame_left(void *ctx, const struct takt_queue_job *job)
{
	struct loss_machine *machine = ctx;

	witness_blame(&machine->witness, "s%u is left after %d turns in phase %d, attempt %u: %s",
		      serial_of(job), MAX_TURNS, (int)job->phase, job->row.attempt,
		      job->row.message ? job->row.message : "");
	return 0;
}

bool loss_machine_settle(struct loss_machine *machine)
{
	unsigned turns = 0;

	if (machine->witness.why[0] || !start_daemon(machine)) {
		close_daemon(machine);
		return false;
	}
	while (!at_rest(machine) && turns++ < MAX_TURNS) {
		fake_sys_advance(machine->world, TURN_MS * TAKT_NS_PER_MS);
		daemon_turn(machine, true);
		loss_procs_turn(&machine->procs);
	}
	(void)takt_queue_each(machine->queue, UINT32_MAX, blame_left, machine);
	if (!at_rest(machine))
		witness_blame(&machine->witness, "processes are left after %d turns", MAX_TURNS);
	witness_judge(&machine->witness, machine->store);
	close_daemon(machine);
	return !machine->witness.why[0];
}

void loss_machine_init(struct loss_machine *machine, uint64_t seed)
{
	*machine = (struct loss_machine){.world = fake_sys_new()};
	fake_sys_add_dir(machine->world, "/var");
	if (takt_store_sqlite_init(NULL) < 0)
		abort();
	machine->vfs = sys_vfs_new("loss", fake_sys_table(machine->world));
	witness_init(&machine->witness);
	takt_rng_init(&machine->rng, seed);
	loss_procs_init(&machine->procs, machine->world, &machine->witness, &machine->rng, JOBS);
}

void loss_machine_fini(struct loss_machine *machine)
{
	sys_vfs_free(machine->vfs);
	loss_procs_fini(&machine->procs);
	fake_sys_free(machine->world);
}

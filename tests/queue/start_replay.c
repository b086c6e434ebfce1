/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays jobs that somebody recorded through the daemon's own queue, store and scheduler, on a
 * machine of so many GPUs whose clock is ours, and says what was foretold of their starts.
 *
 *	start_replay GPUS BACKFILL < JOBS.csv > FORETOLD.csv
 *
 * In: submit_s,run_s,gpus,owner, by submit_s. Nobody says how long a job takes. Out, of each job
 * that waited, at its submission (half 0) and each time that half of the wait that was left had
 * gone by: job,half,started_s,left_s,foretold_s,low_s,high_s, from left on seconds from then;
 *foretold is empty where nothing was said, low and high where no range was.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "engine/engine_impl.h"
#include "queue/queue.h"

enum {
	MAX_JOBS = 200000,
	MAX_WORDS = 1 << 20,
	LOOK_S = 300, /* at what is said, at least */
	HALVES = 10,
	GPUS_MOST = 64,
};

/* What was said at some moment. */
struct word {
	int64_t at_ns, start_ns, low_ns, high_ns;
	bool is, has_range;
};

struct job {
	uint64_t submit_s, run_s, id, attempt;
	uint32_t gpus, owner;
	int64_t submitted_ns;
	uint64_t end_ns; /* boot time; 0 = it does not run */
	TAKT_VEC(struct word) words;
};

struct replay {
	struct takt_engine engine;
	struct takt_store *store;
	struct takt_queue *queue;
	TAKT_VEC(struct job) jobs;
	TAKT_VEC(uint32_t) waiting, starting, running; /* indices of jobs */
	uint64_t first_id, accepted;
	uint64_t now_ns, next_ns;
};

static const int64_t wall_ahead_ns = INT64_C(1500000000000000000);

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "start_replay: %s\n", what);
	exit(1);
}

static struct takt_wall wall(const struct replay *replay)
{
	return (struct takt_wall){(int64_t)replay->now_ns + wall_ahead_ns};
}

static uint32_t index_of(const struct replay *replay, uint64_t id)
{
	return (uint32_t)(id - replay->first_id);
}

static int apply(struct takt_engine *engine, const struct takt_action *actions, size_t n,
		 struct takt_err *err)
{
	struct replay *replay = TAKT_CONTAINER_OF(engine, struct replay, engine);

	(void)err;
	for (size_t i = 0; i < n; i++) {
		if (actions[i].kind != TAKT_ACTION_START)
			continue;
		must(takt_vec_push(&replay->starting, index_of(replay, actions[i].job_id)) == 0,
		     "no memory");
		replay->jobs.at[index_of(replay, actions[i].job_id)].attempt = actions[i].attempt;
	}
	return 0;
}

static const struct takt_engine_ops ops = {.name = "replay", .apply = apply};

static void accepted(void *ctx, void *token, const struct takt_queue_job *job,
		     const struct takt_err *error)
{
	struct replay *replay = ctx;

	(void)token;
	must(!error, error ? error->msg : "");
	if (replay->first_id == 0)
		replay->first_id = job->row.id;
	replay->accepted++;
}

static void prepare(void *ctx, const struct takt_queue_job *job)
{
	takt_queue_prepared(((struct replay *)ctx)->queue, job->row.id, "");
}

static void release(void *ctx, const struct takt_queue_job *job, struct takt_job_report *ret_report)
{
	(void)ctx;
	(void)job;
	(void)ret_report;
}

static void changed(void *ctx, const struct takt_queue_job *job)
{
	(void)ctx;
	(void)job;
}

static const struct takt_queue_hooks hooks = {
	.accepted = accepted, .prepare = prepare, .release = release, .changed = changed};

static void pump_once(struct replay *replay)
{
	struct takt_err err;

	must(takt_queue_pump(replay->queue, (struct takt_boot){replay->now_ns}, wall(replay),
			     &replay->next_ns, &err) == 0,
	     err.msg);
}

static void emit(struct replay *replay, const struct job *job, enum takt_engine_event_kind kind)
{
	takt_engine_emit(&replay->engine,
			 (struct takt_engine_event){.kind = kind,
						    .job_id = job->id,
						    .attempt = (uint32_t)job->attempt,
						    .pid = 1000,
						    .end = TAKT_END_EXITED,
						    .at = wall(replay),
						    .at_boot = {replay->now_ns},
						    .run_ns = job->run_s * TAKT_NS_PER_S});
}

static void drop(struct replay *replay, uint32_t index)
{
	for (size_t i = 0; i < replay->waiting.len; i++)
		if (replay->waiting.at[i] == index) {
			takt_vec_remove(&replay->waiting, i);
			return;
		}
}

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* The last word before a moment. */
static const struct word *word_at(const struct job *job, int64_t at_ns)
{
	const struct word *last = NULL;

	TAKT_VEC_EACH (word, &job->words)
		if (word->at_ns <= at_ns)
			last = word;
	return last;
}

static void tell(const struct replay *replay, uint32_t index)
{
	struct job *job = &replay->jobs.at[index];
	int64_t waited_ns = wall(replay).ns - job->submitted_ns, start_ns = wall(replay).ns;

	for (int half = 0; half < HALVES && waited_ns >> half >= 60 * (int64_t)TAKT_NS_PER_S;
	     half++) {
		const struct word *word = word_at(job, start_ns - (waited_ns >> half));

		if (!word)
			continue;
		printf("%" PRIu32 ",%d,%.0f,%.0f,", index, half, seconds((int64_t)replay->now_ns),
		       seconds(start_ns - word->at_ns));
		if (word->is)
			printf("%.0f", seconds(word->start_ns - word->at_ns));
		printf(",");
		if (word->has_range)
			printf("%.0f,%.0f", seconds(word->low_ns - word->at_ns),
			       seconds(word->high_ns - word->at_ns));
		else
			printf(",");
		printf("\n");
	}
	takt_vec_fini(&job->words);
}

static void start_them(struct replay *replay)
{
	for (size_t i = 0; i < replay->starting.len; i++) {
		uint32_t index = replay->starting.at[i];
		struct job *job = &replay->jobs.at[index];

		job->end_ns = replay->now_ns + job->run_s * TAKT_NS_PER_S;
		emit(replay, job, TAKT_ENGINE_STARTED);
		must(takt_vec_push(&replay->running, index) == 0, "no memory");
		tell(replay, index);
		drop(replay, index);
	}
	takt_vec_clear(&replay->starting);
}

/* Until everything is on disk and what may start has. */
static void settle(struct replay *replay)
{
	struct pollfd fd = {.fd = takt_store_fd(replay->store), .events = POLLIN};

	do {
		pump_once(replay);
		start_them(replay);
		pump_once(replay);
	} while (replay->starting.len > 0 ||
		 (takt_store_outstanding(replay->store) && poll(&fd, 1, 20000) > 0));
}

static void look(struct replay *replay)
{
	for (size_t i = 0; i < replay->waiting.len; i++) {
		struct job *job = &replay->jobs.at[replay->waiting.at[i]];
		const struct takt_queue_job *live = takt_queue_find(replay->queue, job->id);
		struct takt_queue_start start;
		struct word word = {.at_ns = wall(replay).ns};

		if (!live)
			continue;
		word.is = takt_queue_foretold(replay->queue, live, &start);
		word.has_range = word.is && start.has_range;
		word.start_ns = start.at.ns;
		word.low_ns = start.low.ns;
		word.high_ns = start.high.ns;
		must(!word.is || word.start_ns >= word.at_ns, "a start was foretold in the past");
		must(takt_vec_push(&job->words, word) == 0, "no memory");
	}
}

static void submit(struct replay *replay, uint32_t index)
{
	struct job *job = &replay->jobs.at[index];
	struct takt_jobspec spec;
	struct takt_err err;
	uint64_t before = replay->accepted;

	takt_jobspec_init(&spec);
	takt_strcpy(spec.name, sizeof(spec.name), "train");
	spec.argv = takt_calloc(2, sizeof(char *));
	spec.argv[0] = takt_strdup("train");
	spec.env = takt_calloc(1, sizeof(char *));
	spec.cwd = takt_strdup("/");
	spec.gpus = job->gpus;
	must(takt_queue_submit(replay->queue, job->owner, job->owner, &spec, wall(replay), replay,
			       &err) == 0,
	     err.msg);
	takt_jobspec_fini(&spec);
	job->submitted_ns = wall(replay).ns;
	must(takt_vec_push(&replay->waiting, index) == 0, "no memory");
	job->id = replay->first_id ? replay->first_id + index : 0;
	settle(replay);
	must(replay->accepted == before + 1, "a job was not accepted");
	job->id = replay->first_id + index;
}

static void end(struct replay *replay, size_t at)
{
	struct job *job = &replay->jobs.at[replay->running.at[at]];
	uint64_t mask = takt_queue_find(replay->queue, job->id)->row.gpu_mask;

	takt_vec_remove(&replay->running, at);
	emit(replay, job, TAKT_ENGINE_ENDED);
	for (uint32_t gpu = 0; gpu < GPUS_MOST; gpu++)
		if (mask >> gpu & 1)
			must(takt_queue_gpu_clean(replay->queue, gpu, NULL) == 0, "unclean");
	settle(replay);
}

static size_t first_end(const struct replay *replay)
{
	size_t best = replay->running.len;

	for (size_t i = 0; i < replay->running.len; i++)
		if (best == replay->running.len ||
		    replay->jobs.at[replay->running.at[i]].end_ns <
			    replay->jobs.at[replay->running.at[best]].end_ns)
			best = i;
	return best;
}

static void replay_all(struct replay *replay)
{
	uint64_t look_ns = UINT64_MAX;
	uint32_t next = 0;

	while (next < replay->jobs.len || replay->running.len > 0) {
		size_t ends = first_end(replay);
		uint64_t submit_ns = next < replay->jobs.len
					     ? replay->jobs.at[next].submit_s * TAKT_NS_PER_S
					     : UINT64_MAX;
		uint64_t end_ns = ends < replay->running.len
					  ? replay->jobs.at[replay->running.at[ends]].end_ns
					  : UINT64_MAX;
		uint64_t wake_ns =
			replay->next_ns && replay->waiting.len ? replay->next_ns : UINT64_MAX;
		uint64_t at_ns = submit_ns < end_ns ? submit_ns : end_ns;

		wake_ns = wake_ns < look_ns ? wake_ns : look_ns;
		if (wake_ns < at_ns) {
			replay->now_ns = wake_ns > replay->now_ns ? wake_ns : replay->now_ns + 1;
			settle(replay);
		} else {
			replay->now_ns = at_ns > replay->now_ns ? at_ns : replay->now_ns;
			if (end_ns <= submit_ns)
				end(replay, ends);
			else
				submit(replay, next++);
		}
		look(replay);
		look_ns =
			replay->waiting.len ? replay->now_ns + LOOK_S * TAKT_NS_PER_S : UINT64_MAX;
	}
}

static void read_jobs(struct replay *replay)
{
	struct job job = {.words = TAKT_VEC_INIT(MAX_WORDS)};

	while (scanf("%" SCNu64 ",%" SCNu64 ",%" SCNu32 ",%" SCNu32 "\n", &job.submit_s, &job.run_s,
		     &job.gpus, &job.owner) == 4)
		must(takt_vec_push(&replay->jobs, job) == 0, "too many jobs");
}

static void open_queue(struct replay *replay, const char *folder, uint32_t gpus,
		       enum takt_backfill backfill)
{
	static int32_t pair_score[GPUS_MOST * GPUS_MOST];
	char path[128];
	struct takt_store_config store = {.path = path, .unsafe_no_sync = true};
	struct takt_queue_config config = {
		.engine = &replay->engine,
		.pair_score = pair_score,
		.gpu_count = gpus,
		.hooks = &hooks,
		.hooks_ctx = replay,
		.epoch = {wall_ahead_ns},
		.settings = {.backfill = backfill},
		.signal_id_base = 1ull << 63,
	};
	struct takt_err err;

	snprintf(path, sizeof(path), "%s/takt.db", folder);
	must(takt_store_open(&store, &replay->store, &err) == 0, err.msg);
	config.store = replay->store;
	must(takt_queue_new(&config, &replay->queue, &err) == 0, err.msg);
	must(takt_queue_load(replay->queue, NULL, NULL, &err) == 0, err.msg);
}

int main(int argc, char **argv)
{
	struct replay replay = {
		.engine = {.ops = &ops},
		.jobs = TAKT_VEC_INIT(MAX_JOBS),
		.waiting = TAKT_VEC_INIT(MAX_JOBS),
		.starting = TAKT_VEC_INIT(MAX_JOBS),
		.running = TAKT_VEC_INIT(MAX_JOBS),
		.now_ns = TAKT_NS_PER_S,
	};
	char folder[] = "/tmp/takt-replay-XXXXXX", remove[64];
	int backfill = 0;

	must(argc == 3, "usage: start_replay GPUS BACKFILL < JOBS.csv");
	while (takt_backfill_names[backfill] && strcmp(takt_backfill_names[backfill], argv[2]) != 0)
		backfill++;
	must(takt_backfill_names[backfill], "no such backfill");
	must(mkdtemp(folder) != NULL, "no folder");
	read_jobs(&replay);
	open_queue(&replay, folder, (uint32_t)atoi(argv[1]), (enum takt_backfill)backfill);
	replay_all(&replay);
	takt_queue_free(replay.queue);
	takt_store_close(replay.store);
	snprintf(remove, sizeof(remove), "rm -rf '%s'", folder);
	must(system(remove) == 0, "the folder could not be removed");
	takt_vec_fini(&replay.jobs);
	takt_vec_fini(&replay.waiting);
	takt_vec_fini(&replay.starting);
	takt_vec_fini(&replay.running);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "store_ledger.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store_fixture.h"

enum {
	MAX_SPEC = 6000, /* more than one page of the database */
	WAIT_MS = 20000,
	MAPPED = 8192, /* changes, at most */
};

void ledger_init(struct ledger *ledger, struct fake_sys *world)
{
	*ledger = (struct ledger){.world = world};
}

void ledger_fini(struct ledger *ledger)
{
	free(ledger->changes);
}

struct ledger *ledger_map(const char *path)
{
	const size_t size = sizeof(struct ledger) + MAPPED * sizeof(struct ledger_change);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct ledger *ledger = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		ledger = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ledger == MAP_FAILED)
		abort();
	close(fd);
	ledger->changes = (struct ledger_change *)(ledger + 1);
	ledger->cap = MAPPED;
	return ledger;
}

static bool violated(struct ledger *ledger, const char *what, uint64_t job, uint64_t n)
{
	if (!ledger->why[0])
		snprintf(ledger->why, sizeof(ledger->why), "%s (job %llu, change %llu of %zu)",
			 what, (unsigned long long)job, (unsigned long long)n, ledger->len);
	return false;
}

struct takt_job ledger_job(uint64_t id, uint32_t n)
{
	static _Thread_local char spec[MAX_SPEC + 64], message[64];
	size_t len = id * 2654435761u % MAX_SPEC;
	struct takt_job job = store_job(id);
	int at = snprintf(spec, sizeof(spec), "{\"id\":%llu,\"pad\":\"", (unsigned long long)id);

	memset(spec + at, 'a' + (int)(id % 26), len);
	snprintf(spec + (size_t)at + len, 3, "\"}");
	snprintf(message, sizeof(message), "change %u of job %llu", n, (unsigned long long)id);
	job.spec_json = spec;
	job.message = message;
	job.attempt = n;
	job.state = (enum takt_job_state)(n % TAKT_JOB_STATE_COUNT);
	job.gpu_mask = n * 0x9e3779b97f4a7c15;
	job.ended.ns = takt_job_state_ended(job.state) ? (int64_t)n * 1000 : 0;
	job.report.has = n % 64;
	job.report.wall_ns = job.report.has & TAKT_REPORT_WALL ? n : 0;
	job.report.energy_mj = job.report.has & TAKT_REPORT_ENERGY ? n + 1ull : 0;
	job.report.mean_sm_mhz = job.report.has & TAKT_REPORT_MEAN_SM ? n + 2 : 0;
	job.report.throttled_ns = job.report.has & TAKT_REPORT_THROTTLED ? n + 3ull : 0;
	job.report.peak_memory_bytes = job.report.has & TAKT_REPORT_PEAK_MEMORY ? n + 4ull : 0;
	job.report.mean_util_permille = job.report.has & TAKT_REPORT_UTIL ? n + 5 : 0;
	job.report.idle_ns = job.report.has & TAKT_REPORT_UTIL ? n + 6ull : 0;
	return job;
}

static struct ledger_change *add(struct ledger *ledger)
{
	if (ledger->len == MAPPED)
		abort(); /* a mapped one cannot grow, the others need not */
	if (ledger->len == ledger->cap) {
		ledger->cap = ledger->cap ? ledger->cap * 2 : 64;
		ledger->changes =
			realloc(ledger->changes, ledger->cap * sizeof(ledger->changes[0]));
		if (!ledger->changes)
			abort();
	}
	ledger->changes[ledger->len] = (struct ledger_change){.outcome = LEDGER_OPEN};
	return &ledger->changes[ledger->len++];
}

/* The ledger knows the change before it is posted: the process may be killed any moment. */
static bool post(struct ledger *ledger, struct takt_store *store, uint64_t id)
{
	bool insert = id > ledger->jobs;
	struct ledger_change *change = add(ledger);
	struct takt_job job = ledger_job(id, (uint32_t)ledger->len);
	int64_t ticket;

	change->job = id;
	change->insert = insert;
	ledger->jobs += insert;
	ticket = insert ? takt_store_insert(store, &job, 0, NULL)
			: takt_store_update(store, &job, 0, NULL);
	if (ticket < 0) {
		ledger->len--;
		ledger->jobs -= insert;
		return false;
	}
	change->ticket = ticket;
	return true;
}

bool ledger_insert(struct ledger *ledger, struct takt_store *store)
{
	return post(ledger, store, ledger->jobs + 1);
}

bool ledger_post(struct ledger *ledger, struct takt_store *store, struct takt_rng *rng)
{
	if (takt_rng_below(rng, 8) == 0)
		(void)takt_store_decision(store, ledger->len, "{\"gpus\":8}", "[]", NULL);
	if (ledger->jobs == 0 || takt_rng_below(rng, 5) < 2)
		return ledger_insert(ledger, store);
	return post(ledger, store, takt_rng_range(rng, 1, ledger->jobs));
}

static void note(struct ledger *ledger, const struct takt_store_completion *done)
{
	bool off = ledger->world && fake_sys_is_off(ledger->world);
	size_t i = ledger->len;

	while (i > 0 && ledger->changes[i - 1].ticket != done->ticket)
		i--;
	if (i == 0 || ledger->changes[i - 1].outcome != LEDGER_OPEN) {
		violated(ledger, "a ticket was reported twice or never posted", 0,
			 (uint64_t)done->ticket);
		return;
	}
	ledger->nr_durable += done->rc == 0;
	ledger->nr_failed += done->rc < 0;
	if (done->rc == 0)
		ledger->changes[i - 1].outcome = LEDGER_DURABLE;
	else
		ledger->changes[i - 1].outcome = off ? LEDGER_EITHER : LEDGER_FAILED;
	if (done->rc < 0 && !done->message[0])
		violated(ledger, "a failure without a message", 0, i);
}

static bool all_reported(const struct ledger *ledger)
{
	return ledger->len == 0 || ledger->changes[ledger->len - 1].outcome != LEDGER_OPEN;
}

void ledger_take(struct ledger *ledger, struct takt_store *store, bool wait)
{
	struct pollfd fd = {.fd = takt_store_fd(store), .events = POLLIN};
	struct takt_store_completion done[16];
	size_t n;

	do {
		if (wait && !all_reported(ledger) && poll(&fd, 1, WAIT_MS) != 1) {
			violated(ledger, "a ticket was not reported", 0, ledger->len);
			return;
		}
		n = takt_store_completions(store, done, TAKT_ARRAY_LEN(done));
		for (size_t i = 0; i < n; i++)
			note(ledger, &done[i]);
	} while (n == TAKT_ARRAY_LEN(done) || (wait && !all_reported(ledger)));
}

struct check {
	struct ledger *ledger;
	uint32_t *row; /* row[id]: number of the change that wrote job id, 0 = no row */
	uint32_t last; /* K */
};

static int see_row(void *ctx, const struct takt_job *job)
{
	struct check *check = ctx;
	struct ledger *ledger = check->ledger;
	uint32_t n = job->attempt;
	struct takt_job want;

	if (job->id == 0 || job->id > ledger->jobs || n == 0 || n > ledger->len ||
	    ledger->changes[n - 1].job != job->id) {
		violated(ledger, "a row that nobody wrote", job->id, n);
		return 0;
	}
	want = ledger_job(job->id, n);
	if (strcmp(store_job_text(job), store_job_text(&want)) != 0 ||
	    strcmp(job->spec_json, want.spec_json) != 0)
		violated(ledger, "a row that is not what its change wrote", job->id, n);
	if (ledger->changes[n - 1].outcome == LEDGER_FAILED)
		violated(ledger, "a failed change is in effect", job->id, n);
	check->row[job->id] = n;
	if (n > check->last)
		check->last = n;
	return 0;
}

/* Whether it should have arrived with the later one that did. */
static bool is_missing(const struct check *check, const struct ledger_change *change, uint32_t n)
{
	bool refused = !change->insert && check->row[change->job] == 0;

	return change->outcome == LEDGER_OPEN && n <= check->last && !refused;
}

/* Changes after K and those that did not arrive are no longer expected of anyone. */
static void judge(struct check *check)
{
	struct ledger *ledger = check->ledger;

	for (uint32_t n = 1; n <= ledger->len; n++) {
		struct ledger_change *change = &ledger->changes[n - 1];
		bool in_effect = change->job && check->row[change->job] >= n;

		if (change->outcome == LEDGER_DURABLE && !in_effect)
			violated(ledger, "a durable change is gone", change->job, n);
		else if (change->job && !in_effect && is_missing(check, change, n))
			violated(ledger, "a later change arrived without this one", change->job, n);
		if (change->outcome == LEDGER_OPEN || change->outcome == LEDGER_EITHER) {
			change->outcome = in_effect ? LEDGER_DURABLE : LEDGER_FAILED;
			if (!in_effect)
				change->job = 0;
		}
	}
}

int ledger_check(struct ledger *ledger, struct takt_store *store, struct takt_err *err)
{
	struct check check = {.ledger = ledger};
	int rc;

	check.row = calloc(ledger->jobs + 1, sizeof(check.row[0]));
	if (!check.row)
		abort();
	rc = takt_store_each_live(store, see_row, &check, err);
	if (rc == 0)
		rc = takt_store_each_history(store, UINT32_MAX, 0, see_row, &check, err);
	if (rc == 0)
		judge(&check);
	free(check.row);
	return rc < 0 ? rc : ledger->why[0] == '\0';
}

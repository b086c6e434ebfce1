/* SPDX-License-Identifier: Apache-2.0 */
/* How jobs went, see the header. */
#include "daemon/job_course.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/json.h"
#include "daemon/daemon.h"
#include "daemon/govern.h"
#include "telemetry/nccl_read.h"

enum {
	MAX_COURSES = 65536,
	MAX_SAID = TAKT_COURSE_VIEW_MAX_SAID,
	MAX_DECISIONS = TAKT_COURSE_VIEW_MAX_DECISIONS,
	FIRST_ROOM = 16, /* a power of two below both */
};

/* Sums over the epochs of a decision in which each was seen. */
struct decision {
	uint64_t at_ns, until_ns, epochs;
	struct takt_governor_cap cap;
	enum takt_governor_reason reason;
	uint64_t sm_ns, power_ns, work_ns;
	double sm_mhz_ns, power_mw_ns, work;
};

struct course {
	uint32_t attempt;
	bool over;
	uint64_t apart_ns; /* between two things said that are kept, at least */
	size_t said_count, said_room, decision_count, decision_room;
	struct takt_progress_file *said; /* owned, oldest first, as the next */
	struct decision *decisions;
	char governor[32];
	enum takt_governor_signal signal;
};

struct takt_job_course {
	struct takt_map jobs; /* job id -> struct course, owned; in the order in which they began */
	size_t over;
};

int takt_job_course_new(struct takt_job_course **ret)
{
	struct takt_job_course *courses = takt_zalloc(sizeof(*courses));

	if (!courses)
		return -ENOMEM;
	courses->jobs = TAKT_MAP_U64(MAX_COURSES);
	*ret = courses;
	return 0;
}

static void empty(struct course *course)
{
	takt_free(course->said);
	takt_free(course->decisions);
	*course = (struct course){.attempt = 0};
}

static void drop(struct takt_job_course *courses, struct takt_map_entry *entry)
{
	struct course *course = entry->value.ptr;

	courses->over -= course->over;
	empty(course);
	takt_free(course);
	takt_map_u64_remove(&courses->jobs, entry->key);
}

void takt_job_course_free(struct takt_job_course *courses)
{
	if (!courses)
		return;
	TAKT_MAP_EACH(entry, &courses->jobs)
	drop(courses, entry);
	takt_map_fini(&courses->jobs);
	takt_free(courses);
}

/* Of this attempt; NULL: no memory. */
static struct course *course_of(struct takt_job_course *courses, uint64_t job_id, uint32_t attempt)
{
	struct course *course = takt_map_u64_ptr(&courses->jobs, job_id);

	if (!course) {
		course = takt_zalloc(sizeof(*course));
		if (!course)
			return NULL;
		if (takt_map_u64_put_ptr(&courses->jobs, job_id, course) < 0) {
			takt_free(course);
			return NULL;
		}
	}
	if (course->attempt != attempt) {
		courses->over -= course->over;
		empty(course);
		course->attempt = attempt;
	}
	return course;
}

/* Room for one more of `size` bytes; false: no memory. */
static bool grow(void **list, size_t size, size_t count, size_t *room)
{
	size_t wanted = *room ? 2 * *room : FIRST_ROOM;
	void *more;

	if (count < *room)
		return true;
	more = takt_realloc(*list, wanted * size);
	if (!more)
		return false;
	*list = more;
	*room = wanted;
	return true;
}

/* Every other one goes, the newest not; from now on they are kept so far apart. */
static void thin(struct course *course)
{
	struct takt_progress_file *said = course->said;
	size_t kept = 0;

	for (size_t i = 0; i < course->said_count; i += 2)
		said[kept++] = said[i];
	said[kept++] = said[course->said_count - 1];
	course->said_count = kept;
	course->apart_ns = (said[kept - 1].at_ns - said[0].at_ns) / (MAX_SAID / 2);
}

/* The newest is always there, and takes the place of one that was told just before it. */
static bool is_close(const struct course *course, uint64_t at_ns)
{
	size_t n = course->said_count;

	return n > 1 && at_ns - course->said[n - 2].at_ns < course->apart_ns;
}

void takt_job_course_said(struct takt_job_course *courses, uint64_t job_id, uint32_t attempt,
			  const struct takt_progress_file *said)
{
	struct course *course = course_of(courses, job_id, attempt);

	if (!course ||
	    (course->said_count && said->at_ns <= course->said[course->said_count - 1].at_ns))
		return;
	if (is_close(course, said->at_ns)) {
		course->said[course->said_count - 1] = *said;
		return;
	}
	if (course->said_count == MAX_SAID)
		thin(course);
	if (grow((void **)&course->said, sizeof(*course->said), course->said_count,
		 &course->said_room))
		course->said[course->said_count++] = *said;
}

void takt_job_course_governed(struct takt_job_course *courses, uint64_t job_id, uint32_t attempt,
			      const char *governor)
{
	struct course *course = course_of(courses, job_id, attempt);

	if (!course)
		return;
	course->decision_count = 0;
	course->signal = TAKT_SIGNAL_NONE;
	takt_strcpy(course->governor, sizeof(course->governor), governor);
}

static void add_epoch(struct course *course, struct decision *decision,
		      const struct takt_governor_observation *seen)
{
	uint64_t ns = seen->epoch_ns;

	decision->until_ns = seen->now_ns;
	if (ns == 0)
		return;
	decision->epochs++;
	if (seen->has & TAKT_OBSERVED_SM_CLOCK) {
		decision->sm_ns += ns;
		decision->sm_mhz_ns += (double)seen->sm_mhz * (double)ns;
	}
	if (seen->has & TAKT_OBSERVED_POWER) {
		decision->power_ns += ns;
		decision->power_mw_ns += (double)seen->power_mw * (double)ns;
	}
	if (seen->has & TAKT_OBSERVED_WORK) {
		decision->work_ns += ns;
		decision->work += seen->work;
		course->signal = seen->signal;
	}
}

static bool same(const struct decision *decision, const struct takt_governor_wish *wish)
{
	const struct takt_governor_cap *a = &decision->cap, *b = &wish->cap;

	return decision->reason == wish->reason && a->sets == b->sets && a->min_mhz == b->min_mhz &&
	       a->max_mhz == b->max_mhz && a->power_mw == b->power_mw;
}

void takt_job_course_step(struct takt_job_course *courses, uint64_t job_id, uint32_t attempt,
			  const struct takt_governor_observation *seen,
			  const struct takt_governor_wish *wish)
{
	struct course *course = course_of(courses, job_id, attempt);
	size_t n = course ? course->decision_count : 0;

	if (n > 0)
		add_epoch(course, &course->decisions[n - 1], seen);
	if (!course || (n > 0 && same(&course->decisions[n - 1], wish)))
		return;
	if (n == MAX_DECISIONS)
		memmove(course->decisions, course->decisions + 1,
			--course->decision_count * sizeof(*course->decisions));
	if (grow((void **)&course->decisions, sizeof(*course->decisions), course->decision_count,
		 &course->decision_room))
		course->decisions[course->decision_count++] =
			(struct decision){.at_ns = seen->now_ns,
					  .until_ns = seen->now_ns,
					  .cap = wish->cap,
					  .reason = wish->reason};
}

void takt_job_course_over(struct takt_job_course *courses, uint64_t job_id)
{
	struct course *course = takt_map_u64_ptr(&courses->jobs, job_id);

	if (!course || course->over)
		return;
	course->over = true;
	courses->over++;
	TAKT_MAP_EACH(entry, &courses->jobs)
	if (courses->over > TAKT_COURSE_ENDED && ((struct course *)entry->value.ptr)->over)
		drop(courses, entry);
}

static int64_t wall_ms(uint64_t at_ns, struct takt_mono now, struct takt_wall wall)
{
	return (wall.ns - (int64_t)(now.ns - at_ns)) / (int64_t)TAKT_NS_PER_MS;
}

/* What a job says of itself may be any number; what JSON holds is shown. */
static uint64_t shown(uint64_t value)
{
	return value < TAKT_JSON_MAX_INT ? value : TAKT_JSON_MAX_INT;
}

static void fill_said(const struct takt_progress_file *said, struct takt_course_said_view *ret)
{
	_Static_assert((int)TAKT_PV_STEPS == (int)TAKT_PROGRESS_STEPS &&
			       (int)TAKT_PV_LATENCY == (int)TAKT_PROGRESS_LATENCY,
		       "the same bits");
	ret->has = said->has & (TAKT_PROGRESS_STEPS | TAKT_PROGRESS_TOKENS | TAKT_PROGRESS_QUERIES |
				TAKT_PROGRESS_LATENCY);
	ret->steps = shown(said->steps);
	ret->tokens = shown(said->tokens);
	ret->queries = shown(said->queries);
	ret->latency_us = shown(said->latency_us);
}

static uint64_t rounded(double value)
{
	return value < (double)TAKT_JSON_MAX_INT ? (uint64_t)(value + 0.5) : TAKT_JSON_MAX_INT;
}

static void fill_decision(const struct decision *decision, bool all,
			  struct takt_course_decision_view *ret)
{
	bool clocks = decision->cap.sets & TAKT_ACTUATE_CLOCKS;

	takt_strcpy(ret->reason, sizeof(ret->reason), takt_governor_reason_name(decision->reason));
	takt_strcpy(ret->text, sizeof(ret->text), takt_governor_reason_text(decision->reason));
	ret->min_mhz = clocks ? decision->cap.min_mhz : 0;
	ret->max_mhz = clocks ? decision->cap.max_mhz : 0;
	ret->power_limit_mw = decision->cap.sets & TAKT_ACTUATE_POWER ? decision->cap.power_mw : 0;
	ret->epochs = decision->epochs;
	if (decision->sm_ns) {
		ret->has |= TAKT_COURSE_SM;
		ret->sm_mhz = (uint32_t)rounded(decision->sm_mhz_ns / (double)decision->sm_ns);
	}
	if (decision->power_ns) {
		ret->has |= TAKT_COURSE_POWER;
		ret->power_mw =
			(uint32_t)rounded(decision->power_mw_ns / (double)decision->power_ns);
	}
	if (all && decision->work_ns) {
		ret->has |= TAKT_COURSE_WORK;
		ret->work_milli_s = rounded(decision->work * 1000 /
					    ((double)decision->work_ns / TAKT_NS_PER_S));
	}
}

void takt_job_course_fill(const struct takt_job_course *courses, uint64_t job_id, bool all,
			  struct takt_mono now, struct takt_wall wall, struct takt_course_view *ret)
{
	const struct course *course = takt_map_u64_ptr(&courses->jobs, job_id);

	if (!course)
		return;
	ret->attempt = course->attempt;
	takt_strcpy(ret->governor, sizeof(ret->governor), course->governor);
	if (all)
		takt_strcpy(ret->signal, sizeof(ret->signal),
			    takt_govern_signal_name(course->signal));
	for (size_t i = 0; all && i < course->said_count; i++) {
		struct takt_course_said_view *said = &ret->said[ret->said_count++];

		said->at_ms = wall_ms(course->said[i].at_ns, now, wall);
		fill_said(&course->said[i], said);
	}
	for (size_t i = 0; i < course->decision_count; i++) {
		struct takt_course_decision_view *decision = &ret->decisions[ret->decision_count++];

		decision->at_ms = wall_ms(course->decisions[i].at_ns, now, wall);
		decision->until_ms = wall_ms(course->decisions[i].until_ns, now, wall);
		fill_decision(&course->decisions[i], all, decision);
	}
}

static void fill_nccl_row(const struct takt_nccl_row *row, struct takt_course_nccl_view *ret)
{
	ret->ranks = row->ranks;
	ret->nodes = row->nodes;
	takt_strcpy(ret->operation, sizeof(ret->operation), row->operation);
	takt_strcpy(ret->comm, sizeof(ret->comm), row->comm);
	ret->bus_bytes_s = rounded(row->bus_bytes_s);
	ret->operation_us = rounded(row->seconds * 1e6);
}

/* What was written too long ago says nothing of now. */
static void fill_nccl(struct takt_daemon *daemon, const struct takt_job_view *job, uint32_t gpu,
		      struct takt_course_view *ret)
{
	const struct takt_nccl *nccl = takt_telemetry_nccl(daemon->telemetry, gpu);
	uint64_t age_ns;

	if (!nccl || nccl->count == 0 || nccl->job_id != job->id)
		return;
	age_ns = takt_mono_elapsed_ns(takt_mono_now(daemon->sys), nccl->at);
	if (age_ns > TAKT_NCCL_STALE_S * TAKT_NS_PER_S)
		return;
	for (uint32_t i = 0; i < nccl->count && ret->nccl_count < TAKT_COURSE_VIEW_MAX_NCCL; i++) {
		struct takt_course_nccl_view *row = &ret->nccl[ret->nccl_count++];

		fill_nccl_row(&nccl->row[i], row);
		row->gpu = gpu;
		row->age_ms = age_ns / TAKT_NS_PER_MS;
	}
}

int takt_api_course(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		    struct takt_course_view *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_zalloc(sizeof(*job));
	struct takt_daemon *daemon = ctx;
	int rc = job ? takt_api_job(ctx, peer, job_id, job, err)
		     : takt_err_set(err, -ENOMEM, "the answer");

	if (rc < 0)
		return rc;
	ret->id = job_id;
	ret->simulated = job->simulated;
	takt_job_course_fill(daemon->courses, job_id, job->mine, takt_mono_now(daemon->sys),
			     takt_wall_now(daemon->sys), ret);
	for (uint32_t i = 0; job->mine && i < job->gpu_list_count; i++)
		fill_nccl(daemon, job, job->gpu_list[i], ret);
	ret->has_nccl = ret->nccl_count > 0;
	return 0;
}

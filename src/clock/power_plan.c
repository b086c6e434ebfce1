/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a machine's power for jobs whose curves are half known, see the header. */
#include "clock/power_plan.h"

#include <errno.h>

#include "base/compiler.h"
#include "base/mem.h"

enum {
	WATT = 1000,
	PRIOR = 8, /* steps of the curve of which nothing is known */
};

/* What a setting needs, in whole watts. */
static uint32_t with_margin(uint32_t mw)
{
	uint64_t more = (uint64_t)mw * (1000 + TAKT_POWER_MARGIN_PERMILLE) / 1000 + WATT - 1;

	return (uint32_t)(more / WATT * WATT);
}

static size_t nothing_known(const struct takt_power_job *job, struct takt_power_point *ret)
{
	double least = (double)job->least_mw / job->most_mw;
	size_t n = 0;

	for (uint32_t k = 0; k <= PRIOR; k++) {
		double missing = 1 - (double)k / PRIOR;
		uint32_t mw = job->least_mw + (job->most_mw - job->least_mw) / PRIOR * k;

		if (n == 0 || mw > ret[n - 1].mw)
			ret[n++] = (struct takt_power_point){
				k == PRIOR ? job->most_mw : mw,
				least + (1 - least) * (1 - missing * missing)};
	}
	return n;
}

/* Performance a milliwatt over all that was measured; from nothing to the only point else. */
static double rise(const struct takt_power_point *points, size_t count)
{
	const struct takt_power_point *last = &points[count - 1];
	double slope;

	if (count == 1)
		return last->performance / last->mw;
	slope = (last->performance - points[0].performance) / ((double)last->mw - points[0].mw);
	return slope > 0 ? slope : 0;
}

/* No board draws more than it can; of two settings that need the same the later one is better. */
static size_t add(const struct takt_power_job *job, struct takt_power_point *ret, size_t n,
		  uint32_t mw, double performance)
{
	mw = mw < job->most_mw ? mw : job->most_mw;
	if (n && mw <= ret[n - 1].mw)
		n--;
	ret[n] = (struct takt_power_point){mw, performance};
	return n + 1;
}

/* Whether its curve begins with what nobody has measured. */
static bool has_guess(const struct takt_power_job *job)
{
	return job->count && with_margin(job->measured[0].mw) > job->least_mw;
}

size_t takt_power_outlook(const struct takt_power_job *job,
			  struct takt_power_point ret[TAKT_POWER_OUTLOOK_MAX])
{
	const struct takt_power_point *first = &job->measured[0], *last;
	size_t n = 0;

	if (job->count == 0)
		return nothing_known(job, ret);
	last = &job->measured[job->count - 1];
	if (has_guess(job))
		n = add(job, ret, n, job->least_mw, first->performance);
	for (size_t k = 0; k < job->count; k++)
		n = add(job, ret, n, with_margin(job->measured[k].mw),
			job->measured[k].performance);
	if (!job->complete && ret[n - 1].mw < job->most_mw)
		n = add(job, ret, n, job->most_mw,
			last->performance + rise(job->measured, job->count) *
						    ((double)job->most_mw - last->mw));
	for (size_t k = 0; k < n; k++)
		ret[k].performance /= ret[n - 1].performance;
	return n;
}

/* The lowest setting at which it is no slower than promised. */
static uint32_t promised_mw(const struct takt_power_job *job, const struct takt_power_point *points,
			    size_t count)
{
	double needed = 1000.0 / (1000 + job->max_slowdown_permille);
	size_t k = has_guess(job) && count > 1;

	if (!job->has_promise)
		return job->least_mw;
	while (k + 1 < count && points[k].performance < needed)
		k++;
	if (points[k].mw < job->least_mw)
		return job->least_mw;
	return points[k].mw < job->most_mw ? points[k].mw : job->most_mw;
}

struct work {
	struct takt_power_bidder *bidders;
	struct takt_power_point *points; /* TAKT_POWER_OUTLOOK_MAX of each, of all its boards */
	uint32_t *floor_mw;		 /* of one board, for its promise */
	uint32_t *mw;			 /* shared out, of all its boards */
};

static void free_work(struct work *work)
{
	takt_free(work->bidders);
	takt_free(work->points);
	takt_free(work->floor_mw);
	takt_free(work->mw);
}

static int new_work(size_t count, struct work *ret)
{
	*ret = (struct work){
		.bidders = takt_calloc(count, sizeof(*ret->bidders)),
		.points = takt_calloc(count * TAKT_POWER_OUTLOOK_MAX, sizeof(*ret->points)),
		.floor_mw = takt_calloc(count, sizeof(*ret->floor_mw)),
		.mw = takt_calloc(count, sizeof(*ret->mw)),
	};
	if (ret->bidders && ret->points && ret->floor_mw && ret->mw)
		return 0;
	free_work(ret);
	return -ENOMEM;
}

static void make_bidder(const struct takt_power_job *job, size_t i, struct work *work)
{
	struct takt_power_point *points = work->points + i * TAKT_POWER_OUTLOOK_MAX;
	size_t count = takt_power_outlook(job, points);

	work->floor_mw[i] = promised_mw(job, points, count);
	for (size_t k = 0; k < count; k++)
		points[k].mw *= job->boards;
	work->bidders[i] = (struct takt_power_bidder){
		.max_mw = job->most_mw * job->boards,
		.weight = job->boards,
		.points = points,
		.count = count,
	};
}

/* -TAKT_E_IMPOSSIBLE: there is not enough for everybody's least. */
static int share(uint64_t budget_mw, const struct takt_power_job *jobs, size_t count, bool promises,
		 struct work *work, struct takt_err *err)
{
	for (size_t i = 0; i < count; i++)
		work->bidders[i].min_mw =
			jobs[i].boards * (promises ? work->floor_mw[i] : jobs[i].least_mw);
	return takt_power_share_out(budget_mw, work->bidders, count, work->mw, err);
}

/* What nobody gains by, the same for each board that may draw more. */
static void spread(uint64_t left_mw, struct takt_power_job *jobs, size_t count)
{
	uint64_t boards = 0, each;

	for (size_t i = 0; i < count; i++)
		boards += jobs[i].share_mw < jobs[i].most_mw ? jobs[i].boards : 0;
	each = boards ? left_mw / boards / WATT * WATT : 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t more = jobs[i].share_mw + each;

		if (jobs[i].share_mw < jobs[i].most_mw)
			jobs[i].share_mw =
				more < jobs[i].most_mw ? (uint32_t)more : jobs[i].most_mw;
	}
}

static void take(uint64_t budget_mw, struct takt_power_job *jobs, size_t count,
		 const struct work *work)
{
	uint64_t given_mw = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t mw = work->mw[i] / jobs[i].boards / WATT * WATT;

		jobs[i].share_mw = mw > jobs[i].least_mw ? mw : jobs[i].least_mw;
		given_mw += (uint64_t)jobs[i].share_mw * jobs[i].boards;
	}
	if (given_mw < budget_mw)
		spread(budget_mw - given_mw, jobs, count);
	for (size_t i = 0; i < count; i++)
		jobs[i].breaks_promise =
			jobs[i].has_promise && jobs[i].share_mw + WATT <= work->floor_mw[i];
}

int takt_power_plan(uint64_t budget_mw, struct takt_power_job *jobs, size_t count, bool *ret_short,
		    struct takt_err *err)
{
	struct work work;
	int rc;

	*ret_short = false;
	if (count == 0)
		return 0;
	if (new_work(count, &work) < 0)
		return takt_err_set(err, -ENOMEM, "no memory to share out power");
	for (size_t i = 0; i < count; i++)
		make_bidder(&jobs[i], i, &work);
	rc = share(budget_mw, jobs, count, true, &work, err);
	if (rc == -TAKT_E_IMPOSSIBLE)
		rc = share(budget_mw, jobs, count, false, &work, err);
	if (rc == -TAKT_E_IMPOSSIBLE) {
		for (size_t i = 0; i < count; i++)
			work.mw[i] = jobs[i].least_mw * jobs[i].boards;
		*ret_short = true;
		rc = 0;
	}
	if (rc == 0)
		take(budget_mw, jobs, count, &work);
	free_work(&work);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Water-filling over concave curves, see the header. */
#include "clock/power_share.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"

/* Corners of a bidder's curve, from its least on, slopes falling. */
struct curve {
	struct takt_power_point *corner;
	size_t count, next; /* next: the corner that it climbs to */
};

static int check(const struct takt_power_bidder *bidders, size_t count, uint64_t budget_mw,
		 struct takt_err *err)
{
	uint64_t least_mw = 0;

	for (size_t i = 0; i < count; i++) {
		const struct takt_power_bidder *bidder = &bidders[i];

		if (bidder->min_mw > bidder->max_mw || !(bidder->weight > 0))
			return takt_err_set(err, -EINVAL,
					    "bidder %zu: %u to %u mW with a weight of %g", i,
					    bidder->min_mw, bidder->max_mw, bidder->weight);
		for (size_t k = 1; k < bidder->count; k++)
			if (bidder->points[k].mw <= bidder->points[k - 1].mw)
				return takt_err_set(err, -EINVAL,
						    "bidder %zu: its points do not ascend at %u mW",
						    i, bidder->points[k].mw);
		least_mw += bidder->min_mw;
	}
	if (least_mw > budget_mw)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "the boards need %llu mW at least, the budget is %llu mW",
				    (unsigned long long)least_mw, (unsigned long long)budget_mw);
	return 0;
}

static double slope(const struct takt_power_point *from, const struct takt_power_point *to)
{
	return (to->performance - from->performance) / ((double)to->mw - from->mw);
}

/* Adds a corner on the right and drops those that are now below the line around them. */
static void add_corner(struct curve *curve, struct takt_power_point point)
{
	while (curve->count >= 2 &&
	       slope(&curve->corner[curve->count - 2], &curve->corner[curve->count - 1]) <=
		       slope(&curve->corner[curve->count - 1], &point))
		curve->count--;
	curve->corner[curve->count++] = point;
}

/* Performance at `mw`: on the straight line between points, level beyond them. */
static double performance_at(const struct takt_power_bidder *bidder, uint32_t mw)
{
	const struct takt_power_point *points = bidder->points;
	size_t k = 0;

	while (k < bidder->count && points[k].mw < mw)
		k++;
	if (k == bidder->count)
		return points[k - 1].performance;
	if (k == 0 || points[k].mw == mw)
		return points[k].performance;
	return points[k - 1].performance +
	       slope(&points[k - 1], &points[k]) * ((double)mw - points[k - 1].mw);
}

/* The lowest curve with falling slopes that is nowhere below the points, within [min, max]. */
static void make_curve(const struct takt_power_bidder *bidder, struct curve *curve)
{
	if (bidder->min_mw == bidder->max_mw)
		return;
	if (bidder->count == 0) {
		add_corner(curve, (struct takt_power_point){bidder->min_mw, 0});
		add_corner(curve, (struct takt_power_point){bidder->max_mw, 1});
		return;
	}
	add_corner(curve, (struct takt_power_point){bidder->min_mw,
						    performance_at(bidder, bidder->min_mw)});
	for (size_t k = 0; k < bidder->count; k++)
		if (bidder->points[k].mw > bidder->min_mw && bidder->points[k].mw < bidder->max_mw)
			add_corner(curve, bidder->points[k]);
	add_corner(curve, (struct takt_power_point){bidder->max_mw,
						    performance_at(bidder, bidder->max_mw)});
}

static double next_gain(const struct takt_power_bidder *bidder, const struct curve *curve)
{
	if (curve->next >= curve->count)
		return 0;
	return bidder->weight * slope(&curve->corner[curve->next - 1], &curve->corner[curve->next]);
}

static void fill(uint64_t left_mw, const struct takt_power_bidder *bidders, struct curve *curves,
		 size_t count, uint32_t *ret_mw)
{
	while (left_mw > 0) {
		size_t best = 0;
		uint64_t want;

		for (size_t i = 1; i < count; i++)
			if (next_gain(&bidders[i], &curves[i]) >
			    next_gain(&bidders[best], &curves[best]))
				best = i;
		if (!(next_gain(&bidders[best], &curves[best]) > 0))
			return;
		want = curves[best].corner[curves[best].next++].mw - ret_mw[best];
		want = want < left_mw ? want : left_mw;
		ret_mw[best] += (uint32_t)want;
		left_mw -= want;
	}
}

int takt_power_share_out(uint64_t budget_mw, const struct takt_power_bidder *bidders, size_t count,
			 uint32_t *ret_mw, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct curve *curves = NULL;
	TAKT_CLEANUP(freep) struct takt_power_point *corners = NULL;
	size_t room = 0, used = 0;
	int rc = check(bidders, count, budget_mw, err);

	if (rc < 0 || count == 0)
		return rc;
	for (size_t i = 0; i < count; i++)
		room += bidders[i].count + 2;
	curves = takt_calloc(count, sizeof(*curves));
	corners = takt_calloc(room, sizeof(*corners));
	if (!curves || !corners)
		return takt_err_set(err, -ENOMEM, "no memory to share out power");
	for (size_t i = 0; i < count; i++) {
		curves[i] = (struct curve){.corner = corners + used, .next = 1};
		used += bidders[i].count + 2;
		make_curve(&bidders[i], &curves[i]);
		ret_mw[i] = bidders[i].min_mw;
		budget_mw -= bidders[i].min_mw;
	}
	fill(budget_mw, bidders, curves, count, ret_mw);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What governors ask of the GPUs of their jobs, and what becomes of it. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "daemon/lease_impl.h"

static bool asks_for(const struct takt_lease_keeper *leases, const struct lease *lease,
		     const struct takt_governor_cap *cap)
{
	return lease->min_mhz == cap->min_mhz && lease->max_mhz == cap->max_mhz &&
	       lease->power_limit_mw == takt_lease_power(leases, lease->gpu, cap->power_mw) &&
	       !lease->benchmark;
}

void takt_leases_govern(struct takt_lease_keeper *leases, const struct takt_queue_job *job,
			const struct takt_governor_cap *was, const struct takt_governor_cap *cap)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct lease *lease = takt_lease_find(leases, gpu, job->row.id);

		if (!(job->row.gpu_mask >> gpu & 1) ||
		    (lease && lease->wanted && !asks_for(leases, lease, was)))
			continue;
		if (cap->sets || takt_lease_is_due(job))
			takt_lease_want(leases, gpu, job->row.id,
					(struct lease){.min_mhz = cap->min_mhz,
						       .max_mhz = cap->max_mhz,
						       .power_limit_mw = takt_lease_power(
							       leases, gpu, cap->power_mw)});
		else if (lease && lease->wanted)
			takt_lease_end(leases, lease);
	}
}

/* A limit below the one that is asked for is the baseline's, a cap's or an administrator's: nobody
 * waits for that to go. */
static bool is_in_force(const struct lease *lease, const struct gpu_state *state)
{
	bool asks = lease->max_mhz || lease->power_limit_mw;

	return (state->state == TAKT_ACTUATE_LEASED ||
		(state->state == TAKT_ACTUATE_CLEAN && !asks)) &&
	       state->applied_min_mhz == lease->min_mhz &&
	       state->applied_max_mhz == lease->max_mhz &&
	       (!lease->power_limit_mw ||
		(state->applied_power_mw && state->applied_power_mw <= lease->power_limit_mw));
}

/* What became of a setting on one GPU. */
static enum takt_lease_standing standing_of(const struct takt_lease_keeper *leases,
					    const struct lease *lease,
					    const struct gpu_state *state,
					    const struct takt_governor_cap *cap)
{
	if (!lease || !lease->wanted || !asks_for(leases, lease, cap))
		return TAKT_STANDING_GONE;
	if (state->known && state->state == TAKT_ACTUATE_FOREIGN)
		return TAKT_STANDING_FOREIGN;
	if (!lease->answered || !state->known || lease->rc == -EAGAIN)
		return TAKT_STANDING_ASKED;
	if (lease->rc == -EPERM || (lease->rc == 0 && state->state == TAKT_ACTUATE_ADVISE))
		return TAKT_STANDING_ADVICE;
	if (lease->rc == -TAKT_E_BUSY)
		return TAKT_STANDING_OUTBID;
	if (lease->rc < 0)
		return TAKT_STANDING_REFUSED;
	return is_in_force(lease, state) ? TAKT_STANDING_HOLDS : TAKT_STANDING_OUTBID;
}

enum takt_lease_standing takt_leases_standing(const struct takt_lease_keeper *leases,
					      const struct takt_queue_job *job,
					      const struct takt_governor_cap *cap,
					      uint32_t *ret_gpu, char *note, size_t size)
{
	enum takt_lease_standing worst = TAKT_STANDING_HOLDS;
	bool any_holds = false;

	note[0] = '\0';
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count && cap->sets; gpu++) {
		const struct lease *lease = takt_lease_find(leases, gpu, job->row.id);
		const struct gpu_state *state = &leases->gpu[gpu];
		enum takt_lease_standing one;

		if (!(job->row.gpu_mask >> gpu & 1))
			continue;
		one = standing_of(leases, lease, state, cap);
		any_holds = any_holds || one == TAKT_STANDING_HOLDS;
		if (one <= worst)
			continue;
		worst = one;
		*ret_gpu = gpu;
		takt_strcpy(note, size,
			    lease && lease->message[0] ? lease->message : state->message);
	}
	if (worst == TAKT_STANDING_ADVICE && any_holds)
		worst = TAKT_STANDING_REFUSED; /* the GPUs of a job stand alike */
	return worst;
}

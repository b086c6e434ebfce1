/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue policy of one's own: the job with the fewest GPUs first, but whoever has waited for a day
 * before all others.
 *
 *	cc -shared -fPIC -Iinclude -o smallest_first.so examples/smallest_first.c
 *	takt simulate --cluster uniform:autox8 --load 70 \
 *	    --trace philly:data/traces/philly_jobs_2017_09_10.csv.gz --queue
 *fifo,./smallest_first.so
 */
#include <takt/policy.h>

static const uint64_t DAY_NS = UINT64_C(86400) * 1000000000;

static void key(const struct takt_policy_job *job, uint64_t now_ns, int64_t *ret_band,
		int64_t *ret_value)
{
	(void)now_ns;
	*ret_band = job->waited_ns >= DAY_NS ? 0 : 1;
	*ret_value = *ret_band ? (int64_t)job->gpu_milli : 0;
}

static uint64_t next_change_ns(const struct takt_policy_job *job, uint64_t now_ns)
{
	return job->running || job->waited_ns >= DAY_NS ? UINT64_MAX
							: now_ns + (DAY_NS - job->waited_ns);
}

const struct takt_policy_queue takt_policy_queue = {
	.abi = TAKT_POLICY_ABI,
	.name = "smallest-first",
	.summary = "fewest GPUs first, after a day whoever waited",
	.key = key,
	.next_change_ns = next_change_ns,
};

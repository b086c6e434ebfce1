/* SPDX-License-Identifier: Apache-2.0 */
/* What all queue order policies share: the table of them, the guard, the total order. */
#include "sched/order.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
	LAS_LIMIT_GPU_S = 3250,
	LAS_PROMOTE = 8,
	UNKNOWN_S = 3600,
	EVICT_RATIO_PERMILLE = 8000,
	EVICT_COST_S = 60,
	HOLD_GPU_H = 40,
	HOLD_BACKLOG_PERMILLE = 1000,
	NS_A_MS = 1000000,
	MILLI = 1000,
};
#define NS_A_S UINT64_C(1000000000)

const struct takt_order *const takt_order_all[] = {
	&takt_order_fifo, &takt_order_priority, &takt_order_round_robin,
	&takt_order_qssf, &takt_order_las,	&takt_order_fair_share,
	&takt_order_edf,  &takt_order_takt,	NULL,
};

const struct takt_order *takt_order_find(const char *name)
{
	for (size_t i = 0; takt_order_all[i]; i++)
		if (strcmp(takt_order_all[i]->name, name) == 0)
			return takt_order_all[i];
	return NULL;
}

static int check_takt(struct takt_order_config *config, struct takt_err *err)
{
	if (config->evict_ratio_permille == 0)
		config->evict_ratio_permille = EVICT_RATIO_PERMILLE;
	if (config->evict_ratio_permille < 1000)
		return takt_err_set(err, -EINVAL,
				    "evict ratio: %" PRIu32 " permille, at least 1000",
				    config->evict_ratio_permille);
	if (config->hold_permille >= 1000)
		return takt_err_set(err, -EINVAL, "hold: %" PRIu32 " permille, below 1000",
				    config->hold_permille);
	if (config->evict_cost_ns == 0)
		config->evict_cost_ns = EVICT_COST_S * NS_A_S;
	if (config->hold_gpu_ms == 0)
		config->hold_gpu_ms = (uint64_t)HOLD_GPU_H * 3600 * 1000;
	if (config->hold_backlog_permille == 0)
		config->hold_backlog_permille = HOLD_BACKLOG_PERMILLE;
	return 0;
}

int takt_order_config_check(struct takt_order_config *config, struct takt_err *err)
{
	if (config->las_limits > TAKT_ORDER_MAX_QUEUES - 1)
		return takt_err_set(err, -EINVAL, "las limits: %" PRIu32 ", at most %d",
				    config->las_limits, TAKT_ORDER_MAX_QUEUES - 1);
	for (uint32_t i = 1; i < config->las_limits; i++)
		if (config->las_limit_gpu_ms[i] <= config->las_limit_gpu_ms[i - 1])
			return takt_err_set(err, -EINVAL,
					    "las limits: number %" PRIu32
					    " is not larger than the one before it",
					    i + 1);
	if (config->las_limits == 0) {
		config->las_limit_gpu_ms[0] = (uint64_t)LAS_LIMIT_GPU_S * 1000;
		config->las_limits = 1;
	}
	if (config->las_promote == 0)
		config->las_promote = LAS_PROMOTE;
	if (config->unknown_ns == 0)
		config->unknown_ns = UNKNOWN_S * NS_A_S;
	return check_takt(config, err);
}

static int compare_i64(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

int takt_order_compare(const struct takt_order_key *a, const struct takt_order_key *b)
{
	int by_class = compare_i64(a->class, b->class);
	int by_band = compare_i64(a->band, b->band);
	int by_value = compare_i64(a->value, b->value);

	if (by_class)
		return by_class;
	if (by_band)
		return by_band;
	return by_value ? by_value : (a->seq > b->seq) - (a->seq < b->seq);
}

static bool is_guarded(const struct takt_order_config *config, const struct takt_order_job *job,
		       uint64_t now_ns)
{
	return config->guard_ns && takt_order_waited_ns(job, now_ns) >= config->guard_ns;
}

void takt_order_key(const struct takt_order *order, const struct takt_order_config *config,
		    const struct takt_order_job *job, uint64_t now_ns, struct takt_order_key *ret)
{
	struct takt_order_key key = {0};

	if (is_guarded(config, job, now_ns))
		key.band = INT64_MIN;
	else
		order->key(config, job, now_ns, &key);
	key.class = config->by_priority ? -(int64_t)job->priority : 0;
	key.seq = job->submit_seq;
	*ret = key;
}

/* When a waiting job will have waited as long as the guard allows. */
static uint64_t guard_at(const struct takt_order_config *config, const struct takt_order_job *job,
			 uint64_t now_ns)
{
	uint64_t waited_ns = takt_order_waited_ns(job, now_ns);

	if (!config->guard_ns || job->running || waited_ns >= config->guard_ns)
		return TAKT_ORDER_NEVER;
	return takt_order_later(now_ns, config->guard_ns - waited_ns);
}

uint64_t takt_order_next_change_ns(const struct takt_order *order,
				   const struct takt_order_config *config,
				   const struct takt_order_job *job, uint64_t now_ns)
{
	uint64_t guard_ns = guard_at(config, job, now_ns);
	uint64_t change_ns = TAKT_ORDER_NEVER;

	if (order->next_change_ns && !is_guarded(config, job, now_ns))
		change_ns = order->next_change_ns(config, job, now_ns);
	return change_ns < guard_ns ? change_ns : guard_ns;
}

/* Class and band alone: within a band nobody pushes anybody out. */
static bool is_band_before(const struct takt_order_key *a, const struct takt_order_key *b)
{
	return a->class != b->class ? a->class < b->class : a->band < b->band;
}

bool takt_order_may_evict(const struct takt_order *order, const struct takt_order_config *config,
			  const struct takt_order_job *waiting,
			  const struct takt_order_job *running, uint64_t now_ns)
{
	struct takt_order_key key, victim;

	if (!order->preempts || !running->preemptible ||
	    takt_order_span_ns(running->since_ns, now_ns) < running->min_run_ns)
		return false;
	takt_order_key(order, config, waiting, now_ns, &key);
	takt_order_key(order, config, running, now_ns, &victim);
	if (takt_order_compare(&key, &victim) >= 0)
		return false;
	return order->may_evict ? order->may_evict(config, waiting, running, now_ns)
				: is_band_before(&key, &victim);
}

bool takt_order_holds(const struct takt_order *order, const struct takt_order_config *config,
		      const struct takt_order_job *waiting, const struct takt_order_load *load,
		      uint64_t now_ns)
{
	return order->holds && !is_guarded(config, waiting, now_ns) &&
	       order->holds(config, waiting, load, now_ns);
}

uint64_t takt_order_later(uint64_t now_ns, uint64_t span_ns)
{
	return span_ns < TAKT_ORDER_NEVER - now_ns ? now_ns + span_ns : TAKT_ORDER_NEVER;
}

uint64_t takt_order_span_ns(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

uint64_t takt_order_waited_ns(const struct takt_order_job *job, uint64_t now_ns)
{
	return add_saturated(job->waited_ns,
			     job->running ? 0 : takt_order_span_ns(job->since_ns, now_ns));
}

uint64_t takt_order_ran_ns(const struct takt_order_job *job, uint64_t now_ns)
{
	return add_saturated(job->ran_ns,
			     job->running ? takt_order_span_ns(job->since_ns, now_ns) : 0);
}

uint64_t takt_order_gpu_ms(uint64_t gpu_milli, uint64_t span_ns)
{
	__extension__ unsigned __int128 wide = gpu_milli;

	wide = wide * span_ns / ((uint64_t)NS_A_MS * MILLI);
	return wide > UINT64_MAX ? UINT64_MAX : (uint64_t)wide;
}

uint64_t takt_order_attained_gpu_ms(const struct takt_order_job *job, uint64_t now_ns)
{
	uint64_t span_ns = job->running ? takt_order_span_ns(job->since_ns, now_ns) : 0;

	return add_saturated(job->attained_gpu_ms, takt_order_gpu_ms(job->gpu_milli, span_ns));
}

uint64_t takt_order_loss_gpu_ms(const struct takt_order_job *job, uint64_t now_ns)
{
	uint64_t from_ns = job->since_ns;

	if (!job->running)
		return 0;
	if (job->has_checkpoint && job->checkpoint_ns > from_ns)
		from_ns = job->checkpoint_ns;
	return takt_order_gpu_ms(job->gpu_milli, takt_order_span_ns(from_ns, now_ns));
}

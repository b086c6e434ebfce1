/* SPDX-License-Identifier: Apache-2.0 */
/* The table of leases, and who wins. */
#include "actuate/lease.h"

#include <errno.h>

static struct takt_lease *find(const struct takt_leases *leases, uint64_t id)
{
	for (int i = 0; id != 0 && i < TAKT_LEASES_MAX; i++) {
		if (leases->of[i].id == id)
			return (struct takt_lease *)&leases->of[i];
	}
	return NULL;
}

const struct takt_lease *takt_leases_find(const struct takt_leases *leases, uint64_t id)
{
	return find(leases, id);
}

/* The lease that this job has on this GPU. */
static struct takt_lease *find_job(const struct takt_leases *leases, uint32_t gpu, uint64_t job_id)
{
	for (int i = 0; i < TAKT_LEASES_MAX; i++) {
		const struct takt_lease *lease = &leases->of[i];

		if (lease->id != 0 && lease->gpu == gpu && lease->job_id == job_id)
			return (struct takt_lease *)lease;
	}
	return NULL;
}

/* Where a lease of this job would stand. */
static struct takt_lease *place_of(const struct takt_leases *leases, uint32_t gpu, uint64_t job_id)
{
	struct takt_lease *own = find_job(leases, gpu, job_id);

	for (int i = 0; !own && i < TAKT_LEASES_MAX; i++) {
		if (leases->of[i].id == 0)
			own = (struct takt_lease *)&leases->of[i];
	}
	return own;
}

static int check_ttl(uint64_t ttl_ns, struct takt_err *err)
{
	if (ttl_ns >= TAKT_ACTUATE_TTL_MIN_NS && ttl_ns <= TAKT_ACTUATE_TTL_MAX_NS)
		return 0;
	return takt_err_set(err, -EINVAL, "time to live of %llu ms: 50 ms to 24 h are accepted",
			    (unsigned long long)(ttl_ns / TAKT_NS_PER_MS));
}

static const struct takt_lease *benchmark_on(const struct takt_leases *leases, uint32_t gpu)
{
	for (int i = 0; i < TAKT_LEASES_MAX; i++) {
		const struct takt_lease *lease = &leases->of[i];

		if (lease->id != 0 && lease->gpu == gpu &&
		    lease->rank == TAKT_ACTUATE_RANK_BENCHMARK)
			return lease;
	}
	return NULL;
}

int takt_leases_admit(const struct takt_leases *leases, uint32_t gpu,
		      const struct takt_actuate_request *request, struct takt_err *err)
{
	const struct takt_lease *same_id = find(leases, request->lease_id);
	const struct takt_lease *benchmark = benchmark_on(leases, gpu);

	if (request->lease_id == 0)
		return takt_err_set(err, -EINVAL, "lease id 0 is none: choose another");
	if (request->rank > TAKT_ACTUATE_RANK_BENCHMARK)
		return takt_err_set(err, -EINVAL, "no lease has rank %u", request->rank);
	if (same_id && same_id->gpu != gpu)
		return takt_err_set(err, -TAKT_E_CONFLICT, "lease %llu is on GPU %u",
				    (unsigned long long)request->lease_id, same_id->gpu);
	if (benchmark && benchmark->job_id != request->job_id &&
	    request->rank == TAKT_ACTUATE_RANK_BENCHMARK)
		return takt_err_set(err, -TAKT_E_BUSY,
				    "job %llu has this GPU for a benchmark already",
				    (unsigned long long)benchmark->job_id);
	if (!place_of(leases, gpu, request->job_id))
		return takt_err_set(err, -TAKT_E_LIMIT, "there are %d leases already",
				    TAKT_LEASES_MAX);
	return check_ttl(request->ttl_ns, err);
}

static struct takt_setting setting_of(const struct takt_actuate_request *request)
{
	struct takt_setting setting = {.sm = {request->min_mhz, request->max_mhz},
				       .power_limit_mw = request->power_limit_mw,
				       .mem = {request->mem_min_mhz, request->mem_max_mhz}};

	if (request->min_mhz || request->max_mhz)
		setting.knobs |= TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK);
	if (request->power_limit_mw)
		setting.knobs |= TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT);
	if (request->mem_min_mhz || request->mem_max_mhz)
		setting.knobs |= TAKT_KNOB_BIT(TAKT_KNOB_MEM_CLOCK);
	return setting;
}

const struct takt_lease *takt_leases_put(struct takt_leases *leases, uint32_t gpu,
					 const struct takt_actuate_request *request,
					 uint64_t connection, struct takt_boot now,
					 struct takt_lease *ret_was)
{
	struct takt_lease *lease = find(leases, request->lease_id);

	if (!lease)
		lease = place_of(leases, gpu, request->job_id);
	*ret_was = *lease;
	*lease = (struct takt_lease){
		.id = request->lease_id,
		.job_id = request->job_id,
		.gpu = gpu,
		.rank = request->rank,
		.setting = setting_of(request),
		.ttl_ns = request->ttl_ns,
		.connection = connection,
		.number = ++leases->last_number,
		.expires = takt_boot_add(now, request->ttl_ns),
	};
	return lease;
}

void takt_leases_put_back(struct takt_leases *leases, uint64_t id, const struct takt_lease *was)
{
	*find(leases, id) = *was;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* What two of the same rank come to. */
static struct takt_setting most_demanding(const struct takt_setting *a,
					  const struct takt_setting *b)
{
	return (struct takt_setting){
		.knobs = a->knobs & b->knobs,
		.sm = {larger(a->sm.min_mhz, b->sm.min_mhz), larger(a->sm.max_mhz, b->sm.max_mhz)},
		.power_limit_mw = larger(a->power_limit_mw, b->power_limit_mw),
		.mem = {larger(a->mem.min_mhz, b->mem.min_mhz),
			larger(a->mem.max_mhz, b->mem.max_mhz)},
	};
}

/* Which of two of the same rank is named as the one who decides: the higher clock, else the older
 * one. One that wants the baseline of the clock is above all. */
static bool decides(const struct takt_lease *a, const struct takt_lease *b)
{
	uint32_t of_a = a->setting.sm.max_mhz ? a->setting.sm.max_mhz : UINT32_MAX;
	uint32_t of_b = b->setting.sm.max_mhz ? b->setting.sm.max_mhz : UINT32_MAX;

	return of_a != of_b ? of_a > of_b : a->number < b->number;
}

/* What all leases of one rank come to; *ret_lease: the one that decides, NULL when there is none.
 */
static struct takt_setting demand_of(const struct takt_leases *leases, uint32_t gpu,
				     enum takt_actuate_rank rank,
				     const struct takt_lease **ret_lease)
{
	const struct takt_lease *first = NULL;
	struct takt_setting demand = {0};

	for (int i = 0; i < TAKT_LEASES_MAX; i++) {
		const struct takt_lease *lease = &leases->of[i];

		if (lease->id == 0 || lease->gpu != gpu || lease->rank != rank)
			continue;
		demand = first ? most_demanding(&demand, &lease->setting) : lease->setting;
		if (!first || decides(lease, first))
			first = lease;
	}
	*ret_lease = first;
	return demand;
}

/* A job asks for a limit to draw less; one that an administrator holds lower is not raised by it.
 */
static bool is_held_lower(const struct takt_setting *by_jobs, const struct takt_setting *standing,
			  enum takt_knob knob)
{
	return knob == TAKT_KNOB_POWER_LIMIT && takt_setting_has(standing, knob) &&
	       standing->power_limit_mw < by_jobs->power_limit_mw;
}

struct takt_setting takt_leases_demand(const struct takt_leases *leases, uint32_t gpu,
				       const struct takt_lease **ret_lease)
{
	const struct takt_lease *standing;
	struct takt_setting demand, rest;

	demand = demand_of(leases, gpu, TAKT_ACTUATE_RANK_BENCHMARK, ret_lease);
	if (*ret_lease)
		return demand;
	demand = demand_of(leases, gpu, TAKT_ACTUATE_RANK_JOB, ret_lease);
	rest = demand_of(leases, gpu, TAKT_ACTUATE_RANK_STANDING, &standing);
	for (enum takt_knob knob = 0; knob < TAKT_KNOBS; knob++)
		if (!takt_setting_has(&demand, knob) || is_held_lower(&demand, &rest, knob))
			takt_setting_take(&demand, &rest, knob);
	if (!*ret_lease)
		*ret_lease = standing;
	return demand;
}

void takt_leases_drop(struct takt_leases *leases, uint64_t id)
{
	struct takt_lease *lease = find(leases, id);

	if (lease)
		*lease = (struct takt_lease){0};
}

void takt_leases_drop_gpu(struct takt_leases *leases, uint32_t gpu)
{
	for (int i = 0; i < TAKT_LEASES_MAX; i++) {
		if (leases->of[i].gpu == gpu)
			leases->of[i] = (struct takt_lease){0};
	}
}

uint32_t takt_leases_renew(struct takt_leases *leases, uint64_t id, uint64_t ttl_ns,
			   uint64_t connection, struct takt_boot now)
{
	uint32_t renewed = 0;

	for (uint32_t i = 0; i < TAKT_LEASES_MAX; i++) {
		struct takt_lease *lease = &leases->of[i];

		if (lease->id == 0 || (id ? lease->id != id : lease->connection != connection))
			continue;
		if (ttl_ns)
			lease->ttl_ns = ttl_ns;
		lease->connection = connection;
		lease->expires = takt_boot_add(now, lease->ttl_ns);
		renewed++;
	}
	return renewed;
}

const struct takt_lease *takt_leases_expired(const struct takt_leases *leases, struct takt_boot now)
{
	for (int i = 0; i < TAKT_LEASES_MAX; i++) {
		if (leases->of[i].id != 0 && leases->of[i].expires.ns <= now.ns)
			return &leases->of[i];
	}
	return NULL;
}

struct takt_boot takt_leases_next_expiry(const struct takt_leases *leases)
{
	struct takt_boot next = {UINT64_MAX};

	for (uint32_t i = 0; i < TAKT_LEASES_MAX; i++) {
		if (leases->of[i].id != 0 && leases->of[i].expires.ns < next.ns)
			next = leases->of[i].expires;
	}
	return next;
}

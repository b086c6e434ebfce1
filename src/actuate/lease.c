/* SPDX-License-Identifier: Apache-2.0 */
/* The table of leases. */
#include "actuate/lease.h"

#include <errno.h>

int takt_leases_gpu(const struct takt_leases *leases, uint64_t id)
{
	for (int i = 0; id != 0 && i < TAKT_ACTUATE_MAX_GPUS; i++) {
		if (leases->of[i].id == id)
			return i;
	}
	return -1;
}

static int check_ttl(uint64_t ttl_ns, struct takt_err *err)
{
	if (ttl_ns >= TAKT_ACTUATE_TTL_MIN_NS && ttl_ns <= TAKT_ACTUATE_TTL_MAX_NS)
		return 0;
	return takt_err_set(err, -EINVAL, "time to live of %llu ms: 50 ms to 24 h are accepted",
			    (unsigned long long)(ttl_ns / TAKT_NS_PER_MS));
}

int takt_leases_admit(const struct takt_leases *leases, uint32_t gpu,
		      const struct takt_actuate_request *request, struct takt_err *err)
{
	const struct takt_lease *held = &leases->of[gpu];
	int elsewhere = takt_leases_gpu(leases, request->lease_id);

	if (request->lease_id == 0)
		return takt_err_set(err, -EINVAL, "lease id 0 is none: choose another");
	if (elsewhere >= 0 && elsewhere != (int)gpu)
		return takt_err_set(err, -TAKT_E_CONFLICT, "lease %llu is on GPU %d",
				    (unsigned long long)request->lease_id, elsewhere);
	if (held->id != 0 && held->job_id != request->job_id)
		return takt_err_set(err, -TAKT_E_BUSY, "job %llu has the clock of this GPU",
				    (unsigned long long)held->job_id);
	return check_ttl(request->ttl_ns, err);
}

void takt_leases_put(struct takt_leases *leases, uint32_t gpu,
		     const struct takt_actuate_request *request, uint64_t connection,
		     struct takt_boot now)
{
	leases->of[gpu] = (struct takt_lease){
		.id = request->lease_id,
		.job_id = request->job_id,
		.ttl_ns = request->ttl_ns,
		.connection = connection,
		.expires = takt_boot_add(now, request->ttl_ns),
	};
}

uint32_t takt_leases_renew(struct takt_leases *leases, uint64_t id, uint64_t ttl_ns,
			   uint64_t connection, struct takt_boot now)
{
	uint32_t renewed = 0;

	for (uint32_t i = 0; i < TAKT_ACTUATE_MAX_GPUS; i++) {
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

int takt_leases_expired(const struct takt_leases *leases, struct takt_boot now)
{
	for (int i = 0; i < TAKT_ACTUATE_MAX_GPUS; i++) {
		if (leases->of[i].id != 0 && leases->of[i].expires.ns <= now.ns)
			return i;
	}
	return -1;
}

struct takt_boot takt_leases_next_expiry(const struct takt_leases *leases)
{
	struct takt_boot next = {UINT64_MAX};

	for (uint32_t i = 0; i < TAKT_ACTUATE_MAX_GPUS; i++) {
		if (leases->of[i].id != 0 && leases->of[i].expires.ns < next.ns)
			next = leases->of[i].expires;
	}
	return next;
}

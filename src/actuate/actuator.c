/* SPDX-License-Identifier: Apache-2.0 */
/* What each request does, and when it is answered. */
#include "actuate/actuator.h"

#include <errno.h>
#include <string.h>

#include "actuate/actuate_log.h"
#include "base/str.h"

static void start_reply(const struct takt_actuator *actuator,
			const struct takt_actuate_request *request, struct takt_actuate_reply *ret)
{
	*ret = (struct takt_actuate_reply){
		.version = TAKT_ACTUATE_VERSION,
		.op = request->op,
		.seq = request->seq,
		.epoch = actuator->keeper.mandate->mine.epoch,
		.gpu_count = actuator->keeper.gpu_count,
	};
}

static bool fail(struct takt_actuate_reply *ret, const struct takt_err *err)
{
	ret->rc = err->rc;
	ret->vendor = (uint32_t)err->vendor;
	takt_strcpy(ret->message, sizeof(ret->message), err->msg);
	return true;
}

/* What is known of a GPU; a failure's message stays. */
static void show_gpu(const struct takt_actuator *actuator, uint32_t index,
		     struct takt_actuate_reply *ret)
{
	const struct takt_keeper_gpu *gpu = &actuator->keeper.gpus[index];
	const struct takt_lease *lease = &actuator->leases.of[index];

	ret->gpu_state = takt_keeper_state(gpu);
	if (ret->gpu_state == TAKT_ACTUATE_LEASED || ret->gpu_state == TAKT_ACTUATE_CHANGED) {
		ret->applied_min_mhz = gpu->held_range.min_mhz;
		ret->applied_max_mhz = gpu->held_range.max_mhz;
	}
	ret->readback_mhz = gpu->readback_mhz;
	ret->lease_id = lease->id;
	ret->job_id = lease->job_id;
	takt_strcpy(ret->uuid, sizeof(ret->uuid), gpu->facts->uuid);
	if (gpu->note[0])
		takt_strcpy(ret->message, sizeof(ret->message), gpu->note);
}

static int find_gpu(const struct takt_actuator *actuator, const char *uuid, struct takt_err *err)
{
	int gpu = takt_keeper_find(&actuator->keeper, uuid);

	return gpu >= 0 ? gpu : takt_err_set(err, -TAKT_E_NOT_FOUND, "no GPU '%.95s' here", uuid);
}

static struct takt_actuator_waiting *free_place(struct takt_actuator *actuator,
						struct takt_err *err)
{
	for (uint32_t i = 0; i < TAKT_ACTUATOR_WAITING; i++) {
		if (actuator->waiting[i].connection == 0)
			return &actuator->waiting[i];
	}
	takt_err_set(err, -TAKT_E_LIMIT, "%d requests are under way", TAKT_ACTUATOR_WAITING);
	return NULL;
}

static void wait_for(struct takt_actuator *actuator, struct takt_actuator_waiting *place,
		     uint64_t connection, uint64_t gpus, uint32_t shown,
		     const struct takt_actuate_reply *reply)
{
	*place = (struct takt_actuator_waiting){
		.connection = connection,
		.gpus = gpus,
		.gpu = shown,
		.wish_number = actuator->keeper.gpus[shown].wish_number,
		.reply = *reply,
	};
}

static bool handle_set(struct takt_actuator *actuator, uint64_t connection,
		       const struct takt_actuate_request *request, struct takt_boot now,
		       struct takt_actuate_reply *ret)
{
	struct takt_clock_range range = {request->min_mhz, request->max_mhz};
	struct takt_actuator_waiting *place;
	struct takt_err err;
	int gpu, rc;

	gpu = find_gpu(actuator, request->uuid, &err);
	if (gpu < 0 || takt_leases_admit(&actuator->leases, (uint32_t)gpu, request, &err) < 0)
		return fail(ret, &err);
	place = free_place(actuator, &err);
	if (!place)
		return fail(ret, &err);
	rc = takt_keeper_set(&actuator->keeper, (uint32_t)gpu, range, request->lease_id,
			     request->job_id, now, &err);
	if (rc < 0)
		return fail(ret, &err);
	takt_leases_put(&actuator->leases, (uint32_t)gpu, request, connection, now);
	wait_for(actuator, place, connection, 1ull << gpu, (uint32_t)gpu, ret);
	return false;
}

static bool handle_renew(struct takt_actuator *actuator, uint64_t connection,
			 const struct takt_actuate_request *request, struct takt_boot now,
			 struct takt_actuate_reply *ret)
{
	struct takt_err err;

	if (request->ttl_ns && (request->ttl_ns < TAKT_ACTUATE_TTL_MIN_NS ||
				request->ttl_ns > TAKT_ACTUATE_TTL_MAX_NS)) {
		takt_err_set(&err, -EINVAL,
			     "time to live: 50 ms to 24 h are accepted, 0 = as before");
		return fail(ret, &err);
	}
	if (takt_leases_renew(&actuator->leases, request->lease_id, request->ttl_ns, connection,
			      now) == 0 &&
	    request->lease_id != 0) {
		takt_err_set(&err, -TAKT_E_NOT_FOUND, "no lease %llu: it ran out or never was",
			     (unsigned long long)request->lease_id);
		return fail(ret, &err);
	}
	return true;
}

static void end_lease(struct takt_actuator *actuator, uint32_t gpu, struct takt_boot now)
{
	actuator->leases.of[gpu] = (struct takt_lease){0};
	takt_keeper_restore(&actuator->keeper, gpu, now);
}

static bool handle_end(struct takt_actuator *actuator, uint64_t connection,
		       const struct takt_actuate_request *request, struct takt_boot now,
		       struct takt_actuate_reply *ret)
{
	int gpu = takt_leases_gpu(&actuator->leases, request->lease_id);
	struct takt_actuator_waiting *place;
	struct takt_err err;

	if (gpu < 0) {
		takt_err_set(&err, -TAKT_E_NOT_FOUND, "no lease %llu: it ran out or never was",
			     (unsigned long long)request->lease_id);
		return fail(ret, &err);
	}
	place = free_place(actuator, &err);
	if (!place)
		return fail(ret, &err);
	end_lease(actuator, (uint32_t)gpu, now);
	wait_for(actuator, place, connection, 1ull << gpu, (uint32_t)gpu, ret);
	return false;
}

static bool handle_status(struct takt_actuator *actuator,
			  const struct takt_actuate_request *request,
			  struct takt_actuate_reply *ret)
{
	struct takt_err err;

	if (request->gpu_index < actuator->keeper.gpu_count) {
		show_gpu(actuator, request->gpu_index, ret);
		return true;
	}
	takt_err_set(&err, -TAKT_E_NOT_FOUND, "GPU index %u: this machine has %u",
		     request->gpu_index, actuator->keeper.gpu_count);
	return fail(ret, &err);
}

static bool handle_reset(struct takt_actuator *actuator, uint64_t connection,
			 const struct takt_actuate_request *request, struct takt_boot now,
			 struct takt_actuate_reply *ret)
{
	struct takt_actuator_waiting *place;
	struct takt_err err;
	uint64_t gpus = 0;
	int only = -1;

	if (request->uuid[0])
		only = find_gpu(actuator, request->uuid, &err);
	if (request->uuid[0] && only < 0)
		return fail(ret, &err);
	place = free_place(actuator, &err);
	if (!place)
		return fail(ret, &err);
	for (uint32_t i = 0; i < actuator->keeper.gpu_count; i++) {
		if (only >= 0 && (uint32_t)only != i)
			continue;
		actuator->leases.of[i] = (struct takt_lease){0};
		takt_keeper_reset(&actuator->keeper, i, now);
		gpus |= 1ull << i;
	}
	if (gpus == 0)
		return true;
	wait_for(actuator, place, connection, gpus, only >= 0 ? (uint32_t)only : 0, ret);
	return false;
}

bool takt_actuator_request(struct takt_actuator *actuator, uint64_t connection,
			   const struct takt_actuate_request *request, struct takt_boot now,
			   struct takt_actuate_reply *ret)
{
	struct takt_err err;

	start_reply(actuator, request, ret);
	if (request->version != TAKT_ACTUATE_VERSION) {
		takt_err_set(&err, -TAKT_E_VERSION, "this actuator speaks version %d, not %u",
			     TAKT_ACTUATE_VERSION, request->version);
		return fail(ret, &err);
	}
	if (!memchr(request->uuid, '\0', sizeof(request->uuid))) {
		takt_err_set(&err, -EINVAL, "the UUID of the request has no end");
		return fail(ret, &err);
	}
	switch (request->op) {
	case TAKT_ACTUATE_HELLO:
		return true;
	case TAKT_ACTUATE_SET:
		return handle_set(actuator, connection, request, now, ret);
	case TAKT_ACTUATE_RENEW:
		return handle_renew(actuator, connection, request, now, ret);
	case TAKT_ACTUATE_END:
		return handle_end(actuator, connection, request, now, ret);
	case TAKT_ACTUATE_STATUS:
		return handle_status(actuator, request, ret);
	case TAKT_ACTUATE_RESET:
		return handle_reset(actuator, connection, request, now, ret);
	default:
		takt_err_set(&err, -EINVAL, "no request has number %u", request->op);
		return fail(ret, &err);
	}
}

/* Takes GPU `index` off the waiting request if it is settled, or was wished something else. */
static void look_at(struct takt_actuator *actuator, struct takt_actuator_waiting *place,
		    uint32_t index)
{
	const struct takt_keeper_gpu *gpu = &actuator->keeper.gpus[index];
	bool set = place->reply.op == TAKT_ACTUATE_SET;
	struct takt_err gone;

	if (set && gpu->wish_number != place->wish_number) {
		takt_err_set(&gone, -ECANCELED,
			     "the lease ended or was changed before it was applied");
		fail(&place->reply, &gone);
	} else if (!set && gpu->wish_range) {
		/* The lease did end; that another one began is not this request's concern. */
	} else if (!gpu->settled) {
		return;
	} else if (gpu->outcome.rc < 0 && place->reply.rc == 0) {
		fail(&place->reply, &gpu->outcome);
		place->gpu = index;
	}
	place->gpus &= ~(1ull << index);
}

bool takt_actuator_reply(struct takt_actuator *actuator, uint64_t *ret_connection,
			 struct takt_actuate_reply *ret)
{
	for (uint32_t i = 0; i < TAKT_ACTUATOR_WAITING; i++) {
		struct takt_actuator_waiting *place = &actuator->waiting[i];

		if (place->connection == 0)
			continue;
		for (uint32_t g = 0; g < actuator->keeper.gpu_count; g++) {
			if (place->gpus >> g & 1)
				look_at(actuator, place, g);
		}
		if (place->gpus != 0)
			continue;
		show_gpu(actuator, place->gpu, &place->reply);
		*ret_connection = place->connection;
		*ret = place->reply;
		place->connection = 0;
		return true;
	}
	return false;
}

/* The keeper gave a range up (the driver will never take it): then there is no lease either. */
static void drop_given_up(struct takt_actuator *actuator)
{
	for (uint32_t i = 0; i < actuator->keeper.gpu_count; i++) {
		if (actuator->leases.of[i].id != 0 && !actuator->keeper.gpus[i].wish_range)
			actuator->leases.of[i] = (struct takt_lease){0};
	}
}

struct takt_boot takt_actuator_step(struct takt_actuator *actuator, struct takt_boot now)
{
	struct takt_boot work, expiry;
	int gpu;

	while ((gpu = takt_leases_expired(&actuator->leases, now)) >= 0) {
		takt_actuate_say(&actuator->keeper.log,
				 "%s: the lease of job %llu ran out; restoring the baseline",
				 actuator->keeper.gpus[gpu].facts->uuid,
				 (unsigned long long)actuator->leases.of[gpu].job_id);
		end_lease(actuator, (uint32_t)gpu, now);
	}
	work = takt_keeper_step(&actuator->keeper, now);
	drop_given_up(actuator);
	expiry = takt_leases_next_expiry(&actuator->leases);
	return expiry.ns < work.ns ? expiry : work;
}

void takt_actuator_end_all(struct takt_actuator *actuator, struct takt_boot now)
{
	for (uint32_t i = 0; i < actuator->keeper.gpu_count; i++)
		end_lease(actuator, i, now);
}

void takt_actuator_forget(struct takt_actuator *actuator, uint64_t connection)
{
	for (uint32_t i = 0; i < TAKT_ACTUATOR_WAITING; i++) {
		if (actuator->waiting[i].connection == connection)
			actuator->waiting[i].connection = 0;
	}
}

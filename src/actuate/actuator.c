/* SPDX-License-Identifier: Apache-2.0 */
/* What each request does, and when it is answered. */
#include "actuate/actuator.h"

#include <errno.h>
#include <string.h>

#include "actuate/actuate_log.h"
#include "base/mem.h"
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
		.journal_device = actuator->keeper.mandate->journal->device,
		.journal_inode = actuator->keeper.mandate->journal->inode,
	};
}

static bool fail(struct takt_actuate_reply *ret, const struct takt_err *err)
{
	ret->rc = err->rc;
	ret->vendor = (uint32_t)err->vendor;
	takt_strcpy(ret->message, sizeof(ret->message), err->msg);
	return true;
}

static void show_held(const struct takt_keeper_gpu *gpu, struct takt_actuate_reply *ret)
{
	const struct takt_setting *at = &gpu->held_at;

	if (gpu->held[TAKT_KNOB_SM_CLOCK] != TAKT_HELD_BASELINE &&
	    takt_setting_has(at, TAKT_KNOB_SM_CLOCK)) {
		ret->applied_min_mhz = at->sm.min_mhz;
		ret->applied_max_mhz = at->sm.max_mhz;
	}
	if (gpu->held[TAKT_KNOB_POWER_LIMIT] != TAKT_HELD_BASELINE &&
	    takt_setting_has(at, TAKT_KNOB_POWER_LIMIT))
		ret->applied_power_mw = at->power_limit_mw;
	if (gpu->held[TAKT_KNOB_MEM_CLOCK] != TAKT_HELD_BASELINE &&
	    takt_setting_has(at, TAKT_KNOB_MEM_CLOCK)) {
		ret->applied_mem_min_mhz = at->mem.min_mhz;
		ret->applied_mem_max_mhz = at->mem.max_mhz;
	}
}

/* Where only the SM clock waits, another knob may be set. */
static bool may_hold(enum takt_actuate_gpu_state state)
{
	return state == TAKT_ACTUATE_LEASED || state == TAKT_ACTUATE_CHANGED ||
	       state == TAKT_ACTUATE_WAITING || state == TAKT_ACTUATE_ADVISE;
}

static void show_declared(const struct takt_actuator *actuator, const struct takt_keeper_gpu *gpu,
			  struct takt_actuate_reply *ret)
{
	struct takt_baseline_rule rule = takt_baseline_of(actuator->baseline, gpu->facts->uuid);

	if (rule.locked) {
		ret->base_min_mhz = rule.range.min_mhz;
		ret->base_max_mhz = rule.range.max_mhz;
	}
	ret->base_power_mw = rule.power_limit_mw;
}

static uint32_t mig_state(const struct takt_keeper_mig *mig)
{
	if (mig->step != TAKT_MIG_IDLE || strcmp(mig->wish, mig->stands) != 0)
		return TAKT_MIG_AT_WORK;
	if (takt_keeper_mig_to_be_put_back(mig))
		return TAKT_MIG_TO_BE_PUT_BACK;
	return mig->wish[0] ? TAKT_MIG_IS_SET : TAKT_MIG_AS_FOUND;
}

/* What is known of a GPU; a failure's message stays. */
static void show_gpu(const struct takt_actuator *actuator, uint32_t index,
		     struct takt_actuate_reply *ret)
{
	const struct takt_keeper_gpu *gpu = &actuator->keeper.gpus[index];
	const char *says = takt_keeper_says(gpu);
	const struct takt_lease *lease;

	(void)takt_leases_demand(&actuator->leases, index, &lease);
	ret->gpu_state = takt_keeper_state(gpu);
	if (may_hold(ret->gpu_state))
		show_held(gpu, ret);
	ret->readback_mhz = gpu->readback_mhz;
	ret->cap_power_mw = gpu->cap_mw;
	show_declared(actuator, gpu, ret);
	ret->lease_id = lease ? lease->id : 0;
	ret->job_id = lease ? lease->job_id : 0;
	takt_strcpy(ret->uuid, sizeof(ret->uuid), gpu->facts->uuid);
	ret->mig_state = mig_state(&gpu->mig);
	if (says[0] || gpu->mig.note[0])
		takt_strcpy(ret->message, sizeof(ret->message), says[0] ? says : gpu->mig.note);
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
		.reply = *reply,
	};
}

/* Has the keeper work towards what the leases of a GPU come to now. */
static int follow_demand(struct takt_actuator *actuator, uint32_t gpu, struct takt_boot now,
			 struct takt_err *err)
{
	const struct takt_lease *lease;
	struct takt_setting demand = takt_leases_demand(&actuator->leases, gpu, &lease);

	if (lease && demand.knobs)
		return takt_keeper_set(&actuator->keeper, gpu, &demand, lease->id, lease->job_id,
				       now, err);
	takt_keeper_restore(&actuator->keeper, gpu, now);
	return 0;
}

static bool handle_set(struct takt_actuator *actuator, uint64_t connection,
		       const struct takt_actuate_request *request, struct takt_boot now,
		       struct takt_actuate_reply *ret)
{
	struct takt_actuator_waiting *place;
	const struct takt_lease *lease;
	struct takt_lease was = {0};
	struct takt_err err;
	int gpu;

	gpu = find_gpu(actuator, request->uuid, &err);
	if (gpu < 0 || takt_leases_admit(&actuator->leases, (uint32_t)gpu, request, &err) < 0)
		return fail(ret, &err);
	place = free_place(actuator, &err);
	if (!place)
		return fail(ret, &err);
	if (request->assume_unlocked)
		takt_keeper_assume_unlocked(&actuator->keeper, (uint32_t)gpu);
	lease = takt_leases_put(&actuator->leases, (uint32_t)gpu, request, connection, now, &was);
	if (follow_demand(actuator, (uint32_t)gpu, now, &err) < 0) {
		takt_leases_put_back(&actuator->leases, request->lease_id, &was);
		return fail(ret, &err);
	}
	wait_for(actuator, place, connection, 1ull << gpu, (uint32_t)gpu, ret);
	place->lease_id = lease->id;
	place->lease_number = lease->number;
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

static bool handle_cpu(struct takt_actuator *actuator, const struct takt_actuate_request *request,
		       struct takt_boot now, struct takt_actuate_reply *ret)
{
	struct takt_keeper *keeper = &actuator->keeper;
	struct takt_err err;
	int rc = 0;

	if (request->ttl_ns &&
	    (request->ttl_ns < TAKT_ACTUATE_TTL_MIN_NS ||
	     request->ttl_ns > TAKT_ACTUATE_TTL_MAX_NS || request->max_mhz > TAKT_BASELINE_MAX_MHZ))
		rc = takt_err_set(&err, -EINVAL,
				  "a ceiling for CPUs: up to %d MHz, for 50 ms to 24 h",
				  TAKT_BASELINE_MAX_MHZ);
	else if (request->ttl_ns)
		rc = takt_keeper_cpu_set(keeper, request->max_mhz, request->ttl_ns, now, &err);
	if (rc < 0)
		fail(ret, &err);
	ret->gpu_state = keeper->cpu.max_mhz   ? TAKT_ACTUATE_LEASED
			 : keeper->cpu.changed ? TAKT_ACTUATE_CHANGED
					       : TAKT_ACTUATE_CLEAN;
	ret->applied_max_mhz = keeper->cpu.max_mhz;
	takt_strcpy(ret->uuid, sizeof(ret->uuid), TAKT_CPU_UUID);
	if (keeper->cpu.note[0])
		takt_strcpy(ret->message, sizeof(ret->message), keeper->cpu.note);
	return true;
}

static void end_lease(struct takt_actuator *actuator, uint64_t id, uint32_t gpu,
		      struct takt_boot now)
{
	takt_leases_drop(&actuator->leases, id);
	if (follow_demand(actuator, gpu, now, NULL) < 0)
		takt_keeper_restore(&actuator->keeper, gpu, now);
}

static bool handle_end(struct takt_actuator *actuator, uint64_t connection,
		       const struct takt_actuate_request *request, struct takt_boot now,
		       struct takt_actuate_reply *ret)
{
	const struct takt_lease *lease = takt_leases_find(&actuator->leases, request->lease_id);
	struct takt_actuator_waiting *place;
	struct takt_err err;
	uint32_t gpu;

	if (!lease) {
		takt_err_set(&err, -TAKT_E_NOT_FOUND, "no lease %llu: it ran out or never was",
			     (unsigned long long)request->lease_id);
		return fail(ret, &err);
	}
	place = free_place(actuator, &err);
	if (!place)
		return fail(ret, &err);
	gpu = lease->gpu;
	end_lease(actuator, lease->id, gpu, now);
	wait_for(actuator, place, connection, 1ull << gpu, gpu, ret);
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

static int may_not_set(struct takt_err *err)
{
	return takt_err_set(
		err, -EPERM,
		"this takt may set no clocks and no power limits (set_clocks = no); root "
		"allows it: takt init --clocks yes");
}

/* A cap that one of the GPUs cannot take is set on none. */
static int may_order(const struct takt_actuator *actuator,
		     const struct takt_actuate_request *request, int only, struct takt_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < actuator->keeper.gpu_count; i++)
		if (request->op == TAKT_ACTUATE_CAP && (only < 0 || (uint32_t)only == i))
			rc = takt_keeper_may_cap(&actuator->keeper, i, request->power_limit_mw,
						 err);
	return rc;
}

/* What RESET and CAP do to one GPU. */
static int order(struct takt_actuator *actuator, const struct takt_actuate_request *request,
		 uint32_t gpu, struct takt_boot now, struct takt_err *err)
{
	if (request->op == TAKT_ACTUATE_CAP)
		return takt_keeper_cap(&actuator->keeper, gpu, request->power_limit_mw, now, err);
	takt_leases_drop_gpu(&actuator->leases, gpu);
	takt_keeper_reset(&actuator->keeper, gpu, now);
	return 0;
}

/* Every cap and MIG layout of the file can be set, or nothing of it is. */
static int may_declare(const struct takt_actuator *actuator, const struct takt_baseline *next,
		       struct takt_err *err)
{
	const struct takt_keeper *keeper = &actuator->keeper;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < keeper->gpu_count; i++) {
		uint32_t cap_mw = takt_baseline_cap_of(next, keeper->gpus[i].facts->uuid);

		if (cap_mw)
			rc = takt_keeper_may_declare_cap(keeper, i, cap_mw, err);
		if (rc == 0 && takt_baseline_mig_of(next, keeper->gpus[i].facts->uuid)[0])
			rc = takt_keeper_mig_may(keeper, i, err);
	}
	return rc;
}

static void declare(struct takt_actuator *actuator, const struct takt_baseline *next,
		    struct takt_boot now)
{
	struct takt_keeper *keeper = &actuator->keeper;
	struct takt_baseline_rule was[TAKT_ACTUATE_MAX_GPUS];

	for (uint32_t i = 0; i < keeper->gpu_count; i++)
		was[i] = takt_baseline_of(actuator->baseline, keeper->gpus[i].facts->uuid);
	*actuator->baseline = *next;
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		uint32_t cap_mw = takt_baseline_cap_of(next, keeper->gpus[i].facts->uuid);

		takt_keeper_declare(keeper, i, &was[i], now);
		if (cap_mw)
			(void)takt_keeper_cap(keeper, i, cap_mw, now, NULL);
	}
}

int takt_actuator_declare(struct takt_actuator *actuator, const char *declared_path,
			  struct takt_boot now, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_baseline *next = takt_zalloc(sizeof(*next));
	bool declared;
	int rc;

	if (!next)
		return takt_err_set(err, -ENOMEM, "read the baseline");
	rc = takt_baseline_load_declared(actuator->keeper.sys, declared_path,
					 actuator->baseline_path, next, &declared, err);
	if (rc == 0 && declared && actuator->sets_nothing)
		rc = may_not_set(err);
	if (rc == 0)
		rc = may_declare(actuator, next, err);
	if (rc < 0)
		return rc;
	actuator->keeper.declared = declared;
	declare(actuator, next, now);
	return 0;
}

static bool handle_mig(struct takt_actuator *actuator, uint64_t connection,
		       const struct takt_actuate_request *request, struct takt_boot now,
		       struct takt_actuate_reply *ret)
{
	struct takt_actuator_waiting *place;
	struct takt_err err;
	int gpu = find_gpu(actuator, request->uuid, &err);

	if (gpu < 0)
		return fail(ret, &err);
	place = free_place(actuator, &err);
	if (!place ||
	    takt_keeper_mig_set(&actuator->keeper, (uint32_t)gpu, request->mig, now, &err) < 0)
		return fail(ret, &err);
	wait_for(actuator, place, connection, 1ull << gpu, (uint32_t)gpu, ret);
	return false;
}

/* Waits until every GPU is settled, as far as an answer is known of it. */
static bool handle_declare(struct takt_actuator *actuator, uint64_t connection,
			   struct takt_boot now, struct takt_actuate_reply *ret)
{
	uint32_t count = actuator->keeper.gpu_count;
	struct takt_actuator_waiting *place;
	struct takt_err err;

	place = free_place(actuator, &err);
	if (!place || takt_actuator_declare(actuator, actuator->declared_path, now, &err) < 0)
		return fail(ret, &err);
	if (count == 0)
		return true;
	wait_for(actuator, place, connection, UINT64_MAX >> (64 - count), 0, ret);
	return false;
}

/* An administrator's order to one GPU or all. */
static bool handle_order(struct takt_actuator *actuator, uint64_t connection,
			 const struct takt_actuate_request *request, struct takt_boot now,
			 struct takt_actuate_reply *ret)
{
	struct takt_actuator_waiting *place;
	struct takt_err err;
	uint64_t gpus = 0;
	int only = -1;

	if (request->uuid[0])
		only = find_gpu(actuator, request->uuid, &err);
	if ((request->uuid[0] && only < 0) || may_order(actuator, request, only, &err) < 0)
		return fail(ret, &err);
	place = free_place(actuator, &err);
	if (!place)
		return fail(ret, &err);
	for (uint32_t i = 0; i < actuator->keeper.gpu_count; i++) {
		if (only >= 0 && (uint32_t)only != i)
			continue;
		if (order(actuator, request, i, now, &err) < 0)
			return fail(ret, &err);
		gpus |= 1ull << i;
	}
	if (gpus == 0)
		return true;
	wait_for(actuator, place, connection, gpus, only >= 0 ? (uint32_t)only : 0, ret);
	return false;
}

/* What puts things back is done all the same. */
static bool changes_something(const struct takt_actuate_request *request)
{
	switch (request->op) {
	case TAKT_ACTUATE_SET:
		return true;
	case TAKT_ACTUATE_CPU:
		return request->ttl_ns != 0;
	case TAKT_ACTUATE_CAP:
		return request->power_limit_mw != 0;
	case TAKT_ACTUATE_MIG:
		return request->mig[0] != '\0';
	default:
		return false;
	}
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
	if (!memchr(request->uuid, '\0', sizeof(request->uuid)) ||
	    !memchr(request->mig, '\0', sizeof(request->mig))) {
		takt_err_set(&err, -EINVAL, "a text of the request has no end");
		return fail(ret, &err);
	}
	if (actuator->sets_nothing && changes_something(request)) {
		may_not_set(&err);
		return fail(ret, &err);
	}
	switch (request->op) {
	case TAKT_ACTUATE_HELLO:
		return true;
	case TAKT_ACTUATE_SET:
		return handle_set(actuator, connection, request, now, ret);
	case TAKT_ACTUATE_CPU:
		return handle_cpu(actuator, request, now, ret);
	case TAKT_ACTUATE_RENEW:
		return handle_renew(actuator, connection, request, now, ret);
	case TAKT_ACTUATE_END:
		return handle_end(actuator, connection, request, now, ret);
	case TAKT_ACTUATE_STATUS:
		return handle_status(actuator, request, ret);
	case TAKT_ACTUATE_RESET:
	case TAKT_ACTUATE_CAP:
		return handle_order(actuator, connection, request, now, ret);
	case TAKT_ACTUATE_DECLARE:
		return handle_declare(actuator, connection, now, ret);
	case TAKT_ACTUATE_MIG:
		return handle_mig(actuator, connection, request, now, ret);
	default:
		takt_err_set(&err, -EINVAL, "no request has number %u", request->op);
		return fail(ret, &err);
	}
}

bool takt_actuator_message(struct takt_actuator *actuator, uint64_t connection, const void *bytes,
			   size_t size, struct takt_boot now, struct takt_actuate_reply *ret)
{
	struct takt_actuate_request request;
	struct takt_err err;

	if (size == sizeof(request)) {
		memcpy(&request, bytes, sizeof(request));
		return takt_actuator_request(actuator, connection, &request, now, ret);
	}
	*ret = (struct takt_actuate_reply){.version = TAKT_ACTUATE_VERSION};
	takt_err_set(&err, -TAKT_E_VERSION, "a request is %zu bytes in version %d, not %zu",
		     sizeof(request), TAKT_ACTUATE_VERSION, size);
	return fail(ret, &err);
}

/* Whether the lease that a SET waits for is gone, or was asked for otherwise meanwhile. */
static bool is_overtaken(const struct takt_actuator *actuator,
			 const struct takt_actuator_waiting *place)
{
	const struct takt_lease *lease = takt_leases_find(&actuator->leases, place->lease_id);

	return place->lease_id != 0 && (!lease || lease->number != place->lease_number);
}

/* The same for how a GPU is cut; true when that is settled. */
static bool look_at_mig(struct takt_actuator_waiting *place, const struct takt_keeper_mig *mig,
			uint32_t index)
{
	if (mig->settled && mig->outcome.rc < 0 && place->reply.rc == 0) {
		fail(&place->reply, &mig->outcome);
		place->gpu = index;
	}
	return mig->settled;
}

/* Takes GPU `index` off the waiting request if it is settled, or was wished something else. */
static void look_at(struct takt_actuator *actuator, struct takt_actuator_waiting *place,
		    uint32_t index)
{
	const struct takt_keeper_gpu *gpu = &actuator->keeper.gpus[index];
	struct takt_err gone;

	if ((place->reply.op == TAKT_ACTUATE_MIG || place->reply.op == TAKT_ACTUATE_DECLARE) &&
	    !look_at_mig(place, &gpu->mig, index))
		return;
	if (place->reply.op == TAKT_ACTUATE_MIG) {
		/* The clocks of this GPU are not this request's concern. */
	} else if (gpu->settled && gpu->outcome.rc < 0) {
		if (place->reply.rc == 0) {
			fail(&place->reply, &gpu->outcome);
			place->gpu = index;
		}
	} else if (is_overtaken(actuator, place)) {
		takt_err_set(&gone, -ECANCELED,
			     "the lease ended or was changed before it was applied");
		fail(&place->reply, &gone);
	} else if (place->lease_id == 0 && gpu->wish.knobs) {
		/* The lease did end; what others still want is not this request's concern. */
	} else if (!gpu->settled) {
		return;
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

/* The keeper gave a wish up (the driver will never take it): then there is no lease either. */
static void drop_given_up(struct takt_actuator *actuator)
{
	const struct takt_lease *lease;

	for (uint32_t i = 0; i < actuator->keeper.gpu_count; i++) {
		if (takt_leases_demand(&actuator->leases, i, &lease).knobs &&
		    actuator->keeper.gpus[i].wish.knobs == 0)
			takt_leases_drop_gpu(&actuator->leases, i);
	}
}

struct takt_boot takt_actuator_step(struct takt_actuator *actuator, struct takt_boot now)
{
	const struct takt_lease *lease;
	struct takt_boot work, expiry;

	while ((lease = takt_leases_expired(&actuator->leases, now))) {
		takt_actuate_say(&actuator->keeper.log, "%s: the lease of job %llu ran out",
				 actuator->keeper.gpus[lease->gpu].facts->uuid,
				 (unsigned long long)lease->job_id);
		end_lease(actuator, lease->id, lease->gpu, now);
	}
	work = takt_keeper_step(&actuator->keeper, now);
	drop_given_up(actuator);
	expiry = takt_leases_next_expiry(&actuator->leases);
	return expiry.ns < work.ns ? expiry : work;
}

void takt_actuator_end_all(struct takt_actuator *actuator, struct takt_boot now)
{
	(void)takt_keeper_cpu_set(&actuator->keeper, 0, 0, now, NULL);
	for (uint32_t i = 0; i < actuator->keeper.gpu_count; i++) {
		takt_leases_drop_gpu(&actuator->leases, i);
		takt_keeper_restore(&actuator->keeper, i, now);
		takt_keeper_mig_end(&actuator->keeper, i, now);
	}
}

void takt_actuator_forget(struct takt_actuator *actuator, uint64_t connection)
{
	for (uint32_t i = 0; i < TAKT_ACTUATOR_WAITING; i++) {
		if (actuator->waiting[i].connection == connection)
			actuator->waiting[i].connection = 0;
	}
}

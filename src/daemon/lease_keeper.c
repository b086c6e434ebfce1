/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock leases from the daemon's side: who wants which range on which GPU, kept true over the
 * actuator's socket. The wanted leases live here, one for each job and GPU and an administrator's
 * beside them; the actuator decides what they come to, applies that, and forgets them when they are
 * not renewed. When the actuator was away, what is wanted is asked for again and the gap is said.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actuate/actuate.h"
#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/gpu_mig.h"
#include "daemon/lease_impl.h"

static const uint64_t ttl_ns = 30 * TAKT_NS_PER_S;
static const uint64_t renew_ns = 8 * TAKT_NS_PER_S;
static const uint64_t status_ns = 2 * TAKT_NS_PER_S;
static const uint64_t status_soon_ns = 250 * TAKT_NS_PER_MS; /* while a lease waits */
static const uint64_t answer_ns = 5 * TAKT_NS_PER_S;
static const struct takt_pace reconnects = {20 * TAKT_NS_PER_MS, TAKT_NS_PER_S};
static const uint64_t grace_ns =
	5 * TAKT_NS_PER_S; /* away for less than this is not worth a word */

int takt_leases_new(struct takt_daemon *daemon, struct takt_lease_keeper **ret,
		    struct takt_err *err)
{
	struct takt_lease_keeper *leases = takt_zalloc(sizeof(*leases));

	if (!leases)
		return takt_err_set(err, -ENOMEM, "clock leases");
	leases->daemon = daemon;
	leases->next_seq = 1;
	leases->lost_at = takt_boot_now(daemon->sys);
	*ret = leases;
	return 0;
}

void takt_leases_free(struct takt_lease_keeper *leases)
{
	if (!leases)
		return;
	takt_actuate_client_free(leases->client);
	takt_free(leases);
}

int takt_leases_fd(const struct takt_lease_keeper *leases)
{
	return leases->client ? takt_actuate_fd(leases->client) : -1;
}

bool takt_leases_journal(const struct takt_lease_keeper *leases, uint64_t *ret_device,
			 uint64_t *ret_inode)
{
	*ret_device = leases->journal_device;
	*ret_inode = leases->journal_inode;
	return leases->journal_inode != 0;
}

static const char *uuid_of(const struct takt_lease_keeper *leases, uint32_t gpu)
{
	return takt_machine_facts(leases->daemon->machine, gpu)->uuid;
}

/* Unique for ever and the same after a restart: job and GPU; the top bit marks an administrator's.
 */
static uint64_t lease_id(uint64_t job_id, uint32_t gpu)
{
	return job_id ? job_id << 8 | gpu : 1ull << 63 | gpu;
}

static void try_later(struct takt_lease_keeper *leases, struct takt_boot now)
{
	leases->connect_at = takt_boot_add(now, takt_pace_ns(&reconnects, leases->failures++));
}

static void disconnect(struct takt_lease_keeper *leases, struct takt_boot now)
{
	takt_actuate_client_free(leases->client);
	leases->client = NULL;
	leases->journal_inode = 0;
	leases->lost_at = now;
	try_later(leases, now);
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++)
		leases->gpu[gpu].known = false;
}

static uint64_t send_op(struct takt_lease_keeper *leases, struct takt_actuate_request request)
{
	uint64_t seq = leases->next_seq++;

	request.version = TAKT_ACTUATE_VERSION;
	request.seq = seq;
	if (!leases->client || takt_actuate_send(leases->client, request, NULL) < 0)
		return 0;
	return seq;
}

uint64_t takt_leases_send(struct takt_lease_keeper *leases,
			  const struct takt_actuate_request request)
{
	return send_op(leases, request);
}

struct lease *takt_lease_find(const struct takt_lease_keeper *leases, uint32_t gpu, uint64_t job_id)
{
	for (uint32_t i = 0; i < leases->lease_count; i++) {
		const struct lease *lease = &leases->lease[i];

		if (lease->gpu == gpu && lease->job_id == job_id)
			return (struct lease *)lease;
	}
	return NULL;
}

/* The lease of this job there, or a place for it; NULL when all are taken. */
static struct lease *place_for(struct takt_lease_keeper *leases, uint32_t gpu, uint64_t job_id)
{
	struct lease *lease = takt_lease_find(leases, gpu, job_id);

	for (uint32_t i = 0; !lease && i < leases->lease_count; i++)
		if (!leases->lease[i].wanted && leases->lease[i].answered)
			lease = &leases->lease[i];
	if (!lease && leases->lease_count < MAX_LEASES)
		lease = &leases->lease[leases->lease_count++];
	return lease;
}

static void send_set(struct takt_lease_keeper *leases, struct lease *lease)
{
	struct takt_actuate_request request = {
		.op = TAKT_ACTUATE_SET,
		.lease_id = lease_id(lease->job_id, lease->gpu),
		.job_id = lease->job_id,
		.ttl_ns = ttl_ns,
		.rank = lease->benchmark ? TAKT_ACTUATE_RANK_BENCHMARK
			: lease->job_id	 ? TAKT_ACTUATE_RANK_JOB
					 : TAKT_ACTUATE_RANK_STANDING,
		.power_limit_mw = lease->power_limit_mw,
		.mem_min_mhz = lease->mem_min_mhz,
		.mem_max_mhz = lease->mem_max_mhz,
		.min_mhz = lease->min_mhz,
		.max_mhz = lease->max_mhz,
		.assume_unlocked = lease->assume_unlocked || leases->daemon->config.assume_unlocked,
	};

	takt_strcpy(request.uuid, sizeof(request.uuid), uuid_of(leases, lease->gpu));
	lease->answered = false;
	lease->seq = send_op(leases, request);
}

/* It is wanted no more; how that ends is still listened for. */
static void let_go(struct takt_lease_keeper *leases, struct lease *lease,
		   struct takt_actuate_request request)
{
	lease->wanted = false;
	lease->rc = 0;
	lease->seq = send_op(leases, request);
	lease->answered = lease->seq == 0;
	leases->status_at = (struct takt_boot){0};
}

void takt_lease_end(struct takt_lease_keeper *leases, struct lease *lease)
{
	let_go(leases, lease,
	       (struct takt_actuate_request){.op = TAKT_ACTUATE_END,
					     .lease_id = lease_id(lease->job_id, lease->gpu)});
}

void takt_lease_want(struct takt_lease_keeper *leases, uint32_t gpu, uint64_t job_id,
		     struct lease wish)
{
	struct lease *lease = place_for(leases, gpu, job_id);

	if (!lease)
		return;
	wish.wanted = true;
	wish.gpu = gpu;
	wish.job_id = job_id;
	*lease = wish;
	send_set(leases, lease);
}

static bool all_answered(const struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id)
{
	for (uint32_t i = 0; i < leases->lease_count; i++) {
		const struct lease *lease = &leases->lease[i];

		if (lease->job_id == job_id && (gpu_mask >> lease->gpu & 1) && !lease->answered)
			return false;
	}
	return true;
}

/* What holds there, which of those who share a GPU is what the most demanding wants. */
static void describe_applied(const struct lease *lease, const struct gpu_state *state, char *buf,
			     size_t size)
{
	char clock[64] = "", power[48] = "";

	if (state->applied_max_mhz)
		snprintf(clock, sizeof(clock), "SM clock within [%u, %u] MHz",
			 state->applied_min_mhz, state->applied_max_mhz);
	if (state->applied_power_mw)
		snprintf(power, sizeof(power), "power limit %u W", state->applied_power_mw / 1000);
	if (clock[0] || power[0])
		snprintf(buf, size, "%s%s%s", clock, clock[0] && power[0] ? ", " : "", power);
	else
		snprintf(buf, size, "nothing is limited: GPU %u %s", lease->gpu,
			 lease->max_mhz || lease->power_limit_mw
				 ? "is at what another one there wants"
				 : "has no higher limit by itself");
}

/* A clock waits, or is advice; the limit beside it may be set for all that. */
static void describe_waiting(const struct lease *lease, const struct gpu_state *state, char *buf,
			     size_t size)
{
	char power[48] = "";

	if (lease->power_limit_mw && state->applied_power_mw)
		snprintf(power, sizeof(power), "power limit %u W, ",
			 state->applied_power_mw / 1000);
	snprintf(buf, size, "GPU %u: %s%s", lease->gpu, power, lease->message);
}

/* "SM clock within [210, 1410] MHz, power limit 300 W", or why not. */
static void describe(const struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		     char *buf, size_t size)
{
	buf[0] = '\0';
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		const struct lease *lease = takt_lease_find(leases, gpu, job_id);
		const struct gpu_state *state = &leases->gpu[gpu];
		size_t used = strlen(buf);

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (!lease || !lease->answered)
			snprintf(buf, size, "not applied: the actuator did not answer");
		else if (lease->rc == -EAGAIN || (lease->rc == -EPERM && state->applied_power_mw))
			describe_waiting(lease, state, buf, size);
		else if (lease->rc < 0)
			snprintf(buf, size, "not applied on GPU %u: %s", gpu, lease->message);
		else if (used == 0)
			describe_applied(lease, state, buf, size);
		if (lease && lease->rc == 0 && lease->power_limit_mw > lease->power_asked_mw &&
		    lease->power_asked_mw && !strstr(buf, "takes no less"))
			snprintf(buf + strlen(buf), size - strlen(buf),
				 "; GPU %u takes no less than %u W", gpu,
				 lease->power_limit_mw / 1000);
		if (lease && lease->gap_ns && lease->rc == 0 && !strstr(buf, "gap"))
			snprintf(buf + strlen(buf), size - strlen(buf),
				 ", with a gap of %llu ms while the actuator was away",
				 (unsigned long long)(lease->gap_ns / TAKT_NS_PER_MS));
	}
}

static void finish_preparing(struct takt_lease_keeper *leases, struct takt_boot now)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(leases->preparing); i++) {
		uint64_t job_id = leases->preparing[i].job_id;
		char note[200];

		if (!job_id || (!all_answered(leases, leases->preparing[i].gpu_mask, job_id) &&
				now.ns < leases->preparing[i].deadline.ns))
			continue;
		describe(leases, leases->preparing[i].gpu_mask, job_id, note, sizeof(note));
		leases->preparing[i].job_id = 0;
		takt_queue_prepared(leases->daemon->queue, job_id, note);
	}
}

void takt_leases_answer(struct takt_lease_keeper *leases, struct takt_pending *pending)
{
	struct takt_clock_view *view = takt_zalloc(sizeof(*view));
	struct takt_str json = TAKT_STR(TAKT_VIEW_MAX_BYTES);
	struct takt_err err;

	takt_err_set(&err, -ENOMEM, "the answer");
	if (!view || takt_api_clocks(leases->daemon, view, &err) < 0 ||
	    takt_clock_view_to_json(view, &json) < 0)
		takt_pending_error(pending, &err);
	else
		takt_pending_json(pending, 200, takt_str_text(&json), json.len);
	takt_str_fini(&json);
	takt_free(view);
}

/* An administrator is told no rather than that his wish may come true some day; he is who knows
 * whether somebody has locked an idle GPU. A job's wish waits for its load. */
static bool is_refused(const struct lease *lease)
{
	return lease->answered && lease->rc < 0 && (lease->rc != -EAGAIN || lease->job_id == 0);
}

/* The first refusal among the GPUs of a mask, or 0. */
static int first_refusal(const struct takt_lease_keeper *leases, const struct pending_set *set,
			 struct takt_err *err)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		const struct lease *lease = takt_lease_find(leases, gpu, set->job_id);

		if ((set->gpu_mask >> gpu & 1) && lease && is_refused(lease))
			return takt_err_set(err,
					    lease->rc == -EAGAIN ? -TAKT_E_CONFLICT : lease->rc,
					    "GPU %u: %s", gpu, lease->message);
	}
	return 0;
}

/* A "clock set" that failed on one GPU holds on none. What is not wanted any more (a reset) stays
 * so. */
static void withdraw(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct lease *lease = takt_lease_find(leases, gpu, job_id);
		const struct gpu_state *state = &leases->gpu[gpu];

		if (!(gpu_mask >> gpu & 1) || !lease || !lease->wanted)
			continue;
		if (job_id == 0 && state->was.wanted)
			takt_lease_want(leases, gpu, 0, state->was);
		else
			takt_lease_end(leases, lease);
	}
}

static void no_answer(const struct takt_lease_keeper *leases, const struct pending_set *set,
		      struct takt_err *err)
{
	const struct lease *lease;
	uint32_t gpu = 0;

	while (!(set->gpu_mask >> gpu & 1) ||
	       !(lease = takt_lease_find(leases, gpu, set->job_id)) || lease->answered)
		gpu++; /* there is one */
	takt_err_set(err, -ETIMEDOUT, "GPU %u: the %s did not answer in time", gpu,
		     leases->client ? "driver" : "actuator");
}

static void finish_pendings(struct takt_lease_keeper *leases, struct takt_boot now)
{
	for (size_t i = 0; i < MAX_PENDING; i++) {
		struct pending_set set = leases->pendings[i];
		bool answered = set.pending && all_answered(leases, set.gpu_mask, set.job_id);
		struct takt_err err = {0};

		if (!set.pending || (!answered && now.ns < set.deadline.ns))
			continue;
		leases->pendings[i].pending = NULL;
		if (!answered)
			no_answer(leases, &set, &err);
		if (err.rc < 0 || first_refusal(leases, &set, &err) < 0) {
			withdraw(leases, set.gpu_mask, set.job_id);
			takt_pending_error(set.pending, &err);
		} else {
			takt_leases_answer(leases, set.pending);
		}
	}
}

static void forget_pending(void *slot)
{
	((struct pending_set *)slot)->pending = NULL;
}

static void hold_pending(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
			 struct takt_pending *pending)
{
	struct takt_boot now = takt_boot_now(leases->daemon->sys);
	struct takt_err err;

	for (size_t i = 0; i < MAX_PENDING; i++) {
		struct pending_set *slot = &leases->pendings[i];

		if (slot->pending)
			continue;
		*slot = (struct pending_set){pending, gpu_mask, job_id, {now.ns + answer_ns}};
		takt_pending_set_cancel(pending, forget_pending, slot);
		finish_pendings(leases, now);
		return;
	}
	withdraw(leases, gpu_mask, job_id);
	takt_err_set(&err, -TAKT_E_BUSY, "%d clock requests are under way; ask again", MAX_PENDING);
	takt_pending_error(pending, &err);
}

/* The actuator has forgotten the leases that we want there (they were not renewed in time: the
 * machine slept): ask again. */
static void ask_if_forgotten(struct takt_lease_keeper *leases, uint32_t gpu,
			     const struct takt_actuate_reply *reply, struct takt_boot now)
{
	for (uint32_t i = 0; reply->lease_id == 0 && i < leases->lease_count; i++) {
		struct lease *lease = &leases->lease[i];

		if (lease->gpu != gpu || !lease->wanted || !lease->answered ||
		    (lease->rc != 0 && lease->rc != -EAGAIN))
			continue;
		if (now.ns - leases->heard_at.ns > lease->gap_ns)
			lease->gap_ns = now.ns - leases->heard_at.ns;
		send_set(leases, lease);
	}
}

/* Whether we want the lease that decides there, or are about to know. */
static bool is_wanted(const struct takt_lease_keeper *leases, uint32_t gpu, uint64_t id)
{
	for (uint32_t i = 0; i < leases->lease_count; i++) {
		const struct lease *lease = &leases->lease[i];
		bool under_way = lease->seq != 0 && !lease->answered;

		if (lease->gpu == gpu &&
		    (under_way || (lease->wanted && lease_id(lease->job_id, gpu) == id)))
			return true;
	}
	return false;
}

/*
 * The actuator holds a lease that we do not want: asked for by a daemon that was killed before its
 * job's attempt was on disk. Nobody else would end it before it runs out, and it may outbid others.
 */
static void end_unwanted(struct takt_lease_keeper *leases, uint32_t gpu,
			 const struct takt_actuate_reply *reply)
{
	if (reply->lease_id == 0 || is_wanted(leases, gpu, reply->lease_id))
		return;
	send_op(leases,
		(struct takt_actuate_request){.op = TAKT_ACTUATE_END, .lease_id = reply->lease_id});
	leases->status_at = (struct takt_boot){0};
}

/* What the actuator says of a GPU, in whatever reply it says it. */
static void note_state(struct gpu_state *state, const struct takt_actuate_reply *reply)
{
	state->known = true;
	state->state = reply->gpu_state;
	state->job_id = reply->job_id;
	state->applied_min_mhz = reply->applied_min_mhz;
	state->applied_max_mhz = reply->applied_max_mhz;
	state->applied_mem_min_mhz = reply->applied_mem_min_mhz;
	state->applied_mem_max_mhz = reply->applied_mem_max_mhz;
	state->applied_power_mw = reply->applied_power_mw;
	state->power_touched = state->power_touched || reply->applied_power_mw;
	state->cap_power_mw = reply->cap_power_mw;
	state->base_min_mhz = reply->base_min_mhz;
	state->base_max_mhz = reply->base_max_mhz;
	state->base_power_mw = reply->base_power_mw;
	takt_strcpy(state->message, sizeof(state->message), reply->message);
}

/* What a lease waited for, or was advice for want of, may have come since. */
static void follow(struct lease *lease, const struct takt_actuate_reply *reply)
{
	if (!lease->wanted || !lease->answered || (lease->rc != -EAGAIN && lease->rc != -EPERM))
		return;
	if (reply->gpu_state == TAKT_ACTUATE_LEASED && (reply->applied_max_mhz || !lease->max_mhz))
		lease->rc = 0;
	else if (reply->gpu_state == TAKT_ACTUATE_WAITING)
		lease->rc = -EAGAIN;
	else if (reply->gpu_state == TAKT_ACTUATE_ADVISE)
		lease->rc = -EPERM;
	else
		return;
	takt_strcpy(lease->message, sizeof(lease->message), reply->message);
}

static void take_status(struct takt_lease_keeper *leases, const struct takt_actuate_reply *reply,
			struct takt_boot now)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		if (strcmp(uuid_of(leases, gpu), reply->uuid) != 0)
			continue;
		note_state(&leases->gpu[gpu], reply);
		for (uint32_t i = 0; i < leases->lease_count; i++)
			if (leases->lease[i].gpu == gpu)
				follow(&leases->lease[i], reply);
		ask_if_forgotten(leases, gpu, reply, now);
		end_unwanted(leases, gpu, reply);
	}
}

static void take_answer(struct takt_lease_keeper *leases, const struct takt_actuate_reply *reply)
{
	for (uint32_t i = 0; i < leases->lease_count; i++) {
		struct lease *lease = &leases->lease[i];

		if (lease->seq != reply->seq)
			continue;
		lease->answered = true;
		lease->rc = reply->rc;
		takt_strcpy(lease->message, sizeof(lease->message), reply->message);
		if ((reply->rc == 0 || reply->rc == -EAGAIN || reply->rc == -TAKT_E_CONFLICT) &&
		    strcmp(uuid_of(leases, lease->gpu), reply->uuid) == 0)
			note_state(&leases->gpu[lease->gpu], reply);
	}
	leases->status_at = (struct takt_boot){0};
}

static void take_reply(struct takt_lease_keeper *leases, const struct takt_actuate_reply *reply,
		       struct takt_boot now)
{
	if (reply->journal_inode) {
		leases->journal_device = reply->journal_device;
		leases->journal_inode = reply->journal_inode;
	}
	if (reply->op == TAKT_ACTUATE_STATUS) {
		leases->failures = 0;
		take_status(leases, reply, now);
	}
	takt_mig_heard(leases->daemon->mig, reply);
	if (!takt_clock_admin_take(leases->daemon->clock_admin, reply) &&
	    reply->op != TAKT_ACTUATE_STATUS)
		take_answer(leases, reply);
}

static void receive(struct takt_lease_keeper *leases, struct takt_boot now)
{
	struct takt_actuate_reply reply;
	int rc;

	while (leases->client && (rc = takt_actuate_recv(leases->client, &reply, NULL)) != 0) {
		if (rc < 0)
			disconnect(leases, now);
		else
			take_reply(leases, &reply, now);
	}
	leases->heard_at = now;
}

static void ask_again(struct takt_lease_keeper *leases, struct takt_boot now)
{
	for (uint32_t i = 0; i < leases->lease_count; i++) {
		struct lease *lease = &leases->lease[i];

		lease->answered = lease->answered || !lease->wanted; /* its answer never comes */
		if (!lease->wanted)
			continue;
		if (leases->was_connected && now.ns - leases->lost_at.ns > lease->gap_ns)
			lease->gap_ns = now.ns - leases->lost_at.ns;
		send_set(leases, lease);
	}
}

static void try_connect(struct takt_lease_keeper *leases, struct takt_boot now)
{
	if (leases->client || now.ns < leases->connect_at.ns ||
	    !leases->daemon->actuate.socket_path[0])
		return;
	if (takt_actuate_connect(leases->daemon->actuate.socket_path, &leases->client, NULL) < 0) {
		leases->client = NULL;
		try_later(leases, now);
		return;
	}
	ask_again(leases, now);
	leases->was_connected = true;
	leases->status_at = (struct takt_boot){0};
}

static bool any_waits(const struct takt_lease_keeper *leases)
{
	for (uint32_t i = 0; i < leases->lease_count; i++)
		if (leases->lease[i].wanted && leases->lease[i].rc == -EAGAIN)
			return true;
	return false;
}

static void send_due(struct takt_lease_keeper *leases, struct takt_boot now)
{
	if (!leases->client)
		return;
	if (now.ns >= leases->renew_at.ns) {
		send_op(leases,
			(struct takt_actuate_request){.op = TAKT_ACTUATE_RENEW, .ttl_ns = ttl_ns});
		leases->renew_at = (struct takt_boot){now.ns + renew_ns};
	}
	if (now.ns >= leases->status_at.ns) {
		for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
			struct takt_actuate_request request = {.op = TAKT_ACTUATE_STATUS,
							       .gpu_index = gpu};

			takt_strcpy(request.uuid, sizeof(request.uuid), uuid_of(leases, gpu));
			send_op(leases, request);
		}
		leases->status_at =
			takt_boot_add(now, any_waits(leases) ? status_soon_ns : status_ns);
	}
}

void takt_leases_pump(struct takt_lease_keeper *leases, struct takt_boot now, uint64_t *ret_next_ns)
{
	try_connect(leases, now);
	receive(leases, now);
	send_due(leases, now);
	finish_preparing(leases, now);
	finish_pendings(leases, now);
	*ret_next_ns = leases->client ? leases->status_at.ns : leases->connect_at.ns;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(leases->preparing); i++)
		if (leases->preparing[i].job_id && leases->preparing[i].deadline.ns < *ret_next_ns)
			*ret_next_ns = leases->preparing[i].deadline.ns;
	takt_clock_admin_tick(leases->daemon->clock_admin, now, ret_next_ns);
}

/* Lowest clock of a GPU's list; 0 when the list is not known. */
static uint32_t lowest_mhz(const struct takt_lease_keeper *leases, uint32_t gpu)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(leases->daemon->machine, gpu);

	return (facts->has & TAKT_FACT_SM_CLOCKS) && facts->sm_clock_count ? facts->sm_clocks_mhz[0]
									   : 0;
}

/* Boards differ, and what one of them takes another may refuse. */
static uint32_t at_least(const struct takt_gpu_facts *facts, uint32_t limit_mw)
{
	return limit_mw && limit_mw < facts->power_min_mw ? facts->power_min_mw : limit_mw;
}

uint32_t takt_lease_power(const struct takt_lease_keeper *leases, uint32_t gpu, uint32_t limit_mw)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(leases->daemon->machine, gpu);

	if (!(facts->has & TAKT_FACT_POWER_LIMITS))
		return limit_mw;
	return limit_mw >= facts->power_default_mw ? 0 : at_least(facts, limit_mw);
}

/* The limit that the board has without us is known, and no higher. What it says of itself is that
 * only where takt has set none, which may have been read just before it was put back, and where no
 * cap may be lifted while the job runs. */
static bool has_no_more(const struct takt_lease_keeper *leases, uint32_t gpu, uint32_t limit_mw)
{
	const struct takt_daemon *daemon = leases->daemon;
	const struct gpu_state *state = &leases->gpu[gpu];
	const struct takt_gpu_reading *reading;

	if (!state->known || state->power_touched || state->cap_power_mw ||
	    takt_telemetry_latest(daemon->telemetry, gpu, takt_mono_now(daemon->sys), &reading) < 0)
		return false;
	return !reading->stale && (reading->has & TAKT_HAS_POWER_LIMIT) &&
	       reading->power_limit_mw <= limit_mw;
}

/* A job's limit only lowers. Below the default it is asked for in any case; above it only a board
 * that was raised has more than that, and the actuator never raises. */
static uint32_t job_power(const struct takt_lease_keeper *leases, uint32_t gpu, uint32_t limit_mw)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(leases->daemon->machine, gpu);

	if (!(facts->has & TAKT_FACT_POWER_LIMITS))
		return limit_mw;
	if (limit_mw >= facts->power_default_mw && has_no_more(leases, gpu, limit_mw))
		return 0;
	return at_least(facts, limit_mw < facts->power_max_mw ? limit_mw : facts->power_max_mw);
}

bool takt_lease_is_due(const struct takt_queue_job *job)
{
	return takt_jobspec_sets_gpus(&job->spec) || job->spec.mig[0] ||
	       job->row.share_milli < TAKT_REQUEST_WHOLE;
}

static void want_job(struct takt_lease_keeper *leases, const struct takt_queue_job *job)
{
	const struct takt_jobspec *spec = &job->spec;

	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct lease wish = {
			.power_limit_mw = job_power(leases, gpu, spec->power_limit_mw),
			.power_asked_mw = spec->power_limit_mw,
		};

		if (!(job->row.gpu_mask >> gpu & 1))
			continue;
		if (spec->clock_ask != TAKT_CLOCK_ASK_NONE)
			wish.max_mhz = spec->clock_mhz;
		if (spec->clock_ask == TAKT_CLOCK_ASK_CEILING)
			wish.min_mhz = lowest_mhz(leases, gpu);
		else
			wish.min_mhz = wish.max_mhz;
		takt_lease_want(leases, gpu, job->row.id, wish);
	}
}

void takt_leases_job_start(struct takt_lease_keeper *leases, const struct takt_queue_job *job)
{
	struct takt_boot now = takt_boot_now(leases->daemon->sys);

	if (takt_lease_is_due(job))
		want_job(leases, job);
	if (!takt_jobspec_sets_gpus(&job->spec) || job->row.gpu_mask == 0) {
		takt_queue_prepared(leases->daemon->queue, job->row.id, "");
		return;
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(leases->preparing); i++) {
		if (leases->preparing[i].job_id)
			continue;
		leases->preparing[i].job_id = job->row.id;
		leases->preparing[i].gpu_mask = job->row.gpu_mask;
		leases->preparing[i].deadline = (struct takt_boot){now.ns + answer_ns};
		return; /* there are as many slots as GPUs, and a GPU is promised once */
	}
}

void takt_leases_job_adopt(struct takt_lease_keeper *leases, const struct takt_queue_job *job)
{
	if (takt_lease_is_due(job))
		want_job(leases, job);
}

void takt_leases_job_end(struct takt_lease_keeper *leases, const struct takt_queue_job *job)
{
	for (uint32_t i = 0; i < leases->lease_count; i++)
		if (leases->lease[i].wanted && leases->lease[i].job_id == job->row.id)
			takt_lease_end(leases, &leases->lease[i]);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(leases->preparing); i++)
		if (leases->preparing[i].job_id == job->row.id)
			leases->preparing[i].job_id = 0;
}

/* For withdraw. */
static void remember_admin(struct takt_lease_keeper *leases, uint32_t gpu)
{
	const struct lease *lease = takt_lease_find(leases, gpu, 0);

	leases->gpu[gpu].was = lease ? *lease : (struct lease){0};
}

void takt_leases_set(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		     const struct takt_clock_order *ask, struct takt_pending *pending)
{
	const struct takt_queue_job *job =
		job_id ? takt_queue_find(leases->daemon->queue, job_id) : NULL;
	uint32_t own_mw = job ? job->spec.power_limit_mw : 0;

	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		uint32_t min = ask->lock || !ask->max_mhz ? ask->max_mhz : lowest_mhz(leases, gpu);

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (job_id == 0)
			remember_admin(leases, gpu);
		takt_lease_want(
			leases, gpu, job_id,
			(struct lease){.min_mhz = min,
				       .max_mhz = ask->max_mhz,
				       .power_limit_mw = ask->power_limit_mw
								 ? ask->power_limit_mw
								 : job_power(leases, gpu, own_mw),
				       .mem_min_mhz = ask->lock ? ask->mem_mhz : 0,
				       .mem_max_mhz = ask->mem_mhz,
				       .benchmark = ask->benchmark,
				       .assume_unlocked = ask->assume_unlocked});
	}
	hold_pending(leases, gpu_mask, job_id, pending);
}

void takt_leases_end_standing(struct takt_lease_keeper *leases)
{
	for (uint32_t i = 0; i < leases->lease_count; i++)
		if (leases->lease[i].wanted && leases->lease[i].job_id == 0)
			takt_lease_end(leases, &leases->lease[i]);
}

/* Drops everybody's leases there; the answer is the administrator's. */
static void reset_by_admin(struct takt_lease_keeper *leases, uint32_t gpu)
{
	struct lease *own = place_for(leases, gpu, 0);
	struct takt_actuate_request request = {.op = TAKT_ACTUATE_RESET};

	for (uint32_t i = 0; i < leases->lease_count; i++)
		if (leases->lease[i].gpu == gpu && leases->lease[i].wanted)
			leases->lease[i].wanted = false;
	if (!own)
		return;
	*own = (struct lease){.gpu = gpu};
	takt_strcpy(request.uuid, sizeof(request.uuid), uuid_of(leases, gpu));
	let_go(leases, own, request);
	own->answered = false; /* an actuator that is away did not reset it */
}

void takt_leases_reset(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		       struct takt_pending *pending)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct lease *lease = takt_lease_find(leases, gpu, job_id);

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (job_id == 0)
			reset_by_admin(leases, gpu);
		else if (lease && lease->wanted)
			takt_lease_end(leases, lease);
		else
			gpu_mask &= ~(1ull << gpu); /* the job has changed nothing here */
	}
	hold_pending(leases, gpu_mask, job_id, pending);
}

void takt_leases_state(const struct takt_lease_keeper *leases, uint32_t gpu,
		       struct takt_lease_state *ret)
{
	const struct gpu_state *state = &leases->gpu[gpu];

	*ret = (struct takt_lease_state){.state = "unknown"};
	if (!leases->daemon->manages)
		return; /* whoever manages them knows */
	if (!state->known) {
		if (takt_boot_now(leases->daemon->sys).ns - leases->lost_at.ns > grace_ns)
			takt_strcpy(ret->note, sizeof(ret->note), "the actuator does not answer");
		return;
	}
	ret->state = takt_actuate_gpu_state_name(state->state);
	takt_strcpy(ret->note, sizeof(ret->note), state->message);
	if (state->state != TAKT_ACTUATE_CLEAN)
		ret->job_id = state->job_id;
	/* Where only the SM clock waits, or is advice, another knob may be set. */
	if (state->state == TAKT_ACTUATE_LEASED || state->state == TAKT_ACTUATE_WAITING ||
	    state->state == TAKT_ACTUATE_ADVISE) {
		ret->min_mhz = state->applied_min_mhz;
		ret->max_mhz = state->applied_max_mhz;
		ret->mem_min_mhz = state->applied_mem_min_mhz;
		ret->mem_max_mhz = state->applied_mem_max_mhz;
		ret->power_mw = state->applied_power_mw;
	}
	ret->cap_power_mw = state->cap_power_mw;
	ret->base_min_mhz = state->base_min_mhz;
	ret->base_max_mhz = state->base_max_mhz;
	ret->base_power_mw = state->base_power_mw;
}

bool takt_leases_job_trouble(const struct takt_lease_keeper *leases,
			     const struct takt_queue_job *job, char *buf, size_t size)
{
	bool trouble = false;

	if (!takt_jobspec_sets_gpus(&job->spec) || job->phase != TAKT_PHASE_RUNNING)
		return false;
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		const struct lease *lease = takt_lease_find(leases, gpu, job->row.id);

		if (job->row.gpu_mask >> gpu & 1)
			trouble |= !lease || !lease->answered || lease->rc < 0 || lease->gap_ns > 0;
	}
	if (trouble) {
		takt_strcpy(buf, size, "clocks: ");
		describe(leases, job->row.gpu_mask, job->row.id, buf + strlen(buf),
			 size - strlen(buf));
	}
	return trouble;
}

void takt_leases_job_note(const struct takt_lease_keeper *leases, const struct takt_queue_job *job,
			  char *buf, size_t size)
{
	bool live = takt_jobspec_sets_gpus(&job->spec) && job->phase >= TAKT_PHASE_STARTING &&
		    job->phase <= TAKT_PHASE_RUNNING;

	if (live)
		describe(leases, job->row.gpu_mask, job->row.id, buf, size);
	else
		takt_strcpy(buf, size, job->clock_note);
}

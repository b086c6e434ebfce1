/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock leases from the daemon's side: who wants which range on which GPU, kept true over the
 * actuator's socket. The wanted leases live here (one a GPU); the actuator applies them, and
 * forgets them when they are not renewed. When the actuator was away, what is wanted is asked for
 * again and the gap is said.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actuate/actuate.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/daemon.h"

static const uint64_t ttl_ns = 30 * TAKT_NS_PER_S;
static const uint64_t renew_ns = 8 * TAKT_NS_PER_S;
static const uint64_t status_ns = 2 * TAKT_NS_PER_S;
static const uint64_t answer_ns = 5 * TAKT_NS_PER_S;
static const uint64_t reconnect_min_ns = 20 * TAKT_NS_PER_MS, reconnect_max_ns = TAKT_NS_PER_S;
static const uint64_t grace_ns =
	5 * TAKT_NS_PER_S; /* away for less than this is not worth a word */

enum {
	MAX_PENDING = 64
};

/* What is wanted of one GPU and how far it got. */
struct gpu_lease {
	bool wanted, answered;
	uint64_t job_id; /* 0: an administrator's */
	uint32_t min_mhz, max_mhz;
	/* An administrator's, in force whenever no job asks; max 0 = none. */
	uint32_t admin_min_mhz, admin_max_mhz;
	uint32_t was_admin_min_mhz, was_admin_max_mhz; /* before the latest "clock set" */
	uint64_t seq;				       /* of the latest SET */
	int32_t rc;				       /* of its reply */
	char message[160];
	uint64_t gap_ns; /* longest time it was not applied because the actuator was away */
	/* From the actuator's own word: */
	uint32_t state, applied_min_mhz, applied_max_mhz;
	uint64_t state_job;
	bool state_known;
	char state_message[160];
};

/* A request of the API that waits until the GPUs of its mask have answered. */
struct pending_set {
	struct takt_pending *pending; /* NULL = free slot */
	uint64_t gpu_mask, job_id;
	struct takt_boot deadline;
};

struct takt_lease_keeper {
	struct takt_daemon *daemon;
	struct takt_actuate_client *client; /* NULL = not connected */
	uint64_t next_seq;
	bool was_connected;    /* ever */
	uint64_t reconnect_ns; /* pause before the next try; doubles */
	struct takt_boot renew_at, status_at, connect_at, lost_at; /* lost_at: or when we began */
	struct takt_boot heard_at; /* newest word of the actuator but for the one at hand */
	struct gpu_lease gpu[TAKT_DEVICE_MAX_GPUS];
	struct pending_set pendings[MAX_PENDING];
	struct {
		uint64_t job_id; /* 0 = free slot */
		uint64_t gpu_mask;
		struct takt_boot deadline;
	} preparing[TAKT_DEVICE_MAX_GPUS];
};

int takt_leases_new(struct takt_daemon *daemon, struct takt_lease_keeper **ret,
		    struct takt_err *err)
{
	struct takt_lease_keeper *leases = takt_zalloc(sizeof(*leases));

	if (!leases)
		return takt_err_set(err, -ENOMEM, "clock leases");
	leases->daemon = daemon;
	leases->next_seq = 1;
	leases->reconnect_ns = reconnect_min_ns;
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

static void disconnect(struct takt_lease_keeper *leases, struct takt_boot now)
{
	takt_actuate_client_free(leases->client);
	leases->client = NULL;
	leases->lost_at = now;
	leases->connect_at = now;
	leases->reconnect_ns = reconnect_min_ns;
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++)
		leases->gpu[gpu].state_known = false;
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

static void send_set(struct takt_lease_keeper *leases, uint32_t gpu)
{
	struct gpu_lease *lease = &leases->gpu[gpu];
	struct takt_actuate_request request = {
		.op = TAKT_ACTUATE_SET,
		.lease_id = lease_id(lease->job_id, gpu),
		.job_id = lease->job_id,
		.ttl_ns = ttl_ns,
		.min_mhz = lease->min_mhz,
		.max_mhz = lease->max_mhz,
	};

	takt_strcpy(request.uuid, sizeof(request.uuid), uuid_of(leases, gpu));
	lease->answered = false;
	lease->seq = send_op(leases, request);
}

static void send_end(struct takt_lease_keeper *leases, uint32_t gpu)
{
	struct gpu_lease *lease = &leases->gpu[gpu];
	struct takt_actuate_request request = {.op = TAKT_ACTUATE_END,
					       .lease_id = lease_id(lease->job_id, gpu)};

	lease->wanted = false;
	lease->seq = send_op(leases, request);
	lease->answered = lease->seq == 0;
	leases->status_at = (struct takt_boot){0};
}

static void want(struct takt_lease_keeper *leases, uint32_t gpu, uint64_t job_id, uint32_t min_mhz,
		 uint32_t max_mhz)
{
	struct gpu_lease *lease = &leases->gpu[gpu];

	if (lease->wanted && lease->job_id != job_id)
		send_end(leases, gpu);
	lease->wanted = true;
	lease->job_id = job_id;
	lease->min_mhz = min_mhz;
	lease->max_mhz = max_mhz;
	lease->rc = 0;
	lease->gap_ns = 0;
	lease->message[0] = '\0';
	send_set(leases, gpu);
}

/* Back to what an administrator has set, else to the baseline. */
static void job_lets_go(struct takt_lease_keeper *leases, uint32_t gpu)
{
	const struct gpu_lease *lease = &leases->gpu[gpu];

	send_end(leases, gpu);
	if (lease->admin_max_mhz)
		want(leases, gpu, 0, lease->admin_min_mhz, lease->admin_max_mhz);
}

static bool all_answered(const struct takt_lease_keeper *leases, uint64_t gpu_mask)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++)
		if ((gpu_mask >> gpu & 1) && !leases->gpu[gpu].answered)
			return false;
	return true;
}

/* "SM clock within [210, 1410] MHz", or why not. */
static void describe(const struct takt_lease_keeper *leases, uint64_t gpu_mask, char *buf,
		     size_t size)
{
	buf[0] = '\0';
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		const struct gpu_lease *lease = &leases->gpu[gpu];
		size_t used = strlen(buf);

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (!lease->answered)
			snprintf(buf, size, "not applied: the actuator did not answer");
		else if (lease->rc < 0)
			snprintf(buf, size, "not applied on GPU %u: %s", gpu, lease->message);
		else if (used == 0)
			snprintf(buf, size, "SM clock within [%u, %u] MHz", lease->applied_min_mhz,
				 lease->applied_max_mhz);
		if (lease->gap_ns && lease->rc == 0 && !strstr(buf, "gap"))
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

		if (!job_id || (!all_answered(leases, leases->preparing[i].gpu_mask) &&
				now.ns < leases->preparing[i].deadline.ns))
			continue;
		describe(leases, leases->preparing[i].gpu_mask, note, sizeof(note));
		leases->preparing[i].job_id = 0;
		takt_queue_prepared(leases->daemon->queue, job_id, note);
	}
}

static void answer_clocks(struct takt_lease_keeper *leases, struct takt_pending *pending)
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

/* The first refusal among the GPUs of a mask, or 0. */
static int first_refusal(const struct takt_lease_keeper *leases, uint64_t gpu_mask,
			 struct takt_err *err)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		const struct gpu_lease *lease = &leases->gpu[gpu];

		if ((gpu_mask >> gpu & 1) && lease->answered && lease->rc < 0)
			return takt_err_set(err, lease->rc, "GPU %u: %s", gpu, lease->message);
	}
	return 0;
}

/* A "clock set" that failed on one GPU holds on none. What is not wanted any more (a reset) stays
 * so. */
static void withdraw(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct gpu_lease *lease = &leases->gpu[gpu];

		if (!(gpu_mask >> gpu & 1) || !lease->wanted || lease->job_id != job_id)
			continue;
		if (job_id == 0) {
			lease->admin_min_mhz = lease->was_admin_min_mhz;
			lease->admin_max_mhz = lease->was_admin_max_mhz;
		}
		job_lets_go(leases, gpu);
	}
}

static void no_answer(const struct takt_lease_keeper *leases, uint64_t gpu_mask,
		      struct takt_err *err)
{
	uint32_t gpu = 0;

	while (!(gpu_mask >> gpu & 1) || leases->gpu[gpu].answered)
		gpu++; /* there is one */
	takt_err_set(err, -ETIMEDOUT, "GPU %u: the %s did not answer in time", gpu,
		     leases->client ? "driver" : "actuator");
}

static void finish_pendings(struct takt_lease_keeper *leases, struct takt_boot now)
{
	for (size_t i = 0; i < MAX_PENDING; i++) {
		struct takt_pending *pending = leases->pendings[i].pending;
		bool answered = pending && all_answered(leases, leases->pendings[i].gpu_mask);
		struct takt_err err = {0};

		if (!pending || (!answered && now.ns < leases->pendings[i].deadline.ns))
			continue;
		leases->pendings[i].pending = NULL;
		if (!answered)
			no_answer(leases, leases->pendings[i].gpu_mask, &err);
		if (err.rc < 0 || first_refusal(leases, leases->pendings[i].gpu_mask, &err) < 0) {
			withdraw(leases, leases->pendings[i].gpu_mask, leases->pendings[i].job_id);
			takt_pending_error(pending, &err);
		} else {
			answer_clocks(leases, pending);
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

/* The actuator has forgotten a lease that we want (it was not renewed in time: the machine slept):
 * ask again. */
static void ask_if_forgotten(struct takt_lease_keeper *leases, uint32_t gpu,
			     const struct takt_actuate_reply *reply, struct takt_boot now)
{
	struct gpu_lease *lease = &leases->gpu[gpu];

	if (!lease->wanted || !lease->answered || lease->rc != 0 || reply->lease_id != 0)
		return;
	if (now.ns - leases->heard_at.ns > lease->gap_ns)
		lease->gap_ns = now.ns - leases->heard_at.ns;
	send_set(leases, gpu);
}

/*
 * The actuator holds a lease that we do not want: asked for by a daemon that was killed before its
 * job's attempt was on disk. Nobody else would end it before it runs out, and it keeps others off.
 */
static void end_unwanted(struct takt_lease_keeper *leases, uint32_t gpu,
			 const struct takt_actuate_reply *reply)
{
	struct gpu_lease *lease = &leases->gpu[gpu];
	bool under_way = lease->seq != 0 && !lease->answered;

	if (reply->lease_id == 0 || under_way ||
	    (lease->wanted && lease_id(lease->job_id, gpu) == reply->lease_id))
		return;
	send_op(leases,
		(struct takt_actuate_request){.op = TAKT_ACTUATE_END, .lease_id = reply->lease_id});
	if (lease->wanted)
		send_set(leases, gpu);
	leases->status_at = (struct takt_boot){0};
}

/* What the actuator says of a GPU, in whatever reply it says it. */
static void note_state(struct gpu_lease *lease, const struct takt_actuate_reply *reply)
{
	lease->state_known = true;
	lease->state = reply->gpu_state;
	lease->state_job = reply->job_id;
	lease->applied_min_mhz = reply->applied_min_mhz;
	lease->applied_max_mhz = reply->applied_max_mhz;
	takt_strcpy(lease->state_message, sizeof(lease->state_message), reply->message);
}

static void take_status(struct takt_lease_keeper *leases, const struct takt_actuate_reply *reply,
			struct takt_boot now)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct gpu_lease *lease = &leases->gpu[gpu];

		if (strcmp(uuid_of(leases, gpu), reply->uuid) != 0)
			continue;
		note_state(lease, reply);
		ask_if_forgotten(leases, gpu, reply, now);
		end_unwanted(leases, gpu, reply);
	}
}

static void take_answer(struct takt_lease_keeper *leases, const struct takt_actuate_reply *reply)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct gpu_lease *lease = &leases->gpu[gpu];

		if (lease->seq != reply->seq)
			continue;
		lease->answered = true;
		lease->rc = reply->rc;
		takt_strcpy(lease->message, sizeof(lease->message), reply->message);
		if (reply->rc == 0 && strcmp(uuid_of(leases, gpu), reply->uuid) == 0)
			note_state(lease, reply);
	}
	leases->status_at = (struct takt_boot){0};
}

static void receive(struct takt_lease_keeper *leases, struct takt_boot now)
{
	struct takt_actuate_reply reply;
	int rc;

	while (leases->client && (rc = takt_actuate_recv(leases->client, &reply, NULL)) != 0) {
		if (rc < 0)
			disconnect(leases, now);
		else if (reply.op == TAKT_ACTUATE_STATUS)
			take_status(leases, &reply, now);
		else
			take_answer(leases, &reply);
	}
	leases->heard_at = now;
}

static void ask_again(struct takt_lease_keeper *leases, struct takt_boot now)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct gpu_lease *lease = &leases->gpu[gpu];

		if (!lease->wanted)
			continue;
		if (leases->was_connected && now.ns - leases->lost_at.ns > lease->gap_ns)
			lease->gap_ns = now.ns - leases->lost_at.ns;
		send_set(leases, gpu);
	}
}

static void try_connect(struct takt_lease_keeper *leases, struct takt_boot now)
{
	if (leases->client || now.ns < leases->connect_at.ns ||
	    !leases->daemon->actuate.socket_path[0])
		return;
	if (takt_actuate_connect(leases->daemon->actuate.socket_path, &leases->client, NULL) < 0) {
		leases->client = NULL;
		leases->connect_at = (struct takt_boot){now.ns + leases->reconnect_ns};
		if (leases->reconnect_ns < reconnect_max_ns)
			leases->reconnect_ns *= 2;
		return;
	}
	ask_again(leases, now);
	leases->was_connected = true;
	leases->status_at = (struct takt_boot){0};
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
		leases->status_at = (struct takt_boot){now.ns + status_ns};
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
}

/* Lowest clock of a GPU's list; 0 when the list is not known. */
static uint32_t lowest_mhz(const struct takt_lease_keeper *leases, uint32_t gpu)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(leases->daemon->machine, gpu);

	return (facts->has & TAKT_FACT_SM_CLOCKS) && facts->sm_clock_count ? facts->sm_clocks_mhz[0]
									   : 0;
}

static void want_job(struct takt_lease_keeper *leases, const struct takt_queue_job *job)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		uint32_t max = job->spec.clock_mhz;

		if (job->row.gpu_mask >> gpu & 1)
			want(leases, gpu, job->row.id,
			     job->spec.clock_ask == TAKT_CLOCK_ASK_LOCK ? max
									: lowest_mhz(leases, gpu),
			     max);
	}
}

void takt_leases_job_start(struct takt_lease_keeper *leases, const struct takt_queue_job *job)
{
	struct takt_boot now = takt_boot_now(leases->daemon->sys);

	if (job->spec.clock_ask == TAKT_CLOCK_ASK_NONE || job->row.gpu_mask == 0) {
		takt_queue_prepared(leases->daemon->queue, job->row.id, "");
		return;
	}
	want_job(leases, job);
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
	if (job->spec.clock_ask != TAKT_CLOCK_ASK_NONE)
		want_job(leases, job);
}

void takt_leases_job_end(struct takt_lease_keeper *leases, const struct takt_queue_job *job)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++)
		if (leases->gpu[gpu].wanted && leases->gpu[gpu].job_id == job->row.id)
			job_lets_go(leases, gpu);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(leases->preparing); i++)
		if (leases->preparing[i].job_id == job->row.id)
			leases->preparing[i].job_id = 0;
}

static void remember_admin(struct gpu_lease *lease, uint32_t min_mhz, uint32_t max_mhz)
{
	lease->was_admin_min_mhz = lease->admin_min_mhz;
	lease->was_admin_max_mhz = lease->admin_max_mhz;
	lease->admin_min_mhz = min_mhz;
	lease->admin_max_mhz = max_mhz;
}

void takt_leases_set(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		     uint32_t min_mhz, uint32_t max_mhz, struct takt_pending *pending)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		uint32_t min = min_mhz ? min_mhz : lowest_mhz(leases, gpu);

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (job_id == 0)
			remember_admin(&leases->gpu[gpu], min, max_mhz);
		want(leases, gpu, job_id, min, max_mhz);
	}
	hold_pending(leases, gpu_mask, job_id, pending);
}

static void reset_by_admin(struct takt_lease_keeper *leases, uint32_t gpu)
{
	struct gpu_lease *lease = &leases->gpu[gpu];
	struct takt_actuate_request request = {.op = TAKT_ACTUATE_RESET};

	takt_strcpy(request.uuid, sizeof(request.uuid), uuid_of(leases, gpu));
	lease->wanted = false;
	lease->admin_min_mhz = lease->admin_max_mhz = 0;
	lease->seq = send_op(leases, request);
	lease->answered = false;
}

void takt_leases_reset(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		       struct takt_pending *pending)
{
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		struct gpu_lease *lease = &leases->gpu[gpu];

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (job_id == 0)
			reset_by_admin(leases, gpu);
		else if (lease->wanted && lease->job_id == job_id)
			job_lets_go(leases, gpu);
		else
			gpu_mask &= ~(1ull << gpu); /* the job has changed nothing here */
	}
	hold_pending(leases, gpu_mask, job_id, pending);
}

void takt_leases_state(const struct takt_lease_keeper *leases, uint32_t gpu,
		       struct takt_lease_state *ret)
{
	const struct gpu_lease *lease = &leases->gpu[gpu];

	*ret = (struct takt_lease_state){.state = "unknown"};
	if (!leases->daemon->manages)
		return; /* whoever manages them knows */
	if (!lease->state_known) {
		if (takt_boot_now(leases->daemon->sys).ns - leases->lost_at.ns > grace_ns)
			takt_strcpy(ret->note, sizeof(ret->note), "the actuator does not answer");
		return;
	}
	ret->state = takt_actuate_gpu_state_name(lease->state);
	takt_strcpy(ret->note, sizeof(ret->note), lease->state_message);
	ret->job_id = lease->state_job;
	if (lease->state == TAKT_ACTUATE_LEASED) {
		ret->min_mhz = lease->applied_min_mhz;
		ret->max_mhz = lease->applied_max_mhz;
	}
}

bool takt_leases_job_trouble(const struct takt_lease_keeper *leases,
			     const struct takt_queue_job *job, char *buf, size_t size)
{
	bool trouble = false;

	if (job->spec.clock_ask == TAKT_CLOCK_ASK_NONE || job->phase != TAKT_PHASE_RUNNING)
		return false;
	for (uint32_t gpu = 0; gpu < leases->daemon->gpu_count; gpu++) {
		const struct gpu_lease *lease = &leases->gpu[gpu];

		if (job->row.gpu_mask >> gpu & 1)
			trouble |= !lease->answered || lease->rc < 0 || lease->gap_ns > 0;
	}
	if (trouble) {
		takt_strcpy(buf, size, "clocks: ");
		describe(leases, job->row.gpu_mask, buf + strlen(buf), size - strlen(buf));
	}
	return trouble;
}

void takt_leases_job_note(const struct takt_lease_keeper *leases, const struct takt_queue_job *job,
			  char *buf, size_t size)
{
	bool live = job->spec.clock_ask != TAKT_CLOCK_ASK_NONE &&
		    job->phase >= TAKT_PHASE_STARTING && job->phase <= TAKT_PHASE_RUNNING;

	if (live)
		describe(leases, job->row.gpu_mask, buf, size);
	else
		takt_strcpy(buf, size, job->clock_note);
}

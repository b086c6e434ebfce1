/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gpu_orders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/known_users.h"
#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "codec/booking.h"
#include "daemon/gpu_health.h"
#include "daemon/gpu_mig.h"
#include "daemon/log.h"

static const char key[] = "orders";
static const struct takt_pace writes = {TAKT_NS_PER_S, 10 * TAKT_NS_PER_S};

enum {
	WINDOWS_OF_GPUS = TAKT_VIEW_MAX_GPUS, /* ids up to this are GPUs', beyond reservations' */
};

struct takt_orders {
	struct takt_daemon *daemon;
	struct takt_orders_view now;   /* on disk */
	struct takt_orders_view told;  /* to the queue */
	struct takt_orders_view *next; /* being written; NULL = nothing is */
	struct takt_pending *pending;  /* who waits for that; NULL = nobody */
	struct takt_peer peer;	       /* of pending */
	uint64_t faults;	       /* GPUs set aside and not yet on disk */
	uint64_t resumed;	       /* GPUs that `next` resumes */
	char fault_reason[TAKT_VIEW_MAX_GPUS][160];
	struct takt_boot retry_at;
	uint32_t refusals; /* of the store, in a row */
	int64_t ticket;
	uint64_t wall_jumps; /* when the queue was told */
};

static int64_t wall_ms(struct takt_wall wall)
{
	return wall.ns / (int64_t)TAKT_NS_PER_MS;
}

static struct takt_gpu_order *order_of(struct takt_orders_view *view, uint32_t gpu)
{
	for (uint32_t i = 0; i < view->set_aside_count; i++)
		if (view->set_aside[i].index == gpu)
			return &view->set_aside[i];
	return NULL;
}

static const struct takt_gpu_order *find(const struct takt_orders *orders, uint32_t gpu)
{
	return order_of((struct takt_orders_view *)&orders->now, gpu);
}

/*
 * From disk.
 */

static uint32_t gpu_by_uuid(const struct takt_daemon *daemon, const char *uuid)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (takt_watch_known(daemon, gpu) &&
		    strcmp(takt_machine_facts(daemon->machine, gpu)->uuid, uuid) == 0)
			return gpu;
	return UINT32_MAX;
}

static uint64_t mask_now(const struct takt_daemon *daemon, const struct takt_orders_view *view,
			 uint64_t mask)
{
	uint64_t now = 0;

	for (; mask; mask &= mask - 1) {
		uint32_t was = (uint32_t)__builtin_ctzll(mask);
		uint32_t gpu =
			was < view->uuid_count ? gpu_by_uuid(daemon, view->uuids[was]) : UINT32_MAX;

		if (gpu != UINT32_MAX)
			now |= UINT64_C(1) << gpu;
	}
	return now;
}

static void name_gpus(const struct takt_daemon *daemon, struct takt_orders_view *view)
{
	view->gpus = view->uuid_count = daemon->gpu_count;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		takt_strcpy(view->uuids[gpu], sizeof(view->uuids[gpu]),
			    takt_watch_known(daemon, gpu)
				    ? takt_machine_facts(daemon->machine, gpu)->uuid
				    : "?");
}

/* One that was written before there were bookings says no state. */
static void take_reservation(struct takt_orders *orders, struct takt_reservation *at)
{
	struct takt_orders_view *view = &orders->now;

	at->gpu_mask = mask_now(orders->daemon, view, at->gpu_mask);
	if (!at->state[0])
		takt_strcpy(at->state, sizeof(at->state), "granted");
	if (at->id > view->last_id)
		view->last_id = at->id;
}

/* A GPU that is not there keeps what was said of it: it may come back. */
static int take_text(void *ctx, const char *name, const char *text)
{
	struct takt_orders *orders = ctx;
	struct takt_orders_view *view = &orders->now;
	int rc = takt_orders_view_from_json(text, strlen(text), view, NULL);

	if (rc < 0 || strcmp(name, key) != 0)
		return rc;
	for (uint32_t i = 0; i < view->set_aside_count; i++)
		view->set_aside[i].index = gpu_by_uuid(orders->daemon, view->set_aside[i].uuid);
	for (uint32_t i = 0; i < view->reservation_count; i++)
		take_reservation(orders, &view->reservations[i]);
	return 0;
}

int takt_orders_new(struct takt_daemon *daemon, struct takt_orders **ret, struct takt_err *err)
{
	struct takt_orders *orders = takt_zalloc(sizeof(*orders));
	int rc;

	if (!orders)
		return takt_err_set(err, -ENOMEM, "what is said of GPUs");
	orders->daemon = daemon;
	rc = takt_store_each_kept(daemon->store, key, take_text, orders, err);
	if (rc < 0) {
		takt_free(orders);
		return takt_err_set(err, rc, "what administrators said of GPUs cannot be read");
	}
	name_gpus(daemon, &orders->now);
	*ret = orders;
	return 0;
}

void takt_orders_free(struct takt_orders *orders)
{
	if (orders)
		takt_free(orders->next);
	takt_free(orders);
}

/*
 * To the queue.
 */

static void forget_windows(struct takt_orders *orders)
{
	const struct takt_orders_view *told = &orders->told;
	struct takt_queue *queue = orders->daemon->queue;

	for (uint32_t i = 0; i < told->set_aside_count; i++)
		if (told->set_aside[i].index < told->gpus)
			takt_queue_release_gpus(queue, told->set_aside[i].index + 1);
	for (uint32_t i = 0; i < told->reservation_count; i++)
		takt_queue_release_gpus(queue, WINDOWS_OF_GPUS + told->reservations[i].id);
}

/* Nobody's, without being maintenance: what runs on it is left alone. */
static void keep_gpu(struct takt_orders *orders, uint32_t gpu)
{
	const struct takt_queue_window window = {
		.id = gpu + 1,
		.gpu_mask = UINT64_C(1) << gpu,
		.until = {INT64_MAX},
		.owner = TAKT_QUEUE_NOBODY,
	};

	(void)takt_queue_keep_gpus(orders->daemon->queue, &window, NULL);
}

/* Of a tenant that has gone from the rules nobody is left who may. */
static void keep_reserved(struct takt_orders *orders, const struct takt_reservation *reservation)
{
	struct takt_queue *queue = orders->daemon->queue;
	struct takt_queue_window window = {
		.id = WINDOWS_OF_GPUS + reservation->id,
		.gpu_mask = reservation->gpu_mask,
		.from = {reservation->from_ms * (int64_t)TAKT_NS_PER_MS},
		.until = {reservation->until_ms * (int64_t)TAKT_NS_PER_MS},
		.owner = reservation->tenant[0]		  ? TAKT_QUEUE_NOBODY
			 : reservation->uid == UINT32_MAX ? TAKT_QUEUE_MAINTENANCE
							  : reservation->uid,
	};

	if (takt_queue_knows_tenant(queue, reservation->tenant))
		window.tenant = reservation->tenant;
	if (window.gpu_mask && takt_reservation_counts(reservation))
		(void)takt_queue_keep_gpus(queue, &window, NULL);
}

void takt_orders_tell(struct takt_orders *orders)
{
	const struct takt_orders_view *now = &orders->now;

	forget_windows(orders);
	for (uint32_t i = 0; i < now->set_aside_count; i++)
		if (now->set_aside[i].index < now->gpus)
			keep_gpu(orders, now->set_aside[i].index);
	for (uint32_t i = 0; i < now->reservation_count; i++)
		keep_reserved(orders, &now->reservations[i]);
	orders->told = *now;
	orders->wall_jumps = takt_queue_wall_jumps(orders->daemon->queue);
	takt_watch_health(orders->daemon);
}

/*
 * To disk.
 */

static struct takt_orders_view *begin(struct takt_orders *orders, struct takt_err *err)
{
	struct takt_orders_view *next;

	if (orders->next) {
		takt_err_set(err, -TAKT_E_BUSY,
			     "another change of GPUs is being written; try again");
		return NULL;
	}
	next = takt_alloc(sizeof(*next));
	if (!next)
		takt_err_set(err, -ENOMEM, "the change");
	else
		*next = orders->now;
	return next;
}

/* The store has refused a change. */
static void try_later(struct takt_orders *orders)
{
	orders->retry_at = takt_boot_add(takt_boot_now(orders->daemon->sys),
					 takt_pace_ns(&writes, orders->refusals++));
}

/* Takes `next` over, whatever comes of it. */
static int post(struct takt_orders *orders, struct takt_orders_view *next,
		const struct takt_peer *peer, struct takt_pending *pending, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_STORE_MAX_KEPT);
	int64_t ticket = takt_orders_view_to_json(next, &text);

	if (ticket == 0)
		ticket = takt_store_keep(orders->daemon->store, key, takt_str_text(&text), 0, err);
	else
		takt_err_set(err, (int)ticket, "the change of GPUs cannot be written down");
	if (ticket < 0) {
		takt_free(next);
		try_later(orders);
		return (int)ticket;
	}
	orders->next = next;
	orders->resumed = 0;
	orders->ticket = ticket;
	orders->pending = pending;
	if (peer)
		orders->peer = *peer;
	return 0;
}

void takt_orders_answer(struct takt_orders *orders, const struct takt_peer *peer,
			struct takt_pending *pending)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_VIEW_MAX_BYTES);
	TAKT_CLEANUP(freep) struct takt_orders_view *view = takt_alloc(sizeof(*view));
	struct takt_err err;

	if (!view || takt_api_orders(orders->daemon, peer, view, &err) < 0 ||
	    takt_orders_view_to_json(view, &json) < 0) {
		takt_err_set(&err, -ENOMEM, "done, but there is no memory for the answer");
		takt_pending_error(pending, &err);
	} else {
		takt_pending_json(pending, 200, takt_str_text(&json), json.len);
	}
}

/* Those that have become durable need no mark of their own any more. */
static void settle_faults(struct takt_orders *orders)
{
	for (uint32_t gpu = 0; gpu < orders->daemon->gpu_count; gpu++)
		if (find(orders, gpu))
			orders->faults &= ~(UINT64_C(1) << gpu);
}

/* Whoever resumes a GPU that takt set aside says that he has looked at it; also at a fault that
 * could not be written down, which else would be when it can. */
static void tell_looked_at(struct takt_orders *orders)
{
	for (uint64_t left = orders->resumed; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);

		if (takt_orders_is_fault(orders, gpu) || orders->daemon->watch[gpu].ill)
			takt_health_looked_at(orders->daemon->health, gpu);
	}
	orders->faults &= ~orders->resumed;
}

void takt_orders_stored(void *ctx, const struct takt_store_completion *done)
{
	struct takt_daemon *daemon = ctx;
	struct takt_orders *orders = daemon->orders;
	struct takt_err error;

	if (!orders->next || done->ticket != orders->ticket)
		return;
	if (done->rc == 0) {
		tell_looked_at(orders);
		orders->now = *orders->next;
		orders->retry_at = (struct takt_boot){0};
		orders->refusals = 0;
		settle_faults(orders);
		takt_orders_tell(orders);
	} else {
		try_later(orders);
	}
	takt_free(orders->next);
	orders->next = NULL;
	if (!orders->pending)
		return;
	if (done->rc == 0) {
		takt_orders_answer(orders, &orders->peer, orders->pending);
	} else {
		takt_err_set(&error, done->rc, "%s", done->message);
		takt_pending_error(orders->pending, &error);
	}
	orders->pending = NULL;
}

static void hung_up(void *ctx)
{
	struct takt_orders *orders = ctx;

	orders->pending = NULL;
}

/*
 * What is asked for.
 */

static void set_aside(struct takt_orders *orders, struct takt_orders_view *view, uint32_t gpu,
		      const char *state, const char *reason, const char *by)
{
	struct takt_gpu_order *order = order_of(view, gpu);

	if (!order && view->set_aside_count == TAKT_VIEW_MAX_GPUS)
		return; /* more GPUs than this were never there at once */
	if (!order)
		order = &view->set_aside[view->set_aside_count++];
	*order = (struct takt_gpu_order){.index = gpu};
	takt_strcpy(order->uuid, sizeof(order->uuid), view->uuids[gpu]);
	takt_strcpy(order->state, sizeof(order->state), state);
	takt_strcpy(order->reason, sizeof(order->reason), reason);
	takt_strcpy(order->by, sizeof(order->by), by);
	order->since_ms = wall_ms(takt_wall_now(orders->daemon->sys));
}

/* One that only its health keeps from jobs has no order, and a fault may not be on disk yet. */
static int resume(struct takt_orders *orders, struct takt_orders_view *view, uint32_t gpu,
		  struct takt_err *err)
{
	struct takt_gpu_order *order = order_of(view, gpu);
	const char *note = takt_watch_note(orders->daemon, gpu);

	if (!order && (orders->daemon->watch[gpu].ill || orders->faults >> gpu & 1))
		return 0;
	if (!order)
		return takt_err_set(err, -TAKT_E_CONFLICT, "GPU %u is not drained%s%s", gpu,
				    note[0] ? "; " : "", note);
	*order = view->set_aside[--view->set_aside_count];
	return 0;
}

static int check_gpus(const struct takt_orders *orders, uint64_t gpu_mask, struct takt_err *err)
{
	const struct takt_daemon *daemon = orders->daemon;

	for (; gpu_mask; gpu_mask &= gpu_mask - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(gpu_mask);

		if (gpu >= daemon->gpu_count)
			return takt_err_set(err, -TAKT_E_USAGE, "there is no GPU %u; there are %u",
					    gpu, daemon->gpu_count);
		if (!takt_watch_known(daemon, gpu))
			return takt_err_set(
				err, -TAKT_E_UNAVAILABLE,
				"GPU %u has not said what it is, and gets no jobs anyway", gpu);
	}
	return 0;
}

/* A name of the system's, or a number. */
static int find_user(const char *text, struct takt_reservation *ret, struct takt_err *err)
{
	uid_t uid;
	int rc = takt_known_user_find(text, &uid);

	if (rc == -EAGAIN)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "the system has not said yet who user '%s' is; ask again, or "
				    "give the number",
				    text);
	if (rc < 0)
		return takt_err_set(err, -TAKT_E_USAGE, "there is no user '%s' on this machine",
				    text);
	ret->uid = uid;
	takt_user_name(uid, ret->user, sizeof(ret->user));
	return 0;
}

static int find_tenant(const struct takt_orders *orders, const char *name,
		       struct takt_reservation *ret, struct takt_err *err)
{
	if (!takt_queue_knows_tenant(orders->daemon->queue, name))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "there is no tenant '%s'; tenants_file says who there is",
				    name);
	takt_strcpy(ret->tenant, sizeof(ret->tenant), name);
	return 0;
}

/* Who asks for a change, and when. */
struct asker {
	const struct takt_peer *peer;
	char by[33];
	int64_t now_ms;
};

/* A user reserves for himself, and not the past, which would be charged, too. */
static int book(struct takt_orders *orders, struct takt_orders_view *view,
		const struct asker *asker, struct takt_reservation *made, struct takt_err *err)
{
	const struct takt_booker booker = {
		.rules = takt_queue_rules(orders->daemon->queue),
		.user = asker->by,
		.uid = asker->peer->uid,
	};
	const char *state = NULL;
	int rc;

	if (made->tenant[0] || (made->uid != UINT32_MAX && made->uid != asker->peer->uid))
		return takt_err_set(err, -EPERM,
				    "you reserve for yourself only; for others root and members of "
				    "group %s do",
				    orders->daemon->config.admin_group);
	made->uid = asker->peer->uid;
	takt_strcpy(made->user, sizeof(made->user), asker->by);
	made->booked = true;
	if (made->from_ms < asker->now_ms)
		made->from_ms = asker->now_ms;
	rc = takt_booking_check(&booker, view, made, asker->now_ms, &state, err);
	if (rc == 0)
		takt_strcpy(made->state, sizeof(made->state), state);
	return rc;
}

static int reserve(struct takt_orders *orders, struct takt_orders_view *view,
		   const struct takt_gpu_request *request, const struct asker *asker,
		   struct takt_err *err)
{
	struct takt_reservation made = {
		.id = view->last_id + 1,
		.gpu_mask = request->gpu_mask,
		.uid = UINT32_MAX,
		.from_ms = request->from_ms,
		.until_ms = request->until_ms,
		.made_ms = asker->now_ms,
		.state = "granted",
	};
	int rc = 0;

	if (view->reservation_count == TAKT_MAX_RESERVATIONS)
		return takt_err_set(err, -TAKT_E_LIMIT, "there are %d reservations already",
				    TAKT_MAX_RESERVATIONS);
	if (request->until_ms <= asker->now_ms)
		return takt_err_set(err, -TAKT_E_USAGE, "the reservation would be over already");
	takt_strcpy(made.reason, sizeof(made.reason), request->reason);
	takt_strcpy(made.by, sizeof(made.by), asker->by);
	if (request->tenant[0])
		rc = find_tenant(orders, request->tenant, &made, err);
	else if (request->user[0])
		rc = find_user(request->user, &made, err);
	if (rc == 0 && !asker->peer->admin)
		rc = book(orders, view, asker, &made, err);
	if (rc < 0)
		return rc;
	view->last_id = made.id;
	view->reservations[view->reservation_count++] = made;
	return 0;
}

/* A user gives up what he himself has booked. */
static int release(struct takt_orders_view *view, uint64_t id, const struct asker *asker,
		   struct takt_err *err)
{
	const struct takt_reservation *at = takt_reservation_find(view, id);

	if (at && !asker->peer->admin && !(at->booked && at->uid == asker->peer->uid))
		return takt_err_set(err, -EPERM, "reservation %" PRIu64 " is not yours to release",
				    id);
	return takt_booking_release(view, id, asker->by, asker->now_ms, err);
}

static int change(struct takt_orders *orders, struct takt_orders_view *view,
		  const struct takt_gpu_request *request, const struct asker *asker,
		  struct takt_err *err)
{
	int rc = 0;

	if (request->kind == TAKT_GPU_RESERVE)
		return reserve(orders, view, request, asker, err);
	if (request->kind == TAKT_GPU_RELEASE)
		return release(view, request->id, asker, err);
	if (request->kind == TAKT_GPU_APPROVE)
		return takt_booking_approve(view, request->id, asker->by, asker->now_ms, err);
	if (request->kind == TAKT_GPU_REFUSE)
		return takt_booking_refuse(view, request->id, asker->by, request->reason, err);
	for (uint64_t left = request->gpu_mask; rc == 0 && left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);

		if (request->kind == TAKT_GPU_DRAIN)
			set_aside(orders, view, gpu, "drained", request->reason, asker->by);
		else
			rc = resume(orders, view, gpu, err);
	}
	return rc;
}

/* Reserving is also for users whom a rule lets, and releasing for who has booked. */
static int check_right(const struct takt_daemon *daemon, const struct takt_peer *peer,
		       enum takt_gpu_request_kind kind, struct takt_err *err)
{
	if (!peer->admin && kind != TAKT_GPU_RESERVE && kind != TAKT_GPU_RELEASE)
		return takt_err_set(err, -EPERM, "only root and members of group %s may do so",
				    daemon->config.admin_group);
	if (!daemon->manages)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "takt only observes here (%s)",
				    daemon->observe_why);
	return 0;
}

static void log_order(const struct takt_gpu_request *request, const char *by)
{
	static const char *const words[TAKT_GPU_REQUEST_COUNT] = {
		[TAKT_GPU_DRAIN] = "drains",	 [TAKT_GPU_RESUME] = "resumes",
		[TAKT_GPU_RESERVE] = "reserves", [TAKT_GPU_RELEASE] = "releases",
		[TAKT_GPU_APPROVE] = "approves", [TAKT_GPU_REFUSE] = "refuses",
	};
	const char *colon = request->reason[0] ? ": " : "";

	if (request->gpu_mask)
		takt_log(TAKT_LOG_NOTICE, "%s %s GPUs (mask 0x%" PRIx64 ")%s%s", by,
			 words[request->kind], request->gpu_mask, colon, request->reason);
	else
		takt_log(TAKT_LOG_NOTICE, "%s %s reservation %" PRIu64 "%s%s", by,
			 words[request->kind], request->id, colon, request->reason);
}

/* Whether it would be taken; nothing is kept. */
static int look_ahead(struct takt_orders *orders, const struct takt_gpu_request *request,
		      const struct asker *asker, struct takt_pending *pending, struct takt_err *err)
{
	struct takt_orders_view *would = takt_alloc(sizeof(*would));
	int rc = would ? 0 : takt_err_set(err, -ENOMEM, "no memory for the reservation");

	if (rc == 0) {
		*would = orders->now;
		rc = change(orders, would, request, asker, err);
	}
	takt_free(would);
	if (rc == 0)
		takt_orders_answer(orders, asker->peer, pending);
	return rc;
}

static int keep_change(struct takt_orders *orders, const struct takt_gpu_request *request,
		       const struct asker *asker, struct takt_pending *pending,
		       struct takt_err *err)
{
	struct takt_orders_view *next = begin(orders, err);
	int rc;

	if (!next)
		return err ? err->rc : -TAKT_E_BUSY;
	rc = change(orders, next, request, asker, err);
	if (rc < 0) {
		takt_free(next);
		return rc;
	}
	rc = post(orders, next, asker->peer, pending, err);
	if (rc < 0)
		return rc;
	if (request->kind == TAKT_GPU_RESUME)
		orders->resumed = request->gpu_mask;
	log_order(request, asker->by);
	takt_pending_set_cancel(pending, hung_up, orders);
	return 0;
}

int takt_api_order(void *ctx, const struct takt_peer *peer, const struct takt_gpu_request *request,
		   struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	struct takt_orders *orders = daemon->orders;
	struct asker asker = {.peer = peer, .now_ms = wall_ms(takt_wall_now(daemon->sys))};
	int rc = check_right(daemon, peer, request->kind, err);

	if (rc == 0)
		rc = check_gpus(orders, request->gpu_mask, err);
	if (rc < 0)
		return rc;
	if (request->kind == TAKT_GPU_MIG)
		return takt_mig_order(daemon->mig, request, peer, pending, err);
	takt_user_name(peer->uid, asker.by, sizeof(asker.by));
	return request->preview ? look_ahead(orders, request, &asker, pending, err)
				: keep_change(orders, request, &asker, pending, err);
}

/* Of another user's booking its reason is his affair, as his jobs' names are. */
static void show_reservation(struct takt_reservation *at, const struct takt_peer *peer)
{
	at->mine = at->uid == peer->uid;
	if (!at->booked || at->mine || peer->admin)
		return;
	at->reason[0] = '\0';
	at->answer[0] = '\0';
}

int takt_api_orders(void *ctx, const struct takt_peer *peer, struct takt_orders_view *ret,
		    struct takt_err *err)
{
	const struct takt_daemon *daemon = ctx;
	struct takt_booker booker = {.rules = takt_queue_rules(daemon->queue), .uid = peer->uid};
	uint32_t shown = 0;
	char name[33];

	*ret = daemon->orders->now;
	ret->simulated = takt_machine_info(daemon->machine)->simulated;
	for (uint32_t i = 0; i < ret->set_aside_count; i++)
		if (ret->set_aside[i].index < ret->gpus)
			ret->set_aside[shown++] = ret->set_aside[i];
	ret->set_aside_count = shown;
	takt_mig_view(daemon->mig, ret);
	takt_user_name(peer->uid, name, sizeof(name));
	booker.user = name;
	ret->has_booking = !peer->admin;
	if (ret->has_booking)
		takt_booking_show(&booker, &daemon->orders->now,
				  wall_ms(takt_wall_now(daemon->sys)), &ret->booking);
	for (uint32_t i = 0; i < ret->reservation_count; i++)
		show_reservation(&ret->reservations[i], peer);
	return 0;
}

/*
 * What takt sees itself, and what follows from time.
 */

static void write_faults(struct takt_orders *orders)
{
	struct takt_orders_view *next = begin(orders, NULL);

	if (!next)
		return;
	for (uint64_t left = orders->faults; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);

		set_aside(orders, next, gpu, "fault", orders->fault_reason[gpu], "");
	}
	(void)post(orders, next, NULL, NULL, NULL);
}

void takt_orders_fault(struct takt_orders *orders, uint32_t gpu, const char *reason)
{
	if (find(orders, gpu) || orders->faults >> gpu & 1)
		return;
	orders->faults |= UINT64_C(1) << gpu;
	takt_strcpy(orders->fault_reason[gpu], sizeof(orders->fault_reason[gpu]), reason);
	takt_log(TAKT_LOG_WARNING, "GPU %u is set aside until 'takt gpu resume': %s", gpu, reason);
	write_faults(orders);
}

bool takt_orders_is_fault(const struct takt_orders *orders, uint32_t gpu)
{
	const struct takt_gpu_order *order = find(orders, gpu);

	return orders->faults >> gpu & 1 || (order && strcmp(order->state, "fault") == 0);
}

static void forget_old(struct takt_orders *orders, int64_t now_ms)
{
	struct takt_orders_view *next;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < orders->now.reservation_count; i++)
		kept += takt_reservation_kept_until_ms(&orders->now.reservations[i]) > now_ms;
	if (kept == orders->now.reservation_count)
		return;
	next = begin(orders, NULL);
	if (!next)
		return;
	kept = 0;
	for (uint32_t i = 0; i < next->reservation_count; i++)
		if (takt_reservation_kept_until_ms(&next->reservations[i]) > now_ms)
			next->reservations[kept++] = next->reservations[i];
	next->reservation_count = kept;
	(void)post(orders, next, NULL, NULL, NULL);
}

void takt_orders_tick(struct takt_orders *orders, struct takt_wall now)
{
	if (orders->wall_jumps != takt_queue_wall_jumps(orders->daemon->queue))
		takt_orders_tell(orders);
	if (orders->next || takt_boot_now(orders->daemon->sys).ns < orders->retry_at.ns)
		return;
	if (orders->faults)
		write_faults(orders);
	else
		forget_old(orders, wall_ms(now));
}

static bool is_maintenance(const struct takt_reservation *reservation)
{
	return reservation->uid == UINT32_MAX && !reservation->tenant[0];
}

static const struct takt_reservation *reservation_at(const struct takt_orders *orders, uint32_t gpu,
						     int64_t now_ms)
{
	for (uint32_t i = 0; i < orders->now.reservation_count; i++) {
		const struct takt_reservation *at = &orders->now.reservations[i];

		if (takt_reservation_counts(at) && at->gpu_mask >> gpu & 1 &&
		    at->from_ms <= now_ms && now_ms < at->until_ms)
			return at;
	}
	return NULL;
}

const char *takt_orders_state(const struct takt_orders *orders, uint32_t gpu, struct takt_wall now)
{
	const struct takt_gpu_order *order = find(orders, gpu);
	const struct takt_reservation *at = reservation_at(orders, gpu, wall_ms(now));

	if (order && strcmp(order->state, "drained") == 0)
		return "drained";
	if (!at)
		return NULL;
	return is_maintenance(at) ? "maintenance" : "reserved";
}

static void add_time(int64_t ms, char ret[32])
{
	time_t at = (time_t)(ms / 1000);
	struct tm tm;

	if (!localtime_r(&at, &tm) || strftime(ret, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		takt_strcpy(ret, 32, "?");
}

static void note_reservation(const struct takt_reservation *at, int64_t now_ms, char *buf,
			     size_t size)
{
	char from[32], until[32];
	bool later = at->from_ms > now_ms;
	const char *reason = at->booked ? "" : at->reason; /* everybody reads this */

	add_time(at->from_ms, from);
	add_time(at->until_ms, until);
	snprintf(buf, size, "%s%s%s%s%s until %s by %s%s%s",
		 is_maintenance(at) ? "maintenance"
		 : at->tenant[0]    ? "reserved for tenant "
				    : "reserved for ",
		 at->tenant, at->user, later ? " from " : "", later ? from : "", until, at->by,
		 reason[0] ? ": " : "", reason);
}

const char *takt_orders_next(const struct takt_orders *orders, uint32_t gpu, struct takt_wall now,
			     char *buf, size_t size)
{
	const struct takt_reservation *next = NULL;
	int64_t now_ms = wall_ms(now);

	buf[0] = '\0';
	for (uint32_t i = 0; i < orders->now.reservation_count; i++) {
		const struct takt_reservation *at = &orders->now.reservations[i];

		if (takt_reservation_counts(at) && at->gpu_mask >> gpu & 1 &&
		    at->from_ms > now_ms && (!next || at->from_ms < next->from_ms))
			next = at;
	}
	if (next)
		note_reservation(next, now_ms, buf, size);
	return buf;
}

const char *takt_orders_note(const struct takt_orders *orders, uint32_t gpu, struct takt_wall now,
			     char *buf, size_t size)
{
	const struct takt_gpu_order *order = find(orders, gpu);
	const struct takt_reservation *at = reservation_at(orders, gpu, wall_ms(now));

	buf[0] = '\0';
	if (order)
		snprintf(buf, size, "%s%s%s: %s",
			 order->by[0] ? "drained" : "set aside until 'takt gpu resume'",
			 order->by[0] ? " by " : "", order->by, order->reason);
	else if (orders->faults >> gpu & 1)
		snprintf(buf, size, "set aside until 'takt gpu resume': %s",
			 orders->fault_reason[gpu]);
	else if (at)
		note_reservation(at, wall_ms(now), buf, size);
	return buf;
}

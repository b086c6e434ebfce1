/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What administrators have said about GPUs (drained, reserved, in maintenance), what users have
 * booked, and which ones takt itself has set aside after a fault. One text in the store holds all
 * of it, so that a change is on disk whole or not at all; it counts when it is on disk.
 */
#ifndef TAKT_DAEMON_GPU_ORDERS_H
#define TAKT_DAEMON_GPU_ORDERS_H

#include "codec/orders.h"
#include "daemon/daemon.h"

struct takt_orders;

/* Reads what the store holds; GPUs are known again by their UUIDs. */
int takt_orders_new(struct takt_daemon *daemon, struct takt_orders **ret, struct takt_err *err);
void takt_orders_free(struct takt_orders *orders); /* NULL is fine */
/* Tells the queue, once there is one. */
void takt_orders_tell(struct takt_orders *orders);
/* Forgets reservations that are long over, writes down what could not be written before. */
void takt_orders_tick(struct takt_orders *orders, struct takt_wall now);

/* For the server. */
int takt_api_orders(void *ctx, const struct takt_peer *peer, struct takt_orders_view *ret,
		    struct takt_err *err);
int takt_api_order(void *ctx, const struct takt_peer *peer, const struct takt_gpu_request *request,
		   struct takt_pending *pending, struct takt_err *err);
/* Finishes it with the orders view, as the peer may see it. */
void takt_orders_answer(struct takt_orders *orders, const struct takt_peer *peer,
			struct takt_pending *pending);
/* A ticket that is not the queue's was answered. */
void takt_orders_stored(void *ctx, const struct takt_store_completion *done);

/* takt sets the GPU aside until an administrator resumes it; at once, and for good when that is on
 * disk. */
void takt_orders_fault(struct takt_orders *orders, uint32_t gpu, const char *reason);
bool takt_orders_is_fault(const struct takt_orders *orders, uint32_t gpu);
/* "drained", "reserved", "maintenance" at that time; NULL = nothing of the kind. Static. */
const char *takt_orders_state(const struct takt_orders *orders, uint32_t gpu, struct takt_wall now);
/* "drained by root: new fan", "reserved for ada until ..."; "" = nothing. Returns buf. */
const char *takt_orders_note(const struct takt_orders *orders, uint32_t gpu, struct takt_wall now,
			     char *buf, size_t size);
/* The next reservation of the GPU that has not begun, in the same words. Returns buf. */
const char *takt_orders_next(const struct takt_orders *orders, uint32_t gpu, struct takt_wall now,
			     char *buf, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What administrators say about GPUs: drained, reserved, in maintenance; and what takt itself has
 * set aside until somebody has looked at it. JSON as in views.h.
 */
#ifndef TAKT_CODEC_ORDERS_H
#define TAKT_CODEC_ORDERS_H

#include "codec/views.h"

enum {
	TAKT_MAX_RESERVATIONS = 256,
	TAKT_MAX_BOOKINGS = 192, /* of them: what users make; the rest is administrators' */
	TAKT_MAX_BOOKINGS_A_USER = 32,
};

/* A GPU that gets no new jobs. */
struct takt_gpu_order {
	uint32_t index;
	char uuid[96];
	char state[16]; /* "drained" by an administrator; "fault": by takt, until it is resumed */
	char reason[160];
	char by[33];	  /* who said so; "" = takt */
	int64_t since_ms; /* wall clock */
};

/* GPUs that are kept from `from_ms` to `until_ms`, wall clock. */
struct takt_reservation {
	uint64_t id;
	uint64_t gpu_mask;
	uint32_t uid;	 /* whose jobs may be there; UINT32_MAX = no user's */
	char user[33];	 /* his name; "" = not for a user */
	char tenant[64]; /* whose users' jobs may be there; "" = not for a tenant */
	int64_t from_ms, until_ms;
	char reason[160];
	char by[33];
	bool booked;	  /* by its user, within his rules (codec/booking.h) */
	char state[12];	  /* "granted"; of bookings also "waiting" for an administrator, "refused"
			     by one, "released" before its end */
	char answer[160]; /* why it was refused */
	char decided_by[33]; /* who granted, refused or released it; "" = nobody had to */
	int64_t made_ms;     /* 0 = not known */
	bool mine;	     /* of whoever is shown it; not on disk */
};

/* What whoever asks may book. */
struct takt_booking_view {
	bool may;
	char rule[80];	     /* the section of tenants_file that leaves the least: "[user *]" */
	bool approval;	     /* an administrator has to agree */
	int64_t week_gpu_ms; /* of that rule, in any seven days */
	int64_t left_gpu_ms; /* of it that is sure to be left in the next seven */
	int64_t ahead_ms, longest_ms;
};

/* A GPU in MIG mode: how it is cut. */
struct takt_gpu_mig {
	uint32_t index;
	char state[16];	 /* "set" by an administrator, "changed" (to be put back), "busy" (a change
			    is under way); "" = as declared or found */
	char layout[80]; /* base/mig_layout.h; "" = not known */
	char note[160];
	uint32_t instance_count;
	struct takt_gpu_mig_instance {
		char uuid[96];
		char profile[32];
	} instances[8];
};

struct takt_orders_view {
	bool simulated;
	uint32_t gpus; /* there are; counted from 0 */
	uint32_t uuid_count;
	char uuids[TAKT_VIEW_MAX_GPUS][96]; /* of them; "?" = not known */
	uint32_t set_aside_count;
	struct takt_gpu_order set_aside[TAKT_VIEW_MAX_GPUS]; /* by index */
	uint32_t reservation_count;
	struct takt_reservation reservations[TAKT_MAX_RESERVATIONS]; /* by id */
	uint32_t mig_count;
	struct takt_gpu_mig mig[TAKT_VIEW_MAX_GPUS]; /* by index; not kept on disk */
	uint64_t last_id; /* of a reservation; numbers are not used again */
	bool has_booking;
	struct takt_booking_view booking; /* not kept on disk */
};
int takt_orders_view_to_json(const struct takt_orders_view *view, struct takt_str *out);
int takt_orders_view_from_json(const char *text, size_t len, struct takt_orders_view *ret,
			       struct takt_err *err);

enum takt_gpu_request_kind {
	TAKT_GPU_DRAIN,	  /* gpu_mask, reason */
	TAKT_GPU_RESUME,  /* gpu_mask */
	TAKT_GPU_RESERVE, /* gpu_mask, user or tenant, from_ms, until_ms, reason, preview */
	TAKT_GPU_RELEASE, /* id */
	TAKT_GPU_MIG,	  /* gpu_mask: one; layout, "" = as declared or found */
	TAKT_GPU_APPROVE, /* id of a booking that waits */
	TAKT_GPU_REFUSE,  /* id, reason */
	TAKT_GPU_REQUEST_COUNT
};
struct takt_gpu_request {
	enum takt_gpu_request_kind kind;
	uint64_t gpu_mask;
	uint64_t id;
	char user[33];	 /* a name or a number */
	char tenant[64]; /* instead; neither: maintenance */
	int64_t from_ms, until_ms;
	char reason[160];
	char layout[80];
	bool preview; /* reserve: nothing is kept; whether it would be taken */
};
/* Refuses (-TAKT_E_USAGE, naming the field) what is not a request of that kind. */
int takt_gpu_request_from_json(enum takt_gpu_request_kind kind, const char *text, size_t len,
			       struct takt_gpu_request *ret, struct takt_err *err);
int takt_gpu_request_to_json(const struct takt_gpu_request *request, struct takt_str *out);

/* One of each, as the store keeps them. */
int takt_gpu_order_to_json(const struct takt_gpu_order *order, struct takt_str *out);
int takt_gpu_order_from_json(const char *text, size_t len, struct takt_gpu_order *ret,
			     struct takt_err *err);
int takt_reservation_to_json(const struct takt_reservation *reservation, struct takt_str *out);
int takt_reservation_from_json(const char *text, size_t len, struct takt_reservation *ret,
			       struct takt_err *err);

#endif

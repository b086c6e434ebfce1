/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators have said about GPUs, and what they say, as JSON. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/mig_layout.h"
#include "codec/orders.h"
#include "codec/view_tables.h"

#define ORDER struct takt_gpu_order
static const struct takt_field order_fields[] = {
	U32(ORDER, index, MUST), TEXT(ORDER, uuid), TEXT(ORDER, state),
	TEXT(ORDER, reason),	 TEXT(ORDER, by),   I64(ORDER, since_ms, NONE(0)),
};
static const struct takt_shape order_shape =
	TAKT_SHAPE(ORDER, "what is said of a GPU", order_fields);

#define RESERVATION struct takt_reservation
static const struct takt_field reservation_fields[] = {
	U64(RESERVATION, id, MUST),
	{.name = "gpus",
	 .kind = TAKT_FIELD_MASK,
	 .offset = offsetof(RESERVATION, gpu_mask),
	 .required = true},
	U32(RESERVATION, uid, NONE(UINT32_MAX)),
	TEXT(RESERVATION, user),
	TEXT(RESERVATION, tenant),
	I64(RESERVATION, from_ms, MUST),
	I64(RESERVATION, until_ms, MUST),
	TEXT(RESERVATION, reason),
	TEXT(RESERVATION, by),
	BOOL(RESERVATION, booked),
	TEXT(RESERVATION, state),
	TEXT(RESERVATION, answer),
	TEXT(RESERVATION, decided_by),
	I64(RESERVATION, made_ms, NONE(0)),
	BOOL(RESERVATION, mine),
};
static const struct takt_shape reservation_shape =
	TAKT_SHAPE(RESERVATION, "a reservation", reservation_fields);

#define INSTANCE struct takt_gpu_mig_instance
static const struct takt_field instance_fields[] = {TEXT(INSTANCE, uuid), TEXT(INSTANCE, profile)};
static const struct takt_shape instance_shape =
	TAKT_SHAPE(INSTANCE, "a MIG instance", instance_fields);

#define MIG struct takt_gpu_mig
static const struct takt_field mig_fields[] = {
	U32(MIG, index, MUST),
	TEXT(MIG, state),
	TEXT(MIG, layout),
	TEXT(MIG, note),
	{TAKT_FIELD_AT(MIG, instances, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY,
	 .required = true, .counts = true, .size = sizeof(INSTANCE), COUNT(MIG, instance_count),
	 .room = 8, .shape = &instance_shape},
};
static const struct takt_shape mig_shape = TAKT_SHAPE(MIG, "how a GPU is cut", mig_fields);

#define BOOKING struct takt_booking_view
static const struct takt_field booking_fields[] = {
	MUST_BOOL(BOOKING, may),	 TEXT(BOOKING, rule),
	MUST_BOOL(BOOKING, approval),	 I64(BOOKING, week_gpu_ms, MUST),
	I64(BOOKING, left_gpu_ms, MUST), I64(BOOKING, ahead_ms, MUST),
	I64(BOOKING, longest_ms, MUST),
};
static const struct takt_shape booking_shape =
	TAKT_SHAPE(BOOKING, "what may be booked", booking_fields);

#define ORDERS struct takt_orders_view
static const struct takt_field orders_fields[] = {
	MUST_BOOL(ORDERS, simulated),
	U32(ORDERS, gpus, MUST),
	{TAKT_FIELD_AT(ORDERS, uuids, TAKT_FIELD_TEXT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(((ORDERS *)0)->uuids[0]), COUNT(ORDERS, uuid_count),
	 .room = TAKT_VIEW_MAX_GPUS},
	{TAKT_FIELD_AT(ORDERS, set_aside, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY,
	 .required = true, .counts = true, .size = sizeof(ORDER), COUNT(ORDERS, set_aside_count),
	 .room = TAKT_VIEW_MAX_GPUS, .shape = &order_shape},
	{TAKT_FIELD_AT(ORDERS, reservations, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY,
	 .required = true, .counts = true, .size = sizeof(RESERVATION),
	 COUNT(ORDERS, reservation_count), .room = TAKT_MAX_RESERVATIONS,
	 .shape = &reservation_shape},
	{TAKT_FIELD_AT(ORDERS, mig, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(MIG), COUNT(ORDERS, mig_count), .room = TAKT_VIEW_MAX_GPUS,
	 .shape = &mig_shape},
	U64(ORDERS, last_id, NONE(0)),
	{TAKT_FIELD_AT(ORDERS, booking, TAKT_FIELD_OBJECT),
	 .flag_offset = offsetof(ORDERS, has_booking), .shape = &booking_shape},
};
static const struct takt_shape orders_shape =
	TAKT_SHAPE(ORDERS, "what GPUs are set aside", orders_fields);

int takt_orders_view_to_json(const struct takt_orders_view *view, struct takt_str *out)
{
	return takt_shape_encode(&orders_shape, view, out);
}

int takt_orders_view_from_json(const char *text, size_t len, struct takt_orders_view *ret,
			       struct takt_err *err)
{
	memset(ret, 0, sizeof(*ret));
	return takt_shape_decode(&orders_shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT,
				 ret, err);
}

#define REQUEST struct takt_gpu_request
#define GPUS                                                                                    \
	{                                                                                       \
		.name = "gpus", .kind = TAKT_FIELD_MASK, .offset = offsetof(REQUEST, gpu_mask), \
		.required = true                                                                \
	}
static const struct takt_field drain_fields[] = {GPUS, TEXT(REQUEST, reason)};
static const struct takt_field resume_fields[] = {GPUS};
static const struct takt_field reserve_fields[] = {
	GPUS,
	TEXT(REQUEST, user),
	TEXT(REQUEST, tenant),
	I64(REQUEST, from_ms, MUST),
	I64(REQUEST, until_ms, MUST),
	TEXT(REQUEST, reason),
	BOOL(REQUEST, preview),
};
static const struct takt_field release_fields[] = {U64(REQUEST, id, MUST, .min = 1)};
static const struct takt_field refuse_fields[] = {U64(REQUEST, id, MUST, .min = 1),
						  TEXT(REQUEST, reason)};
static const struct takt_field mig_request_fields[] = {GPUS, TEXT(REQUEST, layout)};
static const struct takt_shape request_shapes[TAKT_GPU_REQUEST_COUNT] = {
	[TAKT_GPU_DRAIN] = TAKT_SHAPE(REQUEST, "the body", drain_fields),
	[TAKT_GPU_RESUME] = TAKT_SHAPE(REQUEST, "the body", resume_fields),
	[TAKT_GPU_RESERVE] = TAKT_SHAPE(REQUEST, "the body", reserve_fields),
	[TAKT_GPU_RELEASE] = TAKT_SHAPE(REQUEST, "the body", release_fields),
	[TAKT_GPU_MIG] = TAKT_SHAPE(REQUEST, "the body", mig_request_fields),
	[TAKT_GPU_APPROVE] = TAKT_SHAPE(REQUEST, "the body", release_fields),
	[TAKT_GPU_REFUSE] = TAKT_SHAPE(REQUEST, "the body", refuse_fields),
};

enum {
	MAX_BYTES = 64 * 1024
};

/* Of one reservation, by its number; the others are of GPUs. */
static bool is_by_id(enum takt_gpu_request_kind kind)
{
	return kind == TAKT_GPU_RELEASE || kind == TAKT_GPU_APPROVE || kind == TAKT_GPU_REFUSE;
}

static int check_request(const struct takt_gpu_request *request, struct takt_err *err)
{
	struct takt_mig_layout layout;

	if (request->kind == TAKT_GPU_REFUSE && !request->reason[0])
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'reason' must say why: whoever has booked reads it");
	if (!is_by_id(request->kind) && request->gpu_mask == 0)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'gpus' must name at least one GPU");
	if (request->kind == TAKT_GPU_MIG && (request->gpu_mask & (request->gpu_mask - 1)))
		return takt_err_set(err, -TAKT_E_USAGE, "field 'gpus' must name one GPU");
	if (request->kind == TAKT_GPU_MIG && request->layout[0] &&
	    takt_mig_layout_parse(request->layout, &layout, err) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'layout': kinds of MIG instances with commas between "
				    "them ('3g.40gb,3g.40gb'), or 'none'");
	if (request->kind == TAKT_GPU_DRAIN && !request->reason[0])
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"field 'reason' must say why: whoever waits for the GPU reads it");
	if (request->kind == TAKT_GPU_RESERVE && request->until_ms <= request->from_ms)
		return takt_err_set(err, -TAKT_E_USAGE, "'until_ms' must be after 'from_ms'");
	if (request->kind == TAKT_GPU_RESERVE && request->user[0] && request->tenant[0])
		return takt_err_set(err, -TAKT_E_USAGE, "'user' and 'tenant' exclude each other");
	return 0;
}

int takt_gpu_request_from_json(enum takt_gpu_request_kind kind, const char *text, size_t len,
			       struct takt_gpu_request *ret, struct takt_err *err)
{
	struct takt_gpu_request request;
	int rc;

	memset(&request, 0, sizeof(request));
	rc = takt_shape_decode(&request_shapes[kind], text, len, MAX_BYTES, TAKT_SHAPE_STRICT,
			       &request, err);
	if (rc == -TAKT_E_CORRUPT) {
		rc = -TAKT_E_USAGE;
		if (err)
			err->rc = rc;
	}
	request.kind = kind;
	if (rc == 0)
		rc = check_request(&request, err);
	if (rc == 0)
		*ret = request;
	return rc;
}

int takt_gpu_request_to_json(const struct takt_gpu_request *request, struct takt_str *out)
{
	return takt_shape_encode(&request_shapes[request->kind], request, out);
}

int takt_gpu_order_to_json(const struct takt_gpu_order *order, struct takt_str *out)
{
	return takt_shape_encode(&order_shape, order, out);
}

int takt_gpu_order_from_json(const char *text, size_t len, struct takt_gpu_order *ret,
			     struct takt_err *err)
{
	memset(ret, 0, sizeof(*ret));
	return takt_shape_decode(&order_shape, text, len, MAX_BYTES, TAKT_SHAPE_TOLERANT, ret, err);
}

int takt_reservation_to_json(const struct takt_reservation *reservation, struct takt_str *out)
{
	return takt_shape_encode(&reservation_shape, reservation, out);
}

int takt_reservation_from_json(const char *text, size_t len, struct takt_reservation *ret,
			       struct takt_err *err)
{
	memset(ret, 0, sizeof(*ret));
	return takt_shape_decode(&reservation_shape, text, len, MAX_BYTES, TAKT_SHAPE_TOLERANT, ret,
				 err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The view of round trips. */
#include "codec/net_view.h"

#include <string.h>

#include "codec/view_tables.h"

#define PEER struct takt_net_peer_view
static const struct takt_field peer_fields[] = {
	TEXT(PEER, name),
	TEXT(PEER, address),
	TEXT(PEER, state),
	U64(PEER, answered, MUST),
	U64(PEER, lost, MUST),
	U64(PEER, last_ns, NONE(0)),
	U64(PEER, least_ns, NONE(0)),
	U64(PEER, mean_ns, NONE(0)),
	U64(PEER, most_ns, NONE(0)),
	U64(PEER, p99_below_ns, NONE(0)),
};
static const struct takt_shape peer_shape = TAKT_SHAPE(PEER, "a peer", peer_fields);

#define REFUSED struct takt_net_refused_view
static const struct takt_field refused_fields[] = {
	TEXT(REFUSED, reason),
	U64(REFUSED, count, MUST),
};
static const struct takt_shape refused_shape =
	TAKT_SHAPE(REFUSED, "a reason to refuse", refused_fields);

#define NET struct takt_net_view
static const struct takt_field net_fields[] = {
	TEXT(NET, listen),
	{TAKT_FIELD_AT(NET, peers, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(PEER), COUNT(NET, peer_count), .room = TAKT_NET_VIEW_MAX_PEERS,
	 .shape = &peer_shape, .required = true},
	{TAKT_FIELD_AT(NET, refused, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(REFUSED), COUNT(NET, refused_count), .room = TAKT_NET_VIEW_MAX_REFUSED,
	 .shape = &refused_shape},
};
static const struct takt_shape net_shape = TAKT_SHAPE(NET, "the network", net_fields);

int takt_net_view_to_json(const struct takt_net_view *view, struct takt_str *out)
{
	return takt_shape_encode(&net_shape, view, out);
}

int takt_net_view_from_json(const char *text, size_t len, struct takt_net_view *ret,
			    struct takt_err *err)
{
	memset(ret, 0, sizeof(*ret));
	return takt_shape_decode(&net_shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT,
				 ret, err);
}

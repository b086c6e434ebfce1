/* SPDX-License-Identifier: Apache-2.0 */
/* How many tasks of a kind fit, on a node, in a domain, and in which domain best: for gangs. */
#include "sched/place_index.h"

uint32_t takt_cluster_room(struct takt_cluster *cluster, uint32_t kind, uint32_t node)
{
	return takt_fit_room(cluster, takt_cluster_at(cluster, node), kind);
}

uint32_t takt_cluster_room_when_empty(const struct takt_cluster *cluster, uint32_t kind,
				      uint32_t node)
{
	return takt_fit_room_when_empty(cluster, takt_cluster_at(cluster, node), kind);
}

uint64_t takt_cluster_domain_room_naive(struct takt_cluster *cluster, uint32_t kind,
					uint32_t domain)
{
	struct takt_scope scope = {.domain = domain};
	size_t nodes;
	const uint32_t *node = takt_scope_nodes(cluster, &scope, &nodes);
	uint64_t room = 0;

	for (size_t i = 0; i < nodes; i++)
		room += takt_cluster_room(cluster, kind, node[i]);
	return room;
}

uint64_t takt_cluster_domain_room(struct takt_cluster *cluster, uint32_t kind, uint32_t domain)
{
	struct takt_place_view *view = takt_index_room(cluster, kind);

	if (domain > cluster->domains.len)
		return 0;
	return view ? view->domain_room[domain]
		    : takt_cluster_domain_room_naive(cluster, kind, domain);
}

static uint64_t room_in(struct takt_cluster *cluster, const struct takt_place_view *view,
			uint32_t kind, uint32_t domain)
{
	return view ? view->domain_room[domain]
		    : takt_cluster_domain_room_naive(cluster, kind, domain);
}

bool takt_cluster_tightest(struct takt_cluster *cluster, uint32_t kind, uint32_t level,
			   uint64_t tasks, uint32_t *ret_domain)
{
	const struct takt_place_view *view = takt_index_room(cluster, kind);
	uint64_t least = UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t i = level ? 1 : 0; i <= (level ? cluster->domains.len : 0); i++) {
		uint64_t room;

		if (i && cluster->domains.at[i - 1].level != level)
			continue;
		room = room_in(cluster, view, kind, i);
		if (room >= tasks && room < least) {
			least = room;
			best = i;
		}
	}
	if (least == UINT64_MAX)
		return false;
	*ret_domain = best;
	return true;
}

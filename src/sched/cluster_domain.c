/* SPDX-License-Identifier: Apache-2.0 */
/* The topology outside the nodes: levels from the outside in, domains of each, nodes in them. */
#include <errno.h>
#include <stdio.h>

#include "base/sort.h"
#include "sched/cluster_state.h"

enum {
	MAX_NAME = 512
};

static struct takt_cluster_domain *domain_at(const struct takt_cluster *cluster, uint32_t domain)
{
	return domain >= 1 && domain <= cluster->domains.len ? &cluster->domains.at[domain - 1]
							     : NULL;
}

int takt_cluster_level_find(const struct takt_cluster *cluster, const char *name)
{
	for (size_t i = 0; i < cluster->levels.len; i++)
		if (strcmp(cluster->levels.at[i], name) == 0)
			return (int)i + 1;
	return -ENOENT;
}

int takt_cluster_level(struct takt_cluster *cluster, const char *name, uint32_t *ret,
		       struct takt_err *err)
{
	int rc = takt_cluster_level_find(cluster, name);
	char *copy;

	if (rc > 0) {
		*ret = (uint32_t)rc;
		return 0;
	}
	copy = takt_strdup(name);
	rc = copy ? takt_vec_push(&cluster->levels, copy) : -ENOMEM;
	if (rc < 0) {
		takt_free(copy);
		return takt_err_set(err, rc, "level %s: at most %d levels", name,
				    TAKT_CLUSTER_MAX_LEVELS);
	}
	*ret = (uint32_t)cluster->levels.len;
	return 0;
}

const char *takt_cluster_level_name(const struct takt_cluster *cluster, uint32_t level)
{
	return level >= 1 && level <= cluster->levels.len ? cluster->levels.at[level - 1] : NULL;
}

size_t takt_cluster_level_count(const struct takt_cluster *cluster)
{
	return cluster->levels.len;
}

static int add_domain(struct takt_cluster *cluster, const struct takt_cluster_domain *desc,
		      const char *name, const char *key)
{
	struct takt_cluster_domain domain = *desc;
	union takt_map_value value = {.u64 = cluster->domains.len + 1};
	int rc = takt_vec_reserve(&cluster->domains, 1);

	if (rc < 0)
		return rc;
	domain.name = takt_strdup(name);
	if (!domain.name)
		return -ENOMEM;
	rc = takt_map_str_put(&cluster->domain_by_name, key, value);
	if (rc < 0) {
		takt_free(domain.name);
		return rc;
	}
	cluster->domains.at[cluster->domains.len++] = domain;
	return 0;
}

int takt_cluster_domain(struct takt_cluster *cluster, uint32_t level, uint32_t parent,
			const char *name, uint32_t *ret, struct takt_err *err)
{
	const struct takt_cluster_domain *outer = domain_at(cluster, parent);
	struct takt_cluster_domain desc = {.level = level, .parent = parent};
	const union takt_map_value *known;
	char key[MAX_NAME];
	int rc;

	if (!takt_cluster_level_name(cluster, level))
		return takt_err_set(err, -EINVAL, "domain %s: there is no level %u", name, level);
	if ((parent && !outer) || (outer && outer->level >= level))
		return takt_err_set(err, -EINVAL,
				    "domain %s: %u is no domain of a level further out", name,
				    parent);
	rc = snprintf(key, sizeof(key), "%u/%u/%s", level, parent, name);
	if (rc < 0 || (size_t)rc >= sizeof(key))
		return takt_err_set(err, -EINVAL, "domain %.40s...: name is too long", name);
	known = takt_map_str_get(&cluster->domain_by_name, key);
	if (!known) {
		desc.nodes.max = TAKT_CLUSTER_MAX_NODES;
		rc = add_domain(cluster, &desc, name, key);
		if (rc < 0)
			return takt_err_set(err, rc, "domain %s: too many, or no memory", name);
	}
	*ret = known ? (uint32_t)known->u64 : (uint32_t)cluster->domains.len;
	return 0;
}

size_t takt_cluster_domain_count(const struct takt_cluster *cluster)
{
	return cluster->domains.len;
}

const char *takt_cluster_domain_name(const struct takt_cluster *cluster, uint32_t domain)
{
	const struct takt_cluster_domain *at = domain_at(cluster, domain);

	return at ? at->name : NULL;
}

uint32_t takt_cluster_domain_level(const struct takt_cluster *cluster, uint32_t domain)
{
	const struct takt_cluster_domain *at = domain_at(cluster, domain);

	return at ? at->level : 0;
}

uint32_t takt_cluster_domain_parent(const struct takt_cluster *cluster, uint32_t domain)
{
	const struct takt_cluster_domain *at = domain_at(cluster, domain);

	return at ? at->parent : 0;
}

uint32_t takt_cluster_node_domain(const struct takt_cluster *cluster, uint32_t node, uint32_t level)
{
	uint32_t domain = node < cluster->node_count ? takt_cluster_at(cluster, node)->domain : 0;

	while (domain && takt_cluster_domain_level(cluster, domain) > level)
		domain = takt_cluster_domain_parent(cluster, domain);
	return domain && takt_cluster_domain_level(cluster, domain) == level ? domain : 0;
}

int takt_cluster_domain_reserve(struct takt_cluster *cluster, uint32_t domain)
{
	for (; domain; domain = takt_cluster_domain_parent(cluster, domain)) {
		int rc = takt_vec_reserve(&domain_at(cluster, domain)->nodes, 1);

		if (rc < 0)
			return rc;
	}
	return 0;
}

void takt_cluster_domain_enter(struct takt_cluster *cluster, const struct takt_node *node)
{
	for (uint32_t i = node->domain; i; i = takt_cluster_domain_parent(cluster, i)) {
		struct takt_cluster_domain *domain = domain_at(cluster, i);

		domain->nodes.at[domain->nodes.len++] = node->id;
		domain->stale = true;
	}
}

void takt_cluster_domain_leave(struct takt_cluster *cluster, const struct takt_node *node)
{
	for (uint32_t i = node->domain; i; i = takt_cluster_domain_parent(cluster, i)) {
		struct takt_cluster_domain *domain = domain_at(cluster, i);

		for (size_t at = domain->nodes.len; at-- > 0;)
			if (domain->nodes.at[at] == node->id)
				takt_vec_remove(&domain->nodes, at);
	}
}

int takt_cluster_domain_nodes(struct takt_cluster *cluster, uint32_t domain, const uint32_t **ret,
			      size_t *ret_count)
{
	struct takt_cluster_domain *at = domain_at(cluster, domain);

	if (!at)
		return -ENOENT;
	if (at->stale)
		takt_sort_with(at->nodes.at, at->nodes.len, sizeof(*at->nodes.at),
			       cluster->sort_scratch, takt_cluster_by_rank, cluster);
	at->stale = false;
	*ret = at->nodes.at;
	*ret_count = at->nodes.len;
	return 0;
}

void takt_cluster_domains_fini(struct takt_cluster *cluster)
{
	TAKT_VEC_EACH (domain, &cluster->domains) {
		takt_free(domain->name);
		takt_vec_fini(&domain->nodes);
	}
	takt_vec_fini(&cluster->domains);
	takt_map_fini(&cluster->domain_by_name);
	TAKT_VEC_EACH (name, &cluster->levels)
		takt_free(*name);
	takt_vec_fini(&cluster->levels);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of tenants and its books. */
#include "sched/tenant.h"

#include <errno.h>
#include <inttypes.h>

#include "sched/tenant_state.h"

enum {
	MAX_TENANTS_DEFAULT = 10000,
	MAX_WEIGHT = 1000000,
	MAX_USAGE_K_MILLI = 10000,
};
#define DAY_NS (UINT64_C(86400) * 1000000000)

int takt_tenants_new(const struct takt_tenants_config *config, struct takt_tenants **ret,
		     struct takt_err *err)
{
	struct takt_tenants *tenants;

	if (config->usage_k_milli > MAX_USAGE_K_MILLI)
		return takt_err_set(err, -EINVAL, "usage_k %" PRIu32 ", at most %d thousandths",
				    config->usage_k_milli, MAX_USAGE_K_MILLI);
	tenants = takt_zalloc(sizeof(*tenants));
	if (!tenants)
		return takt_err_set(err, -ENOMEM, "tenants");
	tenants->config = *config;
	if (config->half_life_ns == 0)
		tenants->config.half_life_ns = 7 * DAY_NS;
	tenants->nodes.max = config->max_tenants ? config->max_tenants : MAX_TENANTS_DEFAULT;
	*ret = tenants;
	return 0;
}

void takt_tenants_free(struct takt_tenants *tenants)
{
	if (!tenants)
		return;
	TAKT_VEC_EACH (node, &tenants->nodes)
		takt_free(*node);
	takt_vec_fini(&tenants->nodes);
	takt_free(tenants);
}

static size_t place_of(const struct takt_tenants *tenants, uint32_t id)
{
	size_t low = 0;
	size_t high = tenants->nodes.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (tenants->nodes.at[mid]->terms.id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct takt_tenant_node *takt_tenants_node(const struct takt_tenants *tenants, uint32_t id)
{
	size_t i = (size_t)id - 1; /* where it is if all numbers up to it are in use */

	if (id == TAKT_TENANT_ROOT)
		return (struct takt_tenant_node *)&tenants->root;
	if (i >= tenants->nodes.len || tenants->nodes.at[i]->terms.id != id)
		i = place_of(tenants, id);
	if (i == tenants->nodes.len || tenants->nodes.at[i]->terms.id != id)
		return NULL;
	return tenants->nodes.at[i];
}

static int check_terms(const struct takt_tenant *tenant, struct takt_err *err)
{
	if (tenant->id == TAKT_TENANT_ROOT)
		return takt_err_set(err, -EINVAL, "tenant 0 is the root of all others");
	if (tenant->weight == 0 || tenant->weight > MAX_WEIGHT)
		return takt_err_set(err, -EINVAL,
				    "tenant %" PRIu32 ": weight %" PRIu32 " is not within 1..%d",
				    tenant->id, tenant->weight, MAX_WEIGHT);
	if (tenant->limit_milli && tenant->quota_milli > tenant->limit_milli)
		return takt_err_set(err, -EINVAL,
				    "tenant %" PRIu32 ": its quota is larger than its limit",
				    tenant->id);
	return 0;
}

/* Where it hangs among the children of its parent. */
static struct takt_tenant_node **link_to(struct takt_tenant_node *parent, uint32_t id)
{
	struct takt_tenant_node **link = &parent->child;

	while (*link && (*link)->terms.id < id)
		link = &(*link)->sibling;
	return link;
}

static int add(struct takt_tenants *tenants, const struct takt_tenant *terms, struct takt_err *err)
{
	struct takt_tenant_node *parent = takt_tenants_node(tenants, terms->parent);
	struct takt_tenant_node **link;
	struct takt_tenant_node *node;
	int rc = takt_vec_reserve(&tenants->nodes, 1);

	if (!parent)
		return takt_err_set(err, -EINVAL,
				    "tenant %" PRIu32 ": there is no tenant %" PRIu32 " above it",
				    terms->id, terms->parent);
	if (parent->depth == TAKT_TENANT_MAX_DEPTH)
		return takt_err_set(err, -EINVAL, "tenant %" PRIu32 ": more than %d levels",
				    terms->id, TAKT_TENANT_MAX_DEPTH);
	if (rc < 0)
		return takt_err_set(err, rc, "tenant %" PRIu32, terms->id);
	node = takt_zalloc(sizeof(*node));
	if (!node)
		return takt_err_set(err, -ENOMEM, "tenant %" PRIu32, terms->id);
	link = link_to(parent, terms->id);
	*node = (struct takt_tenant_node){.terms = *terms,
					  .parent = parent,
					  .sibling = *link,
					  .depth = parent->depth + 1,
					  .rank = UINT32_MAX};
	*link = node;
	return takt_vec_insert(&tenants->nodes, place_of(tenants, terms->id), node);
}

int takt_tenants_set(struct takt_tenants *tenants, const struct takt_tenant *tenant,
		     struct takt_err *err)
{
	struct takt_tenant_node *node = takt_tenants_node(tenants, tenant->id);
	int rc = check_terms(tenant, err);

	if (rc < 0)
		return rc;
	if (!node)
		return add(tenants, tenant, err);
	if (tenant->parent != node->terms.parent)
		return takt_err_set(err, -EINVAL, "tenant %" PRIu32 " cannot change its parent",
				    tenant->id);
	node->terms = *tenant;
	return 0;
}

int takt_tenants_remove(struct takt_tenants *tenants, uint32_t id, struct takt_err *err)
{
	struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	if (!node || id == TAKT_TENANT_ROOT)
		return takt_err_set(err, -ENOENT, "there is no tenant %" PRIu32, id);
	if (node->child)
		return takt_err_set(err, -EBUSY, "tenant %" PRIu32 " has tenants below it", id);
	if (node->has_milli || node->want_milli)
		return takt_err_set(err, -EBUSY, "tenant %" PRIu32 " still has jobs", id);
	*link_to(node->parent, id) = node->sibling;
	takt_vec_remove(&tenants->nodes, place_of(tenants, id));
	takt_free(node);
	return 0;
}

size_t takt_tenants_count(const struct takt_tenants *tenants)
{
	return tenants->nodes.len;
}

const struct takt_tenant *takt_tenants_at(const struct takt_tenants *tenants, size_t i)
{
	return &tenants->nodes.at[i]->terms;
}

const struct takt_tenant *takt_tenants_find(const struct takt_tenants *tenants, uint32_t id)
{
	const struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	return node && id != TAKT_TENANT_ROOT ? &node->terms : NULL;
}

/* Books what it had until now, then lets `milli` more (or less) count. */
static void book(const struct takt_tenants *tenants, struct takt_tenant_node *node, uint64_t now_ns)
{
	if (now_ns <= node->booked_ns)
		return;
	node->usage = takt_tenants_node_usage(tenants, node, now_ns);
	node->booked_ns = now_ns;
}

int takt_tenants_take(struct takt_tenants *tenants, uint32_t id, uint64_t milli, uint64_t now_ns)
{
	struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	if (!node)
		return -ENOENT;
	node->own_has_milli += milli;
	for (; node; node = node->parent) {
		book(tenants, node, now_ns);
		node->has_milli += milli;
	}
	return 0;
}

int takt_tenants_give(struct takt_tenants *tenants, uint32_t id, uint64_t milli, uint64_t now_ns)
{
	struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	if (!node)
		return -ENOENT;
	if (milli > node->own_has_milli)
		return -EINVAL;
	node->own_has_milli -= milli;
	for (; node; node = node->parent) {
		book(tenants, node, now_ns);
		node->has_milli -= milli;
	}
	return 0;
}

int takt_tenants_want(struct takt_tenants *tenants, uint32_t id, int64_t milli)
{
	struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	if (!node)
		return -ENOENT;
	if (milli < 0 && node->own_want_milli < -(uint64_t)milli)
		return -EINVAL;
	node->own_want_milli += (uint64_t)milli;
	for (; node; node = node->parent)
		node->want_milli += (uint64_t)milli;
	return 0;
}

void takt_tenants_books(const struct takt_tenants *tenants, uint32_t id, uint64_t *ret_usage,
			uint64_t *ret_booked_ns)
{
	const struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	*ret_usage = node ? node->usage : 0;
	*ret_booked_ns = node ? node->booked_ns : 0;
}

int takt_tenants_restore(struct takt_tenants *tenants, uint32_t id, uint64_t usage, uint64_t now_ns)
{
	struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	if (!node)
		return -ENOENT;
	node->usage = usage;
	node->booked_ns = now_ns;
	return 0;
}

uint64_t takt_tenants_has_milli(const struct takt_tenants *tenants, uint32_t id)
{
	const struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	return node ? node->has_milli : 0;
}

uint64_t takt_tenants_usage(const struct takt_tenants *tenants, uint32_t id, uint64_t now_ns)
{
	const struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	return node ? takt_tenants_node_usage(tenants, node, now_ns) : 0;
}

const char *takt_quota_name(enum takt_quota quota)
{
	static const char *const names[TAKT_QUOTA_COUNT] = {
		[TAKT_QUOTA_OK] = "ok",		  [TAKT_QUOTA_BORROWS] = "borrows",
		[TAKT_QUOTA_LIMIT] = "limit",	  [TAKT_QUOTA_FULL] = "full",
		[TAKT_QUOTA_UNKNOWN] = "unknown",
	};

	return (unsigned)quota < TAKT_QUOTA_COUNT ? names[quota] : "?";
}

static enum takt_quota check_one(const struct takt_tenant_node *node, uint64_t milli)
{
	uint64_t has_milli = node->has_milli + milli;

	if (node->terms.limit_milli && has_milli > node->terms.limit_milli)
		return TAKT_QUOTA_LIMIT;
	if (has_milli <= node->terms.quota_milli)
		return TAKT_QUOTA_OK;
	return node->terms.may_borrow ? TAKT_QUOTA_BORROWS : TAKT_QUOTA_FULL;
}

enum takt_quota takt_tenants_check(const struct takt_tenants *tenants, uint32_t id, uint64_t milli,
				   uint32_t *ret_at)
{
	const struct takt_tenant_node *node = takt_tenants_node(tenants, id);
	enum takt_quota result = TAKT_QUOTA_OK;
	uint32_t at = id;

	if (!node || id == TAKT_TENANT_ROOT)
		return TAKT_QUOTA_UNKNOWN;
	for (; node->parent; node = node->parent) {
		enum takt_quota one = check_one(node, milli);

		if (one > result) {
			result = one;
			at = node->terms.id;
		}
		if (one > TAKT_QUOTA_BORROWS)
			break;
	}
	if (ret_at && result != TAKT_QUOTA_OK)
		*ret_at = at;
	return result;
}

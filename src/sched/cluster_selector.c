/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requirements on labels and taints. Each different set is kept once, with one bit for each node
 * that meets it, brought up to date when nodes come or their labels change; asking is one bit.
 */
#include <errno.h>

#include "base/str.h"
#include "sched/cluster_state.h"

enum {
	MAX_TEXT = 64 * 1024,
	MAX_TERMS = 256,
};

static void free_requirements(struct takt_cluster_requirement *requirements, size_t count)
{
	for (size_t i = 0; requirements && i < count; i++) {
		for (size_t j = 0; requirements[i].values && j < requirements[i].value_count; j++)
			takt_free(requirements[i].values[j]);
		takt_free(requirements[i].values);
		takt_free(requirements[i].key);
	}
	takt_free(requirements);
}

static int copy_requirement(const struct takt_requirement *from,
			    struct takt_cluster_requirement *to)
{
	to->op = from->op;
	to->value_count = from->value_count;
	to->key = takt_strdup(from->key);
	to->values = takt_calloc(from->value_count + 1, sizeof(*to->values));
	if (!to->key || !to->values)
		return -ENOMEM;
	for (size_t i = 0; i < from->value_count; i++) {
		to->values[i] = takt_strdup(from->values[i]);
		if (!to->values[i])
			return -ENOMEM;
	}
	return 0;
}

static bool has_value(const struct takt_cluster_requirement *requirement, const char *value)
{
	for (size_t i = 0; i < requirement->value_count; i++)
		if (strcmp(requirement->values[i], value) == 0)
			return true;
	return false;
}

static const char *label_of(const struct takt_cluster_cold *cold, const char *key)
{
	for (size_t i = 0; i < cold->label_count; i++)
		if (strcmp(cold->labels[i].key, key) == 0)
			return cold->labels[i].value;
	return NULL;
}

static bool meets(const struct takt_cluster_cold *cold,
		  const struct takt_cluster_requirement *requirement)
{
	const char *value = label_of(cold, requirement->key);

	switch (requirement->op) {
	case TAKT_REQUIREMENT_IN:
		return value && has_value(requirement, value);
	case TAKT_REQUIREMENT_NOT_IN:
		return !value || !has_value(requirement, value);
	case TAKT_REQUIREMENT_EXISTS:
		return value != NULL;
	case TAKT_REQUIREMENT_NOT_EXISTS:
		return value == NULL;
	default:
		return true;
	}
}

static bool tolerates(const struct takt_cluster_selector *selector,
		      const struct takt_cluster_label *taint)
{
	for (size_t i = 0; i < selector->count; i++) {
		const struct takt_cluster_requirement *term = &selector->requirements[i];

		if (term->op == TAKT_REQUIREMENT_TOLERATES && strcmp(term->key, taint->key) == 0 &&
		    (term->value_count == 0 || has_value(term, taint->value)))
			return true;
	}
	return false;
}

static void update(struct takt_cluster *cluster, struct takt_cluster_selector *selector,
		   uint32_t node)
{
	const struct takt_cluster_cold *cold = &cluster->cold.at[node];
	uint64_t bit = UINT64_C(1) << (node % 64);
	bool yes = true;

	for (size_t i = 0; yes && i < cold->taint_count; i++)
		yes = tolerates(selector, &cold->taints[i]);
	for (size_t i = 0; yes && i < selector->count; i++)
		yes = meets(cold, &selector->requirements[i]);
	selector->nodes[node / 64] &= ~bit;
	if (yes)
		selector->nodes[node / 64] |= bit;
}

void takt_cluster_selectors_update(struct takt_cluster *cluster, uint32_t node)
{
	TAKT_VEC_EACH (selector, &cluster->selectors)
		update(cluster, selector, node);
}

static int reserve(struct takt_cluster_selector *selector, size_t nodes)
{
	size_t words = (nodes + 63) / 64, more;
	uint64_t *grown;

	if (words <= selector->words)
		return 0;
	more = words + words / 2 + 16;
	grown = takt_reallocarray(selector->nodes, more, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + selector->words, 0, (more - selector->words) * sizeof(*grown));
	selector->nodes = grown;
	selector->words = more;
	return 0;
}

int takt_cluster_selectors_reserve(struct takt_cluster *cluster, size_t nodes)
{
	TAKT_VEC_EACH (selector, &cluster->selectors) {
		int rc = reserve(selector, nodes);

		if (rc < 0)
			return rc;
	}
	return 0;
}

bool takt_cluster_selects(const struct takt_cluster *cluster, uint32_t selector, uint32_t node)
{
	return cluster->selectors.at[selector].nodes[node / 64] >> (node % 64) & 1;
}

/* What tells two sets apart. Lengths are in it, so that no two sets have one text. */
static int text_of(const struct takt_requirement *requirements, size_t count, struct takt_str *ret)
{
	for (size_t i = 0; i < count; i++) {
		const struct takt_requirement *term = &requirements[i];

		takt_str_addf(ret, "%d %zu:%s %zu", (int)term->op, strlen(term->key), term->key,
			      term->value_count);
		for (size_t j = 0; j < term->value_count; j++)
			takt_str_addf(ret, " %zu:%s", strlen(term->values[j]), term->values[j]);
		takt_str_add(ret, ";");
	}
	return ret->rc;
}

static int check(const struct takt_requirement *requirements, size_t count, struct takt_err *err)
{
	if (count > MAX_TERMS)
		return takt_err_set(err, -EINVAL, "%zu requirements are more than %d", count,
				    MAX_TERMS);
	for (size_t i = 0; i < count; i++) {
		const struct takt_requirement *term = &requirements[i];
		bool in = term->op == TAKT_REQUIREMENT_IN || term->op == TAKT_REQUIREMENT_NOT_IN;

		if ((unsigned)term->op >= TAKT_REQUIREMENT_OP_COUNT || !term->key || !*term->key)
			return takt_err_set(err, -EINVAL, "requirement %zu names no label", i + 1);
		if (in && term->value_count == 0)
			return takt_err_set(err, -EINVAL, "requirement on %s gives no value",
					    term->key);
	}
	return 0;
}

static int add(struct takt_cluster *cluster, const struct takt_requirement *requirements,
	       size_t count, const char *text)
{
	struct takt_cluster_selector selector = {.count = count};
	union takt_map_value value = {.u64 = cluster->selectors.len};
	int rc = takt_vec_reserve(&cluster->selectors, 1);

	selector.requirements = takt_calloc(count + 1, sizeof(*selector.requirements));
	if (!selector.requirements)
		rc = rc < 0 ? rc : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = copy_requirement(&requirements[i], &selector.requirements[i]);
	if (rc == 0)
		rc = reserve(&selector, cluster->node_count + 1);
	if (rc == 0)
		rc = takt_map_str_put(&cluster->selector_by_text, text, value);
	if (rc < 0) {
		takt_free(selector.nodes);
		free_requirements(selector.requirements, count);
		return rc;
	}
	for (uint32_t i = 0; i < cluster->node_count; i++)
		update(cluster, &selector, i);
	cluster->selectors.at[cluster->selectors.len++] = selector;
	return 0;
}

int takt_cluster_selector(struct takt_cluster *cluster, const struct takt_requirement *requirements,
			  size_t count, uint32_t *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_TEXT);
	const union takt_map_value *known;
	int rc = check(requirements, count, err);

	if (rc < 0)
		return rc;
	rc = text_of(requirements, count, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "requirements are longer than %d bytes", MAX_TEXT);
	known = takt_map_str_get(&cluster->selector_by_text, takt_str_text(&text));
	if (known) {
		*ret = (uint32_t)known->u64;
		return 0;
	}
	rc = add(cluster, requirements, count, takt_str_text(&text));
	if (rc < 0)
		return takt_err_set(err, rc, "at most %d different sets of requirements",
				    TAKT_CLUSTER_MAX_SELECTORS);
	*ret = (uint32_t)cluster->selectors.len - 1;
	return 0;
}

void takt_cluster_selectors_fini(struct takt_cluster *cluster)
{
	TAKT_VEC_EACH (selector, &cluster->selectors) {
		takt_free(selector->nodes);
		free_requirements(selector->requirements, selector->count);
	}
	takt_vec_fini(&cluster->selectors);
	takt_map_fini(&cluster->selector_by_text);
}

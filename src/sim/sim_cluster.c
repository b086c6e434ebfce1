/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters from files and descriptions, see the header. */
#include "sim/sim_cluster.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "sim/trace.h"

enum {
	MAX_PARTS = 64,
	PART_TEXT = 128,
	PLENTY_CPU_MILLI = INT32_MAX,
	MAX_TEXT_BYTES = 512 * 1024 * 1024,
};

#define PLENTY_MEM_MIB ((int64_t)INT32_MAX)

int takt_sim_cluster_model(struct takt_sim_cluster *cluster, const char *name, uint32_t *ret,
			   struct takt_err *err)
{
	int rc;

	if (takt_sim_names_find(&cluster->models, name) == UINT32_MAX &&
	    cluster->models.texts.len == TAKT_SIM_MAX_MODELS)
		return takt_err_set(err, -TAKT_E_LIMIT, "more than %d accelerator models",
				    TAKT_SIM_MAX_MODELS);
	rc = takt_sim_names_add(&cluster->models, name, ret);
	return rc < 0 ? takt_err_set(err, rc, "no memory for a model") : 0;
}

static int add_nodes(struct takt_sim_cluster *cluster, const struct takt_sim_node *node,
		     int64_t count, struct takt_err *err)
{
	for (int64_t i = 0; i < count; i++) {
		int rc = takt_vec_push(&cluster->nodes, *node);

		if (rc < 0)
			return takt_err_set(err, rc, "more than %d nodes", TAKT_SIM_MAX_NODES);
		cluster->gpus += node->gpus;
	}
	return 0;
}

static int keep(struct takt_sim_cluster *cluster, const char *text, const char **ret)
{
	*ret = text[0] ? takt_arena_strdup(&cluster->texts, text) : "";
	return *ret ? 0 : -ENOMEM;
}

static int add_record(struct takt_sim_cluster *cluster, const struct takt_trace_node *record,
		      struct takt_err *err)
{
	struct takt_sim_node node = {
		.cpu_milli = (int32_t)record->cpu_milli,
		.mem_mib = record->memory_mib,
		.gpus = (uint32_t)record->gpus,
		.gpu_mem_mib = (uint32_t)record->gpu_memory_mib,
		.model = TAKT_SIM_NO_MODEL,
	};
	int rc = keep(cluster, record->name, &node.name);

	if (rc == 0)
		rc = keep(cluster, record->domain, &node.domain);
	if (rc < 0)
		return takt_err_set(err, rc, "no memory for the cluster");
	if (record->model[0])
		rc = takt_sim_cluster_model(cluster, record->model, &node.model, err);
	return rc < 0 ? rc : add_nodes(cluster, &node, record->count, err);
}

static int load_file(const char *path, struct takt_sim_cluster *cluster, struct takt_err *err)
{
	const uint32_t required = 1u << TAKT_TRACE_NODE_CPU | 1u << TAKT_TRACE_NODE_MEMORY |
				  1u << TAKT_TRACE_NODE_GPUS;
	struct takt_trace_node record;
	struct takt_trace *trace;
	int rc = takt_trace_open(path, TAKT_TRACE_OF_NODES, required, &trace, err);

	if (rc < 0)
		return rc;
	cluster->counts_cpu = true;
	while ((rc = takt_trace_next_node(trace, &record, err)) == 1) {
		rc = add_record(cluster, &record, err);
		if (rc < 0)
			break;
	}
	if (rc == 0)
		takt_strcpy(cluster->hash, sizeof(cluster->hash), takt_trace_hash(trace));
	takt_trace_free(trace);
	if (rc == 0 && cluster->nodes.len == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' has no nodes", path);
	return rc;
}

static int bad_part(const char *part, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_USAGE,
			    "'%.60s': a part of a uniform cluster reads NODESxGPUS or "
			    "NODESxGPUS:MODEL, such as 552x8 or 9x4:v100; NODES may be 'auto'",
			    part);
}

/* "552x8:v100" */
static int add_part(struct takt_sim_cluster *cluster, const char *part, struct takt_err *err)
{
	char text[PART_TEXT], *by, *colon;
	struct takt_sim_node node = {.name = "",
				     .domain = "",
				     .cpu_milli = PLENTY_CPU_MILLI,
				     .mem_mib = PLENTY_MEM_MIB,
				     .model = TAKT_SIM_NO_MODEL};
	unsigned long long count = 1, gpus;
	bool automatic;
	int rc = 0;

	if (!takt_strcpy(text, sizeof(text), part))
		return bad_part(part, err);
	colon = strchr(text, ':');
	if (colon)
		*colon++ = '\0';
	by = strchr(text, 'x');
	if (!by || (colon && !colon[0]))
		return bad_part(part, err);
	*by++ = '\0';
	automatic = strcmp(text, "auto") == 0;
	if ((!automatic && takt_parse_u64(text, 1, TAKT_SIM_MAX_NODES, &count) < 0) ||
	    takt_parse_u64(by, 0, 64, &gpus) < 0)
		return bad_part(part, err);
	if (cluster->nodes.len && automatic != cluster->automatic)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'auto' stands for the nodes of every part or of none");
	cluster->automatic = automatic;
	node.gpus = (uint32_t)gpus;
	if (colon)
		rc = takt_sim_cluster_model(cluster, colon, &node.model, err);
	return rc < 0 ? rc : add_nodes(cluster, &node, (int64_t)count, err);
}

static int load_uniform(const char *text, struct takt_sim_cluster *cluster, struct takt_err *err)
{
	char part[PART_TEXT];
	int rc = 0;

	do {
		size_t len = strcspn(text, ",");

		if (len >= sizeof(part))
			return bad_part(text, err);
		memcpy(part, text, len);
		part[len] = '\0';
		rc = add_part(cluster, part, err);
		text += len;
	} while (rc == 0 && *text++ == ',');
	return rc;
}

int takt_sim_cluster_load(const char *text, struct takt_sim_cluster *ret, struct takt_err *err)
{
	static const char uniform[] = "uniform:";
	struct takt_sim_cluster cluster = {
		.nodes = TAKT_VEC_INIT(TAKT_SIM_MAX_NODES),
		.texts = TAKT_ARENA(MAX_TEXT_BYTES),
		.models = TAKT_SIM_NAMES,
	};
	int rc;

	if (strncmp(text, uniform, sizeof(uniform) - 1) == 0)
		rc = load_uniform(text + sizeof(uniform) - 1, &cluster, err);
	else
		rc = load_file(text, &cluster, err);
	if (rc < 0) {
		takt_sim_cluster_fini(&cluster);
		return rc;
	}
	*ret = cluster;
	return 0;
}

int takt_sim_cluster_size(struct takt_sim_cluster *cluster, uint32_t nodes, struct takt_err *err)
{
	size_t parts = cluster->nodes.len;
	int rc = 0;

	for (size_t i = 0; i < parts && rc == 0; i++) {
		struct takt_sim_node node = cluster->nodes.at[i];

		rc = add_nodes(cluster, &node, (int64_t)nodes - 1, err);
	}
	cluster->automatic = false;
	return rc;
}

int takt_sim_cluster_sample(struct takt_sim_cluster *cluster, size_t nodes, struct takt_err *err)
{
	size_t all = cluster->nodes.len;

	if (nodes > all)
		return takt_err_set(err, -TAKT_E_USAGE, "the cluster has %zu nodes, not %zu", all,
				    nodes);
	cluster->gpus = 0;
	for (size_t i = 0; i < nodes; i++) {
		cluster->nodes.at[i] = cluster->nodes.at[i * all / nodes];
		cluster->gpus += cluster->nodes.at[i].gpus;
	}
	cluster->nodes.len = nodes;
	return 0;
}

void takt_sim_cluster_fini(struct takt_sim_cluster *cluster)
{
	takt_vec_fini(&cluster->nodes);
	takt_sim_names_fini(&cluster->models);
	takt_arena_fini(&cluster->texts);
}

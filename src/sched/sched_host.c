/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and the masks that say what each of their GPUs is. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sched/sched_update.h"

/* As much memory as anybody may ask for, of a node where it is not counted: sums over nodes stay in
 * 63 bits. */
#define NOT_COUNTED_MIB (INT64_C(1) << 40)

size_t takt_sched_host_place(const struct takt_sched *sched, uint32_t id)
{
	size_t low = 0;
	size_t high = sched->hosts.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (sched->hosts.at[mid]->id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct takt_sched_host *takt_sched_host_find(const struct takt_sched *sched, uint32_t id)
{
	size_t i = takt_sched_host_place(sched, id);

	if (i < sched->hosts.len && sched->hosts.at[i]->id == id)
		return sched->hosts.at[i];
	return NULL;
}

static void free_facts(struct takt_sched_host *host)
{
	takt_free(host->pair_score);
	takt_free(host->gpu_job);
	takt_free(host->sharers);
	takt_free((void *)host->facts.numa);
	takt_free((void *)host->facts.each_mem_mib);
	takt_free((void *)host->facts.mig_layout);
	takt_free((void *)host->facts.labels);
	takt_free((void *)host->facts.taints);
}

void takt_sched_host_free(struct takt_sched_host *host)
{
	if (!host)
		return;
	free_facts(host);
	takt_free(host);
}

static uint32_t *copy_ids(const uint32_t *ids, uint32_t n)
{
	uint32_t *copy = takt_calloc(n, sizeof(*copy));

	if (copy && n > 0)
		memcpy(copy, ids, n * sizeof(*copy));
	return copy;
}

static uint8_t *copy_bytes(const uint8_t *bytes, uint32_t n)
{
	uint8_t *copy = takt_calloc(n, sizeof(*copy));

	if (copy && n > 0)
		memcpy(copy, bytes, n);
	return copy;
}

/* A host that the cluster does not know yet. */
static struct takt_sched_host *host_new(const struct takt_sched_node *node)
{
	struct takt_sched_host *host = takt_zalloc(sizeof(*host));
	size_t scores = (size_t)node->gpu_count * node->gpu_count;

	if (!host)
		return NULL;
	host->id = node->id;
	host->gpu_count = node->gpu_count;
	host->pair_score = takt_calloc(scores, sizeof(*host->pair_score));
	host->gpu_job = takt_calloc(node->gpu_count, sizeof(*host->gpu_job));
	host->sharers = takt_calloc(node->gpu_count, sizeof(*host->sharers));
	host->facts = *node;
	host->facts.numa = node->numa ? copy_bytes(node->numa, node->gpu_count) : NULL;
	host->facts.mig_layout = node->mig_cut ? copy_bytes(node->mig_layout,
							    node->gpu_count * TAKT_SCHED_MIG_SLICES)
					       : NULL;
	host->facts.each_mem_mib =
		node->each_mem_mib ? copy_ids(node->each_mem_mib, node->gpu_count) : NULL;
	host->facts.labels = copy_ids(node->labels, node->label_count);
	host->facts.taints = copy_ids(node->taints, node->taint_count);
	if (!host->pair_score || !host->gpu_job || !host->sharers || !host->facts.labels ||
	    !host->facts.taints || (node->numa && !host->facts.numa) ||
	    (node->each_mem_mib && !host->facts.each_mem_mib) ||
	    (node->mig_cut && !host->facts.mig_layout)) {
		takt_sched_host_free(host);
		return NULL;
	}
	if (scores > 0 && node->pair_score)
		memcpy(host->pair_score, node->pair_score, scores * sizeof(*host->pair_score));
	if (node->pair_score)
		host->facts.pair_score = host->pair_score;
	return host;
}

/* The innermost domain of a node, made known to the cluster. */
static int tell_domain(struct takt_sched *sched, const struct takt_sched_node *node, uint32_t *ret,
		       struct takt_err *err)
{
	uint32_t domain = 0;
	char name[16];
	int rc = 0;

	for (uint32_t level = 1; rc == 0 && level <= TAKT_SCHED_LEVELS; level++) {
		if (node->domain[level - 1] == 0)
			continue;
		snprintf(name, sizeof(name), "%" PRIu32, node->domain[level - 1]);
		rc = takt_cluster_domain(sched->cluster, level, domain, name, &domain, err);
	}
	*ret = domain;
	return rc;
}

/* Labels of a node for the cluster; `text` is what they point into. */
struct label_list {
	struct takt_label *labels;
	char (*text)[TAKT_SCHED_MAX_NAME];
};

static void label_list_fini(struct label_list *list)
{
	takt_free(list->labels);
	takt_free(list->text);
}

static int label_list_init(const struct takt_sched *sched, const uint32_t *ids, uint32_t n,
			   struct label_list *list, struct takt_err *err)
{
	list->labels = takt_calloc(n, sizeof(*list->labels));
	list->text = takt_calloc(n, sizeof(*list->text));
	if (!list->labels || !list->text)
		return takt_err_set(err, -ENOMEM, "labels of a node");
	for (uint32_t i = 0; i < n; i++) {
		const char *name = takt_sched_label(sched, ids[i]);

		if (!name)
			return takt_err_set(err, -EINVAL,
					    "node names label %" PRIu32 ", which is none", ids[i]);
		takt_sched_split_label(name, list->text[i], &list->labels[i]);
	}
	return 0;
}

/* The instances of a GPU that is cut, in the cluster's numbers. */
static int describe_cut(const struct takt_sched *sched, uint32_t node_id, const uint8_t *layout,
			struct takt_device_desc *device, struct takt_err *err)
{
	device->mig = TAKT_MIG_FIXED;
	for (uint32_t i = 0; i < TAKT_SCHED_MIG_SLICES; i++) {
		if (layout[i] == 0)
			continue;
		if (layout[i] > sched->names[TAKT_SPACE_PROFILE].len)
			return takt_err_set(err, -EINVAL,
					    "mig_layout of node %" PRIu32
					    " names profile %u, which was not told before",
					    node_id, layout[i]);
		device->layout[i] = (uint8_t)takt_cluster_mig_find(
			sched->cluster, sched->names[TAKT_SPACE_PROFILE].at[layout[i] - 1]);
	}
	return 0;
}

static int describe_devices(const struct takt_sched *sched, const struct takt_sched_node *node,
			    struct takt_device_desc *devices, struct takt_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < node->gpu_count; i++) {
		devices[i] = (struct takt_device_desc){
			.model = node->model,
			.mem_mib = node->each_mem_mib ? node->each_mem_mib[i] : node->dev_mem_mib,
			.mig = node->mig_mask >> i & 1 ? TAKT_MIG_FREE : TAKT_MIG_OFF,
		};
		if (node->mig_cut >> i & 1)
			rc = describe_cut(sched, node->id,
					  &node->mig_layout[(size_t)i * TAKT_SCHED_MIG_SLICES],
					  &devices[i], err);
	}
	return rc;
}

int takt_sched_host_cut(struct takt_sched *sched, struct takt_sched_host *host, uint32_t gpu,
			const uint8_t *layout, struct takt_err *err)
{
	struct takt_device_desc device = {0};
	uint8_t *known = (uint8_t *)host->facts.mig_layout;
	int rc;

	if (!(host->facts.mig_cut >> gpu & 1))
		return takt_err_set(err, -EINVAL, "gpu %" PRIu32 " of node %" PRIu32 " is not cut",
				    gpu, host->id);
	rc = describe_cut(sched, host->id, layout, &device, err);
	if (rc == 0)
		rc = takt_cluster_set_layout(sched->cluster, host->node, gpu, device.layout, err);
	if (rc == 0)
		memcpy(&known[(size_t)gpu * TAKT_SCHED_MIG_SLICES], layout, TAKT_SCHED_MIG_SLICES);
	return rc;
}

static bool across_sockets(int32_t pair_score)
{
	return pair_score % takt_link_score(TAKT_LINK_UNKNOWN, 1) ==
	       takt_link_score(TAKT_LINK_SYS, 0);
}

/* Where it was not told: GPUs are on one NUMA node unless the path between them is known to go
 * across sockets. */
static void find_numa(const struct takt_sched_host *host, uint8_t *ret)
{
	uint32_t n = host->gpu_count;
	uint8_t count = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t near = 0;

		while (near < i && across_sockets(host->pair_score[(size_t)i * n + near]))
			near++;
		ret[i] = near < i ? ret[near] : count++;
	}
}

/* How its GPUs are linked, made known to the cluster. */
static int tell_links(struct takt_sched *sched, const struct takt_sched_host *host, uint32_t *ret,
		      struct takt_err *err)
{
	uint8_t found[TAKT_SCHED_MAX_NODE_GPUS];
	const uint8_t *numa = host->facts.numa;

	if ((!host->facts.pair_score && !numa) || host->gpu_count == 0)
		return 0;
	if (!numa) {
		find_numa(host, found);
		numa = found;
	}
	return takt_cluster_link_class(sched->cluster, host->gpu_count, host->pair_score, numa, ret,
				       err);
}

static int add_node(struct takt_sched *sched, struct takt_sched_host *host,
		    const struct label_list *labels, const struct label_list *taints,
		    struct takt_err *err)
{
	const struct takt_sched_node *node = &host->facts;
	struct takt_device_desc devices[TAKT_SCHED_MAX_NODE_GPUS];
	struct takt_node_desc desc = {
		.cpu_milli = node->cpu_milli ? node->cpu_milli : INT32_MAX,
		.mem_mib = node->mem_mib ? node->mem_mib : NOT_COUNTED_MIB,
		.device_count = node->gpu_count,
		.model = node->model,
		.rank_valid = true,
		.rank = node->id,
		.labels = labels->labels,
		.label_count = node->label_count,
		.taints = taints->labels,
		.taint_count = node->taint_count,
	};
	int rc = tell_domain(sched, node, &desc.domain, err);

	if (rc == 0)
		rc = describe_devices(sched, node, devices, err);
	if (node->dev_mem_mib || node->each_mem_mib || node->mig_mask || node->mig_cut)
		desc.device = devices;
	if (rc == 0)
		rc = tell_links(sched, host, &desc.link_class, err);
	if (rc == 0 && takt_vec_reserve(&sched->host_of, 1) < 0)
		rc = takt_err_set(err, -ENOMEM, "node %" PRIu32, node->id);
	if (rc == 0)
		rc = takt_cluster_add_node(sched->cluster, &desc, &host->node, err);
	if (rc < 0)
		return rc;
	assert(host->node == sched->host_of.len);
	sched->tainted += node->taint_count > 0;
	return takt_vec_push(&sched->host_of, host);
}

int takt_sched_host_new(struct takt_sched *sched, const struct takt_sched_node *node,
			struct takt_sched_host **ret, struct takt_err *err)
{
	struct takt_sched_host *host = host_new(node);
	struct label_list labels = {0};
	struct label_list taints = {0};
	int rc = host ? 0 : takt_err_set(err, -ENOMEM, "node %" PRIu32, node->id);

	if (rc == 0)
		rc = label_list_init(sched, node->labels, node->label_count, &labels, err);
	if (rc == 0)
		rc = label_list_init(sched, node->taints, node->taint_count, &taints, err);
	if (rc == 0)
		rc = add_node(sched, host, &labels, &taints, err);
	label_list_fini(&labels);
	label_list_fini(&taints);
	if (rc < 0) {
		takt_sched_host_free(host);
		return rc;
	}
	*ret = host;
	return 0;
}

struct takt_slot takt_sched_drain_slot(const struct takt_sched_host *host, uint64_t bit)
{
	return (struct takt_slot){
		.node = host->node,
		.milli = TAKT_REQUEST_WHOLE,
		.dev_mask = bit,
	};
}

/* An unclean GPU is held in the cluster as by a task, so that a plan can look at what is when it is
 * clean. */
static void tell_drains(struct takt_sched *sched, struct takt_sched_host *host)
{
	for (uint64_t left = host->draining ^ host->drain_held; left; left &= left - 1) {
		struct takt_slot slot = takt_sched_drain_slot(host, left & -left);
		int rc = host->draining & slot.dev_mask
				 ? takt_cluster_take(sched->cluster, sched->drain_kind, &slot)
				 : takt_cluster_give(sched->cluster, sched->drain_kind, &slot);

		if (rc == 0)
			host->drain_held ^= slot.dev_mask;
	}
}

void takt_sched_host_retire(struct takt_sched *sched, struct takt_sched_host *host)
{
	sched->ailing -= host->ails;
	sched->unclean -= host->unclean;
	sched->tainted -= host->facts.taint_count > 0;
	host->draining = 0;
	tell_drains(sched, host);
	if (!host->removed)
		(void)takt_cluster_remove_node(sched->cluster, host->node, NULL);
	sched->host_of.at[host->node] = NULL;
	takt_sched_host_free(host);
}

void takt_sched_host_tell(struct takt_sched *sched, struct takt_sched_host *host)
{
	bool ails = host->removed || host->quarantined | host->lost;

	sched->ailing += (uint32_t)ails - (uint32_t)host->ails;
	sched->unclean += (uint32_t)(host->draining != 0) - (uint32_t)host->unclean;
	host->ails = ails;
	host->unclean = host->draining != 0;
	tell_drains(sched, host);
	if (host->removed)
		return;
	(void)takt_cluster_set_unhealthy(sched->cluster, host->node,
					 host->quarantined | host->lost);
	(void)takt_cluster_set_outside(sched->cluster, host->node, host->outside);
	(void)takt_cluster_set_drained(sched->cluster, host->node, host->cordoned || host->resting);
}

uint64_t takt_sched_host_eligible(const struct takt_sched_host *host, uint32_t flags)
{
	uint64_t mask = takt_sched_low_bits(host->gpu_count) & ~(host->quarantined | host->lost);

	if (host->cordoned || host->resting)
		return 0;
	return flags & TAKT_JOB_USE_OUTSIDE ? mask : mask & ~host->outside;
}

uint64_t takt_sched_host_free_gpus(const struct takt_sched_host *host, uint32_t flags)
{
	return takt_sched_host_eligible(host, flags) & ~host->facts.mig_cut &
	       ~(host->assigned | host->running | host->draining | host->taken);
}

enum takt_gpu_state takt_sched_host_gpu_state(const struct takt_sched_host *host, uint32_t gpu)
{
	uint64_t bit = UINT64_C(1) << gpu;

	if (host->lost & bit)
		return TAKT_GPU_LOST;
	if (host->quarantined & bit)
		return TAKT_GPU_QUARANTINED;
	if (host->assigned & bit)
		return TAKT_GPU_ASSIGNED;
	if (host->running & bit)
		return TAKT_GPU_RUNNING;
	return host->draining & bit ? TAKT_GPU_DRAINING : TAKT_GPU_FREE;
}

/* Whole GPUs have one holder; of the others only the number of tasks is kept. */
void takt_sched_host_hold(struct takt_sched_host *host, const struct takt_sched_entry *entry,
			  const struct takt_slot *slot)
{
	bool whole = slot->milli == TAKT_REQUEST_WHOLE;

	host->placed++;
	if (whole && entry->phase == TAKT_SCHED_ASSIGNED)
		host->assigned |= slot->dev_mask;
	else
		host->running |= slot->dev_mask;
	for (uint64_t left = slot->dev_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);

		if (whole)
			host->gpu_job[gpu] = entry->job.id;
		else
			host->sharers[gpu]++;
	}
}

/* GPUs of the slot that nobody holds any more drain (on a removed node: are forgotten). */
void takt_sched_host_release(struct takt_sched *sched, struct takt_sched_host *host,
			     const struct takt_sched_entry *entry, const struct takt_slot *slot)
{
	bool whole = slot->milli == TAKT_REQUEST_WHOLE;
	bool drains = !host->removed && !sched->config.clean_at_end &&
		      !(entry->job.flags & TAKT_JOB_CLEAN_END);
	uint64_t left = 0;

	host->placed--;
	for (uint64_t mask = slot->dev_mask; mask; mask &= mask - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(mask);

		if (!whole && --host->sharers[gpu] > 0)
			continue;
		left |= UINT64_C(1) << gpu;
		if (!drains)
			host->gpu_job[gpu] = 0;
	}
	host->assigned &= ~left;
	host->running &= ~left;
	if (drains)
		host->draining |= left;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Random clusters and their histories: see cluster_world.h. */
#include "cluster_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RACKS = 6,
	ZONES = 2,
	DEVICES = 8,
};

static void need(int rc, const char *what)
{
	if (rc < 0) {
		printf("Bail out! %s: %d\n", what, rc);
		exit(EXIT_FAILURE);
	}
}

static uint64_t below(struct world *world, uint64_t n)
{
	return takt_rng_below(&world->rng, n);
}

static void add_models(struct world *world)
{
	static const struct takt_mig_profile mig[] = {
		{.name = "1g", .size = 1, .slices = 1, .max = 7},
		{.name = "1g+me", .size = 1, .slices = 1, .max = 1},
		{.name = "2g", .size = 2, .slices = 2, .max = 3},
		{.name = "3g", .size = 4, .slices = 3, .max = 2},
		{.name = "7g", .size = 8, .slices = 7, .max = 1},
	};
	static const struct takt_model_desc models[WORLD_MODELS] = {
		{.name = "T4", .mem_mib = 15360},
		{.name = "V100", .mem_mib = 32768},
		{.name = "A100", .mem_mib = 81920, .mig = mig, .mig_count = 5},
		{.name = "U280", .category = "fpga"},
	};

	for (size_t i = 0; i < WORLD_MODELS; i++)
		need(takt_cluster_model(world->cluster, &models[i], &world->models[i], NULL),
		     "model");
}

static void add_domains(struct world *world)
{
	uint32_t zone_level, rack_level, zone[ZONES], rack;
	char name[16];

	need(takt_cluster_level(world->cluster, "zone", &zone_level, NULL), "level");
	need(takt_cluster_level(world->cluster, "rack", &rack_level, NULL), "level");
	for (uint32_t i = 0; i < ZONES; i++) {
		snprintf(name, sizeof(name), "z%u", i);
		need(takt_cluster_domain(world->cluster, zone_level, 0, name, &zone[i], NULL),
		     "zone");
	}
	for (uint32_t i = 0; i < RACKS; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		need(takt_cluster_domain(world->cluster, rack_level, zone[i % ZONES], name, &rack,
					 NULL),
		     "rack");
	}
	world->domains = ZONES + RACKS;
}

static uint32_t link_class(struct world *world, uint32_t devices)
{
	int32_t score[DEVICES * DEVICES];
	uint8_t numa[DEVICES];
	uint32_t id;

	if (devices == 0 || devices > DEVICES || below(world, 3) == 0)
		return 0;
	for (uint32_t i = 0; i < devices; i++) {
		numa[i] = i < devices / 2 ? 0 : 1;
		for (uint32_t j = 0; j < devices; j++)
			score[i * devices + j] = i / 2 == j / 2 ? 100 : 20;
	}
	need(takt_cluster_link_class(world->cluster, devices, score, numa, &id, NULL), "links");
	return id;
}

static void describe_devices(struct world *world, struct takt_device_desc device[DEVICES])
{
	bool mixed = below(world, 4) == 0;
	uint32_t one = (uint32_t)below(world, WORLD_MODELS);

	for (uint32_t i = 0; i < DEVICES; i++) {
		uint32_t model = mixed ? (uint32_t)below(world, WORLD_MODELS) : one;

		device[i] = (struct takt_device_desc){.model = world->models[model]};
		if (model == 2)
			device[i].mig = (enum takt_mig_use)below(world, 3);
		if (device[i].mig == TAKT_MIG_FIXED) {
			device[i].layout[0] = (uint8_t)takt_cluster_mig_find(world->cluster, "3g");
			device[i].layout[4] = (uint8_t)takt_cluster_mig_find(world->cluster, "1g");
		}
	}
}

static void add_node(struct world *world)
{
	static const struct takt_label labels[] = {{"disk", "ssd"}, {"team", "vision"}};
	static const struct takt_label taint = {"spot", "yes"};
	struct takt_device_desc device[DEVICES];
	struct takt_node_desc desc = {.device = device, .labels = labels, .taints = &taint};
	uint32_t id;

	if (takt_cluster_node_count(world->cluster) >= WORLD_MAX_NODES)
		return;
	/* One after the other: in an initialiser the order would be the compiler's. */
	desc.cpu_milli = (int32_t)(16000 * (1 + below(world, 6)));
	desc.mem_mib = (int64_t)(65536 * (1 + below(world, 6)));
	desc.device_count = (uint32_t)below(world, DEVICES + 1);
	desc.domain = (uint32_t)below(world, world->domains + 1);
	desc.label_count = below(world, 3);
	desc.taint_count = below(world, 8) == 0;
	if (below(world, 3) == 0) {
		desc.rank_valid = true;
		desc.rank = (uint32_t)below(world, 1000);
	}
	desc.link_class = link_class(world, desc.device_count);
	describe_devices(world, device);
	need(takt_cluster_add_node(world->cluster, &desc, &id, NULL), "node");
}

static uint32_t selector(struct world *world)
{
	static const char *const ssd[] = {"ssd"}, *const vision[] = {"vision"};
	static const struct takt_requirement terms[][2] = {
		{{TAKT_REQUIREMENT_IN, "disk", ssd, 1}, {TAKT_REQUIREMENT_TOLERATES, "spot"}},
		{{TAKT_REQUIREMENT_NOT_IN, "team", vision, 1}, {TAKT_REQUIREMENT_EXISTS, "disk"}},
		{{TAKT_REQUIREMENT_NOT_EXISTS, "disk"}, {TAKT_REQUIREMENT_TOLERATES, "spot"}},
	};
	uint32_t id, which = (uint32_t)below(world, 9);

	if (which >= 3)
		return 0;
	need(takt_cluster_selector(world->cluster, terms[which], 2, &id, NULL), "selector");
	return id;
}

static void ask_devices(struct world *world, struct takt_request *request)
{
	static const char *const profiles[] = {"1g", "1g+me", "2g", "3g", "7g"};

	request->devices = 1;
	switch (below(world, 6)) {
	case 0:
		request->devices = 0;
		break;
	case 1:
		request->milli = (uint16_t)(1 + below(world, 999));
		break;
	case 2:
		request->milli = (uint16_t)(100 * below(world, 10));
		request->dev_mem_mib = (uint32_t)(1024 * (1 + below(world, 40)));
		break;
	case 3:
		request->mig_profile =
			(uint8_t)takt_cluster_mig_find(world->cluster, profiles[below(world, 5)]);
		break;
	default:
		request->devices = (uint16_t)(1 + below(world, DEVICES));
		request->milli = TAKT_REQUEST_WHOLE;
		request->flags |= below(world, 4) ? 0 : TAKT_REQUEST_ONE_NUMA;
		break;
	}
}

static struct takt_request any_request(struct world *world)
{
	struct takt_request request = {.cpu_milli = (int32_t)(500 * below(world, 20))};

	request.mem_mib = (int64_t)(1024 * below(world, 20));
	if (below(world, 3) == 0)
		request.model_mask = 1 + below(world, (1u << WORLD_MODELS) - 1);
	if (below(world, 6) == 0)
		request.only_devices = 1 + below(world, 255);
	if (below(world, 6) == 0)
		request.max_per_node = (uint32_t)(1 + below(world, 3));
	if (below(world, 5) == 0)
		request.flags = TAKT_REQUEST_SHARE_OUTSIDE;
	request.selector = selector(world);
	ask_devices(world, &request);
	return request;
}

static void make_cluster(struct world *world, const struct takt_placement *placement, size_t kinds)
{
	struct takt_workload_item items[WORLD_MAX_KINDS];
	struct takt_workload workload = {.items = items, .count = kinds};
	struct takt_cluster_config config = {.placement = placement};

	need(takt_cluster_new(&config, &world->cluster, NULL), "cluster");
	add_models(world);
	add_domains(world);
	for (size_t i = 0; i < kinds; i++) {
		struct takt_request request = any_request(world);

		items[i].request = request;
		items[i].weight = 1 + below(world, 20);
		need(takt_cluster_kind(world->cluster, &request, &world->kinds[i], NULL), "kind");
	}
	world->kind_count = kinds;
	config.workload = &workload;
	config.seed = below(world, 1000);
	need(takt_cluster_set_placement(world->cluster, &config, NULL), "placement");
}

void world_init(struct world *world, uint64_t seed, const struct takt_placement *placement,
		size_t nodes, size_t kinds)
{
	*world = (struct world){.cluster = NULL};
	takt_rng_init(&world->rng, seed);
	make_cluster(world, placement, kinds);
	for (size_t i = 0; i < nodes; i++)
		add_node(world);
}

void world_fini(struct world *world)
{
	takt_cluster_free(world->cluster);
}

static uint64_t some_devices(struct world *world, uint32_t node)
{
	uint64_t all = takt_node_all_devices(takt_cluster_node(world->cluster, node));

	all &= takt_rng_next(&world->rng);
	return all & takt_rng_next(&world->rng);
}

void world_change(struct world *world)
{
	static const struct takt_label labels[] = {{"disk", "hdd"}, {"team", "speech"}};
	uint32_t node = (uint32_t)below(world, takt_cluster_node_count(world->cluster));
	struct takt_cluster *cluster = world->cluster;
	size_t count;

	switch (below(world, 12)) {
	case 0:
		add_node(world);
		break;
	case 1:
		if (!world->removed[node] && below(world, 3) == 0)
			need(takt_cluster_remove_node(cluster, node, NULL), "remove");
		world->removed[node] =
			(takt_cluster_node(cluster, node)->flags & TAKT_NODE_REMOVED) != 0;
		break;
	case 2:
		count = below(world, 3);
		need(takt_cluster_set_labels(cluster, node, labels, count, labels, below(world, 2),
					     NULL),
		     "labels");
		break;
	case 3:
	case 4:
		need(takt_cluster_set_drained(cluster, node, below(world, 3) == 0), "drained");
		break;
	case 5:
	case 6:
		need(takt_cluster_set_outside(cluster, node, some_devices(world, node)), "outside");
		break;
	case 7:
		need(takt_cluster_set_draining(cluster, node, some_devices(world, node)),
		     "draining");
		break;
	default:
		need(takt_cluster_set_unhealthy(cluster, node, some_devices(world, node)),
		     "unhealthy");
		break;
	}
}

const struct takt_scope *world_scope(struct world *world, struct takt_scope *scope, uint64_t *mask)
{
	static uint32_t only[4];

	*scope = (struct takt_scope){.domain = 0};
	switch (below(world, 8)) {
	case 0:
		*mask = takt_rng_next(&world->rng);
		scope->leave_out = mask;
		scope->leave_out_words = 1;
		return scope;
	case 1:
		scope->domain = 1 + (uint32_t)below(world, world->domains);
		return scope;
	case 2:
		for (int i = 0; i < 4; i++)
			only[i] = (uint32_t)below(world, takt_cluster_node_count(world->cluster));
		scope->only = only;
		scope->only_count = 4;
		return scope;
	default:
		return NULL;
	}
}

void world_took(struct world *world, uint32_t kind, const struct takt_slot *slot)
{
	if (world->task_count == WORLD_MAX_TASKS)
		need(-1, "too many tasks");
	world->tasks[world->task_count++] = (struct world_task){.kind = kind, .slot = *slot};
}

void world_give(struct world *world)
{
	size_t at;

	if (world->task_count == 0)
		return;
	at = below(world, world->task_count);
	need(takt_cluster_give(world->cluster, world->tasks[at].kind, &world->tasks[at].slot),
	     "give");
	world->tasks[at] = world->tasks[--world->task_count];
}

/* Books of one node, from the list of tasks alone. */
struct books {
	int64_t cpu, mem;
	int32_t milli[DEVICES];
	int64_t dev_mem[DEVICES];
	uint32_t instances[DEVICES]; /* memory slices */
	uint32_t tasks;
	bool twice; /* an instance lies on another */
};

static void book(const struct world *world, const struct world_task *task, struct books *books)
{
	static const struct {
		const char *name;
		uint32_t slices;
	} sizes[] = {{"1g", 1}, {"1g+me", 1}, {"2g", 2}, {"3g", 4}, {"7g", 8}};
	const struct takt_request *request = takt_cluster_request(world->cluster, task->kind);
	const struct takt_node *node = takt_cluster_node(world->cluster, task->slot.node);

	books->cpu += request->cpu_milli;
	books->mem += request->mem_mib;
	books->tasks++;
	for (uint32_t i = 0; i < node->devices; i++) {
		uint32_t mask = 0;

		if (!(task->slot.dev_mask >> i & 1))
			continue;
		for (size_t j = 0; j < 5; j++)
			if (request->mig_profile &&
			    takt_cluster_mig_find(world->cluster, sizes[j].name) ==
				    request->mig_profile)
				mask = ((1u << sizes[j].slices) - 1) << task->slot.mig_start;
		books->twice |= (books->instances[i] & mask) != 0 || mask > 0xff;
		books->instances[i] |= mask;
		books->milli[i] += task->slot.milli;
		books->dev_mem[i] += request->dev_mem_mib;
	}
}

static const char *check_node(const struct world *world, const struct takt_node *node)
{
	struct books books = {0};

	for (size_t i = 0; i < world->task_count; i++)
		if (world->tasks[i].slot.node == node->id)
			book(world, &world->tasks[i], &books);
	if (books.cpu > node->cpu_milli || books.mem > node->mem_mib)
		return "more CPU or memory is held than there is";
	if (books.cpu != node->cpu_milli - node->cpu_left_milli ||
	    books.mem != node->mem_mib - node->mem_left_mib || books.tasks != node->tasks)
		return "CPU, memory or tasks held differ";
	if (books.twice)
		return "MIG instances overlap";
	for (uint32_t i = 0; i < node->devices; i++) {
		const struct takt_device *device = &node->device[i];

		if (books.milli[i] > TAKT_REQUEST_WHOLE || books.milli[i] != device->held)
			return "a device is over-committed, or held differs";
		if (books.dev_mem[i] > device->mem_mib && books.milli[i] < TAKT_REQUEST_WHOLE)
			return "accelerator memory is over-committed";
		if (books.instances[i] && books.milli[i])
			return "a device is cut and held otherwise";
	}
	return NULL;
}

const char *world_check(const struct world *world)
{
	for (uint32_t i = 0; i < takt_cluster_node_count(world->cluster); i++) {
		const char *wrong = check_node(world, takt_cluster_node(world->cluster, i));

		if (wrong)
			return wrong;
	}
	return NULL;
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		digest = (digest ^ (value >> (8 * i) & 0xff)) * UINT64_C(0x100000001b3);
	return digest;
}

static uint64_t mix_node(uint64_t digest, const struct takt_node *node)
{
	digest = mix(digest,
		     (uint64_t)node->cpu_left_milli << 32 | node->flags << 16 | node->devices);
	digest = mix(digest, (uint64_t)node->mem_left_mib);
	digest = mix(mix(mix(digest, node->whole), node->usable), node->models);
	digest = mix(digest, (uint64_t)node->most_left << 32 | node->shapes);
	digest = mix(digest, (uint64_t)node->tasks << 32 | node->mem_tasks);
	for (uint32_t i = 0; i < node->devices; i++) {
		const struct takt_device *device = &node->device[i];
		uint64_t at;

		memcpy(&at, device->mig_at, sizeof(at));
		digest = mix(digest, (uint64_t)node->left[i] << 48 | (uint64_t)device->held << 32 |
					     device->mem_held_mib);
		digest = mix(mix(digest, at), device->mig_busy);
	}
	return digest;
}

uint64_t world_digest(const struct world *world)
{
	const struct takt_cluster_totals *totals = takt_cluster_totals(world->cluster);
	uint64_t digest = UINT64_C(0xcbf29ce484222325);

	for (uint32_t i = 0; i < takt_cluster_node_count(world->cluster); i++)
		digest = mix_node(digest, takt_cluster_node(world->cluster, i));
	digest = mix(mix(digest, totals->usable), (uint64_t)totals->held_milli);
	digest = mix(mix(digest, (uint64_t)totals->cpu_held_milli), totals->tasks);
	return mix(digest, (uint64_t)totals->mem_held_mib);
}

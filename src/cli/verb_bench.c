/* SPDX-License-Identifier: Apache-2.0 */
/* takt bench: how fast takt's scheduler is, and what a GPU does (that in takt-bench, a process of
 * its own). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/verb.h"
#include "sim/bench_sched.h"

enum {
	CPU_MILLI_A_GPU = 16000, /* of a uniform node; openb's larger ones have 12 to 16 cores */
	MEMORY_MIB_A_GPU = 65536,
};

static const struct takt_option options[] = {
	{"kind", 0, "matmul|stream", "gpu: a matrix product, or copies in its memory (matmul)"},
	{"dtype", 0, "TYPE", "gpu: of the product, f16, bf16, tf32, f32 or f64 (f16)"},
	{"size", 0, "N", "gpu: rows of the matrices (8192), or MiB that are copied (1024)"},
	{"seconds", 0, "S", "gpu: so long, after warming up (5)"},
	{"gpu", 0, "UUID", "gpu: which one (the first)"},
	{"mix", 0, "FILE", "requests to draw from: a workload with openb's pod columns"},
	{"mode", 0, "MODE", "fill (the default) or churn"},
	{"nodes", 0, "N", "nodes (10000)"},
	{"gpus", 0, "N", "GPUs of each node (8)"},
	{"cpu-milli", 0, "N", "milli-CPU of each node (16000 for each GPU)"},
	{"memory-mib", 0, "N", "MiB of memory of each node (65536 for each GPU)"},
	{"cluster", 0, "FILE", "nodes from a file, repeated up to --nodes, instead of equal ones"},
	{"placement", 0, "POLICY", "placement policy, or one to compare with (takt)"},
	{"features", 0, "LIST", "of gang, topology, quota, why; none without"},
	{"load", 0, "PERCENT", "GPU share held in churn (90)"},
	{"ops", 0, "N", "placements and releases in churn (1000000)"},
	{"planner", 0, "JOBS",
	 "through the whole scheduler, so many jobs a plan; 0 = its core (0)"},
	{"naive", 0, "N", "decisions compared with a scan of all nodes (200)"},
	{"seed", 0, "N", "what is drawn (1)"},
	{NULL},
};

static const struct {
	const char *name;
	uint32_t bit;
} features[] = {
	{"gang", TAKT_BENCH_GANG},
	{"topology", TAKT_BENCH_TOPOLOGY},
	{"quota", TAKT_BENCH_QUOTA},
	{"why", TAKT_BENCH_WHY},
};

static int read_feature(const char *text, size_t len, uint32_t *ret, struct takt_err *err)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(features); i++) {
		if (strlen(features[i].name) == len && memcmp(features[i].name, text, len) == 0) {
			*ret |= features[i].bit;
			return 0;
		}
	}
	return takt_err_set(err, -TAKT_E_USAGE,
			    "--features: '%.*s' is none of gang, topology, quota, why", (int)len,
			    text);
}

static int read_features(const struct takt_cli *cli, uint32_t *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "features");
	uint32_t bits = 0;

	while (text) {
		size_t len = strcspn(text, ",");
		int rc = read_feature(text, len, &bits, err);

		if (rc < 0)
			return rc;
		text = text[len] ? text + len + 1 : NULL;
	}
	*ret = bits;
	return 0;
}

static int read_words(const struct takt_cli *cli, struct takt_bench_config *config,
		      struct takt_err *err)
{
	const char *mode = takt_cli_value(cli, "mode");

	config->mix = takt_cli_value(cli, "mix");
	config->cluster = takt_cli_value(cli, "cluster");
	config->placement = takt_cli_value(cli, "placement");
	if (!config->mix)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "--mix FILE is missing: a workload to draw requests from");
	if (!config->placement)
		config->placement = "takt";
	if (mode && strcmp(mode, "fill") != 0 && strcmp(mode, "churn") != 0)
		return takt_err_set(err, -TAKT_E_USAGE, "--mode: '%s' is neither fill nor churn",
				    mode);
	config->churn = mode && strcmp(mode, "churn") == 0;
	return read_features(cli, &config->features, err);
}

static int read_numbers(const struct takt_cli *cli, struct takt_bench_config *config,
			struct takt_err *err)
{
	int64_t nodes, gpus, load, ops, naive, seed, batch;

	if (takt_cli_number(cli, "nodes", 1, TAKT_BENCH_MAX_NODES, 10000, &nodes, err) < 0 ||
	    takt_cli_number(cli, "gpus", 1, TAKT_BENCH_MAX_GPUS, 8, &gpus, err) < 0 ||
	    takt_cli_number(cli, "load", 1, 100, 90, &load, err) < 0 ||
	    takt_cli_number(cli, "ops", 1, 100000000, 1000000, &ops, err) < 0 ||
	    takt_cli_number(cli, "naive", 0, 1000000, 200, &naive, err) < 0 ||
	    takt_cli_number(cli, "planner", 0, TAKT_BENCH_MAX_BATCH, 0, &batch, err) < 0 ||
	    takt_cli_number(cli, "seed", 0, INT64_MAX, 1, &seed, err) < 0 ||
	    takt_cli_number(cli, "cpu-milli", 0, INT32_MAX, gpus * CPU_MILLI_A_GPU,
			    &config->cpu_milli, err) < 0 ||
	    takt_cli_number(cli, "memory-mib", 0, INT64_MAX / 2, gpus * MEMORY_MIB_A_GPU,
			    &config->mem_mib, err) < 0)
		return -TAKT_E_USAGE;
	config->nodes = (uint32_t)nodes;
	config->gpus = (uint32_t)gpus;
	config->load_permille = (uint32_t)load * 10;
	config->operations = (uint64_t)ops;
	config->naive_samples = (uint32_t)naive;
	config->seed = (uint64_t)seed;
	config->planner_batch = (uint32_t)batch;
	return 0;
}

static void print_features(struct takt_str *out, uint32_t bits)
{
	const char *before = "";

	for (size_t i = 0; i < TAKT_ARRAY_LEN(features); i++) {
		if (!(bits & features[i].bit))
			continue;
		takt_str_addf(out, "%s\"%s\"", before, features[i].name);
		before = ",";
	}
}

/* Times only where there are any. */
static void print_class_json(struct takt_str *out, const char *name,
			     const struct takt_bench_class *class)
{
	takt_str_addf(out, ",\"%s\":{\"count\":%llu", name, (unsigned long long)class->count);
	if (class->p50_ns)
		takt_str_addf(out, ",\"p50_ns\":%llu,\"p99_ns\":%llu,\"p999_ns\":%llu",
			      (unsigned long long)class->p50_ns, (unsigned long long)class->p99_ns,
			      (unsigned long long)class->p999_ns);
	takt_str_add(out, "}");
}

static void print_number(struct takt_str *out, const char *name, uint64_t value)
{
	takt_str_addf(out, ",\"%s\":%llu", name, (unsigned long long)value);
}

/* What is measured of the core alone. */
static void print_core_json(struct takt_str *out, const struct takt_bench_result *result)
{
	print_number(out, "rejections_per_s", result->rejections_per_s);
	print_number(out, "naive_per_s", result->naive_per_s);
	print_number(out, "naive_decisions", result->naive_count);
	takt_str_addf(out, ",\"ratio_to_naive\":%.1f", result->ratio_to_naive);
	print_number(out, "setup_ns", result->setup_ns);
	print_number(out, "warm_ns", result->warm_ns);
	print_number(out, "snapshot_ns", result->snapshot_ns);
	print_number(out, "bytes", result->node_bytes + result->index_bytes + result->other_bytes);
	print_number(out, "bytes_nodes", result->node_bytes);
	print_number(out, "bytes_index", result->index_bytes);
}

static void print_json(struct takt_str *out, const struct takt_bench_config *config,
		       const struct takt_bench_result *result)
{
	takt_str_addf(out,
		      "{\"bench\":\"sched\",\"mode\":\"%s\",\"placement\":\"%s\",\"features\":[",
		      config->churn ? "churn" : "fill", config->placement);
	print_features(out, config->features);
	takt_str_add(out, "]");
	print_number(out, "seed", config->seed);
	print_number(out, "nodes", result->nodes);
	print_number(out, "gpus", result->gpus);
	print_number(out, "kinds", result->kinds);
	print_number(out, "placements_per_s", result->placements_per_s);
	if (config->churn)
		print_number(out, "ops_per_s", result->ops_per_s);
	if (config->planner_batch)
		print_number(out, "planner_batch", config->planner_batch);
	else
		print_core_json(out, result);
	print_class_json(out, "placement", &result->placements);
	print_class_json(out, "release", &result->releases);
	print_class_json(out, "rejection", &result->rejections);
	takt_str_addf(out, ",\"allocation_pct\":%.2f",
		      100.0 * (double)result->held_milli / (1000.0 * (double)result->gpus));
	print_number(out, "wall_ns", result->wall_ns);
	print_number(out, "cpu_ns", result->cpu_ns);
	takt_str_add(out, "}\n");
}

static void print_class(struct takt_str *out, const char *name,
			const struct takt_bench_class *class)
{
	if (class->count && !class->p50_ns)
		takt_str_addf(out, "%-12s %9llu\n", name, (unsigned long long)class->count);
	else if (class->count)
		takt_str_addf(out, "%-12s %9llu   p50 %.2f us, p99 %.2f us, p99.9 %.2f us\n", name,
			      (unsigned long long)class->count, (double)class->p50_ns / 1e3,
			      (double)class->p99_ns / 1e3, (double)class->p999_ns / 1e3);
}

static void print_text(struct takt_str *out, const struct takt_bench_config *config,
		       const struct takt_bench_result *result)
{
	uint64_t bytes = result->node_bytes + result->index_bytes + result->other_bytes;

	takt_str_addf(out, "%s, policy %s: %llu nodes, %llu GPUs, %llu kinds of requests\n",
		      config->churn ? "churn" : "fill", config->placement,
		      (unsigned long long)result->nodes, (unsigned long long)result->gpus,
		      (unsigned long long)result->kinds);
	takt_str_addf(out, "%llu placements/s", (unsigned long long)result->placements_per_s);
	if (config->churn)
		takt_str_addf(out, ", %llu operations/s (placements and releases)",
			      (unsigned long long)result->ops_per_s);
	if (config->planner_batch)
		takt_str_addf(out, ", %u jobs a plan\n", config->planner_batch);
	else
		takt_str_addf(out, ", %llu rejections/s\n",
			      (unsigned long long)result->rejections_per_s);
	print_class(out, "placements", &result->placements);
	print_class(out, "releases", &result->releases);
	print_class(out, "rejections", &result->rejections);
	if (result->naive_count)
		takt_str_addf(out,
			      "a scan of all nodes makes %llu/s (%llu decisions, all the same): "
			      "%.0f times slower\n",
			      (unsigned long long)result->naive_per_s,
			      (unsigned long long)result->naive_count, result->ratio_to_naive);
	if (config->planner_batch)
		return;
	takt_str_addf(out,
		      "memory %.1f MiB, of it the index %.1f; a snapshot is taken up in %.0f ms, "
		      "the index made in %.0f ms\n",
		      (double)bytes / 1048576, (double)result->index_bytes / 1048576,
		      (double)result->snapshot_ns / 1e6, (double)result->warm_ns / 1e6);
}

/* Becomes takt-bench. Returns only when that fails. */
static int bench_gpu(struct takt_cli *cli, struct takt_err *err)
{
	static const char *const known[] = {"kind", "dtype", "size", "seconds", "gpu"};
	char program[4096 + 16], names[TAKT_ARRAY_LEN(known)][16];
	char *argv[2 * TAKT_ARRAY_LEN(known) + 4] = {(char *)"takt-bench", (char *)"gpu"};
	size_t n = 2;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(known); i++) {
		if (!takt_cli_has(cli, known[i]))
			continue;
		snprintf(names[i], sizeof(names[i]), "--%s", known[i]);
		argv[n++] = names[i];
		argv[n++] = (char *)takt_cli_value(cli, known[i]);
	}
	if (cli->json)
		argv[n++] = (char *)"--json";
	cli->extra->helper("takt-bench", program, sizeof(program));
	execv(program, argv);
	return takt_err_set(err, -errno, "start '%.200s'", program);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_bench_config config = {0};
	struct takt_bench_result result;
	int rc;

	if (strcmp(cli->operands[0], "gpu") == 0)
		return bench_gpu(cli, err);
	if (strcmp(cli->operands[0], "sched") != 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%s' cannot be measured; sched and gpu can", cli->operands[0]);
	rc = read_words(cli, &config, err);
	if (rc == 0)
		rc = read_numbers(cli, &config, err);
	if (rc == 0)
		rc = takt_bench_sched(&config, &result, err);
	if (rc < 0)
		return rc;
	if (cli->json)
		print_json(&cli->out, &config, &result);
	else
		print_text(&cli->out, &config, &result);
	return 0;
}

static const struct takt_text_pair examples[] = {
	{"takt bench sched --mix data/traces/openb_pod_list_default.csv.gz",
	 "fill 10,000 nodes of 8 GPUs"},
	{"takt bench sched --mix PODS.csv --mode churn --features gang,topology,quota,why",
	 "steady load with everything switched on"},
	{"takt bench gpu --dtype bf16 --seconds 10", "what the first GPU does in ten seconds"},
	{NULL, NULL},
};

static const char *const words[] = {"sched", "gpu", NULL};

const struct takt_verb takt_verb_bench = {
	.name = "bench",
	.summary = "measure how fast the scheduler decides, or what a GPU does",
	.usage = "sched --mix FILE [--mode fill|churn] [OPTION...] | gpu [OPTION...]",
	.about = "sched: places tasks drawn from a workload file on a cluster that exists in "
		 "memory only, "
		 "as fast as one core can, without a daemon. With --mode fill tasks arrive until "
		 "what they ask for is the whole cluster's GPUs; with --mode churn the cluster is "
		 "filled to --load and then tasks come and go."
		 "\n"
		 "Rates are over the CPU time of all decisions on the one core. Percentiles are "
		 "from a second run "
		 "with a clock around each decision, whose reading is in them. A sample of the "
		 "decisions is compared with a scan of all nodes, which must choose the same."
		 "\n"
		 "gpu: a matrix product through the CUDA driver and cuBLAS, or copies within the "
		 "GPU's memory (each byte counts twice, read and written), both opened at run "
		 "time: TFLOP/s or GB/s, their share of what the board's data sheet says where "
		 "that is known, SM clock, power and energy meanwhile. It asks no daemon: on a "
		 "shared machine run it as a job (takt run -- takt bench gpu). On a simulated GPU "
		 "the simulator's own load runs instead, and only its steps are counted.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.min_operands = 1,
	.max_operands = 1,
	.offline = true,
	.run = run,
};

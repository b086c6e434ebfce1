/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of nodes, see the header. */
#include "sim/queue_failures.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "sim/csv_cells.h"
#include "sim/sim_random.h"
#include "sim/text_lines.h"
#include "sim/trace_field.h"

enum {
	MAX_FAILURES = 10000000
};

static int by_time(const void *a, const void *b, void *ctx)
{
	const struct takt_queue_failure *x = a, *y = b;

	(void)ctx;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static int finish(struct takt_queue_failures *failures, int rc, struct takt_queue_failures *ret,
		  struct takt_err *err)
{
	if (rc == 0) {
		rc = takt_sort(failures->at.at, failures->at.len, sizeof(failures->at.at[0]),
			       by_time, NULL);
		if (rc < 0)
			takt_err_set(err, rc, "no memory for failures");
	}
	if (rc < 0)
		takt_queue_failures_fini(failures);
	else
		*ret = *failures;
	return rc;
}

/* -ln(u) times the mean, u in (0, 1]. */
static uint64_t exponential(struct takt_rng *rng, uint64_t mean_ns)
{
	double u = (double)((takt_rng_next(rng) >> 11) + 1) / 9007199254740992.0;
	double ns = -log(u) * (double)mean_ns;

	return ns < 9e18 ? (uint64_t)ns : (uint64_t)9e18;
}

int takt_queue_failures_draw(const struct takt_sim_cluster *cluster, uint64_t mtbf_ns,
			     uint64_t repair_ns, uint64_t end_ns, uint64_t seed,
			     struct takt_queue_failures *ret, struct takt_err *err)
{
	struct takt_queue_failures failures = {.at = TAKT_VEC_INIT(MAX_FAILURES)};
	struct takt_rng rng;
	int rc = 0;

	takt_sim_stream(seed, TAKT_SIM_FAILURES, &rng);
	for (size_t node = 0; node < cluster->nodes.len && rc == 0; node++) {
		uint64_t at = TAKT_QUEUE_START_NS + exponential(&rng, mtbf_ns);

		while (at < end_ns && rc == 0) {
			rc = takt_vec_push(&failures.at, ((struct takt_queue_failure){
								 at, repair_ns, (uint32_t)node}));
			at += repair_ns + exponential(&rng, mtbf_ns);
		}
	}
	if (rc < 0)
		takt_err_set(err, rc, "more than %d failures of nodes", MAX_FAILURES);
	return finish(&failures, rc, ret, err);
}

struct row {
	const char *node;
	int64_t at_ns, repair_ns;
};

static const struct takt_trace_field fields[] = {
	{"node", TAKT_TRACE_TEXT, offsetof(struct row, node), 0, 0, ""},
	{"at_s", TAKT_TRACE_SECONDS, offsetof(struct row, at_ns), 0, INT64_MAX, ""},
	{"repair_s", TAKT_TRACE_SECONDS, offsetof(struct row, repair_ns), 0, INT64_MAX, ""},
};

static int find_node(const struct takt_sim_cluster *cluster, const char *name, uint32_t *ret)
{
	unsigned long long number;

	for (size_t i = 0; i < cluster->nodes.len; i++) {
		if (!name[0] || strcmp(cluster->nodes.at[i].name, name) != 0)
			continue;
		*ret = (uint32_t)i;
		return 0;
	}
	if (takt_parse_u64(name, 0, cluster->nodes.len - 1, &number) < 0)
		return -TAKT_E_CORRUPT;
	*ret = (uint32_t)number;
	return 0;
}

static int take_header(char *line, int columns[TAKT_CSV_MAX_CELLS], int *ret_count,
		       struct takt_err *err)
{
	char *cells[TAKT_CSV_MAX_CELLS];
	size_t found = 0;
	int count = takt_csv_split(line, cells, err);

	for (int i = 0; i < count; i++) {
		size_t field = takt_trace_field_find(fields, TAKT_ARRAY_LEN(fields), cells[i]);

		columns[i] = field < TAKT_ARRAY_LEN(fields) ? (int)field : -1;
		found += columns[i] >= 0;
	}
	if (count >= 0 && found != TAKT_ARRAY_LEN(fields))
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "the columns at_s, node and repair_s are needed");
	*ret_count = count;
	return count < 0 ? count : 0;
}

static int take_row(char *line, const int *columns, int count,
		    const struct takt_sim_cluster *cluster, struct takt_queue_failures *failures,
		    struct takt_err *err)
{
	char *cells[TAKT_CSV_MAX_CELLS];
	struct takt_queue_failure failure;
	struct row row = {.node = ""};
	int n = takt_csv_split(line, cells, err), rc = n < 0 ? n : 0;

	if (n >= 0 && n != count)
		return takt_err_set(err, -TAKT_E_CORRUPT, "%d cells, the header has %d", n, count);
	for (int i = 0; i < n && rc == 0; i++)
		if (columns[i] >= 0)
			rc = takt_trace_field_set(&fields[columns[i]], cells[i], &row, err);
	if (rc < 0)
		return rc;
	failure.at_ns = TAKT_QUEUE_START_NS + (uint64_t)row.at_ns;
	failure.repair_ns = (uint64_t)row.repair_ns;
	if (find_node(cluster, row.node, &failure.node) < 0)
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "column 'node': '%.40s' is neither the name of a node nor a "
				    "number below %zu",
				    row.node, cluster->nodes.len);
	rc = takt_vec_push(&failures->at, failure);
	return rc < 0 ? takt_err_set(err, rc, "more than %d failures", MAX_FAILURES) : 0;
}

int takt_queue_failures_load(const char *path, const struct takt_sim_cluster *cluster,
			     struct takt_queue_failures *ret, struct takt_err *err)
{
	struct takt_queue_failures failures = {.at = TAKT_VEC_INIT(MAX_FAILURES)};
	int columns[TAKT_CSV_MAX_CELLS], count = 0, rc;
	struct takt_lines *lines;
	char *line;

	rc = takt_lines_open(path, &lines, err);
	if (rc < 0)
		return rc;
	while ((rc = takt_lines_next(lines, &line, err)) == 1) {
		rc = takt_lines_number(lines) == 1
			     ? take_header(line, columns, &count, err)
			     : take_row(line, columns, count, cluster, &failures, err);
		if (rc < 0) {
			takt_err_wrap(err, rc, "%s:%llu", path,
				      (unsigned long long)takt_lines_number(lines));
			break;
		}
	}
	takt_lines_free(lines);
	return finish(&failures, rc, ret, err);
}

void takt_queue_failures_fini(struct takt_queue_failures *failures)
{
	takt_vec_fini(&failures->at);
}

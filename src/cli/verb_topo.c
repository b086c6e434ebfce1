/* SPDX-License-Identifier: Apache-2.0 */
/* takt topo: how GPUs reach each other, and which sets are linked best. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"

enum {
	FIXED = 3,	  /* columns beside one a GPU */
	MATRIX_GPUS = 13, /* that fit a table of 16 columns */
};

static void add_gpu(struct takt_table *table, const struct takt_topo_view *view, uint32_t gpu)
{
	takt_table_add(table, TAKT_STYLE_HEAD, "%u", gpu);
	for (uint32_t other = 0; other < view->gpu_count; other++)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", view->link[gpu][other]);
	if (view->numa_node[gpu] >= 0)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%d", view->numa_node[gpu]);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", view->cpu_list[gpu]);
}

static void print_matrix(struct takt_cli *cli, const struct takt_topo_view *view)
{
	struct takt_column columns[MATRIX_GPUS + FIXED] = {{"GPU", true, 0, 0}};
	char titles[MATRIX_GPUS][12];
	struct takt_table table = {.columns = columns, .cells = TAKT_VEC_INIT(1 << 20)};

	for (uint32_t i = 0; i < view->gpu_count; i++) {
		snprintf(titles[i], sizeof(titles[i]), "%u", i);
		columns[1 + i] = (struct takt_column){titles[i], true, 0, 0};
	}
	columns[1 + view->gpu_count] = (struct takt_column){"NUMA", true, 0, 1};
	columns[2 + view->gpu_count] = (struct takt_column){"CPUS", false, 6, 2};
	table.column_count = view->gpu_count + FIXED;
	for (uint32_t i = 0; i < view->gpu_count; i++)
		add_gpu(&table, view, i);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

/* Too many GPUs for a matrix: a line a GPU with its links. */
static void print_lines(struct takt_cli *cli, const struct takt_topo_view *view)
{
	for (uint32_t i = 0; i < view->gpu_count; i++) {
		takt_str_addf(&cli->out, "%u:", i);
		for (uint32_t j = 0; j < view->gpu_count; j++)
			takt_str_addf(&cli->out, " %s", view->link[i][j]);
		takt_str_add(&cli->out, "\n");
	}
}

static void print_best(struct takt_cli *cli, const char *what, uint64_t mask, uint64_t free_mask,
		       int64_t sum)
{
	if (mask == 0)
		return;
	takt_str_addf(&cli->out, "best %s: ", what);
	takt_mask_text(mask, &cli->out);
	takt_str_addf(&cli->out, " (score %lld), of the free ones: ", (long long)sum);
	takt_mask_text(free_mask, &cli->out);
	takt_str_add(&cli->out, "\n");
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_topo_view *view = takt_alloc(sizeof(*view));
	int rc = view ? takt_cli_connect(cli, err)
		      : takt_err_set(err, -ENOMEM, "no memory for a topology");

	if (rc == 0)
		rc = takt_client_topology(cli->client, view, err);
	if (rc < 0)
		return rc;
	if (takt_cli_print_json(cli))
		return 0;
	takt_print_simulated(cli, view->simulated);
	if (view->gpu_count <= MATRIX_GPUS)
		print_matrix(cli, view);
	else
		print_lines(cli, view);
	print_best(cli, "2", view->best2_mask, view->free_best2_mask, view->best2_sum);
	print_best(cli, "4", view->best4_mask, view->free_best4_mask, view->best4_sum);
	takt_str_add(&cli->out,
		     "NV#: so many NVLinks. PIX: one PCIe switch, PXB: several, PHB: through "
		     "the host bridge,\nNODE: within a NUMA node, SYS: across sockets.\n");
	return 0;
}

static const struct takt_text_pair examples[] = {
	{"takt topo", "the link matrix and the best sets of 2 and 4"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_topo = {
	.name = "topo",
	.summary = "how the GPUs are linked, and the best sets",
	.usage = "",
	.about =
		"Shows the link between every two GPUs, the NUMA node and CPUs that each is near "
		"to, "
		"and the sets of 2 and 4 GPUs with the best links, over all of them and over those "
		"that are free now. Jobs are placed by the same scores.",
	.examples = examples,
	.run = run,
};

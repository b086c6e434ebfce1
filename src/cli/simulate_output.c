/* SPDX-License-Identifier: Apache-2.0 */
/* Where results of `takt simulate` go, and the bar that shows how far it is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/timetext.h"
#include "cli/report_page.h"
#include "cli/simulate.h"
#include "cli/table.h"
#include "takt_build.h"
#include "takt_commit.h"

enum {
	BAR = 40,
	MAX_COLUMNS = 16,
	TITLE = 40,
};

static const uint64_t QUIET_NS = 2 * TAKT_NS_PER_S, EVERY_NS = TAKT_NS_PER_S / 10;

int takt_simulate_progress(void *ctx, size_t done, size_t count)
{
	struct takt_simulate *simulate = ctx;
	uint64_t now = takt_mono_now(takt_sys_real()).ns, taken = now - simulate->begun_ns;
	char left[TAKT_DURATION_TEXT], bar[BAR + 1];
	size_t full = done * BAR / count;

	if (taken < QUIET_NS || now - simulate->shown_ns < EVERY_NS || isatty(STDERR_FILENO) != 1)
		return 0;
	simulate->shown_ns = now;
	memset(bar, '.', BAR);
	memset(bar, '#', full);
	bar[BAR] = '\0';
	fprintf(stderr, "\r[%s] %zu of %zu runs, %s left ", bar, done, count,
		takt_duration_text(taken / done * (count - done), left));
	return 0;
}

void takt_simulate_progress_end(struct takt_simulate *simulate)
{
	if (simulate->shown_ns)
		fprintf(stderr, "\r%*s\r", BAR + 40, "");
}

struct takt_sim_meta takt_simulate_meta(const struct takt_simulate *simulate, const char *protocol)
{
	struct takt_simulate *own = (struct takt_simulate *)simulate;

	for (size_t i = 0; i < simulate->note_count; i++)
		own->note_list[i] = simulate->notes[i];
	own->note_list[simulate->note_count] = NULL;
	return (struct takt_sim_meta){
		.protocol = protocol,
		.version = TAKT_VERSION,
		.commit = TAKT_COMMIT,
		.command = takt_str_text(&simulate->command),
		.cluster = simulate->cluster,
		.cluster_hash = "",
		.trace = simulate->trace,
		.trace_hash = "",
		.first_seed = simulate->first_seed,
		.last_seed = simulate->last_seed,
		.options = simulate->note_list,
	};
}

int takt_simulate_write(const struct takt_simulate *simulate, const char *option,
			const struct takt_str *text, struct takt_err *err)
{
	return takt_cli_write_file(simulate->cli, option, text, err);
}

int takt_simulate_results(struct takt_simulate *simulate, const struct takt_sim_table *table,
			  const struct takt_sim_meta *meta, size_t baseline, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SIM_RESULT_BYTES);
	TAKT_CLEANUP(strp) struct takt_str csv = TAKT_STR(TAKT_SIM_RESULT_BYTES);
	int rc;

	takt_sim_table_json(table, meta, baseline, &json);
	takt_sim_table_csv(table, meta, baseline, &csv);
	rc = takt_simulate_write(simulate, "output", &json, err);
	if (rc == 0)
		rc = takt_simulate_write(simulate, "csv", &csv, err);
	if (rc == 0)
		rc = takt_report_write(simulate->cli, &json, err);
	if (simulate->cli->json)
		takt_str_add(&simulate->cli->out, takt_str_text(&json));
	return rc;
}

static void print_differences(struct takt_cli *cli, const struct takt_sim_table *table,
			      size_t variant, size_t load, size_t baseline)
{
	takt_str_addf(&cli->out, "%s - %s:", table->name(table->ctx, variant),
		      table->name(table->ctx, baseline));
	for (size_t m = 0; m < table->measure_count; m++) {
		const struct takt_sim_measure *measure = &table->measures[m];
		struct takt_sim_stat diff =
			takt_sim_table_difference(table, variant, baseline, load, m);

		if (diff.n && (diff.mean > 0 || diff.mean < 0))
			takt_str_addf(&cli->out, " %s %+.*f +-%.*f", measure->title,
				      measure->decimals, diff.mean, measure->decimals, diff.half95);
	}
	takt_str_add(&cli->out, "\n");
}

void takt_simulate_print_table(struct takt_cli *cli, const struct takt_sim_table *results,
			       size_t load, size_t baseline)
{
	struct takt_column columns[MAX_COLUMNS] = {{"", false, 0, 0}};
	struct takt_table table = {.columns = columns, .cells = TAKT_VEC_INIT(1 << 20)};
	size_t measures = results->measure_count < MAX_COLUMNS ? results->measure_count
							       : (size_t)MAX_COLUMNS - 1;
	char titles[MAX_COLUMNS][TITLE];

	for (size_t m = 0; m < measures; m++) {
		snprintf(titles[m], TITLE, "%s %s", results->measures[m].title,
			 results->measures[m].unit);
		columns[m + 1] = (struct takt_column){titles[m], true, 0, 0};
	}
	table.column_count = measures + 1;
	for (size_t v = 0; v < results->variant_count; v++) {
		takt_table_add(&table, TAKT_STYLE_HEAD, "%s", results->name(results->ctx, v));
		for (size_t m = 0; m < measures; m++) {
			struct takt_sim_stat stat = takt_sim_table_stat(results, v, load, m);

			if (stat.n)
				takt_table_add(&table, TAKT_STYLE_PLAIN, "%.*f",
					       results->measures[m].decimals, stat.mean);
			else
				takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", "");
		}
	}
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	for (size_t v = 0; v < results->variant_count; v++)
		if (v != baseline && results->seed_count > 1)
			print_differences(cli, results, v, load, baseline);
}

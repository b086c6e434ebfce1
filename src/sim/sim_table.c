/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of results, see the header. */
#include "sim/sim_table.h"

#include <stdint.h>

#include "base/mem.h"
#include "codec/json.h"

/* Values less those of another variant, or themselves with SIZE_MAX. */
static struct takt_sim_stat over_seeds(const struct takt_sim_table *table, size_t variant,
				       size_t other, size_t load, size_t measure)
{
	TAKT_CLEANUP(freep) double *values = takt_calloc(table->seed_count, sizeof(*values));
	size_t n = 0;

	for (size_t s = 0; values && s < table->seed_count; s++) {
		double value, base = 0;

		if (!table->value(table->ctx, variant, load, s, measure, &value) ||
		    (other != SIZE_MAX &&
		     !table->value(table->ctx, other, load, s, measure, &base)))
			continue;
		values[n++] = value - base;
	}
	return n ? takt_sim_stat(values, n) : (struct takt_sim_stat){0};
}

struct takt_sim_stat takt_sim_table_stat(const struct takt_sim_table *table, size_t variant,
					 size_t load, size_t measure)
{
	return over_seeds(table, variant, SIZE_MAX, load, measure);
}

struct takt_sim_stat takt_sim_table_difference(const struct takt_sim_table *table, size_t variant,
					       size_t other, size_t load, size_t measure)
{
	return over_seeds(table, variant, other, load, measure);
}

static void add_measures(const struct takt_sim_table *table, size_t variant, size_t load,
			 struct takt_str *out)
{
	for (size_t m = 0; m < table->measure_count; m++) {
		struct takt_sim_stat stat = takt_sim_table_stat(table, variant, load, m);
		const char *name = table->measures[m].name;

		if (stat.n == 0)
			takt_str_addf(out, ",\n \"%s\":null", name);
		else
			takt_str_addf(out, ",\n \"%s\":%.4f,\"%s_sd\":%.4f,\"%s_ci95\":%.4f", name,
				      stat.mean, name, stat.sd, name, stat.half95);
	}
}

static void add_against(const struct takt_sim_table *table, size_t variant, size_t load,
			size_t baseline, struct takt_str *out)
{
	takt_str_addf(out, ",\n \"against\":{\"%s\":", table->label);
	takt_json_add_text(out, table->name(table->ctx, baseline));
	for (size_t m = 0; m < table->measure_count; m++) {
		struct takt_sim_stat stat =
			takt_sim_table_difference(table, variant, baseline, load, m);
		const char *name = table->measures[m].name;

		if (stat.n)
			takt_str_addf(out, ",\"%s\":%.4f,\"%s_ci95\":%.4f", name, stat.mean, name,
				      stat.half95);
	}
	takt_str_add(out, "}");
}

static void add_record(const struct takt_sim_table *table, size_t variant, size_t load,
		       size_t baseline, struct takt_str *out)
{
	takt_str_addf(out, "{\"%s\":", table->label);
	takt_json_add_text(out, table->name(table->ctx, variant));
	for (size_t f = 0; table->facts[f]; f++) {
		takt_json_add_name(out, table->facts[f], false);
		table->fact(table->ctx, variant, load, f, out);
	}
	add_measures(table, variant, load, out);
	if (variant != baseline)
		add_against(table, variant, load, baseline, out);
	if (table->more)
		table->more(table->ctx, variant, load, out);
	takt_str_add(out, "}");
}

/* What the records' figures are called and measured in. */
static void add_legend(const struct takt_sim_table *table, size_t baseline, struct takt_str *out)
{
	takt_json_add_name(out, "compared", false);
	takt_json_add_text(out, table->label);
	takt_json_add_name(out, "baseline", false);
	takt_json_add_text(out, table->name(table->ctx, baseline));
	takt_str_add(out, ",\n\"measures\":[");
	for (size_t m = 0; m < table->measure_count; m++) {
		const struct takt_sim_measure *measure = &table->measures[m];

		takt_str_addf(out,
			      "%s{\"name\":\"%s\",\"unit\":\"%s\",\"title\":\"%s\","
			      "\"decimals\":%d}",
			      m ? ",\n " : "\n ", measure->name, measure->unit, measure->title,
			      measure->decimals);
	}
	takt_str_add(out, "]");
}

void takt_sim_table_json(const struct takt_sim_table *table, const struct takt_sim_meta *meta,
			 size_t baseline, struct takt_str *out)
{
	const char *comma = "\n";

	takt_sim_meta_json(meta, out);
	add_legend(table, baseline, out);
	takt_str_add(out, ",\n\"results\":[");
	for (size_t v = 0; v < table->variant_count; v++)
		for (size_t l = 0; l < table->load_count; l++) {
			takt_str_add(out, comma);
			add_record(table, v, l, baseline, out);
			comma = ",\n";
		}
	takt_str_add(out, "\n]}\n");
}

static void add_cell(struct takt_str *out, const struct takt_sim_stat *stat, double value)
{
	if (stat->n)
		takt_str_addf(out, ",%.4f", value);
	else
		takt_str_add(out, ",");
}

static void add_row(const struct takt_sim_table *table, size_t variant, size_t load,
		    size_t baseline, struct takt_str *out)
{
	takt_str_addf(out, "%s,%zu", table->name(table->ctx, variant), table->seed_count);
	for (size_t f = 0; table->facts[f]; f++) {
		takt_str_add(out, ",");
		table->fact(table->ctx, variant, load, f, out);
	}
	for (size_t m = 0; m < table->measure_count; m++) {
		struct takt_sim_stat stat = takt_sim_table_stat(table, variant, load, m);
		struct takt_sim_stat diff =
			takt_sim_table_difference(table, variant, baseline, load, m);

		add_cell(out, &stat, stat.mean);
		add_cell(out, &stat, stat.half95);
		add_cell(out, &diff, diff.mean);
		add_cell(out, &diff, diff.half95);
	}
	takt_str_add(out, "\n");
}

void takt_sim_table_csv(const struct takt_sim_table *table, const struct takt_sim_meta *meta,
			size_t baseline, struct takt_str *out)
{
	takt_sim_meta_csv(meta, out);
	takt_str_addf(out,
		      "# _difference: to %s on the same seeds; _ci95: half of the 95 %% "
		      "interval\n",
		      table->name(table->ctx, baseline));
	takt_str_addf(out, "%s,seeds", table->label);
	for (size_t f = 0; table->facts[f]; f++)
		takt_str_addf(out, ",%s", table->facts[f]);
	for (size_t m = 0; m < table->measure_count; m++) {
		const char *name = table->measures[m].name;

		takt_str_addf(out, ",%s,%s_ci95,%s_difference,%s_difference_ci95", name, name, name,
			      name);
	}
	takt_str_add(out, "\n");
	for (size_t v = 0; v < table->variant_count; v++)
		for (size_t l = 0; l < table->load_count; l++)
			add_row(table, v, l, baseline, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The page, see the header. */
#include "sim/html_page.h"

#include <inttypes.h>

/* Okabe and Ito's palette, which people of all kinds of colour vision tell apart. */
static const char style[] =
	":root{--bg:#f6f7f9;--card:#fff;--text:#1d2330;--dim:#667085;--grid:#e4e7ec;--edge:#d9dde5;"
	"--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;"
	"--c6:#8a6d3b;--c7:#6b6ecf}"
	"@media(prefers-color-scheme:dark){:root{--bg:#12151b;--card:#1a1f28;--text:#e6e9ef;"
	"--dim:#98a2b3;--grid:#2a313d;--edge:#2f3744;--c0:#4aa8e0;--c1:#f08a4b;--c2:#35c79a;"
	"--c3:#e39ac4;--c4:#f2bb4a;--c5:#8ccff2;--c6:#c3a36b;--c7:#a3a5f0}}"
	"*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--text);"
	"font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
	"main{max-width:1180px;margin:0 auto;padding:32px 20px 64px}"
	"h1{font-size:27px;margin:0;letter-spacing:-.01em}h2{font-size:18px;margin:40px 0 12px}"
	".sub{color:var(--dim);margin:4px 0 20px}"
	".tag{display:inline-block;border:1px solid var(--c1);color:var(--c1);border-radius:99px;"
	"padding:0 10px;font-size:12px;vertical-align:5px;margin-left:10px}"
	"dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(210px,1fr));gap:10px;margin:"
	"0}"
	"dl div,figure,.scroll,pre{background:var(--card);border:1px solid var(--edge);"
	"border-radius:10px}dl div{padding:10px 14px}dt{color:var(--dim);font-size:12px}"
	"dd{margin:0;overflow-wrap:anywhere}.charts{display:grid;gap:16px;"
	"grid-template-columns:repeat(auto-fit,minmax(440px,1fr))}"
	"figure{margin:0;padding:14px 16px}figcaption{font-weight:600;margin-bottom:6px}"
	"svg{width:100%;height:auto;display:block}"
	".grid{stroke:var(--grid)}.tick,.legend{fill:var(--dim);font-size:12px}"
	".legend{fill:var(--text)}.axis{fill:var(--dim);font-size:12.5px}"
	".line{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}"
	".line.bound{stroke:var(--text);stroke-dasharray:5 5;stroke-width:1.5}"
	".dot.bound{fill:var(--text)}"
	".line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}"
	".line.c3{stroke:var(--c3)}.line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}"
	".line.c6{stroke:var(--c6)}.line.c7{stroke:var(--c7)}"
	".dot.c0{fill:var(--c0)}.dot.c1{fill:var(--c1)}.dot.c2{fill:var(--c2)}"
	".dot.c3{fill:var(--c3)}.dot.c4{fill:var(--c4)}.dot.c5{fill:var(--c5)}"
	".dot.c6{fill:var(--c6)}.dot.c7{fill:var(--c7)}"
	".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px;"
	"font-variant-numeric:tabular-nums}th,td{padding:7px 12px;text-align:right;"
	"white-space:nowrap;border-bottom:1px solid var(--grid)}tr:last-child td,tr:last-child "
	"th{border-bottom:0}th:first-child{text-align:left}thead th{color:var(--dim);"
	"font-weight:500;font-size:12.5px}tbody th{font-weight:600}small{color:var(--dim)}"
	".best{color:var(--c2);font-weight:600}.note{color:var(--dim);font-size:13px;margin:8px "
	"2px}"
	"pre{padding:14px 16px;overflow-x:auto;font-size:13px;white-space:pre-wrap;"
	"overflow-wrap:anywhere}";

void takt_html_text(struct takt_str *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			takt_str_add(out, "&lt;");
			break;
		case '>':
			takt_str_add(out, "&gt;");
			break;
		case '&':
			takt_str_add(out, "&amp;");
			break;
		case '"':
			takt_str_add(out, "&quot;");
			break;
		default:
			takt_str_addn(out, text, 1);
		}
	}
}

static void add_fact(struct takt_str *out, const char *name, const char *value)
{
	takt_str_add(out, "<div><dt>");
	takt_html_text(out, name);
	takt_str_add(out, "</dt><dd>");
	takt_html_text(out, value);
	takt_str_add(out, "</dd></div>\n");
}

static void add_source(struct takt_str *out, const char *name, const char *source, const char *hash,
		       uint64_t count, const char *unit)
{
	takt_str_addf(out, "<div><dt>%s</dt><dd>", name);
	takt_html_text(out, source);
	takt_str_addf(out, "<br><small>%" PRIu64 " %s</small>", count, unit);
	if (hash[0])
		takt_str_addf(out, "<br><small>sha256 %.16s&hellip;</small>", hash);
	takt_str_add(out, "</dd></div>\n");
}

void takt_html_begin(struct takt_str *out, const struct takt_sim_meta *meta, const char *title,
		     const char *subtitle)
{
	takt_str_add(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
			  "<meta name=\"viewport\" content=\"width=device-width\"><title>");
	takt_html_text(out, title);
	takt_str_addf(out, "</title><style>%s</style></head>\n<body><main><h1>", style);
	takt_html_text(out, title);
	takt_str_add(out, "<span class=\"tag\">simulated</span></h1>\n<p class=\"sub\">");
	takt_html_text(out, subtitle);
	takt_str_add(out, "</p>\n<dl>\n");
	add_source(out, "cluster", meta->cluster, meta->cluster_hash, meta->gpus, "GPUs");
	add_source(out, "trace", meta->trace, meta->trace_hash, meta->jobs, "jobs");
	for (const char *const *at = meta->options; at && *at; at += 2)
		add_fact(out, at[0], at[1]);
	takt_str_add(out, "</dl>\n");
}

void takt_html_heading(struct takt_str *out, const char *text)
{
	takt_str_add(out, "<h2>");
	takt_html_text(out, text);
	takt_str_add(out, "</h2>\n");
}

void takt_html_end(struct takt_str *out, const struct takt_sim_meta *meta)
{
	takt_html_heading(out, "The command that repeats this");
	takt_str_add(out, "<pre>");
	takt_html_text(out, meta->command);
	takt_str_add(out, "</pre>\n<p class=\"note\">takt ");
	takt_html_text(out, meta->version);
	takt_str_add(out, ", commit ");
	takt_html_text(out, meta->commit);
	takt_str_add(out, ". Intervals hold the mean in 95 of 100 cases (Student's t over the "
			  "seeds).</p></main></body></html>\n");
}

static void add_head(struct takt_str *out, const struct takt_sim_table *table)
{
	takt_str_addf(out, "<div class=\"scroll\"><table><thead><tr><th>%s</th>", table->label);
	for (size_t m = 0; m < table->measure_count; m++) {
		takt_str_add(out, "<th>");
		takt_html_text(out, table->measures[m].title);
		takt_str_addf(out, " <small>%s</small></th>", table->measures[m].unit);
	}
	takt_str_add(out, "</tr></thead><tbody>\n");
}

static void add_cell(struct takt_str *out, const struct takt_sim_stat *stat, int decimals,
		     bool sign)
{
	if (stat->n == 0) {
		takt_str_add(out, "<td>&ndash;</td>");
		return;
	}
	if (sign)
		takt_str_addf(out, "<td>%+.*f", decimals, stat->mean);
	else
		takt_str_addf(out, "<td>%.*f", decimals, stat->mean);
	if (stat->n > 1)
		takt_str_addf(out, "<br><small>&plusmn;%.*f</small>", decimals, stat->half95);
	takt_str_add(out, "</td>");
}

void takt_html_table(struct takt_str *out, const struct takt_sim_table *table, size_t load,
		     size_t baseline)
{
	add_head(out, table);
	for (size_t v = 0; v < table->variant_count; v++) {
		takt_str_add(out, "<tr><th>");
		takt_html_text(out, table->name(table->ctx, v));
		takt_str_add(out, "</th>");
		for (size_t m = 0; m < table->measure_count; m++) {
			struct takt_sim_stat stat = takt_sim_table_stat(table, v, load, m);

			add_cell(out, &stat, table->measures[m].decimals, false);
		}
		takt_str_add(out, "</tr>\n");
	}
	for (size_t v = 0; v < table->variant_count; v++) {
		if (v == baseline)
			continue;
		takt_str_add(out, "<tr><th>");
		takt_html_text(out, table->name(table->ctx, v));
		takt_str_add(out, " <small>less ");
		takt_html_text(out, table->name(table->ctx, baseline));
		takt_str_add(out, "</small></th>");
		for (size_t m = 0; m < table->measure_count; m++) {
			struct takt_sim_stat diff =
				takt_sim_table_difference(table, v, baseline, load, m);

			add_cell(out, &diff, table->measures[m].decimals, true);
		}
		takt_str_add(out, "</tr>\n");
	}
	takt_str_add(out, "</tbody></table></div>\n");
}

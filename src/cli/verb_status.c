/* SPDX-License-Identifier: Apache-2.0 */
/* takt status: the machine at a glance, a line a GPU. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"

enum {
	WATCH_PAUSE_S = 2,
	MAX_PAUSE_S = 3600,
};

/* The name of each GPU has a column only where they differ. */
static const struct takt_column columns[] = {
	{"GPU", true, 0, 0},	{"NAME", false, 8, 5},	   {"CLOCK", true, 0, 0},
	{"POWER", true, 0, 0},	{"TEMP", true, 0, 4},	   {"UTIL", true, 0, 0},
	{"MEMORY", true, 0, 2}, {"THROTTLE", false, 8, 3}, {"STATE", false, 0, 0},
	{"WHO", false, 8, 0},
};
static const struct takt_column columns_unnamed[] = {
	{"GPU", true, 0, 0},	   {"CLOCK", true, 0, 0},  {"POWER", true, 0, 0},
	{"TEMP", true, 0, 4},	   {"UTIL", true, 0, 0},   {"MEMORY", true, 0, 2},
	{"THROTTLE", false, 8, 3}, {"STATE", false, 0, 0}, {"WHO", false, 8, 0},
};

static bool all_alike(const struct takt_status_view *view)
{
	for (uint32_t i = 1; i < view->gpu_count; i++)
		if (strcmp(view->gpus[i].name, view->gpus[0].name) != 0)
			return false;
	return view->gpu_count > 0 && view->gpus[0].name[0];
}

/* "1410/1980": the clock and the highest it may be now. */
static void add_clock(struct takt_table *table, const struct takt_gpu_view *gpu)
{
	bool leased = gpu->lease_max_mhz > 0;
	uint32_t top = leased ? gpu->lease_max_mhz : gpu->sm_max_mhz;
	enum takt_style style = leased ? TAKT_STYLE_MIND : TAKT_STYLE_PLAIN;

	if (!(gpu->has & TAKT_VIEW_SM))
		takt_table_add(table, style, "-");
	else if (leased || (gpu->has & TAKT_VIEW_SM_MAX))
		takt_table_add(table, style, "%u/%u", gpu->sm_mhz, top);
	else
		takt_table_add(table, style, "%u", gpu->sm_mhz);
}

static void add_power(struct takt_table *table, const struct takt_gpu_view *gpu)
{
	if (!(gpu->has & TAKT_VIEW_POWER))
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
	else if (gpu->has & TAKT_VIEW_POWER_LIMIT)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%u/%uW", gpu->power_mw / 1000,
			       gpu->power_limit_mw / 1000);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%uW", gpu->power_mw / 1000);
}

static void add_if(struct takt_table *table, bool known, const char *fmt, int value)
{
	char text[16] = "";

	if (known)
		snprintf(text, sizeof(text), "%d%s", value, fmt);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", text);
}

/* "45.0/80G": the unit once where it is the same. */
static void add_memory(struct takt_table *table, const struct takt_gpu_view *gpu)
{
	const uint64_t gib = UINT64_C(1) << 30;
	uint64_t used = gpu->mem_used_bytes, all = gpu->mem_total_bytes;
	char used_text[TAKT_UNIT_TEXT], all_text[TAKT_UNIT_TEXT];

	if (!(gpu->has & TAKT_VIEW_MEMORY))
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
	else if (used == 0 && all >= gib)
		takt_table_add(table, TAKT_STYLE_PLAIN, "0/%lluG", (unsigned long long)(all / gib));
	else if (used >= gib && all >= gib)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%llu.%llu/%lluG",
			       (unsigned long long)(used / gib),
			       (unsigned long long)(used % gib / (gib / 1024) * 10 / 1024),
			       (unsigned long long)(all / gib));
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s/%s", takt_bytes_text(used, used_text),
			       takt_bytes_text(all, all_text));
}

/* An idle GPU clocks down by itself: the driver counts that as a reason, but nothing is amiss. */
static void add_throttle(struct takt_table *table, const struct takt_gpu_view *gpu)
{
	const char *text = gpu->throttle_text;
	enum takt_style style = TAKT_STYLE_PLAIN;

	if (!(gpu->has & TAKT_VIEW_THROTTLE))
		text = "";
	else if (!text[0])
		text = "none";
	else if (strcmp(text, "gpu_idle") != 0)
		style = TAKT_STYLE_MIND;
	takt_table_add(table, style, "%s", text);
}

static void add_state(struct takt_table *table, const struct takt_gpu_view *gpu)
{
	char age[TAKT_UNIT_TEXT];

	if (gpu->lost)
		takt_table_add(table, TAKT_STYLE_ALARM, "LOST");
	else if (gpu->stale)
		takt_table_add(table, TAKT_STYLE_ALARM, "STALE %s", takt_ms_text(gpu->age_ms, age));
	else if (strcmp(gpu->clock_state, "changed") == 0)
		takt_table_add(table, TAKT_STYLE_ALARM, "CHANGED");
	else if (gpu->asleep && strcmp(gpu->state, "free") == 0)
		takt_table_add(table, TAKT_STYLE_PLAIN, "asleep");
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", gpu->state);
}

/* "12 train ann 0.5, 13 eval bob 0.25": every job that has a part of it. */
static void add_shares(struct takt_table *table, const struct takt_gpu_view *gpu)
{
	struct takt_str text = TAKT_STR(1024);

	for (uint32_t i = 0; i < gpu->share_count && i < TAKT_ARRAY_LEN(gpu->shares); i++) {
		const struct takt_gpu_share_view *share = &gpu->shares[i];

		takt_str_addf(&text, "%s%llu %s %s", i ? ", " : "",
			      (unsigned long long)share->job_id, share->name, share->user);
		if (share->milli)
			takt_str_addf(&text, " %.3g", share->milli / 1000.0);
		else
			takt_str_addf(&text, " %s", share->mig_uuid);
		if (share->left)
			takt_str_add(&text, " (leaving)");
	}
	if (gpu->share_count > TAKT_ARRAY_LEN(gpu->shares))
		takt_str_addf(&text, " +%zu", gpu->share_count - TAKT_ARRAY_LEN(gpu->shares));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&text));
	takt_str_fini(&text);
}

/* takt's jobs, else the first process that is there. */
static void add_who(struct takt_table *table, const struct takt_gpu_view *gpu)
{
	const struct takt_proc_view *proc = &gpu->procs[0];
	char more[24] = "";

	if (gpu->has & TAKT_VIEW_SHARES) {
		add_shares(table, gpu);
		return;
	}
	if (gpu->job_id) {
		takt_table_add(table, TAKT_STYLE_PLAIN, "%llu %s %s",
			       (unsigned long long)gpu->job_id, gpu->job_name, gpu->job_user);
		return;
	}
	if (gpu->kept_for_job) {
		takt_table_add(table, TAKT_STYLE_PLAIN, "kept for job %llu",
			       (unsigned long long)gpu->kept_for_job);
		return;
	}
	if (!(gpu->has & TAKT_VIEW_PROCS) || gpu->proc_count == 0) {
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
		return;
	}
	if (gpu->proc_count > 1)
		snprintf(more, sizeof(more), " +%u", gpu->proc_count - 1);
	takt_table_add(table, TAKT_STYLE_MIND, "%s %s(%d)%s", proc->user[0] ? proc->user : "?",
		       proc->command, proc->pid, more);
}

static void add_gpu(struct takt_table *table, const struct takt_gpu_view *gpu, bool named)
{
	takt_table_add(table, TAKT_STYLE_PLAIN, "%u", gpu->index);
	if (named)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_short_name(gpu->name));
	add_clock(table, gpu);
	add_power(table, gpu);
	add_if(table, gpu->has & TAKT_VIEW_TEMP, "C", gpu->temp_c);
	add_if(table, gpu->has & TAKT_VIEW_GPU_UTIL, "%", (int)gpu->gpu_util_pct);
	add_memory(table, gpu);
	add_throttle(table, gpu);
	add_state(table, gpu);
	add_who(table, gpu);
}

static void print_head(struct takt_cli *cli, const struct takt_status_view *view)
{
	TAKT_CLEANUP(strp) struct takt_str jobs = TAKT_STR(80);
	char up[TAKT_UNIT_TEXT];
	size_t line;

	takt_print_simulated(cli, view->simulated);
	takt_style_add(&cli->out, cli->colour, TAKT_STYLE_HEAD, view->hostname);
	line = cli->out.len;
	takt_str_addf(&cli->out, ": %u ", view->gpu_count);
	if (all_alike(view)) {
		takt_str_add(&cli->out, "x ");
		takt_style_add(&cli->out, false, TAKT_STYLE_PLAIN,
			       takt_short_name(view->gpus[0].name));
	} else {
		takt_str_add(&cli->out, "GPUs");
	}
	if (view->driver_version[0])
		takt_str_addf(&cli->out, ", driver %s", view->driver_version);
	takt_str_addf(&cli->out, ", takt %s up %s", view->takt_version,
		      takt_span_text(view->uptime_ms, up));
	takt_str_addf(&jobs, "%u job%s running, %u waiting", view->running,
		      view->running == 1 ? "" : "s", view->waiting);
	line = strlen(view->hostname) + cli->out.len - line + jobs.len + 2;
	takt_str_addf(&cli->out, "%s%s\n", cli->width && line > cli->width ? "\n" : "; ",
		      jobs.s ? jobs.s : "");
	if (view->manages)
		return;
	takt_style_add(&cli->out, cli->colour, TAKT_STYLE_MIND, "OBSERVES ONLY");
	takt_str_addf(&cli->out, "%s%s\n", view->observe_why[0] ? ": " : "", view->observe_why);
}

static bool is_in(uint64_t mask, const struct takt_gpu_view *gpu)
{
	return gpu->index >= 64 || (mask >> gpu->index & 1);
}

static void print_table(struct takt_cli *cli, const struct takt_status_view *view, uint64_t mask)
{
	struct takt_table table = TAKT_TABLE(columns), unnamed = TAKT_TABLE(columns_unnamed);
	bool named = !all_alike(view);

	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (is_in(mask, &view->gpus[i]))
			add_gpu(named ? &table : &unnamed, &view->gpus[i], named);
	takt_table_print(named ? &table : &unnamed, cli->width, cli->colour, &cli->out);
}

/* A critical one is no mere note. */
static void print_note(struct takt_cli *cli, const char *severity, const char *text)
{
	bool grave = strcmp(severity, "critical") == 0;

	takt_style_add(&cli->out, cli->colour, grave ? TAKT_STYLE_ALARM : TAKT_STYLE_PLAIN,
		       severity[0] && strcmp(severity, "info") != 0 ? severity : "note");
	takt_str_addf(&cli->out, ": %s\n", text);
}

static void print_tail(struct takt_cli *cli, const struct takt_status_view *view, uint64_t mask)
{
	for (uint32_t i = 0; i < view->gpu_count; i++) {
		const struct takt_gpu_view *gpu = &view->gpus[i];

		if (!is_in(mask, gpu))
			continue;
		if (strcmp(gpu->clock_state, "changed") == 0)
			takt_print_changed(cli, gpu->index, gpu->clock_note);
		else if (gpu->clock_note[0])
			takt_str_addf(&cli->out, "GPU %u: %s\n", gpu->index, gpu->clock_note);
		if (gpu->power_cap_mw)
			takt_str_addf(&cli->out, "GPU %u: power capped at %u W (takt clock)\n",
				      gpu->index, gpu->power_cap_mw / 1000);
		if (gpu->health_note[0])
			takt_str_addf(&cli->out, "GPU %u is %s\n", gpu->index, gpu->health_note);
		if (gpu->note[0])
			takt_str_addf(&cli->out, "GPU %u: %s\n", gpu->index, gpu->note);
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(view->notes); i++)
		if (view->notes[i][0])
			print_note(cli, view->note_severity[i], view->notes[i]);
}

static int show(struct takt_cli *cli, struct takt_err *err)
{
	const char *gpus = takt_cli_value(cli, "gpu");
	struct takt_status_view view;
	uint64_t mask = 0;
	int rc = takt_client_status(cli->client, &view, err);

	if (rc < 0)
		return rc;
	rc = takt_mask_parse(gpus ? gpus : "all", view.gpu_count, &mask, err);
	if (rc < 0 && gpus) {
		takt_status_view_fini(&view);
		return takt_err_wrap(err, rc, "'--gpu'");
	}
	if (!takt_cli_print_json(cli)) {
		print_head(cli, &view);
		print_table(cli, &view, mask);
		print_tail(cli, &view, mask);
	}
	takt_status_view_fini(&view);
	return 0;
}

/* Until it is interrupted or nobody reads it any more. */
static int show_for_ever(struct takt_cli *cli, int64_t pause_s, struct takt_err *err)
{
	static const char clear[] = "\033[H\033[2J";
	int rc;

	for (;;) {
		takt_str_reset(&cli->out);
		if (cli->terminal)
			takt_str_add(&cli->out, clear);
		rc = show(cli, err);
		if (rc == 0)
			rc = takt_cli_write(takt_str_text(&cli->out), cli->out.len, err);
		takt_str_reset(&cli->out);
		if (rc < 0)
			return rc;
		sleep((unsigned)pause_s);
	}
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	bool again = takt_cli_has(cli, "loop") || takt_cli_has(cli, "watch");
	int64_t pause_s;
	int rc = takt_cli_number(cli, "loop", 1, MAX_PAUSE_S, WATCH_PAUSE_S, &pause_s, err);

	if (rc == 0 && cli->json && takt_cli_has(cli, "gpu"))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "'--json' prints all GPUs as the daemon has them, without "
				  "'--gpu'");
	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc < 0)
		return rc;
	return again ? show_for_ever(cli, pause_s, err) : show(cli, err);
}

static const struct takt_option options[] = {
	{"gpu", 'g', "GPUS", "of these only, such as 0,2-3; -i does the same"},
	{"loop", 'l', "SECONDS", "again and again, so many seconds apart"},
	{"watch", 'w', NULL, "the same, every two seconds"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt status", "every GPU: clock, power, temperature, use, who is on it"},
	{"takt status -l 1", "the same, every second"},
	{"takt status -i 0", "GPU 0 alone"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_status = {
	.name = "status",
	.summary = "every GPU and who runs on it",
	.usage = "[-g GPUS] [-l SECONDS | --watch]",
	.about = "Shows a line for each GPU: SM clock and the highest it may be now in MHz, power "
		 "and "
		 "its limit, temperature, utilisation, memory, why it is throttled, its state, and "
		 "takt's job or the process of somebody else on it. '-' means that the driver does "
		 "not say.",
	.options = options,
	.examples = examples,
	.run = run,
};

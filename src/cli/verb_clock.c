/* SPDX-License-Identifier: Apache-2.0 */
/* takt clock: show, set and reset SM clocks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/clock_ask.h"
#include "cli/clock_orders.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"

static const struct takt_column columns[] = {
	{"GPU", true, 0, 0},   {"NAME", false, 8, 3},  {"SM MHZ", true, 0, 0},
	{"LIST", true, 0, 1},  {"LEASE", true, 0, 0},  {"OF", false, 0, 2},
	{"POWER", true, 0, 1}, {"STATE", false, 0, 0}, {"NOTE", false, 8, 0},
};

static void add_range(struct takt_table *table, uint32_t min, uint32_t max)
{
	if (max)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%u-%u", min, max);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
}

/* "210-1410", "210-1410 300W mem 405-1215" */
static void add_lease(struct takt_table *table, const struct takt_clock_gpu *gpu)
{
	char text[96] = "";
	size_t used = 0;

	if (gpu->lease_max_mhz)
		used += (size_t)snprintf(text, sizeof(text), " %u-%u", gpu->lease_min_mhz,
					 gpu->lease_max_mhz);
	if (gpu->lease_power_mw)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %uW",
					 gpu->lease_power_mw / 1000);
	if (gpu->lease_mem_max_mhz)
		(void)snprintf(text + used, sizeof(text) - used, " mem %u-%u",
			       gpu->lease_mem_min_mhz, gpu->lease_mem_max_mhz);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", text[0] ? text + 1 : "-");
}

/* "300W cap 350W": the limit in force, and what a facility allows. */
static void add_power(struct takt_table *table, const struct takt_clock_gpu *gpu)
{
	char limit[24] = "-", cap[24] = "";

	if (gpu->power_limit_mw)
		snprintf(limit, sizeof(limit), "%uW", gpu->power_limit_mw / 1000);
	if (gpu->cap_power_mw)
		snprintf(cap, sizeof(cap), " cap %uW", gpu->cap_power_mw / 1000);
	takt_table_add(table, cap[0] ? TAKT_STYLE_MIND : TAKT_STYLE_PLAIN, "%s%s", limit, cap);
}

/* What holds a GPU for good, and why. */
static void print_standing(struct takt_cli *cli, const struct takt_clock_gpu *gpu)
{
	if (gpu->cap_power_mw)
		takt_str_addf(&cli->out, "GPU %u: power capped at %u W%s%s\n", gpu->index,
			      gpu->cap_power_mw / 1000, gpu->cap_why[0] ? " by " : "",
			      gpu->cap_why);
	if (gpu->base_max_mhz)
		takt_str_addf(&cli->out, "GPU %u: declared to stand at %u-%u MHz\n", gpu->index,
			      gpu->base_min_mhz, gpu->base_max_mhz);
	if (gpu->base_power_mw)
		takt_str_addf(&cli->out, "GPU %u: declared to stand at %u W\n", gpu->index,
			      gpu->base_power_mw / 1000);
}

static void add_gpu(struct takt_table *table, const struct takt_clock_gpu *gpu)
{
	bool changed = strcmp(gpu->clock_state, "changed") == 0;

	takt_table_add(table, TAKT_STYLE_PLAIN, "%u", gpu->index);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_short_name(gpu->name));
	if (gpu->has_sm)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%u", gpu->sm_mhz);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
	add_range(table, gpu->list_min_mhz, gpu->list_max_mhz);
	add_lease(table, gpu);
	if (gpu->lease_job)
		takt_table_add(table, TAKT_STYLE_PLAIN, "job %llu",
			       (unsigned long long)gpu->lease_job);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s",
			       gpu->lease_max_mhz || gpu->lease_mem_max_mhz || gpu->lease_power_mw
				       ? "admin"
				       : "-");
	add_power(table, gpu);
	takt_table_add(table, changed ? TAKT_STYLE_ALARM : TAKT_STYLE_PLAIN, "%s",
		       changed ? "CHANGED" : gpu->clock_state);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", changed ? "" : gpu->note);
}

static void print_cpu(struct takt_cli *cli, const struct takt_cpu_clock *cpu)
{
	if (cpu->max_mhz)
		takt_str_addf(&cli->out, "CPUs are limited to %u MHz ('takt clock reset --cpu').\n",
			      cpu->max_mhz);
	if (cpu->changed)
		takt_str_addf(&cli->out, "CPUs are not as they were found: %s\n", cpu->note);
}

static void print_share(struct takt_cli *cli, const struct takt_clock_gpu *gpu)
{
	struct takt_str *out = &cli->out;

	takt_str_addf(out, "GPU %u: ", gpu->index);
	if (strcmp(gpu->budget_for, "unknown") == 0)
		takt_str_add(out, "counts with nothing, neither power nor limit is known");
	else if (strcmp(gpu->budget_for, "limit") == 0)
		takt_str_addf(out, "counts with its limit, %u W", gpu->budget_mw / 1000);
	else if (strcmp(gpu->budget_for, "drawn") == 0)
		takt_str_addf(out, "counts with what it draws, %u W", gpu->budget_mw / 1000);
	else
		takt_str_addf(out, "%u W for %s", gpu->budget_mw / 1000, gpu->budget_for);
	if (gpu->has_draw && strcmp(gpu->budget_for, "drawn") != 0)
		takt_str_addf(out, ", draws %u W", gpu->draw_mw / 1000);
	takt_str_add(out, "\n");
}

static void print_budget(struct takt_cli *cli, const struct takt_clock_view *view)
{
	if (!view->budget.watts)
		return;
	takt_str_addf(&cli->out, "Power budget: %u W for all GPUs", view->budget.watts);
	if (view->budget.has_drawn)
		takt_str_addf(&cli->out, ", %u W drawn", view->budget.drawn_mw / 1000);
	takt_str_add(&cli->out, "\n");
	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (view->gpu[i].budget_for[0])
			print_share(cli, &view->gpu[i]);
	if (view->budget.note[0])
		takt_str_addf(&cli->out, "note: %s\n", view->budget.note);
}

/* Without it the driver forgets what was set as soon as nobody uses it. */
static void advise_persistence(struct takt_cli *cli, const struct takt_clock_view *view)
{
	bool any = false;

	for (uint32_t i = 0; i < view->gpu_count; i++)
		any = any || view->gpu[i].persistence_off;
	if (!any)
		return;
	takt_str_add(&cli->out, "Persistence mode is off on GPU");
	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (view->gpu[i].persistence_off)
			takt_str_addf(&cli->out, " %u", view->gpu[i].index);
	takt_str_add(&cli->out, ": limits and locks are lost when the last program closes the "
				"driver. An administrator would run: nvidia-smi -pm 1\n");
}

static void print_clocks(struct takt_cli *cli, const struct takt_clock_view *view)
{
	struct takt_table table = TAKT_TABLE(columns);

	takt_print_simulated(cli, view->simulated);
	for (uint32_t i = 0; i < view->gpu_count; i++)
		add_gpu(&table, &view->gpu[i]);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	for (uint32_t i = 0; i < view->gpu_count; i++)
		print_standing(cli, &view->gpu[i]);
	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (strcmp(view->gpu[i].clock_state, "changed") == 0)
			takt_print_changed(cli, view->gpu[i].index, view->gpu[i].note);
	print_budget(cli, view);
	print_cpu(cli, &view->cpu);
	advise_persistence(cli, view);
}

/* --gpus by the machine's own count. */
static int read_gpus(struct takt_cli *cli, uint32_t count, bool required, uint64_t *ret,
		     struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "gpus");

	if (!text && required)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say which GPUs: '--gpus 0,2-3' or '--gpus all'");
	return takt_mask_parse(text ? text : "all", count, ret, err);
}

/* What nvidia-smi would be asked for; a range begins where the first GPU's list does. */
static void advise_lock(const struct takt_clock_view *view, uint64_t mask,
			const struct takt_clock_order *ask, struct takt_err *err)
{
	uint32_t low = ask->max_mhz;
	char words[40];

	for (uint32_t i = view->gpu_count; i > 0 && !ask->lock; i--)
		if (mask >> (i - 1) & 1)
			low = view->gpu[i - 1].list_min_mhz;
	snprintf(words, sizeof(words), "-lgc %u,%u", low, ask->max_mhz);
	if (ask->max_mhz)
		takt_clock_advise(view, mask, words, err);
}

/* --cpu-max-mhz stands alone: CPUs are the machine's, not a GPU's. */
static int set_cpu(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err)
{
	uint32_t mhz = 0;
	int rc = takt_cli_mhz(takt_cli_value(cli, "cpu-max-mhz"), "--cpu-max-mhz", &mhz, err);

	if (rc == 0 &&
	    (cli->operand_count > 1 || takt_cli_value(cli, "gpus") || takt_cli_has(cli, "lock") ||
	     takt_cli_value(cli, "mem-clock") || takt_cli_has(cli, "assume-unlocked")))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "'--cpu-max-mhz' stands alone: it is about the machine's CPUs");
	return rc < 0 ? rc : takt_client_cpu_clock(cli->client, mhz, view, err);
}

static int set(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err)
{
	const char *mem = takt_cli_value(cli, "mem-clock");
	struct takt_clock_order ask = {.lock = takt_cli_has(cli, "lock"),
				       .assume_unlocked = takt_cli_has(cli, "assume-unlocked")};
	uint64_t mask = 0;
	int rc;

	if (takt_cli_value(cli, "cpu-max-mhz"))
		return set_cpu(cli, view, err);
	if (cli->operand_count != 2 && !mem)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"usage: takt clock set --gpus LIST [--lock] [--mem-clock MHZ] [MHZ]");
	rc = cli->operand_count == 2
		     ? takt_cli_mhz(cli->operands[1], "the clock", &ask.max_mhz, err)
		     : 0;
	if (rc == 0 && mem)
		rc = takt_cli_mhz(mem, "--mem-clock", &ask.mem_mhz, err);
	if (rc == 0)
		rc = read_gpus(cli, view->gpu_count, true, &mask, err);
	if (rc < 0)
		return rc;
	rc = takt_client_clock_set(cli->client, mask, &ask, view, err);
	if (rc < 0)
		advise_lock(view, mask, &ask, err);
	return rc;
}

static int reset(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err)
{
	uint64_t mask = 0;
	int rc = read_gpus(cli, view->gpu_count, false, &mask, err);

	if (rc == 0 && takt_cli_has(cli, "cpu"))
		return takt_client_cpu_clock(cli->client, 0, view, err);
	if (rc < 0)
		return rc;
	rc = takt_client_clock_reset(cli->client, mask, view, err);
	if (rc < 0)
		takt_clock_advise(view, mask, "-rgc", err);
	return rc;
}

static int cap(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err)
{
	uint64_t mask = 0;
	int rc = read_gpus(cli, view->gpu_count, false, &mask, err);

	return rc < 0 ? rc : takt_clock_cap_verb(cli, mask, view, err);
}

static int apply(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err)
{
	TAKT_CLEANUP(freep)
	struct takt_clock_policy *policy = takt_alloc(sizeof(*policy));
	int rc = policy ? takt_clock_policy_read(cli, policy, err)
			: takt_err_set(err, -ENOMEM, "no memory for the policy");

	return rc < 0 ? rc : takt_clock_apply_verb(cli, policy, view, err);
}

static int show(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err)
{
	return 0;
}

struct action {
	const char *name;
	const char *options; /* of those below, blanks between */
	bool alone;	     /* needs no daemon */
	int (*run)(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err);
};
static const struct action actions[] = {
	{"show", "", false, show},
	{"set", "gpus lock mem-clock cpu-max-mhz assume-unlocked", false, set},
	{"reset", "gpus cpu", false, reset},
	{"cap", "gpus watts clear reason", false, cap},
	{"apply", "file dry-run config", true, apply},
	{"restore", "config", true, takt_clock_restore_verb},
};

static bool takes(const struct action *action, const char *option)
{
	const char *at = action->options;
	size_t len = strlen(option);

	while (*at && (strncmp(at, option, len) != 0 || (at[len] != ' ' && at[len] != '\0')))
		at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
	return *at;
}

static bool is_common(const struct takt_option *option)
{
	for (const struct takt_option *one = takt_common_options; one->name; one++)
		if (one == option)
			return true;
	return false;
}

static int check_form(const struct takt_cli *cli, const struct action *action, struct takt_err *err)
{
	if (strcmp(action->name, "set") != 0 && cli->operand_count > 1)
		return takt_err_set(err, -TAKT_E_USAGE, "'%.40s' is too much for takt clock %s",
				    cli->operands[1], action->name);
	for (size_t i = 0; i < cli->given_count; i++)
		if (!is_common(cli->given[i].option) && !takes(action, cli->given[i].option->name))
			return takt_err_set(err, -TAKT_E_USAGE, "'--%s' is not for takt clock %s",
					    cli->given[i].option->name, action->name);
	return 0;
}

static int find_action(const struct takt_cli *cli, const struct action **ret, struct takt_err *err)
{
	const char *name = cli->operand_count > 0 ? cli->operands[0] : "show";

	for (size_t i = 0; i < TAKT_ARRAY_LEN(actions); i++)
		if (strcmp(actions[i].name, name) == 0) {
			*ret = &actions[i];
			return check_form(cli, *ret, err);
		}
	return takt_err_set(err, -TAKT_E_USAGE,
			    "takt clock takes show, set, reset, cap, apply or restore, not '%.40s'",
			    name);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_alloc(sizeof(*view));
	const struct action *action = NULL;
	int rc = view ? find_action(cli, &action, err)
		      : takt_err_set(err, -ENOMEM, "no memory for the clocks");

	if (rc == 0)
		rc = takt_clock_look(cli, action->alone, view, err);
	if (rc == 0)
		rc = action->run(cli, view, err);
	if (rc < 0 || takt_cli_has(cli, "dry-run") || takt_clock_print_json(cli, view))
		return rc;
	print_clocks(cli, view);
	return rc;
}

static const char *const words[] = {"show", "set", "reset", "cap", "apply", "restore", NULL};

static const struct takt_option options[] = {
	{"gpus", 'g', "LIST", "0,2-3 or all; all by default but for set"},
	{"lock", 0, NULL, "exactly this clock, not at most"},
	{"assume-unlocked", 0, NULL,
	 "set: nobody else has locked these clocks; administrators only"},
	{"mem-clock", 0, "MHZ", "set: memory clock at most this; administrators only"},
	{"cpu-max-mhz", 0, "MHZ",
	 "set, alone: no CPU of the machine above this; administrators only"},
	{"cpu", 0, NULL, "reset, alone: the CPUs as they were found"},
	{"watts", 'w', "N", "cap: no more than that, whoever asks"},
	{"clear", 0, NULL, "cap: none any more"},
	{"reason", 0, "TEXT", "cap: shown with it"},
	{"file", 'f', "POLICY", "apply: the policy (TOML), - for standard input"},
	{"dry-run", 0, NULL, "apply: only say what would change, and how to do it by hand"},
	{"config", 0, "FILE",
	 "apply, restore, while takt serve does not run: its configuration instead of "
	 "/etc/takt/takt.conf"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt clock", "clocks, what the driver offers, and who asked for what"},
	{"takt clock set --gpus 0-3 1410", "at most 1410 MHz on the first four"},
	{"takt clock reset", "all back to the baseline"},
	{"takt clock cap --watts 350 --reason \"rack 7\"", "no board above 350 W, whoever asks"},
	{"takt clock apply --file /etc/takt/clocks.toml", "how this machine's GPUs are to stand"},
	{"takt clock restore", "take that back"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_clock = {
	.name = "clock",
	.summary = "show, set and reset SM clocks; cap power; declare how GPUs stand",
	.usage = "[show | set --gpus LIST [--lock] [--assume-unlocked] [--mem-clock MHZ] [MHZ] | "
		 "set --cpu-max-mhz MHZ "
		 "| "
		 "reset [--gpus LIST | --cpu] | "
		 "cap --watts N | cap "
		 "--clear | apply --file POLICY [--dry-run] | restore]",
	.about =
		"show: the SM clock of each GPU, the range of the driver's list, the range asked "
		"for "
		"and by whom, and whether takt has changed anything. With a power budget "
		"(power_budget_w) also what is drawn of it and who has how many watts.\n"
		"set: at most MHZ (with --lock exactly MHZ) until reset. You may do so on GPUs "
		"that "
		"your running job holds alone; anything else needs root or group takt-admin. A "
		"job's "
		"own wish is better said with takt run --clock, which ends with the job.\n"
		"Before takt's first lock of a clock, somebody else's is looked for: the GPU is "
		"seen to run at its highest clock, or nothing is set. An idle GPU shows nothing; "
		"there an administrator says --assume-unlocked, or declares the baseline "
		"(apply).\n"
		"Memory clocks change only with --mem-clock. Memory errors are counted before and "
		"after; the first that comes with it puts the clock back, and the note says so.\n"
		"reset: back to the machine's baseline, whoever set something.\n"
		"cap: a facility's limit on the power of boards. It holds until it is cleared or "
		"the driver is loaded anew, also when takt ends.\n"
		"apply: declares how the GPUs stand while no job asks for anything else, and puts "
		"that in force: [[gpu]] entries with uuid or model (neither: all others), sm_mhz = "
		"[LOW, HIGH], power_w, cap_w and mig. It holds when takt ends; every lease goes "
		"back to it. A file that is wrong in one place is refused whole.\n"
		"restore: takes back what apply declared, and an administrator's own clock set. "
		"What refuses is tried again; then the exit status is 75. Caps stay.\n"
		"apply and restore need no daemon: where none answers they do it themselves, by an "
		"actuator and a guard that end when it is done.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.max_operands = 2,
	.run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* takt gpu: set GPUs aside and give them back, reserve them for a time. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/mig_layout.h"
#include "base/str.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"
#include "cli/when.h"

static const struct takt_column aside_columns[] = {
	{"GPU", true, 0, 0}, {"STATE", false, 0, 0},   {"SINCE", false, 0, 2},
	{"BY", false, 5, 1}, {"REASON", false, 10, 0},
};
static const struct takt_column reserved_columns[] = {
	{"ID", true, 0, 0},    {"GPUS", false, 0, 0},	 {"FOR", false, 0, 0},
	{"FROM", false, 0, 0}, {"UNTIL", false, 0, 0},	 {"STATE", false, 0, 0, "granted"},
	{"BY", false, 5, 1},   {"REASON", false, 10, 0},
};

static void print_set_aside(struct takt_cli *cli, const struct takt_orders_view *view)
{
	struct takt_table table = TAKT_TABLE(aside_columns);
	char text[TAKT_UNIT_TEXT];

	for (uint32_t i = 0; i < view->set_aside_count; i++) {
		const struct takt_gpu_order *order = &view->set_aside[i];

		takt_table_add(&table, TAKT_STYLE_PLAIN, "%u", order->index);
		takt_table_add(&table, TAKT_STYLE_MIND, "%s", order->state);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s",
			       takt_when_text(order->since_ms, text));
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", order->by[0] ? order->by : "takt");
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", order->reason);
	}
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

static int64_t now_ms(void)
{
	return (int64_t)time(NULL) * 1000;
}

static bool is_over(const struct takt_reservation *at)
{
	return at->until_ms <= now_ms() || strcmp(at->state, "released") == 0;
}

static bool waits(const struct takt_reservation *at)
{
	return strcmp(at->state, "waiting") == 0;
}

static void print_reservations(struct takt_cli *cli, const struct takt_orders_view *view)
{
	struct takt_table table = TAKT_TABLE(reserved_columns);
	char text[TAKT_UNIT_TEXT];

	for (uint32_t i = 0; i < view->reservation_count; i++) {
		const struct takt_reservation *at = &view->reservations[i];
		TAKT_CLEANUP(strp) struct takt_str gpus = TAKT_STR(512);

		if (is_over(at))
			continue;
		takt_mask_text(at->gpu_mask, &gpus);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%llu", (unsigned long long)at->id);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&gpus));
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s%s", at->tenant[0] ? "tenant " : "",
			       at->tenant[0] ? at->tenant
			       : at->user[0] ? at->user
					     : "maintenance");
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", takt_when_text(at->from_ms, text));
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", takt_when_text(at->until_ms, text));
		takt_table_add(&table, waits(at) ? TAKT_STYLE_MIND : TAKT_STYLE_PLAIN, "%s",
			       at->state);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", at->by);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s%s%s", at->reason,
			       at->reason[0] && at->answer[0] ? "; " : "", at->answer);
	}
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

static uint32_t count_to_come(const struct takt_orders_view *view, bool waiting)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < view->reservation_count; i++) {
		const struct takt_reservation *at = &view->reservations[i];

		count += !is_over(at) && (!waiting || waits(at));
	}
	return count;
}

static void print_hours(struct takt_cli *cli, int64_t gpu_ms)
{
	int64_t tenths = gpu_ms / 360000;

	takt_str_addf(&cli->out, tenths % 10 ? "%lld.%lld" : "%lld", (long long)(tenths / 10),
		      (long long)(tenths % 10));
}

/* What whoever asks may book himself; nothing is said where nobody lets him. */
static void print_booking(struct takt_cli *cli, const struct takt_booking_view *booking)
{
	char text[TAKT_UNIT_TEXT];

	if (!booking->may)
		return;
	takt_str_add(&cli->out, "you may reserve ");
	print_hours(cli, booking->week_gpu_ms);
	takt_str_addf(&cli->out, " GPU hours in any seven days (%s of tenants_file), ",
		      booking->rule);
	print_hours(cli, booking->left_gpu_ms);
	takt_str_addf(&cli->out, " are left in the next seven; %s at a time, ",
		      takt_span_text((uint64_t)booking->longest_ms, text));
	takt_str_addf(&cli->out, "%s ahead%s\n", takt_span_text((uint64_t)booking->ahead_ms, text),
		      booking->approval ? "; an administrator has to approve" : "");
}

static const struct takt_column mig_columns[] = {
	{"GPU", true, 0, 0},
	{"MIG", false, 0, 0},
	{"LAYOUT", false, 0, 0},
	{"INSTANCES", false, 10, 0},
};

static void print_mig(struct takt_cli *cli, const struct takt_orders_view *view)
{
	struct takt_table table = TAKT_TABLE(mig_columns);

	for (uint32_t i = 0; i < view->mig_count; i++) {
		const struct takt_gpu_mig *gpu = &view->mig[i];
		TAKT_CLEANUP(strp) struct takt_str kinds = TAKT_STR(1024);

		for (uint32_t k = 0; k < gpu->instance_count; k++)
			takt_str_addf(&kinds, "%s%s", k ? " " : "", gpu->instances[k].profile);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%u", gpu->index);
		takt_table_add(&table, gpu->state[0] ? TAKT_STYLE_MIND : TAKT_STYLE_PLAIN, "%s",
			       gpu->state[0] ? gpu->state : "as found");
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", gpu->layout[0] ? gpu->layout : "-");
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s",
			       gpu->instance_count ? takt_str_text(&kinds) : "none");
	}
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	for (uint32_t i = 0; i < view->mig_count; i++)
		if (view->mig[i].note[0])
			takt_str_addf(&cli->out, "GPU %u: %s\n", view->mig[i].index,
				      view->mig[i].note);
}

static void print_orders(struct takt_cli *cli, const struct takt_orders_view *view)
{
	uint32_t to_come = count_to_come(view, false), waiting = count_to_come(view, true);

	takt_print_simulated(cli, view->simulated);
	if (view->set_aside_count > 0)
		print_set_aside(cli, view);
	if (view->set_aside_count > 0 && to_come > 0)
		takt_str_add(&cli->out, "\n");
	if (to_come > 0)
		print_reservations(cli, view);
	if (view->set_aside_count == 0 && to_come == 0)
		takt_str_add(&cli->out, "no GPU is set aside or reserved\n");
	if (!view->has_booking && waiting > 0)
		takt_str_addf(&cli->out,
			      "%u wait%s for 'takt gpu approve ID' or 'takt gpu refuse ID'\n",
			      waiting, waiting == 1 ? "s" : "");
	if (view->has_booking)
		print_booking(cli, &view->booking);
	if (view->mig_count > 0) {
		takt_str_add(&cli->out, "\n");
		print_mig(cli, view);
	}
}

static int read_when(const struct takt_cli *cli, const char *option, int64_t absent_ms,
		     int64_t *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, option);
	int rc;

	if (!text && absent_ms < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say how long: '--until 18:00', '--until 2h' or a date");
	*ret = absent_ms;
	rc = text ? takt_when_parse(text, now_ms(), ret, err) : 0;
	return rc < 0 ? takt_err_wrap(err, rc, "'--%s'", option) : 0;
}

static int read_reservation(const struct takt_cli *cli, struct takt_gpu_request *request,
			    struct takt_err *err)
{
	const char *user = takt_cli_value(cli, "for-user");
	const char *tenant = takt_cli_value(cli, "for-tenant");
	int rc = read_when(cli, "from", now_ms(), &request->from_ms, err);

	if (rc == 0)
		rc = read_when(cli, "until", -1, &request->until_ms, err);
	request->preview = takt_cli_has(cli, "dry-run");
	if (rc == 0 && request->until_ms <= request->from_ms)
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--until' must be after '--from'");
	if (rc == 0 && user && !takt_strcpy(request->user, sizeof(request->user), user))
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--for-user' has over %zu bytes",
				  sizeof(request->user) - 1);
	if (rc == 0 && tenant && !takt_strcpy(request->tenant, sizeof(request->tenant), tenant))
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--for-tenant' has over %zu bytes",
				  sizeof(request->tenant) - 1);
	if (rc == 0 && user && tenant)
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "'--for-user' and '--for-tenant' exclude each other");
	return rc;
}

/* "0-3 5" or "0-3,5": every operand beyond the first word. */
static int read_gpus(const struct takt_cli *cli, uint32_t count, uint64_t *ret,
		     struct takt_err *err)
{
	int rc = 0;

	*ret = 0;
	for (int i = 1; rc == 0 && i < cli->operand_count; i++) {
		uint64_t mask = 0;

		rc = takt_mask_parse(cli->operands[i], count, &mask, err);
		*ret |= mask;
	}
	if (rc == 0 && *ret == 0)
		rc = takt_err_set(err, -TAKT_E_USAGE, "say which GPUs: '0,2-3' or 'all'");
	return rc;
}

/* "mig set GPU --layout LAYOUT" or "mig restore GPU". */
static int read_mig(const struct takt_cli *cli, uint32_t gpu_count,
		    struct takt_gpu_request *request, struct takt_err *err)
{
	const char *layout = takt_cli_value(cli, "layout");
	const char *what = cli->operand_count == 3 ? cli->operands[1] : "";
	bool set = strcmp(what, "set") == 0;
	struct takt_mig_layout parsed;
	int rc;

	if ((!set && strcmp(what, "restore") != 0) || set != (layout != NULL))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "usage: takt gpu mig set GPU --layout LAYOUT, or takt gpu mig "
				    "restore GPU");
	rc = takt_mask_parse(cli->operands[2], gpu_count, &request->gpu_mask, err);
	if (rc == 0 && (request->gpu_mask & (request->gpu_mask - 1)))
		rc = takt_err_set(err, -TAKT_E_USAGE, "one GPU at a time");
	if (rc == 0 && set && takt_mig_layout_parse(layout, &parsed, err) < 0)
		rc = takt_err_wrap(err, -TAKT_E_USAGE, "'--layout'");
	if (rc == 0 && set)
		takt_strcpy(request->layout, sizeof(request->layout), layout);
	return rc;
}

static bool is_by_id(enum takt_gpu_request_kind kind)
{
	return kind == TAKT_GPU_RELEASE || kind == TAKT_GPU_APPROVE || kind == TAKT_GPU_REFUSE;
}

static int read_id(const struct takt_cli *cli, uint64_t *ret, struct takt_err *err)
{
	unsigned long long id;

	if (cli->operand_count != 2)
		return takt_err_set(err, -TAKT_E_USAGE, "usage: takt gpu %s ID", cli->operands[0]);
	if (takt_parse_u64(cli->operands[1], 1, INT64_MAX, &id) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%.40s' is no reservation's number; 'takt gpu' has them",
				    cli->operands[1]);
	*ret = id;
	return 0;
}

static int read_request(const struct takt_cli *cli, uint32_t gpu_count,
			struct takt_gpu_request *request, struct takt_err *err)
{
	const char *reason = takt_cli_value(cli, "reason");
	int rc;

	if (reason && !takt_strcpy(request->reason, sizeof(request->reason), reason))
		return takt_err_set(err, -TAKT_E_USAGE, "'--reason' has over %zu bytes",
				    sizeof(request->reason) - 1);
	if (request->kind == TAKT_GPU_MIG)
		return read_mig(cli, gpu_count, request, err);
	if (request->kind == TAKT_GPU_REFUSE && !reason)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say why: '--reason TEXT'; whoever has booked reads it");
	if (is_by_id(request->kind))
		return read_id(cli, &request->id, err);
	if (request->kind == TAKT_GPU_DRAIN && !reason)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say why: '--reason TEXT'; whoever waits for the GPU reads it");
	rc = read_gpus(cli, gpu_count, &request->gpu_mask, err);
	return rc == 0 && request->kind == TAKT_GPU_RESERVE ? read_reservation(cli, request, err)
							    : rc;
}

static const char *const words[] = {"list", "drain",   "resume", "reserve", "release",
				    "mig",  "approve", "refuse", NULL};

/* -1 = list, else enum takt_gpu_request_kind. */
static int read_action(const struct takt_cli *cli, int *ret, struct takt_err *err)
{
	const char *text = cli->operand_count > 0 ? cli->operands[0] : "list";

	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*ret = i - 1;
			return 0;
		}
	return takt_err_set(err, -TAKT_E_USAGE,
			    "takt gpu takes list, drain, resume, reserve, release, approve, "
			    "refuse or mig, not '%.40s'",
			    text);
}

static int check_options(const struct takt_cli *cli, int action, struct takt_err *err)
{
	bool times = takt_cli_has(cli, "from") || takt_cli_has(cli, "until") ||
		     takt_cli_has(cli, "for-user") || takt_cli_has(cli, "for-tenant");

	if (times && action != TAKT_GPU_RESERVE)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"'--for-user', '--for-tenant', '--from' and '--until' are for takt gpu "
			"reserve");
	if (takt_cli_has(cli, "layout") && action != TAKT_GPU_MIG)
		return takt_err_set(err, -TAKT_E_USAGE, "'--layout' is for takt gpu mig set");
	if (takt_cli_has(cli, "reason") && action != TAKT_GPU_RESERVE && action != TAKT_GPU_DRAIN &&
	    action != TAKT_GPU_REFUSE)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--reason' is for drain, reserve and refuse");
	if (takt_cli_has(cli, "dry-run") && action != TAKT_GPU_RESERVE)
		return takt_err_set(err, -TAKT_E_USAGE, "'--dry-run' is for reserve");
	return 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_orders_view *view = takt_alloc(sizeof(*view));
	struct takt_gpu_request request = {0};
	int action = -1;
	int rc = view ? read_action(cli, &action, err)
		      : takt_err_set(err, -ENOMEM, "no memory for the GPUs");

	if (rc == 0)
		rc = check_options(cli, action, err);
	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = takt_client_orders(cli->client, view, err);
	if (rc == 0 && action >= 0) {
		request.kind = (enum takt_gpu_request_kind)action;
		rc = read_request(cli, view->gpus, &request, err);
		if (rc == 0)
			rc = takt_client_order(cli->client, &request, view, err);
	}
	if (rc < 0 || takt_cli_print_json(cli))
		return rc;
	if (request.preview)
		takt_str_addf(&cli->out, "it would be %s\n",
			      view->has_booking && view->booking.approval
				      ? "handed in, and wait for an administrator"
				      : "granted");
	else
		print_orders(cli, view);
	return 0;
}

static const struct takt_option options[] = {
	{"reason", 'r', "TEXT", "drain, reserve, refuse: shown to whoever waits, or has booked"},
	{"for-user", 0, "USER", "reserve: whose jobs may be there; for administrators"},
	{"for-tenant", 0, "TENANT",
	 "reserve: for jobs of this tenant and those below it; for nobody: maintenance"},
	{"from", 0, "TIME", "reserve: 2h from now, 18:00, 2026-12-24T18:00; left out: now"},
	{"until", 0, "TIME", "reserve: the same"},
	{"dry-run", 0, NULL, "reserve: says whether it would be taken; nothing is kept"},
	{"layout", 0, "LAYOUT",
	 "mig set: kinds of instances with commas between them, or none: 3g.40gb,3g.40gb; with the "
	 "driver's numbers and places 9:0,9:4"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt gpu drain 3 --reason 'fan is loud'", "nothing new starts on GPU 3"},
	{"takt gpu resume 3", "it is used again"},
	{"takt gpu reserve 0-3 --for-user ada --from 18:00 --until 22:00",
	 "four GPUs for ada tonight"},
	{"takt gpu reserve 4-7 --for-tenant lab/vision --until 2d", "four for a group"},
	{"takt gpu reserve all --until 2h --reason 'new driver'", "maintenance of the machine"},
	{"takt gpu reserve 0,1 --from 'tomorrow 09:00' --until 'tomorrow 17:00'",
	 "two GPUs for oneself, where a rule of tenants_file lets one"},
	{"takt gpu approve 5", "reservation 5, which waits for that, is granted"},
	{"takt gpu refuse 6 --reason 'demo on that day'", "that one is not"},
	{"takt gpu release 2", "reservation 2 is off"},
	{"takt gpu mig set 1 --layout 3g.40gb,3g.40gb",
	 "two MIG instances on GPU 1, which is drained"},
	{"takt gpu mig restore 1", "as it is declared to be cut, or was found"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_gpu = {
	.name = "gpu",
	.summary = "drain, resume, reserve and cut GPUs",
	.usage = "[list | drain GPUS --reason TEXT | resume GPUS | reserve GPUS [--for-user USER | "
		 "--for-tenant TENANT] "
		 "[--from "
		 "TIME] --until TIME | release ID | approve ID | refuse ID --reason TEXT | "
		 "mig set GPU --layout LAYOUT | mig restore GPU]",
	.about = "list: which GPUs are set aside or reserved, by whom and why, and what one may "
		 "reserve oneself. The rest is for administrators, but for reserve and release "
		 "where tenants_file lets users book.\n"
		 "drain: the job on a GPU runs on, nothing new starts there, also after a restart, "
		 "until resume. Every view says so with the reason.\n"
		 "resume: gives back what was drained, or what takt itself has set aside because "
		 "it broke under a job.\n"
		 "reserve: from one time to another the GPUs are for the jobs of one user, of a "
		 "tenant and those below it, or for maintenance. Jobs of others start there only "
		 "when they are over by then, as their "
		 "time limit says; one without a time limit does not. What runs there when the "
		 "time comes is not stopped.\n"
		 "A user reserves for himself: so many GPU hours in any seven days, so long at a "
		 "time and so far ahead as the rules of tenants_file leave him "
		 "(reserve_gpu_hours, reserve_longest, reserve_ahead); without a rule only "
		 "administrators reserve. Where reserve_approval is yes a booking waits, and keeps "
		 "its place, until an administrator says approve or refuse.\n"
		 "release: takes a reservation back; one's own booking, too. What was used of it "
		 "goes on counting.\n"
		 "mig set: cuts a drained GPU that no job and no process is on into MIG instances, "
		 "which jobs ask for with --mig after 'takt gpu resume'. A GPU without instances "
		 "need not be drained. They are put back when takt ends: as declared ('takt clock "
		 "apply'), else as found; what a process is on is never destroyed, so a GPU may be "
		 "said to be changed until its jobs have ended. takt does not switch MIG mode on "
		 "or off: 'nvidia-smi -i GPU -mig 1', then start takt again.\n"
		 "mig restore: puts them back now.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.max_operands = -1,
	.run = run,
};

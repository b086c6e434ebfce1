/* SPDX-License-Identifier: Apache-2.0 */
/* takt health: how each GPU is, what was found, what to do. */
#include <inttypes.h>

#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"
#include "cli/when.h"

static const struct takt_column columns[] = {
	{"GPU", true, 0, 0},	 {"STATE", false, 0, 0}, {"SINCE", false, 0, 1},
	{"FOUND", false, 16, 0}, {"DO", false, 0, 0},
};

static enum takt_style style_of(const char *severity)
{
	if (strcmp(severity, "critical") == 0)
		return TAKT_STYLE_ALARM;
	return strcmp(severity, "warning") == 0 ? TAKT_STYLE_MIND : TAKT_STYLE_PLAIN;
}

static void add_gpu(struct takt_table *table, const struct takt_health_gpu *gpu)
{
	const struct takt_health_finding *first = gpu->finding_count ? &gpu->findings[0] : NULL;
	char text[TAKT_UNIT_TEXT];

	takt_table_add(table, TAKT_STYLE_PLAIN, "%u", gpu->index);
	takt_table_add(table, style_of(gpu->severity), "%s", gpu->state);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s",
		       gpu->since_ms ? takt_when_text(gpu->since_ms, text) : "-");
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", first ? first->text : "-");
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", gpu->action_count ? gpu->actions[0] : "-");
}

static void keep_wanted(struct takt_health_view *view, uint64_t wanted)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (wanted >> view->gpus[i].index & 1)
			view->gpus[kept++] = view->gpus[i];
	view->gpu_count = kept;
}

static void print_table(struct takt_cli *cli, const struct takt_health_view *view)
{
	struct takt_table table = TAKT_TABLE(columns);

	for (uint32_t i = 0; i < view->gpu_count; i++)
		add_gpu(&table, &view->gpus[i]);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

static void print_findings(struct takt_cli *cli, const struct takt_health_gpu *gpu)
{
	for (uint32_t i = 0; i < gpu->finding_count; i++) {
		const struct takt_health_finding *finding = &gpu->findings[i];

		takt_str_add(&cli->out, "  ");
		takt_style_add(&cli->out, cli->colour, style_of(finding->level), finding->level);
		takt_str_addf(&cli->out, " %s: ", finding->finding);
		takt_style_add(&cli->out, false, TAKT_STYLE_PLAIN, finding->text);
		if (finding->cause >= 0 && (uint32_t)finding->cause < gpu->finding_count)
			takt_str_addf(&cli->out, "; follows from %s",
				      gpu->findings[finding->cause].finding);
		takt_str_add(&cli->out, "\n");
	}
	for (uint32_t i = 0; i < gpu->action_count; i++)
		takt_str_addf(&cli->out, "%s%s", i ? ", then " : "  do: ", gpu->actions[i]);
	if (gpu->action_count)
		takt_str_add(&cli->out, "\n");
}

static void print_past(struct takt_cli *cli, const struct takt_health_gpu *gpu)
{
	char text[TAKT_UNIT_TEXT];

	for (uint32_t i = 0; i < gpu->xid_count; i++)
		takt_str_addf(&cli->out, "  XID %u, %" PRIu64 " times, last at %s%s%s\n",
			      gpu->xids[i].xid, gpu->xids[i].count,
			      takt_when_text(gpu->xids[i].last_ms, text),
			      gpu->xids[i].text[0] ? ": " : "", gpu->xids[i].text);
	for (uint32_t i = 0; i < gpu->past.change_count; i++) {
		const struct takt_health_change *change = &gpu->past.changes[i];

		takt_str_addf(&cli->out, "  %s %s, was %s%s%s\n",
			      takt_when_text(change->at_ms, text), change->to, change->from,
			      change->why[0] ? ": " : "", change->why);
	}
}

/* A healthy GPU of which there is nothing to tell has its line in the table. */
static void print_gpu(struct takt_cli *cli, const struct takt_health_gpu *gpu)
{
	if (!gpu->finding_count && !gpu->past.change_count && !gpu->xid_count && !gpu->note[0])
		return;
	takt_str_addf(&cli->out, "\nGPU %u", gpu->index);
	takt_str_addf(&cli->out, "%s%s\n", gpu->note[0] ? ": " : "", gpu->note);
	print_findings(cli, gpu);
	print_past(cli, gpu);
}

static void print_sxids(struct takt_cli *cli, const struct takt_health_view *view)
{
	char text[TAKT_UNIT_TEXT];

	if (view->sxid_count)
		takt_str_add(&cli->out, "\nNVSwitches\n");
	for (uint32_t i = 0; i < view->sxid_count; i++) {
		const struct takt_health_sxid *sxid = &view->sxids[i];

		takt_str_addf(&cli->out, "  %s: SXid %u", sxid->pci, sxid->sxid);
		if (sxid->link >= 0)
			takt_str_addf(&cli->out, " of link %d", sxid->link);
		takt_str_addf(&cli->out, "%s, %" PRIu64 " times, last at %s\n",
			      sxid->fatal ? ", fatal" : "", sxid->count,
			      takt_when_text(sxid->last_ms, text));
	}
}

static void print_view(struct takt_cli *cli, const struct takt_health_view *view)
{
	takt_print_simulated(cli, view->simulated);
	print_table(cli, view);
	for (uint32_t i = 0; i < view->gpu_count; i++)
		print_gpu(cli, &view->gpus[i]);
	print_sxids(cli, view);
	if (view->events_why[0])
		takt_str_addf(&cli->out, "XIDs from the driver are not heard: %s\n",
			      view->events_why);
	if (view->kernel_log_why[0])
		takt_str_addf(&cli->out, "the kernel's log is not read: %s\n",
			      view->kernel_log_why);
}

static int read_wanted(const struct takt_cli *cli, uint32_t count, uint64_t *ret,
		       struct takt_err *err)
{
	int rc = 0;

	*ret = cli->operand_count ? 0 : UINT64_MAX;
	for (int i = 0; rc == 0 && i < cli->operand_count; i++) {
		uint64_t mask = 0;

		rc = takt_mask_parse(cli->operands[i], count, &mask, err);
		*ret |= mask;
	}
	return rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_health_view view;
	uint64_t wanted;
	int rc = takt_cli_connect(cli, err);

	if (rc == 0)
		rc = takt_client_health(cli->client, &view, err);
	if (rc < 0)
		return rc;
	rc = read_wanted(cli, view.gpu_count, &wanted, err);
	if (rc == 0)
		keep_wanted(&view, wanted);
	if (rc == 0 && cli->json)
		rc = takt_health_view_to_json(&view, &cli->out);
	else if (rc == 0)
		print_view(cli, &view);
	takt_health_view_fini(&view);
	return rc;
}

static const struct takt_text_pair examples[] = {
	{"takt health", "every GPU: its state, what was found, what to do"},
	{"takt health 3", "one GPU, with what happened before"},
	{"takt health --json", "all of it for programs; of one GPU with its number"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_health = {
	.name = "health",
	.summary = "how each GPU is, and why",
	.usage = "[GPU...]",
	.max_operands = -1,
	.about =
		"Shows what takt makes of readings, XIDs and the kernel's log. healthy; suspect: "
		"it "
		"works, somebody should look; quarantined: it gets no jobs until what was found is "
		"over, or until 'takt gpu resume' where no reading can say so; lost: the driver "
		"has "
		"lost it. Causes stand before what follows from them. Errors of NVSwitches "
		"(SXids) are listed; which GPUs they ail is told by the GPUs' own XIDs.",
	.examples = examples,
	.run = run,
};

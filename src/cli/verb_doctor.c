/* SPDX-License-Identifier: Apache-2.0 */
/* takt doctor: what is wrong with this machine's GPUs, and what to do first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/doctor_job.h"
#include "cli/doctor_runs.h"
#include "cli/doctor_text.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"
#include "codec/json.h"
#include "health/doctor.h"
#include "health/gather.h"

static const enum takt_style styles[TAKT_DOCTOR_VERDICTS] = {
	[TAKT_DOCTOR_PASS] = TAKT_STYLE_GOOD,	   [TAKT_DOCTOR_UNKNOWN] = TAKT_STYLE_PLAIN,
	[TAKT_DOCTOR_INFO] = TAKT_STYLE_PLAIN,	   [TAKT_DOCTOR_WARNING] = TAKT_STYLE_MIND,
	[TAKT_DOCTOR_CRITICAL] = TAKT_STYLE_ALARM,
};

static void take_lease(struct takt_doctor_facts *facts, const struct takt_clock_gpu *clocks)
{
	for (uint32_t i = 0; takt_doctor_holds(clocks) && i < facts->gpu_count; i++)
		if (strcmp(facts->gpu[i].facts.uuid, clocks->uuid) == 0)
			facts->gpu[i].held_by_takt = true;
}

static const struct {
	const char *remedy; /* docs/doctor.md */
	enum takt_doctor_act action;
} remedies[] = {
	{"reboot", TAKT_DO_RESTART},	     {"replace", TAKT_DO_REPLACE},
	{"reset-gpu", TAKT_DO_RESET},	     {"drain-reset", TAKT_DO_RESET},
	{"drain-p2p", TAKT_DO_RESET},	     {"check-cooling", TAKT_DO_COOLING},
	{"check-power", TAKT_DO_POWER},	     {"restart-fabric-manager", TAKT_DO_FABRIC},
	{"check-nvlink", TAKT_DO_RESEAT},    {"check-pcie", TAKT_DO_RESEAT},
	{"update-software", TAKT_DO_DRIVER}, {"contact-support", TAKT_DO_SUPPORT},
};

static enum takt_doctor_act act_of(const char *remedy)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(remedies); i++)
		if (strcmp(remedies[i].remedy, remedy) == 0)
			return remedies[i].action;
	return TAKT_DO_NONE;
}

static enum takt_doctor_verdict verdict_of(const char *level)
{
	if (strcmp(level, "critical") == 0)
		return TAKT_DOCTOR_CRITICAL;
	return strcmp(level, "warning") == 0 ? TAKT_DOCTOR_WARNING : TAKT_DOCTOR_INFO;
}

static void take_finding(struct takt_doctor_facts *facts, uint32_t gpu,
			 const struct takt_health_finding *finding)
{
	struct takt_doctor_heard *heard = &facts->heard[facts->heard_count];

	if (facts->heard_count == TAKT_DOCTOR_MAX_HEARD)
		return;
	facts->heard_count++;
	heard->gpu = gpu;
	heard->verdict = verdict_of(finding->level);
	heard->action = finding->cause < 0 ? act_of(finding->action) : TAKT_DO_NONE;
	takt_strcpy(heard->text, sizeof(heard->text), finding->text);
}

/* What its rules made of the time before. */
static void take_health(struct takt_cli *cli, struct takt_doctor_facts *facts)
{
	struct takt_health_view view;
	struct takt_err err = {0};

	if (takt_client_health(cli->client, &view, &err) < 0)
		return;
	facts->has |= TAKT_DOCTOR_HEARD;
	takt_strcpy(facts->deaf, sizeof(facts->deaf), view.events_why);
	for (uint32_t i = 0; i < view.gpu_count; i++)
		for (uint32_t k = 0; k < facts->gpu_count; k++) {
			if (strcmp(view.gpus[i].uuid, facts->gpu[k].facts.uuid) != 0)
				continue;
			facts->gpu[k].watched = true;
			for (uint32_t f = 0; f < view.gpus[i].finding_count; f++)
				take_finding(facts, k, &view.gpus[i].findings[f]);
		}
	takt_health_view_fini(&view);
}

/* What the daemon knows, if there is one. */
static void ask_daemon(struct takt_cli *cli, struct takt_doctor_facts *facts)
{
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_alloc(sizeof(*view));
	struct takt_err err = {0};

	if (!view || takt_cli_connect(cli, &err) < 0 ||
	    takt_client_clocks(cli->client, view, &err) < 0)
		return;
	facts->has |= TAKT_DOCTOR_DAEMON;
	for (uint32_t i = 0; i < view->gpu_count; i++)
		take_lease(facts, &view->gpu[i]);
	take_health(cli, facts);
	takt_doctor_take_runs(cli, facts);
}

static void print_findings(struct takt_cli *cli, const struct takt_doctor_report *report)
{
	TAKT_VEC_EACH (f, &report->findings) {
		struct takt_str where = TAKT_STR(512);
		char word[16];

		if (f->gpus)
			takt_doctor_gpus_text(&where, f->gpus);
		snprintf(word, sizeof(word), "%-8s", takt_doctor_verdicts[f->verdict]);
		takt_style_add(&cli->out, cli->colour, styles[f->verdict], word);
		takt_str_addf(&cli->out, "  %-17s  %-13s  ", f->check->name,
			      f->gpus ? takt_str_text(&where) : "-");
		takt_style_add(&cli->out, false, TAKT_STYLE_PLAIN, f->text);
		takt_str_add(&cli->out, "\n");
		takt_str_fini(&where);
	}
}

static void print_todo(struct takt_cli *cli, const struct takt_doctor_report *report)
{
	unsigned number = 0;

	if (report->todo.len)
		takt_str_add(&cli->out, "\nWhat to do, in this order:\n");
	TAKT_VEC_EACH (todo, &report->todo) {
		takt_str_addf(&cli->out, "%3u. %s", ++number, takt_doctor_act_name(todo->action));
		if (todo->gpus) {
			takt_str_add(&cli->out, ": ");
			takt_doctor_gpus_text(&cli->out, todo->gpus);
		}
		takt_str_addf(&cli->out, " (%s)\n", takt_doctor_verdicts[todo->why]);
		if (todo->fix[0])
			takt_str_addf(&cli->out, "     %s\n", todo->fix);
	}
	takt_str_addf(&cli->out, "\nVerdict: %s\n",
		      report->looked || report->worst >= TAKT_DOCTOR_WARNING
			      ? takt_doctor_verdicts[report->worst >= TAKT_DOCTOR_WARNING
							     ? report->worst
							     : TAKT_DOCTOR_PASS]
			      : takt_doctor_verdicts[TAKT_DOCTOR_UNKNOWN]);
}

static void print_json(struct takt_str *out, const struct takt_doctor_facts *facts,
		       const struct takt_doctor_report *report)
{
	takt_str_addf(out, "{\"simulated\":%s,\"looked\":%s,\"daemon\":%s,\"exit\":%d,\"checks\":[",
		      facts->info.simulated ? "true" : "false", report->looked ? "true" : "false",
		      facts->has & TAKT_DOCTOR_DAEMON ? "true" : "false", takt_doctor_exit(report));
	TAKT_VEC_EACH (f, &report->findings) {
		takt_str_add(out, f == report->findings.at ? "{" : ",{");
		takt_doctor_text_json(out, "check", f->check->name, true);
		takt_doctor_text_json(out, "theme", f->check->theme, false);
		takt_doctor_text_json(out, "verdict", takt_doctor_verdicts[f->verdict], false);
		takt_doctor_gpus_json(out, f->gpus);
		takt_doctor_text_json(out, "evidence", f->text, false);
		takt_str_add(out, "}");
	}
	takt_str_add(out, "],\"actions\":[");
	TAKT_VEC_EACH (todo, &report->todo) {
		takt_str_add(out, todo == report->todo.at ? "{" : ",{");
		takt_doctor_text_json(out, "action", takt_doctor_act_name(todo->action), true);
		takt_doctor_text_json(out, "verdict", takt_doctor_verdicts[todo->why], false);
		takt_doctor_gpus_json(out, todo->gpus);
		if (todo->fix[0])
			takt_doctor_text_json(out, "how", todo->fix, false);
		takt_str_add(out, "}");
	}
	takt_str_add(out, "]}\n");
}

static int print_report(struct takt_cli *cli, const struct takt_doctor_facts *facts,
			struct takt_err *err)
{
	struct takt_doctor_report report;
	int rc;

	takt_doctor_judge(facts, &report);
	if (cli->json) {
		print_json(&cli->out, facts, &report);
	} else {
		takt_print_simulated(cli, facts->info.simulated);
		print_findings(cli, &report);
		print_todo(cli, &report);
	}
	rc = report.rc < 0 ? takt_err_set(err, report.rc, "no memory for a report")
			   : takt_doctor_exit(&report);
	takt_doctor_report_fini(&report);
	return rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_doctor_facts *facts = takt_zalloc(sizeof(*facts));
	const char *root = takt_cli_value(cli, "root");
	struct takt_gather gather = {.root = root ? root : "",
				     .nvml_path = takt_cli_value(cli, "nvml-path"),
				     .library_path = getenv("LD_LIBRARY_PATH"),
				     .home = getenv("HOME"),
				     .venv = getenv("VIRTUAL_ENV"),
				     .conda = getenv("CONDA_PREFIX")};
	int64_t seconds = 1;
	int rc = facts ? takt_cli_number(cli, "seconds", 1, 600, 1, &seconds, err)
		       : takt_err_set(err, -ENOMEM, "no memory for a machine");

	if (rc < 0)
		return rc;
	if (cli->operand_count)
		return takt_doctor_job(cli, err);
	gather.samples = (uint32_t)seconds * 5;
	takt_doctor_gather(&gather, facts);
	ask_daemon(cli, facts);
	return print_report(cli, facts, err);
}

static const struct takt_option options[] = {
	{"seconds", 's', "N", "look for so long; 1 by default, 5 at a job"},
	{"socket", 0, "PATH", "the daemon's socket, instead of the first that answers"},
	{"nvml-path", 0, "FILE", "the driver's library, instead of libnvidia-ml.so.1"},
	{"root", 0, "DIR",
	 "read /sys, /proc, /etc and packages below this folder; the driver is this machine's"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt doctor", "at rest: settings, versions, memory, links"},
	{"takt doctor --seconds 10", "under load: throttling, the PCIe speed, others' clock locks"},
	{"takt doctor 12", "why job 12 is slow: what it waits for, with the evidence"},
	{"takt doctor --json | jq '.actions[0]'", "what is to be done first"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"0",
	 "nothing to do: PASS, INFO, UNKNOWN; of a job: its GPUs' own speed is what limits it"},
	{"1", "a WARNING: works, but not as it could; of a job: something else limits it"},
	{"2", "something CRITICAL: work fails, or results may be wrong"},
	{"3", "the driver could not be looked at, and nothing worse was found; of a job: the "
	      "bottleneck was not found"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_doctor = {
	.name = "doctor",
	.summary = "what is wrong with the GPUs, and what to do first",
	.usage = "[--seconds N] [JOB]",
	.about =
		"Looks at this machine once and says for each check PASS, INFO, WARNING, CRITICAL "
		"or UNKNOWN, with what it saw; then what to do, the root cause first. Changes "
		"nothing. Needs no daemon; if one runs, clocks and power limits that were set "
		"through takt are not taken for somebody else's, and what it has found over time "
		"(XIDs, rules: takt health) is among the rows.\n"
		"UNKNOWN means that the check had nothing to judge by, and says why. Some "
		"things show under load alone (PCIe speed, throttling, clock locks): run it "
		"while the GPUs work. Checks that have nothing to do with a machine say nothing.\n"
		"Where a GPU is suspended to save power, or the driver's module is not loaded, the "
		"driver is not asked, since that would wake the one and load the other.\n"
		"With a job's number: why it is slow. Looks at the GPUs and threads of the running "
		"job for some seconds and says YES, PART, NO or UNKNOWN of each cause: throttling, "
		"imbalance among GPUs, data loading, launches of small kernels, communication, "
		"memory, compute. The bottleneck is the first YES. Where what was seen fits "
		"several "
		"causes they are UNKNOWN, with what would tell them apart.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.operands = TAKT_OPERANDS_JOBS,
	.max_operands = 1,
	.offline = true,
	.run = run,
};

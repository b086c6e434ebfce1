/* SPDX-License-Identifier: Apache-2.0 */
/* takt simulate: schedulers on traces of clusters, without a GPU and without a daemon. */
#include <string.h>

#include "cli/simulate.h"
#include "sim/queue_policy.h"
#include "sim/trace.h"

static int dispatch(struct takt_simulate *simulate, struct takt_err *err)
{
	const char *protocol = takt_cli_value(simulate->cli, "protocol");

	if (!protocol)
		protocol = takt_cli_has(simulate->cli, "queue") ? "queue" : "fgd";
	if (strcmp(protocol, "fgd") == 0)
		return takt_simulate_fgd(simulate, err);
	if (strcmp(protocol, "queue") == 0)
		return takt_simulate_queue(simulate, err);
	if (strcmp(protocol, "timed") == 0)
		return takt_simulate_timed(simulate, err);
	return takt_err_set(err, -TAKT_E_USAGE,
			    "'--protocol' must be fgd, timed or queue, not '%.40s'", protocol);
}

static void add_columns(struct takt_str *out, const struct takt_trace_field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t own = strcspn(fields[i].names, "|");

		takt_str_addf(out, "  %-16.*s %s", (int)own, fields[i].names, fields[i].about);
		if (fields[i].names[own])
			takt_str_addf(out, " (also %s)", fields[i].names + own + 1);
		takt_str_add(out, "\n");
	}
}

static int list(struct takt_cli *cli)
{
	takt_str_add(&cli->out, "placement policies\n");
	takt_sim_placements_text(&cli->out);
	takt_str_add(&cli->out, "\nqueue policies; +none +easy +conservative +preempt +keep may "
				"stand behind one\n");
	takt_queue_policies_text(&cli->out);
	takt_str_add(&cli->out, "\ncolumns of a cluster, a row a node\n");
	add_columns(&cli->out, takt_trace_node_fields, TAKT_TRACE_NODE_FIELDS);
	takt_str_add(&cli->out, "\ncolumns of a trace, a row a pod or job\n");
	add_columns(&cli->out, takt_trace_job_fields, TAKT_TRACE_JOB_FIELDS);
	return 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_simulate simulate;
	int rc;

	if (takt_cli_has(cli, "list"))
		return list(cli);
	if (takt_cli_has(cli, "replay"))
		return takt_simulate_replay(cli, err);
	rc = takt_simulate_init(cli, &simulate, err);
	if (rc < 0)
		return rc;
	rc = dispatch(&simulate, err);
	takt_simulate_fini(&simulate);
	return rc;
}

static const struct takt_option options[] = {
	{"protocol", 0, "NAME",
	 "fgd: pods arrive and stay, the published experiment; timed: they come and go as in the "
	 "trace; queue: jobs wait, run and end (default: queue with --queue, else fgd)"},
	{"cluster", 0, "WHAT",
	 "NODES.csv, or uniform:NODESxGPUS[:MODEL],...; uniform:autox8 is sized by --load"},
	{"trace", 0, "WHAT",
	 "PODS.csv, philly:JOBS.csv, gavel:THROUGHPUTS.json, or any file with such columns; .gz "
	 "too"},
	{"placement", 0, "LIST", "placement policies: fgd,bestfit,..."},
	{"queue", 0, "LIST", "queue policies: fifo,easy,las,qssf,..."},
	{"seeds", 0, "A..B", "one run for each; fgd 1..10, queue 1..10 where chance plays a part"},
	{"load", 0, "LIST",
	 "percent, ascending. fgd: columns of the table. timed: copies of the trace are laid over "
	 "each other. queue: offered loads, which size uniform:autoxN or else stretch the times "
	 "between submissions"},
	{"nodes", 0, "N", "fgd, timed: so many nodes of the cluster, drawn evenly (all)"},
	{"tuning", 0, "PCT", "fgd: arrivals go on until they ask for so much (130)"},
	{"param", 0, "NAME=N",
	 "a parameter of the placement policies, or of one (takt.NAME=N); may be given again"},
	{"bound", 0, "auto|off|FILE",
	 "fgd: the program that computes what was possible (auto: takt-bound); its answers are "
	 "kept in ~/.cache/takt"},
	{"against", 0, "NAME", "the policy that differences are taken to (fgd, or the first)"},
	{"jobs", 0, "N", "gavel: so many are drawn for each seed and load (3000)"},
	{"estimates", 0, "KIND",
	 "queue: what is known of run times: learned from jobs that have ended before, none, given "
	 "(column estimate_s), perfect (learned)"},
	{"preempt-cost", 0, "TIME", "queue: what starting again costs (60s)"},
	{"checkpoint", 0, "TIME",
	 "queue: work is safe every so often; 0s: all is lost when a job is pushed out (30m)"},
	{"migrate", 0, "N",
	 "queue: tasks moved a plan, at most (0). fgd: fractions moved for each 100 placed, to "
	 "make "
	 "room for what fits nowhere (0)"},
	{"failures", 0, "WHAT",
	 "queue: mtbf=500h,repair=1h of each node, or a file with at_s,node,repair_s"},
	{"resample", 0, "weeks", "queue: each seed draws whole weeks of the trace anew"},
	{"gpu-watts", 0, "IDLE,BUSY", "queue: power of models that takt does not know"},
	{"threads", 0, "N", "runs at a time (one a core); results do not depend on it"},
	{"list", 0, NULL, "list the policies and the columns of files, and end"},
	{"replay", 0, "WHAT",
	 "instead of all this: make the decisions that a daemon's database (takt.db) keeps again, "
	 "or the one of a directory with events.jsonl and plan.json, and tell what differs"},
	{"html", 0, "FILE", "write a report with plots there, complete in one file"},
	{"csv", 0, "FILE", "write the table there"},
	{"output", 0, "FILE", "write the JSON there"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt simulate --cluster NODES.csv --trace PODS.csv --placement fgd,bestfit,random",
	 "the published placement experiment, ten seeds"},
	{"takt simulate --cluster uniform:autox8 --trace philly:JOBS.csv --queue fifo,easy,las "
	 "--load 70,85,95",
	 "which order of the queue finishes jobs soonest"},
	{"takt simulate --cluster uniform:70x8 --trace JOBS.csv --queue fifo --resample weeks "
	 "--seeds 1..20 --json",
	 "with intervals, for a program"},
	{"takt simulate --replay ~/.local/state/takt/takt.db",
	 "would this takt have decided as the one that ran?"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"0", "simulated; or every decision came out as before"},
	{"1", "a replayed decision came out differently"},
	{"3", "a result is above what is possible: the experiment is at fault"},
	{"64", "wrong use: unknown option, policy or value"},
	{"65", "a file is not as it should be, or a job can never run"},
	{"69", "a file cannot be read or written"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_simulate = {
	.name = "simulate",
	.summary = "compare schedulers on traces of clusters",
	.usage = "--cluster WHAT --trace WHAT [--placement LIST | --queue LIST] [options]",
	.about = "Runs the scheduler that the daemon uses, and others to compare with, over traces "
		 "of real clusters on a virtual clock. Needs no GPU and no daemon and changes "
		 "nothing. All of it is simulated and says so.\n"
		 "The same command gives the same figures on every machine, whatever the number of "
		 "threads. Each result names the traces by their SHA-256, the seeds, this takt and "
		 "the command that repeats it. The columns of files, the draws behind a seed and "
		 "every figure are described in docs/simulate.md.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.operands = TAKT_OPERANDS_FILE,
	.offline = true,
	.run = run,
};

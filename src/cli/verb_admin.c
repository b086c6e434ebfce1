/* SPDX-License-Identifier: Apache-2.0 */
/* takt admin: backup, restore, check the database; a report of a defect; whose files they are. */
#include <string.h>

#include "cli/daemon_config.h"
#include "cli/verb.h"
#include "codec/json.h"

static const char *const words[] = {"backup", "restore", "check", "report", "account", NULL};

static void say_text(struct takt_cli *cli, const struct takt_admin_line *line)
{
	takt_str_addf(&cli->out, "%s%s: %s\n", line->wrong ? "WRONG " : "", line->about,
		      line->found);
	if (line->todo[0])
		takt_str_addf(&cli->out, "    to do: %s\n", line->todo);
}

static void say_json(struct takt_cli *cli, const struct takt_admin_line *line)
{
	struct takt_str *out = &cli->out;

	takt_str_add(out, out->len ? ",{\"about\":" : "{\"lines\":[{\"about\":");
	takt_json_add_text(out, line->about);
	takt_str_add(out, ",\"found\":");
	takt_json_add_text(out, line->found);
	if (line->todo[0]) {
		takt_str_add(out, ",\"todo\":");
		takt_json_add_text(out, line->todo);
	}
	takt_str_addf(out, ",\"wrong\":%s}", line->wrong ? "true" : "false");
}

static void say(void *ctx, const struct takt_admin_line *line)
{
	struct takt_cli *cli = ctx;

	if (cli->json)
		say_json(cli, line);
	else
		say_text(cli, line);
}

static int check_form(const struct takt_cli *cli, struct takt_err *err)
{
	const char *action = cli->operands[0];
	bool known = false, file = strcmp(action, "check") != 0;
	bool newest = strcmp(action, "restore") == 0; /* unless one is named */
	bool account = strcmp(action, "account") == 0;

	for (int i = 0; words[i]; i++)
		known = known || strcmp(words[i], action) == 0;
	if (!known)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"takt admin takes backup, restore, check, report or account, not '%.40s'",
			action);
	if (cli->operand_count != 1 + file && !(newest && cli->operand_count == 1))
		return takt_err_set(err, -TAKT_E_USAGE, "usage: takt admin %s%s", action,
				    newest    ? " [FILE]"
				    : account ? " NAME"
				    : file    ? " FILE"
					      : "");
	return 0;
}

/* What a daemon that answers has is looked at; the others are done while none does. */
static bool while_it_runs(const char *action)
{
	return strcmp(action, "restore") != 0 && strcmp(action, "account") != 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_config config;
	int rc = check_form(cli, err);

	if (rc == 0 && (!cli->extra || !cli->extra->admin))
		rc = takt_err_set(err, -TAKT_E_UNSUPPORTED,
				  "this takt was built without the store");
	if (rc == 0)
		rc = while_it_runs(cli->operands[0]) ? takt_cli_served_config(cli, &config, err)
						     : takt_cli_daemon_config(cli, &config, err);
	if (rc < 0)
		return rc;
	rc = cli->extra->admin(cli->operands[0], &config,
			       cli->operand_count > 1 ? cli->operands[1] : NULL, say, cli, err);
	if (cli->json && cli->out.len)
		takt_str_add(&cli->out, "]}\n");
	return rc;
}

static const struct takt_option options[] = {
	{"state-dir", 0, "DIR",
	 "where the daemon keeps its files, if not where the one that answers has them, or else "
	 "as its configuration says"},
	{"config", 0, "FILE", "the daemon's configuration instead of /etc/takt/takt.conf"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt admin backup takt-backup.db", "while the daemon runs"},
	{"takt admin restore", "while it does not: the newest of the daily backups"},
	{"takt admin restore takt-backup.db", "that one"},
	{"takt admin check --json", "for a machine to read"},
	{"takt admin account takt", "before takt serve is started as takt"},
	{"takt admin report bug.db", "to show to others; takt simulate --replay bug.db"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_admin = {
	.name = "admin",
	.summary = "back up, restore and check the database; report a defect",
	.usage = "backup FILE | restore [FILE] | check | report FILE | account NAME",
	.about =
		"backup: a copy of the database as of one instant, also while the daemon runs, "
		"readable by you alone, without the environments of jobs.\n"
		"restore: puts a backup in its place, while no daemon runs: FILE, or the newest "
		"good one of those that the daemon makes every day. It says how old that is; what "
		"was there is kept "
		"beside it. Jobs that wait are then held, since their environments are not in it. "
		"Those that still run are adopted by the next start, the others that ran are lost; "
		"it is refused while a job runs that did not run when the backup was made.\n"
		"check: whether the database is sound, and agrees with the records of attempts and "
		"with the journal of clocks; what does not, and what to do about it. Ends with 65 "
		"if something is wrong.\n"
		"report: a database with the scheduler's recent decisions and figures of jobs, for "
		"a "
		"report of a defect. Users, names and paths are replaced by pseudonyms, the same "
		"in "
		"every report of this machine; commands, messages and environments are not in it.\n"
		"account: gives the files of a takt that root has run to the account that is to "
		"run takt serve, while none runs; jobs go on. Nothing is done where they are the "
		"account's. For root; takt.service does it.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.min_operands = 1,
	.max_operands = 2,
	.offline = true,
	.run = run,
};

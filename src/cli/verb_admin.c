/* SPDX-License-Identifier: Apache-2.0 */
/* takt admin: backup, restore, check the database; a report of a defect. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/verb.h"
#include "config/config.h"

static const char *const words[] = {"backup", "restore", "check", "report", NULL};

static void say(void *ctx, const char *text)
{
	struct takt_cli *cli = ctx;

	takt_str_addf(&cli->out, "%s\n", text);
}

static int read_config(const struct takt_cli *cli, struct takt_config *ret, struct takt_err *err)
{
	const char *path = takt_cli_value(cli, "config"), *dir = takt_cli_value(cli, "state-dir");
	int rc;

	takt_config_init(ret);
	rc = takt_config_load(ret, path ? path : "/etc/takt/takt.conf", err);
	if (rc == -ENOENT && !path)
		rc = 0;
	if (rc == 0 && dir)
		rc = takt_config_set(ret, "state_dir", dir, "--state-dir", err);
	return rc < 0 ? rc
		      : takt_config_resolve(ret, getuid(), getenv("XDG_RUNTIME_DIR"),
					    getenv("XDG_STATE_HOME"), getenv("HOME"), err);
}

static int check_form(const struct takt_cli *cli, struct takt_err *err)
{
	const char *action = cli->operands[0];
	bool known = false, file = strcmp(action, "check") != 0;

	for (int i = 0; words[i]; i++)
		known = known || strcmp(words[i], action) == 0;
	if (!known)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"takt admin takes backup, restore, check or report, not '%.40s'", action);
	if (cli->operand_count != 1 + file)
		return takt_err_set(err, -TAKT_E_USAGE, "usage: takt admin %s%s", action,
				    file ? " FILE" : "");
	return 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_config config;
	int rc = check_form(cli, err);

	if (rc == 0 && (!cli->extra || !cli->extra->admin))
		rc = takt_err_set(err, -TAKT_E_UNSUPPORTED,
				  "this takt was built without the store");
	if (rc == 0)
		rc = read_config(cli, &config, err);
	return rc < 0 ? rc
		      : cli->extra->admin(cli->operands[0], &config, cli->operands[1], say, cli,
					  err);
}

static const struct takt_option options[] = {
	{"state-dir", 0, "DIR",
	 "where the daemon keeps its files, if not as its configuration says"},
	{"config", 0, "FILE", "the daemon's configuration instead of /etc/takt/takt.conf"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt admin backup takt-backup.db", "while the daemon runs"},
	{"takt admin restore takt-backup.db", "while it does not"},
	{"takt admin report bug.db", "to show to others; takt simulate --replay bug.db"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_admin = {
	.name = "admin",
	.summary = "back up, restore and check the database; report a defect",
	.usage = "backup FILE | restore FILE | check | report FILE",
	.about =
		"backup: a copy of the database as of one instant, also while the daemon runs, "
		"readable by you alone, without the environments of jobs.\n"
		"restore: puts a backup in its place, while no daemon runs; what was there is kept "
		"beside it. Jobs that wait are then held, since their environments are not in it, "
		"and those that ran are lost.\n"
		"check: whether the database is sound and the records of running jobs are there.\n"
		"report: a database with the scheduler's recent decisions and figures of jobs, for "
		"a "
		"report of a defect. Users, names and paths are replaced by pseudonyms, the same "
		"in "
		"every report of this machine; commands, messages and environments are not in it.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.min_operands = 1,
	.max_operands = 2,
	.offline = true,
	.run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* takt config: read a configuration and say what is wrong with it, or what it comes to; have the
 * daemon read its own again. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/verb.h"
#include "config/config.h"
#include "objects/governor_objects.h"

enum {
	EXIT_ERRORS = 65
};

static const char default_file[] = "/etc/takt/takt.conf";

static void say(void *ctx, const char *message)
{
	struct takt_cli *cli = ctx;

	takt_str_addf(&cli->out, "%s\n", message);
}

/* As takt serve will: what each file may be is the same to whoever checks. */
static int open_governors(const char *path, struct takt_err *err)
{
	struct takt_governor_objects *objects = NULL;
	const struct takt_governor *governor;
	struct takt_policy_text said;
	struct takt_config config;
	int rc;

	takt_config_init(&config);
	rc = takt_config_load(&config, path, err);
	if (rc == 0)
		rc = takt_governor_objects_open(config.governors, &objects, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "governors");
	if (strcmp(config.clock_policy, TAKT_CLOCK_POLICY_AUTO) != 0)
		rc = takt_governors_choose(takt_governor_objects_all(objects), config.clock_policy,
					   &governor, &said, err);
	takt_governor_objects_close(objects);
	return rc < 0 ? takt_err_wrap(err, rc, "clock_policy") : 0;
}

static unsigned check_governors(struct takt_cli *cli, const char *path)
{
	struct takt_err wrong = {.rc = 0};

	if (open_governors(path, &wrong) == 0)
		return 0;
	takt_str_addf(&cli->out, "%s: %s\n", path, wrong.msg);
	return 1;
}

static int check(struct takt_cli *cli, const char *path, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	unsigned errors;
	size_t len = 0;
	int rc = takt_file_read(takt_sys_real(), AT_FDCWD, path, TAKT_CONFIG_MAX_FILE, &text, &len,
				err);

	if (rc == -ENOENT)
		rc = takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no file '%s'", path);
	if (rc < 0)
		return rc;
	errors = takt_config_check(text, len, path, say, cli);
	if (errors == 0)
		errors = check_governors(cli, path);
	if (errors == 0)
		takt_str_addf(&cli->out, "%s: no errors\n", path);
	return errors == 0 ? 0 : EXIT_ERRORS;
}

/* As `takt serve` would have it. */
static int show(struct takt_cli *cli, const char *path, struct takt_err *err)
{
	struct takt_config config;
	int rc;

	takt_config_init(&config);
	rc = takt_config_load(&config, path, err);
	if (rc == -ENOENT && cli->operand_count < 2)
		rc = 0; /* the usual file need not be there */
	if (rc == 0)
		rc = takt_config_resolve(&config, getuid(), getenv("XDG_RUNTIME_DIR"),
					 getenv("XDG_STATE_HOME"), getenv("HOME"), err);
	return rc < 0 ? rc : takt_config_print(&config, &cli->out);
}

static void say_names(struct takt_cli *cli, const char *what, const char *names)
{
	if (names[0])
		takt_str_addf(&cli->out, "%s: %s\n", what, names);
}

static int reload(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_reload_view view;
	int rc;

	if (cli->operand_count > 1)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "takt serve reads the file that it was started with: takt "
				    "config reload takes none");
	rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = takt_client_reload(cli->client, &view, err);
	if (rc < 0 || takt_cli_print_json(cli))
		return rc;
	say_names(cli, "from now on", view.changed);
	say_names(cli, "once takt serve is started again", view.need_restart);
	if (!view.changed[0] && !view.need_restart[0])
		takt_str_add(&cli->out, "nothing has changed\n");
	return 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	const char *path = cli->operand_count > 1 ? cli->operands[1] : default_file;

	if (strcmp(cli->operands[0], "check") == 0)
		return check(cli, path, err);
	if (strcmp(cli->operands[0], "show") == 0)
		return show(cli, path, err);
	if (strcmp(cli->operands[0], "reload") == 0)
		return reload(cli, err);
	return takt_err_set(err, -TAKT_E_USAGE,
			    "takt config takes check, show or reload, not '%.40s'",
			    cli->operands[0]);
}

static const char *const words[] = {"check", "show", "reload", NULL};

static const struct takt_text_pair examples[] = {
	{"takt config check", "before the daemon is started again"},
	{"takt config reload", "takt serve reads its file again, without a restart"},
	{"takt config show takt.conf", "every setting, with its explanation"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"65", "check found errors"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_config = {
	.name = "config",
	.summary = "check or show a configuration file, have it read again",
	.usage = "check|show [FILE] | reload",
	.about =
		"check: reads FILE (/etc/takt/takt.conf) as takt serve would and says every error "
		"with its line.\n"
		"show: the settings that it comes to, each explained, as a file that can be read "
		"again; those marked (takt config reload) count without a restart.\n"
		"reload: the daemon reads its file and that of the tenants again. A file with an "
		"error is refused whole, and what was in force stays. Says what counts from now on "
		"and what needs a restart; for administrators.",
	.examples = examples,
	.exits = exits,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};

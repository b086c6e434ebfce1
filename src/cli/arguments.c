/* SPDX-License-Identifier: Apache-2.0 */
/* Options and operands by the verb's table. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/timetext.h"
#include "base/timetypes.h"
#include "cli/synonyms.h"
#include "cli/verb.h"
#include "config/suggest.h"

const struct takt_option takt_common_options[] = {
	{"json", 0, NULL, "print what the daemon answers, as JSON"},
	{"socket", 0, "PATH", "the daemon's socket, instead of the first that answers"},
	{"help", 'h', NULL, "print help and end"},
	{NULL},
};

static const struct takt_option offline_options[] = {
	{"json", 0, NULL, "print the results as JSON"},
	{"help", 'h', NULL, "print help and end"},
	{NULL},
};

const struct takt_option *takt_verb_common(const struct takt_verb *verb)
{
	return verb->offline ? offline_options : takt_common_options;
}

/* The i-th option of a verb: its own, then those of all. */
static const struct takt_option *option_at(const struct takt_verb *verb, size_t i)
{
	const struct takt_option *own = verb->options;

	for (; own && own->name; own++)
		if (i-- == 0)
			return own;
	for (own = takt_verb_common(verb); own->name; own++)
		if (i-- == 0)
			return own;
	return NULL;
}

static const char *option_name_at(const void *ctx, size_t i)
{
	const struct takt_option *option = option_at(ctx, i);

	return option ? option->name : NULL;
}

static const struct takt_option *find_own(const struct takt_verb *verb, const char *name,
					  size_t len)
{
	const struct takt_option *option;

	for (size_t i = 0; (option = option_at(verb, i)); i++)
		if (strlen(option->name) == len && strncmp(option->name, name, len) == 0)
			return option;
	return NULL;
}

/* By its name, else by that of another tool. */
static const struct takt_option *find_long(const struct takt_verb *verb, const char *name,
					   size_t len)
{
	const struct takt_option *option = find_own(verb, name, len);
	const struct takt_option_synonym *synonym = takt_option_synonym(name, len, 0);

	return option || !synonym || !synonym->ours
		       ? option
		       : find_own(verb, synonym->ours, strlen(synonym->ours));
}

static const struct takt_option *find_letter(const struct takt_verb *verb, char letter)
{
	const struct takt_option_synonym *synonym;
	const struct takt_option *option;

	for (size_t i = 0; (option = option_at(verb, i)); i++)
		if (option->letter == letter)
			return option;
	synonym = takt_option_synonym(NULL, 0, letter);
	return synonym && synonym->ours ? find_own(verb, synonym->ours, strlen(synonym->ours))
					: NULL;
}

static int keep(struct takt_cli *cli, const struct takt_option *option, const char *value,
		struct takt_err *err)
{
	if (strcmp(option->name, "json") == 0)
		cli->json = true;
	else if (strcmp(option->name, "socket") == 0)
		cli->socket = value;
	else if (strcmp(option->name, "help") == 0)
		cli->help = true;
	else if (cli->given_count == TAKT_CLI_MAX_GIVEN)
		return takt_err_set(err, -TAKT_E_USAGE, "more than %d options", TAKT_CLI_MAX_GIVEN);
	else
		cli->given[cli->given_count++] = (struct takt_given){option, value};
	return 0;
}

/* Whether it hands in a job: options of other tools that takt has not are those of jobs. */
static bool describes_job(const struct takt_verb *verb)
{
	return find_own(verb, "cwd", strlen("cwd")) != NULL;
}

static int unknown_option(const struct takt_cli *cli, const char *text, struct takt_err *err)
{
	const struct takt_option_synonym *synonym;
	char name[64];
	const char *near;

	takt_strcpy(name, sizeof(name), text + strspn(text, "-"));
	name[strcspn(name, "=")] = '\0';
	synonym = text[1] == '-' ? takt_option_synonym(name, strlen(name), 0)
				 : takt_option_synonym(NULL, 0, text[1]);
	if (synonym && synonym->instead && describes_job(cli->verb))
		return takt_err_set(err, -TAKT_E_USAGE, "there is no option '%.60s'; %s", text,
				    synonym->instead);
	near = name[0] ? takt_suggest(name, option_name_at, cli->verb) : NULL;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "there is no option '%.60s'%s%s%s; see 'takt help %s'", text,
			    near ? "; did you mean '--" : "", near ? near : "", near ? "'" : "",
			    cli->verb->name);
}

/* "--name", "--name=value", "--name value"; a value in brackets is left out or after '=' */
static int take_long(struct takt_cli *cli, int *at, struct takt_err *err)
{
	const char *text = cli->argv[*at], *equals = strchr(text, '=');
	size_t len = (equals ? (size_t)(equals - text) : strlen(text)) - 2;
	const struct takt_option *option = find_long(cli->verb, text + 2, len);

	if (!option)
		return unknown_option(cli, text, err);
	if (!option->value)
		return equals ? takt_err_set(err, -TAKT_E_USAGE, "'--%s' takes no value",
					     option->name)
			      : keep(cli, option, NULL, err);
	if (equals)
		return keep(cli, option, equals + 1, err);
	if (option->value[0] == '[')
		return keep(cli, option, NULL, err);
	if (*at + 1 >= cli->argc)
		return takt_err_set(err, -TAKT_E_USAGE, "'--%s' needs a value: %s", option->name,
				    option->value);
	return keep(cli, option, cli->argv[++*at], err);
}

/* "-f", "-af", "-n4", "-n 4" */
static int take_letters(struct takt_cli *cli, int *at, struct takt_err *err)
{
	for (const char *c = cli->argv[*at] + 1; *c; c++) {
		const struct takt_option *option = find_letter(cli->verb, *c);
		int rc;

		if (!option)
			return unknown_option(cli, cli->argv[*at], err);
		if (option->value && c[1])
			return keep(cli, option, c + 1, err);
		if (option->value && *at + 1 >= cli->argc)
			return takt_err_set(err, -TAKT_E_USAGE, "'-%c' needs a value: %s", *c,
					    option->value);
		rc = keep(cli, option, option->value ? cli->argv[++*at] : NULL, err);
		if (rc < 0 || option->value)
			return rc;
	}
	return 0;
}

static int check_count(const struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_verb *verb = cli->verb;

	if (cli->help)
		return 0;
	if (cli->operand_count < verb->min_operands)
		return takt_err_set(err, -TAKT_E_USAGE, "usage: takt %s %s", verb->name,
				    verb->usage);
	if (verb->max_operands >= 0 && cli->operand_count > verb->max_operands)
		return takt_err_set(err, -TAKT_E_USAGE, "'%.60s' is too much; usage: takt %s%s%s",
				    cli->operands[verb->max_operands], verb->name,
				    verb->usage[0] ? " " : "", verb->usage);
	return 0;
}

/* Operands are moved to the front of argv, where the options were. */
int takt_cli_parse(struct takt_cli *cli, struct takt_err *err)
{
	int at, rc = 0;

	cli->operands = cli->argv + 1;
	for (at = 1; at < cli->argc && rc == 0; at++) {
		char *text = cli->argv[at];

		if (strcmp(text, "--") == 0) {
			at++;
			break;
		}
		if (text[0] != '-' || !text[1]) {
			if (cli->verb->command_follows)
				break;
			cli->operands[cli->operand_count++] = text;
		} else if (text[1] == '-') {
			rc = take_long(cli, &at, err);
		} else {
			rc = take_letters(cli, &at, err);
		}
	}
	if (rc < 0)
		return rc;
	while (at < cli->argc)
		cli->operands[cli->operand_count++] = cli->argv[at++];
	cli->operands[cli->operand_count] = NULL;
	return check_count(cli, err);
}

bool takt_cli_has(const struct takt_cli *cli, const char *option)
{
	for (size_t i = 0; i < cli->given_count; i++)
		if (strcmp(cli->given[i].option->name, option) == 0)
			return true;
	return false;
}

const char *takt_cli_value(const struct takt_cli *cli, const char *option)
{
	const char *value = NULL;

	for (size_t i = 0; i < cli->given_count; i++)
		if (strcmp(cli->given[i].option->name, option) == 0)
			value = cli->given[i].value;
	return value;
}

int takt_cli_number(const struct takt_cli *cli, const char *option, int64_t min, int64_t max,
		    int64_t absent, int64_t *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, option);
	long long value = absent;

	if (text && takt_parse_i64(text, min, max, &value) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--%s' must be a whole number from %" PRId64 " to %" PRId64
				    ", not '%.40s'",
				    option, min, max, text);
	*ret = value;
	return 0;
}

/* "1:30:00", "1-12": what cannot be meant otherwise. "5:30" might be hours or minutes. */
static bool is_slurm_time(const char *text)
{
	const char *colon = strchr(text, ':');

	return strchr(text, '-') || (colon && strchr(colon + 1, ':'));
}

static int duration_ms(const char *option, const char *text, bool minutes, uint64_t max_ms,
		       uint64_t *ret, struct takt_err *err)
{
	char max[TAKT_DURATION_TEXT];
	uint64_t ns = 0;
	int rc = takt_duration_parse(text, &ns);

	if (rc < 0 && (is_slurm_time(text) || (minutes && !strchr(text, ':'))))
		rc = takt_slurm_time_parse(text, &ns);
	if (rc < 0 || ns / TAKT_NS_PER_MS > max_ms)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--%s' must be a time such as 30s, 90min, 1h30m or 1:30:00%s, "
				    "at most %s, not '%.40s'",
				    option, minutes ? ", or minutes such as 90" : "",
				    takt_duration_text(max_ms * TAKT_NS_PER_MS, max), text);
	*ret = ns / TAKT_NS_PER_MS;
	return 0;
}

int takt_cli_duration_ms(const struct takt_cli *cli, const char *option, uint64_t max_ms,
			 uint64_t absent_ms, uint64_t *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, option);

	if (text)
		return duration_ms(option, text, false, max_ms, ret, err);
	*ret = absent_ms;
	return 0;
}

int takt_cli_time_limit_ms(const struct takt_cli *cli, uint64_t *ret, struct takt_err *err)
{
	const uint64_t max_ms = 366ull * 24 * 60 * 60 * 1000;
	const char *text = takt_cli_value(cli, "time-limit");

	*ret = 0;
	if (!text || strcasecmp(text, "none") == 0 || strcasecmp(text, "unlimited") == 0)
		return 0;
	return duration_ms("time-limit", text, true, max_ms, ret, err);
}

int takt_cli_mhz(const char *text, const char *where, uint32_t *ret, struct takt_err *err)
{
	size_t len = strcspn(text, "M");
	unsigned long long mhz;
	char digits[16];

	if (len < sizeof(digits) && (text[len] == '\0' || strcmp(text + len, "MHz") == 0)) {
		memcpy(digits, text, len);
		digits[len] = '\0';
		if (takt_parse_u64(digits, 1, 10000, &mhz) == 0) {
			*ret = (uint32_t)mhz;
			return 0;
		}
	}
	return takt_err_set(err, -TAKT_E_USAGE,
			    "%s must be a clock such as 1410 or 1410MHz, not '%.40s'", where, text);
}

int takt_cli_watts(const char *text, const char *where, uint32_t *ret_mw, struct takt_err *err)
{
	size_t len = strcspn(text, "W");
	unsigned long long watts;
	char digits[16];

	if (len < sizeof(digits) && (text[len] == '\0' || strcmp(text + len, "W") == 0)) {
		memcpy(digits, text, len);
		digits[len] = '\0';
		if (takt_parse_u64(digits, 1, 10000, &watts) == 0) {
			*ret_mw = (uint32_t)watts * 1000;
			return 0;
		}
	}
	return takt_err_set(err, -TAKT_E_USAGE,
			    "%s must be a power such as 300 or 300W, not '%.40s'", where, text);
}

int takt_cli_job_id(const char *text, uint64_t *ret, struct takt_err *err)
{
	unsigned long long id;

	if (takt_parse_u64(text, 1, INT64_MAX, &id) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%.40s' is not the number of a job; 'takt queue' lists them",
				    text);
	*ret = id;
	return 0;
}

/* An argument as a shell reads it back. */
static void add_quoted(struct takt_str *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_./:=,+%@";

	if (text[0] && text[strspn(text, plain)] == '\0') {
		takt_str_add(out, text);
		return;
	}
	takt_str_add(out, "'");
	for (; *text; text++) {
		if (*text == '\'')
			takt_str_add(out, "'\\''");
		else
			takt_str_addn(out, text, 1);
	}
	takt_str_add(out, "'");
}

void takt_cli_command_text(const struct takt_cli *cli, struct takt_str *out)
{
	takt_str_addf(out, "takt %s", cli->verb->name);
	for (int i = 0; i < cli->operand_count; i++) {
		takt_str_add(out, " ");
		add_quoted(out, cli->operands[i]);
	}
	for (size_t i = 0; i < cli->given_count; i++) {
		takt_str_addf(out, " --%s", cli->given[i].option->name);
		if (!cli->given[i].value)
			continue;
		takt_str_add(out, " ");
		add_quoted(out, cli->given[i].value);
	}
	if (cli->json)
		takt_str_add(out, " --json");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See sbatch.h. The options are those of sbatch(1). */
#include "cli/sbatch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/timetext.h"

enum {
	MAX_SCRIPT = 1 << 20,
	MAX_WORD = 256
};

/* What becomes of a value. 1: *ret has it in takt's words; 0: takt has nothing like it; -EINVAL: it
 * is none. */
typedef int convert_fn(const char *value, char ret[MAX_WORD]);

static int as_it_is(const char *value, char ret[MAX_WORD])
{
	return takt_strcpy(ret, MAX_WORD, value) && value[0] ? 1 : -EINVAL;
}

/* With a pattern that takt has no word for it is left. */
static int output(const char *value, char ret[MAX_WORD])
{
	for (const char *at = strchr(value, '%'); at; at = strchr(at + 2, '%'))
		if (!at[1] || !strchr("jaAx%", at[1]))
			return 0;
	return as_it_is(value, ret);
}

/* "4", "a100:4": the number; the kind of GPU is for the caller to name. */
static int gpus(const char *value, char ret[MAX_WORD])
{
	const char *colon = strrchr(value, ':');
	unsigned long long count;

	if (takt_parse_u64(colon ? colon + 1 : value, 0, 64, &count) < 0)
		return -EINVAL;
	snprintf(ret, MAX_WORD, "%llu", count);
	return 1;
}

/* "gpu:4", "gpu:a100:4", "gpu"; other resources are none of takt's. */
static int gres(const char *value, char ret[MAX_WORD])
{
	size_t len = strcspn(value, ":");

	if (len != 3 || strncmp(value, "gpu", 3) != 0 || strchr(value, ','))
		return 0;
	return gpus(value[3] ? value + 4 : "1", ret);
}

static int time_limit(const char *value, char ret[MAX_WORD])
{
	char exact[TAKT_DURATION_EXACT];
	uint64_t ns;

	if (takt_slurm_time_parse(value, &ns) < 0)
		return -EINVAL;
	/* 0 is no limit for Slurm */
	return ns ? as_it_is(takt_duration_exact(ns, exact), ret) : 0;
}

/* "4000" MiB, "16G"; 0 is all that the node has. */
static int memory(const char *value, char ret[MAX_WORD])
{
	size_t len = strspn(value, "0123456789");

	if (len == 0 || len > 12 ||
	    (value[len] &&
	     (!strchr("KMGTkmgt", value[len]) || (value[len + 1] && value[len + 1] != 'B'))))
		return -EINVAL;
	if (strspn(value, "0") == len)
		return 0;
	snprintf(ret, MAX_WORD, "%.*s%c", (int)len, value, value[len] ? value[len] & ~0x20 : 'M');
	return 1;
}

/* "now+2hours" and "18:00"; what else Slurm takes ("teatime") takt does not. */
static int begin(const char *value, char ret[MAX_WORD])
{
	static const struct {
		const char *name, *unit;
	} units[] = {{"second", "s"}, {"minute", "m"}, {"hour", "h"}, {"day", "d"}};
	size_t len;

	if (strncmp(value, "now+", 4) != 0)
		return value[0] >= '0' && value[0] <= '9' ? as_it_is(value, ret) : 0;
	value += 4;
	len = strspn(value, "0123456789");
	if (len == 0 || len > 9)
		return -EINVAL;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(units); i++)
		if (strncmp(value + len, units[i].name, strlen(units[i].name)) == 0 ||
		    (!value[len] && i == 0)) {
			snprintf(ret, MAX_WORD, "%.*s%s", (int)len, value, units[i].unit);
			return 1;
		}
	return 0;
}

/* "afterok:12", "afterany:12"; of several, or of other kinds, none. */
static int dependency(const char *value, char ret[MAX_WORD])
{
	const char *colon = strchr(value, ':');
	unsigned long long id;

	if (!colon || takt_parse_u64(colon + 1, 1, INT64_MAX, &id) < 0)
		return 0;
	if (strncmp(value, "afterok:", 8) != 0 && strncmp(value, "afterany:", 9) != 0)
		return 0;
	snprintf(ret, MAX_WORD, "%llu:%s", id, value[5] == 'o' ? "ok" : "any");
	return 1;
}

/* One node and one task are what takt starts. */
static int one(const char *value, char ret[MAX_WORD])
{
	ret[0] = '\0';
	return strcmp(value, "1") == 0 || strcmp(value, "1-1") == 0;
}

static int none_of_it(const char *value, char ret[MAX_WORD])
{
	ret[0] = '\0';
	return strcmp(value, "NONE") == 0;
}

static const struct sbatch_option {
	const char *name;
	char letter;
	const char *ours;    /* NULL = nothing is to be done */
	convert_fn *convert; /* NULL = it takes no value */
} known[] = {
	{"gres", 0, "gpus", gres},
	{"gpus", 'G', "gpus", gpus},
	{"gpus-per-node", 0, "gpus", gpus},
	{"time", 't', "time-limit", time_limit},
	{"job-name", 'J', "name", as_it_is},
	{"cpus-per-task", 'c', "cpus", as_it_is},
	{"mem", 0, "mem", memory},
	{"array", 'a', "array", as_it_is},
	{"begin", 'b', "begin", begin},
	/* Where it runs and writes. */
	{"chdir", 'D', "cwd", as_it_is},
	{"output", 'o', "output", output},
	{"dependency", 'd', "after", dependency},
	{"hold", 'H', "hold", NULL},
	{"requeue", 0, "requeue", NULL},
	{"no-requeue", 0, NULL, NULL},
	{"export", 0, "no-env", none_of_it},
	{"nodes", 'N', NULL, one},
	{"ntasks", 'n', NULL, one},
	{"ntasks-per-node", 0, NULL, one},
};

static const struct sbatch_option *find(const char *word, const char **ret_value)
{
	const bool is_long = word[1] == '-';
	const size_t len = is_long ? strcspn(word + 2, "=") : 1;

	*ret_value = NULL;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(known); i++) {
		if (is_long ? strlen(known[i].name) != len ||
				      strncmp(known[i].name, word + 2, len) != 0
			    : !known[i].letter || known[i].letter != word[1])
			continue;
		if (is_long && word[2 + len])
			*ret_value = word + 3 + len;
		else if (!is_long && word[2])
			*ret_value = word + 2;
		return &known[i];
	}
	return NULL;
}

/* The next word of a line, quotes taken off; false at its end or at a comment. */
static bool next_word(const char **at, char ret[MAX_WORD])
{
	size_t n = 0;
	char quote = 0;

	*at += strspn(*at, " \t\r");
	if (!**at || **at == '#')
		return false;
	for (; **at && (quote || !strchr(" \t\r", **at)); (*at)++) {
		if (quote ? **at == quote : **at == '"' || **at == '\'')
			quote = quote ? 0 : **at;
		else if (n + 1 < MAX_WORD)
			ret[n++] = **at;
	}
	ret[n] = '\0';
	return true;
}

static void leave(struct takt_sbatch *sbatch, unsigned line, const char *word, const char *value)
{
	takt_str_addf(&sbatch->rest, "line %u: %s%s%s\n", line, word, value ? " " : "",
		      value ? value : "");
}

static int keep(struct takt_sbatch *sbatch, const char *name, const char *value,
		struct takt_err *err)
{
	if (sbatch->count == TAKT_SBATCH_MAX)
		return takt_err_set(err, -TAKT_E_USAGE, "more than %d options in #SBATCH lines",
				    TAKT_SBATCH_MAX);
	sbatch->options[sbatch->count].name = name;
	takt_strcpy(sbatch->options[sbatch->count++].value, MAX_WORD, value);
	return 0;
}

static int read_line(struct takt_sbatch *sbatch, unsigned line, const char *at,
		     struct takt_err *err)
{
	char word[MAX_WORD], more[MAX_WORD], value[MAX_WORD] = "";

	while (next_word(&at, word)) {
		const char *given, *shown = NULL;
		const struct sbatch_option *option =
			word[0] == '-' && word[1] ? find(word, &given) : NULL;
		int rc = 1;

		if (!option) {
			leave(sbatch, line, word, NULL);
			continue;
		}
		value[0] = '\0';
		if (option->convert && !given && next_word(&at, more))
			given = shown = more;
		if (option->convert)
			rc = given ? option->convert(given, value) : -EINVAL;
		if (rc < 0)
			return takt_err_set(
				err, -TAKT_E_USAGE,
				"line %u: '%.60s%s%.60s' is nothing that Slurm would take", line,
				word, shown ? " " : "", shown ? shown : "");
		/* The number is taken, the kind of GPU is not. */
		if (rc == 0 || (option->convert == gpus && strchr(given, ':')) ||
		    (option->convert == gres && strchr(given, ':') != strrchr(given, ':')))
			leave(sbatch, line, word, shown);
		if (rc > 0 && option->ours && keep(sbatch, option->ours, value, err) < 0)
			return -TAKT_E_USAGE;
	}
	return 0;
}

int takt_sbatch_read(const char *text, struct takt_sbatch *ret, struct takt_err *err)
{
	static const char mark[] = "#SBATCH";
	int rc = 0;

	*ret = (struct takt_sbatch){.rest = TAKT_STR(MAX_SCRIPT)};
	for (unsigned line = 1; *text && rc == 0; line++) {
		size_t len = strcspn(text, "\n");
		char copy[1024];

		if (text[strspn(text, " \t\r")] != '#' && strspn(text, " \t\r") < len)
			break;
		if (strncmp(text, mark, sizeof(mark) - 1) == 0 &&
		    strchr(" \t", text[sizeof(mark) - 1])) {
			snprintf(copy, sizeof(copy), "%.*s", (int)(len - sizeof(mark)),
				 text + sizeof(mark));
			rc = read_line(ret, line, copy, err);
		}
		text += len + (text[len] == '\n');
	}
	return rc;
}

void takt_sbatch_fini(struct takt_sbatch *sbatch)
{
	takt_str_fini(&sbatch->rest);
}

/* The script's text; -errno. What is no text (a program) has no lines of Slurm's: *ret is empty
 * then. */
static int read_script(const char *path, struct takt_str *ret)
{
	FILE *file = fopen(path, "re");
	char part[4096];
	size_t n;
	int rc = file ? 0 : -errno;

	while (rc == 0 && (n = fread(part, 1, sizeof(part), file)) > 0) {
		if (ret->len == 0 && (n < 2 || part[0] != '#' || part[1] != '!'))
			break;
		rc = takt_str_addn(ret, part, n);
	}
	if (file)
		fclose(file);
	return rc;
}

static const struct takt_option *option_of(const struct takt_verb *verb, const char *name)
{
	for (const struct takt_option *option = verb->options; option && option->name; option++)
		if (strcmp(option->name, name) == 0)
			return option;
	return NULL;
}

/* Before what was typed, whose last value counts. */
static int put_first(struct takt_cli *cli, const struct takt_sbatch *sbatch, struct takt_err *err)
{
	size_t n = sbatch->count;

	if (cli->given_count + n > TAKT_CLI_MAX_GIVEN)
		return takt_err_set(err, -TAKT_E_USAGE, "more than %d options", TAKT_CLI_MAX_GIVEN);
	memmove(cli->given + n, cli->given, cli->given_count * sizeof(cli->given[0]));
	for (size_t i = 0; i < n; i++) {
		const struct takt_option *option = option_of(cli->verb, sbatch->options[i].name);

		if (!option)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "takt %s has no '--%s', which the script asks for",
					    cli->verb->name, sbatch->options[i].name);
		cli->given[i] = (struct takt_given){option, option->value ? sbatch->options[i].value
									  : NULL};
	}
	cli->given_count += n;
	return 0;
}

int takt_sbatch_take(struct takt_cli *cli, struct takt_sbatch *kept, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_SCRIPT);
	const bool wanted = takt_cli_has(cli, "sbatch");
	const char *path = cli->operand_count ? cli->operands[0] : NULL;
	int rc;

	*kept = (struct takt_sbatch){.rest = TAKT_STR(MAX_SCRIPT)};
	if (!path)
		return wanted ? takt_err_set(
					err, -TAKT_E_USAGE,
					"'--sbatch' needs the script: takt %s --sbatch -- ./job.sh",
					cli->verb->name)
			      : 0;
	rc = strchr(path, '/') || wanted ? read_script(path, &text) : 0;
	if (rc < 0)
		return wanted ? takt_err_set(err, rc, "script '%.200s'", path) : 0;
	rc = takt_sbatch_read(takt_str_text(&text), kept, err);
	if (!wanted) {
		if (rc < 0 || kept->count || kept->rest.len)
			fprintf(stderr,
				"takt: note: the #SBATCH lines of '%.200s' are not read; with "
				"--sbatch takt takes those "
				"that it understands\n",
				path);
		return 0;
	}
	if (rc < 0)
		return takt_err_wrap(err, rc, "script '%.200s'", path);
	if (kept->rest.len)
		fprintf(stderr, "takt: note: not taken from '%.200s':\n%s", path,
			takt_str_text(&kept->rest));
	return put_first(cli, kept, err);
}

static bool has_line(const char *text, const char *begin)
{
	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, begin, strlen(begin)) == 0)
			return true;
	return false;
}

const char *takt_foreign_job(const char *text)
{
	static const struct {
		const char *begin, *and_begin, *what;
	} kinds[] = {
		{"#SBATCH", "",
		 "a job script of Slurm; hand it in with 'takt submit --sbatch -- ./SCRIPT'"},
		{"#PBS", "", "a job script of PBS; hand it in with 'takt submit -- ./SCRIPT'"},
		{"#BSUB", "", "a job script of LSF; hand it in with 'takt submit -- ./SCRIPT'"},
		{"#!", "", "a script; hand it in with 'takt submit -- ./SCRIPT'"},
		{"apiVersion:", "kind:", "YAML of Kubernetes"},
		{"services:", "", "YAML of compose"},
		{"---", "", "YAML"},
	};
	size_t word;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(kinds); i++)
		if (has_line(text, kinds[i].begin) && has_line(text, kinds[i].and_begin))
			return kinds[i].what;
	text += strspn(text, " \t\r\n");
	word = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
	return word && text[word] == ':' && strchr(" \r\n", text[word + 1]) ? "YAML" : NULL;
}

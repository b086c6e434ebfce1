/* SPDX-License-Identifier: Apache-2.0 */
/* takt init: sets takt up on a machine by three questions, and takes that back. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/init.h"

enum {
	MAX_ANSWER = 300,
	MAX_ANSWERS = 1024,
};

/* As options, and as keys of --answers. */
static const char *const keys[] = {"users", "observe", "clocks", "web"};

struct given {
	char texts[TAKT_ARRAY_LEN(keys)][MAX_ANSWER]; /* "" = not given */
};

static int take_answer(struct given *given, const char *text, size_t len, struct takt_err *err)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys); i++) {
		size_t key = strlen(keys[i]);

		if (strncmp(text, keys[i], key) != 0 || text[key] != '=' || key >= len)
			continue;
		if (len == key + 1 || len - key - 1 >= MAX_ANSWER)
			break;
		memcpy(given->texts[i], text + key + 1, len - key - 1);
		given->texts[i][len - key - 1] = '\0';
		return 0;
	}
	return takt_err_set(
		err, -TAKT_E_USAGE,
		"--answers: users=, observe=, clocks= and web= are accepted, with commas "
		"between, not '%.*s'",
		(int)(len < 60 ? len : 60), text);
}

static int read_given(const struct takt_cli *cli, struct given *ret, struct takt_err *err)
{
	const char *answers = takt_cli_value(cli, "answers"), *one;
	int rc = 0;

	while (answers && *answers && rc == 0) {
		size_t len = strcspn(answers, ",");

		rc = take_answer(ret, answers, len, err);
		answers += len + (answers[len] == ',');
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys) && rc == 0; i++) {
		one = takt_cli_value(cli, keys[i]);
		if (one && (!one[0] || !takt_strcpy(ret->texts[i], MAX_ANSWER, one)))
			rc = takt_err_set(err, -TAKT_E_USAGE,
					  "--%s needs a value of up to %d bytes", keys[i],
					  MAX_ANSWER - 1);
	}
	return rc;
}

/* What has been said so far is shown before somebody is to answer. */
static int flush(struct takt_cli *cli, struct takt_err *err)
{
	int rc = takt_cli_write(takt_str_text(&cli->out), cli->out.len, err);

	takt_str_reset(&cli->out);
	return rc;
}

/* A line, "" for an empty one. */
static int ask(struct takt_init *init, const char *question, const char *proposed,
	       char ret[MAX_ANSWER], struct takt_err *err)
{
	int rc;

	takt_str_addf(&init->cli->out, "%s [%s] ", question, proposed);
	rc = flush(init->cli, err);
	if (rc < 0)
		return rc;
	if (!fgets(ret, MAX_ANSWER, stdin)) {
		takt_str_add(&init->cli->out, "\n");
		return takt_err_set(err, -ECANCELED, "no answer; nothing was changed");
	}
	ret[strcspn(ret, "\n")] = '\0';
	if (!ret[0])
		takt_strcpy(ret, MAX_ANSWER, proposed);
	return 0;
}

static int take(struct takt_init *init, size_t key, const char *text, enum takt_setup_who *who,
		struct takt_err *err)
{
	switch (key) {
	case 0:
		return takt_setup_read_who(text, who, err);
	case 1:
		return takt_setup_read_yes("observe", text, &init->answers.observe, err);
	case 2:
		return takt_setup_read_yes("clocks", text, &init->answers.clocks, err);
	default:
		return takt_setup_read_web(text, &init->answers, err);
	}
}

/* What was given, else what somebody types, else what is proposed. A wrong one of a person's is
 * said and asked for again. */
static int settle(struct takt_init *init, const struct given *given, size_t key,
		  const char *question, const char *proposed, enum takt_setup_who *who,
		  struct takt_err *err)
{
	char text[MAX_ANSWER];
	int rc;

	if (given->texts[key][0])
		return take(init, key, given->texts[key], who, err);
	if (!init->asks || !question)
		return take(init, key, proposed, who, err);
	for (;;) {
		rc = ask(init, question, proposed, text, err);
		if (rc < 0)
			return rc;
		rc = take(init, key, text, who, err);
		if (rc == 0)
			return 0;
		takt_str_addf(&init->cli->out, "  %s\n", err->msg);
	}
}

/* Root sets nothing up in folders of a user's: it goes on as him. */
static int find_place_of(struct takt_init *init, enum takt_setup_who who, struct takt_err *err)
{
	if (who == TAKT_SETUP_ME && init->live && geteuid() == 0)
		return takt_init_become_caller(init, err);
	return takt_init_find_place(init, who, err);
}

static int settle_users(struct takt_init *init, const struct given *given, struct takt_err *err)
{
	enum takt_setup_who who = init->place.who;
	int rc = settle(
		init, given, 0,
		"Who uses takt: all (everybody who logs in on this machine), or me (only you)?",
		who == TAKT_SETUP_ALL ? "all" : "me", &who, err);

	if (rc < 0)
		return rc;
	if (who == TAKT_SETUP_ALL && init->live && geteuid() != 0)
		return takt_err_set(
			err, -EPERM,
			"for all users takt is set up by root (sudo takt init); for you alone, "
			"without root: takt init --users me");
	rc = find_place_of(init, who, err);
	if (rc == 0)
		rc = takt_init_read_config(init, err);
	if (rc == 0)
		takt_setup_look(&init->place, &init->machine);
	return rc;
}

/* Where somebody gives out the GPUs already, that is asked in place of clocks: who only looks sets
 * none. */
static int settle_gpus(struct takt_init *init, const struct given *given, struct takt_err *err)
{
	const struct takt_setup_machine *machine = &init->machine;
	bool managed = machine->manager[0], all = init->place.who == TAKT_SETUP_ALL;
	bool observe = init->config_there
			       ? init->config.manage == TAKT_MANAGE_NEVER ||
					 (managed && init->config.manage == TAKT_MANAGE_AUTO)
			       : managed;
	char question[200];
	int rc;

	snprintf(question, sizeof(question),
		 "%s manages this machine, and takt would hand out the same GPUs. Only look, and "
		 "hand "
		 "out none: yes or no?",
		 machine->manager);
	rc = settle(init, given, 1, managed ? question : NULL, observe ? "yes" : "no", NULL, err);
	if (rc < 0)
		return rc;
	return settle(
		init, given, 2,
		managed || !all || init->answers.observe
			? NULL
			: "May takt set clocks and power limits, where a job or an administrator "
			  "asks for it: yes or no?",
		init->config_there && init->config.set_clocks && all && !init->answers.observe
			? "yes"
			: "no",
		NULL, err);
}

static const char *web_there(const struct takt_init *init)
{
	if (!init->config_there || strcmp(init->config.web_listen, "127.0.0.1:9832") == 0)
		return "local";
	return init->config.web_listen;
}

static int settle_tls(struct takt_init *init, struct takt_err *err)
{
	const char *certificate = takt_cli_value(init->cli, "tls-certificate");
	const char *key = takt_cli_value(init->cli, "tls-key");

	takt_strcpy(init->answers.tls_certificate, TAKT_SETUP_PATH, init->config.tls_certificate);
	takt_strcpy(init->answers.tls_key, TAKT_SETUP_PATH, init->config.tls_key);
	if (!certificate && !key)
		return 0;
	if (!certificate || !key || certificate[0] != '/' || key[0] != '/')
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"--tls-certificate and --tls-key go together, both absolute paths");
	if (init->live && (access(certificate, R_OK) < 0 || access(key, F_OK) < 0))
		return takt_err_set(err, -errno, "--tls-certificate '%.80s', --tls-key '%.80s'",
				    certificate, key);
	takt_strcpy(init->answers.tls_certificate, TAKT_SETUP_PATH, certificate);
	takt_strcpy(init->answers.tls_key, TAKT_SETUP_PATH, key);
	return 0;
}

/* The machine is shown as whoever it will be sees it; where that is to be asked, as is proposed. */
static int show_and_settle_users(struct takt_init *init, const struct given *given,
				 struct takt_err *err)
{
	bool asked = init->asks && !given->texts[0][0];
	int rc = asked ? takt_init_read_config(init, err) : settle_users(init, given, err);

	if (rc == 0 && asked)
		takt_setup_look(&init->place, &init->machine);
	if (rc == 0 && !init->cli->json)
		takt_init_print_machine(init, &init->cli->out);
	return rc == 0 && asked ? settle_users(init, given, err) : rc;
}

static int settle_all(struct takt_init *init, const struct given *given, struct takt_err *err)
{
	int rc = show_and_settle_users(init, given, err);

	if (rc == 0)
		rc = settle_gpus(init, given, err);
	if (rc == 0)
		rc = settle_tls(init, err);
	if (rc < 0)
		return rc;
	return settle(
		init, given, 3,
		"Where are web page and metrics served: off (nowhere), local (this machine), or "
		"ADDRESS[:PORT]?",
		web_there(init), NULL, err);
}

static int check_machine(const struct takt_init *init, struct takt_err *err)
{
	if (init->place.who == TAKT_SETUP_ME)
		return 0;
	if (init->machine.cgroups == TAKT_SETUP_CGROUPS_V1 && !init->config.allow_weak_isolation)
		return takt_err_set(
			err, -TAKT_E_IMPOSSIBLE,
			"takt for all users needs cgroup v2, which keeps jobs from each "
			"other's GPUs: boot with systemd.unified_cgroup_hierarchy=1; or takt "
			"init --users me");
	return init->live && init->machine.systemd ? takt_init_check_programs(init, err) : 0;
}

/* One who is interrupted here would leave half of it. */
static void hold_signals(sigset_t *ret_before)
{
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGHUP);
	sigaddset(&held, SIGQUIT);
	sigprocmask(SIG_BLOCK, &held, ret_before);
}

static int undo(struct takt_init *init, int rc, struct takt_err *err)
{
	struct takt_err more;
	bool undone = takt_setup_undo(&init->plan, &more) == 0;

	takt_init_start_undone(init);
	if (!undone)
		return takt_err_set(err, rc, "%.110s; not all could be undone: %.90s", err->msg,
				    more.msg);
	return takt_err_wrap(err, rc, "undone again");
}

static int carry_out(struct takt_init *init, struct takt_err *err)
{
	sigset_t before;
	int rc;

	if (init->dry_run)
		return takt_init_start(init, err);
	umask(022);
	hold_signals(&before);
	rc = takt_setup_begin(&init->plan, err);
	if (rc == 0) {
		rc = takt_init_start(init, err);
		if (rc == 0)
			rc = takt_setup_keep(&init->plan, err);
		if (rc < 0)
			rc = undo(init, rc, err);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int set_up(struct takt_init *init, struct takt_err *err)
{
	struct takt_cli *cli = init->cli;
	int rc = takt_setup_plan(&init->place, &init->machine, &init->answers, &init->plan, err);

	if (rc == 0)
		rc = takt_setup_check(&init->plan, err);
	if (rc == 0 && init->plan.changes)
		rc = carry_out(init, err);
	if (rc == 0 && cli->json)
		takt_init_print_json(init, NULL, &cli->out);
	else if (rc == 0)
		takt_init_print_done(init, &cli->out);
	takt_setup_plan_fini(&init->plan);
	return rc;
}

static bool is_answered(const struct given *given)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys); i++)
		if (given->texts[i][0])
			return true;
	return false;
}

static int install(struct takt_init *init, struct takt_err *err)
{
	struct given given = {.texts = {""}};
	int rc = read_given(init->cli, &given, err);

	if (rc == 0 && takt_cli_has(init->cli, "purge"))
		rc = takt_err_set(err, -TAKT_E_USAGE, "--purge goes with --remove");
	if (rc == 0 && !init->asks && !init->dry_run && !takt_cli_has(init->cli, "yes") &&
	    !is_answered(&given))
		rc = takt_err_set(
			err, -TAKT_E_USAGE,
			"nobody is here to answer (no terminal, or --json): --yes takes what is "
			"proposed, --answers users=all,clocks=no,web=local says it");
	if (rc == 0)
		rc = settle_all(init, &given, err);
	if (rc == 0)
		rc = check_machine(init, err);
	if (rc == 0 && init->asks)
		takt_str_add(&init->cli->out, "\n");
	return rc == 0 ? set_up(init, err) : rc;
}

/* Whoever removes it is told of the jobs that it leaves alone. */
static int agree(struct takt_init *init, bool purge, struct takt_err *err)
{
	char question[200], answer[MAX_ANSWER];
	bool yes = false;
	int rc = takt_init_count_jobs(init, err);

	if (rc < 0)
		return rc;
	if (init->running && purge)
		return takt_err_set(
			err, -TAKT_E_BUSY,
			"%u jobs run, whose records --purge would delete; end them first "
			"(takt cancel)",
			init->running);
	if (init->running + init->waiting == 0 || init->dry_run || takt_cli_has(init->cli, "yes"))
		return 0;
	snprintf(question, sizeof(question),
		 "%u jobs run, which go on without takt, and %u wait, which stay in its "
		 "records. "
		 "Remove it: yes or no?",
		 init->running, init->waiting);
	if (!init->asks)
		return takt_err_set(
			err, -TAKT_E_BUSY,
			"%u jobs run and %u wait; --yes removes takt all the same: they go "
			"on without it, and stay in its records",
			init->running, init->waiting);
	rc = ask(init, question, "no", answer, err);
	if (rc == 0)
		rc = takt_setup_read_yes("the answer", answer, &yes, err);
	if (rc == 0 && !yes)
		rc = takt_err_set(err, -ECANCELED, "nothing was changed");
	return rc;
}

static int take_away(struct takt_init *init, struct takt_err *err)
{
	sigset_t before;
	int rc;

	if (init->dry_run)
		return takt_init_stop(init, err);
	hold_signals(&before);
	rc = takt_init_stop(init, err);
	if (rc == 0) {
		rc = takt_setup_begin(&init->plan, err);
		if (rc == 0)
			rc = takt_setup_keep(&init->plan, err);
		takt_init_stopped(init);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int report_removal(struct takt_init *init, const char *purged)
{
	int status = 0;

	if (init->cli->json)
		takt_init_print_json(init, purged, &init->cli->out);
	else
		takt_init_print_removed(init, purged, &init->cli->out);
	TAKT_VEC_EACH (item, &init->plan.items)
		if (takt_init_is_left(item) && item->kind != TAKT_SETUP_FOLDER)
			status = TAKT_INIT_LEFT;
	return status;
}

static int take_all_away(struct takt_init *init, struct takt_err *err)
{
	struct takt_str purged = TAKT_STR(4096);
	bool purge = takt_cli_has(init->cli, "purge");
	int rc = takt_setup_check(&init->plan, err);

	if (rc == 0)
		rc = agree(init, purge, err);
	if (rc == 0)
		rc = take_away(init, err);
	if (rc == 0 && purge)
		rc = takt_init_purge(init, &purged, err);
	if (rc == 0 && purge && !init->dry_run)
		takt_setup_drop_folders(&init->plan);
	if (rc == 0)
		rc = report_removal(init, !purge       ? NULL
					  : purged.len ? takt_str_text(&purged)
						       : "nothing, there was nothing");
	takt_str_fini(&purged);
	return rc;
}

static int remove_all(struct takt_init *init, struct takt_err *err)
{
	const char *users = takt_cli_value(init->cli, "users");
	enum takt_setup_who who = init->place.who;
	int rc = users ? takt_setup_read_who(users, &who, err) : 0;

	if (rc == 0 && users)
		rc = find_place_of(init, who, err);
	if (rc == 0 && who == TAKT_SETUP_ALL && init->live && geteuid() != 0)
		rc = takt_err_set(err, -EPERM,
				  "what is there for all users root removes (sudo takt init "
				  "--remove)");
	if (rc == 0)
		rc = takt_init_read_config(init, err);
	if (rc < 0)
		return rc;
	takt_setup_look(&init->place, &init->machine);
	rc = takt_setup_plan_removal(&init->place, &init->plan, err);
	if (rc == 0)
		rc = take_all_away(init, err);
	takt_setup_plan_fini(&init->plan);
	return rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_init *init = takt_zalloc(sizeof(*init));
	bool image = takt_cli_has(cli, "root");
	enum takt_setup_who who = geteuid() == 0 || image ? TAKT_SETUP_ALL : TAKT_SETUP_ME;
	int rc;

	if (!init)
		return takt_err_set(err, -ENOMEM, "no memory for a machine");
	init->cli = cli;
	init->dry_run = takt_cli_has(cli, "dry-run");
	init->asks = isatty(STDIN_FILENO) == 1 && cli->terminal && !cli->json &&
		     !takt_cli_has(cli, "yes") && !takt_cli_has(cli, "answers");
	rc = takt_init_find_place(init, who, err);
	if (rc < 0)
		return rc;
	return takt_cli_has(cli, "remove") ? remove_all(init, err) : install(init, err);
}

static const struct takt_option options[] = {
	{"users", 0, "WHO", "all (everybody who logs in) or me"},
	{"clocks", 0, "YES",
	 "yes: clocks and power limits may be set where somebody asks for it; no"},
	{"web", 0, "WHERE",
	 "where web page and metrics are served: off, local (this machine) or ADDRESS[:PORT]"},
	{"observe", 0, "YES",
	 "yes: hand out no GPU, only look; proposed beside Slurm or a kubelet"},
	{"tls-certificate", 0, "FILE", "for an address that other machines reach: the certificate"},
	{"tls-key", 0, "FILE", "and its key"},
	{"answers", 0, "LIST", "all of these at once: users=all,clocks=no,web=local"},
	{"yes", 'y', NULL, "do not ask: take what is proposed"},
	{"dry-run", 'n', NULL, "show what would be done, and do nothing"},
	{"remove", 0, NULL, "undo what takt init has done here"},
	{"purge", 0, NULL, "with --remove: delete jobs' records and history, too"},
	{"root", 0, "DIR", "act below this folder (an image), and talk to no service manager"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"sudo takt init", "for all users of this machine, by three questions"},
	{"takt init", "for yourself, without root"},
	{"takt init --dry-run", "what it found, and would do"},
	{"sudo takt init --answers users=all,clocks=no,web=local", "in a script"},
	{"sudo takt init --remove", "undo it"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"0", "done, or all of it was there already; of --remove: nothing is left"},
	{"1", "of --remove: what was changed since is left, and named"},
	{"64", "a wrong option or answer, or nobody there to answer"},
	{"65", "this machine cannot be served so: nothing was changed"},
	{"66", "of --remove: takt init has made nothing here"},
	{"69", "takt was started and did not answer: undone again"},
	{"75",
	 "of --remove: jobs run or wait, and there is no --yes; another takt init is at work; "
	 "with --clocks no: an installed unit of takt-actuate does not know that"},
	{"77", "for all users this needs root"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_init = {
	.name = "init",
	.summary = "set takt up on this machine; --remove undoes it",
	.usage = "[--users WHO] [--clocks YES] [--web WHERE] [--yes] [--dry-run] | --remove "
		 "[--purge]",
	.about =
		"Looks at the machine and says what it found: GPUs and driver, who logs in, "
		"whether "
		"Slurm or a kubelet gives out the GPUs already, cgroups, disk, systemd, PAM, the "
		"account takt. Asks three questions, writes the configuration and what the service "
		"manager needs, starts takt, and says what it did, file by file.\n"
		"As root takt is set up for all users, with units of the system, in /etc. As a "
		"user it "
		"is set up for you alone, in your own folders, with a unit of your own service "
		"manager "
		"where there is one.\n"
		"Everything is checked before the first file is written, each file is written "
		"whole, "
		"and what was done is undone when something fails, takt's start included. Lines of "
		"a "
		"configuration that it does not ask about stay. A file that somebody else has "
		"written "
		"or changed is replaced only where it has to be; what was there is kept beside it, "
		"and "
		"named. Done once more, it changes what the answers change.\n"
		"--remove takes away what was made and is still as it was made; what was changed "
		"since "
		"is left and named, and what was there before is put back. Jobs that run are told "
		"of "
		"and not ended; their records and the history stay, unless --purge is given.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.offline = true,
	.run = run,
};

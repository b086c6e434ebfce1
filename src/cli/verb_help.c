/* SPDX-License-Identifier: Apache-2.0 */
/* takt help, takt completion, takt man: texts made of the table of verbs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/help.h"
#include "cli/synonyms.h"
#include "cli/verb.h"

static void overview(struct takt_str *out)
{
	const struct takt_verb *verb;
	const char *group;

	takt_str_add(out, "takt: every GPU on the right job, at the right clock\n\n"
			  "usage: takt VERB [options]\n");
	for (size_t i = 0; (verb = takt_verb_at(i, &group)); i++) {
		if (group)
			takt_str_addf(out, "\n%s\n", group);
		takt_help_pair(out, verb->name, verb->summary);
	}
	takt_str_add(out, "\n'takt help VERB' says more. Every verb takes --json, those that ask a "
			  "daemon --socket.\n");
}

static int help(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_verb *verb;

	if (cli->operand_count == 0) {
		overview(&cli->out);
		return 0;
	}
	verb = takt_verb_meant(cli->operands[0], err);
	if (!verb)
		return -TAKT_E_USAGE;
	takt_help_verb(verb, &cli->out);
	return 0;
}

static const struct takt_text_pair help_examples[] = {
	{"takt help run", "everything about takt run"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_help = {
	.name = "help",
	.summary = "this list, or all about one verb",
	.usage = "[VERB]",
	.about = "Lists the verbs, or says everything about one.",
	.examples = help_examples,
	.operands = TAKT_OPERANDS_VERBS,
	.max_operands = 1,
	.run = help,
};

static int completion(struct takt_cli *cli, struct takt_err *err)
{
	if (strcmp(cli->operands[0], "bash") == 0)
		takt_help_bash(&cli->out);
	else if (strcmp(cli->operands[0], "zsh") == 0)
		takt_help_zsh(&cli->out);
	else if (strcmp(cli->operands[0], "fish") == 0)
		takt_help_fish(&cli->out);
	else
		return takt_err_set(err, -TAKT_E_USAGE,
				    "completion is there for bash, zsh and fish, not '%.40s'",
				    cli->operands[0]);
	return 0;
}

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static const struct takt_text_pair completion_examples[] = {
	{"eval \"$(takt completion bash)\"", "in this shell"},
	{"takt completion fish | source", "in fish"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_completion = {
	.name = "completion",
	.summary = "completion script for a shell",
	.usage = "bash | zsh | fish",
	.about = "Prints a script that lets the shell complete verbs, options and the numbers of "
		 "jobs.",
	.examples = completion_examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = shells,
	.min_operands = 1,
	.max_operands = 1,
	.run = completion,
};

/* False: it could not be. Who leaves the pager has seen enough. */
static bool show_page(const char *text, size_t len)
{
	char name[] = "man", local[] = "-l", input[] = "-";
	char *argv[] = {name, local, input, NULL};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
	posix_spawn_file_actions_t files;
	int pipes[2], status = 0;
	bool shown;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return false;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, pipes[0], STDIN_FILENO);
	shown = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ) == 0;
	posix_spawn_file_actions_destroy(&files);
	close(pipes[0]);
	sigaction(SIGPIPE, &ignore, &was);
	while (shown && len > 0) {
		ssize_t put = write(pipes[1], text, len);

		if (put < 0 && errno != EINTR)
			break;
		text += put > 0 ? put : 0;
		len -= put > 0 ? (size_t)put : 0;
	}
	close(pipes[1]);
	while (shown && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGPIPE, &was, NULL);
	return shown && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int man(struct takt_cli *cli, struct takt_err *err)
{
	takt_help_man(&cli->out);
	if (cli->terminal && cli->out.rc == 0 && show_page(cli->out.s, cli->out.len))
		takt_str_reset(&cli->out);
	return 0;
}

static const struct takt_text_pair man_examples[] = {
	{"takt man", "the page, without installing it"},
	{"takt man > takt.1", "as a file"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_man = {
	.name = "man",
	.summary = "the manual page",
	.usage = "",
	.about = "Shows takt(1), by man and its pager, on a terminal; prints it in the form that "
		 "man reads where there is no terminal, or no man.",
	.examples = man_examples,
	.run = man,
};

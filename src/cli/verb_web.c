/* SPDX-License-Identifier: Apache-2.0 */
/* takt web: one link that signs in to the page, opened in a browser or printed. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/units.h"
#include "cli/verb.h"
#include "cli/web_door.h"
#include "codec/json.h"

enum {
	ABSENT_DAYS = 1,
	MAX_DAYS = 3650,
	KEPT = 8, /* links of one user that count at a time: the oldest make room */
	BROWSER_MS = 30000,
	MAX_LINK = TAKT_TOKEN_PAGE + TAKT_TOKEN_TEXT + 16,
};

static const char note[] = "takt web";
static const char opener_program[] = "xdg-open";

extern char **environ;

static int check_page(const struct takt_tokens_view *view, struct takt_err *err)
{
	return view->page[0]
		       ? 0
		       : takt_err_set(
				 err, -TAKT_E_UNAVAILABLE,
				 "takt serves no page: set 'web_listen = 127.0.0.1:9832' in "
				 "takt.conf (or start it with --web-listen 127.0.0.1:9832) and "
				 "start takt again");
}

static int read_request(const struct takt_cli *cli, struct takt_token_request *ret,
			struct takt_err *err)
{
	const char *user = takt_cli_value(cli, "user");
	int64_t days;
	int rc = takt_cli_number(cli, "days", 1, MAX_DAYS, ABSENT_DAYS, &days, err);

	if (rc < 0)
		return rc;
	*ret = (struct takt_token_request){.write = !takt_cli_has(cli, "read"),
					   .days = (uint32_t)days};
	takt_strcpy(ret->note, sizeof(ret->note), note);
	if (user && !takt_strcpy(ret->user, sizeof(ret->user), user))
		return takt_err_set(err, -TAKT_E_USAGE, "'--user' has over %zu bytes",
				    sizeof(ret->user) - 1);
	return 0;
}

/* With sudo the page is for who has typed it: there are no tokens for root where takt serves all.
 */
static int make(struct takt_cli *cli, struct takt_token_request *request,
		struct takt_tokens_view *ret, struct takt_err *err)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_USER") : NULL;
	int rc = takt_client_token_add(cli->client, request, ret, err);

	if (rc != -EPERM || request->user[0] || !sudo || strcmp(sudo, "root") == 0 ||
	    !takt_strcpy(request->user, sizeof(request->user), sudo))
		return rc;
	return takt_client_token_add(cli->client, request, ret, err);
}

/* The oldest of such links beyond those that are kept; it matters to nobody if this fails. */
static void forget_old(struct takt_cli *cli, uint32_t uid)
{
	struct takt_tokens_view view = {.count = 0};
	const struct takt_token *oldest = NULL;
	uint32_t count = 0;

	if (takt_client_tokens(cli->client, &view, NULL) < 0)
		return;
	for (uint32_t i = 0; i < view.count; i++) {
		const struct takt_token *token = &view.tokens[i];

		if (token->uid != uid || strcmp(token->note, note) != 0)
			continue;
		count++;
		if (!oldest || token->made_ms < oldest->made_ms)
			oldest = token;
	}
	if (count > KEPT) {
		struct takt_tokens_view left = {.count = 0};

		(void)takt_client_token_revoke(cli->client, oldest->id, &left, NULL);
		takt_tokens_view_fini(&left);
	}
	takt_tokens_view_fini(&view);
}

/* root has no browser, and where there is no display none can be seen. */
static bool has_browser(const struct takt_cli *cli)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	return !takt_cli_has(cli, "print") && !takt_cli_has(cli, "no-open") && !cli->json &&
	       geteuid() != 0 && ((x && x[0]) || (wayland && wayland[0]));
}

static pid_t start_opener(const char *address)
{
	char *argv[] = {(char *)opener_program, (char *)address, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	pid_t pid = -1;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	if (posix_spawnattr_init(&attr) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -1;
	}
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID); /* it outlives this terminal */
	if (posix_spawnp(&pid, opener_program, &actions, &attr, argv, environ) != 0)
		pid = -1;
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Whether a browser has asked for the link. */
static bool open_browser(const char *link)
{
	struct takt_web_door door;
	pid_t opener;
	bool led = false;

	if (takt_web_door_open(&door, NULL) < 0)
		return false;
	opener = start_opener(door.address);
	if (opener > 0)
		led = takt_web_door_lead(&door, link, BROWSER_MS, opener);
	takt_web_door_close(&door);
	return led;
}

/* The port behind the last ':' of "http://127.0.0.1:9832/"; how to reach it from elsewhere. */
static void add_tunnel(struct takt_cli *cli, const char *page)
{
	const char *port = strrchr(page, ':');
	int digits = port ? (int)strspn(port + 1, "0123456789") : 0;

	if (!cli->terminal || !getenv("SSH_CONNECTION") || !strstr(page, "//127.0.0.1:"))
		return;
	takt_str_addf(&cli->out,
		      "from the machine in front of you, first: ssh -L %.*s:127.0.0.1:%.*s THIS "
		      "MACHINE\n",
		      digits, port + 1, digits, port + 1);
}

static void print_json(struct takt_cli *cli, const struct takt_token *token, const char *link)
{
	takt_str_add(&cli->out, "{\"link\":");
	takt_json_add_text(&cli->out, link);
	takt_str_add(&cli->out, ",\"user\":");
	takt_json_add_text(&cli->out, token->user);
	takt_str_addf(&cli->out,
		      ",\"write\":%s,\"expires_ms\":%lld,\"id\":", token->write ? "true" : "false",
		      (long long)token->expires_ms);
	takt_json_add_text(&cli->out, token->id);
	takt_str_add(&cli->out, "}\n");
}

static void tell(struct takt_cli *cli, const struct takt_tokens_view *view)
{
	const struct takt_token *token = &view->tokens[0];
	char link[MAX_LINK], text[TAKT_UNIT_TEXT];

	snprintf(link, sizeof(link), "%s#token=%s", view->page, view->token);
	if (cli->json) {
		print_json(cli, token, link);
	} else if (has_browser(cli) && open_browser(link)) {
		takt_str_addf(&cli->out, "%s is open in the browser, signed in as %s until %s\n",
			      view->page, token->user, takt_when_text(token->expires_ms, text));
	} else {
		takt_str_addf(&cli->out, "%s\n", link);
		add_tunnel(cli, view->page);
	}
	explicit_bzero(link, sizeof(link));
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_tokens_view known = {.count = 0}, made = {.count = 0};
	struct takt_token_request request;
	int rc = read_request(cli, &request, err);

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = takt_client_tokens(cli->client, &known, err);
	if (rc == 0)
		rc = check_page(&known, err);
	if (rc == 0)
		rc = make(cli, &request, &made, err);
	if (rc == 0) {
		forget_old(cli, made.tokens[0].uid);
		tell(cli, &made);
	}
	takt_tokens_view_fini(&known);
	takt_tokens_view_fini(&made);
	return rc;
}

static const struct takt_option options[] = {
	{"print", 'p', NULL, "print the link, open no browser"},
	{"no-open", 0, NULL, "the same"},
	{"read", 'r', NULL, "whoever has the link may look, not act"},
	{"days", 0, "N", "how long it counts (1)"},
	{"user", 0, "USER", "for this account; for administrators"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt web", "the page in the browser, signed in"},
	{"takt web --print", "a link alone, to be opened in a browser of one's own"},
	{"takt web --read --days 30 --print", "one for a screen on the wall"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"69", "there is no takt, or it serves no page (web_listen)"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_web = {
	.name = "web",
	.summary = "open the web page, signed in",
	.usage = "[--print] [--read] [--days N] [--user USER]",
	.about = "Makes a token and opens the page with it in the browser, where there is a "
		 "display; "
		 "for root, without a display and with --print it prints the link instead. Whoever "
		 "has "
		 "the link acts as you until it expires: it is a password. It is shown to no other "
		 "user, in no list of processes and in no log; the page takes it out of its "
		 "address.\n"
		 "Of one account the newest eight such links count. 'takt token list' shows them, "
		 "'takt token revoke ID' ends one.\n"
		 "The page is there where web_listen is set. With sudo the link is for who has "
		 "typed "
		 "it.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.run = run,
};

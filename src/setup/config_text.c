/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration that follows from the answers. What an administrator has set besides stays. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "setup/setup.h"

static const char head[] =
	"# Written by takt init. Every setting, explained: takt serve --print-config.\n";
static const char *const ours[] = {"users",	      "manage",		"set_clocks",
				   "web_listen",      "metrics_listen", "metrics_tls",
				   "tls_certificate", "tls_key",	NULL};

static bool is_ours(const char *line, size_t len)
{
	size_t key;

	line += strspn(line, " \t");
	key = strcspn(line, " \t=\n");
	for (size_t i = 0; ours[i]; i++)
		if (strlen(ours[i]) == key && strncmp(line, ours[i], key) == 0)
			return true;
	return len > 1 && strncmp(line, head, len) == 0;
}

static void add_others(const char *text, struct takt_str *out)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		len += text[len] == '\n';
		if (!is_ours(text, len)) {
			takt_str_addn(out, text, len);
			if (text[len - 1] != '\n')
				takt_str_add(out, "\n");
		}
		text += len;
	}
}

static void add_web(const struct takt_setup_answers *answers, struct takt_str *out)
{
	const char *web = answers->web;
	bool off = strcmp(web, "off") == 0, local = strcmp(web, "local") == 0;

	if (off || local) {
		takt_str_addf(out, "web_listen = %s\nmetrics_listen = %s\n",
			      off ? "off" : "127.0.0.1:9832", off ? "off" : "auto");
	} else {
		takt_str_addf(out, "web_listen = %s\nmetrics_listen = %.*s:%d\n", web,
			      (int)(strrchr(web, ':') - web), web, TAKT_SETUP_METRICS_PORT);
		if (answers->tls_certificate[0])
			takt_str_add(out, "metrics_tls = yes\n");
	}
	if (answers->tls_certificate[0])
		takt_str_addf(out, "tls_certificate = %s\ntls_key = %s\n", answers->tls_certificate,
			      answers->tls_key);
}

int takt_setup_config_text(const struct takt_setup_place *place,
			   const struct takt_setup_machine *machine,
			   const struct takt_setup_answers *answers, const char *earlier,
			   struct takt_str *ret, struct takt_err *err)
{
	struct takt_config config;
	int rc;

	takt_config_init(&config);
	rc = takt_config_parse(&config, earlier, strlen(earlier), "the configuration that is there",
			       err);
	if (rc < 0)
		return rc;
	takt_str_add(ret, head);
	add_others(earlier, ret);
	takt_str_addf(ret, "users = %s\n", place->who == TAKT_SETUP_ALL ? "all" : "own");
	if (answers->observe)
		takt_str_add(ret, "manage = never\n");
	else if (machine->manager[0])
		takt_str_add(ret, "manage = always\n");
	if (place->who == TAKT_SETUP_ALL)
		takt_str_addf(ret, "set_clocks = %s\n", answers->clocks ? "yes" : "no");
	add_web(answers, ret);
	if (ret->rc < 0)
		return takt_err_set(err, ret->rc, "no memory for the configuration");
	takt_config_init(&config);
	return takt_config_parse(&config, takt_str_text(ret), ret->len, "the new configuration",
				 err);
}

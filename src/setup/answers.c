/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as people type them. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "setup/setup.h"

enum {
	MAX_HOST = 200,
};

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

int takt_setup_read_who(const char *text, enum takt_setup_who *ret, struct takt_err *err)
{
	static const char *const me[] = {"me", "own", "only me", "m", NULL};
	static const char *const all[] = {"all", "all users", "everybody", "a", NULL};

	if (!is_one_of(text, me) && !is_one_of(text, all))
		return takt_err_set(err, -TAKT_E_USAGE, "users is me or all, not '%.40s'", text);
	*ret = is_one_of(text, all) ? TAKT_SETUP_ALL : TAKT_SETUP_ME;
	return 0;
}

int takt_setup_read_yes(const char *what, const char *text, bool *ret, struct takt_err *err)
{
	static const char *const yes[] = {"yes", "y", NULL};
	static const char *const no[] = {"no", "n", NULL};

	if (!is_one_of(text, yes) && !is_one_of(text, no))
		return takt_err_set(err, -TAKT_E_USAGE, "%s is yes or no, not '%.40s'", what, text);
	*ret = is_one_of(text, yes);
	return 0;
}

static bool is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
	       strncmp(host, "127.", 4) == 0;
}

static bool is_host(const char *host, bool bracketed)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
	struct in6_addr six;
	struct in_addr four;

	if (bracketed)
		return inet_pton(AF_INET6, host, &six) == 1;
	/* Digits and dots alone are to be an address. */
	if (host[strspn(host, "0123456789.")] == '\0')
		return inet_pton(AF_INET, host, &four) == 1;
	return host[strspn(host, plain)] == '\0';
}

/* "ADDRESS[:PORT]" or "[ADDRESS6][:PORT]" */
static bool split(const char *text, char host[MAX_HOST], unsigned *ret_port, bool *ret_bracketed)
{
	const char *port = NULL, *end;
	unsigned long long number = TAKT_SETUP_WEB_PORT;

	*ret_bracketed = text[0] == '[';
	end = *ret_bracketed ? strchr(text, ']') : strchr(text, ':');
	if (*ret_bracketed && !end)
		return false;
	if (*ret_bracketed)
		port = end[1] ? end + 1 : NULL;
	else
		port = end;
	text += *ret_bracketed;
	if (!end)
		end = text + strlen(text);
	if (end == text || end - text >= MAX_HOST || (port && port[0] != ':'))
		return false;
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = '\0';
	if (port && takt_parse_u64(port + 1, 1, 65535, &number) < 0)
		return false;
	*ret_port = (unsigned)number;
	return is_host(host, *ret_bracketed);
}

int takt_setup_read_web(const char *text, struct takt_setup_answers *answers, struct takt_err *err)
{
	static const char *const off[] = {"off", "nowhere", "none", "no", NULL};
	static const char *const local[] = {"local", "this machine", "here", NULL};
	char host[MAX_HOST];
	bool bracketed;
	unsigned port;

	if (is_one_of(text, off) || is_one_of(text, local)) {
		takt_strcpy(answers->web, sizeof(answers->web),
			    is_one_of(text, off) ? "off" : "local");
		return 0;
	}
	if (!split(text, host, &port, &bracketed))
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"web is off (nowhere), local (this machine) or an address such as "
			"192.0.2.7:%d, not '%.60s'",
			TAKT_SETUP_WEB_PORT, text);
	if (port == TAKT_SETUP_METRICS_PORT)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "web: port %u is that of the metrics; name another", port);
	if (!is_loopback(host) && (!answers->tls_certificate[0] || !answers->tls_key[0]))
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"web: '%.60s' can be reached by other machines, for which takt "
			"serves over HTTPS alone: --tls-certificate and --tls-key name its "
			"files; or answer local",
			text);
	snprintf(answers->web, sizeof(answers->web), "%s%s%s:%u", bracketed ? "[" : "", host,
		 bracketed ? "]" : "", port);
	return 0;
}

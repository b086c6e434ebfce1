/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of takt-actuate and takt-guard. */
#include "daemon/actuate_flags.h"

#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "confine/confine.h"
#include "daemon/client_user.h"

struct flag {
	const char *name;
	const char **text;		   /* takes a text, */
	unsigned long long *number, limit; /* or a number up to limit */
	bool path;			   /* the text is an absolute path, */
	uid_t *user;			   /* or a user */
};

static int take(const struct flag *flag, const char *value, struct takt_err *err)
{
	if (!value)
		return takt_err_set(err, -TAKT_E_USAGE, "%s needs a value", flag->name);
	if (flag->number && takt_parse_u64(value, 0, flag->limit, flag->number) < 0)
		return takt_err_set(err, -TAKT_E_USAGE, "%s '%s': a number up to %llu is accepted",
				    flag->name, value, flag->limit);
	if (flag->path && value[0] != '/')
		return takt_err_set(err, -TAKT_E_USAGE, "%s '%s': the path must begin with /",
				    flag->name, value);
	if (flag->text)
		*flag->text = value;
	return flag->user ? takt_client_user(value, flag->user, err) : 0;
}

static const struct flag *find(const struct flag *flags, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(flags[i].name, name) == 0)
			return &flags[i];
	}
	return NULL;
}

int takt_actuate_flags_parse(int argc, char **argv, struct takt_actuate_flags *ret,
			     struct takt_err *err)
{
	const unsigned long long none = 1u << 30;
	unsigned long long listen_fd = none, watch_fd = none, deadline_ms = 2000;
	const char *driver_calls = "listed", *sets = "asked";
	struct takt_actuate_flags made = {
		.config = {.sys = takt_sys_real(), .baseline_path = "", .client_uid = getuid()}};
	const struct flag table[] = {
		{"--socket", &made.socket_path, NULL, 0, true, NULL},
		{"--journal", &made.config.journal_path, NULL, 0, true, NULL},
		{"--lock", &made.config.lock_path, NULL, 0, true, NULL},
		{"--guard", &made.config.guard_path, NULL, 0, true, NULL},
		{"--baseline", &made.config.baseline_path, NULL, 0, true, NULL},
		{"--declared", &made.config.declared_path, NULL, 0, true, NULL},
		{"--declare", &made.config.declare, NULL, 0, true, NULL},
		{"--nvml", &made.config.nvml_path, NULL, 0, true, NULL},
		{"--sysfs", &made.config.sysfs_root, NULL, 0, true, NULL},
		{"--listen-fd", NULL, &listen_fd, 65535, false, NULL},
		{"--watch-fd", NULL, &watch_fd, 65535, false, NULL},
		{"--client-uid", NULL, NULL, 0, false, &made.config.client_uid},
		{"--deadline-ms", NULL, &deadline_ms, 600000, false, NULL},
		{"--driver-calls", &driver_calls, NULL, 0, false, NULL},
		{"--sets", &sets, NULL, 0, false, NULL},
	};
	const struct flag *flag;
	int rc = 0;

	for (int i = 1; rc == 0 && !made.help && i < argc; i += 2) {
		made.help = strcmp(argv[i], "--help") == 0;
		flag = find(table, TAKT_ARRAY_LEN(table), argv[i]);
		if (!flag && !made.help)
			return takt_err_set(err, -TAKT_E_USAGE, "'%s' is no flag (--help)",
					    argv[i]);
		rc = flag ? take(flag, argv[i + 1], err) : 0;
	}
	if (rc == 0 && !made.help && (!made.config.journal_path || !made.config.lock_path))
		rc = takt_err_set(err, -TAKT_E_USAGE, "--journal and --lock are needed");
	made.config.any_call = strcmp(driver_calls, "any") == 0;
	if (rc == 0 && !made.config.any_call && strcmp(driver_calls, "listed") != 0)
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "--driver-calls '%s': listed and any are accepted", driver_calls);
	made.config.sets_nothing = strcmp(sets, "none") == 0;
	if (rc == 0 && !made.config.sets_nothing && strcmp(sets, "asked") != 0)
		rc = takt_err_set(err, -TAKT_E_USAGE, "--sets '%s': asked and none are accepted",
				  sets);
	if (rc == 0 && made.config.declare && !made.config.declared_path)
		rc = takt_err_set(err, -TAKT_E_USAGE, "--declare needs --declared");
	if (rc < 0)
		return rc;
	made.config.listen_fd = listen_fd == none ? -1 : (int)listen_fd;
	made.config.stop_fd = -1;
	made.watch_fd = watch_fd == none ? -1 : (int)watch_fd;
	made.config.call_deadline_ns = deadline_ms * TAKT_NS_PER_MS;
	*ret = made;
	return 0;
}

void takt_actuate_tell_refusals(const char *program)
{
	takt_confine_tell(STDERR_FILENO, program,
			  "; if the driver needs it, driver_calls = any lets it have every call");
}

int takt_actuate_confine(const struct takt_actuate_flags *flags, bool guard, struct takt_err *err)
{
	enum takt_confined who = guard ? TAKT_CONFINED_GUARD : TAKT_CONFINED_ACTUATE;
	int rc = takt_confine_rights(who, err);

	if (rc < 0 || flags->config.any_call)
		return rc;
	rc = takt_confine_calls(who, err);
	return rc < 0 ? takt_err_set(err, rc, "%s (driver_calls = any goes without)", err->msg) : 0;
}

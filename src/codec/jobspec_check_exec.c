/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel can execute: execve takes no text over 128 KiB, and of all arguments and the
 * environment with their pointers a quarter of the stack's limit, 2 MiB as Linux comes. Said at
 * once, nobody waits in the queue for E2BIG. Not part of the check of every description: one on
 * record from before is read, and its start says the same.
 */
#include <string.h>

#include "codec/jobspec_impl.h"

enum {
	MAX_TEXT = 128 * 1024 - 1,  /* bytes without the NUL: MAX_ARG_STRLEN */
	MAX_EXEC = 2 * 1024 * 1024, /* a quarter of 8 MiB */
	ADDED = 64 * 1024,	    /* what takt adds at most: variables, a runtime's words */
};

/* Adds what it takes to *total. */
static int check_list(const char *field, char *const *texts, size_t *total, struct takt_err *err)
{
	for (size_t i = 0; texts && texts[i]; i++) {
		size_t len = strlen(texts[i]);

		if (len > MAX_TEXT)
			return takt_err_set(err, -TAKT_E_LIMIT,
					    "field '%s[%zu]' has %zu bytes; the kernel executes "
					    "nothing with a text of over %d: put it into a file",
					    field, i, len, MAX_TEXT);
		*total += len + 1 + sizeof(char *);
	}
	return 0;
}

static int check_total(const char *fields, size_t total, struct takt_err *err)
{
	if (total <= MAX_EXEC - ADDED)
		return 0;
	return takt_err_set(err, -TAKT_E_LIMIT,
			    "%s and 'env' together take %zu bytes; the kernel executes nothing "
			    "with over %d: put them into a file",
			    fields, total, MAX_EXEC - ADDED);
}

int takt_jobspec_check_exec(const struct takt_jobspec *spec, struct takt_err *err)
{
	char *const hook[] = {spec->hook, NULL};
	size_t env = 0, command = 0, prefetch = 0, of_hook = 0;
	int rc = check_list("env", spec->env, &env, err);

	if (rc == 0)
		rc = check_list("argv", spec->argv, &command, err);
	if (rc == 0)
		rc = check_list("container_args", spec->container_args, &command, err);
	if (rc == 0)
		rc = check_list("prefetch", spec->prefetch, &prefetch, err);
	if (rc == 0)
		rc = check_list("hook", hook, &of_hook, err);
	if (rc == 0)
		rc = check_total("'argv'", env + command, err);
	if (rc == 0)
		rc = check_total("'prefetch'", env + prefetch, err);
	return rc < 0 ? rc : check_total("'hook'", env + of_hook, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a governor is named where a person may give it parameters: "ladder", or
 * "fixed:sm_mhz=1200,power_mw=200000". Job descriptions, settings and the rules of tenants hold
 * such a text; which governors and parameters there are is for clock/governor_choice.h to say.
 */
#ifndef TAKT_BASE_POLICY_TEXT_H
#define TAKT_BASE_POLICY_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum {
	TAKT_POLICY_TEXT = 128, /* bytes, with the NUL */
	TAKT_POLICY_NAME = 32,
	TAKT_POLICY_PARAM = 64,
	TAKT_POLICY_MAX_PARAMS = 16,
};

/* What is accepted, for messages: "... must be " TAKT_POLICY_FORM ", not '...'". */
#define TAKT_POLICY_FORM                                                              \
	"the name of a governor such as assured, or one with its parameters such as " \
	"fixed:sm_mhz=1200"

struct takt_policy_param {
	char name[TAKT_POLICY_PARAM]; /* printable, without blanks */
	int64_t value;
};

struct takt_policy_text {
	char name[TAKT_POLICY_NAME]; /* a-z, 0-9 and '-' */
	struct takt_policy_param params[TAKT_POLICY_MAX_PARAMS];
	size_t param_count;
};

/* -EINVAL: it is none of that form, or longer than TAKT_POLICY_TEXT. *ret is left alone then. */
int takt_policy_text_parse(const char *text, struct takt_policy_text *ret);

/* "NAME=NUMBER", of `len` bytes; as above. */
int takt_policy_param_parse(const char *text, size_t len, struct takt_policy_param *ret);

#endif

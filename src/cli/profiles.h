/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takt tune has found for a job name, kept for the user: profiles.json in takt's state folder
 * of his ($XDG_STATE_HOME/takt, else ~/.local/state/takt), replaced whole and synced. A user's
 * alone, so no daemon has to trust it: takt run and submit read it when --clock profile asks.
 */
#ifndef TAKT_CLI_PROFILES_H
#define TAKT_CLI_PROFILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sys.h"

enum {
	TAKT_PROFILES_MAX = 1000,
};

struct takt_profile {
	char name[65];		 /* of the job */
	char gpu_name[96];	 /* the board that it was measured on */
	uint32_t sm_mhz;	 /* at most */
	uint32_t power_limit_mw; /* 0 = as it is */
	/* Against the highest clock, thousandths; errors are half of the 95 % interval, 0 = not
	 * known. */
	int32_t slowdown_permille, slowdown_error_permille, saved_permille, saved_error_permille;
	int64_t at_ms; /* wall clock, when it was measured */
	bool simulated;
};

struct takt_profiles {
	uint32_t count;
	struct takt_profile *at; /* owned */
};

/* None yet is no error. -TAKT_E_CORRUPT names the file. */
int takt_profiles_read(const struct takt_sys *sys, struct takt_profiles *ret, struct takt_err *err);
void takt_profiles_fini(struct takt_profiles *profiles);
/* In the place of one of the same name. */
int takt_profiles_keep(const struct takt_sys *sys, const struct takt_profile *profile,
		       struct takt_err *err);
/* -TAKT_E_NOT_FOUND when there is none of that name. */
int takt_profiles_find(const struct takt_sys *sys, const char *name, struct takt_profile *ret,
		       struct takt_err *err);

#endif

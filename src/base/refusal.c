/* SPDX-License-Identifier: Apache-2.0 */
#include "base/refusal.h"

struct row {
	const char *name, *by, *mend;
	enum takt_refusal_scope scope;
};

static const struct row rows[TAKT_REFUSAL_COUNT] = {
	[TAKT_REFUSAL_NONE] = {"", "", "", TAKT_REFUSED_JOB},
	[TAKT_REFUSAL_LAUNCHER] = {"launcher", "takt serve",
				   "see that takt-launch runs, of the same version as takt serve",
				   TAKT_REFUSED_ALL},
	[TAKT_REFUSAL_ISOLATION] = {"isolation", "takt-launch",
				    "give takt-launch cgroup v2, or set allow_weak_isolation = yes",
				    TAKT_REFUSED_USER},
	[TAKT_REFUSAL_USER] = {"user", "takt-launch",
			       "see the account, PAM's service takt and --min-uid of takt-launch",
			       TAKT_REFUSED_USER},
	[TAKT_REFUSAL_CGROUP] = {"cgroup", "takt-launch",
				 "see the unit that keeps cgroups of jobs, and --cgroup of "
				 "takt-launch",
				 TAKT_REFUSED_JOB},
	[TAKT_REFUSAL_ATTEMPT] = {"attempt", "takt serve", "see its description and state_dir",
				  TAKT_REFUSED_JOB},
	[TAKT_REFUSAL_SHIM] = {"shim", "takt-shim", "the log of its attempt may say more",
			       TAKT_REFUSED_JOB},
};

static const struct row *row_of(enum takt_refusal refusal)
{
	return &rows[(unsigned int)refusal < TAKT_REFUSAL_COUNT ? refusal : TAKT_REFUSAL_NONE];
}

const char *takt_refusal_name(enum takt_refusal refusal)
{
	return row_of(refusal)->name;
}

const char *takt_refusal_by(enum takt_refusal refusal)
{
	return row_of(refusal)->by;
}

const char *takt_refusal_mend(enum takt_refusal refusal)
{
	return row_of(refusal)->mend;
}

enum takt_refusal_scope takt_refusal_scope(enum takt_refusal refusal)
{
	return row_of(refusal)->scope;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Submitting. */
#include "cli/placement.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/job_options.h"
#include "cli/profiles.h"

/* Looks at once, then after 10, 20, 40, 60, 70 ms: 200 in all. */
static const unsigned looks_ms[] = {0, 10, 20, 40, 60, 70};

/* Neither on its way nor with a reason: the scheduler has not looked at it yet. */
static bool is_undecided(const struct takt_job_view *job)
{
	return (strcmp(job->state, "waiting") == 0 && !job->why[0]) ||
	       strcmp(job->state, "starting") == 0;
}

static int watch(struct takt_cli *cli, struct takt_job_view *job, struct takt_err *err)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(looks_ms) && is_undecided(job); i++) {
		struct timespec pause = {.tv_nsec = (long)looks_ms[i] * 1000000};
		int rc;

		nanosleep(&pause, NULL);
		rc = takt_client_job(cli->client, job->id, job, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* What was measured on one board says nothing of another. */
static int check_profile(struct takt_cli *cli, const struct takt_jobspec *spec,
			 struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_clock_view *clocks = takt_zalloc(sizeof(*clocks));
	const char *wish = takt_cli_value(cli, "clock");
	struct takt_profile profile;
	int rc;

	if (!wish || strcmp(wish, "profile") != 0)
		return 0;
	rc = clocks ? takt_profiles_find(takt_sys_real(), spec->name, &profile, err)
		    : takt_err_set(err, -ENOMEM, "no memory for the clocks");
	if (rc == 0)
		rc = takt_client_clocks(cli->client, clocks, err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < clocks->gpu_count; i++)
		if (strcmp(clocks->gpu[i].name, profile.gpu_name) == 0 &&
		    clocks->simulated == profile.simulated)
			return 0;
	return takt_err_set(err, -TAKT_E_UNSUPPORTED,
			    "the profile of '%.64s' was measured on %s%.80s, which is not here",
			    spec->name, profile.simulated ? "SIMULATED " : "", profile.gpu_name);
}

int takt_place_job(struct takt_cli *cli, struct takt_job_view *ret, struct takt_err *err)
{
	struct takt_jobspec spec;
	int rc = takt_job_options_read(cli, &spec, err);

	if (rc == 0) {
		rc = takt_job_options_find_command(&spec, err);
		if (rc > 0)
			takt_cli_complain(err);
	}
	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = check_profile(cli, &spec, err);
	if (rc == 0)
		rc = takt_client_submit(cli->client, &spec, ret, err);
	takt_jobspec_fini(&spec);
	return rc == 0 ? watch(cli, ret, err) : rc;
}

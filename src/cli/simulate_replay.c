/* SPDX-License-Identifier: Apache-2.0 */
/* takt simulate --replay: decisions of a daemon, made again. */
#include <stdio.h>
#include <sys/stat.h>

#include "cli/simulate.h"
#include "codec/json.h"
#include "sim/replay.h"

enum {
	EXIT_DIFFERS = 1,
	MAX_DECISIONS = 4000,
};

struct totals {
	struct takt_cli *cli;
	uint64_t decisions, placements, differing;
	int rc;
	struct takt_err *err;
};

static void add_json(struct takt_cli *cli, uint64_t version, const struct takt_replay *replay,
		     const struct takt_str *differences, bool first)
{
	takt_str_addf(&cli->out,
		      "%s\n{\"version\":%llu,\"placements\":%llu,\"waits\":%llu,"
		      "\"differing_lines\":%llu,\"differences\":",
		      first ? "" : ",", (unsigned long long)version,
		      (unsigned long long)replay->placements, (unsigned long long)replay->waits,
		      (unsigned long long)replay->differing);
	takt_json_add_text(&cli->out, takt_str_text(differences));
	takt_str_add(&cli->out, "}");
}

static void show(struct totals *totals, uint64_t version, const struct takt_replay *replay,
		 const struct takt_str *differences)
{
	struct takt_cli *cli = totals->cli;

	if (cli->json)
		add_json(cli, version, replay, differences, totals->decisions == 0);
	else if (replay->differing)
		takt_str_addf(&cli->out, "decision at version %llu differs (- then, + now):\n%s",
			      (unsigned long long)version, takt_str_text(differences));
	totals->decisions++;
	totals->placements += replay->placements;
	totals->differing += replay->differing > 0;
}

static int again(void *ctx, uint64_t version, const char *snapshot, const char *plan)
{
	struct totals *totals = ctx;
	TAKT_CLEANUP(strp) struct takt_str differences = TAKT_STR(TAKT_REPLAY_MAX_BYTES);
	struct takt_replay replay;

	totals->rc = takt_replay(snapshot, plan, &replay, &differences, totals->err);
	if (totals->rc < 0)
		return takt_err_wrap(totals->err, totals->rc, "decision at version %llu",
				     (unsigned long long)version);
	show(totals, version, &replay, &differences);
	return 0;
}

static int replay_folder(struct totals *totals, const char *path, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str differences = TAKT_STR(TAKT_REPLAY_MAX_BYTES);
	struct takt_replay replay;
	int rc = takt_replay_folder(path, &replay, &differences, err);

	if (rc == 0)
		show(totals, 0, &replay, &differences);
	return rc;
}

static int replay_all(struct totals *totals, const char *path, struct takt_err *err)
{
	const struct takt_cli_extra *extra = totals->cli->extra;
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return replay_folder(totals, path, err);
	if (!extra || !extra->decisions)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "this takt was built without the store");
	return extra->decisions(path, MAX_DECISIONS, again, totals, err);
}

int takt_simulate_replay(struct takt_cli *cli, struct takt_err *err)
{
	struct totals totals = {.cli = cli, .err = err};
	const char *path = takt_cli_value(cli, "replay");
	int rc;

	if (cli->json)
		takt_str_add(&cli->out,
			     "{\"format\":\"takt-replay\",\"version\":1,\"decisions\":[");
	rc = replay_all(&totals, path, err);
	if (cli->json)
		takt_str_addf(&cli->out, "\n],\"differing\":%llu}\n",
			      (unsigned long long)totals.differing);
	else if (rc == 0)
		takt_str_addf(&cli->out,
			      "%llu decisions with %llu placements made again, %llu came out "
			      "differently\n",
			      (unsigned long long)totals.decisions,
			      (unsigned long long)totals.placements,
			      (unsigned long long)totals.differing);
	if (rc < 0)
		return rc;
	return totals.differing ? EXIT_DIFFERS : 0;
}

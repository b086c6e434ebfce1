/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions again, see the header. */
#include "sim/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "codec/snapshot.h"
#include "sched/sched.h"

enum {
	SHOWN = 100
};

/* Both plans as text with the same version. */
static int texts_of(const char *snapshot, const char *saved, struct takt_replay *ret,
		    struct takt_str *then, struct takt_str *now, struct takt_err *err)
{
	struct takt_sched_settings settings;
	struct takt_sched_setup setup;
	struct takt_plan plan = {0}, old = {0};
	size_t len = strlen(snapshot);
	struct takt_sched *sched;
	uint64_t now_ns = 0;
	int rc = takt_events_settings(snapshot, len, &settings, err);

	if (rc == 0)
		rc = takt_sched_setup_init(&settings, &setup, err);
	if (rc == 0)
		rc = takt_snapshot_load(snapshot, len, &setup.sched, &sched, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "snapshot");
	(void)takt_events_now_ns(snapshot, len, &now_ns, NULL); /* 0 where it says none */
	rc = takt_sched_run(sched, now_ns, 0, &plan, err);
	if (rc == 0) {
		rc = takt_plan_from_json(saved, strlen(saved), &old, err);
		if (rc < 0)
			takt_err_wrap(err, rc, "plan");
	}
	if (rc == 0) {
		ret->placements = plan.placement_count;
		ret->waits = plan.wait_count;
		old.version = plan.version;
		rc = takt_plan_to_json(&old, then, err);
	}
	if (rc == 0)
		rc = takt_plan_to_json(&plan, now, err);
	takt_plan_fini(&old);
	takt_plan_fini(&plan);
	takt_sched_free(sched);
	return rc;
}

/* Whether the line at `line` is one of `text`. */
static bool has_line(const char *text, const char *line, size_t len)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (n == len && memcmp(text, line, len) == 0)
			return true;
		text += n + (text[n] == '\n');
	}
	return false;
}

/* Lines of one text that the other has not. A comma at the end only says that more follow. */
static void add_missing(const char *from, const char *in, char sign, struct takt_replay *replay,
			struct takt_str *out)
{
	while (*from) {
		size_t n = strcspn(from, "\n");
		size_t len = n && from[n - 1] == ',' ? n - 1 : n;

		if (!has_line(in, from, len) && !has_line(in, from, n)) {
			if (replay->differing++ < SHOWN)
				takt_str_addf(out, "%c %.*s\n", sign, (int)len, from);
		}
		from += n + (from[n] == '\n');
	}
}

int takt_replay(const char *snapshot, const char *plan, struct takt_replay *ret,
		struct takt_str *differences, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str then = TAKT_STR(TAKT_REPLAY_MAX_BYTES);
	TAKT_CLEANUP(strp) struct takt_str now = TAKT_STR(TAKT_REPLAY_MAX_BYTES);
	struct takt_replay replay = {0};
	int rc = texts_of(snapshot, plan, &replay, &then, &now, err);

	if (rc < 0)
		return rc;
	if (strcmp(takt_str_text(&then), takt_str_text(&now)) != 0) {
		add_missing(takt_str_text(&then), takt_str_text(&now), '-', &replay, differences);
		add_missing(takt_str_text(&now), takt_str_text(&then), '+', &replay, differences);
		/* The same lines in another order. */
		if (replay.differing == 0) {
			replay.differing = 1;
			takt_str_add(differences, "the same lines, in another order\n");
		}
	}
	*ret = replay;
	return 0;
}

static int read_file(int dir, const char *folder, const char *name, char **ret,
		     struct takt_err *err)
{
	size_t len;
	int rc = takt_file_read(takt_sys_real(), dir, name, TAKT_REPLAY_MAX_BYTES, ret, &len, err);

	return rc < 0 ? takt_err_wrap(err, rc, "'%s'", folder) : 0;
}

int takt_replay_folder(const char *path, struct takt_replay *ret, struct takt_str *differences,
		       struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *snapshot = NULL;
	TAKT_CLEANUP(freep) char *plan = NULL;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (dir < 0)
		return takt_err_set(err, -errno, "open '%s'", path);
	rc = faccessat(dir, "config.json", F_OK, 0) == 0
		     ? takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "'%s' has a config.json: decisions are replayed as a daemon "
				    "makes them",
				    path)
		     : read_file(dir, path, "events.jsonl", &snapshot, err);
	rc = rc < 0 ? rc : read_file(dir, path, "plan.json", &plan, err);
	close(dir);
	return rc < 0 ? rc : takt_replay(snapshot, plan, ret, differences, err);
}

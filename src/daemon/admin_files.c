/* SPDX-License-Identifier: Apache-2.0 */
/* takt admin: the daemon's files, with or without a daemon. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/admin.h"
#include "daemon/backups.h"
#include "daemon/state_owner.h"
#include "store/store_admin.h"
#include "takt_build.h"

enum {
	KEY_BYTES = 32,
	MAX_FACTS = 2 * TAKT_CONFIG_MAX_KEYS + 8,
};

/* The newest that is sound, by its path; the others are passed over, and said. */
static int newest_good(const char *state_dir, char ret[PATH_MAX], int64_t *ret_at_s,
		       takt_admin_say *say, void *ctx, struct takt_err *err)
{
	const struct takt_store_file_look nothing = {.ctx = NULL};
	struct takt_backups backups;
	struct takt_err why = {0};
	int rc = takt_backups_read(state_dir, &backups, err);
	uint64_t jobs;
	int64_t schema;
	bool found = false;

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < backups.list.len && !found; i++) {
		snprintf(ret, PATH_MAX, "%s/backups/%s", state_dir, backups.list.at[i].name);
		*ret_at_s = backups.list.at[i].at_s;
		found = takt_store_file_check(ret, &schema, &jobs, &nothing, &why) == 0;
		if (!found)
			say(ctx, &(struct takt_admin_line){
					 .about = "backup not used", .found = why.msg, .todo = ""});
	}
	takt_backups_fini(&backups);
	return found ? 0
		     : takt_err_set(err, -ENOENT,
				    "no good backup in '%s/backups'; name one: takt admin restore "
				    "FILE",
				    state_dir);
}

/* How old it is, and what nobody can know from it. */
static void say_restored(const char *db, const char *file, int64_t at_s, takt_admin_say *say,
			 void *ctx)
{
	int64_t old_s = (int64_t)time(NULL) - at_s;
	char found[2 * PATH_MAX + 80];
	struct takt_admin_line line = {
		.about = "restore",
		.found = found,
		.todo = "what was handed in, cancelled or ended since is not in it: compare with "
			"takt jobs and takt queue, and let go of waiting jobs with takt release"};

	if (at_s)
		snprintf(found, sizeof(found), "%s is what it was %lld h %lld min ago (%s)", db,
			 (long long)(old_s / 3600), (long long)(old_s / 60 % 60), file);
	else
		snprintf(found, sizeof(found), "%s is what %s was", db, file);
	say(ctx, &line);
}

/* Puts a backup in place; what runs is adopted by the next daemon. */
static int restore(const char *db, const char *jobs_dir, const char *file, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_store_alive *alive = NULL;
	struct takt_admin_attempts attempts;
	size_t count = 0;
	int rc = takt_admin_attempts_read(jobs_dir, &attempts, err);

	if (rc == 0 && !(alive = takt_calloc(attempts.list.len + 1, sizeof(*alive))))
		rc = takt_err_set(err, -ENOMEM, "no memory for the attempts");
	TAKT_VEC_EACH (found, &attempts.list)
		if (alive && found->status.state == TAKT_ATTEMPT_ALIVE)
			alive[count++] = (struct takt_store_alive){found->job_id, found->attempt};
	takt_admin_attempts_fini(&attempts);
	return rc < 0 ? rc : takt_store_file_restore(db, file, alive, count, err);
}

static int restore_one(const struct takt_config *config, const char *db, const char *jobs_dir,
		       const char *file, takt_admin_say *say, void *ctx, struct takt_err *err)
{
	char newest[PATH_MAX];
	int64_t at_s = 0;
	struct stat st;
	int rc = file ? 0 : newest_good(config->state_dir, newest, &at_s, say, ctx, err);

	if (file && stat(file, &st) == 0)
		at_s = st.st_mtim.tv_sec;
	if (rc == 0)
		rc = restore(db, jobs_dir, file ? file : newest, err);
	if (rc == 0)
		say_restored(db, file ? file : newest, at_s, say, ctx);
	return rc;
}

/* The key of this machine's pseudonyms, so that two reports name alike what is the same. */
static int read_key(const char *state_dir, char ret[2 * KEY_BYTES + 1], struct takt_err *err)
{
	uint8_t bytes[KEY_BYTES];
	char path[PATH_MAX];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/report.key", state_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return takt_err_set(err, -errno, "open '%s'", path);
	n = read(fd, ret, 2 * KEY_BYTES);
	if (n != 2 * KEY_BYTES) {
		if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
			close(fd);
			return takt_err_set(err, -EIO, "random numbers for '%s'", path);
		}
		for (size_t i = 0; i < KEY_BYTES; i++)
			snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
		n = pwrite(fd, ret, 2 * KEY_BYTES, 0);
	}
	ret[2 * KEY_BYTES] = '\0';
	close(fd);
	return n == 2 * KEY_BYTES ? 0 : takt_err_set(err, -EIO, "write '%s'", path);
}

/* Settings that are numbers or one of a few words are shown, what else was typed is not. */
static bool is_plain(const char *key, const char *value)
{
	static const char *const typed[] = {"admin_group", "metrics_hosts", "metrics_listen",
					    "web_listen"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(typed); i++)
		if (strcmp(typed[i], key) == 0)
			return false;
	return !strchr(value, '/');
}

/* "key = value" lines of the text become pairs; the text is cut in place. */
static size_t config_facts(char *text, const char *key, char shown[][40], const char **ret)
{
	size_t n = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line && n + 4 < MAX_FACTS;
	     line = strtok_r(NULL, "\n", &save)) {
		char *equals = strstr(line, " = ");

		if (line[0] == '#' || !equals)
			continue;
		*equals = '\0';
		ret[n] = line;
		ret[n + 1] = equals + 3;
		if (!is_plain(line, equals + 3)) {
			takt_pseudonym(key, "text", equals + 3, shown[n / 2]);
			ret[n + 1] = shown[n / 2];
		}
		n += 2;
	}
	return n;
}

static int report(const struct takt_config *config, const char *db, const char *file,
		  struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(256 * 1024);
	char key[2 * KEY_BYTES + 1], shown[MAX_FACTS][40];
	const char *facts[MAX_FACTS + 4];
	size_t n;
	int rc = read_key(config->state_dir, key, err);

	if (rc == 0)
		rc = takt_config_print(config, &text);
	if (rc < 0)
		return rc;
	n = config_facts(text.s, key, shown, facts);
	facts[n++] = "takt_version";
	facts[n++] = TAKT_VERSION;
	facts[n] = NULL;
	return takt_store_file_report(db, file, key, facts, err);
}

int takt_admin_as_owner(const char *state_dir, struct takt_admin_owner *ret, struct takt_err *err)
{
	struct stat st;

	*ret = (struct takt_admin_owner){.changed = false};
	if (stat(state_dir, &st) < 0)
		return takt_err_set(err, -errno, "read '%s'", state_dir);
	if (getuid() != 0 || st.st_uid == 0)
		return 0;
	*ret = (struct takt_admin_owner){st.st_uid, st.st_gid, true};
	if (setgroups(0, NULL) == 0 && setegid(st.st_gid) == 0 && seteuid(st.st_uid) == 0)
		return 0;
	return takt_err_set(err, -errno, "become user %u, whose '%s' is", (unsigned int)st.st_uid,
			    state_dir);
}

void takt_admin_as_before(const struct takt_admin_owner *owner)
{
	if (owner->changed && (seteuid(0) < 0 || setegid(0) < 0))
		abort();
}

/* Root becomes whose state_dir it is: the daemon goes on with what is made there, and root follows
 * no name that its account has planted. For good, and with all of his groups gone. */
static int become_owner(const char *state_dir, uid_t *ret, struct takt_err *err)
{
	struct stat st;

	if (stat(state_dir, &st) < 0)
		return takt_err_set(err, -errno, "read '%s'", state_dir);
	*ret = st.st_uid;
	if (st.st_uid == getuid())
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
	    setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
		return takt_err_set(err, -errno, "become user %u, whose '%s' is",
				    (unsigned int)st.st_uid, state_dir);
	return 0;
}

/* A copy that root makes of an account's database is the account's, as which it is restored; it is
 * made by root, where only he may write, and filled by what the account can read. */
static int back_up(const char *state_dir, const char *db, const char *file, struct takt_err *err)
{
	struct takt_admin_owner owner;
	struct takt_store_copy copy;
	int rc = takt_store_copy_make(file, &copy, err);

	if (rc < 0)
		return rc;
	rc = takt_admin_as_owner(state_dir, &owner, err);
	if (rc == 0) {
		rc = takt_store_file_backup(db, &copy, err);
		takt_admin_as_before(&owner);
	}
	if (rc == 0 && owner.changed && fchown(copy.fd, owner.uid, owner.gid) < 0)
		rc = takt_err_set(err, -errno, "give '%s' to user %u, whose state_dir is", file,
				  (unsigned int)owner.uid);
	return takt_store_copy_end(&copy, rc, err);
}

static int act(const char *action, const struct takt_config *config, const char *file,
	       takt_admin_say *say, void *ctx, struct takt_err *err)
{
	char db[PATH_MAX], jobs_dir[PATH_MAX];
	struct takt_admin_line line = {.about = action, .found = file, .todo = ""};
	int rc;

	snprintf(db, sizeof(db), "%s/takt.db", config->state_dir);
	snprintf(jobs_dir, sizeof(jobs_dir), "%s/jobs", config->state_dir);
	if (strcmp(action, "restore") == 0)
		return restore_one(config, db, jobs_dir, file, say, ctx, err);
	if (access(db, R_OK) < 0)
		return takt_err_set(err, -errno, "read '%s'", db);
	if (strcmp(action, "check") == 0)
		return takt_admin_check(config, db, say, ctx, err);
	if (strcmp(action, "backup") == 0)
		rc = back_up(config->state_dir, db, file, err);
	else
		rc = report(config, db, file, err);
	if (rc == 0)
		say(ctx, &line);
	return rc;
}

int takt_admin_files(const char *action, const struct takt_config *config, const char *file,
		     takt_admin_say *say, void *ctx, struct takt_err *err)
{
	const bool is_root = getuid() == 0;
	uid_t owner = 0;
	int rc = 0;

	if (strcmp(action, "account") == 0)
		return takt_state_give(takt_sys_real(), config, file, err);
	if (is_root && (strcmp(action, "restore") == 0 || strcmp(action, "report") == 0))
		rc = become_owner(config->state_dir, &owner, err);
	if (rc < 0)
		return rc;
	rc = act(action, config, file, say, ctx, err);
	return rc == 0 || owner == 0 ? rc
				     : takt_err_wrap(err, rc, "as user %u, whose state_dir is",
						     (unsigned int)owner);
}

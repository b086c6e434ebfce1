/* SPDX-License-Identifier: Apache-2.0 */
/* Where takt init acts: this machine or a folder, as root or as a user. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/init.h"
#include "objects/trusted_file.h"
#include "takt_build.h"

static int find_root(struct takt_init *init, struct takt_err *err)
{
	const char *root = takt_cli_value(init->cli, "root");
	struct stat st;

	init->live = !root;
	if (!root)
		return 0;
	if (!realpath(root, init->root))
		return takt_err_set(err, -errno, "--root '%.200s'", root);
	if (stat(init->root, &st) < 0 || !S_ISDIR(st.st_mode) || strcmp(init->root, "/") == 0)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"--root '%.200s': a folder is accepted, such as that of an image", root);
	return 0;
}

/* A folder of the user's: what the environment says, else below his home. */
static int find_home(char ret[TAKT_SETUP_PATH], const char *variable, const char *below,
		     struct takt_err *err)
{
	const char *said = getenv(variable), *home = getenv("HOME");
	int n;

	if (said && said[0] == '/')
		n = snprintf(ret, TAKT_SETUP_PATH, "%s", said);
	else if (home && home[0] == '/')
		n = snprintf(ret, TAKT_SETUP_PATH, "%s/%s", strcmp(home, "/") == 0 ? "" : home,
			     below);
	else
		return takt_err_set(err, -TAKT_E_USAGE, "HOME has to name your folder, and $%s may",
				    variable);
	return n < TAKT_SETUP_PATH
		       ? 0
		       : takt_err_set(err, -ENAMETOOLONG, "the folder '%.100s...'", ret);
}

/* An installed takt has its programs in two folders, one of a build folder in one. An image will
 * have the installed one. */
static void find_programs(struct takt_init *init)
{
	char takt[PATH_MAX] = "";

	if (init->live && init->cli->extra && init->cli->extra->helper)
		init->cli->extra->helper("takt", takt, sizeof(takt));
	if (!takt[0] || strncmp(takt, TAKT_LIBEXECDIR "/", sizeof(TAKT_LIBEXECDIR)) == 0) {
		takt_strcpy(init->bindir, sizeof(init->bindir), TAKT_BINDIR);
		takt_strcpy(init->libexecdir, sizeof(init->libexecdir), TAKT_LIBEXECDIR);
		return;
	}
	*strrchr(takt, '/') = '\0';
	takt_strcpy(init->bindir, sizeof(init->bindir), takt);
	takt_strcpy(init->libexecdir, sizeof(init->libexecdir), takt);
}

int takt_init_find_place(struct takt_init *init, enum takt_setup_who who, struct takt_err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int rc = find_root(init, err);

	if (rc == 0 && who == TAKT_SETUP_ME)
		rc = find_home(init->config_home, "XDG_CONFIG_HOME", ".config", err);
	if (rc == 0 && who == TAKT_SETUP_ME)
		rc = find_home(init->state_home, "XDG_STATE_HOME", ".local/state", err);
	if (rc < 0)
		return rc;
	find_programs(init);
	takt_strcpy(init->runtime_dir, sizeof(init->runtime_dir),
		    runtime && runtime[0] == '/' ? runtime : "");
	init->place = (struct takt_setup_place){
		.root = init->root,
		.who = who,
		.config_home = init->config_home,
		.state_home = init->state_home,
		.runtime_dir = init->runtime_dir[0] ? init->runtime_dir : NULL,
		.bindir = init->bindir,
		.libexecdir = init->libexecdir,
	};
	return 0;
}

int takt_init_become_caller(struct takt_init *init, struct takt_err *err)
{
	const char *name = getenv("SUDO_USER");
	const struct passwd *user = name ? getpwnam(name) : NULL;
	char runtime[64];

	if (!user || user->pw_uid == 0)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"users me is the one who calls, and root runs no jobs: call takt "
			"init as the user whose takt it is to be, or answer all");
	if (initgroups(user->pw_name, user->pw_gid) < 0 ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
		return takt_err_set(err, -errno, "become '%s'", name);
	snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)user->pw_uid);
	if (setenv("HOME", user->pw_dir, 1) < 0 || setenv("XDG_RUNTIME_DIR", runtime, 1) < 0 ||
	    unsetenv("XDG_CONFIG_HOME") < 0 || unsetenv("XDG_STATE_HOME") < 0)
		return takt_err_set(err, -ENOMEM, "no memory for the environment of '%s'", name);
	if (access(runtime, F_OK) < 0)
		(void)unsetenv("XDG_RUNTIME_DIR");
	return takt_init_find_place(init, TAKT_SETUP_ME, err);
}

int takt_init_read_config(struct takt_init *init, struct takt_err *err)
{
	char path[TAKT_SETUP_PATH], full[2 * PATH_MAX];
	int rc;

	takt_config_init(&init->config);
	takt_setup_config_path(&init->place, path);
	snprintf(full, sizeof(full), "%s%s", init->root, path);
	rc = takt_config_load(&init->config, full, err);
	init->config_there = rc == 0;
	if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR)
		return rc;
	return takt_config_resolve(&init->config, init->place.who == TAKT_SETUP_ALL ? 0 : getuid(),
				   getenv("XDG_RUNTIME_DIR"), getenv("XDG_STATE_HOME"),
				   getenv("HOME"), err);
}

int takt_init_check_programs(const struct takt_init *init, struct takt_err *err)
{
	const char *const paths[][2] = {{init->bindir, "takt"},
					{init->libexecdir, "takt-launch"},
					{init->libexecdir, "takt-actuate"}};
	char path[PATH_MAX], real[PATH_MAX];
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(paths) && rc == 0; i++) {
		snprintf(path, sizeof(path), "%s/%s", paths[i][0], paths[i][1]);
		rc = takt_trusted_file(path, real, err);
	}
	return rc < 0 ? takt_err_wrap(
				err, rc,
				"root's units would start this takt; install it where only root "
				"writes (ninja install)")
		      : 0;
}

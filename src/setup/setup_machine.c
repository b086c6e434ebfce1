/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine is, by its files: no driver is asked, so that no GPU is woken, and an image can be
 * looked at, too. What only a running machine can tell is not known of an image. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "health/gather.h"
#include "health/rooted.h"
#include "launch/cgroup.h"
#include "launch/system_users.h"
#include "setup/setup.h"

enum {
	SMALL_FILE = 16 * 1024,
};

static bool any_of(const char *root, const char *const *paths)
{
	for (; *paths; paths++)
		if (takt_rooted_exists(root, *paths))
			return true;
	return false;
}

/* PRETTY_NAME="Debian GNU/Linux 12 (bookworm)" */
static void look_at_system(const char *root, struct takt_setup_machine *ret)
{
	static const char key[] = "PRETTY_NAME=";
	char text[4096], *at;

	if (!takt_rooted_text(root, "/etc/os-release", text, sizeof(text)))
		return;
	at = strstr(text, key);
	if (!at || (at != text && at[-1] != '\n'))
		return;
	at += sizeof(key) - 1;
	at[strcspn(at, "\n")] = '\0';
	at += strspn(at, "\"'");
	at[strcspn(at, "\"'")] = '\0';
	takt_strcpy(ret->system, sizeof(ret->system), at);
}

static void look_at_gpus(const char *root, struct takt_setup_machine *ret)
{
	TAKT_CLEANUP(freep) struct takt_doctor_facts *facts = takt_zalloc(sizeof(*facts));

	if (!facts)
		return;
	takt_gather_bus(root, facts);
	takt_gather_module(root, facts);
	ret->gpu_count = facts->pci_count;
	takt_strcpy(ret->driver, sizeof(ret->driver), facts->kernel_version);
}

static bool logs_in(const struct passwd *user, uid_t first)
{
	const char *shell = strrchr(user->pw_shell, '/');

	shell = shell ? shell + 1 : user->pw_shell;
	return takt_system_users_check(user->pw_uid, first, NULL) == 0 &&
	       strcmp(shell, "nologin") != 0 && strcmp(shell, "false") != 0;
}

static void add_user(struct takt_setup_machine *ret, const char *name)
{
	size_t len = strlen(ret->users);

	ret->user_count++;
	if (len + strlen(name) + 3 < sizeof(ret->users))
		snprintf(ret->users + len, sizeof(ret->users) - len, "%s%s", len ? ", " : "", name);
}

static void look_at_users(const char *root, struct takt_setup_machine *ret)
{
	static const char *const services[] = {"sss", "ldap", "winbind", "nis", NULL};
	char path[PATH_MAX], text[SMALL_FILE], *line;
	uid_t first = takt_system_users_below(root);
	struct passwd *user;
	FILE *file;

	snprintf(path, sizeof(path), "%s/etc/passwd", root);
	file = fopen(path, "re");
	while (file && (user = fgetpwent(file))) {
		if (logs_in(user, first))
			add_user(ret, user->pw_name);
		if (strcmp(user->pw_name, "takt") == 0)
			ret->account = true;
	}
	if (file)
		fclose(file);
	if (!root[0] && !ret->account)
		ret->account = getpwnam("takt") != NULL;
	if (!takt_rooted_text(root, "/etc/nsswitch.conf", text, sizeof(text)))
		return;
	line = strstr(text, "passwd:");
	if (line)
		line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; line && services[i]; i++)
		ret->directory = ret->directory || strstr(line, services[i]);
}

struct search {
	const char *root;
	struct takt_setup_machine *ret;
};

/* As takt serve looks for them (daemon/gpu_owner.c): a manager's processes are root's. */
static void look_at_process(void *ctx, const char *path)
{
	const struct search *search = ctx;
	char comm[32], full[PATH_MAX];
	struct stat st;

	if (search->ret->manager[0] || !takt_rooted_line(search->root, path, comm, sizeof(comm)) ||
	    (strcmp(comm, "slurmd") != 0 && strcmp(comm, "kubelet") != 0))
		return;
	snprintf(full, sizeof(full), "%s%s", search->root, path);
	if (stat(full, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()))
		snprintf(search->ret->manager, sizeof(search->ret->manager), "%s (pid %.*s)", comm,
			 (int)strspn(path + 6, "0123456789"), path + 6);
}

/* Also one that does not run now, and will. */
static void look_for_manager(const char *root, struct takt_setup_machine *ret)
{
	static const char *const slurm[] = {"/usr/sbin/slurmd", "/usr/local/sbin/slurmd",
					    "/opt/slurm/sbin/slurmd", NULL};
	static const char *const kubelet[] = {"/usr/bin/kubelet", "/usr/local/bin/kubelet",
					      "/var/lib/kubelet/config.yaml", NULL};
	struct search search = {root, ret};

	takt_rooted_glob(root, "/proc/[0-9]*/comm", look_at_process, &search);
	if (!ret->manager[0] && (any_of(root, slurm) || any_of(root, kubelet)))
		snprintf(ret->manager, sizeof(ret->manager), "%s (installed, does not run now)",
			 any_of(root, slurm) ? "slurmd" : "kubelet");
}

static void look_at_cgroups(const char *root, struct takt_setup_machine *ret)
{
	if (takt_rooted_exists(root, "/sys/fs/cgroup/cgroup.controllers") &&
	    (root[0] || takt_cgroup_is_v2()))
		ret->cgroups = TAKT_SETUP_CGROUPS_V2;
	else if (!root[0] || takt_rooted_exists(root, "/sys/fs/cgroup/memory"))
		ret->cgroups = TAKT_SETUP_CGROUPS_V1;
}

/* Of the folder or of the nearest above it that is there. */
static void look_at_disk(const struct takt_setup_place *place, struct takt_setup_machine *ret)
{
	char full[PATH_MAX];
	struct statvfs fs;

	if (place->who == TAKT_SETUP_ALL)
		takt_strcpy(ret->disk, sizeof(ret->disk), "/var/lib/takt");
	else
		snprintf(ret->disk, sizeof(ret->disk), "%s/takt", place->state_home);
	for (;;) {
		char *slash = strrchr(ret->disk, '/');

		snprintf(full, sizeof(full), "%s%s", place->root, ret->disk);
		ret->disk_known = statvfs(full, &fs) == 0;
		if (ret->disk_known || !slash || !ret->disk[1])
			break;
		slash[slash == ret->disk] = '\0';
	}
	if (ret->disk_known)
		ret->disk_free_mib = fs.f_bavail * fs.f_frsize >> 20;
}

static void look_at_services(const struct takt_setup_place *place, struct takt_setup_machine *ret)
{
	static const char *const systemd[] = {"/usr/lib/systemd/systemd", "/lib/systemd/systemd",
					      NULL};
	static const char *const service[] = {"/etc/pam.d/takt", "/usr/lib/pam.d/takt", NULL};
	const char *root = place->root;
	char path[PATH_MAX];

	ret->systemd = root[0] ? any_of(root, systemd) : access("/run/systemd/system", F_OK) == 0;
	ret->user_manager = root[0] && ret->systemd;
	if (!root[0] && place->runtime_dir) {
		snprintf(path, sizeof(path), "%s/systemd/private", place->runtime_dir);
		ret->user_manager = access(path, F_OK) == 0;
	}
	ret->serves_all = takt_rooted_exists(root, "/run/takt/takt.sock");
	ret->pam = takt_rooted_exists(root, "/etc/pam.d");
	ret->pam_service = any_of(root, service);
}

void takt_setup_look(const struct takt_setup_place *place, struct takt_setup_machine *ret)
{
	*ret = (struct takt_setup_machine){.gpu_count = 0};
	look_at_system(place->root, ret);
	look_at_gpus(place->root, ret);
	look_at_users(place->root, ret);
	look_for_manager(place->root, ret);
	look_at_cgroups(place->root, ret);
	look_at_disk(place, ret);
	look_at_services(place, ret);
}

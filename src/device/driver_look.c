/* SPDX-License-Identifier: Apache-2.0 */
/* See driver_look.h. A look is this program again, told so by its first argument. */
#include "device/driver_look.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pace.h"
#include "device/device_impl.h"
#include "device/sysfs_pci.h"

extern char **environ;

static const struct takt_pace looks = {TAKT_NS_PER_S, 10 * TAKT_NS_PER_S};
static const uint64_t open_ns = 60 * TAKT_NS_PER_S;
static const uint64_t hang_ns = 70 * TAKT_NS_PER_S;  /* and that of a look which does not end */
static const uint64_t watch_ns = TAKT_NS_PER_S / 10; /* one that is under way */
static char look_word[] = "--look-for-the-driver";

enum {
	ARGS = 5, /* program, look_word, nvml_path, sysfs_root, leaves_asleep */
	SEEN = 0,
	NOT_SEEN = 1,
	HANGS = 2,
};

/* How many GPUs the driver has now, or why it does not say. */
static int count_gpus(const struct takt_machine_config *config)
{
	struct takt_source *source;
	int rc;

	if (config->leaves_asleep && takt_sysfs_all_asleep(config->sysfs_root))
		return 0;
	rc = takt_source_open(&takt_source_nvml, config, open_ns, &source, NULL);
	if (rc < 0)
		return rc;
	rc = (int)source->gpu_count;
	takt_source_unref(source);
	return rc;
}

bool takt_driver_look_main(int argc, char **argv, int *ret_status)
{
	struct takt_machine_config config = {.source = TAKT_SOURCE_NVML};
	int gpus;

	if (argc != ARGS || strcmp(argv[1], look_word) != 0)
		return false;
	config.nvml_path = argv[2][0] ? argv[2] : NULL;
	config.sysfs_root = argv[3];
	config.leaves_asleep = argv[4][0] != '\0';
	gpus = count_gpus(&config);
	*ret_status = gpus > 0 ? SEEN : gpus == -ETIMEDOUT ? HANGS : NOT_SEEN;
	return true;
}

void takt_driver_look_init(struct takt_driver_look *look, const struct takt_machine_config *config,
			   struct takt_boot first)
{
	*look = (struct takt_driver_look){.config = config, .next = first};
}

static int start(struct takt_driver_look *look)
{
	const struct takt_machine_config *config = look->config;
	char name[] = "takt-look", none[] = "", yes[] = "y", sys[] = "/sys";
	char *argv[ARGS + 1] = {
		name,
		look_word,
		config->nvml_path ? (char *)config->nvml_path : none,
		config->sysfs_root ? (char *)config->sysfs_root : sys,
		config->leaves_asleep ? yes : none,
	};
	posix_spawnattr_t attr;
	sigset_t unblocked;
	int rc;

	sigemptyset(&unblocked);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &unblocked);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawn(&look->pid, "/proc/self/exe", NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	if (rc != 0)
		look->pid = 0;
	return -rc;
}

static void begin(struct takt_driver_look *look, struct takt_boot now)
{
	uint64_t pause_ns = hang_ns;

	if (start(look) < 0)
		pause_ns = takt_pace_ns(&looks, look->looks++);
	look->next = takt_boot_add(now, pause_ns);
}

/* Whether one that is under way saw the driver. */
static bool collect(struct takt_driver_look *look, struct takt_boot now)
{
	int status;
	pid_t pid = waitpid(look->pid, &status, WNOHANG);

	if (pid == 0 && now.ns < look->next.ns)
		return false;
	look->hangs = pid == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == HANGS);
	if (pid != 0)
		look->pid = 0;
	look->next = takt_boot_add(now, takt_pace_ns(&looks, look->looks++));
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == SEEN;
}

bool takt_driver_look_step(struct takt_driver_look *look, struct takt_boot now,
			   struct takt_boot *ret_next)
{
	bool seen = false;

	if (look->pid == 0 && !look->hangs && now.ns >= look->next.ns)
		begin(look, now);
	else if (look->pid != 0 && !look->hangs)
		seen = collect(look, now);
	*ret_next = look->hangs ? (struct takt_boot){UINT64_MAX}
		    : look->pid ? takt_boot_add(now, watch_ns)
				: look->next;
	return seen;
}

/* One that the driver holds ends when it is let go. */
void takt_driver_look_fini(struct takt_driver_look *look)
{
	if (look->pid == 0)
		return;
	kill(look->pid, SIGKILL);
	(void)waitpid(look->pid, NULL, WNOHANG);
	look->pid = 0;
}

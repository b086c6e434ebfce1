/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the daemon, in the order in which things depend on each other, and closing it in reverse.
 * What fails says what and why; nothing is left half open.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/vec.h"
#include "daemon/daemon.h"
#include "daemon/gpu_orders.h"
#include "daemon/libexec.h"
#include "daemon/peaks.h"
#include "engine/local/local_engine.h"
#include "net/listen.h"

static const int64_t sched_past_ns = 30ll * 24 * 3600 * (int64_t)TAKT_NS_PER_S; /* known */
static const uint64_t first_sample_ns = 2 * TAKT_NS_PER_S;

enum {
	MAX_CLAIMS = 16384
}; /* attempts of jobs without GPUs */

/* A runtime directory that another user made (in /tmp, say) is a trap: our sockets would be his. */
static int check_runtime_dir(const struct takt_daemon *daemon, struct takt_err *err)
{
	const char *path = daemon->config.runtime_dir;
	struct stat st;

	if (stat(path, &st) < 0)
		return takt_err_set(err, -errno, "runtime_dir '%s'", path);
	if (st.st_uid != getuid() && st.st_uid != 0)
		return takt_err_set(err, -EPERM,
				    "runtime_dir '%s' belongs to another user (uid %u)", path,
				    st.st_uid);
	if (st.st_mode & 0022)
		return takt_err_set(err, -EPERM,
				    "runtime_dir '%s' may be written by others; chmod go-w it",
				    path);
	return 0;
}

/* Locks are everybody's, like those of /tmp: made for all by whoever comes first. */
static int open_lock_dir(const struct takt_daemon *daemon, struct takt_err *err)
{
	const char *path = daemon->config.lock_dir;
	struct stat st;
	int rc = takt_mkdirs_durable(daemon->sys, path, 01777, err);

	if (rc == 0 && stat(path, &st) == 0 && st.st_uid == getuid() &&
	    (st.st_mode & 07777) != 01777)
		(void)chmod(path, 01777); /* the umask took some of it; without it others only
					     cannot lock here */
	return rc;
}

static int open_dirs(struct takt_daemon *daemon, struct takt_err *err)
{
	char path[PATH_MAX];
	int rc = takt_mkdirs_durable(daemon->sys, daemon->config.runtime_dir,
				     daemon->single_user ? 0700 : 0755, err);

	if (rc == 0)
		rc = check_runtime_dir(daemon, err);
	if (rc == 0)
		rc = takt_mkdirs_durable(daemon->sys, daemon->config.state_dir,
					 daemon->single_user ? 0700 : 0711, err);
	if (rc == 0)
		rc = open_lock_dir(daemon, err);
	snprintf(path, sizeof(path), "%s/jobs", daemon->config.state_dir);
	if (rc == 0)
		rc = takt_mkdirs_durable(daemon->sys, path, daemon->single_user ? 0700 : 0711, err);
	if (rc < 0)
		return rc;
	daemon->jobs_dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (daemon->jobs_dirfd < 0)
		return takt_err_set(err, -errno, "open '%s'", path);
	if (daemon->config.rank_port_first > daemon->config.rank_port_last)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "rank_port_last, %u, must not be below rank_port_first, %u",
				    daemon->config.rank_port_last, daemon->config.rank_port_first);
	if (takt_attempts_new(daemon->config.rank_port_first, daemon->config.rank_port_last,
			      &daemon->attempts) < 0 ||
	    takt_idle_new(daemon, &daemon->idle) < 0 ||
	    takt_proc_cache_new(path, daemon->attempts, &daemon->procs) < 0 ||
	    takt_waiters_new(daemon, &daemon->waiters) < 0)
		return takt_err_set(err, -ENOMEM, "start");
	return 0;
}

static int open_signals(struct takt_daemon *daemon, struct takt_err *err)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	daemon->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return daemon->signal_fd < 0 ? takt_err_set(err, -errno, "signals") : 0;
}

static void score_pairs(struct takt_daemon *daemon)
{
	uint32_t n = daemon->gpu_count;

	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = 0; b < n; b++) {
			struct takt_gpu_link link = takt_machine_link(daemon->machine, a, b);

			daemon->pair_score[a * n + b] =
				a == b ? 0 : takt_link_score(link.pcie, link.nvlinks);
		}
}

static int open_machine(struct takt_daemon *daemon, struct takt_err *err)
{
	struct takt_machine_config config = {
		.source = daemon->config.replay[0] ? TAKT_SOURCE_REPLAY : TAKT_SOURCE_AUTO,
		.nvml_path = daemon->config.nvml_path[0] ? daemon->config.nvml_path : NULL,
		.replay_path = daemon->config.replay,
	};
	const struct takt_machine_info *info;
	int rc = takt_machine_open(&config, &daemon->machine, err);

	if (rc < 0)
		return rc;
	info = takt_machine_info(daemon->machine);
	daemon->gpu_count = info->gpu_count;
	if (info->why_none[0])
		snprintf(daemon->notes[0], sizeof(daemon->notes[0]), "no GPU: %.180s",
			 info->why_none);
	daemon->machine_event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (daemon->machine_event_fd < 0)
		return takt_err_set(err, -errno, "eventfd");
	takt_machine_notify(daemon->machine, daemon->machine_event_fd);
	score_pairs(daemon);
	return 0;
}

/* Nothing is placed before every GPU has been looked at once, or has failed to answer in time. */
static int open_telemetry(struct takt_daemon *daemon, struct takt_err *err)
{
	struct takt_telemetry_config config = {
		.rate_hz = daemon->config.sample_hz,
		.simulated = takt_machine_info(daemon->machine)->simulated,
	};
	struct takt_mono deadline = {takt_mono_now(daemon->sys).ns + first_sample_ns};
	int rc = takt_telemetry_new(&config, daemon->machine, &daemon->telemetry, err);

	if (rc < 0)
		return rc;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		takt_machine_sample(daemon->machine, gpu);
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		(void)takt_machine_wait(daemon->machine, gpu, 0, deadline);
	takt_telemetry_collect(daemon->telemetry, takt_mono_now(daemon->sys));
	return 0;
}

static int open_store(struct takt_daemon *daemon, struct takt_err *err)
{
	char path[PATH_MAX];
	struct takt_store_config config = {.path = path, .keep_ended = daemon->config.keep_ended};
	int rc;

	snprintf(path, sizeof(path), "%s/takt.db", daemon->config.state_dir);
	do
		rc = takt_store_open(&config, &daemon->store, err);
	while (rc == -TAKT_E_BUSY && takt_daemon_lock_again(daemon));
	return rc;
}

static int start_helper(struct takt_daemon *daemon, struct takt_helper_proc *helper,
			const char *socket_name, struct takt_err *err)
{
	struct takt_str path = TAKT_STR(sizeof(helper->socket_path) - 1);
	int rc = takt_str_addf(&path, "%s/%s", daemon->config.runtime_dir, socket_name);

	if (rc < 0)
		takt_err_set(err, rc, "runtime_dir '%.100s' is too long for a socket",
			     daemon->config.runtime_dir);
	takt_strcpy(helper->socket_path, sizeof(helper->socket_path), takt_str_text(&path));
	takt_str_fini(&path);
	return rc < 0 ? rc : takt_helper_start(daemon, helper, err);
}

static int start_helpers(struct takt_daemon *daemon, struct takt_err *err)
{
	int rc;

	if (!daemon->manages)
		return 0;
	rc = takt_helpers_check(daemon, err);
	if (rc == 0)
		rc = start_helper(daemon, &daemon->launch, "launch.sock", err);
	/* One of our own, not a service manager's: it runs jobs of our user only. */
	if (rc == 0 && !daemon->single_user && getuid() != 0 && daemon->launch.pid > 0)
		rc = takt_err_set(err, -EPERM,
				  "users = all needs root, or a takt-launch that runs as root and "
				  "answers on '%s'",
				  daemon->launch.socket_path);
	return rc == 0 ? start_helper(daemon, &daemon->actuate, "actuate.sock", err) : rc;
}

static int open_engine(struct takt_daemon *daemon, struct takt_err *err)
{
	char jobs_dir[PATH_MAX];
	struct takt_engine_local_config config = {
		.sys = daemon->sys,
		.jobs_dir = jobs_dir,
		.launch_socket = daemon->launch.socket_path,
		.describe = takt_daemon_describe_job,
		.ctx = daemon,
	};

	snprintf(jobs_dir, sizeof(jobs_dir), "%s/jobs", daemon->config.state_dir);
	return takt_engine_local_new(&config, &daemon->engine, err);
}

/* Attempts that the store believes alive, while the queue is loaded. */
struct claims {
	struct takt_daemon *daemon;
	TAKT_VEC(struct takt_engine_live) live;
};

static int claim_attempt(void *ctx, const struct takt_queue_job *job, struct takt_err *err)
{
	struct claims *claims = ctx;
	struct takt_daemon *daemon = claims->daemon;
	int rc = takt_vec_push(
		&claims->live,
		(struct takt_engine_live){job->row.id, job->row.attempt, job->row.uid, job->row.gid,
					  job->stage != TAKT_STAGE_NONE, job->row.gpu_mask});

	if (job->stage == TAKT_STAGE_NONE)
		takt_leases_job_adopt(daemon->leases, job);
	if (rc < 0)
		return takt_err_set(err, rc, "jobs to adopt");
	return takt_attempts_adopt(daemon->attempts, daemon->sys, daemon->jobs_dirfd, job, err);
}

static int load_queue(struct takt_daemon *daemon, struct takt_err *err)
{
	struct claims claims = {.daemon = daemon,
				.live = TAKT_VEC_INIT(TAKT_DEVICE_MAX_GPUS + MAX_CLAIMS)};
	int rc = takt_queue_load(daemon->queue, claim_attempt, &claims, err);

	if (rc == 0)
		rc = takt_engine_local_recover(daemon->engine, claims.live.at, claims.live.len,
					       err);
	takt_vec_fini(&claims.live);
	return rc;
}

/* The highest job whose attempts are on disk; 0 = none. Names are <job>.<attempt>. */
static uint64_t highest_attempt(const struct takt_daemon *daemon)
{
	uint64_t highest = 0;
	int fd = openat(daemon->jobs_dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		uint64_t job = strtoull(entry->d_name, NULL, 10);

		if (job > highest)
			highest = job;
	}
	if (dir)
		closedir(dir);
	return highest;
}

static int64_t machine_mem_mib(void)
{
	return sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024);
}

enum {
	MAX_INSTANCES = TAKT_DEVICE_MAX_GPUS * TAKT_DEVICE_MAX_INSTANCES
};

/* 0 = of one it is not known, or there is none. */
static uint32_t smallest_gpu_mib(const struct takt_daemon *daemon)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
		uint64_t bytes = facts->has & TAKT_FACT_MEMORY ? facts->memory_total_bytes : 0;

		least = bytes < least ? bytes : least;
	}
	return least == UINT64_MAX ? 0 : (uint32_t)(least >> 20);
}

static enum takt_queue_staging staging_of(enum takt_stage_config stage)
{
	return stage == TAKT_STAGE_CONFIG_ALL	? TAKT_STAGING_ALL
	       : stage == TAKT_STAGE_CONFIG_OFF ? TAKT_STAGING_OFF
						: TAKT_STAGING_ASKED;
}

static struct takt_sched_settings settings_of(const struct takt_config *config)
{
	struct takt_sched_settings settings = {
		.backfill = (enum takt_backfill)config->backfill,
		.preempt = config->preempt,
		.guard_ns = config->guard_ms * TAKT_NS_PER_MS,
		.min_runtime_ns = config->min_runtime_ms * TAKT_NS_PER_MS,
	};

	takt_strcpy(settings.order, sizeof(settings.order), takt_config_orders[config->order]);
	return settings;
}

/* GPUs that are cut, and their instances; as takt found them when it started. */
static uint32_t list_instances(const struct takt_daemon *daemon,
			       struct takt_queue_instance ret[MAX_INSTANCES], uint64_t *ret_cut)
{
	uint32_t count = 0;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);

		if (!(facts->has & TAKT_FACT_MIG) || !facts->mig_enabled)
			continue;
		*ret_cut |= 1ull << gpu;
		for (uint32_t i = 0; i < facts->instance_count; i++) {
			const struct takt_gpu_instance *from = &facts->instances[i];
			struct takt_queue_instance *to = &ret[count++];

			*to = (struct takt_queue_instance){
				.gpu = gpu,
				.slices = from->slices,
				.mem_mib = (uint32_t)(from->memory_bytes >> 20),
			};
			takt_strcpy(to->uuid, sizeof(to->uuid), from->uuid);
			takt_strcpy(to->profile, sizeof(to->profile), from->profile);
		}
	}
	return count;
}

static int open_queue(struct takt_daemon *daemon, struct takt_err *err)
{
	static const enum takt_failure_policy on_fault[] = {
		[TAKT_ON_FAULT_LEAVE] = TAKT_FAILURE_KEEP,
		[TAKT_ON_FAULT_REQUEUE] = TAKT_FAILURE_REQUEUE,
		[TAKT_ON_FAULT_STOP] = TAKT_FAILURE_STOP,
	};
	TAKT_CLEANUP(freep)
	struct takt_queue_instance *instances = takt_calloc(MAX_INSTANCES, sizeof(*instances));
	struct takt_queue_config config = {
		.store = daemon->store,
		.engine = daemon->engine,
		.pair_score = daemon->pair_score,
		.gpu_count = daemon->gpu_count,
		.cpu_milli = takt_daemon_cpu_milli(),
		.mem_mib = machine_mem_mib(),
		.gpu_mem_mib = smallest_gpu_mib(daemon),
		.max_jobs = daemon->config.max_jobs,
		.staging = staging_of(daemon->config.stage),
		.on_gpu_failure = on_fault[daemon->config.on_gpu_fault],
		.observes = !daemon->manages,
		.settings = settings_of(&daemon->config),
		.hooks = &takt_daemon_queue_hooks,
		.hooks_ctx = daemon,
		.highest_known_id = highest_attempt(daemon),
		.epoch = {takt_wall_now(daemon->sys).ns - sched_past_ns},
		.signal_id_base = 1ull << 63 | ((uint64_t)takt_wall_now(daemon->sys).ns & ~0xfull),
	};
	int rc;

	if (!instances)
		return takt_err_set(err, -ENOMEM, "the MIG instances");
	rc = takt_peaks_new(daemon->store, &daemon->peaks, err);
	if (rc < 0)
		return rc;
	config.instances = instances;
	config.instance_count = list_instances(daemon, instances, &config.mig_gpus);
	rc = takt_queue_new(&config, &daemon->queue, err);
	if (rc == 0)
		takt_tenants_file_read(daemon);
	if (rc == 0)
		rc = load_queue(daemon, err);
	if (rc == 0)
		rc = takt_orders_new(daemon, &daemon->orders, err);
	if (rc == 0)
		takt_orders_tell(daemon->orders);
	if (rc == 0)
		takt_watch_tick(daemon, takt_mono_now(daemon->sys), takt_boot_now(daemon->sys));
	return rc;
}

/* "auto" is a convenience: where its port is taken takt goes on without, and says so. */
static int listen_metrics(struct takt_daemon *daemon, int *ret_fd, struct takt_err *err)
{
	bool automatic = strcmp(daemon->config.metrics_listen, "auto") == 0;
	bool simulated = takt_machine_info(daemon->machine)->simulated;
	const char *address = !automatic  ? daemon->config.metrics_listen
			      : simulated ? "127.0.0.1:9831"
					  : "127.0.0.1:9830";
	struct takt_err failed;
	int rc;

	if (strcmp(address, "off") == 0)
		return 0;
	rc = takt_net_listen_tcp(address, ret_fd, &daemon->metrics_port, automatic ? &failed : err);
	if (rc == 0 || !automatic)
		return rc;
	snprintf(daemon->notes[1], sizeof(daemon->notes[1]), "no metrics page on TCP: %.150s",
		 failed.msg);
	return 0;
}

/* "a,b" into names of *list; the text is cut in place. */
static void split_hosts(char *text, const char **list, size_t max)
{
	char *save = NULL;
	size_t n = 0;

	for (char *name = strtok_r(text, ",", &save); name && n + 1 < max;
	     name = strtok_r(NULL, ",", &save))
		list[n++] = name;
	list[n] = NULL;
}

static int open_server(struct takt_daemon *daemon, struct takt_err *err)
{
	struct takt_server_config config = {
		.owner_uid = getuid(),
		.single_user = daemon->single_user,
		.simulated = takt_machine_info(daemon->machine)->simulated,
		.hosts = daemon->metrics_hosts,
		.admin_group = daemon->config.admin_group,
		.max_connections = daemon->config.max_connections,
		.unix_fd = -1,
		.tcp_fd = -1,
	};
	int rc = takt_net_listen_unix(daemon->config.socket, daemon->single_user ? 0600 : 0666,
				      &config.unix_fd, err);

	split_hosts(daemon->config.metrics_hosts, daemon->metrics_hosts,
		    TAKT_ARRAY_LEN(daemon->metrics_hosts));
	if (rc == 0)
		rc = listen_metrics(daemon, &config.tcp_fd, err);
	if (rc < 0) {
		if (config.unix_fd >= 0)
			close(config.unix_fd);
		return rc;
	}
	return takt_server_new(&config, &takt_daemon_backend, daemon, &daemon->server, err);
}

static void init(struct takt_daemon *daemon, const struct takt_config *config)
{
	memset(daemon, 0, sizeof(*daemon));
	daemon->config = *config;
	daemon->sys = takt_sys_real();
	daemon->single_user = config->users == TAKT_USERS_OWN ||
			      (config->users == TAKT_USERS_AUTO && getuid() != 0);
	daemon->started = takt_mono_now(daemon->sys);
	daemon->jobs_dirfd = daemon->signal_fd = daemon->machine_event_fd = -1;
	daemon->actuate = (struct takt_helper_proc){.name = "takt-actuate", .pidfd = -1};
	daemon->launch = (struct takt_helper_proc){.name = "takt-launch", .pidfd = -1};
	for (size_t i = 0; i < TAKT_ARRAY_LEN(daemon->gpu_lock_fd); i++)
		daemon->gpu_lock_fd[i] = -1;
	takt_libexec_dir(daemon->libexec_dir);
	gethostname(daemon->hostname, sizeof(daemon->hostname) - 1);
}

int takt_daemon_open(struct takt_daemon *daemon, const struct takt_config *config,
		     struct takt_err *err)
{
	static int (*const steps[])(struct takt_daemon * daemon, struct takt_err * err) = {
		open_dirs,  open_signals,  open_machine, takt_daemon_own_gpus, open_telemetry,
		open_store, start_helpers, open_engine,	 open_queue,	       open_server,
	};
	int rc;

	init(daemon, config);
	rc = takt_leases_new(daemon, &daemon->leases, err);
	for (size_t i = 0; rc >= 0 && i < TAKT_ARRAY_LEN(steps); i++)
		rc = steps[i](daemon, err);
	if (rc < 0)
		takt_daemon_close(daemon);
	return rc < 0 ? rc : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void takt_daemon_close(struct takt_daemon *daemon)
{
	takt_server_free(daemon->server);
	takt_waiters_free(daemon->waiters);
	takt_orders_free(daemon->orders);
	takt_peaks_free(daemon->peaks);
	takt_queue_free(daemon->queue);
	takt_engine_free(daemon->engine);
	takt_store_close(daemon->store);
	takt_leases_free(daemon->leases);
	takt_helper_stop(&daemon->launch);
	takt_helper_stop(&daemon->actuate);
	takt_telemetry_free(daemon->telemetry);
	takt_machine_close(daemon->machine);
	takt_daemon_disown_gpus(daemon);
	takt_proc_cache_free(daemon->procs);
	takt_attempts_free(daemon->attempts);
	takt_idle_free(daemon->idle);
	close_fd(&daemon->machine_event_fd);
	close_fd(&daemon->jobs_dirfd);
	close_fd(&daemon->signal_fd);
}

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
#include "daemon/backups.h"
#include "daemon/clean_start.h"
#include "daemon/daemon.h"
#include "daemon/event_hooks.h"
#include "daemon/govern.h"
#include "daemon/gpu_health.h"
#include "daemon/gpu_mig.h"
#include "daemon/gpu_orders.h"
#include "daemon/job_course.h"
#include "daemon/libexec.h"
#include "daemon/log.h"
#include "daemon/metrics_file.h"
#include "daemon/net_probe.h"
#include "daemon/peaks.h"
#include "daemon/shared_places.h"
#include "daemon/state_owner.h"
#include "device/net_watch.h"
#include "device/sysfs_pci.h"
#include "engine/local/local_engine.h"
#include "launch/cgroup.h"
#include "launch/system_users.h"
#include "net/listen.h"
#include "objects/governor_objects.h"

static const int64_t sched_past_ns = 30ll * 24 * 3600 * (int64_t)TAKT_NS_PER_S; /* known */
static const uint64_t first_sample_ns = 2 * TAKT_NS_PER_S;
static const uint64_t driver_look_ns = TAKT_NS_PER_S;

enum {
	MAX_CLAIMS = 16384, /* attempts of jobs without GPUs */
	GOVERNORS = 4096,   /* bytes of a list of them */
};

/* Locks of a takt for all users are its own: nobody else can put anything in their place, or hold
 * them. Those of others are everybody's, like those of /tmp: made for all by whoever comes first.
 */
static int open_lock_dir(const struct takt_daemon *daemon, struct takt_err *err)
{
	const char *path = daemon->config.lock_dir;
	bool own = getuid() == 0 || !daemon->single_user;
	struct stat st;
	int rc = takt_mkdirs_durable(daemon->sys, path, own ? 0755 : 01777, err);

	if (rc == 0 && own)
		return takt_own_dir_check("lock_dir", path, err);
	if (rc == 0 && stat(path, &st) == 0 && st.st_uid == getuid() &&
	    (st.st_mode & 07777) != 01777)
		(void)chmod(path, 01777); /* the umask took some of it; without it others only
					     cannot lock here */
	return rc;
}

/* What an administrator adds to takt's governors is said in the log: it is code of this process. */
static int open_governors(struct takt_daemon *daemon, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str names = TAKT_STR(GOVERNORS);
	int rc = takt_governor_objects_open(daemon->config.governors, &daemon->governors, err);

	if (rc < 0)
		return takt_err_wrap(err, rc, "governors");
	takt_governors_names(takt_governor_objects_all(daemon->governors), &names);
	if (daemon->config.governors[0])
		takt_log(TAKT_LOG_NOTICE, "governors: %s", takt_str_text(&names));
	return 0;
}

/* Where root's helpers have what is theirs. An account that serves all users finds them there. */
static int open_helper_dirs(const struct takt_daemon *daemon, struct takt_err *err)
{
	const struct takt_config *config = &daemon->config;
	int rc;

	if (!daemon->single_user && getuid() != 0)
		return 0;
	rc = takt_mkdirs_durable(daemon->sys, config->helpers_dir,
				 daemon->single_user ? 0700 : 0755, err);
	if (rc == 0)
		rc = takt_mkdirs_durable(daemon->sys, config->clocks_dir,
					 daemon->single_user ? 0700 : 0711, err);
	return rc == 0 && getuid() == 0 ? takt_clocks_move(daemon->sys, config, err) : rc;
}

static int open_dirs(struct takt_daemon *daemon, struct takt_err *err)
{
	char path[PATH_MAX];
	int rc = takt_mkdirs_durable(daemon->sys, daemon->config.runtime_dir,
				     daemon->single_user ? 0700 : 0755, err);

	if (rc == 0)
		rc = takt_own_dir_check("runtime_dir", daemon->config.runtime_dir, err);
	if (rc == 0)
		rc = takt_mkdirs_durable(daemon->sys, daemon->config.state_dir,
					 daemon->single_user ? 0700 : 0711, err);
	if (rc == 0)
		rc = open_helper_dirs(daemon, err);
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
	    takt_event_hooks_new(daemon, &daemon->hooks) < 0 ||
	    takt_job_progress_new(&daemon->progress) < 0 ||
	    takt_job_output_new(&daemon->output) < 0 || takt_job_course_new(&daemon->courses) < 0 ||
	    takt_govern_new(daemon, &daemon->govern, NULL) < 0 ||
	    takt_proc_cache_new(path, daemon->jobs_dirfd, daemon->attempts, &daemon->procs) < 0 ||
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

/* Boards without a driver that answers, or one that was named: at boot it may come after us. */
static void look_for_driver(struct takt_daemon *daemon)
{
	const struct takt_machine_config *config = &daemon->machine_config;
	const char *why = takt_machine_info(daemon->machine)->why_none;
	bool may_come = config->source == TAKT_SOURCE_AUTO &&
			(config->nvml_path || takt_sysfs_has_gpu(config->sysfs_root)) &&
			!(config->leaves_asleep && takt_sysfs_all_asleep(config->sysfs_root));

	if (!why[0])
		return;
	snprintf(daemon->notes[0], sizeof(daemon->notes[0]), "no GPU: %s%s", why,
		 may_come ? "; takt looks again every few seconds" : "");
	daemon->looks_for_driver = may_come;
	takt_driver_look_init(&daemon->driver_look, config,
			      takt_boot_add(takt_boot_now(daemon->sys), driver_look_ns));
}

static int open_machine(struct takt_daemon *daemon, struct takt_err *err)
{
	const struct takt_machine_info *info;
	int rc;

	daemon->machine_config = (struct takt_machine_config){
		.source = daemon->config.replay[0] ? TAKT_SOURCE_REPLAY : TAKT_SOURCE_AUTO,
		.nvml_path = daemon->config.nvml_path[0] ? daemon->config.nvml_path : NULL,
		.unused_nvml_path = getenv(TAKT_UNUSED_NVML),
		.replay_path = daemon->config.replay,
		.vitals = true,
		.sysfs_root = daemon->config.sysfs_root,
		.leaves_asleep = !daemon->config.wake_gpus,
	};
	rc = takt_machine_open(&daemon->machine_config, &daemon->machine, err);
	if (rc < 0)
		return rc;
	info = takt_machine_info(daemon->machine);
	daemon->gpu_count = info->gpu_count;
	look_for_driver(daemon);
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
	const char *label = takt_config_hostname_labels[daemon->config.metrics_hostname];
	struct takt_telemetry_config config = {
		.rate_hz = daemon->config.sample_hz,
		.simulated = takt_machine_info(daemon->machine)->simulated,
		.dcgm_names = daemon->config.metrics_dcgm,
		.hostname_label = strcmp(label, "none") == 0 ? NULL : label,
		.hostname = daemon->hostname,
		.hpc_job = daemon->config.metrics_hpc_job,
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

/* A database that is gone or emptied, though there are backups of it or attempts of its jobs, is no
 * first start. */
static int refuse_to_forget(const struct takt_daemon *daemon, const char *path,
			    struct takt_err *err)
{
	struct takt_backups backups;
	struct stat st;
	size_t count;
	int rc;

	if (stat(path, &st) == 0 && st.st_size > 0)
		return 0;
	rc = takt_backups_read(daemon->config.state_dir, &backups, err);
	if (rc < 0)
		return rc;
	count = backups.list.len;
	takt_backups_fini(&backups);
	if (count > 0)
		return takt_err_set(err, -ENOENT,
				    "database '%.80s' is not there, but backups of it are: 'takt "
				    "admin restore' puts the newest in its place; to start empty "
				    "move the folder 'backups' beside it away",
				    path);
	if (highest_attempt(daemon) > 0)
		return takt_err_set(err, -ENOENT,
				    "database '%.80s' is not there, but records of its jobs are: "
				    "put it back, or 'takt admin restore FILE' with a copy of it; "
				    "to start empty move the folder 'jobs' beside it away when no "
				    "takt-shim runs any more",
				    path);
	return 0;
}

static int open_store(struct takt_daemon *daemon, struct takt_err *err)
{
	char path[PATH_MAX];
	struct takt_store_config config = {.path = path,
					   .keep_bytes = takt_job_output_history(daemon),
					   .keep_ended = daemon->config.keep_ended,
					   .reserve_bytes = takt_job_output_reserve(daemon)};
	uint32_t tries = 0;
	int rc;

	snprintf(path, sizeof(path), "%s/takt.db", daemon->config.state_dir);
	rc = refuse_to_forget(daemon, path, err);
	if (rc < 0)
		return rc;
	do
		rc = takt_store_open(&config, &daemon->store, err);
	while (rc == -TAKT_E_BUSY && takt_daemon_lock_again(daemon, tries++));
	return rc;
}

static int start_helper(struct takt_daemon *daemon, struct takt_helper_proc *helper,
			const char *socket_name, struct takt_err *err)
{
	struct takt_str path = TAKT_STR(sizeof(helper->socket_path) - 1);
	int rc = takt_str_addf(&path, "%s/%s", daemon->config.helpers_dir, socket_name);

	if (rc < 0)
		takt_err_set(err, rc, "helpers_dir '%.100s' is too long for a socket",
			     daemon->config.helpers_dir);
	takt_strcpy(helper->socket_path, sizeof(helper->socket_path), takt_str_text(&path));
	takt_str_fini(&path);
	return rc < 0 ? rc : takt_helper_start(daemon, helper, err);
}

/* The actuator starts the driver, too. */
static bool leaves_asleep(const struct takt_daemon *daemon)
{
	return daemon->gpu_count == 0 && !daemon->config.wake_gpus &&
	       takt_sysfs_all_asleep(daemon->config.sysfs_root);
}

static int start_helpers(struct takt_daemon *daemon, struct takt_err *err)
{
	int rc;

	if (!daemon->manages)
		return 0;
	rc = takt_helpers_check(daemon, err);
	if (rc == 0)
		rc = start_helper(daemon, &daemon->launch, "launch.sock", err);
	if (rc == 0 && !leaves_asleep(daemon))
		rc = start_helper(daemon, &daemon->actuate, "actuate.sock", err);
	return rc;
}

static void ask_whose(void *ctx, const struct takt_proc_id *process, uid_t uid)
{
	struct takt_daemon *daemon = ctx;

	takt_engine_local_whose(daemon->engine, process, uid);
}

static void told_whose(void *ctx, const struct takt_proc_id *process, const char *attempt_id)
{
	struct takt_daemon *daemon = ctx;

	takt_proc_cache_told(daemon->procs, process, attempt_id);
}

static int open_engine(struct takt_daemon *daemon, struct takt_err *err)
{
	char jobs_dir[PATH_MAX];
	int rc;
	struct takt_engine_local_config config = {
		.sys = daemon->sys,
		.jobs_dir = jobs_dir,
		.launch_socket = daemon->launch.socket_path,
		.describe = takt_daemon_describe_job,
		.ctx = daemon,
		.whose = told_whose,
	};

	snprintf(jobs_dir, sizeof(jobs_dir), "%s/jobs", daemon->config.state_dir);
	rc = takt_engine_local_new(&config, &daemon->engine, err);
	if (rc == 0)
		takt_proc_cache_asks(daemon->procs, ask_whose, daemon);
	return rc;
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
	struct takt_engine_live hooks[TAKT_HOOKS_AT_ONCE];
	size_t n = takt_event_hooks_adopt(daemon->hooks, hooks, TAKT_ARRAY_LEN(hooks));
	int rc = takt_queue_load(daemon->queue, claim_attempt, &claims, err);

	for (size_t i = 0; i < n && rc == 0; i++)
		if (takt_vec_push(&claims.live, hooks[i]) < 0)
			rc = takt_err_set(err, -ENOMEM, "hooks to adopt");
	if (rc == 0)
		rc = takt_engine_local_recover(daemon->engine, claims.live.at, claims.live.len,
					       err);
	takt_vec_fini(&claims.live);
	return rc;
}

static int64_t machine_mem_mib(void)
{
	return sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024);
}

enum {
	MAX_INSTANCES = TAKT_DEVICE_MAX_GPUS * TAKT_DEVICE_MAX_INSTANCES,
	MAX_KINDS = TAKT_DEVICE_MAX_GPUS * TAKT_DEVICE_MAX_KINDS,
};

/* What each GPU has, 0 = not known, and the smallest; NULL for each where all are alike. */
static const uint32_t *gpu_memory(struct takt_daemon *daemon, uint32_t *ret_smallest)
{
	uint32_t least = UINT32_MAX, most = 0;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
		uint64_t bytes = facts->has & TAKT_FACT_MEMORY ? facts->memory_total_bytes : 0;
		uint32_t mib = (uint32_t)(bytes >> 20);

		daemon->gpu_mem_mib[gpu] = mib;
		least = mib < least ? mib : least;
		most = mib > most ? mib : most;
	}
	*ret_smallest = daemon->gpu_count ? least : 0;
	return least < most ? daemon->gpu_mem_mib : NULL;
}

static int open_queue(struct takt_daemon *daemon, struct takt_err *err)
{
	const struct takt_queue_terms terms = takt_daemon_queue_terms(&daemon->config);
	TAKT_CLEANUP(freep)
	struct takt_queue_instance *instances = takt_calloc(MAX_INSTANCES, sizeof(*instances));
	TAKT_CLEANUP(freep)
	struct takt_queue_instance *kinds = takt_calloc(MAX_KINDS, sizeof(*kinds));
	struct takt_queue_config config = {
		.store = daemon->store,
		.engine = daemon->engine,
		.pair_score = daemon->pair_score,
		.gpu_count = daemon->gpu_count,
		.cpu_milli = takt_daemon_cpu_milli(),
		.mem_mib = machine_mem_mib(),
		.max_jobs = terms.max_jobs,
		.shared = !daemon->single_user,
		.user_max_jobs = terms.user_max_jobs,
		.user_max_bytes = terms.user_max_bytes,
		.staging = terms.staging,
		.on_gpu_failure = terms.on_gpu_failure,
		.observes = !daemon->manages,
		.settings = terms.settings,
		.hooks = &takt_daemon_queue_hooks,
		.hooks_ctx = daemon,
		.highest_known_id = highest_attempt(daemon),
		.epoch = {takt_wall_now(daemon->sys).ns - sched_past_ns},
		.wall_ahead_ns =
			takt_wall_now(daemon->sys).ns - (int64_t)takt_boot_now(daemon->sys).ns,
		.signal_id_base = 1ull << 63 | ((uint64_t)takt_wall_now(daemon->sys).ns & ~0xfull),
	};
	int rc;

	if (takt_machine_info(daemon->machine)->why_none[0])
		config.why_no_gpus = takt_machine_info(daemon->machine)->why_none;
	config.gpus_will_come = daemon->looks_for_driver;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		daemon->gpu_uuid[gpu] = takt_machine_facts(daemon->machine, gpu)->uuid;
	config.gpu_uuid = daemon->gpu_uuid;
	config.each_mem_mib = gpu_memory(daemon, &config.gpu_mem_mib);
	if (!instances || !kinds)
		return takt_err_set(err, -ENOMEM, "the MIG instances");
	rc = takt_peaks_new(daemon->store, &daemon->peaks, err);
	if (rc < 0)
		return rc;
	config.instances = instances;
	config.instance_count = takt_mig_list(daemon, instances, &config.mig_gpus);
	config.kinds = kinds;
	config.kind_count = takt_mig_kinds(daemon, kinds);
	rc = takt_queue_new(&config, &daemon->queue, err);
	if (rc == 0)
		takt_tenants_file_read(daemon);
	if (rc == 0)
		rc = load_queue(daemon, err);
	if (rc == 0)
		rc = takt_drain_load(daemon, err);
	if (rc == 0)
		rc = takt_accounts_load(daemon, err);
	if (rc == 0)
		rc = takt_orders_new(daemon, &daemon->orders, err);
	if (rc == 0)
		rc = takt_mig_new(daemon, &daemon->mig, err);
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
	snprintf(daemon->notes[1], sizeof(daemon->notes[1]),
		 "no metrics page on TCP (metrics_listen): %.200s", failed.msg);
	return 0;
}

/* A token would be read on its way over a network. */
static int listen_web(struct takt_daemon *daemon, int *ret_fd, struct takt_err *err)
{
	const char *address = daemon->config.web_listen;
	int rc;

	if (strcmp(address, "off") == 0)
		return 0;
	rc = takt_net_listen_tcp(address, ret_fd, &daemon->web_port, err);
	if (rc == 0 && !daemon->tls && !takt_net_is_loopback(*ret_fd))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "web_listen = %s can be reached by other machines: it needs "
				  "tls_certificate and tls_key (127.0.0.1:PORT does not)",
				  address);
	return rc;
}

static void close_sockets(const struct takt_server_config *config)
{
	const int fds[] = {config->unix_fd, config->tcp_fd, config->web_fd};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
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
		.web_fd = -1,
		.tokens_dir = daemon->config.state_dir,
	};
	int rc = takt_tls_files_open(daemon, err);

	if (rc < 0)
		return rc;
	config.web_tls = daemon->tls;
	config.tcp_tls = daemon->config.metrics_tls ? daemon->tls : NULL;
	rc = takt_daemon_listen(daemon, &config.unix_fd, err);
	split_hosts(daemon->config.metrics_hosts, daemon->metrics_hosts,
		    TAKT_ARRAY_LEN(daemon->metrics_hosts));
	if (rc == 0)
		rc = listen_metrics(daemon, &config.tcp_fd, err);
	if (rc == 0)
		rc = listen_web(daemon, &config.web_fd, err);
	if (rc < 0) {
		close_sockets(&config);
		return rc;
	}
	return takt_server_new(&config, &takt_daemon_backend, daemon, &daemon->server, err);
}

static void init(struct takt_daemon *daemon, const struct takt_config *config)
{
	memset(daemon, 0, sizeof(*daemon));
	daemon->config = daemon->read = *config;
	daemon->sys = takt_sys_real();
	daemon->single_user = config->users == TAKT_USERS_OWN ||
			      (config->users == TAKT_USERS_AUTO && getuid() != 0);
	daemon->min_uid = takt_system_users_below("");
	daemon->started = takt_mono_now(daemon->sys);
	daemon->jobs_dirfd = daemon->signal_fd = daemon->machine_event_fd = -1;
	daemon->actuate = (struct takt_helper_proc){.name = "takt-actuate", .pidfd = -1};
	daemon->launch = (struct takt_helper_proc){.name = "takt-launch", .pidfd = -1};
	for (size_t i = 0; i < TAKT_ARRAY_LEN(daemon->gpu_lock_fd); i++)
		daemon->gpu_lock_fd[i] = -1;
	takt_libexec_dir(daemon->libexec_dir);
	gethostname(daemon->hostname, sizeof(daemon->hostname) - 1);
}

/* Whom to serve: strangers' jobs are kept apart by cgroups. */
static int settle_users(struct takt_daemon *daemon, struct takt_err *err)
{
	const struct takt_config *config = &daemon->config;
	bool weak = !takt_cgroup_is_v2() && !config->allow_weak_isolation;

	if (config->users == TAKT_USERS_ALL && weak)
		return takt_err_set(
			err, -TAKT_E_UNSUPPORTED,
			"users = all needs cgroup v2 at /sys/fs/cgroup, which keeps jobs "
			"from each other's GPUs; allow_weak_isolation = yes goes without");
	if (config->users == TAKT_USERS_AUTO && getuid() == 0 && weak) {
		daemon->single_user = true;
		takt_log(TAKT_LOG_NOTICE, "serves root alone: there is no cgroup v2 at "
					  "/sys/fs/cgroup (allow_weak_isolation serves all)");
	}
	return 0;
}

static int check_setting(struct takt_daemon *daemon, struct takt_err *err)
{
	return takt_govern_check_setting(daemon, &daemon->config, err);
}

static int open_health(struct takt_daemon *daemon, struct takt_err *err)
{
	return takt_health_new(daemon, &daemon->health, err);
}

static int open_net_watch(struct takt_daemon *daemon, struct takt_err *err)
{
	return takt_net_watch_open(daemon->config.sysfs_root, &daemon->net_watch, err);
}

static int open_clock_admin(struct takt_daemon *daemon, struct takt_err *err)
{
	return takt_clock_admin_new(daemon, &daemon->clock_admin, err);
}

int takt_daemon_open(struct takt_daemon *daemon, const struct takt_config *config, int argc,
		     char **argv, struct takt_err *err)
{
	static int (*const steps[])(struct takt_daemon * daemon, struct takt_err * err) = {
		settle_users,
		open_governors,
		open_dirs,
		open_signals,
		open_machine,
		check_setting,
		takt_daemon_own_gpus,
		open_clock_admin,
		open_telemetry,
		open_store,
		takt_gpu_history_new,
		start_helpers,
		open_engine,
		open_queue,
		open_health,
		open_net_watch,
		takt_net_probe_open,
		open_server,
		takt_own_files_new,
		takt_daily_backup_new,
	};
	int rc;

	init(daemon, config);
	daemon->argc = argc;
	daemon->argv = argv;
	rc = takt_leases_new(daemon, &daemon->leases, err);
	if (rc >= 0)
		rc = takt_knobs_new(daemon, &daemon->knobs, err);
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
	takt_own_files_free(daemon->own_files);
	takt_daily_backup_free(daemon->daily_backup);
	takt_tls_free(daemon->tls);
	takt_net_probe_close(daemon->net_probe);
	takt_net_watch_close(daemon->net_watch);
	takt_health_free(daemon->health);
	takt_gpu_history_free(daemon->history);
	takt_waiters_free(daemon->waiters);
	takt_orders_free(daemon->orders);
	takt_peaks_free(daemon->peaks);
	takt_queue_free(daemon->queue);
	takt_engine_free(daemon->engine);
	takt_store_close(daemon->store);
	takt_leases_free(daemon->leases);
	takt_clock_admin_free(daemon->clock_admin);
	takt_mig_free(daemon->mig);
	takt_knobs_free(daemon->knobs);
	takt_helper_stop(&daemon->launch);
	takt_helper_stop(&daemon->actuate);
	takt_metrics_file_remove(daemon);
	takt_telemetry_free(daemon->telemetry);
	takt_driver_look_fini(&daemon->driver_look);
	takt_machine_close(daemon->machine);
	takt_daemon_disown_gpus(daemon);
	takt_proc_cache_free(daemon->procs);
	takt_attempts_free(daemon->attempts);
	takt_event_hooks_free(daemon->hooks);
	takt_idle_free(daemon->idle);
	takt_govern_free(daemon->govern);
	takt_governor_objects_close(daemon->governors);
	takt_job_progress_free(daemon->progress);
	takt_job_output_free(daemon->output);
	takt_job_course_free(daemon->courses);
	close_fd(&daemon->machine_event_fd);
	close_fd(&daemon->jobs_dirfd);
	close_fd(&daemon->signal_fd);
}

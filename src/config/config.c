/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys and everything that is made of it. */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ini.h"
#include "base/mem.h"
#include "base/policy_text.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/timetext.h"
#include "config/suggest.h"

enum {
	CHOICES_BYTES = 1024 /* of all choices of a key, in an error */
};

enum kind {
	PATH,	  /* absolute */
	PATHS,	  /* the same with commas between */
	POLICY,	  /* "auto" or base/policy_text.h */
	TEXT,	  /* printable; all up to here are text */
	NUMBER,	  /* min..max */
	DURATION, /* kept in ms */
	SIZE,	  /* kept in MiB */
	PERCENT,  /* kept in thousandths */
	CHOICE,
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset, size;
	const char *absent; /* the default, as it would be written */
	uint64_t min, max;
	const char *const *choices; /* CHOICE: NULL-terminated, in the enum's order */
	const char *doc;
	bool live; /* counts without a restart */
};

static const char *const manage_choices[] = {"auto", "always", "never", NULL};
static const char *const stage_choices[] = {"off", "asked", "all", NULL};
static const char *const on_gpu_fault_choices[] = {"leave", "requeue", "stop", NULL};
static const char *const users_choices[] = {"auto", "own", "all", NULL};
static const char *const driver_calls_choices[] = {"listed", "any", NULL};
static const char *const no_yes[] = {"no", "yes", NULL};
const char *const takt_config_orders[] = {"priority",	"fifo", "round_robin", "qssf", "las",
					  "fair_share", "edf",	"takt",	       NULL};
const char *const takt_config_hostname_labels[] = {"Hostname", "hostname", "none", NULL};
const char *const takt_config_backfills[] = {"none", "greedy", "easy", "conservative", NULL};

#define AT(member) offsetof(struct takt_config, member), sizeof(((struct takt_config *)0)->member)
static const struct key keys[] = {
	{"socket", PATH, AT(socket), "", 0, 0, NULL,
	 "Unix socket of the API. Default: takt.sock in runtime_dir."},
	{"state_dir", PATH, AT(state_dir), "", 0, 0, NULL,
	 "Where jobs and their logs are kept; a local file system. Default: /var/lib/takt as root "
	 "or "
	 "with users = all, else $XDG_STATE_HOME/takt or ~/.local/state/takt."},
	{"clocks_dir", PATH, AT(clocks_dir), "", 0, 0, NULL,
	 "Where the journal of clocks is kept, by takt-actuate. Default: state_dir; beside "
	 "/var/lib/takt, which may be the daemon's, /var/lib/takt-clocks, which is root's."},
	{"runtime_dir", PATH, AT(runtime_dir), "", 0, 0, NULL,
	 "Where sockets and locks are. Default: /run/takt as root or with users = all, else "
	 "$XDG_RUNTIME_DIR/takt or /tmp/takt-UID."},
	{"helpers_dir", PATH, AT(helpers_dir), "", 0, 0, NULL,
	 "Where takt-launch and takt-actuate listen. Default: runtime_dir; beside /run/takt, which "
	 "may be the daemon's, /run/takt-helpers, which is root's."},
	{"lock_dir", PATH, AT(lock_dir), "", 0, 0, NULL,
	 "Where the locks of GPUs are, by which every takt of this machine knows who manages "
	 "which. Default: root_lock_dir as root or with users = all, else /run/lock/takt."},
	{"root_lock_dir", PATH, AT(root_lock_dir), "/run/takt/locks", 0, 0, NULL,
	 "Where a takt that root runs, or for all users, has its locks, which no user can take. "
	 "Every other takt leaves it the GPUs."},
	{"users", CHOICE, AT(users), "auto", 0, 0, users_choices,
	 "Whom to serve: own is the user who runs takt (and root), all is everybody on this "
	 "machine, which needs cgroup v2, auto is all as root where that is there, else own."},
	{"allow_weak_isolation", CHOICE, AT(allow_weak_isolation), "no", 0, 0, no_yes,
	 "Serve everybody also where there is no cgroup v2, or takt may not use it: then a job can "
	 "open every GPU, its memory, CPU time and processes are not bound, and a process of its "
	 "that hides may outlive it."},
	{"allow_system_users", CHOICE, AT(allow_system_users), "no", 0, 0, no_yes,
	 "Run jobs also of users that are the system's: with numbers below UID_MIN of "
	 "/etc/login.defs (1000), nobody, and those of services with DynamicUser=."},
	{"metrics_listen", TEXT, AT(metrics_listen), "auto", 0, 0, NULL,
	 "ADDRESS:PORT of the Prometheus page, or off. auto is 127.0.0.1:9830, on simulated GPUs "
	 "127.0.0.1:9831."},
	{"metrics_hosts", TEXT, AT(metrics_hosts), "", 0, 0, NULL,
	 "Further names, with commas between, by which the metrics page and the web page may be "
	 "asked for (the Host header)."},
	{"metrics_tls", CHOICE, AT(metrics_tls), "no", 0, 0, no_yes,
	 "Whether the metrics page is served over HTTPS, with tls_certificate and tls_key."},
	{"metrics_dcgm", CHOICE, AT(metrics_dcgm), "yes", 0, 0, no_yes,
	 "Whether the metrics page has the names and labels of dcgm-exporter, too, for dashboards "
	 "that "
	 "were made for it."},
	{"metrics_textfile", PATH, AT(metrics_textfile), "", 0, 0, NULL,
	 "A file, best called takt.prom in the folder of node_exporter's textfile collector, into "
	 "which "
	 "the metrics page is written every 15 seconds."},
	{"nccl_inspector", PATH, AT(nccl_inspector), "", 0, 0, NULL,
	 "The folder on this machine into which NCCL's inspector plugin writes metrics for "
	 "node_exporter (NCCL_INSPECTOR_DUMP_DIR): what the jobs of takt write there is on the "
	 "metrics page."},
	{"metrics_hostname", CHOICE, AT(metrics_hostname), "Hostname", 0, 0,
	 takt_config_hostname_labels,
	 "Which label of these series has this machine's name: dcgm-exporter's was Hostname until "
	 "its release of 2026, hostname since."},
	{"web_listen", TEXT, AT(web_listen), "off", 0, 0, NULL,
	 "ADDRESS:PORT of the web page and, for those who have a token (takt token), of the API; "
	 "or "
	 "off. 127.0.0.1:9832 is for this machine; others are served over HTTPS only, with "
	 "tls_certificate and tls_key."},
	{"tls_certificate", PATH, AT(tls_certificate), "", 0, 0, NULL,
	 "PEM file of this machine's certificate, with those that vouch for it after it. Read "
	 "again when it is renewed."},
	{"tls_key", PATH, AT(tls_key), "", 0, 0, NULL,
	 "PEM file of its private key; not open to everybody."},
	{"metrics_hpc_job", CHOICE, AT(metrics_hpc_job), "no", 0, 0, no_yes,
	 "Whether series by the names of dcgm-exporter carry the number of the job that holds the "
	 "GPU, as its label hpc_job; of a shared GPU there is then one a job."},
	{"metrics_user", CHOICE, AT(metrics_user), "no", 0, 0, no_yes,
	 "Whether takt_gpu_job names the user of the job: whoever may read the metrics page then "
	 "sees who uses which GPU."},
	{"metrics_job_name", CHOICE, AT(metrics_job_name), "no", 0, 0, no_yes,
	 "Whether takt_gpu_job has the name of the job, too."},
	{"admin_group", TEXT, AT(admin_group), "takt-admin", 0, 0, NULL,
	 "Members of this group are administrators, like root.", true},
	{"nvml_path", PATH, AT(nvml_path), "", 0, 0, NULL,
	 "NVML library to load. Default: libnvidia-ml.so.1 where the loader finds it."},
	{"set_clocks", CHOICE, AT(set_clocks), "yes", 0, 0, no_yes,
	 "Whether takt-actuate sets clocks, power limits and MIG where a job, a governor or an "
	 "administrator asks for it. no: for nobody; what was set is put back all the same. Where "
	 "takt-actuate is a unit of its own its flag --sets none is what counts (takt init)."},
	{"mps_dir", PATH, AT(mps_dir), "/tmp/nvidia-mps", 0, 0, NULL,
	 "Where the MPS daemon that root runs has its pipes. Jobs on parts of GPUs that use it are "
	 "held "
	 "to their memory by it. Another directory that a job names counts as none."},
	{"driver_calls", CHOICE, AT(driver_calls), "listed", 0, 0, driver_calls_choices,
	 "Which system calls the driver's library may make in takt-actuate and takt-guard, which "
	 "set and restore clocks: those that drivers are known to need, or any. What is refused "
	 "is logged by name."},
	{"sysfs_root", PATH, AT(sysfs_root), "/sys", 0, 0, NULL,
	 "Where the kernel's sysfs is, in which takt reads the network's counters and takt clock "
	 "set --cpu-max-mhz limits CPUs."},
	{"wake_gpus", CHOICE, AT(wake_gpus), "no", 0, 0, no_yes,
	 "Whether takt asks the driver about GPUs that are suspended, as a laptop's may be: that "
	 "wakes them. It starts the driver then even while all of them are."},
	{"kernel_log", TEXT, AT(kernel_log), "auto", 0, 0, NULL,
	 "The kernel's log, in which it says what goes wrong with GPUs: a file, or off. auto is "
	 "/dev/kmsg, on simulated GPUs off."},
	{"replay", PATH, AT(replay), "", 0, 0, NULL,
	 "Answer from a recording made by takt record instead of from GPUs."},
	{"baseline_file", PATH, AT(baseline_file), "", 0, 0, NULL,
	 "Clocks to which GPUs go back when nobody asks for others. Default: the driver's own."},
	{"net_listen", TEXT, AT(net_listen), "off", 0, 0, NULL,
	 "Numeric ADDRESS:PORT (UDP), such as 10.0.0.1:9833, at which round trips to other "
	 "machines "
	 "are measured and their probes answered, or off; docs/telemetry.md explains it."},
	{"net_peers", TEXT, AT(net_peers), "", 0, 0, NULL,
	 "Those machines, NAME=ADDRESS:PORT with commas between; nobody else is answered."},
	{"net_key_file", PATH, AT(net_key_file), "", 0, 0, NULL,
	 "A secret of at least 32 bytes that all of them have, readable by its owner alone."},
	{"sample_hz", NUMBER, AT(sample_hz), "10", 1, 100, NULL,
	 "How often each GPU is read, in a second."},
	{"history", CHOICE, AT(history), "yes", 0, 0, no_yes,
	 "Whether what GPUs did is kept for takt history: about 10 MiB a GPU in state_dir, never "
	 "more, and only where that is little of what is free."},
	{"manage", CHOICE, AT(manage), "auto", 0, 0, manage_choices,
	 "Whether to run jobs and set clocks. auto: not where Slurm, a kubelet or another takt "
	 "does."},
	{"drain_limit", DURATION, AT(drain_limit_ms), "1m", 1000, 86400000, NULL,
	 "How long a GPU may take to become clean after a job before it is set aside.", true},
	{"rank_port_first", NUMBER, AT(rank_port_first), "29600", 1024, 65535, NULL,
	 "First port at which the ranks of a job may meet (MASTER_PORT); each job has one of its "
	 "own."},
	{"rank_port_last", NUMBER, AT(rank_port_last), "30599", 1024, 65535, NULL,
	 "The last such port; not below the first."},
	{"stage", CHOICE, AT(stage), "asked", 0, 0, stage_choices,
	 "Which jobs are made ready before the GPUs they wait for are free: none, those with "
	 "--stage or --prefetch, or all.",
	 true},
	{"prefetch_limit", DURATION, AT(prefetch_limit_ms), "10m", 1000, 86400000, NULL,
	 "How long the --prefetch command of a job may run.", true},
	{"hook_limit", DURATION, AT(hook_limit_ms), "1m", 1000, 86400000, NULL,
	 "How long the --hook command of a job may run at an event before it is ended.", true},
	{"output_limit", SIZE, AT(output_limit_mib), "1G", 0, 1 << 30, NULL,
	 "How much is kept of what a job prints; of more its log keeps the beginning and the "
	 "newest part, and the job goes on. Less where state_dir is on a disk that has not a "
	 "hundred times as much free when the job starts. 0M: all of it.",
	 true},
	{"output_share", PERCENT, AT(output_share_permille), "10%", 0, 900, NULL,
	 "How much of the disk of state_dir what is kept of all jobs' output may take; one user "
	 "has "
	 "a quarter of it where users = all. A job that starts is given at most a sixteenth of "
	 "what "
	 "is left, never less than 64 KiB, and the oldest logs of jobs that are over go once three "
	 "quarters are taken. 0%: no such end.",
	 true},
	{"job_processes", NUMBER, AT(job_processes), "32768", 16, 4194304, NULL,
	 "How many processes and threads a job may have at a time, where it has a cgroup. It "
	 "cannot make more, and goes on.",
	 true},
	{"max_grace", DURATION, AT(max_grace_ms), "10m", 0, 86400000, NULL,
	 "The longest grace that a job may ask for, between being told to end (or to write a "
	 "checkpoint) and being ended: so long it may outlive its time limit and a cancel.",
	 true},
	{"max_connections", NUMBER, AT(max_connections), "256", 8, 10000, NULL,
	 "Connections to the API at a time."},
	{"max_jobs", NUMBER, AT(max_jobs), "100000", 1, 200000, NULL,
	 "Jobs that may wait or run at a time; further ones are refused.", true},
	{"user_max_jobs", NUMBER, AT(user_max_jobs), "0", 0, 200000, NULL,
	 "Of these, jobs that one user may have where users = all; 0: a quarter of max_jobs. A "
	 "sixteenth of max_jobs is kept for root.",
	 true},
	{"user_descriptions", SIZE, AT(user_descriptions_mib), "128M", 1, 512, NULL,
	 "How much the descriptions of one user's jobs, with their environments, may come to "
	 "where users = all; those of all users may come to 512 MiB, of which 32 MiB are kept for "
	 "root.",
	 true},
	{"on_gpu_fault", CHOICE, AT(on_gpu_fault), "leave", 0, 0, on_gpu_fault_choices,
	 "What becomes of a job whose GPU is lost or quarantined (takt health) while it runs: "
	 "leave it to see for itself, requeue it, or stop it. A GPU that is lost under a job is "
	 "set aside until takt gpu resume. A job with --requeue is requeued unless it is left.",
	 true},
	{"keep_ended", NUMBER, AT(keep_ended), "100000", 1, 10000000, NULL,
	 "Ended jobs that are kept in history, the newest, each with its logs.", true},
	{"history_limit", SIZE, AT(history_limit_mib), "1G", 16, 1 << 30, NULL,
	 "How large the database may get before the first of them are forgotten, whatever "
	 "keep_ended says, and at most a twentieth of the disk of state_dir.",
	 true},
	{"backup_keep", NUMBER, AT(backup_keep), "7", 0, 1000, NULL,
	 "How many daily backups of the database are kept in state_dir; 0: none are made.", true},
	{"order", CHOICE, AT(order), "priority", 0, 0, takt_config_orders,
	 "Who of the waiting jobs goes first; docs/queue.md explains them. A job's priority "
	 "goes before each of them.",
	 true},
	{"backfill", CHOICE, AT(backfill), "easy", 0, 0, takt_config_backfills,
	 "Who may overtake a job that waits for GPUs: nobody, whoever fits, or whoever is "
	 "predicted "
	 "to be over before the first one (easy), the first 16 (conservative) can start.",
	 true},
	{"guard", DURATION, AT(guard_ms), "0s", 0, 4000000000, NULL,
	 "A job that has waited so long goes to the front of its priority; 0s: never.", true},
	{"preempt", CHOICE, AT(preempt), "yes", 0, 0, no_yes,
	 "Whether jobs that were handed in as preemptible are pushed out for others, where order "
	 "or "
	 "quotas say so; they are run again later.",
	 true},
	{"min_runtime", DURATION, AT(min_runtime_ms), "1m", 0, 4000000000, NULL,
	 "No job is pushed out before it has run so long.", true},
	{"clock_policy", POLICY, AT(clock_policy), "auto", 0, 0, NULL,
	 "Which governor chooses the clocks of jobs that name none, with its parameters if it is "
	 "given any (fixed:sm_mhz=1200). auto: slo with a latency, power-budget with a "
	 "power budget, assured with a slowdown promised, else observe, which changes none.",
	 true},
	{"governors", PATHS, AT(governors), "", 0, 0, NULL,
	 "Shared objects with governors of your own (docs/governors.md), absolute paths with "
	 "commas between. Their code runs in takt serve: each file, and the folders above it, must "
	 "be root's or of the user who runs takt, and not writable by others."},
	{"max_slowdown", PERCENT, AT(max_slowdown_permille), "0%", 0, 500, NULL,
	 "How much longer a job that does not say it may take for the sake of energy; 0%: not at "
	 "all, and its clocks are left alone.",
	 true},
	{"clock_epoch", DURATION, AT(clock_epoch_ms), "3s", 500, 600000, NULL,
	 "How long a governor watches a job at one setting before it chooses the next.", true},
	{"assume_unlocked", CHOICE, AT(assume_unlocked), "no", 0, 0, no_yes,
	 "Whether nobody but takt locks clocks here. no: where no baseline is declared, a GPU is "
	 "first seen to run at its highest clock under load, and left alone if it does not.",
	 true},
	{"power_budget_w", NUMBER, AT(power_budget_w), "0", 0, 1000000, NULL,
	 "Watts that all GPUs of this machine may draw together; 0: no budget. With one, "
	 "power-budget is the governor of jobs that name none, and shares it out among them. "
	 "docs/governors.md explains it.",
	 true},
	{"forecast_ahead", DURATION, AT(forecast_ahead_ms), "5m", 1000, 3600000, NULL,
	 "How far the governors forecast and slo look ahead at a job's load, where that can be "
	 "foreseen.",
	 true},
	{"forecast_step", DURATION, AT(forecast_step_ms), "1m", 1000, 3600000, NULL,
	 "Of the job's load as it is kept for that: averaged over so long, in whole seconds.",
	 true},
	{"forecast_season", DURATION, AT(forecast_season_ms), "24h", 0, 604800000, NULL,
	 "After how long such load may repeat itself; 0s: never.", true},
	{"forecast_model", PATH, AT(forecast_model), "", 0, 0, NULL,
	 "A network made by takt forecast train, with the same step and distance, that is tried "
	 "beside the other forecasters."},
	{"tenants_file", PATH, AT(tenants_file), "", 0, 0, NULL,
	 "Weights, quotas and limits of users and tenants; read again when it changes. Default: "
	 "/etc/takt/tenants.conf if it is there.",
	 true},
};

static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys); i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

const char *takt_config_key(size_t i, const char **ret_doc)
{
	if (i >= TAKT_ARRAY_LEN(keys))
		return NULL;
	if (ret_doc)
		*ret_doc = keys[i].doc;
	return keys[i].name;
}

static const char *key_at(const void *ctx, size_t i)
{
	return takt_config_key(i, NULL);
}

static void *place(const struct key *key, struct takt_config *config)
{
	return (char *)config + key->offset;
}

static bool are_absolute(const char *paths)
{
	while (*paths) {
		paths += strspn(paths, " \t");
		if (*paths != '/')
			return false;
		paths += strcspn(paths, ",");
		paths += *paths == ',';
	}
	return true;
}

static int check_form(const struct key *key, const char *value, const char *where,
		      struct takt_err *err)
{
	struct takt_policy_text policy;

	if (key->kind == PATH && value[0] && value[0] != '/')
		return takt_err_set(err, -TAKT_E_USAGE, "%s: %s must be an absolute path, not '%s'",
				    where, key->name, value);
	if (key->kind == PATHS && !are_absolute(value))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s: %s must be absolute paths with commas between, not '%s'",
				    where, key->name, value);
	if (key->kind == POLICY && takt_policy_text_parse(value, &policy) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s: %s must be auto, " TAKT_POLICY_FORM ", not '%.60s'", where,
				    key->name, value);
	return 0;
}

static int set_text(const struct key *key, const char *value, char *to, const char *where,
		    struct takt_err *err)
{
	int rc = check_form(key, value, where, err);

	if (rc < 0)
		return rc;
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '\x7f')
			return takt_err_set(err, -TAKT_E_USAGE,
					    "%s: %s must not have control characters", where,
					    key->name);
	if (strlen(value) >= key->size)
		return takt_err_set(err, -TAKT_E_USAGE, "%s: %s must have at most %zu bytes", where,
				    key->name, key->size - 1);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int set_number(const struct key *key, const char *value, uint32_t *to, const char *where,
		      struct takt_err *err)
{
	unsigned long long number;

	if (takt_parse_u64(value, key->min, key->max, &number) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s: %s must be a number from %llu to %llu, not '%s'", where,
				    key->name, (unsigned long long)key->min,
				    (unsigned long long)key->max, value);
	*to = (uint32_t)number;
	return 0;
}

static int set_percent(const struct key *key, const char *value, uint32_t *to, const char *where,
		       struct takt_err *err)
{
	if (takt_percent_parse(value, (uint32_t)key->max, to) == 0)
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "%s: %s must be a percentage up to %llu such as 3%%, not '%s'", where,
			    key->name, (unsigned long long)key->max / 10, value);
}

static int set_duration(const struct key *key, const char *value, uint32_t *to, const char *where,
			struct takt_err *err)
{
	char min[TAKT_DURATION_EXACT], max[TAKT_DURATION_EXACT];
	uint64_t ns = 0;
	int rc = takt_duration_parse(value, &ns);

	if (rc < 0 || ns / TAKT_NS_PER_MS < key->min || ns / TAKT_NS_PER_MS > key->max)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"%s: %s must be a time such as 30s or 1m30s, from %s to %s, not "
			"'%s'",
			where, key->name, takt_duration_exact(key->min * TAKT_NS_PER_MS, min),
			takt_duration_exact(key->max * TAKT_NS_PER_MS, max), value);
	*to = (uint32_t)(ns / TAKT_NS_PER_MS);
	return 0;
}

static int set_size(const struct key *key, const char *value, uint32_t *to, const char *where,
		    struct takt_err *err)
{
	uint64_t mib = 0;

	if (takt_size_parse(value, &mib) < 0 || mib < key->min || mib > key->max)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s: %s must be a size such as 512M or 16G, not '%.40s'", where,
				    key->name, value);
	*to = (uint32_t)mib;
	return 0;
}

static int set_choice(const struct key *key, const char *value, unsigned *to, const char *where,
		      struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str all = TAKT_STR(CHOICES_BYTES);

	for (unsigned i = 0; key->choices[i]; i++) {
		if (strcmp(key->choices[i], value) == 0) {
			*to = i;
			return 0;
		}
		(void)takt_str_addf(&all, "%s%s", i ? ", " : "", key->choices[i]);
	}
	return takt_err_set(err, -TAKT_E_USAGE, "%s: %s must be one of %s, not '%s'", where,
			    key->name, takt_str_text(&all), value);
}

static int set_key(struct takt_config *config, const struct key *key, const char *value,
		   const char *where, struct takt_err *err)
{
	switch (key->kind) {
	case NUMBER:
		return set_number(key, value, place(key, config), where, err);
	case DURATION:
		return set_duration(key, value, place(key, config), where, err);
	case SIZE:
		return set_size(key, value, place(key, config), where, err);
	case PERCENT:
		return set_percent(key, value, place(key, config), where, err);
	case CHOICE:
		return set_choice(key, value, place(key, config), where, err);
	default:
		return set_text(key, value, place(key, config), where, err);
	}
}

void takt_config_init(struct takt_config *config)
{
	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys); i++)
		(void)set_key(config, &keys[i], keys[i].absent, "default", NULL);
}

int takt_config_set(struct takt_config *config, const char *key_name, const char *value,
		    const char *where, struct takt_err *err)
{
	const struct key *key = find_key(key_name);
	const char *near;

	if (!key) {
		near = takt_suggest(key_name, key_at, NULL);
		return takt_err_set(err, -TAKT_E_USAGE, "%s: there is no setting '%.60s'%s%s%s",
				    where, key_name, near ? "; did you mean '" : "",
				    near ? near : "", near ? "'?" : "");
	}
	return set_key(config, key, value, where, err);
}

struct parse {
	struct takt_config next;
	bool seen[TAKT_ARRAY_LEN(keys)];
};

static int parse_line(void *ctx, const struct takt_ini_line *line, struct takt_err *err)
{
	struct parse *parse = ctx;
	const struct key *key = line->key ? find_key(line->key) : NULL;

	if (!line->key)
		return takt_err_set(err, -TAKT_E_USAGE, "%s: '[%.60s]' is not a line 'key = value'",
				    line->where, line->section);
	if (key && parse->seen[key - keys])
		return takt_err_set(err, -TAKT_E_USAGE, "%s: %s stands twice", line->where,
				    line->key);
	if (key)
		parse->seen[key - keys] = true;
	return takt_config_set(&parse->next, line->key, line->value, line->where, err);
}

int takt_config_parse(struct takt_config *config, const char *text, size_t len, const char *name,
		      struct takt_err *err)
{
	struct parse parse = {.next = *config};
	int rc = takt_ini_each(text, len, name, parse_line, &parse, err);

	if (rc == 0)
		*config = parse.next;
	return rc;
}

struct check {
	struct parse parse;
	void (*say)(void *ctx, const char *message);
	void *ctx;
	unsigned errors;
};

static int say_line(void *ctx, const struct takt_ini_line *line, struct takt_err *err)
{
	struct check *check = ctx;
	struct takt_err wrong;

	if (parse_line(&check->parse, line, &wrong) < 0) {
		check->say(check->ctx, wrong.msg);
		check->errors++;
	}
	return 0;
}

static int pass_over(void *ctx, const struct takt_ini_line *line, struct takt_err *err)
{
	return 0;
}

/* "name:7: ..." */
static void blank_line_of(const struct takt_err *err, const char *name, char *text)
{
	size_t skip = strlen(name) + 1;
	unsigned long number = strlen(err->msg) > skip ? strtoul(err->msg + skip, NULL, 10) : 0;

	for (unsigned long at = 1; text && at < number; at++) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	if (text && number)
		memset(text, ' ', strcspn(text, "\n"));
}

unsigned takt_config_check(const char *text, size_t len, const char *name,
			   void (*say)(void *ctx, const char *message), void *ctx)
{
	TAKT_CLEANUP(freep) char *copy = takt_alloc(len + 1);
	struct check check = {.say = say, .ctx = ctx};
	struct takt_err err;

	takt_config_init(&check.parse.next);
	if (!copy) {
		say(ctx, "no memory to read it");
		return 1;
	}
	memcpy(copy, text, len);
	copy[len] = '\0';
	/* What is no line at all ends a walk: said, and taken out for the next one. */
	for (unsigned last = 0; takt_ini_each(copy, len, name, pass_over, NULL, &err) < 0;) {
		say(ctx, err.msg);
		check.errors++;
		blank_line_of(&err, name, copy);
		if (++last > TAKT_CONFIG_MAX_FILE || memchr(text, '\0', len))
			return check.errors;
	}
	(void)takt_ini_each(copy, len, name, say_line, &check, NULL);
	return check.errors;
}

int takt_config_load(struct takt_config *config, const char *path, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len = 0;
	int rc = takt_file_read(takt_sys_real(), AT_FDCWD, path, TAKT_CONFIG_MAX_FILE, &text, &len,
				err);

	return rc < 0 ? rc : takt_config_parse(config, text, len, path, err);
}

static int join(char *to, size_t size, const char *a, const char *b, struct takt_err *err)
{
	if (snprintf(to, size, "%s%s", a, b) >= (int)size)
		return takt_err_set(err, -ENAMETOOLONG, "path '%.80s...%s' is too long", a, b);
	return 0;
}

/* Places of the whole machine: root's, and of the account that serves all users. */
static bool is_for_all(const struct takt_config *config, uid_t uid)
{
	return uid == 0 || config->users == TAKT_USERS_ALL;
}

/* What root's helpers own is not in a directory of the daemon's, which may be an account's. */
static int resolve_machine(struct takt_config *config, struct takt_err *err)
{
	int rc = 0;

	if (!config->runtime_dir[0] && !config->helpers_dir[0])
		rc = join(config->helpers_dir, TAKT_CONFIG_PATH, "/run", "/takt-helpers", err);
	if (rc == 0 && !config->runtime_dir[0])
		rc = join(config->runtime_dir, TAKT_CONFIG_PATH, "/run", "/takt", err);
	if (rc == 0 && !config->state_dir[0] && !config->clocks_dir[0])
		rc = join(config->clocks_dir, TAKT_CONFIG_PATH, "/var/lib", "/takt-clocks", err);
	if (rc == 0 && !config->state_dir[0])
		rc = join(config->state_dir, TAKT_CONFIG_PATH, "/var/lib", "/takt", err);
	return rc;
}

static int resolve_runtime(struct takt_config *config, uid_t uid, const char *xdg,
			   struct takt_err *err)
{
	char tmp[40];

	if (config->runtime_dir[0])
		return 0;
	snprintf(tmp, sizeof(tmp), "/tmp/takt-%u", (unsigned)uid);
	if (xdg && xdg[0] == '/')
		return join(config->runtime_dir, TAKT_CONFIG_PATH, xdg, "/takt", err);
	return join(config->runtime_dir, TAKT_CONFIG_PATH, tmp, "", err);
}

static int resolve_state(struct takt_config *config, const char *xdg, const char *home,
			 struct takt_err *err)
{
	if (config->state_dir[0])
		return 0;
	if (xdg && xdg[0] == '/')
		return join(config->state_dir, TAKT_CONFIG_PATH, xdg, "/takt", err);
	if (home && home[0] == '/')
		return join(config->state_dir, TAKT_CONFIG_PATH, home, "/.local/state/takt", err);
	return takt_err_set(err, -TAKT_E_USAGE,
			    "no place to keep jobs: set state_dir, $XDG_STATE_HOME or $HOME");
}

int takt_config_resolve(struct takt_config *config, uid_t uid, const char *xdg_runtime_dir,
			const char *xdg_state_home, const char *home, struct takt_err *err)
{
	bool for_all = is_for_all(config, uid);
	int rc = for_all ? resolve_machine(config, err) : 0;

	if (!config->lock_dir[0])
		(void)takt_strcpy(config->lock_dir, sizeof(config->lock_dir),
				  for_all ? config->root_lock_dir : "/run/lock/takt");
	if (rc == 0)
		rc = resolve_runtime(config, uid, xdg_runtime_dir, err);
	if (rc == 0)
		rc = resolve_state(config, xdg_state_home, home, err);
	if (rc == 0 && !config->helpers_dir[0])
		takt_strcpy(config->helpers_dir, sizeof(config->helpers_dir), config->runtime_dir);
	if (rc == 0 && !config->clocks_dir[0])
		takt_strcpy(config->clocks_dir, sizeof(config->clocks_dir), config->state_dir);
	if (rc == 0 && !config->socket[0])
		rc = join(config->socket, TAKT_CONFIG_PATH, config->runtime_dir, "/takt.sock", err);
	return rc;
}

static bool is_same(const struct key *key, const struct takt_config *a, const struct takt_config *b)
{
	const char *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;

	return key->kind <= TEXT ? strcmp(x, y) == 0 : memcmp(x, y, key->size) == 0;
}

static void add_name(struct takt_str *list, const char *name)
{
	takt_str_addf(list, "%s%s", list->len ? "," : "", name);
}

void takt_config_adopt(struct takt_config *config, const struct takt_config *next,
		       struct takt_str *changed, struct takt_str *need_restart)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys); i++) {
		const struct key *key = &keys[i];

		if (is_same(key, config, next))
			continue;
		add_name(key->live ? changed : need_restart, key->name);
		if (key->live)
			memcpy(place(key, config), (const char *)next + key->offset, key->size);
	}
}

static int print_size(uint32_t mib, struct takt_str *out)
{
	bool whole = mib && mib % 1024 == 0;

	return takt_str_addf(out, "%u%c", whole ? mib / 1024 : mib, whole ? 'G' : 'M');
}

static int print_value(const struct key *key, const struct takt_config *config,
		       struct takt_str *out)
{
	const void *at = (const char *)config + key->offset;
	char text[TAKT_DURATION_EXACT];

	switch (key->kind) {
	case NUMBER:
		return takt_str_addf(out, "%u", *(const uint32_t *)at);
	case DURATION:
		return takt_str_add(
			out, takt_duration_exact(*(const uint32_t *)at * TAKT_NS_PER_MS, text));
	case PERCENT:
		return takt_str_addf(out, "%u.%u%%", *(const uint32_t *)at / 10,
				     *(const uint32_t *)at % 10);
	case SIZE:
		return print_size(*(const uint32_t *)at, out);
	case CHOICE:
		return takt_str_add(out, key->choices[*(const unsigned *)at]);
	default:
		return takt_str_add(out, at);
	}
}

/* Lines of at most 78 columns that begin with `prefix`. */
static void wrap(struct takt_str *out, const char *prefix, const char *text)
{
	size_t width = 78 - strlen(prefix), column = 0, word;

	for (; *text; text += word + strspn(text + word, " ")) {
		word = strcspn(text, " ");
		if (column > 0 && column + 1 + word > width) {
			takt_str_add(out, "\n");
			column = 0;
		}
		takt_str_add(out, column ? " " : prefix);
		takt_str_addn(out, text, word);
		column += word + (column ? 1 : 0);
	}
	takt_str_add(out, "\n");
}

int takt_config_print(const struct takt_config *config, struct takt_str *out)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys); i++) {
		takt_str_add(out, i ? "\n" : "");
		wrap(out, "# ", keys[i].doc);
		takt_str_add(out, keys[i].live ? "# (takt config reload)\n" : "");
		takt_str_addf(out, "%s = ", keys[i].name);
		print_value(&keys[i], config, out);
		takt_str_add(out, "\n");
	}
	return out->rc;
}

static void add_flag(const struct key *key, struct takt_str *out)
{
	static const char *const values[] = {"PATH", "PATH,...", "auto|GOVERNOR[:PARAM=N,...]",
					     "TEXT", "N",	 "TIME",
					     "SIZE", "PERCENT",	 ""};
	const char *separator = "";

	takt_str_add(out, "  --");
	for (const char *c = key->name; *c; c++)
		takt_str_addn(out, *c == '_' ? "-" : c, 1);
	takt_str_addf(out, " %s", values[key->kind]);
	for (size_t i = 0; key->kind == CHOICE && key->choices[i]; i++) {
		takt_str_addf(out, "%s%s", separator, key->choices[i]);
		separator = "|";
	}
	if (key->absent[0])
		takt_str_addf(out, "  (default %s)", key->absent);
	takt_str_add(out, "\n");
}

int takt_config_help(struct takt_str *out)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys); i++) {
		add_flag(&keys[i], out);
		wrap(out, "      ", keys[i].doc);
	}
	return out->rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the daemon: one table of keys, from which the file's parser, the flags of `takt
 * serve`, its help, the printed configuration and the documentation come.
 *
 * The file has lines "key = value"; empty lines and lines that begin with '#' are comments. Values
 * are not quoted and go to the end of the line. Flags are the same keys with dashes
 * ("--sample-hz 20", "--sample-hz=20") and win over the file; "--manage" alone means always.
 */
#ifndef TAKT_CONFIG_CONFIG_H
#define TAKT_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/policy_text.h"
#include "base/str.h"

enum {
	TAKT_CONFIG_PATH = 512,
	TAKT_CONFIG_MAX_FILE = 64 * 1024,
	TAKT_CONFIG_MAX_KEYS = 64,
};

enum takt_manage {
	TAKT_MANAGE_AUTO,   /* observe only beside Slurm, a kubelet or another takt */
	TAKT_MANAGE_ALWAYS, /* even then */
	TAKT_MANAGE_NEVER,  /* observe only */
};

enum takt_users {
	TAKT_USERS_AUTO, /* all when run by root with cgroup v2, else own */
	TAKT_USERS_OWN,	 /* the user who runs it, and root */
	TAKT_USERS_ALL,
};

enum takt_stage_config {
	TAKT_STAGE_CONFIG_OFF,
	TAKT_STAGE_CONFIG_ASKED, /* jobs that ask for it, or for a prefetch */
	TAKT_STAGE_CONFIG_ALL,
};

/* Who goes first, by the names of the scheduler's policies, and what may overtake; both end in NULL
 * and are indexed by the fields below. */
extern const char *const takt_config_orders[], *const takt_config_backfills[];
/* The last stands for none. */
extern const char *const takt_config_hostname_labels[];
/* "auto": who chooses the clocks of jobs that do not say it is as they promise. */
#define TAKT_CLOCK_POLICY_AUTO "auto"

/* What becomes of a job whose GPU is lost. */
enum takt_on_gpu_fault {
	TAKT_ON_FAULT_LEAVE,
	TAKT_ON_FAULT_REQUEUE,
	TAKT_ON_FAULT_STOP,
};

struct takt_config {
	char socket[TAKT_CONFIG_PATH];
	char state_dir[TAKT_CONFIG_PATH], clocks_dir[TAKT_CONFIG_PATH];
	char runtime_dir[TAKT_CONFIG_PATH], helpers_dir[TAKT_CONFIG_PATH];
	char lock_dir[TAKT_CONFIG_PATH], root_lock_dir[TAKT_CONFIG_PATH];
	enum takt_users users;
	char metrics_listen[256]; /* "auto", "off" or ADDRESS:PORT */
	char metrics_hosts[512];  /* comma between them */
	uint32_t metrics_dcgm;	  /* 0 or 1 */
	char metrics_textfile[TAKT_CONFIG_PATH];
	char nccl_inspector[TAKT_CONFIG_PATH];
	uint32_t metrics_tls;	   /* 0 or 1 */
	uint32_t metrics_hostname; /* takt_config_hostname_labels */
	char web_listen[256];	   /* "off" or ADDRESS:PORT */
	char tls_certificate[TAKT_CONFIG_PATH], tls_key[TAKT_CONFIG_PATH]; /* "" = none */
	uint32_t metrics_hpc_job, metrics_user, metrics_job_name;	   /* 0 or 1 */
	char admin_group[64];
	char nvml_path[TAKT_CONFIG_PATH]; /* "" = where the loader finds it */
	uint32_t set_clocks;		  /* 0 or 1 */
	char mps_dir[TAKT_CONFIG_PATH];	  /* of the administrator's MPS daemon */
	uint32_t driver_calls;		  /* 0 listed, 1 any */
	char sysfs_root[TAKT_CONFIG_PATH];
	uint32_t wake_gpus;		   /* 0 or 1 */
	char kernel_log[TAKT_CONFIG_PATH]; /* "auto", "off" or a path */
	char replay[TAKT_CONFIG_PATH];	   /* "" = real GPUs */
	char baseline_file[TAKT_CONFIG_PATH];
	char net_listen[64]; /* "off" or ADDRESS:PORT */
	char net_peers[4096];
	char net_key_file[TAKT_CONFIG_PATH];
	uint32_t sample_hz;
	uint32_t history; /* 0 or 1 */
	enum takt_manage manage;
	uint32_t drain_limit_ms;
	uint32_t rank_port_first, rank_port_last;
	enum takt_stage_config stage;
	uint32_t prefetch_limit_ms;
	uint32_t hook_limit_ms;
	uint32_t output_limit_mib;	/* 0 = none */
	uint32_t output_share_permille; /* of the disk; 0 = none */
	uint32_t allow_weak_isolation;	/* 0 or 1 */
	uint32_t allow_system_users;	/* 0 or 1 */
	uint32_t job_processes;
	uint32_t max_grace_ms;
	uint32_t max_connections;
	uint32_t max_jobs;
	uint32_t user_max_jobs; /* 0 = a quarter */
	uint32_t user_descriptions_mib;
	uint32_t keep_ended;
	uint32_t history_limit_mib;
	uint32_t backup_keep;  /* 0 = none are made */
	uint32_t on_gpu_fault; /* enum takt_on_gpu_fault */
	uint32_t order;	       /* takt_config_orders */
	uint32_t backfill;     /* takt_config_backfills */
	uint32_t guard_ms;     /* 0 = none */
	uint32_t preempt;      /* 0 or 1 */
	uint32_t min_runtime_ms;
	char clock_policy[TAKT_POLICY_TEXT]; /* which governors there are is the daemon's to say */
	char governors[4096];		     /* paths with commas between; "" = none */
	uint32_t max_slowdown_permille;	     /* 0 = none */
	uint32_t clock_epoch_ms;
	uint32_t assume_unlocked; /* 0 or 1 */
	uint32_t power_budget_w;  /* of all GPUs together; 0 = none */
	uint32_t forecast_ahead_ms, forecast_step_ms, forecast_season_ms;
	char forecast_model[TAKT_CONFIG_PATH]; /* "" = none */
	char tenants_file[TAKT_CONFIG_PATH];   /* "" = /etc/takt/tenants.conf if it is there */
};

/* Defaults of every key; paths are still "" until takt_config_resolve. */
void takt_config_init(struct takt_config *config);

/* Sets one key. -TAKT_E_USAGE names the key and what would be accepted; an unknown key is told with
 * the nearest known one. `where` ("/etc/takt/takt.conf:3", "--sample-hz") stands before it. */
int takt_config_set(struct takt_config *config, const char *key, const char *value,
		    const char *where, struct takt_err *err);

/* All lines or nothing. A key twice is an error. `name` is for messages. */
int takt_config_parse(struct takt_config *config, const char *text, size_t len, const char *name,
		      struct takt_err *err);
/* Every error of a file, a line each ("name:3: ..."), handed to `say`; how many. */
unsigned takt_config_check(const char *text, size_t len, const char *name,
			   void (*say)(void *ctx, const char *message), void *ctx);
/* A file. -ENOENT when there is none. */
int takt_config_load(struct takt_config *config, const char *path, struct takt_err *err);

enum takt_config_action {
	TAKT_CONFIG_RUN,
	TAKT_CONFIG_HELP,  /* --help */
	TAKT_CONFIG_PRINT, /* --print-config */
};
/* The flags of `takt serve` (argv[0] is skipped), --config FILE among them; else
 * /etc/takt/takt.conf if it is there. Flags win. *config is initialised here and untouched on
 * failure. */
int takt_config_from_args(struct takt_config *config, int argc, char **argv,
			  enum takt_config_action *ret_action, struct takt_err *err);

/*
 * Fills in the paths that were not given. As root, or for all users: /run/takt, /var/lib/takt, and
 * what root's helpers keep in directories of its own beside them. As a user: $XDG_RUNTIME_DIR/takt
 * (else /tmp/takt-UID) and $XDG_STATE_HOME/takt (else ~/.local/state/takt). Environment values may
 * be NULL.
 */
int takt_config_resolve(struct takt_config *config, uid_t uid, const char *xdg_runtime_dir,
			const char *xdg_state_home, const char *home, struct takt_err *err);

/* Takes over of *next what counts without a restart; appends the names of what differed, with
 * commas between them: what was taken, and what needs a restart. */
void takt_config_adopt(struct takt_config *config, const struct takt_config *next,
		       struct takt_str *changed, struct takt_str *need_restart);

/* The configuration as a file that can be read again, each key with its explanation. */
int takt_config_print(const struct takt_config *config, struct takt_str *out);
/* The flags, one a line with default and range. */
int takt_config_help(struct takt_str *out);
/* The i-th key for tables of others (completion, man page); NULL beyond the last. doc may be NULL.
 */
const char *takt_config_key(size_t i, const char **ret_doc);

#endif

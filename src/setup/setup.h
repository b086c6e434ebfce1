/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting takt up on a machine, and taking that back: what the machine is, which files follow from
 * a few answers, and writing them so that all of them are there or none is.
 *
 *	takt_setup_look(&place, &machine);
 *	takt_setup_plan(&place, &machine, &answers, &plan, err);
 *	takt_setup_check(&plan, err);		nothing is written up to here
 *	takt_setup_begin(&plan, err);		undoes itself when it fails
 *	... start what was set up; then one of
 *	takt_setup_keep(&plan, err);
 *	takt_setup_undo(&plan, err);
 *
 * A record lists what was made, with checksums, where only who sets takt up writes. It is on disk
 * before the first file is, so that one who is killed in between can be taken back, too.
 * `root` goes before every path: "" is this machine, else a folder such as an image's. Below a
 * folder no symbolic link is followed when something is written.
 */
#ifndef TAKT_SETUP_SETUP_H
#define TAKT_SETUP_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

enum {
	TAKT_SETUP_PATH = 512,
	TAKT_SETUP_SUM = 65,
	TAKT_SETUP_MAX_ITEMS = 128,
	TAKT_SETUP_MAX_TEXT = 64 * 1024, /* of a file */
	TAKT_SETUP_WEB_PORT = 9832,
	TAKT_SETUP_METRICS_PORT = 9830,
};

enum takt_setup_who {
	TAKT_SETUP_ME,	/* one user, with files and a user unit of his own */
	TAKT_SETUP_ALL, /* all users of the machine, as root */
};

/* setup_machine.c */
enum takt_setup_cgroups {
	TAKT_SETUP_CGROUPS_UNKNOWN,
	TAKT_SETUP_CGROUPS_V1,
	TAKT_SETUP_CGROUPS_V2,
};

struct takt_setup_machine {
	char system[96]; /* as it calls itself; "" = not known */
	uint32_t gpu_count;
	char driver[32]; /* version of the loaded module; "" = none is */
	uint32_t user_count;
	char users[160];  /* who log in, by name, as many as fit */
	bool directory;	  /* there may be more: a directory service is asked for users, too */
	char manager[64]; /* who gives out GPUs already: "slurmd (pid 812)"; "" = nobody */
	enum takt_setup_cgroups cgroups;
	bool disk_known;
	char disk[TAKT_SETUP_PATH]; /* the folder that was looked at: the state's, or one above */
	uint64_t disk_free_mib;
	bool systemd;	   /* is its service manager */
	bool user_manager; /* the user has one of his own */
	bool pam, pam_service;
	bool account;
	bool serves_all; /* a takt for all users answers, or has */
};

/* Where takt is set up, and by whom. Texts are borrowed. */
struct takt_setup_place {
	const char *root; /* "" = this machine */
	enum takt_setup_who who;
	const char *config_home, *state_home; /* of a user; NULL with TAKT_SETUP_ALL */
	const char *runtime_dir;	      /* of a user; NULL = none */
	const char *bindir, *libexecdir;      /* where takt's programs are */
};

void takt_setup_look(const struct takt_setup_place *place, struct takt_setup_machine *ret);

/* answers.c */
struct takt_setup_answers {
	bool observe;  /* GPUs are not given out */
	bool clocks;   /* may be set, where somebody asks for it */
	char web[256]; /* "off", "local" or ADDRESS:PORT */
	char tls_certificate[TAKT_SETUP_PATH], tls_key[TAKT_SETUP_PATH]; /* "" = none */
};

/* What stands for all of the answers: in text as typed. -TAKT_E_USAGE says what is accepted. */
int takt_setup_read_who(const char *text, enum takt_setup_who *ret, struct takt_err *err);
int takt_setup_read_yes(const char *what, const char *text, bool *ret, struct takt_err *err);
/* Into answers->web; an address of others needs the certificate that is there by then. */
int takt_setup_read_web(const char *text, struct takt_setup_answers *answers, struct takt_err *err);

/* plan.c */
enum takt_setup_kind {
	TAKT_SETUP_FOLDER,
	TAKT_SETUP_FILE,
	TAKT_SETUP_LINK,
};
extern const char *const takt_setup_kinds[];

enum takt_setup_fate {
	TAKT_SETUP_MAKE,    /* nothing is there */
	TAKT_SETUP_SAME,    /* it is there as it is to be */
	TAKT_SETUP_RENEW,   /* of an earlier setting up, and unchanged since */
	TAKT_SETUP_REPLACE, /* somebody else's, or changed since: a copy is kept */
	TAKT_SETUP_DROP,    /* of an earlier setting up, unchanged, and needed no more */
	TAKT_SETUP_LEAVE,   /* the same, changed since: left */
};
extern const char *const takt_setup_fates[]; /* "make", ... for machines */

struct takt_setup_item {
	enum takt_setup_kind kind;
	enum takt_setup_fate fate;
	bool recorded; /* made by setting up, this time or before */
	char path[TAKT_SETUP_PATH];
	char *text;		     /* owned; of a file, or where a link leads; NULL of folders */
	char sum[TAKT_SETUP_SUM];    /* of what is there when it is made; "" of folders */
	char was[TAKT_SETUP_SUM];    /* the sum of an earlier one, while this is put in its place */
	char copy[TAKT_SETUP_PATH];  /* of what was there before; "" = none is kept */
	char aside[TAKT_SETUP_PATH]; /* while it is under way, what was there; "" = nothing */
	bool done;
	bool half; /* one who was killed had not put it in the place of what `copy` is to keep */
};

struct takt_setup_plan {
	const char *root;
	char record[TAKT_SETUP_PATH];
	TAKT_VEC(struct takt_setup_item) items; /* in the order in which they are made */
	bool account_needed, account_made;
	bool again;  /* there was a record, */
	bool killed; /* of one who was killed before all of it was there */
	bool removal;
	bool changes;		/* an item is to be made, renewed, replaced or dropped */
	struct takt_str before; /* the record as it was */
	bool recorded;		/* since takt_setup_begin */
	int lock_fd;		/* the same; -1 = none */
};

/* The caller finis it, also when planning failed. */
int takt_setup_plan(const struct takt_setup_place *place, const struct takt_setup_machine *machine,
		    const struct takt_setup_answers *answers, struct takt_setup_plan *ret,
		    struct takt_err *err);
void takt_setup_plan_fini(struct takt_setup_plan *plan);
/* The way back: a plan that drops whatever is on record and as it was made, the last first, and
 * leaves the rest. -TAKT_E_NOT_FOUND without a record. */
int takt_setup_plan_removal(const struct takt_setup_place *place, struct takt_setup_plan *ret,
			    struct takt_err *err);
/* Whether that file is made, renewed, replaced or dropped. */
bool takt_setup_touches(const struct takt_setup_plan *plan, const char *path);
/* The configuration and the record of whoever it is. */
void takt_setup_config_path(const struct takt_setup_place *place, char ret[TAKT_SETUP_PATH]);
void takt_setup_record_path(const struct takt_setup_place *place, char ret[TAKT_SETUP_PATH]);

/* config_text.c: the lines of an earlier file with those of the answers in place of their own.
 * -TAKT_E_USAGE names the line of one that has errors. */
int takt_setup_config_text(const struct takt_setup_place *place,
			   const struct takt_setup_machine *machine,
			   const struct takt_setup_answers *answers, const char *earlier,
			   struct takt_str *ret, struct takt_err *err);

/* apply.c */
int takt_setup_check(struct takt_setup_plan *plan, struct takt_err *err);
int takt_setup_begin(struct takt_setup_plan *plan, struct takt_err *err);
int takt_setup_keep(struct takt_setup_plan *plan, struct takt_err *err);
/* Folders that are needed no more, as far as nothing is in them; for who has emptied one since. */
void takt_setup_drop_folders(struct takt_setup_plan *plan);
/* Negative where something could not be undone: *err names it, and the record stays. */
int takt_setup_undo(struct takt_setup_plan *plan, struct takt_err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef TAKT_SETUP_SETUP_IMPL_H
#define TAKT_SETUP_SETUP_IMPL_H

#include <sys/stat.h>

#include "setup/setup.h"

/* unit_texts.c, made of units/: a NULL name ends the table. @BINDIR@ and @LIBEXECDIR@ stand for the
 * places of takt's programs. */
struct takt_setup_text {
	const char *name, *text;
};
extern const struct takt_setup_text takt_setup_texts[];

/* place.c: paths below a root. All return -errno. */
struct takt_setup_spot {
	int dirfd; /* of the folder that it is in */
	char name[256];
};
/* The caller closes dirfd. Below a root links are not followed (-ELOOP). */
int takt_setup_open(const char *root, const char *path, struct takt_setup_spot *ret);
int takt_setup_stat(const char *root, const char *path, struct stat *ret);
/* Regular files up to TAKT_SETUP_MAX_TEXT; a link's target for links. */
int takt_setup_text_of(const char *root, const char *path, struct takt_str *ret);
/* Renames within one folder. */
int takt_setup_rename(const char *root, const char *from, const char *to);
int takt_setup_unlink(const char *root, const char *path, bool folder);

void takt_setup_sum(const char *text, size_t len, char ret[TAKT_SETUP_SUM]);

/* setup_record.c */
int takt_setup_record_text(const struct takt_setup_plan *plan, bool begun, struct takt_str *out);
/* Adds the items of a record to a plan, each as dropped or left; none where there is no record. */
int takt_setup_record_load(struct takt_setup_plan *plan, struct takt_err *err);
int takt_setup_record_write(const struct takt_setup_plan *plan, const struct takt_str *text,
			    struct takt_err *err);
struct takt_setup_item *takt_setup_item_at(struct takt_setup_plan *plan, const char *path);
/* A new item at the end; text is copied. */
struct takt_setup_item *takt_setup_item_add(struct takt_setup_plan *plan, enum takt_setup_kind kind,
					    const char *path, const char *text,
					    struct takt_err *err);
/* What is there now, by the kind of the item, as a checksum. -ENOENT; -EEXIST: of another kind. */
int takt_setup_sum_at(const char *root, const struct takt_setup_item *item,
		      char ret[TAKT_SETUP_SUM]);
/* Whether what is there is what was made. */
bool takt_setup_unchanged(const char *root, const struct takt_setup_item *item);

#endif

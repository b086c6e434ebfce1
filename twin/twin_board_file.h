/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boards and machines from their files: those built in (twin/boards, twin/machines) and those that
 * a user writes. Every key is checked: an error names the file, the line, the key and what would be
 * accepted, and nothing is half-read.
 */
#ifndef TAKT_TWIN_TWIN_BOARD_FILE_H
#define TAKT_TWIN_TWIN_BOARD_FILE_H

#include <stdio.h>

#include "base/err.h"
#include "twin_layout.h"

/* A file built in: its name without ending, and its text. */
struct twin_text {
	const char *name, *text;
};

extern const struct twin_text twin_board_texts[], twin_machine_texts[], twin_profile_texts[];
extern const unsigned twin_board_text_count, twin_machine_text_count, twin_profile_text_count;

/* NULL if there is none of that name. */
const char *twin_text_find(const struct twin_text *texts, unsigned count, const char *name);

/* A board: the name of one built in, or the path of a file (anything with a slash or ".toml"). A
 * path that is not absolute starts from the folder of the file `beside`, if that is given. */
int twin_board_load(const char *name, const char *beside, struct twin_board *ret,
		    struct takt_err *err);

/* A machine, by the same rule, with its board. UUIDs and serial numbers are left empty. */
int twin_machine_load(const char *name, struct twin_machine *ret, struct takt_err *err);

/* A workload's profile (twin_profile_file.c), by the same rule. */
int twin_profile_load(const char *name, struct twin_profile *ret, struct takt_err *err);

/* The same from what was read already; without the name. */
struct twin_toml;
int twin_board_from(struct twin_toml *toml, struct twin_board *ret, struct takt_err *err);
/* The same from a file that has other keys, too. */
int twin_board_keys(struct twin_toml *toml, struct twin_board *ret, struct takt_err *err);
int twin_profile_from(struct twin_toml *toml, struct twin_profile *ret, struct takt_err *err);

/* Is this the path of a file, and not a name of something built in? */
bool twin_is_path(const char *name);

/* Name of the n-th feature (1u << n of enum twin_feature), NULL after the last. */
const char *twin_board_feature(unsigned n);

/* Writes the keys that a board file may have, with what they mean. */
void twin_board_print_keys(FILE *out);

#endif

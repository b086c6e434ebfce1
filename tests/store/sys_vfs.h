/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite on a struct takt_sys, so that what tests do to that world (losing unsynced writes, tearing
 * and reordering them, failing the Nth call, a full disk) happens to the database.
 *
 * It does with files what SQLite's own Unix VFS does, in the same order, above all: the first sync
 * of a journal or log that was created also syncs the directory, a deletion does so only if asked,
 * and an empty file does not exist to xAccess. Locks and the log's shared index live in memory, are
 * shared by all connections of this process, and go with the last one.
 */
#ifndef TAKT_TESTS_SYS_VFS_H
#define TAKT_TESTS_SYS_VFS_H

#include "base/sys.h"

struct sys_vfs;

/* Registers the VFS `name` (static text) over `sys` (borrowed until free). After
 * takt_store_sqlite_init. Aborts when out of memory; its memory does not come from takt_alloc. */
struct sys_vfs *sys_vfs_new(const char *name, const struct takt_sys *sys);
void sys_vfs_free(struct sys_vfs *vfs); /* all its files are closed */

/* Files open and locks held; nothing may remain after a close. */
int sys_vfs_open_count(struct sys_vfs *vfs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a file is that root has lent to a user by its access control list. */
#ifndef TAKT_BASE_FILE_WHOSE_H
#define TAKT_BASE_FILE_WHOSE_H

#include <sys/stat.h>
#include <sys/types.h>

/* Who owns the open file, or directory; of root's with one user in its access control list: that
 * one. `st` is what fstat says of it. */
uid_t takt_file_whose(int fd, const struct stat *st);

#endif

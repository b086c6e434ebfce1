/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What passes between the terminal of a job, which its shim owns, and the one who sits at it: a
 * SOCK_SEQPACKET Unix socket named TAKT_TERMINAL_SOCKET in the attempt's directory, mode 0600, the
 * job's user's. A message is one byte that says what it is, and the rest.
 *
 * One sits at it at a time; who comes later takes the place. A message of a kind that is not known
 * is passed over.
 */
#ifndef TAKT_BASE_TERMINAL_H
#define TAKT_BASE_TERMINAL_H

#include <stdint.h>

#define TAKT_TERMINAL_SOCKET "tty"

enum {
	TAKT_TERMINAL_DATA = 'd',   /* either way: bytes */
	TAKT_TERMINAL_SIZE = 'w',   /* to the terminal: struct takt_terminal_size */
	TAKT_TERMINAL_NOTICE = 'n', /* from it: a sentence for people */
	TAKT_TERMINAL_TAKEN = 't',  /* from it: somebody else has come; the last message */
	TAKT_TERMINAL_OVER = 'e',   /* from it: no process of the job is left; the last message */
	TAKT_TERMINAL_MAX = 4096,   /* bytes after the first, at most */
};

struct takt_terminal_size {
	uint16_t rows, columns;
};

#endif

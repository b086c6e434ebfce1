/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt clock apply and restore where no takt serve answers: at boot, or while it is stopped. What
 * is declared is put in force by an actuator that ends when it stands, or by one that has outlived
 * its daemon; file, journal, lock and guard are those of takt serve, which goes on from them.
 */
#ifndef TAKT_DAEMON_CLOCK_ALONE_H
#define TAKT_DAEMON_CLOCK_ALONE_H

#include "codec/clock_policy.h"
#include "codec/views.h"
#include "config/config.h"

/* The GPUs as they are, and as they are declared. -TAKT_E_UNAVAILABLE: there is none to be seen. */
int takt_clock_alone_look(const struct takt_config *config, struct takt_clock_view *ret,
			  struct takt_err *err);

/* Declares this (NULL: takes back what was declared) of the GPUs of *view, which is then as they
 * are. What a GPU refuses is taken back on the others; what cannot be taken back is "changed" in
 * the view, and the guard goes on trying. -TAKT_E_BUSY: a takt serve has the GPUs. */
int takt_clock_alone_declare(const struct takt_config *config,
			     const struct takt_declaration *declaration,
			     struct takt_clock_view *view, struct takt_err *err);

#endif

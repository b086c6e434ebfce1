/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program takt loads to do its work: a shared module of the folder that libexec.h tells,
 * which shows this function alone. The program itself needs only libc, so that each verb waits for
 * the libraries of its own module and no others.
 */
#ifndef TAKT_DAEMON_TAKT_MODULE_H
#define TAKT_DAEMON_TAKT_MODULE_H

#define TAKT_MODULE_MAIN "takt_module_main"

/* As main. */
__attribute__((visibility("default"))) int takt_module_main(int argc, char **argv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated machine for one test, and the twin's library opened as a client opens it. */
#ifndef TAKT_TESTS_TWIN_FIXTURE_H
#define TAKT_TESTS_TWIN_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/nvml.h"
#include "twin_shared.h"

/* cmocka setup and teardown: a machine in a directory of its own, TAKT_TWIN set to it, the library
 * opened, not initialised. The machine's driver is of the branch $TAKT_TWIN_BRANCH, 550 by default.
 */
int twin_fixture_h100(void **state);
int twin_fixture_v100(void **state);
int twin_fixture_a100(void **state);
int twin_fixture_4090(void **state);
int twin_fixture_end(void **state);

/* For a setup of one's own: a machine described by the text of its file. */
int twin_fixture_text(const char *text);

/* A function of the library; fails the test if it is not exported. */
uintptr_t twin_symbol(const char *name);
#define NVML(name) ((name##_fn *)twin_symbol(#name))

/* Runs `takt-twin ARGUMENTS` (by the shell) and returns its exit status. */
int twin_run(const char *arguments);

/* Starts `takt-twin load ARGUMENTS` (words apart by blanks) and waits until it is registered on
 * GPU `gpu`. twin_end kills it and collects it. */
pid_t twin_start_load(const char *arguments, uint32_t gpu);
void twin_end(pid_t pid);

/* Lets other users reach the machine's file. */
int twin_let_others_in(void);

/* Handle of a GPU of the initialised library. */
struct nvml_device *twin_gpu_handle(uint32_t index);

/* The state behind the driver's back. */
struct twin_map *twin_fixture_map(void);

#endif

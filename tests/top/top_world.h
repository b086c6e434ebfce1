/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine, and its screen, for tests of the terminal view. TAKT_GOLDEN_WRITE=1 writes the golden
 * texts anew: look at them.
 */
#ifndef TAKT_TESTS_TOP_WORLD_H
#define TAKT_TESTS_TOP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "top/top_ui.h"

extern const char boot_id[];
extern struct takt_top_model model;
extern struct takt_top_ui ui;
extern struct takt_top_layout layout;
extern struct takt_cells cells;

/* One that is free. */
struct takt_gpu_view a_gpu(uint32_t index);
/* 8 GPUs or so: two work, one is hot, one is lost, one is capped by takt; two jobs. */
void fill(struct takt_top_snapshot *snapshot, uint32_t gpus);
/* A look at such a machine. */
void take(uint32_t gpus);
void draw(int rows, int cols);
/* What is drawn; the caller finis it. */
struct takt_str screen(void);
void expect_golden(const char *name);
void expect_on_screen(const char *part, bool there);
struct takt_deed press(uint32_t key);

int world_open(void **state);
int world_begin(void **state); /* forty looks at 8 GPUs */
int world_close(void **state);

#endif

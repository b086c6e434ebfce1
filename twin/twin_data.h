/* SPDX-License-Identifier: Apache-2.0 */
/* The boards and machines that takt-twin knows: tables compiled from twin/boards, twin/machines. */
#ifndef TAKT_TWIN_DATA_H
#define TAKT_TWIN_DATA_H

#include "twin_layout.h"

struct twin_machine_data {
	const char *name;
	const char *board; /* id of an entry of twin_boards */
	uint32_t gpu_count;
	struct twin_gpu_desc gpus[TWIN_MAX_GPUS]; /* all but uuid and serial */
};

extern const struct twin_board twin_boards[];
extern const unsigned twin_board_count;
extern const struct twin_machine_data twin_machines[];
extern const unsigned twin_machine_count;

#endif

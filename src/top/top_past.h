/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs did before takt top was started, out of the daemon's history, so that graphs are full
 * from the first screen on.
 */
#ifndef TAKT_TOP_TOP_PAST_H
#define TAKT_TOP_TOP_PAST_H

#include "client/client.h"
#include "top/top_model.h"

/* Asks for all GPUs of the status, at steps of so long. What the daemon does not tell stays empty;
 * NULL = no memory. */
struct takt_top_past *takt_top_past_ask(struct takt_client *client,
					const struct takt_status_view *status, struct takt_wall now,
					uint32_t step_ms);

/* Puts what the daemon said of one series into a row of steps: the newest at [0], which is `now`.
 * What is in the row already stays. */
void takt_top_past_put(const struct takt_history_view *view, const struct takt_gpu_view *gpu,
		       enum takt_top_series series, int64_t now_ms, uint32_t step_ms,
		       uint16_t row[TAKT_TOP_HISTORY]);

#endif

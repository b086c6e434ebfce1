/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the picture, for takt_top_draw alone. */
#ifndef TAKT_TOP_DRAW_H
#define TAKT_TOP_DRAW_H

#include "top/top_ui.h"

void takt_draw_gpus(struct takt_cells *cells, const struct takt_top_ui *ui,
		    const struct takt_top_model *model, const struct takt_top_layout *layout);
/* One GPU in all its detail. */
void takt_draw_gpu(struct takt_cells *cells, const struct takt_top_model *model, uint32_t gpu,
		   struct takt_area area);
void takt_draw_list(struct takt_cells *cells, const struct takt_top_ui *ui,
		    const struct takt_top_model *model, enum takt_top_pane pane,
		    struct takt_area area);
void takt_draw_job(struct takt_cells *cells, const struct takt_top_model *model, uint64_t job_id,
		   struct takt_area area);
void takt_draw_header(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, struct takt_area area);
void takt_draw_hosts(struct takt_cells *cells, const struct takt_top_hosts *hosts,
		     struct takt_area area);
void takt_draw_footer(struct takt_cells *cells, const struct takt_top_ui *ui,
		      struct takt_area area);
void takt_draw_help(struct takt_cells *cells);
void takt_draw_ask(struct takt_cells *cells, const struct takt_top_ask *ask);

/* The colour of a series, and its name. */
enum takt_role takt_series_role(enum takt_top_series series);
const char *takt_series_name(enum takt_top_series series);

/* Whose it is: "#12 train", "free", or what is wrong with it; and how that is to look. */
const char *takt_gpu_label(const struct takt_gpu_view *gpu, char ret[160], enum takt_role *role);

#endif

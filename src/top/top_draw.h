/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the picture, for takt_top_draw alone. */
#ifndef TAKT_TOP_DRAW_H
#define TAKT_TOP_DRAW_H

#include "top/top_text.h"
#include "top/top_ui.h"

void takt_draw_gpus(struct takt_cells *cells, const struct takt_top_ui *ui,
		    const struct takt_top_model *model, const struct takt_top_layout *layout);
/* One GPU in all its detail. */
void takt_draw_gpu(struct takt_cells *cells, const struct takt_top_model *model, uint32_t gpu,
		   struct takt_area area);
void takt_draw_list(struct takt_cells *cells, const struct takt_top_ui *ui,
		    const struct takt_top_model *model, enum takt_top_pane pane,
		    struct takt_area area);
/* A job in all its detail, and its log. */
void takt_draw_job(struct takt_cells *cells, const struct takt_top_ui *ui,
		   const struct takt_top_model *model, struct takt_area area);
void takt_draw_log(struct takt_cells *cells, const struct takt_top_ui *ui,
		   const struct takt_top_model *model, struct takt_area area);
void takt_draw_header(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, struct takt_area area);
void takt_draw_hosts(struct takt_cells *cells, const struct takt_top_hosts *hosts,
		     struct takt_area area);
void takt_draw_footer(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, struct takt_area area);
void takt_draw_help(struct takt_cells *cells);
void takt_draw_ask(struct takt_cells *cells, const struct takt_top_ask *ask);

/* That there is more above, or below, than is shown: at the right, below the title. */
void takt_draw_scroll_marks(struct takt_cells *cells, struct takt_area area, bool above,
			    bool below);

/* The colour of a series, and its name. */
enum takt_role takt_series_role(enum takt_top_series series);
const char *takt_series_name(enum takt_top_series series);

/* A graph of what a GPU did; `most` samples of it, 0 = all. */
void takt_draw_curve(struct takt_cells *cells, struct takt_area area,
		     const struct takt_top_history *history, enum takt_top_series series,
		     uint32_t most);
/* "61.0G/80.0G", "97 %"; "-" where it is not known. */
const char *takt_draw_value(const struct takt_gpu_view *gpu, enum takt_top_series series,
			    char ret[TAKT_TOP_TEXT]);

enum {
	TAKT_GPU_LABEL = 320,
};
/* Whose it is: "#12 train", "free", or what is wrong with it; of a shared GPU all that have a part
 * of it, in as few words as the room of so many columns takes. And how that is to look. */
const char *takt_gpu_label(const struct takt_gpu_view *gpu, int room, char ret[TAKT_GPU_LABEL],
			   enum takt_role *role);
/* A line for each job that has a part of it; returns how many were drawn. */
int takt_draw_sharers(struct takt_cells *cells, struct takt_area area,
		      const struct takt_gpu_view *gpu);

#endif

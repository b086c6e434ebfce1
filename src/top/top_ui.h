/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the one who looks has chosen: which list, which row, which order, what is asked of him. Keys
 * come in as enum takt_key or characters; what has to be done to the world comes out as a
 * takt_deed. Pure.
 */
#ifndef TAKT_TOP_UI_H
#define TAKT_TOP_UI_H

#include "top/cells.h"
#include "top/top_model.h"

enum takt_key {
	TAKT_KEY_NONE,
	/* 1..0x10ffff: characters */
	TAKT_KEY_ENTER = '\n',
	TAKT_KEY_ESC = 27,
	TAKT_KEY_BACKSPACE = 127,
	TAKT_KEY_UP = 0x200000,
	TAKT_KEY_DOWN,
	TAKT_KEY_LEFT,
	TAKT_KEY_RIGHT,
	TAKT_KEY_PAGE_UP,
	TAKT_KEY_PAGE_DOWN,
	TAKT_KEY_HOME,
	TAKT_KEY_END,
	TAKT_KEY_BACK_TAB,
	TAKT_KEY_F1, /* to F12 follow */
	TAKT_KEY_F12 = TAKT_KEY_F1 + 11,
};

enum takt_top_pane {
	TAKT_PANE_GPUS,
	TAKT_PANE_JOBS,
	TAKT_PANE_PROCS,
	TAKT_PANES,
};

enum takt_top_look {
	TAKT_LOOK_ALL,
	TAKT_LOOK_GPU,
	TAKT_LOOK_JOB,
	TAKT_LOOK_JOBS, /* the list of jobs alone */
	TAKT_LOOK_LOG,	/* a job's */
};

enum takt_deed_kind {
	TAKT_DEED_NONE,
	TAKT_DEED_QUIT,
	TAKT_DEED_LOOK_UP, /* a process is to be signalled: hold on to it, then ask */
	TAKT_DEED_DROP,	   /* let go of it */
	TAKT_DEED_SIGNAL,
	TAKT_DEED_CANCEL,
	TAKT_DEED_HOLD, /* hold or release */
	TAKT_DEED_REQUEUE,
	TAKT_DEED_RATE, /* ui->rate_milli_hz is another one */
	TAKT_DEED_LOG,	/* that job's is looked at; job_id 0 = none's any more */
};

/* What is to be done, and what it was asked with. */
struct takt_deed {
	enum takt_deed_kind kind;
	uint64_t job_id;
	struct takt_proc_id proc;
	int signal;
	bool hold;
	uint32_t host; /* of ui->hosts, where there are several machines */
};

struct takt_top_ask {
	enum takt_deed_kind kind; /* NONE = nothing is asked */
	struct takt_deed deed;
	char host[61]; /* "" = this machine */
	char title[80], user[33], command[TAKT_TOP_COMMAND], gpus[64], note[120];
	uint32_t choice; /* of signals */
};

enum {
	TAKT_TOP_FILTER = 48,
	TAKT_TOP_MAX_HOSTS = 16,
	TAKT_TOP_MIN_RATE = 100, /* thousandths of a hertz */
	TAKT_TOP_MAX_RATE = 20000,
};

/* Several machines that are watched together: one is shown, the others have a word in a line. */
struct takt_top_hosts {
	uint32_t count, shown; /* count 0 = one machine, no such line */
	struct {
		const char *name; /* borrowed, as `model` */
		const struct takt_top_model *model;
	} at[TAKT_TOP_MAX_HOSTS];
};

struct takt_top_ui {
	struct takt_top_hosts hosts;
	enum takt_top_pane focus, table; /* table: of the two lists the one shown alone */
	int selected[TAKT_PANES], first[TAKT_PANES];
	uint64_t chosen[TAKT_PANES]; /* GPU, job or process of the selected row */
	int sort[TAKT_PANES];
	bool reversed[TAKT_PANES];
	bool tree, paused, help, filtering;
	char filter[TAKT_TOP_FILTER];
	enum takt_top_series series;
	enum takt_top_look look;
	uint64_t look_at; /* the GPU's index, or the job's number */
	/* Where one was before a zoom. */
	enum takt_top_look from;
	enum takt_top_pane from_focus;
	/* Of a log: the first line that is shown, of all that were printed; follows: the last ones
	 * are. The columns that are left out at the left. */
	bool log_follows;
	uint64_t log_first;
	int log_left;
	struct takt_top_ask ask;
	char notice[240];
	bool notice_bad;
	bool allow_foreign;
	uint32_t own_uid;
	uint32_t rate_milli_hz;
};

/* Where things are; depends on sizes and numbers alone, so that nothing jumps. */
struct takt_top_layout {
	struct takt_area header, hosts, gpus, jobs, procs, footer; /* rows 0 = not shown */
	struct takt_area whole;					   /* between head and last line */
	bool cards;
	int across, card_rows; /* of cards; or columns of lines */
};
void takt_top_layout(const struct takt_top_ui *ui, const struct takt_top_model *model, int rows,
		     int cols, struct takt_top_layout *ret);

/* A line of a list. */
struct takt_top_row {
	bool is_job;
	size_t at; /* in queue.jobs or procs */
	bool child;
};
struct takt_top_rows {
	TAKT_VEC(struct takt_top_row) all;
};
#define TAKT_TOP_ROWS \
	((struct takt_top_rows){.all = TAKT_VEC_INIT(TAKT_TOP_MAX_JOBS + TAKT_TOP_MAX_PROCS)})
/* Those that pass the filter, in their order. The caller finis them. */
int takt_top_list(const struct takt_top_ui *ui, const struct takt_top_model *model,
		  enum takt_top_pane pane, struct takt_top_rows *ret);
uint64_t takt_top_row_id(const struct takt_top_model *model, const struct takt_top_row *row);

/* Puts cursors back on what they were on after the lists have changed. */
void takt_top_settle(struct takt_top_ui *ui, const struct takt_top_model *model,
		     const struct takt_top_layout *layout);

/* A key; what has to be done is in *ret. */
void takt_top_press(struct takt_top_ui *ui, const struct takt_top_model *model,
		    const struct takt_top_layout *layout, uint32_t key, struct takt_deed *ret);
/* The left button, or the wheel: turn -1 up, 1 down, 0 = a click. */
void takt_top_click(struct takt_top_ui *ui, const struct takt_top_model *model,
		    const struct takt_top_layout *layout, int row, int col, int turn, bool twice,
		    struct takt_deed *ret);

/* The keys of the last line. */
struct takt_top_hint {
	uint32_t key;
	const char *name, *label;
	uint32_t looks; /* mask of enum takt_top_look: where it says something */
	int least_cols; /* of the screen */
	bool of_jobs;	/* only a daemon has them */
};
/* The one behind `hint`, which is shown now on a screen so wide; NULL = the first, and the end. */
const struct takt_top_hint *takt_top_next_hint(const struct takt_top_ui *ui,
					       const struct takt_top_model *model, int cols,
					       const struct takt_top_hint *hint);
/* Columns that it takes, with the blank behind it. */
int takt_top_hint_cols(const struct takt_top_hint *hint);

/* Names of the orders of a list, in the order of ui->sort; NULL beyond the last. */
const char *takt_top_sort_name(enum takt_top_pane pane, int sort);

/* Signals that may be chosen; 0 ends. */
struct takt_top_signal {
	int number;
	const char *name;
};
extern const struct takt_top_signal takt_top_signals[];

/* Draws all of it. */
void takt_top_draw(struct takt_cells *cells, const struct takt_top_ui *ui,
		   const struct takt_top_model *model, const struct takt_top_layout *layout);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See terminal_front.h. Colours are those of Okabe and Ito, which people with any kind of colour
 * vision can tell apart, as near as 256 colours come; nothing is said by a colour alone.
 */
#include "top/terminal_front.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#include "base/mem.h"

struct look {
	short colour, ground; /* of 256; -1 = the terminal's own */
	short few;	      /* of 8 */
	attr_t attributes;
};

static const struct look looks[TAKT_ROLE_COUNT] = {
	[TAKT_ROLE_PLAIN] = {-1, -1, -1, 0},
	[TAKT_ROLE_DIM] = {246, -1, -1, A_DIM},
	[TAKT_ROLE_BOLD] = {-1, -1, -1, A_BOLD},
	[TAKT_ROLE_BAR] = {231, 24, -1, A_BOLD | A_REVERSE},
	[TAKT_ROLE_BAR_DIM] = {152, 24, -1, A_REVERSE},
	[TAKT_ROLE_HEAD] = {110, -1, COLOR_CYAN, 0},
	[TAKT_ROLE_FRAME] = {240, -1, -1, A_DIM},
	[TAKT_ROLE_FOCUS] = {214, -1, COLOR_YELLOW, A_BOLD},
	[TAKT_ROLE_KEY] = {-1, -1, -1, A_BOLD},
	[TAKT_ROLE_GOOD] = {79, -1, COLOR_GREEN, 0},
	[TAKT_ROLE_MIND] = {220, -1, COLOR_YELLOW, 0},
	[TAKT_ROLE_ALARM] = {209, -1, COLOR_RED, A_BOLD},
	[TAKT_ROLE_JOB] = {117, -1, COLOR_CYAN, 0},
	[TAKT_ROLE_TRACK] = {238, -1, -1, A_DIM},
	[TAKT_ROLE_UTIL] = {24, -1, COLOR_BLUE, 0},
	{31, -1, COLOR_BLUE, 0},
	{38, -1, COLOR_CYAN, 0},
	{81, -1, COLOR_CYAN, 0},
	[TAKT_ROLE_MEMORY] = {23, -1, COLOR_GREEN, 0},
	{29, -1, COLOR_GREEN, 0},
	{36, -1, COLOR_GREEN, 0},
	{79, -1, COLOR_GREEN, 0},
	[TAKT_ROLE_POWER] = {94, -1, COLOR_YELLOW, 0},
	{136, -1, COLOR_YELLOW, 0},
	{178, -1, COLOR_YELLOW, 0},
	{220, -1, COLOR_YELLOW, 0},
	[TAKT_ROLE_TEMP] = {89, -1, COLOR_MAGENTA, 0},
	{132, -1, COLOR_MAGENTA, 0},
	{169, -1, COLOR_MAGENTA, 0},
	{212, -1, COLOR_MAGENTA, 0},
	[TAKT_ROLE_CLOCK] = {60, -1, COLOR_WHITE, 0},
	{98, -1, COLOR_WHITE, 0},
	{141, -1, COLOR_WHITE, 0},
	{183, -1, COLOR_WHITE, 0},
};

enum {
	SELECTED_GROUND = 237,
	FAST_ESC_MS = 25,
};

static SCREEN *screen;
static enum {
	NONE,
	FEW,
	MANY
} colours;
static struct takt_cells shown;

static short pair_of(int role, bool selected)
{
	return (short)(1 + role + (selected ? TAKT_ROLE_COUNT : 0));
}

static void make_colours(void)
{
	const char *no_color = getenv("NO_COLOR");

	colours = NONE;
	if ((no_color && no_color[0]) || !has_colors() || start_color() == ERR)
		return;
	use_default_colors();
	colours = COLORS >= 256 ? MANY : FEW;
	for (int i = 0; i < TAKT_ROLE_COUNT; i++) {
		const struct look *look = &looks[i];

		if (colours == FEW) {
			init_pair(pair_of(i, false), look->few, -1);
			continue;
		}
		init_pair(pair_of(i, false), look->colour, look->ground);
		init_pair(pair_of(i, true), look->colour, SELECTED_GROUND);
	}
}

/* newterm() says it, too, but does not give back what it had begun. */
static bool is_known(void)
{
	int found;
	bool known = setupterm(NULL, STDOUT_FILENO, &found) == OK;

	if (known)
		del_curterm(cur_term);
	return known;
}

int takt_front_open(struct takt_err *err)
{
	const char *term = getenv("TERM");

	screen = is_known() ? newterm(NULL, stdout, stdin) : NULL;
	if (!screen)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "the terminal '%.40s' ($TERM) is not known here; --once prints "
				    "one screen",
				    term ? term : "");
	set_escdelay(FAST_ESC_MS);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED |
			  BUTTON5_PRESSED,
		  NULL);
	mouseinterval(180);
	make_colours();
	return 0;
}

void takt_front_close(void)
{
	endwin();
	delscreen(screen);
	takt_cells_fini(&shown);
}

void takt_front_size(int *ret_rows, int *ret_cols)
{
	*ret_rows = LINES;
	*ret_cols = COLS;
}

static attr_t attributes_of(const struct takt_glyph *glyph)
{
	attr_t attributes = looks[glyph->role].attributes;

	if (colours == MANY)
		return attributes & A_BOLD;
	if (colours == FEW)
		attributes &= ~(attr_t)A_DIM;
	return glyph->selected ? attributes | A_REVERSE : attributes;
}

static void put(int row, int col, const struct takt_glyph *glyph)
{
	wchar_t text[2] = {(wchar_t)glyph->ch, 0};
	short pair = colours == NONE ? 0 : pair_of(glyph->role, colours == MANY && glyph->selected);
	cchar_t ch;

	if (setcchar(&ch, text, attributes_of(glyph), pair, NULL) == OK)
		mvadd_wch(row, col, &ch);
}

static bool is_other(const struct takt_glyph *a, const struct takt_glyph *b)
{
	return a->ch != b->ch || a->role != b->role || a->selected != b->selected;
}

void takt_front_show(const struct takt_cells *cells)
{
	bool all = shown.rows != cells->rows || shown.cols != cells->cols;

	if (all && takt_cells_resize(&shown, cells->rows, cells->cols) < 0)
		return;
	if (all)
		erase();
	for (int i = 0; i < cells->rows * cells->cols; i++) {
		if (!all && !is_other(&cells->at[i], &shown.at[i]))
			continue;
		put(i / cells->cols, i % cells->cols, &cells->at[i]);
		shown.at[i] = cells->at[i];
	}
	refresh();
}

static uint32_t key_of(int key)
{
	static const struct {
		int curses;
		uint32_t ours;
	} keys[] = {
		{KEY_UP, TAKT_KEY_UP},	       {KEY_DOWN, TAKT_KEY_DOWN},
		{KEY_LEFT, TAKT_KEY_LEFT},     {KEY_RIGHT, TAKT_KEY_RIGHT},
		{KEY_PPAGE, TAKT_KEY_PAGE_UP}, {KEY_NPAGE, TAKT_KEY_PAGE_DOWN},
		{KEY_HOME, TAKT_KEY_HOME},     {KEY_END, TAKT_KEY_END},
		{KEY_BTAB, TAKT_KEY_BACK_TAB}, {KEY_ENTER, TAKT_KEY_ENTER},
		{'\r', TAKT_KEY_ENTER},	       {KEY_BACKSPACE, TAKT_KEY_BACKSPACE},
		{'\b', TAKT_KEY_BACKSPACE},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(keys); i++)
		if (keys[i].curses == key)
			return keys[i].ours;
	if (key > KEY_F0 && key <= KEY_F0 + 12)
		return TAKT_KEY_F1 + (uint32_t)(key - KEY_F0 - 1);
	return key < KEY_MIN ? (uint32_t)key : TAKT_KEY_NONE;
}

static void read_mouse(struct takt_front_event *ret)
{
	MEVENT event;

	*ret = (struct takt_front_event){.kind = TAKT_FRONT_KEY};
	if (getmouse(&event) != OK)
		return;
	ret->kind = TAKT_FRONT_CLICK;
	ret->row = event.y;
	ret->col = event.x;
	ret->turn = event.bstate & BUTTON4_PRESSED ? -1 : event.bstate & BUTTON5_PRESSED ? 1 : 0;
	ret->twice = event.bstate & BUTTON1_DOUBLE_CLICKED;
}

bool takt_front_next(struct takt_front_event *ret)
{
	int key = getch();

	if (key == ERR)
		return false;
	*ret = (struct takt_front_event){.kind = TAKT_FRONT_KEY};
	if (key == KEY_RESIZE)
		ret->kind = TAKT_FRONT_RESIZE;
	else if (key == KEY_MOUSE)
		read_mouse(ret);
	else
		ret->key = key_of(key);
	return true;
}

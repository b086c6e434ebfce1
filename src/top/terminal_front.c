/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See terminal_front.h. Colours are those of Okabe and Ito, which people with any kind of colour
 * vision can tell apart, as near as 256 colours come; nothing is said by a colour alone.
 */
#include "top/terminal_front.h"

#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "base/str.h"
#include "top/paint.h"

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
	MAX_FRAME = 64 * 1024 * 1024,
	FAST_ESC_MS = 25,
};

static enum {
	CLOSED,
	BEGUN, /* nothing was written, and modes and signals are as before */
	OPEN
} state;
/* Signals for which ncurses writes to the terminal, and what it does at each. */
static const int caught[] = {SIGINT, SIGTERM, SIGTSTP};
static struct sigaction catches[TAKT_ARRAY_LEN(caught)];
static SCREEN *screen; /* NULL = the terminal is not known */
static enum {
	NONE,
	FEW,
	MANY
} colours;
static struct takt_pens pens;
static struct takt_cells shown;
static struct takt_str out = {.max = MAX_FRAME};
static atomic_bool paints_all; /* what the terminal shows is not known */

static attr_t attributes_of(const struct look *look, bool selected)
{
	attr_t attributes = look->attributes;

	if (colours == MANY)
		return attributes & A_BOLD;
	if (colours == FEW)
		attributes &= ~(attr_t)A_DIM;
	return selected ? attributes | A_REVERSE : attributes;
}

/* tputs() leaves the padding out; it takes no context along. */
static char *word;
static size_t word_len;

static int add_to_word(int ch)
{
	if (word_len + 1 < TAKT_PEN_BYTES)
		word[word_len++] = (char)ch;
	word[word_len] = '\0';
	return ch;
}

static void begin_word(char ret[TAKT_PEN_BYTES])
{
	word = ret;
	word_len = 0;
	word[0] = '\0';
}

static void say(const char *capability)
{
	if (capability)
		tputs(capability, 1, add_to_word);
}

static void say_attribute(attr_t attributes, attr_t one, const char *capability)
{
	if (attributes & one)
		say(capability);
}

/* What ends attributes ends colours, too, on a terminal that speaks ANSI. */
static void say_plain(void)
{
	const char *end = exit_attribute_mode ? exit_attribute_mode : "";

	say(end);
	if (colours != NONE && !strstr(end, "\033[m") && !strstr(end, "\033[0"))
		say(orig_pair);
}

static void make_pen(const struct look *look, bool selected, char ret[TAKT_PEN_BYTES])
{
	attr_t attributes = attributes_of(look, selected);
	short colour = colours == MANY ? look->colour : colours == FEW ? look->few : -1;
	short ground = colours != MANY ? -1 : selected ? SELECTED_GROUND : look->ground;

	begin_word(ret);
	say_plain();
	say_attribute(attributes, A_BOLD, enter_bold_mode);
	say_attribute(attributes, A_DIM, enter_dim_mode);
	say_attribute(attributes, A_REVERSE, enter_reverse_mode);
	if (colour >= 0)
		say(tiparm(set_a_foreground, (int)colour));
	if (ground >= 0)
		say(tiparm(set_a_background, (int)ground));
}

static void move_by_terminfo(int row, int col, char ret[TAKT_MOVE_BYTES])
{
	char text[TAKT_PEN_BYTES];

	begin_word(text);
	say(tiparm(cursor_address, row, col));
	takt_strcpy(ret, TAKT_MOVE_BYTES, text);
}

static char *add_number(char *at, int n)
{
	if (n >= 10)
		at = add_number(at, n / 10);
	*at = (char)('0' + n % 10);
	return at + 1;
}

/* What nearly every terminal has, without the interpreter of terminfo. */
static void move_by_ansi(int row, int col, char ret[TAKT_MOVE_BYTES])
{
	char *at = ret;

	*at++ = '\033';
	*at++ = '[';
	at = add_number(at, row + 1);
	*at++ = ';';
	at = add_number(at, col + 1);
	*at++ = 'H';
	*at = '\0';
}

static bool moves_by_ansi(void)
{
	static const int places[][2] = {{0, 0}, {9, 99}, {499, 7}};
	char mine[TAKT_MOVE_BYTES], its[TAKT_MOVE_BYTES];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(places); i++) {
		move_by_ansi(places[i][0], places[i][1], mine);
		move_by_terminfo(places[i][0], places[i][1], its);
		if (strcmp(mine, its) != 0)
			return false;
	}
	return true;
}

static bool has_colour(void)
{
	const char *no_color = getenv("NO_COLOR");

	return !(no_color && no_color[0]) && max_colors >= 8 && set_a_foreground &&
	       set_a_background;
}

static void make_pens(void)
{
	colours = !has_colour() ? NONE : max_colors >= 256 ? MANY : FEW;
	for (int role = 0; role < TAKT_ROLE_COUNT; role++)
		for (int selected = 0; selected < 2; selected++)
			make_pen(&looks[role], selected, pens.pen[role][selected]);
	begin_word(pens.plain);
	say_plain();
	begin_word(pens.clear);
	say_plain();
	say(clear_screen);
	pens.move = moves_by_ansi() ? move_by_ansi : move_by_terminfo;
	pens.last_scrolls = auto_right_margin && !eat_newline_glitch;
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

/* ncurses shows its own, blank screen when the process goes on after it was stopped. */
static void forget_shown(int signal)
{
	(void)signal;
	atomic_store(&paints_all, true);
}

/* newterm() changes modes and signals, and who is stopped or ended while he waits is to find the
 * terminal as it was: both are put back until there is something to show. */
static void make_screen(void)
{
	struct sigaction before[TAKT_ARRAY_LEN(caught)];
	struct termios modes;
	bool has_modes = tcgetattr(STDOUT_FILENO, &modes) == 0;
	sigset_t all, unblocked;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &unblocked);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(caught); i++)
		sigaction(caught[i], NULL, &before[i]);
	screen = newterm(NULL, stdout, stdin);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(caught); i++)
		sigaction(caught[i], &before[i], &catches[i]);
	if (has_modes)
		tcsetattr(STDOUT_FILENO, TCSANOW, &modes);
	pthread_sigmask(SIG_SETMASK, &unblocked, NULL);
}

void takt_front_begin(void)
{
	if (state != CLOSED)
		return;
	state = BEGUN;
	screen = NULL;
	if (is_known())
		make_screen();
	if (screen)
		make_pens();
}

int takt_front_open(struct takt_err *err)
{
	const char *term = getenv("TERM");

	takt_front_begin();
	if (!screen)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "the terminal '%.40s' ($TERM) is not known here; --once prints "
				    "one screen",
				    term ? term : "");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(caught); i++)
		sigaction(caught[i], &catches[i], NULL);
	sigaction(SIGCONT, &(struct sigaction){.sa_handler = forget_shown}, NULL);
	set_escdelay(FAST_ESC_MS);
	cbreak(); /* with all modes of newterm() */
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED |
			  BUTTON5_PRESSED,
		  NULL);
	mouseinterval(180);
	refresh(); /* what ncurses says to a terminal at first; what it shows is ours from here */
	atomic_store(&paints_all, true);
	state = OPEN;
	return 0;
}

void takt_front_close(void)
{
	/* One that was only begun is left to the end of the process: ncurses has words for the
	 * terminal ready, which both endwin() and delscreen() would say. */
	if (state == OPEN) {
		endwin();
		delscreen(screen);
	}
	state = CLOSED;
	takt_cells_fini(&shown);
	takt_str_fini(&out);
}

void takt_front_size(int *ret_rows, int *ret_cols)
{
	*ret_rows = LINES;
	*ret_cols = COLS;
}

static bool write_all(const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(STDOUT_FILENO, bytes, n);

		if (done < 0 && errno != EINTR)
			return false;
		bytes += done < 0 ? 0 : done;
		n -= done < 0 ? 0 : (size_t)done;
	}
	return true;
}

void takt_front_show(const struct takt_cells *cells)
{
	bool all = atomic_exchange(&paints_all, false);

	takt_str_reset(&out);
	if (takt_paint(cells, &shown, all, &pens, &out) < 0 || !write_all(out.s, out.len))
		atomic_store(&paints_all, true);
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
	if (key == KEY_RESIZE) {
		ret->kind = TAKT_FRONT_RESIZE;
		atomic_store(&paints_all, true);
	} else if (key == KEY_MOUSE)
		read_mouse(ret);
	else
		ret->key = key_of(key);
	return true;
}

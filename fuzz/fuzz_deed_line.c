/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that tell takt top to do something or what to look at, and answers to them: what is taken
 * is one of the deeds that may be told, and is read again as it is written. */
#include <string.h>

#include "fuzz_input.h"
#include "top/deed_line.h"
#include "top/look_line.h"

static void read_again(const struct takt_deed *deed)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_DEED_LINE);
	struct takt_deed again;

	takt_deed_to_line(deed, &text);
	fuzz_expect(text.rc == 0);
	fuzz_expect(takt_deed_from_line(text.s, text.len, &again, NULL) == 0);
	fuzz_expect(again.kind == deed->kind && again.job_id == deed->job_id);
	fuzz_expect(again.hold == deed->hold && again.signal == deed->signal);
	fuzz_expect(again.proc.pid == deed->proc.pid);
	fuzz_expect(again.proc.start_ticks == deed->proc.start_ticks);
	fuzz_expect(strcmp(again.proc.boot_id, deed->proc.boot_id) == 0);
}

/* What it asks for beside a look. */
static void read_words(const uint8_t *data, size_t size)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_DEED_LINE);
	struct takt_look_words words, again;
	char line[TAKT_DEED_LINE];

	size = size < sizeof(line) ? size : sizeof(line) - 1;
	memcpy(line, data, size);
	line[size] = '\0';
	takt_look_from_line(line, &words);
	takt_look_to_line(&words, &text);
	fuzz_expect(text.rc == 0 && text.s[text.len - 1] == '\n');
	text.s[text.len - 1] = '\0';
	takt_look_from_line(text.s, &again);
	fuzz_expect(again.past_step_ms == words.past_step_ms && again.log_job == words.log_job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_deed deed;
	char said[160];
	bool bad;

	if (takt_deed_from_line((const char *)data, size, &deed, NULL) == 0) {
		fuzz_expect(deed.kind == TAKT_DEED_SIGNAL || deed.proc.pid == 0);
		fuzz_expect(deed.kind != TAKT_DEED_SIGNAL || deed.proc.pid > 0);
		read_again(&deed);
	}
	if (takt_deed_answer_from_line((const char *)data, size, &bad, said, sizeof(said), NULL) ==
	    0)
		fuzz_expect(strlen(said) < sizeof(said));
	read_words(data, size);
	return 0;
}

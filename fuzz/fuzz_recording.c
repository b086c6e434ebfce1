/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of machines: what was accepted, written again and read again, says the same. */
#include "base/str.h"
#include "device/recording.h"
#include "fuzz_input.h"

static struct takt_recording *parse(const char *text, size_t len)
{
	struct takt_recording *recording = NULL;
	struct takt_err err = {0};
	int rc = takt_recording_parse("fuzz", text, len, &recording, &err);

	fuzz_expect(rc == 0 ? recording != NULL : !recording && err.msg[0] != '\0');
	return recording;
}

static struct takt_gpu_reading sample(const struct takt_recording *recording, uint32_t gpu,
				      size_t i)
{
	struct takt_gpu_reading reading;

	memset(&reading, 0, sizeof(reading));
	takt_recording_sample(recording, gpu, i, &reading);
	return reading;
}

static void write_again(const struct takt_recording *recording, struct takt_str *text)
{
	takt_str_addf(text, "takt-recording 1\ngpus %u\n", recording->gpu_count);
	for (uint32_t g = 0; g < recording->gpu_count; g++) {
		takt_recording_add_fact_lines(&recording->facts[g], g, text);
		for (size_t i = 0; i < recording->samples[g].list.len; i++) {
			struct takt_gpu_reading reading = sample(recording, g, i);

			takt_recording_add_sample_line(
				&reading, g, recording->samples[g].list.at[i].at_us, text);
		}
	}
}

static void compare(const struct takt_recording *a, const struct takt_recording *b)
{
	fuzz_expect(a->gpu_count == b->gpu_count);
	for (uint32_t g = 0; g < a->gpu_count; g++) {
		fuzz_expect(memcmp(&a->facts[g], &b->facts[g], sizeof(a->facts[g])) == 0);
		fuzz_expect(a->samples[g].list.len == b->samples[g].list.len);
		for (size_t i = 0; i < a->samples[g].list.len; i++) {
			struct takt_gpu_reading x = sample(a, g, i), y = sample(b, g, i);

			fuzz_expect(memcmp(&x, &y, sizeof(x)) == 0);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_recording *first = parse((const char *)data, size), *second;
	struct takt_str text = TAKT_STR(TAKT_RECORDING_MAX_BYTES);

	if (!first)
		return 0;
	write_again(first, &text);
	second = parse(takt_str_text(&text), text.len);
	fuzz_expect(second != NULL);
	compare(first, second);
	takt_recording_free(second);
	takt_recording_free(first);
	takt_str_fini(&text);
	return 0;
}

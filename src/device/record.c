/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a machine down. Works through the callers' interface only, so that what is recorded is
 * what callers see, and a recording of a replay is that recording again.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "device/recording.h"

enum {
	MAX_TEXT = 1024 * 1024, /* head of a machine, or one round of samples */
};

struct recorder {
	struct takt_machine *machine;
	struct takt_record_options options;
	uint32_t gpu_count;
	struct takt_mono begin;
	struct takt_str text;
	struct takt_gpu_reading reading;
};

static int flush(struct recorder *recorder, FILE *out, struct takt_err *err)
{
	struct takt_str *text = &recorder->text;

	if (text->rc < 0)
		return takt_err_set(err, text->rc, "text of the recording");
	if (fwrite(takt_str_text(text), 1, text->len, out) != text->len || fflush(out) != 0)
		return takt_err_set(err, -EIO, "writing the recording");
	takt_str_reset(text);
	return 0;
}

/* The mark of a simulated board must survive: it is what tells replayed views apart. */
static void pseudonymise(struct takt_gpu_facts *facts, uint32_t gpu)
{
	const char *mark = strstr(facts->serial, "TWIN") ? "TWIN" : "";

	if (facts->has & TAKT_FACT_SERIAL)
		snprintf(facts->serial, sizeof(facts->serial), "%s%012" PRIu32, mark, gpu);
	if (facts->has & TAKT_FACT_UUID)
		snprintf(facts->uuid, sizeof(facts->uuid),
			 "GPU-00000000-0000-0000-0000-%012" PRIx32, gpu);
}

static void add_links(struct recorder *recorder)
{
	for (uint32_t a = 0; a < recorder->gpu_count; a++) {
		for (uint32_t b = a + 1; b < recorder->gpu_count; b++) {
			struct takt_gpu_link link = takt_machine_link(recorder->machine, a, b);

			if (link.pcie != 0 || link.nvlinks != 0)
				takt_str_addf(&recorder->text,
					      "link %" PRIu32 " %" PRIu32 " %u %u\n", a, b,
					      link.pcie, link.nvlinks);
		}
	}
}

static void add_head(struct recorder *recorder)
{
	const struct takt_machine_info *info = takt_machine_info(recorder->machine);
	struct takt_str *text = &recorder->text;

	takt_str_add(text, "takt-recording 1\n");
	if (info->driver_version[0] != '\0')
		takt_str_addf(text, "info driver %s\n", info->driver_version);
	if (info->nvml_version[0] != '\0')
		takt_str_addf(text, "info nvml %s\n", info->nvml_version);
	if (info->cuda_version != 0)
		takt_str_addf(text, "info cuda %" PRId32 "\n", info->cuda_version);
	takt_str_addf(text, "info simulated %d\ngpus %" PRIu32 "\n", info->simulated,
		      recorder->gpu_count);
	for (uint32_t g = 0; g < recorder->gpu_count; g++) {
		struct takt_gpu_facts facts = *takt_machine_facts(recorder->machine, g);

		if (recorder->options.anonymous)
			pseudonymise(&facts, g);
		takt_recording_add_fact_lines(&facts, g, text);
	}
	add_links(recorder);
}

static void add_sample(struct recorder *recorder, uint32_t gpu, uint64_t seq,
		       struct takt_mono deadline)
{
	struct takt_gpu_reading *reading = &recorder->reading;
	int rc = takt_machine_wait(recorder->machine, gpu, seq, deadline);

	if (rc == 0)
		rc = takt_machine_reading(recorder->machine, gpu, reading);
	if (rc < 0) {
		memset(reading, 0, sizeof(*reading));
		reading->last_rc = rc;
		reading->at = takt_mono_now(takt_sys_real());
	}
	for (uint32_t i = 0; recorder->options.anonymous && i < reading->proc_count; i++)
		reading->procs[i].pid = (int32_t)i + 1;
	takt_recording_add_sample_line(
		reading, gpu, takt_mono_elapsed_ns(reading->at, recorder->begin) / TAKT_NS_PER_US,
		&recorder->text);
}

static uint64_t seq_of(struct recorder *recorder, uint32_t gpu)
{
	return takt_machine_reading(recorder->machine, gpu, &recorder->reading) < 0
		       ? 0
		       : recorder->reading.seq;
}

/* One sample of every GPU. */
static void add_round(struct recorder *recorder)
{
	uint64_t seq[TAKT_DEVICE_MAX_GPUS];
	struct takt_mono deadline;

	for (uint32_t g = 0; g < recorder->gpu_count; g++)
		seq[g] = seq_of(recorder, g);
	takt_machine_sample(recorder->machine, UINT32_MAX);
	deadline = takt_mono_add(takt_mono_now(takt_sys_real()), TAKT_NS_PER_S);
	for (uint32_t g = 0; g < recorder->gpu_count; g++)
		add_sample(recorder, g, seq[g], deadline);
}

static void sleep_until(struct takt_mono until)
{
	struct timespec at = {.tv_sec = (time_t)(until.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(until.ns % TAKT_NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static int write_all(struct recorder *recorder, FILE *out, struct takt_err *err)
{
	uint64_t interval_ns = recorder->options.interval_ms * TAKT_NS_PER_MS;
	struct takt_mono due = recorder->begin;
	int rc;

	add_head(recorder);
	rc = flush(recorder, out, err);
	for (uint32_t i = 0; i < recorder->options.samples && rc == 0; i++) {
		sleep_until(due);
		add_round(recorder);
		rc = flush(recorder, out, err);
		due = takt_mono_add(due, interval_ns);
	}
	return rc;
}

int takt_machine_record(struct takt_machine *machine, const struct takt_record_options *options,
			FILE *out, struct takt_err *err)
{
	struct recorder *recorder = takt_zalloc(sizeof(*recorder));
	int rc;

	if (!recorder)
		return takt_err_set(err, -ENOMEM, "recorder");
	recorder->machine = machine;
	recorder->options = *options;
	if (recorder->options.samples == 0)
		recorder->options.samples = 1;
	if (recorder->options.interval_ms == 0)
		recorder->options.interval_ms = 100;
	recorder->gpu_count = takt_machine_info(machine)->gpu_count;
	recorder->begin = takt_mono_now(takt_sys_real());
	recorder->text = TAKT_STR(MAX_TEXT);
	rc = write_all(recorder, out, err);
	takt_str_fini(&recorder->text);
	takt_free(recorder);
	return rc;
}

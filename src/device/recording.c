/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of recordings. Everything is checked once at the start; samples are kept as text and
 * parsed again when they are asked for, which is cheaper than keeping them all as structs.
 */
#include "device/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "device/link_kind.h"

struct reader {
	const char *name;
	size_t line_number;
	size_t line_start; /* offset in the text */
	struct takt_recording *recording;
	struct takt_seen *seen;	    /* of each GPU's facts, owned */
	struct takt_seen info_seen; /* bit i: key i of read_info */
	struct takt_err err;	    /* of the innermost call, to be wrapped */
	char line[TAKT_RECORDING_MAX_LINE];
};

/* Takes the next word off *rest; NULL when there is none or it is empty. */
static char *word(char **rest)
{
	char *start = *rest;

	if (!start || *start == '\0' || *start == ' ')
		return NULL;
	strsep(rest, " ");
	return start;
}

static bool number_word(char **rest, uint64_t max, uint64_t *ret)
{
	char *text = word(rest);
	unsigned long long value;

	if (!text || takt_parse_u64(text, 0, max, &value) < 0)
		return false;
	*ret = value;
	return true;
}

static int wrong(struct reader *reader, const char *what)
{
	return takt_err_set(&reader->err, -TAKT_E_CORRUPT, "%s", what);
}

static bool gpu_word(struct reader *reader, char **rest, uint32_t *ret)
{
	uint64_t gpu;

	if (reader->recording->gpu_count == 0 ||
	    !number_word(rest, reader->recording->gpu_count - 1, &gpu))
		return false;
	*ret = (uint32_t)gpu;
	return true;
}

static bool set_info(struct takt_machine_info *info, size_t key, const char *value)
{
	unsigned long long number;

	switch (key) {
	case 0:
		return takt_strcpy(info->driver_version, sizeof(info->driver_version), value);
	case 1:
		return takt_strcpy(info->nvml_version, sizeof(info->nvml_version), value);
	case 2:
		if (takt_parse_u64(value, 0, 1000000, &number) < 0)
			return false;
		info->cuda_version = (int32_t)number;
		return true;
	default:
		if (takt_parse_u64(value, 0, 1, &number) < 0)
			return false;
		info->simulated = number == 1;
		return true;
	}
}

static int read_info(struct reader *reader, char *rest)
{
	static const char *const keys[] = {"driver", "nvml", "cuda", "simulated"};
	char *key = word(&rest);

	for (size_t i = 0; key && rest && i < TAKT_ARRAY_LEN(keys); i++) {
		if (strcmp(key, keys[i]) != 0)
			continue;
		if (reader->info_seen.fields >> i & 1)
			return wrong(reader, "given twice");
		reader->info_seen.fields |= 1ull << i;
		return set_info(&reader->recording->info, i, rest)
			       ? 0
			       : wrong(reader, "'info' with a value that cannot be");
	}
	return wrong(reader, "expected 'info' with driver, nvml, cuda or simulated, and a value");
}

static int read_gpus(struct reader *reader, char *rest)
{
	struct takt_recording *recording = reader->recording;
	uint64_t count;

	if (recording->facts)
		return wrong(reader, "'gpus' is given twice");
	if (!number_word(&rest, TAKT_DEVICE_MAX_GPUS, &count) || rest)
		return wrong(reader, "expected 'gpus' and a number from 0 to 64");
	recording->facts = takt_calloc(count + 1, sizeof(recording->facts[0]));
	recording->links = takt_calloc(count * count + 1, sizeof(recording->links[0]));
	recording->samples = takt_calloc(count + 1, sizeof(recording->samples[0]));
	reader->seen = takt_calloc(count + 1, sizeof(reader->seen[0]));
	if (!recording->facts || !recording->links || !recording->samples || !reader->seen)
		return takt_err_set(&reader->err, -ENOMEM, "%" PRIu64 " GPUs", count);
	recording->gpu_count = (uint32_t)count;
	recording->info.gpu_count = recording->gpu_count;
	for (uint32_t g = 0; g < recording->gpu_count; g++)
		recording->samples[g].list.max = TAKT_RECORDING_MAX_SAMPLES;
	return 0;
}

static int read_fact(struct reader *reader, char *rest)
{
	uint32_t gpu;
	char *key;

	if (!gpu_word(reader, &rest, &gpu) || !(key = word(&rest)) || !rest)
		return wrong(reader, "expected 'fact', the number of a GPU, a key and a value");
	return takt_fact_set(&reader->recording->facts[gpu], &reader->seen[gpu], key, rest,
			     &reader->err);
}

static int read_link(struct reader *reader, char *rest)
{
	struct takt_recording *recording = reader->recording;
	uint64_t pcie, nvlinks;
	uint32_t a, b, n = recording->gpu_count;
	struct takt_gpu_link *link;

	if (!gpu_word(reader, &rest, &a) || !gpu_word(reader, &rest, &b) || a == b ||
	    !number_word(&rest, LINK_BOARD, &pcie) || !number_word(&rest, UINT8_MAX, &nvlinks) ||
	    rest)
		return wrong(reader, "expected 'link', two GPUs, kind of link (0 to 6), NVLinks");
	link = &recording->links[a * n + b];
	if (link->pcie != 0 || link->nvlinks != 0)
		return wrong(reader, "this link is given twice");
	*link = (struct takt_gpu_link){.pcie = (uint8_t)pcie, .nvlinks = (uint8_t)nvlinks};
	recording->links[b * n + a] = *link;
	return 0;
}

/* "1234:1048576:c" */
static bool set_proc(struct takt_gpu_reading *reading, char *text)
{
	struct takt_gpu_proc *proc = &reading->procs[reading->proc_count];
	char *pid = strsep(&text, ":");
	char *bytes = strsep(&text, ":");
	unsigned long long number;

	if (!bytes || !text || reading->proc_count == TAKT_DEVICE_MAX_PROCS ||
	    takt_parse_u64(pid, 0, INT32_MAX, &number) < 0)
		return false;
	*proc = (struct takt_gpu_proc){.pid = (int32_t)number};
	if (reading->proc_count > 0 && proc[-1].pid >= proc->pid)
		return false;
	proc->memory_known = strcmp(bytes, "?") != 0;
	if (proc->memory_known && takt_parse_u64(bytes, 0, UINT64_MAX, &number) < 0)
		return false;
	proc->memory_bytes = proc->memory_known ? number : 0;
	proc->graphics = strcmp(text, "g") == 0;
	reading->has |= TAKT_HAS_PROCS;
	reading->proc_count++;
	return proc->graphics || strcmp(text, "c") == 0;
}

static int set_pair(struct takt_gpu_reading *reading, struct takt_seen *seen, char *pair,
		    struct takt_err *err)
{
	char *key = strsep(&pair, "=");

	if (!pair)
		return takt_err_set(err, -TAKT_E_CORRUPT, "expected KEY=VALUE, found '%.40s'", key);
	if (strcmp(key, "proc") == 0)
		return set_proc(reading, pair)
			       ? 0
			       : takt_err_set(err, -TAKT_E_CORRUPT,
					      "expected proc=PID:BYTES:KIND with rising PID");
	if (strcmp(key, "noprocs") != 0)
		return takt_reading_set(reading, seen, key, pair, err);
	if (strcmp(pair, "1") != 0 || (reading->has & TAKT_HAS_PROCS))
		return takt_err_set(err, -TAKT_E_CORRUPT, "'noprocs' beside processes or not 1");
	reading->has |= TAKT_HAS_PROCS;
	return 0;
}

/* The fields of a sample line; `line` is taken apart. */
static int parse_reading(char *line, struct takt_gpu_reading *reading, struct takt_err *err)
{
	struct takt_seen seen = {0};
	char *rest = line;
	char *pair;
	int rc;

	reading->has = 0;
	reading->proc_count = reading->procs_dropped = 0;
	reading->lost = false;
	reading->last_rc = 0;
	while ((pair = word(&rest))) {
		rc = set_pair(reading, &seen, pair, err);
		if (rc < 0)
			return rc;
	}
	if (rest)
		return takt_err_set(err, -TAKT_E_CORRUPT, "a space too many");
	return takt_reading_check(&seen, err);
}

static int read_sample(struct reader *reader, char *rest)
{
	struct takt_recorded_sample sample;
	struct takt_recorded_samples *samples;
	struct takt_gpu_reading reading;
	uint32_t gpu;
	int rc;

	if (!gpu_word(reader, &rest, &gpu) || !number_word(&rest, UINT64_MAX / 1000, &sample.at_us))
		return wrong(reader, "expected 'sample', the number of a GPU and a time");
	samples = &reader->recording->samples[gpu];
	if (samples->list.len > 0 && takt_vec_last(&samples->list)->at_us >= sample.at_us)
		return wrong(reader, "times of samples must rise");
	sample.line = rest ? reader->line_start + (size_t)(rest - reader->line) : SIZE_MAX;
	rc = rest ? parse_reading(rest, &reading, &reader->err) : 0;
	if (rc < 0)
		return rc;
	rc = takt_vec_push(&samples->list, sample);
	return rc < 0 ? takt_err_set(&reader->err, rc, "samples of GPU %" PRIu32, gpu) : 0;
}

static int read_line(struct reader *reader)
{
	static const struct {
		const char *word;
		int (*read)(struct reader *reader, char *rest);
	} kinds[] = {
		{"info", read_info}, {"gpus", read_gpus},     {"fact", read_fact},
		{"link", read_link}, {"sample", read_sample},
	};
	char *rest = reader->line;
	char *first = word(&rest);

	if (reader->line_number == 1)
		return first && strcmp(first, "takt-recording") == 0 && rest &&
				       strcmp(rest, "1") == 0
			       ? 0
			       : wrong(reader, "expected 'takt-recording 1'");
	for (size_t i = 0; first && i < TAKT_ARRAY_LEN(kinds); i++)
		if (strcmp(first, kinds[i].word) == 0)
			return kinds[i].read(reader, rest);
	return wrong(reader, "expected info, gpus, fact, link or sample");
}

/* Takes the line at reader->line_start of the text into reader->line; how long it is in *ret_len.
 */
static int take_line(struct reader *reader, size_t len, size_t *ret_len)
{
	char *start = reader->recording->text + reader->line_start;
	char *end = memchr(start, '\n', len - reader->line_start);
	size_t n;

	if (!end)
		return wrong(reader, "the last line has no end: the recording is cut off");
	n = (size_t)(end - start);
	if (n >= sizeof(reader->line))
		return wrong(reader, "the line is longer than 16 KiB");
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)start[i] < ' ' || start[i] == 0x7f)
			return wrong(reader, "a control character");
	memcpy(reader->line, start, n);
	reader->line[n] = *end = '\0';
	*ret_len = n + 1;
	return 0;
}

static int read_lines(struct reader *reader, size_t len)
{
	while (reader->line_start < len) {
		size_t n = 0;
		int rc;

		reader->line_number++;
		rc = take_line(reader, len, &n);
		if (rc == 0)
			rc = read_line(reader);
		if (rc < 0)
			return rc;
		reader->line_start += n;
	}
	if (!reader->recording->facts)
		return wrong(reader, "no line says how many 'gpus' there are");
	for (uint32_t g = 0; g < reader->recording->gpu_count; g++) {
		int rc = takt_facts_check(&reader->seen[g], &reader->err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* What holds for the recording apart from its text, which it takes over. */
static int read_text(const char *name, char *text, size_t len, struct takt_recording **ret,
		     struct takt_err *err)
{
	struct takt_recording *recording = takt_zalloc(sizeof(*recording));
	struct reader *reader = takt_zalloc(sizeof(*reader));
	int rc = -ENOMEM;

	if (!recording || !reader) {
		takt_free(text);
		takt_err_set(err, rc, "recording '%s'", name);
		goto out;
	}
	recording->text = text;
	reader->name = name;
	reader->recording = recording;
	rc = read_lines(reader, len);
	if (rc < 0) {
		takt_err_set(err, rc, "recording '%s', line %zu: %s", name, reader->line_number,
			     reader->err.msg);
		goto out;
	}
	*ret = recording;
	recording = NULL;
out:
	if (reader)
		takt_free(reader->seen);
	takt_free(reader);
	takt_recording_free(recording);
	return rc;
}

int takt_recording_parse(const char *name, const char *text, size_t len,
			 struct takt_recording **ret, struct takt_err *err)
{
	char *copy = takt_alloc(len + 1);

	if (!copy)
		return takt_err_set(err, -ENOMEM, "recording '%s'", name);
	memcpy(copy, text, len);
	return read_text(name, copy, len, ret, err);
}

int takt_recording_read(const char *path, struct takt_recording **ret, struct takt_err *err)
{
	size_t len = 0;
	char *text = NULL;
	int rc = takt_file_read(takt_sys_real(), AT_FDCWD, path, TAKT_RECORDING_MAX_BYTES, &text,
				&len, err);

	return rc < 0 ? rc : read_text(path, text, len, ret, err);
}

void takt_recording_free(struct takt_recording *recording)
{
	if (!recording)
		return;
	for (uint32_t g = 0; recording->samples && g < recording->gpu_count; g++)
		takt_vec_fini(&recording->samples[g].list);
	takt_free(recording->samples);
	takt_free(recording->links);
	takt_free(recording->facts);
	takt_free(recording->text);
	takt_free(recording);
}

void takt_recording_sample(const struct takt_recording *recording, uint32_t gpu, size_t i,
			   struct takt_gpu_reading *ret)
{
	const struct takt_recorded_sample *sample = &recording->samples[gpu].list.at[i];
	char line[TAKT_RECORDING_MAX_LINE] = "";

	if (sample->line != SIZE_MAX)
		takt_strcpy(line, sizeof(line), recording->text + sample->line);
	/* Cannot fail: it was parsed when the recording was read. */
	(void)parse_reading(line, ret, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendering of the page's frame, and the page object. A scrape holds a reference to finished text,
 * so that rendering never waits for a slow reader and a reader never sees half a page.
 */
#include "telemetry/page.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"

struct counted_page {
	struct takt_page page;
	atomic_uint refs;
	char text[];
};

const struct takt_page *takt_page_new(const char *text, size_t len)
{
	struct counted_page *counted = takt_alloc(sizeof(*counted) + len + 1);

	if (!counted)
		return NULL;
	memcpy(counted->text, text, len);
	counted->text[len] = '\0';
	counted->page = (struct takt_page){.text = counted->text, .len = len};
	atomic_init(&counted->refs, 1);
	return &counted->page;
}

static struct counted_page *counted_of(const struct takt_page *page)
{
	return (struct counted_page *)page;
}

void takt_page_ref(const struct takt_page *page)
{
	atomic_fetch_add(&counted_of(page)->refs, 1);
}

void takt_page_unref(const struct takt_page *page)
{
	if (page && atomic_fetch_sub(&counted_of(page)->refs, 1) == 1)
		takt_free(counted_of(page));
}

/* Longer than needed, a surrogate, or beyond the last. */
static bool is_overlong_or_outside(const unsigned char *c)
{
	return c[0] == 0xc0 || c[0] == 0xc1 || c[0] > 0xf4 || (c[0] == 0xe0 && c[1] < 0xa0) ||
	       (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf0 && c[1] < 0x90) ||
	       (c[0] == 0xf4 && c[1] > 0x8f);
}

/* Bytes of the UTF-8 character that begins here; 0 when none does. */
static size_t utf8_length(const unsigned char *c)
{
	static const struct {
		unsigned char mask, lead;
	} forms[] = {{0x80, 0x00}, {0xe0, 0xc0}, {0xf0, 0xe0}, {0xf8, 0xf0}};
	size_t n = 0;

	while (n < TAKT_ARRAY_LEN(forms) && (c[0] & forms[n].mask) != forms[n].lead)
		n++;
	if (n == TAKT_ARRAY_LEN(forms))
		return 0;
	for (size_t i = 1; i <= n; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return is_overlong_or_outside(c) ? 0 : n + 1;
}

void takt_page_add_label_value(const char *text, struct takt_str *ret)
{
	while (*text) {
		char c = *text;
		size_t n = utf8_length((const unsigned char *)text);

		if (c == '\\' || c == '"')
			takt_str_addn(ret, "\\", 1);
		if (c == '\n')
			takt_str_add(ret, "\\n");
		else if (n == 0)
			takt_str_add(ret, "\xef\xbf\xbd");
		else if ((unsigned char)c < ' ' || c == 0x7f)
			takt_str_add(ret, "?");
		else
			takt_str_addn(ret, text, n);
		text += n > 0 ? n : 1;
	}
}

void takt_page_add_label(const char *name, const char *value, struct takt_str *ret)
{
	takt_str_add(ret, ",");
	takt_str_add(ret, name);
	takt_str_add(ret, "=\"");
	takt_page_add_label_value(value, ret);
	takt_str_add(ret, "\"");
}

/* In help texts of the plain format the quote stands for itself. */
static void add_help(const char *text, bool openmetrics, struct takt_str *ret)
{
	for (; *text; text++) {
		if (*text == '\\' || (openmetrics && *text == '"'))
			takt_str_add(ret, "\\");
		if (*text == '\n')
			takt_str_add(ret, "\\n");
		else
			takt_str_addn(ret, text, 1);
	}
}

static size_t length_without_total(const char *name)
{
	static const char total[] = "_total";
	size_t len = strlen(name), n = sizeof(total) - 1;

	return len > n && strcmp(name + len - n, total) == 0 ? len - n : len;
}

void takt_page_add_head(const struct takt_page_input *input, const char *name, const char *help,
			bool counter, struct takt_str *ret)
{
	bool openmetrics = input->format == TAKT_PAGE_OPENMETRICS;
	size_t whole = strlen(name), len = whole;
	const char *type = counter ? "counter" : "gauge";

	if (openmetrics && counter) {
		len = length_without_total(name);
		type = len < whole ? type : "unknown";
	}
	takt_str_addf(ret, "# HELP %.*s ", (int)len, name);
	add_help(help, openmetrics, ret);
	takt_str_addf(ret, "\n# TYPE %.*s %s\n", (int)len, name, type);
}

static void add_machine(const struct takt_page_input *input, struct takt_str *ret)
{
	const struct takt_machine_info *info = input->info;

	takt_page_add_head(
		input, "takt_simulated",
		"1 if the GPUs of this page are simulated: no figure of theirs was measured", false,
		ret);
	takt_str_addf(ret, "takt_simulated %d\n", input->simulated);
	takt_page_add_head(input, "takt_machine_info", "Where the readings come from", false, ret);
	takt_str_add(ret, "takt_machine_info{source=\"");
	takt_page_add_label_value(info->source, ret);
	takt_str_add(ret, "\",driver=\"");
	takt_page_add_label_value(info->driver_version, ret);
	takt_str_addf(ret, "\",cuda=\"%d.%d\"%s} 1\n", (int)info->cuda_version / 1000,
		      (int)info->cuda_version % 1000 / 10,
		      input->simulated ? ",simulated=\"true\"" : "");
	takt_page_add_head(input, "takt_gpus", "GPUs of this machine, lost ones included", false,
			   ret);
	takt_str_addf(ret, "takt_gpus %" PRIu32 "\n", input->gpu_count);
}

static void add_gauges(const struct takt_page_input *input, struct takt_str *ret)
{
	TAKT_VEC_EACH (gauge, &input->gauges->list) {
		takt_page_add_head(input, gauge->name, gauge->help, gauge->counter, ret);
		takt_str_addf(ret, "%s %.17g\n", gauge->name, gauge->value);
	}
}

static void prepare_own_labels(const struct takt_page_input *input, struct takt_page_gpu *gpu)
{
	const struct takt_gpu_facts *facts = gpu->facts;
	struct takt_str *labels = &gpu->own_labels;

	labels->max = TAKT_PAGE_LABELS;
	takt_str_reset(labels);
	takt_str_addf(labels, "gpu=\"%" PRIu32 "\"", gpu->index);
	if (facts->has & TAKT_FACT_UUID)
		takt_page_add_label("uuid", facts->uuid, labels);
	if (facts->has & TAKT_FACT_NAME)
		takt_page_add_label("model", facts->name, labels);
	if (input->simulated)
		takt_page_add_label("simulated", "true", labels);
}

/* A page with half a label on it is none. */
static void check_labels(const struct takt_page_input *input, struct takt_str *ret)
{
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		if (ret->rc == 0)
			ret->rc = input->gpus[g].own_labels.rc;
		if (ret->rc == 0)
			ret->rc = input->gpus[g].dcgm_labels.rc;
	}
}

void takt_page_render(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_str_reset(ret);
	add_machine(input, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++)
		prepare_own_labels(input, &input->gpus[g]);
	takt_page_add_gpus(input, ret);
	if (input->dcgm)
		takt_page_add_dcgm(input, ret);
	takt_page_add_nccl(input, ret);
	takt_page_add_net(input, ret);
	takt_page_add_trips(input, ret);
	add_gauges(input, ret);
	if (input->format == TAKT_PAGE_OPENMETRICS)
		takt_str_add(ret, "# EOF\n");
	check_labels(input, ret);
}

void takt_page_gpu_fini(struct takt_page_gpu *gpu)
{
	takt_str_fini(&gpu->own_labels);
	takt_str_fini(&gpu->dcgm_labels);
}

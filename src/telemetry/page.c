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

void takt_page_add_label_value(const char *text, struct takt_str *ret)
{
	for (; *text; text++) {
		char c = *text;

		if (c == '\\' || c == '"')
			takt_str_addf(ret, "\\%c", c);
		else if (c == '\n')
			takt_str_add(ret, "\\n");
		else
			takt_str_addn(ret, (unsigned char)c < ' ' ? "?" : &c, 1);
	}
}

/* In help texts the quote stands for itself. */
static void add_help(const char *text, struct takt_str *ret)
{
	for (; *text; text++) {
		if (*text == '\\')
			takt_str_add(ret, "\\\\");
		else if (*text == '\n')
			takt_str_add(ret, "\\n");
		else
			takt_str_addn(ret, text, 1);
	}
}

void takt_page_add_head(const char *name, const char *help, const char *type, struct takt_str *ret)
{
	takt_str_addf(ret, "# HELP %s ", name);
	add_help(help, ret);
	takt_str_addf(ret, "\n# TYPE %s %s\n", name, type);
}

static void add_machine(const struct takt_page_input *input, struct takt_str *ret)
{
	const struct takt_machine_info *info = input->info;

	takt_page_add_head("takt_simulated",
			   "1 if the GPUs of this page are simulated: no figure on it was measured",
			   "gauge", ret);
	takt_str_addf(ret, "takt_simulated %d\n", input->simulated);
	takt_page_add_head("takt_machine_info", "Where the readings come from", "gauge", ret);
	takt_str_add(ret, "takt_machine_info{source=\"");
	takt_page_add_label_value(info->source, ret);
	takt_str_add(ret, "\",driver=\"");
	takt_page_add_label_value(info->driver_version, ret);
	takt_str_addf(ret, "\",cuda=\"%d.%d\"%s} 1\n", (int)info->cuda_version / 1000,
		      (int)info->cuda_version % 1000 / 10,
		      input->simulated ? ",simulated=\"true\"" : "");
	takt_page_add_head("takt_gpus", "GPUs of this machine, lost ones included", "gauge", ret);
	takt_str_addf(ret, "takt_gpus %" PRIu32 "\n", input->gpu_count);
}

static void add_gauges(const struct takt_page_gauges *gauges, struct takt_str *ret)
{
	TAKT_VEC_EACH (gauge, &gauges->list) {
		takt_page_add_head(gauge->name, gauge->help, gauge->counter ? "counter" : "gauge",
				   ret);
		takt_str_addf(ret, "%s %.17g\n", gauge->name, gauge->value);
	}
}

void takt_page_render(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_str_reset(ret);
	add_machine(input, ret);
	takt_page_add_gpus(input, ret);
	add_gauges(input->gauges, ret);
}

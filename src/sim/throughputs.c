/* SPDX-License-Identifier: Apache-2.0 */
/* Gavel's table, see the header. */
#include "sim/throughputs.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "codec/json.h"

static const char apart_suffix[] = "_unconsolidated";

static inline void takt_cleanup_jsonp(cJSON **json)
{
	cJSON_Delete(*json);
}

static int read_text(struct takt_lines *lines, struct takt_str *text, struct takt_err *err)
{
	char *line;
	int rc;

	while ((rc = takt_lines_next(lines, &line, err)) == 1) {
		takt_str_add(text, line);
		takt_str_add(text, "\n");
		if (text->rc < 0)
			return takt_err_set(err, text->rc, "'%s' is over %d bytes",
					    takt_lines_name(lines), TAKT_THROUGHPUT_MAX_BYTES);
	}
	return rc;
}

/* Length of a model's name without the suffix; *ret_apart tells whether it had it. */
static size_t model_stem(const char *name, bool *ret_apart)
{
	size_t len = strlen(name), suffix = sizeof(apart_suffix) - 1;

	*ret_apart = len > suffix && strcmp(name + len - suffix, apart_suffix) == 0;
	return *ret_apart ? len - suffix : len;
}

/* The index of a model; model_count when it is not there. */
static size_t model_index(const struct takt_throughputs *table, const char *name, size_t len)
{
	size_t i = 0;

	while (i < table->model_count &&
	       (strlen(table->models[i]) != len || memcmp(table->models[i], name, len) != 0))
		i++;
	return i;
}

static int by_text(const void *a, const void *b, void *ctx)
{
	(void)ctx;
	return strcmp(a, b);
}

static int collect_models(const cJSON *root, struct takt_throughputs *table, struct takt_err *err)
{
	const cJSON *model;
	bool apart;

	cJSON_ArrayForEach (model, root) {
		size_t len = model_stem(model->string, &apart);

		if (!cJSON_IsObject(model) || len >= TAKT_THROUGHPUT_MAX_NAME)
			return takt_err_set(err, -TAKT_E_CORRUPT,
					    "model '%.60s': an object of kinds of jobs is needed",
					    model->string);
		if (model_index(table, model->string, len) < table->model_count)
			continue;
		if (table->model_count == TAKT_THROUGHPUT_MAX_MODELS)
			return takt_err_set(err, -TAKT_E_LIMIT, "more than %d models",
					    TAKT_THROUGHPUT_MAX_MODELS);
		memcpy(table->models[table->model_count], model->string, len);
		table->models[table->model_count++][len] = '\0';
	}
	if (table->model_count == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "an object of models is needed");
	return takt_sort(table->models, table->model_count, TAKT_THROUGHPUT_MAX_NAME, by_text,
			 NULL);
}

/* "('ResNet-18 (batch size 16)', 1)" */
static int parse_key(const char *key, struct takt_throughput_kind *kind, struct takt_err *err)
{
	const char *end = strrchr(key, '\'');
	size_t len = end ? (size_t)(end - key) : 0, digits;
	unsigned long long gpus;
	char number[12] = "";

	if (len > 2 && len - 2 < sizeof(kind->name) && strncmp(key, "('", 2) == 0 &&
	    strncmp(end, "', ", 3) == 0) {
		digits = strcspn(end + 3, ")");
		if (digits < sizeof(number) && strcmp(end + 3 + digits, ")") == 0)
			memcpy(number, end + 3, digits);
		if (takt_parse_u64(number, 1, 100000, &gpus) == 0) {
			memcpy(kind->name, key + 2, len - 2);
			kind->name[len - 2] = '\0';
			kind->gpus = (uint32_t)gpus;
			return 0;
		}
	}
	return takt_err_set(err, -TAKT_E_CORRUPT,
			    "kind of job \"%.60s\" does not read \"('NAME', ACCELERATORS)\"", key);
}

static int kind_of(struct takt_throughputs *table, const char *key,
		   struct takt_throughput_kind **ret, struct takt_err *err)
{
	struct takt_throughput_kind kind = {0};
	int rc = parse_key(key, &kind, err);

	if (rc < 0)
		return rc;
	TAKT_VEC_EACH (known, &table->kinds) {
		if (known->gpus == kind.gpus && strcmp(known->name, kind.name) == 0) {
			*ret = known;
			return 0;
		}
	}
	rc = takt_vec_push(&table->kinds, kind);
	if (rc < 0)
		return takt_err_set(err, rc, "more than %d kinds of jobs",
				    TAKT_THROUGHPUT_MAX_KINDS);
	*ret = takt_vec_last(&table->kinds);
	return 0;
}

static int take_speed(const cJSON *model, const cJSON *job, int64_t *ret, struct takt_err *err)
{
	const cJSON *alone = cJSON_GetObjectItemCaseSensitive(job, "null");

	if (!cJSON_IsNumber(alone) || !(alone->valuedouble >= 0) || alone->valuedouble > 1e9)
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "\"%.60s\" on '%.30s': \"null\" must be its speed in steps a "
				    "second",
				    job->string, model->string);
	*ret = (int64_t)(alone->valuedouble * 1e6 + 0.5);
	return 0;
}

static int take_model(const cJSON *model, struct takt_throughputs *table, struct takt_err *err)
{
	const cJSON *job;
	bool apart;
	size_t len = model_stem(model->string, &apart);
	size_t i = model_index(table, model->string, len);

	cJSON_ArrayForEach (job, model) {
		struct takt_throughput_kind *kind = NULL;
		int rc = kind_of(table, job->string, &kind, err);

		if (rc == 0)
			rc = take_speed(model, job, apart ? &kind->apart[i] : &kind->together[i],
					err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int by_name_then_gpus(const void *a, const void *b, void *ctx)
{
	const struct takt_throughput_kind *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	(void)ctx;
	return order ? order : (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

static int take_root(const cJSON *root, struct takt_throughputs *table, struct takt_err *err)
{
	const cJSON *model;
	int rc;

	if (!cJSON_IsObject(root))
		return takt_err_set(err, -TAKT_E_CORRUPT, "an object of models is needed");
	rc = collect_models(root, table, err);
	if (rc < 0)
		return rc;
	cJSON_ArrayForEach (model, root) {
		rc = take_model(model, table, err);
		if (rc < 0)
			return rc;
	}
	if (table->kinds.len == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "there is no kind of job");
	return takt_sort(table->kinds.at, table->kinds.len, sizeof(table->kinds.at[0]),
			 by_name_then_gpus, NULL);
}

int takt_throughputs_read(struct takt_lines *lines, struct takt_throughputs *ret,
			  struct takt_err *err)
{
	struct takt_throughputs table = {.kinds = TAKT_VEC_INIT(TAKT_THROUGHPUT_MAX_KINDS)};
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_THROUGHPUT_MAX_BYTES);
	TAKT_CLEANUP(jsonp) cJSON *root = NULL;
	int rc = read_text(lines, &text, err);

	if (rc < 0)
		return rc;
	rc = takt_json_parse(takt_str_text(&text), text.len, TAKT_THROUGHPUT_MAX_BYTES, &root, err);
	if (rc == 0)
		rc = take_root(root, &table, err);
	if (rc < 0) {
		takt_throughputs_fini(&table);
		return takt_err_wrap(err, rc, "'%s'", takt_lines_name(lines));
	}
	takt_strcpy(table.hash, sizeof(table.hash), takt_lines_hash(lines));
	*ret = table;
	return 0;
}

void takt_throughputs_fini(struct takt_throughputs *table)
{
	takt_vec_fini(&table->kinds);
}

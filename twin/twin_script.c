/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts of faults: read as a whole, then put into the machine. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "twin_fault.h"

enum {
	MAX_LINES = 1000
};

struct script {
	struct twin_fault_wish wishes[MAX_LINES];
	uint32_t count;
};

static int parse_words(const struct twin_map *map, char *line, struct twin_fault_wish *ret,
		       struct takt_err *err)
{
	char *rest, *time = strtok_r(line, " \t\n", &rest), *gpus = strtok_r(NULL, " \t\n", &rest),
		    *fault = strtok_r(NULL, " \t\n", &rest);
	int rc;

	if (!fault || strtok_r(NULL, " \t\n", &rest))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "a line is TIME GPU FAULT, like: 5s 3 xid=48");
	rc = twin_fault_parse_time(time, &ret->at_ns, err);
	if (rc == 0)
		rc = twin_fault_parse(fault, ret, err);
	return rc == 0 ? twin_fault_parse_gpus(map, gpus, ret, err) : rc;
}

static int parse_line(const struct twin_map *map, char *line, struct script *script,
		      struct takt_err *err)
{
	struct twin_fault_wish *wish = &script->wishes[script->count];
	int rc;

	line[strcspn(line, "#")] = '\0';
	if (line[strspn(line, " \t\n")] == '\0')
		return 0;
	if (script->count == MAX_LINES)
		return takt_err_set(err, -TAKT_E_LIMIT, "a script has %d faults at most",
				    MAX_LINES);
	rc = parse_words(map, line, wish, err);
	if (rc < 0)
		return rc;
	if (script->count && wish->at_ns < wish[-1].at_ns)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "its time is before that of the line above");
	script->count++;
	return 0;
}

static int read_script(const struct twin_map *map, const char *path, FILE *file,
		       struct script *script, struct takt_err *err)
{
	struct takt_err inner = {0};
	char line[256];

	for (unsigned number = 1; fgets(line, sizeof(line), file); number++) {
		int rc = parse_line(map, line, script, &inner);
		if (rc < 0)
			return takt_err_set(err, rc, "%s, line %u: %s", path, number, inner.msg);
	}
	return 0;
}

int twin_script_put(struct twin_map *map, const char *path, uint64_t *ret_end_ns,
		    struct takt_err *err)
{
	struct script *script = takt_zalloc(sizeof(*script));
	FILE *file = fopen(path, "re");
	int rc;

	if (!file)
		rc = takt_err_set(err, -errno, "read '%s'", path);
	else if (!script)
		rc = takt_err_set(err, -ENOMEM, "read '%s'", path);
	else
		rc = read_script(map, path, file, script, err);
	if (rc == 0)
		rc = twin_fault_apply(map, script->wishes, script->count, err);
	if (rc == 0)
		*ret_end_ns = twin_map_now_ns(map) +
			      (script->count ? script->wishes[script->count - 1].at_ns : 0);
	if (file)
		fclose(file);
	takt_free(script);
	return rc;
}

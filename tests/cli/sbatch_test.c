/* SPDX-License-Identifier: Apache-2.0 */
/* Job scripts of Slurm: what of their #SBATCH lines becomes an option of takt, and what is named as
 * left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "cli/sbatch.h"

/* The options of a script with this line, as "gpus=4 hold", and what is left behind " | ". */
static const char *of(const char *line)
{
	static char text[1024];
	struct takt_sbatch sbatch;
	struct takt_err err = {0};
	char script[1024];
	size_t n = 0;

	snprintf(script, sizeof(script),
		 "#!/bin/sh\n# a comment\n#SBATCH %s\n\necho run\n#SBATCH --gpus=7\n", line);
	text[0] = '\0';
	if (takt_sbatch_read(script, &sbatch, &err) < 0) {
		snprintf(text, sizeof(text), "%s", err.msg);
	} else {
		for (size_t i = 0; i < sbatch.count; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s%s", i ? " " : "",
					      sbatch.options[i].name,
					      sbatch.options[i].value[0] ? "=" : "",
					      sbatch.options[i].value);
		if (sbatch.rest.len)
			snprintf(text + n, sizeof(text) - n, " | %s", takt_str_text(&sbatch.rest));
	}
	takt_sbatch_fini(&sbatch);
	return text;
}

static void what_slurm_knows_becomes_options(void **state)
{
	static const char *const rows[][2] = {
		{"--gres=gpu:4", "gpus=4"},
		{"--gres gpu", "gpus=1"},
		{"-G 2 -t 90", "gpus=2 time-limit=1h30m"},
		{"--time=0-03:00", "time-limit=3h"},
		{"--time=2-12", "time-limit=2d12h"},
		{"-t1:30:05", "time-limit=1h30m5s"},
		{"-t 5:30", "time-limit=5m30s"},
		{"--time=0", " | line 3: --time=0\n"},
		{"--job-name=\"my train\" --mem=16G # big", "name=my train mem=16G"},
		{"--mem=4000 -c 8 -a 0-9%2", "mem=4000M cpus=8 array=0-9%2"},
		{"--begin=now+2hours", "begin=2h"},
		{"--begin=18:00 -H", "begin=18:00 hold"},
		{"-o log-%j.txt", "output=log-%j.txt"},
		{"-d afterok:12 --export=NONE", "after=12:ok no-env"},
		{"--nodes=1 --ntasks=1 --requeue", "requeue"},
		{"", ""},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		assert_string_equal(of(rows[i][0]), rows[i][1]);
}

static void what_takt_has_nothing_for_is_named(void **state)
{
	static const char *const rows[][2] = {
		{"--partition=gpu", " | line 3: --partition=gpu\n"},
		{"-N 2", " | line 3: -N 2\n"},
		{"--gres=gpu:a100:4", "gpus=4 | line 3: --gres=gpu:a100:4\n"},
		{"--gres=license:2", " | line 3: --gres=license:2\n"},
		{"--mem=0 --export=ALL", " | line 3: --mem=0\nline 3: --export=ALL\n"},
		{"--dependency=afterok:1:2", " | line 3: --dependency=afterok:1:2\n"},
		{"--output=log-%N.txt -J x", "name=x | line 3: --output=log-%N.txt\n"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		assert_string_equal(of(rows[i][0]), rows[i][1]);
}

static void what_is_wrong_is_refused_with_its_line(void **state)
{
	static const char *const rows[] = {"--gres=gpu:many", "--time=soon", "--time=1:2:3:4",
					   "-t 1-",	      "--mem=4Q",    "--gpus"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		assert_non_null(strstr(of(rows[i]), "line 3: '"));
}

static void files_of_other_systems_are_recognised(void **state)
{
	static const char *const rows[][2] = {
		{"#!/bin/sh\n#SBATCH -n 1\n", "Slurm"},
		{"#!/bin/bash\necho\n", "a script"},
		{"services:\n  app:\n", "compose"},
		{"apiVersion: batch/v1\nkind: Job\n", "Kubernetes"},
		{"\nresources:\n  gpus: 4\n", "YAML"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		const char *what = takt_foreign_job(rows[i][0]);

		assert_non_null(what);
		assert_non_null(strstr(what, rows[i][1]));
	}
	assert_null(takt_foreign_job("command = \"x\"\n[env]\n"));
	assert_null(takt_foreign_job(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_slurm_knows_becomes_options),
		cmocka_unit_test(what_takt_has_nothing_for_is_named),
		cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
		cmocka_unit_test(files_of_other_systems_are_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

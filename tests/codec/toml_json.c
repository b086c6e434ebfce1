/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of TOML from standard input, each ended by NUL; a line of JSON for each, or '!' and why
 * not. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/toml.h"

int main(void)
{
	char *text = NULL;
	size_t size = 0;

	while (getdelim(&text, &size, '\0', stdin) > 0) {
		struct takt_err err;
		cJSON *value = NULL;
		char *json = NULL;

		if (takt_toml_parse(text, &value, &err) == 0)
			json = cJSON_PrintUnformatted(value);
		printf("%s%s\n", json ? "" : "!", json ? json : err.msg);
		cJSON_free(json);
		cJSON_Delete(value);
	}
	free(text);
	return 0;
}

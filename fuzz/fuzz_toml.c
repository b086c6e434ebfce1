/* SPDX-License-Identifier: Apache-2.0 */
/* TOML from strangers: what is accepted is an object that our own JSON reader takes. */
#include <cjson/cJSON.h>

#include "codec/json.h"
#include "codec/toml.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *json = NULL;
	cJSON *value = NULL, *again = NULL;

	if (takt_toml_parse(text, &value, NULL) == 0) {
		fuzz_expect(cJSON_IsObject(value) && takt_toml_line(value) == 1);
		json = cJSON_PrintUnformatted(value);
		fuzz_expect(json != NULL);
		/* Tables in tables may go deeper than JSON from outside may. */
		if (takt_json_parse(json, strlen(json), strlen(json), &again, NULL) == 0)
			fuzz_expect(cJSON_Compare(value, again, true));
		cJSON_Delete(again);
	} else {
		fuzz_expect(value == NULL);
	}
	cJSON_free(json);
	cJSON_Delete(value);
	free(text);
	return 0;
}

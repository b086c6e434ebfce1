/* SPDX-License-Identifier: Apache-2.0 */
/* takt version: of this program and of the daemon that answers. */
#include <cjson/cJSON.h>
#include <string.h>

#include "cli/verb.h"
#include "codec/json.h"
#include "takt_build.h"

/* "" when no daemon answers or it does not say. */
static void ask_daemon(struct takt_cli *cli, char ret[64], bool *ret_simulated)
{
	const cJSON *version;
	const char *json;
	cJSON *root;

	ret[0] = '\0';
	if (takt_cli_connect(cli, NULL) < 0 ||
	    takt_client_ask(cli->client, "/v1/version", NULL, NULL) < 0)
		return;
	json = takt_client_json(cli->client);
	if (takt_json_parse(json, strlen(json), 65536, &root, NULL) < 0)
		return;
	version = cJSON_GetObjectItemCaseSensitive(root, "takt_version");
	if (cJSON_IsString(version))
		(void)takt_strcpy(ret, 64, version->valuestring);
	*ret_simulated = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "simulated"));
	cJSON_Delete(root);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	bool simulated = false;
	char daemon[64];

	ask_daemon(cli, daemon, &simulated);
	if (cli->json) {
		takt_str_add(&cli->out, "{\"takt_version\":\"" TAKT_VERSION "\"");
		if (daemon[0]) {
			takt_str_add(&cli->out, ",\"daemon_version\":");
			takt_json_add_text(&cli->out, daemon);
			takt_str_addf(&cli->out, ",\"simulated\":%s", simulated ? "true" : "false");
		}
		takt_str_add(&cli->out, "}\n");
		return 0;
	}
	takt_str_add(&cli->out, "takt " TAKT_VERSION "\n");
	if (daemon[0])
		takt_str_addf(&cli->out, "daemon %s on %s%s\n", daemon,
			      takt_client_socket(cli->client), simulated ? ", SIMULATED GPUs" : "");
	return 0;
}

const struct takt_verb takt_verb_version = {
	.name = "version",
	.summary = "of this program, and of the daemon",
	.usage = "",
	.about = "Prints the version of this program and, if one answers, of the daemon.",
	.run = run,
};

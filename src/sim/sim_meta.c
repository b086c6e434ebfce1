/* SPDX-License-Identifier: Apache-2.0 */
/* Where a result comes from, see the header. */
#include "sim/sim_meta.h"

#include <inttypes.h>

#include "codec/json.h"

static void add_text(struct takt_str *out, const char *name, const char *text)
{
	takt_json_add_name(out, name, false);
	takt_json_add_text(out, text);
}

static void add_hash(struct takt_str *out, const char *hash)
{
	takt_json_add_name(out, "sha256", false);
	if (hash[0])
		takt_json_add_text(out, hash);
	else
		takt_str_add(out, "null");
}

void takt_sim_meta_json(const struct takt_sim_meta *meta, struct takt_str *out)
{
	takt_str_add(out, "{\"format\":\"takt-simulation\",\"version\":1,\"simulated\":true");
	add_text(out, "protocol", meta->protocol);
	add_text(out, "takt", meta->version);
	add_text(out, "commit", meta->commit);
	add_text(out, "command", meta->command);
	takt_str_add(out, ",\n\"cluster\":{\"source\":");
	takt_json_add_text(out, meta->cluster);
	add_hash(out, meta->cluster_hash);
	takt_str_addf(out, ",\"nodes\":%" PRIu64 ",\"gpus\":%" PRIu64 "}", meta->nodes, meta->gpus);
	takt_str_add(out, ",\n\"trace\":{\"source\":");
	takt_json_add_text(out, meta->trace);
	add_hash(out, meta->trace_hash);
	takt_str_addf(out, ",\"jobs\":%" PRIu64 "}", meta->jobs);
	takt_str_addf(out,
		      ",\n\"seeds\":{\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"count\":%" PRIu64
		      "}",
		      meta->first_seed, meta->last_seed, meta->last_seed - meta->first_seed + 1);
	takt_str_add(out, ",\n\"options\":{");
	for (const char *const *at = meta->options; at && *at; at += 2) {
		takt_json_add_name(out, at[0], at == meta->options);
		takt_json_add_text(out, at[1]);
	}
	takt_str_add(out, "}");
}

void takt_sim_meta_csv(const struct takt_sim_meta *meta, struct takt_str *out)
{
	takt_str_addf(out, "# takt %s (%s), simulated, protocol %s\n", meta->version, meta->commit,
		      meta->protocol);
	takt_str_addf(out, "# repeat: %s\n", meta->command);
	takt_str_addf(out, "# cluster: %s sha256 %s, %" PRIu64 " nodes, %" PRIu64 " GPUs\n",
		      meta->cluster, meta->cluster_hash[0] ? meta->cluster_hash : "-", meta->nodes,
		      meta->gpus);
	takt_str_addf(out, "# trace: %s sha256 %s, %" PRIu64 " jobs\n", meta->trace,
		      meta->trace_hash[0] ? meta->trace_hash : "-", meta->jobs);
	takt_str_addf(out, "# seeds: %" PRIu64 "..%" PRIu64 "\n", meta->first_seed,
		      meta->last_seed);
	for (const char *const *at = meta->options; at && *at; at += 2)
		takt_str_addf(out, "# %s: %s\n", at[0], at[1]);
}

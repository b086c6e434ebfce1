/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips to other machines on the page: a histogram a peer. */
#include <inttypes.h>

#include "telemetry/page.h"

static const char rtt[] = "takt_net_rtt_seconds";

static void add_seconds(uint64_t ns, struct takt_str *ret)
{
	takt_page_add_scaled(false, ns, -9, ret);
	takt_str_add(ret, "\n");
}

static void add_bound(uint32_t bin, struct takt_str *ret)
{
	uint64_t us = takt_latency_bound_ns(bin) / TAKT_NS_PER_US;

	if (bin == TAKT_LATENCY_BOUNDS)
		takt_str_add(ret, "+Inf");
	else
		takt_page_add_scaled(false, us, -6, ret);
}

static void begin_series(const char *suffix, const struct takt_trips_peer *peer,
			 struct takt_str *ret)
{
	takt_str_addf(ret, "%s%s{peer=\"", rtt, suffix);
	takt_page_add_label_value(peer->name, ret);
	takt_str_add(ret, "\"");
}

static void add_histogram(const struct takt_trips_peer *peer, struct takt_str *ret)
{
	uint64_t sum = 0;

	for (uint32_t bin = 0; bin < TAKT_LATENCY_BINS; bin++) {
		sum += peer->rtt.bin[bin];
		begin_series("_bucket", peer, ret);
		takt_str_add(ret, ",le=\"");
		add_bound(bin, ret);
		takt_str_addf(ret, "\"} %" PRIu64 "\n", sum);
	}
	begin_series("_sum", peer, ret);
	takt_str_add(ret, "} ");
	add_seconds(peer->rtt.sum_ns, ret);
	begin_series("_count", peer, ret);
	takt_str_addf(ret, "} %" PRIu64 "\n", sum);
}

static void add_histograms(const struct takt_trips *trips, struct takt_str *ret)
{
	takt_str_addf(ret, "# HELP %s Round trips of probes to another machine\n", rtt);
	takt_str_addf(ret, "# TYPE %s histogram\n", rtt);
	for (uint32_t i = 0; i < trips->peer_count; i++)
		add_histogram(&trips->peer[i], ret);
}

static void add_lost(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "takt_net_probes_lost_total";

	takt_page_add_head(input, name, "Probes that were not answered within a second", true, ret);
	for (uint32_t i = 0; i < input->trips->peer_count; i++) {
		takt_str_addf(ret, "%s{peer=\"", name);
		takt_page_add_label_value(input->trips->peer[i].name, ret);
		takt_str_addf(ret, "\"} %" PRIu64 "\n", input->trips->peer[i].lost);
	}
}

static void add_refused(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "takt_net_probes_refused_total";

	takt_page_add_head(input, name, "Datagrams at the port of probes that were refused", true,
			   ret);
	for (uint32_t i = 0; i < input->trips->refused_count; i++)
		takt_str_addf(ret, "%s{reason=\"%s\"} %" PRIu64 "\n", name,
			      input->trips->refused[i].reason, input->trips->refused[i].count);
}

void takt_page_add_trips(const struct takt_page_input *input, struct takt_str *ret)
{
	if (!input->trips || input->trips->refused_count == 0)
		return;
	if (input->trips->peer_count) {
		add_histograms(input->trips, ret);
		add_lost(input, ret);
	}
	add_refused(input, ret);
}

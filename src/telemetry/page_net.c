/* SPDX-License-Identifier: Apache-2.0 */
/* The network's ports on the page. Of a port that was not read in time only its age is shown. */
#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "telemetry/page.h"

static const uint64_t stale_ns = 15 * TAKT_NS_PER_S; /* three looks of net_watch.h */
static const uint64_t mbit_bytes = 1000 * 1000 / 8;

static uint64_t age_ns(const struct takt_page_input *input, const struct takt_net_port *port)
{
	return takt_mono_elapsed_ns(input->now, port->at);
}

static void add_series(const char *name, const struct takt_net_port *port, const char *extra,
		       const char *value, struct takt_str *ret)
{
	char number[16];

	takt_str_addf(ret, "%s{kind=\"%s\"", name, takt_net_kind_name(port->kind));
	takt_page_add_label("device", port->device, ret);
	snprintf(number, sizeof(number), "%" PRIu32, port->port);
	if (port->port)
		takt_page_add_label("port", number, ret);
	if (extra)
		takt_page_add_label(extra, value, ret);
	takt_str_add(ret, "} ");
}

static uint64_t sent(const struct takt_net_port *port)
{
	return port->sent_bytes;
}

static uint64_t received(const struct takt_net_port *port)
{
	return port->received_bytes;
}

static uint64_t is_up(const struct takt_net_port *port)
{
	return port->up;
}

static uint64_t rate(const struct takt_net_port *port)
{
	return port->rate_mbit_s * mbit_bytes;
}

static uint64_t one(const struct takt_net_port *port)
{
	(void)port;
	return 1;
}

static const struct row {
	const char *name, *help;
	bool counter;
	uint32_t has; /* enum takt_net_has */
	uint64_t (*value)(const struct takt_net_port *port);
	bool with_state; /* the port's state is a label */
} rows[] = {
	{"takt_net_sent_bytes_total", "Bytes that the port sent", true, TAKT_NET_SENT, sent, false},
	{"takt_net_received_bytes_total", "Bytes that the port received", true, TAKT_NET_RECEIVED,
	 received, false},
	{"takt_net_up", "1 if the port's link can carry traffic", false, TAKT_NET_UP, is_up, false},
	{"takt_net_state", "1 for the state of the port's link", false, TAKT_NET_STATE, one, true},
	{"takt_net_rate_bytes_per_second", "What the port's link carries at most, each way", false,
	 TAKT_NET_RATE, rate, false},
};

static void add_row(const struct takt_page_input *input, const struct row *row,
		    struct takt_str *ret)
{
	bool has_head = false;

	for (uint32_t i = 0; i < input->net->count; i++) {
		const struct takt_net_port *port = &input->net->port[i];

		if (!(port->has & row->has) || age_ns(input, port) > stale_ns)
			continue;
		if (!has_head)
			takt_page_add_head(input, row->name, row->help, row->counter, ret);
		has_head = true;
		add_series(row->name, port, row->with_state ? "state" : NULL, port->state, ret);
		takt_str_addf(ret, "%" PRIu64 "\n", row->value(port));
	}
}

static void add_errors(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "takt_net_errors_total";
	bool has_head = false;

	for (uint32_t i = 0; i < input->net->count; i++) {
		const struct takt_net_port *port = &input->net->port[i];

		if (age_ns(input, port) > stale_ns)
			continue;
		for (uint32_t e = 0; e < TAKT_NET_MAX_ERRORS; e++) {
			if (!(port->errors_has >> e & 1))
				continue;
			if (!has_head)
				takt_page_add_head(input, name,
						   "Errors of the port, by the kernel's names",
						   true, ret);
			has_head = true;
			add_series(name, port, "error", takt_net_error_name(port->kind, e), ret);
			takt_str_addf(ret, "%" PRIu64 "\n", port->errors[e]);
		}
	}
}

static void add_ages(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "takt_net_reading_age_seconds";

	takt_page_add_head(input, name, "Age of what is known of the port", false, ret);
	for (uint32_t i = 0; i < input->net->count; i++) {
		add_series(name, &input->net->port[i], NULL, NULL, ret);
		takt_page_add_scaled(false, age_ns(input, &input->net->port[i]) / TAKT_NS_PER_MS,
				     -3, ret);
		takt_str_add(ret, "\n");
	}
}

static void add_left_out(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "takt_net_ports_left_out";

	if (input->net->left_out == 0)
		return;
	takt_page_add_head(input, name, "Ports that are not on this page: there are too many",
			   false, ret);
	takt_str_addf(ret, "%s %" PRIu32 "\n", name, input->net->left_out);
}

void takt_page_add_net(const struct takt_page_input *input, struct takt_str *ret)
{
	if (!input->net || input->net->count == 0)
		return;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		add_row(input, &rows[i], ret);
	add_errors(input, ret);
	add_ages(input, ret);
	add_left_out(input, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A network: read from a file, trained, written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/forecast_cli.h"
#include "cli/whole_file.h"

static int read_all(int fd, char *bytes, size_t size, size_t *ret_len)
{
	ssize_t got = 1;

	*ret_len = 0;
	while (got > 0 && *ret_len < size) {
		got = read(fd, bytes + *ret_len, size - *ret_len);
		*ret_len += got > 0 ? (size_t)got : 0;
		if (got < 0 && errno == EINTR)
			got = 1;
	}
	return got < 0 ? -errno : 0;
}

int takt_forecast_read_model(const char *path, struct takt_lstm **ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *bytes = takt_alloc(TAKT_LSTM_MAX_FILE + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? -errno : 0;
	size_t len = 0;

	if (rc == 0)
		rc = bytes ? read_all(fd, bytes, TAKT_LSTM_MAX_FILE + 1, &len) : -ENOMEM;
	if (fd >= 0)
		close(fd);
	if (rc < 0)
		return takt_err_set(err, rc, "read '%s'", path);
	if (len > TAKT_LSTM_MAX_FILE)
		return takt_err_set(err, -TAKT_E_LIMIT, "'%s' is larger than a network's file",
				    path);
	rc = takt_lstm_parse(bytes, len, ret, err);
	return rc < 0 ? takt_err_wrap(err, rc, "'%s'", path) : 0;
}

/* A bar on standard error, on a terminal. */
static int show_progress(void *ctx, uint32_t done, uint32_t rounds)
{
	const uint32_t every = rounds / 100 + 1;

	if (done % every == 0 || done == rounds)
		fprintf(stderr, "\rtraining: %3u%%%s", done * 100u / rounds,
			done == rounds ? "\n" : "");
	return 0;
}

static void say(struct takt_forecast_cli *own, const struct takt_lstm *net, const char *path,
		size_t samples)
{
	struct takt_str *out = &own->cli->out;

	if (own->cli->json) {
		takt_str_addf(out,
			      "{\"samples\":%zu,\"until_s\":%lld,\"units\":%u,\"weights\":%zu,"
			      "\"loss_to_persistence\":%.4f}\n",
			      samples, (long long)net->until_s, net->hidden, net->weight_count,
			      net->worth);
		return;
	}
	takt_str_addf(out,
		      "%s: %u units, %zu weights, trained on %zu samples: %s\n"
		      "on the sixth of them that was kept aside its loss is %.2f times that of "
		      "persistence%s\n",
		      path, net->hidden, net->weight_count, samples, own->what, net->worth,
		      net->worth < 1 ? "" : ": it has learned nothing");
}

int takt_forecast_train(struct takt_forecast_cli *own, struct takt_err *err)
{
	const char *path = takt_cli_value(own->cli, "out");
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_LSTM_MAX_FILE);
	uint32_t held_out = own->config.held_out_permille;
	struct takt_series history;
	struct takt_lstm *net;
	int rc;

	if (!path)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--out FILE' is missing: where to write "
				    "the network");
	history = takt_series_head(&own->series,
				   own->series.len -
					   (size_t)((uint64_t)own->series.len * held_out / 1000));
	if (isatty(STDERR_FILENO) == 1)
		own->config.task.progress = show_progress;
	rc = takt_forecast_check(&history, &own->config.task, err);
	if (rc == 0)
		rc = takt_lstm_train(&history, &own->config.task, &net, err);
	if (rc < 0)
		return rc;
	rc = takt_lstm_format(net, &text);
	rc = rc < 0 ? takt_err_set(err, rc, "no memory for the network")
		    : takt_whole_file_write(path, &text, err);
	if (rc == 0)
		say(own, net, path, history.len);
	takt_lstm_free(net);
	return rc;
}

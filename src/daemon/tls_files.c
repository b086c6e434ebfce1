/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate and its key: read at the start, when they were renewed, and at SIGHUP. A pair
 * that will not do is refused whole, the one in force stays, and the notes of `takt status` say so.
 *
 * Who renews writes two files, one after the other: they are read once a look finds them as the
 * look before did.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/log.h"

static const uint64_t look_again_ns = TAKT_NS_PER_S;

enum {
	NOTE = 4
};

static struct takt_tls_marks marks_of(const struct takt_daemon *daemon)
{
	return (struct takt_tls_marks){takt_file_mark_of(daemon->config.tls_certificate),
				       takt_file_mark_of(daemon->config.tls_key)};
}

int takt_tls_files_open(struct takt_daemon *daemon, struct takt_err *err)
{
	const struct takt_config *config = &daemon->config;
	bool certificate = config->tls_certificate[0], key = config->tls_key[0];

	if (certificate != key)
		return takt_err_set(err, -TAKT_E_USAGE, "%s is set, and %s is not",
				    key ? "tls_key" : "tls_certificate",
				    key ? "tls_certificate" : "tls_key");
	if (config->metrics_tls && !certificate)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "metrics_tls = yes needs tls_certificate and tls_key");
	if (!certificate)
		return 0;
	daemon->tls_seen = daemon->tls_read = marks_of(daemon);
	return takt_tls_new(config->tls_certificate, config->tls_key, &daemon->tls, err);
}

void takt_tls_files_read(struct takt_daemon *daemon)
{
	char *note = daemon->notes[NOTE];
	struct takt_err err = {.rc = 0};

	if (!daemon->tls)
		return;
	daemon->tls_seen = daemon->tls_read = marks_of(daemon);
	note[0] = '\0';
	if (takt_tls_read_again(daemon->tls, &err) == 0) {
		takt_log(TAKT_LOG_NOTICE, "certificate '%s' read again",
			 daemon->config.tls_certificate);
		return;
	}
	snprintf(note, sizeof(daemon->notes[NOTE]),
		 "certificate as before, the new one was refused: %.150s", err.msg);
	takt_log(TAKT_LOG_WARNING, "certificate as before, the new one was refused: %s", err.msg);
}

void takt_tls_files_look(struct takt_daemon *daemon, struct takt_boot now)
{
	struct takt_tls_marks marks;
	bool settled;

	if (!daemon->tls || now.ns - daemon->tls_looked.ns < look_again_ns)
		return;
	daemon->tls_looked = now;
	takt_tls_tidy(daemon->tls);
	marks = marks_of(daemon);
	settled = memcmp(&marks, &daemon->tls_seen, sizeof(marks)) == 0;
	daemon->tls_seen = marks;
	if (settled && memcmp(&marks, &daemon->tls_read, sizeof(marks)) != 0)
		takt_tls_files_read(daemon);
}

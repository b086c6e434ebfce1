/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submissions a second that the store makes durable, with one and with many outstanding, beside
 * what one fdatasync costs on the same disk in the same run: without the latter the former says
 * nothing. Rows of CSV on standard output.
 *
 *	store_commit DIR [SECONDS]	DIR on the disk to be measured; SECONDS a row, default 2
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/str.h"
#include "store/store.h"

enum {
	MAX_SYNCS = 100000,
	SPEC_BYTES = 4000, /* a job with an ordinary environment */
};

static const char *machine; /* one CSV field */
static const char *command;

static uint64_t now_ns(void)
{
	return takt_mono_now(takt_sys_real()).ns;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_row(const char *what, unsigned outstanding, uint64_t n, uint64_t ns,
		      uint64_t median_ns, uint64_t p99_ns)
{
	printf("%s,%u,%llu,%.3f,%.0f,%.1f,%.1f,\"%s\",\"%s\"\n", what, outstanding,
	       (unsigned long long)n, (double)ns / 1e9, (double)n * 1e9 / (double)ns,
	       (double)median_ns / 1e3, (double)p99_ns / 1e3, command, machine);
	fflush(stdout);
}

/* 4 KiB appended and synced, over and over: what one commit costs at the least. */
static int measure_syncs(const char *dir, uint64_t budget_ns)
{
	static uint64_t took[MAX_SYNCS];
	char path[PATH_MAX], block[4096] = "";
	uint64_t begin, at, n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/sync.tmp", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	begin = now_ns();
	for (at = begin; at - begin < budget_ns && n < MAX_SYNCS; n++) {
		uint64_t before = at;

		if (pwrite(fd, block, sizeof(block), (off_t)(n * sizeof(block))) < 0 ||
		    fdatasync(fd) < 0)
			return -errno;
		at = now_ns();
		took[n] = at - before;
	}
	close(fd);
	unlink(path);
	qsort(took, n, sizeof(took[0]), by_size);
	print_row("fdatasync 4 KiB append", 1, n, at - begin, took[n / 2], took[n * 99 / 100]);
	return 0;
}

struct load {
	struct takt_store *store;
	struct takt_job job; /* the next */
	uint64_t posted, done, failed;
	uint64_t *posted_ns; /* ring of `ring` entries by ticket */
	uint64_t *took;
	uint64_t ring;
};

static void take(struct load *load)
{
	struct takt_store_completion done[64];
	struct pollfd fd = {.fd = takt_store_fd(load->store), .events = POLLIN};
	size_t n;

	(void)poll(&fd, 1, -1);
	n = takt_store_completions(load->store, done, TAKT_ARRAY_LEN(done));
	for (size_t i = 0; i < n; i++) {
		load->failed += done[i].rc < 0;
		if (load->done < MAX_SYNCS)
			load->took[load->done] =
				now_ns() - load->posted_ns[(uint64_t)done[i].ticket % load->ring];
		load->done++;
	}
}

static int post(struct load *load, struct takt_err *err)
{
	uint64_t at = now_ns();
	int64_t ticket = takt_store_insert(load->store, &load->job, 0, err);

	if (ticket < 0)
		return (int)ticket;
	load->posted_ns[(uint64_t)ticket % load->ring] = at;
	load->posted++;
	load->job.id++;
	load->job.submit_seq++;
	return 0;
}

static int run_load(struct load *load, unsigned outstanding, uint64_t budget_ns,
		    struct takt_err *err)
{
	uint64_t begin = now_ns(), end, n;

	while (now_ns() - begin < budget_ns) {
		while (load->posted - load->done < outstanding)
			if (post(load, err) < 0)
				return err->rc;
		take(load);
	}
	while (load->done < load->posted)
		take(load);
	end = now_ns();
	n = load->done < MAX_SYNCS ? load->done : MAX_SYNCS;
	qsort(load->took, n, sizeof(load->took[0]), by_size);
	if (load->failed)
		return takt_err_set(err, -EIO, "%llu submissions failed",
				    (unsigned long long)load->failed);
	print_row("submission", outstanding, load->done, end - begin, load->took[n / 2],
		  load->took[n * 99 / 100]);
	return 0;
}

static int measure_store(const char *dir, unsigned outstanding, uint64_t budget_ns,
			 struct takt_err *err)
{
	static uint64_t took[MAX_SYNCS], posted_ns[4096];
	static char spec[SPEC_BYTES + 1];
	char path[PATH_MAX];
	struct takt_store_config config = {.path = path};
	struct load load = {.took = took, .posted_ns = posted_ns, .ring = 4096};
	int rc;

	snprintf(path, sizeof(path), "%s/bench.db", dir);
	memset(spec, 'x', SPEC_BYTES);
	load.job = (struct takt_job){.spec_json = spec};
	rc = takt_store_open(&config, &load.store, err);
	if (rc == 0)
		rc = takt_store_next_ids(load.store, &load.job.id, &load.job.submit_seq, err);
	if (rc == 0)
		rc = run_load(&load, outstanding, budget_ns, err);
	takt_store_close(load.store);
	return rc;
}

static void describe(const char *dir)
{
	static char text[400];
	struct utsname os = {0};
	struct statfs fs = {0};

	(void)uname(&os);
	(void)statfs(dir, &fs);
	snprintf(text, sizeof(text), "%s %s %s; %ld CPUs; file system %lx; SQLite %s", os.sysname,
		 os.release, os.machine, sysconf(_SC_NPROCESSORS_ONLN), (unsigned long)fs.f_type,
		 sqlite3_libversion());
	machine = text;
}

static void remove_database(const char *dir)
{
	static const char *const names[] = {"bench.db", "bench.db-wal", "bench.db-shm",
					    "bench.db.lock"};
	char path[PATH_MAX];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
}

int main(int argc, char **argv)
{
	static const unsigned outstanding[] = {1, 4, 16, 64, 256, 1024};
	char text[512], line[300];
	unsigned long long seconds = 2;
	struct takt_err err = {0};
	int rc;

	if (argc < 2 || (argc > 2 && takt_parse_u64(argv[2], 1, 600, &seconds) < 0)) {
		fprintf(stderr, "usage: store_commit DIR [SECONDS]\n");
		return 64;
	}
	snprintf(line, sizeof(line), "store_commit %s %llu", argv[1], seconds);
	command = line;
	describe(argv[1]);
	printf("what,outstanding,n,seconds,per_second,median_us,p99_us,command,machine\n");
	remove_database(argv[1]);
	rc = measure_syncs(argv[1], seconds * TAKT_NS_PER_S);
	if (rc < 0)
		takt_err_set(&err, rc, "sync a file in '%s'", argv[1]);
	for (size_t i = 0; rc == 0 && i < TAKT_ARRAY_LEN(outstanding); i++)
		rc = measure_store(argv[1], outstanding[i], seconds * TAKT_NS_PER_S, &err);
	remove_database(argv[1]);
	if (rc == 0)
		return 0;
	fprintf(stderr, "store_commit: %s\n", takt_err_text(&err, text, sizeof(text)));
	return 1;
}

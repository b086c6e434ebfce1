/* SPDX-License-Identifier: Apache-2.0 */
/* takt-bench meter (src/daemon/bench.h) behind two pipes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/tune.h"

enum {
	ANSWER_MS = 60000 /* the driver's start included */
};

static void become_meter(const char *program, char *const *uuids, uint32_t count, int in, int out)
{
	char **argv = takt_calloc(count + 3, sizeof(*argv));

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!argv || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(127);
	argv[0] = (char *)"takt-bench";
	argv[1] = (char *)"meter";
	memcpy(argv + 2, uuids, count * sizeof(*argv));
	execv(program, argv);
	_exit(127);
}

static void take_line(struct takt_tune_meter *meter, const char *line)
{
	if (strncmp(line, "event ", 6) == 0 && !meter->event[0])
		takt_strcpy(meter->event, sizeof(meter->event), line + 6);
	else if (strncmp(line, "deaf ", 5) == 0)
		takt_strcpy(meter->deaf, sizeof(meter->deaf), line + 5);
}

/* The next whole line without waiting beyond `wait_ms`: 1, 0 when there is none. Borrowed until the
 * next call. */
static int next_line(struct takt_tune_meter *meter, int wait_ms, char ret[512],
		     struct takt_err *err)
{
	struct pollfd out = {.fd = meter->out_fd, .events = POLLIN};
	char byte;

	while (poll(&out, 1, wait_ms) > 0) {
		if (read(meter->out_fd, &byte, 1) != 1)
			return takt_err_set(err, -TAKT_E_UNAVAILABLE,
					    "takt-bench, which reads the GPU, has ended");
		if (byte != '\n') {
			meter->line[meter->line_len] = byte;
			meter->line_len += meter->line_len + 1 < sizeof(meter->line);
			continue;
		}
		meter->line[meter->line_len] = '\0';
		meter->line_len = 0;
		takt_strcpy(ret, 512, meter->line);
		take_line(meter, ret);
		return 1;
	}
	return 0;
}

/* Until a line begins with one of the words. */
static int await(struct takt_tune_meter *meter, const char *word, char ret[512],
		 struct takt_err *err)
{
	int rc;

	while ((rc = next_line(meter, ANSWER_MS, ret, err)) > 0) {
		if (strncmp(ret, "lost ", 5) == 0)
			return takt_err_set(err, -TAKT_E_UNAVAILABLE, "%s", ret + 5);
		if (strncmp(ret, word, strlen(word)) == 0)
			return 0;
	}
	return rc < 0 ? rc : takt_err_set(err, -ETIMEDOUT, "takt-bench does not answer");
}

int takt_tune_meter_start(const char *program, char *const *uuids, uint32_t count,
			  struct takt_tune_meter *ret, struct takt_err *err)
{
	int in[2], out[2], simulated = 0, at = 0, rc;
	char line[512];

	*ret = (struct takt_tune_meter){.in_fd = -1, .out_fd = -1, .gpus = count};
	if (pipe2(in, O_CLOEXEC) < 0)
		return takt_err_set(err, -errno, "make a pipe");
	if (pipe2(out, O_CLOEXEC) < 0) {
		rc = takt_err_set(err, -errno, "make a pipe");
		close(in[0]);
		close(in[1]);
		return rc;
	}
	ret->pid = fork();
	if (ret->pid == 0)
		become_meter(program, uuids, count, in[0], out[1]);
	rc = ret->pid < 0 ? takt_err_set(err, -errno, "start takt-bench") : 0;
	close(in[0]);
	close(out[1]);
	ret->in_fd = in[1];
	ret->out_fd = out[0];
	if (rc == 0)
		rc = await(ret, "ready ", line, err);
	if (rc == 0 && sscanf(line, "ready %d %n", &simulated, &at) >= 1 && at > 0) {
		ret->simulated = simulated != 0;
		takt_strcpy(ret->gpu_name, sizeof(ret->gpu_name), line + at);
	}
	if (rc < 0)
		takt_tune_meter_stop(ret);
	return rc;
}

int takt_tune_meter_listen(struct takt_tune_meter *meter, struct takt_err *err)
{
	char line[512];
	int rc;

	while ((rc = next_line(meter, 0, line, err)) > 0)
		;
	return rc;
}

int takt_tune_meter_mark(struct takt_tune_meter *meter, struct takt_tune_mark *ret,
			 struct takt_err *err)
{
	unsigned long long at_ns;
	char line[512], energy[24];
	int rc;

	if (write(meter->in_fd, "\n", 1) != 1)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "takt-bench, which reads the GPU, has ended");
	rc = await(meter, "mark ", line, err);
	if (rc < 0)
		return rc;
	if (sscanf(line, "mark %llu %23s %llu %llu %llu %llu", &at_ns, energy, &ret->power_sum_mw,
		   &ret->power_count, &ret->sm_sum_mhz, &ret->sm_count) != 6)
		return takt_err_set(err, -TAKT_E_CORRUPT, "takt-bench said '%.80s'", line);
	ret->at_ns = at_ns;
	ret->has_energy = takt_parse_u64(energy, 0, UINT64_MAX, &ret->energy_mj) == 0;
	return 0;
}

void takt_tune_meter_stop(struct takt_tune_meter *meter)
{
	if (meter->in_fd >= 0)
		close(meter->in_fd);
	if (meter->out_fd >= 0)
		close(meter->out_fd);
	if (meter->pid > 0) {
		(void)kill(meter->pid, SIGKILL);
		(void)waitpid(meter->pid, NULL, 0);
	}
	*meter = (struct takt_tune_meter){.in_fd = -1, .out_fd = -1};
}

static double ratio(unsigned long long sum, unsigned long long count)
{
	return (double)sum / (double)count;
}

/* The counter where there is one: it misses nothing between readings. */
void takt_tune_use_marks(const struct takt_tune_mark *a, const struct takt_tune_mark *b,
			 uint32_t gpus, struct takt_tune_sample *ret)
{
	if (a->has_energy && b->has_energy && b->at_ns > a->at_ns)
		ret->power_w = ratio(b->energy_mj - a->energy_mj, b->at_ns - a->at_ns) * 1e6;
	else if (b->power_count > a->power_count)
		ret->power_w =
			ratio(b->power_sum_mw - a->power_sum_mw, b->power_count - a->power_count) /
			1000 * gpus;
	if (b->sm_count > a->sm_count)
		ret->sm_mhz = ratio(b->sm_sum_mhz - a->sm_sum_mhz, b->sm_count - a->sm_count);
}

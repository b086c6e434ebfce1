/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt-bench gpu: a child works through CUDA, or on a simulated machine runs the simulator's load;
 * this process measures. A child that dies in a driver's library is an error with a name.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "daemon/bench.h"
#include "daemon/meter.h"
#include "device/board_peaks.h"
#include "device/cuda_work.h"

enum {
	TURN_MS = 50,
	READY_MS = 120000, /* CUDA's start, cuBLAS and the operands */
	MATMUL_SIZE = 8192,
	STREAM_MIB = 1024,
	MAX_SECONDS = 3600,
	MAX_MATMUL = 65536,
	MAX_STREAM_MIB = 1024 * 1024,
	WARM_CALLS = 3,
};

static const uint64_t batch_ns = 50 * TAKT_NS_PER_MS; /* between two looks at the time */

struct bench {
	struct takt_cuda_config cuda;
	const char *nvml_path;
	uint32_t seconds;
	bool json;
	struct takt_meter *meter;
	int32_t pid;
	int go_fd, word_fd; /* to the child, from it */
	char word[256];
	size_t word_len;
	/* Results. */
	double units, worked_s; /* units: operations or bytes; of a simulated load steps */
	bool has_checksum;	/* a simulated load works nothing out */
	uint32_t checksum;
	struct takt_meter_mark before, after;
};

static uint64_t now_ns(void)
{
	return takt_mono_now(takt_sys_real()).ns;
}

/* So many calls as take about batch_ns. */
static int find_batch(struct takt_cuda_work *work, uint32_t *ret, struct takt_err *err)
{
	uint64_t begin, taken;
	int rc = takt_cuda_calls(work, WARM_CALLS, err);

	begin = now_ns();
	if (rc == 0)
		rc = takt_cuda_calls(work, WARM_CALLS, err);
	taken = (now_ns() - begin) / WARM_CALLS;
	*ret = taken < batch_ns ? (uint32_t)(batch_ns / (taken ? taken : 1)) : 1;
	return rc;
}

/* The child: says "ready", waits for a byte, works, says "done UNITS SECONDS" and, when it has read
 * back what it worked out, "result CHECKSUM"; or "failed WHY". */
static int work_on_cuda(const struct bench *bench)
{
	struct takt_cuda_work *work;
	struct takt_err err = {0};
	uint64_t begin, end;
	uint32_t batch = 1, checksum = 0;
	double units = 0;
	char byte;
	int rc = takt_cuda_open(&bench->cuda, &work, &err);

	if (rc == 0)
		rc = find_batch(work, &batch, &err);
	if (rc == 0)
		dprintf(bench->word_fd, "ready\n");
	if (rc == 0 && read(bench->go_fd, &byte, 1) != 1)
		return 0;
	begin = end = now_ns();
	while (rc == 0 && end - begin < bench->seconds * TAKT_NS_PER_S) {
		rc = takt_cuda_calls(work, batch, &err);
		units += batch * takt_cuda_call_size(work);
		end = now_ns();
	}
	if (rc == 0) {
		dprintf(bench->word_fd, "done %.17g %.9f\n", units, (double)(end - begin) / 1e9);
		rc = takt_cuda_checksum(work, &checksum, &err);
	}
	if (rc == 0)
		dprintf(bench->word_fd, "result %08x\n", checksum);
	else
		dprintf(bench->word_fd, "failed %d %s\n", rc, err.msg);
	return 0;
}

/* A machine that is not real gets work that is not real: its own load, in steps and in nothing that
 * a GPU could be judged by. */
static int work_on_twin(const struct bench *bench)
{
	const char *program = getenv("TAKT_TWIN_PROGRAM");
	const char *profile = bench->cuda.kind == TAKT_CUDA_MATMUL ? "gemm" : "stream";
	char seconds[16];

	snprintf(seconds, sizeof(seconds), "%u", bench->seconds);
	dprintf(bench->word_fd, "ready\n");
	(void)dup2(bench->word_fd, STDOUT_FILENO);
	execlp(program ? program : "takt-twin", "takt-twin", "load", "--quiet", "--profile",
	       profile, "--seconds", seconds, "--gpus", bench->cuda.uuid, (char *)NULL);
	dprintf(STDOUT_FILENO,
		"failed %d takt-twin, which stands in for CUDA here, cannot be started\n",
		-TAKT_E_UNAVAILABLE);
	return 0;
}

static int start_child(struct bench *bench, struct takt_err *err)
{
	int go[2], word[2];

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(word, O_CLOEXEC) < 0)
		return takt_err_set(err, -errno, "make a pipe");
	(void)fflush(NULL);
	bench->pid = fork();
	if (bench->pid < 0)
		return takt_err_set(err, -errno, "start the work");
	if (bench->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		bench->go_fd = go[0];
		bench->word_fd = word[1];
		close(go[1]);
		_exit(takt_meter_simulated(bench->meter) ? work_on_twin(bench)
							 : work_on_cuda(bench));
	}
	close(go[0]);
	close(word[1]);
	bench->go_fd = go[1];
	bench->word_fd = word[0];
	return 0;
}

/* The child's end without its last word. */
static int died(struct bench *bench, struct takt_err *err)
{
	int status = 0;

	(void)waitpid(bench->pid, &status, 0);
	bench->pid = 0; /* from here on another process's */
	if (WIFSIGNALED(status))
		return takt_err_set(err, -EIO, "the work was killed by signal %d",
				    WTERMSIG(status));
	return takt_err_set(err, -EIO, "the work ended with status %d", WEXITSTATUS(status));
}

/* 1: bench->word has its next line; 0: not yet. */
static int next_word(struct bench *bench, int wait_ms, struct takt_err *err)
{
	struct pollfd word = {.fd = bench->word_fd, .events = POLLIN};
	char byte;

	while (poll(&word, 1, wait_ms) > 0) {
		if (read(bench->word_fd, &byte, 1) != 1)
			return died(bench, err);
		if (byte == '\n') {
			bench->word[bench->word_len] = '\0';
			bench->word_len = 0;
			return 1;
		}
		bench->word[bench->word_len] = byte;
		bench->word_len += bench->word_len + 1 < sizeof(bench->word);
	}
	return 0;
}

static int refusal(const struct bench *bench, struct takt_err *err)
{
	int rc = -EIO, at = 0;

	if (sscanf(bench->word, "failed %d %n", &rc, &at) < 1 || rc >= 0)
		return 0;
	return takt_err_set(err, rc, "%s", bench->word + at);
}

static int trouble(struct bench *bench, struct takt_err *err)
{
	struct takt_gpu_event event;
	char text[64];

	if (!takt_meter_event(bench->meter, &event))
		return 0;
	takt_gpu_event_text(&event, text, sizeof(text));
	return takt_err_set(err, -EIO, "%s while it ran", text);
}

/* "done UNITS SECONDS", and a simulated load's "done steps UNITS seconds SECONDS ...". */
static bool is_done(struct bench *bench)
{
	return sscanf(bench->word, "done %lf %lf", &bench->units, &bench->worked_s) == 2 ||
	       sscanf(bench->word, "done steps %lf seconds %lf", &bench->units, &bench->worked_s) ==
		       2;
}

/* What it worked out, behind what was measured: reading it back is not part of the work. */
static int take_result(struct bench *bench, struct takt_err *err)
{
	int rc = next_word(bench, READY_MS, err);

	if (rc == 0)
		return takt_err_set(err, -ETIMEDOUT, "the result was not read back");
	rc = rc < 0 ? rc : refusal(bench, err);
	bench->has_checksum = rc == 0 && sscanf(bench->word, "result %x", &bench->checksum) == 1;
	return rc;
}

static int follow_child(struct bench *bench, struct takt_err *err)
{
	bool done = false;
	int rc = next_word(bench, READY_MS, err);

	if (rc == 0)
		return takt_err_set(err, -ETIMEDOUT, "the work did not begin");
	rc = rc < 0 ? rc : refusal(bench, err);
	if (rc == 0)
		rc = takt_meter_mark(bench->meter, &bench->before, err);
	if (rc == 0)
		(void)!write(bench->go_fd, "\n", 1); /* the simulated load waits for nobody */
	while (rc == 0 && !done) {
		takt_meter_turn(bench->meter);
		rc = next_word(bench, TURN_MS, err);
		if (rc > 0) {
			done = is_done(bench);
			rc = done ? 0 : refusal(bench, err);
		}
		rc = rc < 0 ? rc : trouble(bench, err);
	}
	if (rc == 0)
		rc = takt_meter_mark(bench->meter, &bench->after, err);
	return rc == 0 && !takt_meter_simulated(bench->meter) ? take_result(bench, err) : rc;
}

static void end_child(const struct bench *bench)
{
	if (bench->pid == 0)
		return;
	(void)kill(bench->pid, SIGKILL);
	(void)waitpid(bench->pid, NULL, 0);
}

/* What is told of a run; 0 = not known. */
struct told {
	const char *unit;
	double performance, power_w, sm_mhz, energy_j, peak;
};

static struct told sum_up(const struct bench *bench)
{
	const struct takt_meter_mark *a = &bench->before, *b = &bench->after;
	bool simulated = takt_meter_simulated(bench->meter);
	bool matmul = bench->cuda.kind == TAKT_CUDA_MATMUL;
	const char *name = takt_meter_gpu_name(bench->meter);
	struct told told = {.unit = simulated ? "step" : matmul ? "TFLOP" : "GB"};
	double seconds = (double)(b->at_ns - a->at_ns) / 1e9;

	told.performance = bench->units / bench->worked_s / (simulated ? 1 : matmul ? 1e12 : 1e9);
	if (a->has_energy && b->has_energy)
		told.power_w = (double)(b->energy_mj - a->energy_mj) / 1e3 / seconds;
	else if (b->power_count > a->power_count)
		told.power_w = (double)(b->power_sum_mw - a->power_sum_mw) / 1e3 /
			       (double)(b->power_count - a->power_count);
	if (b->sm_count > a->sm_count)
		told.sm_mhz = (double)(b->sm_sum_mhz - a->sm_sum_mhz) /
			      (double)(b->sm_count - a->sm_count);
	told.energy_j = told.power_w / told.performance;
	if (!simulated)
		told.peak = matmul ? takt_board_peak_tflops(name, bench->cuda.type)
				   : takt_board_peak_gbs(name);
	return told;
}

static const char *kind_name(const struct bench *bench)
{
	return bench->cuda.kind == TAKT_CUDA_MATMUL ? "matmul" : "stream";
}

static void add_known(struct takt_str *out, const char *name, double value)
{
	if (value > 0)
		takt_str_addf(out, ",\"%s\":%.6g", name, value);
}

static void print_json(const struct bench *bench, const struct told *told, struct takt_str *out)
{
	bool simulated = takt_meter_simulated(bench->meter);

	takt_str_addf(out,
		      "{\"bench\":\"gpu\",\"kind\":\"%s\",\"simulated\":%s,\"gpu\":\"%s\",\"uuid\":"
		      "\"%s\"",
		      kind_name(bench), simulated ? "true" : "false",
		      takt_meter_gpu_name(bench->meter), takt_meter_gpu_uuid(bench->meter));
	if (!simulated && bench->cuda.kind == TAKT_CUDA_MATMUL)
		takt_str_addf(out, ",\"dtype\":\"%s\"", takt_cuda_type_names[bench->cuda.type]);
	if (!simulated)
		takt_str_addf(out, ",\"size\":%u", bench->cuda.size);
	takt_str_addf(out, ",\"seconds\":%.3f,\"unit\":\"%s\",\"performance\":%.6g",
		      bench->worked_s, told->unit, told->performance);
	add_known(out, "peak", told->peak);
	add_known(out, "share_of_peak_pct",
		  told->peak > 0 ? 100 * told->performance / told->peak : 0);
	add_known(out, "sm_mhz", told->sm_mhz);
	add_known(out, "power_w", told->power_w);
	add_known(out, "energy_j", told->energy_j);
	if (bench->has_checksum)
		takt_str_addf(out, ",\"result_crc32c\":\"%08x\"", bench->checksum);
	takt_str_add(out, "}\n");
}

static void print_text(const struct bench *bench, const struct told *told, struct takt_str *out)
{
	bool simulated = takt_meter_simulated(bench->meter);

	if (simulated)
		takt_str_add(out, "SIMULATED: this GPU is not real; its load counts steps, no "
				  "operations and no bytes\n");
	takt_str_addf(out, "%s on %s: %.4g %s/s", kind_name(bench),
		      takt_meter_gpu_name(bench->meter), told->performance,
		      simulated ? "steps" : told->unit);
	if (!simulated && bench->cuda.kind == TAKT_CUDA_MATMUL)
		takt_str_addf(out, " of %s, %u x %u", takt_cuda_type_names[bench->cuda.type],
			      bench->cuda.size, bench->cuda.size);
	if (told->peak > 0)
		takt_str_addf(out, ", %.1f %% of the %g of its data sheet",
			      100 * told->performance / told->peak, told->peak);
	else if (!simulated)
		takt_str_add(out, "; its peak is not known here");
	takt_str_add(out, "\n");
	if (told->sm_mhz > 0)
		takt_str_addf(out, "SM clock %.0f MHz\n", told->sm_mhz);
	if (told->power_w > 0)
		takt_str_addf(out, "power %.0f W, %.4g J a %s\n", told->power_w, told->energy_j,
			      told->unit);
	if (bench->has_checksum)
		takt_str_addf(out, "result %08x (CRC-32C of %s)\n", bench->checksum,
			      bench->cuda.kind == TAKT_CUDA_MATMUL ? "the product"
								   : "what was copied");
	if (takt_meter_deaf(bench->meter)[0])
		takt_str_addf(out, "XIDs and ECC errors were not watched: %s\n",
			      takt_meter_deaf(bench->meter));
}

static int take_number(const char *option, const char *text, uint32_t max, uint32_t *ret,
		       struct takt_err *err)
{
	unsigned long long value;

	if (takt_parse_u64(text, 1, max, &value) < 0)
		return takt_err_set(err, -TAKT_E_USAGE, "'--%s' must be 1 to %u, not '%.40s'",
				    option, max, text);
	*ret = (uint32_t)value;
	return 0;
}

static int take_type(struct bench *bench, const char *text, struct takt_err *err)
{
	for (int i = 0; i < TAKT_CUDA_TYPES; i++) {
		if (strcmp(takt_cuda_type_names[i], text) != 0)
			continue;
		bench->cuda.type = (enum takt_cuda_type)i;
		return 0;
	}
	return takt_err_set(err, -TAKT_E_USAGE,
			    "'--dtype' must be f16, bf16, tf32, f32 or f64, not '%.40s'", text);
}

static int take_kind(struct bench *bench, const char *text, struct takt_err *err)
{
	bench->cuda.kind = strcmp(text, "stream") == 0 ? TAKT_CUDA_STREAM : TAKT_CUDA_MATMUL;
	return strcmp(text, "stream") == 0 || strcmp(text, "matmul") == 0
		       ? 0
		       : takt_err_set(err, -TAKT_E_USAGE,
				      "'--kind' must be matmul or stream, not '%.40s'", text);
}

static int parse(int argc, char **argv, struct bench *bench, struct takt_err *err)
{
	static const struct option known[] = {
		{"kind", required_argument, NULL, 'k'}, {"dtype", required_argument, NULL, 'd'},
		{"size", required_argument, NULL, 's'}, {"seconds", required_argument, NULL, 't'},
		{"gpu", required_argument, NULL, 'g'},	{"nvml", required_argument, NULL, 'n'},
		{"cuda", required_argument, NULL, 'c'}, {"cublas", required_argument, NULL, 'b'},
		{"json", no_argument, NULL, 'j'},	{0},
	};
	int flag, rc = 0;

	while (rc == 0 && (flag = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (flag == 'k')
			rc = take_kind(bench, optarg, err);
		else if (flag == 'd')
			rc = take_type(bench, optarg, err);
		else if (flag == 's')
			rc = take_number("size", optarg, MAX_STREAM_MIB, &bench->cuda.size, err);
		else if (flag == 't')
			rc = take_number("seconds", optarg, MAX_SECONDS, &bench->seconds, err);
		else if (flag == 'g')
			bench->cuda.uuid = optarg;
		else if (flag == 'n')
			bench->nvml_path = optarg;
		else if (flag == 'c')
			bench->cuda.cuda_path = optarg;
		else if (flag == 'b')
			bench->cuda.cublas_path = optarg;
		else if (flag == 'j')
			bench->json = true;
		else
			rc = takt_err_set(err, -TAKT_E_USAGE, "see takt help bench");
	}
	if (rc == 0 && bench->cuda.kind == TAKT_CUDA_MATMUL && bench->cuda.size > MAX_MATMUL)
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--size' of a product: %d at most",
				  MAX_MATMUL);
	if (bench->cuda.size == 0)
		bench->cuda.size = bench->cuda.kind == TAKT_CUDA_MATMUL ? MATMUL_SIZE : STREAM_MIB;
	return rc;
}

static int measure(struct bench *bench, struct takt_err *err)
{
	const char *const *uuids = bench->cuda.uuid ? &bench->cuda.uuid : NULL;
	int rc = takt_meter_open(bench->nvml_path, uuids, uuids ? 1 : 0, &bench->meter, err);

	if (rc < 0)
		return rc;
	if (!bench->cuda.uuid)
		bench->cuda.uuid = takt_meter_gpu_uuid(bench->meter);
	rc = start_child(bench, err);
	if (rc < 0)
		return rc;
	rc = follow_child(bench, err);
	end_child(bench);
	return rc;
}

int takt_bench_gpu_main(int argc, char **argv)
{
	struct bench bench = {.seconds = 5};
	struct takt_err err = {0};
	struct takt_str out = TAKT_STR(64 * 1024);
	char text[TAKT_ERR_MSG + 64];
	int rc;

	(void)signal(SIGPIPE, SIG_IGN);
	rc = parse(argc, argv, &bench, &err);
	if (rc == 0)
		rc = measure(&bench, &err);
	if (rc == 0) {
		struct told told = sum_up(&bench);

		if (bench.json)
			print_json(&bench, &told, &out);
		else
			print_text(&bench, &told, &out);
		(void)fputs(takt_str_text(&out), stdout);
	} else {
		(void)fprintf(stderr, "takt bench gpu: %s\n",
			      takt_err_text(&err, text, sizeof(text)));
	}
	takt_str_fini(&out);
	takt_meter_close(bench.meter);
	return rc < 0 ? takt_err_exit_status(rc) : 0;
}

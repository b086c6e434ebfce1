/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds a job up. Each cause is judged by what it alone does to readings; what several of them
 * do alike (a GPU without work, a GPU that is busy by the driver's count) decides nothing alone.
 */
#include "health/slow.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

enum {
	BUSY = 850,	 /* permille of the time: beyond it, gaps are not what holds the job up */
	HELD_MUCH = 100, /* of the time; it costs something from HELD_LITTLE on */
	HELD_LITTLE = 20,
	SEEN_MUCH = 300,    /* of the readings, where no counter tells */
	CAP_PERMILLE = 950, /* of the board's own limit */
	CLOCK_PERMILLE = 900,
	UTIL_APART = 200,
	POWER_APART = 250, /* of the highest */
	FULL_SMS = 600,	   /* of the time that kernels run, SMs with work */
	FEW_SMS = 400,
	LINK_MUCH = 400,
	LINK_LITTLE = 100,
	LINK_SOME = 50,
	DRAM_MUCH = 600, /* of its bandwidth; HBM gives programs about 900 */
	DRAM_LITTLE = 400,
	MEM_UTIL_MUCH = 700, /* of the time, which says less: a little traffic counts as much */
	MEM_UTIL_LITTLE = 500,
	POWER_MUCH = 650, /* of the limit */
	IO_MILLI = 200,
	LOADERS_MILLI = 500,
	LEAD_PERMILLE = 600,
};

const char *const takt_slow_causes[TAKT_SLOW_CAUSES] = {
	[TAKT_SLOW_THROTTLING] = "throttling",
	[TAKT_SLOW_IMBALANCE] = "imbalance",
	[TAKT_SLOW_DATA] = "data-loading",
	[TAKT_SLOW_LAUNCH] = "launch-bound",
	[TAKT_SLOW_COMMUNICATION] = "communication",
	[TAKT_SLOW_MEMORY] = "memory",
	[TAKT_SLOW_COMPUTE] = "compute",
};
const char *const takt_slow_answers[TAKT_SLOW_ANSWERS] = {"NO", "UNKNOWN", "PART", "YES"};

static const char LOOK_CLOSER[] =
	"py-spy dump --pid PID shows what its threads stand at; nsys profile shows the gaps";

/* A stronger answer replaces a weaker one; one that is as strong adds its GPUs. */
static void say(struct takt_slow_row *row, enum takt_slow_answer answer, uint64_t gpus,
		const char *next, const char *fmt, ...) TAKT_PRINTF(5, 6);
static void say(struct takt_slow_row *row, enum takt_slow_answer answer, uint64_t gpus,
		const char *next, const char *fmt, ...)
{
	va_list args;

	if (row->evidence[0] && answer <= row->answer) {
		if (answer == row->answer)
			row->gpus |= gpus;
		return;
	}
	row->answer = answer;
	row->gpus = gpus;
	snprintf(row->next, sizeof(row->next), "%s", next ? next : "");
	va_start(args, fmt);
	vsnprintf(row->evidence, sizeof(row->evidence), fmt, args);
	va_end(args);
}

static bool has(const struct takt_slow_gpu *gpu, uint32_t bits)
{
	return (gpu->has & bits) == bits;
}

static bool active(const struct takt_slow_gpu *gpu, enum takt_active part, uint32_t *ret)
{
	*ret = gpu->active[part];
	return gpu->has & TAKT_SLOW_ACTIVE << part;
}

/* Of the time, some kernel ran; by the board's own counters where it has them. */
static bool busy(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	if (active(gpu, TAKT_ACTIVE_GRAPHICS, ret))
		return true;
	*ret = gpu->util;
	return has(gpu, TAKT_SLOW_UTIL);
}

/* Of the time that kernels run, how much of the GPU they fill. */
static bool filled(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	uint32_t sms, run;

	if (!active(gpu, TAKT_ACTIVE_SM, &sms) || !active(gpu, TAKT_ACTIVE_GRAPHICS, &run) ||
	    run == 0)
		return false;
	*ret = sms < run ? sms * 1000 / run : 1000;
	return true;
}

/* Means over the job's GPUs of what each of them tells. */
static bool mean_of(const struct takt_slow_facts *facts,
		    bool (*read)(const struct takt_slow_gpu *gpu, uint32_t *ret), uint32_t *ret)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		uint32_t one;

		if (!read(&facts->gpu[i], &one))
			return false;
		sum += one;
	}
	*ret = facts->gpu_count ? (uint32_t)(sum / facts->gpu_count) : 0;
	return facts->gpu_count > 0;
}

struct held {
	uint32_t needs;
	enum takt_held what;
	const char *text, *next;
};
static const struct held helds[] = {
	{TAKT_SLOW_HELD_REASONS, TAKT_HELD_HW_THERMAL, "by heat, to half its clock or less",
	 "look after the cooling: takt doctor"},
	{TAKT_SLOW_HELD_REASONS, TAKT_HELD_POWER_BRAKE, "by the power supply's brake signal",
	 "look after the power supply: takt doctor"},
	{TAKT_SLOW_HELD_REASONS, TAKT_HELD_SW_THERMAL, "by heat",
	 "look after the cooling: takt doctor"},
	{TAKT_SLOW_HELD_POLICIES, TAKT_HELD_THERMAL, "by heat",
	 "look after the cooling: takt doctor"},
	{TAKT_SLOW_HELD_POLICIES, TAKT_HELD_BOARD_LIMIT, "by a limit of the board", "takt doctor"},
	{TAKT_SLOW_HELD_POLICIES, TAKT_HELD_SYNC_BOOST, "to the slowest of its sync boost group",
	 "look at the slowest GPU of the group: takt doctor"},
};

static void held_by_counters(const struct takt_slow_gpu *gpu, struct takt_slow_row *row)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(helds); i++) {
		uint32_t held = gpu->held[helds[i].what];

		if (!has(gpu, helds[i].needs) || held < HELD_LITTLE)
			continue;
		say(row, held >= HELD_MUCH ? TAKT_SLOW_YES : TAKT_SLOW_PART, 1ull << gpu->index,
		    helds[i].next, "held back for %u %% of the time %s", held / 10, helds[i].text);
	}
}

static void held_by_readings(const struct takt_slow_gpu *gpu, struct takt_slow_row *row)
{
	if (!has(gpu, TAKT_SLOW_THROTTLE) || has(gpu, TAKT_SLOW_HELD_REASONS))
		return;
	if (gpu->brake >= SEEN_MUCH)
		say(row, TAKT_SLOW_YES, 1ull << gpu->index,
		    "look after the power supply: takt doctor",
		    "in %u %% of the readings the power supply's brake signal held it back",
		    gpu->brake / 10);
	if (gpu->heat >= SEEN_MUCH)
		say(row, TAKT_SLOW_YES, 1ull << gpu->index, "look after the cooling: takt doctor",
		    "in %u %% of the readings heat held it back", gpu->heat / 10);
}

static bool slow_clock(const struct takt_slow_gpu *gpu)
{
	return has(gpu, TAKT_SLOW_SM_CLOCK | TAKT_SLOW_SM_MAX) &&
	       (uint64_t)gpu->sm_mhz * 1000 < (uint64_t)gpu->sm_max_mhz * CLOCK_PERMILLE;
}

/* A board reaches its own power limit under full load; one that was lowered is somebody's doing. */
static void held_by_settings(const struct takt_slow_gpu *gpu, struct takt_slow_row *row)
{
	bool capped = has(gpu, TAKT_SLOW_POWER_LIMIT | TAKT_SLOW_POWER_DEFAULT) &&
		      (uint64_t)gpu->power_limit_mw * 1000 <
			      (uint64_t)gpu->power_default_mw * CAP_PERMILLE;
	uint32_t run;

	if (!slow_clock(gpu) || !busy(gpu, &run) || run < BUSY || !has(gpu, TAKT_SLOW_THROTTLE))
		return;
	if (capped && gpu->at_limit >= SEEN_MUCH)
		say(row, TAKT_SLOW_YES, 1ull << gpu->index,
		    gpu->held_by_takt ? "takt clock shows who set it"
				      : "nvidia-smi -pl sets it: takt doctor",
		    "%u MHz of %u: at a power limit of %u W, the board's own is %u W", gpu->sm_mhz,
		    gpu->sm_max_mhz, gpu->power_limit_mw / 1000, gpu->power_default_mw / 1000);
	else if (gpu->at_limit < SEEN_MUCH && gpu->heat == 0 && gpu->brake == 0)
		say(row, TAKT_SLOW_PART, 1ull << gpu->index,
		    gpu->held_by_takt ? "takt clock shows who set it"
				      : "nvidia-smi -rgc gives locked clocks back",
		    "%u MHz of %u, and neither heat nor power is the reason: its clock was set%s",
		    gpu->sm_mhz, gpu->sm_max_mhz, gpu->held_by_takt ? " through takt" : "");
}

static void judge_throttling(const struct takt_slow_facts *facts, struct takt_slow_row *row)
{
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct takt_slow_gpu *gpu = &facts->gpu[i];

		held_by_counters(gpu, row);
		held_by_readings(gpu, row);
		held_by_settings(gpu, row);
		if (!(gpu->has &
		      (TAKT_SLOW_HELD_POLICIES | TAKT_SLOW_HELD_REASONS | TAKT_SLOW_THROTTLE)))
			say(row, TAKT_SLOW_UNKNOWN, 1ull << gpu->index,
			    "run this where the driver can be asked",
			    "nothing tells what holds the clock back");
	}
	if (!row->evidence[0])
		say(row, TAKT_SLOW_NO, 0, NULL,
		    "neither heat nor the power supply held a clock back");
}

/* What differs between the GPUs of a job: how long they work, their clocks, their power. */
static bool power(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	*ret = gpu->power_mw;
	return has(gpu, TAKT_SLOW_POWER);
}

static bool clock_of(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	*ret = gpu->sm_mhz;
	return has(gpu, TAKT_SLOW_SM_CLOCK);
}

struct span {
	uint32_t least, most;
	uint64_t at_least, at_most; /* GPUs in the lower, in the upper half between them */
};

static bool span_of(const struct takt_slow_facts *facts,
		    bool (*read)(const struct takt_slow_gpu *gpu, uint32_t *ret), struct span *ret)
{
	uint32_t value;

	*ret = (struct span){.least = UINT32_MAX};
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		if (!read(&facts->gpu[i], &value))
			return false;
		ret->least = value < ret->least ? value : ret->least;
		ret->most = value > ret->most ? value : ret->most;
	}
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		read(&facts->gpu[i], &value);
		*(value - ret->least < ret->most - value ? &ret->at_least : &ret->at_most) |=
			1ull << facts->gpu[i].index;
	}
	return true;
}

static void judge_imbalance(const struct takt_slow_facts *facts, struct takt_slow_row *row)
{
	struct span work, clocks, watts;
	bool know_work = span_of(facts, busy, &work),
	     know_clocks = span_of(facts, clock_of, &clocks);
	bool know_watts = span_of(facts, power, &watts);

	if (facts->gpu_count < 2)
		say(row, TAKT_SLOW_NO, 0, NULL, "it has one GPU");
	else if (know_work && work.most - work.least >= UTIL_APART)
		say(row, TAKT_SLOW_YES, work.at_least,
		    "give each GPU its share of the work; look at what feeds these",
		    "these work for %u %% of the time, the others for up to %u %%", work.least / 10,
		    work.most / 10);
	else if (know_clocks &&
		 (uint64_t)clocks.least * 1000 < (uint64_t)clocks.most * CLOCK_PERMILLE)
		say(row, TAKT_SLOW_YES, clocks.at_least, "takt doctor says why these are slow",
		    "these work at %u MHz, the others at up to %u: all wait for the slowest",
		    clocks.least, clocks.most);
	else if (know_watts &&
		 (uint64_t)(watts.most - watts.least) * 1000 >= (uint64_t)watts.most * POWER_APART)
		say(row, TAKT_SLOW_YES, watts.at_most,
		    "give these less of the work, or look at what makes them slower",
		    "all are busy, but these draw %u W and the others %u W or more: the others "
		    "wait "
		    "for them",
		    watts.most / 1000, watts.least / 1000);
	else if (!know_work || !know_watts)
		say(row, TAKT_SLOW_UNKNOWN, 0, "run this where the driver can be asked",
		    "not all of its GPUs tell how busy they are and what they draw");
	else
		say(row, TAKT_SLOW_NO, 0, NULL,
		    "they work for %u to %u %% of the time, at %u to %u W", work.least / 10,
		    work.most / 10, watts.least / 1000, watts.most / 1000);
}

/* Gaps while nothing but the threads that drive the GPUs work. */
static void judge_lead(const struct takt_slow_facts *facts, uint32_t run,
		       struct takt_slow_row *data, struct takt_slow_row *launch)
{
	bool leads = facts->lead_milli >= (uint64_t)facts->gpu_count * LEAD_PERMILLE;
	uint32_t fill, idle = (1000 - run) / 10;

	if (!leads) {
		say(data, TAKT_SLOW_UNKNOWN, 0, LOOK_CLOSER,
		    "the GPUs have no work for %u %% of the time, while the job neither computes "
		    "nor "
		    "waits for a disk: a network, a lock, another process or machine",
		    idle);
		say(launch, TAKT_SLOW_NO, 0, NULL, "the threads that start kernels rest");
	} else if (mean_of(facts, filled, &fill) && fill < FEW_SMS) {
		say(data, TAKT_SLOW_NO, 0, NULL, "no loader computes, and none waits for a disk");
		say(launch, TAKT_SLOW_YES, 0,
		    "larger batches, fused kernels or CUDA graphs (torch.compile)",
		    "kernels run for %u %% of the time and then fill %u %% of the GPU, while the "
		    "thread that starts them never rests",
		    run / 10, fill / 10);
	} else {
		say(data, TAKT_SLOW_UNKNOWN, 0, LOOK_CLOSER,
		    "the GPUs have no work for %u %% of the time, while the thread that drives "
		    "them "
		    "never rests: it prepares input itself, or starts kernels too small",
		    idle);
		say(launch, TAKT_SLOW_UNKNOWN, 0, LOOK_CLOSER, "what was seen fits this, too");
	}
}

/* The GPUs lack work: who should have given it to them? Threads beside the driving ones, but of the
 * same process, are loaders or those that talk to other GPUs. */
static void judge_gaps(const struct takt_slow_facts *facts, uint32_t run,
		       struct takt_slow_row *data, struct takt_slow_row *launch)
{
	uint32_t within = facts->within_milli, idle = (1000 - run) / 10;
	uint32_t loaders = facts->cpu_milli - facts->lead_milli - within;

	if (facts->gpu_count == 1)
		loaders += within;
	if (!facts->host_known)
		say(data, TAKT_SLOW_UNKNOWN, 0,
		    "run this on the job's machine, where its processes can be seen",
		    "the GPUs have no work for %u %% of the time; what the job's processes do "
		    "meanwhile cannot be seen",
		    idle);
	else if (facts->io_milli >= IO_MILLI)
		say(data, TAKT_SLOW_YES, 0,
		    "read from a faster disk or from memory; more loaders read ahead",
		    "the GPUs have no work for %u %% of the time, and %u.%u threads of the job "
		    "wait "
		    "for a disk or a file server",
		    idle, facts->io_milli / 1000, facts->io_milli / 100 % 10);
	else if (loaders >= LOADERS_MILLI)
		say(data, TAKT_SLOW_YES, 0,
		    "more CPUs and loaders for the job, or input that was prepared before",
		    "the GPUs have no work for %u %% of the time, while %u.%u threads beside those "
		    "that drive them compute",
		    idle, loaders / 1000, loaders / 100 % 10);
	else if (within >= LOADERS_MILLI)
		say(data, TAKT_SLOW_UNKNOWN, 0, LOOK_CLOSER,
		    "the GPUs have no work for %u %% of the time, while %u.%u more threads of the "
		    "processes that drive them compute: they load input, or talk to other GPUs",
		    idle, within / 1000, within / 100 % 10);
	else
		judge_lead(facts, run, data, launch);
	if (launch->evidence[0])
		return;
	if (data->answer == TAKT_SLOW_YES)
		say(launch, TAKT_SLOW_NO, 0, NULL, "the gaps have another reason");
	else
		say(launch, TAKT_SLOW_UNKNOWN, 0, data->next, "what was seen fits this, too");
}

/* Kernels without end that fill little of the GPU: too small, or waiting for others. */
static void judge_fill(const struct takt_slow_facts *facts, uint32_t run, bool exchanges,
		       struct takt_slow_row *data, struct takt_slow_row *launch)
{
	uint32_t fill;

	say(data, TAKT_SLOW_NO, 0, NULL, "the GPUs have work for %u %% of the time", run / 10);
	if (!mean_of(facts, filled, &fill))
		say(launch, TAKT_SLOW_NO, 0, NULL, "the GPUs have work for %u %% of the time",
		    run / 10);
	else if (fill >= FEW_SMS)
		say(launch, TAKT_SLOW_NO, 0, NULL,
		    "kernels run for %u %% of the time and fill %u %% of the GPU", run / 10,
		    fill / 10);
	else if (facts->gpu_count > 1)
		say(launch, exchanges ? TAKT_SLOW_NO : TAKT_SLOW_UNKNOWN, 0,
		    exchanges ? NULL : "nsys profile shows what the kernels are",
		    "kernels run all the time and fill %u %% of the GPU: too small, or waiting for "
		    "other GPUs",
		    fill / 10);
	else
		say(launch, TAKT_SLOW_YES, 0, "larger batches: its kernels are small for this GPU",
		    "kernels run for %u %% of the time, but fill %u %% of the GPU", run / 10,
		    fill / 10);
}

static bool links(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	*ret = gpu->nvlink;
	return has(gpu, TAKT_SLOW_NVLINK);
}

/* What the job says itself stands beside what was seen: it tells how fast, not how much of the
 * time. */
static void cite_nccl(const struct takt_slow_nccl *nccl, struct takt_slow_row *row)
{
	size_t len = strlen(row->evidence);

	if (!nccl->known)
		return;
	snprintf(row->evidence + len, sizeof(row->evidence) - len,
		 "; NCCL: %.40s of %u ranks on %u node%s at %llu.%llu GB/s bus bandwidth, "
		 "%llu.%03llu ms each (GPU %u)",
		 nccl->operation, nccl->ranks, nccl->nodes, nccl->nodes == 1 ? "" : "s",
		 (unsigned long long)(nccl->bus_bytes_s / 1000000000),
		 (unsigned long long)(nccl->bus_bytes_s / 100000000 % 10),
		 (unsigned long long)(nccl->operation_us / 1000),
		 (unsigned long long)(nccl->operation_us % 1000), nccl->gpu);
}

static void judge_communication(const struct takt_slow_facts *facts, uint32_t run,
				struct takt_slow_row *row)
{
	uint32_t link, fill = 1000;
	bool small = mean_of(facts, filled, &fill) && fill < FEW_SMS && run >= BUSY;

	if (facts->gpu_count < 2)
		say(row, TAKT_SLOW_NO, 0, NULL, "it has one GPU on this machine");
	else if (!mean_of(facts, links, &link))
		say(row, TAKT_SLOW_UNKNOWN, 0,
		    "NCCL_DEBUG=INFO names the path; nsys profile shows the time in NCCL",
		    "its GPUs do not count what goes over their links");
	else if (link >= LINK_MUCH)
		say(row, TAKT_SLOW_YES, 0,
		    "larger batches, gradients less often or in fewer bits; overlap with backward",
		    "NVLinks carry %u %% of what they can, on average", link / 10);
	else if (small && link >= LINK_SOME)
		say(row, TAKT_SLOW_YES, 0,
		    "larger batches, gradients less often or in fewer bits; overlap with backward",
		    "kernels run all the time, fill %u %% of the GPU, and NVLinks carry %u %% of "
		    "what they can",
		    fill / 10, link / 10);
	else
		say(row, link >= LINK_LITTLE ? TAKT_SLOW_PART : TAKT_SLOW_NO, 0, NULL,
		    "NVLinks carry %u %% of what they can, on average", link / 10);
}

static bool dram(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	return active(gpu, TAKT_ACTIVE_DRAM, ret);
}

static bool mem_util(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	*ret = gpu->mem_util;
	return has(gpu, TAKT_SLOW_MEM_UTIL);
}

static enum takt_slow_answer graded(uint32_t value, uint32_t much, uint32_t little)
{
	if (value >= much)
		return TAKT_SLOW_YES;
	return value >= little ? TAKT_SLOW_PART : TAKT_SLOW_NO;
}

static void judge_memory(const struct takt_slow_facts *facts, struct takt_slow_row *row)
{
	static const char NEXT[] = "fused kernels, larger batches, fewer bits; a lower SM clock "
				   "costs such a job little: takt tune";
	uint32_t value;
	enum takt_slow_answer answer;

	if (mean_of(facts, dram, &value)) {
		answer = graded(value, DRAM_MUCH, DRAM_LITTLE);
		say(row, answer, 0, answer == TAKT_SLOW_YES ? NEXT : NULL,
		    "memory moves %u %% of what it can", value / 10);
	} else if (mean_of(facts, mem_util, &value)) {
		answer = graded(value, MEM_UTIL_MUCH, MEM_UTIL_LITTLE);
		say(row, answer, 0, answer == TAKT_SLOW_YES ? NEXT : NULL,
		    "memory is in use for %u %% of the time", value / 10);
	} else {
		say(row, TAKT_SLOW_UNKNOWN, 0, "run this where the driver can be asked",
		    "nothing tells how busy the GPUs' memory is");
	}
}

static bool sms(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	return active(gpu, TAKT_ACTIVE_SM, ret);
}

/* Permille of the power limit. */
static bool load(const struct takt_slow_gpu *gpu, uint32_t *ret)
{
	bool known = has(gpu, TAKT_SLOW_POWER | TAKT_SLOW_POWER_LIMIT) && gpu->power_limit_mw;

	*ret = known ? (uint32_t)((uint64_t)gpu->power_mw * 1000 / gpu->power_limit_mw) : 0;
	return known;
}

static void judge_compute(const struct takt_slow_facts *facts, uint32_t run,
			  const struct takt_slow_row *memory, struct takt_slow_row *row)
{
	static const char NEXT[] = "fewer bits (tensor cores), a faster GPU, or more of them";
	uint32_t fill = 0, watts = 0;
	bool know_fill = mean_of(facts, sms, &fill), know_watts = mean_of(facts, load, &watts);

	if (run < BUSY)
		say(row, TAKT_SLOW_NO, 0, NULL, "the GPUs have work for %u %% of the time alone",
		    run / 10);
	else if (memory->answer == TAKT_SLOW_YES)
		say(row, TAKT_SLOW_NO, 0, NULL, "its memory is what the GPUs wait for");
	else if (know_fill && fill >= FULL_SMS)
		say(row, TAKT_SLOW_YES, 0, NEXT, "SMs compute for %u %% of the time", fill / 10);
	else if (know_fill)
		say(row, TAKT_SLOW_NO, 0, NULL, "SMs compute for %u %% of the time alone",
		    fill / 10);
	else if (know_watts && watts >= POWER_MUCH)
		say(row, TAKT_SLOW_YES, 0, NEXT,
		    "the GPUs have work for %u %% of the time and draw %u %% of their power limit",
		    run / 10, watts / 10);
	else
		say(row, TAKT_SLOW_UNKNOWN, 0,
		    "nsys profile; boards since Hopper tell how full they are",
		    "the GPUs have work for %u %% of the time, but one small kernel is enough for "
		    "that, and their power is not high",
		    run / 10);
}

/* Who does the work that is seen? A GPU that is slow or hot is so for all. */
static bool judge_shared(const struct takt_slow_facts *facts, struct takt_slow_verdict *verdict)
{
	bool shared = false;

	for (uint32_t i = 0; i < facts->gpu_count; i++)
		shared = shared || facts->gpu[i].shared;
	for (uint32_t i = TAKT_SLOW_IMBALANCE; shared && i < TAKT_SLOW_CAUSES; i++)
		say(&verdict->row[i], TAKT_SLOW_UNKNOWN, 0, "run it on a whole GPU for once",
		    "it shares its GPU: what the driver shows is not its work alone");
	return shared;
}

static void judge_work(const struct takt_slow_facts *facts, struct takt_slow_verdict *verdict)
{
	struct takt_slow_row *row = verdict->row;
	uint32_t run;

	judge_imbalance(facts, &row[TAKT_SLOW_IMBALANCE]);
	if (!mean_of(facts, busy, &run)) {
		for (uint32_t i = TAKT_SLOW_DATA; i < TAKT_SLOW_CAUSES; i++)
			say(&row[i], TAKT_SLOW_UNKNOWN, 0, "run this where the driver can be asked",
			    "nothing tells for how long its GPUs work");
		return;
	}
	judge_communication(facts, run, &row[TAKT_SLOW_COMMUNICATION]);
	cite_nccl(&facts->nccl, &row[TAKT_SLOW_COMMUNICATION]);
	if (run < BUSY)
		judge_gaps(facts, run, &row[TAKT_SLOW_DATA], &row[TAKT_SLOW_LAUNCH]);
	else
		judge_fill(facts, run, row[TAKT_SLOW_COMMUNICATION].answer == TAKT_SLOW_YES,
			   &row[TAKT_SLOW_DATA], &row[TAKT_SLOW_LAUNCH]);
	judge_memory(facts, &row[TAKT_SLOW_MEMORY]);
	judge_compute(facts, run, &row[TAKT_SLOW_MEMORY], &row[TAKT_SLOW_COMPUTE]);
}

void takt_slow_judge(const struct takt_slow_facts *facts, struct takt_slow_verdict *ret)
{
	*ret = (struct takt_slow_verdict){0};
	judge_throttling(facts, &ret->row[TAKT_SLOW_THROTTLING]);
	if (!judge_shared(facts, ret))
		judge_work(facts, ret);
	for (uint32_t i = 0; i < TAKT_SLOW_CAUSES && !ret->found; i++) {
		ret->found = ret->row[i].answer == TAKT_SLOW_YES;
		ret->bottleneck = i;
	}
}

int takt_slow_exit(const struct takt_slow_verdict *verdict)
{
	if (!verdict->found)
		return 3;
	return verdict->bottleneck < TAKT_SLOW_MEMORY;
}

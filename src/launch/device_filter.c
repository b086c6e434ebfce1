/* SPDX-License-Identifier: Apache-2.0 */
/* The program that answers "may this node be opened?", written out instruction by instruction. */
#include "launch/device_filter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	HEAD_LEN = 5, /* instructions before the rules */
	RULE_LEN = 4, /* of one rule, at most */
	TAIL_LEN = 2,
};

typedef TAKT_VEC(struct bpf_insn) program;

/* The kernel hands over the request in r1; the answer goes into r0. */
static struct bpf_insn load(uint8_t reg, size_t at)
{
	return (struct bpf_insn){.code = BPF_LDX | BPF_W | BPF_MEM,
				 .dst_reg = reg & 0xf,
				 .src_reg = BPF_REG_1,
				 .off = (int16_t)at};
}

static struct bpf_insn answer(bool allowed)
{
	return (struct bpf_insn){
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = allowed};
}

static struct bpf_insn give_answer(void)
{
	return (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
}

/* 32-bit compare: numbers of devices are unsigned words. */
static struct bpf_insn unless_equal(uint8_t reg, uint32_t value, int16_t skip)
{
	return (struct bpf_insn){.code = BPF_JMP32 | BPF_JNE | BPF_K,
				 .dst_reg = reg & 0xf,
				 .off = skip,
				 .imm = (int32_t)value};
}

/* r2 is the kind of device, r3 its major, r4 its minor. Room is there. */
static void write_head(program *out)
{
	out->at[out->len++] = load(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	out->at[out->len++] = load(BPF_REG_3, offsetof(struct bpf_cgroup_dev_ctx, major));
	out->at[out->len++] = load(BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, minor));
	out->at[out->len++] = (struct bpf_insn){
		.code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = 0xffff};
}

static void write_rule(program *out, const struct takt_device_rule *rule)
{
	bool any = rule->minor == TAKT_DEVICE_ANY_MINOR;

	out->at[out->len++] = unless_equal(BPF_REG_3, rule->major, any ? 2 : 3);
	if (!any)
		out->at[out->len++] = unless_equal(BPF_REG_4, rule->minor, 2);
	out->at[out->len++] = answer(true);
	out->at[out->len++] = give_answer();
}

/* The length of the rules is known only at their end: block devices go straight to the refusal. */
static void write_program(program *out, const takt_device_rules *rules)
{
	size_t gate;

	write_head(out);
	gate = out->len++;
	TAKT_VEC_EACH (rule, rules)
		write_rule(out, rule);
	out->at[gate] = unless_equal(BPF_REG_2, BPF_DEVCG_DEV_CHAR, (int16_t)(out->len - gate - 1));
	out->at[out->len++] = answer(false);
	out->at[out->len++] = give_answer();
}

int takt_device_filter_load(const takt_device_rules *rules, struct takt_err *err)
{
	size_t most = HEAD_LEN + RULE_LEN * rules->len + TAIL_LEN;
	program code = TAKT_VEC_INIT(HEAD_LEN + RULE_LEN * TAKT_DEVICE_RULES_MAX + TAIL_LEN);
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE};
	int rc = takt_vec_reserve(&code, most);

	if (rc < 0)
		return takt_err_set(err, rc, "a filter of %zu devices", rules->len);
	write_program(&code, rules);
	attr.insns = (uintptr_t)code.at;
	attr.insn_cnt = (uint32_t)code.len;
	attr.license = (uintptr_t) "Apache-2.0";
	rc = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (rc < 0)
		rc = takt_err_set(err, -errno, "load a device filter into the kernel");
	takt_vec_fini(&code);
	return rc;
}

int takt_device_filter_attach(int filter, int cgroup_dirfd, struct takt_err *err)
{
	union bpf_attr attr = {
		.target_fd = (uint32_t)cgroup_dirfd,
		.attach_bpf_fd = (uint32_t)filter,
		.attach_type = BPF_CGROUP_DEVICE,
		.attach_flags = BPF_F_ALLOW_MULTI,
	};

	if (syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof(attr)) < 0)
		return takt_err_set(err, -errno, "attach a device filter");
	return 0;
}

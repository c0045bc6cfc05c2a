/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An example of a congestion controller with ackclock-cc.h: a packet more per window, half of it after a loss.
 * `ackclock cc build aimd.c` makes a library of it. */
#include "ackclock-cc.h"

static void grow(struct ackclock_cc *cc, uint32_t ack, uint32_t acked)
{
	(void)ack;
	if (!ackclock_cc_is_limited(cc))
		return;
	if (cc->snd_cwnd < cc->snd_ssthresh) {
		cc->snd_cwnd += acked;
		return;
	}
	cc->snd_cwnd_cnt += acked;
	while (cc->snd_cwnd_cnt >= cc->snd_cwnd) {
		cc->snd_cwnd_cnt -= cc->snd_cwnd;
		cc->snd_cwnd++;
	}
}

static uint32_t half(struct ackclock_cc *cc)
{
	return cc->snd_cwnd < 4 ? 2 : cc->snd_cwnd / 2;
}

static const struct ackclock_cc_ops aimd = { .name = "aimd", .ssthresh = half, .cong_avoid = grow };

ACKCLOCK_CC_EXPORT(aimd);

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * An example of a congestion controller as a Linux module: Reno's growth until the round trip has grown by a quarter, and
 * seven tenths of the window after a loss. `ackclock cc build tcp_gentle.c` makes a library of it.
 */
#include <linux/module.h>
#include <net/tcp.h>

struct gentle {
	u32 min_rtt_us;
	u32 rtt_us;
};

static void gentle_init(struct sock *sk)
{
	struct gentle *ca = inet_csk_ca(sk);

	ca->min_rtt_us = U32_MAX;
	ca->rtt_us = 0;
}

static void gentle_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct gentle *ca = inet_csk_ca(sk);

	if (sample->rtt_us <= 0)
		return;
	ca->rtt_us = sample->rtt_us;
	ca->min_rtt_us = min(ca->min_rtt_us, ca->rtt_us);
}

static void gentle_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	const struct gentle *ca = inet_csk_ca(sk);

	if (ca->rtt_us > ca->min_rtt_us + ca->min_rtt_us / 4)
		return;
	tcp_reno_cong_avoid(sk, ack, acked);
}

static u32 gentle_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) * 7 / 10, 2U);
}

static struct tcp_congestion_ops gentle __read_mostly = {
	.init = gentle_init,
	.pkts_acked = gentle_pkts_acked,
	.cong_avoid = gentle_cong_avoid,
	.ssthresh = gentle_ssthresh,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "gentle",
};

static int __init gentle_register(void)
{
	return tcp_register_congestion_control(&gentle);
}

static void __exit gentle_unregister(void)
{
	tcp_unregister_congestion_control(&gentle);
}

module_init(gentle_register);
module_exit(gentle_unregister);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("An example for Ackclock");

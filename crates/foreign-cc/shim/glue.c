/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Makes a library of ackclock-cc.h out of a kernel's own congestion controller: the functions of the stack that it calls,
 * and the two functions of the interface around its operations. Written for Ackclock from the documented behaviour
 * (tcp_slow_start, tcp_cong_avoid_ai, tcp_reno_*, tcp_enter_cwr; Ackclock's own linux.rs is the same in Rust). */
#include "ackclock-linux.h"

__thread struct ackclock_cc *ackclock_now __attribute__((tls_model("initial-exec")));

#define SAME(own, kernel) _Static_assert(offsetof(struct ackclock_cc, own) == offsetof(struct tcp_sock, kernel), #own)
#define SAME_TP(field) SAME(field, field)
#define SAME_SK(field) SAME(field, inet_conn.icsk_inet.sk.field)
#define SAME_ICSK(field) SAME(field, inet_conn.field)
SAME_SK(now_ns); SAME_SK(sk_pacing_rate); SAME_SK(sk_max_pacing_rate); SAME_SK(sk_pacing_status); SAME_SK(sk_gso_max_size);
SAME_SK(sk_pacing_shift); SAME_SK(sk_state);
SAME_ICSK(icsk_ca_ops); SAME_ICSK(icsk_ca_state); SAME_ICSK(icsk_retransmits); SAME_ICSK(icsk_ca_priv);
SAME_TP(snd_cwnd); SAME_TP(snd_cwnd_cnt); SAME_TP(snd_cwnd_clamp); SAME_TP(snd_cwnd_stamp); SAME_TP(snd_ssthresh);
SAME_TP(prior_cwnd); SAME_TP(prior_ssthresh); SAME_TP(high_seq); SAME_TP(snd_una); SAME_TP(snd_nxt); SAME_TP(snd_wnd);
SAME_TP(rcv_nxt); SAME_TP(mss_cache); SAME_TP(max_packets_out); SAME_TP(is_cwnd_limited); SAME_TP(packets_out);
SAME_TP(sacked_out); SAME_TP(lost_out); SAME_TP(retrans_out); SAME_TP(app_limited); SAME_TP(delivered);
SAME_TP(delivered_ce); SAME_TP(lost); SAME_TP(srtt_us); SAME(min_rtt_us, min_rtt_us_); SAME_TP(lsndtime);
SAME_TP(ecn_flags); SAME_TP(tcp_mstamp); SAME_TP(delivered_mstamp); SAME_TP(tcp_wstamp_ns); SAME_TP(tcp_clock_cache);
SAME_TP(rx_opt.rcv_tsval); SAME_TP(rx_opt.rcv_tsecr); SAME_TP(rx_opt.saw_tstamp);
#define SAME_SAMPLE(kind, field) \
	_Static_assert(offsetof(struct ackclock_cc_##kind, field) == offsetof(struct kind, field), #field)
SAME_SAMPLE(ack_sample, rtt_us); SAME_SAMPLE(ack_sample, in_flight); SAME_SAMPLE(rate_sample, rtt_us);
SAME_SAMPLE(rate_sample, prior_delivered); SAME_SAMPLE(rate_sample, delivered); SAME_SAMPLE(rate_sample, losses);
SAME_SAMPLE(rate_sample, acked_sacked); SAME_SAMPLE(rate_sample, prior_in_flight);
SAME_SAMPLE(rate_sample, is_app_limited); SAME_SAMPLE(rate_sample, is_ack_delayed);

/* Grows by the packets delivered up to the threshold; returns the rest. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	u32 grows = acked < room ? acked : room;
	u32 most = tp->snd_cwnd + grows;

	tp->snd_cwnd = most < tp->snd_cwnd_clamp ? most : tp->snd_cwnd_clamp;
	return acked - grows;
}

/* One packet for each `w` packets delivered. Credit that was earned at a larger `w` is worth one packet. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= w) {
		u32 packets = tp->snd_cwnd_cnt / w;

		tp->snd_cwnd_cnt -= packets * w;
		tp->snd_cwnd += packets;
	}
	if (tp->snd_cwnd > tp->snd_cwnd_clamp)
		tp->snd_cwnd = tp->snd_cwnd_clamp;
}

u32 tcp_reno_ssthresh(struct sock *sk)
{
	u32 half = tcp_sk(sk)->snd_cwnd / 2;

	return half > 2 ? half : 2;
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (acked == 0)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

static const struct tcp_congestion_ops *registered;

/* The controller reduces the window by itself: as after a congestion echo, with nothing to undo. The stack then limits
 * what is sent until the flight is acknowledged. */
void tcp_enter_cwr(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct inet_connection_sock *icsk = inet_csk(sk);

	tp->prior_ssthresh = 0;
	if (icsk->icsk_ca_state >= TCP_CA_CWR)
		return;
	tp->high_seq = tp->snd_nxt;
	tp->prior_cwnd = tp->snd_cwnd;
	tp->snd_cwnd_cnt = 0;
	tp->snd_ssthresh = icsk->icsk_ca_ops->ssthresh(sk);
	if (icsk->icsk_ca_ops->set_state)
		icsk->icsk_ca_ops->set_state(sk, TCP_CA_CWR);
	icsk->icsk_ca_state = TCP_CA_CWR;
	((struct ackclock_cc *)sk)->requests |= ACKCLOCK_CC_ENTER_CWR;
}

/* Keeps the sample that is at least as good in each part of the window. */
static u32 minmax_update(struct minmax *m, u32 window, const struct minmax_sample *new, bool takes_max)
{
	struct minmax_sample *s = m->s;
	u32 age;
	int i;

	for (i = 0; i < 3; i++) {
		bool better = takes_max ? new->v >= s[i].v : new->v <= s[i].v;

		if (better && (i == 0))
			return minmax_reset(m, new->t, new->v);
		if (better) {
			for (; i < 3; i++)
				s[i] = *new;
			break;
		}
	}
	if (new->t - s[2].t > window)
		return minmax_reset(m, new->t, new->v);
	age = new->t - s[0].t;
	if (age > window) {
		/* The best has left the window, and maybe the second with it. */
		s[0] = s[1], s[1] = s[2], s[2] = *new;
		if (new->t - s[0].t > window)
			s[0] = s[1], s[1] = s[2], s[2] = *new;
	} else if (s[1].t == s[0].t && age > window / 4) {
		s[1] = s[2] = *new;
	} else if (s[2].t == s[1].t && age > window / 2) {
		s[2] = *new;
	}
	return s[0].v;
}

u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 value)
{
	struct minmax_sample new = { .t = t, .v = value };

	return minmax_update(m, window, &new, true);
}

u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 value)
{
	struct minmax_sample new = { .t = t, .v = value };

	return minmax_update(m, window, &new, false);
}

int tcp_register_congestion_control(struct tcp_congestion_ops *type)
{
	/* The first one: a file that registers several is used by that. */
	if (!registered)
		registered = type;
	return 0;
}

void tcp_unregister_congestion_control(struct tcp_congestion_ops *type)
{
	(void)type;
}

int ACKCLOCK_JOIN(ackclock_init_, ACKCLOCK_FIRST)(void);

const struct ackclock_cc_info *ackclock_cc_info_v1(void)
{
	static struct ackclock_cc_info info;
	static struct ackclock_cc start;
	const struct tcp_congestion_ops *ops;

	ackclock_now = &start;
	if (!registered && (ACKCLOCK_JOIN(ackclock_init_, ACKCLOCK_FIRST)() != 0 || !registered))
		return NULL;
	ops = registered;
	info.abi = ACKCLOCK_CC_ABI;
	info.size = (u32)sizeof(struct ackclock_cc);
	info.flags = ops->flags & TCP_CONG_NEEDS_ECN ? ACKCLOCK_CC_NEEDS_ECN : 0;
#ifdef ACKCLOCK_RATES
	info.flags |= ACKCLOCK_CC_NEEDS_RATES;
#endif
	info.hz = HZ;
	info.name = ops->name;
#define HAS(member, op) (ops->member ? 1u << ACKCLOCK_CC_##op : 0)
	/* INIT also chooses the operations of a connection. */
	info.ops = 1u << ACKCLOCK_CC_INIT | HAS(release, RELEASE) | HAS(ssthresh, SSTHRESH) | HAS(cong_avoid, CONG_AVOID) |
		   HAS(set_state, SET_STATE) | HAS(cwnd_event, CWND_EVENT) | HAS(cwnd_event_tx_start, CWND_EVENT) |
		   HAS(in_ack_event, IN_ACK_EVENT) | HAS(pkts_acked, PKTS_ACKED) | HAS(cong_control, CONG_CONTROL) |
		   HAS(undo_cwnd, UNDO_CWND) | HAS(min_tso_segs, MIN_TSO_SEGS) | HAS(sndbuf_expand, SNDBUF_EXPAND);
	return &info;
}

uint32_t ackclock_cc_call_v1(struct ackclock_cc *cc, uint32_t op)
{
	struct sock *sk = (struct sock *)cc;
	struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_congestion_ops *ops;
	u32 result = 0;

	ackclock_now = cc;
	if (op == ACKCLOCK_CC_INIT)
		icsk->icsk_ca_ops = registered;
	/* A file may give a connection other operations than those it registers. */
	ops = icsk->icsk_ca_ops;
	switch (op) {
	case ACKCLOCK_CC_INIT:
		if (ops->init)
			ops->init(sk);
		break;
	case ACKCLOCK_CC_RELEASE:
		if (ops->release)
			ops->release(sk);
		return 0;
	case ACKCLOCK_CC_SSTHRESH:
		result = ops->ssthresh(sk);
		break;
	case ACKCLOCK_CC_CONG_AVOID:
		if (ops->cong_avoid)
			ops->cong_avoid(sk, cc->arg[0], cc->arg[1]);
		break;
	case ACKCLOCK_CC_SET_STATE:
		if (ops->set_state)
			ops->set_state(sk, (u8)cc->arg[0]);
		break;
	case ACKCLOCK_CC_CWND_EVENT:
		if (ops->cwnd_event)
			ops->cwnd_event(sk, (enum tcp_ca_event)cc->arg[0]);
		if (ops->cwnd_event_tx_start && cc->arg[0] == CA_EVENT_TX_START)
			ops->cwnd_event_tx_start(sk);
		break;
	case ACKCLOCK_CC_IN_ACK_EVENT:
		if (ops->in_ack_event)
			ops->in_ack_event(sk, cc->arg[0]);
		break;
	case ACKCLOCK_CC_PKTS_ACKED:
		if (ops->pkts_acked)
			ops->pkts_acked(sk, (const struct ack_sample *)&cc->ack_sample);
		break;
	case ACKCLOCK_CC_CONG_CONTROL:
		if (ops->cong_control)
#ifdef ACKCLOCK_CONG_CONTROL_2
			ops->cong_control(sk, (const struct rate_sample *)&cc->rate_sample);
#else
			ops->cong_control(sk, cc->arg[0], (int)cc->arg[1], (const struct rate_sample *)&cc->rate_sample);
#endif
		break;
	case ACKCLOCK_CC_UNDO_CWND:
		result = ops->undo_cwnd ? ops->undo_cwnd(sk) : tcp_reno_undo_cwnd(sk);
		break;
	default:
		break;
	}
	ops = icsk->icsk_ca_ops;
	cc->min_tso_segs = ops->min_tso_segs ? ops->min_tso_segs(sk) : 0;
	cc->sndbuf_expand = ops->sndbuf_expand ? ops->sndbuf_expand(sk) : 0;
	return result;
}

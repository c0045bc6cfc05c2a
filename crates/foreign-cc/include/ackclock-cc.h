/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * ackclock-cc.h: a congestion controller as a shared library, for Ackclock's Linux sender. Version 1 of the interface.
 *
 * A library exports two functions:
 *
 *     const struct ackclock_cc_info *ackclock_cc_info_v1(void);
 *     uint32_t ackclock_cc_call_v1(struct ackclock_cc *cc, uint32_t op);
 *
 * The first describes it. The second carries out one operation on one connection, and returns the result of the
 * operations that have one. The operations, their order and their arguments are those of Linux's struct
 * tcp_congestion_ops, the fields of struct ackclock_cc have the names and units that they have in the kernel: windows and
 * counters are in packets, jiffies in ticks of `hz` a second, rates in bytes a second, srtt_us in eighths of a
 * microsecond. All state of a connection belongs into `icsk_ca_priv`: static variables are shared by all connections.
 * Two threads may call at once, for different connections.
 *
 * In C, ACKCLOCK_CC_EXPORT(ops) writes both functions from a table of operations; other languages (C++, Zig, Go, Rust)
 * write them out. `ackclock cc build` makes a library from a kernel's own file or from a file that includes this header.
 *
 * Plain C11; also valid C++. Fields are only ever added at the end of struct ackclock_cc; a change of layout changes the
 * version and the names of the two functions.
 */
#ifndef ACKCLOCK_CC_H
#define ACKCLOCK_CC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACKCLOCK_CC_ABI 1u
/* Bytes of a connection's private state (icsk_ca_priv). */
#define ACKCLOCK_CC_PRIVATE 256u
/* Bytes that a connection may allocate beside it. */
#define ACKCLOCK_CC_ARENA 512u
/* Random numbers that an operation may draw. */
#define ACKCLOCK_CC_DRAWS 8u

/* Operations. Those with a result are SSTHRESH, UNDO_CWND, MIN_TSO_SEGS and SNDBUF_EXPAND. */
enum ackclock_cc_op {
	ACKCLOCK_CC_INIT = 0,          /* the connection is established */
	ACKCLOCK_CC_RELEASE = 1,       /* it ends */
	ACKCLOCK_CC_SSTHRESH = 2,      /* returns the threshold after a congestion signal */
	ACKCLOCK_CC_CONG_AVOID = 3,    /* arg[0]: acknowledged up to, arg[1]: packets delivered */
	ACKCLOCK_CC_SET_STATE = 4,     /* arg[0]: the new state; icsk_ca_state is still the old one */
	ACKCLOCK_CC_CWND_EVENT = 5,    /* arg[0]: enum ackclock_cc_event */
	ACKCLOCK_CC_IN_ACK_EVENT = 6,  /* arg[0]: flags, ACKCLOCK_CC_ACK_... */
	ACKCLOCK_CC_PKTS_ACKED = 7,    /* ack_sample */
	ACKCLOCK_CC_CONG_CONTROL = 8,  /* arg[0]: acknowledged up to, arg[1]: flags; rate_sample */
	ACKCLOCK_CC_UNDO_CWND = 9,     /* returns the window after a spurious reduction */
	ACKCLOCK_CC_MIN_TSO_SEGS = 10, /* returns the least packets of a burst */
	ACKCLOCK_CC_SNDBUF_EXPAND = 11 /* returns the send buffer in windows */
};

/* icsk_ca_state */
enum ackclock_cc_state {
	ACKCLOCK_CC_OPEN = 0,
	ACKCLOCK_CC_DISORDER = 1,
	ACKCLOCK_CC_CWR = 2,
	ACKCLOCK_CC_RECOVERY = 3,
	ACKCLOCK_CC_LOSS = 4
};

enum ackclock_cc_event {
	ACKCLOCK_CC_TX_START = 0,     /* data is sent with nothing in flight */
	ACKCLOCK_CC_CWND_RESTART = 1, /* the window restarts after idle */
	ACKCLOCK_CC_COMPLETE_CWR = 2, /* a reduction is complete */
	ACKCLOCK_CC_LOSS_EVENT = 3,   /* a timeout has reduced the threshold */
	ACKCLOCK_CC_ECN_NO_CE = 4,    /* never reported: events of the receiver */
	ACKCLOCK_CC_ECN_IS_CE = 5
};

#define ACKCLOCK_CC_ACK_SLOWPATH 1u
#define ACKCLOCK_CC_ACK_WIN_UPDATE 2u
#define ACKCLOCK_CC_ACK_ECE 4u

/* sk_pacing_status */
#define ACKCLOCK_CC_PACING_NONE 0u
#define ACKCLOCK_CC_PACING_NEEDED 1u

/* ecn_flags: ECN was negotiated. */
#define ACKCLOCK_CC_ECN_OK 1u

/* Flags of a library. */
#define ACKCLOCK_CC_NEEDS_ECN 2u   /* it needs ECN (TCP_CONG_NEEDS_ECN) */
#define ACKCLOCK_CC_NEEDS_RATES 4u /* it uses ack_sample.in_flight */

/* `requests`: set by an operation, done after it. */
#define ACKCLOCK_CC_ENTER_CWR 1u /* the window was reduced without a loss (tcp_enter_cwr) */

/* What the last acknowledgment acknowledged (struct ack_sample). */
struct ackclock_cc_ack_sample {
	uint32_t pkts_acked; /* packets that left the retransmission queue */
	int32_t rtt_us;      /* -1 without a sample */
	uint32_t in_flight;  /* bytes in flight when the newest packet was sent; needs ACKCLOCK_CC_NEEDS_RATES */
	uint32_t reserved;
};

/* The delivery rate of an acknowledgment (struct rate_sample). */
struct ackclock_cc_rate_sample {
	int64_t interval_us; /* -1 without a rate */
	int64_t rtt_us;      /* -1 without a sample */
	uint32_t prior_delivered;
	int32_t delivered; /* packets delivered in the interval; -1 without a rate */
	int32_t losses;    /* packets newly marked lost */
	uint32_t acked_sacked;
	uint32_t prior_in_flight;
	uint8_t is_app_limited;
	uint8_t is_ack_delayed;
	uint8_t reserved[2];
};

/* One connection. */
struct ackclock_cc {
	/* The run: virtual time since its start, ticks of it, and random numbers, of which an operation takes the first
	 * ones and adds what it took to random_used. */
	uint32_t abi;
	uint32_t size;
	uint64_t now_ns;
	uint64_t jiffies;
	uint64_t random[ACKCLOCK_CC_DRAWS];
	uint32_t random_used;
	uint32_t hz;

	/* struct sock */
	uint64_t sk_pacing_rate; /* bytes per second; all ones while unknown */
	uint64_t sk_max_pacing_rate;
	uint32_t sk_pacing_status;
	uint32_t sk_gso_max_size;
	uint32_t sk_pacing_shift;
	uint32_t sk_state;

	/* struct inet_connection_sock */
	uint64_t icsk_ca_ops; /* free for the library */
	uint32_t icsk_ca_state;
	uint32_t icsk_retransmits;
	uint32_t reserved_icsk[2];
	uint64_t icsk_ca_priv[ACKCLOCK_CC_PRIVATE / 8];

	/* struct tcp_sock */
	uint32_t snd_cwnd;
	uint32_t snd_cwnd_cnt;
	uint32_t snd_cwnd_clamp;
	uint32_t snd_cwnd_stamp;
	uint32_t snd_ssthresh; /* 0x7fffffff while unset */
	uint32_t prior_cwnd;
	uint32_t prior_ssthresh;
	uint32_t high_seq;
	uint32_t snd_una;
	uint32_t snd_nxt;
	uint32_t snd_wnd;
	uint32_t rcv_nxt;
	uint32_t mss_cache;
	uint32_t max_packets_out;
	uint32_t is_cwnd_limited;
	uint32_t packets_out;
	uint32_t sacked_out;
	uint32_t lost_out;
	uint32_t retrans_out;
	uint32_t app_limited; /* known in CWND_EVENT; setting it in CONG_CONTROL marks what is sent now as app-limited */
	uint32_t delivered;
	uint32_t delivered_ce;
	uint32_t lost;
	uint32_t srtt_us; /* eight times the smoothed RTT */
	uint32_t min_rtt_us;
	uint32_t lsndtime;
	uint32_t ecn_flags;
	uint32_t reserved_tp;
	uint64_t tcp_mstamp; /* microseconds */
	uint64_t delivered_mstamp;
	uint64_t tcp_wstamp_ns;
	uint64_t tcp_clock_cache;
	struct {
		uint32_t rcv_tsval;
		uint32_t rcv_tsecr;
		uint32_t saw_tstamp;
		uint32_t reserved;
	} rx_opt;

	/* Arguments of the operation. */
	uint32_t arg[2];
	struct ackclock_cc_ack_sample ack_sample;
	struct ackclock_cc_rate_sample rate_sample;

	/* Set by the library: requests, and after each operation what MIN_TSO_SEGS and SNDBUF_EXPAND return; 0 without. */
	uint32_t requests;
	uint32_t min_tso_segs;
	uint32_t sndbuf_expand;
	uint32_t arena_used;
	uint64_t arena[ACKCLOCK_CC_ARENA / 8];
	uint64_t guard; /* a stray write past the arena changes it */
};

/* What a library is. */
struct ackclock_cc_info {
	uint32_t abi;     /* ACKCLOCK_CC_ABI */
	uint32_t size;    /* sizeof(struct ackclock_cc) */
	uint32_t ops;     /* a bit per operation that it has: 1 << ACKCLOCK_CC_INIT ... */
	uint32_t flags;   /* ACKCLOCK_CC_NEEDS_... */
	uint32_t hz;      /* ticks a second that it was compiled for; 0: any */
	uint32_t reserved;
	const char *name;
};

/* A table of operations for ACKCLOCK_CC_EXPORT. ssthresh is needed, and cong_avoid or cong_control. */
struct ackclock_cc_ops {
	const char *name;
	uint32_t flags;
	void (*init)(struct ackclock_cc *cc);
	void (*release)(struct ackclock_cc *cc);
	uint32_t (*ssthresh)(struct ackclock_cc *cc);
	void (*cong_avoid)(struct ackclock_cc *cc, uint32_t ack, uint32_t acked);
	void (*set_state)(struct ackclock_cc *cc, uint32_t new_state);
	void (*cwnd_event)(struct ackclock_cc *cc, uint32_t event);
	void (*in_ack_event)(struct ackclock_cc *cc, uint32_t flags);
	void (*pkts_acked)(struct ackclock_cc *cc, const struct ackclock_cc_ack_sample *sample);
	void (*cong_control)(struct ackclock_cc *cc, const struct ackclock_cc_rate_sample *sample);
	uint32_t (*undo_cwnd)(struct ackclock_cc *cc);
	uint32_t (*min_tso_segs)(struct ackclock_cc *cc);
	uint32_t (*sndbuf_expand)(struct ackclock_cc *cc);
};

/* Does the window limit the flight, so that it may grow (tcp_is_cwnd_limited)? */
static inline int ackclock_cc_is_limited(const struct ackclock_cc *cc)
{
	if (cc->is_cwnd_limited)
		return 1;
	return cc->snd_cwnd < cc->snd_ssthresh && cc->snd_cwnd < 2 * (uint64_t)cc->max_packets_out;
}

/* A random number of this connection; the same in equal runs. */
static inline uint64_t ackclock_cc_random(struct ackclock_cc *cc)
{
	uint64_t drawn;

	if (cc->random_used < ACKCLOCK_CC_DRAWS)
		return cc->random[cc->random_used++];
	/* More than an operation may draw: xorshift goes on from the last one (Marsaglia 2003). */
	drawn = cc->random[ACKCLOCK_CC_DRAWS - 1] | 1;
	drawn ^= drawn << 13;
	drawn ^= drawn >> 7;
	drawn ^= drawn << 17;
	cc->random[ACKCLOCK_CC_DRAWS - 1] = drawn;
	return drawn;
}

#if defined(_WIN32)
#define ACKCLOCK_CC_PUBLIC __declspec(dllexport)
#else
#define ACKCLOCK_CC_PUBLIC __attribute__((visibility("default")))
#endif

ACKCLOCK_CC_PUBLIC const struct ackclock_cc_info *ackclock_cc_info_v1(void);
ACKCLOCK_CC_PUBLIC uint32_t ackclock_cc_call_v1(struct ackclock_cc *cc, uint32_t op);

#define ACKCLOCK_CC_HAS(table, member, op) ((table)->member ? 1u << (op) : 0u)

/* Writes the two functions of a library for `table`, a static struct ackclock_cc_ops. */
#define ACKCLOCK_CC_EXPORT(table)                                                                                          \
	const struct ackclock_cc_info *ackclock_cc_info_v1(void)                                                               \
	{                                                                                                                      \
		static struct ackclock_cc_info info;                                                                               \
		const struct ackclock_cc_ops *ops = &(table);                                                                      \
                                                                                                                           \
		info.abi = ACKCLOCK_CC_ABI;                                                                                        \
		info.size = (uint32_t)sizeof(struct ackclock_cc);                                                                  \
		info.flags = ops->flags;                                                                                           \
		info.name = ops->name;                                                                                             \
		info.ops = ACKCLOCK_CC_HAS(ops, init, ACKCLOCK_CC_INIT) |                                                          \
			   ACKCLOCK_CC_HAS(ops, release, ACKCLOCK_CC_RELEASE) |                                                        \
			   ACKCLOCK_CC_HAS(ops, ssthresh, ACKCLOCK_CC_SSTHRESH) |                                                      \
			   ACKCLOCK_CC_HAS(ops, cong_avoid, ACKCLOCK_CC_CONG_AVOID) |                                                  \
			   ACKCLOCK_CC_HAS(ops, set_state, ACKCLOCK_CC_SET_STATE) |                                                    \
			   ACKCLOCK_CC_HAS(ops, cwnd_event, ACKCLOCK_CC_CWND_EVENT) |                                                  \
			   ACKCLOCK_CC_HAS(ops, in_ack_event, ACKCLOCK_CC_IN_ACK_EVENT) |                                              \
			   ACKCLOCK_CC_HAS(ops, pkts_acked, ACKCLOCK_CC_PKTS_ACKED) |                                                  \
			   ACKCLOCK_CC_HAS(ops, cong_control, ACKCLOCK_CC_CONG_CONTROL) |                                              \
			   ACKCLOCK_CC_HAS(ops, undo_cwnd, ACKCLOCK_CC_UNDO_CWND) |                                                    \
			   ACKCLOCK_CC_HAS(ops, min_tso_segs, ACKCLOCK_CC_MIN_TSO_SEGS) |                                              \
			   ACKCLOCK_CC_HAS(ops, sndbuf_expand, ACKCLOCK_CC_SNDBUF_EXPAND);                                             \
		return &info;                                                                                                      \
	}                                                                                                                      \
                                                                                                                           \
	uint32_t ackclock_cc_call_v1(struct ackclock_cc *cc, uint32_t op)                                                      \
	{                                                                                                                      \
		const struct ackclock_cc_ops *ops = &(table);                                                                      \
		uint32_t result = 0;                                                                                               \
                                                                                                                           \
		switch (op) {                                                                                                      \
		case ACKCLOCK_CC_INIT: ops->init(cc); break;                                                                       \
		case ACKCLOCK_CC_RELEASE: ops->release(cc); break;                                                                 \
		case ACKCLOCK_CC_SSTHRESH: result = ops->ssthresh(cc); break;                                                      \
		case ACKCLOCK_CC_CONG_AVOID: ops->cong_avoid(cc, cc->arg[0], cc->arg[1]); break;                                   \
		case ACKCLOCK_CC_SET_STATE: ops->set_state(cc, cc->arg[0]); break;                                                 \
		case ACKCLOCK_CC_CWND_EVENT: ops->cwnd_event(cc, cc->arg[0]); break;                                               \
		case ACKCLOCK_CC_IN_ACK_EVENT: ops->in_ack_event(cc, cc->arg[0]); break;                                           \
		case ACKCLOCK_CC_PKTS_ACKED: ops->pkts_acked(cc, &cc->ack_sample); break;                                          \
		case ACKCLOCK_CC_CONG_CONTROL: ops->cong_control(cc, &cc->rate_sample); break;                                     \
		case ACKCLOCK_CC_UNDO_CWND: result = ops->undo_cwnd(cc); break;                                                    \
		default: break;                                                                                                    \
		}                                                                                                                  \
		if (op != ACKCLOCK_CC_RELEASE) {                                                                                   \
			cc->min_tso_segs = ops->min_tso_segs ? ops->min_tso_segs(cc) : 0;                                              \
			cc->sndbuf_expand = ops->sndbuf_expand ? ops->sndbuf_expand(cc) : 0;                                           \
		}                                                                                                                  \
		return result;                                                                                                     \
	}                                                                                                                      \
	struct ackclock_cc_ops

#ifdef __cplusplus
}
#endif

#endif /* ACKCLOCK_CC_H */

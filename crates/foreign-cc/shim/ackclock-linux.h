/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a congestion controller of Linux finds in the kernel's headers, for files that are compiled outside of it.
 *
 * Written for Ackclock from the interface that controllers use: names, units and documented behaviour. The layouts are
 * ours: struct tcp_sock is struct ackclock_cc of ackclock-cc.h under the kernel's names (glue.c checks every offset). A
 * field that is missing here is one that Ackclock's sender does not have.
 */
#ifndef ACKCLOCK_LINUX_H
#define ACKCLOCK_LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ackclock-cc.h"

/* Types */
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned int gfp_t;
typedef u64 ktime_t;
typedef u32 __be32;
typedef u16 __be16;

#define U32_C(n) n##U
#define U64_C(n) n##ULL
#define U8_MAX ((u8)~0U)
#define U16_MAX ((u16)~0U)
#define U32_MAX ((u32)~0U)
#define S32_MAX ((s32)(U32_MAX >> 1))
#define U64_MAX ((u64)~0ULL)
#define S64_MAX ((s64)(U64_MAX >> 1))
#ifndef INT_MAX
#define INT_MAX ((int)(~0U >> 1))
#endif
#ifndef UINT_MAX
#define UINT_MAX (~0U)
#endif

enum { EPERM = 1, ENOENT = 2, ENOMEM = 12, EBUSY = 16, EEXIST = 17, EINVAL = 22, ERANGE = 34, EOPNOTSUPP = 95 };

/* Compiler and module boilerplate */
#define __init
#define __exit
#define __read_mostly
#define __always_unused __attribute__((unused))
#define __maybe_unused __attribute__((unused))
#define __used __attribute__((used))
#define __pure __attribute__((pure))
#define __packed __attribute__((packed))
#define ____cacheline_aligned
#define ____cacheline_aligned_in_smp
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#undef noinline
#define noinline __attribute__((noinline))
#define __bpf_kfunc __attribute__((used))
#define __bpf_kfunc_start_defs()
#define __bpf_kfunc_end_defs()
#define fallthrough __attribute__((fallthrough))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ __volatile__("" ::: "memory")
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), "BUILD_BUG_ON: " #condition)
#define BUILD_BUG_ON_MSG(condition, text) _Static_assert(!(condition), text)
#define static_assert _Static_assert
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define BUG_ON(condition) do { if (condition) __builtin_trap(); } while (0)
#define BUG() __builtin_trap()
#define WARN_ON(condition) ({ bool warns_ = !!(condition); unlikely(warns_); })
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define WARN(condition, ...) WARN_ON(condition)
#define WARN_ONCE(condition, ...) WARN_ON(condition)
#define pr_debug(...) do { } while (0)
#define pr_info(...) do { } while (0)
#define pr_warn(...) do { } while (0)
#define pr_err(...) do { } while (0)
#define printk(...) do { } while (0)
#define pr_info_once(...) do { } while (0)
#define pr_warn_once(...) do { } while (0)

struct module { int unused; };
struct list_head { struct list_head *next, *prev; };
#define THIS_MODULE ((struct module *)0)
#define EXPORT_SYMBOL(symbol) _Static_assert(1, "")
#define EXPORT_SYMBOL_GPL(symbol) _Static_assert(1, "")
#define MODULE_AUTHOR(text) _Static_assert(1, "")
#define MODULE_LICENSE(text) _Static_assert(1, "")
#define MODULE_DESCRIPTION(text) _Static_assert(1, "")
#define MODULE_VERSION(text) _Static_assert(1, "")
#define MODULE_ALIAS(text) _Static_assert(1, "")
#define MODULE_PARM_DESC(name, text) _Static_assert(1, "")
/* Parameters keep the values of the file. */
#define module_param(name, type, permissions) _Static_assert(sizeof(name) > 0, "")
#define module_param_named(name, value, type, permissions) _Static_assert(sizeof(value) > 0, "")
#define module_param_cb(name, operations, argument, permissions) \
	static const void *ackclock_param_##name __attribute__((unused)) = (operations)

struct kernel_param { void *arg; };
struct kernel_param_ops {
	unsigned int flags;
	int (*set)(const char *value, const struct kernel_param *parameter);
	int (*get)(char *buffer, const struct kernel_param *parameter);
	void (*free)(void *argument);
};
static inline int param_set_uint_minmax(const char *value, const struct kernel_param *parameter, unsigned int least,
					unsigned int most)
{
	(void)value, (void)parameter, (void)least, (void)most;
	return 0;
}
static inline int param_get_uint(char *buffer, const struct kernel_param *parameter)
{
	(void)buffer, (void)parameter;
	return 0;
}

/* Each file of a library has an initialization of its own name; glue.c calls that of the first. */
#define ACKCLOCK_JOIN_(a, b) a##b
#define ACKCLOCK_JOIN(a, b) ACKCLOCK_JOIN_(a, b)
#ifdef ACKCLOCK_MODULE
#define module_init(function) \
	int ACKCLOCK_JOIN(ackclock_init_, ACKCLOCK_MODULE)(void); \
	int ACKCLOCK_JOIN(ackclock_init_, ACKCLOCK_MODULE)(void) { return function(); } \
	_Static_assert(1, "")
#define module_exit(function) \
	void ACKCLOCK_JOIN(ackclock_exit_, ACKCLOCK_MODULE)(void); \
	void ACKCLOCK_JOIN(ackclock_exit_, ACKCLOCK_MODULE)(void) { function(); } \
	_Static_assert(1, "")
#define late_initcall(function) module_init(function)
#endif

/* BPF type information has no use here. */
struct btf_id_set8 { u32 count; };
struct btf_kfunc_id_set { struct module *owner; struct btf_id_set8 *set; };
enum bpf_prog_type { BPF_PROG_TYPE_STRUCT_OPS };
#define BTF_KFUNCS_START(name) static struct btf_id_set8 name;
#define BTF_KFUNCS_END(name)
#define BTF_SET8_START(name) static struct btf_id_set8 name;
#define BTF_SET8_END(name)
#define BTF_ID_FLAGS(...)
static inline int register_btf_kfunc_id_set(enum bpf_prog_type type, const struct btf_kfunc_id_set *set)
{
	(void)type, (void)set;
	return 0;
}

/* Minimum, maximum, arithmetic */
#define ackclock_cmp_(x, op, y) ({ __typeof__(x) x_ = (x); __typeof__(y) y_ = (y); x_ op y_ ? x_ : y_; })
#define min(x, y) ackclock_cmp_(x, <, y)
#define max(x, y) ackclock_cmp_(x, >, y)
#define min3(x, y, z) min(min(x, y), z)
#define max3(x, y, z) max(max(x, y), z)
#define min_t(type, x, y) min((type)(x), (type)(y))
#define max_t(type, x, y) max((type)(x), (type)(y))
#define clamp(value, low, high) min((__typeof__(value))max(value, low), high)
#define clamp_t(type, value, low, high) min_t(type, max_t(type, value, low), high)
#define clamp_val(value, low, high) clamp_t(__typeof__(value), value, low, high)
#define min_not_zero(x, y) \
	({ __typeof__(x) a_ = (x); __typeof__(y) b_ = (y); a_ == 0 ? b_ : (b_ == 0 ? a_ : min(a_, b_)); })
/* Of unsigned types too: the sign is that of the signed type of that size. */
#define abs(x) \
	__builtin_choose_expr(sizeof(x) == sizeof(s64), ({ s64 n_ = (s64)(x); n_ < 0 ? -n_ : n_; }), \
			      ({ s32 n_ = (s32)(x); n_ < 0 ? -n_ : n_; }))
#define swap(a, b) do { __typeof__(a) t_ = (a); (a) = (b); (b) = t_; } while (0)
/* Rounded to the nearest, half away from zero. */
#define DIV_ROUND_CLOSEST(n, d) \
	({ __typeof__(n) n_ = (n); __typeof__(d) d_ = (d); n_ > 0 || (__typeof__(n))-1 > 0 ? (n_ + d_ / 2) / d_ : (n_ - d_ / 2) / d_; })
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define BIT(n) (1UL << (n))
#define BITS_PER_LONG (8 * (int)sizeof(long))
#define do_div(n, base) ({ u32 base_ = (base); u32 rest_ = (u32)((u64)(n) % base_); (n) = (u64)(n) / base_; rest_; })

static inline u64 div_u64(u64 dividend, u32 divisor) { return dividend / divisor; }
static inline u64 div64_u64(u64 dividend, u64 divisor) { return dividend / divisor; }
static inline s64 div64_s64(s64 dividend, s64 divisor) { return dividend / divisor; }
static inline s64 div_s64(s64 dividend, s32 divisor) { return dividend / divisor; }
#define div64_long(x, y) div64_s64((x), (y))
#define div64_ul(x, y) div64_u64((x), (y))
static inline u64 mul_u64_u32_shr(u64 a, u32 factor, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * factor) >> shift);
}
static inline u64 mul_u64_u64_shr(u64 a, u64 factor, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * factor) >> shift);
}
static inline u64 mul_u64_u64_div_u64(u64 a, u64 factor, u64 divisor)
{
	return (u64)((unsigned __int128)a * factor / divisor);
}

/* The number of the highest bit that is set, from 1; 0 for 0. */
static inline int fls(unsigned int x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
#define ilog2(n) (fls64(n) - 1)
static inline bool is_power_of_2(unsigned long n) { return n != 0 && (n & (n - 1)) == 0; }

/* The square root, rounded down: Newton's iteration from above. */
static inline unsigned long int_sqrt(unsigned long x)
{
	unsigned long root, next;

	if (x < 2)
		return x;
	next = 1UL << ((fls64(x) + 1) / 2);
	do {
		root = next;
		next = (root + x / root) / 2;
	} while (next < root);
	return root;
}
static inline u32 int_sqrt64(u64 x) { return (u32)int_sqrt(x); }

/* Time. `ackclock_now` is the connection whose operation runs in this thread. */
struct sock;
extern __thread struct ackclock_cc *ackclock_now __attribute__((tls_model("initial-exec")));

#ifndef HZ
#define HZ 250
#endif
#define USEC_PER_MSEC 1000L
#define MSEC_PER_SEC 1000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define USEC_PER_JIFFY (USEC_PER_SEC / HZ)
#define TICK_NSEC (NSEC_PER_SEC / HZ)
#define jiffies ((unsigned long)ackclock_now->jiffies)
#define tcp_jiffies32 ((u32)jiffies)
#define jiffies_64 ackclock_now->jiffies
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(a, b) time_after32(b, a)
/* Whole jiffies, rounded up. */
static inline unsigned long msecs_to_jiffies(unsigned int m) { return ((u64)m * HZ + MSEC_PER_SEC - 1) / MSEC_PER_SEC; }
static inline unsigned long usecs_to_jiffies(unsigned int u) { return ((u64)u * HZ + USEC_PER_SEC - 1) / USEC_PER_SEC; }
static inline unsigned int jiffies_to_usecs(unsigned long j) { return (unsigned int)(j * USEC_PER_JIFFY); }
static inline unsigned int jiffies_to_msecs(unsigned long j) { return (unsigned int)(j * MSEC_PER_SEC / HZ); }
#define local_clock() (ackclock_now->now_ns)
#define sched_clock() (ackclock_now->now_ns)
#define ktime_get_ns() (ackclock_now->now_ns)
#define ktime_get() (ackclock_now->now_ns)
#define ktime_to_us(t) ((s64)((t) / NSEC_PER_USEC))
#define ktime_to_ns(t) ((s64)(t))
#define tcp_clock_ns() (ackclock_now->now_ns)
#define tcp_clock_us() (ackclock_now->now_ns / NSEC_PER_USEC)

/* Random numbers of the run */
static inline u32 get_random_u32(void) { return (u32)(ackclock_cc_random(ackclock_now) >> 32); }
static inline u64 get_random_u64(void) { return ackclock_cc_random(ackclock_now); }
static inline u32 get_random_u32_below(u32 ceiling)
{
	return (u32)(((unsigned __int128)ackclock_cc_random(ackclock_now) * ceiling) >> 64);
}
static inline void get_random_bytes(void *buffer, size_t length)
{
	u8 *bytes = (u8 *)buffer;
	u64 drawn = 0;
	size_t i;

	for (i = 0; i < length; i++) {
		if (i % 8 == 0)
			drawn = ackclock_cc_random(ackclock_now);
		bytes[i] = (u8)(drawn >> (56 - 8 * (i % 8)));
	}
}
#define prandom_u32() get_random_u32()
#define prandom_u32_max(ceiling) get_random_u32_below(ceiling)

/* Memory: a connection's own, which ends with it. */
#define GFP_KERNEL 0u
#define GFP_ATOMIC 0u
#define GFP_NOWAIT 0u
#define __GFP_NOWARN 0u
#define __GFP_ZERO 0u
static inline void *kzalloc(size_t bytes, gfp_t flags)
{
	u32 words = (u32)((bytes + 7) / 8);
	void *at;

	(void)flags;
	if (bytes > ACKCLOCK_CC_ARENA || words > ACKCLOCK_CC_ARENA / 8 - ackclock_now->arena_used)
		return NULL;
	at = &ackclock_now->arena[ackclock_now->arena_used];
	ackclock_now->arena_used += words;
	return memset(at, 0, bytes);
}
#define kmalloc(bytes, flags) kzalloc(bytes, flags)
static inline void *kcalloc(size_t count, size_t size, gfp_t flags)
{
	if (size && count > ACKCLOCK_CC_ARENA / size)
		return NULL;
	return kzalloc(count * size, flags);
}
static inline void kfree(const void *at) { (void)at; }
#define cmpxchg(pointer, old, new) \
	({ __typeof__(*(pointer)) was_ = *(pointer); if (was_ == (old)) *(pointer) = (new); was_; })
#define xchg(pointer, new) ({ __typeof__(*(pointer)) was_ = *(pointer); *(pointer) = (new); was_; })

/* Sockets: struct ackclock_cc under the kernel's names. */
#define TCP_CA_NAME_MAX 16
#define ICSK_CA_PRIV_SIZE ACKCLOCK_CC_PRIVATE
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_CONG_NON_RESTRICTED BIT(0)
#define TCP_CONG_NEEDS_ECN BIT(1)
#define TCP_CONG_WANTS_CE_EVENTS BIT(2)
#define TCP_ECN_OK BIT(0)
#define TCP_ECN_QUEUE_CWR BIT(1)
#define TCP_ECN_DEMAND_CWR BIT(2)
#define TCP_ECN_SEEN BIT(3)
#define TCP_ECN_LOW BIT(4)
#define TCP_TS_HZ 1000
#define GSO_LEGACY_MAX_SIZE 65536u
#define GSO_MAX_SIZE GSO_LEGACY_MAX_SIZE
/* L1_CACHE_ALIGN(128 + MAX_HEADER) without wireless or tunnels; it depends on the kernel's configuration. */
#define MAX_TCP_HEADER 320
#define SK_PACING_NONE ACKCLOCK_CC_PACING_NONE
#define SK_PACING_NEEDED ACKCLOCK_CC_PACING_NEEDED
#define SK_PACING_FQ 2
#define SMP_CACHE_BYTES 64
enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT, TCP_SYN_RECV, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_TIME_WAIT, TCP_CLOSE,
       TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_LISTEN, TCP_CLOSING };
enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { TCPF_CA_Open = 1, TCPF_CA_Disorder = 2, TCPF_CA_CWR = 4, TCPF_CA_Recovery = 8, TCPF_CA_Loss = 16 };
enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS,
		    CA_EVENT_ECN_NO_CE, CA_EVENT_ECN_IS_CE };
enum tcp_ca_ack_event_flags { CA_ACK_SLOWPATH = 1, CA_ACK_WIN_UPDATE = 2, CA_ACK_ECE = 4 };

struct net { int unused; };
struct tcp_congestion_ops;
struct sock {
	u32 abi, size;
	u64 now_ns, jiffies_;
	u64 random_[ACKCLOCK_CC_DRAWS];
	u32 random_used_, hz_;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u32 sk_gso_max_size;
	u32 sk_pacing_shift;
	u32 sk_state;
};
struct inet_sock { struct sock sk; };
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u32 icsk_ca_state;
	u32 icsk_retransmits;
	struct { u32 pending, reserved_; } icsk_ack;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / 8];
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_cwnd_stamp, snd_ssthresh, prior_cwnd, prior_ssthresh, high_seq;
	u32 snd_una, snd_nxt, snd_wnd, rcv_nxt, mss_cache, max_packets_out, is_cwnd_limited;
	u32 packets_out, sacked_out, lost_out, retrans_out, app_limited, delivered, delivered_ce, lost;
	u32 srtt_us, min_rtt_us_, lsndtime, ecn_flags, reserved_tp_;
	u64 tcp_mstamp, delivered_mstamp, tcp_wstamp_ns, tcp_clock_cache;
	struct { u32 rcv_tsval, rcv_tsecr, saw_tstamp, reserved_; } rx_opt;
};
struct ack_sample { u32 pkts_acked; s32 rtt_us; u32 in_flight; u32 reserved_; };
struct rate_sample {
	long interval_us;
	long rtt_us;
	u32 prior_delivered;
	s32 delivered;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
	u8 reserved_[2];
};

/* Information for diagnosis, which nothing here reads. */
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };
struct tcpvegas_info { u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt; };
struct tcp_dctcp_info { u16 dctcp_enabled, dctcp_ce_state; u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot; };
struct tcp_bbr_info { u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain; };
union tcp_cc_info { struct tcpvegas_info vegas; struct tcp_dctcp_info dctcp; struct tcp_bbr_info bbr; };

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
#ifdef ACKCLOCK_CONG_CONTROL_2
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#else
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
#endif
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	struct list_head list;
	u32 key;
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

static inline struct tcp_sock *ackclock_tp(const struct sock *sk) { return (struct tcp_sock *)sk; }
#define tcp_sk(sk) ackclock_tp((const struct sock *)(sk))
#define inet_sk(sk) ((struct inet_sock *)(sk))
#define inet_csk(sk) ((struct inet_connection_sock *)(sk))
static inline void *inet_csk_ca(const struct sock *sk) { return (void *)inet_csk(sk)->icsk_ca_priv; }
#define sock_net(sk) ((struct net *)0)
#define NET_INC_STATS(net, field) do { } while (0)
#define NET_ADD_STATS(net, field, n) do { } while (0)
#define INET_ECN_xmit(sk) do { } while (0)
#define INET_ECN_dontxmit(sk) do { } while (0)
/* The receiver's acknowledgments are not the controller's here. */
enum { ICSK_ACK_SCHED = 1, ICSK_ACK_TIMER = 2, ICSK_ACK_PUSHED = 4, ICSK_ACK_PUSHED2 = 8, ICSK_ACK_NOW = 16 };
#define __tcp_send_ack(...) do { } while (0)
#define BPF_SOCK_OPS_BASE_RTT 7
/* No BPF program is attached. */
#define tcp_call_bpf(sk, op, count, arguments) (-1)

static inline bool before(u32 one, u32 two) { return (s32)(one - two) < 0; }
#define after(one, two) before(two, one)
static inline bool between(u32 at, u32 low, u32 high) { return high - low >= at - low; }

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 packets) { tp->snd_cwnd = packets; }
static inline bool tcp_in_slow_start(const struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }
static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp) { return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH; }
static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	u32 state = inet_csk(sk)->icsk_ca_state;

	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}
static inline u32 tcp_left_out(const struct tcp_sock *tp) { return tp->sacked_out + tp->lost_out; }
static inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tcp_left_out(tp) + tp->retrans_out;
}
static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	return ackclock_cc_is_limited((const struct ackclock_cc *)sk);
}
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	/* Outside of a reduction three quarters of the window are kept. */
	return tcp_in_cwnd_reduction(sk) ? tp->snd_ssthresh : max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}
static inline u32 tcp_min_rtt(const struct tcp_sock *tp) { return tp->min_rtt_us_; }
static inline u32 tcp_stamp_us_delta(u64 later, u64 earlier) { return later > earlier ? (u32)(later - earlier) : 0; }
static inline u32 tcp_time_stamp_ts(const struct tcp_sock *tp) { return (u32)(tp->tcp_mstamp / USEC_PER_MSEC); }
#define tcp_time_stamp(tp) tcp_time_stamp_ts(tp)
static inline bool tcp_is_sack(const struct tcp_sock *tp) { (void)tp; return true; }

/* Functions of the stack for controllers: glue.c has them. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_undo_cwnd(struct sock *sk);
void tcp_enter_cwr(struct sock *sk);
int tcp_register_congestion_control(struct tcp_congestion_ops *type);
void tcp_unregister_congestion_control(struct tcp_congestion_ops *type);

/* Protective load balancing, off by default in the kernel (net.ipv4.tcp_plb_enabled). */
#define TCP_PLB_SCALE 8
struct tcp_plb_state { u8 consec_cong_rounds; u32 pause_until; };
static inline void tcp_plb_init(const struct sock *sk, struct tcp_plb_state *plb)
{
	(void)sk;
	plb->consec_cong_rounds = 0;
	plb->pause_until = 0;
}
#define tcp_plb_update_state(sk, plb, ratio) do { (void)(ratio); } while (0)
#define tcp_plb_check_rehash(sk, plb) do { } while (0)
#define tcp_plb_update_state_upon_rto(sk, plb) do { } while (0)

/* The maximum or minimum of a window of time, from its three best samples (Nichols): s[0] is the best of the window,
 * s[1] and s[2] the best since it and since s[1]. */
struct minmax_sample { u32 t, v; };
struct minmax { struct minmax_sample s[3]; };
static inline u32 minmax_get(const struct minmax *m) { return m->s[0].v; }
static inline u32 minmax_reset(struct minmax *m, u32 t, u32 value)
{
	struct minmax_sample only = { .t = t, .v = value };

	m->s[0] = m->s[1] = m->s[2] = only;
	return value;
}
u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 value);
u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 value);

#endif /* ACKCLOCK_LINUX_H */

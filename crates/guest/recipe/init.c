/*
 * Process 1 of a guest kernel: configures the network interface and runs the applications of /plan.
 *
 * /plan has one directive a line; crates/guest/src/plan.rs writes it. Times are nanoseconds of
 * CLOCK_MONOTONIC, which begins with the kernel. Each end of a connection is a process of its own
 * with blocking system calls. The byte at offset n of every stream is n modulo 251.
 *
 * Every end prints one line with its results when its connection is closed, or at the end of the
 * run; the last line of the host is "ackclock: done".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/ipv6.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef long long ll;

#define PERIOD 251
/* One element of a vectored write: a multiple of PERIOD. */
#define BLOCK (PERIOD * 256)
#define MOST_LISTENERS 16

/* Bytes by which a reader extends the window of the writer's application. */
#define WINDOW_UPDATE 13

enum app { BULK, PACED, ONOFF, REQUESTS, EXCHANGE };

/* A write of one side of an exchange. */
struct step {
	int server;
	ll bytes, after, window;	/* window 0: without limit */
};

/* One end of a connection. */
struct end {
	int flow, listens, six, own_port, peer_port;
	char own[64], peer[64];
	ll start;
	enum app app;
	ll bytes;			/* -1: without end */
	ll write, chunk, every;		/* 0: everything in one call */
	ll request, response, think, count;
	ll read_chunk, read_every;	/* 0: reads all available data */
	struct step *opening, *steps;	/* EXCHANGE */
	int n_opening, n_steps;
	int nodelay, reset, keepalive, keep_idle, keep_interval, keep_count;
	pid_t process;
};

static struct end *ends;
static int n_ends;
static ll end_of_run = LLONG_MAX;
/* Report facts that depend on the kernel's build. */
static int wants_facts;
/* Wake at sample_from + k * sample_every and report tcp_info then, if samples are wanted. */
static ll sample_from, sample_every = LLONG_MAX / 4;
static int wants_samples;

/* State of the end that this process runs. */
static struct end *own;
static int fd = -1;
static ll sent, received, last_read_at;
static ll *latencies;
static ll n_latencies, room;
static char *block;

static ll now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(ll ns)
{
	struct timespec t = { ns / 1000000000LL, ns % 1000000000LL };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0))
		;
}

static void say(const char *format, ...)
{
	char line[1024];
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(line, sizeof line - 1, format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	line[n++] = '\n';
	if (write(1, line, n) < 0)
		_exit(1);
}

static void fail(const char *what)
{
	say("ackclock: error %s: %s", what, strerror(errno));
	for (;;)
		pause();
}

static void put(const char *path, const char *value)
{
	int f = open(path, O_WRONLY | O_CLOEXEC);
	if (f < 0 || write(f, value, strlen(value)) < 0)
		say("ackclock: refused %s=%s: %s", path, value, strerror(errno));
	if (f >= 0)
		close(f);
}

/* A name after `-` need not exist. */
static void set_sysctl(const char *name, const char *value)
{
	char path[256] = "/proc/sys/";
	int optional = *name == '-';
	name += optional;
	size_t n = strlen(path);
	for (; *name && n < sizeof path - 1; name++)
		path[n++] = *name == '.' ? '/' : *name;
	path[n] = 0;
	if (optional && access(path, F_OK))
		return;
	put(path, value);
}

static int by_value(const void *a, const void *b)
{
	ll x = *(const ll *)a, y = *(const ll *)b;
	return (x > y) - (x < y);
}

/* Reports the results of this end. */
static void report(const char *error, int finished)
{
	struct tcp_info i;
	socklen_t len = sizeof i;
	char cc[32] = "-";
	socklen_t cc_len = sizeof cc;
	memset(&i, 0, sizeof i);
	if (fd >= 0) {
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &len);
		getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, &cc_len);
	}
	ll min = 0, median = 0, max = 0;
	if (n_latencies) {
		qsort(latencies, n_latencies, sizeof *latencies, by_value);
		min = latencies[0];
		median = latencies[(n_latencies - 1) / 2];
		max = latencies[n_latencies - 1];
	}
	say("ackclock: end flow=%d listens=%d finished=%d at=%lld sent=%lld received=%lld error=%s cc=%s "
	    "cwnd=%u ssthresh=%u mss=%u min_rtt=%u srtt=%u rttvar=%u retransmitted=%u data_segs=%u "
	    "lost=%u sacked=%u unacked=%u rto=%u ca_state=%u pacing=%llu delivered=%u reord=%u requests=%lld min=%lld median=%lld max=%lld",
	    own->flow, own->listens, finished, last_read_at ? last_read_at : now_ns(), sent, received, error, cc,
	    i.tcpi_snd_cwnd, i.tcpi_snd_ssthresh, i.tcpi_snd_mss, i.tcpi_min_rtt, i.tcpi_rtt, i.tcpi_rttvar,
	    i.tcpi_total_retrans, i.tcpi_data_segs_out, i.tcpi_lost, i.tcpi_sacked, i.tcpi_unacked, i.tcpi_rto, i.tcpi_ca_state,
	    (unsigned long long)i.tcpi_pacing_rate, i.tcpi_delivered, i.tcpi_reordering,
	    n_latencies, min, median, max);
}

static void broken(void)
{
	char name[32];
	snprintf(name, sizeof name, "%s", strerrorname_np(errno) ? strerrorname_np(errno) : "unknown");
	report(name, 0);
	close(fd);
	_exit(0);
}

/* The run is over before the connection. */
static void on_end(int signal)
{
	(void)signal;
	report("-", 0);
	for (;;)
		pause();
}

/* Calls `at_end` at the end of the run. */
static void stop_at_end(void (*at_end)(int))
{
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec at = { .it_value = { end_of_run / 1000000000LL, end_of_run % 1000000000LL } };
	if (end_of_run == LLONG_MAX)
		return;
	signal(SIGALRM, at_end);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, TIMER_ABSTIME, &at, 0))
		fail("timer");
}

/*
 * Reports tcp_info of the connection until it is closed, from a process of its own that shares the table
 * of descriptors: it is not in the way of the application, whose close() is the last one. The values are in the
 * order of crates/guest/src/results.rs. Nothing here reads the clock, which would take time. The process is
 * there and wakes in every run: fork(2) draws a random number, and so would those after it be others.
 */
static void start_sampler(void)
{
	struct tcp_info i;
	ll at = sample_from;
	if (syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0))
		return;
	while (at < own->start)
		at += sample_every;
	for (; at < end_of_run; at += sample_every) {
		socklen_t len = sizeof i;
		int buffer = 0;
		socklen_t buffer_len = sizeof buffer;
		sleep_until(at);
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &len))
			break;
		if (!wants_samples)
			continue;
		getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, &buffer_len);
		say("ackclock: tcp %d %d %lld %u %u %u %u %u %u %llu %u %u %u %u %u %u %u %llu %llu %llu %u %u %d",
		    own->flow, own->listens, at, i.tcpi_ca_state, i.tcpi_snd_cwnd, i.tcpi_snd_ssthresh,
		    i.tcpi_snd_mss, i.tcpi_rtt, i.tcpi_rto, (unsigned long long)i.tcpi_pacing_rate, i.tcpi_unacked,
		    i.tcpi_sacked, i.tcpi_lost, i.tcpi_retrans, i.tcpi_total_retrans, i.tcpi_delivered,
		    i.tcpi_reordering, (unsigned long long)i.tcpi_bytes_acked,
		    (unsigned long long)i.tcpi_bytes_sent, (unsigned long long)i.tcpi_bytes_retrans,
		    i.tcpi_notsent_bytes, i.tcpi_snd_wnd, buffer);
	}
	_exit(0);
}

static void options(void)
{
	int one = 1;
	if (own->nodelay)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (!own->keepalive)
		return;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	if (own->keep_idle)
		setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &own->keep_idle, sizeof(int));
	if (own->keep_interval)
		setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &own->keep_interval, sizeof(int));
	if (own->keep_count)
		setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &own->keep_count, sizeof(int));
}

/* Writes the next `bytes` of the stream in as few calls as possible. */
static void write_all(ll bytes)
{
	static struct iovec vector[IOV_MAX];
	while (bytes > 0) {
		ll left = bytes;
		int n = 0;
		size_t skip = sent % PERIOD;
		for (; n < IOV_MAX && left > 0; n++) {
			size_t len = BLOCK - (n ? 0 : skip);
			if ((ll)len > left)
				len = left;
			vector[n].iov_base = block + (n ? 0 : skip);
			vector[n].iov_len = len;
			left -= len;
		}
		ssize_t taken = writev(fd, vector, n);
		if (taken < 0)
			broken();
		sent += taken;
		bytes -= taken;
	}
}

/* Reads at most `most` bytes; 0 at the end of the stream. */
static ll read_some(ll most)
{
	static char *buffer;
	const size_t size = BLOCK * 16;
	if (!buffer && !(buffer = malloc(size)))
		fail("memory");
	if (most > (ll)size)
		most = size;
	ssize_t n = read(fd, buffer, most);
	if (n < 0)
		broken();
	for (ssize_t at = 0; at < n;) {
		size_t skip = (received + at) % PERIOD, len = BLOCK - skip;
		if ((ssize_t)len > n - at)
			len = n - at;
		if (memcmp(buffer + at, block + skip, len)) {
			errno = EBADMSG;
			broken();
		}
		at += len;
	}
	received += n;
	/* A reading of the clock is a system call, and takes time: only those that are reported. */
	if (n > 0 && (own->app == REQUESTS || own->app == EXCHANGE || received == own->bytes))
		last_read_at = now_ns();
	return n;
}

/* Reports the bytes that the send buffer of a fresh connection accepts at once. */
static void first_write(void)
{
	struct iovec vector[4];
	struct msghdr message = { .msg_iov = vector, .msg_iovlen = 4 };
	for (int i = 0; i < 4; i++)
		vector[i] = (struct iovec){ block, BLOCK };
	ssize_t taken = sendmsg(fd, &message, MSG_DONTWAIT);
	if (taken < 0)
		broken();
	sent += taken;
	say("ackclock: fact first_write=%lld", (ll)taken);
}

/* Writes the data of the application of a connecting end. */
static void write_stream(void)
{
	if (wants_facts && own->bytes > 4 * BLOCK) {
		first_write();
		own->bytes -= sent;
	}
	ll left = own->bytes < 0 ? LLONG_MAX : own->bytes, next = now_ns();
	while (left > 0) {
		ll n = left;
		if (own->app == PACED) {
			ll now = now_ns();
			if (now < next) {
				sleep_until(next);
				now = now_ns();
			}
			for (n = 0; next <= now && n < left; next += own->every)
				n += own->chunk < left - n ? own->chunk : left - n;
		} else if (own->app == ONOFF) {
			n = own->chunk < left ? own->chunk : left;
		} else if (own->write) {
			n = own->write < left ? own->write : left;
		} else {
			n = left < (1LL << 40) ? left : 1LL << 40;
		}
		write_all(n);
		left -= n;
		if (own->app == ONOFF && left > 0)
			sleep_until(now_ns() + own->every);
	}
}

/* Appends a time to those that are reported. */
static void add_latency(ll time)
{
	if (n_latencies == room) {
		room = room ? 2 * room : 1024;
		latencies = realloc(latencies, room * sizeof *latencies);
		if (!latencies)
			fail("memory");
	}
	latencies[n_latencies++] = time;
}

static void ask(void)
{
	for (ll n = 0; own->count < 0 || n < own->count; n++) {
		ll asked = now_ns(), got = 0;
		write_all(own->request);
		while (got < own->response) {
			ll k = read_some(own->response - got);
			if (!k) {
				errno = ECONNRESET;
				broken();
			}
			got += k;
		}
		add_latency(last_read_at - asked);
		if (own->think && (own->count < 0 || n + 1 < own->count))
			sleep_until(now_ns() + own->think);
	}
}

/* Window updates of earlier steps that have not been read. */
static ll unread_updates;

/* Reads at most `most` bytes, when the application reads next; 0 at the end of the stream. */
static ll read_next(ll most)
{
	static ll next;
	if (!own->read_chunk)
		return read_some(most);
	if (next > now_ns())
		sleep_until(next);
	ll k = read_some(most < own->read_chunk ? most : own->read_chunk), now = now_ns();
	next = (now - next < 10000 ? next : now) + own->read_every;
	return k;
}

static int read_exactly(ll bytes)
{
	while (bytes > 0) {
		ll k = read_next(bytes);
		if (!k)
			return 0;
		bytes -= k;
	}
	return 1;
}

/* Writes a step, or reads it if it is the peer's; 0 at the end of the stream. */
static int take_step(const struct step *s)
{
	ll every = s->window / 2 ? s->window / 2 : 1, done = 0, granted = 0;
	if (s->server == own->listens) {
		if (s->after)
			sleep_until(now_ns() + s->after);
		while (done < s->bytes) {
			ll n = s->bytes - done;
			if (s->window && n > s->window + granted - done)
				n = s->window + granted - done;
			if (n > 0) {
				write_all(n);
				done += n;
			} else {
				if (!read_exactly(unread_updates + WINDOW_UPDATE))
					return 0;
				unread_updates = 0;
				granted += every;
			}
		}
		if (s->window)
			unread_updates += (s->bytes / every - granted / every) * WINDOW_UPDATE;
		return 1;
	}
	if (!read_exactly(unread_updates))
		return 0;
	unread_updates = 0;
	while (done < s->bytes) {
		ll k = read_next(s->bytes - done), before = done;
		if (!k)
			return 0;
		done += k;
		if (s->window && done / every > before / every)
			write_all((done / every - before / every) * WINDOW_UPDATE);
	}
	return 1;
}

static void exchange(void)
{
	for (int i = 0; i < own->n_opening; i++)
		if (!take_step(own->opening + i))
			return;
	for (ll n = 0; n < own->count; n++) {
		ll began = now_ns();
		for (int i = 0; i < own->n_steps; i++)
			if (!take_step(own->steps + i))
				return;
		if (!own->listens)
			add_latency((last_read_at > began ? last_read_at : now_ns()) - began);
	}
	/* The client ends when it has read all, the server when the client has. */
	if (!own->listens)
		read_exactly(unread_updates);
	while (own->listens && read_next(LLONG_MAX))
		;
}

static void answer(void)
{
	for (;;) {
		ll got = 0;
		while (got < own->request) {
			ll k = read_some(own->request - got);
			if (!k)
				return;
			got += k;
		}
		write_all(own->response);
	}
}

static void read_stream(void)
{
	if (!own->read_chunk) {
		while (read_some(LLONG_MAX))
			;
		return;
	}
	/* Timers fire up to two microseconds late. A read that follows a sleep counts as made when the sleep was to
	   end, so that this does not add up. */
	ll next = 0;
	while (read_some(own->read_chunk)) {
		ll now = now_ns();
		next = (now - next < 10000 ? next : now) + own->read_every;
		sleep_until(next);
	}
}

/* Closes the connection and waits until the peer has acknowledged that. */
static void close_stream(void)
{
	if (!own->listens && own->reset) {
		struct linger abort = { 1, 0 };
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
		report("-", 1);
		close(fd);
		return;
	}
	shutdown(fd, SHUT_WR);
	if (!own->listens)
		while (read_some(LLONG_MAX))
			;
	signal(SIGALRM, SIG_IGN);
	report("-", 1);
	struct linger wait = { 1, 3600 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
	close(fd);
}

static void play(void)
{
	options();
	/* One that opened its connection has had its sampler since before the handshake. */
	if (own->listens && (own->app == REQUESTS || own->app == EXCHANGE))
		start_sampler();
	if (own->app == EXCHANGE)
		exchange();
	else if (own->listens)
		own->app == REQUESTS ? answer() : read_stream();
	else
		own->app == REQUESTS ? ask() : write_stream();
	close_stream();
	_exit(0);
}

/* Whether a process that has ended was that of an end; samplers are not. */
static int is_end(pid_t process)
{
	for (int i = 0; i < n_ends; i++)
		if (process > 0 && ends[i].process == process)
			return 1;
	return 0;
}

static socklen_t address(int six, const char *text, int port, struct sockaddr_storage *to)
{
	memset(to, 0, sizeof *to);
	if (six) {
		struct sockaddr_in6 *a = (struct sockaddr_in6 *)to;
		a->sin6_family = AF_INET6;
		a->sin6_port = htons(port);
		inet_pton(AF_INET6, text, &a->sin6_addr);
		return sizeof *a;
	}
	struct sockaddr_in *a = (struct sockaddr_in *)to;
	a->sin_family = AF_INET;
	a->sin_port = htons(port);
	inet_pton(AF_INET, text, &a->sin_addr);
	return sizeof *a;
}

static void connect_end(void)
{
	struct sockaddr_storage to, from;
	int one = 1;
	fd = socket(own->six ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	socklen_t len = address(own->six, own->own, own->own_port, &from);
	if (bind(fd, (void *)&from, len))
		fail("bind");
	len = address(own->six, own->peer, own->peer_port, &to);
	start_sampler();
	sleep_until(own->start);
	if (connect(fd, (void *)&to, len))
		broken();
	play();
}

/* The interface: no neighbour discovery, since a point-to-point path has one destination. */
static void configure(const char *four, const char *six, int mtu, int gro)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r;
	struct sockaddr_in *a = (struct sockaddr_in *)&r.ifr_addr;
	memset(&r, 0, sizeof r);
	strcpy(r.ifr_name, "lo");
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	ioctl(s, SIOCSIFFLAGS, &r);
	memset(&r, 0, sizeof r);
	strcpy(r.ifr_name, "eth0");
	r.ifr_mtu = mtu;
	if (ioctl(s, SIOCSIFMTU, &r))
		fail("mtu");
	struct ethtool_value value = { ETHTOOL_SGRO, gro };
	r.ifr_data = (void *)&value;
	if (ioctl(s, SIOCETHTOOL, &r))
		fail("gro");
	memset(&r.ifr_addr, 0, sizeof r.ifr_addr);
	a->sin_family = AF_INET;
	inet_pton(AF_INET, four, &a->sin_addr);
	if (ioctl(s, SIOCSIFADDR, &r))
		fail("address");
	inet_pton(AF_INET, "255.0.0.0", &a->sin_addr);
	ioctl(s, SIOCSIFNETMASK, &r);
	r.ifr_flags = IFF_UP | IFF_RUNNING | IFF_NOARP;
	if (ioctl(s, SIOCSIFFLAGS, &r))
		fail("interface");
	if (*six) {
		struct in6_ifreq r6 = { .ifr6_prefixlen = 8, .ifr6_ifindex = if_nametoindex("eth0") };
		int s6 = socket(AF_INET6, SOCK_DGRAM, 0);
		inet_pton(AF_INET6, six, &r6.ifr6_addr);
		if (ioctl(s6, SIOCSIFADDR, &r6))
			fail("IPv6 address");
		/* The address is tentative until a worker of the kernel has processed it. */
		struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = r6.ifr6_addr };
		for (int n = 0; bind(s6, (void *)&a6, sizeof a6); n++) {
			if (n == 500)
				fail("IPv6 address");
			sleep_until(now_ns() + 1000000);
		}
		close(s6);
	}
	close(s);
}

/* Forks the process of an end; the parent continues. */
static void start_end(struct end *end, int accepted)
{
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child > 0) {
		end->process = child;
		return;
	}
	own = end;
	fd = accepted;
	stop_at_end(on_end);
	accepted < 0 ? connect_end() : play();
}

static struct end *find(int six, const char *peer, int port)
{
	for (int i = 0; i < n_ends; i++)
		if (ends[i].listens && ends[i].six == six && ends[i].peer_port == port &&
		    !strcmp(ends[i].peer, peer))
			return ends + i;
	return 0;
}

static void accept_one(int listener)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof from;
	char text[64];
	int c = accept(listener, (void *)&from, &len), six = from.ss_family == AF_INET6, port;
	if (c < 0)
		return;
	if (six) {
		struct sockaddr_in6 *a = (struct sockaddr_in6 *)&from;
		inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text);
		port = ntohs(a->sin6_port);
	} else {
		struct sockaddr_in *a = (struct sockaddr_in *)&from;
		inet_ntop(AF_INET, &a->sin_addr, text, sizeof text);
		port = ntohs(a->sin_port);
	}
	struct end *end = find(six, text, port);
	if (end)
		start_end(end, c);
	close(c);
}

static int listen_on(int six, int port)
{
	struct sockaddr_storage any;
	int one = 1, l = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (six)
		setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	socklen_t len = address(six, six ? "::" : "0.0.0.0", port, &any);
	if (bind(l, (void *)&any, len) || listen(l, 4096))
		fail("listen");
	return l;
}

/* Counters of the whole host. */
static void counters(void)
{
	FILE *f = fopen("/proc/net/netstat", "r");
	static char names[8192], values[8192];
	while (f && fgets(names, sizeof names, f) && fgets(values, sizeof values, f)) {
		char *p, *q, *name = strtok_r(names, " \n", &p), *value = strtok_r(values, " \n", &q);
		if (!name || strcmp(name, "TcpExt:"))
			continue;
		while ((name = strtok_r(0, " \n", &p)) && (value = strtok_r(0, " \n", &q)))
			if (strcmp(value, "0"))
				say("ackclock: counter %s=%s", name, value);
	}
	if (f)
		fclose(f);
}

static void fact_of_file(const char *name, const char *path)
{
	char text[512] = "";
	int f = open(path, O_RDONLY);
	ssize_t n = f < 0 ? 0 : read(f, text, sizeof text - 1);
	if (f >= 0)
		close(f);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	for (char *c = text; *c; c++)
		if (*c == '\t')
			*c = ' ';
	say("ackclock: fact %s=%s", name, text);
}

/* Reports facts that depend on the kernel's build, before anything is set. */
static void facts(void)
{
	ll first = now_ns();
	say("ackclock: fact clock_read_ns=%lld", now_ns() - first);
	fact_of_file("memory", "/proc/meminfo");
	fact_of_file("tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem");
	fact_of_file("tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem");
	fact_of_file("tcp_mem", "/proc/sys/net/ipv4/tcp_mem");
	fact_of_file("default_qdisc", "/proc/sys/net/core/default_qdisc");
	fact_of_file("congestion_control", "/proc/sys/net/ipv4/tcp_available_congestion_control");
}

static void on_child(int signal)
{
	(void)signal;
}

/* The run is over before all applications have ended. */
static void on_end_of_host(int signal)
{
	(void)signal;
	counters();
}

static ll number(const char *text)
{
	return strtoll(text, 0, 10);
}

/* The steps of an exchange, "c517@0w0,s4096@300w0": side, bytes, wait, window. Returns their number. */
static int read_steps(char *text, struct step **steps)
{
	int n = 0;
	while (*text) {
		*steps = realloc(*steps, (n + 1) * sizeof **steps);
		if (!*steps)
			fail("memory");
		struct step *s = *steps + n++;
		s->server = *text == 's';
		s->bytes = strtoll(text + 1, &text, 10);
		s->after = strtoll(text + 1, &text, 10);
		s->window = strtoll(text + 1, &text, 10);
		text += *text == ',';
	}
	return n;
}

/* One "key=value" of a flow's line. */
static void set(struct end *e, const char *key, char *value)
{
	static const char *apps[] = { "bulk", "paced", "onoff", "requests", "exchange" };
	struct { const char *key; ll *at; } longs[] = {
		{ "start", &e->start }, { "bytes", &e->bytes }, { "write", &e->write }, { "chunk", &e->chunk },
		{ "every", &e->every }, { "request", &e->request }, { "response", &e->response },
		{ "think", &e->think }, { "count", &e->count }, { "read_chunk", &e->read_chunk },
		{ "read_every", &e->read_every },
	};
	struct { const char *key; int *at; } ints[] = {
		{ "number", &e->flow }, { "listens", &e->listens }, { "six", &e->six }, { "own_port", &e->own_port },
		{ "peer_port", &e->peer_port }, { "nodelay", &e->nodelay }, { "reset", &e->reset },
		{ "keepalive", &e->keepalive }, { "keep_idle", &e->keep_idle },
		{ "keep_interval", &e->keep_interval }, { "keep_count", &e->keep_count },
	};
	for (size_t i = 0; i < sizeof longs / sizeof *longs; i++)
		if (!strcmp(key, longs[i].key))
			*longs[i].at = number(value);
	for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
		if (!strcmp(key, ints[i].key))
			*ints[i].at = number(value);
	if (!strcmp(key, "own"))
		snprintf(e->own, sizeof e->own, "%s", value);
	if (!strcmp(key, "peer"))
		snprintf(e->peer, sizeof e->peer, "%s", value);
	if (!strcmp(key, "app"))
		for (int i = 0; i < 5; i++)
			if (!strcmp(value, apps[i]))
				e->app = i;
	if (!strcmp(key, "opening"))
		e->n_opening = read_steps(value, &e->opening);
	if (!strcmp(key, "steps"))
		e->n_steps = read_steps(value, &e->steps);
}

#ifdef ACKCLOCK_SCRIPTS
#include "script.c"
#endif

int main(void)
{
	static char four[64], six[64], line[4096];
	int mtu = 1500, gro = 0, open_ends = 0;
	FILE *plan;
	prctl(PR_SET_TIMERSLACK, 1);
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, 0);
	mount("sysfs", "/sys", "sysfs", 0, 0);
	signal(SIGPIPE, SIG_IGN);
	block = malloc(BLOCK);
	if (!block)
		fail("memory");
	for (int i = 0; i < BLOCK; i++)
		block[i] = i % PERIOD;
	plan = fopen("/plan", "r");
	if (!plan)
		fail("/plan");
	while (fgets(line, sizeof line, plan)) {
		char *at, *word = strtok_r(line, " \n", &at), *rest = at ? at + strspn(at, " ") : "";
		if (!word)
			continue;
		rest[strcspn(rest, "\n")] = 0;
		if (!strcmp(word, "sysctl")) {
			char *value = strchr(rest, '=');
			if (value) {
				*value++ = 0;
				set_sysctl(rest, value);
			}
		} else if (!strcmp(word, "facts")) {
			wants_facts = 1;
			facts();
		} else if (!strcmp(word, "end")) {
			end_of_run = number(rest);
		} else if (!strcmp(word, "sample")) {
			char *next;
			sample_from = strtoll(rest, &next, 10);
			sample_every = strtoll(next, &next, 10);
			wants_samples = number(next);
		} else if (!strcmp(word, "mtu")) {
			mtu = number(rest);
		} else if (!strcmp(word, "gro")) {
			gro = number(rest);
		} else if (!strcmp(word, "four")) {
			snprintf(four, sizeof four, "%s", rest);
		} else if (!strcmp(word, "six")) {
			snprintf(six, sizeof six, "%s", rest);
		} else if (!strcmp(word, "flow")) {
			ends = realloc(ends, (n_ends + 1) * sizeof *ends);
			if (!ends)
				fail("memory");
			struct end *e = ends + n_ends++;
			memset(e, 0, sizeof *e);
			char *next, *pair = strtok_r(rest, " \n", &next);
			for (; pair; pair = strtok_r(0, " \n", &next)) {
				char *value = strchr(pair, '=');
				if (value) {
					*value++ = 0;
					set(e, pair, value);
				}
			}
		}
	}
	fclose(plan);
	configure(four, six, mtu, gro);
#ifdef ACKCLOCK_SCRIPTS
	serve_script();
#endif

	struct pollfd listeners[MOST_LISTENERS];
	int families[MOST_LISTENERS], ports[MOST_LISTENERS], n = 0;
	for (int i = 0; i < n_ends; i++) {
		int k = 0;
		if (!ends[i].listens)
			continue;
		while (k < n && (families[k] != ends[i].six || ports[k] != ends[i].own_port))
			k++;
		if (k < n)
			continue;
		if (n == MOST_LISTENERS)
			fail("too many ports");
		listeners[n] = (struct pollfd){ .fd = listen_on(ends[i].six, ends[i].own_port), .events = POLLIN };
		families[n] = ends[i].six;
		ports[n++] = ends[i].own_port;
	}
	/* ppoll ends at the end of a child, which cannot come between waitpid and ppoll. */
	struct sigaction interrupts = { .sa_handler = on_child };
	sigset_t child, before;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	sigaction(SIGCHLD, &interrupts, 0);
	stop_at_end(on_end_of_host);
	say("ackclock: ready at=%lld", now_ns());
	open_ends = n_ends;
	for (int i = 0; i < n_ends; i++)
		if (!ends[i].listens)
			start_end(ends + i, -1);
	while (open_ends > 0) {
		if (n == 0) {
			open_ends -= is_end(wait(0));
			continue;
		}
		if (ppoll(listeners, n, 0, &before) > 0)
			for (int k = 0; k < n; k++)
				if (listeners[k].revents)
					accept_one(listeners[k].fd);
		for (pid_t ended; (ended = waitpid(-1, 0, WNOHANG)) > 0;)
			open_ends -= is_end(ended);
	}
	counters();
	say("ackclock: done");
	for (;;)
		pause();
}

/*
 * Executes the system calls of a packet script; init.c includes it where ACKCLOCK_SCRIPTS is defined.
 *
 * A call is a datagram to port 7 of this host: its number, 1 if it may block, its name and its arguments, all
 * separated by blanks (crates/guest/src/script.rs). The answer is a line of the console: "ackclock: call",
 * the number, the return value, the name of the error or "-", and what the call has returned by pointer. File
 * descriptors are those of the script.
 */
#include <sys/epoll.h>
#include <sys/mman.h>

#include <net/route.h>

#define MOST_NUMBERS 1024
#define MOST_ARGUMENTS 256

/* Shared by the processes: the descriptor for each number of the script, and -1. */
static int *numbers;
static char script_data[1 << 20];

static ll argument(char **arguments, int count, int n)
{
	return n < count ? strtoll(arguments[n], 0, 0) : 0;
}

static int descriptor(char **arguments, int count, int n)
{
	ll number = n < count ? strtoll(arguments[n], 0, 0) : -1;
	return number >= 0 && number < MOST_NUMBERS ? numbers[number] : -1;
}

/* Gives a new descriptor its number in the script. */
static ll opened(int fd, ll number)
{
	if (fd < 0)
		return -1;
	if (number < 0 || number >= MOST_NUMBERS)
		return fd;
	numbers[number] = fd;
	return number;
}

static int is_six(int fd)
{
	int domain = AF_INET;
	socklen_t len = sizeof domain;
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	return domain == AF_INET6;
}

static size_t bytes_of(const char *hex, unsigned char *to, size_t most)
{
	size_t n = 0;
	unsigned byte;
	for (; n < most && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		to[n] = byte;
	return n;
}

static ll send_parts(int fd, int flags, struct sockaddr_storage *to, socklen_t to_len, char **lengths, int count)
{
	static struct iovec parts[MOST_ARGUMENTS];
	struct msghdr message = { .msg_iov = parts, .msg_name = to, .msg_namelen = to_len };
	for (int i = 0; i < count; i++) {
		size_t len = strtoll(lengths[i], 0, 0);
		parts[i] = (struct iovec){ script_data, len < sizeof script_data ? len : sizeof script_data };
		message.msg_iovlen = i + 1;
	}
	return sendmsg(fd, &message, flags);
}

static void execute(char *line)
{
	char *a[MOST_ARGUMENTS], *next, *word, extra[2048] = "";
	int n = 0;
	ll result = -1;
	char *id = strtok_r(line, " \n", &next);
	strtok_r(0, " \n", &next);
	char *name = strtok_r(0, " \n", &next);
	if (!name)
		return;
	while (n < MOST_ARGUMENTS && (word = strtok_r(0, " \n", &next)))
		a[n++] = word;
	struct sockaddr_storage address_of;
	int f = descriptor(a, n, 0);
	errno = 0;
	if (!strcmp(name, "socket")) {
		result = opened(socket(argument(a, n, 1), argument(a, n, 2), argument(a, n, 3)), argument(a, n, 0));
	} else if (!strcmp(name, "bind")) {
		int one = 1;
		setsockopt(f, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		socklen_t len = address(is_six(f), n > 2 ? a[2] : "0.0.0.0", argument(a, n, 1), &address_of);
		result = bind(f, (void *)&address_of, len);
	} else if (!strcmp(name, "listen")) {
		result = listen(f, argument(a, n, 1));
	} else if (!strcmp(name, "accept")) {
		f = descriptor(a, n, 1);
		result = opened(accept4(f, 0, 0, argument(a, n, 2)), argument(a, n, 0));
	} else if (!strcmp(name, "connect")) {
		socklen_t len = address(is_six(f), n > 2 ? a[2] : "0.0.0.0", argument(a, n, 1), &address_of);
		result = connect(f, (void *)&address_of, len);
	} else if (!strcmp(name, "recv")) {
		size_t len = argument(a, n, 1);
		result = recv(f, script_data, len < sizeof script_data ? len : sizeof script_data, argument(a, n, 2));
	} else if (!strcmp(name, "send")) {
		result = send_parts(f, argument(a, n, 1), 0, 0, a + 2, n - 2);
	} else if (!strcmp(name, "sendto")) {
		socklen_t len = address(is_six(f), n > 3 ? a[3] : "0.0.0.0", argument(a, n, 2), &address_of);
		result = send_parts(f, argument(a, n, 1), &address_of, len, a + 4, n - 4);
	} else if (!strcmp(name, "shutdown")) {
		result = shutdown(f, argument(a, n, 1));
	} else if (!strcmp(name, "close")) {
		result = close(f);
		if (!result)
			numbers[argument(a, n, 0)] = -1;
	} else if (!strcmp(name, "setsockopt")) {
		unsigned char value[512];
		size_t len = n > 3 ? bytes_of(a[3], value, sizeof value) : 0;
		result = setsockopt(f, argument(a, n, 1), argument(a, n, 2), value, len);
	} else if (!strcmp(name, "getsockopt")) {
		unsigned char value[512];
		socklen_t len = argument(a, n, 3);
		if (len > sizeof value)
			len = sizeof value;
		memset(value, 0, sizeof value);
		result = getsockopt(f, argument(a, n, 1), argument(a, n, 2), value, &len);
		for (socklen_t i = 0; !result && i < len; i++)
			sprintf(extra + 2 * i, "%02x", value[i]);
	} else if (!strcmp(name, "fcntl")) {
		result = fcntl(f, argument(a, n, 1), argument(a, n, 2));
	} else if (!strcmp(name, "ioctl")) {
		int value = 0;
		result = ioctl(f, argument(a, n, 1), &value);
		sprintf(extra, "%d", value);
	} else if (!strcmp(name, "poll")) {
		struct pollfd list[16];
		int count = 0;
		for (int i = 1; i + 1 < n && count < 16; i += 2)
			list[count++] = (struct pollfd){ .fd = descriptor(a, n, i), .events = argument(a, n, i + 1) };
		result = poll(list, count, argument(a, n, 0));
		for (int i = 0, at = 0; i < count; i++)
			at += sprintf(extra + at, "%s%d", i ? "," : "", list[i].revents);
	} else if (!strcmp(name, "epoll_create")) {
		result = opened(epoll_create1(0), argument(a, n, 0));
	} else if (!strcmp(name, "epoll_ctl")) {
		struct epoll_event event = { .events = argument(a, n, 3), .data.u64 = argument(a, n, 2) };
		result = epoll_ctl(f, argument(a, n, 1), descriptor(a, n, 2), &event);
	} else if (!strcmp(name, "epoll_wait")) {
		struct epoll_event events[16];
		ll most = argument(a, n, 1);
		result = epoll_wait(f, events, most > 16 ? 16 : most, argument(a, n, 2));
		for (int i = 0, at = 0; i < result; i++)
			at += sprintf(extra + at, "%s%u", i ? "," : "", events[i].events);
	} else if (!strcmp(name, "sysctl")) {
		char path[256] = "/proc/sys/";
		size_t at = strlen(path);
		for (char *c = n > 0 ? a[0] : ""; *c && at < sizeof path - 1; c++)
			path[at++] = *c == '.' ? '/' : *c;
		int file = open(path, O_WRONLY | O_CLOEXEC);
		char value[256] = "";
		for (int i = 1; i < n; i++) {
			strncat(value, i > 1 ? " " : "", sizeof value - strlen(value) - 1);
			strncat(value, a[i], sizeof value - strlen(value) - 1);
		}
		result = file < 0 ? -1 : write(file, value, strlen(value)) < 0 ? -1 : 0;
		if (file >= 0)
			close(file);
	} else {
		errno = ENOSYS;
	}
	const char *error = result < 0 ? strerrorname_np(errno) : "-";
	say("ackclock: call %s %lld %s %s", id, result, error ? error : "unknown", extra);
}

/* The peer of a script may have any address. */
static void route_everything(void)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0), s6 = socket(AF_INET6, SOCK_DGRAM, 0);
	struct rtentry route = { .rt_flags = RTF_UP, .rt_dev = "eth0" };
	struct in6_rtmsg six = { .rtmsg_flags = RTF_UP, .rtmsg_metric = 1, .rtmsg_ifindex = if_nametoindex("eth0") };
	route.rt_dst.sa_family = route.rt_genmask.sa_family = AF_INET;
	if (ioctl(s, SIOCADDRT, &route))
		fail("the route");
	/* There may be no IPv6. */
	ioctl(s6, SIOCADDRT, &six);
	close(s);
	close(s6);
}

/* Executes calls until the end of the run. */
static void serve_script(void)
{
	struct sockaddr_storage any;
	static char line[8192];
	route_everything();
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = address(0, "0.0.0.0", 7, &any);
	if (s < 0 || bind(s, (void *)&any, len))
		fail("the socket for calls");
	numbers = mmap(0, MOST_NUMBERS * sizeof *numbers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (numbers == MAP_FAILED)
		fail("memory");
	for (int i = 0; i < MOST_NUMBERS; i++)
		numbers[i] = -1;
	signal(SIGCHLD, SIG_IGN);
	say("ackclock: ready at=%lld", now_ns());
	for (;;) {
		ssize_t n = recv(s, line, sizeof line - 1, 0);
		if (n <= 0)
			continue;
		line[n] = 0;
		char *blocks = strchr(line, ' ');
		if (!blocks || blocks[1] != '1') {
			execute(line);
		} else if (!syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0)) {
			execute(line);
			_exit(0);
		}
	}
}

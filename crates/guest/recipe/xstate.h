/*
 * Included before arch/um/os-Linux/registers.c and arch/x86/um/os-Linux/registers.c.
 *
 * A kernel before 6.13 saves 2,696 bytes of a process's extended state. A host sets nothing but the whole state (EFAULT
 * otherwise), and that is larger on a processor with AMX: 11,008 bytes. What follows the saved bytes is then set as
 * initial; no process of a guest uses it. The buffer is memory of the host: a guest's limits depend on how much it has.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

/* NT_X86_XSTATE */
#define EXTENDED_STATE 0x202

static inline long ptrace_whole_state(enum __ptrace_request request, pid_t pid, void *addr, void *data)
{
	static void *whole;
	static size_t size;
	struct iovec *saved = data;
	struct iovec all = { whole, 1 << 16 };

	if (request != PTRACE_SETREGSET || addr != (void *)EXTENDED_STATE)
		return ptrace(request, pid, addr, data);
	if (!size) {
		whole = mmap(NULL, all.iov_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (whole == MAP_FAILED)
			return -1;
		all.iov_base = whole;
		if (ptrace(PTRACE_GETREGSET, pid, addr, &all) < 0)
			return -1;
		size = all.iov_len;
		memset(whole, 0, size);
	}
	if (size <= saved->iov_len)
		return ptrace(request, pid, addr, data);
	memcpy(whole, saved->iov_base, saved->iov_len);
	all.iov_len = size;
	return ptrace(request, pid, addr, &all);
}

#define ptrace(request, pid, addr, data) \
	ptrace_whole_state(request, pid, (void *)(unsigned long)(addr), (void *)(unsigned long)(data))

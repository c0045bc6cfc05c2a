/* Saves a part of a traced process's extended state and sets it again. Exit 0: set; 1: refused; 2: cannot be tried. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef EXTENDED_STATE
#include <sys/ptrace.h>
#include <sys/uio.h>
#define EXTENDED_STATE 0x202
#endif

int main(void)
{
	/* The legacy area and the header, which every processor with this state has. */
	static unsigned long state[576 / sizeof(long)];
	struct iovec part = { state, sizeof(state) };
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) < 0)
		return 2;
	if (ptrace(PTRACE_GETREGSET, child, (void *)EXTENDED_STATE, &part) < 0)
		return 2;
	part.iov_len = sizeof(state);
	int set = ptrace(PTRACE_SETREGSET, child, (void *)EXTENDED_STATE, &part) == 0;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return set ? 0 : 1;
}

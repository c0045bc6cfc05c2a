package main

import (
	"encoding/binary"
	"os"
	"syscall"
	"unsafe"
)

// The socket to the simulator. A system call that the scheduler does not know of keeps the only processor: no other
// goroutine may run while the simulator has the word.
const socket = 0

var incoming []byte

// readMessage returns the next message: kind, time, body. The program ends when the simulator has closed the socket.
func readMessage() (uint32, int64, []byte) {
	for {
		if len(incoming) >= 16 {
			length := int(binary.LittleEndian.Uint32(incoming[4:]))
			if len(incoming) >= 16+length {
				message := incoming[:16+length]
				incoming = incoming[16+length:]
				kind := binary.LittleEndian.Uint32(message)
				return kind, int64(binary.LittleEndian.Uint64(message[8:])), message[16:]
			}
		}
		var buffer [1 << 16]byte
		n, _, err := syscall.RawSyscall(syscall.SYS_READ, socket, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)))
		if err == syscall.EINTR {
			continue
		}
		if err != 0 || n == 0 {
			theHost.end()
			os.Exit(0)
		}
		incoming = append(incoming, buffer[:n]...)
	}
}

func writeAll(bytes []byte) {
	for len(bytes) > 0 {
		n, _, err := syscall.RawSyscall(syscall.SYS_WRITE, socket, uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)))
		if err == syscall.EINTR {
			continue
		}
		if err != 0 {
			os.Exit(0)
		}
		bytes = bytes[n:]
	}
}

func appendMessage(out []byte, kind uint32, body []byte) []byte {
	return appendTimed(out, kind, 0, body)
}

func appendTimed(out []byte, kind uint32, at int64, body []byte) []byte {
	out = binary.LittleEndian.AppendUint32(out, kind)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	out = binary.LittleEndian.AppendUint64(out, uint64(at))
	return append(out, body...)
}

func number(body []byte) uint64 {
	if len(body) != 8 {
		fail("a body of %d bytes is no number", len(body))
	}
	return binary.LittleEndian.Uint64(body)
}

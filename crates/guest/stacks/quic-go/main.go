// quic-go as a host of Ackclock in virtual time.
//
// The program is one end of a connection. Its goroutines run in a bubble of testing/synctest, whose clock stands still
// while any of them is able to run or is in a system call. The driver goroutine reads a message from the socket at file
// descriptor 0, moves the clock to the time of the message, applies it, waits until all other goroutines are blocked,
// and answers with all that they have sent and with the time of the next timer. docs/guests.md has the messages.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Kinds of messages.
const (
	hello    = 1
	receive  = 2
	run      = 3
	open     = 5
	write    = 6
	read     = 7
	finish   = 8
	reset    = 9
	send     = 17
	deadline = 19
	signal   = 20
	failed   = 21
)

// Signals to the application.
const (
	connected = iota
	writable
	readable
	closed
	aborted
)

// nextTimer is in package runtime (next_timer.go, added by an overlay of the build).
func nextTimer() int64

// config is what HELLO says.
type config struct {
	server    bool
	seed      string
	payload   int
	six       bool
	logs, log string
	// File of the key log.
	keys string
}

func parseHello(text string) config {
	var c config
	for _, line := range strings.Split(text, "\n") {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "version":
			if value != "1" {
				fail("version %s of the protocol is unknown", value)
			}
		case "side":
			c.server = value == "server"
		case "seed":
			c.seed = value
		case "payload":
			c.payload, _ = strconv.Atoi(value)
		case "ip":
			c.six = value == "6"
		case "logs":
			c.logs = value
		case "log":
			c.log = value
		case "keys":
			c.keys = value
		}
	}
	return c
}

// fail ends the program with a message that the simulator shows.
func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func main() {
	// One goroutine at a time, in the scheduler's order.
	runtime.GOMAXPROCS(1)
	match := func(string, string) (bool, error) { return true, nil }
	host := func(t *testing.T) { synctest.Test(t, func(*testing.T) { drive() }) }
	testing.Main(match, []testing.InternalTest{{Name: "host", F: host}}, nil, nil)
}

// drive is the loop of the driver goroutine; it ends with the program.
func drive() {
	begin := time.Now()
	kind, _, body := readMessage()
	if kind != hello {
		fail("the first message is of kind %d, not HELLO", kind)
	}
	h := newHost(parseHello(string(body)))
	for {
		synctest.Wait()
		h.answer(begin)
		kind, at, body := readMessage()
		if ahead := time.Until(begin.Add(time.Duration(at))); ahead > 0 {
			time.Sleep(ahead)
			synctest.Wait()
		}
		switch kind {
		case receive:
			h.conn.deliver(body)
		case run:
		case open:
			go h.dial()
		case write:
			h.addPending(number(body))
		case read:
			h.consume(number(body))
		case finish:
			h.finish()
		case reset:
			h.reset()
		default:
			fail("message %d is unknown", kind)
		}
	}
}

// answer writes what happened since the last message.
func (h *host) answer(begin time.Time) {
	var out []byte
	for _, packet := range h.conn.takeSent() {
		body := h.counts.datagram(packet)
		if !packet.refused {
			out = appendMessage(out, send, body)
		}
	}
	for _, s := range h.takeSignals() {
		out = appendMessage(out, signal, []byte{s})
	}
	at := int64(-1)
	if next := nextTimer(); next > 0 {
		at = next - begin.UnixNano()
	}
	writeAll(appendTimed(out, deadline, at, h.state()))
}

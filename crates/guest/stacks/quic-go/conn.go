package main

import (
	"encoding/binary"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// packetConn is a UDP socket whose other end is the simulator. quic-go sees a socket of the kernel: it sets options on a
// real one, which carries no packet, and finds ECN, segmentation offload and the DF bit supported.
type packetConn struct {
	*net.UDPConn
	own, peer *net.UDPAddr
	// Largest UDP payload.
	payload  int
	six      bool
	mu       sync.Mutex
	received []datagram
	sent     []datagram
	expires  time.Time
	wake     chan struct{}
	closed   bool
}

type datagram struct {
	ecn   byte
	bytes []byte
	// It exceeds the MTU: the socket refused it.
	refused bool
}

func newPacketConn(real *net.UDPConn, c config) *packetConn {
	address := func(server bool) *net.UDPAddr {
		last := byte(1)
		if server {
			last = 2
		}
		ip := net.IPv4(192, 0, 2, last)
		if c.six {
			ip = net.ParseIP("2001:db8::1")
			ip[15] = last
		}
		return &net.UDPAddr{IP: ip, Port: 4433}
	}
	return &packetConn{
		UDPConn: real,
		own:     address(c.server),
		peer:    address(!c.server),
		payload: c.payload,
		six:     c.six,
		wake:    make(chan struct{}, 1),
	}
}

func (p *packetConn) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// deliver takes a datagram from the simulator: a byte with the ECN bits, then the payload.
func (p *packetConn) deliver(body []byte) {
	if len(body) == 0 {
		fail("a datagram without ECN bits")
	}
	p.mu.Lock()
	p.received = append(p.received, datagram{ecn: body[0], bytes: append([]byte(nil), body[1:]...)})
	p.mu.Unlock()
	p.notify()
}

func (p *packetConn) takeSent() []datagram {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

// ReadBatch blocks until a datagram is there; quic-go prefers it to reading the descriptor.
func (p *packetConn) ReadBatch(messages []ipv4.Message, _ int) (int, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return 0, net.ErrClosed
		}
		n := 0
		for n < len(messages) && len(p.received) > 0 {
			one := p.received[0]
			p.received = p.received[1:]
			m := &messages[n]
			m.N = copy(m.Buffers[0], one.bytes)
			m.Addr = p.peer
			m.NN = copy(m.OOB, p.ecnMessage(one.ecn))
			n++
		}
		expires := p.expires
		p.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		var timer <-chan time.Time
		if !expires.IsZero() {
			left := time.Until(expires)
			if left <= 0 {
				return 0, os.ErrDeadlineExceeded
			}
			timer = time.After(left)
		}
		select {
		case <-p.wake:
		case <-timer:
		}
	}
}

// ecnMessage returns the control message with which a kernel reports ECN bits.
func (p *packetConn) ecnMessage(ecn byte) []byte {
	level, kind, data := unix.IPPROTO_IP, unix.IP_TOS, []byte{ecn}
	if p.six {
		level, kind, data = unix.IPPROTO_IPV6, unix.IPV6_TCLASS, binary.NativeEndian.AppendUint32(nil, uint32(ecn))
	}
	out := binary.NativeEndian.AppendUint64(nil, uint64(unix.CmsgLen(len(data))))
	out = binary.NativeEndian.AppendUint32(out, uint32(level))
	out = binary.NativeEndian.AppendUint32(out, uint32(kind))
	out = append(out, data...)
	return append(out, make([]byte, unix.CmsgSpace(len(data))-len(out))...)
}

// WriteMsgUDP sends a datagram, or a burst with the segment size in a control message.
func (p *packetConn) WriteMsgUDP(b, oob []byte, _ *net.UDPAddr) (int, int, error) {
	size, ecn := len(b), byte(0)
	for rest := oob; len(rest) > 0; {
		head, data, remainder, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case head.Level == unix.IPPROTO_UDP && head.Type == unix.UDP_SEGMENT:
			size = int(binary.NativeEndian.Uint16(data))
		case head.Level == unix.IPPROTO_IP && head.Type == unix.IP_TOS:
			ecn = data[0] & 3
		case head.Level == unix.IPPROTO_IPV6 && head.Type == unix.IPV6_TCLASS:
			ecn = byte(binary.NativeEndian.Uint32(data)) & 3
		}
		rest = remainder
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, 0, net.ErrClosed
	}
	if min(size, len(b)) > p.payload {
		p.sent = append(p.sent, datagram{bytes: append([]byte(nil), b...), refused: true})
		return 0, 0, syscall.EMSGSIZE
	}
	for rest := b; len(rest) > 0; {
		n := min(size, len(rest))
		p.sent = append(p.sent, datagram{ecn: ecn, bytes: append([]byte(nil), rest[:n]...)})
		rest = rest[n:]
	}
	return len(b), len(oob), nil
}

func (p *packetConn) LocalAddr() net.Addr { return p.own }

func (p *packetConn) SetReadDeadline(at time.Time) error {
	p.mu.Lock()
	p.expires = at
	p.mu.Unlock()
	p.notify()
	return nil
}

func (p *packetConn) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.notify()
	return nil
}

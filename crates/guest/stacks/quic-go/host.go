package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"sync"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
)

// chunk is how much the application writes and reads at once, as io.Copy does.
const chunk = 32 << 10

// buffered is how much the application may be ahead of the stream.
const buffered = 2 * chunk

// host is one end of a connection, with its one stream.
type host struct {
	conn      *packetConn
	transport *quic.Transport
	counts    *counts
	tls       *tls.Config
	quic      *quic.Config

	mu      sync.Mutex
	changed chan struct{}
	signals []byte
	session *quic.Conn
	// Bytes that the application has written and the stream has not taken.
	pending uint64
	// The application was refused bytes.
	refused bool
	// The application ends the stream after the pending bytes.
	closing bool
	// Bytes read from the stream that the application has not read.
	available uint64
	// The peer's stream has ended.
	ended bool
	over  bool
	// Bytes that the application has read in the last message.
	taken uint64
}

var theHost *host

func newHost(c config) *host {
	// All numbers that quic-go draws are of the seed.
	rand.Reader = mathrand.NewChaCha8(sha256.Sum256([]byte(c.seed)))
	real, err := net.ListenUDP("udp", nil)
	if err != nil {
		fail("no UDP socket for the options of one: %v", err)
	}
	h := &host{conn: newPacketConn(real, c), changed: make(chan struct{})}
	theHost = h
	h.counts = newCounts(h, c)
	h.transport = &quic.Transport{Conn: h.conn}
	h.quic = &quic.Config{Tracer: h.counts.tracer}
	h.tls = &tls.Config{NextProtos: []string{"ackclock"}, Rand: rand.Reader}
	if c.keys != "" {
		keys, err := os.Create(c.keys)
		if err != nil {
			fail("the key log: %v", err)
		}
		h.tls.KeyLogWriter = keys
	}
	if c.server {
		h.tls.Certificates = []tls.Certificate{certificate()}
		listener, err := h.transport.Listen(h.tls, h.quic)
		if err != nil {
			fail("Listen: %v", err)
		}
		go h.accept(listener)
	} else {
		h.tls.InsecureSkipVerify = true
		h.tls.ServerName = "server"
	}
	return h
}

// certificate returns the same certificate in every run; signatures of Ed25519 all have the same length.
func certificate() tls.Certificate {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "server"},
		NotBefore:    time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		DNSNames:     []string{"server"},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		fail("the certificate: %v", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (h *host) emit(s byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.emitLocked(s)
}

func (h *host) emitLocked(s byte) {
	if !bytes.Contains(h.signals, []byte{s}) {
		h.signals = append(h.signals, s)
	}
}

func (h *host) takeSignals() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checkClosed()
	signals := h.signals
	h.signals = nil
	return signals
}

// change lets all goroutines that wait look at the state again; the lock is held.
func (h *host) change() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// wait blocks until a condition is true, and holds the lock then.
func (h *host) wait(condition func() bool) {
	h.mu.Lock()
	for !condition() {
		changed := h.changed
		h.mu.Unlock()
		<-changed
		h.mu.Lock()
	}
}

func (h *host) dial() {
	session, err := h.transport.Dial(context.Background(), h.conn.peer, h.tls, h.quic)
	if err != nil {
		h.abort()
		return
	}
	h.begin(session)
	stream, err := session.OpenStreamSync(context.Background())
	if err != nil {
		h.abort()
		return
	}
	go h.read(stream)
	h.write(stream)
}

func (h *host) accept(listener *quic.Listener) {
	session, err := listener.Accept(context.Background())
	if err != nil {
		h.abort()
		return
	}
	h.begin(session)
	stream, err := session.AcceptStream(context.Background())
	if err != nil {
		h.abort()
		return
	}
	go h.read(stream)
	h.write(stream)
}

func (h *host) begin(session *quic.Conn) {
	h.mu.Lock()
	h.session = session
	h.mu.Unlock()
	h.emit(connected)
	go func() {
		<-session.Context().Done()
		h.abort()
	}()
}

func (h *host) abort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.over = true
		h.emitLocked(aborted)
	}
}

// checkClosed reports the end of the connection once the peer has acknowledged the end of this side's stream and this
// side has read the peer's; the lock is held.
func (h *host) checkClosed() {
	if h.ended && h.available == 0 && h.counts.finished() && !h.over {
		h.over = true
		h.emitLocked(closed)
	}
}

// write is the application's loop: Write blocks until the stream has taken the bytes.
func (h *host) write(stream *quic.Stream) {
	zeros := make([]byte, chunk)
	for {
		h.wait(func() bool { return h.pending > 0 || h.closing })
		n := min(h.pending, chunk)
		h.mu.Unlock()
		if n == 0 {
			stream.Close()
			return
		}
		if _, err := stream.Write(zeros[:n]); err != nil {
			return
		}
		h.mu.Lock()
		h.pending -= n
		if h.refused {
			h.refused = false
			h.emitLocked(writable)
		}
		h.mu.Unlock()
	}
}

// read is the application's loop: it is ahead of the application by one Read.
func (h *host) read(stream *quic.Stream) {
	buffer := make([]byte, chunk)
	for {
		n, err := stream.Read(buffer)
		h.mu.Lock()
		h.available += uint64(n)
		if err != nil {
			h.ended = err == io.EOF
		}
		h.emitLocked(readable)
		h.mu.Unlock()
		if err != nil {
			return
		}
		h.wait(func() bool { return h.available == 0 })
		h.mu.Unlock()
	}
}

// addPending is a write of the simulated application; the simulator knows from the state how much is taken.
func (h *host) addPending(n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := min(n, buffered-min(h.pending, buffered))
	h.refused = taken < n
	h.pending += taken
	h.change()
}

// consume is a read of the simulated application of up to this many bytes.
func (h *host) consume(most uint64) {
	h.mu.Lock()
	for {
		n := min(most, h.available)
		most -= n
		h.available -= n
		h.taken += n
		if n == 0 {
			break
		}
		h.change()
		h.mu.Unlock()
		synctest.Wait()
		h.mu.Lock()
	}
	h.mu.Unlock()
}

func (h *host) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing = true
	h.change()
}

func (h *host) reset() {
	h.mu.Lock()
	session := h.session
	h.mu.Unlock()
	if session != nil {
		session.CloseWithError(0, "")
	}
	h.abort()
}

// end closes the connection and its log after the run.
func (h *host) end() {
	if h == nil {
		return
	}
	if h.session != nil {
		h.session.CloseWithError(0, "")
	}
}

// state is the body of DEADLINE.
func (h *host) state() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { h.taken = 0 }()
	out := []byte{0}
	if h.ended && h.available == 0 {
		out[0] = 1
	}
	for _, value := range []uint64{
		buffered - min(h.pending, buffered), h.taken, h.available, c.cwnd, c.flight, c.size,
		uint64(c.srtt), uint64(c.minRTT), c.lost, c.data, c.repeated,
	} {
		out = binary.LittleEndian.AppendUint64(out, value)
	}
	return out
}

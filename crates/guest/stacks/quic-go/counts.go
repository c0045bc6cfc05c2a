package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// counts follows the events of quic-go's own log: what its packets carry and what its recovery does. It writes them to
// a file if the simulator asks for one.
type counts struct {
	host   *host
	config config

	mu sync.Mutex
	// Packets logged as sent, whose datagrams have not been written.
	packets []loggedPacket
	// End of the stream bytes sent so far.
	sentTo int64
	// Numbers of the packets with the end of the stream.
	ends []qlog.PacketNumber
	// The peer has acknowledged the end of the stream.
	acknowledged         bool
	cwnd, flight, size   uint64
	srtt, minRTT         int64
	lost, data, repeated uint64
	file                 *qlogwriter.FileSeq
}

type loggedPacket struct {
	length int
	stream uint32
}

func newCounts(h *host, c config) *counts {
	return &counts{host: h, config: c, size: 1280}
}

// logFile is a log's file and its buffer.
type logFile struct {
	*bufio.Writer
	file *os.File
}

func (l logFile) Close() error {
	if err := l.Flush(); err != nil {
		return err
	}
	return l.file.Close()
}

func (c *counts) tracer(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	if c.config.logs != "" {
		file, err := os.Create(filepath.Join(c.config.logs, c.config.log))
		if err != nil {
			fail("the log: %v", err)
		}
		c.file = qlogwriter.NewConnectionFileSeq(logFile{bufio.NewWriter(file), file}, isClient, id)
		go c.file.Run()
	}
	return c
}

// AddProducer implements qlogwriter.Trace.
func (c *counts) AddProducer() qlogwriter.Recorder {
	r := &recorder{counts: c}
	if c.file != nil {
		r.file = c.file.AddProducer()
	}
	return r
}

type recorder struct {
	counts *counts
	file   qlogwriter.Recorder
}

func (r *recorder) Close() error {
	if r.file != nil {
		return r.file.Close()
	}
	return nil
}

func (r *recorder) RecordEvent(event qlogwriter.Event) {
	r.counts.record(event)
	if r.file != nil {
		r.file.RecordEvent(event)
	}
}

func (c *counts) record(event qlogwriter.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := event.(type) {
	case qlog.PacketSent:
		c.sent(&e)
	case qlog.PacketReceived:
		if e.Header.PacketType == qlog.PacketType1RTT {
			for _, frame := range e.Frames {
				if ack, ok := frame.Frame.(*qlog.AckFrame); ok {
					c.acked(ack)
				}
			}
		}
	case qlog.PacketLost:
		if !e.IsMTUProbePacket {
			c.lost++
		}
	case qlog.MTUUpdated:
		c.size = uint64(e.Value)
	case qlog.MetricsUpdated:
		// Only values that have changed are in an event.
		if e.CongestionWindow != 0 {
			c.cwnd = uint64(e.CongestionWindow)
		}
		c.flight = uint64(e.BytesInFlight)
		if e.SmoothedRTT != 0 {
			c.srtt = int64(e.SmoothedRTT)
		}
		if e.MinRTT != 0 {
			c.minRTT = int64(e.MinRTT)
		}
	}
}

func (c *counts) sent(e *qlog.PacketSent) {
	packet := loggedPacket{length: e.Raw.Length}
	again := false
	for _, frame := range e.Frames {
		stream, ok := frame.Frame.(*qlog.StreamFrame)
		if !ok {
			continue
		}
		packet.stream += uint32(stream.Length)
		again = again || (stream.Length > 0 && stream.Offset < c.sentTo)
		c.sentTo = max(c.sentTo, stream.Offset+stream.Length)
		if stream.Fin {
			c.ends = append(c.ends, e.Header.PacketNumber)
		}
	}
	if packet.stream > 0 {
		c.data++
	}
	if again {
		c.repeated++
	}
	c.packets = append(c.packets, packet)
}

func (c *counts) acked(ack *qlog.AckFrame) {
	for _, number := range c.ends {
		for _, block := range ack.AckRanges {
			if block.Smallest <= number && number <= block.Largest {
				c.acknowledged = true
			}
		}
	}
}

// datagram returns the body of SEND: ECN bits, the bytes of streams in it, and the datagram. quic-go logs the packets of
// a datagram before it writes it.
func (c *counts) datagram(d datagram) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stream uint32
	for length := 0; length < len(d.bytes) && len(c.packets) > 0; {
		length += max(c.packets[0].length, 1)
		stream += c.packets[0].stream
		c.packets = c.packets[1:]
	}
	out := binary.LittleEndian.AppendUint32(nil, stream)
	out = append(out, d.ecn)
	return append(out, d.bytes...)
}

func (c *counts) finished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acknowledged
}

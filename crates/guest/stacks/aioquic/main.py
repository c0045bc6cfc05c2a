"""aioquic as a host of Ackclock in virtual time.

aioquic has neither sockets nor a clock: each call has the time of the message. docs/guests.md has the messages. The
application is up to 64 KiB ahead of what the stream has sent, and ahead by one read of at most 32 KiB when it reads.
"""

import hashlib
import json
import math
import os
import ssl
import struct
import sys
import time

from aioquic.buffer import Buffer
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger
from aioquic.quic.packet import pull_quic_header

HELLO, RECEIVE, RUN, OPEN, WRITE, READ, FINISH, RESET = 1, 2, 3, 5, 6, 7, 8, 9
SEND, DEADLINE, SIGNAL = 17, 19, 20
CONNECTED, WRITABLE, READABLE, CLOSED, ABORTED = range(5)
NEVER = (1 << 64) - 1
BUFFERED = 64 << 10
CHUNK = 32 << 10
ID_LENGTH = 8
HERE = os.path.dirname(os.path.abspath(__file__))


class Random:
    """Random bytes of the seed: aioquic takes all of its own from os.urandom."""

    def __init__(self, seed):
        self.seed, self.drawn = seed, 0

    def __call__(self, length):
        out = b""
        while len(out) < length:
            out += hashlib.sha256(f"{self.seed} {self.drawn}".encode()).digest()
            self.drawn += 1
        return out[:length]


class Host:
    """One end of a connection, with its one stream."""

    def __init__(self, text):
        config = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
        if config.get("version") != "1":
            sys.exit(f"version {config.get('version')} of the protocol is unknown")
        self.server = config["side"] == "server"
        self.payload = int(config["payload"])
        os.urandom = Random(config["seed"])
        self.now = 0.0
        # Its log takes the time of the operating system.
        time.time = lambda: self.now
        self.log = os.path.join(config["logs"], config["log"]) if "logs" in config else None
        self.logger = QuicLogger()
        self.configuration = QuicConfiguration(
            is_client=not self.server,
            alpn_protocols=["ackclock"],
            congestion_control_algorithm=config.get("cc", "reno"),
            quic_logger=self.logger,
            verify_mode=ssl.CERT_NONE,
            server_name="server",
        )
        if "keys" in config:
            self.configuration.secrets_log_file = open(config["keys"], "w")
        if self.server:
            self.configuration.load_cert_chain(
                os.path.join(HERE, "certificate.pem"), os.path.join(HERE, "key.pem")
            )
        one, two = ("2001:db8::1", "2001:db8::2") if config.get("ip") == "6" else ("192.0.2.1", "192.0.2.2")
        self.peer = (one if self.server else two, 4433)
        self.quic = None
        self.stream = self.sender = None
        self.signals = []
        self.pending = 0
        self.refused = self.closing = self.ended = self.over = self.connected = False
        self.received = 0
        self.available = 0
        self.taken = 0
        self.lost = self.data = self.repeated = self.sent_to = 0
        # Events of the log that are read; stream bytes of the packets of datagrams that have not left.
        self.read_events = 0
        self.packets = []

    def signal(self, signal):
        if signal not in self.signals:
            self.signals.append(signal)

    def open(self):
        self.quic = QuicConnection(configuration=self.configuration)
        self.quic.connect(self.peer, now=self.now)

    def receive(self, body):
        data = body[1:]
        if self.quic is None:
            header = pull_quic_header(Buffer(data=data), host_cid_length=ID_LENGTH)
            self.quic = QuicConnection(
                configuration=self.configuration,
                original_destination_connection_id=header.destination_cid,
            )
        self.quic.receive_datagram(data, self.peer, now=self.now)

    def advance(self):
        """Moves bytes between application and stream."""
        if self.quic is None:
            return
        while (event := self.quic.next_event()) is not None:
            if isinstance(event, events.HandshakeCompleted):
                self.connected = True
                if not self.server:
                    self.stream = self.quic.get_next_available_stream_id()
                self.signal(CONNECTED)
            elif isinstance(event, events.StreamDataReceived):
                self.stream = event.stream_id
                self.received += len(event.data)
                self.ended = self.ended or event.end_stream
                self.signal(READABLE)
            elif isinstance(event, events.ConnectionTerminated) and not self.over:
                self.over = True
                self.signal(ABORTED)
        if not self.connected or self.stream is None:
            return
        if self.sender is None and self.stream in self.quic._streams:
            self.sender = self.quic._streams[self.stream].sender
        sender = self.sender
        unsent = sender._buffer_stop - sender.highest_offset if sender else 0
        taken = min(self.pending, max(BUFFERED - unsent, 0))
        if taken:
            self.quic.send_stream_data(self.stream, bytes(taken))
            self.pending -= taken
        if self.refused and self.pending < BUFFERED:
            self.refused = False
            self.signal(WRITABLE)
        if self.closing and self.pending == 0:
            self.closing = False
            self.quic.send_stream_data(self.stream, b"", end_stream=True)
        if self.available == 0 and self.received:
            self.available = min(self.received, CHUNK)
            self.received -= self.available
        finished = sender is not None and sender.is_finished
        if self.at_end() and finished and not self.over:
            self.over = True
            self.signal(CLOSED)

    def at_end(self):
        return self.ended and self.received == 0 and self.available == 0

    def consume(self, most):
        while most and (self.available or self.received):
            if not self.available:
                self.available = min(self.received, CHUNK)
                self.received -= self.available
            n = min(most, self.available)
            self.available -= n
            self.taken += n
            most -= n

    def count(self):
        """Reads the new events of aioquic's log."""
        if not self.logger._traces:
            return
        log = self.logger._traces[0]._events
        # A deque is quick at its ends only.
        new = [log[i - len(log)] for i in range(self.read_events, len(log))]
        if self.log is None:
            log.clear()
        else:
            self.read_events = len(log)
        for event in new:
            name, data = event["name"], event["data"]
            if name == "recovery:packet_lost":
                self.lost += 1
            if name != "transport:packet_sent":
                continue
            stream, again = 0, False
            for frame in data["frames"]:
                if frame["frame_type"] != "stream":
                    continue
                offset, length = int(frame["offset"]), int(frame["length"])
                stream += length
                again = again or (length > 0 and offset < self.sent_to)
                self.sent_to = max(self.sent_to, offset + length)
            self.data += stream > 0
            self.repeated += again
            self.packets.append((data["raw"]["length"], stream))

    def answer(self):
        out = []
        self.advance()
        sent = self.quic.datagrams_to_send(now=self.now) if self.quic else []
        while sent:
            self.count()
            for data, _ in sent:
                length = stream = 0
                while length < len(data) and self.packets:
                    packet = self.packets.pop(0)
                    length += max(packet[0], 1)
                    stream += packet[1]
                # A probe above the interface's MTU: the socket refuses it.
                if len(data) <= self.payload:
                    body = struct.pack("<IB", stream, 0) + data
                    out.append(struct.pack("<IIQ", SEND, len(body), 0) + body)
            self.advance()
            sent = self.quic.datagrams_to_send(now=self.now)
        for signal in self.signals:
            out.append(struct.pack("<IIQB", SIGNAL, 1, 0, signal))
        self.signals = []
        timer = self.quic.get_timer() if self.quic else None
        at = NEVER if timer is None or math.isinf(timer) else max(math.ceil(timer * 1e9), self.at)
        out.append(struct.pack("<IIQ", DEADLINE, 1 + 8 * 11, at) + self.state())
        return b"".join(out)

    def state(self):
        numbers = [max(BUFFERED - self.pending, 0), self.taken, self.available]
        self.taken = 0
        if self.quic is None:
            numbers += [0] * 5
        else:
            loss = self.quic._loss
            known = loss._rtt_initialized
            numbers += [
                loss.congestion_window,
                loss.bytes_in_flight,
                self.quic._max_datagram_size,
                int(loss._rtt_smoothed * 1e9) if known else 0,
                int(loss._rtt_min * 1e9) if known else 0,
            ]
        numbers += [self.lost, self.data, self.repeated]
        return struct.pack("<B11Q", self.at_end(), *numbers)

    def process(self, kind, at, body):
        self.at, self.now = at, at / 1e9
        if kind == RECEIVE:
            self.receive(body)
        elif kind == RUN:
            timer = self.quic.get_timer() if self.quic else None
            # As its own event loop does: a timer that is due is due at its time at least.
            if timer is not None and math.ceil(timer * 1e9) <= at:
                self.now = max(self.now, timer)
                self.quic.handle_timer(now=self.now)
        elif kind == OPEN:
            self.open()
        elif kind == WRITE:
            (offered,) = struct.unpack("<Q", body)
            taken = min(offered, max(BUFFERED - self.pending, 0))
            self.refused = taken < offered
            self.pending += taken
        elif kind == READ:
            self.consume(struct.unpack("<Q", body)[0])
        elif kind == FINISH:
            self.closing = True
        elif kind == RESET:
            if self.quic:
                self.quic.close()
            self.over = True
            self.signal(ABORTED)
        else:
            sys.exit(f"message {kind} is unknown")

    def end(self):
        """Closes the connection and writes its log."""
        if self.quic:
            self.quic.close()
            self.quic.datagrams_to_send(now=self.now)
        if self.log:
            with open(self.log, "w", encoding="utf-8") as file:
                json.dump(self.logger.to_dict(), file)


def read_exactly(length):
    data = b""
    while len(data) < length:
        part = os.read(0, length - len(data))
        if not part:
            return None
        data += part
    return data


def read_message():
    head = read_exactly(16)
    if head is None:
        return None
    kind, length, at = struct.unpack("<IIQ", head)
    return kind, at, read_exactly(length)


def main():
    kind, at, body = read_message()
    if kind != HELLO:
        sys.exit(f"the first message is of kind {kind}, not HELLO")
    host = Host(body.decode())
    host.at = at
    while True:
        data = host.answer()
        while data:
            data = data[os.write(0, data) :]
        message = read_message()
        if message is None:
            return host.end()
        host.process(*message)


main()

#!/usr/bin/env python3
"""A receiver of TCP as a guest: it acknowledges every segment that comes in order, and closes after the peer.

The protocol is that of crates/guest/src/socket.rs: standard input is the socket.
"""
import socket
import struct

NEVER = 2**64 - 1
FIN, SYN, ACK = 1, 2, 16
line = socket.socket(fileno=0)


def read(size):
    data = b""
    while len(data) < size:
        part = line.recv(size - len(data))
        if not part:
            raise SystemExit
        data += part
    return data


def write(kind, time, body=b""):
    line.sendall(struct.pack("<IIQ", kind, len(body), time) + body)


class Flow:
    """One end of a connection that listens."""

    def __init__(self, text):
        self.values = dict(pair.split("=") for pair in text.split()[1:])
        self.received, self.next, self.closed = 0, 0, False
        self.waiting = []

    def on_segment(self, now, packet):
        source, to = packet[12:16], packet[16:20]
        tcp = packet[20:]
        sport, dport, seq, _, offset, flags = struct.unpack("!HHIIBB", tcp[:14])
        payload = len(tcp) - 4 * (offset >> 4)
        if flags & SYN:
            self.next = seq + 1
            self.answer(source, to, sport, dport, 1000, SYN | ACK)
            return
        if seq == self.next:
            self.next += payload
            self.received += payload
            if payload:
                self.at = now
        if payload or flags & FIN:
            fin = flags & FIN and seq + payload == self.next and not self.closed
            if fin:
                self.next += 1
                self.closed = True
            self.answer(source, to, sport, dport, 1001, ACK | (FIN if fin else 0))

    def answer(self, source, to, sport, dport, seq, flags):
        numbers = seq % 2**32, self.next % 2**32
        tcp = struct.pack("!HHIIBBHHH", dport, sport, *numbers, 5 << 4, flags, 65535, 0, 0)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + to + source
        self.waiting.append(ip + tcp)


flow, now = None, 0
while True:
    kind, size, time = struct.unpack("<IIQ", read(16))
    body = read(size)
    if kind == 1:
        lines = body.decode().splitlines()
        [flow] = [Flow(text) for text in lines if text.startswith("flow ")]
    elif kind == 2:
        while body:
            (size,) = struct.unpack("<I", body[:4])
            flow.on_segment(time, body[4 : 4 + size])
            body = body[4 + size :]
    elif kind == 3:
        for packet in flow.waiting:
            write(17, time, struct.pack("<I", 0) + packet)
            read(16)
        flow.waiting.clear()
        if flow.closed:
            number, received = flow.values["number"], flow.received
            text = f"end flow={number} listens=1 finished=1 at={flow.at} received={received}"
            write(18, 0, text.encode())
    write(19, time if flow.waiting else NEVER, bytes([flow.closed and not flow.waiting]))

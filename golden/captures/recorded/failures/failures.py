"""The hosts of `failures.sh`: `failures.py NAME client|server|router`, and its links: `failures.py
delay ONE OTHER` forwards frames after 5 ms, `failures.py offload NAME` switches offloads off."""
import collections
import ctypes
import fcntl
import socket
import struct
import sys
import threading
import time

name, host = sys.argv[1:3]
SERVER = ("10.9.2.1", 5001)
GONE = ("10.9.3.1", 5001)
ABORT = struct.pack("ii", 1, 0)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def reset(raw, src, dst, ports, seq):
    """Sends a reset from `src`, with the time to live of this host: 64."""
    tcp = struct.pack("!HHIIBBHHH", *ports, seq, 0, 5 << 4, 4, 0, 0, 0)
    tcp_sum = checksum(src + dst + struct.pack("!BBH", 0, 6, 20) + tcp)
    tcp = tcp[:16] + struct.pack("!H", tcp_sum) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 7, 0, 64, 6, 0, src, dst)
    raw.sendto(ip + tcp, (socket.inet_ntoa(dst), 0))


def offload(interface):
    """Checksums and segmentation in the stack: a link of this program has neither."""
    control = socket.socket()
    for command in (0x17, 0x1F, 0x24):  # ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO
        value = bytearray(struct.pack("II", command, 0))
        address = ctypes.addressof((ctypes.c_char * 8).from_buffer(value))
        fcntl.ioctl(control, 0x8946, struct.pack("16sP16x", interface.encode(), address))


def delay(one, other):
    def forward(source, target):
        incoming = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        incoming.bind((source, 0))
        outgoing = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        outgoing.bind((target, 0))
        due = collections.deque()
        while True:
            wait = max(due[0][0] - time.monotonic(), 0) if due else None
            incoming.settimeout(wait if wait != 0 else 1e-6)
            try:
                frame, (_, _, kind, *_) = incoming.recvfrom(65_536)
                if kind != socket.PACKET_OUTGOING:
                    due.append((time.monotonic() + 0.005, frame))
            except (TimeoutError, BlockingIOError):
                pass
            while due and due[0][0] <= time.monotonic():
                outgoing.send(due.popleft()[1])

    threading.Thread(target=forward, args=(one, other)).start()
    forward(other, one)


def router():
    """Resets the connection in both directions, as a firewall does, after 30 packets of data."""
    if name != "reset-between":
        return
    seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    seen.bind(("rb", 0x0800))
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    count = 0
    while True:
        packet, (_, _, kind, *_) = seen.recvfrom(65536)
        if packet[9] != 6 or packet[12:16] != socket.inet_aton(SERVER[0]):
            continue
        tcp = packet[20:]
        length = struct.unpack("!H", packet[2:4])[0] - 20 - (tcp[12] >> 4) * 4
        count += length > 0
        if count == 30:
            src, dst = packet[12:16], packet[16:20]
            ports = struct.unpack("!HH", tcp[:4])
            seq, ack = struct.unpack("!II", tcp[4:12])
            reset(raw, src, dst, ports, seq + length)
            reset(raw, dst, src, ports[::-1], ack)
            return


def server():
    if name in ("refused", "unanswered", "unreachable", "prohibited", "ttl"):
        time.sleep(60)
    listener = socket.create_server(SERVER)
    connection, _ = listener.accept()
    if name == "time-wait":
        left = 120_000_000
        while left > 0:
            left -= len(connection.recv(1 << 20))
        connection.close()
        connection, _ = listener.accept()
        connection.recv(100)
        connection.send(b"y" * 100)
    elif name == "too-big":
        while connection.recv(1 << 16):
            pass
    elif name == "reset-server":
        connection.recv(1000)
        connection.send(b"y" * 20_000)
        time.sleep(0.1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    else:
        connection.recv(1000)
        try:
            for _ in range(100):
                connection.send(b"y" * 5_000)
                time.sleep(0.01)
        except OSError:
            pass
    connection.close()


def client():
    connection = socket.socket()
    connection.settimeout(4)
    if name == "ttl":
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
    if name == "time-wait":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.bind(("10.9.1.1", 40_001))
    gone = name in ("unanswered", "unreachable", "prohibited")
    connection.connect(GONE if gone else SERVER)
    if name == "time-wait":
        connection.settimeout(30)
        connection.sendall(b"x" * 120_000_000)
        connection.recv(1)
        connection.close()
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.bind(("10.9.1.1", 40_001))
        connection.connect(SERVER)
        connection.send(b"x" * 100)
        connection.recv(1000)
    elif name == "too-big":
        connection.sendall(b"x" * 100_000)
    else:
        connection.send(b"x" * 500)
        for _ in range(20):
            if not connection.recv(5_000):
                break
        if name == "reset-client":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    connection.close()


if name == "offload":
    offload(host)
elif name == "delay":
    delay(host, sys.argv[3])
else:
    {"client": client, "server": server, "router": router}[host]()

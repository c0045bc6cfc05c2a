"""Transfers from 10.0.0.1 to 10.0.0.2 that something limits.

live_transfer.py receive KIND
live_transfer.py send KIND SECONDS
"""

import socket
import sys
import time

PORT = 5001


def receive(kind):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if kind == "window":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    listener.bind(("10.0.0.2", PORT))
    listener.listen()
    connection, _ = listener.accept()
    try:
        while connection.recv(16384):
            if kind == "reader":
                time.sleep(0.05)
    except ConnectionResetError:
        pass


def send(kind, seconds):
    sender = socket.socket()
    if kind == "sndbuf":
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    until = time.monotonic() + 20
    while sender.connect_ex(("10.0.0.2", PORT)) != 0:
        # The receiver does not listen yet.
        if time.monotonic() > until:
            sys.exit("nothing listens")
        time.sleep(0.05)
    end = time.monotonic() + float(seconds)
    sender.settimeout(1)
    try:
        while time.monotonic() < end:
            if kind == "application":
                time.sleep(0.1)
                sender.sendall(b"x" * 5000)
            else:
                sender.send(b"x" * 65536)
    except TimeoutError:
        pass
    if kind == "reader":
        # What is left would take the reader long.
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sender.close()


if __name__ == "__main__":
    {"send": send, "receive": receive}[sys.argv[1]](*sys.argv[2:])

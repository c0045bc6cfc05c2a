"""A client and a server that exchange requests and responses; each sleeps before it sends.

requests.py server THINK_MS RESPONSE_BYTES [PIECES]   the response is written in pieces, with a sleep
                                                      before each
requests.py client THINK_MS COUNT RESPONSE_BYTES
"""

import socket
import sys
import time

PORT = 5001
REQUEST = b"r" * 300


def server(think, size, pieces=1):
    listener = socket.create_server(("0.0.0.0", PORT))
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while received(connection, len(REQUEST)):
        for _ in range(pieces):
            time.sleep(think / 1000)
            connection.sendall(b"a" * (size // pieces))


def client(think, count, size):
    connection = socket.create_connection(("10.0.0.2", PORT))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for n in range(count):
        if n > 0:
            time.sleep(think / 1000)
        connection.sendall(REQUEST)
        received(connection, size)


def received(connection, size):
    while size > 0:
        data = connection.recv(size)
        if not data:
            return False
        size -= len(data)
    return True


if __name__ == "__main__":
    {"server": server, "client": client}[sys.argv[1]](*map(int, sys.argv[2:]))

#!/usr/bin/env python3
"""A stack of the protocol of docs/stacks.md that fails in the way its name says: broken_stack.py-MODE."""

import os
import struct
import sys
import time

NEVER = (1 << 64) - 1


def answer(deadline=NEVER):
    body = bytes(1 + 8 * 11)
    os.write(0, struct.pack("<IIQ", 19, len(body), deadline) + body)


def message():
    head = b""
    while len(head) < 16:
        head += os.read(0, 16 - len(head)) or sys.exit(0)
    kind, length, at = struct.unpack("<IIQ", head)
    body = b""
    while len(body) < length:
        body += os.read(0, length - len(body))
    return kind, at


mode = os.path.basename(sys.argv[0]).split("-")[1]
with open(os.path.join(os.path.dirname(sys.argv[0]), "pid"), "w", encoding="ascii") as file:
    file.write(str(os.getpid()))
if mode == "silent":
    time.sleep(1000)
message()
answer()
kind, at = message()
if mode == "panic":
    print("panic: nothing works", file=sys.stderr)
    sys.exit(3)
if mode == "hang":
    time.sleep(1000)
if mode == "past":
    answer(at - 1)
while mode == "spin":
    answer(at)
    message()

#!/usr/bin/env python3
"""Ackclock beside ns-3, ns-2 and csg-htsim on the workloads W1 to W5: see README.md here.

    bench/peers/compare.py [--runs N] [--parts W1=0.1,W5=50] [--instructions] [--ledger] [W1 ...]

Programs that are not installed are left out; HTSIM=BINARY names a csg-htsim that you have built. All run in
turn, the best of N runs counts; times are processor time, so other work on the machine has little effect.
Prints tables in Markdown; --ledger writes them to xtask/measured/speed.toml, too.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "peers"
NS3 = "3.44.post0"
# Parts of the usual durations; of W5 the number of transfers.
PARTS = {"W1": 0.1, "W2": 0.1, "W3": 0.1, "W4": 0.25, "W5": 50}
# Shorter ones where instructions are counted, which takes fifty times as long.
COUNTED = {"W1": 0.02, "W2": 0.03, "W3": 0.03, "W5": 5}
LEAST_NANOS = 400e6
TITLES = {
    "W1": "one flow, 1 Gbit/s, 40 ms",
    "W2": "one flow, 1 Gbit/s, 0.15 ms, 1 % loss",
    "W3": "100 flows, dumbbell of 1 Gbit/s",
    "W4": "10,000 flows, dumbbell of 10 Gbit/s",
    "W5": "transfers of 1 MB, 100 Mbit/s, 20 ms",
}
FULL = {"W1": 60, "W2": 10, "W3": 10, "W4": 2}


def run(command, **more):
    return subprocess.run(command, check=True, text=True, **more)


def ackclock():
    """Our own benchmark, built here."""
    command = ["cargo", "bench", "--package", "ackclock", "--bench", "workloads", "--no-run"]
    output = run(command + ["--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE).stdout
    for line in output.splitlines():
        said = json.loads(line)
        if said.get("executable") and said["target"]["name"] == "workloads":
            return [said["executable"], "peer"]
    sys.exit("cargo bench has built no program")


LIBRARIES = ["applications", "point-to-point", "internet", "bridge", "traffic-control"]
LIBRARIES += ["network", "stats", "core"]


def compiled(name, flags):
    """ns3.cc, compiled anew if it has changed."""
    program, source = BUILT / name, HERE / "ns3.cc"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        run(["g++", "-O2", str(source), "-o", str(program), *flags])
    return [str(program)]


def ns3():
    """ns-3 from its wheel, whose libraries and headers a program of C++ can use by itself."""
    wheel = BUILT / f"ns3-{NS3}"
    if not wheel.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        if subprocess.run(pip + [str(wheel), f"ns3=={NS3}"]).returncode != 0:
            print("ns-3 is left out: its wheel is not to be had for this Python", file=sys.stderr)
            shutil.rmtree(wheel, ignore_errors=True)
            return None
    lib = wheel / "ns3" / "lib64"
    flags = ["-std=c++20", "-I", str(wheel / "ns3" / "include"), "-L", str(lib)]
    flags += [f"-Wl,-rpath,{lib}", "-Wl,--allow-shlib-undefined"]
    return compiled("ns3", flags + [f"-lns{NS3[:4]}-{name}" for name in LIBRARIES])


def ns3_debian():
    """ns-3 as Debian packages it."""
    if not Path("/usr/include/ns3/core-module.h").exists():
        return None
    return compiled("ns3-debian", ["-std=c++17", *[f"-lns3-{name}" for name in LIBRARIES]])


def ns2():
    """ns-2 as Debian packages it."""
    found = shutil.which("ns")
    return [found, str(HERE / "ns2.tcl")] if found else None


def htsim():
    """htsim.cc, compiled by the user against csg-htsim as the README describes."""
    program = os.environ.get("HTSIM")
    if program and not os.access(program, os.X_OK):
        sys.exit(f"HTSIM={program}: no program; README.md describes how to compile it")
    return [str(Path(program).resolve())] if program else None


class Program:
    def __init__(self, name, command):
        self.name, self.command = name, command

    def once(self, workload, part):
        """One run: a dictionary of what it did."""
        # ns-2 has no routes for W4.
        if self.name == "ns-2" and workload == "W4":
            return None
        # Linux reports processor time in ticks of some milliseconds: short runs are repeated until
        # they add up, each from the beginning, and the mean counts.
        total, times = 0, 0
        while total < LEAST_NANOS and times < 100:
            output = run([*self.command, workload, str(part)], stdout=subprocess.PIPE).stdout
            segments, retransmitted, bytes_, seconds, nanos = map(float, output.split("\n")[-2].split("\t"))
            total, times = total + nanos, times + 1
        nanos = total / times
        return {
            "segments": segments,
            "retransmitted": retransmitted,
            "goodput": bytes_ * 8 / seconds / 1e6 if seconds else 0,
            "ns": nanos / segments if segments else 0,
        }

    def instructions(self, workload, part):
        """Instructions for a data segment: of a run, less those of one that does next to nothing."""
        if self.name == "ns-2" and workload == "W4":
            return None
        least = 0 if workload == "W5" else 0.001
        counts, segments = [], []
        for part in (least, part):
            counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
            command = [*counted, *self.command, workload, str(part)]
            done = run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            line = next(line for line in done.stderr.splitlines() if "Collected :" in line)
            counts.append(int(line.split()[-1]))
            segments.append(float(done.stdout.split("\n")[-2].split("\t")[0]))
        return (counts[1] - counts[0]) / (segments[1] - segments[0])


def number(value):
    return f"{value:,.0f}"


def part_of(workload, part):
    return f"{part:.0f} runs" if workload == "W5" else f"{FULL[workload] * part:g} s"


def table(head, rows):
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write_ledger(command, ratios, work):
    """Replaces the tables of the comparison in the record of measurements; `cargo xtask docs` writes the page."""
    place = ROOT / "xtask" / "measured" / "speed.toml"
    text = place.read_text()
    for title, content in [("Beside other simulators", ratios), ("The work of that comparison", work)]:
        part = re.compile(
            rf'(title = "{title}"\ncommand = ")[^\n]*("\nfigure = "[^\n]*"\ntable = \'\'\'\n).*?(\'\'\'\n)', re.S
        )
        text, count = part.subn(lambda m: m[1] + command + m[2] + content + m[3], text)
        if count != 1:
            sys.exit(f"{place} has no part {title!r}")
    place.write_text(text)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--parts", default="")
    arguments.add_argument("--instructions", action="store_true")
    arguments.add_argument("--ledger", action="store_true")
    arguments.add_argument("workloads", nargs="*", default=[])
    asked = arguments.parse_args()
    for word in filter(None, asked.parts.split(",")):
        workload, part = word.split("=")
        PARTS[workload] = float(part)
    BUILT.mkdir(parents=True, exist_ok=True)
    found = {
        "Ackclock": ackclock(),
        f"ns-3 {NS3[:4]}": ns3(),
        "ns-3 3.37": ns3_debian(),
        "ns-2": ns2(),
        "csg-htsim": htsim(),
    }
    programs = [Program(name, command) for name, command in found.items() if command]
    workloads = asked.workloads or list(PARTS)

    best = {}
    for workload in workloads:
        for _ in range(asked.runs):
            for program in programs:
                print(f"{workload} {program.name}", file=sys.stderr)
                done = program.once(workload, PARTS[workload])
                key = (workload, program.name)
                if done and (key not in best or done["ns"] < best[key]["ns"]):
                    best[key] = done
    counted = {}
    if asked.instructions:
        for workload in filter(COUNTED.get, workloads):
            for program in programs:
                print(f"{workload} {program.name}, instructions", file=sys.stderr)
                count = program.instructions(workload, COUNTED[workload])
                counted[workload, program.name] = count

    version = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE).stdout.strip()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                if line.startswith("model name")), platform.processor())
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"Ackclock {version}; {os.cpu_count()} cores of {cpu}; load {load}; best of {asked.runs}\n")

    others = [program.name for program in programs[1:]]
    print("Processor time for a segment as a multiple of Ackclock's in the same run:\n")
    rows = []
    for workload in workloads:
        ours = best[workload, "Ackclock"]["ns"]
        of = lambda name: best.get((workload, name))
        cells = [f"{of(name)['ns'] / ours:.1f}" if of(name) else "–" for name in others]
        rows.append([f"{workload}, {TITLES[workload]}", *cells])
    ratios = table(["", *others], rows)
    print(ratios)

    rows = []
    for workload in workloads:
        cells = []
        for program in programs:
            done = best.get((workload, program.name))
            is_counted = program.name not in ["csg-htsim", "ns-3 3.37"]
            retransmitted = number(done["retransmitted"]) if done and is_counted else "–"
            figures = done and f"{number(done['segments'])}, {retransmitted}, {number(done['ns'])}"
            cells.append(figures or "–")
        rows.append([f"{workload}, {part_of(workload, PARTS[workload])}", *cells])
    work = table(["segments, retransmitted, ns/segment", *[program.name for program in programs]], rows)
    if asked.ledger:
        used = [f"HTSIM=htsim {HERE.relative_to(ROOT)}/compare.py" if "csg-htsim" in others
                else f"{HERE.relative_to(ROOT)}/compare.py", f"--runs {asked.runs}"]
        write_ledger(" ".join(used), ratios, work)

    print("Work of each:\n")
    rows = []
    for workload in workloads:
        for program in programs:
            done = best.get((workload, program.name))
            if not done:
                continue
            count = counted.get((workload, program.name))
            is_counted = program.name not in ["csg-htsim", "ns-3 3.37"]
            retransmitted = number(done["retransmitted"]) if is_counted else "unknown"
            rows.append([
                f"{workload}, {part_of(workload, PARTS[workload])}", program.name,
                number(done["segments"]), retransmitted, f"{done['goodput']:,.1f} Mbit/s",
                number(done["ns"]), number(count) if count else "–",
            ])
    head = ["workload", "program", "segments", "retransmitted", "goodput", "ns/segment"]
    print(table([*head, "instructions/segment"], rows))


if __name__ == "__main__":
    main()

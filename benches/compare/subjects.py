"""The locks that benches/record.sh compares, and the processes that use them."""

import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from servers import MORTAL, cpus_apart

HERE = Path(__file__).parent

# What is measured of a lock.
LOCK = frozenset(["free", "contended", "dead"])


@dataclass(frozen=True)
class Subject:
    group: str
    name: str
    # The command of a worker; the place and the ttl in milliseconds follow.
    command: tuple
    place: str
    # What a worker is asked for.
    measures: frozenset = LOCK
    # Cycles of a round on a free lock.
    count: int = 300

    @property
    def renews(self):
        return self.name in ("crosslock", "python-redis-lock")


def subjects(places):
    """Those of one engine together, crosslock first."""
    rust = (os.environ["RECORD_PEERS"], "worker")
    python = (sys.executable, str(HERE / "locks.py"))
    etcd, zookeeper = places.address("etcd"), places.address("zookeeper")
    redis, files = f"redis://{places.address('redis')}/", str(places.directory)
    free_elsewhere = frozenset(["contended"])
    # The server counts what waiting processes ask.
    counted = LOCK | {"waiting"}
    # The command that runs under a lock outlives the program, and keeps the lock.
    commands = frozenset(["free", "contended"])
    return [
        Subject("Redis", "crosslock", (*rust, "crosslock"), redis, counted | {"late"}),
        Subject("Redis", "SET NX PX loop, 5 ms", (*rust, "SET NX PX loop, 5 ms"), redis, counted),
        Subject("Redis", "rslock", (*rust, "rslock"), redis, counted),
        Subject("Redis", "rslock, retry 5 ms", (*rust, "rslock, retry 5 ms"), redis, free_elsewhere),
        Subject("Redis", "redlock", (*rust, "redlock"), redis, counted),
        Subject("Redis", "redlock, retry 5 ms", (*rust, "redlock, retry 5 ms"), redis, free_elsewhere),
        Subject("Redis", "python-redis-lock", (*python, "python-redis-lock"), redis, counted),
        Subject("memory", "crosslock", (*rust, "crosslock"), "memory:", frozenset(["late"])),
        Subject("file", "crosslock", (*rust, "crosslock, file:"), files, LOCK | {"late"}),
        Subject("file", "flock(2)", (*rust, "flock(2)"), files),
        Subject("file", "fd-lock", (*rust, "fd-lock"), files),
        Subject("file", "fs4", (*rust, "fs4"), files),
        Subject("command", "crosslock run", (*rust, "crosslock run"), files, commands, 100),
        Subject("command", "flock(1)", (*rust, "flock(1)"), files, commands, 100),
        Subject("etcd", "crosslock", (*rust, "crosslock"), f"etcd://{etcd}"),
        Subject("etcd", "Go's concurrency", (os.environ["RECORD_GO"],), etcd),
        Subject("ZooKeeper", "crosslock", (*rust, "crosslock"), f"zk://{zookeeper}"),
        Subject("ZooKeeper", "Curator", ("java", "-cp", os.environ["RECORD_JARS"], "Curator"), zookeeper),
        Subject("ZooKeeper", "kazoo", (*python, "kazoo"), zookeeper),
    ]


class Failed(Exception):
    """A worker ended, or didn't answer in time."""


class Worker:
    """A process of a subject. It answers each line with lines of which the last is empty."""

    def __init__(self, subject, ttl, log):
        _, on = cpus_apart()
        self.rest = b""
        self.name = f"{subject.group}, {subject.name}"
        self.process = subprocess.Popen(
            [*MORTAL, *subject.command, subject.place, str(ttl)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=lambda: os.sched_setaffinity(0, on),
        )

    def ask(self, *words):
        try:
            self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
            self.process.stdin.flush()
        except OSError as e:
            raise Failed(f"{self.name}: {e}") from e

    def answer(self, seconds=60):
        """Rows of numbers."""
        output, end = self.process.stdout.fileno(), time.monotonic() + seconds
        while not (self.rest == b"\n" or b"\n\n" in self.rest):
            ready, _, _ = select.select([output], [], [], max(0, end - time.monotonic()))
            part = os.read(output, 1 << 16) if ready else b""
            if not part:
                why = "it has ended" if ready else f"no answer in {seconds} s"
                raise Failed(f"{self.name}: {why}")
            self.rest += part
        lines, self.rest = (b"", b"") if self.rest == b"\n" else self.rest.split(b"\n\n", 1)
        return [[int(word) for word in line.split()] for line in lines.splitlines()]

    def kill(self):
        self.process.kill()
        self.process.wait()

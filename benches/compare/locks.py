#!/usr/bin/env python3
"""A worker of benches/record.sh with the locks of Python: python-redis-lock and kazoo.

measure.py describes the lines of its input.
"""

import sys
import time
from contextlib import contextmanager


def redis_locks(url, ttl):
    import redis
    import redis_lock

    # Without this, a waiter fails after the client's 5 seconds.
    client = redis.Redis.from_url(url, socket_timeout=None)

    def lock(name):
        # Renewed in a thread, as crosslock's are.
        return redis_lock.Lock(client, name, expire=ttl, auto_renewal=True)

    return lock


def kazoo_locks(hosts, ttl):
    from kazoo.client import KazooClient

    client = KazooClient(hosts=hosts, timeout=ttl)
    client.start(timeout=60)
    return lambda name: client.Lock(f"/kazoo/{name}")


@contextmanager
def holding(lock):
    if not lock.acquire():
        raise RuntimeError("not acquired")
    try:
        yield
    finally:
        lock.release()


def free(lock, count):
    now = time.monotonic_ns
    for _ in range(int(count)):
        asked = now()
        with holding(lock):
            had = now()
        yield f"{had - asked} {now() - had}"


def contend(lock, until, hold):
    now = time.monotonic_ns
    seconds = int(hold) / 1e9
    while now() < int(until):
        asked = now()
        with holding(lock):
            had = now()
            time.sleep(seconds)
            released = now()
        yield f"{asked} {had} {released}"


def take(lock):
    with holding(lock):
        print(time.monotonic_ns(), end="\n\n", flush=True)
        sys.stdin.readline()
    return ()


def main():
    subject, place, ttl = sys.argv[1:]
    kinds = {"python-redis-lock": redis_locks, "kazoo": kazoo_locks}
    make = kinds[subject](place, int(ttl) // 1000)
    locks = {}
    while line := sys.stdin.readline():
        verb, name, *arguments = line.split()
        lock = locks.get(name) or locks.setdefault(name, make(name))
        lines = list({"free": free, "contend": contend, "take": take}[verb](lock, *arguments))
        print("\n".join([*lines, ""]), flush=True)


main()

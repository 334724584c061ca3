#!/usr/bin/env python3
"""Measures crosslock beside other locks. benches/record.sh builds what it needs, and runs it.

Each subject has four worker processes, which are there all the time. A worker reads a line, does it, and answers with
lines of numbers and an empty one. Times are nanoseconds of CLOCK_MONOTONIC.

    free NAME COUNT          locks and unlocks that often: a line "LOCK UNLOCK" each
    contend NAME UNTIL HOLD  locks, sleeps, unlocks until then: a line "ASKED HAD RELEASED" each
    take NAME                locks: a line "HAD"; the next line of the input has it unlock
    late NAME COUNT          inserts that many tasks into a delay queue, and works on them: a line "LATE" each

Rounds of all subjects take turns in an order that changes each time. The servers have the first CPU, all workers the
others.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

from servers import Places, commands
from subjects import Failed, Worker, subjects
from versions import versions

PROCESSES = 4
HOLD = 1_000_000
TTL, SHORT_TTL, LONG_TTL = 10_000, 4_000, 60_000
TASKS = 400
# Percentiles of how late tasks are.
SHARES = [1, 5, 10, 25, 50, 75, 90, 95, 99, 100]
# How many processes wait.
CROWDS = [1, 8, 64]
MEASURES = ["free", "contended", "dead", "late", "waiting"]


def part(samples, share):
    samples = sorted(samples)
    return samples[int((len(samples) - 1) * share)]


def measure_free(workers, subject, _seconds):
    workers[0].ask("free", "free", subject.count)
    both = [(lock + unlock) / 1e3 for lock, unlock in workers[0].answer()]
    return {"p50 us": round(part(both, 0.5), 2), "p99 us": round(part(both, 0.99), 2), "count": len(both)}


def contend(workers, seconds):
    begin = time.monotonic_ns()
    until = begin + int(seconds * 1e9)
    for worker in workers:
        worker.ask("contend", "contended", until, HOLD)
    return [worker.answer(60 + seconds) for worker in workers]


def measure_contended(workers, _subject, seconds):
    logs = contend(workers, seconds)
    if not all(logs):
        raise Failed(f"{workers[0].name}: a process came too late to lock at all")
    cycles = sorted((had, released) for log in logs for _, had, released in log)
    # Of each process: all together would mostly be those of a process that keeps the others out.
    waits = [part([(had - asked) / 1e6 for asked, had, _ in log], 0.99) for log in logs]
    served = [len(log) for log in logs]
    return {
        "locks/s": round(len(cycles) / seconds, 1),
        "fairness": round(min(served) / max(served), 3),
        "wait p99 ms": round(max(waits), 3),
        "overlaps": sum(later[0] < earlier[1] for earlier, later in zip(cycles, cycles[1:])),
    }


def measure_late(workers, _subject, _seconds):
    workers[0].ask("late", "late", TASKS)
    late = [nanoseconds / 1e3 for (nanoseconds,) in workers[0].answer()]
    return {f"p{share} us": round(part(late, share / 100), 1) for share in SHARES}


class Run:
    def __init__(self, options, places, log):
        self.options, self.places, self.log = options, places, log
        self.subjects = [subject for subject in subjects(places) if subject.measures & set(options.measures)]
        self.workers = {}
        self.failed = []
        self.lines = []

    def log_failure(self, subject, failure):
        print(f"left out from here on: {failure}", file=sys.stderr)
        self.failed.append(f"{subject.group}, {subject.name}")
        self.subjects.remove(subject)

    def measure(self, options):
        few = min(options.rounds, 3)
        actions = {
            "free": lambda: self.turns("free", 2 * options.rounds, measure_free),
            "contended": lambda: self.turns("contended", options.rounds, measure_contended),
            "dead": lambda: self.dead(few),
            "late": lambda: self.turns("late", 2 * options.rounds, measure_late),
            "waiting": lambda: self.waiting(few),
        }
        for measure in options.measures:
            actions[measure]()

    def start(self):
        """Starts all workers, which connect, load scripts and compile."""
        for subject in list(self.subjects):
            self.workers[subject] = [Worker(subject, TTL, self.log) for _ in range(PROCESSES)]
            try:
                for number, worker in enumerate(self.workers[subject]):
                    worker.ask("free", f"own-{number}", subject.count)
                for worker in self.workers[subject]:
                    worker.answer(120)
                contend(self.workers[subject], 0.2)
            except Failed as e:
                self.log_failure(subject, e)

    def turns(self, measure, rounds, action):
        """A round of each subject after the other, `rounds` times."""
        for subject, number in self.order(measure, rounds):
            try:
                figures = action(self.workers[subject], subject, self.options.seconds)
            except Failed as e:
                self.log_failure(subject, e)
                continue
            self.add(measure, subject, number, figures)

    def order(self, measure, rounds):
        for number in range(1, rounds + 1):
            order = [subject for subject in self.subjects if measure in subject.measures]
            random.Random(number).shuffle(order)
            for subject in order:
                yield subject, number
            print(f"{measure}: round {number} of {rounds}", file=sys.stderr)

    def waiting(self, rounds):
        """Commands of the server while one process holds the lock and others wait."""
        for subject, number in self.order("waiting", rounds):
            try:
                for crowd in CROWDS:
                    figures = {"waiting": crowd, "commands/s": self.commands_of(subject, crowd, f"crowd-{number}-{crowd}")}
                    self.add("waiting", subject, number, figures)
            except Failed as e:
                self.log_failure(subject, e)

    def commands_of(self, subject, crowd, name):
        """Counts for one ttl, the longest pause of a waiter. A holder that doesn't renew its lease has a longer one."""
        ttl = TTL if subject.renews else LONG_TTL
        workers = [Worker(subject, ttl, self.log) for _ in range(crowd + 1)]
        try:
            warm_up(*workers)
            holder, *waiters = workers
            holder.ask("take", name)
            holder.answer()
            for worker in waiters:
                worker.ask("take", name)
            time.sleep(1)
            address, begin = self.places.address("redis"), time.monotonic()
            before = commands(address)
            time.sleep(min(5 * self.options.seconds, TTL / 1000))
            # Without the first question.
            count = commands(address) - before - 1
            return round(count / (time.monotonic() - begin), 1)
        finally:
            for worker in workers:
                worker.kill()

    def add(self, measure, subject, number, figures):
        which = {"measure": measure, "engine": subject.group, "lock": subject.name, "round": number}
        self.lines.append(which | figures)

    def dead(self, rounds):
        """A holder is killed while another process waits. The waiters of all subjects wait at once."""
        for number in range(1, rounds + 1):
            pairs = {}
            try:
                for subject in [subject for subject in self.subjects if "dead" in subject.measures]:
                    pairs[subject] = [Worker(subject, SHORT_TTL, self.log) for _ in range(2)]
                self.attempt(pairs, lambda pair: warm_up(*pair))
                killed = self.attempt(pairs, lambda pair: kill_holder(*pair, f"dead-{number}"))
                had = self.attempt(killed, lambda pair: pair[1].answer()[0][0], pairs)
                for subject in had:
                    self.add("dead", subject, number, {"s": round((had[subject] - killed[subject]) / 1e9, 3)})
            finally:
                for worker in [worker for pair in pairs.values() for worker in pair]:
                    worker.kill()
            print(f"dead: round {number} of {rounds}", file=sys.stderr)

    def attempt(self, subjects, action, pairs=None):
        """What the action returns for the workers of each subject that hasn't failed."""
        results, pairs = {}, pairs or subjects
        for subject in [subject for subject in subjects if subject in self.subjects]:
            try:
                results[subject] = action(pairs[subject])
            except Failed as e:
                self.log_failure(subject, e)
        return results

    def stop(self):
        for worker in [worker for all in self.workers.values() for worker in all]:
            worker.kill()


def warm_up(*workers):
    """They connect, and load scripts."""
    for worker in workers:
        worker.ask("free", f"warm-{worker.process.pid}", 1)
    for worker in workers:
        worker.answer()


def kill_holder(holder, waiter, name):
    """Returns when it was killed: early in its lease, so that renewal makes no difference."""
    holder.ask("take", name)
    holder.answer()
    waiter.ask("take", name)
    time.sleep(0.1)
    killed = time.monotonic_ns()
    holder.kill()
    return killed


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def cpu_model():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), "unknown")


def busy_percent(seconds=2):
    """How much of the CPUs' time others use. The load still counts the builds before."""

    def times():
        numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        # Idle, and waiting for disks.
        return sum(numbers[3:5]), sum(numbers)

    (idle, all), _, (idle_after, all_after) = times(), time.sleep(seconds), times()
    return round(100 * (1 - (idle_after - idle) / (all_after - all)))


def head(options):
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": said("git", "describe", "--always", "--dirty"),
        "cpus": os.cpu_count(),
        "cpu": cpu_model(),
        "kernel": os.uname().release.split("-")[0],
        "load before": round(os.getloadavg()[0], 2),
        "busy before %": busy_percent(),
        "seconds": options.seconds,
        "rounds": options.rounds,
        "measures": options.measures,
        "versions": versions(),
    }


def main():
    parser = argparse.ArgumentParser(prog="benches/record.sh")
    parser.add_argument("--seconds", type=float, default=2, help="length of a contended round (2)")
    parser.add_argument("--rounds", type=int, default=5, help="contended rounds of a lock (5), half of the free ones")
    parser.add_argument("--measures", nargs="+", choices=MEASURES, default=MEASURES, help="what to measure (all)")
    parser.add_argument("--append", action="store_true", help="add this run to the record, if there is one of this day")
    parser.add_argument("--output", type=Path, help="the record (benches/record/DATE.jsonl)")
    options = parser.parse_args()
    first = head(options)
    output = options.output or Path(__file__).parents[1] / "record" / f"{first['date'][:10]}.jsonl"
    log = Path(os.environ["RECORD_LOG"])
    with tempfile.TemporaryDirectory() as directory, log.open("wb") as errors, Places(directory) as places:
        run = Run(options, places, errors)
        try:
            run.start()
            run.measure(options)
        finally:
            run.stop()
    first |= {"load after": round(os.getloadavg()[0], 2), "busy after %": busy_percent(), "failed": run.failed}
    output.parent.mkdir(exist_ok=True)
    with output.open("a" if options.append else "w") as record:
        record.writelines(json.dumps(line) + "\n" for line in [first, *run.lines])
    print(f"recorded in {output}; now run benches/report.py")
    overlaps = sum(line.get("overlaps", 0) for line in run.lines)
    if run.failed or overlaps:
        raise SystemExit(f"failed: {run.failed}; holders that overlap: {overlaps}; see {log}")


main()

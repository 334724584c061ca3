#!/usr/bin/env python3
"""Makes docs/benchmarks.md's figures and pictures from the newest record of benches/record.sh.

    benches/report.py                      writes what stands between the page's markers, and docs/img/benchmarks_*.svg
    benches/report.py --check              writes nothing, and fails if the page or a picture differs from the record
    benches/report.py --compare OLD [NEW]  lists what of crosslock became slower by more than 10 % since OLD, a file

Figures are medians of rounds. NEW is the newest record if it isn't named.
"""

import argparse
import json
import re
import statistics
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "img"
sys.path.insert(0, str(IMAGES))

from svg import Picture, logarithmic, save_or_check  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
NO_RECORD = "There is no record yet."
# How a figure that was measured looks. On the pages for users there is none outside of the markers.
MEASURED = re.compile(
    r"\d\s*(?:us|µs|ns|/s)(?!\w)"
    r"|\d (?:locks|hand-offs|commands|requests|messages|tasks) (?:a|per) second"
    r"|\d times (?:as|faster|slower)"
)

# Measure, figure, head of its column, digits, and whether more is better.
FIGURES = [
    ("free", "p50 us", "free: p50, us", 1, False),
    ("free", "p99 us", "p99, us", 1, False),
    ("contended", "locks/s", "contended: locks a second", 0, True),
    ("contended", "fairness", "fairness", 2, True),
    ("contended", "wait p99 ms", "wait: p99, ms", 1, False),
    ("dead", "s", "dead holder, s", 2, False),
]

# Of the figures above, those with bars: the title, and what stands above the bars.
BARS = {
    "free": (
        0,
        "Lock and unlock of a free lock, in microseconds: shorter is better",
        "microseconds to lock and unlock: shorter is better",
    ),
    "rate": (2, "Locks a second with four processes: longer is better", "locks a second: longer is better"),
    "wait": (
        4,
        "The 99th percentile of waits in the process that waits longest, in milliseconds: shorter is better",
        "99th percentile of waits in milliseconds: shorter is better",
    ),
}

# Sections of the page that a run of their own may measure.
SECTIONS = {"late": "[Delayed tasks](#delayed-tasks)", "waiting": "[Waiting processes](#waiting-processes)"}

LATE = "How late tasks reach a waiting worker: the share of tasks, by the time after they were due"
WAITING = "Commands a second of a Redis server, by the number of processes that wait for one lock"


class Record:
    """One run, or several that measured different things."""

    def __init__(self, path):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.heads = [line for line in lines if "commit" in line]
        rounds = sorted((line for line in lines if "measure" in line), key=place)
        samples, late, waiting = {}, {}, {}
        for line in rounds:
            lock = line["engine"], line["lock"]
            for measure, figure, *_ in FIGURES:
                if line["measure"] == measure:
                    samples.setdefault((*lock, measure, figure), []).append(line[figure])
            if line["measure"] == "late":
                for figure in [figure for figure in line if figure.startswith("p")]:
                    late.setdefault(line["engine"], {}).setdefault(int(figure[1:-3]), []).append(line[figure])
            if line["measure"] == "waiting":
                waiting.setdefault(line["lock"], {}).setdefault(line["waiting"], []).append(line["commands/s"])
        self.medians = medians(samples)
        # Of each engine, microseconds by the share of tasks in percent.
        self.late = {engine: medians(shares) for engine, shares in late.items()}
        # Of each lock, commands a second by the number of waiting processes.
        self.waiting = {lock: medians(crowds) for lock, crowds in waiting.items()}
        self.locks = list(dict.fromkeys((engine, lock) for engine, lock, *_ in samples))

    def figure(self, lock, number):
        return self.medians.get((*lock, *FIGURES[number][:2]))

    def shown(self, lock, number):
        value = self.figure(lock, number)
        return "" if value is None else text(value, FIGURES[number][3])


def medians(samples):
    return {key: statistics.median(values) for key, values in samples.items()}


def place(line):
    """crosslock stands first, its engines in the order of the page, and the others by name."""
    engines = ["Redis", "file", "memory", "command", "etcd", "ZooKeeper"]
    return engines.index(line["engine"]), not line["lock"].startswith("crosslock"), line["lock"].lower()


def text(value, digits):
    """Three digits are enough of a large number."""
    return f"{value:.{0 if value >= 100 else digits}f}"


def newest():
    records = sorted((ROOT / "benches" / "record").glob("*.jsonl"))
    return records[-1] if records else None


def about(record):
    first, *others = record.heads
    versions = ", ".join(f"{name} {version}" for name, version in first["versions"].items())
    sentences = [
        f"Recorded on {first['date'][:10]} at commit `{first['commit']}`, on {first['cpus']} CPUs ({first['cpu']})",
        f"with Linux {first['kernel']}. Other programs used {first['busy before %']} % of the CPUs before.",
    ]
    for head in others:
        sections = " and ".join(SECTIONS[measure] for measure in head["measures"])
        busy = f"Other programs used {head['busy before %']} % of the CPUs before"
        busy += f" and {head['busy after %']} % after." if "busy after %" in head else "."
        sentences.append(f"{sections} were recorded on {head['date'][:10]} at commit `{head['commit']}`. {busy}")
    return "\n".join(textwrap.wrap(" ".join([*sentences, f"Versions: {versions}."]), 120))


def table(record):
    rows = [["engine", "lock", *(column for _, _, column, _, _ in FIGURES)]]
    rows.append(["---", "---", *["--:" for _ in FIGURES]])
    for lock in record.locks:
        rows.append([*lock, *(record.shown(lock, number) for number in range(len(FIGURES)))])
    return "\n".join("|".join(["", *row, ""]) for row in rows)


def bars(record, number, title, caption):
    """A bar for each lock. Each engine has its own scale."""
    locks = [lock for lock in record.locks if record.figure(lock, number) is not None]
    engines = dict.fromkeys(engine for engine, _ in locks)
    picture = Picture(title, 24 * len(engines) + 22 * len(locks) + 22)
    picture.text(0, 12, caption, "muted")
    left, longest, y = 152, 230, 18
    for engine in engines:
        y += 24
        picture.text(0, y - 6, engine, "muted")
        own = [lock for lock in locks if lock[0] == engine]
        most = max(record.figure(lock, number) for lock in own)
        for lock in own:
            kind = "a bar" if lock[1].startswith("crosslock") else "muted bar"
            width = max(1, longest * record.figure(lock, number) / most)
            picture.text(left - 8, y + 15, lock[1], anchor="end")
            picture.box(left, y + 2, width, 17, kind)
            picture.text(left + width + 6, y + 15, record.shown(lock, number))
            y += 22
    return picture.whole()


def late(record):
    """A curve for each engine: how many percent of the tasks were taken by then."""
    picture = Picture(LATE, 292)
    x, y = logarithmic(10, 10_000, 52, 418), lambda share: 196 - 1.72 * share
    picture.text(0, 12, "share of tasks taken, by the time after they were due", "muted")
    for value in (10, 100, 1_000, 10_000):
        picture.line((x(value), y(0)), (x(value), y(100)), kind="muted thin")
        picture.text(x(value), 214, duration(value), "muted", "middle")
    for share in (0, 50, 100):
        picture.line((x(10), y(share)), (x(10_000), y(share)), kind="muted thin")
        picture.text(46, y(share) + 4, f"{share} %", "muted", "end")
    for number, (engine, shares) in enumerate(record.late.items()):
        kind = ("a", "b", "warn")[number]
        points = [(x(min(max(late, 10), 10_000)), y(share)) for share, late in shares.items() if share < 100]
        picture.line(*points, kind=f"{kind} line")
        row = 240 + 20 * number
        picture.text(x(10), row, engine, kind)
        picture.text(130, row, f"50 % within {duration(shares[50])}")
        picture.text(282, row, f"99 % within {duration(shares[99])}")
    return picture.whole()


def duration(us):
    return f"{text(us, 0)} us" if us < 1_000 else f"{us / 1_000:.2g} ms"


def waiting(record):
    """A line for each lock. Both axes are logarithmic."""
    picture = Picture(WAITING, 280)
    x, y = logarithmic(1, 64, 56, 286), logarithmic(0.5, 10_000, 234, 32)
    picture.text(0, 12, "commands a second", "muted")
    for value in (1, 10, 100, 1_000, 10_000):
        picture.line((x(1), y(value)), (x(64), y(value)), kind="muted thin")
        picture.text(50, y(value) + 4, f"{value:,}", "muted", "end")
    for crowd in (1, 8, 64):
        picture.text(x(crowd), 252, str(crowd), "muted", "middle")
    picture.text(x(8), 271, "waiting processes", "muted", "middle")
    label = 0
    for lock, crowds in sorted(record.waiting.items(), key=lambda item: -item[1][64]):
        kind = "a" if lock == "crosslock" else "muted"
        points = [(x(crowd), y(max(count, 0.5))) for crowd, count in sorted(crowds.items())]
        picture.line(*points, kind=f"{kind} line")
        # One below the other, also where lines end at the same height.
        label = max(label + 16, points[-1][1] + 4)
        picture.text(x(64) + 7, label, lock, kind)
    return picture.whole()


def pictures(record):
    drawn = {name: bars(record, *rest) for name, rest in BARS.items()}
    drawn |= {"late": late(record)} if record.late else {}
    drawn |= {"waiting": waiting(record)} if record.waiting else {}
    return {IMAGES / f"benchmarks_{name}.svg": picture for name, picture in drawn.items()}


def parts(record):
    """What stands behind each marker."""
    if not record:
        return {"about": NO_RECORD, "table": NO_RECORD} | dict.fromkeys([*BARS, "late", "waiting"], NO_RECORD)
    titles = {name: title for name, (_, title, _) in BARS.items()} | {"late": LATE, "waiting": WAITING}
    images = {name: f"![{title}][img/benchmarks_{name}.svg]" for name, title in titles.items()}
    images |= {name: NO_RECORD for name in ("late", "waiting") if not getattr(record, name)}
    return {"about": about(record), "table": table(record)} | images


def marked(name):
    return re.compile(rf"(<!-- record: {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)


def filled(page, record):
    for name, part in parts(record).items():
        page, count = marked(name).subn(lambda found: found[1] + part + found[2], page)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has {count} places for <!-- record: {name} -->")
    return page


def measured_outside(path):
    """Figures of which nobody knows from which record they are."""
    page = marked(".*?").sub("", path.read_text())
    lines = [line for line in page.splitlines() if MEASURED.search(line)]
    return [f"{path.name} has a figure that isn't of a record: {line}" for line in lines]


def write_or_check(check):
    path = newest()
    record = Record(path) if path else None
    drawn = pictures(record) if record else {}
    texts = {PAGE: filled(PAGE.read_text(), record)}
    wrong = save_or_check(texts | drawn, check)
    problems = [f"{path.relative_to(ROOT)} differs: run benches/report.py" for path in wrong]
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/cli/*.md"))]
    problems += [line for page in pages for line in measured_outside(page)]
    if problems:
        raise SystemExit("\n".join(problems))


def changes(old, new, locks):
    """By what share each figure became worse."""
    for lock in locks:
        for number, (measure, figure, _, _, more_is_better) in enumerate(FIGURES):
            before, after = old.figure(lock, number), new.figure(lock, number)
            if before and after:
                worse = before / after if more_is_better else after / before
                yield f"{', '.join(lock)}: {measure}, {figure}", before, after, worse - 1


def compare(old, new):
    """Returns whether something of crosslock became slower."""
    ours = [lock for lock in new.locks if lock[1].startswith("crosslock")]
    slower = [change for change in changes(old, new, ours) if change[3] > 0.1]
    for what, before, after, worse in slower:
        print(f"{what}: {before:g} before, {after:g} now, {worse:.0%} worse")
    others = [change[3] for change in changes(old, new, [lock for lock in new.locks if lock not in ours])]
    if others:
        print(f"{len(slower)} figures of crosslock are worse. Other locks: {statistics.median(others):+.0%} (median)")
    return bool(slower)


def main():
    parser = argparse.ArgumentParser(prog="benches/report.py")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--compare", nargs="+", type=Path, metavar=("OLD", "NEW"))
    options = parser.parse_args()
    if not options.compare:
        return write_or_check(options.check)
    old, new, *_ = [*options.compare, newest()]
    return sys.exit(compare(Record(old), Record(new)))


main()

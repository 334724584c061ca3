#!/usr/bin/env python3
"""Draws the pictures of the pages beside itself.

    docs/img/draw.py [--check]

With --check it writes nothing, and fails if a picture isn't what it would draw.
"""

import json
import sys
from pathlib import Path

from svg import Picture, save_or_check

HERE = Path(__file__).parent


def lease():
    picture = Picture("The life of a lease", 176)
    third = 40
    grant, crash = 76, 221
    last = grant + 3 * third
    end = last + 3 * third
    picture.text(0, 50, "process A")
    picture.box(grant, 32, crash - grant, 27, "a bar")
    picture.box(crash, 32, end - crash, 27, "a faint")
    picture.text(grant + 72, 50, "token 7", "on", "middle")
    picture.text((crash + end) / 2 + 4, 50, "not renewed", "muted", "middle")
    picture.text(grant, 14, "lock", "a", "middle")
    picture.text(grant + 2 * third, 14, "renewals", "a", "middle")
    for x in [grant] + [grant + third * count for count in (1, 2, 3)]:
        picture.line((x, 20), (x, 32), kind="a line")
    picture.text(crash + 9, 14, "crash", "bad")
    picture.cross(crash, 45)
    picture.line((crash, 20), (crash, 38), kind="bad line")
    picture.arrow((last + 4, 72), (end, 72), "muted")
    picture.line((last, 62), (last, 82))
    picture.text((last + end) / 2, 90, "ttl", "muted", "middle")
    picture.text(0, 122, "process B")
    picture.box(126, 104, end - 126, 27, "b open")
    picture.box(end, 104, 440 - end, 27, "b bar")
    picture.text((126 + end) / 2, 122, "waits", "muted", "middle")
    picture.text((440 + end) / 2, 122, "token 8", "on", "middle")
    picture.line((end, 20), (end, 140), kind="muted thin")
    picture.text(end - 26, 14, "the lease ends", "muted")
    picture.arrow((grant, 150), (440, 150), "muted")
    picture.text(440, 170, "time", "muted", "end")
    return picture


def hand_off():
    picture = Picture("A hand-off between processes", 236)
    a, server, b, c = 44, 172, 288, 404
    for x, name, note in [
        (a, "process A", "holds"),
        (server, "server", "queue: B, C"),
        (b, "process B", "waits"),
        (c, "process C", "waits"),
    ]:
        picture.text(x, 14, name, anchor="middle")
        picture.text(x, 32, note, "muted", "middle")
        picture.line((x, 42), (x, 228), kind="muted thin")
    picture.box(a - 7, 42, 14, 60, "a bar")
    picture.arrow((a + 7, 102), (server - 7, 102), "a")
    picture.text((a + server) / 2, 94, "release", "a", "middle")
    picture.box(server - 7, 102, 14, 42, "muted bar")
    picture.text(server - 14, 122, "one script:", "muted", "end")
    picture.text(server - 14, 139, "B owns the lock", "muted", "end")
    picture.arrow((server + 7, 144), (b - 7, 144), "b")
    picture.text((server + b) / 2, 118, "one message:", "b", "middle")
    picture.text((server + b) / 2, 135, "it is yours", "b", "middle")
    picture.box(b - 7, 42, 14, 102, "b open")
    picture.box(b - 7, 144, 14, 84, "b bar")
    picture.box(c - 7, 42, 14, 186, "muted open")
    picture.text(b + 14, 166, "holds", "b")
    picture.text(c - 13, 88, "hears", "muted", "end")
    picture.text(c - 13, 105, "nothing", "muted", "end")
    picture.text(server - 14, 166, "queue: C", "muted", "end")
    return picture


def fencing():
    picture = Picture("A fencing token stops a lost lease", 268)
    a, storage, b = 40, 210, 364
    for x, name in [(a, "process A"), (storage, "storage"), (b, "process B")]:
        picture.text(x, 14, name, anchor="middle")
    picture.line((storage, 24), (storage, 262), kind="muted thin")
    picture.box(a - 7, 24, 14, 46, "a bar")
    picture.text(a + 14, 42, "holds,", "a")
    picture.text(a + 14, 58, "token 33", "a")
    picture.box(a - 7, 70, 14, 146, "a faint")
    picture.text(a + 14, 90, "paused", "muted")
    picture.line((0, 112), (440, 112), kind="bad thin")
    picture.text(a + 14, 107, "A’s lease ends", "bad")
    picture.box(b - 7, 112, 14, 150, "b bar")
    picture.text(b + 14, 132, "holds,", "b")
    picture.text(b + 14, 148, "token 34", "b")
    picture.arrow((b - 7, 172), (storage + 5, 172), "b")
    picture.text((b + storage) / 2, 164, "write, token 34", "b", "middle")
    picture.text(storage - 10, 176, "stored", "b", "end")
    picture.text(a + 14, 206, "runs again", "muted")
    picture.box(a - 7, 216, 14, 46, "a bar")
    picture.arrow((a + 7, 236), (storage - 12, 236), "a")
    picture.text((a + storage) / 2, 228, "write, token 33", "a", "middle")
    picture.cross(storage, 236)
    picture.text(storage + 12, 233, "rejected:", "bad")
    picture.text(storage + 12, 250, "33 is less than 34", "bad")
    return picture


def run():
    picture = Picture("crosslock run when renewals fail", 238)
    left, second = 78, 17

    def at(time):
        return left + second * time

    picture.text(0, 58, "lease")
    picture.box(at(0), 40, at(20) - at(0), 27, "a bar")
    picture.text(at(10), 58, "20 s after the last renewal", "on", "middle")
    for time in (4, 8, 12, 16):
        picture.cross(at(time), 28)
    picture.text(at(0), 14, "renewed", "a", "middle")
    picture.line((at(0), 22), (at(0), 40), kind="a line")
    picture.text(at(10), 14, "renewals fail", "bad", "middle")
    picture.text(0, 108, "command")
    picture.box(at(0), 90, at(13.8) - at(0), 27, "b bar")
    picture.text(at(6.9), 108, "runs", "on", "middle")
    picture.box(at(13.8), 90, at(18.8) - at(13.8), 27, "warn bar")
    picture.text(at(16.3), 108, "stops", "on", "middle")
    for time, height, what, kind in [
        (13.8, 150, "13.8 s: SIGTERM", "warn"),
        (18.8, 174, "18.8 s: SIGKILL", "bad"),
        (20, 198, "20 s: another process may hold the lock", "muted"),
    ]:
        picture.line((at(time), 68), (at(time), height - 14), kind=f"{kind} thin")
        picture.text(at(time) + 4, height, what, kind, "end")
    picture.arrow((at(0), 214), (at(20) + 20, 214), "muted")
    picture.text(at(20) + 20, 233, "time", "muted", "end")
    return picture


def watch():
    """Frames that watch.py has recorded, one after the other."""
    frames = json.loads((HERE / "watch.json").read_text())
    panes = {"counter": "$ cargo run --example counter -- --increments 100000", "watch": "$ crosslock watch"}
    lines = {pane: max(len(frame[pane]) for frame in frames) for pane in panes}
    line = 18
    picture = Picture("crosslock watch beside four processes that count", line * (sum(lines.values()) + 2) + 34)
    picture.animate(len(frames))
    y = 0
    for pane, command in panes.items():
        picture.text(8, y + 16, command, "mono muted")
        height = line * lines[pane] + 10
        picture.box(0.5, y + 0.5, picture.width - 1, height + line, "muted frame")
        for number, frame in enumerate(frames):
            with picture.shown_in(number):
                for row, words in enumerate(frame[pane]):
                    picture.text(8, y + line * (row + 2) - 2, words, "mono")
        y += height + line + 6
    return picture


PICTURES = {"lease": lease, "hand_off": hand_off, "fencing": fencing, "run": run, "watch": watch}


def main():
    check = sys.argv[1:] == ["--check"]
    drawn = {HERE / f"{name}.svg": draw().whole() for name, draw in PICTURES.items()}
    wrong = save_or_check(drawn, check)
    if wrong:
        raise SystemExit(f"run docs/img/draw.py: {', '.join(path.name for path in wrong)} differ")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Records what `crosslock watch` shows beside the counter example, for draw.py: watch.json.

    cargo build --release -p crosslock-cli && cargo build --release --example counter
    docs/img/watch.py [TARGET DIRECTORY]

Needs tmux.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLUMNS, SECONDS = 54, [0.8, 1.6, 2.4, 3.2]
SOCKET = "crosslock-pictures"


def tmux(*words):
    return subprocess.run(["tmux", "-L", SOCKET, *words], check=True, capture_output=True, text=True).stdout


def pane(session, lines, command):
    tmux("new-session", "-d", "-s", session, "-x", str(COLUMNS), "-y", str(lines), command)


def screen(session):
    return tmux("capture-pane", "-p", "-t", session).rstrip("\n").split("\n")


def main():
    target = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1] / "target") / "release"
    with tempfile.TemporaryDirectory() as directory:
        url = f"CROSSLOCK_URL=file://{directory}"
        try:
            pane("watch", 10, f"{url} {target}/crosslock watch")
            time.sleep(0.5)
            pane("counter", 4, f"{url} {target}/examples/counter --increments 100000; sleep 60")
            frames, begin = [], time.monotonic()
            for second in SECONDS:
                time.sleep(max(0, begin + second - time.monotonic()))
                frames.append({"counter": screen("counter"), "watch": screen("watch")})
        finally:
            tmux("kill-server")
    (HERE / "watch.json").write_text(json.dumps(frames, indent=1) + "\n")


main()

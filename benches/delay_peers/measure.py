"""Starts the workers of a peer, and says how late they have tasks, and how soon a killed worker's task is another's.

measure.py PORT TASKS NAME COMMAND...

COMMAND PORT worker            prints `ready`, and `<task> <microseconds late>` for each task; of task `hold` it never ends
COMMAND PORT produce N START   adds N tasks, of which a thousand are due each second from START on, in seconds since 1970
COMMAND PORT hold              adds the task `hold`, due at once
"""

import queue
import subprocess
import sys
import threading
import time

WORKERS = 4
GIVE_UP = 100

port, tasks, name, *command = sys.argv[1:]
tasks = int(tasks)
lines = queue.Queue()


def start():
    worker = subprocess.Popen([*command, port, "worker"], stdout=subprocess.PIPE, text=True)

    def read():
        for line in worker.stdout:
            lines.put((worker, line.split()))

    threading.Thread(target=read, daemon=True).start()
    return worker


def await_line(word, timeout):
    end = time.monotonic() + timeout
    while (left := end - time.monotonic()) > 0:
        try:
            worker, words = lines.get(timeout=left)
        except queue.Empty:
            break
        if words and words[0] == word:
            return worker
    return None


def produce(*arguments):
    subprocess.run([*command, port, *map(str, arguments)], check=True)


workers = [start() for _ in range(WORKERS)]
for _ in workers:
    assert await_line("ready", 30), f"{name}'s workers don't start"
time.sleep(1)
produce("produce", tasks, time.time() + 5)
late = []
while len(late) < tasks:
    _, words = lines.get(timeout=60)
    late.append(int(words[1]))
late.sort()
print(f"{name}: {tasks} tasks late us: p50 {late[tasks // 2]}, p99 {late[tasks * 99 // 100]}, max {late[-1]}")

produce("hold")
holder = await_line("hold", 30)
assert holder, f"{name}'s workers don't take the task"
killed = time.monotonic()
holder.kill()
again = await_line("hold", GIVE_UP)
print(f"{name}: a killed worker's task again after", f"{time.monotonic() - killed:.1f} s" if again else f"more than {GIVE_UP} s")
for worker in workers:
    worker.kill()

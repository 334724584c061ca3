"""arq as a peer: see measure.py."""

import asyncio
import sys
import time
from datetime import datetime, timezone

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker

port, role, *arguments = sys.argv[1:]
settings = RedisSettings(port=int(port))


async def task(_, name, due):
    print(name, round((time.time() - due) * 1e6), flush=True)
    if name == "hold":
        await asyncio.Event().wait()


async def produce():
    pool = await create_pool(settings)
    if role == "hold":
        await pool.enqueue_job("task", "hold", time.time())
        return
    count, start = int(arguments[0]), float(arguments[1])
    for number in range(count):
        due = start + number / 1000
        await pool.enqueue_job("task", f"task{number}", due, _defer_until=datetime.fromtimestamp(due, timezone.utc))


async def ready(_):
    print("ready", flush=True)


if role == "worker":
    Worker([task], redis_settings=settings, on_startup=ready, handle_signals=False).run()
else:
    asyncio.run(produce())

// BullMQ as a peer: see measure.py.
import { Queue, Worker } from "bullmq";

const [port, role, count, start] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const now = () => performance.timeOrigin + performance.now();

if (role === "worker") {
  const worker = new Worker("bench", async (job) => {
    console.log(`${job.name} ${Math.round((now() - job.data.due) * 1000)}`);
    if (job.name === "hold") await new Promise(() => {});
  }, { connection });
  await worker.waitUntilReady();
  console.log("ready");
} else {
  const queue = new Queue("bench", { connection });
  const add = (name, due) => ({ name, data: { due }, opts: { delay: Math.max(0, due - now()), removeOnComplete: true } });
  if (role === "produce") {
    const due = (task) => Number(start) * 1000 + task;
    for (let first = 0; first < Number(count); first += 100) {
      const batch = Array.from({ length: Math.min(100, count - first) }, (_, at) => add(`task${first + at}`, due(first + at)));
      await queue.addBulk(batch);
    }
  } else {
    await queue.addBulk([add("hold", now())]);
  }
  await queue.close();
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** A worker of benches/compare/measure.py, which describes its input. Arguments: hosts, ttl in milliseconds. */
class Curator {
    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));

    public static void main(String[] args) throws Exception {
        int ttl = Integer.parseInt(args[1]);
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], ttl, 15000, new RetryOneTime(100));
        client.start();
        Map<String, InterProcessMutex> locks = new HashMap<>();
        for (String line = INPUT.readLine(); line != null; line = INPUT.readLine()) {
            String[] words = line.split(" ");
            InterProcessMutex mutex =
                locks.computeIfAbsent(words[1], name -> new InterProcessMutex(client, "/curator/" + name));
            switch (words[0]) {
                case "free" -> answer(free(mutex, Integer.parseInt(words[2])));
                case "contend" -> answer(contend(mutex, Long.parseLong(words[2]), Long.parseLong(words[3])));
                case "take" -> answer(take(mutex));
                default -> throw new IllegalArgumentException(line);
            }
        }
        client.close();
    }

    /** An empty line ends the answer. */
    private static void answer(String lines) {
        System.out.print(lines + "\n");
        System.out.flush();
    }

    private static String free(InterProcessMutex mutex, int count) throws Exception {
        StringBuilder lines = new StringBuilder();
        for (int left = count; left > 0; left--) {
            long asked = System.nanoTime();
            mutex.acquire();
            long had = System.nanoTime();
            mutex.release();
            lines.append(had - asked).append(' ').append(System.nanoTime() - had).append('\n');
        }
        return lines.toString();
    }

    private static String contend(InterProcessMutex mutex, long until, long hold) throws Exception {
        StringBuilder lines = new StringBuilder();
        while (System.nanoTime() < until) {
            long asked = System.nanoTime();
            mutex.acquire();
            long had = System.nanoTime();
            Thread.sleep(hold / 1_000_000, (int) (hold % 1_000_000));
            long released = System.nanoTime();
            mutex.release();
            lines.append(asked).append(' ').append(had).append(' ').append(released).append('\n');
        }
        return lines.toString();
    }

    /** Answers when it has the lock, and releases it at the next line. */
    private static String take(InterProcessMutex mutex) throws Exception {
        mutex.acquire();
        try {
            answer(System.nanoTime() + "\n");
            INPUT.readLine();
        } finally {
            mutex.release();
        }
        return "";
    }
}

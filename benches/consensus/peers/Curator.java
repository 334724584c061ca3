import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** Takes and releases a free lock as often as each line of the input says. Prints the nanoseconds of both, a line each. */
class Curator {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new RetryOneTime(100));
        client.start();
        InterProcessMutex mutex = new InterProcessMutex(client, "/curator/bench");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            StringBuilder times = new StringBuilder();
            for (int left = Integer.parseInt(line); left > 0; left--) {
                long start = System.nanoTime();
                mutex.acquire();
                long locked = System.nanoTime();
                mutex.release();
                times.append(locked - start).append(' ').append(System.nanoTime() - locked).append('\n');
            }
            System.out.print(times);
            System.out.flush();
        }
        client.close();
    }
}

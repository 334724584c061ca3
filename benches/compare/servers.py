"""The servers that benches/record.sh measures: one of each, on free ports of this machine."""

import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

HOST = "127.0.0.1"

# The kernel ends what was started when the one that started it is gone.
MORTAL = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def cpus_apart():
    """CPUs of the servers and of the clients: the same if there is only one."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


def free_port():
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


class Server:
    def __init__(self, command, directory, port):
        self.address = f"{HOST}:{port}"
        self.log = directory / "log"
        on, _ = cpus_apart()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                MORTAL + command,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=lambda: os.sched_setaffinity(0, on),
            )
        self.wait_until_it_listens(port)

    def wait_until_it_listens(self, port):
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection((HOST, port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise SystemExit(f"a server doesn't start:\n{self.log.read_text()}") from None
                time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.wait()


def start_redis(directory):
    port = free_port()
    # As it is installed: the lock is in memory, and written to no disk.
    return Server(["redis-server", "--bind", HOST, "--port", str(port), "--save", ""], directory, port)


def commands(address):
    """How many commands a Redis server has executed, also in scripts. This question isn't counted yet."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection, connection.makefile("rb") as answer:
        connection.sendall(b"INFO stats\r\n")
        # The length of the answer comes first: $1234.
        statistics = answer.read(int(answer.readline()[1:]))
    return int(re.search(rb"total_commands_processed:(\d+)", statistics)[1])


def start_etcd(directory):
    port, peers = free_port(), f"http://{HOST}:{free_port()}"
    clients = f"http://{HOST}:{port}"
    flags = {
        "name": "one",
        "data-dir": "data",
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"one={peers}",
    }
    return Server([os.environ["RECORD_ETCD"], *(f"--{name}={value}" for name, value in flags.items())], directory, port)


def start_zookeeper(directory):
    port = free_port()
    # A tick of 1 s allows sessions of 2 to 20 s.
    config = f"tickTime=1000\ndataDir={directory}/data\nclientPort={port}\nclientPortAddress={HOST}\n"
    config += "admin.enableServer=false\nmaxClientCnxns=0\n"
    (directory / "zoo.cfg").write_text(config)
    java = ["java", "-Xmx256m", "-cp", os.environ["RECORD_JARS"]]
    return Server([*java, "org.apache.zookeeper.server.ZooKeeperServerMain", "zoo.cfg"], directory, port)


class Places:
    """Where the locks of each engine are, for as long as the block runs."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.servers = {}

    def __enter__(self):
        starts = {"redis": start_redis, "etcd": start_etcd, "zookeeper": start_zookeeper}
        try:
            for name, start in starts.items():
                folder = self.directory / name
                folder.mkdir()
                self.servers[name] = start(folder)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in self.servers.values():
            server.stop()

    def address(self, engine):
        return self.servers[engine].address

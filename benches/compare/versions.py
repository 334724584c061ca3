"""Versions of the servers, the peers and the languages of a record."""

import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

CRATES = ["rslock", "redlock", "fs4", "fd-lock"]
PYTHON = ["python-redis-lock", "redis", "kazoo"]
PROGRAMS = {
    "Redis": ["redis-server", "--version"],
    "Java": ["java", "-version"],
    "Go": ["go", "version"],
    "flock(1)": ["flock", "--version"],
    "Python": ["python3", "--version"],
    "rustc": ["rustc", "--version"],
}


def version(command):
    """The first version that a program prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+[\w.+-]*", done.stdout + done.stderr)
    return found[0] if found else "unknown"


def of_package(name):
    return version(["dpkg-query", "--show", "--showformat=${source:Upstream-Version}", name])


def versions():
    lock = Path(__file__).parents[1] / "peers" / "Cargo.lock"
    packages = {package["name"]: package["version"] for package in tomllib.loads(lock.read_text())["package"]}
    found = {name: version(command) for name, command in PROGRAMS.items()}
    found |= {name: packages[name] for name in CRATES}
    found |= {name: metadata.version(name) for name in PYTHON}
    found["etcd"] = version([os.environ["RECORD_ETCD"], "--version"])
    found["Go's concurrency"] = of_package("golang-etcd-server-dev")
    found["ZooKeeper"] = of_package("libzookeeper-java")
    found["Curator"] = of_package("libcurator-recipes-java")
    return dict(sorted(found.items()))

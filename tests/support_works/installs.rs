//! What `tests/run.sh` installs, when it asks before, and that it starts no service.
//!
//! Nothing here is installed: the `PATH` has a few programs of this host, and in place of the others scripts that write
//! down how they were called.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// What the script and its helper use of the host.
const TOOLS: [&str; 12] = [
    "bash", "chmod", "cp", "dirname", "env", "flock", "getconf", "grep", "id", "rm", "script", "sh",
];

/// Writes down what it is to install and what the policy answers meanwhile, and makes programs of these names.
const APT_GET: &str = r#"#!/bin/sh
[ "$1" = install ] || exit 0
for package; do :; done
policy=none
[ ! -x "$CROSSLOCK_TEST_POLICY" ] || { "$CROSSLOCK_TEST_POLICY" && policy=0 || policy=$?; }
echo "$package $policy" >>"$CROSSLOCK_TEST_POLICY.log"
case "$package" in default-jre-headless) package=java ;; esac
cp "$0" "${0%/*}/$package"
"#;

/// A host without servers, on which packages can be installed.
struct Host {
    dir: TempDir,
}

impl Host {
    fn new() -> Self {
        let host = Host {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(host.path("bin")).unwrap();
        fs::create_dir(host.path("sbin")).unwrap();
        for tool in TOOLS {
            symlink(find(tool), host.path("bin").join(tool)).unwrap();
        }
        host.has("apt-get", APT_GET);
        host.has("cargo", "#!/bin/sh\necho tests are run\n");
        host.has("sudo", "#!/bin/sh\nexec \"$@\"\n");
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn policy(&self) -> PathBuf {
        self.path("sbin/policy-rc.d")
    }

    fn has(&self, program: &str, text: &str) {
        write_program(&self.path("bin").join(program), text);
    }

    /// Each package that was to be installed, and what the policy said about services then.
    fn installed(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("sbin/policy-rc.d.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.path("bin").join(program));
        command
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("CROSSLOCK_TEST_POLICY", self.policy())
            // Of those that aren't packages none is missing.
            .env("CROSSLOCK_TEST_ETCD", "/bin/sh")
            .env("CROSSLOCK_TEST_VALKEY_SERVER", "/bin/sh")
            .env("CROSSLOCK_TEST_ZOOKEEPER", "/");
        command
    }

    /// Runs the script without a terminal.
    fn runs(&self) -> Output {
        let mut command = self.command("bash");
        command.arg(run_sh()).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs the script on a terminal, where a person types `answer`; returns what the screen shows.
    fn runs_on_a_terminal(&self, answer: &str, ci: bool) -> String {
        let mut command = self.command("script");
        if ci {
            command.env("CI", "true");
        }
        let mut script = command
            .args(["-qec", &format!("bash {}", run_sh()), "/dev/null"])
            .env("SHELL", find("sh"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It stays open: its end would be that of the terminal.
        let mut stdin = script.stdin.take().unwrap();
        stdin.write_all(answer.as_bytes()).unwrap();
        let output = script.wait_with_output().unwrap();
        drop(stdin);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn find(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|dir| dir.join(program));
    let mut found = found.filter(|path| path.exists());
    found.next().unwrap_or_else(|| panic!("no {program}"))
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run_sh() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/run.sh")
}

const ALL: [&str; 3] = ["redis-server 101", "strace 101", "default-jre-headless 101"];

#[test]
fn person_at_a_terminal_is_asked_before_anything_is_installed_and_nobody_else() {
    const QUESTION: &str = "install redis-server strace default-jre-headless, as root?";
    let host = Host::new();
    let screen = host.runs_on_a_terminal("n\n", false);
    assert!(screen.contains(QUESTION), "{screen}");
    assert!(screen.contains("redis-server isn't there"), "{screen}");
    assert!(!screen.contains("tests are run"), "{screen}");
    assert_eq!(host.installed(), [""; 0]);
    let screen = host.runs_on_a_terminal("y\n", false);
    assert!(screen.contains("tests are run"), "{screen}");
    assert_eq!(host.installed(), ALL);

    // Nothing is missing now; in CI, and without a terminal, there is nobody to ask.
    let in_ci = Host::new();
    for screen in [
        host.runs_on_a_terminal("", false),
        in_ci.runs_on_a_terminal("", true),
    ] {
        assert!(screen.contains("tests are run"), "{screen}");
        assert!(!screen.contains("as root?"), "{screen}");
    }
    let without = Host::new();
    assert!(without.runs().status.success());
    for host in [in_ci, without] {
        assert_eq!(host.installed(), ALL);
        assert!(!host.policy().exists());
    }
}

#[test]
fn policy_of_the_machine_stays_and_decides() {
    let host = Host::new();
    write_program(&host.policy(), "#!/bin/sh\nexit 104\n");
    let output = host.runs();
    assert!(String::from_utf8_lossy(&output.stdout).contains("is there already"));
    assert!(host.installed().iter().all(|line| line.ends_with(" 104")));
    let policy = fs::read_to_string(host.policy()).unwrap();
    assert_eq!(policy, "#!/bin/sh\nexit 104\n");
}

#[test]
fn own_policy_is_removed_where_nothing_can_be_installed_and_after_a_kill() {
    let host = Host::new();
    host.has("apt-get", &APT_GET.replace("case ", "exit 100\ncase "));
    assert_eq!(host.runs().status.code(), Some(1));
    assert_eq!(host.installed(), ALL);
    assert!(!host.policy().exists());

    let host = Host::new();
    // It kills the script that has it run.
    host.has("apt-get", "#!/bin/sh\nkill -9 $PPID\n");
    host.runs();
    assert!(host.policy().exists());
    host.has("apt-get", APT_GET);
    assert!(host.runs().status.success());
    assert_eq!(host.installed(), ALL);
    assert!(!host.policy().exists());
}

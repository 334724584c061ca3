//! Guides: the pages of `docs/` in the repository.
//!
//! Begin with [what crosslock guarantees](guarantees) and [how waiting works](waiting), then read the page of your
//! engine. [Recipes](recipes) has whole programs.
//!
//! A page links to another with a reference, such as `[waiting][waiting.md]`. The definition at its end is for readers
//! of the repository. Of two definitions the first counts, so those of this module lead to the other modules.

/// Definitions of links. Each list has a module, the file as links of pages name it, and what links add to
/// that. Behind `=>` are files of the repository.
macro_rules! definitions {
    (
        $($module:ident $file:literal: $($anchor:literal)*;)*
        => $($path:literal = $there:literal;)*
    ) => {
        concat!(
            $($("[", $file, $anchor, "]: crate::guide::", stringify!($module), $anchor, "\n",)*)*
            $("[", $path, "]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/", $there, "\n",)*
        )
    };
}

macro_rules! links {
    () => {
        definitions! {
            async_programs "async.md": "" "#what-to-do";
            benchmarks "benchmarks.md": "";
            cli "../cli.md": "";
            cli "cli.md": "" "#from-flock";
            cluster "cluster.md": "" "#access-rights" "#several-names-at-once" "#slots-that-move" "#urls";
            comparison "comparison.md": "";
            delay "delay.md": "";
            etcd "etcd.md": "" "#etcdctl-lock-and-etcds-own-recipe" "#what-breaks-them";
            file "file.md": "" "#forks-and-inherited-descriptors" "#one-user-or-several"
                "#rules-for-the-directory";
            guarantees "guarantees.md": "" "#tokens-of-holders-that-share" "#what-breaks-a-lease";
            operate "cli/operate.md": "";
            platforms "platforms.md": "";
            porting "porting.md": "";
            quorum "quorum.md": "" "#access-rights" "#other-clients-of-the-same-lock" "#tokens" "#url";
            recipes "recipes.md": "" "#fencing-in-sql";
            redis "redis.md": "" "#access-rights" "#server-settings" "#urls";
            replicas "replicas.md": "";
            sentinel "sentinel.md": "" "#access-rights" "#url";
            waiting "waiting.md": "#inside-a-process" "#readers-and-writers";
            zookeeper "zookeeper.md": "" "#other-programs";
            =>
            "../SECURITY.md" = "SECURITY.md";
            "../benches/README.md" = "benches/README.md";
            "../examples/async" = "examples/async";
            "../examples/observe" = "examples/observe";
            "../examples/ported.rs" = "examples/ported.rs";
            "../examples/ported_before.rs" = "examples/ported_before.rs";
            "../examples/shutdown.rs" = "examples/shutdown.rs";
            "../img/watch.svg" = "docs/img/watch.svg?raw=true";
            "../lua/README.md" = "lua/README.md";
            "../lua/README.md#delay-queues" = "lua/README.md#delay-queues";
            "../src/base/observer.rs" = "src/base/observer.rs";
            "../src/metrics.rs" = "src/metrics.rs";
            "../src/primitives/barrier.rs" = "src/primitives/barrier.rs";
            "../src/primitives/condition.rs" = "src/primitives/condition.rs";
            "../src/primitives/election.rs" = "src/primitives/election.rs";
            "../src/primitives/latch.rs" = "src/primitives/latch.rs";
            "../src/primitives/mutex.rs" = "src/primitives/mutex.rs";
            "../src/primitives/once_lock.rs" = "src/primitives/once_lock.rs";
            "../src/primitives/rwlock.rs" = "src/primitives/rwlock.rs";
            "../src/primitives/semaphore.rs" = "src/primitives/semaphore.rs";
            "img/benchmarks_free.svg" = "docs/img/benchmarks_free.svg?raw=true";
            "img/benchmarks_late.svg" = "docs/img/benchmarks_late.svg?raw=true";
            "img/benchmarks_rate.svg" = "docs/img/benchmarks_rate.svg?raw=true";
            "img/benchmarks_wait.svg" = "docs/img/benchmarks_wait.svg?raw=true";
            "img/benchmarks_waiting.svg" = "docs/img/benchmarks_waiting.svg?raw=true";
            "img/fencing.svg" = "docs/img/fencing.svg?raw=true";
            "img/hand_off.svg" = "docs/img/hand_off.svg?raw=true";
            "img/run.svg" = "docs/img/run.svg?raw=true";
            "internals/defects.md" = "docs/internals/defects.md";
            "internals/etcd.md#keys" = "docs/internals/etcd.md#keys";
            "internals/file.md" = "docs/internals/file.md";
            "internals/testing.md" = "docs/internals/testing.md";
            "internals/waiting.md" = "docs/internals/waiting.md";
            "internals/zookeeper.md#nodes" = "docs/internals/zookeeper.md#nodes";
        }
    };
}

macro_rules! pages {
    ($($module:ident $file:literal,)*) => {$(
        #[doc = links!()]
        #[doc = include_str!(concat!("../docs/", $file))]
        pub mod $module {}
    )*};
}

pages! {
    async_programs "async.md",
    benchmarks "benchmarks.md",
    cli "cli.md",
    cluster "cluster.md",
    comparison "comparison.md",
    delay "delay.md",
    etcd "etcd.md",
    file "file.md",
    guarantees "guarantees.md",
    metrics "metrics.md",
    operate "cli/operate.md",
    platforms "platforms.md",
    porting "porting.md",
    quorum "quorum.md",
    recipes "recipes.md",
    redis "redis.md",
    replicas "replicas.md",
    sentinel "sentinel.md",
    testing "testing.md",
    waiting "waiting.md",
    zookeeper "zookeeper.md",
}

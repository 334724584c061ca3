//! Has each test of the suite run for each engine, in a place of its own.

/// One test, where its marks have what a place asks for.
macro_rules! test_at {
    ($place:ident all [$($marks:ident)*] $topic:ident $test:ident) => {
        #[test]
        fn $test() {
            crate::$topic::$test(&crate::Place::$place());
        }
    };
    ($place:ident $asked:ident [] $topic:ident $test:ident) => {};
    ($place:ident quorum [quorum $($more:ident)?] $topic:ident $test:ident) => {
        test_at!($place all [] $topic $test);
    };
    ($place:ident ways [$(quorum)? ways] $topic:ident $test:ident) => {
        test_at!($place all [] $topic $test);
    };
    ($place:ident $asked:ident [$mark:ident] $topic:ident $test:ident) => {};
}

macro_rules! suite {
    ($place:ident $asked:ident { $(
        $(#[$only:meta])?
        $topic:ident { $($test:ident $(($($mark:ident),+))?)* }
    )* }) => {
        $(
            $(#[$only])?
            mod $topic {
                $(test_at!($place $asked [$($($mark)+)?] $topic $test);)*
            }
        )*
    };
}

/// Those tests in each of these places, if its feature is there.
macro_rules! at_each {
    ($tests:tt $asked:ident: $($(#[$only:meta])? $place:ident)*) => {
        $(
            $(#[$only])?
            mod $place {
                suite!($place $asked $tests);
            }
        )*
    };
}

/// The first tests for every engine, the next for those that can do all, and the last for the others.
macro_rules! for_every_engine {
    ({ $($all:tt)* } { $($more:tt)* } { $($less:tt)* }) => {
        at_each! {
            { $($all)* $($more)* } all:
            memory
            #[cfg(feature = "file")]
            file
            #[cfg(feature = "redis")]
            redis
            #[cfg(feature = "redis")]
            replicated
            #[cfg(feature = "redis")]
            sentinels
            #[cfg(feature = "redis")]
            cluster
        }
        at_each! {
            { $($all)* $($less)* } all:
            #[cfg(feature = "etcd")]
            etcd
            #[cfg(feature = "zookeeper")]
            zookeeper
        }
        at_each! {
            { $($all)* } quorum:
            #[cfg(feature = "redis")]
            quorum
        }
        at_each! {
            { $($all)* } ways:
            #[cfg(feature = "redis")]
            unix
            #[cfg(feature = "tls")]
            tls
            #[cfg(feature = "etcd")]
            etcd3
            #[cfg(feature = "zookeeper")]
            zookeeper3
        }
    };
}

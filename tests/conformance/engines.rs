//! Has each test of the suite run for each engine, in a place of its own.

macro_rules! suite {
    ($place:expr; { $($(#[$only:meta])? $topic:ident { $($test:ident)* })* }) => {
        $(
            $(#[$only])?
            mod $topic {
                $(
                    #[test]
                    fn $test() {
                        crate::$topic::$test(&$place);
                    }
                )*
            }
        )*
    };
}

/// Those tests in each of these places, if its feature is there.
macro_rules! at_each {
    ($tests:tt $($(#[$only:meta])? $place:ident)*) => {
        $(
            $(#[$only])?
            mod $place {
                suite!(crate::Place::$place(); $tests);
            }
        )*
    };
}

/// The first tests for every engine, the next for those that can do all, and the last for the others.
macro_rules! for_every_engine {
    ({ $($all:tt)* } { $($more:tt)* } { $($less:tt)* }) => {
        at_each! {
            { $($all)* $($more)* }
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
            { $($all)* $($less)* }
            #[cfg(feature = "etcd")]
            etcd
            #[cfg(feature = "zookeeper")]
            zookeeper
        }
    };
}

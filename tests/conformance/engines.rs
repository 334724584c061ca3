//! Has each test of the suite run for each engine, in a place of its own.

macro_rules! suite {
    ($place:expr; $($(#[$only:meta])? $topic:ident { $($test:ident)* })*) => {
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

macro_rules! for_every_engine {
    ({ $($all:tt)* } { $($sharing:tt)* }) => {
        mod memory {
            suite!(crate::Place::memory(); $($all)* $($sharing)*);
        }

        #[cfg(feature = "file")]
        mod file {
            suite!(crate::Place::file(); $($all)*);
        }

        #[cfg(feature = "redis")]
        mod redis {
            suite!(crate::Place::redis(); $($all)* $($sharing)*);
        }

        #[cfg(feature = "redis")]
        mod unix {
            suite!(crate::Place::unix(); $($all)* $($sharing)*);
        }

        #[cfg(feature = "redis")]
        mod replicated {
            suite!(crate::Place::replicated(); $($all)* $($sharing)*);
        }

        #[cfg(feature = "redis")]
        mod sentinels {
            suite!(crate::Place::sentinels(); $($all)* $($sharing)*);
        }

        #[cfg(feature = "redis")]
        mod cluster {
            suite!(crate::Place::cluster(); $($all)* $($sharing)*);
        }

        #[cfg(feature = "tls")]
        mod tls {
            suite!(crate::Place::tls(); $($all)* $($sharing)*);
        }
    };
}

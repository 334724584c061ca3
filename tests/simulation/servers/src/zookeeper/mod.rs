//! zookeeper

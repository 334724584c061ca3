//! Serves what happens to locks to Prometheus, by the standard library's `TcpListener`, while some threads lock; then
//! prints what Prometheus would have got, and ends.
//!
//! ```text
//! cargo run -p crosslock-observe --bin prometheus
//! cargo run -p crosslock-observe --bin prometheus -- redis://127.0.0.1/ 60    # for 60 s, to look by curl
//! ```

use std::env;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;
use crosslock::metrics::MetricsObserver;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// In seconds: from what memory takes to what a person notices.
const BUCKETS: [f64; 8] = [0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0];

/// A scraper that says nothing doesn't keep the others waiting for longer.
const PATIENCE: Duration = Duration::from_secs(2);

fn main() -> Result<()> {
    let mut args = env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "memory:".to_owned());
    let seconds = args.next().map_or(Ok(1), |text| text.parse())?;

    // Before the observer, which describes its series to the recorder.
    let recorder = PrometheusBuilder::new()
        .set_buckets(&BUCKETS)?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)?;

    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    println!("serving http://{address}/metrics for {seconds} s");
    // It ends with the program.
    thread::spawn(move || serve(&listener, &handle));

    // A name for each order, and one series for all of them.
    let kinds = |_: &str, name: &str| Some(name.split('/').next()?.to_owned());
    let observer = Arc::new(MetricsObserver::labelled(kinds));
    let locker = Locker::builder(&url).observer(observer).build()?;
    let until = Instant::now() + Duration::from_secs(seconds);
    thread::scope(|scope| {
        let workers = [0, 1, 2].map(|_| scope.spawn(|| work(&locker, until)));
        workers
            .into_iter()
            .try_for_each(|one| one.join().expect("a worker doesn't panic"))
    })?;

    print!("{}", scrape(address)?);
    Ok(())
}

/// Handles orders, of which several threads want the same, and reports, which don't wait for long.
fn work(locker: &Locker, until: Instant) -> crosslock::Result<()> {
    for order in (0..10).cycle() {
        if Instant::now() >= until {
            break;
        }
        let guard = locker.lock(&format!("order/{order}"))?;
        thread::sleep(Duration::from_millis(2));
        guard.unlock()?;
        if let Some(_guard) = locker.try_lock_for("report", Duration::from_millis(1))? {
            thread::sleep(Duration::from_millis(3));
        }
    }
    Ok(())
}

/// Answers each request, whatever it asks for, one after the other.
fn serve(listener: &TcpListener, handle: &PrometheusHandle) {
    for stream in listener.incoming() {
        if let Err(e) = stream.and_then(|stream| answer(stream, handle)) {
            eprintln!("a scrape failed: {e}");
        }
    }
}

fn answer(mut stream: TcpStream, handle: &PrometheusHandle) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    const LONGEST: u64 = 64 * 1024;
    let mut lines = BufReader::new((&stream).take(LONGEST)).lines();
    // A request without a body ends with an empty line.
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    handle.run_upkeep();
    let body = handle.render();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// What Prometheus gets, without the headers.
fn scrape(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("it is no HTTP")?;
    Ok(body.to_owned())
}

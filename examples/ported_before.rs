//! A shop, with the locks of `std::sync`: its clerks are threads of this process. `ported.rs` is the same program with
//! the locks of crosslock.
//!
//! ```text
//! cargo run --example ported_before
//! ```

#![allow(
    clippy::unwrap_used,
    reason = "what is unwrapped fails only after a panic"
)]

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::{Barrier, Condvar, Mutex, OnceLock, RwLock};
use std::{mem, thread};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const CLERKS: usize = 3;

/// What customers order, day by day.
const ORDERS: [&[&str]; 3] = [
    &[
        "ada 2 apples",
        "grace 1 bread",
        "linus 10 apples",
        "ada 1 tea",
        "grace 4 apples",
    ],
    &["linus 1 tea", "ada 3 bread", "grace 1 tea", "linus 2 bread"],
    &["grace 6 apples", "linus 1 bread", "ada 5 apples"],
];

fn main() -> Result<()> {
    for line in run()? {
        println!("{line}");
    }
    Ok(())
}

/// Opens the shop, serves all orders, and returns a line for each customer.
pub(crate) fn run() -> Result<Vec<String>> {
    let shop = Shop {
        orders: Mutex::new(VecDeque::new()),
        arrived: Condvar::new(),
        prices: RwLock::new(first_prices()),
        discounts: OnceLock::new(),
        totals: Mutex::new(BTreeMap::new()),
        evening: Barrier::new(CLERKS),
    };
    thread::scope(|scope| {
        let clerks = [(); CLERKS].map(|()| scope.spawn(|| shop.work()));
        for orders in ORDERS {
            let orders = orders.iter().map(|order| Some(order.to_string()));
            let orders = orders.chain([const { None }; CLERKS]);
            shop.orders.lock().unwrap().extend(orders);
            shop.arrived.notify_all();
        }
        clerks
            .into_iter()
            .try_for_each(|clerk| clerk.join().unwrap())
    })?;
    let totals = mem::take(&mut *shop.totals.lock().unwrap());
    let lines = totals
        .iter()
        .map(|(customer, cents)| bill(customer, *cents));
    Ok(lines.collect())
}

fn bill(customer: &str, cents: u64) -> String {
    format!("{customer:<8} {:>4}.{:02}", cents / 100, cents % 100)
}

/// What an article costs on the first day, in cents.
fn first_prices() -> BTreeMap<String, u64> {
    let prices = [("apples", 40), ("bread", 310), ("tea", 450)];
    prices
        .map(|(article, price)| (article.to_owned(), price))
        .into()
}

/// The discounts of good customers, in percent. A real shop reads them from a file, which takes a while.
fn read_discounts() -> BTreeMap<String, u64> {
    BTreeMap::from([("ada".to_owned(), 10)])
}

/// What the clerks share.
struct Shop {
    /// What isn't served yet. With `None` the day is over for one clerk.
    orders: Mutex<VecDeque<Option<String>>>,
    /// Orders have arrived.
    arrived: Condvar,
    prices: RwLock<BTreeMap<String, u64>>,
    /// Whoever needs them first reads them for all.
    discounts: OnceLock<BTreeMap<String, u64>>,
    /// What each customer has to pay.
    totals: Mutex<BTreeMap<String, u64>>,
    /// Where the clerks meet when a day is over.
    evening: Barrier,
}

impl Shop {
    /// What a clerk does.
    fn work(&self) -> Result<()> {
        for _ in ORDERS {
            while let Some(order) = self.next_order() {
                self.serve(&order)?;
            }
            // No clerk reads prices until one of them has raised them.
            if self.evening.wait().is_leader() {
                raise(&mut self.prices.write().unwrap());
            }
            self.evening.wait();
        }
        Ok(())
    }

    /// Waits for an order; `None` when the day is over.
    fn next_order(&self) -> Option<String> {
        let orders = self.orders.lock().unwrap();
        let orders = self.arrived.wait_while(orders, |orders| orders.is_empty());
        orders.unwrap().pop_front().flatten()
    }

    /// Adds what an order costs to what its customer has to pay.
    fn serve(&self, order: &str) -> Result<()> {
        let Order {
            customer,
            count,
            article,
        } = Order::parse(order)?;
        let price = self.prices.read().unwrap().get(article).copied();
        let price = price.ok_or_else(|| format!("no such article: {article}"))?;
        let discounts = self.discounts.get_or_init(read_discounts);
        let discount = discounts.get(customer).unwrap_or(&0);
        let cents = count * price * (100 - discount) / 100;

        let mut totals = self.totals.lock().unwrap();
        *totals.entry(customer.to_owned()).or_default() += cents;
        Ok(())
    }
}

/// Everything becomes dearer by a tenth.
fn raise(prices: &mut BTreeMap<String, u64>) {
    prices.values_mut().for_each(|price| *price += *price / 10);
}

/// What a customer wants.
struct Order<'a> {
    customer: &'a str,
    count: u64,
    article: &'a str,
}

impl<'a> Order<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let mut words = text.split_whitespace();
        let mut next = || {
            words
                .next()
                .ok_or_else(|| format!("not an order: {text:?}"))
        };
        Ok(Order {
            customer: next()?,
            count: next()?.parse()?,
            article: next()?,
        })
    }
}

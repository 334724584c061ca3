//! The shop of `ported_before.rs`, with the locks of crosslock: its clerks could be processes on several machines.
//!
//! Beyond its `use` lines, 24 lines are new. What is stored outlives the program: so this one removes the prices at its
//! end. It leaves an empty queue, no totals, and the discounts, which stay as they are for the next run.
//!
//! ```text
//! cargo run --example ported                                        # no server: in a directory
//! CROSSLOCK_URL=redis://127.0.0.1/ cargo run --example ported
//! diff examples/ported_before.rs examples/ported.rs
//! ```

#![allow(
    clippy::unwrap_used,
    reason = "what is unwrapped fails only after a panic"
)]

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::{mem, thread};

use crosslock::{Barrier, Locker, Mutex, MutexGuard, OnceLock, RwLock};

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
    for line in run(&Locker::from_env()?)? {
        println!("{line}");
    }
    Ok(())
}

/// Opens the shop, serves all orders, and returns a line for each customer.
pub(crate) fn run(locker: &Locker) -> Result<Vec<String>> {
    let shop = Shop {
        orders: locker.mutex("shop-orders", VecDeque::new())?,
        prices: locker.rwlock("shop-prices", first_prices())?,
        discounts: locker.once_lock("shop-discounts")?,
        totals: locker.mutex("shop-totals", BTreeMap::new())?,
        evening: locker.barrier("shop-evening", CLERKS)?,
    };
    thread::scope(|scope| {
        let clerks = [(); CLERKS].map(|()| scope.spawn(|| shop.work()));
        for orders in ORDERS {
            let orders = orders.iter().map(|order| Some(order.to_string()));
            let orders = orders.chain([const { None }; CLERKS]);
            shop.orders.update(|waiting| waiting.extend(orders))?;
        }
        clerks
            .into_iter()
            .try_for_each(|clerk| clerk.join().unwrap())
    })?;
    let totals = shop.totals.update(mem::take)?;
    shop.prices.remove()?;
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
            while let Some(order) = self.next_order()? {
                self.serve(&order)?;
            }
            // No clerk reads prices until one of them has raised them.
            if self.evening.wait()?.is_leader() {
                self.prices.update(raise)?;
            }
            self.evening.wait()?;
        }
        Ok(())
    }

    /// Waits for an order; `None` when the day is over.
    fn next_order(&self) -> Result<Option<String>> {
        let orders = self.orders.lock()?;
        let mut orders = MutexGuard::wait_while(orders, |orders| orders.is_empty())?;
        let order = orders.pop_front().flatten();
        MutexGuard::unlock(orders)?;
        Ok(order)
    }

    /// Adds what an order costs to what its customer has to pay.
    fn serve(&self, order: &str) -> Result<()> {
        let Order {
            customer,
            count,
            article,
        } = Order::parse(order)?;
        let price = self.prices.read()?.get(article).copied();
        let price = price.ok_or_else(|| format!("no such article: {article}"))?;
        let discounts = self.discounts.get_or_init(read_discounts)?;
        let discount = discounts.get(customer).unwrap_or(&0);
        let cents = count * price * (100 - discount) / 100;

        let mut totals = self.totals.lock()?;
        *totals.entry(customer.to_owned()).or_default() += cents;
        MutexGuard::unlock(totals)?;
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

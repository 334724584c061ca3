//! Time passes: what is relative to now changes, so that states which differ in nothing but the hour are the same.

use super::{Body, Client, NOON, News, Phase, Reply, World};
use crate::server::{Call, Token};

/// Far more tokens than are used within one tick.
const TICK: Token = 1 << 12;
/// Of what is further apart than this, only the order and the class are of interest. A multiple of 8.
const FAR: Token = 64;
const CLASSES: Token = 8;
/// More tokens than a world has.
const TOKENS: usize = 64;

impl World {
    /// The server's clock passes all tokens that were given out.
    pub(super) fn pass(&mut self) {
        let mut values = [0; TOKENS];
        let mut count = 0;
        self.for_each_token(|token| {
            values[count] = *token;
            count += 1;
        });
        let values = &mut values[..count];
        values.sort_unstable_by_key(|value| std::cmp::Reverse(*value));
        let mut places = [(0, 0); TOKENS];
        let (mut last, mut place, mut used) = (NOON + TICK, NOON, 0);
        for value in values {
            let gap = last - *value;
            place -= if gap > FAR { FAR + gap % CLASSES } else { gap };
            last = *value;
            places[used] = (*value, place);
            used += 1;
        }
        let places = &places[..used];
        self.for_each_token(|token| {
            let at = places.iter().find(|(value, _)| value == token);
            *token = at.map_or(*token, |(_, place)| *place);
        });
    }

    /// Every token that somebody knows; 0 is none.
    fn for_each_token(&mut self, mut call: impl FnMut(&mut Token)) {
        let mut token = |token: &mut Token| {
            if *token != 0 {
                call(token);
            }
        };
        let replicas = self.replica.iter_mut().flat_map(|names| names.iter_mut());
        for name in self.names.iter_mut().chain(replicas) {
            if let Some(counter) = &mut name.counter {
                token(&mut counter.number);
            }
            for share in &mut name.shares {
                token(&mut share.token);
            }
        }
        if let Some(ticket) = &mut self.ticket {
            token(&mut ticket.last_used);
        }
        for client in &mut self.clients {
            tokens_of_client(client, &mut token);
        }
        for packet in &mut self.wire {
            tokens_of_packet(&mut packet.body, &mut token);
        }
        for record in &mut self.judge.records {
            token(&mut record.last_exclusive);
            token(&mut record.last);
        }
    }
}

fn tokens_of_client(client: &mut Client, token: &mut impl FnMut(&mut Token)) {
    if let Phase::Holding(lease) | Phase::Downgrading { lease, .. } | Phase::Ending { lease, .. } =
        &mut client.phase
    {
        token(&mut lease.token);
    }
    if let Some(seen) = &mut client.seen {
        token(&mut seen.counter);
    }
    if let Some(News::Granted(granted)) = &mut client.news {
        token(granted);
    }
}

fn tokens_of_packet(body: &mut Body, token: &mut impl FnMut(&mut Token)) {
    match body {
        Body::Request(Call::Renew(renew)) => token(&mut renew.granted),
        Body::Request(Call::Release(release)) => token(&mut release.counter_after),
        Body::Request(Call::Downgrade { counter_after, .. }) => token(counter_after),
        Body::Request(Call::Adopt(adopt)) => token(&mut adopt.counter_after),
        Body::Reply(
            Reply::Granted(granted) | Reply::Downgraded(granted) | Reply::Adopted(granted),
        )
        | Body::Grant(granted)
        | Body::Revoked(granted) => token(granted),
        Body::Reply(Reply::Taken { counter }) => token(counter),
        Body::Request(_) | Body::Reply(_) => {}
    }
}

//! The keys denied most often, in a summary of fixed size.
//!
//! Nothing here knows Redis, reads a clock or allocates after the start: [`Summary::record`] runs
//! on every denial. The algorithm is space-saving: A. Metwally, D. Agrawal, A. El Abbadi,
//! "Efficient computation of frequent and top-k elements in data streams", ICDT 2005. There are `m`
//! counters. A key that has one raises it; any other key takes the least counter over, count and
//! all, and raises that. The count taken over is what the newcomer may be overstated by, and is kept
//! as its error bound. So after `N` records:
//!
//! - the counts sum to `N`, and thus the least of them is at most `N / m`;
//! - a listed key was denied at most `count` and at least `count - error` times, and `error` is at
//!   most `N / m`;
//! - every key denied more than `N / m` times is listed, whatever the order of the stream.
//!
//! # Form
//!
//! `counts` ascends, `order` names the entry that each count belongs to, and an entry knows its
//! `place` in both. To raise a count, the entry changes places with the last of those that have the
//! same count, which a binary search finds, and only that count grows: the order holds, and
//! nothing else moves. The least is always the first. Entries never used stand there too, with a
//! count of 0, so that filling up is no special case. Entries are found by chains through a table of
//! twice as many heads, so a chain is half an entry long on average.
//!
//! Considered and rejected:
//!
//! - The paper's linked buckets of equal counts raise in O(1) rather than O(log m), but are a list
//!   of lists with buckets to make and free; nine steps of a search over neighbouring numbers cost
//!   less than the hash of the key does.
//! - A heap sifts by two comparisons a level, moving places as it goes, and does not list in order.
//! - Open addressing needs a shift or a rebuild at each take-over; unlinking from a chain does not.
//! - Sampling would make each denial cheaper still, at the price of the bounds above.
//!
//! # Size
//!
//! 512 counters of 110 bytes are 55 KiB. A key that has more than one denial in 512, 0.2 %, is
//! listed, and those that an operator has to see in an incident have far more. Twice the counters
//! would halve the bound, and take twice the cache from the server.
//!
//! # Identity
//!
//! Names are bytes of any length. [`MAX_NAME_BYTES`] of them are kept to be shown, but a key is told
//! from others by its length and a 64-bit hash of all of its bytes, seeded with a secret. By
//! accident, a key is taken for one of 512 others once in 2^55 records. The hash is foldhash, which
//! is not made to withstand whoever can watch it at work; only an administrator can, and at stake is a
//! list for administrators. SipHash, which does withstand them, took half of all that a record costs.
//! The hash of a name takes time in proportion to its length, as the server's own lookup of the key did.

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use std::cmp::Reverse;
use std::hash::{BuildHasher, Hasher};

/// Counters of a summary, `m`: it lists at most so many keys.
pub const COUNTERS: usize = 512;

/// Bytes of a name that are kept.
pub const MAX_NAME_BYTES: usize = 64;

/// Stands for no entry in a chain: it is past the last one, whatever their number.
const NONE: u16 = u16::MAX;

/// A key that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The first bytes of its name, at most [`MAX_NAME_BYTES`].
    pub name: Vec<u8>,
    /// Bytes of the whole name.
    pub length_bytes: usize,
    /// How often it was denied since the last reset, at most: 1 or more.
    pub count: u64,
    /// By how much the count may be too large: 0 to `count - 1`, and at most one denial in
    /// [`COUNTERS`] of all recorded.
    pub error: u64,
}

impl Denied {
    /// Whether the name went on behind what was kept of it.
    pub fn is_cut(&self) -> bool {
        self.length_bytes > self.name.len()
    }
}

/// A key that has a counter. Its count stands apart, for the search.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    length_bytes: usize,
    /// The count that it took over.
    error: u64,
    /// Where it stands in the order of counts.
    place: u16,
    /// The next entry of its chain.
    next: u16,
    /// The name as far as it is kept; bytes behind its end are of earlier owners.
    name: [u8; MAX_NAME_BYTES],
}

impl Entry {
    fn kept_name(&self) -> &[u8] {
        &self.name[..self.length_bytes.min(MAX_NAME_BYTES)]
    }
}

/// Counts denials of keys, and remembers those denied most often.
///
/// ```
/// use rl::denied::Summary;
///
/// let mut summary = Summary::new(1);
/// for key in ["api:7", "api:9", "api:7"] {
///     summary.record(key.as_bytes());
/// }
/// let top = summary.top(1);
/// assert_eq!((top[0].name.as_slice(), top[0].count, top[0].error), (&b"api:7"[..], 2, 0));
/// ```
pub struct Summary {
    hashing: SeedableRandomState,
    entries: Box<[Entry]>,
    /// How often, at most, each entry was recorded; ascending. An entry of 0 is not in use.
    counts: Box<[u64]>,
    /// The entries in the order of their counts.
    order: Box<[u16]>,
    /// The first entry of each chain; their number is a power of two.
    heads: Box<[u16]>,
}

impl Summary {
    /// An empty summary, with all the memory that it will ever use.
    ///
    /// Whoever knows `seed` can choose names that are counted as one: draw it from the system, as
    /// `RandomState::new().build_hasher().finish()` does. What is listed does not depend on it.
    pub fn new(seed: u64) -> Self {
        Self::with_counters(COUNTERS, seed)
    }

    /// For small worlds in tests: of 1 to 2^15 counters.
    fn with_counters(counters: usize, seed: u64) -> Self {
        let unused = Entry {
            hash: 0,
            length_bytes: 0,
            error: 0,
            place: 0,
            next: NONE,
            name: [0; MAX_NAME_BYTES],
        };
        let mut summary = Self {
            hashing: SeedableRandomState::with_seed(seed, SharedSeed::global_random()),
            entries: vec![unused; counters].into(),
            counts: vec![0; counters].into(),
            order: vec![0; counters].into(),
            heads: vec![NONE; 2 * counters.next_power_of_two()].into(),
        };
        summary.reset();
        summary
    }

    /// Forgets every key and every count. Takes O(m) time.
    pub fn reset(&mut self) {
        self.counts.fill(0);
        self.heads.fill(NONE);
        for (place, entry) in (0..).zip(&mut self.entries) {
            entry.place = place;
            self.order[usize::from(place)] = place;
        }
    }

    /// Counts one denial of `key`, a name of any bytes and length.
    ///
    /// Takes O(log m) time besides the hash of the name, and does not allocate.
    pub fn record(&mut self, key: &[u8]) {
        let hash = self.hash(key);
        let entry = match self.find(hash, key.len()) {
            Some(entry) => entry,
            None => self.take_over_least(hash, key),
        };
        self.raise(entry);
    }

    /// The keys denied most often, at most `count` of them and at most [`COUNTERS`].
    ///
    /// Most denied first. Of equal counts, that of the smaller error goes first, then the name that
    /// is less by its kept bytes, then the shorter one; what is equal even so, which only cut names
    /// can be, stands in an order that is the same for the same stream.
    pub fn top(&self, count: usize) -> Vec<Denied> {
        let used = self.counts.iter().zip(&self.order).filter(|(count, _)| **count > 0);
        let mut used: Vec<(u64, &Entry)> =
            used.map(|(count, entry)| (*count, &self.entries[usize::from(*entry)])).collect();
        used.sort_by_key(|(count, entry)| {
            (Reverse(*count), entry.error, entry.kept_name(), entry.length_bytes)
        });
        let denied = |(count, entry): (u64, &Entry)| Denied {
            name: entry.kept_name().to_vec(),
            length_bytes: entry.length_bytes,
            count,
            error: entry.error,
        };
        used.into_iter().take(count).map(denied).collect()
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hashing.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// Which chain the entries of a hash are in.
    fn chain(&self, hash: u64) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    fn find(&self, hash: u64, length_bytes: usize) -> Option<u16> {
        let mut at = self.heads[self.chain(hash)];
        while let Some(entry) = self.entries.get(usize::from(at)) {
            if entry.hash == hash && entry.length_bytes == length_bytes {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    /// Gives the least counter to `key`, its count as it is.
    fn take_over_least(&mut self, hash: u64, key: &[u8]) -> u16 {
        let (least, count) = (self.order[0], self.counts[0]);
        if count > 0 {
            self.unlink(least);
        }
        let chain = self.chain(hash);
        let entry = &mut self.entries[usize::from(least)];
        (entry.hash, entry.length_bytes, entry.error) = (hash, key.len(), count);
        let kept = key.len().min(MAX_NAME_BYTES);
        entry.name[..kept].copy_from_slice(&key[..kept]);
        entry.next = self.heads[chain];
        self.heads[chain] = least;
        least
    }

    /// Takes an entry that is in use out of its chain.
    fn unlink(&mut self, unlinked: u16) {
        let Entry { hash, next, .. } = self.entries[usize::from(unlinked)];
        let chain = self.chain(hash);
        let mut link = &mut self.heads[chain];
        while *link != unlinked {
            let before = usize::from(*link);
            link = &mut self.entries[before].next;
        }
        *link = next;
    }

    /// Adds one to the count of an entry.
    ///
    /// It changes places with the last entry of the same count, behind which all are greater. A
    /// count would take centuries to overflow.
    fn raise(&mut self, raised: u16) {
        let place = self.entries[usize::from(raised)].place;
        let from = usize::from(place);
        let count = self.counts[from];
        let equal = self.counts[from..].partition_point(|other| *other == count);
        let last = from + equal - 1;
        let other = self.order[last];
        self.order[from] = other;
        self.order[last] = raised;
        self.entries[usize::from(other)].place = place;
        self.entries[usize::from(raised)].place = last as u16;
        self.counts[last] = count + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    const SEED: u64 = 20_261_130;

    /// As in the tests of the limiter: the seed is fixed and printed, `PROPTEST_RNG_SEED` sets
    /// another.
    fn config() -> ProptestConfig {
        let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
        if config.rng_seed == RngSeed::Random {
            config.rng_seed = RngSeed::Fixed(SEED);
        }
        println!("{:?}", config.rng_seed);
        config
    }

    /// Names of which one is empty and every third is long, alike as far as it is kept.
    fn key(number: usize) -> Vec<u8> {
        match number {
            0 => Vec::new(),
            _ if number.is_multiple_of(3) => format!("{:x<64}{number}", "").into_bytes(),
            _ => format!("key {number}").into_bytes(),
        }
    }

    /// A counter of the twin: whose it is, the count, the error. Unused ones count nothing.
    type Row = (Option<Vec<u8>>, u64, u64);

    /// Space-saving by looking at everything, with whole names: rows in ascending order of their
    /// counts, of which the first is taken over, and one that is raised changes places with the
    /// last of its equals.
    struct Twin {
        rows: Vec<Row>,
    }

    impl Twin {
        fn new(counters: usize) -> Self {
            Self { rows: vec![(None, 0, 0); counters] }
        }

        fn record(&mut self, key: &[u8]) {
            let found = self.rows.iter().position(|row| row.0.as_deref() == Some(key));
            let at = found.unwrap_or_else(|| {
                let least = self.rows[0].1;
                self.rows[0] = (Some(key.to_vec()), least, least);
                0
            });
            let equal = |row: &Row| row.1 == self.rows[at].1;
            let last = self.rows.iter().rposition(equal).unwrap();
            self.rows.swap(at, last);
            self.rows[last].1 += 1;
        }

        fn top(&self) -> Vec<Denied> {
            let used = self.rows.iter().filter_map(|(key, count, error)| {
                let key = key.as_ref()?;
                let name = key.iter().take(64).copied().collect();
                Some(Denied { name, length_bytes: key.len(), count: *count, error: *error })
            });
            let mut top: Vec<Denied> = used.collect();
            top.sort_by(|a, b| {
                let names = a.name.cmp(&b.name).then(a.length_bytes.cmp(&b.length_bytes));
                b.count.cmp(&a.count).then(a.error.cmp(&b.error)).then(names)
            });
            top
        }
    }

    /// What holds after each operation, `records` after the last reset.
    fn check(summary: &Summary, records: u64) {
        assert!(summary.counts.is_sorted());
        assert_eq!(summary.counts.iter().sum::<u64>(), records);
        for (place, at) in summary.order.iter().enumerate() {
            let entry = &summary.entries[usize::from(*at)];
            assert_eq!(usize::from(entry.place), place);
            let used = summary.counts[place] > 0;
            let found = summary.find(entry.hash, entry.length_bytes) == Some(*at);
            assert!(!used || found, "entry {at} is in no chain");
        }
        let used = summary.counts.iter().filter(|count| **count > 0).count();
        assert_eq!(chained(summary), used, "a chain holds an entry not in use");
    }

    /// Entries in all chains.
    fn chained(summary: &Summary) -> usize {
        let next = |at: &u16| Some(summary.entries.get(usize::from(*at))?.next);
        let behind = |head: &u16| std::iter::successors(Some(*head), next).skip(1).count();
        summary.heads.iter().map(behind).sum()
    }

    /// Plays operations, where `None` is a reset, over the summary and its twin.
    fn compare(counters: usize, seed: u64, operations: impl Iterator<Item = Option<usize>>) {
        let (mut summary, mut twin) = (Summary::with_counters(counters, seed), Twin::new(counters));
        let mut records = 0;
        for operation in operations {
            match operation {
                Some(number) => {
                    summary.record(&key(number));
                    twin.record(&key(number));
                    records += 1;
                }
                None => {
                    summary.reset();
                    twin = Twin::new(counters);
                    records = 0;
                }
            }
            check(&summary, records);
            assert_eq!(summary.top(usize::MAX), twin.top());
        }
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn random_operations_do_as_the_twin_does(
            counters in 1..=9_usize,
            seed in any::<u64>(),
            operations in vec(prop::option::weighted(0.98, 0..14_usize), 0..200),
        ) {
            compare(counters, seed, operations.into_iter());
        }
    }

    #[test]
    fn every_short_stream_does_as_the_twin_does() {
        const LENGTH: u32 = 7;
        for stream in 0..4_usize.pow(LENGTH) {
            let numbers = (0..LENGTH).map(|step| Some(stream / 4_usize.pow(step) % 4));
            compare(2, SEED, numbers);
        }
    }

    #[test]
    fn at_full_size_it_does_as_the_twin_does() {
        // Powers of a generator of the residues of a prime: 700 keys by turns, each with others
        // before it, and the smaller numbers again in between.
        let numbers = (1..6_000_usize).scan(1, |power, _| {
            *power = *power * 2 % 701;
            Some(if *power % 3 == 0 { *power / 9 } else { *power })
        });
        compare(COUNTERS, SEED, numbers.map(Some));
    }

    #[test]
    fn a_key_is_known_by_hash_and_length() {
        let mut summary = Summary::new(SEED);
        summary.record(b"abc");
        let hash = summary.hash(b"abc");
        assert!(summary.find(hash, 3).is_some());
        assert_eq!(summary.find(hash, 4), None);
        assert_eq!(summary.find(!hash, 3), None);
    }

    #[test]
    fn it_takes_the_memory_that_is_said() {
        let summary = Summary::new(SEED);
        let bytes = size_of_val(&*summary.entries)
            + size_of_val(&*summary.counts)
            + size_of_val(&*summary.order)
            + size_of_val(&*summary.heads);
        assert_eq!(bytes, 110 * COUNTERS);
    }
}

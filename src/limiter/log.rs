//! The sliding window log: what an entry is, and how a log is read.

/// The latest stamp an entry may have: 2^53 ms, up to which a score holds every integer exactly.
pub const MAX_STAMP_MS: u64 = 1 << 53;

/// The most units that a whole log may hold, 2^63 - 1: so a difference of two totals, taken modulo
/// 2^64, is never ambiguous, and every sum of usage and cost fits.
pub const MAX_STORED_UNITS: u64 = i64::MAX as u64;

/// One charge, or several of the same stamp that were merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// When it was charged, in Unix milliseconds, 0 to [`MAX_STAMP_MS`].
    pub stamp_ms: u64,
    /// The sum of all costs up to and with this one, modulo 2^64.
    pub total: u64,
    /// Units charged, 1 to [`MAX_STORED_UNITS`].
    pub cost: u64,
}

impl Entry {
    /// Units charged from `first`, an entry at or before this one, up to and with this one.
    ///
    /// The running totals make this O(1) whatever lies between.
    pub fn units_since(&self, first: &Entry) -> u64 {
        self.total.wrapping_sub(first.total).wrapping_add(first.cost)
    }

    /// The entry that a charge of `cost` adds behind this one, stamped `stamp_ms` or later.
    ///
    /// Stamps never fall: a clock that stepped back gives its charges the newest stamp. Where the
    /// total wraps, the new entry would sort before the old one of the same stamp, so it is put a
    /// millisecond behind it. With `merge`, an entry of the same stamp takes this one's cost in
    /// and replaces it; the flag returned tells.
    pub fn followed_by(&self, cost: u64, stamp_ms: u64, merge: bool) -> (Entry, bool) {
        let (total, wrapped) = self.total.overflowing_add(cost);
        let replaces = merge && stamp_ms <= self.stamp_ms;
        let entry = Entry {
            stamp_ms: stamp_ms.max(self.stamp_ms + u64::from(wrapped)),
            total,
            cost: if replaces { self.cost + cost } else { cost },
        };
        (entry, replaces)
    }
}

/// Why a log cannot be judged or charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogError {
    /// It is none of ours: an entry, its order or a sum is not of the form that this module writes.
    Foreign,
    /// It cannot take the cost: the units it holds, with those that have left every window, would
    /// pass [`MAX_STORED_UNITS`].
    Full,
}

/// A log that can be read: entries in the order of their stamps, those of one stamp in the order
/// in which they came.
pub trait Log {
    /// Entries in it.
    fn len(&self) -> u64;

    /// Whether it has no entry.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the server will forget it, in Unix milliseconds of the server's clock; `None` if never.
    fn expires_at_ms(&self) -> Option<u64>;

    /// The first entry.
    ///
    /// # Errors
    /// This and the other readers: [`LogError::Foreign`] if the entry is not of our form.
    fn oldest(&mut self) -> Result<Option<Entry>, LogError>;

    /// The last entry.
    fn newest(&mut self) -> Result<Option<Entry>, LogError>;

    /// The first entry stamped `from_ms` or later.
    fn first_from(&mut self, from_ms: u64) -> Result<Option<Entry>, LogError>;

    /// The last entry stamped `until_ms` or earlier.
    fn last_until(&mut self, until_ms: u64) -> Result<Option<Entry>, LogError>;
}

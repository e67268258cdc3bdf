//! How often limiters are wrong, and by how much, over a simulated day: `make accuracy`.
//!
//! The rule that all of them are held to is that of the exact log: a request may pass if fewer than
//! `limit` were admitted in the window before it. Each decision is judged alone, by what the same
//! limiter has admitted until then. The other way, to compare with the decisions of an exact log that
//! was asked the same, would count one early admission again and again: from there on the two stand
//! at different places, and a decision that is right for one is not for the other. What a limiter
//! loses or gains in the long run shows in how many it admits in all.

mod judge;
mod limiters;
mod report;
mod timeline;
mod traffic;

pub use judge::{Outcome, judge};
pub use limiters::{FixedWindow, Gcra, LIMITERS, Limit, Limiter};
pub use report::{Row, csv, percent, rows, tables};
pub use timeline::csv as timeline_csv;
pub use traffic::SEED;

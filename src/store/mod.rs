//! Loading and applying: a limiter's log as a sorted set, and a change as native writes.

mod apply;
mod load;
mod member;

pub use apply::{WriteFailed, apply};
pub use load::{StoredLog, WrongType, load};

//! Sliding-window rate limits as Redis commands.

pub mod limiter;

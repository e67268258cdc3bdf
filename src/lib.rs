//! Sliding-window rate limits as Redis commands.

//! What is answered.

/// The answer to one request, told for the window that binds it most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the request fits every window.
    pub allowed: bool,
    /// The limit of the window reported, in units.
    pub limit: u64,
    /// Units left in it after this request.
    pub remaining: u64,
    /// Milliseconds until a request of the same cost would be allowed if nobody else asked: 0 if
    /// this one was, `None` if it never can be, costing more than the limit.
    pub retry_after_ms: Option<u64>,
    /// Milliseconds until the window is empty if nobody else asks; 0 if it is.
    pub reset_after_ms: u64,
    /// The length of the window reported, in milliseconds.
    pub window_ms: u64,
}

impl Verdict {
    /// Which of two windows of one request to report: when denied the one with the longer wait, when
    /// allowed the one with less remaining, and this one if they are equal.
    pub fn or_binding(self, other: Self) -> Self {
        let wait_ms = |verdict: &Self| verdict.retry_after_ms.unwrap_or(u64::MAX);
        let other_binds = match self.allowed {
            true => other.remaining < self.remaining,
            false => wait_ms(&other) > wait_ms(&self),
        };
        if other_binds { other } else { self }
    }
}

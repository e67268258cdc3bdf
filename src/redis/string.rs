//! Strings of the server: bytes, not text.

use super::required;
use redis_module::raw;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// A string that belongs to somebody else for as long as `'a`: an argument, mostly.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text<'a> {
    raw: NonNull<raw::RedisModuleString>,
    owner: PhantomData<&'a ()>,
}

impl<'a> Text<'a> {
    /// # Safety
    /// `raw` is NULL or a string that stays as it is for `'a`.
    pub(super) unsafe fn lent(raw: *mut raw::RedisModuleString) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, owner: PhantomData })
    }

    pub(super) fn as_ptr(self) -> *mut raw::RedisModuleString {
        self.raw.as_ptr()
    }

    /// Its bytes.
    pub fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the string lives and stays as it is for 'a, and with it the bytes it points to.
        unsafe {
            let start = required(raw::RedisModule_StringPtrLen)(self.as_ptr(), &mut len);
            std::slice::from_raw_parts(start.cast(), len)
        }
    }
}

/// A string that is ours, freed when it goes.
pub struct OwnedText(NonNull<raw::RedisModuleString>);

impl OwnedText {
    /// A copy of `bytes` in the server's memory.
    pub fn new(bytes: &[u8]) -> Self {
        // SAFETY: the pointer and the length are those of a slice, which the server copies. Without
        // a context the string is ours alone to free.
        let raw = unsafe {
            let create = required(raw::RedisModule_CreateString);
            create(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len())
        };
        Self(NonNull::new(raw).expect("the server creates a string or aborts"))
    }

    /// # Safety
    /// `raw` is a string that the caller owns and gives up.
    pub(super) unsafe fn adopt(raw: NonNull<raw::RedisModuleString>) -> Self {
        Self(raw)
    }

    /// The string, lent.
    pub fn text(&self) -> Text<'_> {
        Text { raw: self.0, owner: PhantomData }
    }
}

impl Drop for OwnedText {
    fn drop(&mut self) {
        // SAFETY: the string is ours, and whoever it was lent to is gone.
        unsafe { required(raw::RedisModule_FreeString)(ptr::null_mut(), self.0.as_ptr()) }
    }
}

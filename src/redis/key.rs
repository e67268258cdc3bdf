//! Open keys, and the sorted sets and hashes in them.

use super::{Context, OwnedText, Text, required};
use libc::{c_char, c_int, c_void};
use redis_module::raw;
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::{self, NonNull};

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: it does not exist.
    Empty,
    /// A sorted set.
    SortedSet,
    /// A hash.
    Hash,
    /// Anything else.
    Other,
}

/// Fields that are new count among those set.
const HASH_SET_FLAGS: c_int = raw::REDISMODULE_HASH_COUNT_ALL as c_int;

/// An open key, closed when it goes: a fault leaves none open. Only one can be open at a time.
///
/// Whoever watches or caches the key is told when it is closed, if it was changed. The server would
/// tell of every key that was open for writing; [`load`](super::load) has it leave that to us.
pub struct Key<'a> {
    raw: NonNull<raw::RedisModuleKey>,
    /// A handle points into the context it was opened in.
    context: &'a Context,
    name: Text<'a>,
    is_changed: bool,
}

impl<'a> Key<'a> {
    /// Opens `name` to look at it; `None` if it does not exist.
    ///
    /// From 7.2 on that is no miss to the server's statistics and events; older servers do not know
    /// these bits, and count one.
    pub fn open_to_read(context: &'a Context, name: Text<'a>) -> Option<Self> {
        let quietly = raw::REDISMODULE_OPEN_KEY_NONOTIFY | raw::REDISMODULE_OPEN_KEY_NOSTATS;
        Self::open(context, name, raw::REDISMODULE_READ | quietly)
    }

    /// Opens `name` to look at it and perhaps to change it, or to create it by adding to it.
    ///
    /// That is neither a hit nor a miss to the server's statistics.
    pub fn open_to_write(context: &'a Context, name: Text<'a>) -> Self {
        let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE;
        Self::open(context, name, mode).expect("a key opens for writing whether it exists or not")
    }

    fn open(context: &'a Context, name: Text<'a>, mode: u32) -> Option<Self> {
        assert!(!context.key_is_open.get(), "a key is open already");
        // SAFETY: the context is that of the running call and the name a string that outlives it.
        let raw = unsafe {
            let open = required(raw::RedisModule_OpenKey);
            open(context.as_ptr(), name.as_ptr(), mode as c_int)
        };
        let raw = NonNull::new(raw)?;
        context.key_is_open.set(true);
        Some(Self { raw, context, name, is_changed: false })
    }

    /// The call that it was opened in.
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// Its name.
    pub fn name(&self) -> Text<'a> {
        self.name
    }

    fn as_ptr(&self) -> *mut raw::RedisModuleKey {
        self.raw.as_ptr()
    }

    /// What it holds.
    pub fn kind(&self) -> Kind {
        // SAFETY: the key is open.
        let kind = unsafe { required(raw::RedisModule_KeyType)(self.as_ptr()) };
        match kind as isize {
            raw::REDISMODULE_KEYTYPE_EMPTY => Kind::Empty,
            raw::REDISMODULE_KEYTYPE_ZSET => Kind::SortedSet,
            raw::REDISMODULE_KEYTYPE_HASH => Kind::Hash,
            _ => Kind::Other,
        }
    }

    /// Elements in it.
    #[allow(clippy::len_without_is_empty, reason = "`kind` tells")]
    pub fn len(&self) -> u64 {
        // SAFETY: the key is open.
        unsafe { required(raw::RedisModule_ValueLength)(self.as_ptr()) as u64 }
    }

    /// When it expires, in Unix milliseconds; `None` if it does not.
    pub fn expires_at_ms(&self) -> Option<u64> {
        if self.kind() == Kind::Empty {
            return None;
        }
        // SAFETY: the key is open, and not empty: Redis 8 looks into its value.
        let at_ms = unsafe { required(raw::RedisModule_GetAbsExpire)(self.as_ptr()) };
        let expires = at_ms != i64::from(raw::REDISMODULE_NO_EXPIRE);
        // A time before 1970 is over as much as 1970 is.
        expires.then(|| u64::try_from(at_ms).unwrap_or(0))
    }

    /// Makes it expire at `at_ms`, in Unix milliseconds; says whether that worked.
    #[must_use]
    pub fn set_expires_at_ms(&mut self, at_ms: i64) -> bool {
        self.begin_change();
        // SAFETY: the key is open; the server refuses one that is empty or not open for writing.
        is_ok(unsafe { required(raw::RedisModule_SetAbsExpire)(self.as_ptr(), at_ms) })
    }

    /// Deletes its value, leaving big ones to a background thread; says whether that worked.
    #[must_use]
    pub fn unlink(&mut self) -> bool {
        self.begin_change();
        // SAFETY: the key is open; the server refuses one that is not open for writing.
        is_ok(unsafe { required(raw::RedisModule_UnlinkKey)(self.as_ptr()) })
    }

    /// The first member with a score from `min` to `max`, and its score.
    pub fn first_in(&self, min: f64, max: f64) -> Option<(f64, OwnedText)> {
        // SAFETY: the key is open; on anything but a sorted set the server does nothing.
        unsafe { required(raw::RedisModule_ZsetFirstInScoreRange)(self.as_ptr(), min, max, 0, 0) };
        self.current()
    }

    /// The last member with a score from `min` to `max`, and its score.
    pub fn last_in(&self, min: f64, max: f64) -> Option<(f64, OwnedText)> {
        // SAFETY: as above.
        unsafe { required(raw::RedisModule_ZsetLastInScoreRange)(self.as_ptr(), min, max, 0, 0) };
        self.current()
    }

    /// The member before the one that the last seek or step found, and its score.
    pub fn previous(&self) -> Option<(f64, OwnedText)> {
        // SAFETY: as above; without a member before it the server stays where it is and says so.
        let moved = unsafe { required(raw::RedisModule_ZsetRangePrev)(self.as_ptr()) };
        if moved == 1 { self.current() } else { None }
    }

    /// The member that the last seek found.
    fn current(&self) -> Option<(f64, OwnedText)> {
        let mut score = 0.0;
        // SAFETY: the key is open, and nothing has changed the set since the seek: `add` and
        // `remove` end it first. A seek that found nothing gives NULL.
        let member = unsafe {
            let current = required(raw::RedisModule_ZsetRangeCurrentElement);
            current(self.as_ptr(), &mut score)
        };
        // SAFETY: the string was made for us.
        NonNull::new(member).map(|member| (score, unsafe { OwnedText::adopt(member) }))
    }

    /// Adds `member`, or gives it a new score; says whether that worked.
    #[must_use]
    pub fn add(&mut self, score: f64, member: Text) -> bool {
        self.begin_change();
        // SAFETY: the key is open; the server refuses one that holds no sorted set or is not open
        // for writing.
        is_ok(unsafe {
            let add = required(raw::RedisModule_ZsetAdd);
            add(self.as_ptr(), score, member.as_ptr(), ptr::null_mut())
        })
    }

    /// Removes `member`; says whether it was there.
    #[must_use]
    pub fn remove(&mut self, member: Text) -> bool {
        self.begin_change();
        let mut removed = 0;
        // SAFETY: as above.
        let status = unsafe {
            let remove = required(raw::RedisModule_ZsetRem);
            remove(self.as_ptr(), member.as_ptr(), &mut removed)
        };
        is_ok(status) && removed == 1
    }

    /// Calls `each` with the name and the value of every field of a hash, of some perhaps twice, as
    /// long as it says to go on and for `max_steps` of the scan; says whether that was all of it.
    ///
    /// A step looks at one place of the hash's table. A hash that has shrunk may have a table of
    /// millions for a handful of fields.
    pub fn visit_fields(
        &self,
        max_steps: usize,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> bool {
        let mut visitor = Visitor { each: &mut each, goes_on: true, panic: None };
        let mut is_done = false;
        // SAFETY: the key is open and nothing changes it meanwhile; the cursor is made and destroyed
        // here; `visit` gets back the visitor that it is given, within its life.
        unsafe {
            let cursor = required(raw::RedisModule_ScanCursorCreate)();
            let scan = required(raw::RedisModule_ScanKey);
            for _ in 0..max_steps {
                is_done = scan(self.as_ptr(), cursor, Some(visit), (&raw mut visitor).cast()) == 0;
                if is_done || !visitor.goes_on {
                    break;
                }
            }
            required(raw::RedisModule_ScanCursorDestroy)(cursor);
        }
        match visitor.panic {
            Some(panic) => panic::resume_unwind(panic),
            None => is_done && visitor.goes_on,
        }
    }

    /// Gives a field of a hash a value, creating field and hash if need be; says whether that worked.
    #[must_use]
    pub fn set_field(&mut self, name: Text, value: Text) -> bool {
        self.begin_change();
        // SAFETY: the key is open; the server refuses one that holds another type or is not open for
        // writing. The server copies name and value, and NULL ends them.
        1 == unsafe {
            let set = required(raw::RedisModule_HashSet);
            let (name, value) = (name.as_ptr(), value.as_ptr());
            set(self.as_ptr(), HASH_SET_FLAGS, name, value, ptr::null::<c_char>())
        }
    }

    /// Gives three fields of a hash a value each, all or none; says whether that worked.
    #[must_use]
    pub fn set_fields(&mut self, names: [Text; 3], values: [Text; 3]) -> bool {
        self.begin_change();
        // SAFETY: as above, three times.
        3 == unsafe { self.set_three(names, values.map(Text::as_ptr)) }
    }

    /// Removes three fields of a hash; says whether all of them were there.
    #[must_use]
    pub fn remove_fields(&mut self, names: [Text; 3]) -> bool {
        /// What the module API calls `REDISMODULE_HASH_DELETE`: no string, but a mark.
        const DELETE: *mut raw::RedisModuleString = ptr::without_provenance_mut(1);
        self.begin_change();
        // SAFETY: as above, with the mark as values.
        3 == unsafe { self.set_three(names, [DELETE; 3]) }
    }

    /// # Safety
    /// The values are strings, or the mark that deletes.
    unsafe fn set_three(
        &mut self,
        names: [Text; 3],
        values: [*mut raw::RedisModuleString; 3],
    ) -> c_int {
        // SAFETY: the caller's, and as above.
        unsafe {
            let set = required(raw::RedisModule_HashSet);
            set(
                self.as_ptr(),
                HASH_SET_FLAGS,
                names[0].as_ptr(),
                values[0],
                names[1].as_ptr(),
                values[1],
                names[2].as_ptr(),
                values[2],
                ptr::null::<c_char>(),
            )
        }
    }

    /// A seek points into the set, so it must end before the set changes.
    fn begin_change(&mut self) {
        self.is_changed = true;
        // SAFETY: the key is open; without a seek nothing happens.
        unsafe { required(raw::RedisModule_ZsetRangeStop)(self.as_ptr()) };
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open and ours, and its context is still there.
        unsafe { required(raw::RedisModule_CloseKey)(self.as_ptr()) }
        self.context.key_is_open.set(false);
        if self.is_changed {
            // SAFETY: context and name are those that the key was opened with.
            unsafe {
                let signal = required(raw::RedisModule_SignalModifiedKey);
                signal(self.context.as_ptr(), self.name.as_ptr());
            }
        }
    }
}

/// Who looks at the fields that a scan finds, and how that went wrong.
struct Visitor<'a> {
    each: &'a mut dyn FnMut(&[u8], &[u8]) -> bool,
    goes_on: bool,
    panic: Option<Box<dyn Any + Send>>,
}

/// Hands a field to the [`Visitor`] behind `visitor`. A panic waits there until C is left.
unsafe extern "C" fn visit(
    _key: *mut raw::RedisModuleKey,
    name: *mut raw::RedisModuleString,
    value: *mut raw::RedisModuleString,
    visitor: *mut c_void,
) {
    // SAFETY: strings and visitor live until this function returns, and the visitor is lent to it.
    let (visitor, name, value) =
        unsafe { (&mut *visitor.cast::<Visitor>(), Text::lent(name), Text::lent(value)) };
    if let (Some(name), Some(value), true) = (name, value, visitor.goes_on) {
        let each = AssertUnwindSafe(|| (visitor.each)(name.bytes(), value.bytes()));
        match panic::catch_unwind(each) {
            Ok(goes_on) => visitor.goes_on = goes_on,
            Err(panic) => (visitor.goes_on, visitor.panic) = (false, Some(panic)),
        }
    }
}

fn is_ok(status: c_int) -> bool {
    status as isize == raw::REDISMODULE_OK
}

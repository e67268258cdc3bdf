//! One call of a command: the clock, the reply, what goes to replicas, events and the log.

use super::{Text, required};
use libc::{c_char, c_long, c_longlong};
use redis_module::raw;
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io;
use std::ptr::NonNull;

/// The context of the call that is running. It is lent to the handler and cannot be kept.
pub struct Context {
    raw: NonNull<raw::RedisModuleCtx>,
    /// Whether a key is open. Two handles of one key know nothing of each other: what one deletes,
    /// the other would go on to use.
    pub(super) key_is_open: Cell<bool>,
}

/// The class of a keyspace event, which `notify-keyspace-events` chooses by.
#[derive(Clone, Copy, Debug)]
pub enum EventClass {
    /// `g`: commands that work on any type.
    Generic,
    /// `z`: sorted sets.
    SortedSet,
    /// `h`: hashes.
    Hash,
    /// `d`: modules.
    Module,
}

/// The commands that replicas and the AOF are sent.
const REPLICATED: [&CStr; 7] =
    [c"ZADD", c"ZREM", c"ZREMRANGEBYRANK", c"HSET", c"HDEL", c"UNLINK", c"PEXPIREAT"];

impl Context {
    /// # Safety
    /// `raw` is the context of a call that outlives the value.
    pub(super) unsafe fn new(raw: NonNull<raw::RedisModuleCtx>) -> Self {
        Self { raw, key_is_open: Cell::new(false) }
    }

    pub(super) fn as_ptr(&self) -> *mut raw::RedisModuleCtx {
        self.raw.as_ptr()
    }

    /// The server's clock, in Unix milliseconds.
    ///
    /// From 7.2 on it stands still in a script or a transaction, as what has expired does for all
    /// servers, unless a script takes so long that the server answers others that it is busy.
    pub fn clock_ms(&self) -> i64 {
        // SAFETY: the server has set these once, before anything else of ours ran; they take no
        // arguments.
        unsafe {
            match raw::RedisModule_CachedMicroseconds {
                Some(cached_us) => cached_us() / 1_000,
                None => required(raw::RedisModule_Milliseconds)(),
            }
        }
    }

    /// Whether the server is over `maxmemory` with nothing to evict.
    ///
    /// It evicts before each command, so what is over after that stays over, except inside a script
    /// or a transaction: there it evicts before the first, and lets all of the rest pass. It evicts no
    /// more than it must, so what a call itself takes may be too much: it asks first of all.
    pub fn is_out_of_memory(&self) -> bool {
        // SAFETY: the context is that of the running call.
        let flags = unsafe { required(raw::RedisModule_GetContextFlags)(self.as_ptr()) } as u32;
        let has = |flag| flags & flag != 0;
        let is_inside =
            has(raw::REDISMODULE_CTX_FLAGS_LUA) || has(raw::REDISMODULE_CTX_FLAGS_MULTI);
        let may_evict_after = has(raw::REDISMODULE_CTX_FLAGS_EVICT) && is_inside;
        has(raw::REDISMODULE_CTX_FLAGS_OOM) && !may_evict_after
    }

    /// Answers with an array of integers.
    pub fn reply_integers(&self, integers: &[i64]) {
        self.reply_array(integers.len());
        integers.iter().for_each(|integer| self.reply_integer(*integer));
    }

    /// Answers with an array, whose elements are the next `len` replies.
    pub fn reply_array(&self, len: usize) {
        // SAFETY: the context is that of the running call.
        unsafe { required(raw::RedisModule_ReplyWithArray)(self.as_ptr(), len as c_long) };
    }

    /// Answers with bytes.
    pub fn reply_bytes(&self, bytes: &[u8]) {
        // SAFETY: pointer and length are those of a slice, which the server copies.
        unsafe {
            let reply = required(raw::RedisModule_ReplyWithStringBuffer);
            reply(self.as_ptr(), bytes.as_ptr().cast(), bytes.len());
        }
    }

    /// Answers with `OK`.
    pub fn reply_ok(&self) {
        // SAFETY: the context is that of the running call, and the text a C string.
        unsafe {
            required(raw::RedisModule_ReplyWithSimpleString)(self.as_ptr(), c"OK".as_ptr());
        }
    }

    /// Answers with an integer.
    pub fn reply_integer(&self, integer: i64) {
        // SAFETY: the context is that of the running call.
        unsafe { required(raw::RedisModule_ReplyWithLongLong)(self.as_ptr(), integer) };
    }

    /// Answers with an error, whose first word is its code.
    pub fn reply_error(&self, message: &str) {
        let message = c_string(message);
        // SAFETY: the message is a C string, which the server copies and puts on one line.
        unsafe { required(raw::RedisModule_ReplyWithError)(self.as_ptr(), message.as_ptr()) };
    }

    /// Writes a warning to the server's log.
    pub fn log_warning(&self, message: &str) {
        let message = c_string(message);
        // SAFETY: the format takes one C string, and the message, which may hold anything, is it.
        unsafe {
            let log = required(raw::RedisModule_Log);
            log(self.as_ptr(), c"warning".as_ptr(), c"%s".as_ptr(), message.as_ptr());
        }
    }

    /// Tells subscribers of an event on `key`.
    pub fn notify(&self, class: EventClass, event: &CStr, key: Text) {
        let class = match class {
            EventClass::Generic => raw::REDISMODULE_NOTIFY_GENERIC,
            EventClass::SortedSet => raw::REDISMODULE_NOTIFY_ZSET,
            EventClass::Hash => raw::REDISMODULE_NOTIFY_HASH,
            EventClass::Module => raw::REDISMODULE_NOTIFY_MODULE,
        };
        // SAFETY: the event is a C string and the key a string that outlives the call.
        unsafe {
            let notify = required(raw::RedisModule_NotifyKeyspaceEvent);
            notify(self.as_ptr(), class, event.as_ptr(), key.as_ptr());
        }
    }

    /// A command that replicas and the AOF would be sent, and that this server does not know by its name:
    /// `rename-command` has taken it away. What is sent by such a name is lost without a word.
    pub(super) fn unknown_command(&self) -> Option<&'static CStr> {
        REPLICATED.into_iter().find(|command| {
            // SAFETY: the context is that of the running call, and the format takes nothing. Each of the
            // commands needs arguments, so that none is run: the server says in `errno` what is wrong.
            let reply = unsafe {
                let call = required(raw::RedisModule_Call);
                call(self.as_ptr(), command.as_ptr(), c"".as_ptr())
            };
            let error = io::Error::last_os_error();
            reply.is_null() && error.raw_os_error() == Some(libc::ENOENT)
        })
    }

    /// Sends `ZADD key score member` to replicas and the AOF. The score comes as its digits, as do the
    /// numbers of the other commands that are sent often: the server takes bytes over in one allocation,
    /// and a number in two.
    pub fn replicate_zadd(&self, key: Text, score: &[u8], member: Text) {
        // SAFETY: `sbs` takes a string, a pointer to bytes with their number, and a string.
        unsafe {
            let (command, format) = (c"ZADD".as_ptr(), c"sbs".as_ptr());
            let (digits, len) = (score.as_ptr().cast::<c_char>(), score.len());
            let replicate = required(raw::RedisModule_Replicate);
            replicate(self.as_ptr(), command, format, key.as_ptr(), digits, len, member.as_ptr());
        }
    }

    /// Sends `ZREM key member` to replicas and the AOF.
    pub fn replicate_zrem(&self, key: Text, member: Text) {
        // SAFETY: `ss` takes two strings.
        unsafe {
            let (command, format) = (c"ZREM".as_ptr(), c"ss".as_ptr());
            let replicate = required(raw::RedisModule_Replicate);
            replicate(self.as_ptr(), command, format, key.as_ptr(), member.as_ptr());
        }
    }

    /// Sends `ZREMRANGEBYRANK key first last` to replicas and the AOF.
    pub fn replicate_zremrangebyrank(&self, key: Text, first: i64, last: i64) {
        // SAFETY: `sll` takes a string and two long longs.
        unsafe {
            let (command, format) = (c"ZREMRANGEBYRANK".as_ptr(), c"sll".as_ptr());
            let (first, last) = (first as c_longlong, last as c_longlong);
            let replicate = required(raw::RedisModule_Replicate);
            replicate(self.as_ptr(), command, format, key.as_ptr(), first, last);
        }
    }

    /// Sends `HSET key field value` to replicas and the AOF.
    pub fn replicate_hset(&self, key: Text, field: Text, value: Text) {
        // SAFETY: `sss` takes three strings.
        unsafe {
            let (command, format) = (c"HSET".as_ptr(), c"sss".as_ptr());
            let replicate = required(raw::RedisModule_Replicate);
            replicate(self.as_ptr(), command, format, key.as_ptr(), field.as_ptr(), value.as_ptr());
        }
    }

    /// Sends `HSET key field value ...` for three fields to replicas and the AOF.
    pub fn replicate_hset_three(&self, key: Text, fields: [Text; 3], values: [Text; 3]) {
        let ([first, second, third], values) = (fields.map(Text::as_ptr), values.map(Text::as_ptr));
        // SAFETY: `sssssss` takes seven strings.
        unsafe {
            let replicate = required(raw::RedisModule_Replicate);
            replicate(
                self.as_ptr(),
                c"HSET".as_ptr(),
                c"sssssss".as_ptr(),
                key.as_ptr(),
                first,
                values[0],
                second,
                values[1],
                third,
                values[2],
            );
        }
    }

    /// Sends `HDEL key field ...` for three fields to replicas and the AOF.
    pub fn replicate_hdel(&self, key: Text, fields: [Text; 3]) {
        let [first, second, third] = fields.map(Text::as_ptr);
        // SAFETY: `ssss` takes four strings.
        unsafe {
            let (command, format) = (c"HDEL".as_ptr(), c"ssss".as_ptr());
            let replicate = required(raw::RedisModule_Replicate);
            replicate(self.as_ptr(), command, format, key.as_ptr(), first, second, third);
        }
    }

    /// Sends `UNLINK key` to replicas and the AOF.
    pub fn replicate_unlink(&self, key: Text) {
        // SAFETY: `s` takes a string.
        unsafe {
            let replicate = required(raw::RedisModule_Replicate);
            replicate(self.as_ptr(), c"UNLINK".as_ptr(), c"s".as_ptr(), key.as_ptr());
        }
    }

    /// Sends `PEXPIREAT key at_ms` to replicas and the AOF.
    pub fn replicate_pexpireat(&self, key: Text, at_ms: i64) {
        // SAFETY: `sl` takes a string and a long long.
        unsafe {
            let (command, format) = (c"PEXPIREAT".as_ptr(), c"sl".as_ptr());
            let replicate = required(raw::RedisModule_Replicate);
            replicate(self.as_ptr(), command, format, key.as_ptr(), at_ms as c_longlong);
        }
    }
}

/// The message up to its first NUL, which C would stop at anyway.
fn c_string(message: &str) -> CString {
    let message = message.split('\0').next().unwrap_or_default();
    CString::new(message).unwrap_or_default()
}

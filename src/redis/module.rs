//! Loading, registering commands, and the edge where a call comes in.

use super::{CommandInfo, Context, Text, required};
use libc::{c_int, c_void};
use redis_module::raw;
use std::any::Any;
use std::ffi::CStr;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::slice;

/// What handles a command.
pub trait Handler {
    /// What the command is.
    const INFO: CommandInfo;

    /// Answers one call, which has as many words as the command needs. It may panic: the server
    /// goes on.
    fn call(context: &Context, args: Args);

    /// Answers a call that panicked.
    fn panicked(context: &Context, message: &str);
}

/// What `INFO` shows of the module.
pub trait Info {
    /// The fields and their values. It must not panic or allocate: a crashing server asks it too.
    fn fields() -> impl IntoIterator<Item = (&'static CStr, u64)>;
}

/// The arguments of a call: the command's name, and more.
#[derive(Clone, Copy)]
pub struct Args<'a>(&'a [Text<'a>]);

impl<'a> Args<'a> {
    /// The arguments behind the command's name.
    pub fn behind_name(self) -> impl Iterator<Item = &'a [u8]> {
        self.0[1..].iter().map(|word| word.bytes())
    }

    /// The arguments behind the key, which the command has.
    pub fn behind_key(self) -> impl Iterator<Item = &'a [u8]> {
        self.0[2..].iter().map(|word| word.bytes())
    }

    /// The key, which the command has.
    pub fn key(self) -> Text<'a> {
        self.0[1]
    }
}

/// The module while it loads.
pub struct Module<'a> {
    context: Context,
    args: &'a [Text<'a>],
}

/// Introduces the module to the server and lets `register` add its commands; the result is what
/// `RedisModule_OnLoad` returns.
///
/// # Safety
/// The first three are what the server gave to `RedisModule_OnLoad`.
pub unsafe fn load(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    name: &CStr,
    version: c_int,
    register: fn(&Module) -> Result<(), String>,
) -> c_int {
    let api = raw::REDISMODULE_APIVER_1 as c_int;
    // SAFETY: the context is the server's, and the name a C string, which the server copies.
    let status = unsafe { raw::Export_RedisModule_Init(ctx, name.as_ptr(), version, api) };
    let Some(ctx) = NonNull::new(ctx) else { return raw::REDISMODULE_ERR as c_int };
    // SAFETY: context and arguments live until the server's call returns, and with it this function.
    let (context, args) = unsafe { (Context::new(ctx), texts(argv, argc)) };
    let module = Module { context, args };
    let started = panic::catch_unwind(AssertUnwindSafe(|| {
        check_server()?;
        if status as isize != raw::REDISMODULE_OK {
            let name = name.to_string_lossy();
            return Err(format!("{name} is loaded already: MODULE UNLOAD {name} first"));
        }
        module.check_commands()?;
        module.set_options();
        register(&module)
    }));
    let loaded = started.unwrap_or_else(|payload| {
        Err(format!("a bug: the load panicked: {}", message_of(payload.as_ref())))
    });
    match loaded {
        Ok(()) => raw::REDISMODULE_OK as c_int,
        Err(reason) => {
            module.context.log_warning(&reason);
            raw::REDISMODULE_ERR as c_int
        }
    }
}

/// Valkey 9's option of a module that need not know when the keys of a slot move in or out; without it
/// `CLUSTER MIGRATESLOTS` is refused.
const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// Whether the server has its functions under Valkey's names, too.
fn is_valkey() -> bool {
    let mut function: *mut c_void = ptr::null_mut();
    // SAFETY: the server has set this once, in Export_RedisModule_Init; it looks a C string up, and writes
    // a pointer to a function if it knows the name.
    let status = unsafe {
        let get = required(raw::RedisModule_GetApi);
        get(c"ValkeyModule_OpenKey".as_ptr(), (&raw mut function).cast())
    };
    status as isize == raw::REDISMODULE_OK
}

fn present<F>(function: Option<F>) -> bool {
    function.is_some()
}

/// Tells whether the server has every function that is called without looking first.
fn check_server() -> Result<(), String> {
    // SAFETY: the server has set these once, in Export_RedisModule_Init, and nobody sets them again.
    let functions = unsafe {
        [
            ("Call", present(raw::RedisModule_Call)),
            ("CloseKey", present(raw::RedisModule_CloseKey)),
            ("CreateCommand", present(raw::RedisModule_CreateCommand)),
            ("CreateString", present(raw::RedisModule_CreateString)),
            ("FreeString", present(raw::RedisModule_FreeString)),
            ("GetAbsExpire", present(raw::RedisModule_GetAbsExpire)),
            ("GetApi", present(raw::RedisModule_GetApi)),
            ("GetContextFlags", present(raw::RedisModule_GetContextFlags)),
            ("HashSet", present(raw::RedisModule_HashSet)),
            ("InfoAddFieldULongLong", present(raw::RedisModule_InfoAddFieldULongLong)),
            ("InfoAddSection", present(raw::RedisModule_InfoAddSection)),
            ("KeyType", present(raw::RedisModule_KeyType)),
            ("Log", present(raw::RedisModule_Log)),
            ("Milliseconds", present(raw::RedisModule_Milliseconds)),
            ("NotifyKeyspaceEvent", present(raw::RedisModule_NotifyKeyspaceEvent)),
            ("OpenKey", present(raw::RedisModule_OpenKey)),
            ("RegisterInfoFunc", present(raw::RedisModule_RegisterInfoFunc)),
            ("Replicate", present(raw::RedisModule_Replicate)),
            ("ReplyWithArray", present(raw::RedisModule_ReplyWithArray)),
            ("ReplyWithError", present(raw::RedisModule_ReplyWithError)),
            ("ReplyWithLongLong", present(raw::RedisModule_ReplyWithLongLong)),
            ("ReplyWithSimpleString", present(raw::RedisModule_ReplyWithSimpleString)),
            ("ReplyWithStringBuffer", present(raw::RedisModule_ReplyWithStringBuffer)),
            ("ScanCursorCreate", present(raw::RedisModule_ScanCursorCreate)),
            ("ScanCursorDestroy", present(raw::RedisModule_ScanCursorDestroy)),
            ("ScanKey", present(raw::RedisModule_ScanKey)),
            ("SetAbsExpire", present(raw::RedisModule_SetAbsExpire)),
            ("SetModuleOptions", present(raw::RedisModule_SetModuleOptions)),
            ("SignalModifiedKey", present(raw::RedisModule_SignalModifiedKey)),
            ("StringPtrLen", present(raw::RedisModule_StringPtrLen)),
            ("UnlinkKey", present(raw::RedisModule_UnlinkKey)),
            ("ValueLength", present(raw::RedisModule_ValueLength)),
            ("ZsetAdd", present(raw::RedisModule_ZsetAdd)),
            ("ZsetFirstInScoreRange", present(raw::RedisModule_ZsetFirstInScoreRange)),
            ("ZsetLastInScoreRange", present(raw::RedisModule_ZsetLastInScoreRange)),
            ("ZsetRangeCurrentElement", present(raw::RedisModule_ZsetRangeCurrentElement)),
            ("ZsetRangePrev", present(raw::RedisModule_ZsetRangePrev)),
            ("ZsetRangeStop", present(raw::RedisModule_ZsetRangeStop)),
            ("ZsetRem", present(raw::RedisModule_ZsetRem)),
        ]
    };
    match functions.iter().find(|(_, present)| !present) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "this server is too old: it lacks RedisModule_{name}. \
             Redis 6.2.2 or later, or Valkey 8 or later, is needed."
        )),
    }
}

impl Module<'_> {
    /// Tells whether the server knows every command that replicas and the AOF are sent.
    fn check_commands(&self) -> Result<(), String> {
        match self.context.unknown_command() {
            None => Ok(()),
            Some(command) => Err(format!(
                "this server has no command {}, by which replicas and the AOF are told of changes: \
                 rename-command must not take it away",
                command.to_string_lossy()
            )),
        }
    }

    fn set_options(&self) {
        // No data type of ours is ever half loaded, so serving during a replica's asynchronous
        // load is safe; a module that does not say so turns `repl-diskless-load swapdb` off.
        let serves = raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
        // A key that is open for writing may not be changed at all; `Key` tells of those that are.
        let signals = raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED;
        // A log or counters of a slot that moves are keys as any. Redis has no such bit.
        let migrates = if is_valkey() { HANDLE_ATOMIC_SLOT_MIGRATION } else { 0 };
        let options = (serves | signals | migrates) as c_int;
        // SAFETY: the context is that of the running call.
        unsafe { required(raw::RedisModule_SetModuleOptions)(self.context.as_ptr(), options) };
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// The arguments of the load.
    pub(super) fn args(&self) -> &[Text<'_>] {
        self.args
    }

    /// Adds a command, and tells the server what it is as far as the server is new enough to know.
    ///
    /// # Errors
    /// If another module has a command of the name.
    pub fn add_command<H: Handler>(&self) -> Result<(), String> {
        let CommandInfo { name, flags, access, .. } = H::INFO;
        let key = c_int::from(access.is_some());
        // SAFETY: name and flags are C strings, which the server copies, and the entry is a
        // function for as long as the module is loaded.
        let status = unsafe {
            let create = required(raw::RedisModule_CreateCommand);
            let (name, flags) = (name.as_ptr(), flags.as_ptr());
            create(self.context.as_ptr(), name, Some(enter::<H>), flags, key, key, key)
        };
        let added = status as isize == raw::REDISMODULE_OK && self.describe(&H::INFO);
        added
            .then_some(())
            .ok_or_else(|| format!("the command {} is taken or refused", name.to_string_lossy()))
    }

    /// Without this (before 7.0), users need every right to the key, and there is no documentation;
    /// without categories (before 7.2), the command is in none.
    fn describe(&self, info: &CommandInfo) -> bool {
        // SAFETY: the server has set these once, before anything else of ours ran; the command
        // exists, its categories are a C string.
        unsafe {
            let Some(get) = raw::RedisModule_GetCommand else { return true };
            let command = get(self.context.as_ptr(), info.name.as_ptr());
            let described =
                raw::RedisModule_SetCommandInfo.is_none_or(|set| info.describe(command, set));
            let categorised = raw::RedisModule_SetCommandACLCategories.is_none_or(|set| {
                set(command, info.acl_categories.as_ptr()) as isize == raw::REDISMODULE_OK
            });
            described && categorised
        }
    }

    /// Adds a section to `INFO`, named like the module.
    pub fn add_info<I: Info>(&self) {
        // SAFETY: the callback is a function for as long as the module is loaded.
        unsafe {
            let register = required(raw::RedisModule_RegisterInfoFunc);
            register(self.context.as_ptr(), Some(show_info::<I>));
        }
    }
}

/// Where the server asks for what `INFO` shows.
unsafe extern "C" fn show_info<I: Info>(ctx: *mut raw::RedisModuleInfoCtx, _crashing: c_int) {
    // SAFETY: the context is the server's, and the names are C strings, which it copies.
    unsafe {
        required(raw::RedisModule_InfoAddSection)(ctx, c"".as_ptr());
        let add_field = required(raw::RedisModule_InfoAddFieldULongLong);
        for (name, value) in I::fields() {
            add_field(ctx, name.as_ptr(), value);
        }
    }
}

/// Where a call comes in: no panic passes this edge, for beyond it is C, and the server would abort.
unsafe extern "C" fn enter<H: Handler>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let called = panic::catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the server gives a context, and as many strings as it says, that live until this
        // function returns; the first is the command's name.
        let (context, args) =
            unsafe { (Context::new(NonNull::new_unchecked(ctx)), texts(argv, argc)) };
        if args.len() < const { H::INFO.min_words() } {
            let name = H::INFO.name.to_string_lossy();
            let message = format!("ERR wrong number of arguments for '{name}' command");
            return context.reply_error(&message);
        }
        H::call(&context, Args(args));
    }));
    if let Err(payload) = called {
        let _ = panic::catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: as above.
            let context = unsafe { Context::new(NonNull::new_unchecked(ctx)) };
            H::panicked(&context, message_of(payload.as_ref()));
        }));
    }
    raw::REDISMODULE_OK as c_int
}

/// The strings of an argument vector.
///
/// # Safety
/// There are `argc` of them at `argv`, which live and stay as they are for `'a`.
unsafe fn texts<'a>(argv: *mut *mut raw::RedisModuleString, argc: c_int) -> &'a [Text<'a>] {
    match argc {
        // Then the pointer may be anything.
        ..=0 => &[],
        // SAFETY: the caller's; a `Text` is a pointer to a string.
        _ => unsafe { slice::from_raw_parts(argv.cast::<Text>(), argc as usize) },
    }
}

/// What a panic said.
fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::ptr;

    thread_local! {
        static SAID: RefCell<String> = const { RefCell::new(String::new()) };
    }

    /// Panics, and panics again where it should answer.
    struct Panicking;

    impl Handler for Panicking {
        const INFO: CommandInfo = CommandInfo {
            name: c"panicking",
            flags: c"",
            acl_categories: c"",
            access: None,
            summary: c"",
            complexity: c"",
            since: c"",
            args: &[],
        };

        fn call(_context: &Context, _args: Args) {
            panic!("at call {}", 1);
        }

        fn panicked(_context: &Context, message: &str) {
            SAID.set(message.to_string());
            panic!("once more");
        }
    }

    #[test]
    fn no_panic_passes_the_edge() {
        let mut argv = [ptr::dangling_mut(); 2];
        // SAFETY: neither the context nor the arguments are looked at before the panic.
        let status = unsafe { enter::<Panicking>(ptr::dangling_mut(), argv.as_mut_ptr(), 2) };
        assert_eq!(status as isize, raw::REDISMODULE_OK);
        assert_eq!(SAID.take(), "at call 1");
    }
}

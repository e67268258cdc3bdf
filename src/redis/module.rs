//! Loading, registering commands, and the edge where a call comes in.

use super::{Context, Text, required};
use redis_module::raw;
use std::any::Any;
use std::ffi::{CStr, c_int};
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;
use std::slice;

/// What handles a command.
pub trait Handler {
    /// Its name, in lower case.
    const NAME: &CStr;
    /// Its flags, as the server spells them.
    const FLAGS: &CStr;
    /// What it does with its key, for access control.
    const ACCESS: Access;
    /// Arguments it takes at least, with its name and its key: 2 or more.
    const MIN_ARGS: c_int;

    /// Answers one call. It may panic: the server goes on.
    fn call(context: &Context, args: Args);

    /// Answers a call that panicked.
    fn panicked(context: &Context, message: &str);
}

/// What a command does with its key: users need the right to that, and to no more.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Reads it.
    Read,
    /// Reads and changes it.
    Update,
}

/// What `INFO` shows of the module.
pub trait Info {
    /// The fields and their values. It must not panic or allocate: a crashing server asks it too.
    fn fields() -> impl IntoIterator<Item = (&'static CStr, u64)>;
}

/// The arguments of a call: the command's name, its key, and more.
#[derive(Clone, Copy)]
pub struct Args<'a>(&'a [Text<'a>]);

impl<'a> Args<'a> {
    /// The arguments behind the key.
    pub fn words(self) -> impl Iterator<Item = &'a [u8]> {
        self.0[2..].iter().map(|word| word.bytes())
    }

    /// The key.
    pub fn key(self) -> Text<'a> {
        self.0[1]
    }
}

/// The module while it loads.
pub struct Module {
    context: Context,
}

/// Introduces the module to the server and lets `register` add its commands; the result is what
/// `RedisModule_OnLoad` returns.
///
/// # Safety
/// `ctx` is the context that the server gave to `RedisModule_OnLoad`.
pub unsafe fn load(
    ctx: *mut raw::RedisModuleCtx,
    name: &CStr,
    version: c_int,
    register: fn(&Module) -> Result<(), String>,
) -> c_int {
    let api = raw::REDISMODULE_APIVER_1 as c_int;
    // SAFETY: the context is the server's, and the name a C string, which the server copies.
    let status = unsafe { raw::Export_RedisModule_Init(ctx, name.as_ptr(), version, api) };
    let Some(ctx) = NonNull::new(ctx).filter(|_| status as isize == raw::REDISMODULE_OK) else {
        return raw::REDISMODULE_ERR as c_int;
    };
    // SAFETY: the context lives until the server's call returns, and with it this function.
    let module = Module { context: unsafe { Context::new(ctx) } };
    let loaded = check_server().and_then(|()| {
        module.set_options();
        register(&module)
    });
    match loaded {
        Ok(()) => raw::REDISMODULE_OK as c_int,
        Err(reason) => {
            module.context.log_warning(&reason);
            raw::REDISMODULE_ERR as c_int
        }
    }
}

fn present<F>(function: Option<F>) -> bool {
    function.is_some()
}

/// Tells whether the server has every function that is called without looking first.
fn check_server() -> Result<(), String> {
    // SAFETY: the server has set these once, in Export_RedisModule_Init, and nobody sets them again.
    let functions = unsafe {
        [
            ("CloseKey", present(raw::RedisModule_CloseKey)),
            ("CreateCommand", present(raw::RedisModule_CreateCommand)),
            ("CreateString", present(raw::RedisModule_CreateString)),
            ("FreeString", present(raw::RedisModule_FreeString)),
            ("GetAbsExpire", present(raw::RedisModule_GetAbsExpire)),
            ("GetContextFlags", present(raw::RedisModule_GetContextFlags)),
            ("HashGet", present(raw::RedisModule_HashGet)),
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
            ("ScanCursorCreate", present(raw::RedisModule_ScanCursorCreate)),
            ("ScanCursorDestroy", present(raw::RedisModule_ScanCursorDestroy)),
            ("ScanKey", present(raw::RedisModule_ScanKey)),
            ("SetAbsExpire", present(raw::RedisModule_SetAbsExpire)),
            ("SetModuleOptions", present(raw::RedisModule_SetModuleOptions)),
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

impl Module {
    fn set_options(&self) {
        // No data type of ours is ever half loaded, so serving during a replica's asynchronous
        // load is safe; a module that does not say so turns `repl-diskless-load swapdb` off.
        let options = raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD as c_int;
        // SAFETY: the context is that of the running call.
        unsafe { required(raw::RedisModule_SetModuleOptions)(self.context.as_ptr(), options) };
    }

    /// Adds a command, whose first argument is its key.
    ///
    /// # Errors
    /// If another module has a command of the name.
    pub fn add_command<H: Handler>(&self) -> Result<(), String> {
        let (name, flags) = (H::NAME.as_ptr(), H::FLAGS.as_ptr());
        // SAFETY: name and flags are C strings, which the server copies, and the entry is a
        // function for as long as the module is loaded.
        let status = unsafe {
            let create = required(raw::RedisModule_CreateCommand);
            create(self.context.as_ptr(), name, Some(enter::<H>), flags, 1, 1, 1)
        };
        let described = status as isize == raw::REDISMODULE_OK && self.describe::<H>();
        described
            .then_some(())
            .ok_or_else(|| format!("the command {} is taken or refused", H::NAME.to_string_lossy()))
    }

    /// Tells the server the least access that the command needs, and its least arguments, where it
    /// is new enough (7.0) to be told: without, users need every right to the key.
    fn describe<H: Handler>(&self) -> bool {
        // SAFETY: the server has set these once, before anything else of ours ran.
        let (get, set) = unsafe { (raw::RedisModule_GetCommand, raw::RedisModule_SetCommandInfo) };
        let (Some(get), Some(set)) = (get, set) else { return true };
        let access = match H::ACCESS {
            Access::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
            Access::Update => {
                raw::REDISMODULE_CMD_KEY_RW
                    | raw::REDISMODULE_CMD_KEY_ACCESS
                    | raw::REDISMODULE_CMD_KEY_UPDATE
            }
        };
        // SAFETY: all zero is how these say «nothing», and ends the list of keys.
        let (mut keys, mut info) = unsafe {
            let keys: [raw::RedisModuleCommandKeySpec; 2] = mem::zeroed();
            let info: raw::RedisModuleCommandInfo = mem::zeroed();
            (keys, info)
        };
        keys[0].flags = u64::from(access);
        keys[0].begin_search_type =
            raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
        keys[0].bs.index.pos = 1;
        keys[0].find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
        keys[0].fk.range.keystep = 1;
        let version = raw::RedisModuleCommandInfoVersion {
            version: 1,
            sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
            sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
            sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
        };
        info.version = &version;
        info.arity = -H::MIN_ARGS;
        info.key_specs = keys.as_mut_ptr();
        // SAFETY: the command was created just now; the server copies what it is told.
        let status = unsafe {
            let command = get(self.context.as_ptr(), H::NAME.as_ptr());
            set(command, &info)
        };
        status as isize == raw::REDISMODULE_OK
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
        let (context, args) = unsafe {
            let context = Context::new(NonNull::new_unchecked(ctx));
            (context, slice::from_raw_parts(argv.cast::<Text>(), argc as usize))
        };
        if argc < H::MIN_ARGS {
            let name = H::NAME.to_string_lossy();
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
        const NAME: &CStr = c"panicking";
        const FLAGS: &CStr = c"";
        const ACCESS: Access = Access::Read;
        const MIN_ARGS: c_int = 2;

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

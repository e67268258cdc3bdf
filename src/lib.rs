//! Sliding-window rate limits as Redis commands.
//!
//! A native module: `librl.so` is loaded into `redis-server` or `valkey-server` and adds commands that
//! limit: [`commands::table`] lists them. The way of a call is in the folder names:
//!
//! ```text
//! commands::parse -> store::load -> limiter::decide -> store::apply -> commands::reply
//! ```
//!
//! - [`commands`]: one file a command, and the words and replies they share.
//! - [`limiter`]: the arithmetic; it knows nothing of Redis.
//! - [`store`]: a log as a sorted set, counters as a hash.
//! - [`denied`]: the keys denied most often; it knows nothing of Redis either.
//! - [`redis`]: the module API, and all of the `unsafe`.

pub mod commands;
mod decimal;
pub mod denied;
pub mod limiter;
#[allow(unsafe_code, reason = "the one layer that speaks C")]
mod redis;
mod store;

/// What the server looks for in the library.
#[allow(unsafe_code, reason = "the server finds the entry by its unmangled name")]
mod entry {
    use crate::{commands, redis};
    use libc::c_int;
    use redis_module::raw::{RedisModuleCtx, RedisModuleString};

    /// As the server shows it in `MODULE LIST`: 1.2.3 is 10203.
    const VERSION: c_int = 100;

    /// Called once, at `loadmodule` or `MODULE LOAD`.
    ///
    /// # Safety
    /// Only the server calls it, with the context of the load.
    #[unsafe(no_mangle)]
    #[allow(non_snake_case)]
    unsafe extern "C" fn RedisModule_OnLoad(
        ctx: *mut RedisModuleCtx,
        argv: *mut *mut RedisModuleString,
        argc: c_int,
    ) -> c_int {
        // SAFETY: these are what the server gave.
        unsafe { redis::load(ctx, argv, argc, c"rl", VERSION, commands::register) }
    }

    /// Called once, at `MODULE UNLOAD`.
    #[unsafe(no_mangle)]
    #[allow(non_snake_case)]
    extern "C" fn RedisModule_OnUnload(_ctx: *mut RedisModuleCtx) -> c_int {
        commands::unregister();
        redis_module::raw::REDISMODULE_OK as c_int
    }
}
